//! Values to expressions: texts with a dollar are paths and variables, documents with an operator are calls.

use std::sync::Arc;

use super::table::{self, Build, Operator};
use super::{DEPTH_MAX, Expression, FieldPath, Node, Origin, Scope, VariableId};
use crate::context::Context;
use crate::error::{Error, Result, code};
use crate::value::{Bson, Document, Regex};
use crate::value_ref::ValueRef;

pub(crate) struct Parser<'a> {
    pub context: &'a Context,
    /// Variables that can be seen, the innermost last.
    names: Vec<(Arc<str>, VariableId)>,
    next_variable: u32,
    depth: usize,
    redact: bool,
}

impl<'a> Parser<'a> {
    pub fn new(context: &'a Context) -> Parser<'a> {
        Parser { context, names: Vec::new(), next_variable: 0, depth: 0, redact: false }
    }

    pub fn for_redact(context: &'a Context) -> Parser<'a> {
        Parser { redact: true, ..Parser::new(context) }
    }

    pub fn expression(&mut self, value: &Bson) -> Result<Expression> {
        match value {
            Bson::String(text) => match text.strip_prefix('$') {
                Some(path) => self.path(path),
                None => Ok(Expression::constant(Some(value.clone()))),
            },
            Bson::Document(document) => self.nested(|parser| parser.document(document)),
            Bson::Array(elements) => self.nested(|parser| {
                let elements: Result<Vec<_>> = elements.iter().map(|e| parser.expression(e)).collect();
                parser.folded(Node::Array(elements?))
            }),
            _ => Ok(Expression::constant(Some(value.clone()))),
        }
    }

    fn nested(&mut self, parse: impl FnOnce(&mut Self) -> Result<Expression>) -> Result<Expression> {
        if self.depth >= DEPTH_MAX {
            return Err(Error::new(
                code::OVERFLOW,
                format!("expressions nest deeper than {DEPTH_MAX} levels"),
            ));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// A named argument; absent where it was not given.
    pub fn optional(&mut self, value: Option<&Bson>) -> Result<Expression> {
        value.map_or_else(|| Ok(Expression::of(Node::Absent)), |value| self.expression(value))
    }

    fn path(&mut self, path: &str) -> Result<Expression> {
        let Some(variable) = path.strip_prefix('$') else {
            if path.is_empty() {
                return Err(Error::new(16872, "'$' by itself is not a valid FieldPath"));
            }
            let path = FieldPath::parse(path)?;
            let from = match self.lookup("CURRENT") {
                Some(id) => Origin::Bound(id),
                None => Origin::Current,
            };
            return Ok(Expression::of(Node::Path { from, path }));
        };
        let (name, rest) = match variable.split_once('.') {
            Some((name, rest)) => (name, FieldPath::parse(rest)?),
            None => (variable, FieldPath::here()),
        };
        check_variable_read(name)?;
        if let Some(id) = self.lookup(name) {
            return Ok(Expression::of(Node::Path { from: Origin::Bound(id), path: rest }));
        }
        let constant = |text: &'static str| {
            let value = if rest.is_empty() { Some(Bson::from(text)) } else { None };
            Ok(Expression::constant(value))
        };
        let from = match name {
            "ROOT" => Origin::Root,
            "CURRENT" => Origin::Current,
            "NOW" => Origin::Now,
            "CLUSTER_TIME" => Origin::ClusterTime,
            "REMOVE" => return Ok(Expression::constant(None)),
            "DESCEND" if self.redact => return constant(super::DESCEND),
            "PRUNE" if self.redact => return constant(super::PRUNE),
            "KEEP" if self.redact => return constant(super::KEEP),
            _ if self.context.variables.contains(name) => Origin::Named(name.into()),
            _ => return Err(Error::new(17276, format!("Use of undefined variable: {name}"))),
        };
        Ok(Expression::of(Node::Path { from, path: rest }))
    }

    fn lookup(&self, name: &str) -> Option<VariableId> {
        self.names.iter().rev().find(|(has, _)| &**has == name).map(|(_, id)| *id)
    }

    /// Parses something in which a variable can be seen.
    pub fn bind<T>(
        &mut self,
        names: &[&str],
        parse: impl FnOnce(&mut Self, &[VariableId]) -> Result<T>,
    ) -> Result<T> {
        let before = self.names.len();
        let mut ids = Vec::with_capacity(names.len());
        for name in names {
            let id = VariableId(self.next_variable);
            self.next_variable += 1;
            self.names.push(((*name).into(), id));
            ids.push(id);
        }
        let parsed = parse(self, &ids);
        self.names.truncate(before);
        parsed
    }

    fn document(&mut self, document: &Document) -> Result<Expression> {
        if let Some((name, argument)) = document.first()
            && name.starts_with('$')
        {
            if let Some(regex) = regex_literal(document) {
                return Ok(Expression::constant(Some(regex)));
            }
            if document.len() > 1 {
                return Err(Error::new(
                    15983,
                    format!(
                        "an object representing an expression must have exactly one field: {}",
                        super::value::show_document(document)
                    ),
                ));
            }
            return self.call(name, argument);
        }
        let mut members = Vec::with_capacity(document.len());
        for (name, value) in document.iter() {
            if name.starts_with('$') {
                return Err(Error::new(
                    15983,
                    format!(
                        "an object representing an expression must have exactly one field: {}",
                        super::value::show_document(document)
                    ),
                ));
            }
            if name.contains('.') {
                let text = format!(
                    "FieldPath field names may not contain '.'. Consider using $getField or $setField. \
                     Found '{name}'."
                );
                return Err(Error::new(16412, text));
            }
            members.push((name.clone(), self.expression(value)?));
        }
        self.folded(Node::Object(members))
    }

    fn call(&mut self, name: &str, argument: &Bson) -> Result<Expression> {
        let Some(operator) = table::find(name) else {
            let text = format!("Unrecognized expression '{name}'");
            return Err(Error::new(code::INVALID_PIPELINE_OPERATOR, text));
        };
        let node = self.build(operator, argument)?;
        self.folded(node)
    }

    fn build(&mut self, operator: &'static Operator, argument: &Bson) -> Result<Node> {
        let name = operator.name;
        Ok(match operator.build {
            Build::Values { least, most, run } => {
                Node::Call { name, run, arguments: self.positional(name, argument, least, most)? }
            }
            Build::Lazy { least, most, run } => {
                let arguments = self.positional(name, argument, least, most)?;
                Node::Lazy { name, run, arguments, variables: Vec::new() }
            }
            Build::Own(parse) => parse(self, name, argument)?,
        })
    }

    /// Arguments by position: an array of them, or one alone.
    pub fn positional(
        &mut self,
        name: &str,
        argument: &Bson,
        least: usize,
        most: usize,
    ) -> Result<Vec<Expression>> {
        let arguments = argument.as_array().unwrap_or(std::slice::from_ref(argument));
        let count = arguments.len();
        if count < least || count > most {
            let text = if least == most {
                format!("Expression {name} takes exactly {least} arguments. {count} were passed in.")
            } else if most == usize::MAX {
                format!("Expression {name} takes at least {least} arguments, but {count} were passed in.")
            } else {
                format!(
                    "Expression {name} takes at least {least} arguments, and at most {most}, \
                     but {count} were passed in."
                )
            };
            return Err(Error::new(if least == most { 16020 } else { 28667 }, text));
        }
        arguments.iter().map(|argument| self.expression(argument)).collect()
    }

    /// Evaluates a node at once where it depends on nothing.
    fn folded(&self, node: Node) -> Result<Expression> {
        let constant = match &node {
            Node::Object(members) => members.iter().all(|(_, member)| member.is_constant()),
            Node::Array(arguments) | Node::Call { arguments, .. } | Node::Lazy { arguments, .. } => {
                arguments.iter().all(Expression::is_constant)
            }
            Node::Constant(_) | Node::Absent | Node::Path { .. } => return Ok(Expression::of(node)),
        };
        let random = matches!(&node, Node::Call { name: "$rand" | "$meta" | "$sampleRate", .. });
        let expression = Expression::of(node);
        if !constant || random {
            return Ok(expression);
        }
        let nothing = Document::new();
        let scope = Scope::new(ValueRef::OwnedDocument(&nothing), self.context);
        Ok(Expression::constant(expression.evaluate_in(&scope)?))
    }
}

/// `{$regex: "…", $options: "…"}` is a regular expression, as Extended JSON once wrote it.
fn regex_literal(document: &Document) -> Option<Bson> {
    let (Some(Bson::String(pattern)), Some(Bson::String(options)), 2) =
        (document.get("$regex"), document.get("$options"), document.len())
    else {
        return None;
    };
    let mut letters: Vec<char> = options.chars().collect();
    letters.sort_unstable();
    let options: String = letters.into_iter().collect();
    Some(Bson::Regex(Arc::new(Regex { pattern: pattern.clone(), options: options.into() })))
}

/// A name behind `$$`.
fn check_variable_read(name: &str) -> Result<()> {
    match name.chars().next() {
        None => Err(Error::failed_to_parse("empty variable names are not allowed")),
        Some(first) if first.is_ascii_alphabetic() || !first.is_ascii() => check_rest(name),
        Some(_) => Err(Error::failed_to_parse(format!(
            "'{name}' starts with an invalid character for a user variable name"
        ))),
    }
}

/// A name that an expression binds: it begins with a small letter, or beyond ASCII; `CURRENT` may be bound again.
pub(crate) fn check_variable_bound(name: &str) -> Result<()> {
    match name.chars().next() {
        None => Err(Error::failed_to_parse("empty variable names are not allowed")),
        Some(_) if name == "CURRENT" => Ok(()),
        Some(first) if first.is_ascii_lowercase() || !first.is_ascii() => check_rest(name),
        Some(_) => Err(Error::failed_to_parse(format!(
            "'{name}' starts with an invalid character for a user variable name"
        ))),
    }
}

fn check_rest(name: &str) -> Result<()> {
    match name.chars().find(|c| !(c.is_ascii_alphanumeric() || *c == '_' || !c.is_ascii())) {
        None => Ok(()),
        Some(wrong) => Err(Error::failed_to_parse(format!(
            "'{name}' contains an invalid character for a variable name: '{wrong}'"
        ))),
    }
}
