//! A container under another key, in the same database: what `orrery import --from-container` does, for other commands.

use std::sync::Arc;

use anyhow::{Result, bail};
use http::Method;
use serde_json::Value;

use super::checkpoint::Checkpoint;
use super::import;
use super::import_command::ensure;
use super::item::Preparation;
use super::key_rule::KeyRule;
use super::progress::{self, Counts};
use super::sender::{OnConflict, destination};
use super::source::Source;
use crate::account::{Account, Place, key_definition};
use crate::workload::Target;

const CONNECTIONS: usize = 32;

/// Copies all items; the copy must not exist.
pub async fn copy(
    target: Arc<Target>,
    database: &str,
    container: &str,
    to: &str,
    rule: &str,
) -> Result<Counts> {
    let rule = KeyRule::parse(rule)?;
    let mut account = Account::new(target.clone());
    let (from, copy) = (Place::container(database, container), Place::container(database, to));
    if account.ask(&copy.call(Method::GET)).await?.status == 200 {
        bail!("{database}/{to} exists already");
    }
    let like = account.get(from.call(Method::GET)).await?;
    let made = ensure(&mut account, database, to, Some(&rule), Some(like), false, None).await?;
    let key = key_definition(&made["partitionKey"])?;
    let preparation = Preparation { rule: Some(rule), id_from: None, key, id_prefix: String::new() };
    let checkpoint = Checkpoint::open(None, Value::Null, None, true)?;
    let to = destination(target.clone(), copy, OnConflict::Replace, CONNECTIONS, true).await?;
    let source = Source::Container { target, place: from };
    let bar = progress::bar(None, false);
    let (counts, _) = import::run(source, Arc::new(to), preparation, checkpoint, CONNECTIONS, bar).await?;
    if counts.rejected > 0 {
        bail!("{} of {} items cannot have this key", counts.rejected, counts.read);
    }
    Ok(counts)
}
