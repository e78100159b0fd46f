//! Golden files of stored rows: what a write puts, changes and removes. `tests/golden/rows/*.txt`, which anyone can
//! add to.
//!
//! ```text
//! container {"defaultTtl": 100}          begins a container, with these members of its definition
//! > create {"id": "a", "pk": "k"}        create, upsert, delete; what follows is made by the test:
//!   + item 0d…/"…"/"a" = 31 bytes        a new row, `~` one with another value, `-` one that is gone
//! ```
//!
//! `ORRERY_SNAPSHOTS=write` writes what follows.

mod items_support;

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use items_support::*;
use orrery_storage::{Direction, KeyRange, SpaceId, TABLES, Table, keys};
use serde_json::Value;

type Rows = BTreeMap<(usize, Bytes), Bytes>;

/// All rows of the only partition. Whoever had it before is shut out and opened again.
fn rows(fixture: &mut Fixture) -> Rows {
    let space = fixture.store.open_space(SpaceId(fixture.account.spaces()[0].space)).unwrap();
    let snapshot = space.snapshot().unwrap();
    let mut rows = Rows::new();
    for table in TABLES {
        let mut scan = snapshot.scan(table, KeyRange::all(), Direction::Forward);
        while let Some(row) = scan.next_row().transpose().unwrap() {
            rows.insert((table as usize, row.key), row.value);
        }
    }
    drop((snapshot, space));
    fixture.reopen();
    rows
}

fn shown((table, key): &(usize, Bytes), value: &Bytes) -> String {
    let key = match TABLES[*table] {
        Table::Items => keys::ItemKey::decode(key).map(|key| key.to_string()),
        Table::Feed => keys::FeedTableKey::decode(key).map(|key| key.to_string()),
        Table::Index => match keys::order_number(key) {
            Some(number) => Some(format!("order {number}")),
            None => keys::index::IndexKey::decode(key).map(|key| key.to_string()),
        },
    };
    let key = key.unwrap_or_else(|| panic!("a row without a known key"));
    match value.len() {
        0 => key,
        bytes => format!("{key} = {bytes} bytes"),
    }
}

fn differences(before: &Rows, after: &Rows) -> String {
    let mut out = String::new();
    let all: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for key in all {
        let (sign, value) = match (before.get(key), after.get(key)) {
            (None, Some(value)) => ('+', value),
            (Some(old), Some(value)) if old != value => ('~', value),
            (Some(value), None) => ('-', value),
            _ => continue,
        };
        out.push_str(&format!("  {sign} {}\n", shown(key, value)));
    }
    out
}

fn played(text: &str) -> String {
    let (mut out, mut fixture, mut before) = (String::new(), None, Rows::new());
    for line in text.lines().filter(|line| !line.starts_with("  ")) {
        out.push_str(line);
        out.push('\n');
        if let Some(definition) = line.strip_prefix("container ") {
            let mut made = Fixture::new(serde_json::from_str::<Value>(definition).unwrap());
            made.only_partition();
            before = rows(&mut made);
            fixture = Some(made);
        } else if let Some(command) = line.strip_prefix("> ") {
            let fixture = fixture.as_mut().expect("a container comes first");
            let (verb, rest) = command.split_once(' ').unwrap();
            match verb {
                "create" => drop(fixture.create(rest).unwrap()),
                "upsert" => drop(fixture.upsert(rest).unwrap()),
                "delete" => {
                    let (pk, id) = rest.split_once(' ').unwrap();
                    fixture.delete(pk, id).unwrap();
                }
                verb => panic!("{verb} is no command"),
            }
            let after = rows(fixture);
            out.push_str(&differences(&before, &after));
            before = after;
        }
    }
    out
}

#[test]
fn writes_make_the_rows_that_the_golden_files_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/rows");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for path in files {
        let written = std::fs::read_to_string(&path).unwrap();
        let found = played(&written);
        if std::env::var("ORRERY_SNAPSHOTS").is_ok_and(|mode| mode == "write") {
            std::fs::write(&path, found).unwrap();
        } else {
            assert_eq!(found, written, "{}", path.display());
        }
    }
}
