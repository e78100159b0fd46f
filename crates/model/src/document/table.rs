//! Tables of objects and arrays, and the iterators over what they point to.
//!
//! A table is checked once against the body's length; children are then windows from one slot to the next.

use super::format::*;
use super::raw::Raw;
use crate::json::scan::{HIGHS, ONES};

/// Where the children of an object or array lie.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub body: &'a [u8],
    pub hashes: &'a [u8],
    slots: &'a [u8],
    pub count: usize,
    wide: bool,
    /// Where the table ends and the first child begins.
    first: usize,
}

impl<'a> Table<'a> {
    /// The table of an object or array, checked to lie inside the body.
    #[inline]
    pub fn of(raw: Raw<'a>) -> Option<Table<'a>> {
        let wide = match raw.tag {
            OBJECT16 | ARRAY16 => false,
            OBJECT32 | ARRAY32 => true,
            _ => return None,
        };
        let (size, count, head) = if wide {
            let (&[a, b, c, d, e, f, g, h], _) = raw.body.split_first_chunk()?;
            (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]) as usize, 8)
        } else {
            let (&[a, b, c, d], _) = raw.body.split_first_chunk()?;
            (usize::from(u16::from_le_bytes([a, b])), usize::from(u16::from_le_bytes([c, d])), 4)
        };
        let body = raw.body.get(..size)?;
        let rest = body.get(head..)?;
        let (hashes, rest) =
            if raw.tag <= OBJECT32 { rest.split_at_checked(count)? } else { (&[][..], rest) };
        let slots = rest.get(..count.checked_mul(if wide { 4 } else { 2 })?)?;
        let first = head + hashes.len() + slots.len();
        Some(Table { body, hashes, slots, count, wide, first })
    }

    /// The member with this key.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Option<Raw<'a>> {
        let hash = key_hash(key);
        // Objects are small: a word at a time beats a call to a wider search.
        let pattern = ONES * u64::from(hash);
        let (words, rest) = self.hashes.as_chunks::<8>();
        for (i, word) in words.iter().enumerate() {
            let difference = u64::from_le_bytes(*word) ^ pattern;
            let mut hits = difference.wrapping_sub(ONES) & !difference & HIGHS;
            while hits != 0 {
                // A false hit above a true one costs a comparison of keys and nothing else.
                if let Some(value) = self.value_if(i * 8 + (hits.trailing_zeros() / 8) as usize, key) {
                    return Some(value);
                }
                hits &= hits - 1;
            }
        }
        let done = words.len() * 8;
        rest.iter()
            .enumerate()
            .filter(|&(_, &found)| found == hash)
            .find_map(|(i, _)| self.value_if(done + i, key))
    }

    #[inline]
    fn slot(&self, index: usize) -> Option<usize> {
        if self.wide {
            self.slots.get(index * 4..)?.first_chunk().map(|b| u32::from_le_bytes(*b) as usize)
        } else {
            self.slots.get(index * 2..)?.first_chunk().map(|b| usize::from(u16::from_le_bytes(*b)))
        }
    }

    /// The value of a member if it has this key.
    #[inline]
    fn value_if(&self, index: usize, key: &[u8]) -> Option<Raw<'a>> {
        let entry = Entry::read(self.window(index)?)?;
        if entry.key == key { Raw::at_tag(entry.value) } else { None }
    }

    /// The bytes of one child: from its slot to the next.
    #[inline]
    pub fn window(&self, index: usize) -> Option<&'a [u8]> {
        let start = self.slot(index)?;
        let end = self.slot(index + 1).unwrap_or(self.body.len());
        if start < self.first { None } else { self.body.get(start..end) }
    }
}

/// The children's bytes in order; ends early when slots do not rise. Each child begins where the one before ended, so
/// damaged slots cannot show the same bytes twice.
#[derive(Clone)]
struct Windows<'a> {
    table: Option<Table<'a>>,
    next: usize,
    start: usize,
}

impl<'a> Windows<'a> {
    #[inline]
    fn new(table: Option<Table<'a>>) -> Windows<'a> {
        let table = table.filter(|table| table.slot(0).is_some_and(|start| start >= table.first));
        let start = table.as_ref().and_then(|table| table.slot(0)).unwrap_or(0);
        Windows { table, next: 0, start }
    }
}

impl<'a> Iterator for Windows<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let table = self.table.as_ref()?;
        if self.next >= table.count {
            return None;
        }
        let end = table.slot(self.next + 1).unwrap_or(table.body.len());
        let window = table.body.get(self.start..end)?;
        self.start = end;
        self.next += 1;
        Some(window)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.table.as_ref().map_or(0, |table| table.count.saturating_sub(self.next))))
    }
}

/// One member of an object as bytes.
pub(crate) struct Entry<'a> {
    pub key: &'a [u8],
    /// The key holds characters that JSON text must escape.
    pub escape: bool,
    value: &'a [u8],
}

impl<'a> Entry<'a> {
    #[inline]
    fn read(window: &'a [u8]) -> Option<Entry<'a>> {
        let (head, rest) = read_varint(window)?;
        let (key, value) = rest.split_at_checked((head >> 1) as usize)?;
        Some(Entry { key, escape: head & 1 == 1, value })
    }

    #[inline]
    pub fn value(&self) -> Raw<'a> {
        Raw::at_tag(self.value).unwrap_or(Raw::NULL)
    }
}

/// Members of an object with unchecked keys.
#[derive(Clone)]
pub(crate) struct Entries<'a>(Windows<'a>);

impl<'a> Entries<'a> {
    #[inline]
    pub fn of(raw: Raw<'a>) -> Entries<'a> {
        let table = if matches!(raw.tag, OBJECT16 | OBJECT32) { Table::of(raw) } else { None };
        Entries(Windows::new(table))
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        Entry::read(self.0.next()?)
    }
}

/// Members of an object, in the order of insertion.
#[derive(Clone)]
pub struct Members<'a>(Entries<'a>);

impl<'a> Members<'a> {
    #[inline]
    pub(super) fn of(raw: Raw<'a>) -> Members<'a> {
        Members(Entries::of(raw))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Raw<'a>);

    #[inline]
    fn next(&mut self) -> Option<(&'a str, Raw<'a>)> {
        let entry = self.0.next()?;
        Some((std::str::from_utf8(entry.key).ok()?, Raw::at_tag(entry.value)?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.0.size_hint()
    }
}

/// Elements of an array.
#[derive(Clone)]
pub struct Elements<'a>(Source<'a>);

#[derive(Clone)]
enum Source<'a> {
    Values(Windows<'a>),
    Floats { floats: Floats<'a>, next: usize },
}

impl<'a> Elements<'a> {
    #[inline]
    pub(super) fn of(raw: Raw<'a>) -> Elements<'a> {
        Elements(match Floats::of(raw) {
            Some(floats) => Source::Floats { floats, next: 0 },
            None if matches!(raw.tag, ARRAY16 | ARRAY32) => Source::Values(Windows::new(Table::of(raw))),
            None => Source::Values(Windows::new(None)),
        })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Raw<'a>;

    #[inline]
    fn next(&mut self) -> Option<Raw<'a>> {
        match &mut self.0 {
            Source::Values(windows) => Raw::at_tag(windows.next()?),
            Source::Floats { floats, next } => {
                let element = floats.at(*next)?;
                *next += 1;
                Some(element)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Source::Values(windows) => windows.size_hint(),
            Source::Floats { floats, next } => (0, Some(floats.count().saturating_sub(*next))),
        }
    }
}

/// A packed array of doubles or floats.
#[derive(Clone, Copy)]
pub(super) struct Floats<'a> {
    pub bytes: &'a [u8],
    width: usize,
}

impl<'a> Floats<'a> {
    #[inline]
    pub fn of(raw: Raw<'a>) -> Option<Floats<'a>> {
        let width = match raw.tag {
            FLOATS64 => 8,
            FLOATS32 => 4,
            _ => return None,
        };
        let (count, rest) = raw.body.split_first_chunk()?;
        let bytes = rest.get(..(u32::from_le_bytes(*count) as usize).checked_mul(width)?)?;
        Some(Floats { bytes, width })
    }

    pub fn count(&self) -> usize {
        self.bytes.len() / self.width
    }

    #[inline]
    pub fn at(&self, index: usize) -> Option<Raw<'a>> {
        let start = index.checked_mul(self.width)?;
        let body = self.bytes.get(start..start.checked_add(self.width)?)?;
        Some(Raw { tag: if self.width == 8 { FLOAT64 } else { FLOAT32 }, body })
    }
}
