//! `kill -9` of a process that writes from several threads, again and again: nothing acknowledged may be missing, and
//! no commit may be there in part.
//!
//! The test starts its own binary as the child. Each writer owns a space and commits 1, 2, 3, …; commit `n` puts one
//! row in each table and overwrites a counter. After the answer it prints `writer n`. The parent kills the child,
//! opens the directory, and compares with the last line of each writer. `ORRERY_CRASH_ROUNDS` sets how often.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use super::{Random, open, small, temporary};
use crate::embedded::{EmbeddedOptions, EmbeddedStore};
use crate::store::{Commit, Direction, Durability, KeyRange, Space, SpaceId, Store, TABLES, Table};
use crate::suite::rows;

const CHILD: &str = "ORRERY_STORAGE_CRASH_DIRECTORY";
const TINY: &str = "ORRERY_STORAGE_CRASH_TINY";
const WRITERS: u32 = 4;
const ROUNDS_DEFAULT: u64 = 6;

fn commit(number: u64, random: &mut Random) -> Commit {
    let mut commit = Commit::default();
    let length = 100 + random.below(900) as usize;
    commit.put(Table::Items, format!("row {:04}", number % 500), random.bytes(length));
    commit.put(Table::Index, format!("row {:04}", number % 500), number.to_be_bytes().to_vec());
    commit.put(Table::Items, "counter", number.to_be_bytes().to_vec());
    commit.put(Table::Feed, number.to_be_bytes().to_vec(), number.to_be_bytes().to_vec());
    if number > 1000 {
        commit.delete(Table::Feed, (number - 1000).to_be_bytes().to_vec());
    }
    commit
}

fn counter(space: &Arc<dyn Space>) -> u64 {
    let value = space.snapshot().expect("snapshot").get(Table::Items, b"counter").expect("get");
    value.map_or(0, |value| u64::from_be_bytes(value[..].try_into().expect("8 bytes")))
}

#[test]
fn child_that_is_killed() {
    let Ok(directory) = std::env::var(CHILD) else { return };
    // Tiny memtables in some rounds, so that flushes, compactions and removed segments are met too.
    let options = match std::env::var(TINY).is_ok() {
        true => EmbeddedOptions { memtable_bytes: [16 * 1024; 3], segment_bytes: 16 * 1024, ..small() },
        false => EmbeddedOptions::default(),
    };
    let store = EmbeddedStore::open(&directory, options).expect("opens");
    println!("ready");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let space = store.open_space(SpaceId(writer)).expect("opens");
            scope.spawn(move || {
                let mut random = Random(u64::from(writer));
                for number in counter(&space) + 1.. {
                    space.commit(commit(number, &mut random), Durability::Strict).expect("commits");
                    // One write per line, so that a line is never cut; `println` would not promise that.
                    let line = format!("{writer} {number}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).expect("the parent reads");
                    std::io::stdout().flush().expect("the parent reads");
                }
            });
        }
    });
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let rounds = std::env::var("ORRERY_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let rounds: u64 = rounds.unwrap_or(ROUNDS_DEFAULT);
    let mut random = Random::seeded("kill");
    let directory = temporary();
    let mut total = 0;
    for round in 0..rounds {
        let acknowledged = run_and_kill(directory.path(), round % 2 == 0, &mut random);
        let store = open(&directory, small());
        for writer in 0..WRITERS {
            let space = store.open_space(SpaceId(writer)).expect("opens");
            let (last, found) = (acknowledged.get(&writer).copied().unwrap_or(0), counter(&space));
            assert!(found >= last, "round {round}: writer {writer} was told of {last}, {found} is there");
            check(&space, found);
        }
        total = acknowledged.values().sum();
        if random.below(3) == 0 {
            store.close().expect("closes");
        }
    }
    println!("{rounds} rounds, {total} acknowledged commits, none lost");
}

fn run_and_kill(directory: &std::path::Path, tiny: bool, random: &mut Random) -> HashMap<u32, u64> {
    let mut command = Command::new(std::env::current_exe().expect("known"));
    command
        .args(["--exact", "embedded::tests::kill::child_that_is_killed", "--nocapture"])
        .env(CHILD, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if tiny {
        command.env(TINY, "1");
    }
    let mut child = command.spawn().expect("starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    while lines.next().expect("the child starts").expect("readable") != "ready" {}
    let reader = std::thread::spawn(move || {
        let mut acknowledged = HashMap::new();
        for line in lines.map_while(Result::ok) {
            if let Some((writer, number)) = line.split_once(' ')
                && let (Ok(writer), Ok(number)) = (writer.parse(), number.parse())
            {
                acknowledged.insert(writer, number);
            }
        }
        acknowledged
    });
    std::thread::sleep(Duration::from_millis(50 + random.below(400)));
    child.kill().expect("killed");
    child.wait().expect("ended");
    reader.join().expect("no panic")
}

/// Every commit up to `last` is there whole.
fn check(space: &Arc<dyn Space>, last: u64) {
    let snapshot = space.snapshot().expect("snapshot");
    let feed = rows(&*snapshot, Table::Feed, KeyRange::all(), Direction::Forward);
    let first = last.saturating_sub(999).max(1);
    let expected: Vec<_> = (first..=last).map(|number| number.to_be_bytes().to_vec()).collect();
    assert!(
        feed.iter().map(|row| &row.key[..]).eq(expected.iter().map(|key| &key[..])),
        "the feed has a hole"
    );
    for number in last.saturating_sub(499).max(1)..=last {
        let key = format!("row {:04}", number % 500);
        let index = snapshot.get(Table::Index, key.as_bytes()).expect("get");
        assert_eq!(index.as_deref(), Some(&number.to_be_bytes()[..]), "the index row of {number}");
        assert!(snapshot.get(Table::Items, key.as_bytes()).expect("get").is_some(), "the item of {number}");
    }
    assert_eq!(rows(&*snapshot, TABLES[1], KeyRange::all(), Direction::Forward).len() as u64, last.min(500));
}
