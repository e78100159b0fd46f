//! Doors to decoders for `orrery-fuzzing`, which tries them with bytes that nobody would send. Not for anybody else.

use orrery_engine::{FeedContinuation, QueryPosition};

use crate::rid::{ContainerRid, Rid};
use crate::{binary_json, continuation, scope, session};

/// A body in the binary form as text.
pub fn binary_json(body: &[u8]) -> Option<Vec<u8>> {
    binary_json::to_text(body).ok()
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
