//! Read and write concerns: which state a command reads, and how durable a write has to be.

use std::sync::Arc;

use orrery_mongo::{Bson, Document, Error, Result, doc, error::code};

use super::options;
use crate::collection::past::Moment;
use crate::service::Core;

/// The moment that a read with the concern `snapshot` sees: a new one, or that of `atClusterTime`.
pub fn moment_of(core: &Core, concern: &Document, database: &str) -> Result<((u32, u32), Arc<Moment>)> {
    match concern.get("atClusterTime") {
        Some(Bson::Timestamp { seconds, increment }) => {
            let time = (*seconds, *increment);
            Ok((time, core.moments.at(time)?))
        }
        Some(_) => Err(Error::type_mismatch("'atClusterTime' is a timestamp")),
        None => {
            let moment = Arc::new(Moment::of_database(core.catalog.database(core, database))?);
            let time = core.clock.tick(core.account.env().now_s());
            core.moments.keep(time, moment.clone());
            Ok((time, moment))
        }
    }
}

/// Refuses what no reader here may ask for.
pub fn check_read_concern(concern: &Document, is_change_stream: bool, writes_rows: bool) -> Result<()> {
    let level = options::text(concern, "level")?;
    if is_change_stream && level.is_some_and(|level| level != "majority") {
        return Err(Error::new(
            code::INVALID_OPTIONS,
            "$changeStream cannot run with a readConcern other than 'majority'",
        ));
    }
    if level == Some("linearizable") && writes_rows {
        return Err(Error::new(
            code::INVALID_OPTIONS,
            "$out and $merge cannot be used with a 'linearizable' read concern",
        ));
    }
    match level {
        None | Some("local" | "available" | "majority" | "linearizable" | "snapshot") => Ok(()),
        Some(other) => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field 'readConcern.level' is not a valid value."
        ))),
    }
}

/// A write concern that one server cannot fulfil.
pub fn concern_error(body: &Document) -> Option<Bson> {
    let concern = body.get("writeConcern")?.as_document()?;
    let (number, name, text) = match concern.get("w")? {
        Bson::String(mode) if &**mode == "majority" => return None,
        Bson::String(mode) => (
            79,
            "UnknownReplWriteConcern",
            format!("No write concern mode named '{mode}' found in replica set configuration"),
        ),
        other if other.as_i64().is_some_and(|nodes| nodes > 1) => {
            (100, "UnsatisfiableWriteConcern", "Not enough data-bearing nodes".to_owned())
        }
        _ => return None,
    };
    Some(doc! { "code" => number, "codeName" => name, "errmsg" => text, "errInfo" => doc! { "writeConcern" => concern.clone() } }.into())
}
