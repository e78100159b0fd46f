//! Batches in rows (`hybrid_row`), which is the only form that .NET sends and takes.
//!
//! An operation is a row of the schema `OPERATION`; its document is JSON, as text or in the binary form. A result is
//! a row of the schema `RESULT`, which has no column for what was wrong: clients take what a failed operation has for
//! a body as its message.

use orrery_engine::BATCH_OPERATIONS_MAX;

use super::{Sent, SentBody, Told, Verb, invalid, too_many};
use crate::errors::{ApiError, PAYLOAD_INVALID, Result};
use crate::hybrid_row::schemas::{OPERATION, RESULT, operation as column, result};
use crate::hybrid_row::{Cell, Writer, read, records, write};
use crate::item_json::write_item;
use crate::service::Target;

/// About what a result takes beside its item.
const RESULT_BYTES: usize = 100;
/// The only type of resource that batches are about.
const DOCUMENT: i32 = 2;

/// What .NET calls operations by.
#[rustfmt::skip]
const VERBS: &[(i32, Verb)] = &[
    (0, Verb::Create), (1, Verb::Patch), (2, Verb::Read), (4, Verb::Delete), (5, Verb::Replace), (20, Verb::Upsert),
];

pub fn operations(body: &[u8]) -> Result<Vec<Result<Sent<'_>>>> {
    let rows = records(body, BATCH_OPERATIONS_MAX).map_err(|_| ApiError::bad_request(PAYLOAD_INVALID))?;
    if rows.len() > BATCH_OPERATIONS_MAX {
        return Err(too_many());
    }
    Ok(rows.into_iter().enumerate().map(|(n, row)| operation(n, row)).collect())
}

fn operation(place: usize, row: &[u8]) -> Result<Sent<'_>> {
    let cells = read(&OPERATION, row).map_err(|_| invalid(place, "it is no row of an operation."))?;
    let text = |column: usize| cells[column].and_then(Cell::as_str);
    let number = |column: usize| cells[column].and_then(Cell::as_i32);
    if number(column::RESOURCE_TYPE).is_some_and(|given| given != DOCUMENT) {
        return Err(invalid(place, "'resourceType' is not that of an item."));
    }
    let verb = number(column::OPERATION_TYPE).ok_or_else(|| invalid(place, "'operationType' is missing."))?;
    let known = VERBS.iter().find(|(number, _)| *number == verb);
    let (_, verb) = known.ok_or_else(|| invalid(place, &format!("{verb} is not an operation.")))?;
    Ok(Sent {
        verb: *verb,
        id: text(column::ID),
        body: cells[column::RESOURCE_BODY].and_then(Cell::as_bytes).map(SentBody::Bytes),
        key: text(column::PARTITION_KEY),
        if_match: text(column::IF_MATCH),
        if_none_match: text(column::IF_NONE_MATCH),
        minimal: cells[column::MINIMAL_RETURN].and_then(Cell::as_bool).unwrap_or(false),
    })
}

pub fn results<'r>(
    target: &Target,
    results: impl ExactSizeIterator<Item = Told<'r>>,
    items_bytes: usize,
) -> Vec<u8> {
    let mut stream = Writer::with_capacity(items_bytes + results.len() * RESULT_BYTES);
    let mut body = Vec::new();
    for told in results {
        body.clear();
        let etag = told.item.map(|item| item.etag.text());
        let etag = etag.as_ref().and_then(|text| std::str::from_utf8(text).ok());
        match (told.message, told.item) {
            (Some(message), _) => body.extend_from_slice(message.as_bytes()),
            (None, Some(item)) if told.shown => write_item(&mut body, &target.rid, item),
            _ => {}
        }
        let mut cells = [None; 6];
        cells[result::STATUS] = Some(Cell::Int32(i32::from(told.status)));
        cells[result::SUBSTATUS] = Some(Cell::Int32(told.substatus as i32));
        cells[result::ETAG] = etag.map(Cell::Utf8);
        cells[result::RESOURCE_BODY] = (!body.is_empty()).then_some(Cell::Binary(&body));
        cells[result::RETRY_AFTER_MS] =
            told.retry_after_ms.map(|wait| Cell::UInt32(u32::try_from(wait).unwrap_or(u32::MAX)));
        cells[result::REQUEST_CHARGE] = Some(Cell::Float64(told.charge_ru));
        stream.record(|out| write(&RESULT, &cells, out));
    }
    stream.finish()
}
