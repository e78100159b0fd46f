//! Doors to decoders for `orrery-fuzzing`, which tries them with bytes that nobody would send. Not for anybody else.

use orrery_engine::{FeedContinuation, QueryPosition};

use crate::rid::{ContainerRid, Rid};
use crate::{binary_json, continuation, scope, session};

/// A body in the binary form as text.
pub fn binary_json(body: &[u8]) -> Option<Vec<u8>> {
    binary_json::to_text(body).ok()
}

/// JSON text in the binary form.
pub fn to_binary_json(text: &[u8]) -> Option<Vec<u8>> {
    binary_json::from_text(text, binary_json::Features { uint64: true })
}

/// Bytes as a batch in rows, and as a row of each schema in a stream whose checksums are right.
pub fn rows(bytes: &[u8]) {
    use crate::hybrid_row::{Writer, read, records, schemas};
    let known = [&schemas::SEGMENT, &schemas::RECORD, &schemas::OPERATION, &schemas::RESULT];
    let each = |stream: &[u8]| {
        for row in records(stream, orrery_engine::BATCH_OPERATIONS_MAX).unwrap_or_default() {
            for schema in known {
                let _ = read(schema, row);
            }
        }
    };
    each(bytes);
    for schema in known {
        let mut stream = Writer::with_capacity(bytes.len());
        stream.record(|out| {
            out.push(0x81);
            out.extend_from_slice(&schema.id.to_le_bytes());
            out.extend_from_slice(bytes);
        });
        each(&stream.finish());
    }
}

/// Everything that is read from texts of headers, without a request around it.
pub fn texts(text: &str) {
    let _ = session::parse(text);
    let _ = Rid::parse(text);
    let _ = scope::parse_key(text);
    let _ = continuation::read(text, &ContainerRid::new(1, 1));
    let _ = crate::routes::Path::parse(text);
}

/// Bytes as frames of the direct protocol.
pub fn frames(bytes: &[u8]) {
    crate::rntbd::fuzzing::decode(bytes);
}

/// Positions as the engine reads them.
pub fn positions(bytes: &[u8]) {
    let _ = FeedContinuation::decode(bytes);
    let _ = QueryPosition::decode(bytes);
}
