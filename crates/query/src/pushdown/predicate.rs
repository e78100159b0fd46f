//! One condition, as entries of the index.
//!
//! A condition is true, false or undefined. `filter(node, true)` describes the items for which it is true,
//! `filter(node, false)` those for which it is *false*: that is how NOT is read, because neither holds where it is
//! undefined.

use std::rc::Rc;

use orrery_index::ValueRange;
use orrery_model::{Kind, Number, Value};
use orrery_sql::{BinaryOp, LogicalOp, SubqueryKind, UnaryOp};

use super::merge::{intersection, union};
use super::place::{Places, Step};
use super::{Check, Filter, Place, Scan, Search, search};
use crate::compile::ITEM_SLOT;
use crate::eval::Frame;
use crate::node::{Node, Pattern, SelectBlock};
use crate::prepared::Prepared;

/// How many of a hundred values conditions of a kind are thought to let through.
const EQUALITY_PERCENT: u32 = 3;
pub(super) const SEARCH_PERCENT: u32 = 10;
const OTHER_PERCENT: u32 = 40;

/// Integers from here on are doubles once a query touches them, so entries no longer decide.
const EXACT_NUMBER_MAX: f64 = 9_223_372_036_854_775_808.0;
/// Strings sort by code unit in comparisons and by code point in the index; below this character the orders agree.
const SAME_ORDER_END: char = '\u{E000}';

pub(super) struct Reader<'r> {
    pub places: &'r Places,
    pub prepared: &'r Prepared,
}

/// Ranges of values, and whether exactly those pass.
struct Ranges {
    ranges: Vec<ValueRange>,
    exact: bool,
}

impl Ranges {
    fn exact(ranges: Vec<ValueRange>) -> Ranges {
        Ranges { ranges, exact: true }
    }
}

impl Reader<'_> {
    pub fn filter(&self, node: &Node, wanted: bool) -> Filter {
        let otherwise = self.known(node, wanted).unwrap_or_else(|| self.checked(node, wanted));
        let found = search::read(node, self.prepared.context.geometry).filter(|_| wanted);
        let found = found.and_then(|(path, kind)| Some((self.places.inner(path)?, kind)));
        let Some((place, kind)) = found else { return otherwise };
        Filter::Search(Search { place, kind, exact: true, otherwise: Box::new(otherwise) })
    }

    /// What the shape of the condition tells; `None` where it tells nothing.
    fn known(&self, node: &Node, wanted: bool) -> Option<Filter> {
        match node {
            Node::Constant(Value::Bool(value)) if *value == wanted => None,
            Node::Constant(_) => Some(Filter::Nothing),
            Node::Unary(UnaryOp::Not, inner) => Some(self.filter(inner, !wanted)),
            Node::Logical(op, operands) => {
                let parts = operands.iter().map(|operand| self.filter(operand, wanted)).collect();
                Some(if (*op == LogicalOp::And) == wanted { Filter::and(parts) } else { Filter::or(parts) })
            }
            Node::Binary(op, left, right) => {
                let (place, op, constant) = match (&**left, &**right) {
                    (path, Node::Constant(value)) => (self.places.inner(path)?, *op, value),
                    (Node::Constant(value), path) => (self.places.inner(path)?, turned(*op)?, value),
                    _ => return None,
                };
                let op = if wanted { op } else { negated(op)? };
                self.scan(node, place, comparison(op, constant)?)
            }
            Node::In { needle, list, negated, .. } => {
                let place = self.places.inner(needle)?;
                let constants: Option<Vec<&Value>> = list.iter().map(Node::as_constant).collect();
                let constants: Vec<&Value> =
                    constants?.into_iter().filter(|value| !value.is_undefined()).collect();
                let points = one_of(constants.iter().copied())?;
                let ranges = if *negated == wanted {
                    // Every other value; whether what cannot be told apart from a point equals it, the item says.
                    let exact = points.exact && constants.iter().all(|value| is_exact(value));
                    Ranges { ranges: if exact { complement(&points.ranges) } else { defined() }, exact }
                } else {
                    points
                };
                self.scan(node, place, ranges)
            }
            Node::Between { value, low, high, negated } => {
                let place = self.places.inner(value)?;
                let (low, high) = (low.as_constant()?, high.as_constant()?);
                let (above, below) = match *negated == wanted {
                    false => (BinaryOp::GreaterEqual, BinaryOp::LessEqual),
                    true => (BinaryOp::Less, BinaryOp::Greater),
                };
                let (low, high) = (comparison(above, low)?, comparison(below, high)?);
                let exact = low.exact && high.exact;
                let ranges = if *negated == wanted {
                    union([low.ranges, high.ranges].concat())
                } else {
                    intersection(&[low.ranges, high.ranges])
                };
                self.scan(node, place, Ranges { ranges, exact })
            }
            Node::Like { text, pattern: Pattern::Ready(pattern), negated } if *negated != wanted => {
                let place = self.places.inner(text)?;
                let prefix = pattern.prefix();
                if pattern.is_literal() {
                    return self.scan(
                        node,
                        place,
                        Ranges::exact(vec![ValueRange::equal(&Value::String(prefix))]),
                    );
                }
                let ranges = vec![ValueRange::starts_with(&prefix)];
                if pattern.is_prefix() {
                    return self.scan(node, place, Ranges::exact(ranges));
                }
                Some(self.with_check(node, wanted, place, ranges, SEARCH_PERCENT))
            }
            Node::Call(function, arguments) => self.call(node, function.name, arguments, wanted),
            Node::Subquery(SubqueryKind::Exists, block) if wanted => self.exists(block),
            path => {
                let place = self.places.inner(path)?;
                self.scan(node, place, Ranges::exact(vec![ValueRange::equal(&Value::Bool(wanted))]))
            }
        }
    }

    fn call(&self, node: &Node, name: &str, arguments: &[Node], wanted: bool) -> Option<Filter> {
        let place = self.places.inner(arguments.first()?);
        if let Some(kinds) = kinds_of(name)
            && let [_] = arguments
        {
            // Type tests are false, not undefined, where nothing stands: those items have no entry.
            if !wanted {
                return Some(Filter::Everything);
            }
            let ranges = kinds.iter().map(|kind| ValueRange::of_kind(*kind)).collect();
            return self.scan(node, place?, Ranges::exact(union(ranges)));
        }
        match (name, arguments) {
            ("IS_DEFINED", [_]) if wanted => self.scan(node, place?, Ranges::exact(defined())),
            ("STARTSWITH", [_, Node::Constant(Value::String(prefix)), rest @ ..]) if wanted => {
                if rest.first().is_none_or(|flag| flag.as_constant() == Some(&Value::Bool(false))) {
                    return self.scan(node, place?, Ranges::exact(vec![ValueRange::starts_with(prefix)]));
                }
                Some(self.with_check(node, wanted, place?, strings(), SEARCH_PERCENT))
            }
            ("CONTAINS" | "ENDSWITH" | "STRINGEQUALS" | "REGEXMATCH" | "STARTSWITH", [_, rest @ ..])
                if rest.iter().all(|argument| argument.as_constant().is_some()) =>
            {
                Some(self.with_check(node, wanted, place?, strings(), SEARCH_PERCENT))
            }
            // A list of values and a path: as IN.
            ("ARRAY_CONTAINS", [Node::Constant(Value::Array(list)), needle, rest @ ..]) if wanted => {
                match rest.first().map(Node::as_constant) {
                    None | Some(Some(Value::Bool(false))) => {}
                    // Parts of objects are no points; of anything else there are no parts.
                    Some(Some(Value::Bool(true)))
                        if !list.iter().any(|value| matches!(value, Value::Object(_))) => {}
                    _ => return None,
                }
                self.scan(node, self.places.inner(needle)?, one_of(list)?)
            }
            ("ARRAY_CONTAINS", [_, Node::Constant(wanted_value), rest @ ..]) if wanted => {
                let partial = rest.first().and_then(Node::as_constant) == Some(&Value::Bool(true));
                let element = place?.with(Step::Element);
                match wanted_value {
                    Value::Object(members) if partial => self.part_of(node, &element, members),
                    Value::Undefined => Some(Filter::Nothing),
                    value => self.scan(node, element, comparison(BinaryOp::Equal, value)?),
                }
            }
            ("ARRAY_CONTAINS_ANY" | "ARRAY_CONTAINS_ALL", [_, values @ ..]) if wanted => {
                let element = place?.with(Step::Element);
                let mut parts = Vec::with_capacity(values.len());
                for value in values {
                    let ranges = comparison(BinaryOp::Equal, value.as_constant()?)?;
                    parts.push(self.scan(node, element.clone(), ranges)?);
                }
                Some(if name == "ARRAY_CONTAINS_ANY" { Filter::or(parts) } else { Filter::and(parts) })
            }
            _ => None,
        }
    }

    /// Elements that have these members: each scalar among them must be in some element.
    fn part_of(&self, node: &Node, element: &Place, members: &[(String, Value)]) -> Option<Filter> {
        let mut parts =
            vec![self.scan(node, element.clone(), Ranges::exact(vec![ValueRange::of_kind(Kind::Object)]))?];
        for (name, value) in members {
            if matches!(value, Value::Undefined | Value::Array(_) | Value::Object(_)) {
                continue;
            }
            let place = element.clone().with(Step::Name(name.clone()));
            parts.push(self.scan(node, place, comparison(BinaryOp::Equal, value)?)?);
        }
        // The scan for the kind alone is the least selective one, and implied by the others.
        if parts.len() > 1 {
            parts.remove(0);
        }
        Some(Filter::and(parts))
    }

    /// `EXISTS(SELECT … FROM t IN c.tags WHERE …)`: its conditions hold for some binding of its sources.
    fn exists(&self, block: &SelectBlock) -> Option<Filter> {
        if block.grouping.is_some() {
            return None;
        }
        let places = self.places.inside(&block.sources);
        let inner = Reader { places: &places, prepared: self.prepared };
        let conditions = block.guards.iter().chain(block.sources.iter().flat_map(|source| &source.filters));
        let mut parts: Vec<Filter> = conditions.map(|node| inner.filter(node, true)).collect();
        if parts.is_empty() {
            return None;
        }
        // The subquery may have no row even where its conditions hold.
        parts.push(Filter::Everything);
        Some(Filter::and(parts))
    }

    fn scan(&self, node: &Node, place: Place, ranges: Ranges) -> Option<Filter> {
        let prefix = match node {
            Node::Like { pattern: Pattern::Ready(pattern), .. } => !pattern.is_literal(),
            Node::Call(function, _) => function.name == "STARTSWITH",
            _ => false,
        };
        if ranges.ranges.is_empty() {
            return Some(Filter::Nothing);
        }
        let exact = ranges.exact && place.is_single();
        Some(Filter::Scan(Scan { place, ranges: ranges.ranges, check: None, exact, prefix }))
    }

    /// A condition on one place that only evaluating tells.
    fn checked(&self, node: &Node, wanted: bool) -> Filter {
        let Some(place) = self.places.only_place(node) else { return Filter::Everything };
        let percent = match node {
            Node::Binary(BinaryOp::Equal, ..) | Node::In { .. } if wanted => EQUALITY_PERCENT,
            _ => OTHER_PERCENT,
        };
        self.with_check(node, wanted, place, defined(), percent)
    }

    fn with_check(
        &self,
        node: &Node,
        wanted: bool,
        place: Place,
        ranges: Vec<ValueRange>,
        percent: u32,
    ) -> Filter {
        if !place.is_single() || self.places.only_place(node).as_ref() != Some(&place) {
            return Filter::Everything;
        }
        let mut node = self.places.replaced(node, &place);
        if !wanted {
            node = Node::Unary(UnaryOp::Not, Box::new(node));
        }
        // Where the path is undefined there is no entry; if the condition holds there, entries do not help.
        let mut frame = Frame::new(ITEM_SLOT + 1, &self.prepared.context, &Rc::default());
        let holds_undefined = frame.eval(&node).map_or(true, |value| value.is_true());
        if holds_undefined {
            return Filter::Everything;
        }
        let check = Some(Check { node: node.clone(), percent });
        Filter::Scan(Scan { place, ranges, check, exact: true, prefix: false })
    }
}

/// The values for which `value op constant` is true; `None` where the index has no say.
fn comparison(op: BinaryOp, constant: &Value) -> Option<Ranges> {
    let Some(kind) = constant.kind() else { return Some(Ranges::exact(Vec::new())) };
    // Decimals lie among numbers, with which they do not compare: let the item tell.
    if kind == Kind::Decimal {
        return is_comparison(op).then(|| Ranges { ranges: defined(), exact: false });
    }
    if let Value::Number(number) = constant {
        if number.as_f64().is_nan() {
            return is_comparison(op).then(|| Ranges::exact(Vec::new()));
        }
        if number.as_f64().abs() >= EXACT_NUMBER_MAX || matches!(number, Number::UInt(_)) {
            let ranges = if op == BinaryOp::NotEqual { defined() } else { vec![ValueRange::of_kind(kind)] };
            return is_comparison(op).then_some(Ranges { ranges, exact: false });
        }
    }
    let ordered = !matches!(kind, Kind::Array | Kind::Object);
    let one = |range: ValueRange| Some(Ranges::exact(union(vec![range])));
    match op {
        BinaryOp::Equal => one(ValueRange::equal(constant)),
        BinaryOp::NotEqual if is_exact(constant) => {
            Some(Ranges::exact(complement(&[ValueRange::equal(constant)])))
        }
        BinaryOp::NotEqual => Some(Ranges { ranges: defined(), exact: false }),
        BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual => {
            if !ordered {
                return Some(Ranges::exact(Vec::new()));
            }
            if constant.as_str().is_some_and(|text| text.chars().any(|character| character >= SAME_ORDER_END))
            {
                return Some(Ranges { ranges: strings(), exact: false });
            }
            let inclusive = matches!(op, BinaryOp::LessEqual | BinaryOp::GreaterEqual);
            match op {
                BinaryOp::Less | BinaryOp::LessEqual => one(ValueRange::below(constant, inclusive)),
                _ => one(ValueRange::above(constant, inclusive)),
            }
        }
        _ => None,
    }
}

/// The values that equal one of these.
fn one_of<'v>(values: impl IntoIterator<Item = &'v Value>) -> Option<Ranges> {
    let equal = values.into_iter().map(|value| comparison(BinaryOp::Equal, value));
    let equal = equal.collect::<Option<Vec<Ranges>>>()?;
    let exact = equal.iter().all(|ranges| ranges.exact);
    Some(Ranges { ranges: union(equal.into_iter().flat_map(|ranges| ranges.ranges).collect()), exact })
}

fn is_comparison(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::Less
            | BinaryOp::LessEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterEqual
    )
}

/// Whether the entry of a value is no other value's.
fn is_exact(value: &Value) -> bool {
    let mut encoded = Vec::new();
    orrery_index::encode_value(&mut encoded, value);
    orrery_index::is_exact(&encoded)
}

fn defined() -> Vec<ValueRange> {
    vec![ValueRange::defined()]
}

fn strings() -> Vec<ValueRange> {
    vec![ValueRange::of_kind(Kind::String)]
}

/// Everything defined but these, which are in order.
fn complement(ranges: &[ValueRange]) -> Vec<ValueRange> {
    let mut rest = Vec::with_capacity(ranges.len() + 1);
    let all = ValueRange::defined();
    let mut from = all.start;
    for range in ranges {
        rest.push(ValueRange::of_bytes(from, range.start.clone()));
        from = range.end.clone();
    }
    rest.push(ValueRange::of_bytes(from, all.end));
    rest.retain(|range| !range.is_empty());
    rest
}

/// The operator with its sides exchanged.
pub(super) fn turned(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Equal | BinaryOp::NotEqual => op,
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::LessEqual => BinaryOp::GreaterEqual,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::GreaterEqual => BinaryOp::LessEqual,
        _ => return None,
    })
}

/// The operator that is true where this one is false; both are undefined in the same places.
fn negated(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Equal => BinaryOp::NotEqual,
        BinaryOp::NotEqual => BinaryOp::Equal,
        BinaryOp::Less => BinaryOp::GreaterEqual,
        BinaryOp::LessEqual => BinaryOp::Greater,
        BinaryOp::Greater => BinaryOp::LessEqual,
        BinaryOp::GreaterEqual => BinaryOp::Less,
        _ => return None,
    })
}

fn kinds_of(function: &str) -> Option<&'static [Kind]> {
    Some(match function {
        "IS_NULL" => &[Kind::Null],
        "IS_BOOL" => &[Kind::Bool],
        "IS_NUMBER" => &[Kind::Number],
        "IS_STRING" => &[Kind::String],
        "IS_ARRAY" => &[Kind::Array],
        "IS_OBJECT" => &[Kind::Object],
        "IS_PRIMITIVE" => &[Kind::Null, Kind::Bool, Kind::Number, Kind::String],
        _ => return None,
    })
}
