//! From text to the binary form.
//!
//! The text is one that this server has written for an answer. It becomes a stored document, which is navigated
//! without a tree, and that is written down. An array or object begins with its length, which is known when it ends:
//! room for a short length is left, and what has become longer is moved up by the rest.

use orrery_model::{Kind, Number, ParseOptions, Raw, parse_json};

use super::markers::{
    ARRAY, FALSE, NULL, NUMBER_DOUBLE, NUMBER_I16, NUMBER_I32, NUMBER_I64, NUMBER_U8, NUMBER_U64, OBJECT,
    OF_LENGTH, OF_ONE, PREAMBLE, SHORT_STRING, SHORT_STRING_BYTES_MAX, SMALL_NUMBER_END, STRING, TRUE, WORD,
    WORD_BYTES_MAX, WORDS,
};

/// What a client can read that not every client can.
#[derive(Clone, Copy, Debug, Default)]
pub struct Features {
    /// Whole numbers beyond 63 bits; for others they are doubles, as they are in JavaScript.
    pub uint64: bool,
}

/// The same value in the binary form; `None`: the text is too deep, or none of ours.
pub fn from_text(text: &[u8], features: Features) -> Option<Vec<u8>> {
    let stored = parse_json(text, &ParseOptions::default()).ok()?;
    let root = Raw::document(&stored).ok()?;
    let mut writer = Writer { out: Vec::with_capacity(text.len()), features };
    writer.out.push(PREAMBLE);
    writer.value(root)?;
    Some(writer.out)
}

struct Writer {
    out: Vec<u8>,
    features: Features,
}

impl Writer {
    /// The depth is that of the parser, which has bounded it.
    fn value(&mut self, value: Raw<'_>) -> Option<()> {
        match value.kind() {
            Kind::Null => self.out.push(NULL),
            Kind::Bool => self.out.push(if value.as_bool()? { TRUE } else { FALSE }),
            Kind::Number => self.number(value.as_number()?),
            Kind::String => self.string(value.string_bytes()?),
            Kind::Array => self.nested(ARRAY, value.len(), |writer| {
                value.elements().try_for_each(|element| writer.value(element))
            })?,
            Kind::Object => self.nested(OBJECT, value.len(), |writer| {
                value.members().try_for_each(|(name, value)| {
                    writer.string(name.as_bytes());
                    writer.value(value)
                })
            })?,
            _ => return None,
        }
        Some(())
    }

    fn nested(
        &mut self,
        marker: u8,
        count: usize,
        entries: impl FnOnce(&mut Writer) -> Option<()>,
    ) -> Option<()> {
        match count {
            0 => self.out.push(marker),
            1 => {
                self.out.push(marker + OF_ONE);
                entries(self)?;
            }
            _ => {
                let begin = self.out.len();
                self.out.extend_from_slice(&[marker + OF_LENGTH, 0]);
                entries(self)?;
                self.close(begin)?;
            }
        }
        Some(())
    }

    /// Writes the length of what began there.
    fn close(&mut self, begin: usize) -> Option<()> {
        let length = self.out.len() - begin - 2;
        if let Ok(length) = u8::try_from(length) {
            self.out[begin + 1] = length;
        } else if let Ok(length) = u16::try_from(length) {
            self.out[begin] += 1;
            self.out.splice(begin + 1..begin + 2, length.to_le_bytes());
        } else {
            self.out[begin] += 2;
            self.out.splice(begin + 1..begin + 2, u32::try_from(length).ok()?.to_le_bytes());
        }
        Some(())
    }

    fn number(&mut self, number: Number) {
        match number {
            Number::Int(value) => self.whole(value),
            Number::UInt(value) if self.features.uint64 => self.marked(NUMBER_U64, &value.to_le_bytes()),
            Number::UInt(value) => self.marked(NUMBER_DOUBLE, &(value as f64).to_le_bytes()),
            Number::Double(value) => self.marked(NUMBER_DOUBLE, &value.to_le_bytes()),
        }
    }

    fn whole(&mut self, value: i64) {
        if let Ok(value) = u8::try_from(value) {
            match value < SMALL_NUMBER_END {
                true => self.out.push(value),
                false => self.marked(NUMBER_U8, &[value]),
            }
        } else if let Ok(value) = i16::try_from(value) {
            self.marked(NUMBER_I16, &value.to_le_bytes());
        } else if let Ok(value) = i32::try_from(value) {
            self.marked(NUMBER_I32, &value.to_le_bytes());
        } else {
            self.marked(NUMBER_I64, &value.to_le_bytes());
        }
    }

    fn string(&mut self, text: &[u8]) {
        if text.len() <= WORD_BYTES_MAX
            && let Some(word) = WORDS.iter().position(|word| word.as_bytes() == text)
        {
            self.out.push(WORD + word as u8);
            return;
        }
        let length = text.len();
        if length <= SHORT_STRING_BYTES_MAX {
            self.out.push(SHORT_STRING + length as u8);
        } else if let Ok(length) = u8::try_from(length) {
            self.marked(STRING, &[length]);
        } else if let Ok(length) = u16::try_from(length) {
            self.marked(STRING + 1, &length.to_le_bytes());
        } else {
            // A stored string is shorter than 4 GB, because a document is.
            self.marked(STRING + 2, &(length as u32).to_le_bytes());
        }
        self.out.extend_from_slice(text);
    }

    fn marked(&mut self, marker: u8, bytes: &[u8]) {
        self.out.push(marker);
        self.out.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes written by hand from the table of markers.
    fn check(text: &str, expect: &[u8]) {
        let written = from_text(text.as_bytes(), Features { uint64: true }).expect("it is JSON");
        assert_eq!(written, [&[PREAMBLE], expect].concat(), "{text}: {written:02X?}");
    }

    #[test]
    fn values_byte_for_byte() {
        check("null", &[0xD0]);
        check("false", &[0xD1]);
        check("true", &[0xD2]);
        check("0", &[0x00]);
        check("31", &[0x1F]);
        check("32", &[0xC8, 32]);
        check("255", &[0xC8, 255]);
        check("256", &[0xC9, 0x00, 0x01]);
        check("-1", &[0xC9, 0xFF, 0xFF]);
        check("-32769", &[0xCA, 0xFF, 0x7F, 0xFF, 0xFF]);
        check("2147483648", &[0xCB, 0, 0, 0, 0x80, 0, 0, 0, 0]);
        check("18446744073709551615", &[0xC7, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
        check("1.5", &[0xCC, 0, 0, 0, 0, 0, 0, 0xF8, 0x3F]);
        check(r#""""#, &[0x80]);
        check(r#""id""#, &[0x2C]);
        check(r#""FeatureCollection""#, &[0x3E]);
        check(r#""\"é""#, &[0x83, b'"', 0xC3, 0xA9]);
        check("[]", &[0xE0]);
        check("[null]", &[0xE1, 0xD0]);
        check("[1,2]", &[0xE2, 2, 1, 2]);
        check("{}", &[0xE8]);
        check(r#"{"id":7}"#, &[0xE9, 0x2C, 7]);
        check(r#"{"id":"1","n":[]}"#, &[0xEA, 6, 0x2C, 0x81, b'1', 0x81, b'n', 0xE0]);
    }

    #[test]
    fn a_client_that_does_not_know_large_whole_numbers_gets_doubles() {
        let written = from_text(b"18446744073709551615", Features::default()).unwrap();
        assert_eq!(written, [0x80, 0xCC, 0, 0, 0, 0, 0, 0, 0xF0, 0x43]);
    }

    #[test]
    fn lengths_are_as_wide_as_they_must_be() {
        for (length, head) in [
            (63, vec![0xBF]),
            (64, vec![0xC0, 64]),
            (255, vec![0xC0, 255]),
            (256, vec![0xC1, 0, 1]),
            (65_536, vec![0xC2, 0, 0, 1, 0]),
        ] {
            check(&format!("\"{}\"", "y".repeat(length)), &[head, vec![b'y'; length]].concat());
        }
        for (count, head) in [
            (255, vec![0xE2, 255]),
            (256, vec![0xE3, 0, 1]),
            (65_535, vec![0xE3, 0xFF, 0xFF]),
            (65_536, vec![0xE4, 0, 0, 1, 0]),
        ] {
            let text = format!("[{}]", vec!["1"; count].join(","));
            check(&text, &[head, vec![1; count]].concat());
        }
    }
}
