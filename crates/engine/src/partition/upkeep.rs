//! What a partition does in the background: removing what is over, what was purged, and deletes that are old.
//!
//! Nothing here changes what readers see, only what is stored. Every step is a bounded commit that waits its turn like
//! any writer, and every step can be interrupted by a crash: what is left to do follows from the rows.
//!
//! - *Expiry rows* lead to items in the order in which they are over. They are hints: the item decides.
//! - *A changed `defaultTtl`* is applied by giving every item the expiry row it needs now; a mark in the partition says
//!   for which default the rows are complete.
//! - *Purges* remove the items of their logical partition, then their own row.
//! - *A changed indexing policy* is worked off item by item (see `index::rebuild`).
//! - *Vectors* are linked to graphs (see `index::graph`).
//! - *Old deletes* leave the feed from its beginning; the newest feed row stays, it tells the partition where it
//!   stands.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use bytes::Bytes;
use orrery_storage::{Direction, KeyRange, Snapshot, Table, keys};
use parking_lot::Mutex;

use super::claiming::CLAIMED;
use super::durability::{Ticket, settle};
use super::item_key::ItemKey;
use super::rows::{ChangeKind, FeedRow, damaged, decode_item};
use super::rules::Rules;
use super::{AfterPublish, Partition, Settings};
use crate::block_on;
use crate::definition::ContainerDefinition;
use crate::error::{Kind, Result};

/// Items removed in one commit.
const REMOVALS_PER_COMMIT: usize = 100;
/// ... and rows in bytes, which items with many index entries have. The first item always fits.
const REMOVAL_BYTES_PER_COMMIT: usize = 4 * 1024 * 1024;
/// Rows looked at or written at once when a changed default is applied, or old deletes are looked for.
const ROWS_PER_STEP: usize = 1000;
/// Steps of one visit; then other partitions have their turn.
const STEPS_PER_VISIT: usize = 20;
/// How long deletes stay in the feed when the container does not say.
const DELETE_RETENTION_DEFAULT_S: u32 = 3600;
/// How often old deletes are looked for, at most.
const RETENTION_INTERVAL_S: u32 = 300;
/// How far the search for old deletes may get ahead of its stored mark.
const RETENTION_MARK_LSNS: u64 = 100_000;

pub(super) const PLANNED_TTL: &str = "planned-ttl";
pub(super) const RETENTION_LSN: &str = "retention-lsn";

/// No work is planned.
pub(super) const NEVER: u32 = u32::MAX;

/// What is to be done, kept so that asking costs a few loads.
pub(super) struct Agenda {
    /// One visit at a time.
    visit: Mutex<()>,
    /// The first second in which something may be over.
    expiry_s: AtomicU32,
    replan: AtomicBool,
    /// Items have not claimed keys for a rule, or rows of one that is gone are left.
    claims: AtomicBool,
    purge: AtomicBool,
    /// Index rows of an earlier policy are left.
    index: AtomicBool,
    /// When to look for old deletes next.
    retention_s: AtomicU32,
    /// Everything in the feed up to here has been looked at.
    retention_lsn: AtomicU64,
    retention_mark: AtomicU64,
    /// When to look for old versions next.
    pub(super) versions_s: AtomicU32,
    /// Versions up to here have been removed.
    pub(super) versions_gone: AtomicU64,
    /// Deletes after this LSN are needed by partitions that are being built from this one. `u64::MAX`: by none.
    pub(super) held_from: AtomicU64,
}

impl Agenda {
    pub(super) fn open(
        snapshot: &dyn Snapshot,
        settings: &Settings,
        lsn: u64,
        purges: bool,
        index_is_behind: bool,
    ) -> Result<Agenda> {
        let planned = snapshot.get(Table::Feed, &keys::meta(PLANNED_TTL))?;
        let mark = match snapshot.get(Table::Feed, &keys::meta(RETENTION_LSN))? {
            Some(row) => super::rows::decode_lsn(&row)?,
            None => 0,
        };
        let (versions_s, versions_gone) = super::versions::agenda(snapshot)?;
        Ok(Agenda {
            versions_s: AtomicU32::new(versions_s),
            versions_gone: AtomicU64::new(versions_gone),
            visit: Mutex::new(()),
            expiry_s: AtomicU32::new(first_expiry(snapshot)?),
            replan: AtomicBool::new(planned != settings.rules.planned_mark(settings.definition.default_ttl)),
            claims: AtomicBool::new(claims_are_behind(snapshot, &settings.rules, lsn)?),
            purge: AtomicBool::new(purges),
            index: AtomicBool::new(index_is_behind),
            retention_s: AtomicU32::new(if lsn > mark + 1 { 0 } else { NEVER }),
            retention_lsn: AtomicU64::new(mark),
            retention_mark: AtomicU64::new(mark),
            held_from: AtomicU64::new(u64::MAX),
        })
    }

    pub(super) fn look_for_versions(&self) {
        self.versions_s.store(0, Ordering::Release);
    }

    pub(super) fn replan(&self) {
        self.replan.store(true, Ordering::Release);
    }

    pub(super) fn claim(&self) {
        self.claims.store(true, Ordering::Release);
    }

    pub(super) fn purge(&self) {
        self.purge.store(true, Ordering::Release);
    }

    /// Returns when no visit is under way that has not seen what was set before.
    pub(super) fn wait_for_visit(&self) {
        drop(self.visit.lock());
    }

    pub(super) fn reindex(&self) {
        self.index.store(true, Ordering::Release);
    }

    /// Takes note of what a commit will need one day.
    pub(super) fn note(&self, expiry_s: Option<u32>, deletes: bool, versions: bool) {
        if versions {
            let _ = self.versions_s.compare_exchange(NEVER, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
        if let Some(second) = expiry_s {
            self.expiry_s.fetch_min(second, Ordering::AcqRel);
        }
        if deletes {
            // Time zero means at the next visit, which sets the interval.
            let _ = self.retention_s.compare_exchange(NEVER, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    fn is_due(&self, now_s: u32) -> bool {
        self.replan.load(Ordering::Acquire)
            || self.purge.load(Ordering::Acquire)
            || self.claims.load(Ordering::Acquire)
            || self.index.load(Ordering::Acquire)
            || self.expiry_s.load(Ordering::Acquire) <= now_s
            || self.retention_s.load(Ordering::Acquire) <= now_s
            || self.versions_s.load(Ordering::Acquire) <= now_s
    }
}

/// What a visit did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Upkeep {
    /// Items removed.
    pub removed: usize,
    /// Whether there is more to do right now.
    pub more: bool,
    /// Whether there are vectors left to link. Nobody waits for that.
    pub linking: bool,
}

impl Partition {
    /// Whether a visit would find anything to do.
    pub fn upkeep_is_due(&self) -> bool {
        // An idle partition learns here that its container's time to live has changed.
        self.definition_changed();
        self.check_open().is_ok() && (self.shared.agenda.is_due(self.env.now_s()) || self.linking_is_due())
    }

    /// Does a bounded part of what is due, waiting for each commit. In a handover that is nothing: what is due is due
    /// in the partitions that come next as well.
    pub fn upkeep(&self) -> Result<Upkeep> {
        match self.visit() {
            Err(error) if error.kind == Kind::RangeGone && !self.takes_writes() && !self.is_lost() => {
                Ok(Upkeep::default())
            }
            result => result,
        }
    }

    fn visit(&self) -> Result<Upkeep> {
        let agenda = &self.shared.agenda;
        let _visit = agenda.visit.lock();
        let now_s = self.env.now_s();
        let mut done = Upkeep::default();
        if agenda.replan.swap(false, Ordering::AcqRel)
            && let Err(error) = self.plan_expiry()
        {
            agenda.replan();
            return Err(error);
        }
        if agenda.claims.swap(false, Ordering::AcqRel) {
            let finished = self.claim_in_background();
            if !matches!(finished, Ok(true)) {
                agenda.claim();
            }
            done.more |= !finished?;
        }
        if agenda.purge.swap(false, Ordering::AcqRel) {
            let finished = self.remove_purged(&mut done);
            if !matches!(finished, Ok(true)) {
                agenda.purge();
            }
            done.more |= !finished?;
        }
        if agenda.expiry_s.load(Ordering::Acquire) <= now_s {
            done.more |= !self.remove_expired(now_s, &mut done)?;
        }
        if agenda.retention_s.load(Ordering::Acquire) <= now_s {
            done.more |= !self.remove_old_deletes(now_s)?;
        }
        if agenda.versions_s.load(Ordering::Acquire) <= now_s {
            done.more |= !self.remove_old_versions(now_s)?;
        }
        if agenda.index.swap(false, Ordering::AcqRel) {
            let finished = self.rebuild_index();
            if !matches!(finished, Ok(true)) {
                agenda.reindex();
            }
            done.more |= !finished?;
        }
        if self.linking_is_due() {
            done.linking = !self.link_vectors()?;
        }
        Ok(done)
    }

    /// Removes items that are over. Returns whether all of them are gone.
    fn remove_expired(&self, now_s: u32, done: &mut Upkeep) -> Result<bool> {
        for _ in 0..STEPS_PER_VISIT {
            // Set before the rows are read: what is written meanwhile lowers it again.
            self.shared.agenda.expiry_s.store(NEVER, Ordering::Release);
            let published_lsn = self.lsn();
            let snapshot = self.snapshot()?;
            let rows = take_rows(snapshot.as_ref(), keys::expiry_up_to(now_s), REMOVALS_PER_COMMIT)?;
            if rows.is_empty() {
                let first = first_expiry(snapshot.as_ref())?;
                // A commit on its way may have a row that the snapshot does not show yet: look again soon.
                let on_its_way = self.shared.overlay.lock().next_lsn - 1 > published_lsn;
                let next = if on_its_way { first.min(now_s.saturating_add(1)) } else { first };
                self.shared.agenda.expiry_s.fetch_min(next, Ordering::AcqRel);
                return Ok(true);
            }
            drop(snapshot);
            let settings = self.settings();
            let (mut removed, mut looked_at) = (0, 0);
            let result = self.transact(&settings, |transaction| {
                (removed, looked_at) = (0, 0);
                for (sub, row) in rows.iter().enumerate() {
                    let Some(keys::FeedTableKey::Expiry { item_key, .. }) = keys::FeedTableKey::decode(row)
                    else {
                        return Err(damaged("expiry"));
                    };
                    let target = ItemKey::from_key(Bytes::copy_from_slice(item_key))
                        .ok_or_else(|| damaged("expiry"))?;
                    if let Some(item) = transaction.stored(&target.key)?
                        && settings.rules.is_over(settings.definition.default_ttl, &item, now_s)
                    {
                        transaction.remove(sub as u8, &target, &item, ChangeKind::Expire)?;
                        removed += 1;
                    }
                    looked_at += 1;
                    if transaction.size_bytes() > REMOVAL_BYTES_PER_COMMIT {
                        break;
                    }
                }
                if removed > 0 {
                    for row in &rows[..looked_at] {
                        transaction.stage(Table::Feed, row.clone(), None);
                    }
                }
                Ok(())
            });
            match result {
                Ok((ticket, ..)) => {
                    durable(ticket)?;
                    done.removed += removed;
                    if removed == 0 {
                        self.drop_rows(&settings, &rows[..looked_at])?;
                    }
                }
                Err((_, error)) => {
                    self.shared.agenda.expiry_s.store(now_s, Ordering::Release);
                    return Err(error);
                }
            }
        }
        self.shared.agenda.expiry_s.fetch_min(now_s, Ordering::AcqRel);
        Ok(false)
    }

    /// Removes rows of `Table::Feed` that are no change of any item.
    fn drop_rows(&self, settings: &Settings, rows: &[Bytes]) -> Result<()> {
        let mut transaction = super::transaction::Transaction::begin(self, settings)?;
        for row in rows {
            transaction.stage(Table::Feed, row.clone(), None);
        }
        durable(transaction.finish_marks()?)
    }

    /// Removes the items of purged logical partitions. Returns whether all of them are gone.
    fn remove_purged(&self, done: &mut Upkeep) -> Result<bool> {
        let purges = self.shared.purges.load_full();
        let mut steps = 0;
        for (logical_partition, purged_lsn) in purges.iter() {
            let mut range = KeyRange::prefix(logical_partition);
            loop {
                if steps >= STEPS_PER_VISIT {
                    return Ok(false);
                }
                steps += 1;
                let snapshot = self.snapshot()?;
                let mut rows = snapshot.scan(Table::Items, range.clone(), Direction::Forward);
                let mut keys_found = Vec::new();
                while let Some(row) = rows.next_row().transpose()? {
                    if decode_item(row.value)?.lsn <= *purged_lsn {
                        keys_found.push(row.key);
                    }
                    if keys_found.len() == REMOVALS_PER_COMMIT {
                        break;
                    }
                }
                drop(rows);
                drop(snapshot);
                if keys_found.is_empty() {
                    self.end_purge(logical_partition, *purged_lsn)?;
                    break;
                }
                let (removed, looked_at) = self.remove_if(&keys_found, *purged_lsn)?;
                done.removed += removed;
                range.start = std::ops::Bound::Excluded(keys_found[looked_at - 1].clone());
            }
        }
        // A purge that was submitted meanwhile is published later; it has set the agenda again.
        Ok(true)
    }

    /// Removes the first of these items, as many as fit a commit. Returns how many were removed, and how many were
    /// looked at: at least one.
    fn remove_if(&self, keys_found: &[Bytes], purged_lsn: u64) -> Result<(usize, usize)> {
        let settings = self.settings();
        let (mut removed, mut looked_at) = (0, 0);
        let result = self.transact(&settings, |transaction| {
            (removed, looked_at) = (0, 0);
            for (sub, key) in keys_found.iter().enumerate() {
                let target = ItemKey::from_key(key.clone()).ok_or_else(|| damaged("item"))?;
                // It may have been written again since it was found.
                if let Some(item) = transaction.stored(key)?
                    && item.lsn <= purged_lsn
                {
                    transaction.remove(sub as u8, &target, &item, ChangeKind::Delete)?;
                    removed += 1;
                }
                looked_at += 1;
                if transaction.size_bytes() > REMOVAL_BYTES_PER_COMMIT {
                    break;
                }
            }
            Ok(())
        });
        match result {
            Ok((ticket, ..)) => durable(ticket)?,
            Err((_, error)) => return Err(error),
        }
        Ok((removed, looked_at))
    }

    fn end_purge(&self, logical_partition: &Bytes, purged_lsn: u64) -> Result<()> {
        let settings = self.settings();
        let mut transaction = super::transaction::Transaction::begin(self, &settings)?;
        // A later purge of the same key has taken the row over.
        if transaction.reads.overlay.purges.get(logical_partition) != Some(&purged_lsn) {
            return Ok(());
        }
        let parts = keys::ItemKey::decode(logical_partition).ok_or_else(|| damaged("purge"))?;
        transaction.stage(Table::Feed, keys::purge(&parts.epk, &parts.partition_key), None);
        transaction.reads.overlay.purges.remove(logical_partition);
        transaction.after =
            AfterPublish::PurgeEnded { logical_partition: logical_partition.clone(), lsn: purged_lsn };
        durable(transaction.finish_marks()?)
    }

    /// Gives every item the expiry row that the present default asks for, and marks the rows as complete.
    fn plan_expiry(&self) -> Result<()> {
        let settings = self.settings();
        let default_ttl = settings.definition.default_ttl;
        let mut range = KeyRange::all();
        let mut earliest = NEVER;
        let mark = settings.rules.planned_mark(default_ttl);
        while mark.is_some() {
            let snapshot = self.snapshot()?;
            let mut rows = snapshot.scan(Table::Items, range.clone(), Direction::Forward);
            let mut planned = Vec::new();
            let mut last = None;
            for _ in 0..ROWS_PER_STEP {
                let Some(row) = rows.next_row().transpose()? else { break };
                let item = decode_item(row.value)?;
                if let Some(second) = settings.rules.over_from(default_ttl, &item) {
                    earliest = earliest.min(second);
                    planned.push(keys::expiry(second, &row.key));
                }
                last = Some(row.key);
            }
            drop(rows);
            drop(snapshot);
            let Some(last) = last else { break };
            range.start = std::ops::Bound::Excluded(last);
            let mut transaction = super::transaction::Transaction::begin(self, &settings)?;
            for key in planned {
                transaction.stage(Table::Feed, key, Some(Bytes::new()));
            }
            durable(transaction.finish_marks()?)?;
        }
        self.shared.agenda.expiry_s.fetch_min(earliest, Ordering::AcqRel);
        let mut transaction = super::transaction::Transaction::begin(self, &settings)?;
        transaction.stage(Table::Feed, keys::meta(PLANNED_TTL), mark);
        durable(transaction.finish_marks()?)
    }

    /// Removes deletes from the feed that are older than the container keeps them. Returns whether that is done.
    fn remove_old_deletes(&self, now_s: u32) -> Result<bool> {
        let agenda = &self.shared.agenda;
        let settings = self.settings();
        let keep_from = now_s.saturating_sub(settings.delete_retention_s);
        let newest = self.lsn().min(agenda.held_from.load(Ordering::Acquire));
        for _ in 0..STEPS_PER_VISIT {
            let from = agenda.retention_lsn.load(Ordering::Acquire);
            let snapshot = self.snapshot()?;
            let mut rows = snapshot.scan(Table::Feed, keys::feed_after(from), Direction::Forward);
            let mut old = Vec::new();
            let mut seen = from;
            let mut finished = true;
            for looked_at in 0.. {
                let Some(row) = rows.next_row().transpose()? else { break };
                let Some(keys::FeedTableKey::Feed { lsn, .. }) = keys::FeedTableKey::decode(&row.key) else {
                    return Err(damaged("feed"));
                };
                let change = FeedRow::decode(&row.value)?;
                if lsn >= newest || change.ts >= keep_from {
                    break;
                }
                // Steps end between commits, so that a position is an LSN.
                if looked_at >= ROWS_PER_STEP && lsn != seen {
                    finished = false;
                    break;
                }
                seen = lsn;
                if !change.kind.leaves_item() {
                    old.push(row.key);
                }
            }
            drop(rows);
            drop(snapshot);
            agenda.retention_lsn.store(seen, Ordering::Release);
            if !old.is_empty() || seen > agenda.retention_mark.load(Ordering::Relaxed) + RETENTION_MARK_LSNS {
                let mut transaction = super::transaction::Transaction::begin(self, &settings)?;
                for key in old {
                    transaction.stage(Table::Feed, key, None);
                }
                let mark = super::rows::encode_lsn(seen);
                transaction.stage(Table::Feed, keys::meta(RETENTION_LSN), Some(mark));
                durable(transaction.finish_marks()?)?;
                agenda.retention_mark.store(seen, Ordering::Relaxed);
            }
            if finished {
                // When only the newest row is left there is nothing to come back for until the next delete.
                let idle = seen + 1 >= newest;
                let next = if idle { NEVER } else { now_s.saturating_add(RETENTION_INTERVAL_S) };
                agenda.retention_s.store(next, Ordering::Release);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// How long a container wants deletes to stay in its feed.
pub(super) fn delete_retention_s(definition: &ContainerDefinition) -> u32 {
    let minutes =
        definition.json.get("changeFeedPolicy").and_then(|policy| policy.get("retentionDuration")?.as_u64());
    match minutes.and_then(|minutes| u32::try_from(minutes.saturating_mul(60)).ok()) {
        Some(seconds) if seconds > 0 => seconds,
        _ => DELETE_RETENTION_DEFAULT_S,
    }
}

/// Whether items are left that have claimed nothing for a rule, or rows of a rule that is gone.
fn claims_are_behind(snapshot: &dyn Snapshot, rules: &Rules, lsn: u64) -> Result<bool> {
    let mark = snapshot.get(Table::Feed, &keys::meta(CLAIMED))?;
    Ok(lsn > 0 && (!rules.unclaimed(mark.as_ref()).is_empty() || rules.has_gone(mark.as_ref())))
}

fn first_expiry(snapshot: &dyn Snapshot) -> Result<u32> {
    let row =
        snapshot.scan(Table::Feed, keys::expiry_up_to(NEVER), Direction::Forward).next_row().transpose()?;
    let Some(row) = row else { return Ok(NEVER) };
    match keys::FeedTableKey::decode(&row.key) {
        Some(keys::FeedTableKey::Expiry { second, .. }) => Ok(second),
        _ => Err(damaged("expiry")),
    }
}

/// Whether no item can be over: the expiry rows are those of this default, and none is due.
pub(super) fn nothing_is_over(snapshot: &dyn Snapshot, default_ttl: i32, now_s: u32) -> Result<bool> {
    let planned = snapshot.get(Table::Feed, &keys::meta(PLANNED_TTL))?;
    let is_planned = planned.is_some_and(|mark| mark.starts_with(&default_ttl.to_le_bytes()));
    Ok(is_planned && first_expiry(snapshot)? > now_s)
}

fn take_rows(snapshot: &dyn Snapshot, range: KeyRange, rows_max: usize) -> Result<Vec<Bytes>> {
    let mut rows = snapshot.scan(Table::Feed, range, Direction::Forward);
    let mut found = Vec::new();
    while found.len() < rows_max
        && let Some(row) = rows.next_row().transpose()?
    {
        found.push(row.key);
    }
    Ok(found)
}

pub(super) fn durable(ticket: Option<Ticket>) -> Result<()> {
    block_on(settle(ticket, Ok(())))
}
