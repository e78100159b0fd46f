//! Looking for special characters eight bytes at a time, in safe code.
//!
//! The usual word trick: a byte of `x` is zero exactly where `x - 0x01.. & !x & 0x80..` has its high bit, up to false
//! hits above the first true one, which the position of the lowest bit never shows.

pub(crate) const ONES: u64 = 0x0101_0101_0101_0101;
pub(crate) const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Position of the first quote, backslash or control character, or the length when there is none.
#[inline]
pub(crate) fn plain_prefix(bytes: &[u8]) -> usize {
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (i, chunk) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * b'"' as u64);
        let backslash = word ^ (ONES * b'\\' as u64);
        let hits = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let hits = hits & HIGHS;
        if hits != 0 {
            return i * 8 + (hits.trailing_zeros() / 8) as usize;
        }
    }
    let done = chunks.len() * 8;
    done + rest.iter().position(|&b| is_special(b)).unwrap_or(rest.len())
}

/// Whether JSON text must escape this byte inside a string.
#[inline]
pub(crate) fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_special_byte_is_found_at_every_place() {
        for length in 0..40 {
            for place in 0..length {
                for byte in 0..=255u8 {
                    let mut text = vec![b'x'; length];
                    text[place] = byte;
                    let expected = if is_special(byte) { place } else { length };
                    assert_eq!(plain_prefix(&text), expected, "byte {byte} at {place} of {length}");
                }
            }
        }
    }
}
