//! `orrery top`: what a server does, live in the terminal.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use orrery_server::config::values;
use serde_json::{Value, json};

use super::{json_flag, option, table};
use crate::Usage;
use crate::account::{EXIT_CODES_HELP, with_account_flags};
use crate::admin::{ask, block_on, connect};

/// The terminal's other screen, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H\x1b[J";
const ROWS_DEFAULT: usize = 30;
const BAR_CELLS: usize = 10;

pub fn command() -> Command {
    let command = Command::new("top")
        .about("Live view of a server: requests, RU/s, 429s, storage and hottest keys by container")
        .arg(option("interval", "TIME", "How often to look").default_value("1s"))
        .arg(
            Arg::new("partitions")
                .long("partitions")
                .help("One line for each physical partition")
                .action(ArgAction::SetTrue),
        )
        .arg(
            Arg::new("once")
                .long("once")
                .help("Look twice, print the difference, end")
                .action(ArgAction::SetTrue),
        )
        .arg(json_flag())
        .after_help(EXIT_CODES_HELP);
    with_account_flags(command)
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let text = matches.get_one::<String>("interval").map_or("1s", String::as_str);
    let interval = values::duration(text).map_err(|problem| Usage(format!("--interval: {problem}")))?;
    let by_partition = matches.get_flag("partitions");
    let as_json = matches.get_flag("json");
    let once = as_json || matches.get_flag("once") || !std::io::stdout().is_terminal();
    block_on(async {
        let mut client = connect(matches)?;
        let mut before = Sample::of(
            &ask(&mut client, Method::GET, "partitions", "keys=1", String::new()).await?,
            by_partition,
        );
        if !once {
            print!("{ENTER}");
        }
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                _ = tokio::signal::ctrl_c() => {
                    print!("{LEAVE}");
                    return Ok(std::io::stdout().flush()?);
                }
            }
            let looked = ask(&mut client, Method::GET, "partitions", "keys=1", String::new()).await;
            let now = match looked {
                Ok(answer) => Sample::of(&answer, by_partition),
                Err(error) => {
                    if !once {
                        print!("{LEAVE}");
                    }
                    return Err(error);
                }
            };
            let rows = now.since(&before);
            if as_json {
                println!("{}", Value::Array(rows));
                return Ok(());
            }
            let screen = screen(&rows, now.throttling);
            if once {
                print!("{screen}");
                return Ok(());
            }
            print!("{HOME}{screen}\nCtrl+C ends");
            std::io::stdout().flush()?;
            before = now;
        }
    })
}

#[derive(Default, Clone)]
struct Figures {
    items: u64,
    size_bytes: u64,
    requests: u64,
    throttled: u64,
    consumed_ru: f64,
    throughput_ru: f64,
    partitions: u64,
    normalized: f64,
    hottest: Option<(Value, f64)>,
}

struct Sample {
    at: Instant,
    throttling: bool,
    rows: BTreeMap<String, Figures>,
}

impl Sample {
    fn of(answer: &Value, by_partition: bool) -> Sample {
        let mut rows: BTreeMap<String, Figures> = BTreeMap::new();
        for partition in answer["partitions"].as_array().into_iter().flatten() {
            let word = |name: &str| partition[name].as_str().unwrap_or_default();
            let mut name = format!("{}/{}", word("database"), word("container"));
            if by_partition {
                name.push_str(&format!(" [{}]", word("range")));
            }
            let row = rows.entry(name).or_default();
            let number = |name: &str| partition[name].as_u64().unwrap_or(0);
            row.items += number("items");
            row.size_bytes += number("sizeBytes");
            row.requests += number("requests");
            row.throttled += number("throttled");
            row.consumed_ru += partition["consumedRu"].as_f64().unwrap_or(0.0);
            row.throughput_ru += partition["throughput"].as_f64().unwrap_or(0.0);
            row.partitions += 1;
            row.normalized = row.normalized.max(partition["normalized"].as_f64().unwrap_or(0.0));
            let hot = &partition["hot"][0];
            let rate = hot["ruPerSecond"].as_f64().unwrap_or(0.0);
            if rate > row.hottest.as_ref().map_or(0.0, |(_, rate)| *rate) {
                row.hottest = Some((hot["partitionKey"].clone(), rate));
            }
        }
        Sample { at: Instant::now(), throttling: answer["throttling"].as_bool().unwrap_or(false), rows }
    }

    /// What happened between the two, busiest first.
    fn since(&self, before: &Sample) -> Vec<Value> {
        let seconds = self.at.duration_since(before.at).max(Duration::from_millis(1)).as_secs_f64();
        let none = Figures::default();
        let mut rows: Vec<(f64, Value)> = self
            .rows
            .iter()
            .map(|(name, now)| {
                let was = before.rows.get(name).unwrap_or(&none);
                let rate = |now: f64, was: f64| ((now - was).max(0.0) / seconds * 10.0).round() / 10.0;
                let ru = rate(now.consumed_ru, was.consumed_ru);
                let row = json!({
                    "container": name,
                    "requestsPerSecond": rate(now.requests as f64, was.requests as f64),
                    "ruPerSecond": ru,
                    "throughput": now.throughput_ru,
                    "normalized": now.normalized,
                    "throttledPerSecond": rate(now.throttled as f64, was.throttled as f64),
                    "items": now.items,
                    "sizeBytes": now.size_bytes,
                    "partitions": now.partitions,
                    "hottest": now.hottest.as_ref().map(|(key, _)| key),
                });
                (ru, row)
            })
            .collect();
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

fn screen(rows: &[Value], throttling: bool) -> String {
    let sum = |name: &str| rows.iter().filter_map(|row| row[name].as_f64()).sum::<f64>();
    let mut text = format!(
        "{:.0} requests/s   {:.0} RU/s   {:.0} × 429/s   {:.0} items   {}   throttling {}\n\n",
        sum("requestsPerSecond"),
        sum("ruPerSecond"),
        sum("throttledPerSecond"),
        sum("items"),
        indicatif::HumanBytes(sum("sizeBytes") as u64),
        if throttling { "on" } else { "off" }
    );
    let mut lines = vec![
        [
            "container",
            "req/s",
            "RU/s",
            "of",
            "busiest partition",
            "429/s",
            "items",
            "size",
            "parts",
            "hottest key",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for row in rows.iter().take(ROWS_DEFAULT) {
        let share = row["normalized"].as_f64().unwrap_or(0.0).clamp(0.0, 1.0);
        let full = (share * BAR_CELLS as f64).round() as usize;
        let bar = format!("{}{} {:>3.0} %", "█".repeat(full), "░".repeat(BAR_CELLS - full), share * 100.0);
        let word = |name: &str| row[name].as_str().map_or_else(|| row[name].to_string(), str::to_owned);
        let key = if row["hottest"].is_null() { String::new() } else { row["hottest"].to_string() };
        let key: String = key.chars().filter(|c| !c.is_control()).take(40).collect();
        lines.push(vec![
            word("container"),
            word("requestsPerSecond"),
            word("ruPerSecond"),
            format!("{:.0}", row["throughput"].as_f64().unwrap_or(0.0)),
            bar,
            word("throttledPerSecond"),
            word("items"),
            indicatif::HumanBytes(row["sizeBytes"].as_u64().unwrap_or(0)).to_string(),
            word("partitions"),
            key,
        ]);
    }
    text.push_str(&table::aligned(&lines));
    if rows.len() > ROWS_DEFAULT {
        text.push_str(&format!("and {} more\n", rows.len() - ROWS_DEFAULT));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_differences_and_the_busiest_comes_first() {
        let answer = |requests: u64, ru: f64| {
            json!({"throttling": true, "partitions": [
                {"database": "d", "container": "a", "range": "0", "requests": 5, "consumedRu": 1.0},
                {"database": "d", "container": "b", "range": "0", "requests": requests, "consumedRu": ru, "hot": [{"partitionKey": ["k"], "ruPerSecond": 5.0}]},
            ]})
        };
        let before = Sample::of(&answer(10, 10.0), false);
        let mut now = Sample::of(&answer(30, 50.0), false);
        now.at = before.at + Duration::from_secs(2);
        let rows = now.since(&before);
        assert_eq!(
            (
                rows[0]["container"].as_str(),
                rows[0]["requestsPerSecond"].as_f64(),
                rows[0]["ruPerSecond"].as_f64()
            ),
            (Some("d/b"), Some(10.0), Some(20.0))
        );
        let text = screen(&rows, true);
        assert!(text.contains("10 requests/s") && text.contains("[\"k\"]"), "{text}");
    }
}
