//! What an index can say about a filter: a condition of SQL that every document fulfils that matches.
//!
//! SQL does not look into arrays on its way along a path, MongoDB does. A test of a path is lowered to the same test
//! of the plain path, or an array somewhere on the way; whatever SQL would judge otherwise is left out. So are
//! numbers where a collection may hold decimals, which SQL does not compare with them.

use orrery_mongo::Bson;
use orrery_mongo::filter::{Condition, Filter, Test};
use orrery_sql::{BinaryOp, Expr, Literal, LogicalOp};

use super::statement::{binary, call, literal, logical, one_of, path, text};

/// Values of one list.
const VALUES_MAX: usize = 256;
/// Conditions of one statement.
const PARTS_MAX: usize = 64;

/// A condition that every match fulfils; `None` where there is none to be had.
pub fn lower(filter: &Filter, decimals: bool) -> Option<Expr> {
    if filter.collation.is_some() {
        return None;
    }
    condition(&filter.root, decimals)
}

fn condition(from: &Condition, decimals: bool) -> Option<Expr> {
    match from {
        Condition::And(parts) => {
            let parts: Vec<Expr> =
                parts.iter().take(PARTS_MAX).filter_map(|part| condition(part, decimals)).collect();
            (!parts.is_empty()).then(|| logical(LogicalOp::And, parts))
        }
        Condition::Or(parts) if !parts.is_empty() && parts.len() <= PARTS_MAX => {
            let parts = parts.iter().map(|part| condition(part, decimals)).collect::<Option<Vec<_>>>()?;
            Some(logical(LogicalOp::Or, parts))
        }
        Condition::Field { path, test } => field(path, test, decimals),
        _ => None,
    }
}

fn field(at: &str, test: &Test, decimals: bool) -> Option<Expr> {
    // `_id`, `id` and `ttl` are stored under other names, or perhaps; numbers on the way may be places in arrays.
    let names: Vec<&str> = at.split('.').collect();
    let odd = |name: &&str| {
        name.is_empty() || name.bytes().all(|byte| byte.is_ascii_digit()) || name.starts_with('$')
    };
    if matches!(names[0], "_id" | "id" | "ttl") || names.iter().any(odd) || names.len() > 8 {
        return None;
    }
    let value_of = |value: &Bson| value_of(value).filter(|_| !decimals || !value.is_number());
    let plain = |names: &[&str]| path(names.iter().copied());
    let compared = |operator: BinaryOp, value: &Bson| Some(binary(operator, plain(&names), value_of(value)?));
    let (direct, inside) = match test {
        Test::Equal(value) => {
            let inside = call("ARRAY_CONTAINS", vec![plain(&names), value_of(value)?]);
            (compared(BinaryOp::Equal, value)?, Some(inside))
        }
        Test::Less(value) => (compared(BinaryOp::Less, ordered(value)?)?, None),
        Test::LessOrEqual(value) => (compared(BinaryOp::LessEqual, ordered(value)?)?, None),
        Test::Greater(value) => (compared(BinaryOp::Greater, ordered(value)?)?, None),
        Test::GreaterOrEqual(value) => (compared(BinaryOp::GreaterEqual, ordered(value)?)?, None),
        Test::In(values) if !values.is_empty() && values.len() <= VALUES_MAX => {
            let list = values.iter().map(value_of).collect::<Option<Vec<_>>>()?;
            (one_of(plain(&names), list), None)
        }
        Test::Exists(true) => (call("IS_DEFINED", vec![plain(&names)]), None),
        Test::All(tests) => {
            // Several tests of one path, each of which must hold.
            let parts: Vec<Expr> =
                tests.iter().take(PARTS_MAX).filter_map(|test| field(at, test, decimals)).collect();
            return (!parts.is_empty()).then(|| logical(LogicalOp::And, parts));
        }
        _ => return None,
    };
    let mut parts = vec![direct];
    let last = if matches!(test, Test::Exists(_)) { names.len() - 1 } else { names.len() };
    match inside {
        Some(inside) => {
            parts.extend((1..last).map(|end| call("IS_ARRAY", vec![plain(&names[..end])])));
            parts.push(inside);
        }
        None => parts.extend((1..=last).map(|end| call("IS_ARRAY", vec![plain(&names[..end])]))),
    }
    Some(logical(LogicalOp::Or, parts))
}

/// Values whose order, within their type, is the same in both languages.
fn ordered(value: &Bson) -> Option<&Bson> {
    match value {
        Bson::String(text) => text.is_ascii().then_some(value),
        Bson::Int32(_) => Some(value),
        Bson::Int64(whole) => (whole.unsigned_abs() <= 1 << 53).then_some(value),
        Bson::Double(number) => number.is_finite().then_some(value),
        _ => None,
    }
}

/// Values that are equal to the same ones in both languages.
fn value_of(value: &Bson) -> Option<Expr> {
    match value {
        Bson::String(value) => Some(text(value)),
        Bson::Bool(value) => Some(literal(Literal::Bool(*value))),
        Bson::Int32(value) => Some(literal(Literal::Integer(i64::from(*value)))),
        Bson::Int64(whole) if whole.unsigned_abs() <= 1 << 53 => Some(literal(Literal::Integer(*whole))),
        Bson::Double(number) if number.is_finite() => Some(literal(Literal::Double(*number))),
        _ => None,
    }
}
