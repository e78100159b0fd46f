//! Frames of HTTP/2 by hand, because no client library sends what attackers send.
//!
//! Headers are written as literals without the table and without Huffman's code, which every server must read:
//!
//! ```text
//! 00 | 07 ":method" | 03 "GET"          0x00, then two strings with their lengths
//! ```

use anyhow::Result;

use super::attacker::{Attacker, Wire};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// The setting for the window of every new stream.
pub const INITIAL_WINDOW_SIZE: u16 = 4;
pub const HEADER_TABLE_SIZE: u16 = 1;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

pub fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = values
        .iter()
        .flat_map(|(name, value)| [name.to_be_bytes().as_slice(), &value.to_be_bytes()].concat())
        .collect();
    frame(SETTINGS, 0, 0, &payload)
}

/// A block of headers.
pub fn block(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(0);
        for text in [name, value] {
            write_length(&mut block, text.len());
            block.extend(text.as_bytes());
        }
    }
    block
}

/// A length in seven bits, and further bytes of seven bits each when they do not suffice.
fn write_length(block: &mut Vec<u8>, length: usize) {
    if length < 0x7f {
        return block.push(length as u8);
    }
    block.push(0x7f);
    let mut rest = length - 0x7f;
    while rest >= 0x80 {
        block.push(rest as u8 & 0x7f | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}

/// The headers of a signed request.
pub fn signed(
    attacker: &Attacker,
    method: &str,
    path: &str,
    link: &str,
    kind: &str,
    more: &[(&str, &str)],
) -> Vec<u8> {
    let address = attacker.address.to_string();
    let path = format!("/{path}");
    let signed = attacker.signer().signed(method, link, kind);
    let mut headers =
        vec![(":method", method), (":scheme", "http"), (":path", &path), (":authority", &address)];
    headers.extend(signed.iter().map(|(name, value)| (*name, value.as_str())));
    headers.extend(more);
    block(&headers)
}

/// A connection after the preface, with settings of its own.
pub fn connect(attacker: &Attacker, values: &[(u16, u32)]) -> Result<Wire> {
    let mut wire = attacker.connect()?;
    wire.send(&[PREFACE, &settings(values)].concat())?;
    Ok(wire)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_prefix_integers() {
        let check = |length: usize, expect: &[u8]| {
            let mut block = Vec::new();
            write_length(&mut block, length);
            assert_eq!(block, expect, "{length}");
        };
        check(10, &[10]);
        check(126, &[126]);
        check(127, &[0x7f, 0]);
        check(1337, &[0x7f, 0xba, 0x09]);
    }

    #[test]
    fn a_frame_has_nine_bytes_before_its_payload() {
        assert_eq!(frame(PING, 0, 0, &[1; 8]), [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
    }
}
