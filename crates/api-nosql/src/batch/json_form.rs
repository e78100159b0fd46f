//! Batches in JSON.
//!
//! ```text
//! [{"operationType":"Create","resourceBody":{…}}, {"operationType":"Delete","id":"b","ifMatch":"…"}, …]
//! [{"statusCode":201,"requestCharge":6.29,"eTag":"…","resourceBody":{…}}, {"statusCode":204,"requestCharge":6.1}, …]
//! ```
//!
//! The body is parsed once into the stored form; documents are then copied out of it as bytes.

use orrery_engine::BATCH_OPERATIONS_MAX;
use orrery_model::{Kind as ValueKind, ParseOptions, Raw, parse_json};

use super::{Sent, SentBody, Told, Verb, invalid, too_many};
use crate::errors::{ApiError, INPUT_INVALID, PAYLOAD_INVALID, Result};
use crate::item_json::{write_etag, write_item};
use crate::service::Target;
use crate::write::{push_full_charge, push_json_string, push_u64};

/// About what a result takes beside its item.
const RESULT_BYTES: usize = 100;

/// The body in the stored form.
pub fn stored(body: &[u8]) -> Result<Vec<u8>> {
    parse_json(body, &ParseOptions::default()).map_err(|_| ApiError::bad_request(PAYLOAD_INVALID))
}

pub fn operations(stored: &[u8]) -> Result<Vec<Result<Sent<'_>>>> {
    let root = Raw::document(stored).map_err(|_| ApiError::bad_request(PAYLOAD_INVALID))?;
    if root.kind() != ValueKind::Array {
        return Err(ApiError::bad_request(INPUT_INVALID));
    }
    if root.len() > BATCH_OPERATIONS_MAX {
        return Err(too_many());
    }
    Ok(root.elements().enumerate().map(|(n, element)| operation(n, element)).collect())
}

fn operation(place: usize, element: Raw<'_>) -> Result<Sent<'_>> {
    let text = |name: &str| element.get(name).and_then(Raw::as_str);
    let verb = text("operationType").ok_or_else(|| invalid(place, "'operationType' is missing."))?;
    let verb = match verb.to_ascii_lowercase().as_str() {
        "create" => Verb::Create,
        "upsert" => Verb::Upsert,
        "replace" => Verb::Replace,
        "patch" => Verb::Patch,
        "delete" => Verb::Delete,
        "read" => Verb::Read,
        _ => return Err(invalid(place, &format!("'{verb}' is not an operation."))),
    };
    Ok(Sent {
        verb,
        id: text("id"),
        body: element.get("resourceBody").map(SentBody::Value),
        key: text("partitionKey"),
        if_match: text("ifMatch"),
        if_none_match: text("ifNoneMatch"),
        minimal: element.get("minimalReturnPreference").and_then(Raw::as_bool).unwrap_or(false),
    })
}

pub fn results<'r>(
    target: &Target,
    results: impl ExactSizeIterator<Item = Told<'r>>,
    items_bytes: usize,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(items_bytes + results.len() * RESULT_BYTES);
    out.push(b'[');
    for (n, told) in results.enumerate() {
        if n > 0 {
            out.push(b',');
        }
        result(&mut out, target, &told);
    }
    out.push(b']');
    out
}

fn result(out: &mut Vec<u8>, target: &Target, told: &Told<'_>) {
    out.extend_from_slice(b"{\"statusCode\":");
    push_u64(out, u64::from(told.status));
    if told.substatus != 0 {
        out.extend_from_slice(b",\"subStatusCode\":");
        push_u64(out, u64::from(told.substatus));
    }
    out.extend_from_slice(b",\"requestCharge\":");
    push_full_charge(out, told.charge_ru);
    if let Some(retry_after_ms) = told.retry_after_ms {
        out.extend_from_slice(b",\"retryAfterMilliseconds\":");
        push_u64(out, retry_after_ms);
    }
    if let Some(message) = told.message {
        out.extend_from_slice(b",\"message\":");
        push_json_string(out, message);
    }
    if let Some(item) = told.item {
        out.extend_from_slice(b",\"eTag\":");
        write_etag(out, item.etag);
        if told.shown {
            out.extend_from_slice(b",\"resourceBody\":");
            write_item(out, &target.rid, item);
        }
    }
    out.push(b'}');
}
