//! One value for each row: a byte that says what it is, and four or eight that say which.
//!
//! Integers that need more than 32 bits, and doubles, make all values of their column eight bytes wide. Strings are
//! numbers of a dictionary. What is neither small nor simple is deferred: the row's item has to be asked.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use orrery_model::Number;

use crate::value::Eval;

/// Longest string that a dictionary takes.
const TEXT_BYTES_MAX: usize = 128;
/// Strings of a dictionary, and their bytes together.
const TEXTS_MAX: usize = 65_536;
const TEXTS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What an entry of a dictionary takes beside its text, in the list and in the map of a builder.
const TEXT_OVERHEAD_BYTES: usize = 36;
/// From here on whole numbers are not told by their index entries.
const PLAIN_NUMBERS_END: f64 = 1e15;
/// A column with more than this part of its rows deferred is of no use, except for the first few.
const DEFERRED_PART: usize = 16;
const DEFERRED_FEW: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    Undefined,
    Null,
    False,
    True,
    Int,
    Double,
    Text,
    Deferred,
}

#[derive(Debug)]
enum Bits {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

#[derive(Debug)]
pub struct Column {
    tags: Vec<Tag>,
    bits: Bits,
    texts: Vec<Box<str>>,
    /// The numbers of the dictionary in the order of its strings.
    by_text: Vec<u32>,
    texts_bytes: usize,
    deferred: Vec<u32>,
    plain: bool,
}

impl Column {
    pub fn len(&self) -> usize {
        self.tags.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// Rows whose items have to be asked, in order.
    pub fn deferred(&self) -> &[u32] {
        &self.deferred
    }

    /// Whether index entries tell every value: no long strings, no huge numbers, nothing deferred.
    pub fn is_plain(&self) -> bool {
        self.plain && self.deferred.is_empty()
    }

    /// Memory that it takes.
    pub fn size_bytes(&self) -> usize {
        let bits = match &self.bits {
            Bits::Narrow(bits) => 4 * bits.capacity(),
            Bits::Wide(bits) => 8 * bits.capacity(),
        };
        self.tags.capacity() + bits + self.texts_bytes + 4 * self.deferred.capacity()
    }

    #[inline]
    pub(super) fn tag(&self, row: usize) -> Tag {
        self.tags[row]
    }

    /// Which text of the dictionary it is, of a row that has one.
    #[inline]
    pub(super) fn code(&self, row: usize) -> usize {
        match &self.bits {
            Bits::Narrow(bits) => bits[row] as usize,
            Bits::Wide(bits) => bits[row] as usize,
        }
    }

    /// Which text of the dictionary it is, if it is there.
    pub(super) fn find_text(&self, text: &str) -> Option<usize> {
        let place = self.by_text.binary_search_by(|code| (*self.texts[*code as usize]).cmp(text)).ok()?;
        Some(self.by_text[place] as usize)
    }

    /// The numbers of the dictionary in the order of its strings.
    pub(super) fn by_text(&self) -> &[u32] {
        &self.by_text
    }

    pub(super) fn text_count(&self) -> usize {
        self.texts.len()
    }

    #[inline]
    pub(super) fn number(&self, row: usize) -> Option<Number> {
        match (self.tags[row], &self.bits) {
            (Tag::Int, Bits::Narrow(bits)) => Some(Number::Int(i64::from(bits[row] as i32))),
            (Tag::Int, Bits::Wide(bits)) => Some(Number::Int(bits[row] as i64)),
            (Tag::Double, Bits::Wide(bits)) => Some(Number::Double(f64::from_bits(bits[row]))),
            _ => None,
        }
    }

    /// The value of a row; undefined where it is deferred.
    #[inline]
    pub(super) fn eval(&self, row: usize) -> Eval<'_> {
        match self.tags[row] {
            Tag::Undefined | Tag::Deferred => Eval::Undefined,
            Tag::Null => Eval::Null,
            Tag::False => Eval::Bool(false),
            Tag::True => Eval::Bool(true),
            Tag::Int | Tag::Double => self.number(row).map_or(Eval::Undefined, Eval::Number),
            Tag::Text => Eval::String(Cow::Borrowed(&self.texts[self.code(row)])),
        }
    }
}

/// A column in the making.
#[derive(Debug)]
pub struct ColumnBuilder {
    column: Column,
    codes: HashMap<Box<str>, u32>,
    useless: bool,
}

impl ColumnBuilder {
    pub fn with_capacity(rows: usize) -> ColumnBuilder {
        let column = Column {
            tags: Vec::with_capacity(rows),
            bits: Bits::Narrow(Vec::with_capacity(rows)),
            texts: Vec::new(),
            by_text: Vec::new(),
            texts_bytes: 0,
            deferred: Vec::new(),
            plain: true,
        };
        ColumnBuilder { column, codes: HashMap::new(), useless: false }
    }

    /// With the dictionary of another, of which rows are going to be taken over.
    pub fn like(other: &Column, rows: usize) -> ColumnBuilder {
        let mut builder = ColumnBuilder::with_capacity(rows);
        builder.column.texts = other.texts.clone();
        builder.column.texts_bytes = other.texts_bytes;
        builder.codes = (0..).zip(&other.texts).map(|(code, text)| (text.clone(), code)).collect();
        if let Bits::Wide(_) = other.bits {
            builder.column.bits = Bits::Wide(Vec::with_capacity(rows));
        }
        builder
    }

    pub fn push(&mut self, value: &Eval<'_>) {
        if self.useless {
            return;
        }
        let (tag, bits) = match value {
            Eval::Undefined => (Tag::Undefined, 0),
            Eval::Null => (Tag::Null, 0),
            Eval::Bool(false) => (Tag::False, 0),
            Eval::Bool(true) => (Tag::True, 0),
            Eval::Number(Number::Int(value)) => (Tag::Int, *value as u64),
            Eval::Number(number) => (Tag::Double, number.as_f64().to_bits()),
            Eval::String(text) => match self.code(text) {
                Some(code) => (Tag::Text, u64::from(code)),
                None => (Tag::Deferred, 0),
            },
            _ => (Tag::Deferred, 0),
        };
        if tag == Tag::Deferred && !self.defer() {
            return;
        }
        self.column.plain &= match value {
            Eval::Number(number) => number.as_f64().abs() < PLAIN_NUMBERS_END,
            Eval::String(text) => text.len() <= orrery_index::STRING_BYTES_MAX,
            _ => true,
        };
        self.column.tags.push(tag);
        self.push_bits(tag, bits);
    }

    fn push_bits(&mut self, tag: Tag, bits: u64) {
        if let Bits::Narrow(narrow) = &mut self.column.bits {
            let fits = match tag {
                Tag::Int => i32::try_from(bits as i64).is_ok(),
                Tag::Double => false,
                _ => true,
            };
            if fits {
                narrow.push(bits as u32);
                return;
            }
            let tags = &self.column.tags;
            let widened = narrow.iter().zip(tags).map(|(bits, tag)| widen(*bits, *tag));
            let mut wide = Vec::with_capacity(narrow.capacity());
            wide.extend(widened);
            self.column.bits = Bits::Wide(wide);
        }
        if let Bits::Wide(wide) = &mut self.column.bits {
            wide.push(bits);
        }
    }

    /// False if that is one too many.
    fn defer(&mut self) -> bool {
        let row = self.column.tags.len();
        self.column.deferred.push(row as u32);
        self.useless = self.column.deferred.len() > DEFERRED_FEW + row / DEFERRED_PART;
        if self.useless {
            *self = ColumnBuilder { useless: true, ..ColumnBuilder::with_capacity(0) };
        }
        !self.useless
    }

    /// Takes over rows of the column that this one was made [`like`](ColumnBuilder::like).
    pub fn append(&mut self, other: &Column, rows: Range<usize>) {
        if self.useless {
            return;
        }
        self.column.plain &= other.plain;
        let first = self.column.tags.len();
        let deferred = other.deferred.iter().map(|row| *row as usize);
        let shifted = deferred.filter(|row| rows.contains(row)).map(|row| (row - rows.start + first) as u32);
        self.column.deferred.extend(shifted);
        self.column.tags.extend_from_slice(&other.tags[rows.clone()]);
        match (&mut self.column.bits, &other.bits) {
            (Bits::Narrow(bits), Bits::Narrow(others)) => bits.extend_from_slice(&others[rows]),
            (Bits::Wide(bits), Bits::Wide(others)) => bits.extend_from_slice(&others[rows]),
            (Bits::Wide(bits), Bits::Narrow(others)) => {
                let both = others[rows.clone()].iter().zip(&other.tags[rows]);
                bits.extend(both.map(|(bits, tag)| widen(*bits, *tag)));
            }
            // A builder like a wide column is wide.
            (Bits::Narrow(bits), Bits::Wide(others)) => {
                let mut wide: Vec<u64> =
                    bits.iter().zip(&self.column.tags).map(|(bits, tag)| widen(*bits, *tag)).collect();
                wide.extend_from_slice(&others[rows]);
                self.column.bits = Bits::Wide(wide);
            }
        }
    }

    fn code(&mut self, text: &str) -> Option<u32> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        if let Some(code) = self.codes.get(text) {
            return Some(*code);
        }
        let column = &mut self.column;
        let bytes = text.len() + TEXT_OVERHEAD_BYTES;
        if column.texts.len() >= TEXTS_MAX || column.texts_bytes + bytes > TEXTS_BYTES_MAX {
            return None;
        }
        column.texts_bytes += bytes;
        let code = column.texts.len() as u32;
        column.texts.push(text.into());
        self.codes.insert(text.into(), code);
        Some(code)
    }

    /// Memory that it takes so far.
    pub fn size_bytes(&self) -> usize {
        self.column.size_bytes() + self.column.texts_bytes
    }

    /// The column; `None` if too many of its rows would be deferred.
    pub fn finish(mut self) -> Option<Column> {
        if self.useless {
            return None;
        }
        self.column.tags.shrink_to_fit();
        let texts = &self.column.texts;
        self.column.by_text = (0..texts.len() as u32).collect();
        self.column
            .by_text
            .sort_unstable_by(|left, right| texts[*left as usize].cmp(&texts[*right as usize]));
        match &mut self.column.bits {
            Bits::Narrow(bits) => bits.shrink_to_fit(),
            Bits::Wide(bits) => bits.shrink_to_fit(),
        }
        Some(self.column)
    }
}

fn widen(bits: u32, tag: Tag) -> u64 {
    if tag == Tag::Int { i64::from(bits as i32) as u64 } else { u64::from(bits) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_model::Value;

    fn values() -> Vec<Value> {
        vec![
            Value::Undefined,
            Value::Null,
            Value::from(true),
            Value::from(-3),
            Value::from("a"),
            Value::from("b".repeat(TEXT_BYTES_MAX + 1).as_str()),
            Value::from("a"),
            Value::from(i64::MAX),
            Value::Number(Number::Double(-0.5)),
            Value::Array(Vec::new()),
            Value::from(i64::from(i32::MIN)),
            Value::from("c"),
        ]
    }

    fn check(column: &Column, expected: &[Value]) {
        assert_eq!(column.len(), expected.len());
        for (row, value) in expected.iter().enumerate() {
            let text_fits = value.as_str().is_none_or(|text| text.len() <= TEXT_BYTES_MAX);
            if column.deferred().contains(&(row as u32)) {
                assert!(!text_fits || value.as_array().is_some(), "{value:?}");
            } else {
                assert_eq!(column.eval(row).to_value(), *value);
            }
        }
    }

    #[test]
    fn values_read_back_and_what_is_large_is_deferred() {
        // Narrow while it can be, and wide from any row on.
        for count in 0..=values().len() {
            let mut builder = ColumnBuilder::with_capacity(0);
            values()[..count].iter().for_each(|value| builder.push(&Eval::from_constant(value)));
            let column = builder.finish().unwrap();
            check(&column, &values()[..count]);
            // A copy with a row in the middle replaced.
            for at in 0..count {
                let mut builder = ColumnBuilder::like(&column, count);
                builder.append(&column, 0..at);
                builder.push(&Eval::text("new"));
                builder.append(&column, at + 1..count);
                let mut expected = values()[..count].to_vec();
                expected[at] = Value::from("new");
                check(&builder.finish().unwrap(), &expected);
            }
        }
    }

    #[test]
    fn a_column_of_arrays_is_none() {
        let mut builder = ColumnBuilder::with_capacity(0);
        for _ in 0..1_000 {
            builder.push(&Eval::array(Vec::new()));
        }
        assert!(builder.size_bytes() < 1_000 && builder.finish().is_none());
    }
}
