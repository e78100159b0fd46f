//! What an index can say about a filter: a condition of SQL that every document fulfils that matches ([`lower`]), or
//! that exactly those do ([`exactly`]).
//!
//! SQL does not look into arrays on its way along a path, MongoDB does. A test of a path is lowered to the same test
//! of the plain path, or an array somewhere on the way; whatever SQL would judge otherwise is left out. So are
//! numbers where a collection may hold decimals, which SQL does not compare with them. Values that SQL has no literals
//! for, object ids and dates among them, are parameters.

use orrery_model::{Extended, Value};
use orrery_mongo::Bson;
use orrery_mongo::filter::{Condition, Filter, Test};
use orrery_sql::{BinaryOp, Expr, ExprKind, Literal, LogicalOp, UnaryOp};

use super::statement::{binary, call, expr, literal, logical, one_of, path, text};

/// Values of one list.
const VALUES_MAX: usize = 256;
/// Conditions of one statement.
const PARTS_MAX: usize = 64;
/// Names of a path.
const NAMES_MAX: usize = 8;

/// A condition, and the values that its parameters stand for.
#[derive(Clone, Debug, Default)]
pub struct Lowered {
    /// `None` where there is nothing to ask.
    pub condition: Option<Expr>,
    pub parameters: Vec<(String, Value)>,
}

/// A condition that exactly the matching documents fulfil, where none has an array at one of these paths.
#[derive(Clone, Debug, Default)]
pub struct Exact {
    pub lowered: Lowered,
    pub arrays: Vec<Vec<String>>,
}

/// A condition that every match fulfils.
pub fn lower(filter: &Filter, decimals: bool) -> Lowered {
    let mut lowering = Lowering { decimals, exact: None, parameters: Vec::new() };
    let condition = match filter.collation {
        Some(_) => None,
        None => lowering.condition(&filter.root),
    };
    Lowered { condition, parameters: lowering.parameters }
}

/// A condition that exactly the matches fulfil, if there is one. With `elements` equality looks into arrays.
pub fn exactly(filter: Option<&Filter>, decimals: bool, elements: bool) -> Option<Exact> {
    let mut lowering =
        Lowering { decimals, exact: Some(Exactly { elements, arrays: Vec::new() }), parameters: Vec::new() };
    let condition = match filter {
        None => None,
        Some(filter) if filter.collation.is_some() => return None,
        Some(filter) => match &filter.root {
            Condition::Always(true) => None,
            Condition::And(parts) if parts.is_empty() => None,
            root => Some(lowering.condition(root)?),
        },
    };
    let arrays = lowering.exact.map(|exact| exact.arrays).unwrap_or_default();
    Some(Exact { lowered: Lowered { condition, parameters: lowering.parameters }, arrays })
}

/// Where a document has an array at one of these paths.
pub fn arrays_at(paths: &[Vec<String>]) -> Option<Expr> {
    let parts: Vec<Expr> = paths.iter().map(|names| is_array(&names_of(names))).collect();
    (!parts.is_empty()).then(|| logical(LogicalOp::Or, parts))
}

/// The names of a path that means the same to SQL and to MongoDB.
pub fn plain_names(at: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> = at.split('.').collect();
    // `_id`, `id` and `ttl` are stored under other names, or perhaps; numbers on the way may be places in arrays.
    let odd = |name: &&str| {
        name.is_empty() || name.bytes().all(|byte| byte.is_ascii_digit()) || name.starts_with('$')
    };
    let plain =
        !matches!(names[0], "_id" | "id" | "ttl") && !names.iter().any(odd) && names.len() <= NAMES_MAX;
    plain.then_some(names)
}

pub fn names_of(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn is_array(names: &[&str]) -> Expr {
    call("IS_ARRAY", vec![path(names.iter().copied())])
}

struct Exactly {
    elements: bool,
    arrays: Vec<Vec<String>>,
}

struct Lowering {
    decimals: bool,
    /// Whether all of the filter is wanted, and nothing besides.
    exact: Option<Exactly>,
    parameters: Vec<(String, Value)>,
}

impl Lowering {
    fn condition(&mut self, from: &Condition) -> Option<Expr> {
        match from {
            Condition::And(parts) if self.exact.is_some() => {
                let all = (!parts.is_empty() && parts.len() <= PARTS_MAX).then_some(parts)?;
                let parts = all.iter().map(|part| self.condition(part)).collect::<Option<Vec<_>>>()?;
                Some(logical(LogicalOp::And, parts))
            }
            Condition::And(parts) => {
                let parts: Vec<Expr> =
                    parts.iter().take(PARTS_MAX).filter_map(|part| self.condition(part)).collect();
                (!parts.is_empty()).then(|| logical(LogicalOp::And, parts))
            }
            Condition::Or(parts) if !parts.is_empty() && parts.len() <= PARTS_MAX => {
                let parts = parts.iter().map(|part| self.condition(part)).collect::<Option<Vec<_>>>()?;
                Some(logical(LogicalOp::Or, parts))
            }
            Condition::Field { path, test } if &**path == "_id" => self.id(test),
            Condition::Field { path, test } => self.field(&plain_names(path)?, test),
            _ => None,
        }
    }

    /// Items of other apis have no `_id`; theirs is their id, a text. And no `_id` is an array.
    fn id(&mut self, test: &Test) -> Option<Expr> {
        let (operator, value) = match test {
            Test::Less(value) => (BinaryOp::Less, value),
            Test::LessOrEqual(value) => (BinaryOp::LessEqual, value),
            Test::Greater(value) => (BinaryOp::Greater, value),
            Test::GreaterOrEqual(value) => (BinaryOp::GreaterEqual, value),
            Test::All(tests) => {
                let whole = self.exact.is_some();
                let parts = tests.iter().take(PARTS_MAX).map(|test| self.id(test));
                let parts: Vec<Expr> = match whole {
                    true if tests.len() > PARTS_MAX => return None,
                    true => parts.collect::<Option<Vec<_>>>()?,
                    false => parts.flatten().collect(),
                };
                return (!parts.is_empty()).then(|| logical(LogicalOp::And, parts));
            }
            _ => return None,
        };
        let value = ordered(value).filter(|value| !matches!(value, Bson::String(_)))?;
        Some(binary(operator, path(["_id"]), self.value(value)?))
    }

    fn field(&mut self, names: &[&str], test: &Test) -> Option<Expr> {
        let plain = || path(names.iter().copied());
        let mut inside = None;
        let direct = match test {
            Test::Equal(Bson::Null) if self.exact.is_some() => {
                let missing = call("IS_DEFINED", vec![plain()]);
                let missing = expr(ExprKind::Unary(UnaryOp::Not, Box::new(missing)));
                logical(LogicalOp::Or, vec![call("IS_NULL", vec![plain()]), missing])
            }
            Test::Equal(value) => {
                let value = self.value(value)?;
                inside = Some(call("ARRAY_CONTAINS", vec![plain(), value.clone()]));
                binary(BinaryOp::Equal, plain(), value)
            }
            Test::Less(value) => binary(BinaryOp::Less, plain(), self.bound(value)?),
            Test::LessOrEqual(value) => binary(BinaryOp::LessEqual, plain(), self.bound(value)?),
            Test::Greater(value) => binary(BinaryOp::Greater, plain(), self.bound(value)?),
            Test::GreaterOrEqual(value) => binary(BinaryOp::GreaterEqual, plain(), self.bound(value)?),
            Test::In(values) if !values.is_empty() && values.len() <= VALUES_MAX => {
                let list = values.iter().map(|value| self.value(value)).collect::<Option<Vec<_>>>()?;
                if self.exact.is_some() {
                    let arguments = std::iter::once(plain()).chain(list.iter().cloned()).collect();
                    inside = Some(call("ARRAY_CONTAINS_ANY", arguments));
                }
                one_of(plain(), list)
            }
            Test::Exists(true) => call("IS_DEFINED", vec![plain()]),
            Test::Exists(false) if self.exact.is_some() => {
                let there = call("IS_DEFINED", vec![plain()]);
                expr(ExprKind::Unary(UnaryOp::Not, Box::new(there)))
            }
            Test::All(tests) if self.exact.is_some() => {
                let tests = (!tests.is_empty() && tests.len() <= PARTS_MAX).then_some(tests)?;
                let parts = tests.iter().map(|test| self.field(names, test)).collect::<Option<Vec<_>>>()?;
                return Some(logical(LogicalOp::And, parts));
            }
            Test::All(tests) => {
                // Several tests of one path, each of which must hold.
                let parts: Vec<Expr> =
                    tests.iter().take(PARTS_MAX).filter_map(|test| self.field(names, test)).collect();
                return (!parts.is_empty()).then(|| logical(LogicalOp::And, parts));
            }
            _ => return None,
        };
        // What the test says of an array at the end of the path.
        let tells_end = matches!(test, Test::Exists(_));
        if let Some(exact) = &mut self.exact {
            let inside = inside.filter(|_| exact.elements);
            let last = if tells_end || inside.is_some() { names.len() - 1 } else { names.len() };
            let ends = (1..=last).map(|end| names[..end].iter().map(|name| (*name).to_owned()).collect());
            for array in ends.collect::<Vec<Vec<String>>>() {
                if !exact.arrays.contains(&array) {
                    exact.arrays.push(array);
                }
            }
            return Some(match inside {
                Some(inside) => logical(LogicalOp::Or, vec![direct, inside]),
                None => direct,
            });
        }
        let last = if tells_end || inside.is_some() { names.len() - 1 } else { names.len() };
        let mut parts = vec![direct];
        parts.extend((1..=last).map(|end| is_array(&names[..end])));
        parts.extend(inside);
        Some(logical(LogicalOp::Or, parts))
    }

    fn bound(&mut self, value: &Bson) -> Option<Expr> {
        self.value(ordered(value)?)
    }

    /// Values that are equal to the same ones in both languages.
    fn value(&mut self, value: &Bson) -> Option<Expr> {
        if self.decimals && value.is_number() {
            return None;
        }
        let extended = match value {
            Bson::String(value) => return Some(text(value)),
            Bson::Bool(value) => return Some(literal(Literal::Bool(*value))),
            Bson::Int32(value) => return Some(literal(Literal::Integer(i64::from(*value)))),
            Bson::Int64(whole) if whole.unsigned_abs() <= 1 << 53 => {
                return Some(literal(Literal::Integer(*whole)));
            }
            Bson::Double(number) if number.is_finite() => return Some(literal(Literal::Double(*number))),
            Bson::ObjectId(id) => Extended::ObjectId(*id),
            Bson::Date(ms) => Extended::Date(*ms),
            Bson::Timestamp { seconds, increment } => {
                Extended::Timestamp { seconds: *seconds, increment: *increment }
            }
            _ => return None,
        };
        let name = format!("@v{}", self.parameters.len());
        self.parameters.push((name.clone(), Value::from(extended)));
        Some(expr(ExprKind::Parameter(name)))
    }
}

/// Values whose order, within their type, is the same in both languages.
fn ordered(value: &Bson) -> Option<&Bson> {
    match value {
        Bson::String(text) => text.is_ascii().then_some(value),
        Bson::Int64(whole) => (whole.unsigned_abs() <= 1 << 53).then_some(value),
        Bson::Double(number) => number.is_finite().then_some(value),
        Bson::Int32(_) | Bson::ObjectId(_) | Bson::Date(_) | Bson::Timestamp { .. } => Some(value),
        _ => None,
    }
}
