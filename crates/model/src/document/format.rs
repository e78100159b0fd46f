//! Layout of a stored document, format 1. Everything here is frozen: stored bytes outlive the program.
//!
//! ```text
//! document = format byte (1), flags (0), value
//! value    = tag, body; little-endian, unaligned, without pointers, so a value can be copied anywhere
//!
//! tag        body
//! 01 02 03   null, false, true
//! 04..07     integer of 1, 2, 4, 8 bytes           08  unsigned integer of 8 bytes above i64::MAX
//! 09  0A     double of 8 bytes, double that is exactly the 4-byte float stored
//! 0B  0C     string without characters to escape: u16 or u32 length, bytes
//! 0D  0E     string with characters to escape: u16 or u32 length, bytes (stored unescaped)
//! 10  11     object with u16 or u32 sizes: size, count, hash (1 byte) x count, slot x count, entries
//! 12  13     array with u16 or u32 sizes: size, count, slot x count, values
//! 14  15     array of doubles, of floats: u32 count, elements
//! 20 21 22   integer of 1, 2, 4 bytes that is 64 bits wide all the same (see below)
//! 23         object id: 12 bytes                   24  date: i64, milliseconds since 1970
//! 25         timestamp: u32 increment, u32 seconds 26  decimal of 128 bits: 16 bytes, as IEEE 754 and BSON write it
//! 27         binary: varint length, subtype, bytes 29  code: varint length, text
//! 28         regular expression: varint length, pattern, varint length, options
//! 2A  2B     min key, max key
//! 2C..3F     free
//! 40..7F     the integers 0 to 63
//! 80..FF     string of 0 to 127 bytes without characters to escape: bytes
//!
//! entry    = varint(key length x 2 + 1 if the key needs escaping), key bytes, value
//! ```
//!
//! `size` is the length of the body, and a slot is an offset from the start of the body, so sub-values move
//! freely. The table stands before the entries because a lookup then touches one run of bytes. Slots
//! rise strictly; a reader gives a child only the bytes up to the next slot, which keeps the work on damaged
//! bytes linear. `{"a":1}` is `10 | 0A 00 | 01 00 | hash("a") | 07 00 | 02 61 41`.
//!
//! Tags 20 to 2B are written by other APIs than SQL. One that keeps 32-bit integers, 64-bit integers and doubles apart
//! reads 04 to 06 and 40 to 7F as 32 bits wide, 07 and 20 to 22 as 64, and 09, 0A, 14 and 15 as doubles; everybody else
//! sees one number.
//!
//! Flag bit 0 is kept for "the JSON text follows the value". Readers refuse flags and tags they do not know.

/// First byte of every stored document.
pub(crate) const FORMAT: u8 = 1;
/// Second byte; no flag is in use yet.
pub(crate) const FLAGS: u8 = 0;

/// Deepest nesting that the parser and patches accept.
pub const DEPTH_MAX: usize = 128;
/// Deepest nesting that recursive readers follow. Projections may wrap a stored item in a few levels of their own,
/// so readers see further than the parser; below this, damaged bytes read as null.
pub const READ_DEPTH_MAX: usize = 2 * DEPTH_MAX;

pub(crate) const NULL: u8 = 0x01;
pub(crate) const FALSE: u8 = 0x02;
pub(crate) const TRUE: u8 = 0x03;
pub(crate) const INT8: u8 = 0x04;
pub(crate) const INT16: u8 = 0x05;
pub(crate) const INT32: u8 = 0x06;
pub(crate) const INT64: u8 = 0x07;
pub(crate) const UINT64: u8 = 0x08;
pub(crate) const FLOAT64: u8 = 0x09;
pub(crate) const FLOAT32: u8 = 0x0A;
pub(crate) const STRING16: u8 = 0x0B;
pub(crate) const STRING32: u8 = 0x0C;
pub(crate) const ESCAPED16: u8 = 0x0D;
pub(crate) const ESCAPED32: u8 = 0x0E;
pub(crate) const OBJECT16: u8 = 0x10;
pub(crate) const OBJECT32: u8 = 0x11;
pub(crate) const ARRAY16: u8 = 0x12;
pub(crate) const ARRAY32: u8 = 0x13;
pub(crate) const FLOATS64: u8 = 0x14;
pub(crate) const FLOATS32: u8 = 0x15;
pub(crate) const LONG8: u8 = 0x20;
pub(crate) const LONG16: u8 = 0x21;
pub(crate) const LONG32: u8 = 0x22;
pub(crate) const OBJECT_ID: u8 = 0x23;
pub(crate) const DATE: u8 = 0x24;
pub(crate) const TIMESTAMP: u8 = 0x25;
pub(crate) const DECIMAL: u8 = 0x26;
pub(crate) const BINARY: u8 = 0x27;
pub(crate) const REGEX: u8 = 0x28;
pub(crate) const CODE: u8 = 0x29;
pub(crate) const MIN_KEY: u8 = 0x2A;
pub(crate) const MAX_KEY: u8 = 0x2B;
pub(crate) const SMALL_INT: u8 = 0x40;
pub(crate) const SHORT_STRING: u8 = 0x80;

/// Largest integer that fits the tag, and longest string whose length does.
pub(crate) const SMALL_INT_MAX: i64 = 63;
pub(crate) const SHORT_STRING_MAX: usize = 127;

/// One-byte hash of a property name. It mixes the length with up to eight bytes from each end: enough to tell the
/// names of one object apart, cheap enough to compute per lookup. Part of the format.
#[inline]
pub fn key_hash(key: &[u8]) -> u8 {
    let n = key.len();
    let (first, last) = if n >= 8 {
        (word64(key, 0), word64(key, n - 8))
    } else if n >= 4 {
        (u64::from(word32(key, 0)), u64::from(word32(key, n - 4)))
    } else if n > 0 {
        (u64::from(key[0]) | u64::from(key[n / 2]) << 8 | u64::from(key[n - 1]) << 16, 0)
    } else {
        (0, 0)
    };
    let mixed = first ^ last.rotate_left(29) ^ (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    // The top byte of a product depends on every byte of its factor.
    (mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 56) as u8
}

#[inline]
fn word64(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

#[inline]
fn word32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

/// Reads a varint; `None` when the bytes end or it exceeds 32 bits.
#[inline]
pub(crate) fn read_varint(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        return Some((u32::from(first), rest));
    }
    let mut value = u64::from(first & 0x7F);
    let mut rest = rest;
    for shift in [7, 14, 21, 28] {
        let (&byte, tail) = rest.split_first()?;
        rest = tail;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return u32::try_from(value).ok().map(|value| (value, rest));
        }
    }
    None
}

#[inline]
pub(crate) fn write_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_hash_is_frozen() {
        let cases: [(&str, u8); 8] = [
            ("", 0x00),
            ("a", 0xBE),
            ("id", 0x65),
            ("pk", 0x70),
            ("name", 0x3B),
            ("address", 0x3A),
            ("customerId", 0x7B),
            ("日本語のプロパティ", 0x91),
        ];
        for (key, hash) in cases {
            assert_eq!(key_hash(key.as_bytes()), hash, "{key}");
        }
    }

    #[test]
    fn ordinary_names_rarely_collide() {
        let names: Vec<String> = (0..64).map(|i| format!("property{i:03}")).collect();
        let mut seen = [0u8; 256];
        names.iter().for_each(|name| seen[usize::from(key_hash(name.as_bytes()))] += 1);
        assert!(seen.iter().all(|&n| n <= 5), "names of one object share too few hashes");
    }

    #[test]
    fn varints_of_every_width_come_back() {
        for value in [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, u32::MAX] {
            let mut out = Vec::new();
            write_varint(&mut out, value);
            assert_eq!(read_varint(&out), Some((value, &[][..])));
            assert_eq!(read_varint(&out[..out.len() - 1]), None);
        }
        assert_eq!(read_varint(&[0xFF, 0xFF, 0xFF, 0xFF, 0x7F]), None);
        assert_eq!(read_varint(&[0xFF; 9]), None);
    }
}
