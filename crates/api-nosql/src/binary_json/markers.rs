//! The markers: for each byte that a value may begin with, what it is.
//!
//! One table for both directions: the reader asks it what a marker means, the writer's constants are rows of it, and
//! a test compares the two.

/// The first byte of a body in this form.
pub const PREAMBLE: u8 = 0x80;

/// Words that have a marker of their own, from [`WORD`] on.
#[rustfmt::skip]
pub const WORDS: [&str; 32] = [
    "$s", "$t", "$v", "_attachments", "_etag", "_rid", "_self", "_ts",
    "attachments/", "coordinates", "geometry", "GeometryCollection", "id", "url", "Value", "label",
    "LineString", "link", "MultiLineString", "MultiPoint", "MultiPolygon", "name", "Name", "Type",
    "Point", "Polygon", "properties", "type", "value", "Feature", "FeatureCollection", "_id",
];
/// The longest of them.
pub const WORD_BYTES_MAX: usize = 18;

pub const HEX_LOWER: &[u8; 16] = b"0123456789abcdef";
pub const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";
/// The characters that dates are made of, for strings that hold nothing else.
pub const DATE: &[u8; 16] = b" 0123456789:-.TZ";

// What the writer uses.
pub const SMALL_NUMBER_END: u8 = 0x20;
pub const WORD: u8 = 0x20;
pub const SHORT_STRING: u8 = 0x80;
pub const SHORT_STRING_BYTES_MAX: usize = 63;
pub const STRING: u8 = 0xC0;
pub const NUMBER_U64: u8 = 0xC7;
pub const NUMBER_U8: u8 = 0xC8;
pub const NUMBER_I16: u8 = 0xC9;
pub const NUMBER_I32: u8 = 0xCA;
pub const NUMBER_I64: u8 = 0xCB;
pub const NUMBER_DOUBLE: u8 = 0xCC;
pub const NULL: u8 = 0xD0;
pub const FALSE: u8 = 0xD1;
pub const TRUE: u8 = 0xD2;
pub const ARRAY: u8 = 0xE0;
pub const OBJECT: u8 = 0xE8;
/// Added to [`ARRAY`] and [`OBJECT`]: one entry; or a length of one, two or four bytes.
pub const OF_ONE: u8 = 1;
pub const OF_LENGTH: u8 = 2;

/// What a marker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The marker is the number.
    SmallNumber,
    Number(NumberKind),
    Null,
    False,
    True,
    Text(TextForm),
    Array(Extent),
    Object(Extent),
    /// The kind once, a count of so many bytes, the numbers.
    Numbers {
        width: usize,
    },
    /// An array of such arrays, all of the same length.
    RowsOfNumbers {
        width: usize,
    },
    /// Words of a dictionary that travels apart from the body, which clients do not send; and what has no meaning.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    U8,
    I8,
    I16,
    I32,
    I64,
    U32,
    U64,
    Float,
    Double,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    Word,
    /// The length is in the marker.
    Short,
    /// The length has so many bytes.
    Long {
        width: usize,
    },
    /// Where in the body the string is, in so many bytes.
    Reference {
        width: usize,
    },
    /// Stored as what it stands for.
    Base64 {
        width: usize,
        url: bool,
    },
    /// Two digits in each byte.
    Guid {
        upper: bool,
        quoted: bool,
    },
    /// Two characters of a table in each byte.
    FromTable(&'static [u8; 16]),
    /// Characters of a few bits each, counted from a base that is said before them, or from 0.
    Packed {
        width: usize,
        bits: u32,
        based: bool,
    },
    /// A GUID as sixteen bytes, which is text in JSON.
    GuidBytes,
    /// Bytes, which are base64 in JSON.
    Bytes {
        width: usize,
    },
}

/// How an array or an object says where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Empty,
    One,
    /// Its length in bytes, in so many bytes; and then perhaps its count, in as many.
    Bytes {
        width: usize,
        counted: bool,
    },
}

/// The table.
pub const fn form(marker: u8) -> Form {
    use Form::*;
    use NumberKind::*;
    use TextForm as T;
    match marker {
        0x00..=0x1F => SmallNumber,
        0x20..=0x3F => Text(T::Word),
        0x71 => Text(T::Base64 { width: 1, url: false }),
        0x72 => Text(T::Base64 { width: 2, url: false }),
        0x73 => Text(T::Base64 { width: 1, url: true }),
        0x74 => Text(T::Base64 { width: 2, url: true }),
        0x75 => Text(T::Guid { upper: false, quoted: false }),
        0x76 => Text(T::Guid { upper: true, quoted: false }),
        0x77 => Text(T::Guid { upper: false, quoted: true }),
        0x78 => Text(T::FromTable(HEX_LOWER)),
        0x79 => Text(T::FromTable(HEX_UPPER)),
        0x7A => Text(T::FromTable(DATE)),
        0x7B => Text(T::Packed { width: 1, bits: 4, based: true }),
        0x7C => Text(T::Packed { width: 1, bits: 5, based: true }),
        0x7D => Text(T::Packed { width: 1, bits: 6, based: true }),
        0x7E => Text(T::Packed { width: 1, bits: 7, based: false }),
        0x7F => Text(T::Packed { width: 2, bits: 7, based: false }),
        0x80..=0xBF => Text(T::Short),
        0xC0 => Text(T::Long { width: 1 }),
        0xC1 => Text(T::Long { width: 2 }),
        0xC2 => Text(T::Long { width: 4 }),
        0xC3 => Text(T::Reference { width: 1 }),
        0xC4 => Text(T::Reference { width: 2 }),
        0xC5 => Text(T::Reference { width: 3 }),
        0xC6 => Text(T::Reference { width: 4 }),
        0xC7 => Number(U64),
        0xC8 | 0xD7 => Number(U8),
        0xC9 | 0xD9 => Number(I16),
        0xCA | 0xDA => Number(I32),
        0xCB | 0xDB => Number(I64),
        0xCC | 0xCE => Number(Double),
        0xCD => Number(Float),
        0xD0 => Null,
        0xD1 => False,
        0xD2 => True,
        0xD3 => Text(T::GuidBytes),
        0xD8 => Number(I8),
        0xDC => Number(U32),
        0xDD => Text(T::Bytes { width: 1 }),
        0xDE => Text(T::Bytes { width: 2 }),
        0xDF => Text(T::Bytes { width: 4 }),
        0xE0..=0xE7 => Array(extent(marker)),
        0xE8..=0xEF => Object(extent(marker)),
        0xF0 => Numbers { width: 1 },
        0xF1 => Numbers { width: 2 },
        0xF2 => RowsOfNumbers { width: 1 },
        0xF3 => RowsOfNumbers { width: 2 },
        0x40..=0x70 | 0xCF | 0xD4..=0xD6 | 0xF4..=0xFF => Unknown,
    }
}

const fn extent(marker: u8) -> Extent {
    match marker & 7 {
        0 => Extent::Empty,
        1 => Extent::One,
        2 => Extent::Bytes { width: 1, counted: false },
        3 => Extent::Bytes { width: 2, counted: false },
        4 => Extent::Bytes { width: 4, counted: false },
        5 => Extent::Bytes { width: 1, counted: true },
        6 => Extent::Bytes { width: 2, counted: true },
        _ => Extent::Bytes { width: 4, counted: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_writer_uses_is_what_the_table_says() {
        for (marker, want) in [
            (SMALL_NUMBER_END - 1, Form::SmallNumber),
            (WORD, Form::Text(TextForm::Word)),
            (WORD + WORDS.len() as u8 - 1, Form::Text(TextForm::Word)),
            (SHORT_STRING, Form::Text(TextForm::Short)),
            (SHORT_STRING + SHORT_STRING_BYTES_MAX as u8, Form::Text(TextForm::Short)),
            (STRING, Form::Text(TextForm::Long { width: 1 })),
            (STRING + 1, Form::Text(TextForm::Long { width: 2 })),
            (STRING + 2, Form::Text(TextForm::Long { width: 4 })),
            (NUMBER_U64, Form::Number(NumberKind::U64)),
            (NUMBER_U8, Form::Number(NumberKind::U8)),
            (NUMBER_I16, Form::Number(NumberKind::I16)),
            (NUMBER_I32, Form::Number(NumberKind::I32)),
            (NUMBER_I64, Form::Number(NumberKind::I64)),
            (NUMBER_DOUBLE, Form::Number(NumberKind::Double)),
            (NULL, Form::Null),
            (FALSE, Form::False),
            (TRUE, Form::True),
            (ARRAY, Form::Array(Extent::Empty)),
            (ARRAY + OF_ONE, Form::Array(Extent::One)),
            (ARRAY + OF_LENGTH, Form::Array(Extent::Bytes { width: 1, counted: false })),
            (OBJECT, Form::Object(Extent::Empty)),
            (OBJECT + OF_ONE, Form::Object(Extent::One)),
            (OBJECT + OF_LENGTH + 2, Form::Object(Extent::Bytes { width: 4, counted: false })),
        ] {
            assert_eq!(form(marker), want, "{marker:02X}");
        }
        assert!(WORDS.iter().all(|word| word.len() <= WORD_BYTES_MAX));
    }
}
