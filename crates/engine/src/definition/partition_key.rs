//! The partition key of a container: which paths, hashed how.
//!
//! `{"paths":["/a"],"kind":"Hash","version":2}`; a definition without a version is version 1. A container that is
//! created without a key gets one of the system: no item has a value there, so all share one logical partition.

use orrery_model::{KeyKind, KeyVersion, PartitionKeyDefinition, PropertyPath};
use serde_json::{Map, Value, json};

use super::json::{array_member, bool_member, integer_member, invalid_input, text_member};
use crate::error::{Error, Result};

/// Most paths of a hierarchical key.
pub const PARTITION_KEY_PATHS_MAX: usize = 3;
/// The path that stands for "no partition key".
const SYSTEM_PATH: &str = "/_partitionKey";

/// The kinds of keys that whoever defines a container knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKinds {
    HashOnly,
    /// Hierarchical keys too.
    All,
}

/// Reads a definition; `None` asks for a container without a key.
pub(super) fn parse(
    from: Option<&Map<String, Value>>,
    kinds: KeyKinds,
) -> Result<(PartitionKeyDefinition, Value)> {
    let Some(from) = from else { return Ok(system_key()) };
    let kind = kind(text_member(from, "kind")?.unwrap_or("Hash"), kinds)?;
    // The Java SDK sends the name of its constant instead of the number.
    let version = match from.get("version").and_then(Value::as_str) {
        Some("V1") => Some(1),
        Some("V2") => Some(2),
        _ => integer_member(from, "version")?,
    };
    let key_version = match (version, kind) {
        (Some(2), _) | (None, KeyKind::MultiHash) => KeyVersion::V2,
        (Some(1) | None, KeyKind::Hash) => KeyVersion::V1,
        (Some(1), KeyKind::MultiHash) => {
            return Err(Error::bad_request(
                "The 'version' value '1' specified in the partition key definition is invalid. 'MultiHash' needs version 2.",
            ));
        }
        (Some(other), _) => {
            return Err(Error::bad_request(format!(
                "The 'version' value '{other}' specified in the partition key definition is invalid. Please choose 1 or 2."
            )));
        }
    };
    let texts = array_member(from, "paths")?.ok_or_else(invalid_input)?;
    let texts: Vec<&str> =
        texts.iter().map(Value::as_str).collect::<Option<_>>().ok_or_else(invalid_input)?;
    let max = if kind == KeyKind::MultiHash { PARTITION_KEY_PATHS_MAX } else { 1 };
    if texts.is_empty() {
        return Err(Error::bad_request("The partition key definition must specify at least one path."));
    }
    if texts.len() > max {
        return Err(Error::bad_request(format!(
            "Too many partition key paths ({}) specified. A maximum of {max} is allowed.",
            texts.len()
        )));
    }
    let paths: Vec<PropertyPath> = texts.iter().map(|text| path(text)).collect::<Result<_>>()?;
    if let Some((_, twice)) = paths.iter().enumerate().find(|(index, path)| paths[..*index].contains(path)) {
        return Err(Error::bad_request(format!(
            "The partition key path '{twice}' is specified more than once."
        )));
    }
    let system_key = bool_member(from, "systemKey")?.unwrap_or(false);

    let mut json = json!({ "paths": texts, "kind": kind_name(kind) });
    if let Some(version) = version.or((kind == KeyKind::MultiHash).then_some(2)) {
        json["version"] = version.into();
    }
    if system_key {
        json["systemKey"] = true.into();
    }
    Ok((PartitionKeyDefinition { paths, kind, version: key_version, system_key }, json))
}

fn system_key() -> (PartitionKeyDefinition, Value) {
    let definition = PartitionKeyDefinition {
        paths: vec![PropertyPath::from_segments(["_partitionKey"])],
        kind: KeyKind::Hash,
        version: KeyVersion::V1,
        system_key: true,
    };
    (definition, json!({ "paths": [SYSTEM_PATH], "kind": "Hash", "systemKey": true }))
}

fn kind(name: &str, kinds: KeyKinds) -> Result<KeyKind> {
    let knows_multi_hash = kinds == KeyKinds::All;
    match name {
        "Hash" => Ok(KeyKind::Hash),
        "MultiHash" if knows_multi_hash => Ok(KeyKind::MultiHash),
        other => {
            let choice = if knows_multi_hash { "'Hash' or 'MultiHash'" } else { "'Hash'" };
            Err(Error::bad_request(format!(
                "The 'kind' value '{other}' specified in the partition key definition is invalid. Please choose \
                 {choice} partition type."
            )))
        }
    }
}

fn kind_name(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Hash => "Hash",
        KeyKind::MultiHash => "MultiHash",
    }
}

/// What is asked of new definitions alone: the signs of a path that are not in quotes.
pub(super) fn check_signs(definition: &Value) -> Result<()> {
    let texts = definition["paths"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let found = texts.filter_map(|text| Some((text, stray_sign(text)?))).next();
    found.map_or(Ok(()), |(text, offset)| Err(refused(text, offset)))
}

fn refused(text: &str, offset: usize) -> Error {
    Error::bad_request(format!(
        "The partition key component definition path '{text}' could not be accepted, failed near position \
         '{offset}'. Partition key paths must contain only valid characters and not contain a trailing slash or \
         wildcard character."
    ))
}

fn path(text: &str) -> Result<PropertyPath> {
    let path = PropertyPath::parse(text).map_err(|error| refused(text, error.offset))?;
    // Only outside quotes are these wildcards; a quoted name may hold any character.
    let wildcard = path.segments().iter().any(|segment| matches!(segment.as_str(), "*" | "?" | "[]"));
    match wildcard && !text.contains(['"', '\'']) {
        true => Err(refused(text, text.find(['*', '?', '[']).unwrap_or(text.len()))),
        false => Ok(path),
    }
}

/// Where a path, which is one, has a sign that must stand in quotes.
fn stray_sign(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = '/';
    for (at, character) in text.char_indices() {
        match quote {
            Some(open) if character == open && before != '\\' => quote = None,
            Some(_) => {}
            None if matches!(character, '"' | '\'') && before == '/' => quote = Some(character),
            None if character.is_alphanumeric() || matches!(character, '/' | '_' | '-' | '$' | '@') => {}
            None => return Some(at),
        }
        before = character;
    }
    None
}
