//! The answer of a share as bytes, for a merge on another node.
//!
//! ```text
//! partial u8 | rows | sort keys | places | marks | carried values | groups
//! rows       count u32 | where each ends u32 | length u32 | all of them
//! value      0 undefined, 1 number, 2 in stored form behind a length u32
//! group      key | values | accumulators, each behind a byte for its kind
//! ```
//!
//! Numbers are little-endian, lists stand behind a count (u32). Every count and length is checked against the bytes
//! that are there before anything is made of it, and bytes that are no answer are `None`. The version is that of the
//! frame in which the bytes travel.

use std::cmp::Ordering;
use std::collections::HashSet;

use orrery_model::{Number, Raw, Value};

use super::ShareRows;
use crate::aggregate::Accumulator;
use crate::compare::canonical_key;
use crate::eval::GroupPart;
use crate::output::Rows;
use crate::value::Eval;

impl ShareRows {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let ShareRows { rows, partial, keys, places, marks, carried, groups } = self;
        out.push(u8::from(*partial));
        put_rows(rows, out);
        put_list(keys, out, put_value);
        put_list(places, out, |(number, rows), out| {
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(&rows.to_le_bytes());
        });
        put_rows(marks, out);
        put_list(carried, out, put_value);
        put_list(groups, out, |GroupPart { key, keys, accumulators }, out| {
            put_bytes(key, out);
            put_list(keys, out, put_value);
            put_list(accumulators, out, put_accumulator);
        });
    }

    /// `None` when the bytes are no answer.
    pub fn decode(bytes: &[u8]) -> Option<ShareRows> {
        let from = &mut { bytes };
        let rows = ShareRows {
            partial: take_bool(from)?,
            rows: take_rows(from)?,
            keys: take_list(from, take_value)?,
            places: take_list(from, |from| Some((take_u64(from)?, take_u64(from)?)))?,
            marks: take_rows(from)?,
            carried: take_list(from, take_value)?,
            groups: take_list(from, |from| {
                Some(GroupPart {
                    key: take_bytes(from)?.to_vec(),
                    keys: take_list(from, take_value)?,
                    accumulators: take_list(from, take_accumulator)?,
                })
            })?,
        };
        from.is_empty().then_some(rows)
    }
}

fn put_u32(number: usize, out: &mut Vec<u8>) {
    // What is sent is checked against a limit far below 4 GB.
    out.extend_from_slice(&(number as u32).to_le_bytes());
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*taken)
}

fn take_u32(from: &mut &[u8]) -> Option<usize> {
    take(from).map(|bytes| u32::from_le_bytes(bytes) as usize)
}

fn take_u64(from: &mut &[u8]) -> Option<u64> {
    take(from).map(u64::from_le_bytes)
}

fn take_bool(from: &mut &[u8]) -> Option<bool> {
    match take(from)? {
        [0] => Some(false),
        [1] => Some(true),
        _ => None,
    }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_u32(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn take_bytes<'b>(from: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = take_u32(from)?;
    let (taken, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

fn put_list<T>(list: &[T], out: &mut Vec<u8>, put: impl Fn(&T, &mut Vec<u8>)) {
    put_u32(list.len(), out);
    list.iter().for_each(|one| put(one, out));
}

fn take_list<T>(from: &mut &[u8], take: impl Fn(&mut &[u8]) -> Option<T>) -> Option<Vec<T>> {
    let count = take_u32(from)?;
    // Each takes a byte at least; the list grows with what was really read.
    if count > from.len() {
        return None;
    }
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(take(from)?);
    }
    Some(list)
}

fn put_rows(rows: &Rows, out: &mut Vec<u8>) {
    let (ends, bytes) = rows.parts();
    put_u32(rows.len(), out);
    ends.for_each(|end| put_u32(end, out));
    put_bytes(bytes, out);
}

fn take_rows(from: &mut &[u8]) -> Option<Rows> {
    let ends = take_list(from, take_u32)?;
    Rows::of_parts(ends, take_bytes(from)?.to_vec())
}

const UNDEFINED: u8 = 0;
const NUMBER: u8 = 1;
const STORED: u8 = 2;

fn put_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Undefined => out.push(UNDEFINED),
        // As it is: the stored form has one way to write a number, and a computed one may be another.
        Value::Number(number) => {
            out.push(NUMBER);
            put_number(number, out);
        }
        value => {
            out.push(STORED);
            put_bytes(&value.to_document(), out);
        }
    }
}

fn take_value(from: &mut &[u8]) -> Option<Value> {
    match take(from)? {
        [UNDEFINED] => Some(Value::Undefined),
        [NUMBER] => take_number(from).map(Value::Number),
        [STORED] => {
            let document = Raw::document(take_bytes(from)?).ok()?;
            document.verify().ok()?;
            Some(document.to_value())
        }
        _ => None,
    }
}

fn put_number(number: &Number, out: &mut Vec<u8>) {
    let (kind, bits) = match number {
        Number::Int(value) => (1, *value as u64),
        Number::UInt(value) => (2, *value),
        Number::Double(value) => (3, value.to_bits()),
    };
    out.push(kind);
    out.extend_from_slice(&bits.to_le_bytes());
}

fn take_number(from: &mut &[u8]) -> Option<Number> {
    let [kind] = take(from)?;
    let bits = take_u64(from)?;
    match kind {
        1 => Some(Number::Int(bits as i64)),
        2 => Some(Number::UInt(bits)),
        3 => Some(Number::Double(f64::from_bits(bits))),
        _ => None,
    }
}

const COUNT: u8 = 1;
const COUNT_IF: u8 = 2;
const SUM: u8 = 3;
const AVERAGE: u8 = 4;
const LEAST: u8 = 5;
const GREATEST: u8 = 6;
const LIST: u8 = 7;
const SET: u8 = 8;

fn put_accumulator(accumulator: &Accumulator, out: &mut Vec<u8>) {
    let kind = match accumulator {
        Accumulator::Count(_) => COUNT,
        Accumulator::CountIf(_) => COUNT_IF,
        Accumulator::Sum(_, false) => SUM,
        Accumulator::Sum(_, true) => AVERAGE,
        Accumulator::Extreme(_, Ordering::Less) => LEAST,
        Accumulator::Extreme(..) => GREATEST,
        Accumulator::List(_, None) => LIST,
        Accumulator::List(_, Some(_)) => SET,
    };
    out.push(kind);
    match accumulator {
        Accumulator::Count(count) | Accumulator::CountIf(count) => {
            out.extend_from_slice(&count.to_le_bytes());
        }
        Accumulator::Sum(state, _) => {
            out.push(u8::from(state.is_some()));
            if let Some((sum, count)) = state {
                put_number(sum, out);
                out.extend_from_slice(&count.to_le_bytes());
            }
        }
        Accumulator::Extreme(state, _) => {
            out.push(u8::from(state.is_some()));
            if let Some(best) = state {
                put_value(best.as_ref().unwrap_or(&Value::Undefined), out);
            }
        }
        Accumulator::List(values, _) => put_list(values, out, put_value),
    }
}

fn take_accumulator(from: &mut &[u8]) -> Option<Accumulator> {
    let count = |from: &mut &[u8]| take(from).map(i64::from_le_bytes).filter(|count| *count >= 0);
    let [kind] = take(from)?;
    Some(match kind {
        COUNT => Accumulator::Count(count(from)?),
        COUNT_IF => Accumulator::CountIf(count(from)?),
        SUM | AVERAGE => {
            let state = if take_bool(from)? { Some((take_number(from)?, count(from)?)) } else { None };
            Accumulator::Sum(state, kind == AVERAGE)
        }
        LEAST | GREATEST => {
            // Nothing has come yet where the best is undefined, which is never the best.
            let best = |value: Value| Some(value).filter(|value| !value.is_undefined());
            let state = if take_bool(from)? { Some(best(take_value(from)?)) } else { None };
            Accumulator::Extreme(state, if kind == LEAST { Ordering::Less } else { Ordering::Greater })
        }
        LIST => Accumulator::List(take_list(from, take_value)?, None),
        SET => {
            let values = take_list(from, take_value)?;
            let key = |value| canonical_key(&Eval::from_constant(value));
            let seen: HashSet<Vec<u8>> = values.iter().map(key).collect();
            Accumulator::List(values, Some(seen))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Undefined),
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|number| Value::Number(Number::Int(number))),
            any::<u64>().prop_map(|number| Value::Number(Number::UInt(number))),
            any::<f64>().prop_map(|number| Value::Number(Number::Double(number))),
            ".{0,12}".prop_map(|text| Value::from(&*text)),
            ".{0,6}".prop_map(|text| Value::Array(vec![Value::Null, Value::from(&*text)])),
        ]
    }

    fn accumulators() -> impl Strategy<Value = Accumulator> {
        let count = 0..i64::MAX;
        let number = any::<f64>().prop_map(Number::Double);
        let best = values().prop_map(|value| Some(value).filter(|value| !value.is_undefined()));
        let order = prop_oneof![Just(Ordering::Less), Just(Ordering::Greater)];
        prop_oneof![
            count.clone().prop_map(Accumulator::Count),
            count.clone().prop_map(Accumulator::CountIf),
            (prop::option::of((number, count)), any::<bool>())
                .prop_map(|(state, average)| Accumulator::Sum(state, average)),
            (prop::option::of(best), order).prop_map(|(state, order)| Accumulator::Extreme(state, order)),
            prop::collection::vec(values(), 0..3).prop_map(|values| Accumulator::List(values, None)),
            values().prop_map(|value| {
                let seen = HashSet::from([canonical_key(&Eval::from_constant(&value))]);
                Accumulator::List(vec![value], Some(seen))
            }),
        ]
    }

    fn rows() -> impl Strategy<Value = Rows> {
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..8), 0..4).prop_map(|texts| {
            let mut rows = Rows::behind(b"[".to_vec());
            texts.iter().for_each(|text| rows.push(text));
            rows
        })
    }

    fn groups() -> impl Strategy<Value = GroupPart> {
        let lists = (prop::collection::vec(values(), 0..3), prop::collection::vec(accumulators(), 0..4));
        (prop::collection::vec(any::<u8>(), 0..9), lists).prop_map(|(key, (keys, accumulators))| GroupPart {
            key,
            keys,
            accumulators,
        })
    }

    fn answers() -> impl Strategy<Value = ShareRows> {
        let lists = || prop::collection::vec(values(), 0..4);
        let places = prop::collection::vec(any::<(u64, u64)>(), 0..3);
        let groups = prop::collection::vec(groups(), 0..3);
        (any::<bool>(), rows(), lists(), places, rows(), lists(), groups).prop_map(
            |(partial, rows, keys, places, marks, carried, groups)| ShareRows {
                rows,
                partial,
                keys,
                places,
                marks,
                carried,
                groups,
            },
        )
    }

    fn encoded(answer: &ShareRows) -> Vec<u8> {
        let mut out = Vec::new();
        answer.encode(&mut out);
        out
    }

    proptest! {
        #[test]
        fn answers_read_back_as_they_were_written(answer in answers()) {
            let bytes = encoded(&answer);
            let read = ShareRows::decode(&bytes).expect("what was written reads");
            prop_assert_eq!(encoded(&read), bytes.clone());
            prop_assert_eq!(format!("{:?}", read.groups), format!("{:?}", answer.groups));
            prop_assert_eq!(read.rows.iter().collect::<Vec<_>>(), answer.rows.iter().collect::<Vec<_>>());
            for length in 0..bytes.len() {
                prop_assert!(ShareRows::decode(&bytes[..length]).is_none());
            }
        }

        #[test]
        fn what_was_damaged_is_nothing_or_another_answer(
            answer in answers(), at: prop::sample::Index, bit in 0..8u8,
        ) {
            let mut bytes = encoded(&answer);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            if let Some(read) = ShareRows::decode(&bytes) {
                // It can be handed out, whatever it is.
                let _ = read.hand_out(&mut |row| Ok(row.mark.len()));
            }
        }

        #[test]
        fn foreign_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = ShareRows::decode(&bytes);
        }
    }
}
