//! The small policies of a container: time to live, unique keys, conflicts, geography, and those that are kept and
//! echoed.

use orrery_model::{PartitionKeyDefinition, PropertyPath};
use serde_json::{Map, Value, json};

use super::json::{
    array_member, integer_member, invalid_input, member, object, object_member, one_of, required_text,
    text_member,
};
use crate::error::{Error, Result};

/// Most unique keys of a container.
pub const UNIQUE_KEYS_MAX: usize = 10;
/// The one algorithm that clients encrypt members with.
const ENCRYPTION_ALGORITHM: &str = "AEAD_AES_256_CBC_HMAC_SHA256";
/// Most paths of one unique key.
pub const UNIQUE_KEY_PATHS_MAX: usize = 16;

/// `defaultTtl`: seconds, or -1 for "on, but items never expire by themselves".
pub(super) fn default_ttl(from: &Map<String, Value>) -> Result<Option<i32>> {
    let Some(ttl) = integer_member(from, "defaultTtl")? else { return Ok(None) };
    let valid = i32::try_from(ttl).ok().filter(|ttl| *ttl == -1 || *ttl > 0);
    valid.map(Some).ok_or_else(|| ttl_refused(ttl))
}

/// `analyticalStorageTtl`: as above, and 0 for "off".
pub(super) fn analytical_ttl(from: &Map<String, Value>) -> Result<Option<i32>> {
    let Some(ttl) = integer_member(from, "analyticalStorageTtl")? else { return Ok(None) };
    let valid = i32::try_from(ttl).ok().filter(|ttl| *ttl >= -1);
    valid.map(Some).ok_or_else(|| ttl_refused(ttl))
}

fn ttl_refused(ttl: i64) -> Error {
    Error::bad_request(format!(
        "The input ttl '{ttl}' is invalid. Ensure to provide a nonzero positive integer less than or equal to '{}', or '-1' \
         which means never expire.",
        i32::MAX
    ))
}

/// `uniqueKeyPolicy`. An absent policy and one without keys mean the same and are echoed as they came.
pub(super) fn unique_keys(from: &Map<String, Value>) -> Result<(Vec<Vec<PropertyPath>>, Option<Value>)> {
    let Some(policy) = object_member(from, "uniqueKeyPolicy")? else { return Ok((Vec::new(), None)) };
    let nothing = Vec::new();
    let entries = array_member(policy, "uniqueKeys")?.unwrap_or(&nothing);
    if entries.len() > UNIQUE_KEYS_MAX {
        return Err(Error::bad_request(format!(
            "The unique key policy has {} unique keys; a maximum of {UNIQUE_KEYS_MAX} is allowed.",
            entries.len()
        )));
    }
    let mut keys: Vec<Vec<PropertyPath>> = Vec::with_capacity(entries.len());
    let mut canonical = Vec::with_capacity(entries.len());
    for entry in entries {
        let texts = array_member(object(entry)?, "paths")?.ok_or_else(invalid_input)?;
        if !(1..=UNIQUE_KEY_PATHS_MAX).contains(&texts.len()) {
            return Err(Error::bad_request(format!(
                "A unique key has {} paths; it must have from 1 to {UNIQUE_KEY_PATHS_MAX}.",
                texts.len()
            )));
        }
        let mut paths: Vec<PropertyPath> = Vec::with_capacity(texts.len());
        for text in texts {
            let text = text.as_str().ok_or_else(invalid_input)?;
            let path = PropertyPath::parse(text)
                .ok()
                .filter(|path| {
                    !path.segments().iter().any(|segment| matches!(segment.as_str(), "*" | "?" | "[]"))
                })
                .ok_or_else(|| Error::bad_request(format!("The unique key path '{text}' is invalid.")))?;
            if paths.contains(&path) {
                return Err(Error::bad_request(format!(
                    "The unique key path '{text}' is specified more than once."
                )));
            }
            paths.push(path);
        }
        if keys.contains(&paths) {
            return Err(Error::bad_request("The unique key policy has the same unique key more than once."));
        }
        keys.push(paths);
        canonical.push(json!({ "paths": texts }));
    }
    Ok((keys, Some(json!({ "uniqueKeys": canonical }))))
}

/// `conflictResolutionPolicy`: kept and echoed; one region has no conflicts.
pub(super) fn conflict_resolution(from: &Map<String, Value>) -> Result<Value> {
    let nothing = Map::new();
    let policy = object_member(from, "conflictResolutionPolicy")?.unwrap_or(&nothing);
    let mode = text_member(policy, "mode")?.unwrap_or("LastWriterWins");
    let mode = one_of(mode, &["LastWriterWins", "Custom"]).ok_or_else(invalid_input)?;
    let path = text_member(policy, "conflictResolutionPath")?.filter(|path| !path.is_empty());
    let procedure = text_member(policy, "conflictResolutionProcedure")?.filter(|name| !name.is_empty());
    let (path, procedure) = match mode {
        "LastWriterWins" if procedure.is_some() => return Err(invalid_input()),
        "LastWriterWins" => (path.unwrap_or("/_ts"), ""),
        _ if path.is_some() => return Err(invalid_input()),
        _ => ("", procedure.unwrap_or("")),
    };
    if !path.is_empty() {
        PropertyPath::parse(path).map_err(|_| invalid_input())?;
    }
    Ok(json!({ "mode": mode, "conflictResolutionPath": path, "conflictResolutionProcedure": procedure }))
}

/// The policy of a container that was created without one.
pub(super) fn default_conflict_resolution() -> Value {
    json!({ "mode": "LastWriterWins", "conflictResolutionPath": "/_ts", "conflictResolutionProcedure": "" })
}

/// `geospatialConfig`: on the globe or on a plane.
pub(super) fn geospatial(from: &Map<String, Value>) -> Result<Value> {
    let kind = match object_member(from, "geospatialConfig")? {
        Some(config) => text_member(config, "type")?.unwrap_or("Geography"),
        None => "Geography",
    };
    let kind = one_of(kind, &["Geography", "Geometry"]).ok_or_else(invalid_input)?;
    Ok(json!({ "type": kind }))
}

/// `clientEncryptionPolicy`: clients encrypt; here the policy is checked in shape, kept and echoed.
pub(super) fn client_encryption(from: &Map<String, Value>) -> Result<Option<Value>> {
    let Some(policy) = object_member(from, "clientEncryptionPolicy")? else { return Ok(None) };
    let version = integer_member(policy, "policyFormatVersion")?.unwrap_or(1);
    if !(1..=2).contains(&version) {
        return Err(invalid_input());
    }
    for entry in array_member(policy, "includedPaths")?.ok_or_else(invalid_input)? {
        let entry = object(entry)?;
        let path = required_text(entry, "path")?;
        let encrypted = PropertyPath::parse(path).map_err(|_| invalid_input())?;
        // Nested members are encrypted with the whole that they are part of.
        if encrypted.segments().len() != 1 || (version == 1 && path == "/id") {
            return Err(invalid_input());
        }
        required_text(entry, "clientEncryptionKeyId")?;
        one_of(required_text(entry, "encryptionType")?, &["Deterministic", "Randomized"])
            .ok_or_else(invalid_input)?;
        required_text(entry, "encryptionAlgorithm")?;
    }
    Ok(Some(Value::Object(policy.clone())))
}

/// What is asked of new policies alone. Ids and partition keys are looked up by their value, so that a policy of
/// version 1 leaves them alone and one of version 2 encrypts equal values equally.
pub(super) fn check_client_encryption(policy: Option<&Value>, key: &PartitionKeyDefinition) -> Result<()> {
    let Some(policy) = policy else { return Ok(()) };
    let version = policy["policyFormatVersion"].as_i64().unwrap_or(1);
    let mut seen: Vec<&str> = Vec::new();
    for entry in policy["includedPaths"].as_array().into_iter().flatten() {
        let path = entry["path"].as_str().ok_or_else(invalid_input)?;
        let encrypted = PropertyPath::parse(path).map_err(|_| invalid_input())?;
        let name = &encrypted.segments()[0];
        if seen.contains(&path) {
            return Err(Error::bad_request(format!("Duplicate Path found: {path}.")));
        }
        seen.push(path);
        let looked_up = name == "id" || key.paths.iter().any(|path| path.segments()[0] == *name);
        if looked_up && version < 2 {
            return Err(Error::bad_request(format!(
                "Path: {path} which is part of the partition key or is the id cannot be encrypted with PolicyFormatVersion: \
                 {version}. Please use PolicyFormatVersion: 2."
            )));
        }
        if looked_up
            && !entry["encryptionType"]
                .as_str()
                .is_some_and(|name| name.eq_ignore_ascii_case("Deterministic"))
        {
            return Err(Error::bad_request(format!(
                "Path: {path} which is part of the partition key or is the id has to be encrypted with Deterministic type Encryption."
            )));
        }
        if entry["encryptionAlgorithm"] != ENCRYPTION_ALGORITHM {
            return Err(Error::bad_request(format!(
                "EncryptionAlgorithm should be '{ENCRYPTION_ALGORITHM}'."
            )));
        }
    }
    Ok(())
}

/// `changeFeedPolicy`: for how many minutes all versions of items are kept.
pub(super) fn change_feed(from: &Map<String, Value>) -> Result<Option<Value>> {
    let Some(policy) = object_member(from, "changeFeedPolicy")? else { return Ok(None) };
    match integer_member(policy, "retentionDuration")? {
        Some(minutes) if minutes < 0 => Err(invalid_input()),
        _ => Ok(Some(Value::Object(policy.clone()))),
    }
}

/// A policy that is an object and nothing more to us.
pub(super) fn opaque(from: &Map<String, Value>, name: &str) -> Result<Option<Value>> {
    member(from, name).map(|policy| object(policy).cloned().map(Value::Object)).transpose()
}
