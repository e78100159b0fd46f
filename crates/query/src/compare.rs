//! Equality, comparison, sort order and hashing keys of values under evaluation.
//!
//! Three relations that must not be confused: `equals` is deep and total (false across types), `compare` is the
//! language's `<`, undefined across types and for arrays and objects, and `order` is the total order of ORDER BY, MIN
//! and MAX. Values that only other APIs store are of types of their own in all three, a decimal too, although `order`
//! puts it among the numbers by value. `canonical` writes bytes that are equal exactly for equal values, for DISTINCT,
//! GROUP BY and sets.

use std::cmp::Ordering;

use orrery_model::{Number, equal_raw};

use crate::value::{Eval, Type};

/// Deep equality. Undefined equals only itself; callers that need `=` handle undefined before.
pub fn equals(left: &Eval<'_>, right: &Eval<'_>) -> bool {
    match (left, right) {
        (Eval::Null, Eval::Null) | (Eval::Undefined, Eval::Undefined) => true,
        (Eval::Bool(left), Eval::Bool(right)) => left == right,
        (Eval::Number(left), Eval::Number(right)) => {
            !is_nan(*left) && !is_nan(*right) && left.compare(*right) == Ordering::Equal
        }
        (Eval::String(left), Eval::String(right)) => left == right,
        (Eval::Raw(left), Eval::Raw(right)) => equal_raw(left.0, right.0),
        _ => match (left.kind(), right.kind()) {
            (Type::Array, Type::Array) => equal_arrays(left, right),
            (Type::Object, Type::Object) => equal_objects(left, right),
            (left_type, right_type) if left_type == right_type && left_type.is_extended() => {
                left.to_value().equals(&right.to_value())
            }
            _ => false,
        },
    }
}

fn equal_arrays(left: &Eval<'_>, right: &Eval<'_>) -> bool {
    if left.len() != right.len() {
        return false;
    }
    match (left.elements(), right.elements()) {
        (Some(left), Some(right)) => left.zip(right).all(|(left, right)| equals(&left, &right)),
        _ => false,
    }
}

fn equal_objects(left: &Eval<'_>, right: &Eval<'_>) -> bool {
    let Some(members) = left.members() else { return false };
    members.len() == right.len()
        && members.iter().all(|(name, value)| {
            let other = right.member(name);
            !other.is_undefined() && equals(value, &other)
        })
}

/// The language's `<`, `=`, `>` between two values of one type; `None` where that is undefined.
pub fn compare(left: &Eval<'_>, right: &Eval<'_>) -> Option<Ordering> {
    match (left, right) {
        (Eval::Null, Eval::Null) => Some(Ordering::Equal),
        (Eval::Bool(left), Eval::Bool(right)) => Some(left.cmp(right)),
        (Eval::Number(left), Eval::Number(right)) => {
            if is_nan(*left) || is_nan(*right) {
                None
            } else {
                Some(left.compare(*right))
            }
        }
        (Eval::String(left), Eval::String(right)) => Some(compare_strings(left, right)),
        _ if left.kind() == right.kind() && left.kind().is_extended() => {
            Some(left.to_value().compare(&right.to_value()))
        }
        _ => None,
    }
}

/// Strings sort by code unit. UTF-8 bytes sort by code point, which differs only where surrogates are
/// compared with the private characters above them.
pub fn compare_strings(left: &str, right: &str) -> Ordering {
    if left.is_ascii() || right.is_ascii() {
        return left.cmp(right);
    }
    left.encode_utf16().cmp(right.encode_utf16())
}

/// The total order: undefined, null, booleans, numbers, strings, arrays, objects; and what only other APIs store, as
/// `Type` lists it.
pub fn order(left: &Eval<'_>, right: &Eval<'_>) -> Ordering {
    let by_type = left.kind().cmp(&right.kind());
    if by_type != Ordering::Equal {
        return match (left.kind(), right.kind()) {
            (Type::Number, Type::Decimal) | (Type::Decimal, Type::Number) => {
                left.to_value().compare(&right.to_value())
            }
            _ => by_type,
        };
    }
    match (left, right) {
        (Eval::Bool(left), Eval::Bool(right)) => left.cmp(right),
        (Eval::Number(left), Eval::Number(right)) => left.compare(*right),
        (Eval::String(left), Eval::String(right)) => left.cmp(right),
        _ if left.is_undefined() => Ordering::Equal,
        (Eval::Null, Eval::Null) => Ordering::Equal,
        _ => left.to_value().compare(&right.to_value()),
    }
}

fn is_nan(number: Number) -> bool {
    matches!(number, Number::Double(value) if value.is_nan())
}

/// Appends bytes that are the same for equal values and different for different ones.
pub fn canonical(value: &Eval<'_>, out: &mut Vec<u8>) {
    let kind = value.kind();
    out.push(kind as u8);
    match value {
        Eval::Undefined | Eval::Null => {}
        Eval::Bool(value) => out.push(u8::from(*value)),
        Eval::Number(number) => match number.as_i64() {
            Some(integer) => {
                out.push(0);
                out.extend_from_slice(&integer.to_le_bytes());
            }
            None => {
                out.push(1);
                out.extend_from_slice(&number.as_f64().to_bits().to_le_bytes());
            }
        },
        Eval::String(text) => canonical_text(text, out),
        _ if kind.is_extended() => {
            let mut identity = Vec::new();
            let value = value.to_value();
            value.as_extended().into_iter().for_each(|value| value.write_identity(&mut identity));
            out.extend_from_slice(&(identity.len() as u32).to_le_bytes());
            out.extend_from_slice(&identity);
        }
        _ => {
            out.extend_from_slice(&(value.len() as u32).to_le_bytes());
            if let Some(elements) = value.elements() {
                elements.for_each(|element| canonical(&element, out));
            } else if let Some(mut members) = value.members() {
                members.sort_by(|(left, _), (right, _)| left.cmp(right));
                for (name, member) in &members {
                    canonical_text(name, out);
                    canonical(member, out);
                }
            }
        }
    }
}

fn canonical_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// The canonical bytes of one value.
pub fn canonical_key(value: &Eval<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    canonical(value, &mut out);
    out
}
