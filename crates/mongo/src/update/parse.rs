//! From a document of operators to a list of changes.

use std::sync::Arc;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::update::array_filters::{self, ArrayFilter};
use crate::update::arrays::{AddToSet, Pull, Push};
use crate::update::numbers::{Arithmetic, BitOperation};
use crate::update::path::{Part, UpdatePath, check_conflicts};
use crate::update::table;
use crate::value::{Bson, Document};

/// What happens at one path.
#[derive(Clone, Debug)]
pub struct Change {
    pub path: UpdatePath,
    pub action: Action,
}

#[derive(Clone, Debug)]
pub enum Action {
    Set(Bson),
    SetOnInsert(Bson),
    Unset,
    Arithmetic(Arithmetic, Bson),
    Min(Bson),
    Max(Bson),
    CurrentDate {
        timestamp: bool,
    },
    Bits(Vec<(BitOperation, Bson)>),
    Push(Box<Push>),
    AddToSet(AddToSet),
    Pop {
        first: bool,
    },
    Pull(Box<Pull>),
    PullAll(Vec<Bson>),
    /// The member at this path comes here.
    RenameFrom(UpdatePath),
}

#[derive(Clone, Debug)]
pub struct Operators {
    pub changes: Vec<Change>,
    pub filters: Vec<ArrayFilter>,
}

pub fn operators(document: &Document, filters: &[Bson], context: &Context) -> Result<Operators> {
    let filters = array_filters::parse(filters, context)?;
    let mut changes = Vec::new();
    for (name, paths) in document.iter() {
        let Some(operator) = table::find(name) else {
            return Err(Error::failed_to_parse(format!(
                "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update specified as an array"
            )));
        };
        let Bson::Document(paths) = paths else {
            return Err(Error::failed_to_parse(format!(
                "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not \
                 {{{name}: ...}}",
                paths.kind().name()
            )));
        };
        for (path, value) in paths.iter() {
            changes.push((operator.read)(path, value, context)?);
        }
    }
    let mut paths = Vec::with_capacity(changes.len());
    for change in &changes {
        if let Action::RenameFrom(source) = &change.action {
            paths.push(source);
        }
        paths.push(&change.path);
    }
    check_conflicts(&paths)?;
    check_identifiers(&paths, &filters)?;
    Ok(Operators { changes, filters })
}

fn check_identifiers(paths: &[&UpdatePath], filters: &[ArrayFilter]) -> Result<()> {
    let mut used = vec![false; filters.len()];
    for path in paths {
        for part in &path.parts {
            let Part::Filtered(identifier) = part else { continue };
            match filters.iter().position(|filter| filter.identifier == *identifier) {
                Some(at) => used[at] = true,
                None => {
                    return Err(Error::bad_value(format!(
                        "No array filter found for identifier '{identifier}' in path '{}'",
                        path.text
                    )));
                }
            }
        }
    }
    match used.iter().position(|used| !used) {
        Some(at) => Err(Error::failed_to_parse(format!(
            "The array filter for identifier '{}' was not used in the update",
            filters[at].identifier
        ))),
        None => Ok(()),
    }
}

fn change(path: &Arc<str>, action: Action) -> Result<Change> {
    Ok(Change { path: UpdatePath::parse(path)?, action })
}

pub fn set(path: &Arc<str>, value: &Bson, _: &Context) -> Result<Change> {
    change(path, Action::Set(value.clone()))
}

pub fn set_on_insert(path: &Arc<str>, value: &Bson, _: &Context) -> Result<Change> {
    change(path, Action::SetOnInsert(value.clone()))
}

pub fn unset(path: &Arc<str>, _: &Bson, _: &Context) -> Result<Change> {
    change(path, Action::Unset)
}

pub fn inc(path: &Arc<str>, value: &Bson, _: &Context) -> Result<Change> {
    if !value.is_number() {
        return Err(Error::type_mismatch(format!("Cannot increment with non-numeric argument: {{{path}}}")));
    }
    change(path, Action::Arithmetic(Arithmetic::Add, value.clone()))
}

pub fn mul(path: &Arc<str>, value: &Bson, _: &Context) -> Result<Change> {
    if !value.is_number() {
        return Err(Error::type_mismatch(format!("Cannot multiply with non-numeric argument: {{{path}}}")));
    }
    change(path, Action::Arithmetic(Arithmetic::Multiply, value.clone()))
}

pub fn min(path: &Arc<str>, value: &Bson, _: &Context) -> Result<Change> {
    change(path, Action::Min(value.clone()))
}

pub fn max(path: &Arc<str>, value: &Bson, _: &Context) -> Result<Change> {
    change(path, Action::Max(value.clone()))
}

pub fn rename(path: &Arc<str>, value: &Bson, _: &Context) -> Result<Change> {
    let Bson::String(target) = value else {
        return Err(Error::bad_value(format!("The 'to' field for $rename must be a string: {path}")));
    };
    let (source, target) = (UpdatePath::parse(path)?, UpdatePath::parse(target)?);
    for (path, name) in [(&source, "source"), (&target, "destination")] {
        if path.is_dynamic() {
            return Err(Error::bad_value(format!(
                "The {name} field for $rename may not be dynamic: {}",
                path.text
            )));
        }
    }
    let shared = source.parts.iter().zip(&target.parts).take_while(|(a, b)| a == b).count();
    if source.parts == target.parts {
        return Err(Error::bad_value(format!("The source and target field for $rename must differ: {path}")));
    }
    if shared == source.parts.len() || shared == target.parts.len() {
        return Err(Error::bad_value(format!(
            "The source and target field for $rename must not be on the same path: {path}"
        )));
    }
    Ok(Change { path: target, action: Action::RenameFrom(source) })
}

pub fn current_date(path: &Arc<str>, value: &Bson, _: &Context) -> Result<Change> {
    let timestamp = match value {
        Bson::Bool(_) => false,
        Bson::Document(kind) => match (kind.first(), kind.len()) {
            (Some((name, Bson::String(kind))), 1) if &**name == "$type" && &**kind == "date" => false,
            (Some((name, Bson::String(kind))), 1) if &**name == "$type" && &**kind == "timestamp" => true,
            (Some((name, _)), _) if &**name != "$type" => {
                return Err(Error::bad_value(format!("Unrecognized $currentDate option: {name}")));
            }
            _ => {
                return Err(Error::bad_value(
                    "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field: {$type: \
                     'date'}}}",
                ));
            }
        },
        _ => {
            return Err(Error::bad_value(format!(
                "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({{$type: \
                 'timestamp/date'}}).",
                value.kind().name()
            )));
        }
    };
    change(path, Action::CurrentDate { timestamp })
}

pub fn bit(path: &Arc<str>, value: &Bson, _: &Context) -> Result<Change> {
    let Bson::Document(operations) = value else {
        return Err(Error::bad_value(format!(
            "The $bit modifier is not compatible with a {}. You must pass in an embedded document: {{$bit: {{field: \
             {{and/or/xor: #}}}}",
            value.kind().name()
        )));
    };
    let mut parsed = Vec::with_capacity(operations.len());
    for (name, operand) in operations.iter() {
        let operation = match &**name {
            "and" => BitOperation::And,
            "or" => BitOperation::Or,
            "xor" => BitOperation::Xor,
            _ => {
                return Err(Error::bad_value(format!(
                    "The $bit modifier only supports 'and', 'or', and 'xor', not '{name}' which is an unknown operator"
                )));
            }
        };
        if !matches!(operand, Bson::Int32(_) | Bson::Int64(_)) {
            return Err(Error::bad_value(format!(
                "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here",
                operand.kind().name()
            )));
        }
        parsed.push((operation, operand.clone()));
    }
    if parsed.is_empty() {
        return Err(Error::bad_value(
            "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}",
        ));
    }
    change(path, Action::Bits(parsed))
}

pub fn push(path: &Arc<str>, value: &Bson, context: &Context) -> Result<Change> {
    change(path, Action::Push(Box::new(Push::parse(value, context)?)))
}

pub fn add_to_set(path: &Arc<str>, value: &Bson, _: &Context) -> Result<Change> {
    change(path, Action::AddToSet(AddToSet::parse(value)?))
}

pub fn pop(path: &Arc<str>, value: &Bson, _: &Context) -> Result<Change> {
    let first = match value.as_i64() {
        Some(1) => false,
        Some(-1) => true,
        Some(other) => {
            return Err(Error::failed_to_parse(format!("$pop expects 1 or -1, found: {other}")));
        }
        None => return Err(Error::failed_to_parse(format!("Expected a number in: {path}"))),
    };
    change(path, Action::Pop { first })
}

pub fn pull(path: &Arc<str>, value: &Bson, context: &Context) -> Result<Change> {
    change(path, Action::Pull(Box::new(Pull::parse(value, context)?)))
}

pub fn pull_all(path: &Arc<str>, value: &Bson, _: &Context) -> Result<Change> {
    match value {
        Bson::Array(values) => change(path, Action::PullAll(values.to_vec())),
        _ => Err(Error::bad_value(format!(
            "$pullAll requires an array argument but was given a {}",
            value.kind().name()
        ))),
    }
}
