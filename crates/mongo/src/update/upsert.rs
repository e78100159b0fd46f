//! What an upsert starts from: the values that the filter fixes.

use crate::error::{Error, Result, code};
use crate::filter::Filter;
use crate::update::ID;
use crate::value::{Bson, Document};

/// For a replacement only `_id` is taken over.
pub fn start(filter: &Filter, replacement: bool) -> Result<Document> {
    let mut document = Document::new();
    let equalities = filter.equalities();
    let mut taken: Vec<&str> = Vec::new();
    for (path, value) in &equalities {
        if replacement && *path != ID && !path.starts_with("_id.") {
            continue;
        }
        let within =
            |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if let Some(other) = taken.iter().find(|other| within(path, other) || within(other, path)) {
            return Err(Error::new(
                code::NOT_SINGLE_VALUE_FIELD,
                match *other == *path {
                    true => format!("cannot infer query fields to set, path '{path}' is matched twice"),
                    false => format!(
                        "cannot infer query fields to set, both paths '{other}' and '{path}' are matched"
                    ),
                },
            ));
        }
        taken.push(path);
        put(&mut document, path, value);
    }
    if let Some(id) = document.remove(ID) {
        document.push_front(ID, id);
    }
    Ok(document)
}

fn put(document: &mut Document, path: &str, value: &Bson) {
    match path.split_once('.') {
        None => document.set(path, value.clone()),
        Some((name, rest)) => {
            if !matches!(document.get(name), Some(Bson::Document(_))) {
                document.set(name, Document::new());
            }
            if let Some(Bson::Document(inner)) = document.get_mut(name) {
                put(inner, rest, value);
            }
        }
    }
}
