//! The TOML file: the same names as the flags, at the top level.
//!
//! ```toml
//! listen = ["0.0.0.0:8081", "[::1]:8081"]
//! data-dir = "/var/lib/orrery"
//! partition-size-limit = "10GB"
//! ephemeral = false
//! ```
//!
//! A key that is no setting is an error that names the allowed ones: a misspelt limit must not silently be no limit.

use std::path::Path;

use super::values::closest;
use super::{ConfigError, Given, SETTINGS};

/// Largest configuration file read.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

pub fn read(path: &Path) -> Result<Given, ConfigError> {
    let shown = path.display();
    let problem =
        |error: std::io::Error| ConfigError(format!("cannot read the configuration file {shown}: {error}"));
    let size = std::fs::metadata(path).map_err(problem)?.len();
    if size > FILE_BYTES_MAX {
        return Err(ConfigError(format!(
            "the configuration file {shown} has {size} bytes; allowed: {FILE_BYTES_MAX}"
        )));
    }
    parse(&std::fs::read_to_string(path).map_err(problem)?)
        .map_err(|ConfigError(text)| ConfigError(format!("{shown}: {text}")))
}

pub fn parse(text: &str) -> Result<Given, ConfigError> {
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| ConfigError(error.to_string().trim_end().to_owned()))?;
    let mut given = Given::new();
    for (name, value) in table {
        let setting = SETTINGS.iter().find(|setting| setting.name == name).ok_or_else(|| unknown(&name))?;
        let texts = match value {
            toml::Value::Array(values) if setting.repeats => {
                values.into_iter().map(|value| scalar(&name, value)).collect::<Result<_, _>>()?
            }
            value => vec![scalar(&name, value)?],
        };
        given.insert(setting.name, texts);
    }
    Ok(given)
}

fn scalar(name: &str, value: toml::Value) -> Result<String, ConfigError> {
    match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(switch) => Ok(switch.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        other => Err(ConfigError(format!(
            "`{name}` is a TOML {}; allowed: a text, a number or true/false{}",
            other.type_str(),
            if SETTINGS.iter().any(|setting| setting.name == name && setting.repeats) {
                ", or a list of texts"
            } else {
                ""
            }
        ))),
    }
}

/// Reads a file of data whose form its name tells: `.json`, else TOML.
pub fn json_or_toml(path: &Path, text: &str) -> Result<serde_json::Value, String> {
    match path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        true => serde_json::from_str(text).map_err(|error| error.to_string()),
        false => toml::from_str(text).map_err(|error| error.to_string()),
    }
}

fn unknown(name: &str) -> ConfigError {
    let names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    let hint = closest(name, names.iter().copied())
        .map(|name| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default();
    ConfigError(format!("`{name}` is no setting{hint}; allowed: {}", names.join(", ")))
}
