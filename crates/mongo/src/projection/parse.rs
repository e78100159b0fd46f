//! From a document to a projection.

use std::sync::Arc;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::filter::{Condition, Filter, Test};
use crate::projection::{Computed, Members, Node, Projection, Slice};
use crate::value::{Bson, Document};

/// Levels of a projection.
const DEPTH_MAX: usize = 100;
const ID: &str = "_id";

struct Parser<'a> {
    context: &'a Context,
    filter: Option<&'a Filter>,
    /// Whether an inclusion or an exclusion has been seen, apart from `_id`.
    kind: Option<bool>,
    id: Option<bool>,
    has_element: bool,
    parsed: Projection,
}

pub fn projection(document: &Document, filter: Option<&Filter>, context: &Context) -> Result<Projection> {
    let parsed = Projection {
        inclusion: false,
        keeps_id: true,
        members: Members::default(),
        computed: Vec::new(),
        positional: None,
        filter: filter.cloned(),
    };
    let mut parser = Parser { context, filter, kind: None, id: None, has_element: false, parsed };
    parser.members(document, "", 0)?;
    let Parser { kind, id, has_element, mut parsed, .. } = parser;
    parsed.inclusion = kind.unwrap_or(id == Some(true) || has_element);
    parsed.keeps_id = id != Some(false);
    Ok(parsed)
}

impl Parser<'_> {
    fn members(&mut self, document: &Document, prefix: &str, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(Error::new(crate::error::code::OVERFLOW, "the projection is nested too deeply"));
        }
        for (name, value) in document.iter() {
            let path: Arc<str> =
                if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}").into() };
            self.member(&path, value, depth)?;
        }
        Ok(())
    }

    fn member(&mut self, path: &Arc<str>, value: &Bson, depth: usize) -> Result<()> {
        if let Some(array) = path.strip_suffix(".$") {
            return self.positional(array, path, value);
        }
        check_path(path)?;
        match value {
            Bson::Bool(_) | Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) | Bson::Decimal(_) => {
                self.named(path, value.is_truthy())
            }
            Bson::Document(inner) => match inner.first() {
                None => Err(Error::new(
                    51270,
                    format!(
                        "An empty sub-projection is not a valid value. Found empty object at path {path}"
                    ),
                )),
                Some((operator, operand)) if operator.starts_with('$') => {
                    if inner.len() > 1 {
                        return Err(Error::failed_to_parse(
                            "An object representing an expression must have exactly one field",
                        ));
                    }
                    self.operator(path, operator, operand, value, depth)
                }
                Some(_) => self.members(inner, path, depth + 1),
            },
            _ => self.expression(path, value),
        }
    }

    fn add(&mut self, path: &str, node: Node) -> Result<()> {
        self.parsed.members.add(path, path, node)
    }

    /// An inclusion and an exclusion do not go together, but for `_id`.
    fn decide(&mut self, path: &str, inclusion: bool) -> Result<()> {
        match self.kind {
            Some(true) if !inclusion => {
                Err(Error::new(31254, format!("Cannot do exclusion on field {path} in inclusion projection")))
            }
            Some(false) if inclusion => {
                Err(Error::new(31253, format!("Cannot do inclusion on field {path} in exclusion projection")))
            }
            _ => {
                self.kind = Some(inclusion);
                Ok(())
            }
        }
    }

    fn named(&mut self, path: &Arc<str>, inclusion: bool) -> Result<()> {
        if &**path == ID {
            if self.id.is_some() {
                return Err(Error::new(31250, "Path collision at _id"));
            }
            self.id = Some(inclusion);
            return Ok(());
        }
        self.decide(path, inclusion)?;
        self.add(path, Node::Named)
    }

    fn expression(&mut self, path: &Arc<str>, value: &Bson) -> Result<()> {
        if self.kind == Some(false) {
            return Err(Error::new(31252, "Cannot use expression other than $meta in exclusion projection"));
        }
        self.kind = Some(true);
        let expression = Expression::parse(value, self.context)?;
        self.compute(path, Computed::Expression(Box::new(expression)))
    }

    fn compute(&mut self, path: &Arc<str>, computed: Computed) -> Result<()> {
        self.add(path, Node::Computed)?;
        self.parsed.computed.push((path.clone(), computed));
        Ok(())
    }

    fn operator(
        &mut self,
        path: &Arc<str>,
        operator: &str,
        operand: &Bson,
        whole: &Bson,
        depth: usize,
    ) -> Result<()> {
        match operator {
            "$elemMatch" => self.element(path, operand, depth),
            "$slice" if is_find_slice(operand) => {
                let slice = slice(operand)?;
                self.add(path, Node::Slice(slice))
            }
            "$slice" if !matches!(operand, Bson::Array(_)) => Err(Error::new(
                28667,
                "Invalid $slice syntax. The given syntax did not match the find() syntax because :: Location31273: $slice \
                 only supports numbers and [x, y] arrays",
            )),
            "$meta" => {
                let Bson::String(name) = operand else {
                    return Err(Error::new(17307, "$meta only supports string arguments"));
                };
                const KNOWN: [&str; 10] = [
                    "textScore",
                    "randVal",
                    "sortKey",
                    "recordId",
                    "indexKey",
                    "geoNearDistance",
                    "geoNearPoint",
                    "searchScore",
                    "searchHighlights",
                    "vectorSearchScore",
                ];
                if !KNOWN.contains(&&**name) {
                    return Err(Error::new(17308, format!("Unsupported argument to $meta: {name}")));
                }
                if &**name == "textScore" && self.filter.and_then(Filter::text).is_none() {
                    return Err(Error::new(
                        40218,
                        "query requires text score metadata, but it is not available",
                    ));
                }
                self.compute(path, Computed::Meta(name.clone()))
            }
            _ => self.expression(path, whole),
        }
    }

    fn element(&mut self, path: &Arc<str>, operand: &Bson, depth: usize) -> Result<()> {
        if depth > 0 || path.contains('.') {
            return Err(Error::new(31275, "Cannot use $elemMatch projection on a nested field."));
        }
        let Bson::Document(condition) = operand else {
            return Err(Error::new(31274, "elemMatch: Invalid argument, object required"));
        };
        if self.parsed.positional.is_some() {
            return Err(Error::new(31255, "Cannot specify positional operator and $elemMatch."));
        }
        if condition.contains("$jsonSchema") {
            return Err(Error::new(224, "$jsonSchema is not allowed in this context"));
        }
        self.has_element = true;
        let filter = Filter::parse(
            &crate::doc! {"a" => crate::doc! {"$elemMatch" => condition.clone()}},
            self.context,
        )?;
        let Condition::Field { test: test @ (Test::ElementDocument(_) | Test::ElementValue(_)), .. } =
            filter.root
        else {
            return Err(Error::bad_value("$elemMatch needs an Object"));
        };
        self.compute(path, Computed::Element(test))
    }

    fn positional(&mut self, array: &str, path: &str, value: &Bson) -> Result<()> {
        match value {
            Bson::Document(_) => {
                return Err(Error::new(
                    31271,
                    "positional projection cannot be used with an expression or sub object",
                ));
            }
            _ if value.is_number() || matches!(value, Bson::Bool(_)) => {
                if !value.is_truthy() {
                    return Err(Error::new(31395, "positional projection cannot be used with exclusion"));
                }
            }
            _ => return Err(Error::new(31308, "positional projection cannot be used with a literal")),
        }
        check_path(array)?;
        if self.has_element {
            return Err(Error::new(31256, "Cannot specify positional operator and $elemMatch."));
        }
        if self.parsed.positional.is_some() {
            return Err(Error::new(31276, "Cannot specify more than one positional projection per query."));
        }
        self.decide(path, true)?;
        self.add(array, Node::Named)?;
        let filter = match self.filter {
            Some(filter) => filter.clone(),
            None => Filter::parse(&Document::new(), self.context)?,
        };
        self.parsed.positional = Some((array.into(), filter));
        Ok(())
    }
}

impl Members {
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.0.iter().find(|(has, _)| &**has == name).map(|(_, node)| node)
    }

    /// Adds a leaf; a path that another one has begun, or is within, collides.
    fn add(&mut self, path: &str, whole: &str, leaf: Node) -> Result<()> {
        let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
        let found = self.0.iter_mut().find(|(has, _)| &**has == name);
        match (found, rest) {
            (None, None) => self.0.push((name.into(), leaf)),
            (None, Some(rest)) => {
                let mut members = Members::default();
                members.add(rest, whole, leaf)?;
                self.0.push((name.into(), Node::Members(members)));
            }
            (Some((_, Node::Members(members))), Some(rest)) => members.add(rest, whole, leaf)?,
            (Some(_), Some(rest)) => {
                return Err(Error::new(31249, format!("Path collision at {whole} remaining portion {rest}")));
            }
            (Some(_), None) => return Err(Error::new(31250, format!("Path collision at {whole}"))),
        }
        Ok(())
    }
}

/// Whether an operand is that of find's `$slice`: a number, or two of them. Any other is an expression.
fn is_find_slice(operand: &Bson) -> bool {
    match operand {
        Bson::Array(parts) => parts.len() == 2 && parts[0].is_number(),
        _ => operand.is_number(),
    }
}

fn slice(operand: &Bson) -> Result<Slice> {
    let clamped = |value: &Bson| match value.as_i64() {
        Some(value) => value,
        None => match value {
            Bson::Double(value) => *value as i64,
            Bson::Decimal(value) => value.toward_zero() as i64,
            _ => 0,
        },
    };
    match operand {
        Bson::Array(parts) => {
            if !parts[1].is_number() {
                return Err(Error::new(28667, "Invalid $slice syntax: the limit must be a number"));
            }
            let limit = clamped(&parts[1]);
            if limit <= 0 {
                return Err(Error::new(28724, "$slice limit must be positive"));
            }
            Ok(Slice { skip: Some(clamped(&parts[0])), limit })
        }
        _ => Ok(Slice { skip: None, limit: clamped(operand) }),
    }
}

fn check_path(path: &str) -> Result<()> {
    if path.is_empty() {
        return Err(Error::new(40352, "FieldPath cannot be constructed with empty string"));
    }
    for name in path.split('.') {
        if name.is_empty() {
            return Err(match path.ends_with('.') {
                true => Error::new(40353, "FieldPath must not end with a '.'."),
                false => Error::new(15998, "FieldPath field names may not be empty strings."),
            });
        }
        if name == "$" {
            return Err(Error::new(
                31394,
                "As of 4.4, it's illegal to specify positional operator in the middle of a path. Positional projection may \
                 only be used at the end, for example: a.b.$.",
            ));
        }
        if name.starts_with('$') && !matches!(name, "$id" | "$ref" | "$db") {
            return Err(Error::new(
                16410,
                format!(
                    "FieldPath field names may not start with '$'. Consider using $getField or $setField: {name}"
                ),
            ));
        }
    }
    Ok(())
}
