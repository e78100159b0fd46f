//! One order and one equality over stored and owned values, in any combination.
//!
//! Types sort as [`Type`] lists them: `undefined < min key < null < false < true < numbers < strings < arrays < objects
//! < binaries < object ids < dates < timestamps < regular expressions < code < max key`. Strings compare by their UTF-8
//! bytes, which is the order of code points and of stored index keys. Arrays compare element by element, then by
//! length. Objects compare as lists of `(name, value)` sorted by name, so that the order of members does not matter and
//! equal objects are neither less nor greater.
//!
//! Decimals of 128 bits sort among the numbers by value, but equal none of them: of a decimal and a number of one value
//! the number is nearer to zero, and a NaN that is a number comes first. That is the order of index keys.
//! [`bson_order`] is MongoDB's, which orders types otherwise, sees no difference between a decimal and a number of one
//! value, and takes members as they come.

use crate::document::format::READ_DEPTH_MAX;
use crate::document::raw::Raw;
use crate::extended::Extended;
use crate::number::Number;
use crate::type_order::Type;
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

/// A value that can be compared: stored or owned. The readers of a kind are asked only for that kind.
pub(crate) trait Operand<'v>: Copy {
    fn type_of(self) -> Type;
    fn bool(self) -> bool;
    fn number(self) -> Number;
    fn bytes(self) -> &'v [u8];
    fn extended(self) -> Option<Extended<'v>>;
    fn elements(self) -> impl Iterator<Item = Self>;
    fn members(self) -> impl Iterator<Item = (&'v [u8], Self)>;
}

fn compare_within<'a, 'b, A: Operand<'a>, B: Operand<'b>>(a: A, b: B, depth: usize) -> Ordering {
    let type_of_a = a.type_of();
    let order = type_of_a.cmp(&b.type_of());
    if order != Ordering::Equal {
        return match (type_of_a, b.type_of()) {
            (Type::Decimal, Type::Number) => decimal_beside_number(a, b.number()),
            (Type::Number, Type::Decimal) => decimal_beside_number(b, a.number()).reverse(),
            _ => order,
        };
    }
    match type_of_a {
        Type::Undefined | Type::Null => Ordering::Equal,
        Type::Bool => a.bool().cmp(&b.bool()),
        Type::Number => a.number().compare(b.number()),
        Type::String => a.bytes().cmp(b.bytes()),
        // Only damaged bytes nest deeper; below, values no longer differ.
        Type::Array | Type::Object if depth >= READ_DEPTH_MAX => Ordering::Equal,
        Type::Array => {
            let (mut left, mut right) = (a.elements(), b.elements());
            in_turn(|| (left.next(), right.next()), |a, b| compare_within(a, b, depth + 1))
        }
        Type::Object => {
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
    let order = a.type_of().in_bson().cmp(&b.type_of().in_bson());
    if order != Ordering::Equal {
        return order;
    }
    match (a.type_of(), b.type_of()) {
        (Type::Number, Type::Decimal) => match b.extended() {
            Some(Extended::Decimal(decimal)) => decimal.compare_number(a.number()).reverse(),
            _ => Ordering::Less,
        },
        (Type::Decimal, Type::Number) => match a.extended() {
            Some(Extended::Decimal(decimal)) => decimal.compare_number(b.number()),
            _ => Ordering::Greater,
        },
        (Type::Undefined | Type::Null, _) => Ordering::Equal,
        (Type::Bool, _) => a.bool().cmp(&b.bool()),
        (Type::Number, _) => a.number().compare(b.number()),
        (Type::String, _) => a.bytes().cmp(b.bytes()),
        (Type::Array | Type::Object, _) if depth >= READ_DEPTH_MAX => Ordering::Equal,
        (Type::Array, _) => {
            let (mut left, mut right) = (a.elements(), b.elements());
            in_turn(|| (left.next(), right.next()), |a, b| bson_order_within(a, b, depth + 1))
        }
        (Type::Object, _) => {
            let (mut left, mut right) = (a.members(), b.members());
            in_turn(
                || (left.next(), right.next()),
                |(a_key, a), (b_key, b)| {
                    let types = a.type_of().in_bson().cmp(&b.type_of().in_bson());
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
    fn type_of(self) -> Type {
        Type::of(self.kind())
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
    fn type_of(self) -> Type {
        match self {
            Value::Undefined => Type::Undefined,
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Number(_) => Type::Number,
            Value::String(_) => Type::String,
            Value::Array(_) => Type::Array,
            Value::Object(_) => Type::Object,
            Value::Extended(value) => Type::of(value.get().kind()),
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
