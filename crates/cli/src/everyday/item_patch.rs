//! The operations of `orrery item patch`.

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};

use super::option;
use crate::Usage;

const OPERATIONS: [(&str, &str, &str); 5] = [
    ("set", "/PATH=VALUE", "Set a property; VALUE is JSON if it is some, else a string; may be repeated"),
    ("add", "/PATH=VALUE", "Add a property, or an element of an array (/tags/- at its end); may be repeated"),
    ("replace", "/PATH=VALUE", "Replace a property that exists; may be repeated"),
    ("incr", "/PATH=NUMBER", "Add to a number; may be repeated"),
    ("remove", "/PATH", "Take a property away; may be repeated"),
];

pub fn arguments(mut command: Command) -> Command {
    for (name, value, help) in OPERATIONS {
        command =
            command.arg(Arg::new(name).long(name).value_name(value).help(help).action(ArgAction::Append));
    }
    command
        .arg(option("operations", "JSON", "All operations as a JSON array; @FILE and - read them"))
        .arg(option("where", "CONDITION", "Only if this holds: FROM c WHERE c.stock > 0"))
}

pub fn body(matches: &ArgMatches) -> Result<Value> {
    let mut operations = match matches.get_one::<String>("operations") {
        Some(given) => match serde_json::from_str(&super::item::read(given)?) {
            Ok(Value::Array(operations)) => operations,
            _ => return Err(Usage("--operations: allowed: a JSON array of operations".into()).into()),
        },
        None => Vec::new(),
    };
    // By the kind of operation, since the order on the command line is not known.
    for (name, ..) in OPERATIONS {
        for given in matches.get_many::<String>(name).into_iter().flatten() {
            operations.push(operation(name, given)?);
        }
    }
    if operations.is_empty() {
        return Err(Usage(
            "nothing to change: --set, --add, --replace, --incr, --remove or --operations".into(),
        )
        .into());
    }
    let mut body = json!({"operations": operations});
    if let Some(condition) = matches.get_one::<String>("where") {
        body["condition"] = condition.as_str().into();
    }
    Ok(body)
}

fn operation(name: &str, given: &str) -> Result<Value, Usage> {
    if name == "remove" {
        return Ok(json!({"op": name, "path": given}));
    }
    let wrong = || Usage(format!("--{name}: `{given}` is not allowed; allowed: /PATH=VALUE"));
    let (path, value) = given.split_once('=').ok_or_else(wrong)?;
    let value: Value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    if name == "incr" && !value.is_number() {
        return Err(Usage(format!("--incr: `{given}` has no number")));
    }
    Ok(json!({"op": name, "path": path, "value": value}))
}
