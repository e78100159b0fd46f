//! `$filter`: text to a typed expression (`parse`), and that to the syntax tree of SQL (`sql`), so that tables are
//! searched by the same predicates and the same index as everything else.
//!
//! ```text
//! PartitionKey eq 'p' and (Age gt 21 or not Active)
//! ```
//!
//! An expression is true or false, never undefined: a comparison with a property that is missing, or of another type,
//! is false, and its negation is true.

#[cfg(test)]
mod model_tests;
mod parse;
mod sql;

pub use parse::parse;
pub use sql::{Compiled, compile, query_env};

#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    Constant(bool),
    Compare(Comparison),
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Box<Filter>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    pub property: String,
    pub operator: Operator,
    pub value: Literal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Operator {
    /// The operator for swapped sides.
    fn turned(self) -> Operator {
        match self {
            Operator::Greater => Operator::Less,
            Operator::GreaterOrEqual => Operator::LessOrEqual,
            Operator::Less => Operator::Greater,
            Operator::LessOrEqual => Operator::GreaterOrEqual,
            same => same,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    String(String),
    Boolean(bool),
    Integer(i64),
    Double(f64),
    /// In ticks.
    DateTime(u64),
    Guid(String),
    /// In base64.
    Binary(String),
}

impl Filter {
    /// The one partition that entities must lie in, if the filter names it.
    pub fn partition_key(&self) -> Option<&str> {
        match self {
            Filter::Compare(Comparison {
                property,
                operator: Operator::Equal,
                value: Literal::String(key),
            }) if property == "PartitionKey" => Some(key),
            Filter::And(parts) => parts.iter().find_map(Filter::partition_key),
            _ => None,
        }
    }
}
