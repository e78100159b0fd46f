//! What is done with bytes that nobody would send.

use crate::wire;

/// Bytes as messages of a connection, one after the other.
pub fn messages(mut bytes: &[u8]) {
    while let Ok(Some(header)) = wire::Header::read(bytes) {
        let Some(message) = bytes.get(wire::HEADER_BYTES..header.length) else { return };
        if let Ok(request) = wire::read(header, message) {
            drop(request);
        }
        bytes = &bytes[header.length..];
    }
}
