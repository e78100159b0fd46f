//! Which partition keys a filter allows.
//!
//! `WHERE c.tenant = 'a' AND c.n > 5` allows one key, `c.tenant IN ('a', 'b')` two, `c.n > 5` any. For
//! keys of several levels the answer is a prefix as long as the filter fixes it.

use orrery_model::{Number, PropertyPath, Value};
use orrery_sql::{BinaryOp, LogicalOp, UnaryOp};

use crate::compile::Origin;
use crate::compile::document_path;
use crate::node::{Node, Plan};

/// The keys a query can find items under.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyFilter {
    /// No restriction.
    Any,
    /// One of these keys; a key shorter than the container's is a prefix.
    Points(Vec<Vec<Value>>),
    /// The filter contradicts itself, or the query reads no item.
    Nothing,
}

/// More keys than this are not worth telling apart from all keys.
const POINTS_MAX: usize = 1000;

pub(crate) fn partition_keys(plan: &Plan, origins: &[Origin], paths: &[PropertyPath]) -> KeyFilter {
    let filters: Vec<&Node> =
        plan.guards.iter().chain(plan.sources.iter().flat_map(|source| &source.filters)).collect();
    if filters.iter().any(|filter| is_false(filter)) {
        return KeyFilter::Nothing;
    }
    let mut points: Vec<Vec<Value>> = vec![Vec::new()];
    for path in paths {
        let Some(values) = all_of(filters.iter().copied(), path, origins) else { break };
        if values.is_empty() {
            return KeyFilter::Nothing;
        }
        if points.len() * values.len() > POINTS_MAX {
            break;
        }
        points = points
            .iter()
            .flat_map(|point| {
                values.iter().map(move |value| {
                    let mut longer = point.clone();
                    longer.push(value.clone());
                    longer
                })
            })
            .collect();
    }
    if points.iter().all(Vec::is_empty) { KeyFilter::Any } else { KeyFilter::Points(points) }
}

fn is_false(node: &Node) -> bool {
    matches!(node, Node::Constant(value) if *value != Value::Bool(true))
}

/// The values a path may have where all conditions hold; `None` if they do not say.
fn all_of<'n>(
    nodes: impl Iterator<Item = &'n Node>,
    path: &PropertyPath,
    origins: &[Origin],
) -> Option<Vec<Value>> {
    let mut allowed: Option<Vec<Value>> = None;
    for node in nodes {
        let Some(values) = values_of(node, path, origins) else { continue };
        allowed = Some(match allowed {
            None => values,
            Some(before) => before.into_iter().filter(|value| values.contains(value)).collect(),
        });
    }
    allowed
}

/// The values a path may have where this condition is true; `None` if it does not say.
fn values_of(node: &Node, path: &PropertyPath, origins: &[Origin]) -> Option<Vec<Value>> {
    let is_path = |node: &Node| {
        document_path(node, origins).is_some_and(|found| found.iter().eq(path.segments().iter()))
    };
    match node {
        // A path that stands alone must be true to pass.
        path if is_path(path) => Some(vec![Value::Bool(true)]),
        Node::Unary(UnaryOp::Not, path) if is_path(path) => Some(vec![Value::Bool(false)]),
        Node::Constant(value) => (*value != Value::Bool(true)).then(Vec::new),
        Node::Binary(BinaryOp::Equal, left, right) => match (&**left, &**right) {
            (path, Node::Constant(value)) | (Node::Constant(value), path) if is_path(path) => {
                Some(vec![value.clone()])
            }
            (Node::Call(function, arguments), Node::Constant(value))
            | (Node::Constant(value), Node::Call(function, arguments))
                if function.name == "ABS" && is_path(&arguments[0]) =>
            {
                absolute(value)
            }
            _ => None,
        },
        Node::Call(function, arguments) if arguments.len() == 1 && is_path(&arguments[0]) => {
            match function.name {
                "IS_NULL" => Some(vec![Value::Null]),
                "IS_BOOL" => Some(vec![Value::Bool(false), Value::Bool(true)]),
                _ => None,
            }
        }
        Node::In { needle, list, negated: false } if is_path(needle) => {
            let mut values: Vec<Value> = Vec::new();
            for candidate in list {
                let value = candidate.as_constant()?;
                if !values.contains(value) {
                    values.push(value.clone());
                }
            }
            Some(values)
        }
        Node::Logical(LogicalOp::And, operands) => all_of(operands.iter(), path, origins),
        Node::Logical(LogicalOp::Or, operands) => {
            let mut values: Vec<Value> = Vec::new();
            for operand in operands {
                for value in values_of(operand, path, origins)? {
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
            }
            Some(values)
        }
        _ => None,
    }
}

/// The numbers with this absolute value.
fn absolute(value: &Value) -> Option<Vec<Value>> {
    let number = value.as_number()?;
    let negative = match number {
        Number::Int(value) => Number::Int(value.checked_neg()?),
        other => Number::Double(-other.as_f64()),
    };
    Some(vec![Value::Number(negative), Value::Number(number)])
}
