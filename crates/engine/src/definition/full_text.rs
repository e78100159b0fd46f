//! Full text: which paths hold text in which language, and which of them have an index.

use orrery_model::PropertyPath;
use orrery_query::Language;
use serde_json::{Map, Value, json};

use super::json::{array_member, invalid_input, member, object, required_text};
use crate::error::{Error, Result};

/// The numbers of the tags (Windows calls them locale ids), which the service takes as well.
const NUMBERS: [(&str, &str); 7] = [
    ("1033", "en-US"),
    ("1036", "fr-FR"),
    ("1031", "de-DE"),
    ("1040", "it-IT"),
    ("1046", "pt-BR"),
    ("2070", "pt-PT"),
    ("3082", "es-ES"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullTextPolicy {
    /// English where the policy names none.
    pub default_language: Language,
    pub paths: Vec<FullTextPath>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullTextPath {
    pub path: PropertyPath,
    /// The default language when the path names none.
    pub language: Language,
}

/// A path with a full-text index, and the language of the stems in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullTextIndex {
    pub path: PropertyPath,
    pub language: Language,
}

pub(super) fn parse(from: Option<&Map<String, Value>>) -> Result<Option<(FullTextPolicy, Value)>> {
    let Some(from) = from else { return Ok(None) };
    let mut json = Map::new();
    let default_language = match member(from, "defaultLanguage") {
        Some(name) => {
            let language = language(name)?;
            json.insert("defaultLanguage".into(), name.clone());
            language
        }
        None => Language::English,
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
            let mut own = default_language;
            let mut json = json!({ "path": text });
            if let Some(name) = member(entry, "language") {
                own = language(name)?;
                json["language"] = name.clone();
            }
            canonical.push(json);
            paths.push(FullTextPath { path, language: own });
        }
        json.insert("fullTextPaths".into(), canonical.into());
    }
    let policy = FullTextPolicy { default_language, paths };
    Ok(Some((policy, Value::Object(json))))
}

/// Reads `fullTextIndexes` of the indexing policy.
pub(super) fn parse_indexes(
    from: Option<&Vec<Value>>,
    policy: Option<&FullTextPolicy>,
    json: &mut Map<String, Value>,
) -> Result<Vec<FullTextIndex>> {
    let Some(from) = from else { return Ok(Vec::new()) };
    let mut indexes = Vec::with_capacity(from.len());
    let mut canonical = Vec::with_capacity(from.len());
    for entry in from {
        let text = required_text(object(entry)?, "path")?;
        let path = path(text)?;
        let known = policy.and_then(|policy| policy.paths.iter().find(|known| known.path == path));
        let Some(known) = known else {
            return Err(Error::bad_request(format!(
                "The path of the Full Text Index {text} does not match a path specified in the Full Text Policy."
            )));
        };
        canonical.push(json!({ "path": text }));
        indexes.push(FullTextIndex { path, language: known.language });
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

impl FullTextPolicy {
    /// The same as it was read before there were languages.
    pub(super) fn all_english(mut self) -> FullTextPolicy {
        self.default_language = Language::English;
        self.paths.iter_mut().for_each(|path| path.language = Language::English);
        self
    }
}

/// The language that a policy names by its tag, or by the number that Windows gives the tag.
fn language(name: &Value) -> Result<Language> {
    let text = match name {
        Value::String(tag) if !tag.is_empty() => tag.clone(),
        Value::Number(number) if number.is_u64() => number.to_string(),
        _ => return Err(invalid_input()),
    };
    let tag = NUMBERS.iter().find(|(number, _)| *number == text).map_or(text.as_str(), |(_, tag)| tag);
    Language::of_tag(tag).ok_or_else(|| {
        Error::bad_request(format!("The Full Text Policy contains an unsupported language {text}."))
    })
}
