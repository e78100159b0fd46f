//! `orrery budget check`: what queries may cost, asserted in a test run.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command};
use orrery_server::config::file::json_or_toml;
use serde_json::{Value, json};

use crate::Usage;
use crate::account::{Account, EXIT_CODES_HELP, ExitCodes, Failure, Place, target, with_account_flags};
use crate::admin::block_on;
use crate::everyday::query_run::{Query, run as run_query};
use crate::everyday::{container_name, partition_key, table};

const AFTER_HELP: &str = "\
A file of budgets, in TOML (or in JSON, if its name ends in .json):

  [[budgets]]
  name = \"orders of a customer\"
  container = \"shop/orders\"
  query = \"SELECT * FROM c WHERE c.customer = @c\"
  parameters = { c = \"c7\" }
  partitionKey = \"c7\"          # optional: ask one logical partition
  maxRu = 5.0                  # all pages together
  maxRows = 100                # optional
  maxPages = 1                 # optional

Exit code 5 if a budget is exceeded.";

pub fn command() -> Command {
    let check = Command::new("check")
        .about("Run every query of a file and compare its charge with its budget")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .value_parser(clap::value_parser!(PathBuf))
                .help("Budgets, TOML or .json"),
        )
        .arg(Arg::new("json").long("json").help("Print JSON, for scripts").action(clap::ArgAction::SetTrue));
    let command = Command::new("budget")
        .about("Budgets of request units for tests: fail when a query costs more than it may")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(check)
        .after_help(format!("{AFTER_HELP}\n\n{EXIT_CODES_HELP}"));
    with_account_flags(command)
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let (_, matches) = matches.subcommand().context("no operation is given")?;
    let path = matches.get_one::<PathBuf>("file").context("no file is given")?;
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = json_or_toml(path, &text).map_err(|error| Usage(format!("{}: {error}", path.display())))?;
    let budgets = file["budgets"].as_array().cloned().unwrap_or_default();
    if budgets.is_empty() {
        return Err(Usage(format!("{} has no budgets", path.display())).into());
    }
    block_on(async {
        let mut account = Account::new(target(matches)?);
        let (mut rows, mut exceeded) = (Vec::new(), 0);
        for budget in &budgets {
            let row = check(&mut account, budget).await?;
            exceeded += usize::from(row["ok"] == false);
            rows.push(row);
        }
        match matches.get_flag("json") {
            true => println!("{}", Value::Array(rows)),
            false => print!("{}", table::render(&rows)),
        }
        match exceeded {
            0 => Ok(()),
            _ => Err(Failure::new(
                ExitCodes::Incomplete,
                format!("{exceeded} of {} budgets are exceeded", budgets.len()),
            )
            .into()),
        }
    })
}

async fn check(account: &mut Account, budget: &Value) -> Result<Value> {
    let name = budget["name"].as_str().unwrap_or("a budget");
    let needed =
        |member: &str| budget[member].as_str().ok_or_else(|| Usage(format!("{name} has no `{member}`")));
    let (database, container) = container_name(needed("container")?)?;
    let max_ru = budget["maxRu"].as_f64().ok_or_else(|| Usage(format!("{name} has no `maxRu`")))?;
    let parameters = budget["parameters"].as_object().into_iter().flatten();
    let query = Query {
        sql: needed("query")?.to_owned(),
        parameters: parameters
            .map(|(name, value)| json!({"name": format!("@{name}"), "value": value}))
            .collect(),
        key: budget.get("partitionKey").map(|key| partition_key(&key.to_string())).transpose()?,
        limit: u64::MAX,
        explain: false,
    };
    let found = run_query(account, &Place::container(database, container), &query, |_| {}).await;
    let found = found.with_context(|| name.to_owned())?;
    let within = |member: &str, count: u64| budget[member].as_u64().is_none_or(|most| count <= most);
    let ok = found.charge_ru <= max_ru
        && within("maxRows", found.rows.len() as u64)
        && within("maxPages", found.pages);
    Ok(json!({
        "budget": name,
        "ok": ok,
        "RU": (found.charge_ru * 100.0).round() / 100.0,
        "of": max_ru,
        "rows": found.rows.len(),
        "pages": found.pages,
    }))
}
