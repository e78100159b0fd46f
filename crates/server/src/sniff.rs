//! What a connection speaks, told by its first bytes.
//!
//! ```text
//! 16 03 …                      TLS; what is inside is looked at after the handshake
//! claimed by a stream api      its own: MongoDB's wire protocol, RNTBD, WebSocket
//! PRI * HTTP/2.0…              HTTP/2
//! anything else                HTTP/1.1, which refuses what is none
//! ```

use std::sync::Arc;

use orrery_api::{Claim, StreamApi};

/// What every HTTP/2 client sends first.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A TLS handshake record of any version; no HTTP method starts like this. A message of another protocol may begin
/// with a length that has the first byte.
const TLS_HANDSHAKE: &[u8] = &[0x16, 0x03];

pub enum Spoken {
    Tls,
    Http1,
    Http2,
    Stream(Arc<dyn StreamApi>),
}

/// What the first bytes are; `None`: it depends on what follows. `more`: something can follow.
pub fn recognise(first: &[u8], more: bool, streams: &[Arc<dyn StreamApi>]) -> Option<Spoken> {
    if first.starts_with(TLS_HANDSHAKE) {
        return Some(Spoken::Tls);
    }
    let mut undecided = TLS_HANDSHAKE.starts_with(first);
    for api in streams {
        match api.claims(first) {
            Claim::Mine => return Some(Spoken::Stream(api.clone())),
            Claim::NotMine => {}
            Claim::Undecided => undecided = true,
        }
    }
    match first {
        _ if first.starts_with(HTTP2_PREFACE) => Some(Spoken::Http2),
        // So far it could become the preface, or (`P…`) a method.
        _ if (undecided || HTTP2_PREFACE.starts_with(first)) && more => None,
        _ => Some(Spoken::Http1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_api::{Attendant, ByteStream, Connection, StreamFuture};

    /// Claims what begins with a length of 16 to 21, as messages of some protocol might.
    struct Lengths;

    impl StreamApi for Lengths {
        fn name(&self) -> &'static str {
            "lengths"
        }

        fn claims(&self, first: &[u8]) -> Claim {
            match first {
                [0x10..=0x16, 0, ..] => Claim::Mine,
                [0x10..=0x16] => Claim::Undecided,
                _ => Claim::NotMine,
            }
        }

        fn serve<'a>(
            &'a self,
            _: Box<dyn ByteStream>,
            _: Connection,
            _: Arc<dyn Attendant>,
        ) -> StreamFuture<'a> {
            Box::pin(async { Ok(()) })
        }
    }

    fn name(spoken: Option<Spoken>) -> &'static str {
        match spoken {
            None => "?",
            Some(Spoken::Tls) => "tls",
            Some(Spoken::Http1) => "http1",
            Some(Spoken::Http2) => "http2",
            Some(Spoken::Stream(api)) => api.name(),
        }
    }

    #[test]
    fn the_first_bytes_tell_the_protocols_apart() {
        let streams: [Arc<dyn StreamApi>; 1] = [Arc::new(Lengths)];
        for (bytes, alone, shared) in [
            (&b"\x16\x03\x01"[..], "tls", "tls"),
            (b"\x16", "?", "?"),
            (b"\x16\x00", "http1", "lengths"),
            (b"\x10", "http1", "?"),
            (b"\x10\x00\x00\x00", "http1", "lengths"),
            (b"G", "http1", "http1"),
            (b"P", "?", "?"),
            (b"PR", "?", "?"),
            (b"PO", "http1", "http1"),
            (b"PATCH / HTTP/1.1", "http1", "http1"),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", "?", "?"),
            (HTTP2_PREFACE, "http2", "http2"),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0", "http2", "http2"),
            (b"PRI * HTTP/1.1", "http1", "http1"),
            (b"\0\xff", "http1", "http1"),
        ] {
            assert_eq!(name(recognise(bytes, true, &[])), alone, "{bytes:?}");
            assert_eq!(name(recognise(bytes, true, &streams)), shared, "{bytes:?}");
        }
        assert_eq!(name(recognise(b"\x10", false, &streams)), "http1", "the last bytes decide");
    }
}
