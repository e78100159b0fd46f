//! What an update has changed, path by path: what change streams tell.

use crate::update::Updated;
use crate::value::{Bson, Document};

pub fn note(before: &Document, updated: &mut Updated) {
    let after = updated.document.clone();
    documents(before, &after, "", updated);
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

fn documents(before: &Document, after: &Document, prefix: &str, updated: &mut Updated) {
    for (name, _) in before.iter() {
        if !after.contains(name) {
            updated.unset.push(join(prefix, name));
        }
    }
    for (name, new) in after.iter() {
        match before.get(name) {
            Some(old) => values(old, new, join(prefix, name), updated),
            None => updated.set.push((join(prefix, name), new.clone())),
        }
    }
}

fn values(old: &Bson, new: &Bson, path: String, updated: &mut Updated) {
    if old.is_identical(new) {
        return;
    }
    match (old, new) {
        (Bson::Document(old), Bson::Document(new)) if old.iter().any(|(name, _)| new.contains(name)) => {
            documents(old, new, &path, updated);
        }
        (Bson::Array(old), Bson::Array(new)) if !old.is_empty() && !new.is_empty() => {
            if new.len() < old.len() {
                updated.truncated.push((path.clone(), new.len()));
            }
            for (at, new) in new.iter().enumerate() {
                match old.get(at) {
                    Some(old) => values(old, new, format!("{path}.{at}"), updated),
                    None => updated.set.push((format!("{path}.{at}"), new.clone())),
                }
            }
        }
        _ => updated.set.push((path, new.clone())),
    }
}
