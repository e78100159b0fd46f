//! Typed values of frames: `u16 id · u8 type · value`, little-endian, in any order.
//!
//! ```text
//! 4d00 02 04000000            TransportRequestID, ULong, 4
//! 1700 08 0100 31             DocumentName, String, "1"
//! ```
//!
//! A value says its type, so a token of an id that nobody knows can be passed over. Nothing is copied: values are
//! slices of the frame.

/// Which type a value has, by the code on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenType {
    Byte = 0x00,
    UShort = 0x01,
    ULong = 0x02,
    Long = 0x03,
    ULongLong = 0x04,
    LongLong = 0x05,
    Guid = 0x06,
    SmallString = 0x07,
    String = 0x08,
    ULongString = 0x09,
    SmallBytes = 0x0A,
    Bytes = 0x0B,
    ULongBytes = 0x0C,
    Float = 0x0D,
    Double = 0x0E,
    Invalid = 0xFF,
}

impl TokenType {
    pub const ALL: [TokenType; 16] = [
        TokenType::Byte,
        TokenType::UShort,
        TokenType::ULong,
        TokenType::Long,
        TokenType::ULongLong,
        TokenType::LongLong,
        TokenType::Guid,
        TokenType::SmallString,
        TokenType::String,
        TokenType::ULongString,
        TokenType::SmallBytes,
        TokenType::Bytes,
        TokenType::ULongBytes,
        TokenType::Float,
        TokenType::Double,
        TokenType::Invalid,
    ];

    fn of(code: u8) -> Option<TokenType> {
        match code {
            0xFF => Some(TokenType::Invalid),
            _ => Self::ALL.get(usize::from(code)).copied().filter(|kind| *kind as u8 == code),
        }
    }

    fn size(self) -> Size {
        match self {
            TokenType::Invalid => Size::Fixed(0),
            TokenType::Byte => Size::Fixed(1),
            TokenType::UShort => Size::Fixed(2),
            TokenType::ULong | TokenType::Long | TokenType::Float => Size::Fixed(4),
            TokenType::ULongLong | TokenType::LongLong | TokenType::Double => Size::Fixed(8),
            TokenType::Guid => Size::Fixed(16),
            TokenType::SmallString | TokenType::SmallBytes => Size::Counted(1),
            TokenType::String | TokenType::Bytes => Size::Counted(2),
            TokenType::ULongString | TokenType::ULongBytes => Size::Counted(4),
        }
    }
}

enum Size {
    Fixed(usize),
    /// So many bytes say how many follow.
    Counted(usize),
}

/// A value as it lies in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'f> {
    pub kind: TokenType,
    pub bytes: &'f [u8],
}

impl<'f> Value<'f> {
    /// Text of any length.
    pub fn text(self) -> Option<&'f str> {
        match self.kind {
            TokenType::SmallString | TokenType::String | TokenType::ULongString => {
                std::str::from_utf8(self.bytes).ok()
            }
            _ => None,
        }
    }

    /// Bytes of any length.
    pub fn blob(self) -> Option<&'f [u8]> {
        match self.kind {
            TokenType::SmallBytes | TokenType::Bytes | TokenType::ULongBytes => Some(self.bytes),
            _ => None,
        }
    }

    /// A whole number of any width; clients differ in which they take.
    pub fn number(self) -> Option<i64> {
        let number = le(self.bytes);
        match self.kind {
            TokenType::Byte | TokenType::UShort | TokenType::ULong => i64::try_from(number).ok(),
            TokenType::Long => Some(i64::from(number as u32 as i32)),
            TokenType::LongLong => Some(number as i64),
            TokenType::ULongLong => i64::try_from(number).ok(),
            _ => None,
        }
    }
}

fn le(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The rest of a frame is no sequence of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenTokens;

/// Goes through the tokens of a frame.
pub struct Tokens<'f>(&'f [u8]);

impl<'f> Tokens<'f> {
    pub fn new(bytes: &'f [u8]) -> Tokens<'f> {
        Tokens(bytes)
    }

    fn take(&mut self, count: usize) -> Result<&'f [u8], BrokenTokens> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(BrokenTokens)?;
        self.0 = rest;
        Ok(taken)
    }

    fn read(&mut self) -> Result<(u16, Value<'f>), BrokenTokens> {
        let head = self.take(3)?;
        let kind = TokenType::of(head[2]).ok_or(BrokenTokens)?;
        let length = match kind.size() {
            Size::Fixed(length) => length,
            Size::Counted(width) => usize::try_from(le(self.take(width)?)).map_err(|_| BrokenTokens)?,
        };
        Ok((u16::from_le_bytes([head[0], head[1]]), Value { kind, bytes: self.take(length)? }))
    }
}

impl<'f> Iterator for Tokens<'f> {
    type Item = Result<(u16, Value<'f>), BrokenTokens>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.0 = &[];
        }
        Some(read)
    }
}

/// Writes tokens. Text that is longer than its type can say is cut at a character.
pub struct TokenWriter<'o>(pub &'o mut Vec<u8>);

impl TokenWriter<'_> {
    fn head(&mut self, id: u16, kind: TokenType) {
        let [low, high] = id.to_le_bytes();
        self.0.extend_from_slice(&[low, high, kind as u8]);
    }

    pub fn byte(&mut self, id: u16, value: u8) {
        self.head(id, TokenType::Byte);
        self.0.push(value);
    }

    pub fn ulong(&mut self, id: u16, value: u32) {
        self.head(id, TokenType::ULong);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn long_long(&mut self, id: u16, value: i64) {
        self.head(id, TokenType::LongLong);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn double(&mut self, id: u16, value: f64) {
        self.head(id, TokenType::Double);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn small_string(&mut self, id: u16, text: &str) {
        let text = cut(text, usize::from(u8::MAX));
        self.head(id, TokenType::SmallString);
        self.0.push(text.len() as u8);
        self.0.extend_from_slice(text.as_bytes());
    }

    pub fn string(&mut self, id: u16, text: &str) {
        let text = cut(text, usize::from(u16::MAX));
        self.head(id, TokenType::String);
        self.0.extend_from_slice(&(text.len() as u16).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }
}

fn cut(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    let end = (0..=bytes_max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    fn all(bytes: &[u8]) -> Result<Vec<(u16, Value<'_>)>, BrokenTokens> {
        Tokens::new(bytes).collect()
    }

    #[test]
    fn every_type_has_its_size() {
        let bytes = hex("0100 00 07  0200 01 0102  0300 02 01000000  0400 03 ffffffff  0500 04 0200000000000000
             0600 05 fdffffffffffffff  0700 06 00112233445566778899aabbccddeeff  0800 07 02 6162  0900 08 0300 616263
             0a00 09 01000000 7a  0b00 0a 01 ff  0c00 0b 0200 0102  0d00 0c 00000000  0e00 0d 00000000
             0f00 0e 0000000000000000  1000 ff");
        let tokens = all(&bytes).unwrap();
        assert_eq!(tokens.len(), 16);
        let numbers: Vec<Option<i64>> = tokens[..6].iter().map(|(_, value)| value.number()).collect();
        assert_eq!(numbers, [Some(7), Some(0x0201), Some(1), Some(-1), Some(2), Some(-3)]);
        let texts: Vec<Option<&str>> = tokens[7..10].iter().map(|(_, value)| value.text()).collect();
        assert_eq!(texts, [Some("ab"), Some("abc"), Some("z")]);
        let blobs: Vec<Option<&[u8]>> = tokens[10..13].iter().map(|(_, value)| value.blob()).collect();
        assert_eq!(blobs, [Some(&[0xff][..]), Some(&[1, 2]), Some(&[])]);
        assert!(tokens.iter().enumerate().all(|(n, (id, _))| usize::from(*id) == n + 1));
    }

    #[test]
    fn what_ends_early_or_has_no_type_is_broken() {
        for text in
            ["00", "0000", "0000 02 0000", "0000 08 0500 61", "0000 0f", "0000 09 ffffffff", "0000 fe"]
        {
            assert_eq!(all(&hex(text)), Err(BrokenTokens), "{text}");
        }
        assert_eq!(all(&[]), Ok(vec![]));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut out = Vec::new();
        let mut writer = TokenWriter(&mut out);
        writer.byte(1, 2);
        writer.ulong(3, u32::MAX);
        writer.long_long(4, -5);
        writer.double(6, 1.5);
        writer.small_string(7, "é");
        writer.string(8, &"é".repeat(40_000));
        let tokens = all(&out).unwrap();
        assert_eq!(tokens[1].1.number(), Some(i64::from(u32::MAX)));
        assert_eq!(tokens[2].1.number(), Some(-5));
        assert_eq!(tokens[3].1.bytes, 1.5f64.to_le_bytes());
        assert_eq!(tokens[4].1.text(), Some("é"));
        assert_eq!(tokens[5].1.text().map(str::len), Some(65_534), "cut between two characters");
    }
}
