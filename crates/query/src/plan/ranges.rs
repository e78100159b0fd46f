//! Which part of the hash space a query reads.
//!
//! `WHERE c.pk = 'a'` reads one point, `c.pk IN (1, 2)` two, `c.n > 5` everything, and `false` nothing. The filter
//! is asked, for each level of the partition key, which values can make it true; what it does not say is left open.
//! The answer may be too wide but never too narrow:
//!
//! - a condition that must hold narrows, alternatives add up, NOT asks which values make the operand false;
//! - the filter of a subquery counts where the subquery must have a row: in FROM, in EXISTS, in a comparison;
//! - of a hierarchical key a prefix is enough, other keys must be fixed whole.

use std::collections::BTreeSet;

use orrery_model::{Epk, KeyComponent, KeyKind, PartitionKey, PartitionKeyDefinition, PropertyPath, Value};
use orrery_sql::{BinaryOp, LogicalOp, SubqueryKind, UnaryOp};

use crate::compile::{CompiledQuery, Origin, document_path};
use crate::node::{Node, SelectBlock, SourceKind};

/// More ranges than this are not worth telling apart from all of the container.
pub const RANGES_MAX: usize = 4096;

/// A range of effective partition keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueryRange {
    pub min: Epk,
    pub max: Epk,
    pub min_inclusive: bool,
    pub max_inclusive: bool,
}

impl QueryRange {
    /// The whole hash space.
    pub fn full() -> QueryRange {
        QueryRange { min: Epk::MIN, max: Epk::max(), min_inclusive: true, max_inclusive: false }
    }

    /// One effective key.
    pub fn point(key: Epk) -> QueryRange {
        QueryRange { min: key.clone(), max: key, min_inclusive: true, max_inclusive: true }
    }

    pub fn is_point(&self) -> bool {
        self.min == self.max
    }
}

/// The ranges of a query, sorted, and without overlap. A query that can find nothing reads the point that no item has.
pub(super) fn of(compiled: &CompiledQuery, definition: &PartitionKeyDefinition) -> Vec<QueryRange> {
    let block = &compiled.block;
    if block.sources.is_empty() {
        return vec![QueryRange::point(Epk::MIN)];
    }
    // Where the system chose the path, items mostly have no key at all, whatever their properties say.
    let paths: &[PropertyPath] = if definition.system_key { &[] } else { &definition.paths };
    let mut points: Vec<PartitionKey> = vec![PartitionKey::default()];
    let mut levels = 0;
    for path in paths {
        let search = Search { path: path.segments(), origins: &compiled.origins };
        let Some(values) = search.rows(block) else { break };
        if points.len().saturating_mul(values.len()) > RANGES_MAX {
            break;
        }
        points = points.iter().flat_map(|point| values.iter().map(|value| longer(point, value))).collect();
        levels += 1;
    }
    // Asking about no path at all finds what is false for every item.
    let contradiction = Search { path: &[], origins: &compiled.origins }.rows(block);
    if points.is_empty() || contradiction.is_some_and(|values| values.is_empty()) {
        return vec![QueryRange::point(Epk::MIN)];
    }
    if levels == 0 || (definition.kind == KeyKind::Hash && levels < paths.len()) {
        return vec![QueryRange::full()];
    }
    let range = |key: &PartitionKey| {
        if levels == paths.len() {
            return QueryRange::point(definition.effective(key));
        }
        let (min, max) = definition.effective_prefix(key);
        QueryRange { min, max, min_inclusive: true, max_inclusive: false }
    };
    let sorted: BTreeSet<QueryRange> = points.iter().map(range).collect();
    sorted.into_iter().collect()
}

fn longer(point: &PartitionKey, value: &[u8]) -> PartitionKey {
    let mut point = point.clone();
    // The bytes are those that `encoded` made.
    point.0.extend(KeyComponent::decode(value).map(|(component, _)| component));
    point
}

/// Values of one key component, in the encoding of `PartitionKey::encode`, which makes equal values equal.
type Values = BTreeSet<Vec<u8>>;

/// The search for the values of one path. `None` always means that any value will do.
struct Search<'a> {
    path: &'a [String],
    origins: &'a [Origin],
}

impl Search<'_> {
    /// The values under which a block has rows.
    fn rows(&self, block: &SelectBlock) -> Option<Values> {
        let mut allowed = None;
        for source in &block.sources {
            if let SourceKind::Rows(inner) | SourceKind::RowElements(inner) = &source.kind {
                narrow(&mut allowed, self.rows_if_filtered(inner));
            }
            source.filters.iter().for_each(|filter| narrow(&mut allowed, self.holding(filter)));
        }
        block.guards.iter().for_each(|filter| narrow(&mut allowed, self.holding(filter)));
        allowed
    }

    /// The same for a subquery: one that aggregates without keys has a row even when its filter keeps nothing.
    fn rows_if_filtered(&self, block: &SelectBlock) -> Option<Values> {
        match &block.grouping {
            Some(grouping) if grouping.keys.is_empty() => None,
            _ => self.rows(block),
        }
    }

    /// The values under which a condition is true.
    fn holding(&self, node: &Node) -> Option<Values> {
        if self.is_path(node) {
            return Some(Values::from([encoded(&Value::Bool(true))?]));
        }
        match node {
            Node::Constant(value) => (*value != Value::Bool(true)).then(Values::new),
            Node::Unary(UnaryOp::Not, operand) => self.failing(operand),
            Node::Binary(op, left, right) => {
                let mut allowed = if *op == BinaryOp::Equal { self.equal(left, right) } else { None };
                // A comparison is true only if both sides have a value.
                for side in [left, right] {
                    if let Node::Subquery(SubqueryKind::Scalar, block) = &**side {
                        narrow(&mut allowed, self.rows_if_filtered(block));
                    }
                }
                allowed
            }
            Node::In { needle, list, negated: false, .. } if self.is_path(needle) => listed(list),
            Node::Logical(LogicalOp::And, operands) => self.all(operands, Self::holding),
            Node::Logical(LogicalOp::Or, operands) => self.any(operands, Self::holding),
            Node::Call(function, arguments) => match (function.name, arguments.as_slice()) {
                ("IS_NULL", [path]) if self.is_path(path) => Some(Values::from([encoded(&Value::Null)?])),
                ("IS_BOOL", [path]) if self.is_path(path) => {
                    Some(Values::from([encoded(&Value::Bool(false))?, encoded(&Value::Bool(true))?]))
                }
                _ => None,
            },
            Node::Subquery(SubqueryKind::Exists, block) => self.rows_if_filtered(block),
            _ => None,
        }
    }

    /// The values under which a condition is false, which is not the same as not true.
    fn failing(&self, node: &Node) -> Option<Values> {
        if self.is_path(node) {
            return Some(Values::from([encoded(&Value::Bool(false))?]));
        }
        match node {
            Node::Constant(value) => (*value != Value::Bool(false)).then(Values::new),
            Node::Unary(UnaryOp::Not, operand) => self.holding(operand),
            Node::Binary(BinaryOp::NotEqual, left, right) => self.equal(left, right),
            Node::In { needle, list, negated: true, .. } if self.is_path(needle) => listed(list),
            Node::Logical(LogicalOp::And, operands) => self.any(operands, Self::failing),
            Node::Logical(LogicalOp::Or, operands) => self.all(operands, Self::failing),
            Node::Call(function, arguments) => match (function.name, arguments.as_slice()) {
                ("IS_DEFINED", [path]) if self.is_path(path) => Some(Values::from([undefined()])),
                _ => None,
            },
            _ => None,
        }
    }

    fn equal(&self, left: &Node, right: &Node) -> Option<Values> {
        let (other, value) = match (left, right) {
            (other, Node::Constant(value)) | (Node::Constant(value), other) => (other, value),
            _ => return None,
        };
        if self.is_path(other) {
            return Some(encoded(value).into_iter().collect());
        }
        match other {
            Node::Call(function, arguments) if function.name == "ABS" && self.is_path(arguments.first()?) => {
                let Some(number) = value.as_number().map(|number| number.as_f64()) else {
                    return Some(Values::new());
                };
                let signs = if number < 0.0 { Vec::new() } else { vec![number, -number] };
                Some(signs.into_iter().filter_map(|number| encoded(&Value::from(number))).collect())
            }
            _ => None,
        }
    }

    fn all(&self, nodes: &[Node], ask: impl Fn(&Self, &Node) -> Option<Values>) -> Option<Values> {
        let mut allowed = None;
        nodes.iter().for_each(|node| narrow(&mut allowed, ask(self, node)));
        allowed
    }

    fn any(&self, nodes: &[Node], ask: impl Fn(&Self, &Node) -> Option<Values>) -> Option<Values> {
        let mut allowed = Values::new();
        for node in nodes {
            // `append` would rebuild the whole set for every term.
            allowed.extend(ask(self, node)?);
        }
        Some(allowed)
    }

    fn is_path(&self, node: &Node) -> bool {
        document_path(node, self.origins).is_some_and(|found| !found.is_empty() && found == self.path)
    }
}

fn narrow(allowed: &mut Option<Values>, by: Option<Values>) {
    let Some(by) = by else { return };
    *allowed = Some(match allowed.take() {
        None => by,
        Some(before) => before.intersection(&by).cloned().collect(),
    });
}

/// The values of an IN list, if all of it is constant.
fn listed(list: &[Node]) -> Option<Values> {
    let mut values = Values::new();
    for candidate in list {
        values.extend(encoded(candidate.as_constant()?));
    }
    Some(values)
}

/// A value as a key component; `None` if nothing equals it. Items with an array or object there have no key, nor have
/// those with a value that only other APIs store.
fn encoded(value: &Value) -> Option<Vec<u8>> {
    let component = match value {
        Value::Undefined => return None,
        Value::Null => KeyComponent::Null,
        Value::Bool(value) => KeyComponent::Bool(*value),
        Value::Number(number) if number.as_f64().is_nan() => return None,
        // Adding zero turns -0 into 0, which equals it.
        Value::Number(number) => KeyComponent::Number(number.as_f64() + 0.0),
        Value::String(text) => KeyComponent::String(text.clone()),
        Value::Array(_) | Value::Object(_) | Value::Extended(_) => return Some(undefined()),
    };
    let mut bytes = Vec::new();
    PartitionKey::from([component]).encode(&mut bytes);
    Some(bytes)
}

fn undefined() -> Vec<u8> {
    let mut bytes = Vec::new();
    PartitionKey::from([KeyComponent::Undefined]).encode(&mut bytes);
    bytes
}
