//! What a partition knows about its columns: which were asked for, what was written since, and the present set.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use orrery_query::columns::ColumnSource;
use parking_lot::Mutex;

use super::beside::Work;
use super::budget::ColumnBudget;
use super::set::{ColumnSet, SetBuilder};

/// Columns of one set. The one that was not asked for longest makes room.
const COLUMNS_MAX: usize = 16;
/// Keys that may have changed for a set to be of use: reading an item by its key costs as much as several in a row.
const CHANGED_PART: usize = 16;
const CHANGED_FEW: usize = 64;
/// Keys that are noted before the set is given up.
const NOTED_PART: usize = CHANGED_PART;
const NOTED_FEW: usize = 1_024;
/// Changed keys from which on a set is renewed by the query that has read them.
const RENEWED_PART: usize = 256;
const RENEWED_FEW: usize = 16;

pub(crate) struct Columns {
    this: Weak<Columns>,
    budget: Arc<ColumnBudget>,
    /// Somebody is making a set. Queries that come at the same time would all make the same one.
    making: AtomicBool,
    /// Whether writers have to note what they change. Set under the partition's lock alone.
    noting: AtomicBool,
    state: Mutex<ColumnNotes>,
    /// What a page has left for somebody who has time.
    put_off: Mutex<Option<Work>>,
    has_put_off: AtomicBool,
}

impl std::fmt::Debug for Columns {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Columns").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct ColumnNotes {
    /// How often notes were begun. What was read while other notes were taken is of no use.
    announced: u64,
    /// Everything after this LSN is noted.
    after: u64,
    /// Changed keys, each with the last LSN that changed it.
    notes: BTreeMap<Bytes, u64>,
    notes_max: usize,
    set: Option<Arc<ColumnSet>>,
    asked: Vec<Asked>,
    asks: u64,
    patience: Patience,
}

/// Sets that are never read before they are out of date cost more than they save; they are made less and less often.
#[derive(Default)]
struct Patience {
    /// A set was made that nobody has read yet.
    unread: bool,
    /// Occasions to make one that are passed by after that, and how many of them are left.
    passed_by: u32,
    left: u32,
}

const PASSED_BY_MAX: u32 = 63;

impl Patience {
    fn read(&mut self) {
        *self = Patience::default();
    }

    /// Whether this occasion to make a set is to be taken.
    fn is_over(&mut self) -> bool {
        if std::mem::take(&mut self.unread) {
            self.passed_by = (2 * self.passed_by + 1).min(PASSED_BY_MAX);
            self.left = self.passed_by;
        }
        let over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        over
    }
}

struct Asked {
    source: ColumnSource,
    times: u32,
    last: u64,
}

/// A set, and the keys that its reader must look up in its own snapshot.
pub(crate) struct Ready {
    pub set: Arc<ColumnSet>,
    pub changed: Vec<Bytes>,
    announced: u64,
}

impl Ready {
    /// Whether so much was changed that the set should be made anew with what the reader finds.
    pub fn is_to_renew(&self) -> bool {
        self.changed.len() > RENEWED_FEW + self.set.rows() / RENEWED_PART
    }
}

/// Leave to make a set.
pub(crate) struct Building {
    pub builder: SetBuilder,
    announced: u64,
    turn: Turn,
}

/// Nobody else makes a set until this is gone.
struct Turn(Weak<Columns>);

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(columns) = self.0.upgrade() {
            columns.making.store(false, Ordering::Release);
        }
    }
}

impl Columns {
    pub fn new(budget: Arc<ColumnBudget>) -> Arc<Columns> {
        Arc::new_cyclic(|this| Columns {
            this: this.clone(),
            budget,
            making: AtomicBool::new(false),
            noting: AtomicBool::new(false),
            state: Mutex::default(),
            put_off: Mutex::default(),
            has_put_off: AtomicBool::new(false),
        })
    }

    pub fn budget(&self) -> &ColumnBudget {
        &self.budget
    }

    // ---- writers

    /// Takes note of what a commit changes, before it is submitted. The caller holds the partition's lock.
    pub fn note<'k>(&self, lsn: u64, keys: impl Iterator<Item = &'k Bytes>) {
        if !self.noting.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state.lock();
        state.notes.extend(keys.map(|key| (key.clone(), lsn)));
        if state.notes.len() > state.notes_max {
            self.noting.store(false, Ordering::Relaxed);
            let gone = (std::mem::take(&mut state.notes), state.set.take());
            self.budget.set_size(&self.this, 0);
            // Freeing much takes milliseconds, for which writers do not wait.
            drop(std::thread::Builder::new().spawn(move || drop(gone)));
        }
    }

    /// Has writers note what they change from now on. The caller holds the partition's lock; `after` is the last LSN
    /// that was submitted.
    pub fn announce(&self, after: u64, items: u64) {
        let mut state = self.state.lock();
        if self.noting.swap(true, Ordering::Relaxed) {
            return;
        }
        state.announced += 1;
        state.after = after;
        state.notes_max = NOTED_FEW + items as usize / NOTED_PART;
    }

    // ---- readers

    /// The present set, if it has columns of all sources and is of use to a view of this LSN.
    pub fn ready(&self, sources: &[ColumnSource], lsn: u64) -> Option<Ready> {
        // Nobody who has no set pays for more than this.
        if !self.noting.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.state.lock();
        let set = state.set.clone().filter(|set| set.base <= lsn)?;
        set.columns(sources)??;
        state.asked_for(sources);
        if state.notes.len() > CHANGED_FEW + set.rows() / CHANGED_PART {
            return None;
        }
        state.patience.read();
        let changed = state.notes.keys().cloned().collect();
        let announced = state.announced;
        drop(state);
        self.budget.used(&self.this);
        Some(Ready { set, changed, announced })
    }

    /// Counts that the columns of these sources would have been of use. Returns whether they should be made, because
    /// they were asked for as often as this.
    pub fn ask(&self, sources: &[ColumnSource], times: u32) -> bool {
        let mut state = self.state.lock();
        let least = state.asked_for(sources);
        let useless = state.set.as_ref().is_some_and(|set| matches!(set.columns(sources), Some(None)));
        least >= times && !useless
    }

    pub fn is_noting(&self) -> bool {
        self.noting.load(Ordering::Relaxed)
    }

    /// Begins a set with these sources and what else was asked for. `None` if the view does not hold everything that
    /// was submitted before notes were taken.
    pub fn begin(&self, sources: &[ColumnSource], lsn: u64, items: u64) -> Option<Building> {
        let mut state = self.state.lock();
        let later = state.set.as_ref().is_some_and(|set| set.base > lsn);
        if !self.noting.load(Ordering::Relaxed) || lsn < state.after || later {
            return None;
        }
        if self.making.load(Ordering::Acquire) || !state.patience.is_over() {
            return None;
        }
        self.making.store(true, Ordering::Release);
        let turn = Turn(self.this.clone());
        let mut all = sources.to_vec();
        let others = state.set.iter().flat_map(|set| set.sources());
        let mut others: Vec<&ColumnSource> = others.filter(|source| !sources.contains(source)).collect();
        others.sort_by_key(|source| std::cmp::Reverse(state.last_asked(source)));
        all.extend(others.into_iter().take(COLUMNS_MAX.saturating_sub(sources.len())).cloned());
        Some(Building { builder: SetBuilder::new(all, items as usize), announced: state.announced, turn })
    }

    /// Puts a set in the place of the one before, if notes were taken all the time. `lsn`: that of the view it was
    /// read from.
    pub fn install(&self, building: Building, lsn: u64) {
        let Building { builder, announced, turn } = building;
        self.replace(builder.finish(lsn), announced);
        self.state.lock().patience.unread = true;
        drop(turn);
    }

    /// A set has become too large on the way. It would again, so it is tried less often.
    pub fn abandon(&self) {
        self.state.lock().patience.unread = true;
    }

    /// As `install`, for one that was made from another and the changed items.
    pub fn renew(&self, builder: SetBuilder, before: &Ready, lsn: u64) {
        self.replace(builder.finish(lsn), before.announced);
    }

    fn replace(&self, set: ColumnSet, announced: u64) {
        let bytes = set.size_bytes();
        if !self.budget.has_room_for(bytes) {
            return;
        }
        let mut state = self.state.lock();
        let stale = state.set.as_ref().is_some_and(|present| present.base > set.base);
        if !self.noting.load(Ordering::Relaxed) || state.announced != announced || stale {
            return;
        }
        let base = set.base;
        state.notes.retain(|_, lsn| *lsn > base);
        state.notes_max = NOTED_FEW + set.rows() / NOTED_PART;
        state.set = Some(Arc::new(set));
        let gone = self.budget.set_size(&self.this, bytes);
        drop(state);
        for gone in gone {
            if let Some(owner) = gone.upgrade() {
                owner.give_up();
            }
        }
    }

    // ---- what takes long

    /// Leaves work for after the page. What was left before is forgotten: it is asked for again.
    pub fn put_off(&self, work: Work) {
        *self.put_off.lock() = Some(work);
        self.has_put_off.store(true, Ordering::Relaxed);
    }

    pub fn take_put_off(&self) -> Option<Work> {
        if self.has_put_off.swap(false, Ordering::Relaxed) { self.put_off.lock().take() } else { None }
    }

    /// A set has got an order, which takes memory as well.
    pub fn has_grown(&self, set: &Arc<ColumnSet>) {
        let state = self.state.lock();
        if !state.set.as_ref().is_some_and(|present| Arc::ptr_eq(present, set)) {
            return;
        }
        let gone = self.budget.set_size(&self.this, set.size_bytes());
        drop(state);
        for gone in gone {
            if let Some(owner) = gone.upgrade() {
                owner.give_up();
            }
        }
    }

    /// Others need the room. Notes go on, so that a new set can be made at any time.
    fn give_up(&self) {
        self.state.lock().set = None;
    }
}

impl ColumnNotes {
    /// Returns how often the least of them was asked for.
    fn asked_for(&mut self, sources: &[ColumnSource]) -> u32 {
        self.asks += 1;
        let now = self.asks;
        let mut least = u32::MAX;
        for source in sources {
            match self.asked.iter_mut().find(|asked| asked.source == *source) {
                Some(asked) => {
                    asked.times = asked.times.saturating_add(1);
                    asked.last = now;
                    least = least.min(asked.times);
                }
                None => {
                    self.asked.push(Asked { source: source.clone(), times: 1, last: now });
                    least = 1;
                }
            }
        }
        if self.asked.len() > 4 * COLUMNS_MAX {
            self.asked.sort_by_key(|asked| std::cmp::Reverse(asked.last));
            self.asked.truncate(2 * COLUMNS_MAX);
        }
        least
    }

    fn last_asked(&self, source: &ColumnSource) -> u64 {
        self.asked.iter().find(|asked| asked.source == *source).map_or(0, |asked| asked.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_model::{ParseOptions, Raw, parse_json};
    use orrery_query::{Prepared, QueryEnv};

    fn sources(text: &str) -> Vec<ColumnSource> {
        let query = orrery_sql::parse_query(text).unwrap();
        let prepared = Prepared::new(&query, &[], &QueryEnv::default()).unwrap();
        prepared.column_query().unwrap().sources().to_vec()
    }

    fn fill(building: &mut Building, rows: u64) {
        let document = parse_json(br#"{"a":1}"#, &ParseOptions::default()).unwrap();
        for row in 0..rows {
            let key = row.to_be_bytes();
            building.builder.push(&key, row, document.len(), Raw::document(&document).unwrap());
        }
    }

    fn noted(columns: &Columns, lsn: u64, row: u64) {
        columns.note(lsn, [Bytes::copy_from_slice(&row.to_be_bytes())].iter());
    }

    #[test]
    fn a_set_is_for_views_from_its_base_on_and_names_what_was_changed_since() {
        let columns = Columns::new(Arc::new(ColumnBudget::new(1 << 20)));
        let wanted = sources("SELECT VALUE SUM(c.a) FROM c");
        assert!(!columns.ask(&wanted, 2) && columns.ask(&wanted, 2));
        noted(&columns, 3, 1);
        columns.announce(4, 10);
        // The commit of LSN 4 may not be in this view, and nobody has noted it.
        assert!(columns.begin(&wanted, 3, 10).is_none());
        let mut building = columns.begin(&wanted, 5, 10).unwrap();
        noted(&columns, 5, 2);
        noted(&columns, 6, 3);
        noted(&columns, 7, 2);
        fill(&mut building, 10);
        columns.install(building, 5);
        assert!(columns.ready(&wanted, 4).is_none(), "an older view");
        let ready = columns.ready(&wanted, 6).unwrap();
        let rows: Vec<_> = ready.changed.iter().map(|key| ready.set.find(key)).collect();
        assert_eq!(rows, [Ok(2), Ok(3)]);
        assert!(columns.ready(&sources("SELECT VALUE SUM(c.a + c.b) FROM c"), 6).is_none());
        // Made anew from a view that holds the commit of LSN 6.
        let mut renewed = SetBuilder::like(&ready.set);
        renewed.append(&ready.set, 0..10);
        columns.renew(renewed, &ready, 6);
        let ready = columns.ready(&wanted, 8).unwrap();
        assert_eq!((ready.set.base, ready.changed.len()), (6, 1));
    }

    #[test]
    fn a_set_is_given_up_when_much_is_written_and_what_was_begun_before_is_of_no_use() {
        let columns = Columns::new(Arc::new(ColumnBudget::new(1 << 20)));
        let wanted = sources("SELECT VALUE SUM(c.a) FROM c");
        columns.announce(0, 10);
        let mut late = columns.begin(&wanted, 0, 10).unwrap();
        fill(&mut late, 10);
        for row in 0..=NOTED_FEW as u64 {
            noted(&columns, row + 1, row);
        }
        assert!(!columns.is_noting());
        columns.announce(5_000, 10);
        assert!(columns.begin(&wanted, 5_000, 10).is_none(), "one at a time");
        columns.install(late, 0);
        assert!(columns.ready(&wanted, 5_000).is_none());
        assert!(!columns.making.load(Ordering::Relaxed));
    }
}
