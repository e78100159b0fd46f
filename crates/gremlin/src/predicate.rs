//! Predicates: `P` and `TextP`.

use crate::value::{GType, Value};

/// A predicate over one value.
#[derive(Clone, Debug, PartialEq)]
pub enum P {
    Eq(Value),
    Neq(Value),
    Lt(Value),
    Lte(Value),
    Gt(Value),
    Gte(Value),
    /// Both ends excluded.
    Inside(Value, Value),
    Outside(Value, Value),
    /// The first end included.
    Between(Value, Value),
    Within(Vec<Value>),
    Without(Vec<Value>),
    TypeOf(GType),
    Text(TextOp, Value),
    And(Vec<P>),
    Or(Vec<P>),
    Not(Box<P>),
}

/// What a text is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextOp {
    Containing,
    NotContaining,
    StartingWith,
    NotStartingWith,
    EndingWith,
    NotEndingWith,
    Regex,
    NotRegex,
}
