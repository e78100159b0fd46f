//! `orrery partitions`: what the physical partitions of a running server hold and spend, with bars.
//!
//! ```text
//! shop/orders      items       size                     RU/s  share        busiest second          429
//!   0  ''-1FFF    12,034    14.1 MB  ▏                   812   1000  ████████████████████  100 %  5,120
//!      hot      ["customer-7"]  71 % of the RU
//!      largest  ["customer-7"]  3.1 MB, 2,410 items
//! ```

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::Usage;
use crate::admin::{ask, block_on, connect, with_server_flags};

const BAR_CELLS: usize = 20;
/// Ends of ranges are cut to this many digits: enough to tell them apart.
const HASH_DIGITS: usize = 6;
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Clears the terminal and goes to its first line.
const CLEAR: &str = "\x1b[2J\x1b[H";

pub fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
    };
    let command = Command::new("partitions")
        .about("Show what physical partitions hold and spend, and their hottest and largest keys")
        .arg(text("db", "NAME", "Only this database"))
        .arg(text("container", "NAME", "Only this container; needs --db"))
        .arg(text("keys", "N", "Hot and large keys to show for each partition, up to 32").default_value("3"))
        .arg(switch("watch", "Show again every second until interrupted"))
        .arg(switch("json", "Print the server's JSON instead of a table"));
    with_server_flags(command)
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    if text("container").is_some() && text("db").is_none() {
        return Err(Usage("--container needs --db".into()).into());
    }
    let mut query = format!("keys={}", escaped(text("keys").unwrap_or("3")));
    for name in ["db", "container"] {
        if let Some(value) = text(name) {
            let _ = write!(query, "&{name}={}", escaped(value));
        }
    }
    let (watch, json) = (matches.get_flag("watch"), matches.get_flag("json"));
    block_on(async {
        let mut client = connect(matches)?;
        loop {
            let report = ask(&mut client, Method::GET, "partitions", &query, String::new()).await?;
            match json {
                true => println!("{report}"),
                false => print!("{}{}", if watch { CLEAR } else { "" }, table(&report)),
            }
            if !watch {
                return Ok(());
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    })
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn table(report: &Value) -> String {
    let partitions = report["partitions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut text = String::new();
    if partitions.is_empty() {
        text.push_str("no partitions\n");
    }
    let mut shown = String::new();
    for partition in partitions {
        let number = |name: &str| partition[name].as_f64().unwrap_or(0.0);
        let word = |name: &str| partition[name].as_str().unwrap_or_default();
        let container = format!("{}/{}", word("database"), word("container"));
        if container != shown {
            let kind = if partition["shared"] == true { " (shares its database's throughput)" } else { "" };
            let _ = writeln!(text, "{container}{kind}");
            let _ = writeln!(
                text,
                "  {:>5}  {:<15} {:>12} {:>10}  {:<BAR_CELLS$} {:>8} {:>8}  {:<width$} {:>8}",
                "range",
                "hashes",
                "items",
                "size",
                "of its limit",
                "RU/s",
                "of",
                "busiest second of the last minute",
                "429",
                width = BAR_CELLS + 6,
            );
            shown = container;
        }
        let filled = number("sizeBytes") / number("sizeLimitBytes").max(1.0);
        let normalized = number("normalized");
        let hashes = format!("{}-{}", cut(word("min")), cut(word("max")));
        let busiest = format!("{} {:>3.0} %", bar(normalized), normalized * 100.0);
        let _ = writeln!(
            text,
            "  {:>5}  {hashes:<15} {:>12} {:>10}  {} {:>8.0} {:>8.0}  {busiest:<width$} {:>8}",
            word("range"),
            thousands(number("items")),
            bytes(number("sizeBytes")),
            bar(filled),
            number("ruPerSecond"),
            number("throughput"),
            thousands(number("throttled")),
            width = BAR_CELLS + 6,
        );
        keys(&mut text, partition);
    }
    if report["throttling"] == false {
        text.push_str("throttling is off: nothing is refused (--throttling on)\n");
    }
    text
}

/// The hottest and largest logical partitions.
fn keys(text: &mut String, partition: &Value) {
    let list = |name: &str| partition[name].as_array().map(Vec::as_slice).unwrap_or_default().to_vec();
    for hot in list("hot") {
        let share = hot["share"].as_f64().unwrap_or(0.0) * 100.0;
        let _ = writeln!(
            text,
            "         hot      {:<40} {share:>5.1} % of the RU",
            hot["partitionKey"].to_string()
        );
    }
    for large in list("largest") {
        let (size, items) =
            (large["sizeBytes"].as_f64().unwrap_or(0.0), large["items"].as_f64().unwrap_or(0.0));
        let _ = writeln!(
            text,
            "         largest  {:<40} {:>10}, {} items",
            large["partitionKey"].to_string(),
            bytes(size),
            thousands(items)
        );
    }
    let surveyed = partition["surveyed"].as_f64().unwrap_or(1.0);
    if surveyed < 1.0 && !list("largest").is_empty() {
        let _ = writeln!(text, "         (measured {:.0} % so far; ask again)", surveyed * 100.0);
    }
}

/// A bar in eighths of a cell.
fn bar(part: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part.clamp(0.0, 1.0) * (BAR_CELLS * 8) as f64).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    text.push_str(EIGHTHS[eighths % 8]);
    let cells = eighths.div_ceil(8);
    text.push_str(&" ".repeat(BAR_CELLS - cells));
    text
}

fn cut(hash: &str) -> &str {
    match hash {
        "" => "''",
        hash => hash.get(..HASH_DIGITS).unwrap_or(hash),
    }
}

fn bytes(size: f64) -> String {
    const UNITS: [(&str, f64); 3] = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    match UNITS.into_iter().find(|(_, unit)| size >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", size / unit),
        None => format!("{size:.0} B"),
    }
}

fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_partition_is_a_line_with_bars_and_its_keys() {
        let report = json!({"throttling": true, "partitions": [{
            "database": "shop", "container": "orders", "range": "0", "min": "", "max": "1FFFFFFFFFFF", "items": 12034,
            "sizeBytes": 14_100_000, "sizeLimitBytes": 50_000_000_000u64, "throughput": 1000.0, "shared": false,
            "ruPerSecond": 812.0, "normalized": 0.5, "throttled": 5120,
            "hot": [{"partitionKey": ["customer-7"], "share": 0.71}],
            "largest": [{"partitionKey": ["customer-7"], "sizeBytes": 3_100_000, "items": 2410}], "surveyed": 0.25}]});
        let text = table(&report);
        for part in [
            "shop/orders\n",
            "''-1FFFFF",
            "12,034",
            "14.1 MB",
            "██████████            50 %",
            "5,120",
            r#"hot      ["customer-7"]"#,
            "71.0 % of the RU",
            "3.1 MB, 2,410 items",
            "measured 25 %",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn bars_are_as_long_as_their_part() {
        assert_eq!(bar(0.0), " ".repeat(BAR_CELLS));
        assert_eq!(bar(7.0), "█".repeat(BAR_CELLS));
        assert_eq!(bar(0.5).chars().count(), BAR_CELLS);
        assert!(bar(0.01).starts_with('▎'));
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(
            (thousands(1_234_567.0), thousands(12.0), bytes(999.0), bytes(2.5e9)),
            ("1,234,567".into(), "12".into(), "999 B".into(), "2.5 GB".into())
        );
    }
}
