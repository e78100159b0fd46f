//! What a query is compiled to: expressions whose names are slots, and blocks of nested loops.
//!
//! A slot holds the value of one alias while a row is evaluated. Slot 0 is the item itself; every FROM
//! source, group key and aggregate result gets a slot of its own, numbered through the whole query, so
//! that subqueries see the slots of the queries around them.

use orrery_model::Value;
use orrery_sql::{BinaryOp, LogicalOp, SubqueryKind, UnaryOp};

use crate::aggregate::AggregateKind;
use crate::functions::Function;
use crate::like::LikePattern;

#[derive(Clone, Debug)]
pub(crate) enum Node {
    Constant(Value),
    Slot(usize),
    Member(Box<Node>, String),
    Element(Box<Node>, usize),
    Unary(UnaryOp, Box<Node>),
    Binary(BinaryOp, Box<Node>, Box<Node>),
    Logical(LogicalOp, Vec<Node>),
    /// `sorted`: many constant strings, in the order of their bytes.
    In {
        needle: Box<Node>,
        list: Vec<Node>,
        negated: bool,
        sorted: bool,
    },
    Like {
        text: Box<Node>,
        pattern: Pattern,
        negated: bool,
    },
    Between {
        value: Box<Node>,
        low: Box<Node>,
        high: Box<Node>,
        negated: bool,
    },
    Conditional(Box<Node>, Box<Node>, Box<Node>),
    Coalesce(Box<Node>, Box<Node>),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
    Call(&'static Function, Vec<Node>),
    Udf(String, Vec<Node>),
    Subquery(SubqueryKind, Box<SelectBlock>),
}

/// From how many strings on a list is searched in halves.
pub(crate) const SORTED_LIST_MIN: usize = 8;

/// The text of a constant string.
pub(crate) fn text_of(node: &Node) -> Option<&str> {
    match node {
        Node::Constant(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// A LIKE pattern, compiled ahead when it is constant.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Ready(LikePattern),
    Computed(Box<Node>, Option<char>),
}

/// One query: loops over its sources, the filters of each loop, and what becomes of the rows.
#[derive(Clone, Debug)]
pub(crate) struct SelectBlock {
    pub sources: Vec<BlockSource>,
    /// Conjuncts of WHERE that need no source at all.
    pub guards: Vec<Node>,
    pub distinct: bool,
    pub grouping: Option<Grouping>,
    /// The row; undefined is no row for `SELECT VALUE` and `SELECT *`.
    pub projection: Node,
    /// Whether an undefined projection drops the row: false for select lists, which always build an object.
    pub value: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct BlockSource {
    pub slot: usize,
    pub kind: SourceKind,
    /// Conjuncts of WHERE that can be decided once this source is bound.
    pub filters: Vec<Node>,
}

#[derive(Clone, Debug)]
pub(crate) enum SourceKind {
    /// Binds the value, unless it is undefined.
    Value(Node),
    /// Binds each element of an array.
    Elements(Node),
    /// Binds each row of a subquery.
    Rows(Box<SelectBlock>),
    /// Binds each element of each row of a subquery.
    RowElements(Box<SelectBlock>),
}

#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    /// Expression and slot of each GROUP BY key.
    pub keys: Vec<(Node, usize)>,
    /// Kind, argument and result slot of each aggregate.
    pub aggregates: Vec<(AggregateKind, Node, usize)>,
}

impl Node {
    pub fn as_constant(&self) -> Option<&Value> {
        if let Node::Constant(value) = self { Some(value) } else { None }
    }

    /// Whether the value depends on nothing but the slots: no dice, no clock that moves, no scripts.
    pub fn is_pure(&self) -> bool {
        let mut pure = true;
        self.for_each_node(&mut |node| match node {
            Node::Udf(..) => pure = false,
            Node::Call(function, _) => pure &= function.deterministic,
            _ => {}
        });
        pure
    }

    /// Calls `visit` with every slot this expression reads, in subqueries too.
    pub fn for_each_slot(&self, visit: &mut dyn FnMut(usize)) {
        self.for_each_node(&mut |node| {
            if let Node::Slot(slot) = node {
                visit(*slot);
            }
        });
    }

    /// Calls `visit` with this expression and everything inside it, in subqueries too.
    pub fn for_each_node(&self, visit: &mut dyn FnMut(&Node)) {
        visit(self);
        match self {
            Node::Subquery(_, block) => block.for_each_node(visit),
            node => node.for_each_child(&mut |child| child.for_each_node(visit)),
        }
    }

    /// Calls `visit` with the operands of this expression. What a subquery holds is not among them.
    pub fn for_each_child(&self, visit: &mut dyn FnMut(&Node)) {
        match self {
            Node::Constant(_) | Node::Slot(_) | Node::Subquery(..) => {}
            Node::Member(inner, _) | Node::Element(inner, _) | Node::Unary(_, inner) => visit(inner),
            Node::Binary(_, left, right) | Node::Coalesce(left, right) => {
                visit(left);
                visit(right);
            }
            Node::Between { value: first, low: second, high: third, .. }
            | Node::Conditional(first, second, third) => {
                visit(first);
                visit(second);
                visit(third);
            }
            Node::In { needle, list, .. } => {
                visit(needle);
                list.iter().for_each(visit);
            }
            Node::Like { text, pattern, .. } => {
                visit(text);
                if let Pattern::Computed(pattern, _) = pattern {
                    visit(pattern);
                }
            }
            Node::Logical(_, nodes) | Node::Array(nodes) | Node::Call(_, nodes) | Node::Udf(_, nodes) => {
                nodes.iter().for_each(visit);
            }
            Node::Object(members) => members.iter().for_each(|(_, node)| visit(node)),
        }
    }

    /// The same with operands that can be changed.
    pub fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Node)) {
        match self {
            Node::Constant(_) | Node::Slot(_) | Node::Subquery(..) => {}
            Node::Member(inner, _) | Node::Element(inner, _) | Node::Unary(_, inner) => visit(inner),
            Node::Binary(_, left, right) | Node::Coalesce(left, right) => {
                visit(left);
                visit(right);
            }
            Node::Between { value: first, low: second, high: third, .. }
            | Node::Conditional(first, second, third) => {
                visit(first);
                visit(second);
                visit(third);
            }
            Node::In { needle, list, .. } => {
                visit(needle);
                list.iter_mut().for_each(visit);
            }
            Node::Like { text, pattern, .. } => {
                visit(text);
                if let Pattern::Computed(pattern, _) = pattern {
                    visit(pattern);
                }
            }
            Node::Logical(_, nodes) | Node::Array(nodes) | Node::Call(_, nodes) | Node::Udf(_, nodes) => {
                nodes.iter_mut().for_each(visit);
            }
            Node::Object(members) => members.iter_mut().for_each(|(_, node)| visit(node)),
        }
    }
}

impl SelectBlock {
    pub fn for_each_node(&self, visit: &mut dyn FnMut(&Node)) {
        for source in &self.sources {
            match &source.kind {
                SourceKind::Value(node) | SourceKind::Elements(node) => node.for_each_node(visit),
                SourceKind::Rows(block) | SourceKind::RowElements(block) => block.for_each_node(visit),
            }
            source.filters.iter().for_each(|node| node.for_each_node(visit));
        }
        self.guards.iter().for_each(|node| node.for_each_node(visit));
        if let Some(grouping) = &self.grouping {
            grouping.keys.iter().for_each(|(node, _)| node.for_each_node(visit));
            grouping.aggregates.iter().for_each(|(_, node, _)| node.for_each_node(visit));
        }
        self.projection.for_each_node(visit);
    }
}
