//! One order and one equality over stored and owned values, in any combination.
//!
//! `undefined < null < false < true < numbers < strings < arrays < objects`. Strings compare by their UTF-8 bytes, which is the order
//! of code points and of stored index keys. Arrays compare element by element, then by length. Objects compare as lists of
//! `(name, value)` sorted by name, so that the order of members does not matter and equal objects are neither less nor greater.

use crate::document::format::READ_DEPTH_MAX;
use crate::document::raw::{Kind, Raw};
use crate::number::Number;
use crate::value::Value;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// Compares two stored values.
pub fn compare_raw(a: Raw<'_>, b: Raw<'_>) -> Ordering {
    compare(a, b)
}

/// Deep equality of two stored values.
pub fn equal_raw(a: Raw<'_>, b: Raw<'_>) -> bool {
    // Equal bytes are equal values, so the common case needs no walk.
    a.same_bytes(b) || equal(a, b)
}

impl Raw<'_> {
    /// Order against an owned value; everything stored is above undefined.
    pub fn compare_value(self, other: &Value) -> Ordering {
        compare(self, other)
    }

    /// Equality with an owned value.
    pub fn equals_value(self, other: &Value) -> bool {
        equal(self, other)
    }
}

pub(crate) fn compare<'a, 'b>(a: impl Operand<'a>, b: impl Operand<'b>) -> Ordering {
    compare_within(a, b, 0)
}

pub(crate) fn equal<'a, 'b>(a: impl Operand<'a>, b: impl Operand<'b>) -> bool {
    compare(a, b) == Ordering::Equal
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Undefined,
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// A value that can be compared: stored or owned. The readers of a kind are asked only for that kind.
pub(crate) trait Operand<'v>: Copy {
    fn rank(self) -> Rank;
    fn bool(self) -> bool;
    fn number(self) -> Number;
    fn bytes(self) -> &'v [u8];
    fn elements(self) -> impl Iterator<Item = Self>;
    fn members(self) -> impl Iterator<Item = (&'v [u8], Self)>;
}

fn compare_within<'a, 'b, A: Operand<'a>, B: Operand<'b>>(a: A, b: B, depth: usize) -> Ordering {
    let rank = a.rank();
    let order = rank.cmp(&b.rank());
    if order != Ordering::Equal {
        return order;
    }
    match rank {
        Rank::Undefined | Rank::Null => Ordering::Equal,
        Rank::Bool => a.bool().cmp(&b.bool()),
        Rank::Number => a.number().compare(b.number()),
        Rank::String => a.bytes().cmp(b.bytes()),
        // Only damaged bytes nest deeper; below, values no longer differ.
        _ if depth >= READ_DEPTH_MAX => Ordering::Equal,
        Rank::Array => {
            let (mut left, mut right) = (a.elements(), b.elements());
            loop {
                match (left.next(), right.next()) {
                    (Some(a), Some(b)) => {
                        let order = compare_within(a, b, depth + 1);
                        if order != Ordering::Equal {
                            return order;
                        }
                    }
                    (a, b) => return a.is_some().cmp(&b.is_some()),
                }
            }
        }
        Rank::Object => {
            let (left, right) = (sorted_members(a), sorted_members(b));
            for ((a_key, a), (b_key, b)) in left.iter().zip(&right) {
                let order = a_key.cmp(b_key).then_with(|| compare_within(*a, *b, depth + 1));
                if order != Ordering::Equal {
                    return order;
                }
            }
            left.len().cmp(&right.len())
        }
    }
}

fn sorted_members<'v, V: Operand<'v>>(value: V) -> SmallVec<[(&'v [u8], V); 8]> {
    let mut members: SmallVec<[(&[u8], V); 8]> = value.members().collect();
    members.sort_by(|a, b| a.0.cmp(b.0));
    members
}

impl<'v> Operand<'v> for Raw<'v> {
    #[inline]
    fn rank(self) -> Rank {
        match self.kind() {
            Kind::Null => Rank::Null,
            Kind::Bool => Rank::Bool,
            Kind::Number => Rank::Number,
            Kind::String => Rank::String,
            Kind::Array => Rank::Array,
            Kind::Object => Rank::Object,
        }
    }

    fn bool(self) -> bool {
        self.as_bool().unwrap_or_default()
    }

    fn number(self) -> Number {
        self.as_number().unwrap_or(Number::Int(0))
    }

    fn bytes(self) -> &'v [u8] {
        self.string_bytes().unwrap_or_default()
    }

    fn elements(self) -> impl Iterator<Item = Self> {
        Raw::elements(self)
    }

    fn members(self) -> impl Iterator<Item = (&'v [u8], Self)> {
        self.entries().map(|entry| (entry.key, entry.value()))
    }
}

impl<'v> Operand<'v> for &'v Value {
    fn rank(self) -> Rank {
        match self {
            Value::Undefined => Rank::Undefined,
            Value::Null => Rank::Null,
            Value::Bool(_) => Rank::Bool,
            Value::Number(_) => Rank::Number,
            Value::String(_) => Rank::String,
            Value::Array(_) => Rank::Array,
            Value::Object(_) => Rank::Object,
        }
    }

    fn bool(self) -> bool {
        self.as_bool().unwrap_or_default()
    }

    fn number(self) -> Number {
        self.as_number().unwrap_or(Number::Int(0))
    }

    fn bytes(self) -> &'v [u8] {
        self.as_str().unwrap_or_default().as_bytes()
    }

    fn elements(self) -> impl Iterator<Item = Self> {
        self.as_array().unwrap_or_default().iter()
    }

    // Undefined members are not there, as in the stored form.
    fn members(self) -> impl Iterator<Item = (&'v [u8], Self)> {
        let members = self.as_object().unwrap_or_default().iter();
        members.filter(|(_, value)| !value.is_undefined()).map(|(key, value)| (key.as_bytes(), value))
    }
}
