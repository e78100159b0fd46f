//! A traversal before it is planned: instructions with values as arguments.
//!
//! The text front end ([`crate::parse`]) and the drivers' bytecode give the same form, so there is one planner. A
//! nested traversal is an argument of kind [`Value::Traversal`].

use std::sync::Arc;

use crate::error::Position;
use crate::value::Value;

/// `g.withSack(1).V().out()`: source instructions (`withSack`) and steps (`V`, `out`). A nested traversal has steps
/// alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bytecode {
    pub source: Vec<Instruction>,
    pub steps: Vec<Instruction>,
}

/// A method by its name, with its arguments.
#[derive(Clone, Debug)]
pub struct Instruction {
    pub name: Arc<str>,
    pub arguments: Vec<Value>,
    /// Where it stands in the script; the start when it came as bytecode.
    pub at: Position,
    /// Whether its arguments are written out in a script. Only there is a list of two surely a partition key with an
    /// id.
    pub literal: bool,
}

impl PartialEq for Instruction {
    fn eq(&self, other: &Instruction) -> bool {
        self.name == other.name && self.arguments == other.arguments
    }
}

impl Instruction {
    pub fn new(name: impl Into<Arc<str>>, arguments: Vec<Value>) -> Instruction {
        Instruction { name: name.into(), arguments, at: Position::default(), literal: false }
    }
}

/// A strategy as `withStrategies()` takes it: the class's simple name and its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    pub name: Arc<str>,
    pub settings: Vec<(Arc<str>, Value)>,
}
