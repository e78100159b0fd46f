//! Words of texts as index rows: stems in keys, and where they stand in values.
//!
//! A stem is its bytes and `00`, which no word holds. Of one longer than [`STEM_BYTES_MAX`] the beginning is kept,
//! followed by `01` and a hash of the whole in hexadecimal digits: long enough that two are never taken for each
//! other.
//!
//! Values are varints: the length of the text, then the places of the stem as gaps, the first counted from 0.

use orrery_model::murmur3_x64_128;

/// Longest stem that is written out.
pub const STEM_BYTES_MAX: usize = 64;

const END: u8 = 0;
const HASHED: u8 = 1;

/// Appends a stem.
pub fn encode_stem(out: &mut Vec<u8>, stem: &str) {
    if stem.len() <= STEM_BYTES_MAX {
        out.extend_from_slice(stem.as_bytes());
    } else {
        out.extend_from_slice(&stem.as_bytes()[..STEM_BYTES_MAX]);
        let (high, low) = murmur3_x64_128(stem.as_bytes());
        out.push(HASHED);
        out.extend_from_slice(format!("{high:016x}{low:016x}").as_bytes());
    }
    out.push(END);
}

/// Appends where a stem stands in a text of so many words. The places are in order.
pub fn encode_places(out: &mut Vec<u8>, length: u32, places: &[u32]) {
    push_varint(out, length);
    let mut before = 0;
    for place in places {
        push_varint(out, place - before);
        before = *place;
    }
}

/// The length of the text and the places; `None` for what was not written by [`encode_places`].
pub fn decode_places(bytes: &[u8]) -> Option<(u32, Vec<u32>)> {
    let (length, mut rest) = take_varint(bytes)?;
    let mut places = Vec::with_capacity(rest.len());
    let mut place = 0u32;
    while !rest.is_empty() {
        let (gap, behind) = take_varint(rest)?;
        place = place.checked_add(gap)?;
        places.push(place);
        rest = behind;
    }
    Some((length, places))
}

/// The length of the text, and how many places there are.
pub fn count_places(bytes: &[u8]) -> Option<(u32, u32)> {
    let (length, rest) = take_varint(bytes)?;
    // Each place ends with the one byte that says so.
    Some((length, rest.iter().filter(|byte| **byte < 0x80).count() as u32))
}

fn push_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((u32::try_from(value).ok()?, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stem_is_no_beginning_of_another() {
        let long = "x".repeat(STEM_BYTES_MAX + 1);
        let longer = "x".repeat(STEM_BYTES_MAX + 2);
        let mut all: Vec<Vec<u8>> = Vec::new();
        for stem in ["a", "ab", "b", &long[1..], &long, &longer] {
            let mut out = Vec::new();
            encode_stem(&mut out, stem);
            assert!(out.len() <= STEM_BYTES_MAX + 34);
            all.push(out);
        }
        for (at, one) in all.iter().enumerate() {
            assert!(all.iter().enumerate().all(|(other, two)| at == other || !two.starts_with(one)));
        }
    }

    proptest! {
        #[test]
        fn places_read_back_as_they_were_written(length: u32, gaps in prop::collection::vec(0u32..1_000_000, 0..50)) {
            let places: Vec<u32> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
            let mut out = Vec::new();
            encode_places(&mut out, length, &places);
            prop_assert_eq!(count_places(&out), Some((length, places.len() as u32)));
            prop_assert_eq!(decode_places(&out), Some((length, places)));
        }

        #[test]
        fn damaged_bytes_are_no_panic(bytes: Vec<u8>) {
            let _ = (decode_places(&bytes), count_places(&bytes));
        }
    }
}
