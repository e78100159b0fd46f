//! Building a stored document from parts, front to back.
//!
//! A container's table stands before its children but is known only when it closes, so the writer appends children
//! first and then moves them once to make room. Slots of all open containers share one stack. On closing, the sizes
//! (16 or 32 bits) are chosen, arrays of numbers with fractions become packed floats, and a name given twice keeps
//! its first place and its last value.
//!
//! The caller opens and closes containers in order and gives one key before each member; that is a property of the
//! calling code, not of data, so a violation panics.

use super::format::*;
use super::raw::{NumberWidth, Raw};
use crate::extended::Extended;
use crate::json::text::needs_escape;
use crate::number::Number;
use crate::value::Value;
use std::collections::HashMap;

/// From this many members on, names given twice are looked for once at the end, with a map, instead of member by
/// member.
const PAIRWISE_MEMBERS_MAX: usize = 64;
/// Arrays shorter than this are not worth packing.
const FLOATS_MIN: usize = 4;
/// Integers below this print the same whether they are stored as integers or as doubles, so they may join packed
/// floats.
const PACKED_INT_LIMIT: u64 = 1_000_000_000_000_000;

/// Streaming writer of one document.
#[derive(Clone, Debug)]
pub struct DocWriter {
    out: Vec<u8>,
    slots: Vec<Slot>,
    frames: Vec<Frame>,
    /// Integers and doubles stay apart, so an array that holds both is not packed.
    keeps_widths: bool,
}

/// Where a child begins, counted from the first byte behind its container's table.
#[derive(Clone, Copy, Debug)]
struct Slot {
    offset: u32,
    hash: u8,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    start: usize,
    first_slot: usize,
    object: bool,
    /// Which hashes occurred: only a name whose hash did can have been given before.
    hashes: [u64; 4],
    /// A name was given twice, or there are too many to tell before the object closes.
    suspect: bool,
}

impl Default for DocWriter {
    fn default() -> DocWriter {
        DocWriter::new()
    }
}

impl DocWriter {
    pub fn new() -> DocWriter {
        DocWriter::with_capacity(256)
    }

    pub fn with_capacity(capacity_bytes: usize) -> DocWriter {
        let mut out = Vec::with_capacity(capacity_bytes);
        out.extend_from_slice(&[FORMAT, FLAGS]);
        DocWriter { out, slots: Vec::with_capacity(32), frames: Vec::with_capacity(8), keeps_widths: false }
    }

    /// For an API that keeps integers and doubles apart: `[1, 0.5, 2, 3]` does not become an array of doubles. The
    /// widths of integers are kept by [`DocWriter::int32`] and [`DocWriter::int64`].
    pub fn keeping_widths(capacity_bytes: usize) -> DocWriter {
        DocWriter { keeps_widths: true, ..DocWriter::with_capacity(capacity_bytes) }
    }

    pub fn begin_object(&mut self) {
        self.begin(true);
    }

    pub fn begin_array(&mut self) {
        self.begin(false);
    }

    fn begin(&mut self, object: bool) {
        self.element();
        self.frames.push(Frame {
            start: self.out.len(),
            first_slot: self.slots.len(),
            object,
            hashes: [0; 4],
            suspect: false,
        });
    }

    /// The name of the next member.
    pub fn key(&mut self, key: &str) {
        self.key_bytes(key.as_bytes(), needs_escape(key.as_bytes()));
    }

    #[inline]
    pub(crate) fn key_bytes(&mut self, key: &[u8], escape: bool) {
        let frame = self.frames.last_mut().expect("a key belongs to an open object");
        let hash = key_hash(key);
        let bit = 1u64 << (hash & 63);
        let word = &mut frame.hashes[usize::from(hash >> 6)];
        if *word & bit != 0 && !frame.suspect {
            let (slots, children) = (&self.slots[frame.first_slot..], &self.out[frame.start..]);
            frame.suspect = slots.len() >= PAIRWISE_MEMBERS_MAX
                || slots
                    .iter()
                    .any(|slot| slot.hash == hash && key_at(&children[slot.offset as usize..]) == key);
        }
        *word |= bit;
        self.slots.push(Slot { offset: offset(self.out.len() - frame.start), hash });
        write_varint(&mut self.out, offset(key.len() << 1) | u32::from(escape));
        self.out.extend_from_slice(key);
    }

    /// Notes where an array element begins.
    #[inline]
    fn element(&mut self) {
        if let Some(frame) = self.frames.last()
            && !frame.object
        {
            self.slots.push(Slot { offset: offset(self.out.len() - frame.start), hash: 0 });
        }
    }

    pub fn null(&mut self) {
        self.element();
        self.out.push(NULL);
    }

    pub fn bool(&mut self, value: bool) {
        self.element();
        self.out.push(if value { TRUE } else { FALSE });
    }

    #[inline]
    pub fn number(&mut self, value: impl Into<Number>) {
        self.element();
        let out = &mut self.out;
        match value.into() {
            Number::Int(value @ 0..=SMALL_INT_MAX) => out.push(SMALL_INT + value as u8),
            Number::Int(value) => {
                if let Ok(value) = i8::try_from(value) {
                    tagged(out, INT8, value.to_le_bytes());
                } else if let Ok(value) = i16::try_from(value) {
                    tagged(out, INT16, value.to_le_bytes());
                } else if let Ok(value) = i32::try_from(value) {
                    tagged(out, INT32, value.to_le_bytes());
                } else {
                    tagged(out, INT64, value.to_le_bytes());
                }
            }
            Number::UInt(value) => tagged(out, UINT64, value.to_le_bytes()),
            Number::Double(value) => {
                let single = value as f32;
                if f64::from(single).to_bits() == value.to_bits() {
                    tagged(out, FLOAT32, single.to_le_bytes());
                } else {
                    tagged(out, FLOAT64, value.to_le_bytes());
                }
            }
        }
    }

    /// An integer of 32 bits: what a JSON integer in that range is, too.
    pub fn int32(&mut self, value: i32) {
        self.number(i64::from(value));
    }

    /// An integer of 64 bits, also when fewer would do.
    pub fn int64(&mut self, value: i64) {
        if let Ok(value) = i32::try_from(value) {
            self.element();
            let out = &mut self.out;
            if let Ok(value) = i8::try_from(value) {
                tagged(out, LONG8, value.to_le_bytes());
            } else if let Ok(value) = i16::try_from(value) {
                tagged(out, LONG16, value.to_le_bytes());
            } else {
                tagged(out, LONG32, value.to_le_bytes());
            }
        } else {
            self.number(value);
        }
    }

    /// A double, also when it is whole.
    pub fn double(&mut self, value: f64) {
        self.number(value);
    }

    /// A value that JSON has no word for. The texts of a regular expression hold no NUL: no protocol can spell one.
    pub fn extended(&mut self, value: Extended<'_>) {
        self.element();
        let out = &mut self.out;
        match value {
            Extended::ObjectId(id) => tagged(out, OBJECT_ID, id),
            Extended::Date(date) => tagged(out, DATE, date.to_le_bytes()),
            Extended::Timestamp { seconds, increment } => {
                let bits = u64::from(seconds) << 32 | u64::from(increment);
                tagged(out, TIMESTAMP, bits.to_le_bytes());
            }
            Extended::Decimal(decimal) => tagged(out, DECIMAL, decimal.to_le_bytes()),
            Extended::Binary { subtype, bytes } => {
                out.push(BINARY);
                write_varint(out, offset(bytes.len()));
                out.push(subtype);
                out.extend_from_slice(bytes);
            }
            Extended::Regex { pattern, options } => {
                assert!(
                    !pattern.contains('\0') && !options.contains('\0'),
                    "a regular expression without NUL"
                );
                out.push(REGEX);
                write_text(out, pattern);
                write_text(out, options);
            }
            Extended::Code(text) => {
                out.push(CODE);
                write_text(out, text);
            }
            Extended::MinKey => out.push(MIN_KEY),
            Extended::MaxKey => out.push(MAX_KEY),
        }
    }

    pub fn string(&mut self, value: &str) {
        self.string_bytes(value.as_bytes(), needs_escape(value.as_bytes()));
    }

    #[inline]
    pub(crate) fn string_bytes(&mut self, value: &[u8], escape: bool) {
        self.element();
        let length = value.len();
        if length <= SHORT_STRING_MAX && !escape {
            self.out.push(SHORT_STRING + length as u8);
        } else if let Ok(length) = u16::try_from(length) {
            tagged(&mut self.out, if escape { ESCAPED16 } else { STRING16 }, length.to_le_bytes());
        } else {
            tagged(&mut self.out, if escape { ESCAPED32 } else { STRING32 }, offset(length).to_le_bytes());
        }
        self.out.extend_from_slice(value);
    }

    /// A value of another document, copied without being decoded.
    pub fn raw(&mut self, value: Raw<'_>) {
        self.element();
        value.copy_into(&mut self.out);
    }

    /// An owned value. Undefined members and elements are left out; undefined itself is null.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Undefined | Value::Null => self.null(),
            Value::Bool(value) => self.bool(*value),
            Value::Number(value) => self.number(*value),
            Value::String(value) => self.string(value),
            Value::Extended(value) => self.extended(value.get()),
            Value::Array(elements) => {
                self.begin_array();
                elements.iter().filter(|e| !e.is_undefined()).for_each(|element| self.value(element));
                self.end_array();
            }
            Value::Object(members) => {
                self.begin_object();
                for (key, value) in members.iter().filter(|(_, value)| !value.is_undefined()) {
                    self.key(key);
                    self.value(value);
                }
                self.end_object();
            }
        }
    }

    pub fn end_object(&mut self) {
        let frame = self.frames.pop().expect("an open object");
        assert!(frame.object, "an array is closed by end_array");
        if frame.suspect {
            self.merge_repeated_names(&frame);
        }
        self.close(&frame, OBJECT16, OBJECT32);
    }

    pub fn end_array(&mut self) {
        let frame = self.frames.pop().expect("an open array");
        assert!(!frame.object, "an object is closed by end_object");
        if self.slots.len() - frame.first_slot >= FLOATS_MIN && self.pack_floats(&frame) {
            return;
        }
        self.close(&frame, ARRAY16, ARRAY32);
    }

    /// Number of containers that are open.
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    /// The document. All containers are closed and one value was written.
    pub fn finish(self) -> Vec<u8> {
        assert!(self.frames.is_empty() && self.out.len() > 2, "a document is one complete value");
        self.out
    }

    /// Length of what is written so far, to be given to [`DocWriter::forget`].
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.out.len(), self.slots.len())
    }

    /// Drops what was written since the mark, inside the same container.
    pub(crate) fn forget(&mut self, mark: (usize, usize)) {
        self.out.truncate(mark.0);
        self.slots.truncate(mark.1);
    }

    /// Puts the table before the children.
    fn close(&mut self, frame: &Frame, narrow: u8, wide: u8) {
        let slots = &self.slots[frame.first_slot..];
        let count = slots.len();
        let children = self.out.len() - frame.start;
        let hashes = if frame.object { count } else { 0 };
        let head16 = 4 + hashes + 2 * count;
        let fits = u16::try_from(head16 + children).is_ok();
        let head = if fits { head16 } else { 8 + hashes + 4 * count };
        let size = head + children;
        self.out.resize(self.out.len() + 1 + head, 0);
        self.out.copy_within(frame.start..frame.start + children, frame.start + 1 + head);
        self.out[frame.start] = if fits { narrow } else { wide };
        let table = &mut self.out[frame.start + 1..frame.start + 1 + head];
        if fits {
            table[..2].copy_from_slice(&(size as u16).to_le_bytes());
            table[2..4].copy_from_slice(&(count as u16).to_le_bytes());
            let (table_hashes, table_slots) = table[4..].split_at_mut(hashes);
            table_hashes.iter_mut().zip(slots).for_each(|(hash, slot)| *hash = slot.hash);
            for (place, slot) in table_slots.as_chunks_mut::<2>().0.iter_mut().zip(slots) {
                *place = ((slot.offset as usize + head) as u16).to_le_bytes();
            }
        } else {
            table[..4].copy_from_slice(&offset(size).to_le_bytes());
            table[4..8].copy_from_slice(&offset(count).to_le_bytes());
            let (table_hashes, table_slots) = table[8..].split_at_mut(hashes);
            table_hashes.iter_mut().zip(slots).for_each(|(hash, slot)| *hash = slot.hash);
            for (place, slot) in table_slots.as_chunks_mut::<4>().0.iter_mut().zip(slots) {
                *place = offset(slot.offset as usize + head).to_le_bytes();
            }
        }
        self.slots.truncate(frame.first_slot);
    }

    /// Replaces an array that holds only numbers, at least one of them no integer, by packed floats.
    fn pack_floats(&mut self, frame: &Frame) -> bool {
        let slots = &self.slots[frame.first_slot..];
        // Most arrays hold something else in front; look at it before looking at all.
        if !matches!(self.out[frame.start], INT8..=FLOAT32 | SMALL_INT..SHORT_STRING) {
            return false;
        }
        let children = &self.out[frame.start..];
        let (mut fraction, mut single) = (false, true);
        // An integer that says how wide it is does not become a double.
        let packs = |raw: &Raw<'_>| {
            raw.number_width() == Some(NumberWidth::Double) || !self.keeps_widths && !raw.is_long()
        };
        let mut values = Vec::with_capacity(slots.len());
        for (i, slot) in slots.iter().enumerate() {
            let end = slots.get(i + 1).map_or(children.len(), |next| next.offset as usize);
            let raw = Raw::at_tag(&children[slot.offset as usize..end]);
            let number = raw.filter(packs).and_then(Raw::as_number);
            let value = match number {
                Some(Number::Double(value)) => {
                    fraction = true;
                    value
                }
                Some(Number::Int(value)) if value.unsigned_abs() < PACKED_INT_LIMIT => value as f64,
                _ => return false,
            };
            single &= f64::from(value as f32).to_bits() == value.to_bits();
            values.push(value);
        }
        if !fraction {
            return false;
        }
        self.out.truncate(frame.start);
        tagged(&mut self.out, if single { FLOATS32 } else { FLOATS64 }, offset(values.len()).to_le_bytes());
        if single {
            values.iter().for_each(|value| self.out.extend_from_slice(&(*value as f32).to_le_bytes()));
        } else {
            values.iter().for_each(|value| self.out.extend_from_slice(&value.to_le_bytes()));
        }
        self.slots.truncate(frame.first_slot);
        true
    }

    /// If a name occurs twice, keeps its first place with its last value.
    fn merge_repeated_names(&mut self, frame: &Frame) {
        let children = &self.out[frame.start..];
        let slots = &self.slots[frame.first_slot..];
        let entry = |i: usize| {
            let end = slots.get(i + 1).map_or(children.len(), |next| next.offset as usize);
            &children[slots[i].offset as usize..end]
        };
        let key = |i: usize| key_at(entry(i));
        // last[i] is the member whose value stands at place i; none when the name was seen earlier.
        let mut last: Vec<Option<usize>> = (0..slots.len()).map(Some).collect();
        let mut repeated = false;
        let mut places: HashMap<&[u8], usize> = HashMap::with_capacity(slots.len());
        for i in 0..slots.len() {
            match places.get(key(i)) {
                Some(&earlier) => (last[earlier], last[i], repeated) = (Some(i), None, true),
                None => {
                    places.insert(key(i), i);
                }
            }
        }
        if !repeated {
            return;
        }
        let mut kept = Vec::with_capacity(children.len());
        let mut kept_slots = Vec::with_capacity(slots.len());
        for i in last.into_iter().flatten() {
            kept_slots.push(Slot { offset: offset(kept.len()), hash: slots[i].hash });
            kept.extend_from_slice(entry(i));
        }
        self.out.truncate(frame.start);
        self.out.extend_from_slice(&kept);
        self.slots.truncate(frame.first_slot);
        self.slots.extend_from_slice(&kept_slots);
    }
}

/// The key of an entry that this writer wrote.
fn key_at(entry: &[u8]) -> &[u8] {
    let (head, rest) = read_varint(entry).expect("the writer wrote this key");
    &rest[..(head >> 1) as usize]
}

#[inline]
fn tagged<const N: usize>(out: &mut Vec<u8>, tag: u8, body: [u8; N]) {
    out.push(tag);
    out.extend_from_slice(&body);
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    write_varint(out, offset(text.len()));
    out.extend_from_slice(text.as_bytes());
}

/// Sizes are 32 bits wide. Request bodies are limited far below; a program that builds a document of 4 GB is at fault.
#[inline]
fn offset(value: usize) -> u32 {
    u32::try_from(value).expect("a document stays below 4 GB")
}
