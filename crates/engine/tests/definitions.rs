//! Container definitions as data: what a client sends, and what is made of it or why it is refused.
//!
//! Every file in `tests/definitions/` is a list of cases; to add one, add an entry:
//!
//! ```json
//! { "case": "a sentence that says what is shown",
//!   "keyKinds": "hash",                       optional: no hierarchical keys
//!   "was": { … },                             optional: the container exists like this, and `send` replaces it
//!   "send": { … },
//!   "gives": { "member": …, "gone": null } }  members of the canonical definition; null: it has no such member
//!   "refuses": "text", "kind": "Forbidden"    instead of `gives`: part of the message, and the kind unless BadRequest
//! ```
//!
//! `id` and `partitionKey` are filled in where a case does not care. Besides what it states, every accepted case must
//! be canonical: read back from the catalog it is the same, member for member and in the same order.

mod catalog_support;

use std::path::PathBuf;

use catalog_support::{World, wait};
use orrery_engine::{ContainerDefinition, KeyKinds};
use serde_json::{Map, Value, json};

const MEMBERS_IN_ORDER: [&str; 16] = [
    "id",
    "indexingPolicy",
    "partitionKey",
    "defaultTtl",
    "uniqueKeyPolicy",
    "conflictResolutionPolicy",
    "geospatialConfig",
    "analyticalStorageTtl",
    "computedProperties",
    "vectorEmbeddingPolicy",
    "fullTextPolicy",
    "changeFeedPolicy",
    "clientEncryptionPolicy",
    "materializedViewDefinition",
    "globalSecondaryIndexDefinition",
    "dataMaskingPolicy",
];

fn complete(sent: &Value) -> Value {
    let mut sent = sent.clone();
    if let Value::Object(members) = &mut sent {
        members.entry("id").or_insert("c".into());
        members.entry("partitionKey").or_insert(json!({ "paths": ["/pk"], "kind": "Hash", "version": 2 }));
        members.retain(|_, value| value != "(absent)");
    }
    sent
}

/// What the engine makes of a case: the canonical definition, or the kind and text of its refusal.
fn outcome(case: &Map<String, Value>) -> Result<Value, (String, String)> {
    let kinds = match case.get("keyKinds").and_then(Value::as_str) {
        Some("hash") => KeyKinds::HashOnly,
        _ => KeyKinds::All,
    };
    let refusal = |error: orrery_engine::Error| (format!("{:?}", error.kind), error.message);
    let definition = ContainerDefinition::parse(&complete(&case["send"]), kinds).map_err(refusal)?;
    let again = ContainerDefinition::parse(&definition.json, KeyKinds::All).expect("canonical JSON is valid");
    assert_eq!(again, definition, "canonical JSON reads back as itself");
    assert_eq!(again.json.to_string(), definition.json.to_string(), "in the same order");
    let members: Vec<&str> = definition.json.as_object().unwrap().keys().map(String::as_str).collect();
    let ordered: Vec<&str> = MEMBERS_IN_ORDER.into_iter().filter(|name| members.contains(name)).collect();
    assert_eq!(members, ordered, "the service's order of members");

    let Some(was) = case.get("was") else { return Ok(definition.json) };
    let account = World::new().open();
    let database = wait(account.create_database("db", None)).unwrap();
    let was = ContainerDefinition::parse(&complete(was), KeyKinds::All).expect("what was is valid");
    let container = wait(account.create_container(&database, was, None)).unwrap();
    match wait(account.replace_container(&container, definition, None)) {
        Ok(replaced) => Ok(replaced.definition().json.clone()),
        Err(error) => Err(refusal(error)),
    }
}

fn check(case: &Map<String, Value>) -> Result<(), String> {
    match (outcome(case), case.get("gives"), case.get("refuses").and_then(Value::as_str)) {
        (Ok(json), Some(Value::Object(gives)), None) => gives.iter().try_for_each(|(name, expected)| {
            let found = json.get(name).unwrap_or(&Value::Null);
            // As text: the order of members counts.
            let (found, expected) = (found.to_string(), expected.to_string());
            match found == expected {
                true => Ok(()),
                false => Err(format!("{name}: expected {expected}, found {found}")),
            }
        }),
        (Err((kind, message)), None, Some(text)) => {
            let expected = case.get("kind").and_then(Value::as_str).unwrap_or("BadRequest");
            match kind == expected && message.contains(text) {
                true => Ok(()),
                false => Err(format!("refused as {kind}: {message}")),
            }
        }
        (found, gives, refuses) => Err(format!("expected {gives:?} or {refuses:?}, found {found:?}")),
    }
}

#[test]
fn definitions_become_what_their_cases_say() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/definitions");
    let mut count = 0;
    let mut wrong = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let cases: Vec<Map<String, Value>> = serde_json::from_slice(&std::fs::read(&file).unwrap())
            .unwrap_or_else(|error| panic!("{file:?}: {error}"));
        for case in cases {
            count += 1;
            let name = case["case"].as_str().expect("a case has a sentence").to_owned();
            if let Err(why) = check(&case) {
                wrong.push(format!("{}: {name}\n    {why}", file.file_name().unwrap().display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 100, "only {count} cases were found");
}
