//! Sums, products and their relatives over all numbers of the language.
//!
//! The wider type of the two decides; one floating-point operand makes the result floating. What overflows is lifted
//! to the next wider type; a long that overflows is an error.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::Zero as _;

use crate::compare::{compare, decimal};
use crate::error::{Error, Result};
use crate::value::{Operator, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sum {
    Add,
    Sub,
    Mul,
    Div,
}

/// One operation on two numbers.
pub(crate) fn apply(op: Sum, a: &Value, b: &Value) -> Result<Value> {
    if !a.is_number() || !b.is_number() {
        let wrong = if a.is_number() { b } else { a };
        return Err(Error::runtime(format!(
            "{} cannot be cast to java.lang.Number",
            crate::text::type_name(wrong)
        )));
    }
    let any = |kind: fn(&Value) -> bool| kind(a) || kind(b);
    let big = any(|v| matches!(v, Value::BigInt(_)));
    let floating = any(|v| matches!(v, Value::Float(_) | Value::Double(_)));
    let finite = |v: &Value| match v {
        Value::Float(n) => n.is_finite(),
        Value::Double(n) => n.is_finite(),
        _ => true,
    };
    if (any(|v| matches!(v, Value::BigDecimal(_))) || (big && floating)) && finite(a) && finite(b) {
        let (Some(x), Some(y)) = (decimal(a), decimal(b)) else { return Err(overflow()) };
        let result = match op {
            Sum::Add => x.add(&y),
            Sum::Sub => x.sub(&y),
            Sum::Mul => x.mul(&y),
            Sum::Div => x.div(&y).ok_or_else(division_by_zero)?,
        };
        return Ok(Value::BigDecimal(Arc::new(result)));
    }
    if floating {
        let (x, y) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
        let result = match op {
            Sum::Add => x + y,
            Sum::Sub => x - y,
            Sum::Mul => x * y,
            Sum::Div => x / y,
        };
        if any(|v| matches!(v, Value::Double(_) | Value::Long(_))) {
            return Ok(Value::Double(result));
        }
        let (x, y) = (x as f32, y as f32);
        let narrow = match op {
            Sum::Add => x + y,
            Sum::Sub => x - y,
            Sum::Mul => x * y,
            Sum::Div => x / y,
        };
        let overflowed = narrow.is_infinite() && result.is_finite();
        return Ok(if overflowed { Value::Double(result) } else { Value::Float(narrow) });
    }
    if big {
        let whole = |v: &Value| match v {
            Value::BigInt(n) => BigInt::clone(n),
            other => BigInt::from(other.as_i64().unwrap_or_default()),
        };
        let (x, y) = (whole(a), whole(b));
        return Ok(Value::BigInt(Arc::new(match op {
            Sum::Add => x + y,
            Sum::Sub => x - y,
            Sum::Mul => x * y,
            Sum::Div if y.is_zero() => return Err(division_by_zero()),
            Sum::Div => x / y,
        })));
    }
    let (x, y) = (i128::from(a.as_i64().unwrap_or_default()), i128::from(b.as_i64().unwrap_or_default()));
    let result = match op {
        Sum::Add => x + y,
        Sum::Sub => x - y,
        Sum::Mul => x * y,
        Sum::Div if y == 0 => return Err(division_by_zero()),
        Sum::Div => x / y,
    };
    fit(result, width(a).max(width(b)))
}

fn width(value: &Value) -> u8 {
    match value {
        Value::Byte(_) => 0,
        Value::Short(_) => 1,
        Value::Int(_) => 2,
        _ => 3,
    }
}

fn fit(number: i128, width: u8) -> Result<Value> {
    if width == 0
        && let Ok(n) = i8::try_from(number)
    {
        return Ok(Value::Byte(n));
    }
    if width <= 1
        && let Ok(n) = i16::try_from(number)
    {
        return Ok(Value::Short(n));
    }
    if width <= 2
        && let Ok(n) = i32::try_from(number)
    {
        return Ok(Value::Int(n));
    }
    i64::try_from(number).map(Value::Long).map_err(|_| overflow())
}

fn overflow() -> Error {
    Error::runtime("long overflow")
}

fn division_by_zero() -> Error {
    Error::runtime("/ by zero")
}

/// A number times how often it occurs.
pub(crate) fn times(value: &Value, count: u64) -> Result<Value> {
    if count == 1 {
        return Ok(value.clone());
    }
    let count = i64::try_from(count).map_err(|_| overflow())?;
    let count = i32::try_from(count).map_or(Value::Long(count), Value::Int);
    match (value, &count) {
        // A count is no number of the data: it widens nothing.
        (Value::Byte(_) | Value::Short(_), Value::Int(n)) => {
            fit(i128::from(value.as_i64().unwrap_or_default()) * i128::from(*n), width(value))
        }
        (Value::Float(x), _) => Ok(Value::Float(x * count.as_f64().unwrap_or(f64::NAN) as f32)),
        _ => apply(Sum::Mul, value, &count),
    }
}

/// `Operator` as sack(), fold() and side effects use it.
pub(crate) fn operate(operator: Operator, a: &Value, b: &Value) -> Result<Value> {
    match operator {
        Operator::Assign => Ok(b.clone()),
        Operator::Sum => null_or(a, b, |a, b| apply(Sum::Add, a, b)),
        Operator::SumLong => match apply(Sum::Add, a, b)? {
            n if n.as_i64().is_some() => Ok(Value::Long(n.as_i64().unwrap_or_default())),
            n => Ok(n),
        },
        Operator::Minus => null_or(a, b, |a, b| apply(Sum::Sub, a, b)),
        Operator::Mult => null_or(a, b, |a, b| apply(Sum::Mul, a, b)),
        Operator::Div => null_or(a, b, |a, b| apply(Sum::Div, a, b)),
        Operator::Min => Ok(extreme(a, b, std::cmp::Ordering::Less)),
        Operator::Max => Ok(extreme(a, b, std::cmp::Ordering::Greater)),
        Operator::And | Operator::Or => match (a, b) {
            (Value::Bool(a), Value::Bool(b)) => {
                Ok(Value::Bool(if operator == Operator::And { *a && *b } else { *a || *b }))
            }
            _ => Err(Error::runtime(format!("{} takes booleans.", operator.name()))),
        },
        Operator::AddAll => add_all(a, b),
    }
}

fn null_or(a: &Value, b: &Value, both: impl Fn(&Value, &Value) -> Result<Value>) -> Result<Value> {
    match (a, b) {
        (Value::Null, other) | (other, Value::Null) => Ok(other.clone()),
        _ => both(a, b),
    }
}

/// The one that is `wanted` than the other; null and NaN give way.
pub(crate) fn extreme(a: &Value, b: &Value, wanted: std::cmp::Ordering) -> Value {
    let nan = |v: &Value| v.as_f64().is_some_and(f64::is_nan) && !matches!(v, Value::BigInt(_));
    match (a, b) {
        (Value::Null, other) | (other, Value::Null) => other.clone(),
        (a, b) if nan(a) => b.clone(),
        (a, b) if nan(b) => a.clone(),
        _ => {
            let found = compare(b, a).unwrap_or_else(|| crate::compare::order(b, a));
            if found == wanted { b.clone() } else { a.clone() }
        }
    }
}

fn add_all(a: &Value, b: &Value) -> Result<Value> {
    Ok(match (a, b) {
        (Value::Null, other) | (other, Value::Null) => other.clone(),
        (Value::Map(a), Value::Map(b)) => {
            let mut all = crate::value::Map::clone(a);
            all.extend(b.iter().map(|(k, v)| (k.clone(), v.clone())));
            Value::Map(Arc::new(all))
        }
        (Value::Set(a), b) => {
            let mut all = crate::value::Set::clone(a);
            all.extend(crate::compare::items(b));
            Value::Set(Arc::new(all))
        }
        (Value::List(a), b) => {
            let mut all = a.to_vec();
            all.extend(crate::compare::items(b));
            Value::list(all)
        }
        (Value::BulkSet(_), b) => {
            let mut all = crate::compare::items(a);
            all.extend(crate::compare::items(b));
            Value::list(all)
        }
        _ => return Err(Error::runtime("addAll takes collections.")),
    })
}
