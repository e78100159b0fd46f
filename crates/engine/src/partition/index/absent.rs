//! Items that lack a path, for those who sort by it.
//!
//! Undefined sorts before everything and has no entry, so an index in order says nothing about the items that come first.
//! Most often there are none: a path that is sorted by is one that items have. To know it, the entries of the path are counted
//! when it is sorted by for the first time, and compared with the items; what is missing is looked for in the items. From
//! then on writers add every version that lacks the path to a list in memory.
//!
//! The list holds *at least* the items that lack the path: those that have got it meanwhile, or are gone, stay on it, and the
//! reader asks each item anyway. So nothing has to be taken back when a commit fails, and a list that has grown too long is
//! simply made anew. Lists are not stored; after a restart, and in the children of a split, they begin again.
//!
//! A list is right for readers that are not older than its making. Whoever makes one announces it first, under the lock of
//! the writers, and takes only a snapshot that holds all that was submitted before.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use orrery_index::ValueRange;
use orrery_model::Raw;
use orrery_storage::{Direction, Table, keys};
use parking_lot::RwLock;

use super::super::rows::{Base, Totals, decode_item};
use super::super::{newest, rows};
use super::view::{PartitionView, PathNumber};
use crate::error::Result;
use crate::partition::Span;

/// Items on one list. With more of them a query is better off reading everything.
pub const ABSENT_ITEMS_MAX: usize = 1_024;
/// Lists of a partition; the one that was not used for longest makes room.
const LISTS_MAX: usize = 64;
/// A path that too many items lack is looked at again when so many commits, and half as many as there are items, came since.
const LOOK_AGAIN_COMMITS: u64 = 10_000;

#[derive(Default)]
pub(in crate::partition) struct Absences {
    lists: RwLock<Vec<List>>,
    /// How many lists were ever announced. Writers that began before the last announcement have not heard of it.
    announced: AtomicU64,
    uses: AtomicU64,
}

struct List {
    path: Vec<String>,
    /// References of items.
    items: BTreeSet<Bytes>,
    state: State,
    used: AtomicU64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Writers note what they write; what was submitted up to this LSN has to be added.
    Announced { after: u64 },
    /// Right for readers from this LSN on.
    Complete { from: u64 },
    /// As of this LSN.
    TooMany { at: u64 },
}

impl Absences {
    /// Puts a new version on the lists of the paths that it lacks.
    pub(super) fn note(&self, body: Raw<'_>, reference: &[u8]) {
        if self.announced() == 0 {
            return;
        }
        let lacks = |list: &List| list.keeps() && !list.items.contains(reference) && !has(body, &list.path);
        if !self.lists.read().iter().any(lacks) {
            return;
        }
        let mut lists = self.lists.write();
        for list in lists.iter_mut().filter(|list| lacks(list)) {
            list.items.insert(Bytes::copy_from_slice(reference));
        }
        // It may be items that are gone which make a list too long. The next reader will know.
        lists.retain(|list| list.items.len() <= ABSENT_ITEMS_MAX);
    }

    pub(super) fn announced(&self) -> u64 {
        self.announced.load(Ordering::Acquire)
    }
}

impl List {
    fn keeps(&self) -> bool {
        !matches!(self.state, State::TooMany { .. })
    }
}

fn has(body: Raw<'_>, path: &[String]) -> bool {
    path.iter().try_fold(body, |value, name| value.get(name)).is_some()
}

impl PartitionView {
    /// References of at least the items of a span that lack a path of names; `None` where there are many, or it is not
    /// known yet. `tick` is called now and then, and ends the search with its error.
    pub(crate) fn lacking<E: From<crate::error::Error>>(
        &self,
        number: PathNumber,
        path: &[String],
        span: &Span,
        tick: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Option<Vec<Bytes>>, E> {
        let absences = &self.shared.index.absences;
        let lsn = self.position().lsn;
        let known = absences.lists.read().iter().find(|list| list.path == path).map(|list| {
            list.used.store(absences.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
            let items = matches!(list.state, State::Complete { from } if from <= lsn);
            (list.state, items.then(|| list.items.iter().cloned().collect::<Vec<_>>()))
        });
        let after = match known {
            Some((_, Some(items))) => return Ok(Some(self.inside(items, span)?)),
            // An old view.
            Some((State::Complete { .. }, None)) => return Ok(None),
            Some((State::TooMany { at }, _)) => {
                let commits = lsn.saturating_sub(at);
                if commits < LOOK_AGAIN_COMMITS || commits < self.item_count() / 2 {
                    return Ok(None);
                }
                self.announce(path)
            }
            Some((State::Announced { after }, _)) => after,
            None => self.announce(path),
        };
        // What is on its way to the store is neither in this snapshot nor known to those who write from now on.
        if lsn < after {
            return Ok(None);
        }
        let found = self.search(number, path, tick)?;
        let from = self.shared.published_lsn();
        let mut lists = absences.lists.write();
        // Another reader may have completed the list, or made room for others; then this one was for this page alone.
        let announced = |list: &&mut List| list.path == path && list.state == State::Announced { after };
        if let Some(list) = lists.iter_mut().find(announced) {
            match &found {
                None => {
                    list.items.clear();
                    list.state = State::TooMany { at: from };
                }
                Some(items) => {
                    list.items.extend(items.iter().cloned());
                    list.state = State::Complete { from };
                }
            }
        }
        drop(lists);
        Ok(found.map(|items| self.inside(items, span)).transpose()?)
    }

    /// Has writers note what lacks a path from now on. Returns the last LSN that was submitted without.
    fn announce(&self, path: &[String]) -> u64 {
        let absences = &self.shared.index.absences;
        // Writers hold this lock from the first look at the lists until they have submitted.
        let state = self.shared.state.lock();
        let after = state.next_lsn - 1;
        let mut lists = absences.lists.write();
        lists.retain(|list| list.path != path);
        if lists.len() >= LISTS_MAX
            && let Some(oldest) = (0..lists.len()).min_by_key(|at| lists[*at].used.load(Ordering::Relaxed))
        {
            lists.swap_remove(oldest);
        }
        let used = AtomicU64::new(absences.uses.fetch_add(1, Ordering::Relaxed));
        let (path, items) = (path.to_vec(), BTreeSet::new());
        lists.push(List { path, items, state: State::Announced { after }, used });
        absences.announced.fetch_add(1, Ordering::Release);
        after
    }

    /// The items of the snapshot that have no entry; `None` where there are many.
    fn search<E: From<crate::error::Error>>(
        &self,
        number: PathNumber,
        path: &[String],
        tick: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Option<Vec<Bytes>>, E> {
        let mut entries = self.entries(number, &ValueRange::defined(), &Span::All, Direction::Forward, None);
        let mut with = 0;
        while entries.next_entry()?.is_some() {
            tick()?;
            with += 1;
        }
        // The snapshot's own count: what the partition has now may be another.
        let lacking = self.stored_items()?.saturating_sub(with);
        if lacking > ABSENT_ITEMS_MAX as u64 {
            return Ok(None);
        }
        let mut found = Vec::new();
        if lacking == 0 {
            return Ok(Some(found));
        }
        let mut rows =
            self.snapshot().scan(Table::Items, orrery_storage::KeyRange::all(), Direction::Forward);
        while (found.len() as u64) < lacking
            && let Some(row) = rows.next_row().transpose().map_err(crate::error::Error::from)?
        {
            tick()?;
            if !has(decode_item(row.value)?.body(), path) {
                found.push(self.reference(&row.key)?);
            }
        }
        Ok(Some(found))
    }

    /// How many items the snapshot holds.
    fn stored_items(&self) -> Result<u64> {
        let newest = newest(self.snapshot())?;
        let base = self.snapshot().get(Table::Feed, &keys::meta(rows::BASE))?;
        let base = base.map(|row| Base::decode(&row)).transpose()?;
        let totals = match (newest, base) {
            (Some((lsn, totals)), Some(base)) if lsn > base.lsn => totals,
            (_, Some(base)) => base.totals,
            (Some((_, totals)), None) => totals,
            (None, None) => Totals::default(),
        };
        Ok(totals.items)
    }

    fn reference(&self, key: &[u8]) -> Result<Bytes> {
        let parts = keys::ItemKey::decode(key).ok_or_else(|| rows::damaged("item"))?;
        Ok(keys::index::reference(&parts.epk, key).into())
    }

    /// Those of a list that lie in a span.
    fn inside(&self, mut items: Vec<Bytes>, span: &Span) -> Result<Vec<Bytes>> {
        let Span::Epk { min, max } = span else { return Ok(items) };
        let range = keys::items_in_epk_range(min.as_bytes(), max.as_bytes());
        let mut inside = Vec::with_capacity(items.len());
        for reference in items.drain(..) {
            let key = self.item_key(&reference)?;
            if std::ops::RangeBounds::contains(&(range.start.clone(), range.end.clone()), &key) {
                inside.push(reference);
            }
        }
        Ok(inside)
    }
}
