//! From an answer to a frame.
//!
//! Clients check where each answer was made: LSNs, the range, what a session has seen. They take an answer without
//! them for one of a replica that is behind, also an error, and go on asking others for a long time. So every frame
//! has them; where no partition was asked (a refused signature, a container that has gone) it says that the catalog
//! was, and repeats what the session of the request has seen already.

use std::time::Instant;

use bytes::Bytes;
use http::HeaderName;
use http::header::ETAG;

use super::frame;
use super::request::Return;
use super::token::TokenWriter;
use super::tokens::response as id;
use crate::addresses::{self, MASTER_RANGE, REPLICAS, WRITE_QUORUM};
use crate::generation::ClientGeneration;
use crate::headers::{
    Answer, CONTINUATION, INDEX_PROGRESS, INDEX_UTILIZATION, ITEM_COUNT, QUERY_EXECUTION_INFO, QUERY_METRICS,
    RESOURCE_QUOTA, RESOURCE_USAGE, RETRY_AFTER_MS, SCRIPT_LOG,
};
use crate::session;

/// Values that are the same text as over HTTP.
const TEXTS: [(HeaderName, u16); 8] = [
    (ETAG, id::ETAG),
    (CONTINUATION, id::CONTINUATION_TOKEN),
    (RESOURCE_QUOTA, id::STORAGE_MAX_RESOURE_QUOTA),
    (RESOURCE_USAGE, id::STORAGE_RESOURCE_QUOTA_USAGE),
    (SCRIPT_LOG, id::LOG_RESULTS),
    (QUERY_METRICS, id::QUERY_METRICS),
    (INDEX_UTILIZATION, id::INDEX_UTILIZATION),
    (QUERY_EXECUTION_INFO, id::QUERY_EXECUTION_INFO),
];

/// Values that are digits over HTTP.
const NUMBERS: [(HeaderName, u16); 3] = [
    (ITEM_COUNT, id::ITEM_COUNT),
    (RETRY_AFTER_MS, id::RETRY_AFTER_MILLISECONDS),
    (INDEX_PROGRESS, id::COLLECTION_UPDATE_PROGRESS),
];

/// Room for the tokens of a usual answer.
const TOKENS_BYTES: usize = 640;

/// A frame, without the payload that follows it.
pub struct Response {
    pub frame: Vec<u8>,
    pub payload: Bytes,
}

/// Whom an answer goes to, and what is known without it.
pub struct Recipient<'f> {
    pub activity: [u8; 16],
    pub returned: Return<'f>,
    pub generation: ClientGeneration,
    /// Where the catalog stands.
    pub catalog_lsn: u64,
    pub started: Instant,
}

pub fn write(answer: Answer, to: &Recipient<'_>) -> Response {
    let mut out = Vec::with_capacity(TOKENS_BYTES);
    let begin = frame::open(&mut out, answer.status.as_u16(), &to.activity);
    let mut tokens = TokenWriter(&mut out);
    tokens.byte(id::PAYLOAD_PRESENT, u8::from(!answer.body.is_empty()));
    tokens.ulong(id::TRANSPORT_REQUEST_ID, to.returned.transport_id);
    // Partitions begin at 0, which clients take for a replica that knows nothing.
    let lsn = answer.at.map_or(to.catalog_lsn, |at| at.lsn).max(1) as i64;
    for id in
        [id::LSN, id::QUORUM_ACKED_LSN, id::GLOBAL_COMMITTED_LSN, id::LOCAL_LSN, id::QUORUM_ACKED_LOCAL_LSN]
    {
        tokens.long_long(id, lsn);
    }
    if let Some(item_lsn) = answer.at.and_then(|at| at.item_lsn) {
        tokens.long_long(id::ITEM_LSN, item_lsn as i64);
        tokens.long_long(id::ITEM_LOCAL_LSN, item_lsn as i64);
    }
    tokens.ulong(id::CURRENT_WRITE_QUORUM, WRITE_QUORUM);
    tokens.ulong(id::CURRENT_REPLICA_SET_SIZE, REPLICAS);
    tokens.ulong(id::NUMBER_OF_READ_REGIONS, 0);
    tokens.double(id::REQUEST_CHARGE, (answer.charge_ru * 100.0).round() / 100.0);
    let range = answer.at.and_then(|at| at.range).or_else(|| addresses::range_of(to.returned.replica_path));
    match range {
        Some(range) => tokens.string(id::PARTITION_KEY_RANGE_ID, &range.to_string()),
        None => tokens.string(id::PARTITION_KEY_RANGE_ID, MASTER_RANGE),
    }
    // The catalog has nothing to tell a session.
    match answer.at.filter(|at| answer.tells_session && !at.of_catalog) {
        Some(at) => {
            let mut state = Vec::with_capacity(24);
            session::push_state(&mut state, at.seen(), to.generation.has_vector_sessions());
            tokens.string(id::SESSION_TOKEN, std::str::from_utf8(&state).unwrap_or_default());
        }
        None => {
            // Of several, the first: there is one, of the range that was asked.
            let own = to.returned.session.and_then(|token| token.split(',').next()?.split_once(':'));
            tokens.string(id::SESSION_TOKEN, own.map_or("-1#0", |(_, state)| state));
        }
    }
    if answer.substatus != 0 {
        tokens.ulong(id::SUB_STATUS, answer.substatus);
    }
    if let Some(owner) = &answer.owner {
        tokens.string(id::OWNER_FULL_NAME, &owner.alt_path);
        tokens.string(id::OWNER_ID, &owner.rid);
    }
    for (name, value) in &answer.headers {
        if let Some((_, id)) = TEXTS.iter().find(|(text, _)| text == name) {
            tokens.string(*id, value.to_str().unwrap_or_default());
        } else if let Some((_, id)) = NUMBERS.iter().find(|(number, _)| number == name) {
            let number = value.to_str().ok().and_then(|digits| digits.parse().ok());
            tokens.ulong(*id, number.unwrap_or(u32::MAX));
        }
    }
    let took_ms = to.started.elapsed().as_secs_f64() * 1000.0;
    tokens.double(id::BACKEND_REQUEST_DURATION_MILLISECONDS, took_ms);
    frame::close(&mut out, begin);
    if !answer.body.is_empty() {
        out.extend_from_slice(&(answer.body.len() as u32).to_le_bytes());
    }
    Response { frame: out, payload: answer.body }
}
