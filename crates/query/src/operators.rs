//! Arithmetic, bitwise, comparison and logical operators.
//!
//! Integers of 64 bits stay exact and turn into doubles when they overflow; bitwise operators work on
//! 32 bits, as in JavaScript. Whatever is given a type it does not take answers undefined.

use std::cmp::Ordering;

use orrery_model::Number;
use orrery_sql::{BinaryOp, UnaryOp};

use crate::compare::{compare, equals};
use crate::value::Eval;

pub(crate) fn add(left: Number, right: Number) -> Number {
    exact(left, right, i64::checked_add, |left, right| left + right)
}

fn exact(
    left: Number,
    right: Number,
    integer: fn(i64, i64) -> Option<i64>,
    double: fn(f64, f64) -> f64,
) -> Number {
    if let (Number::Int(left), Number::Int(right)) = (left, right)
        && let Some(result) = integer(left, right)
    {
        return Number::Int(result);
    }
    Number::Double(double(left.as_f64(), right.as_f64()))
}

/// Division stays exact where it leaves no remainder.
fn divide_integers(left: i64, right: i64) -> Option<i64> {
    if left.checked_rem(right)? == 0 { left.checked_div(right) } else { None }
}

pub(crate) fn unary<'a>(op: UnaryOp, operand: &Eval<'a>) -> Eval<'a> {
    match op {
        UnaryOp::Not => Eval::truth(operand.as_bool().map(|value| !value)),
        UnaryOp::Plus => operand.as_number().map_or(Eval::Undefined, Eval::Number),
        UnaryOp::Minus => match operand.as_number() {
            Some(Number::Int(value)) => match value.checked_neg() {
                Some(negated) => Eval::integer(negated),
                None => Eval::double(-(value as f64)),
            },
            Some(number) => Eval::double(-number.as_f64()),
            None => Eval::Undefined,
        },
        UnaryOp::BitNot => {
            operand.as_number().map_or(Eval::Undefined, |value| Eval::integer(i64::from(!to_int32(value))))
        }
    }
}

pub(crate) fn binary<'a>(op: BinaryOp, left: &Eval<'a>, right: &Eval<'a>) -> Eval<'a> {
    match op {
        BinaryOp::Equal => Eval::truth(equality(left, right)),
        BinaryOp::NotEqual => Eval::truth(equality(left, right).map(|equal| !equal)),
        BinaryOp::Less => comparison(left, right, Ordering::is_lt),
        BinaryOp::LessEqual => comparison(left, right, Ordering::is_le),
        BinaryOp::Greater => comparison(left, right, Ordering::is_gt),
        BinaryOp::GreaterEqual => comparison(left, right, Ordering::is_ge),
        BinaryOp::Concat => match (left.as_str(), right.as_str()) {
            (Some(left), Some(right)) if left.len() + right.len() <= crate::limits::STRING_BYTES_MAX => {
                Eval::text([left, right].concat())
            }
            _ => Eval::Undefined,
        },
        _ => match (left.as_number(), right.as_number()) {
            (Some(left), Some(right)) => Eval::Number(arithmetic(op, left, right)),
            _ => Eval::Undefined,
        },
    }
}

pub(crate) fn arithmetic(op: BinaryOp, left: Number, right: Number) -> Number {
    match op {
        BinaryOp::Add => add(left, right),
        BinaryOp::Subtract => exact(left, right, i64::checked_sub, |left, right| left - right),
        BinaryOp::Multiply => exact(left, right, i64::checked_mul, |left, right| left * right),
        BinaryOp::Divide => exact(left, right, divide_integers, |left, right| left / right),
        BinaryOp::Modulo => exact(left, right, i64::checked_rem, |left, right| left % right),
        BinaryOp::BitAnd => Number::Int(i64::from(to_int32(left) & to_int32(right))),
        BinaryOp::BitOr => Number::Int(i64::from(to_int32(left) | to_int32(right))),
        BinaryOp::BitXor => Number::Int(i64::from(to_int32(left) ^ to_int32(right))),
        BinaryOp::ShiftLeft => Number::Int(i64::from(to_int32(left).wrapping_shl(shift(right)))),
        BinaryOp::ShiftRight => Number::Int(i64::from(to_int32(left).wrapping_shr(shift(right)))),
        BinaryOp::ShiftRightZero => {
            Number::Int(i64::from((to_int32(left) as u32).wrapping_shr(shift(right))))
        }
        // The other operators never come here: `binary` has answered them.
        _ => Number::Double(f64::NAN),
    }
}

/// The low 32 bits of the truncated number, as JavaScript's bitwise operators take them.
fn to_int32(number: Number) -> i32 {
    match number {
        Number::Int(value) => value as i32,
        other => {
            let value = other.as_f64();
            if value.is_finite() { value.trunc().rem_euclid(4_294_967_296.0) as u32 as i32 } else { 0 }
        }
    }
}

fn shift(number: Number) -> u32 {
    to_int32(number) as u32 & 31
}

/// `=`: undefined if either side is, false across types.
pub(crate) fn equality(left: &Eval<'_>, right: &Eval<'_>) -> Option<bool> {
    if left.is_undefined() || right.is_undefined() {
        return None;
    }
    if let (Eval::Number(left), Eval::Number(right)) = (left, right)
        && (left.as_f64().is_nan() || right.as_f64().is_nan())
    {
        return None;
    }
    Some(equals(left, right))
}

fn comparison<'a>(left: &Eval<'a>, right: &Eval<'a>, test: fn(Ordering) -> bool) -> Eval<'a> {
    Eval::truth(compare(left, right).map(test))
}

/// AND over truth values: false wins over undefined.
pub(crate) fn between(value: &Eval<'_>, low: &Eval<'_>, high: &Eval<'_>) -> Option<bool> {
    let above = compare(value, low).map(Ordering::is_ge);
    let below = compare(value, high).map(Ordering::is_le);
    match (above, below) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}
