//! `$inc`, `$mul`, `$bit`: arithmetic that keeps widths and refuses to leave 64 bits.

use orrery_model::Decimal128;

use crate::decimal;
use crate::error::{Error, Result};
use crate::update::apply::at_document;
use crate::value::{Bson, Document};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Multiply,
}

impl Arithmetic {
    fn name(self) -> &'static str {
        match self {
            Arithmetic::Add => "$inc",
            Arithmetic::Multiply => "$mul",
        }
    }

    /// What becomes of a member; `None` is one that is not there.
    pub fn apply(self, old: Option<&Bson>, operand: &Bson, root: &Document, path: &str) -> Result<Bson> {
        let Some(old) = old else {
            return Ok(match (self, operand) {
                (Arithmetic::Add, _) => operand.clone(),
                (_, Bson::Int64(_)) => Bson::Int64(0),
                (_, Bson::Double(_)) => Bson::Double(0.0),
                (_, Bson::Decimal(_)) => Bson::Decimal(decimal::zero()),
                _ => Bson::Int32(0),
            });
        };
        if !old.is_number() {
            return Err(Error::type_mismatch(format!(
                "Cannot apply {} to a value of non-numeric type. {} has the field '{path}' of non-numeric type {}",
                self.name(),
                at_document(root),
                old.kind().name()
            )));
        }
        self.combine(old, operand).ok_or_else(|| {
            Error::bad_value(format!(
                "Failed to apply {} operations to current value of '{path}' for document {}",
                self.name(),
                at_document(root)
            ))
        })
    }

    fn combine(self, a: &Bson, b: &Bson) -> Option<Bson> {
        if let (Bson::Decimal(_), _) | (_, Bson::Decimal(_)) = (a, b) {
            let (a, b) = (to_decimal(a), to_decimal(b));
            return Some(Bson::Decimal(match self {
                Arithmetic::Add => decimal::add(a, b),
                Arithmetic::Multiply => decimal::multiply(a, b),
            }));
        }
        if let (Bson::Double(_), _) | (_, Bson::Double(_)) = (a, b) {
            let (a, b) = (to_double(a), to_double(b));
            return Some(Bson::Double(match self {
                Arithmetic::Add => a + b,
                Arithmetic::Multiply => a * b,
            }));
        }
        let (wide_a, wide_b) = (a.as_i64()?, b.as_i64()?);
        let sum = match self {
            Arithmetic::Add => wide_a.checked_add(wide_b),
            Arithmetic::Multiply => wide_a.checked_mul(wide_b),
        }?;
        Some(match (a, b, i32::try_from(sum)) {
            (Bson::Int32(_), Bson::Int32(_), Ok(sum)) => Bson::Int32(sum),
            _ => Bson::Int64(sum),
        })
    }
}

fn to_double(value: &Bson) -> f64 {
    match value {
        Bson::Double(value) => *value,
        Bson::Int32(value) => f64::from(*value),
        Bson::Int64(value) => *value as f64,
        _ => f64::NAN,
    }
}

fn to_decimal(value: &Bson) -> Decimal128 {
    match value {
        Bson::Decimal(value) => *value,
        Bson::Double(value) => decimal::of_f64(*value),
        _ => decimal::of_i64(value.as_i64().unwrap_or_default()),
    }
}

#[derive(Clone, Copy, Debug)]
pub enum BitOperation {
    And,
    Or,
    Xor,
}

/// Bits of whole numbers, one operation after the other.
pub fn bits(
    old: Option<&Bson>,
    operations: &[(BitOperation, Bson)],
    root: &Document,
    path: &str,
) -> Result<Bson> {
    let mut value = match old {
        None => Bson::Int32(0),
        Some(value @ (Bson::Int32(_) | Bson::Int64(_))) => value.clone(),
        Some(other) => {
            return Err(Error::bad_value(format!(
                "Cannot apply $bit to a value of non-integral type. {} has the field {path} of non-integer type {}",
                at_document(root),
                other.kind().name()
            )));
        }
    };
    for (operation, operand) in operations {
        let (Some(a), Some(b)) = (value.as_i64(), operand.as_i64()) else { continue };
        let bits = match operation {
            BitOperation::And => a & b,
            BitOperation::Or => a | b,
            BitOperation::Xor => a ^ b,
        };
        value = match (&value, operand) {
            (Bson::Int32(_), Bson::Int32(_)) => Bson::Int32(bits as i32),
            _ => Bson::Int64(bits),
        };
    }
    Ok(value)
}
