//! `orrery feed`: the changes of a container, one per line.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use serde_json::Value;

use super::{container_name, json_flag, option};
use crate::Usage;
use crate::account::{Account, EXIT_CODES_HELP, Failure, Place, read_all, target, with_account_flags};
use crate::admin::block_on;
use crate::transfer::raw_json;

/// Pause when there was nothing new.
const QUIET_PAUSE: Duration = Duration::from_millis(250);

pub fn command() -> Command {
    let command = Command::new("feed")
        .about("Print the changes of a container, one per line as JSON; --follow waits for more")
        .arg(super::name("name", "DB/CONTAINER", "The container"))
        .arg(
            Arg::new("follow")
                .long("follow")
                .short('f')
                .help("Wait for further changes; Ctrl+C ends")
                .action(ArgAction::SetTrue),
        )
        .arg(option(
            "from",
            "WHEN",
            "beginning, now, or a time like 2026-11-18T12:00:00Z [default: beginning; with --follow now]",
        ))
        .arg(
            Arg::new("versions")
                .long("versions")
                .help("Every version and delete; needs a container that keeps them, from now on")
                .action(ArgAction::SetTrue),
        )
        .arg(option("max", "N", "End after this many changes"))
        .arg(json_flag().hide(true))
        .after_help(EXIT_CODES_HELP);
    with_account_flags(command)
}

/// Where each range is. Ranges that came from others begin where those were.
struct Ranges {
    marks: BTreeMap<String, Option<String>>,
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let (database, container) = container_name(text("name").unwrap_or_default())?;
    let place = Place::container(database, container);
    let follow = matches.get_flag("follow");
    let versions = matches.get_flag("versions");
    let from = text("from").unwrap_or(if follow || versions { "now" } else { "beginning" });
    let max: u64 = match text("max") {
        None => u64::MAX,
        Some(text) => text.parse().map_err(|_| Usage(format!("--max: `{text}` is no number")))?,
    };
    let start = start(from)?;
    block_on(async {
        let mut account = Account::new(target(matches)?);
        let mut ranges = Ranges { marks: BTreeMap::new() };
        ranges.read(&mut account, &place).await?;
        let mut out = std::io::stdout().lock();
        let mut seen = 0;
        loop {
            let mut quiet = true;
            for id in ranges.marks.keys().cloned().collect::<Vec<_>>() {
                let mark = ranges.marks.get(&id).cloned().flatten();
                let mut call = place.feed(Method::GET, "docs");
                let kind = if versions { "Full-Fidelity Feed" } else { "Incremental Feed" };
                call.headers =
                    vec![("a-im", kind.to_owned()), ("x-ms-documentdb-partitionkeyrangeid", id.clone())];
                match (&mark, &start) {
                    (Some(mark), _) => call.headers.push(("if-none-match", mark.clone())),
                    (None, Some(header)) => call.headers.push(header.clone()),
                    (None, None) => {}
                }
                let answer = account.ask(&call).await?;
                match answer.status {
                    200 | 304 => {}
                    410 => {
                        ranges.read(&mut account, &place).await?;
                        quiet = false;
                        break;
                    }
                    _ => return Err(Failure::of_answer(&answer).into()),
                }
                if answer.status == 200 {
                    let text = std::str::from_utf8(&answer.body).context("an answer that is not UTF-8")?;
                    let changes =
                        raw_json::member(text, "Documents").and_then(raw_json::elements).unwrap_or_default();
                    for change in changes {
                        quiet = false;
                        // Whoever reads this has had enough when it closes the pipe.
                        if writeln!(out, "{change}").is_err() {
                            return Ok(());
                        }
                        seen += 1;
                        if seen >= max {
                            return Ok(out.flush()?);
                        }
                    }
                }
                if let Some(etag) = answer.header("etag") {
                    ranges.marks.insert(id, Some(etag.to_owned()));
                }
            }
            out.flush()?;
            if quiet && !follow {
                return Ok(());
            }
            if quiet {
                tokio::time::sleep(QUIET_PAUSE).await;
            }
        }
    })
}

/// The header that says where to begin.
fn start(from: &str) -> Result<Option<(&'static str, String)>, Usage> {
    match from {
        "beginning" => Ok(None),
        "now" => Ok(Some(("if-none-match", "*".into()))),
        time => {
            let time: jiff::Timestamp = time.parse().map_err(|_| {
                Usage(format!("--from: `{time}` is not allowed; allowed: beginning, now, or a time like 2026-11-18T12:00:00Z"))
            })?;
            let time = std::time::SystemTime::from(time);
            Ok(Some(("if-modified-since", httpdate::fmt_http_date(time))))
        }
    }
}

impl Ranges {
    async fn read(&mut self, account: &mut Account, place: &Place) -> Result<()> {
        let found = read_all(account, place, "pkranges", "PartitionKeyRanges").await?;
        let mut marks = BTreeMap::new();
        for range in &found {
            let id = range["id"].as_str().context("a range without an id")?;
            let parents = range["parents"].as_array().into_iter().flatten().rev().filter_map(Value::as_str);
            let known = std::iter::once(id).chain(parents).find_map(|name| self.marks.get(name).cloned());
            marks.insert(id.to_owned(), known.flatten());
        }
        self.marks = marks;
        Ok(())
    }
}
