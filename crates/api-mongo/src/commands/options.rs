//! Options of commands, and what is made of them.

use std::sync::Arc;

use orrery_mongo::expression::Expression;
use orrery_mongo::order::Collation;
use orrery_mongo::{Bson, Context, Document, Error, Result, ValueRef, error::code};

use super::Call;

fn wrong_type(command: &str, name: &str, value: &Bson, expected: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '{command}.{name}' is the wrong type '{}', expected type '{expected}'",
        value.kind().name()
    ))
}

/// A member that is a document, if it is there.
pub fn document<'d>(body: &'d Document, name: &str) -> Result<Option<&'d Document>> {
    match body.get(name) {
        None | Some(Bson::Null | Bson::Undefined) => Ok(None),
        Some(Bson::Document(document)) => Ok(Some(document)),
        Some(other) => Err(wrong_type(command_of(body), name, other, "object")),
    }
}

pub fn array<'d>(body: &'d Document, name: &str) -> Result<Option<&'d [Bson]>> {
    match body.get(name) {
        None | Some(Bson::Null | Bson::Undefined) => Ok(None),
        Some(Bson::Array(elements)) => Ok(Some(elements)),
        Some(other) => Err(wrong_type(command_of(body), name, other, "array")),
    }
}

pub fn text<'d>(body: &'d Document, name: &str) -> Result<Option<&'d str>> {
    match body.get(name) {
        None | Some(Bson::Null | Bson::Undefined) => Ok(None),
        Some(Bson::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong_type(command_of(body), name, other, "string")),
    }
}

pub fn flag(body: &Document, name: &str, default: bool) -> Result<bool> {
    match body.get(name) {
        None | Some(Bson::Null | Bson::Undefined) => Ok(default),
        Some(
            value @ (Bson::Bool(_) | Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) | Bson::Decimal(_)),
        ) => Ok(value.is_truthy()),
        Some(other) => Err(Error::type_mismatch(format!(
            "BSON field '{}.{name}' is the wrong type '{}', expected types '[bool, long, int, decimal, double]'",
            command_of(body),
            other.kind().name()
        ))),
    }
}

/// A member that is a boolean, and nothing that could be taken for one.
pub fn boolean(body: &Document, name: &str, default: bool) -> Result<bool> {
    match body.get(name) {
        None => Ok(default),
        Some(Bson::Bool(value)) => Ok(*value),
        Some(other) => Err(wrong_type(command_of(body), name, other, "bool")),
    }
}

/// A number that is not negative.
pub fn count(body: &Document, name: &str) -> Result<Option<u64>> {
    match number(body, name)? {
        Some(value) if value < 0 => {
            Err(Error::new(51024, format!("BSON field '{name}' value must be >= 0, actual value '{value}'")))
        }
        Some(value) => Ok(u64::try_from(value).ok()),
        None => Ok(None),
    }
}

pub fn number(body: &Document, name: &str) -> Result<Option<i64>> {
    match body.get(name) {
        None | Some(Bson::Null | Bson::Undefined) => Ok(None),
        Some(value) if value.is_number() => match value {
            Bson::Double(double) if double.is_finite() => Ok(Some(double.trunc() as i64)),
            value => value
                .as_i64()
                .map(Some)
                .ok_or_else(|| Error::bad_value(format!("'{name}' is no whole number"))),
        },
        Some(other) => Err(Error::type_mismatch(format!(
            "BSON field '{}.{name}' is the wrong type '{}', expected types '[long, int, decimal, double']",
            command_of(body),
            other.kind().name()
        ))),
    }
}

/// A member that must be there.
pub fn required<'d>(body: &'d Document, name: &str) -> Result<&'d Bson> {
    body.get(name).ok_or_else(|| {
        Error::new(40414, format!("BSON field '{}.{name}' is missing but a required field", command_of(body)))
    })
}

fn command_of(body: &Document) -> &str {
    body.first().map_or("", |(name, _)| name)
}

/// Members that every command may have.
const GENERIC: [&str; 26] = [
    "$db",
    "lsid",
    "txnNumber",
    "autocommit",
    "startTransaction",
    "$clusterTime",
    "$readPreference",
    "readConcern",
    "writeConcern",
    "maxTimeMS",
    "comment",
    "apiVersion",
    "apiStrict",
    "apiDeprecationErrors",
    "$audit",
    "$client",
    "$configServerState",
    "mayBypassWriteBlocking",
    "help",
    "$oplogQueryData",
    "shardVersion",
    "databaseVersion",
    "allowImplicitCollectionCreation",
    "maxTimeMSOpOnly",
    "operationTime",
    "rawData",
];

/// Whether every command may have a member of this name.
pub fn is_generic(name: &str) -> bool {
    GENERIC.contains(&name) || name.starts_with('$')
}

/// Refuses members that a command does not know.
pub fn check_known(body: &Document, known: &[&str]) -> Result<()> {
    for (name, _) in body.iter().skip(1) {
        if !known.contains(&&**name) && !GENERIC.contains(&&**name) && !name.starts_with('$') {
            return Err(Error::new(
                40415,
                format!("BSON field '{}.{name}' is an unknown field.", command_of(body)),
            ));
        }
    }
    Ok(())
}

/// Random numbers that tell things apart; no secret is made of them.
pub fn random() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

pub fn collation(from: Option<&Document>) -> Result<Option<Arc<Collation>>> {
    match from {
        None => Ok(None),
        Some(collation) if collation.is_empty() => Ok(None),
        Some(collation) => Ok(Collation::parse(collation)?.map(Arc::new)),
    }
}

pub fn context(call: &Call<'_>, collation_of: Option<&Document>) -> Result<Context> {
    let given = match collation_of {
        Some(collation) => Some(collation),
        None => document(call.body, "collation")?,
    };
    // Where nothing is said, that of the collection holds.
    let meta = match (given, call.argument()) {
        (None, Bson::String(name)) => call.core.catalog.meta(call.core, call.database, name)?,
        _ => None,
    };
    let of_collection =
        meta.as_ref().and_then(|meta| meta.options.get("collation")).and_then(Bson::as_document);
    let given = given.or(of_collection);
    let mut context = Context {
        now_ms: call.core.now_ms(),
        cluster_time: call.core.cluster_time(),
        variables: Document::new(),
        collation: collation(given)?,
        budget: call.control.budget(call.core.config.memory.clone(), call.core.config.memory_bytes),
        random,
    };
    context.variables = variables(call.body.get("let"), &context)?;
    Ok(context)
}

/// Whether an expression names a field of a document.
fn reads_fields(value: &Bson) -> bool {
    match value {
        Bson::String(text) => {
            text.starts_with('$') && !text.starts_with("$$")
                || text.starts_with("$$ROOT")
                || text.starts_with("$$CURRENT")
        }
        Bson::Document(document) => {
            document.iter().any(|(name, value)| &**name != "$literal" && reads_fields(value))
        }
        Bson::Array(elements) => elements.iter().any(reads_fields),
        _ => false,
    }
}

/// The variables of `let`, evaluated over nothing.
pub fn variables(given: Option<&Bson>, context: &Context) -> Result<Document> {
    let mut context = context.clone();
    context.variables = Document::new();
    match given {
        None | Some(Bson::Null) => {}
        Some(Bson::Document(given)) => {
            let nothing = Document::new();
            for (name, value) in given.iter() {
                if !name.starts_with(|first: char| first.is_ascii_lowercase() || !first.is_ascii()) {
                    return Err(Error::new(
                        code::FAILED_TO_PARSE,
                        format!("'{name}' starts with an invalid character for a user variable name"),
                    ));
                }
                if reads_fields(value) {
                    return Err(Error::new(
                        4_890_500,
                        "A command let expression attempted to access a field, which is disallowed because such expressions \
                         execute prior to the query processing any documents.",
                    ));
                }
                let value = Expression::parse(value, &context)?
                    .evaluate(ValueRef::OwnedDocument(&nothing), &context)?;
                // Those after it may name it.
                context.variables.push(name.clone(), value.unwrap_or(Bson::Undefined));
            }
        }
        Some(other) => {
            return Err(Error::type_mismatch(format!(
                "BSON field 'let' is the wrong type '{}', expected type 'object'",
                other.kind().name()
            )));
        }
    }
    Ok(context.variables)
}
