//! MongoDB's order and equality of values.
//!
//! [`compare`] is the total order that sorts, `$expr` and indexes use. [`equal`] is its equality: `1`, `1.0` and a
//! decimal `1.00` are one value, `-0.0` is `0`, NaN equals itself, documents are equal only with their members in one
//! order. [`identity`] gives bytes that are the same exactly for equal values, for hash tables.

use std::cmp::Ordering;

use orrery_model::{Extended, Magnitude, Number};

use crate::codec::DEPTH_MAX;
pub use crate::collation::Collation;
use crate::value::{Bson, Document, Kind};
use crate::value_ref::{NumberRef, ValueRef};

/// Where a type stands in the order of types. Types of one rank compare by value.
pub fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::MinKey => 0,
        Kind::Undefined => 2,
        Kind::Null => 5,
        Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Decimal => 10,
        Kind::String | Kind::Symbol => 15,
        Kind::Document => 20,
        Kind::Array => 25,
        Kind::Binary => 30,
        Kind::ObjectId => 35,
        Kind::Bool => 40,
        Kind::Date => 45,
        Kind::Timestamp => 47,
        Kind::Regex => 50,
        Kind::DbPointer => 55,
        Kind::Code => 60,
        Kind::CodeWithScope => 65,
        Kind::MaxKey => 127,
    }
}

/// The total order: min key, null and undefined and missing, numbers, texts, documents, arrays, binaries, object ids,
/// booleans, dates, timestamps, regular expressions, code, max key.
pub fn compare(a: ValueRef<'_>, b: ValueRef<'_>, collation: Option<&Collation>) -> Ordering {
    compare_within(a, b, collation, 0)
}

/// Whether two values are equal in that order.
pub fn equal(a: ValueRef<'_>, b: ValueRef<'_>, collation: Option<&Collation>) -> bool {
    compare(a, b, collation) == Ordering::Equal
}

impl PartialEq for Bson {
    fn eq(&self, other: &Bson) -> bool {
        equal(self.into(), other.into(), None)
    }
}

impl PartialEq for Document {
    fn eq(&self, other: &Document) -> bool {
        equal(self.into(), other.into(), None)
    }
}

impl NumberRef {
    /// Numeric order over all widths, without rounding; NaN below all.
    pub fn compare(self, other: NumberRef) -> Ordering {
        match (self, other) {
            (NumberRef::Decimal(a), NumberRef::Decimal(b)) => a.compare(b),
            (NumberRef::Decimal(a), b) => a.compare_number(b.binary()),
            (a, NumberRef::Decimal(b)) => b.compare_number(a.binary()).reverse(),
            (NumberRef::Int32(a), NumberRef::Int32(b)) => a.cmp(&b),
            (a, b) => a.binary().compare(b.binary()),
        }
    }

    /// The number of one that is no decimal.
    fn binary(self) -> Number {
        match self {
            NumberRef::Int32(value) => Number::Int(value.into()),
            NumberRef::Int64(value) => Number::Int(value),
            NumberRef::Double(value) => Number::Double(value),
            NumberRef::Decimal(value) => Number::Double(value.toward_zero()),
        }
    }
}

/// Whether a number is none.
pub(crate) fn is_not_a_number(number: NumberRef) -> bool {
    match number {
        NumberRef::Double(value) => value.is_nan(),
        NumberRef::Decimal(value) => value.is_nan(),
        _ => false,
    }
}

fn compare_within(a: ValueRef<'_>, b: ValueRef<'_>, collation: Option<&Collation>, depth: usize) -> Ordering {
    let kind = a.kind();
    let order = rank(kind).cmp(&rank(b.kind()));
    if order != Ordering::Equal {
        return order;
    }
    match kind {
        Kind::MinKey | Kind::Undefined | Kind::Null | Kind::MaxKey => Ordering::Equal,
        Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Decimal => match (a.as_number(), b.as_number()) {
            (Some(a), Some(b)) => a.compare(b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        },
        Kind::String | Kind::Symbol => match collation {
            None => a.text_bytes().cmp(b.text_bytes()),
            Some(collation) => {
                collation.compare(a.as_str().unwrap_or_default(), b.as_str().unwrap_or_default())
            }
        },
        Kind::Bool => a.as_bool().cmp(&b.as_bool()),
        // Nothing that was read nests deeper; below, values no longer differ.
        Kind::Document | Kind::Array if depth > 2 * DEPTH_MAX => Ordering::Equal,
        Kind::Document => compare_documents(a, b, collation, depth),
        Kind::Array => {
            let (mut left, mut right) = (a.elements(), b.elements());
            loop {
                match (left.next(), right.next()) {
                    (None, None) => return Ordering::Equal,
                    (None, Some(_)) => return Ordering::Less,
                    (Some(_), None) => return Ordering::Greater,
                    (Some(a), Some(b)) => match compare_within(a, b, collation, depth + 1) {
                        Ordering::Equal => {}
                        order => return order,
                    },
                }
            }
        }
        Kind::DbPointer | Kind::CodeWithScope => compare_rare(a, b, collation, depth),
        _ => match (a.as_extended(), b.as_extended()) {
            (Some(a), Some(b)) => a.compare_within_kind(b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        },
    }
}

/// Member by member as they come: by the type of the value, the name, the value.
fn compare_documents(
    a: ValueRef<'_>,
    b: ValueRef<'_>,
    collation: Option<&Collation>,
    depth: usize,
) -> Ordering {
    let (mut left, mut right) = (a.members(), b.members());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some((a_name, a)), Some((b_name, b))) => {
                let order = rank(a.kind())
                    .cmp(&rank(b.kind()))
                    .then_with(|| a_name.cmp(b_name))
                    .then_with(|| compare_within(a, b, collation, depth + 1));
                if order != Ordering::Equal {
                    return order;
                }
            }
        }
    }
}

fn compare_rare(a: ValueRef<'_>, b: ValueRef<'_>, collation: Option<&Collation>, depth: usize) -> Ordering {
    match (a, b) {
        (ValueRef::Owned(Bson::DbPointer(a)), ValueRef::Owned(Bson::DbPointer(b))) => {
            (a.0.len(), &a.0, a.1).cmp(&(b.0.len(), &b.0, b.1))
        }
        (ValueRef::Owned(Bson::CodeWithScope(a)), ValueRef::Owned(Bson::CodeWithScope(b))) => {
            a.0.cmp(&b.0).then_with(|| compare_within((&a.1).into(), (&b.1).into(), collation, depth + 1))
        }
        _ => Ordering::Equal,
    }
}

/// Appends bytes that are the same exactly for values that are equal under the collation. They say where they end, so
/// several values may follow each other.
pub fn identity(value: ValueRef<'_>, collation: Option<&Collation>, out: &mut Vec<u8>) {
    identity_within(value, collation, out, 0);
}

fn identity_within(value: ValueRef<'_>, collation: Option<&Collation>, out: &mut Vec<u8>, depth: usize) {
    let kind = value.kind();
    out.push(rank(kind));
    match kind {
        Kind::MinKey | Kind::Undefined | Kind::Null | Kind::MaxKey => {}
        Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Decimal => {
            if let Some(number) = value.as_number() {
                number_identity(number, out);
            }
        }
        Kind::String | Kind::Symbol => match collation {
            None => sized(value.text_bytes(), out),
            Some(collation) => sized(&collation.key(value.as_str().unwrap_or_default()), out),
        },
        Kind::Bool => out.push(u8::from(value.as_bool() == Some(true))),
        Kind::Document | Kind::Array if depth > 2 * DEPTH_MAX => {}
        Kind::Document => {
            for (name, member) in value.members() {
                out.push(1);
                sized(name.as_bytes(), out);
                identity_within(member, collation, out, depth + 1);
            }
            out.push(0);
        }
        Kind::Array => {
            for element in value.elements() {
                out.push(1);
                identity_within(element, collation, out, depth + 1);
            }
            out.push(0);
        }
        Kind::DbPointer | Kind::CodeWithScope => match value {
            ValueRef::Owned(Bson::DbPointer(pointer)) => {
                sized(pointer.0.as_bytes(), out);
                out.extend_from_slice(&pointer.1);
            }
            ValueRef::Owned(Bson::CodeWithScope(code)) => {
                sized(code.0.as_bytes(), out);
                identity_within((&code.1).into(), collation, out, depth + 1);
            }
            _ => {}
        },
        _ => match value.as_extended() {
            Some(Extended::ObjectId(id)) => out.extend_from_slice(&id),
            Some(Extended::Date(date)) => out.extend_from_slice(&date.to_le_bytes()),
            Some(Extended::Timestamp { seconds, increment }) => {
                out.extend_from_slice(&seconds.to_le_bytes());
                out.extend_from_slice(&increment.to_le_bytes());
            }
            Some(Extended::Binary { subtype, bytes }) => {
                out.push(subtype);
                sized(bytes, out);
            }
            Some(Extended::Regex { pattern, options }) => {
                sized(pattern.as_bytes(), out);
                sized(options.as_bytes(), out);
            }
            Some(Extended::Code(text)) => sized(text.as_bytes(), out),
            _ => {}
        },
    }
}

fn sized(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Whole numbers that fit are integers, what is exactly a double is one, and only the rest is a decimal.
fn number_identity(number: NumberRef, out: &mut Vec<u8>) {
    let double = match number {
        NumberRef::Int32(value) => return integer_identity(value.into(), out),
        NumberRef::Int64(value) => return integer_identity(value, out),
        NumberRef::Double(value) => value,
        NumberRef::Decimal(value) => {
            if let Some(whole) = value.whole_part() {
                let whole = i128::from(whole) * if value.is_negative() { -1 } else { 1 };
                if let Ok(whole) = i64::try_from(whole)
                    && value.compare_number(Number::Int(whole)) == Ordering::Equal
                {
                    return integer_identity(whole, out);
                }
            }
            let double = value.toward_zero();
            if value.compare_number(Number::Double(double)) != Ordering::Equal {
                out.push(3 + u8::from(value.is_negative()));
                if let Magnitude::Finite { power, digits } = value.magnitude() {
                    out.extend_from_slice(&power.to_le_bytes());
                    out.extend_from_slice(&digits.to_le_bytes());
                }
                return;
            }
            double
        }
    };
    match Number::Double(double).as_i64() {
        Some(whole) => integer_identity(whole, out),
        None if double.is_nan() => out.push(0),
        None => {
            out.push(2);
            out.extend_from_slice(&double.to_le_bytes());
        }
    }
}

fn integer_identity(value: i64, out: &mut Vec<u8>) {
    out.push(1);
    out.extend_from_slice(&value.to_le_bytes());
}
