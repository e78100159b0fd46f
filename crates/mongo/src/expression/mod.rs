//! Expressions of aggregation: parsed once, evaluated for each document.
//!
//! `parse` makes a tree of [`Expression`]s out of a value. Subexpressions that depend on nothing are evaluated at
//! once, so that their errors are seen when the command is parsed, as the server does. The operators stand in one
//! table ([`table::OPERATORS`]), one small family per file; documentation is generated from it.
//!
//! ```text
//! {$add: ["$a", {$multiply: [2, 3]}]}   =>   call $add (path a) (constant 6)
//! ```
//!
//! A value may be missing, which is not null: `None` wherever values are optional here.

mod arguments;
mod arithmetic;
pub(crate) mod array;
mod bits;
mod boolean;
mod comparison;
mod conditional;
mod convert;
pub mod date;
mod lambda;
mod literal;
mod logarithm;
pub mod number;
pub(crate) mod object;
mod parse;
mod path;
mod random;
mod scope;
pub(crate) mod set;
pub(crate) mod size;
mod statistics;
pub mod table;
mod text;
mod timestamp;
mod trigonometry;
pub mod value;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use path::FieldPath;
pub use scope::{Scope, Value, VariableId};

use crate::context::Context;
use crate::error::Result;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

/// Expressions within each other.
pub const DEPTH_MAX: usize = 200;

/// What `$redact` decides by: `$$DESCEND`, `$$PRUNE` and `$$KEEP` are these texts.
pub const DESCEND: &str = "descend";
pub const PRUNE: &str = "prune";
pub const KEEP: &str = "keep";

/// A parsed expression. Clones share it.
#[derive(Clone, Debug)]
pub struct Expression(Arc<Node>);

#[derive(Debug)]
pub(crate) enum Node {
    /// A value that depends on nothing; `None` is missing.
    Constant(Option<Bson>),
    /// A named argument that was not given.
    Absent,
    /// A path from a document or variable.
    Path {
        from: Origin,
        path: FieldPath,
    },
    Object(Vec<(Arc<str>, Expression)>),
    Array(Vec<Expression>),
    /// An operator whose arguments are all evaluated before it.
    Call {
        name: &'static str,
        run: Run,
        arguments: Vec<Expression>,
    },
    /// An operator that evaluates its arguments by itself: not all of them, or several times.
    Lazy {
        name: &'static str,
        run: RunLazy,
        arguments: Vec<Expression>,
        /// Variables that it binds.
        variables: Vec<VariableId>,
    },
}

/// Where a path begins.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Root,
    Current,
    /// Bound by an expression around it.
    Bound(VariableId),
    /// A variable of the command or of `$lookup`, found in the context by its name.
    Named(Arc<str>),
    Now,
    ClusterTime,
}

pub(crate) type Run = fn(&Call<'_>) -> Result<Option<Bson>>;
pub(crate) type RunLazy = fn(&LazyCall<'_>) -> Result<Option<Bson>>;

/// A call with its arguments evaluated.
pub(crate) struct Call<'a> {
    pub name: &'static str,
    pub arguments: &'a [Option<Bson>],
    pub context: &'a Context,
}

/// A call with its arguments to be evaluated.
pub(crate) struct LazyCall<'a> {
    pub name: &'static str,
    pub arguments: &'a [Expression],
    pub variables: &'a [VariableId],
    pub scope: &'a Scope<'a>,
}

impl Expression {
    pub fn parse(expression: &Bson, context: &Context) -> Result<Expression> {
        parse::Parser::new(context).expression(expression)
    }

    /// Parses an expression of `$redact`, which knows `$$DESCEND`, `$$PRUNE` and `$$KEEP`.
    pub fn parse_redact(expression: &Bson, context: &Context) -> Result<Expression> {
        parse::Parser::for_redact(context).expression(expression)
    }

    pub fn constant(value: Option<Bson>) -> Expression {
        Expression(Arc::new(Node::Constant(value)))
    }

    /// A path from the document, as `"$a.b"` says it.
    pub fn field(path: &str) -> Result<Expression> {
        let path = FieldPath::parse(path)?;
        Ok(Expression(Arc::new(Node::Path { from: Origin::Current, path })))
    }

    /// The value; `None` where it is missing.
    pub fn evaluate(&self, document: ValueRef<'_>, context: &Context) -> Result<Option<Bson>> {
        self.evaluate_in(&Scope::new(document, context))
    }

    pub fn evaluate_in(&self, scope: &Scope<'_>) -> Result<Option<Bson>> {
        match &*self.0 {
            Node::Constant(value) => Ok(value.clone()),
            Node::Absent => Ok(None),
            Node::Path { .. } => Ok(self.value_in(scope)?.into_bson()),
            Node::Object(members) => {
                let mut document = Document::new();
                for (name, member) in members {
                    if let Some(value) = member.evaluate_in(scope)? {
                        document.push(name.clone(), value);
                    }
                }
                Ok(Some(Bson::Document(document)))
            }
            Node::Array(elements) => {
                let values: Result<Vec<Bson>> =
                    elements.iter().map(|e| Ok(e.evaluate_in(scope)?.unwrap_or(Bson::Null))).collect();
                Ok(Some(Bson::array(values?)))
            }
            Node::Call { name, run, arguments } => {
                scope.context.budget.step(1)?;
                let mut values = smallvec::SmallVec::<[Option<Bson>; 4]>::new();
                for argument in arguments {
                    values.push(argument.evaluate_in(scope)?);
                }
                run(&Call { name, arguments: &values, context: scope.context })
            }
            Node::Lazy { name, run, arguments, variables } => {
                scope.context.budget.step(1)?;
                run(&LazyCall { name, arguments, variables, scope })
            }
        }
    }

    /// The value where it lies, if it lies somewhere: constants and paths are not copied.
    pub fn value_in<'s>(&'s self, scope: &'s Scope<'s>) -> Result<Value<'s>> {
        match &*self.0 {
            Node::Constant(Some(value)) => Ok(Value::Ref(ValueRef::Owned(value))),
            Node::Constant(None) | Node::Absent => Ok(Value::Missing),
            Node::Path { from, path } => match from {
                Origin::Root => path.read(scope.root),
                Origin::Current => path.read(scope.current),
                Origin::Bound(id) => scope.variable(*id).map_or(Ok(Value::Missing), |v| path.read(v)),
                Origin::Named(name) => match scope.context.variables.get(name) {
                    None | Some(Bson::Undefined) => Ok(Value::Missing),
                    Some(value) => path.read(ValueRef::Owned(value)),
                },
                Origin::Now => path.read_owned(Bson::Date(scope.context.now_ms)),
                Origin::ClusterTime => {
                    let (seconds, increment) = scope.context.cluster_time;
                    path.read_owned(Bson::Timestamp { seconds, increment })
                }
            },
            _ => Ok(self.evaluate_in(scope)?.map_or(Value::Missing, Value::Owned)),
        }
    }

    /// Whether it depends on nothing.
    pub fn is_constant(&self) -> bool {
        matches!(&*self.0, Node::Constant(_) | Node::Absent)
    }

    /// The value of a constant, which may be missing.
    pub fn as_constant(&self) -> Option<Option<&Bson>> {
        match &*self.0 {
            Node::Constant(value) => Some(value.as_ref()),
            Node::Absent => Some(None),
            _ => None,
        }
    }

    /// The document itself: `$$CURRENT`.
    pub fn current() -> Expression {
        Expression(Arc::new(Node::Path { from: Origin::Current, path: FieldPath::here() }))
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(&*self.0, Node::Absent)
    }

    pub(crate) fn of(node: Node) -> Expression {
        Expression(Arc::new(node))
    }

    /// The path, where the expression is no more than one: `"$a.b"`.
    pub fn as_path(&self) -> Option<&FieldPath> {
        match &*self.0 {
            Node::Path { from: Origin::Current | Origin::Root, path } if !path.is_empty() => Some(path),
            _ => None,
        }
    }

    /// The paths of the document that it reads; `None` where it may read all of it.
    pub fn paths(&self) -> Option<BTreeSet<String>> {
        let mut paths = BTreeSet::new();
        self.collect_paths(&mut paths).then_some(paths)
    }

    fn collect_paths(&self, paths: &mut BTreeSet<String>) -> bool {
        match &*self.0 {
            Node::Constant(_) | Node::Absent => true,
            Node::Path { from: Origin::Root | Origin::Current, path } => {
                paths.insert(path.to_string());
                !path.is_empty()
            }
            Node::Path { .. } => true,
            Node::Object(members) => members.iter().all(|(_, member)| member.collect_paths(paths)),
            Node::Array(arguments) | Node::Call { arguments, .. } | Node::Lazy { arguments, .. } => {
                arguments.iter().all(|argument| argument.collect_paths(paths))
            }
        }
    }
}
