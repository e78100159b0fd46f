//! Batches of cursors: the first one, `getMore`, `killCursors`.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use orrery_mongo::pipeline::{ListRows, Row};
use orrery_mongo::{Bson, Document, Error, Result, ValueRef, doc, error::code};

use super::{Call, options};
use crate::cursors::{Cursor, Source};
use crate::reply::{Batch, Reply};

/// Documents of a first batch, unless the client says otherwise.
const FIRST_BATCH: u64 = 101;
/// A batch ends with the document that crosses this.
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long a cursor that waits does so, unless the client says otherwise.
const AWAIT_DEFAULT: Duration = Duration::from_secs(1);

/// How a cursor is opened.
#[derive(Default)]
pub struct Opening {
    pub namespace: String,
    pub batch: Option<u64>,
    pub single: bool,
    pub limit: Option<u64>,
    pub awaits: bool,
    pub no_timeout: bool,
}

pub fn open(call: &mut Call<'_>, source: Source, opening: Opening) -> Result<Reply> {
    let mut cursor = Cursor::new(opening.namespace.clone(), source, call.control.clone(), call.spent.clone())
        .without_timeout(opening.no_timeout);
    cursor.limit = opening.limit;
    cursor.session = call.session;
    cursor.transaction = call.transaction.as_ref().and(call.txn_number);
    cursor.awaits = opening.awaits;
    cursor.timed = options::number(call.body, "maxTimeMS")?.is_some_and(|ms| ms > 0);
    cursor.user = call.client.identity.as_ref().map(|identity| identity.user.clone());
    let mut batch = Batch::new(opening.namespace, true);
    if let Some(((seconds, increment), _)) = call.moment {
        batch.extra.push("atClusterTime", Bson::Timestamp { seconds, increment });
    }
    let size = opening.batch.unwrap_or(FIRST_BATCH);
    let done = fill(&mut cursor, &mut batch, size)?;
    if !done && !opening.single {
        batch.cursor = call.core.cursors.keep(cursor, || call.core.random_u64())?;
    }
    Ok(Reply::Batch(batch))
}

/// A cursor over documents that are there already.
pub fn of_documents(
    call: &mut Call<'_>,
    namespace: String,
    documents: Vec<Document>,
    batch: Option<u64>,
) -> Result<Reply> {
    let rows = ListRows::boxed(documents.into_iter().map(Row::Built));
    open(call, Source::Rows(rows), Opening { namespace, batch, ..Opening::default() })
}

/// Fills a batch; says whether the cursor has come to its end.
fn fill(cursor: &mut Cursor, batch: &mut Batch, size: u64) -> Result<bool> {
    while (batch.len() as u64) < size {
        if cursor.limit == Some(0) {
            return Ok(true);
        }
        let before = batch.mark();
        match &mut cursor.source {
            Source::Rows(rows) => match rows.next()? {
                Some(row) => batch.push(row.value()?),
                None => return Ok(true),
            },
            Source::Tail(tail) => match tail.poll()? {
                Some(document) => batch.push(ValueRef::OwnedDocument(&document)),
                None => {
                    if let Some(token) = tail.token() {
                        batch.extra.set("postBatchResumeToken", token);
                    }
                    return Ok(tail.is_over());
                }
            },
        }
        if let Some(limit) = &mut cursor.limit {
            *limit -= 1;
        }
        if batch.size_bytes() > BATCH_BYTES_MAX {
            // A document alone may be as large as it likes; the last of many waits for the next batch.
            if batch.len() > 1 && batch.size_bytes() > crate::wire::MESSAGE_BYTES_MAX / 2 {
                batch.back_to(before);
                return Err(Error::new(code::BSON_OBJECT_TOO_LARGE, "a batch of the cursor is too large"));
            }
            break;
        }
    }
    if let Source::Tail(tail) = &cursor.source
        && let Some(token) = tail.token()
    {
        batch.extra.set("postBatchResumeToken", token);
    }
    Ok(cursor.limit == Some(0))
}

pub fn get_more(call: &mut Call<'_>) -> Result<Reply> {
    call.core.counts.get_mores.fetch_add(1, Relaxed);
    let body = call.body;
    let id = match call.argument() {
        Bson::Int64(id) => *id,
        other => {
            return Err(Error::type_mismatch(format!(
                "BSON field 'getMore.getMore' is the wrong type '{}', expected type 'long'",
                other.kind().name()
            )));
        }
    };
    let collection = match options::required(body, "collection")? {
        Bson::String(name) => name.to_string(),
        other => {
            return Err(Error::type_mismatch(format!(
                "BSON field 'getMore.collection' is the wrong type '{}', expected type 'string'",
                other.kind().name()
            )));
        }
    };
    let size = match options::count(body, "batchSize")? {
        Some(0) => return Err(Error::bad_value("Batch size for getMore must be positive, but received: 0")),
        size => size.unwrap_or(u64::MAX),
    };
    let core = call.core;
    let mut cursor = core.cursors.take(id)?;
    let namespace = format!("{}.{collection}", call.database);
    if let Err(error) = check_owner(call, &cursor, id, &namespace) {
        core.cursors.put_back(id, cursor);
        return Err(error);
    }
    if cursor.timed && core.fail_points.meet_time() {
        core.cursors.finished(id);
        return Err(Error::new(code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"));
    }
    let wait =
        options::number(body, "maxTimeMS")?.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    let waits = match &cursor.source {
        Source::Tail(_) if cursor.awaits => Some(wait.unwrap_or(AWAIT_DEFAULT)),
        _ => None,
    };
    if waits.is_none() && wait.is_some() && !matches!(cursor.source, Source::Tail(_)) {
        core.cursors.put_back(id, cursor);
        return Err(Error::bad_value("cannot set maxTimeMS on getMore command for a non-awaitData cursor"));
    }
    cursor.control.begin(call.client.alive.clone(), core.config.request_time);
    let mut batch = Batch::new(namespace, false);
    let spent_before = cursor.spent.charge_ru();
    match fill(&mut cursor, &mut batch, size) {
        Ok(done) => {
            call.spent.add(cursor.spent.charge_ru() - spent_before);
            if done {
                core.cursors.finished(id);
                return Ok(Reply::Batch(batch));
            }
            let empty = batch.len() == 0;
            if !core.cursors.put_back(id, cursor) {
                return Err(Error::new(code::CURSOR_NOT_FOUND, format!("cursor id {id} was killed")));
            }
            if let Some(wait) = waits
                && empty
                && call.waited < wait
            {
                return Ok(Reply::NotYet);
            }
            batch.cursor = id;
            call.more = call.streams;
            Ok(Reply::Batch(batch))
        }
        Err(error) => {
            let error = cursor.control.explain(error);
            core.cursors.finished(id);
            Err(error)
        }
    }
}

fn check_owner(call: &Call<'_>, cursor: &Cursor, id: i64, namespace: &str) -> Result<()> {
    if cursor.namespace != namespace {
        return Err(Error::new(
            code::UNAUTHORIZED,
            format!(
                "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {}",
                cursor.namespace
            ),
        ));
    }
    let user = call.client.identity.as_ref().map(|identity| identity.user.clone());
    if cursor.user != user {
        return Err(Error::new(
            code::UNAUTHORIZED,
            format!("cursor id {id} was not created by the authenticated user"),
        ));
    }
    if cursor.session.is_some() && cursor.session != call.session {
        return Err(Error::new(
            50738,
            format!(
                "Cannot run getMore on cursor {id}, which was created in another session, or without one"
            ),
        ));
    }
    Ok(())
}

pub fn kill_cursors(call: &mut Call<'_>) -> Result<Reply> {
    let namespace = format!("{}.{}", call.database, call.collection_name()?);
    let given = match options::required(call.body, "cursors")? {
        Bson::Array(given) => given.clone(),
        other => {
            return Err(Error::type_mismatch(format!(
                "BSON field 'killCursors.cursors' is the wrong type '{}', expected type 'array'",
                other.kind().name()
            )));
        }
    };
    let (mut killed, mut missing) = (Vec::new(), Vec::new());
    for id in given.iter() {
        match id {
            Bson::Int64(number) if call.core.cursors.kill(*number, &namespace) => killed.push(id.clone()),
            _ => missing.push(id.clone()),
        }
    }
    Ok(doc! {
        "cursorsKilled" => Bson::array(killed),
        "cursorsNotFound" => Bson::array(missing),
        "cursorsAlive" => Bson::array(Vec::new()),
        "cursorsUnknown" => Bson::array(Vec::new()),
    }
    .into())
}
