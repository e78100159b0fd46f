//! Whether the rows of a partition agree with each other, and making them agree again.
//!
//! Items are the truth. Every other row follows from them (order, feed, expiry, unique, index rows) or is checked for
//! sense alone (deletes in the feed, versions, purges). What an item should have and has not, and what is there and
//! should not be, is a finding with the change that would mend it. Graphs over vectors and rows of the index are
//! checked by `index::check`, and mended by making the whole index anew.
//!
//! Rows are compared in passes over all of them, each pass with a share of the keys, so that memory does not grow
//! with the partition.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Bound;

use bytes::Bytes;
use orrery_model::Raw;
use orrery_storage::{Change, Commit, Direction, Durability, KeyRange, Snapshot, Table, keys};

use super::item_key::ItemKey;
use super::rows::{BASE, Base, ChangeKind, FeedRow, Totals, decode_item, decode_lsn, feed_key};
use super::sizes::item_row_bytes;
use super::versions::VersionRow;
use super::{Partition, claiming, upkeep};
use crate::error::{Error, Result};
use crate::item::Item;

/// Items whose rows are compared in one pass.
const ITEMS_PER_PASS: u64 = 100_000;
/// Findings of one partition that are kept; more are counted.
const FINDINGS_MAX: usize = 10_000;
/// Changes of one commit.
const CHANGES_PER_COMMIT: usize = 500;
/// How far a partition's LSN is moved on when changes may have been lost: clients may have seen later ones.
const LSN_MARGIN: u64 = 1 << 20;

/// What is wrong with one row.
#[derive(Debug, Clone)]
pub struct RowFinding {
    /// The kind of row.
    pub kind: &'static str,
    pub problem: &'static str,
    /// The row's key, as far as it can be read.
    pub key: String,
}

/// What a check of one partition found.
#[derive(Debug, Default)]
pub struct PartitionCheck {
    /// Rows by kind.
    pub rows: BTreeMap<&'static str, u64>,
    pub findings: Vec<RowFinding>,
    /// Findings beyond those that were kept.
    pub more: u64,
    /// Whether the index has to be made anew.
    index: bool,
    /// What would mend the rows of the pass that goes on.
    changes: Vec<Change>,
    totals: Totals,
    lsn: u64,
}

impl PartitionCheck {
    fn add(&mut self, kind: &'static str, problem: &'static str, key: String, change: Option<Change>) {
        self.changes.extend(change);
        match self.findings.len() < FINDINGS_MAX {
            true => self.findings.push(RowFinding { kind, problem, key }),
            false => self.more += 1,
        }
    }

    fn count(&mut self, kind: &'static str) {
        *self.rows.entry(kind).or_default() += 1;
    }
}

/// A row that follows from an item.
struct Wanted {
    kind: &'static str,
    value: Bytes,
    /// Expired items may have lost their claims, and expiry rows are made later when the default changes.
    required: bool,
}

type Rows = HashMap<(Table, Bytes), Wanted>;

impl Partition {
    /// Compares every row with the items. Nothing else may be writing.
    pub fn check_rows(&self) -> Result<PartitionCheck> {
        self.compare_rows(&mut |_| Ok(()))
    }

    /// Compares in passes; what would mend the rows of a pass is handed over when it ends. Passes have no key in
    /// common, so none sees what was written after one before it.
    fn compare_rows(&self, mend: &mut dyn FnMut(Vec<Change>) -> Result<()>) -> Result<PartitionCheck> {
        let mut check = PartitionCheck::default();
        let snapshot = self.snapshot()?;
        let passes = 1 + self.usage().items / ITEMS_PER_PASS;
        for pass in 0..passes {
            let mine =
                |key: &[u8]| BuildHasherDefault::<DefaultHasher>::default().hash_one(key) % passes == pass;
            let first = pass == 0;
            let mut wanted = self.wanted(snapshot.as_ref(), &mine, first, &mut check)?;
            self.check_orders(snapshot.as_ref(), &mine, first, &mut wanted, &mut check)?;
            self.check_feed(snapshot.as_ref(), &mine, first, &mut wanted, &mut check)?;
            for ((table, key), row) in wanted.into_iter().filter(|(_, row)| row.required) {
                let change = Change { table, key: key.clone(), value: Some(row.value) };
                check.add(row.kind, "is missing", shown(table, &key), Some(change));
            }
            mend(std::mem::take(&mut check.changes))?;
        }
        let usage = self.usage();
        if (usage.items, usage.size_bytes) != (check.totals.items, check.totals.bytes) {
            let key = format!(
                "{} items of {} bytes are counted, {} of {} are there",
                usage.items, usage.size_bytes, check.totals.items, check.totals.bytes
            );
            check.add("totals", "differ", key, None);
        }
        for difference in self.check_index()? {
            check.index = true;
            check.add("index", "differs", difference, None);
        }
        *check.rows.entry("index").or_default() += self.count_index_rows(snapshot.as_ref())?;
        Ok(check)
    }

    fn count_index_rows(&self, snapshot: &dyn Snapshot) -> Result<u64> {
        let mut count = 0;
        let mut rows = snapshot.scan(Table::Index, keys::index::everything(), Direction::Forward);
        while rows.next_row().transpose()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// The rows that items should have.
    fn wanted(
        &self,
        snapshot: &dyn Snapshot,
        mine: &dyn Fn(&[u8]) -> bool,
        first: bool,
        check: &mut PartitionCheck,
    ) -> Result<Rows> {
        let view = self.view(&[])?;
        let settings = self.settings();
        let definition = &settings.definition;
        let planned = snapshot.get(Table::Feed, &keys::meta(upkeep::PLANNED_TTL))?
            == settings.rules.planned_mark(definition.default_ttl)
            && !settings.rules.lacks_apis();
        let mark = snapshot.get(Table::Feed, &keys::meta(claiming::CLAIMED))?;
        let unclaimed = settings.rules.unclaimed(mark.as_ref());
        let claimed = |constraint: u16| !unclaimed.contains(&constraint);
        let mut wanted = Rows::new();
        let mut items = snapshot.scan(Table::Items, KeyRange::all(), Direction::Forward);
        while let Some(row) = items.next_row().transpose()? {
            let bytes = row.key.len() + row.value.len();
            let read = decode_item(row.value).ok().zip(ItemKey::from_key(row.key.clone()));
            let read = read.filter(|(item, _)| Raw::document(&item.document).is_ok());
            let Some((item, target)) = read else {
                if first {
                    let change = Change { table: Table::Items, key: row.key.clone(), value: None };
                    check.add("item", "makes no sense", shown(Table::Items, &row.key), Some(change));
                }
                continue;
            };
            if first {
                check.count("item");
                check.totals.items += 1;
                check.totals.bytes += bytes as u64;
                debug_assert_eq!(bytes, item_row_bytes(&target.key, &item));
                check.lsn = check.lsn.max(item.lsn);
                if target.epk < self.min || target.epk >= self.max {
                    check.add("item", "is outside of its partition", shown(Table::Items, &row.key), None);
                }
            }
            let live = view.shows(target.logical_partition(), &item);
            let mut want = |table: Table, key: Bytes, kind: &'static str, value: Bytes, required: bool| {
                if mine(&key) {
                    let row = Wanted { kind, value, required };
                    return wanted.insert((table, key), row).is_some_and(|other| other.required && required);
                }
                false
            };
            want(Table::Index, target.order(item.number), "order", target.key.clone(), true);
            want(Table::Feed, feed_key(&item), "feed", feed_row(&item, &target.key), true);
            if let Some(second) = settings.rules.over_from(definition.default_ttl, &item) {
                want(Table::Feed, keys::expiry(second, &target.key), "expiry", Bytes::new(), planned);
            }
            for claim in settings.rules.known_claims(item.body())? {
                if !claimed(claim.constraint) {
                    continue;
                }
                let key = target.unique(&claim);
                let id = Bytes::copy_from_slice(target.id());
                if want(Table::Feed, key, "unique", id, live) {
                    check.add("unique", "is claimed twice", shown(Table::Items, &target.key), None);
                }
            }
        }
        Ok(wanted)
    }

    fn check_orders(
        &self,
        snapshot: &dyn Snapshot,
        mine: &dyn Fn(&[u8]) -> bool,
        first: bool,
        wanted: &mut Rows,
        check: &mut PartitionCheck,
    ) -> Result<()> {
        let mut rows = snapshot.scan(Table::Index, keys::orders(), Direction::Forward);
        while let Some(row) = rows.next_row().transpose()? {
            if first {
                check.count("order");
            }
            if mine(&row.key) {
                compare(Table::Index, "order", row.key, row.value, wanted, check);
            }
        }
        Ok(())
    }

    fn check_feed(
        &self,
        snapshot: &dyn Snapshot,
        mine: &dyn Fn(&[u8]) -> bool,
        first: bool,
        wanted: &mut Rows,
        check: &mut PartitionCheck,
    ) -> Result<()> {
        let rules = self.settings().rules.clone();
        let mark = snapshot.get(Table::Feed, &keys::meta(claiming::CLAIMED))?;
        let unclaimed = rules.unclaimed(mark.as_ref());
        let mut rows = snapshot.scan(Table::Feed, KeyRange::all(), Direction::Forward);
        while let Some(row) = rows.next_row().transpose()? {
            let key = keys::FeedTableKey::decode(&row.key);
            let kind = match &key {
                Some(keys::FeedTableKey::Feed { .. }) => "feed",
                Some(keys::FeedTableKey::Expiry { .. }) => "expiry",
                Some(keys::FeedTableKey::Unique { .. }) => "unique",
                Some(keys::FeedTableKey::Meta { .. }) => "meta",
                Some(keys::FeedTableKey::Purge { .. }) => "purge",
                Some(keys::FeedTableKey::Version { .. }) => "version",
                None => "unknown",
            };
            if first {
                check.count(kind);
            }
            if !mine(&row.key) {
                continue;
            }
            let remove = Some(Change { table: Table::Feed, key: row.key.clone(), value: None });
            match key {
                Some(keys::FeedTableKey::Feed { lsn, .. }) => {
                    check.lsn = check.lsn.max(lsn);
                    check_change(row.key, &row.value, wanted, check);
                }
                // A hint that leads nowhere is passed by.
                Some(keys::FeedTableKey::Expiry { .. }) => drop(wanted.remove(&(Table::Feed, row.key))),
                // Those of rules that are being built, or are gone, are upkeep's.
                Some(keys::FeedTableKey::Unique { constraint, .. })
                    if !rules.knows(constraint) || unclaimed.contains(&constraint) => {}
                Some(keys::FeedTableKey::Unique { .. }) => {
                    compare(Table::Feed, "unique", row.key, row.value, wanted, check);
                }
                Some(keys::FeedTableKey::Version { lsn, .. }) => {
                    check.lsn = check.lsn.max(lsn);
                    if VersionRow::decode(&row.value).is_err() {
                        check.add("version", "makes no sense", shown(Table::Feed, &row.key), remove);
                    }
                }
                Some(keys::FeedTableKey::Purge { .. }) if decode_lsn(&row.value).is_err() => {
                    check.add("purge", "makes no sense", shown(Table::Feed, &row.key), remove);
                }
                Some(keys::FeedTableKey::Purge { .. } | keys::FeedTableKey::Meta { .. }) => {}
                None => check.add("unknown", "has no known key", shown(Table::Feed, &row.key), remove),
            }
        }
        Ok(())
    }

    /// Makes every row follow from the items again. `lossy`: changes that clients have seen may be lost. The
    /// partition must be opened anew afterwards, and its upkeep then makes the index where that is needed.
    pub fn mend_rows(&self, lossy: bool, remake_index: bool) -> Result<()> {
        let check = self.compare_rows(&mut |changes| {
            let mut changes = changes.into_iter().peekable();
            while changes.peek().is_some() {
                let changes = changes.by_ref().take(CHANGES_PER_COMMIT).collect();
                self.mend(Commit { changes })?;
            }
            Ok(())
        })?;
        if check.findings.is_empty() && !lossy && !remake_index {
            return Ok(());
        }
        if check.index || remake_index {
            self.remove_index()?;
        }
        let lsn = check.lsn.max(self.lsn()) + if lossy { LSN_MARGIN } else { 1 };
        let base = Base { lsn, totals: check.totals };
        let mut commit = Commit::default();
        commit.put(Table::Feed, keys::meta(BASE), base.encode());
        self.mend(commit)
    }

    /// Removes every row of the index and what says that they are there.
    fn remove_index(&self) -> Result<()> {
        let mut commit = Commit::default();
        for name in super::index::MARKS {
            commit.delete(Table::Feed, keys::meta(name));
        }
        self.mend(commit)?;
        let mut range = keys::index::everything();
        // Each commit from a snapshot of its own: one that is held for minutes expires.
        loop {
            let mut rows = self.snapshot()?.scan(Table::Index, range.clone(), Direction::Forward);
            let mut commit = Commit::default();
            while commit.changes.len() < CHANGES_PER_COMMIT
                && let Some(row) = rows.next_row().transpose()?
            {
                commit.delete(Table::Index, row.key);
            }
            let Some(last) = commit.changes.last() else { return Ok(()) };
            range.start = Bound::Excluded(last.key.clone());
            self.mend(commit)?;
        }
    }

    fn mend(&self, commit: Commit) -> Result<()> {
        if commit.changes.is_empty() {
            return Ok(());
        }
        self.space.commit(commit, Durability::Strict).map_err(Error::from)
    }
}

/// The feed row of an item whose own is lost. What the change was is not known; readers of the feed see the item
/// either way.
fn feed_row(item: &Item, key: &Bytes) -> Bytes {
    let (kind, totals) = (ChangeKind::Replace, Totals::default());
    FeedRow { kind, ts: item.ts, totals, number: item.number, key: key.clone() }.encode()
}

fn check_change(key: Bytes, value: &Bytes, wanted: &mut Rows, check: &mut PartitionCheck) {
    let wanted = wanted.remove(&(Table::Feed, key.clone()));
    let change = |value: Option<Bytes>| Some(Change { table: Table::Feed, key: key.clone(), value });
    match (FeedRow::decode(value), wanted) {
        (Ok(row), Some(wanted)) => {
            let same = FeedRow::decode(&wanted.value)
                .is_ok_and(|wanted| (wanted.number, &wanted.key) == (row.number, &row.key));
            if !same || !row.kind.leaves_item() {
                check.add("feed", "differs", shown(Table::Feed, &key), change(Some(wanted.value)));
            }
        }
        (Ok(row), None) if row.kind.leaves_item() => {
            check.add("feed", "leads to no item", shown(Table::Feed, &key), change(None));
        }
        (Ok(_), None) => {}
        (Err(_), wanted) => {
            let value = wanted.map(|wanted| wanted.value);
            check.add("feed", "makes no sense", shown(Table::Feed, &key), change(value));
        }
    }
}

fn compare(
    table: Table,
    kind: &'static str,
    key: Bytes,
    value: Bytes,
    wanted: &mut Rows,
    check: &mut PartitionCheck,
) {
    let place = (table, key);
    let found = wanted.remove(&place);
    let (table, key) = place;
    let change = |value: Option<Bytes>| Some(Change { table, key: key.clone(), value });
    match found {
        None => check.add(kind, "leads to no item", shown(table, &key), change(None)),
        Some(wanted) if wanted.value != value && wanted.required => {
            check.add(kind, "differs", shown(table, &key), change(Some(wanted.value)));
        }
        Some(_) => {}
    }
}

/// A key for people.
fn shown(table: Table, key: &[u8]) -> String {
    let text = match table {
        Table::Items => {
            keys::ItemKey::decode(key).map(|key| format!("{:?}", String::from_utf8_lossy(key.id)))
        }
        _ => None,
    };
    text.unwrap_or_else(|| key.escape_ascii().to_string())
}
