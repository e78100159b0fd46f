//! What an expression is evaluated over: a document, the context of the command, and variables that expressions
//! around it bind.

use crate::context::Context;
use crate::value::Bson;
use crate::value_ref::ValueRef;

/// A variable, told apart from all others of one parsed expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableId(pub(crate) u32);

/// What an expression is evaluated over.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// `$$ROOT`.
    pub root: ValueRef<'a>,
    /// `$$CURRENT`, which paths begin at: the root but in `$redact`, which goes down.
    pub current: ValueRef<'a>,
    pub context: &'a Context,
    bindings: Option<&'a Binding<'a>>,
}

/// A variable with its value, and those bound before it.
pub(crate) struct Binding<'a> {
    pub id: VariableId,
    pub value: Option<ValueRef<'a>>,
    pub outer: Option<&'a Binding<'a>>,
}

impl<'a> Scope<'a> {
    pub fn new(root: ValueRef<'a>, context: &'a Context) -> Scope<'a> {
        Scope { root, current: root, context, bindings: None }
    }

    /// The same with another `$$CURRENT`.
    #[must_use]
    pub fn at(self, current: ValueRef<'a>) -> Scope<'a> {
        Scope { current, ..self }
    }

    pub(crate) fn variable(&self, id: VariableId) -> Option<ValueRef<'a>> {
        let mut binding = self.bindings;
        while let Some(bound) = binding {
            if bound.id == id {
                return bound.value;
            }
            binding = bound.outer;
        }
        None
    }

    pub(crate) fn bindings(&self) -> Option<&'a Binding<'a>> {
        self.bindings
    }

    pub(crate) fn with(self, bindings: &'a Binding<'a>) -> Scope<'a> {
        Scope { bindings: Some(bindings), ..self }
    }
}

/// A value that an expression gave: in the document, or made.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    Missing,
    Ref(ValueRef<'a>),
    Owned(Bson),
}

impl<'a> Value<'a> {
    pub fn get(&self) -> Option<ValueRef<'_>> {
        match self {
            Value::Missing => None,
            Value::Ref(value) => Some(*value),
            Value::Owned(value) => Some(ValueRef::Owned(value)),
        }
    }

    /// The value, where missing counts as null.
    pub fn or_null(&self) -> ValueRef<'_> {
        const NULL: &Bson = &Bson::Null;
        self.get().unwrap_or(ValueRef::Owned(NULL))
    }

    pub fn into_bson(self) -> Option<Bson> {
        match self {
            Value::Missing => None,
            Value::Ref(value) => Some(value.to_bson()),
            Value::Owned(value) => Some(value),
        }
    }
}
