//! `orrery faults`: lists, sets and clears the fault rules of a running server.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command};
use http::Method;
use orrery_server::config::file::json_or_toml;
use serde_json::Value;

use crate::admin::{ask, block_on, connect, with_server_flags};

const AFTER_HELP: &str = "\
A file of rules, in TOML (or in JSON, if its name ends in .json):

  seed = 7
  [[rules]]
  name = \"busy\"                # in the log of requests
  operations = [\"writes\"]      # all, reads, writes, or names as in the log: create_item, query_items, …
  database = \"shop\"            # these three are optional
  container = \"orders\"
  partitionKey = [\"a\"]
  probability = 0.2            # of the requests that match; default 1
  after = 10                   # let the first ten through
  count = 5                    # then fire five times
  answer = 429                 # 429, 449, 410 or 503, with substatus and retryAfterMs if wanted
  delayMs = 100                # alone, or besides answer or drop
  # drop = \"request\"           # hang up before the work; \"answer\": after it

The same seed and the same requests in the same order meet the same faults.";

pub fn command() -> Command {
    let file = Arg::new("file")
        .value_name("FILE")
        .required(true)
        .value_parser(clap::value_parser!(PathBuf))
        .help("Rules, TOML or .json");
    let command = Command::new("faults")
        .about("Fault rules for tests: make a running server answer with errors, late, or not at all")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(Command::new("list").about("Show the rules and how often each has fired"))
        .subcommand(
            Command::new("set").about("Put the rules of a file in force, in place of all others").arg(file),
        )
        .subcommand(Command::new("clear").about("Take all rules away"))
        .after_help(AFTER_HELP);
    with_server_flags(command)
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let (operation, matches) = matches.subcommand().context("no operation is given")?;
    let (method, body) = match operation {
        "set" => {
            let path = matches.get_one::<PathBuf>("file").context("no file is given")?;
            (Method::PUT, read(path)?.to_string())
        }
        "clear" => (Method::DELETE, String::new()),
        _ => (Method::GET, String::new()),
    };
    block_on(async {
        let mut client = connect(matches)?;
        let rules = ask(&mut client, method, "faults", "", body).await?;
        print!("{}", table(&rules));
        Ok(())
    })
}

fn read(path: &Path) -> Result<Value> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    json_or_toml(path, &text).map_err(|error| anyhow::anyhow!("{shown}: {error}"))
}

fn table(rules: &Value) -> String {
    let list = rules["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    if list.is_empty() {
        return "no fault rules\n".into();
    }
    let mut text = format!(
        "seed {}\n{:<20} {:<28} {:<28} {:>9} {:>9}\n",
        rules["seed"], "rule", "requests", "does", "matched", "fired"
    );
    for rule in list {
        let word = |name: &str| rule[name].as_str().unwrap_or_default().to_owned();
        let mut requests: Vec<String> = rule["operations"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        requests.extend([word("database"), word("container")].into_iter().filter(|name| !name.is_empty()));
        if !rule["partitionKey"].is_null() {
            requests.push(rule["partitionKey"].to_string());
        }
        let mut does = Vec::new();
        for (name, label) in [("answer", ""), ("delayMs", "ms late"), ("drop", "lost")] {
            match &rule[name] {
                Value::Null => {}
                Value::String(text) => does.push(format!("{text} {label}")),
                value => does.push(format!("{value} {label}").trim().to_owned()),
            }
        }
        if rule["probability"].as_f64().is_some_and(|probability| probability < 1.0) {
            does.push(format!("p={}", rule["probability"]));
        }
        text.push_str(&format!(
            "{:<20} {:<28} {:<28} {:>9} {:>9}\n",
            word("name"),
            requests.join(" "),
            does.join(", "),
            rule["matched"],
            rule["fired"]
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_are_shown_with_what_they_do() {
        let text = table(&json!({"seed": 7, "rules": [
            {"name": "busy", "operations": ["writes"], "container": "c", "probability": 0.5, "answer": 429, "matched": 10, "fired": 4},
            {"name": "cut", "operations": ["all"], "partitionKey": ["a"], "probability": 1.0, "delayMs": 5, "drop": "answer", "matched": 1, "fired": 1}]}));
        assert!(
            text.contains("writes c")
                && text.contains("429, p=0.5")
                && text.contains("5 ms late, answer lost"),
            "{text}"
        );
        assert_eq!(table(&json!({"rules": []})), "no fault rules\n");
    }
}
