//! Frames written by hand, byte for byte, and every token of a request once.

use super::frame::{self, FRAME_BYTES_MAX, HEAD_BYTES, RequestHead};
use super::request::{self, FrameRequest, Return};
use super::response::{self, Recipient};
use super::token::{TokenType, Tokens};
use super::tokens::{Meaning, request as id};
use super::{handshake, tokens};
use crate::actions::Action;
use crate::errors::Result;
use crate::generation::ClientGeneration;
use crate::headers::{self, Answer, At, PARTITION_KEY, SESSION_TOKEN, ServiceHeaders};
use http::{HeaderValue, StatusCode};
use std::time::Instant;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

const ACTIVITY: &str = "68f0bde3 d5d8 0c40 b615 c7a5581893d8";

fn decoded<'f>(frame: &'f [u8], answer: &mut Return<'f>) -> Result<FrameRequest<'f>> {
    request::read(&RequestHead::read(frame).unwrap(), frame, answer)
}

#[test]
fn the_handshake_byte_for_byte() {
    let hello = hex(&format!(
        "35000000 0000 0000 {ACTIVITY}  0000 02 01000000  0100 07 0a 323032302d30372d3135  0200 07 04 6a617661"
    ));
    let answered = handshake::answer(&hello, "1.2").unwrap();
    let wanted = hex(&format!(
        "3e000000 c8000000 {ACTIVITY}  0000 02 01000000  0100 07 0a 323032302d30372d3135
         0200 07 06 6f7272657279  0300 07 03 312e32"
    ));
    assert_eq!((answered.answer, answered.refused), (wanted, false));
    let other = hex(&format!("1f000000 0000 0000 {ACTIVITY} 0000 02 02000000"));
    let refused = handshake::answer(&other, "1.2").unwrap();
    assert!(refused.refused && refused.answer.ends_with(b"}"), "a version that nobody speaks");
}

#[test]
fn a_read_byte_for_byte() {
    let bytes = hex(&format!(
        "7c000000 0300 0300 {ACTIVITY}
         0000 0b 0800 3724385f80000001
         0200 00 00
         0500 08 0600 303a2d312331
         0800 08 0300 226522
         1300 08 0e00 2f706172746974696f6e732f372f
         1500 08 0300 6f6e65  1600 08 0100 63  1700 08 0300 612562
         2b00 08 0500 5b2261225d
         7777 07 02 0102
         4d00 02 04000000"
    ));
    let extent = frame::extent(&bytes, FRAME_BYTES_MAX).unwrap().unwrap();
    assert_eq!((extent.frame, extent.payload), (bytes.len(), None));
    let mut answer = Return::default();
    let read = decoded(&bytes, &mut answer).unwrap();
    assert_eq!(read.action, Action::ReadItem);
    assert_eq!(read.path.link(), "dbs/one/colls/c/docs/a%b", "names are raw");
    assert_eq!((answer.transport_id, answer.session, read.direct.range), (4, Some("0:-1#1"), Some(7)));
    let field =
        |name: &http::HeaderName| read.fields.iter().find(|(given, _)| given == name).map(|(_, v)| &**v);
    assert_eq!(field(&PARTITION_KEY), Some(&b"[\"a\"]"[..]));
    assert_eq!(field(&http::header::IF_NONE_MATCH), Some(&b"\"e\""[..]));
    assert_eq!(field(&SESSION_TOKEN), Some(&b"0:-1#1"[..]));
}

#[test]
fn an_answer_byte_for_byte() {
    let at = At { item_lsn: Some(2), ..At::range(7, 3) };
    let answer =
        Answer::new(StatusCode::OK, &ServiceHeaders::new("1")).at(at).charge(1.0).body(b"{}".to_vec());
    let mut activity = [0; 16];
    activity.copy_from_slice(&hex(ACTIVITY));
    let returned = Return { transport_id: 4, ..Return::default() };
    let to = Recipient {
        activity,
        returned,
        generation: ClientGeneration::Present,
        catalog_lsn: 9,
        started: Instant::now(),
    };
    let written = response::write(answer, &to);
    let mut wanted = hex(&format!(
        "aa000000 c8000000 {ACTIVITY}
         0000 00 01
         3500 02 04000000
         1300 05 0300000000000000  1a00 05 0300000000000000  2900 05 0300000000000000
         3a00 05 0300000000000000  3b00 05 0300000000000000
         3200 05 0200000000000000  3c00 05 0200000000000000
         1e00 02 03000000  1f00 02 04000000  3000 02 00000000
         1500 0e 000000000000f03f
         2100 08 0100 37
         3e00 08 0400 2d312333
         5100 0e"
    ));
    // How long it took is not for a golden file.
    wanted.extend_from_slice(&written.frame[wanted.len()..wanted.len() + 8]);
    wanted.extend_from_slice(&[2, 0, 0, 0]);
    assert_eq!(written.frame, wanted);
    assert_eq!(&written.payload[..], b"{}");
}

/// A value of every type.
fn sample(kind: TokenType) -> Vec<u8> {
    match kind {
        TokenType::Byte => vec![1],
        TokenType::UShort => vec![1, 0],
        TokenType::ULong | TokenType::Long | TokenType::Float => vec![1, 0, 0, 0],
        TokenType::ULongLong | TokenType::LongLong | TokenType::Double => vec![1, 0, 0, 0, 0, 0, 0, 0],
        TokenType::Guid => vec![7; 16],
        TokenType::SmallString | TokenType::SmallBytes => vec![1, b'1'],
        TokenType::String | TokenType::Bytes => vec![1, 0, b'1'],
        TokenType::ULongString | TokenType::ULongBytes => vec![1, 0, 0, 0, b'1'],
        TokenType::Invalid => Vec::new(),
    }
}

fn with_token(number: u16, kind: TokenType) -> Vec<u8> {
    let mut bytes = hex(&format!("00000000 0300 0300 {ACTIVITY}"));
    for name in [id::DATABASE_NAME, id::COLLECTION_NAME, id::DOCUMENT_NAME] {
        if name != number {
            bytes.extend_from_slice(&name.to_le_bytes());
            bytes.extend_from_slice(&[TokenType::String as u8, 1, 0, b'n']);
        }
    }
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.push(kind as u8);
    bytes.extend(sample(kind));
    frame::close(&mut bytes, 0);
    bytes
}

#[test]
fn every_token_is_taken_in_its_type_and_refused_in_one_that_it_cannot_have() {
    for token in &id::TABLE {
        let bytes = with_token(token.id, token.kind);
        assert!(Tokens::new(&bytes[HEAD_BYTES..]).all(|token| token.is_ok()));
        let read = decoded(&bytes, &mut Return::default());
        assert!(read.is_ok(), "{}: {:?}", token.name, read.err().map(|error| error.message.clone()));
        let unfit = decoded(&with_token(token.id, TokenType::Guid), &mut Return::default()).is_err();
        let matters = !matches!(token.meaning, Meaning::NoEffect(_)) && token.id != id::PAYLOAD_PRESENT;
        assert_eq!(unfit, matters, "{}", token.name);
    }
    assert!(tokens::page().lines().count() > id::TABLE.len());
}

#[test]
fn every_token_of_an_answer_is_written_in_its_type() {
    let at = At { item_lsn: Some(2), ..At::range(7, 3) };
    let mut answer =
        Answer::new(StatusCode::OK, &ServiceHeaders::new("1")).at(at).charge(1.0).body(b"{}".to_vec());
    answer = answer.owner("dbs/d/colls/c".to_owned(), "AAAAAYAAAAI=").etag("\"e\"").count(5);
    answer.substatus = 1007;
    for (name, value) in [
        (headers::CONTINUATION, "c"),
        (headers::RESOURCE_QUOTA, "documentSize=1;"),
        (headers::RESOURCE_USAGE, "documentSize=0;"),
        (headers::SCRIPT_LOG, "log"),
        (headers::QUERY_METRICS, "m=1"),
        (headers::INDEX_UTILIZATION, "u"),
        (headers::QUERY_EXECUTION_INFO, "{}"),
        (headers::RETRY_AFTER_MS, "17"),
        (headers::INDEX_PROGRESS, "100"),
    ] {
        answer = answer.set(name, HeaderValue::from_static(value));
    }
    let to = Recipient {
        activity: [7; 16],
        returned: Return { transport_id: 4, ..Return::default() },
        generation: ClientGeneration::Present,
        catalog_lsn: 9,
        started: Instant::now(),
    };
    let written = response::write(answer, &to).frame;
    let end = written.len() - 4;
    let found: Vec<(u16, u8)> = token_types(&written[HEAD_BYTES..end]);
    for token in &tokens::response::TABLE {
        let kinds: Vec<u8> = found.iter().filter(|(id, _)| *id == token.id).map(|(_, kind)| *kind).collect();
        assert_eq!(kinds, [token.kind as u8], "{}", token.name);
    }
    assert_eq!(found.len(), tokens::response::TABLE.len(), "nothing is written that the table does not know");
}

/// The ids and types of tokens, read from their bytes.
fn token_types(bytes: &[u8]) -> Vec<(u16, u8)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let (id, kind) = (u16::from_le_bytes([bytes[at], bytes[at + 1]]), bytes[at + 2]);
        found.push((id, kind));
        at += 3 + match kind {
            0 => 1,
            2 => 4,
            5 | 14 => 8,
            7 => 1 + usize::from(bytes[at + 3]),
            8 => 2 + usize::from(u16::from_le_bytes([bytes[at + 3], bytes[at + 4]])),
            other => panic!("no answer has a token of type {other}"),
        };
    }
    found
}

#[test]
fn what_a_frame_cannot_be_is_refused_with_the_number_of_its_request() {
    for (resource_type, operation, status) in
        [(3u16, 0x42u16, 405), (0x77, 3, 405), (3, 3, 400), (1, 0x13, 405)]
    {
        let mut bytes = hex(&format!("00000000 0000 0000 {ACTIVITY} 4d00 02 63000000 1500 08 0100 64"));
        bytes[4..6].copy_from_slice(&resource_type.to_le_bytes());
        bytes[6..8].copy_from_slice(&operation.to_le_bytes());
        let mut answer = Return::default();
        let error = decoded(&bytes, &mut answer).err().unwrap();
        assert_eq!((error.status.as_u16(), answer.transport_id), (status, 99), "{resource_type} {operation}");
    }
    let broken = hex(&format!("00000000 0300 0300 {ACTIVITY} 4d00 02 63000000 1500 08 ff00 64"));
    let mut answer = Return::default();
    assert_eq!(decoded(&broken, &mut answer).err().unwrap().status.as_u16(), 400);
    assert_eq!(answer.transport_id, 99);
}
