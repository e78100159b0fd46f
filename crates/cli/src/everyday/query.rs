//! `orrery query`: one statement, or a shell.

use std::io::{IsTerminal, Read};

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};
use orrery_server::config::values;
use serde_json::{Value, json};

use super::query_run::{Query, run as run_query};
use super::{charge, container_name, counted, json_flag, option, partition_key, shell, table};
use crate::Usage;
use crate::account::{Account, EXIT_CODES_HELP, Place, target, with_account_flags};
use crate::admin::block_on;

/// Longest statement from standard input.
const STATEMENT_BYTES_MAX: u64 = 1024 * 1024;

pub fn command() -> Command {
    let command = Command::new("query")
        .about("Run a query and print its rows, the charge and, if asked, the plan; without a query, open a shell")
        .arg(Arg::new("name").value_name("DB/CONTAINER").help("The container; a shell can choose it later"))
        .arg(Arg::new("sql").value_name("SQL").help("The query; - reads it from standard input"))
        .arg(option("param", "NAME=VALUE", "A parameter, @NAME in the query; JSON if it is some, else a string; may be repeated").action(ArgAction::Append))
        .arg(option("partition-key", "KEY", "Ask one logical partition only").short('k'))
        .arg(option("limit", "N", "Rows to read, at most").default_value("1000"))
        .arg(Arg::new("table").long("table").help("Rows as a table").action(ArgAction::SetTrue))
        .arg(Arg::new("explain").long("explain").help("Print how each partition made its part").action(ArgAction::SetTrue))
        .arg(json_flag())
        .after_help(format!(
            "Rows are printed one per line as JSON; what they cost goes to stderr.\n\n  \
             orrery query shop/orders 'SELECT * FROM c WHERE c.customer = @c' --param c=c7\n  \
             orrery query shop/orders 'SELECT c.day, COUNT(1) AS n FROM c GROUP BY c.day' --table\n\n{EXIT_CODES_HELP}"
        ));
    with_account_flags(command)
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let limit = values::number(text("limit").unwrap_or("1000"), 1, u64::MAX)
        .map_err(|problem| Usage(format!("--limit: {problem}")))?;
    let parameters = parameters(matches)?;
    let place = text("name")
        .map(container_name)
        .transpose()?
        .map(|(database, container)| Place::container(database, container));
    let Some(sql) = text("sql") else {
        if !std::io::stdin().is_terminal() && place.is_some() {
            let mut sql = String::new();
            std::io::stdin().take(STATEMENT_BYTES_MAX).read_to_string(&mut sql)?;
            return one(matches, place, sql, parameters, limit);
        }
        return shell::run(target(matches)?, text("name").map(str::to_owned), limit);
    };
    let sql = if sql == "-" { super::item::read("-")? } else { sql.to_owned() };
    one(matches, place, sql, parameters, limit)
}

fn parameters(matches: &ArgMatches) -> Result<Vec<Value>, Usage> {
    let given = matches.get_many::<String>("param").into_iter().flatten().map(|given| {
        let (name, value) = given
            .split_once('=')
            .ok_or_else(|| Usage(format!("--param: `{given}` is not allowed; allowed: NAME=VALUE")))?;
        let name = if name.starts_with('@') { name.to_owned() } else { format!("@{name}") };
        let value: Value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        Ok(json!({"name": name, "value": value}))
    });
    given.collect()
}

fn one(
    matches: &ArgMatches,
    place: Option<Place>,
    sql: String,
    parameters: Vec<Value>,
    limit: u64,
) -> Result<()> {
    let place = place.ok_or_else(|| Usage("name the container: DB/CONTAINER".into()))?;
    let key = matches.get_one::<String>("partition-key").map(|text| partition_key(text)).transpose()?;
    block_on(async {
        let mut account = Account::new(target(matches)?);
        let query = Query { sql, parameters, key, limit, explain: matches.get_flag("explain") };
        let as_json = matches.get_flag("json");
        let stream = !as_json && !matches.get_flag("table");
        let answer = run_query(&mut account, &place, &query, |row| {
            if stream {
                println!("{row}");
            }
        })
        .await?;
        if as_json {
            let rows: Vec<Value> =
                answer.rows.iter().filter_map(|row| serde_json::from_str(row).ok()).collect();
            println!(
                "{}",
                json!({"rows": rows, "requestCharge": answer.charge_ru, "pages": answer.pages, "more": answer.more, "plan": answer.plan})
            );
            return Ok(());
        }
        if matches.get_flag("table") {
            let rows: Vec<Value> =
                answer.rows.iter().filter_map(|row| serde_json::from_str(row).ok()).collect();
            print!("{}", table::render(&rows));
        }
        for line in &answer.plan {
            eprintln!("{line}");
        }
        let more = if answer.more { "; there are more (--limit)" } else { "" };
        let (rows, pages) = (counted(answer.rows.len(), "row"), counted(answer.pages as usize, "page"));
        eprintln!("{rows}, {pages}, {}{more}", charge(answer.charge_ru));
        Ok(())
    })
}
