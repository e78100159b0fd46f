//! Owned values, with undefined: what literals, parameters and computed results are.
//!
//! `Undefined` is what a missing property evaluates to. It is not null, it cannot be stored, and inside arrays and
//! objects it is left out when they are printed or stored.

use crate::document::format::READ_DEPTH_MAX;
use crate::document::raw::{Kind, Raw};
use crate::document::writer::DocWriter;
use crate::extended::{Extended, ExtendedValue};
use crate::number::{Number, NumberStyle};
use std::cmp::Ordering;

/// Owned value or undefined. A number does not say how wide it was stored; [`Raw`] does.
#[derive(Clone, Debug, Default)]
pub enum Value {
    #[default]
    Undefined,
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Value>),
    /// Members in the order of insertion; names are unique.
    Object(Vec<(String, Value)>),
    /// What JSON has no word for.
    Extended(ExtendedValue),
}

impl Value {
    pub(crate) fn from_raw(raw: Raw<'_>, depth: usize) -> Value {
        match raw.kind() {
            Kind::Bool => raw.as_bool().map_or(Value::Null, Value::Bool),
            Kind::Number => raw.as_number().map_or(Value::Null, Value::Number),
            Kind::String => raw.as_str().map_or(Value::Null, Value::from),
            Kind::Array if depth < READ_DEPTH_MAX => {
                Value::Array(raw.elements().map(|element| Value::from_raw(element, depth + 1)).collect())
            }
            Kind::Object if depth < READ_DEPTH_MAX => Value::Object(
                raw.members()
                    .map(|(key, value)| (key.to_owned(), Value::from_raw(value, depth + 1)))
                    .collect(),
            ),
            _ => raw.as_extended().map_or(Value::Null, Value::from),
        }
    }

    /// The kind of a defined value.
    pub fn kind(&self) -> Option<Kind> {
        Some(match self {
            Value::Undefined => return None,
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Number(_) => Kind::Number,
            Value::String(_) => Kind::String,
            Value::Array(_) => Kind::Array,
            Value::Object(_) => Kind::Object,
            Value::Extended(value) => value.get().kind(),
        })
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined)
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(value) = self { Some(*value) } else { None }
    }

    pub fn as_number(&self) -> Option<Number> {
        if let Value::Number(value) = self { Some(*value) } else { None }
    }

    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(value) = self { Some(value) } else { None }
    }

    pub fn as_extended(&self) -> Option<Extended<'_>> {
        if let Value::Extended(value) = self { Some(value.get()) } else { None }
    }

    pub fn as_array(&self) -> Option<&[Value]> {
        if let Value::Array(elements) = self { Some(elements) } else { None }
    }

    pub fn as_object(&self) -> Option<&[(String, Value)]> {
        if let Value::Object(members) = self { Some(members) } else { None }
    }

    /// A member of an object.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// An element of an array.
    pub fn at(&self, index: usize) -> Option<&Value> {
        self.as_array()?.get(index)
    }

    /// Appends the value as JSON text. Undefined itself prints as null; callers that mean "nothing" ask first.
    pub fn write_json(&self, out: &mut Vec<u8>, style: NumberStyle) {
        crate::json::text::write_value(self, out, style);
    }

    /// The value as a stored document.
    pub fn to_document(&self) -> Vec<u8> {
        let mut writer = DocWriter::new();
        writer.value(self);
        writer.finish()
    }

    /// Total order: undefined < null < false < true < numbers < strings < arrays < objects, and the rest of what
    /// `order` says.
    pub fn compare(&self, other: &Value) -> Ordering {
        crate::order::compare(self, other)
    }

    /// Deep equality: numbers by value, objects whatever the order of their members.
    pub fn equals(&self, other: &Value) -> bool {
        crate::order::equal(self, other)
    }
}

/// The same as [`Value::equals`].
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.equals(other)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Number(Number::Int(value))
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::Number(Number::Int(value.into()))
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Number(Number::from_u64(value))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Number(Number::Double(value))
    }
}

impl From<Number> for Value {
    fn from(value: Number) -> Value {
        Value::Number(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::String(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::String(value)
    }
}

impl From<Extended<'_>> for Value {
    fn from(value: Extended<'_>) -> Value {
        Value::Extended(value.into())
    }
}

impl From<Vec<Value>> for Value {
    fn from(elements: Vec<Value>) -> Value {
        Value::Array(elements)
    }
}

impl From<Raw<'_>> for Value {
    fn from(raw: Raw<'_>) -> Value {
        raw.to_value()
    }
}

/// Absent is undefined.
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Undefined, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: &Value) -> String {
        let mut out = Vec::new();
        value.write_json(&mut out, NumberStyle::Query);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn undefined_is_not_null_and_is_left_out() {
        assert!(!Value::Undefined.equals(&Value::Null));
        let value = Value::Object(vec![
            ("a".into(), Value::Undefined),
            ("b".into(), Value::Array(vec![Value::Undefined, Value::Null, 1.into()])),
        ]);
        assert_eq!(json(&value), r#"{"b":[null,1]}"#);
        let document = value.to_document();
        assert_eq!(json(&Raw::document(&document).unwrap().to_value()), r#"{"b":[null,1]}"#);
        assert!(Value::from(None::<i64>).is_undefined());
    }
}
