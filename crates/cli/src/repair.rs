//! `orrery repair DIR`: keeps what can be read of a damaged data directory, and derives again what follows from the
//! items.
//!
//! A new store is built beside the old one, out of every block and frame that reads; then rows that follow from items
//! are made to follow again, and the result is checked. Only when that is done does it take the place of the old one,
//! which is kept whole in `set-aside-…` with a report of what is lost. Nothing is ever deleted but what this command
//! itself has made.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use orrery_engine::Mending;
use orrery_storage::{HeldStore, Salvaged, Table};
use serde_json::json;

use crate::Usage;
use crate::check::{self, Report, bar, show};

/// Says that a new store is complete.
const READY: &str = "READY";

const AFTER_HELP: &str = "\
The server must be stopped, and there must be room for the data a second time. What is kept: every row in every block that can be \
read. What is made anew: index, order, unique, feed and expiry rows, and totals, from the items. What cannot be known is told, not \
guessed: where a block is lost, the items in it are gone, and older versions of them or items that were deleted may be back. Without \
the catalog (in feed/) nothing is repaired: restore a backup.

The old files are moved, as they are, to DIR/set-aside-<time>, beside report.txt and report.json. Remove them when you are sure that you \
do not need them. Then run `orrery check DIR` and start the server.

Exit codes: 0 repaired, or nothing to repair; 1 it could not be repaired, and nothing was changed; 2 the command line is wrong.";

pub fn command() -> Command {
    Command::new("repair")
        .about("Repair a data directory: keep what can be read, set the rest aside")
        .arg(check::directory_argument())
        .arg(Arg::new("yes").long("yes").help("Do not ask for confirmation").action(ArgAction::SetTrue))
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .help("Say what would be done, and do nothing")
                .action(ArgAction::SetTrue),
        )
        .after_help(AFTER_HELP)
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let path = matches.get_one::<PathBuf>("directory").context("no directory is given")?;
    let held = HeldStore::hold(path)?;
    if let Some((fresh, aside)) = interrupted(path) {
        println!("A repair was interrupted while it moved its result into place; finishing it.");
        return put_in_place(&held, &fresh, &aside);
    }
    let report = check::examine(&held)?;
    print!("{}", report.text());
    if report.is_clean() {
        println!("\nNothing to repair.");
        return Ok(());
    }
    println!("\n{}", plan(&held));
    if matches.get_flag("dry-run") {
        println!("This was a dry run: nothing was changed.");
        return Ok(());
    }
    if !matches.get_flag("yes") {
        confirm()?;
    }
    repair(&held, &report)
}

/// The directories of a repair that had only to be moved into place.
fn interrupted(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let entries = std::fs::read_dir(path).ok()?.flatten();
    entries.into_iter().find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let time = name.strip_prefix("repairing-")?;
        entry.path().join(READY).exists().then(|| (entry.path(), path.join(format!("set-aside-{time}"))))
    })
}

fn plan(held: &HeldStore) -> String {
    format!(
        "Would be done:\n  1. every row that can be read is written into a new store, in {}\n  2. index, order, unique, feed \
         and expiry rows and totals are made anew where they do not follow from the items\n  3. the result is checked, and takes the \
         place of the damaged files, which are kept in {}\n",
        held.path().join("repairing-<time>").display(),
        held.path().join("set-aside-<time>").display()
    )
}

fn confirm() -> Result<()> {
    if !std::io::stdin().is_terminal() {
        return Err(Usage("confirm with --yes, or look first with --dry-run".to_owned()).into());
    }
    print!("Repair it? Type yes: ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if answer.trim() != "yes" {
        bail!("nothing was changed");
    }
    Ok(())
}

fn repair(held: &HeldStore, report: &Report) -> Result<()> {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let fresh = held.path().join(format!("repairing-{time}"));
    let aside = held.path().join(format!("set-aside-{time}"));
    let (salvaged, after) = match build(held, &fresh) {
        Ok(built) => built,
        Err(error) => {
            let _ = std::fs::remove_dir_all(&fresh);
            return Err(error.context("it cannot be repaired, and nothing was changed"));
        }
    };
    std::fs::create_dir(&aside).with_context(|| format!("cannot make {}", aside.display()))?;
    let text = losses(report, &salvaged, &after);
    std::fs::write(aside.join("report.txt"), &text)?;
    let lost: Vec<_> = salvaged.lost.iter().map(|lost| check::damage_json(lost, after.owners())).collect();
    let found: Vec<_> =
        report.files.damage.iter().map(|damage| check::damage_json(damage, after.owners())).collect();
    let kept = json!({ "items": salvaged.rows[0], "index": salvaged.rows[1], "feed": salvaged.rows[2] });
    let summary = json!({ "lost": lost, "damage": found, "rowsKept": kept });
    std::fs::write(aside.join("report.json"), format!("{summary:#}\n"))?;
    std::fs::File::create(fresh.join(READY))?.sync_all()?;
    println!("{text}");
    put_in_place(held, &fresh, &aside)
}

/// Moves a finished store into place. What is left of its directory holds nothing but marks.
fn put_in_place(held: &HeldStore, fresh: &Path, aside: &Path) -> Result<()> {
    held.replace_with(fresh, aside)?;
    std::fs::remove_dir_all(fresh).with_context(|| format!("cannot remove {}", fresh.display()))?;
    println!("Repaired. The old files and this report are in {}.", aside.display());
    println!("Next: `orrery check {0}`, then `orrery serve --data-dir {0}`.", held.path().display());
    Ok(())
}

/// Builds and checks the new store.
fn build(held: &HeldStore, fresh: &Path) -> Result<(Salvaged, Report)> {
    let salvaging = bar("keeping rows", false);
    let salvaged = held.salvage(fresh, &[Table::Index], &mut |done, total| show(&salvaging, done, total))?;
    salvaging.finish_and_clear();
    let lossy = !salvaged.lost.is_empty();
    let mending = Mending { lossy, remake_index: salvaged.left_out.contains(&Table::Index) };
    let account = check::open(fresh)?;
    let bar_of = bar("making rows", false);
    let mended = account.mend(mending, &mut |done, total| show(&bar_of, done, total));
    let closed = account.close();
    drop(account);
    mended.and(closed).map_err(|error| anyhow!("{}", check::cause(&error)))?;
    let account = check::open(fresh)?;
    let made = account.remake_indexes(&mut |done, total| show(&bar_of, done, total));
    bar_of.finish_and_clear();
    let closed = account.close();
    drop(account);
    made.and(closed).map_err(|error| anyhow!("{}", check::cause(&error)))?;
    let new = HeldStore::hold(fresh)?;
    let after = check::examine(&new)?;
    if !after.is_clean() {
        bail!("what was kept does not agree with itself:\n{}", after.text());
    }
    Ok((salvaged, after))
}

fn losses(before: &Report, salvaged: &Salvaged, after: &Report) -> String {
    let [items, index, feed] = salvaged.rows;
    let index = match salvaged.left_out.contains(&Table::Index) {
        true => "no index rows (all were made anew)".to_owned(),
        false => format!("{index} index rows"),
    };
    let mut text = format!("Kept: {items} items, {index}, {feed} feed, unique and catalog rows.\n");
    if salvaged.lost.is_empty() {
        text.push_str("Lost: nothing. What was wrong follows from the items and was made anew.\n");
    } else {
        text.push_str("Lost or unknown:\n");
        for lost in &salvaged.lost {
            text.push_str(&format!("  {}\n", check::described(lost, after.owners())));
        }
        text.push_str(
            "Rows between these keys are gone, or are older than they were, or were deleted and are back.\n",
        );
    }
    let found = before.rows.as_ref().map_or(0, |(check, _)| check.findings.len() as u64 + check.more);
    if found > 0 {
        text.push_str(&format!("Rows that did not agree with the items and do now: {found}.\n"));
    }
    text
}
