//! Whether the index rows of a partition are exactly those that its items should have.
//!
//! For tests and for people who doubt: every item is walked afresh and every row is looked at. What should be there
//! and is not, and what is there and should not be, is told row by row. Graphs are held against the codes they stand
//! for.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use orrery_index as encoding;
use orrery_storage::{Direction, KeyRange, Table, keys};

use super::super::Partition;
use super::super::item_key::ItemKey;
use super::super::rows::{damaged, decode_item};
use super::graph;
use super::paths::{NewPaths, Paths};
use super::write::{RowMaker, Rows};
use crate::definition::PathStep;
use crate::error::Result;

/// Items whose rows are held in memory at a time, those of their share of all rows.
const ITEMS_PER_PASS: u64 = 100_000;

impl Partition {
    /// How many rows belong to graphs; for tests, and for people who wonder about space.
    pub fn graph_rows(&self) -> Result<u64> {
        let snapshot = self.snapshot()?;
        let mut rows = snapshot.scan(Table::Index, keys::index::graph_rows(), Direction::Forward);
        let mut count = 0;
        while rows.next_row().transpose()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Differences between the index rows in the store and those that the stored items should have, as text; none
    /// when all is well. While a change of policy is being worked off there is no one right set of rows, and nothing
    /// is said.
    pub fn check_index(&self) -> Result<Vec<String>> {
        let index = &self.shared.index;
        let scheme = index.scheme.load_full();
        let snapshot = self.snapshot()?;
        if !scheme.stale.is_empty() || self.lsn() == 0 {
            return Ok(Vec::new());
        }
        let dictionary = index.dictionary.read();
        let tell = |what: &str, key: &[u8]| match keys::index::IndexKey::decode(key) {
            Some(keys::index::IndexKey::Value { path, rest }) => {
                let steps: Vec<&str> = dictionary
                    .steps(path)
                    .into_iter()
                    .map(|step| if let PathStep::Name(name) = step { name } else { "[]" })
                    .collect();
                let value = encoding::split(rest).and_then(|(value, _)| encoding::decode(value));
                format!("{what} /{} = {value:?}: {}", steps.join("/"), rest.escape_ascii())
            }
            Some(other) => format!("{what} {other}"),
            None => format!("{what} {}", key.escape_ascii()),
        };
        let mut differences: Vec<String> = Vec::new();
        let passes = 1 + self.usage().items / ITEMS_PER_PASS;
        for pass in 0..passes {
            let mine =
                |key: &[u8]| BuildHasherDefault::<DefaultHasher>::default().hash_one(key) % passes == pass;
            let mut new_paths = NewPaths::default();
            let mut wanted = Rows::new();
            let mut items = snapshot.scan(Table::Items, KeyRange::all(), Direction::Forward);
            while let Some(row) = items.next_row().transpose()? {
                let item = decode_item(row.value)?;
                let target = ItemKey::from_key(row.key).ok_or_else(|| damaged("item"))?;
                let reference = keys::index::reference(target.epk.as_bytes(), &target.key);
                let paths = Paths { dictionary: &dictionary, new: &mut new_paths };
                let mut of_item = Rows::new();
                RowMaker { paths, target: &target, reference: &reference }.add(
                    &mut of_item,
                    scheme.layout(),
                    &item,
                );
                wanted.extend(of_item.into_iter().filter(|(key, _)| mine(key)));
            }
            if !new_paths.is_empty() && pass == 0 {
                differences.push("items have paths that have no number".to_owned());
            }
            for range in [
                keys::index::values(),
                keys::index::composites(),
                keys::index::searches(),
                keys::index::unindexed_items(),
            ] {
                let mut rows = snapshot.scan(Table::Index, range, Direction::Forward);
                while let Some(row) = rows.next_row().transpose()? {
                    match wanted.remove(&row.key) {
                        None if !mine(&row.key) => {}
                        None => differences.push(tell("should not be there:", &row.key)),
                        Some(value) if value != row.value => differences.push(tell("differs:", &row.key)),
                        Some(_) => {}
                    }
                }
            }
            differences.extend(wanted.keys().map(|key| tell("missing:", key)));
        }
        differences.extend(graph::differences(snapshot.as_ref())?);
        Ok(differences)
    }
}
