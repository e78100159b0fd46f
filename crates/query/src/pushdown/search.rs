//! Conditions that indexes of their own answer: how shapes lie to each other, which words stand in a text.
//!
//! `ST_DISTANCE(c.place, @here) < 500` looks for shapes around `@here`. Which cells that means depends on the index,
//! so a search only says what is looked for; whoever knows the index asks for the cells.

use std::fmt;

use orrery_model::{Number, Value};
use orrery_sql::BinaryOp;

use super::predicate::turned;
use super::{Filter, Place};
use crate::fulltext::Term;
use crate::language::Language;
use crate::node::Node;
use crate::spatial::Around;
use crate::value::Eval;

/// Items that a search index may lead to.
#[derive(Clone, Debug)]
pub struct Search {
    pub place: Place,
    pub kind: SearchKind,
    /// Whether exactly the items found pass the condition, apart from those that must be asked.
    pub exact: bool,
    /// The same condition where there is no such index.
    pub otherwise: Box<Filter>,
}

#[derive(Clone, Debug)]
pub enum SearchKind {
    /// Shapes near another one. The items must be asked.
    Around(Around),
    /// Texts in which one of these terms stands, or all of them.
    Terms { terms: Vec<Term>, all: bool },
}

/// For people.
impl fmt::Display for Search {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            SearchKind::Around(_) => write!(out, "{}: cells of shapes", self.place),
            SearchKind::Terms { terms, all: false } => {
                write!(out, "{}: any of {} terms", self.place, terms.len())
            }
            SearchKind::Terms { terms, all: true } => {
                write!(out, "{}: all of {} terms", self.place, terms.len())
            }
        }
    }
}

/// What a condition looks for, if it can be looked for: the path and the rest.
pub(super) fn read(node: &Node, planar: bool) -> Option<(&Node, SearchKind)> {
    match node {
        Node::Call(function, arguments) => match (function.name, arguments.as_slice()) {
            ("ST_WITHIN" | "ST_INTERSECTS", [first, second]) => around(first, second, planar, 0.0),
            ("FULLTEXTCONTAINS" | "FULLTEXTCONTAINSANY", [text, wanted @ ..]) => {
                terms(text, wanted, false, function.language)
            }
            ("FULLTEXTCONTAINSALL", [text, wanted @ ..]) => terms(text, wanted, true, function.language),
            _ => None,
        },
        Node::Binary(op, left, right) => match (&**left, &**right) {
            // Some write the answer they want to hear.
            (call @ Node::Call(..), Node::Constant(Value::Bool(true)))
            | (Node::Constant(Value::Bool(true)), call @ Node::Call(..))
                if *op == BinaryOp::Equal =>
            {
                read(call, planar)
            }
            (call, Node::Constant(Value::Number(reach))) => within_reach(call, *op, *reach, planar),
            (Node::Constant(Value::Number(reach)), call) => within_reach(call, turned(*op)?, *reach, planar),
            _ => None,
        },
        Node::Between { value, high, negated: false, .. } => match &**high {
            Node::Constant(Value::Number(reach)) => within_reach(value, BinaryOp::LessEqual, *reach, planar),
            _ => None,
        },
        _ => None,
    }
}

fn within_reach(call: &Node, op: BinaryOp, reach: Number, planar: bool) -> Option<(&Node, SearchKind)> {
    let Node::Call(function, arguments) = call else { return None };
    let near = matches!(op, BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Equal);
    match (function.name, arguments.as_slice()) {
        ("ST_DISTANCE", [first, second]) if near => around(first, second, planar, reach.as_f64()),
        _ => None,
    }
}

fn around<'n>(first: &'n Node, second: &'n Node, planar: bool, reach: f64) -> Option<(&'n Node, SearchKind)> {
    let (path, constant) = match (first, second) {
        (path, Node::Constant(shape)) | (Node::Constant(shape), path) => (path, shape),
        _ => return None,
    };
    Some((path, SearchKind::Around(Around::new(constant, planar, reach)?)))
}

fn terms<'n>(
    text: &'n Node,
    wanted: &[Node],
    all: bool,
    language: Language,
) -> Option<(&'n Node, SearchKind)> {
    let findable = |node: &Node| findable_term(node.as_constant()?, language);
    Some((text, SearchKind::Terms { terms: wanted.iter().map(findable).collect::<Option<_>>()?, all }))
}

/// A term that an index finds.
pub(super) fn findable_term(value: &Value, language: Language) -> Option<Term> {
    Term::of(&Eval::from_constant(value), language).filter(Term::is_findable)
}
