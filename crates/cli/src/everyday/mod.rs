//! Everyday commands: databases, containers, items, queries and changes of any account, in one style.
//!
//! Containers are named `DATABASE/CONTAINER`. Results go to stdout, everything about them (charges, counts) to
//! stderr; with `--json` stdout has one JSON object that says both. Exit codes are in `account/failure.rs`.

pub mod container;
pub mod database;
pub mod feed;
pub mod fork;
pub mod item;
mod item_patch;
mod offer;
pub mod query;
pub mod query_run;
mod shell;
mod shell_helper;
pub mod table;
pub mod top;

use anyhow::Result;
use clap::{Arg, ArgAction, Command};
use orrery_model::{KeyComponent, PartitionKey};
use serde_json::Value;

use crate::Usage;
use crate::account::{EXIT_CODES_HELP, with_account_flags};

/// The frame of a command with operations.
fn group(name: &'static str, about: &'static str, operations: impl IntoIterator<Item = Command>) -> Command {
    let command = Command::new(name)
        .about(about)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommands(operations)
        .arg(json_flag().global(true))
        .after_help(EXIT_CODES_HELP);
    with_account_flags(command)
}

fn json_flag() -> Arg {
    Arg::new("json").long("json").help("Print JSON, for scripts").action(ArgAction::SetTrue)
}

fn name(id: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(id).value_name(value).required(true).help(help)
}

fn option(id: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(id).long(id).value_name(value).help(help)
}

/// `DATABASE/CONTAINER`
pub fn container_name(text: &str) -> Result<(&str, &str), Usage> {
    match text.split_once('/') {
        Some((database, container)) if !database.is_empty() && !container.is_empty() => {
            Ok((database, container))
        }
        _ => Err(Usage(format!("`{text}` is no container; allowed: DATABASE/CONTAINER"))),
    }
}

/// A partition key as people type it: JSON if it is some, else a string. `[…]` has several components.
pub fn partition_key(text: &str) -> Result<PartitionKey, Usage> {
    let component = |value: &Value| match value {
        Value::Null => Ok(KeyComponent::Null),
        Value::Bool(value) => Ok(KeyComponent::Bool(*value)),
        Value::Number(number) => Ok(KeyComponent::Number(number.as_f64().unwrap_or(0.0))),
        Value::String(text) => Ok(KeyComponent::String(text.clone())),
        Value::Object(map) if map.is_empty() => Ok(KeyComponent::Undefined),
        _ => Err(Usage(format!(
            "--partition-key: `{text}` is no key; allowed: a value, or a JSON array of values"
        ))),
    };
    let components: Vec<KeyComponent> = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(values)) => values.iter().map(component).collect::<Result<_, _>>()?,
        Ok(value) => vec![component(&value)?],
        Err(_) => vec![KeyComponent::String(text.to_owned())],
    };
    Ok(PartitionKey(components.into_iter().collect()))
}

pub fn key_header(key: &PartitionKey) -> (&'static str, String) {
    let mut out = Vec::new();
    key.write_json(&mut out);
    ("x-ms-documentdb-partitionkey", crate::account::ascii_json(&String::from_utf8_lossy(&out)))
}

/// `1 row`, `2 rows`.
fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn charge(charge_ru: f64) -> String {
    format!("{charge_ru:.2} RU")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_json_or_text() {
        let header = |text| key_header(&partition_key(text).unwrap()).1;
        assert_eq!(header("abc"), r#"["abc"]"#);
        assert_eq!(header("5"), "[5]");
        assert_eq!(header("\"5\""), r#"["5"]"#);
        assert_eq!(header(r#"["a",{},null]"#), r#"["a",{},null]"#);
        assert!(partition_key("[[1]]").is_err() && container_name("x").is_err());
    }
}
