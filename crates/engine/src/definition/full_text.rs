//! Full text: which paths hold text in which language, and which of them have an index.

use orrery_model::PropertyPath;
use serde_json::{Map, Value, json};

use super::json::{array_member, invalid_input, object, required_text, text_member};
use crate::error::{Error, Result};

const LANGUAGES: [&str; 7] = ["en-US", "fr-FR", "de-DE", "it-IT", "pt-BR", "pt-PT", "es-ES"];
/// The language of a policy that names none.
const DEFAULT_LANGUAGE: &str = "en-US";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullTextPolicy {
    pub default_language: String,
    pub paths: Vec<FullTextPath>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullTextPath {
    pub path: PropertyPath,
    /// The default language when the path names none.
    pub language: String,
}

pub(super) fn parse(from: Option<&Map<String, Value>>) -> Result<Option<(FullTextPolicy, Value)>> {
    let Some(from) = from else { return Ok(None) };
    let mut json = Map::new();
    let default_language = match text_member(from, "defaultLanguage")? {
        Some(name) => {
            json.insert("defaultLanguage".into(), language(name)?.into());
            name
        }
        None => DEFAULT_LANGUAGE,
    };
    let mut paths: Vec<FullTextPath> = Vec::new();
    if let Some(entries) = array_member(from, "fullTextPaths")? {
        let mut canonical = Vec::with_capacity(entries.len());
        for entry in entries {
            let entry = object(entry)?;
            let text = required_text(entry, "path")?;
            let path = path(text)?;
            if paths.iter().any(|other| other.path == path) {
                return Err(Error::bad_request(format!(
                    "The Full Text Policy contains a duplicate path: {text}."
                )));
            }
            let own = text_member(entry, "language")?;
            let mut json = json!({ "path": text });
            if let Some(name) = own {
                json["language"] = language(name)?.into();
            }
            canonical.push(json);
            paths.push(FullTextPath { path, language: own.unwrap_or(default_language).to_owned() });
        }
        json.insert("fullTextPaths".into(), canonical.into());
    }
    let policy = FullTextPolicy { default_language: default_language.to_owned(), paths };
    Ok(Some((policy, Value::Object(json))))
}

/// Reads `fullTextIndexes` of the indexing policy.
pub(super) fn parse_indexes(
    from: Option<&Vec<Value>>,
    policy: Option<&FullTextPolicy>,
    json: &mut Map<String, Value>,
) -> Result<Vec<PropertyPath>> {
    let Some(from) = from else { return Ok(Vec::new()) };
    let mut indexes = Vec::with_capacity(from.len());
    let mut canonical = Vec::with_capacity(from.len());
    for entry in from {
        let text = required_text(object(entry)?, "path")?;
        let path = path(text)?;
        if !policy.is_some_and(|policy| policy.paths.iter().any(|known| known.path == path)) {
            return Err(Error::bad_request(format!(
                "The path of the Full Text Index {text} does not match a path specified in the Full Text Policy."
            )));
        }
        canonical.push(json!({ "path": text }));
        indexes.push(path);
    }
    json.insert("fullTextIndexes".into(), canonical.into());
    Ok(indexes)
}

fn path(text: &str) -> Result<PropertyPath> {
    let path = PropertyPath::parse(text).ok();
    // A wildcard is a path of the indexing policy, not a place that holds a text.
    path.filter(|path| !path.segments().iter().any(|segment| matches!(segment.as_str(), "*" | "?" | "[]")))
        .ok_or_else(|| Error::bad_request(format!("The Full Text Policy contains an invalid Path: {text}.")))
}

fn language(name: &str) -> Result<&str> {
    if name.is_empty() {
        return Err(invalid_input());
    }
    match LANGUAGES.contains(&name) {
        true => Ok(name),
        false => {
            Err(Error::bad_request(format!("The Full Text Policy contains an unsupported language {name}.")))
        }
    }
}
