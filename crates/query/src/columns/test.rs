//! Conditions over columns.
//!
//! Numbers that are compared are read, computed and compared without anything in between. A string that a column is to
//! be equal to is looked up in its dictionary; any other condition on one column of strings is asked once for each
//! string. Everything else goes to the evaluator.

use std::cmp::Ordering;

use orrery_model::Number;
use orrery_sql::BinaryOp;

use super::column::{Column, Tag};
use super::query::ColumnQuery;
use crate::eval::{Evaluated, Frame};
use crate::node::Node;
use crate::operators::arithmetic;
use crate::value::Eval;

/// One of the conditions that all have to hold.
pub(super) enum Test<'c> {
    Numbers {
        left: Numeric,
        op: BinaryOp,
        right: Numeric,
    },
    /// A column is one string: which of its dictionary, if it is there.
    Text {
        column: usize,
        code: Option<usize>,
    },
    Expression(Expression<'c>),
}

/// An expression over columns, for the evaluator.
pub(super) struct Expression<'c> {
    node: &'c Node,
    columns: Vec<usize>,
    /// What it came to for each string of its only column.
    known: Vec<Option<bool>>,
}

/// A number, or nothing.
pub(super) enum Numeric {
    Column(usize),
    Constant(Number),
    Computed(BinaryOp, Box<(Numeric, Numeric)>),
}

impl<'c> Test<'c> {
    pub fn new(node: &'c Node, query: &ColumnQuery, columns: &[&Column]) -> Test<'c> {
        numbers(node, query)
            .or_else(|| text(node, query, columns))
            .unwrap_or_else(|| Test::Expression(Expression::new(node, query, columns)))
    }

    /// Keeps the rows for which it holds.
    pub fn retain(
        &mut self,
        rows: &mut Vec<u32>,
        query: &ColumnQuery,
        columns: &[&'c Column],
        frame: &mut Frame<'c>,
    ) -> Evaluated<()> {
        match self {
            Test::Numbers { left, op, right } => {
                let wanted = accepts(*op);
                rows.retain(|row| {
                    let row = *row as usize;
                    match (left.value(columns, row), right.value(columns, row)) {
                        (Some(left), Some(right)) => {
                            !is_nan(left) && !is_nan(right) && wanted(left.compare(right))
                        }
                        _ => false,
                    }
                });
                Ok(())
            }
            Test::Text { column, code } => {
                let column = columns[*column];
                match code {
                    Some(code) => rows.retain(|row| {
                        let row = *row as usize;
                        column.tag(row) == Tag::Text && column.code(row) == *code
                    }),
                    None => rows.clear(),
                }
                Ok(())
            }
            Test::Expression(expression) => {
                let mut failed = None;
                let only = match expression.columns.as_slice() {
                    [column] => Some(columns[*column]),
                    _ => None,
                };
                rows.retain(|row| {
                    let row = *row as usize;
                    // Nearly all rows are decided here.
                    if let Some(column) = only
                        && column.tag(row) == Tag::Text
                        && let Some(known) = expression.known[column.code(row)]
                    {
                        return known;
                    }
                    failed.is_none()
                        && expression.holds(row, query, columns, frame).unwrap_or_else(|error| {
                            failed = Some(error);
                            false
                        })
                });
                failed.map_or(Ok(()), Err)
            }
        }
    }
}

impl<'c> Expression<'c> {
    pub fn new(node: &'c Node, query: &ColumnQuery, columns: &[&Column]) -> Expression<'c> {
        let read = query.columns_of(node);
        let known = match read.as_slice() {
            [column] => vec![None; columns[*column].text_count()],
            _ => Vec::new(),
        };
        Expression { node, columns: read, known }
    }

    pub fn eval(
        &self,
        row: usize,
        query: &ColumnQuery,
        columns: &[&'c Column],
        frame: &mut Frame<'c>,
    ) -> Evaluated<Eval<'c>> {
        for column in &self.columns {
            frame.slots[query.first_slot + column] = columns[*column].eval(row);
        }
        frame.eval(self.node)
    }

    fn holds(
        &mut self,
        row: usize,
        query: &ColumnQuery,
        columns: &[&'c Column],
        frame: &mut Frame<'c>,
    ) -> Evaluated<bool> {
        if let [column] = self.columns.as_slice()
            && columns[*column].tag(row) == Tag::Text
        {
            let code = columns[*column].code(row);
            if let Some(known) = self.known[code] {
                return Ok(known);
            }
            let holds = self.eval(row, query, columns, frame)?.is_true();
            self.known[code] = Some(holds);
            return Ok(holds);
        }
        Ok(self.eval(row, query, columns, frame)?.is_true())
    }
}

impl Numeric {
    fn of(node: &Node, query: &ColumnQuery) -> Option<Numeric> {
        if let Some(column) = query.column(node) {
            return Some(Numeric::Column(column));
        }
        match node {
            Node::Constant(value) => match Eval::from_constant(value) {
                Eval::Number(number) => Some(Numeric::Constant(number)),
                _ => None,
            },
            Node::Binary(op, left, right) if is_arithmetic(*op) => {
                let both = (Numeric::of(left, query)?, Numeric::of(right, query)?);
                Some(Numeric::Computed(*op, Box::new(both)))
            }
            _ => None,
        }
    }

    #[inline]
    fn value(&self, columns: &[&Column], row: usize) -> Option<Number> {
        match self {
            Numeric::Column(column) => columns[*column].number(row),
            Numeric::Constant(number) => Some(*number),
            Numeric::Computed(op, both) => {
                Some(arithmetic(*op, both.0.value(columns, row)?, both.1.value(columns, row)?))
            }
        }
    }

    /// Whether it is a number or undefined, and nothing else.
    fn is_computed(&self) -> bool {
        !matches!(self, Numeric::Column(_))
    }
}

/// A comparison that holds for numbers only. One side is no bare column: two strings may be equal as well.
fn numbers<'c>(node: &Node, query: &ColumnQuery) -> Option<Test<'c>> {
    let Node::Binary(op, left, right) = node else { return None };
    if !is_comparison(*op) {
        return None;
    }
    let (left, right) = (Numeric::of(left, query)?, Numeric::of(right, query)?);
    let either = left.is_computed() || right.is_computed();
    // A string is not equal to a number.
    let both = left.is_computed() && right.is_computed();
    let decided = if *op == BinaryOp::NotEqual { both } else { either };
    decided.then_some(Test::Numbers { left, op: *op, right })
}

/// That a column is equal to a string. Nothing but a string is.
fn text<'c>(node: &Node, query: &ColumnQuery, columns: &[&Column]) -> Option<Test<'c>> {
    let Node::Binary(BinaryOp::Equal, left, right) = node else { return None };
    let (column, constant) = match (query.column(left), query.column(right)) {
        (Some(column), None) => (column, right),
        (None, Some(column)) => (column, left),
        _ => return None,
    };
    let Node::Constant(constant) = &**constant else { return None };
    let code = columns[column].find_text(constant.as_str()?);
    Some(Test::Text { column, code })
}

fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    matches!(op, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
}

fn is_arithmetic(op: BinaryOp) -> bool {
    !is_comparison(op) && op != BinaryOp::Concat
}

fn accepts(op: BinaryOp) -> fn(Ordering) -> bool {
    match op {
        BinaryOp::Equal => Ordering::is_eq,
        BinaryOp::NotEqual => Ordering::is_ne,
        BinaryOp::Less => Ordering::is_lt,
        BinaryOp::LessEqual => Ordering::is_le,
        BinaryOp::Greater => Ordering::is_gt,
        _ => Ordering::is_ge,
    }
}

#[inline]
fn is_nan(number: Number) -> bool {
    matches!(number, Number::Double(value) if value.is_nan())
}
