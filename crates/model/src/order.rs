//! One order and one equality over stored and owned values, in any combination.
//!
//! `undefined < min key < null < false < true < numbers < strings < arrays < objects < binaries < object ids < dates <
//! timestamps < regular expressions < code < max key`. Strings compare by their UTF-8 bytes, which is the order of code
//! points and of stored index keys. Arrays compare element by element, then by length. Objects compare as lists of
//! `(name, value)` sorted by name, so that the order of members does not matter and equal objects are neither less nor
//! greater.
//!
//! Decimals of 128 bits sort among the numbers by value, but equal none of them: of a decimal and a number of one value
//! the number is nearer to zero, and a NaN that is a number comes first. That is the order of index keys.
//! [`bson_order`] is MongoDB's, which orders types otherwise, sees no difference between a decimal and a number of one
//! value, and takes members as they come.

use crate::document::format::READ_DEPTH_MAX;
use crate::document::raw::{Kind, Raw};
use crate::extended::Extended;
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
    MinKey,
    Null,
    Bool,
    Number,
    /// Next to numbers, with which decimals are compared by value.
    Decimal,
    String,
    Array,
    Object,
    Binary,
    ObjectId,
    Date,
    Timestamp,
    Regex,
    Code,
    MaxKey,
}

impl Rank {
    #[inline]
    fn of(kind: Kind) -> Rank {
        match kind {
            Kind::Null => Rank::Null,
            Kind::Bool => Rank::Bool,
            Kind::Number => Rank::Number,
            Kind::String => Rank::String,
            Kind::Array => Rank::Array,
            Kind::Object => Rank::Object,
            Kind::ObjectId => Rank::ObjectId,
            Kind::Date => Rank::Date,
            Kind::Timestamp => Rank::Timestamp,
            Kind::Decimal => Rank::Decimal,
            Kind::Binary => Rank::Binary,
            Kind::Regex => Rank::Regex,
            Kind::Code => Rank::Code,
            Kind::MinKey => Rank::MinKey,
            Kind::MaxKey => Rank::MaxKey,
        }
    }

    /// Place in MongoDB's order of types.
    fn in_bson(self) -> u8 {
        match self {
            Rank::MinKey => 0,
            Rank::Undefined | Rank::Null => 1,
            Rank::Number | Rank::Decimal => 2,
            Rank::String => 3,
            Rank::Object => 4,
            Rank::Array => 5,
            Rank::Binary => 6,
            Rank::ObjectId => 7,
            Rank::Bool => 8,
            Rank::Date => 9,
            Rank::Timestamp => 10,
            Rank::Regex => 11,
            Rank::Code => 12,
            Rank::MaxKey => 13,
        }
    }
}

/// A value that can be compared: stored or owned. The readers of a kind are asked only for that kind.
pub(crate) trait Operand<'v>: Copy {
    fn rank(self) -> Rank;
    fn bool(self) -> bool;
    fn number(self) -> Number;
    fn bytes(self) -> &'v [u8];
    fn extended(self) -> Option<Extended<'v>>;
    fn elements(self) -> impl Iterator<Item = Self>;
    fn members(self) -> impl Iterator<Item = (&'v [u8], Self)>;
}

fn compare_within<'a, 'b, A: Operand<'a>, B: Operand<'b>>(a: A, b: B, depth: usize) -> Ordering {
    let rank = a.rank();
    let order = rank.cmp(&b.rank());
    if order != Ordering::Equal {
        return match (rank, b.rank()) {
            (Rank::Decimal, Rank::Number) => decimal_beside_number(a, b.number()),
            (Rank::Number, Rank::Decimal) => decimal_beside_number(b, a.number()).reverse(),
            _ => order,
        };
    }
    match rank {
        Rank::Undefined | Rank::Null => Ordering::Equal,
        Rank::Bool => a.bool().cmp(&b.bool()),
        Rank::Number => a.number().compare(b.number()),
        Rank::String => a.bytes().cmp(b.bytes()),
        // Only damaged bytes nest deeper; below, values no longer differ.
        Rank::Array | Rank::Object if depth >= READ_DEPTH_MAX => Ordering::Equal,
        Rank::Array => {
            let (mut left, mut right) = (a.elements(), b.elements());
            in_turn(|| (left.next(), right.next()), |a, b| compare_within(a, b, depth + 1))
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
        _ => compare_extended(a, b),
    }
}

/// Two values of one extended kind. Only damaged bytes are none; they sort first.
fn compare_extended<'a, 'b>(a: impl Operand<'a>, b: impl Operand<'b>) -> Ordering {
    match (a.extended(), b.extended()) {
        (Some(a), Some(b)) => a.compare_within_kind(b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// A decimal against a number, which are never equal.
#[cold]
fn decimal_beside_number<'a>(decimal: impl Operand<'a>, number: Number) -> Ordering {
    let Some(Extended::Decimal(decimal)) = decimal.extended() else { return Ordering::Greater };
    let farther_from_zero = if decimal.is_negative() { Ordering::Less } else { Ordering::Greater };
    decimal.compare_number(number).then(farther_from_zero)
}

/// MongoDB's total order of two stored values: `min key < null < numbers < strings < objects < arrays < binaries <
/// object ids < booleans < dates < timestamps < regular expressions < code < max key`. Objects compare member by member
/// as they come, each by the type of its value, its name, its value.
pub fn bson_order(a: Raw<'_>, b: Raw<'_>) -> Ordering {
    bson_order_within(a, b, 0)
}

fn bson_order_within<'a, 'b, A: Operand<'a>, B: Operand<'b>>(a: A, b: B, depth: usize) -> Ordering {
    let order = a.rank().in_bson().cmp(&b.rank().in_bson());
    if order != Ordering::Equal {
        return order;
    }
    match (a.rank(), b.rank()) {
        (Rank::Number, Rank::Decimal) => match b.extended() {
            Some(Extended::Decimal(decimal)) => decimal.compare_number(a.number()).reverse(),
            _ => Ordering::Less,
        },
        (Rank::Decimal, Rank::Number) => match a.extended() {
            Some(Extended::Decimal(decimal)) => decimal.compare_number(b.number()),
            _ => Ordering::Greater,
        },
        (Rank::Undefined | Rank::Null, _) => Ordering::Equal,
        (Rank::Bool, _) => a.bool().cmp(&b.bool()),
        (Rank::Number, _) => a.number().compare(b.number()),
        (Rank::String, _) => a.bytes().cmp(b.bytes()),
        (Rank::Array | Rank::Object, _) if depth >= READ_DEPTH_MAX => Ordering::Equal,
        (Rank::Array, _) => {
            let (mut left, mut right) = (a.elements(), b.elements());
            in_turn(|| (left.next(), right.next()), |a, b| bson_order_within(a, b, depth + 1))
        }
        (Rank::Object, _) => {
            let (mut left, mut right) = (a.members(), b.members());
            in_turn(
                || (left.next(), right.next()),
                |(a_key, a), (b_key, b)| {
                    let types = a.rank().in_bson().cmp(&b.rank().in_bson());
                    types.then_with(|| a_key.cmp(b_key)).then_with(|| bson_order_within(a, b, depth + 1))
                },
            )
        }
        _ => compare_extended(a, b),
    }
}

/// Compares two lists from the front; of one that begins like the other the shorter is less.
fn in_turn<A, B>(
    mut next: impl FnMut() -> (Option<A>, Option<B>),
    mut compare: impl FnMut(A, B) -> Ordering,
) -> Ordering {
    loop {
        match next() {
            (Some(a), Some(b)) => {
                let order = compare(a, b);
                if order != Ordering::Equal {
                    return order;
                }
            }
            (a, b) => return a.is_some().cmp(&b.is_some()),
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
        Rank::of(self.kind())
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

    fn extended(self) -> Option<Extended<'v>> {
        self.as_extended()
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
            Value::Extended(value) => Rank::of(value.get().kind()),
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

    fn extended(self) -> Option<Extended<'v>> {
        self.as_extended()
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
