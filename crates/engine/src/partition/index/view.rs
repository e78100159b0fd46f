//! What a query sees of a partition: one snapshot, which paths and composite indexes can be relied on in it, and the
//! items.
//!
//! ```text
//! let view = partition.open_view(&session)?;
//! match view.path(&[PathStep::Name("city")]) {
//!     IndexedPath::Entries(path) => view.entries(path, &ValueRange::equal(&"Oslo".into()), &Span::All, Forward, None),
//!     IndexedPath::NoItem        => nothing has it,
//!     IndexedPath::NotIndexed    => read the items,
//! }
//! ```
//!
//! Which rows can be relied on depends on the policies under which they were written, and these change while queries
//! run. A view looks before and after it takes its snapshot; when both looks agree, the snapshot holds only what was
//! written under these policies. Paths are looked up after that: every path of an item in the snapshot is known by
//! then.
//!
//! Entries of items that have expired or were purged stay until the sweeper has been there.
//! [`PartitionView::hides_nothing`] tells whether there can be any; if so, an entry counts only if its item does.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use orrery_index::{Cell, CompositeRange, Grid, ValueRange, prefix_end};
use orrery_model::{Epk, PartitionKey, PartitionKeyDefinition};
use orrery_query::Language;
use orrery_storage::{Direction, KeyRange, RowIterator, Snapshot, Table, keys};

use super::super::item_key::ItemKey;
use super::super::rows::{damaged, decode_borrowed, decode_detached};
use super::super::scan::{Span, starts_before};
use super::super::{Partition, PartitionCore, View, upkeep};
use super::entries::{self, Entries, Shape};
use super::graph::is_graph;
use super::paths::Found;
use super::scheme::{Composite, Scheme};
use super::search::{VectorForm, form_of};
use crate::container::Usage;
use crate::definition::{ContainerDefinition, PathStep};
use crate::error::Result;
use crate::item::{Item, Position};

/// How often a view tries to catch a moment between two changes of policy.
const LOOKS_MAX: usize = 3;

/// A path's number in one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PathNumber(u16);

/// What the index knows about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexedPath {
    /// Exactly the items in which the path is defined have entries.
    Entries(PathNumber),
    /// The path is indexed, and no item has it.
    NoItem,
    /// The index cannot tell; the items must be read.
    NotIndexed,
}

/// The cells of the shapes at a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpatialPath {
    path: Option<PathNumber>,
    pub grid: Grid,
    /// Whether there may be shapes in other than the smallest cells.
    pub larger: bool,
}

/// The words of the texts at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPath {
    path: Option<PathNumber>,
    language: Language,
}

impl TextPath {
    /// The number of the path; `None` where no item has it.
    pub(super) fn number(&self) -> Option<u16> {
        self.path.map(|path| path.0)
    }

    /// The language of the stems.
    pub fn language(&self) -> Language {
        self.language
    }
}

/// The vectors at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorPath {
    path: Option<PathNumber>,
    pub form: VectorForm,
    pub dimensions: usize,
    /// Whether the index is one that keeps a graph, which is asked for more candidates.
    pub is_graph: bool,
}

impl VectorPath {
    /// The number of the path, where an item has it.
    pub(super) fn path(&self) -> Option<u16> {
        self.path.map(|path| path.0)
    }
}

/// A consistent view of a partition for one page of a query.
pub struct PartitionView {
    pub(in crate::partition) shared: Arc<PartitionCore>,
    range_id: u32,
    min: Epk,
    max: Epk,
    view: View,
    snapshot: Box<dyn Snapshot>,
    scheme: Arc<Scheme>,
    /// Whether entries can be relied on at all.
    reliable: bool,
    usage: Usage,
}

impl Partition {
    /// The last published state, for a query. Refused when the session has seen more than there is.
    pub fn open_view(&self, session: &[(u32, u64)]) -> Result<PartitionView> {
        let view = self.view(session)?;
        let index = &self.shared.index;
        let mut scheme = index.scheme.load_full();
        let mut snapshot = self.snapshot()?;
        let mut settled = false;
        for _ in 0..LOOKS_MAX {
            let now = index.scheme.load_full();
            settled = Arc::ptr_eq(&now, &scheme);
            if settled {
                break;
            }
            scheme = now;
            snapshot = self.snapshot()?;
        }
        let unindexed = index.unindexed.load(Ordering::Acquire)
            && snapshot
                .scan(Table::Index, keys::index::unindexed_items(), Direction::Forward)
                .next_row()
                .transpose()?
                .is_some();
        Ok(PartitionView {
            shared: self.shared.clone(),
            range_id: self.range_id,
            min: self.min.clone(),
            max: self.max.clone(),
            view,
            snapshot,
            scheme,
            reliable: settled && !unindexed,
            usage: self.usage(),
        })
    }
}

impl PartitionView {
    /// Where the view stands in the partition's history.
    pub fn position(&self) -> Position {
        Position { range_id: self.range_id, lsn: self.view.lsn, item_lsn: 0, usage: self.usage }
    }

    /// Which partition this is, for as long as the process runs.
    pub(crate) fn identity(&self) -> u64 {
        self.shared.identity
    }

    /// Whether the partition has been closed meanwhile.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// The container's definition as of the view.
    pub fn definition(&self) -> &Arc<ContainerDefinition> {
        &self.scheme.definition
    }

    /// The range of the hash space, `[min, max)`.
    pub fn bounds(&self) -> (&Epk, &Epk) {
        (&self.min, &self.max)
    }

    /// How many items there are, with those that are over but not yet removed.
    pub fn item_count(&self) -> u64 {
        self.usage.items
    }

    pub(in crate::partition) fn snapshot(&self) -> &dyn Snapshot {
        self.snapshot.as_ref()
    }

    pub(super) fn key_definition(&self) -> &PartitionKeyDefinition {
        &self.scheme.definition.partition_key
    }

    /// What the index knows about a path.
    pub fn path(&self, steps: &[PathStep<'_>]) -> IndexedPath {
        if !self.reliable || !self.scheme.covers(steps.iter().copied()) {
            return IndexedPath::NotIndexed;
        }
        match self.shared.index.dictionary.read().find(steps.iter().copied()) {
            Found::Path(path) => IndexedPath::Entries(PathNumber(path)),
            Found::Absent => IndexedPath::NoItem,
            Found::Unknown => IndexedPath::NotIndexed,
        }
    }

    /// What the index knows about shapes at a path; `None` where the items must be read.
    pub fn spatial(&self, steps: &[PathStep<'_>]) -> Option<SpatialPath> {
        let (grid, larger) = self.scheme.spatial_at(steps.iter().copied()).filter(|_| self.reliable)?;
        let path = self.found(steps)?;
        Some(SpatialPath { path, grid, larger })
    }

    /// The number of a path; `Some(None)` when no item has it.
    fn found(&self, steps: &[PathStep<'_>]) -> Option<Option<PathNumber>> {
        match self.shared.index.dictionary.read().find(steps.iter().copied()) {
            Found::Path(path) => Some(Some(PathNumber(path))),
            Found::Absent => Some(None),
            Found::Unknown => None,
        }
    }

    /// Entries of the shapes in a range of cells.
    pub fn cell_entries(
        &self,
        spatial: &SpatialPath,
        (first, last): (Cell, Cell),
        span: &Span,
    ) -> Entries<'_> {
        let Some(path) = spatial.path else { return Entries::nothing(self) };
        let mut head = Vec::with_capacity(keys::index::HEAD_BYTES);
        keys::index::push_cell_head(&mut head, path.0);
        let (start, end) = (first.to_bytes(), prefix_end(&last.to_bytes()));
        let shape = Shape::Fixed(start.len());
        Entries::new(self, &head, (&start, &end), first == last, shape, span, Direction::Forward, None)
    }

    /// What the index knows about words in the texts at a path; `None` where the items must be read.
    pub fn text(&self, names: &[&str]) -> Option<TextPath> {
        let language = self.scheme.words_at(names).filter(|_| self.reliable)?;
        let steps: Vec<PathStep<'_>> = names.iter().map(|name| PathStep::Name(name)).collect();
        Some(TextPath { path: self.found(&steps)?, language })
    }

    /// Texts with a stem, in the order of their items. Their payloads say where it stands.
    pub fn word_entries(&self, text: &TextPath, stem: &str, span: &Span) -> Entries<'_> {
        let Some(path) = text.path else { return Entries::nothing(self) };
        let mut head = Vec::with_capacity(keys::index::HEAD_BYTES);
        keys::index::push_word_head(&mut head, path.0);
        let mut start = Vec::with_capacity(stem.len() + 1);
        orrery_index::encode_stem(&mut start, stem);
        let (end, shape) = (prefix_end(&start), Shape::Fixed(start.len()));
        Entries::new(self, &head, (&start, &end), true, shape, span, Direction::Forward, None)
    }

    /// All texts, in the order of their items. Their payloads say how long they are.
    pub fn length_entries(&self, text: &TextPath, span: &Span) -> Entries<'_> {
        let Some(path) = text.path else { return Entries::nothing(self) };
        let mut head = Vec::with_capacity(keys::index::HEAD_BYTES);
        keys::index::push_length_head(&mut head, path.0);
        let bounds = (&head[..], &prefix_end(&head)[..]);
        Entries::new(self, &[], bounds, true, Shape::Fixed(0), span, Direction::Forward, None)
    }

    /// What the index knows about vectors at a path; `None` where the items must be read.
    pub fn vectors(&self, names: &[&str]) -> Option<VectorPath> {
        let index = self.scheme.vectors_at(names).filter(|_| self.reliable)?;
        let steps: Vec<PathStep<'_>> = names.iter().map(|name| PathStep::Name(name)).collect();
        Some(VectorPath {
            path: self.found(&steps)?,
            form: form_of(index),
            dimensions: index.dimensions as usize,
            is_graph: is_graph(index),
        })
    }

    /// All vectors, in the order of their items. Their payloads are the vectors, or their codes.
    pub fn vector_entries(&self, vectors: &VectorPath, span: &Span) -> Entries<'_> {
        self.vector_entries_after(vectors, span, None)
    }

    /// The same from behind an item on.
    pub(super) fn vector_entries_after(
        &self,
        vectors: &VectorPath,
        span: &Span,
        after: Option<&[u8]>,
    ) -> Entries<'_> {
        let Some(path) = vectors.path else { return Entries::nothing(self) };
        let mut head = Vec::with_capacity(keys::index::HEAD_BYTES);
        match vectors.form {
            VectorForm::Whole(_) => keys::index::push_vector_head(&mut head, path.0),
            VectorForm::Coded(_) => keys::index::push_code_head(&mut head, path.0),
        }
        let after = after.map(|reference| [&head[..], reference].concat());
        let bounds = (&head[..], &prefix_end(&head)[..]);
        let shape = Shape::Fixed(0);
        Entries::new(self, &[], bounds, true, shape, span, Direction::Forward, after.as_deref())
    }

    /// How many words all texts of a span have, and how many rows were read to find out. What was found for the whole
    /// partition is good until something is written.
    pub fn total_words(&self, text: &TextPath, span: &Span) -> Result<(u64, u64)> {
        let known = match (span, text.path) {
            (Span::All, Some(path)) => Some(path.0),
            _ => None,
        };
        let totals = &self.shared.index.words;
        if let Some(path) = known
            && let Some((lsn, words)) = totals.lock().get(&path)
            && *lsn == self.view.lsn
        {
            return Ok((*words, 0));
        }
        let mut entries = self.length_entries(text, span);
        let mut words = 0;
        while let Some(entry) = entries.next_entry()? {
            if !entry.payload().is_empty() {
                let (length, _) =
                    orrery_index::count_places(entry.payload()).ok_or_else(|| damaged("length"))?;
                words += u64::from(length);
            }
        }
        if let Some(path) = known {
            totals.lock().insert(path, (self.view.lsn, words));
        }
        Ok((words, entries.rows_read()))
    }

    /// Whether an item has a text at a path.
    pub fn has_text(&self, text: &TextPath, reference: &[u8]) -> Result<bool> {
        let Some(path) = text.path else { return Ok(false) };
        let mut key = Vec::with_capacity(keys::index::HEAD_BYTES + reference.len());
        keys::index::push_length_head(&mut key, path.0);
        key.extend_from_slice(reference);
        Ok(self.snapshot.get(Table::Index, &key)?.is_some_and(|row| !row.is_empty()))
    }

    /// The composite indexes that have an entry for every item.
    pub fn composites(&self) -> Vec<Composite> {
        if self.reliable { self.scheme.readable_composites() } else { Vec::new() }
    }

    /// Entries of a path in the order of their values, then of their items. `after` is the position of an entry: the
    /// scan goes on behind it.
    pub fn entries(
        &self,
        path: PathNumber,
        range: &ValueRange,
        span: &Span,
        direction: Direction,
        after: Option<&[u8]>,
    ) -> Entries<'_> {
        if range.is_empty() {
            return Entries::nothing(self);
        }
        let mut head = Vec::with_capacity(keys::index::HEAD_BYTES);
        keys::index::push_value_head(&mut head, path.0);
        let bounds = (&range.start[..], &range.end[..]);
        Entries::new(self, &head, bounds, range.is_point(), Shape::Value, span, direction, after)
    }

    /// Whether an item has an entry with one value at a path.
    pub fn has_entry(&self, path: PathNumber, value: &ValueRange, reference: &[u8]) -> Result<bool> {
        let mut key = Vec::with_capacity(keys::index::HEAD_BYTES + value.start.len() + reference.len());
        keys::index::push_value_head(&mut key, path.0);
        key.extend_from_slice(&value.start);
        key.extend_from_slice(reference);
        Ok(self.snapshot.get(Table::Index, &key)?.is_some())
    }

    /// Entries of a composite index, in its order.
    pub fn composite_entries(
        &self,
        composite: &Composite,
        range: &CompositeRange,
        span: &Span,
        direction: Direction,
        after: Option<&[u8]>,
    ) -> Entries<'_> {
        let mut head = Vec::with_capacity(keys::index::HEAD_BYTES);
        keys::index::push_composite_head(&mut head, composite.number);
        let shape = Shape::Composite(composite.descending());
        let bounds = (&range.start[..], &range.end[..]);
        Entries::new(self, &head, bounds, range.is_point(), shape, span, direction, after)
    }

    /// Whether every entry's item counts: nothing has expired or was purged without being removed yet. A count of
    /// entries is then a count of items.
    pub fn hides_nothing(&self) -> Result<bool> {
        if !self.view.purges.is_empty() {
            return Ok(false);
        }
        match self.view.default_ttl {
            None => Ok(true),
            Some(ttl) => upkeep::nothing_is_over(self.snapshot(), ttl, self.view.now_s),
        }
    }

    /// Whether an item lies in a span.
    pub fn is_inside(&self, span: &Span, reference: &[u8]) -> Result<bool> {
        entries::is_inside(self, span, reference)
    }

    /// The key of the item that an entry refers to.
    pub fn item_key(&self, reference: &[u8]) -> Result<Bytes> {
        let key = || {
            let encoded = keys::index::reference_partition_key(reference)?;
            keys::index::referenced(self.key_definition().effective_encoded(&encoded)?.as_bytes(), reference)
        };
        key().ok_or_else(|| damaged("index"))
    }

    /// What entries call the item with a key.
    pub fn reference_of(&self, key: &[u8]) -> Result<Bytes> {
        let reference = || {
            let epk = keys::ItemKey::decode(key)?.epk;
            Some(keys::index::reference(&epk, key).into())
        };
        reference().ok_or_else(|| damaged("index"))
    }

    /// The item that an entry refers to; `None` when it is over or purged.
    pub fn referenced_item(&self, reference: &[u8]) -> Result<Option<Item>> {
        let key = self.item_key(reference)?;
        let row = self.snapshot.get(Table::Items, &key)?;
        // Entries and items change in the same commits.
        let item = decode_detached(row.ok_or_else(|| damaged("index"))?)?;
        Ok(Some(item).filter(|item| self.view.shows_row(&key, item)))
    }

    /// The item under a key in `Table::Items`; `None` when there is none that counts.
    pub fn item(&self, key: &[u8]) -> Result<Option<Item>> {
        let item = self.snapshot.get(Table::Items, key)?.map(decode_detached).transpose()?;
        Ok(item.filter(|item| self.view.shows_row(key, item)))
    }

    /// The item with an id in a logical partition.
    pub fn item_by_id(&self, epk: &Epk, key: &PartitionKey, id: &str) -> Result<Option<Item>> {
        self.item(&ItemKey::new(epk, key, id).key)
    }

    /// Items of a span in the order of their keys, from behind `after` on.
    pub fn items(&self, span: &Span, after: Option<&[u8]>) -> Items<'_> {
        self.items_between(span, after.map(|after| Bound::Excluded(Bytes::copy_from_slice(after))))
    }

    /// Items of a span in the order of their keys, from a key on.
    pub fn items_from(&self, span: &Span, from: &[u8]) -> Items<'_> {
        self.items_between(span, Some(Bound::Included(Bytes::copy_from_slice(from))))
    }

    /// Shows all items of a span, in the order of their keys, to a visitor that keeps none of them, until it has seen
    /// enough.
    pub fn visit_items(&self, span: &Span, visit: &mut ItemVisit<'_>) -> Result<()> {
        let mut failed = None;
        let mut look = |key: &[u8], row: &[u8]| match decode_borrowed(row) {
            Ok((item, document)) if self.view.shows_row(key, &item) => visit(key, &item, document),
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        };
        self.snapshot.visit(Table::Items, items_range(span), &mut look)?;
        failed.map_or(Ok(()), Err)
    }

    fn items_between(&self, span: &Span, start: Option<Bound<Bytes>>) -> Items<'_> {
        let mut range = items_range(span);
        // A position comes from outside; it never widens the span.
        if let Some(start) = start
            && let Bound::Included(key) | Bound::Excluded(key) = &start
            && starts_before(&range, key)
        {
            range.start = start;
        }
        Items { view: self, rows: self.snapshot.scan(Table::Items, range, Direction::Forward) }
    }
}

/// Sees the key of an item, the item without its document, and the document.
pub type ItemVisit<'v> = dyn FnMut(&[u8], &Item, &[u8]) -> ControlFlow<()> + 'v;

pub(in crate::partition) fn items_range(span: &Span) -> KeyRange {
    match span {
        Span::All => KeyRange::all(),
        Span::Epk { min, max } => keys::items_in_epk_range(min.as_bytes(), max.as_bytes()),
        Span::Key { epk, key } => KeyRange::prefix(&ItemKey::new(epk, key, "").key),
    }
}

/// Items in the order of their keys.
pub struct Items<'v> {
    view: &'v PartitionView,
    rows: Box<dyn RowIterator>,
}

impl Items<'_> {
    /// The next item that counts, with its key.
    pub fn next_item(&mut self) -> Result<Option<(Bytes, Item)>> {
        while let Some(row) = self.rows.next_row().transpose()? {
            let item = decode_detached(row.value)?;
            if self.view.view.shows_row(&row.key, &item) {
                return Ok(Some((row.key, item)));
            }
        }
        Ok(None)
    }
}
