//! Effective partition keys: where a partition key lies in a container's hash space.
//!
//! On the wire they are upper-case hexadecimal text between `""` and `"FF"`; inside they are the bytes of that
//! text, whose byte order is the text's order. Ranges are always `[min, max)`.

use smallvec::SmallVec;
use std::fmt;

/// Effective partition key as bytes; `Ord` is byte order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epk(pub SmallVec<[u8; 16]>);

/// The text was not hexadecimal digits in pairs, or was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an effective partition key is an even number of hexadecimal digits, at most {max}", max = EPK_DIGITS_MAX)]
pub struct HexError;

/// Longest text accepted: three hashed levels are 96 digits, a version 1 key at most 9 + 103 bytes per component.
pub const EPK_DIGITS_MAX: usize = 2048;

impl Epk {
    /// The start of the hash space, which is also the key of `[]`.
    pub const MIN: Epk = Epk(SmallVec::new_const());

    /// The end of the hash space, exclusive.
    pub fn max() -> Epk {
        Epk(SmallVec::from_slice(&[0xFF]))
    }

    /// Reads hexadecimal text in either case.
    pub fn from_hex(text: &str) -> Result<Epk, HexError> {
        if text.len() > EPK_DIGITS_MAX {
            return Err(HexError);
        }
        let digit = |byte: u8| (byte as char).to_digit(16).ok_or(HexError);
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if !rest.is_empty() {
            return Err(HexError);
        }
        let mut bytes = SmallVec::with_capacity(pairs.len());
        for [high, low] in pairs {
            bytes.push((digit(*high)? << 4 | digit(*low)?) as u8);
        }
        Ok(Epk(bytes))
    }

    /// Upper-case hexadecimal text.
    pub fn to_hex(&self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        let mut text = String::with_capacity(self.0.len() * 2);
        for byte in &self.0 {
            text.push(DIGITS[usize::from(byte >> 4)] as char);
            text.push(DIGITS[usize::from(byte & 15)] as char);
        }
        text
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Epk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_text_comes_back_in_upper_case() {
        assert_eq!(Epk::from_hex("05c1").unwrap().to_hex(), "05C1");
        assert_eq!(Epk::from_hex("").unwrap(), Epk::MIN);
        assert_eq!(Epk::max().to_hex(), "FF");
        assert_eq!(Epk::from_hex("0"), Err(HexError));
        assert_eq!(Epk::from_hex("0g"), Err(HexError));
        assert_eq!(Epk::from_hex("é0"), Err(HexError));
        assert_eq!(Epk::from_hex(&"0".repeat(EPK_DIGITS_MAX + 2)), Err(HexError));
    }

    #[test]
    fn byte_order_is_the_order_of_the_text() {
        let keys = ["", "05C1", "05C100", "0E71", "3A53", "FF"];
        assert!(keys.windows(2).all(|w| Epk::from_hex(w[0]).unwrap() < Epk::from_hex(w[1]).unwrap()));
    }
}
