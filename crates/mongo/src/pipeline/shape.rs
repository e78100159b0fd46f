//! `$project`, `$addFields`, `$set`, `$unset`: documents of another shape.
//!
//! A specification is a tree of names. In an *inclusion* a leaf keeps a member or computes one, in an *exclusion* it
//! takes one away, and `$addFields` keeps everything and computes. Arrays are gone through element by element.
//!
//! ```text
//! {$project: {a: {b: 1}, "c.d": "$x"}}     a ─ b (keep)      c ─ d (compute $x)
//! ```

use std::sync::Arc;

use super::rows::{Mapped, Row};
use super::specification::{self, Parsing, field_path};
use super::{BoxedRows, Env, Stage};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

const ID: &str = "_id";
/// Levels of a specification.
const DEPTH_MAX: usize = 100;

#[derive(Clone, Debug)]
enum Node {
    Keep,
    Drop,
    Compute(Box<Expression>),
    Members(Members),
}

#[derive(Clone, Debug, Default)]
struct Members {
    list: Vec<(Arc<str>, Node)>,
    /// Whether a leaf below computes.
    computes: bool,
}

impl Members {
    fn get(&self, name: &str) -> Option<&Node> {
        self.list.iter().find(|(has, _)| &**has == name).map(|(_, node)| node)
    }

    /// Adds a leaf; a path that another one has begun, or is within, collides.
    fn add(&mut self, path: &str, whole: &str, leaf: Node) -> Result<()> {
        self.computes |= matches!(leaf, Node::Compute(_));
        let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
        let found = self.list.iter_mut().find(|(has, _)| &**has == name);
        match (found, rest) {
            (None, None) => self.list.push((name.into(), leaf)),
            (None, Some(rest)) => {
                let mut members = Members::default();
                members.add(rest, whole, leaf)?;
                self.list.push((name.into(), Node::Members(members)));
            }
            (Some((_, Node::Members(members))), Some(rest)) => members.add(rest, whole, leaf)?,
            (Some(_), Some(rest)) => {
                return Err(Error::new(
                    31_249,
                    format!("Path collision at {whole} remaining portion {rest}"),
                ));
            }
            (Some(_), None) => return Err(Error::new(31_250, format!("Path collision at {whole}"))),
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Include,
    Exclude,
    Add,
}

/// A parsed specification.
#[derive(Clone, Debug)]
pub struct Shape {
    root: Members,
    mode: Mode,
    /// Of inclusions: whether `_id` is kept though nobody asked for it.
    keeps_id: bool,
}

/// What a leaf of `$project` says.
enum Leaf<'a> {
    Include,
    Exclude,
    Compute(&'a Bson),
}

fn leaves<'a>(
    specification: &'a Document,
    prefix: &str,
    depth: usize,
    found: &mut Vec<(String, Leaf<'a>)>,
) -> Result<()> {
    if depth > DEPTH_MAX {
        return Err(Error::new(15, "the projection is nested too deeply"));
    }
    for (name, value) in specification.iter() {
        field_path(name)?;
        let path = match prefix {
            "" => name.to_string(),
            prefix => format!("{prefix}.{name}"),
        };
        let leaf = match value {
            Bson::Document(inner) => match inner.first() {
                Some((first, _)) if first.starts_with('$') => {
                    if inner.len() != 1 {
                        return Err(Error::new(
                            15_983,
                            "An object representing an expression must have exactly one field",
                        ));
                    }
                    Leaf::Compute(value)
                }
                Some(_) => {
                    leaves(inner, &path, depth + 1, found)?;
                    continue;
                }
                None => {
                    return Err(Error::new(
                        51_270,
                        format!(
                            "An empty sub-projection is not a valid value. Found empty object at path {path}"
                        ),
                    ));
                }
            },
            Bson::Bool(_) | Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) | Bson::Decimal(_) => {
                match value.is_truthy() {
                    true => Leaf::Include,
                    false => Leaf::Exclude,
                }
            }
            _ => Leaf::Compute(value),
        };
        found.push((path, leaf));
    }
    Ok(())
}

impl Shape {
    /// `$project`.
    pub fn projection(specification: &Document, context: &Context) -> Result<Shape> {
        if specification.is_empty() {
            return Err(Error::new(51_272, "projection specification must have at least one field"));
        }
        let mut found = Vec::new();
        leaves(specification, "", 0, &mut found)?;
        // The first leaf that is not about `_id` says which kind it is.
        let decides = |(path, leaf): &(String, Leaf<'_>)| match leaf {
            Leaf::Compute(_) => Some(Mode::Include),
            _ if path == ID => None,
            Leaf::Include => Some(Mode::Include),
            Leaf::Exclude => Some(Mode::Exclude),
        };
        let of_id = found.iter().find(|(path, _)| path == ID).map(|(_, leaf)| matches!(leaf, Leaf::Exclude));
        let mode = found.iter().find_map(decides).unwrap_or(match of_id {
            Some(true) => Mode::Exclude,
            _ => Mode::Include,
        });
        let mut shape = Shape { root: Members::default(), mode, keeps_id: mode == Mode::Include };
        for (path, leaf) in &found {
            let node = match (leaf, mode) {
                (Leaf::Include, Mode::Exclude) if path == ID => continue,
                (Leaf::Exclude, Mode::Include) if path == ID => {
                    shape.keeps_id = false;
                    continue;
                }
                (Leaf::Include, Mode::Include) => Node::Keep,
                (Leaf::Exclude, Mode::Exclude) => Node::Drop,
                (Leaf::Include, _) => {
                    return Err(Error::new(
                        31_254,
                        format!("Cannot do inclusion on field {path} in exclusion projection"),
                    ));
                }
                (Leaf::Exclude, _) => {
                    return Err(Error::new(
                        31_253,
                        format!("Cannot do exclusion on field {path} in inclusion projection"),
                    ));
                }
                (Leaf::Compute(_), Mode::Exclude) => {
                    return Err(Error::new(
                        31_252,
                        format!("Cannot compute field {path} in exclusion projection"),
                    ));
                }
                (Leaf::Compute(value), _) => Node::Compute(Box::new(Expression::parse(value, context)?)),
            };
            shape.root.add(path, path, node)?;
        }
        Ok(shape)
    }

    /// `$addFields`, `$set`.
    pub fn addition(specification: &Document, context: &Context) -> Result<Shape> {
        fn add(
            specification: &Document,
            prefix: &str,
            depth: usize,
            root: &mut Members,
            context: &Context,
        ) -> Result<()> {
            if depth > DEPTH_MAX {
                return Err(Error::new(15, "the specification is nested too deeply"));
            }
            for (name, value) in specification.iter() {
                field_path(name)?;
                let path = match prefix {
                    "" => name.to_string(),
                    prefix => format!("{prefix}.{name}"),
                };
                match value {
                    Bson::Document(inner)
                        if inner.first().is_some_and(|(name, _)| !name.starts_with('$')) =>
                    {
                        add(inner, &path, depth + 1, root, context)?;
                    }
                    value => {
                        let node = Node::Compute(Box::new(Expression::parse(value, context)?));
                        root.add(&path, &path, node)?;
                    }
                }
            }
            Ok(())
        }
        let mut root = Members::default();
        add(specification, "", 0, &mut root, context)?;
        Ok(Shape { root, mode: Mode::Add, keeps_id: true })
    }

    /// `$unset`.
    pub fn removal<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<Shape> {
        let mut root = Members::default();
        for path in paths {
            field_path(path)?;
            root.add(path, path, Node::Drop)?;
        }
        Ok(Shape { root, mode: Mode::Exclude, keeps_id: true })
    }

    pub fn apply(&self, document: ValueRef<'_>, context: &Context) -> Result<Document> {
        let root = document;
        match self.mode {
            Mode::Exclude => Ok(exclude(&self.root, document)),
            Mode::Add => add_members(&self.root, Some(document), root, context),
            Mode::Include => {
                let mut made = Document::new();
                if self.keeps_id
                    && self.root.get(ID).is_none()
                    && let Some(id) = document.get(ID)
                {
                    made.push(ID, id.to_bson());
                }
                include_into(&self.root, Some(document), root, context, &mut made)?;
                Ok(made)
            }
        }
    }
}

fn exclude(members: &Members, document: ValueRef<'_>) -> Document {
    let mut made = Document::new();
    for (name, value) in document.members() {
        match members.get(name) {
            None => made.push(name, value.to_bson()),
            Some(Node::Members(inner)) => made.push(name, exclude_value(inner, value)),
            Some(_) => {}
        }
    }
    made
}

fn exclude_value(members: &Members, value: ValueRef<'_>) -> Bson {
    match value.kind() {
        crate::Kind::Document => Bson::Document(exclude(members, value)),
        crate::Kind::Array => {
            Bson::array(value.elements().map(|element| exclude_value(members, element)).collect())
        }
        _ => value.to_bson(),
    }
}

fn include_into(
    members: &Members,
    document: Option<ValueRef<'_>>,
    root: ValueRef<'_>,
    context: &Context,
    made: &mut Document,
) -> Result<()> {
    for (name, value) in document.into_iter().flat_map(ValueRef::members) {
        match members.get(name) {
            Some(Node::Keep) => made.push(name, value.to_bson()),
            Some(Node::Compute(expression)) => {
                if let Some(value) = expression.evaluate(root, context)? {
                    made.push(name, value);
                }
            }
            Some(Node::Members(inner)) => {
                if let Some(value) = include_value(inner, value, root, context)? {
                    made.push(name, value);
                }
            }
            _ => {}
        }
    }
    // What is computed and was not there follows, in the order of the specification.
    for (name, node) in &members.list {
        match node {
            Node::Compute(expression) if document.and_then(|document| document.get(name)).is_none() => {
                if let Some(value) = expression.evaluate(root, context)? {
                    made.push(name.clone(), value);
                }
            }
            Node::Members(inner)
                if inner.computes && document.and_then(|document| document.get(name)).is_none() =>
            {
                let mut below = Document::new();
                include_into(inner, None, root, context, &mut below)?;
                made.push(name.clone(), below);
            }
            _ => {}
        }
    }
    Ok(())
}

fn include_value(
    members: &Members,
    value: ValueRef<'_>,
    root: ValueRef<'_>,
    context: &Context,
) -> Result<Option<Bson>> {
    Ok(match value.kind() {
        crate::Kind::Document => {
            let mut made = Document::new();
            include_into(members, Some(value), root, context, &mut made)?;
            Some(Bson::Document(made))
        }
        crate::Kind::Array => {
            let mut elements = Vec::new();
            for element in value.elements() {
                elements.extend(include_value(members, element, root, context)?);
            }
            Some(Bson::array(elements))
        }
        _ if members.computes => {
            let mut made = Document::new();
            include_into(members, None, root, context, &mut made)?;
            Some(Bson::Document(made))
        }
        _ => None,
    })
}

fn add_members(
    members: &Members,
    document: Option<ValueRef<'_>>,
    root: ValueRef<'_>,
    context: &Context,
) -> Result<Document> {
    let mut made = Document::new();
    let computed = |node: &Node, value: Option<ValueRef<'_>>| -> Result<Option<Bson>> {
        match node {
            Node::Compute(expression) => expression.evaluate(root, context),
            Node::Members(inner) => add_value(inner, value, root, context).map(Some),
            Node::Keep | Node::Drop => Ok(value.map(ValueRef::to_bson)),
        }
    };
    for (name, value) in document.into_iter().flat_map(ValueRef::members) {
        match members.get(name) {
            None => made.push(name, value.to_bson()),
            Some(node) if is_replaced(node, value) => {}
            Some(node) => {
                if let Some(value) = computed(node, Some(value))? {
                    made.push(name, value);
                }
            }
        }
    }
    for (name, node) in &members.list {
        let kept =
            document.and_then(|document| document.get(name)).filter(|value| !is_replaced(node, *value));
        if kept.is_none()
            && let Some(value) = computed(node, None)?
        {
            made.push(name.clone(), value);
        }
    }
    Ok(made)
}

/// A value without members gives way to a document that stands behind the others.
fn is_replaced(node: &Node, value: ValueRef<'_>) -> bool {
    matches!(node, Node::Members(_)) && !matches!(value.kind(), crate::Kind::Document | crate::Kind::Array)
}

fn add_value(
    members: &Members,
    value: Option<ValueRef<'_>>,
    root: ValueRef<'_>,
    context: &Context,
) -> Result<Bson> {
    match value {
        Some(value) if value.kind() == crate::Kind::Array => {
            let elements = value.elements().map(|element| add_value(members, Some(element), root, context));
            Ok(Bson::array(elements.collect::<Result<_>>()?))
        }
        Some(value) if value.kind() == crate::Kind::Document => {
            add_members(members, Some(value), root, context).map(Bson::Document)
        }
        _ => add_members(members, None, root, context).map(Bson::Document),
    }
}

impl Stage for Shape {
    fn attach(&self, input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (shape, context) = (self.clone(), env.context.clone());
        Ok(Mapped::boxed(input, move |row| {
            context.budget.step(1)?;
            Ok(Some(Row::Built(shape.apply(row.value()?, &context)?)))
        }))
    }
}

pub fn parse_project(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let specification =
        specification::document(argument, 15_969, "$project specification must be an object")?;
    Ok(Box::new(Shape::projection(specification, parsing.context)?))
}

pub fn parse_add_fields(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let message = "$addFields specification stage must be an object";
    let specification = specification::document(argument, 40_272, message)?;
    if specification.is_empty() {
        return Err(Error::new(40_177, "specification must have at least one field"));
    }
    Ok(Box::new(Shape::addition(specification, parsing.context)?))
}

pub fn parse_unset(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let paths: Vec<&str> = match argument {
        Bson::String(path) => vec![path],
        Bson::Array(elements) if elements.is_empty() => {
            return Err(Error::new(
                31_119,
                "$unset specification must be a string or an array with at least one field",
            ));
        }
        Bson::Array(elements) => elements
            .iter()
            .map(|element| {
                element.as_str().ok_or_else(|| {
                    let message =
                        "$unset specification must be a string or an array containing only string values";
                    Error::new(31_120, message)
                })
            })
            .collect::<Result<_>>()?,
        _ => return Err(Error::new(31_002, "$unset specification must be a string or an array")),
    };
    Ok(Box::new(Shape::removal(paths)?))
}
