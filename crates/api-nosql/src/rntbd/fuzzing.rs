//! Doors for `orrery-fuzzing`.

use super::frame::{self, FRAME_BYTES_MAX, RequestHead};
use super::handshake;
use super::request::{self, Return};

/// What a connection does with bytes, up to the request that they are.
pub fn decode(bytes: &[u8]) {
    let _ = handshake::is_context_request(bytes);
    let _ = handshake::answer(bytes, "fuzz");
    let Ok(Some(extent)) = frame::extent(bytes, FRAME_BYTES_MAX) else { return };
    assert!(extent.frame <= bytes.len());
    let Some(head) = RequestHead::read(bytes) else { return };
    let mut answer = Return::default();
    let _ = request::read(&head, &bytes[..extent.frame], &mut answer);
}
