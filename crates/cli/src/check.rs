//! `orrery check DIR`: is everything in a data directory as it was written, and does it agree with itself?
//!
//! Two looks. The first reads every block of every table and every frame of the log and believes their checksums. The
//! second opens a shadow of the store (see `orrery_storage::HeldStore`) and compares every row with the items.
//! Nothing is changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use clap::{Arg, ArgAction, ArgMatches, Command};
use indicatif::{ProgressBar, ProgressStyle};
use orrery_engine::{Account, AccountCheck, EngineConfig, SystemEnv};
use orrery_storage::{EmbeddedOptions, EmbeddedStore, FileDamage, HeldStore, Store, Verified, keys};
use serde_json::{Value, json};

use crate::Usage;

const AFTER_HELP: &str = "\
The server must be stopped. Nothing is changed: rows are read through a shadow of the store, for which the directory of temporary \
files ($TMPDIR) needs room for a copy of the log, 64 MB at most.

Exit codes: 0 everything is as it should be, 1 something is damaged, 2 it could not be checked.

What to do about damage: `orrery repair --help`.";

pub fn command() -> Command {
    Command::new("check")
        .about("Check a data directory: every checksum, and every row against the items")
        .arg(directory_argument())
        .arg(Arg::new("json").long("json").help("Print the report as JSON").action(ArgAction::SetTrue))
        .after_help(AFTER_HELP)
}

pub fn directory_argument() -> Arg {
    Arg::new("directory")
        .value_name("DIR")
        .required(true)
        .value_parser(clap::value_parser!(PathBuf))
        .help("The data directory (`orrery serve --data-dir`)")
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let path = matches.get_one::<PathBuf>("directory").context("no directory is given")?;
    // Not being able to look is not the same as having found something.
    let report = look(path).map_err(|error| Usage(format!("{error:#}")))?;
    match matches.get_flag("json") {
        true => println!("{:#}", report.json()),
        false => print!("{}", report.text()),
    }
    match report.is_clean() {
        true => Ok(()),
        false => Err(anyhow!("damage was found; `orrery repair {}` keeps what is left", path.display())),
    }
}

/// What a check of a directory has found.
pub struct Report {
    pub path: PathBuf,
    pub files: Verified,
    /// What the rows say, or why they could not be looked at.
    pub rows: Result<(AccountCheck, Vec<Owner>), String>,
}

/// Whose rows a space holds.
pub struct Owner {
    space: u32,
    name: String,
}

fn look(path: &Path) -> Result<Report> {
    let held = HeldStore::hold(path)?;
    examine(&held)
}

/// Both looks at a store that is held.
pub fn examine(held: &HeldStore) -> Result<Report> {
    let bar = bar("reading files", true);
    let files = held.verify(&mut |done, total| show(&bar, done, total))?;
    bar.finish_and_clear();
    let rows = match files.damage.iter().find(|damage| !damage.part.contains("/tables/")) {
        Some(damage) => Err(format!("{} {}", damage.part, damage.what)),
        None => shadowed(held).map_err(|error| format!("{error:#}")),
    };
    Ok(Report { path: held.path().to_owned(), files, rows })
}

fn shadowed(held: &HeldStore) -> Result<(AccountCheck, Vec<Owner>)> {
    let shadow = Shadow::make()?;
    held.shadow(&shadow.0)?;
    let account = open(&shadow.0)?;
    let bar = bar("comparing rows", false);
    let check = account.check(&mut |done, total| show(&bar, done, total));
    bar.finish_and_clear();
    let owners = owners(&account);
    // What the shadow would still write is of no use to anybody.
    let _ = account.close();
    Ok((check, owners))
}

pub fn owners(account: &Account) -> Vec<Owner> {
    let mut owners = vec![Owner { space: 0, name: "the catalog".to_owned() }];
    owners.extend(account.spaces().into_iter().map(|space| Owner {
        space: space.space,
        name: format!("{}/{}, partition {}", space.database, space.container, space.partition),
    }));
    owners
}

/// Opens the account of a directory without its background work.
pub fn open(path: &Path) -> Result<Arc<Account>> {
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(path, EmbeddedOptions::default())?);
    if !orrery_engine::has_catalog(store.as_ref())
        .map_err(|error| anyhow!("the catalog: {}", cause(&error)))?
    {
        return Err(anyhow!("the catalog is lost: what databases and containers there were is not known"));
    }
    let account = Account::open_idle(store, EngineConfig::default(), Arc::new(SystemEnv::new()))
        .map_err(|error| anyhow!("the catalog: {}", cause(&error)))?;
    // Rows of the rules of apis are compared too.
    orrery_server::service::register_rules(&account);
    Ok(account)
}

pub fn cause(error: &orrery_engine::Error) -> String {
    match &error.cause {
        Some(cause) => format!("{error} ({cause})"),
        None => error.to_string(),
    }
}

/// A directory that goes when it is dropped.
pub struct Shadow(pub PathBuf);

impl Shadow {
    fn make() -> Result<Shadow> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| anyhow!("no random numbers: {error}"))?;
        let path = std::env::temp_dir().join(format!("orrery-check-{:016x}", u64::from_le_bytes(random)));
        std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Shadow(path))
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn bar(what: &'static str, bytes: bool) -> ProgressBar {
    let bar = ProgressBar::new(0);
    let count = if bytes { "{bytes}/{total_bytes}" } else { "{pos}/{len}" };
    let style = ProgressStyle::with_template(&format!("{{msg:16}} {{bar:40}} {count} {{eta}}"));
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(what);
    bar
}

pub fn show(bar: &ProgressBar, done: u64, total: u64) {
    bar.set_length(total);
    bar.set_position(done);
}

impl Report {
    pub fn is_clean(&self) -> bool {
        let rows = self.rows.as_ref().is_ok_and(|(check, _)| check.findings.is_empty() && check.more == 0);
        self.files.damage.is_empty() && rows
    }

    pub fn owners(&self) -> &[Owner] {
        self.rows.as_ref().map_or(&[], |(_, owners)| owners)
    }

    pub fn text(&self) -> String {
        let files = &self.files;
        let mut text = format!(
            "store       {}\ntables      {} with {} blocks\nlog         {} segments with {} frames\nread        {} bytes\n",
            self.path.display(),
            files.tables,
            files.blocks,
            files.segments,
            files.frames,
            files.size_bytes
        );
        match &self.rows {
            Ok((check, _)) => {
                text.push_str(&format!(
                    "containers  {} in {} databases, {} partitions\n",
                    check.containers, check.databases, check.partitions
                ));
                let rows: Vec<String> =
                    check.rows.iter().map(|(kind, rows)| format!("{kind} {rows}")).collect();
                text.push_str(&format!("rows        {}\n", rows.join(", ")));
            }
            Err(why) => text.push_str(&format!("rows        not looked at: {why}\n")),
        }
        for damage in &files.damage {
            text.push_str(&format!("damage      {}\n", described(damage, self.owners())));
        }
        if let Ok((check, _)) = &self.rows {
            for finding in &check.findings {
                text.push_str(&format!(
                    "finding     {}/{}, partition {}: {} {} {}\n",
                    finding.database,
                    finding.container,
                    finding.partition,
                    finding.kind,
                    finding.problem,
                    finding.key
                ));
            }
            if check.more > 0 {
                text.push_str(&format!("finding     and {} more\n", check.more));
            }
        }
        if self.is_clean() {
            text.push_str("damage      none\n");
        }
        text
    }

    fn json(&self) -> Value {
        let files = &self.files;
        let (rows, findings, more) = match &self.rows {
            Err(why) => (json!({ "notLookedAt": why }), Vec::new(), 0),
            Ok((check, _)) => {
                let findings = check.findings.iter().map(|finding| {
                    json!({
                        "database": finding.database, "container": finding.container, "partition": finding.partition,
                        "kind": finding.kind, "problem": finding.problem, "key": finding.key,
                    })
                });
                (json!(check.rows), findings.collect(), check.more)
            }
        };
        json!({
            "directory": self.path.display().to_string(),
            "clean": self.is_clean(),
            "files": {
                "tables": files.tables, "blocks": files.blocks, "segments": files.segments, "frames": files.frames,
                "bytes": files.size_bytes,
            },
            "rows": rows,
            "damage": files.damage.iter().map(|damage| damage_json(damage, self.owners())).collect::<Vec<_>>(),
            "findings": findings,
            "moreFindings": more,
        })
    }
}

pub fn damage_json(damage: &FileDamage, owners: &[Owner]) -> Value {
    let edge = |key: &Option<bytes::Bytes>| key.as_deref().map(|key| place(key, owners));
    json!({
        "part": damage.part, "what": damage.what, "rows": damage.rows,
        "after": edge(&damage.after), "before": edge(&damage.before),
    })
}

/// A damaged place of a file in one line.
pub fn described(damage: &FileDamage, owners: &[Owner]) -> String {
    let mut text = format!("{}: {}", damage.part, damage.what);
    if damage.after.is_some() || damage.before.is_some() {
        let edge = |key: &Option<bytes::Bytes>, none: &str| match key {
            Some(key) => place(key, owners),
            None => none.to_owned(),
        };
        let (after, before) = (edge(&damage.after, "the first row"), edge(&damage.before, "the last row"));
        text.push_str(&format!(" (between {after} and {before})"));
    }
    text
}

/// Whose row a key of a tree is, and which.
fn place(key: &[u8], owners: &[Owner]) -> String {
    let Some((space, key)) = key.split_first_chunk() else { return "?".to_owned() };
    let space = u32::from_be_bytes(*space);
    let owner = owners.iter().find(|owner| owner.space == space);
    let owner = owner.map_or_else(|| format!("space {space}"), |owner| owner.name.clone());
    let row = match keys::ItemKey::decode(key) {
        Some(item) if !item.id.is_empty() && std::str::from_utf8(item.id).is_ok() => {
            format!("id {:?}", String::from_utf8_lossy(item.id))
        }
        _ => key.escape_ascii().take(60).map(char::from).collect(),
    };
    format!("{owner}: {row}")
}
