//! Messages as bytes, both ways: what is read, what is refused.

use orrery_api::Claim;

use super::*;

fn framed(opcode: i32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in [(HEADER_BYTES + body.len()) as i32, 7, 0, opcode] {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes.extend_from_slice(body);
    bytes
}

fn taken(bytes: &[u8]) -> Result<Request, Unreadable> {
    let header = Header::read(bytes)?.expect("a whole header");
    read(header, &bytes[HEADER_BYTES..])
}

/// `{ping: 1, $db: "admin"}` and `{a: 1}`, written by hand.
const PING: &[u8] = b"\x1e\0\0\0\x10ping\0\x01\0\0\0\x02$db\0\x06\0\0\0admin\0\0";
const ONE: &[u8] = b"\x0c\0\0\0\x10a\0\x01\0\0\0\0";

#[test]
fn the_first_bytes_tell_the_protocol_from_others() {
    let whole = framed(OP_MSG, &[0; 21]);
    assert_eq!(claim(&whole), Claim::Mine);
    assert_eq!(claim(&framed(OP_QUERY, &[0; 40])), Claim::Mine);
    for part in 1..HEADER_BYTES {
        assert_eq!(claim(&whole[..part]), Claim::Undecided, "{part}");
    }
    for other in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n", &[0xFF; 20], &framed(9, &[])] {
        assert_eq!(claim(other), Claim::NotMine, "{other:?}");
    }
}

#[test]
fn both_kinds_of_sections_are_one_command() {
    let mut body = vec![0, 0, 0, 0];
    body.push(1);
    body.extend_from_slice(&((4 + 10 + ONE.len() * 2) as i32).to_le_bytes());
    body.extend_from_slice(b"documents\0");
    body.extend_from_slice(ONE);
    body.extend_from_slice(ONE);
    body.push(0);
    body.extend_from_slice(PING);
    let request = taken(&framed(OP_MSG, &body)).expect("a command");
    assert_eq!(
        request.body.get("documents").and_then(|documents| documents.as_array()).map(<[_]>::len),
        Some(2)
    );
    assert_eq!(request.body.get("$db").and_then(|name| name.as_str()), Some("admin"));
}

#[test]
fn packed_messages_are_unpacked_and_checked() {
    let mut body = vec![0, 0, 0, 0, 0];
    body.extend_from_slice(PING);
    for compressor in Compressor::ALL {
        let mut packed = compression::pack(compressor, OP_MSG, &body);
        let request = taken(&framed(OP_COMPRESSED, &packed.split_off(HEADER_BYTES))).expect("a command");
        assert_eq!(request.compressor, Some(compressor));
    }
    let mut lies = compression::pack(Compressor::Zlib, OP_MSG, &body).split_off(HEADER_BYTES);
    lies[4] = lies[4].wrapping_sub(1);
    assert!(matches!(taken(&framed(OP_COMPRESSED, &lies)), Err(Unreadable::Broken(_))));
}

#[test]
fn a_checksum_counts() {
    let mut body = vec![1, 0, 0, 0, 0];
    body.extend_from_slice(PING);
    let mut whole = framed(OP_MSG, &[&body[..], &[0; 4]].concat());
    let end = whole.len() - 4;
    let sum = crc32c::crc32c(&whole[..end]);
    whole[end..].copy_from_slice(&sum.to_le_bytes());
    assert!(taken(&whole).is_ok());
    whole[end] ^= 1;
    assert!(matches!(taken(&whole), Err(Unreadable::Refused { .. })));
}

#[test]
fn what_is_cut_off_is_an_error_and_no_panic() {
    let mut body = vec![0, 0, 0, 0, 0];
    body.extend_from_slice(PING);
    for end in 0..body.len() {
        let _ = taken(&framed(OP_MSG, &body[..end]));
        let _ = taken(&framed(OP_QUERY, &body[..end]));
        let _ = taken(&framed(OP_COMPRESSED, &body[..end]));
    }
}
