//! Items that lack a path, for those who sort by it.
//!
//! Undefined sorts before everything and has no entry, so an index in order says nothing about the items that come
//! first. Most often there are none: a path that is sorted by is one that items have. To know it, the entries of the
//! path are counted when it is sorted by for the first time, and compared with the items; what is missing is looked
//! for in the items. From then on writers add every version that lacks the path to a list in memory.
//!
//! The list holds *at least* the items that lack the path: those that have got it meanwhile, or are gone, stay on it,
//! and the reader asks each item anyway. So nothing has to be taken back when a commit fails, and a list that has
//! grown too long is simply made anew. A reader who found many in vain may take them off (`forget_lacking`). Lists
//! are not stored; after a restart, and in the children of a split, they begin again.
//!
//! The same holds for vectors: what cannot be compared has no row, and comes before all distances or after all
//! similarities. A list is then of the items that do not have as many numbers at the path as the index says.
//!
//! Where many items lack the path, the list is of the first of them by number, in which order they are sorted, and
//! says up to which number. That is enough for who wants the first rows; who goes on behind them looks at everything,
//! for many pages at once.
//!
//! A list is right for readers that are not older than its making. Whoever makes one announces it first, under the
//! lock of the writers, and takes only a snapshot that holds all that was submitted before.

use std::collections::{BTreeSet, BinaryHeap};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use orrery_index::ValueRange;
use orrery_model::Raw;
use orrery_storage::{Direction, Table, keys};
use parking_lot::RwLock;

use super::super::rows::{Base, Totals, decode_item};
use super::super::{newest, rows};
use super::search::is_vector;
use super::view::{PartitionView, PathNumber, VectorPath};
use crate::error::Result;
use crate::partition::Span;

/// Lists of a partition; the one that was not used for longest makes room.
const LISTS_MAX: usize = 64;
/// A list of the first of many is made anew when so many commits, and half as many as there are items, came since.
const LOOK_AGAIN_COMMITS: u64 = 10_000;

#[derive(Default)]
pub(in crate::partition) struct Absences {
    lists: RwLock<Vec<List>>,
    /// How many lists were ever announced. Writers that began before the last announcement have not heard of it.
    announced: AtomicU64,
    uses: AtomicU64,
}

struct List {
    part: Part,
    /// Numbers and references of items. One that was renamed is there twice.
    items: BTreeSet<(u64, Bytes)>,
    items_max: usize,
    /// Items with larger numbers may be missing.
    upto: Option<u64>,
    state: Readiness,
    used: AtomicU64,
}

/// What items may lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// A value at a path of names.
    Value(Vec<String>),
    /// A vector at a path of names. `defined`: items that have nothing at all there do not count.
    Vector { path: Vec<String>, dimensions: usize, defined: bool },
}

impl Part {
    /// Whether an item lacks it.
    pub fn is_missing(&self, body: Raw<'_>) -> bool {
        let value = |path: &[String]| path.iter().try_fold(body, |value, name| value.get(name));
        match self {
            Part::Value(path) => value(path).is_none(),
            Part::Vector { path, dimensions, defined } => {
                value(path).map_or(!defined, |value| !is_vector(value, *dimensions))
            }
        }
    }
}

/// Items that lack a path, or did, by their numbers and in that order.
#[derive(Debug, Default)]
pub(crate) struct Lacking {
    pub items: Vec<(u64, Bytes)>,
    /// Others with larger numbers than these may lack it too.
    pub more: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Readiness {
    /// Writers note what they write; what was submitted up to this LSN has to be added.
    Announced { after: u64 },
    /// Right for readers from this LSN on.
    Complete { from: u64 },
}

impl Absences {
    /// Puts a new version on the lists of the paths that it lacks.
    pub(super) fn note(&self, body: Raw<'_>, number: u64, reference: &[u8]) {
        if self.announced() == 0 {
            return;
        }
        let lacks = |list: &List| {
            list.upto.is_none_or(|upto| number <= upto)
                && !list.holds(number, reference)
                && list.part.is_missing(body)
        };
        if !self.lists.read().iter().any(lacks) {
            return;
        }
        let mut lists = self.lists.write();
        for list in lists.iter_mut().filter(|list| lacks(list)) {
            list.items.insert((number, Bytes::copy_from_slice(reference)));
        }
        lists.retain_mut(|list| {
            // It may be items that are gone which make a list too long. The next reader will know.
            let overfull = list.items.len() > list.items_max && list.upto.is_none();
            if overfull && matches!(list.state, Readiness::Complete { .. }) {
                return false;
            }
            list.shorten();
            true
        });
    }

    pub(super) fn announced(&self) -> u64 {
        self.announced.load(Ordering::Acquire)
    }
}

impl List {
    fn holds(&self, number: u64, reference: &[u8]) -> bool {
        let mut of_number = self.items.range((number, Bytes::new())..).take_while(|item| item.0 == number);
        of_number.any(|item| item.1 == reference)
    }

    fn copy(&self) -> Lacking {
        Lacking { items: self.items.iter().cloned().collect(), more: self.upto.is_some() }
    }

    /// Leaves out the last items where there are too many.
    fn shorten(&mut self) {
        while self.items.len() > self.items_max {
            let dropped = self.items.pop_last().map_or(0, |(number, _)| number);
            self.upto = Some(dropped.saturating_sub(1));
        }
    }
}

/// The rows of an index that items have unless they lack something.
#[derive(Clone, Copy)]
enum Rows<'v> {
    Values(PathNumber),
    Vectors(&'v VectorPath),
}

/// Called now and then; ends what is going on with its error.
type Tick<'t, E> = dyn FnMut() -> Result<(), E> + 't;

impl PartitionView {
    /// At least the items of a span that lack a path of names, or about so many of them; `None` where it is not known
    /// yet. `tick` is called now and then, and ends the search with its error.
    pub(crate) fn lacking<E: From<crate::error::Error>>(
        &self,
        number: PathNumber,
        path: &[String],
        span: &Span,
        items_max: usize,
        tick: &mut Tick<'_, E>,
    ) -> Result<Option<Lacking>, E> {
        self.lacking_part(&Part::Value(path.to_vec()), Rows::Values(number), span, items_max, tick)
    }

    /// The same of the items that lack a vector, which `part` is, at the path of an index.
    pub(crate) fn lacking_vector<E: From<crate::error::Error>>(
        &self,
        vectors: &VectorPath,
        part: &Part,
        span: &Span,
        items_max: usize,
        tick: &mut Tick<'_, E>,
    ) -> Result<Option<Lacking>, E> {
        self.lacking_part(part, Rows::Vectors(vectors), span, items_max, tick)
    }

    fn lacking_part<E: From<crate::error::Error>>(
        &self,
        part: &Part,
        rows: Rows<'_>,
        span: &Span,
        items_max: usize,
        tick: &mut Tick<'_, E>,
    ) -> Result<Option<Lacking>, E> {
        let absences = &self.shared.index.absences;
        let lsn = self.position().lsn;
        let known = absences.lists.read().iter().find(|list| list.part == *part).map(|list| {
            list.used.store(absences.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
            let complete = matches!(list.state, Readiness::Complete { from } if from <= lsn);
            (list.state, list.upto, complete.then(|| list.copy()))
        });
        let after = match known {
            Some((Readiness::Complete { from }, upto, Some(items))) => {
                let commits = lsn.saturating_sub(from);
                let worn = upto.is_some() && commits >= LOOK_AGAIN_COMMITS.max(self.item_count() / 2);
                if !worn {
                    return Ok(Some(self.inside(items, span)?));
                }
                self.announce(part, items_max)
            }
            // An old view.
            Some((Readiness::Complete { .. }, ..)) => return Ok(None),
            Some((Readiness::Announced { after }, ..)) => after,
            None => self.announce(part, items_max),
        };
        // What is on its way to the store is neither in this snapshot nor known to those who write from now on.
        if lsn < after {
            return Ok(None);
        }
        let found = self.search(rows, part, items_max, tick)?;
        let from = self.shared.published_lsn();
        let mut lists = absences.lists.write();
        // Another reader may have completed the list, or made room for others; then this one was for this page alone.
        let announced = |list: &&mut List| list.part == *part && list.state == Readiness::Announced { after };
        if let Some(list) = lists.iter_mut().find(announced) {
            if found.more {
                let last = found.items.last().map_or(0, |(number, _)| *number);
                list.upto = Some(list.upto.map_or(last, |upto| upto.min(last)));
            }
            list.items.extend(found.items.iter().cloned());
            let upto = list.upto.unwrap_or(u64::MAX);
            list.items.retain(|(number, _)| *number <= upto);
            list.shorten();
            list.state = Readiness::Complete { from };
        }
        drop(lists);
        Ok(Some(self.inside(found, span)?))
    }

    /// Takes items off a list that, as this view has it, lack nothing or are not there. Not while something is on its
    /// way to the store, which may bring them back.
    pub(crate) fn forget_lacking(&self, part: &Part, items: &[(u64, Bytes)]) {
        let absences = &self.shared.index.absences;
        let lsn = self.position().lsn;
        let state = self.shared.overlay.lock();
        if state.next_lsn - 1 > lsn {
            return;
        }
        let mut lists = absences.lists.write();
        if let Some(list) = lists.iter_mut().find(|list| list.part == *part)
            && let Readiness::Complete { from } = &mut list.state
        {
            *from = lsn.max(*from);
            list.items.retain(|item| !items.contains(item));
            // Who has looked at the list and submits later looks again.
            absences.announced.fetch_add(1, Ordering::Release);
        }
    }

    /// Has writers note what lacks a path from now on. Returns the last LSN that was submitted without.
    fn announce(&self, part: &Part, items_max: usize) -> u64 {
        let absences = &self.shared.index.absences;
        // Writers hold this lock from the first look at the lists until they have submitted.
        let state = self.shared.overlay.lock();
        let after = state.next_lsn - 1;
        let mut lists = absences.lists.write();
        lists.retain(|list| list.part != *part);
        if lists.len() >= LISTS_MAX
            && let Some(oldest) = (0..lists.len()).min_by_key(|at| lists[*at].used.load(Ordering::Relaxed))
        {
            lists.swap_remove(oldest);
        }
        let used = AtomicU64::new(absences.uses.fetch_add(1, Ordering::Relaxed));
        let (part, items) = (part.clone(), BTreeSet::new());
        lists.push(List { part, items, items_max, upto: None, state: Readiness::Announced { after }, used });
        absences.announced.fetch_add(1, Ordering::Release);
        after
    }

    /// How many items have a row.
    fn count_rows<E: From<crate::error::Error>>(
        &self,
        rows: Rows<'_>,
        tick: &mut Tick<'_, E>,
    ) -> Result<u64, E> {
        let mut entries = match rows {
            Rows::Values(number) => {
                self.entries(number, &ValueRange::defined(), &Span::All, Direction::Forward, None)
            }
            Rows::Vectors(vectors) => {
                if let Some(count) = self.graph_vectors(vectors)? {
                    return Ok(count);
                }
                self.vector_entries(vectors, &Span::All)
            }
        };
        let mut count = 0;
        while entries.next_entry()?.is_some() {
            tick()?;
            count += 1;
        }
        Ok(count)
    }

    /// The items of the snapshot that have no entry; the first of them where there are many.
    fn search<E: From<crate::error::Error>>(
        &self,
        rows: Rows<'_>,
        part: &Part,
        items_max: usize,
        tick: &mut Tick<'_, E>,
    ) -> Result<Lacking, E> {
        let with = self.count_rows(rows, tick)?;
        // The snapshot's own count: what the partition has now may be another.
        let lacking = self.stored_items()?.saturating_sub(with);
        // The one with the largest number is on top, and goes when there are too many.
        let mut first: BinaryHeap<(u64, Bytes)> = BinaryHeap::new();
        let mut found = 0;
        let mut rows =
            self.snapshot().scan(Table::Items, orrery_storage::KeyRange::all(), Direction::Forward);
        while found < lacking
            && let Some(row) = rows.next_row().transpose().map_err(crate::error::Error::from)?
        {
            tick()?;
            let item = decode_item(row.value)?;
            if !part.is_missing(item.body()) {
                continue;
            }
            found += 1;
            if first.len() < items_max || first.peek().is_some_and(|last| item.number < last.0) {
                first.push((item.number, self.reference(&row.key)?));
            }
            if first.len() > items_max {
                first.pop();
            }
        }
        Ok(Lacking { more: found > first.len() as u64, items: first.into_sorted_vec() })
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
    fn inside(&self, mut lacking: Lacking, span: &Span) -> Result<Lacking> {
        if matches!(span, Span::All) {
            return Ok(lacking);
        }
        let mut inside = Vec::with_capacity(lacking.items.len());
        for (number, reference) in lacking.items.drain(..) {
            if self.is_inside(span, &reference)? {
                inside.push((number, reference));
            }
        }
        Ok(Lacking { items: inside, ..lacking })
    }
}
