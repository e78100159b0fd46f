//! `orrery advise`: which partition key a container should have, by its items and by recorded requests.
//!
//! Items are read in slices of the hash space, a page of each in turn, so a sample is even over the partitions. The
//! computation is in the crate `advise`; what is here reads, prints, and (`--prove`) runs the recorded queries
//! against a copy under the new key.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use indicatif::{HumanBytes, HumanCount};
use orrery_advise::{Advice, ITEMS_MAX, Judged, Options, Request, Sample, advise, bars};
use orrery_server::config::values;
use serde_json::{Value, json};

use crate::Usage;
use crate::account::{
    Account, ContainerInfo, EXIT_CODES_HELP, ExitCodes, Failure, Place, target, with_account_flags,
};
use crate::everyday::query_run::{Query, run as run_query};
use crate::everyday::{container_name, partition_key};
use crate::transfer::source::{page, slices};
use crate::workload::Target;

/// Lines of a recording that are looked at.
const REQUESTS_MAX: usize = 1_000_000;
/// Candidates that are printed.
const SHOWN: usize = 6;
/// Recorded queries that are run again by `--prove`.
const PROVED_QUERIES_MAX: usize = 500;

pub fn command() -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let command = Command::new("advise")
        .about("Which partition key a container should have: from its items and from recorded requests, with reasons")
        .arg(Arg::new("name").value_name("DB/CONTAINER").required(true).help("The container"))
        .arg(option("requests", "FILE", "What `orrery serve --record FILE` has written").value_parser(clap::value_parser!(PathBuf)))
        .arg(option("sample", "N", "Items to read, at most").default_value("50000"))
        .arg(option("grows-to", "BYTES", "The size that is expected, for the largest logical partition [default: ten times the present one]"))
        .arg(
            Arg::new("prove")
                .long("prove")
                .help("Copy the container under the recommended key, run the recorded queries on both, print the RU, delete the copy")
                .action(ArgAction::SetTrue)
                .requires("requests"),
        )
        .arg(Arg::new("json").long("json").help("Print JSON, for scripts").action(ArgAction::SetTrue))
        .after_help(format!(
            "  orrery serve --record requests.jsonl      # run the application for a while\n  \
             orrery advise shop/orders --requests requests.jsonl --prove\n\n{EXIT_CODES_HELP}"
        ));
    with_account_flags(command)
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    runtime.block_on(run_inner(matches))
}

async fn run_inner(matches: &ArgMatches) -> Result<()> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let full = text("name").unwrap_or_default();
    let (database, container) = container_name(full)?;
    let limit = values::number(text("sample").unwrap_or("50000"), 10, ITEMS_MAX as u64)
        .map_err(|problem| Usage(format!("--sample: {problem}")))?;
    let target = target(matches)?;
    let mut account = Account::new(target.clone());
    let place = Place::container(database, container);
    let info = ContainerInfo::read(&mut account, &place).await?;
    let current: Vec<String> =
        info.key.paths.iter().map(|path| format!("/{}", path.segments().join("/"))).collect();
    let (sample, whole) = read_sample(&mut account, &place, limit as usize).await?;
    if sample.is_empty() {
        return Err(Failure::new(ExitCodes::NotFound, format!("{full} has no items to learn from")).into());
    }
    let lines = match matches.get_one::<PathBuf>("requests") {
        Some(path) => recording(path, database, container)?,
        None => Vec::new(),
    };
    let requests: Vec<Request> = lines.iter().filter_map(|line| Request::of_line(line, &current)).collect();
    // The whole container's size is only known when all of it was read; else the sample speaks for itself.
    let size_bytes = if whole { sample.size_bytes() } else { size_of(&mut account, &place, &sample).await? };
    let projected_bytes = match text("grows-to") {
        Some(text) => values::size_bytes(text).map_err(|problem| Usage(format!("--grows-to: {problem}")))?,
        None => size_bytes.saturating_mul(10),
    };
    let options = Options {
        current,
        size_bytes,
        projected_bytes,
        physical_partitions: u32::try_from(info.ranges.len()).unwrap_or(1),
    };
    let advice = advise(&sample, &requests, &options);
    let proof = match (&advice.recommended, matches.get_flag("prove")) {
        (Some(best), true) => {
            Some(prove(&target, database, container, &best.candidate.rule(), &lines).await?)
        }
        _ => None,
    };
    if matches.get_flag("json") {
        println!("{}", as_json(&advice, &sample, requests.len(), proof.as_ref()));
    } else {
        print(&advice, &sample, &requests, whole, &options, full, proof.as_ref());
    }
    match advice.recommended {
        Some(_) => Ok(()),
        None => Err(Failure::new(ExitCodes::Failed, "no key can be recommended").into()),
    }
}

/// A page of each slice in turn, until there is enough.
async fn read_sample(account: &mut Account, place: &Place, limit: usize) -> Result<(Sample, bool)> {
    let mut sample = Sample::default();
    let mut open: VecDeque<_> =
        slices(account, place).await?.into_iter().map(|slice| (slice, None::<String>)).collect();
    while let Some((slice, continuation)) = open.pop_front() {
        let page = page(account, place, &slice, continuation.as_deref()).await?;
        for item in &page.items {
            if sample.len() >= limit {
                return Ok((sample, false));
            }
            let value: Value = serde_json::from_str(item).context("an item that is no JSON")?;
            sample.add(&value, item.len() as u64);
        }
        if page.continuation.is_some() {
            open.push_back((slice, page.continuation));
        }
    }
    Ok((sample, true))
}

/// About the size of the container: its number of items, by the mean of the sample.
async fn size_of(account: &mut Account, place: &Place, sample: &Sample) -> Result<u64> {
    let query = Query {
        sql: "SELECT VALUE COUNT(1) FROM c".into(),
        parameters: Vec::new(),
        key: None,
        limit: 1,
        explain: false,
    };
    let rows = run_query(account, place, &query, |_| {}).await?;
    let items: u64 = rows.rows.first().and_then(|row| row.parse().ok()).unwrap_or(sample.len() as u64);
    Ok(sample.size_bytes() / sample.len().max(1) as u64 * items)
}

fn recording(path: &Path, database: &str, container: &str) -> Result<Vec<Value>> {
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut found = Vec::new();
    for line in BufReader::new(file).lines() {
        // The last line of a server that was killed may be cut.
        let Ok(line) = serde_json::from_str::<Value>(&line?) else { continue };
        if line["database"] == database
            && line["container"] == container
            && line["status"].as_u64() < Some(400)
        {
            found.push(line);
            if found.len() >= REQUESTS_MAX {
                break;
            }
        }
    }
    Ok(found)
}

/// The recorded queries, run on the container and on a copy of it under the new key.
#[derive(Debug)]
struct Proof {
    queries: usize,
    before_ru: f64,
    after_ru: f64,
}

async fn prove(
    target: &Arc<Target>,
    database: &str,
    container: &str,
    rule: &str,
    lines: &[Value],
) -> Result<Proof> {
    let copy = format!("{container}-advised");
    let mut account = Account::new(target.clone());
    crate::transfer::copy(target.clone(), database, container, &copy, rule)
        .await
        .context("cannot copy the container")?;
    let (old, new) = (Place::container(database, container), Place::container(database, &copy));
    let mut proof = Proof { queries: 0, before_ru: 0.0, after_ru: 0.0 };
    let result = async {
        for line in lines.iter().filter(|line| line["operation"] == "query_items").take(PROVED_QUERIES_MAX) {
            let Some(sql) = line["body"]["query"].as_str() else { continue };
            let key = line.get("partitionKey").filter(|key| !key.is_null()).map(Value::to_string);
            let parameters = line["body"]["parameters"].as_array().cloned().unwrap_or_default();
            let query = |key| Query {
                sql: sql.to_owned(),
                parameters: parameters.clone(),
                key,
                limit: u64::MAX,
                explain: false,
            };
            let before = query(key.as_deref().map(partition_key).transpose()?);
            proof.before_ru += run_query(&mut account, &old, &before, |_| {}).await?.charge_ru;
            // The new key is found by the server from the filter; the old one is none any more.
            proof.after_ru += run_query(&mut account, &new, &query(None), |_| {}).await?.charge_ru;
            proof.queries += 1;
        }
        Ok::<(), anyhow::Error>(())
    };
    let result = result.await;
    account.send(&new.call(Method::DELETE)).await.context("cannot delete the copy")?;
    result.map(|()| proof)
}

fn as_json(advice: &Advice, sample: &Sample, requests: usize, proof: Option<&Proof>) -> Value {
    let mut told = advice.to_json(sample, requests);
    told["proof"] = proof
        .map(
            |proof| json!({"queries": proof.queries, "beforeRu": proof.before_ru, "afterRu": proof.after_ru}),
        )
        .into();
    told
}

fn print(
    advice: &Advice,
    sample: &Sample,
    requests: &[Request],
    whole: bool,
    options: &Options,
    full: &str,
    proof: Option<&Proof>,
) {
    println!(
        "{full}: {} items ({}), {} requests\n",
        HumanCount(sample.len() as u64),
        if whole { "all" } else { "a sample" },
        HumanCount(requests.len() as u64)
    );
    let line = |it: &Judged| {
        let measures = &it.measures;
        println!("{}", it.candidate.rule());
        println!("  {}  bytes over the hash space", bars(&measures.slots));
        println!(
            "  {} values, as even as {:.0}; largest {} has {:.1} %: {} now, {} at {}",
            HumanCount(measures.distinct as u64),
            measures.effective,
            measures.largest_key,
            measures.largest_share * 100.0,
            HumanBytes(measures.largest_bytes),
            HumanBytes(measures.projected_bytes),
            HumanBytes(options.projected_bytes),
        );
        if !requests.is_empty() {
            println!(
                "  {:.0} % of the requests stay in one partition; recorded {:.0} RU, about {:.0} RU then; transactions {}",
                measures.local_requests * 100.0,
                measures.before_ru,
                measures.after_ru,
                if measures.keeps_transactions { "kept" } else { "broken" }
            );
        }
        for problem in &it.problems {
            println!("  ✗ {problem}");
        }
    };
    if let Some(current) = &advice.current {
        println!("Now:");
        line(current);
        println!();
    }
    println!("Candidates, best first:");
    advice.judged.iter().take(SHOWN).for_each(line);
    let Some(best) = &advice.recommended else {
        println!("\n{}", advice.reasons.join("\n"));
        return;
    };
    println!("\nRecommended: {}", best.candidate.rule());
    advice.reasons.iter().for_each(|reason| println!("  - {reason}"));
    if let Some(proof) = proof {
        println!(
            "  - proved on a copy: {} recorded queries cost {:.1} RU here and {:.1} RU there",
            proof.queries, proof.before_ru, proof.after_ru
        );
    }
    if advice.current.as_ref().is_some_and(|current| current.candidate == best.candidate) {
        println!("\nThe container has this key already.");
        return;
    }
    let (database, container) = full.split_once('/').unwrap_or((full, ""));
    println!(
        "\nTo move:\n  orrery import --from-container {full} --db {database} --container {container}-2 --partition-key '{}'",
        best.candidate.rule()
    );
}
