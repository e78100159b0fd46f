//! What tests share that run scenarios from data files: finding the files, filling in variables, comparing answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Runs every scenario of a folder under `tests/scenarios`, and panics with all that failed.
pub fn run_scenarios<T>(folder: &str, run: impl Fn(&Path) -> Result<T, String>) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no scenarios in {}", folder.display());
    let failures: Vec<String> = files.iter().filter_map(|file| run(file).err()).collect();
    let (failed, all) = (failures.len(), files.len());
    assert!(failures.is_empty(), "{failed} of {all} scenarios failed:\n{}", failures.join("\n"));
}

/// Whether `got` has everything that `want` asks for: all members of an object, all elements of a list in order, equal
/// scalars; the text `*` stands for anything, `(absent)` for nothing.
pub fn contains(want: &Value, got: &Value, path: &str) -> Result<(), String> {
    match (want, got) {
        (Value::String(any), got) if any == "*" && !got.is_null() => Ok(()),
        (Value::Object(want), Value::Object(got)) => want.iter().try_for_each(|(name, value)| {
            let path = format!("{path}.{name}");
            match got.get(name) {
                Some(got) => contains(value, got, &path),
                None if value == "(absent)" => Ok(()),
                None => Err(format!("{path} is missing")),
            }
        }),
        (Value::Array(want), Value::Array(got)) if want.len() == got.len() => want
            .iter()
            .zip(got)
            .enumerate()
            .try_for_each(|(n, (want, got))| contains(want, got, &format!("{path}[{n}]"))),
        (want, got) if want == got => Ok(()),
        (want, got) => Err(format!("{path}: wanted {want}, got {got}")),
    }
}

/// The value with `${name}` replaced by what the variable of that name holds.
pub fn substitute(value: &Value, variables: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => {
            let fill = |text: String, (name, value): (&String, &String)| {
                text.replace(&format!("${{{name}}}"), value)
            };
            Value::String(variables.iter().fold(text.clone(), fill))
        }
        Value::Array(list) => list.iter().map(|value| substitute(value, variables)).collect(),
        Value::Object(map) => {
            map.iter().map(|(name, value)| (name.clone(), substitute(value, variables))).collect()
        }
        other => other.clone(),
    }
}

/// A text as it is, anything else as JSON.
pub fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
