//! The first frame of a connection: the client says which version it speaks, the server who it is.
//!
//! Nobody is known by it; every request brings its own authorization. A version that this server does not speak is
//! refused with a status and, after the tokens, a JSON object that says so.

use super::frame::{self, HEAD_BYTES, RequestHead};
use super::token::{TokenWriter, Tokens};
use super::tokens::{context_request, context_response as id};
use crate::generation::ClientGeneration;

/// The one version of the protocol that there is.
const PROTOCOL_VERSION: u32 = 1;
const SERVER_AGENT: &str = "orrery";
const JAVA_SDK: &str = "azsdk-java-cosmos/";

/// What the client said.
#[derive(Debug, PartialEq, Eq)]
pub struct Hello {
    pub generation: ClientGeneration,
    pub answer: Vec<u8>,
    /// The connection ends after the answer.
    pub refused: bool,
    /// Two answers must not come to it at once; see `output`.
    pub loses_answers: bool,
}

/// Whether the first bytes of a connection can be those of a context request: a length, and resource type and
/// operation 0. `None`: it depends on what follows.
pub fn is_context_request(first: &[u8]) -> Option<bool> {
    let zeros = first.iter().enumerate().skip(2).take(6).all(|(_, byte)| *byte == 0);
    if !zeros {
        return Some(false);
    }
    let length = u16::from_le_bytes([*first.first()?, *first.get(1)?]);
    if !(HEAD_BYTES..=frame::CONTEXT_BYTES_MAX).contains(&usize::from(length)) {
        return Some(false);
    }
    (first.len() >= 8).then_some(true)
}

/// Answers a context request. `None`: the frame is none.
pub fn answer(frame: &[u8], server_version: &str) -> Option<Hello> {
    let head = RequestHead::read(frame).filter(|head| head.resource_type == 0 && head.operation == 0)?;
    let (mut protocol, mut version, mut agent) = (None, "", "");
    for token in Tokens::new(&frame[HEAD_BYTES..]) {
        match token.ok()? {
            (context_request::PROTOCOL_VERSION, value) => protocol = value.number(),
            (context_request::CLIENT_VERSION, value) => version = value.text()?,
            (context_request::USER_AGENT, value) => agent = value.text()?,
            _ => {}
        }
    }
    let refused = protocol != Some(i64::from(PROTOCOL_VERSION));
    let mut out = Vec::with_capacity(128);
    let begin = frame::open(&mut out, if refused { 400 } else { 200 }, &head.activity);
    let mut tokens = TokenWriter(&mut out);
    tokens.ulong(id::PROTOCOL_VERSION, PROTOCOL_VERSION);
    tokens.small_string(id::CLIENT_VERSION, version);
    tokens.small_string(id::SERVER_AGENT, SERVER_AGENT);
    tokens.small_string(id::SERVER_VERSION, server_version);
    frame::close(&mut out, begin);
    if refused {
        let body = br#"{"code":"BadRequest","message":"This server speaks version 1 of the protocol only."}"#;
        out.extend_from_slice(&(body.len() as u32).to_le_bytes());
        out.extend_from_slice(body);
    }
    let generation = ClientGeneration::of_version(version.as_bytes());
    Some(Hello { generation, answer: out, refused, loses_answers: agent.contains(JAVA_SDK) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_eight_bytes_tell_it_from_everything_else() {
        for (first, want) in [
            (&b"\x6b\0\0\0\0\0\0\0"[..], Some(true)),
            (b"\x6b\0\0\0\0\0\0\0more", Some(true)),
            (b"\x6b\0\0\0\0\0\0", None),
            (b"\x47", None),
            (b"GET / HT", Some(false)),
            (b"\x47\0\0\0\x01\0\0\0", Some(false)),
            (b"\x10\0\0\0\0\0\0\0", Some(false)),
            (b"\xff\xff\0\0\0\0\0\0", Some(false)),
            (b"PRI * HT", Some(false)),
        ] {
            assert_eq!(is_context_request(first), want, "{first:?}");
        }
    }
}
