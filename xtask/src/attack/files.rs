//! Damaged files: every file of a small store, one at a time, with flipped bits, cut, zeroed or gone.
//!
//! The store is made by the binary itself, and what was acknowledged is kept as a model. For each case the directory
//! is copied, one file of the copy is damaged, and a server is started on it. It must
//!
//! - refuse to start, with a line that names the damaged part; or
//! - serve, with everything equal to the model, errors excepted that name `orrery check`; and
//! - in either case be repairable: `orrery repair --yes` says what is lost, after which `orrery check` is content and
//!   what a server then shows differs from the model only if something was said to be lost; or it says why not, and
//!   that is the catalog.
//!
//! Anything else is a loss that nobody was told of. One thing cannot be told from a crash: the end of the newest log
//! segment is torn by every one that comes in the middle of a write. So there the writes of the last frames may be
//! gone, and no others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use orrery_testkit::{Client, Random, Reply, TestServer};
use serde_json::{Value, json};

use super::attacker::{Attack, Trial};

pub const ATTACKS: &[Attack] =
    &[Attack::alone("files", "every file of a store damaged, one at a time", matrix).lasting(1, 1)];

const CASES_SHORT: usize = 40;
const PLACES_PER_FILE: usize = 6;
const ITEMS: usize = 60;
const DATABASE: &str = "dbs/matrix";

/// A container, and what makes it different.
const CONTAINERS: [(&str, &str); 3] = [
    ("plain", r#"{"id":"plain","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#),
    (
        "unique",
        r#"{"id":"unique","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":-1,
            "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/n"]}]}}"#,
    ),
    (
        "text",
        r#"{"id":"text","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
            "fullTextPolicy":{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/t","language":"en-US"}]},
            "indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[],"fullTextIndexes":[{"path":"/t"}]}}"#,
    ),
];

/// What was acknowledged: the number `v` of the present version by container and id, `None` where it was deleted.
type Model = BTreeMap<(&'static str, String), Option<u64>>;

#[derive(Debug, Clone, Copy)]
enum Damage {
    Flip(u64),
    Cut(u64),
    Zero(u64),
    Delete,
}

#[derive(Debug, Clone)]
struct Case {
    killed: bool,
    file: PathBuf,
    damage: Damage,
    /// The newest segment of a log that was not closed.
    torn: bool,
}

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Harmless,
    Torn,
    Contained,
    Refused,
    NotRepairable,
}

fn matrix(trial: &Trial) -> Result<String> {
    let mut random = Random::new(trial.seed);
    let stores = [false, true].map(|killed| make(trial.binary, killed));
    let [stopped, killed] = stores;
    let stores = [stopped?, killed?];
    let mut cases = Vec::new();
    for (killed, (server, _)) in [false, true].into_iter().zip(&stores) {
        cases.extend(cases_of(&server.data_dir(), killed, &mut random)?);
    }
    let all = cases.len();
    if !trial.long {
        while cases.len() > CASES_SHORT {
            let out = random.below(cases.len() as u64) as usize;
            cases.swap_remove(out);
        }
    }
    let mut ends: BTreeMap<End, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for case in &cases {
        let (server, model) = &stores[usize::from(case.killed)];
        match run(trial.binary, &server.data_dir(), model, case) {
            Ok(end) => *ends.entry(end).or_default() += 1,
            Err(error) => {
                println!("  {case:?}: {error:#}");
                failures.push(format!("{} {:?}", case.file.display(), case.damage));
            }
        }
    }
    ensure!(failures.is_empty(), "{} of {} cases: {}", failures.len(), cases.len(), failures.join("; "));
    let ends: Vec<String> = ends.iter().map(|(end, count)| format!("{count} {end:?}")).collect();
    Ok(format!("{} of {all} cases: {}", cases.len(), ends.join(", ")))
}

/// A store with its model, closed or killed. It lies in the directory of the server that made it.
fn make(binary: &Path, killed: bool) -> Result<(TestServer, Model)> {
    let mut server = TestServer::start(binary, &[])?;
    let mut client = Client::new(server.address());
    let mut model = Model::new();
    client.post("dbs", "", "dbs", &[], r#"{"id":"matrix"}"#)?.expect_status(201)?;
    for (_, body) in CONTAINERS {
        client.post(&format!("{DATABASE}/colls"), DATABASE, "colls", &[], body)?.expect_status(201)?;
    }
    let script = r#"{"id":"echo","body":"function () { getContext().getResponse().setBody(1) }"}"#;
    let plain = format!("{DATABASE}/colls/plain");
    client.post(&format!("{plain}/sprocs"), &plain, "sprocs", &[], script)?.expect_status(201)?;
    for round in 1..=2u64 {
        for (container, _) in CONTAINERS {
            for number in 0..ITEMS {
                let id = format!("i{number}");
                if round == 2 && number % 3 != 0 {
                    continue;
                }
                let version = round * 1000 + number as u64;
                if round == 2 && number % 2 == 0 {
                    let path = format!("{DATABASE}/colls/{container}/docs/{id}");
                    client
                        .delete(&path, "docs", &[("x-ms-documentdb-partitionkey", &key(number))])?
                        .expect_status(204)?;
                    model.insert((container, id), None);
                } else {
                    write(&mut client, container, number, version)?.expect_status(if round == 1 {
                        201
                    } else {
                        200
                    })?;
                    model.insert((container, id), Some(version));
                }
            }
        }
        if round == 1 {
            // So that there are tables under what the log holds.
            server.stop()?;
            server.restart()?;
            client = Client::new(server.address());
        }
    }
    if killed {
        server.kill()?
    } else {
        let _ = server.stop()?;
    }
    Ok((server, model))
}

fn key(number: usize) -> String {
    format!(r#"["p{}"]"#, number % 4)
}

fn write(client: &mut Client, container: &str, number: usize, version: u64) -> Result<Reply> {
    let link = format!("{DATABASE}/colls/{container}");
    let body = json!({
        "id": format!("i{number}"), "pk": format!("p{}", number % 4), "n": number, "v": version,
        "t": format!("word{number} and some more text about number {number}"), "filling": "x".repeat(700),
    });
    let headers =
        [("x-ms-documentdb-partitionkey", key(number)), ("x-ms-documentdb-is-upsert", "true".to_owned())];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    client.post(&format!("{link}/docs"), &link, "docs", &headers, &body.to_string())
}

fn cases_of(store: &Path, killed: bool, random: &mut Random) -> Result<Vec<Case>> {
    let mut files = Vec::new();
    list(store, Path::new(""), &mut files)?;
    files.sort();
    let newest = files.iter().filter(|file| file.starts_with("log")).max().cloned();
    let mut cases = Vec::new();
    for file in files {
        let size = std::fs::metadata(store.join(&file))?.len();
        let torn = Some(&file) == newest.as_ref();
        let mut add = |damage| cases.push(Case { killed, file: file.clone(), damage, torn });
        add(Damage::Delete);
        if size == 0 {
            continue;
        }
        // A log segment has room behind its frames, where damage means nothing: most places are where something is.
        let used = std::fs::read(store.join(&file))?
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(1, |at| at as u64 + 1);
        for _ in 0..PLACES_PER_FILE {
            add(Damage::Flip(random.below(used)));
        }
        for _ in 0..PLACES_PER_FILE / 2 {
            add(Damage::Cut(random.below(used)));
            add(Damage::Zero(random.below(used)));
        }
    }
    Ok(cases)
}

fn list(store: &Path, under: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(store.join(under))? {
        let entry = entry?;
        let name = under.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => list(store, &name, files)?,
            // The certificate is no data; a server makes another.
            false if name.to_string_lossy().starts_with("tls.pem") => {}
            false => files.push(name),
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => drop(std::fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

fn damage(path: &Path, damage: Damage) -> Result<()> {
    if let Damage::Delete = damage {
        return Ok(std::fs::remove_file(path)?);
    }
    let mut bytes = std::fs::read(path)?;
    match damage {
        Damage::Flip(at) => bytes[at as usize] ^= 1 << (at % 8),
        Damage::Cut(at) => bytes.truncate(at as usize),
        Damage::Zero(at) => {
            let end = (at as usize + 512).min(bytes.len());
            bytes[at as usize..end].fill(0);
        }
        Damage::Delete => {}
    }
    Ok(std::fs::write(path, bytes)?)
}

fn run(binary: &Path, store: &Path, model: &Model, case: &Case) -> Result<End> {
    let mut server = TestServer::unstarted(binary, &[])?;
    let data = server.data_dir();
    copy(store, &data)?;
    damage(&data.join(&case.file), case.damage)?;
    let shown = case.file.display().to_string();
    let end = match server.restart() {
        Err(_) => {
            let log = server.log().to_lowercase();
            let lower = shown.to_lowercase();
            let mut named = lower.split('/').chain(["catalog"]);
            ensure!(named.any(|part| log.contains(part)), "refused without naming {shown}: {log}");
            End::Refused
        }
        Ok(()) => {
            let seen = look(&mut Client::new(server.address()), model);
            server.kill()?;
            let seen = seen?;
            if seen.wrong.is_empty() && seen.errors == 0 {
                return Ok(End::Harmless);
            }
            if !seen.wrong.is_empty() && case.torn {
                // Only what was written last may be gone, which `make` writes in its second round.
                ensure!(
                    seen.wrong.iter().all(|(_, version)| *version >= 2000 || *version == 0),
                    "{:?}",
                    seen.wrong
                );
                return Ok(End::Torn);
            }
            ensure!(seen.wrong.is_empty(), "served without a word: {:?}", seen.wrong);
            End::Contained
        }
    };
    let repaired = orrery(binary, &["repair", "--yes"], &data)?;
    let text =
        format!("{}{}", String::from_utf8_lossy(&repaired.stdout), String::from_utf8_lossy(&repaired.stderr));
    if !repaired.status.success() {
        ensure!(text.contains("catalog") || text.contains("format"), "not repaired: {text}");
        return Ok(End::NotRepairable);
    }
    let lost = text.contains("Lost or unknown");
    let checked = orrery(binary, &["check"], &data)?;
    ensure!(
        checked.status.success(),
        "not content after the repair: {}{}",
        String::from_utf8_lossy(&checked.stdout),
        String::from_utf8_lossy(&checked.stderr)
    );
    server.restart().context("after the repair")?;
    let seen = look(&mut Client::new(server.address()), model);
    server.kill()?;
    let seen = seen.context("after the repair")?;
    ensure!(seen.errors == 0, "{} errors after the repair", seen.errors);
    ensure!(
        lost || seen.wrong.is_empty(),
        "lost, and the report says nothing of it: {:?}\n{text}",
        seen.wrong
    );
    Ok(end)
}

fn orrery(binary: &Path, arguments: &[&str], data: &Path) -> Result<Output> {
    Ok(Command::new(binary).args(arguments).arg(data).stdin(std::process::Stdio::null()).output()?)
}

#[derive(Default)]
struct Seen {
    errors: usize,
    /// What differs from the model, with the version that it should have; 0: none.
    wrong: Vec<(String, u64)>,
}

impl Seen {
    /// True when the answer is no honest error and has to be right.
    fn is_answer(&mut self, reply: &Reply) -> bool {
        let honest = reply.status == 500 && reply.text().contains("orrery check");
        self.errors += usize::from(honest);
        !honest
    }
}

/// Compares everything that a client can see with the model.
fn look(client: &mut Client, model: &Model) -> Result<Seen> {
    let mut seen = Seen::default();
    for ((container, id), version) in model {
        let link = format!("{DATABASE}/colls/{container}/docs/{id}");
        let number: usize = id[1..].parse()?;
        let reply = client.get(&link, &link, "docs", &[("x-ms-documentdb-partitionkey", &key(number))])?;
        if seen.is_answer(&reply) {
            let found = (reply.status == 200).then(|| reply.json()).transpose()?;
            let found = found.and_then(|item| item["v"].as_u64());
            if found != *version || !matches!(reply.status, 200 | 404) {
                seen.wrong.push((format!("{link}: {} {found:?}", reply.status), version.unwrap_or(0)));
            }
        }
    }
    for (container, _) in CONTAINERS {
        let of_container = || model.iter().filter(|((name, _), _)| *name == container);
        let live: Vec<u64> = of_container().filter_map(|(_, version)| *version).collect();
        let link = format!("{DATABASE}/colls/{container}");
        let newest = live.iter().copied().max().unwrap_or(0);
        let reply = client.get(&format!("{link}/docs"), &link, "docs", &[("x-ms-max-item-count", "1000")])?;
        if seen.is_answer(&reply) {
            let listed = reply.json().ok().and_then(|body| Some(body["Documents"].as_array()?.len()));
            if listed != Some(live.len()) {
                seen.wrong.push((format!("{link} lists {listed:?} of {}", live.len()), newest));
            }
        }
        for number in [3u64, 7, 8, 33] {
            let expected: Vec<u64> =
                live.iter().copied().filter(|version| version % 1000 == number).collect();
            let reply = query(client, &link, &format!("SELECT VALUE c.v FROM c WHERE c.n = {number}"))?;
            if seen.is_answer(&reply) {
                let found: Option<Vec<u64>> = reply.json().ok().and_then(|body| {
                    Some(body["Documents"].as_array()?.iter().filter_map(Value::as_u64).collect())
                });
                if found.as_ref() != Some(&expected) {
                    seen.wrong
                        .push((format!("{link}: n = {number} finds {found:?}, not {expected:?}"), newest));
                }
            }
        }
    }
    // The value of item 1 is taken.
    let unique = format!("{DATABASE}/colls/unique");
    let twin = json!({ "id": "twin", "pk": "p1", "n": 1, "v": 0 }).to_string();
    let headers = [("x-ms-documentdb-partitionkey", r#"["p1"]"#)];
    let reply = client.post(&format!("{unique}/docs"), &unique, "docs", &headers, &twin)?;
    if seen.is_answer(&reply) && reply.status != 409 {
        seen.wrong.push((format!("a value that is taken is accepted: {}", reply.status), 1001));
    }
    let script = format!("{DATABASE}/colls/plain/sprocs/echo");
    let reply = client.get(&script, &script, "sprocs", &[])?;
    if seen.is_answer(&reply) && reply.status != 200 {
        seen.wrong.push((format!("the script is gone: {}", reply.status), 1));
    }
    if seen.wrong.len() > 5 {
        seen.wrong.truncate(5);
    }
    Ok(seen)
}

fn query(client: &mut Client, link: &str, sql: &str) -> Result<Reply> {
    let headers = [
        ("content-type", "application/query+json"),
        ("x-ms-documentdb-isquery", "true"),
        ("x-ms-documentdb-query-enablecrosspartition", "true"),
    ];
    let body = json!({ "query": sql, "parameters": [] }).to_string();
    client.post(&format!("{link}/docs"), link, "docs", &headers, &body)
}
