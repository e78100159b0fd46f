//! From two versions of an item to the index rows that differ, and what that costs.
//!
//! Both documents are walked side by side in their stored form. Where their bytes are equal nothing can differ and
//! nothing is looked at; elsewhere entries are written into one buffer and compared. A version that is not there
//! makes the walk a create or a delete.
//!
//! Outside of arrays a place holds one value, so the entries of the two versions are compared on the spot. The
//! elements of an array share their place: two elements may have the same entry, and taking one away must not take
//! the entry away. There the entries of both versions are collected, sorted, and compared as sets.
//!
//! What has an entry: every place that the policy indexes, with the value that is there; arrays and objects with
//! content too, by their kind, so that an indexed path has an entry for every item in which it is defined. Besides,
//! `id` always, the time of the write as `_ts`, and one entry for each composite index.
//!
//! *Terms* are what writes are charged for (see `charge`). They follow the entries, but not one to one: a scalar counts
//! twice (its path and its value), and an array or object with content counts although only its kind has an entry.

use orrery_index as encoding;
use orrery_model::{DEPTH_MAX, Kind, Raw, Value};
use orrery_storage::keys;

use super::paths::{self, Paths, ROOT};
use crate::definition::{CompositePath, IndexingMode, IndexingPolicy, PathStep, PolicyCursor};

/// Index entries of one item may take this much; an item with more has none (see `unindexed`).
pub(super) const ITEM_INDEX_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Rows that an update of a few values takes out and puts in.
const USUAL_ROWS: usize = 8;

/// Members that the walk takes from the item's header.
pub(super) const TIME: &str = "_ts";
/// Indexed whatever the policy says.
const ID: &str = "id";

/// One version of an item, as the index sees it.
#[derive(Clone, Copy)]
pub(super) struct Version<'d> {
    pub(super) body: Raw<'d>,
    pub(super) ts: u32,
}

/// What the rows are made under.
#[derive(Clone, Copy)]
pub(super) struct Layout<'p> {
    pub(super) policy: &'p IndexingPolicy,
    /// The numbers of the policy's composite indexes, in its order.
    pub(super) composites: &'p [u16],
}

/// Rows that differ, in one buffer.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) bytes: Vec<u8>,
    pub(super) changes: Vec<RowChange>,
    /// Terms to take out or put in, without those of the time of the write.
    pub(super) terms: usize,
}

#[derive(Clone, Copy)]
pub(super) struct RowChange {
    /// Where the key ends in the buffer; it starts where the one before ended.
    pub(super) end: usize,
    pub(super) put: bool,
}

pub(super) struct Walk<'w, 'd> {
    paths: Paths<'d>,
    reference: &'w [u8],
    /// Without rows only terms are counted.
    with_rows: bool,
    rows: Rows,
}

impl<'w, 'd> Walk<'w, 'd> {
    /// The rows that lead from one version to another of the item with this reference.
    pub(super) fn rows(
        layout: Layout<'_>,
        paths: Paths<'d>,
        reference: &'w [u8],
        old: Option<Version<'_>>,
        new: Option<Version<'_>>,
    ) -> Rows {
        // Most updates fit; a create grows the buffers once or twice.
        let bytes = Vec::with_capacity(USUAL_ROWS * (reference.len() + 16));
        let rows = Rows { bytes, changes: Vec::with_capacity(USUAL_ROWS), terms: 0 };
        let mut walk = Walk { paths, reference, with_rows: true, rows };
        walk.run(layout, old, new);
        walk.rows
    }

    /// The terms alone.
    pub(super) fn terms(
        layout: Layout<'_>,
        paths: Paths<'d>,
        old: Option<Version<'_>>,
        new: Option<Version<'_>>,
    ) -> usize {
        let mut walk = Walk { paths, reference: &[], with_rows: false, rows: Rows::default() };
        walk.run(layout, old, new);
        walk.rows.terms
    }

    fn run(&mut self, layout: Layout<'_>, old: Option<Version<'_>>, new: Option<Version<'_>>) {
        if layout.policy.mode == IndexingMode::None {
            return;
        }
        let cursor = layout.policy.cursor();
        if let (Some(old), Some(new)) = (old, new)
            && old.body.same_bytes(new.body)
        {
            // Only the time differs.
        } else {
            self.members(old.map(|old| old.body), new.map(|new| new.body), ROOT, cursor, 1);
        }
        let ts = |version: Option<Version<'_>>| version.map(|version| version.ts);
        if self.with_rows && ts(old) != ts(new) && cursor.name(TIME).indexes_scalar() {
            let path = self.paths.child(ROOT, PathStep::Name(TIME));
            for (version, put) in [(old, false), (new, true)] {
                if let Some(version) = version {
                    self.row(path, put, |bytes| encoding::encode_value(bytes, &time(version)));
                }
            }
        }
        for (composite, number) in layout.policy.composite.iter().zip(layout.composites) {
            self.composite(composite, *number, old, new);
        }
    }

    /// The members of an object. The two versions mostly have the same members in the same order.
    fn members(
        &mut self,
        old: Option<Raw<'_>>,
        new: Option<Raw<'_>>,
        node: u32,
        cursor: PolicyCursor<'_>,
        depth: usize,
    ) {
        let (mut left, mut right) = (old.map(Raw::members), new.map(Raw::members));
        let mut next = || {
            (
                left.as_mut().and_then(|members| members.next()),
                right.as_mut().and_then(|members| members.next()),
            )
        };
        loop {
            match next() {
                (None, None) => return,
                (Some((name, was)), Some((other, is))) if name == other => {
                    self.member(name, Some(was), Some(is), node, cursor, depth);
                }
                (mut was, mut is) => {
                    // From here on the orders differ; members are looked up by name.
                    while was.is_some() || is.is_some() {
                        if let Some((name, is)) = is {
                            let was = old.and_then(|old| old.get(name));
                            self.member(name, was, Some(is), node, cursor, depth);
                        }
                        if let Some((name, was)) = was
                            && new.is_none_or(|new| new.get(name).is_none())
                        {
                            self.member(name, Some(was), None, node, cursor, depth);
                        }
                        (was, is) = next();
                    }
                    return;
                }
            }
        }
    }

    fn member(
        &mut self,
        name: &str,
        old: Option<Raw<'_>>,
        new: Option<Raw<'_>>,
        node: u32,
        cursor: PolicyCursor<'_>,
        depth: usize,
    ) {
        if let (Some(old), Some(new)) = (old, new)
            && old.same_bytes(new)
        {
            return;
        }
        let cursor = cursor.name(name);
        let always = depth == 1 && name == ID;
        if !always && !cursor.indexes_inside() && !cursor.indexes_scalar() || depth == 1 && name == TIME {
            return;
        }
        let path = self.paths.child(node, PathStep::Name(name));
        self.place(path, old, new, cursor, always, depth);
    }

    /// One place of the item that is not inside an array.
    fn place(
        &mut self,
        path: u32,
        old: Option<Raw<'_>>,
        new: Option<Raw<'_>>,
        cursor: PolicyCursor<'_>,
        always: bool,
        depth: usize,
    ) {
        let (indexed, inside) = (cursor.indexes_scalar(), cursor.indexes_inside());
        let (old_filled, new_filled) = (old.filter(is_filled), new.filter(is_filled));
        if (indexed || always) && (old_filled.is_none() || new_filled.is_none() || kinds_differ(old, new)) {
            let changed = self.entries(path, old, new);
            if indexed {
                let leaves = [old, new].into_iter().flatten().filter(|value| !is_filled(value)).count();
                // The path's own term stays when a scalar follows a scalar.
                self.rows.terms += match leaves {
                    2 if changed => 2,
                    2 => 0,
                    leaves => 2 * leaves,
                };
            }
        }
        if depth > DEPTH_MAX || !inside {
            return;
        }
        if old_filled.is_some() != new_filled.is_some() {
            self.rows.terms += if depth > 1 { 2 } else { 1 };
        }
        let of_kind = |value: Option<Raw<'_>>, kind| value.is_some_and(|value| value.kind() == kind);
        let objects = (
            old_filled.filter(|_| of_kind(old_filled, Kind::Object)),
            new_filled.filter(|_| of_kind(new_filled, Kind::Object)),
        );
        if objects.0.is_some() || objects.1.is_some() {
            self.members(objects.0, objects.1, path, cursor, depth + 1);
        }
        let arrays = (
            old_filled.filter(|_| of_kind(old_filled, Kind::Array)),
            new_filled.filter(|_| of_kind(new_filled, Kind::Array)),
        );
        if arrays.0.is_some() || arrays.1.is_some() {
            self.array(path, arrays, cursor, depth);
        }
    }

    /// Writes the entries of both versions of a place, unless they are equal. Returns whether they differ.
    fn entries(&mut self, path: u32, old: Option<Raw<'_>>, new: Option<Raw<'_>>) -> bool {
        let start = self.rows.bytes.len();
        let count = self.rows.changes.len();
        let mut values = [start..start, start..start];
        for (at, (version, put)) in [(old, false), (new, true)].into_iter().enumerate() {
            if let Some(value) = version {
                values[at] = self.row(path, put, |bytes| encoding::encode_raw(bytes, value));
            }
        }
        let [old_value, new_value] = values;
        let bytes = &self.rows.bytes;
        let equal = old.is_some() && new.is_some() && bytes[old_value] == bytes[new_value];
        if equal || !self.with_rows || paths::stored(path).is_none() {
            self.rows.bytes.truncate(start);
            self.rows.changes.truncate(count);
        }
        !equal
    }

    /// Appends a row; returns where its value lies.
    fn row(&mut self, path: u32, put: bool, value: impl FnOnce(&mut Vec<u8>)) -> std::ops::Range<usize> {
        let bytes = &mut self.rows.bytes;
        // A place without rows gets a number here that the caller takes away again.
        keys::index::push_value_head(bytes, paths::stored(path).unwrap_or_default());
        let start = bytes.len();
        value(bytes);
        let range = start..bytes.len();
        bytes.extend_from_slice(self.reference);
        let end = bytes.len();
        self.rows.changes.push(RowChange { end, put });
        range
    }

    fn array(
        &mut self,
        path: u32,
        (old, new): (Option<Raw<'_>>, Option<Raw<'_>>),
        cursor: PolicyCursor<'_>,
        depth: usize,
    ) {
        let cursor = cursor.element();
        let mut collect = |array: Option<Raw<'_>>| {
            let mut set = Entries::default();
            if let Some(array) = array {
                let element = self.paths.child(path, PathStep::Element);
                for value in array.elements() {
                    set.collect(&mut self.paths, element, value, cursor, depth + 1);
                }
            }
            set.sort();
            set
        };
        let (old, new) = (collect(old), collect(new));
        self.compare(&old, &new);
    }

    /// Rows and terms by which two sets of entries differ.
    fn compare(&mut self, old: &Entries, new: &Entries) {
        let (mut left, mut right) = (old.list.iter().peekable(), new.list.iter().peekable());
        let mut group = Group::default();
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(a), Some(b)) => old.bytes_of(a).cmp(new.bytes_of(b)),
            };
            let was = if order.is_le() { left.next() } else { None };
            let is = if order.is_ge() { right.next() } else { None };
            let Some(entry) = was.or(is) else { break };
            if group.path != entry.path {
                self.rows.terms += group.terms();
                group = Group { path: entry.path, ..Group::default() };
            }
            group.note(0, was);
            group.note(1, is);
            if was.is_some() && is.is_some() {
                continue;
            }
            if entry.leaf {
                self.rows.terms += 1;
            }
            if let (true, true, Some(path)) = (entry.row, self.with_rows, paths::stored(entry.path)) {
                let set = if was.is_some() { old } else { new };
                let bytes = &mut self.rows.bytes;
                keys::index::push_value_head(bytes, path);
                bytes.extend_from_slice(&set.bytes_of(entry)[PATH_BYTES..]);
                bytes.extend_from_slice(self.reference);
                self.rows.changes.push(RowChange { end: bytes.len(), put: is.is_some() });
            }
        }
        self.rows.terms += group.terms();
    }

    fn composite(
        &mut self,
        composite: &[CompositePath],
        number: u16,
        old: Option<Version<'_>>,
        new: Option<Version<'_>>,
    ) {
        if let (Some(old), Some(new)) = (old, new)
            && composite.iter().all(|part| is_unchanged(part, old, new))
        {
            return;
        }
        let start = self.rows.bytes.len();
        let mut ends = [start; 2];
        for (at, version) in [old, new].into_iter().enumerate() {
            if let Some(version) = version {
                let bytes = &mut self.rows.bytes;
                keys::index::push_composite_head(bytes, number);
                for part in composite {
                    match part.path.segments() {
                        [name] if name == TIME => {
                            encoding::encode_component_value(bytes, &time(version), part.descending);
                        }
                        _ => {
                            let value = version.body.path(&part.path);
                            encoding::encode_component(bytes, value, part.descending);
                        }
                    }
                }
                bytes.extend_from_slice(self.reference);
            }
            ends[at] = self.rows.bytes.len();
        }
        let bytes = &self.rows.bytes;
        let equal = bytes[start..ends[0]] == bytes[ends[0]..ends[1]];
        if !equal {
            let versions = usize::from(old.is_some()) + usize::from(new.is_some());
            self.rows.terms += versions * composite.len();
        }
        if equal || !self.with_rows {
            self.rows.bytes.truncate(start);
            return;
        }
        for (version, end, put) in [(old, ends[0], false), (new, ends[1], true)] {
            if version.is_some() {
                self.rows.changes.push(RowChange { end, put });
            }
        }
    }
}

/// Whether a component of a composite index is the same in both versions, as far as their bytes tell.
fn is_unchanged(part: &CompositePath, old: Version<'_>, new: Version<'_>) -> bool {
    match part.path.segments() {
        [name] if name == TIME => old.ts == new.ts,
        _ => match (old.body.path(&part.path), new.body.path(&part.path)) {
            (Some(old), Some(new)) => old.same_bytes(new),
            (None, None) => true,
            _ => false,
        },
    }
}

/// Bytes of a path's number at the front of a collected entry.
const PATH_BYTES: usize = 4;

/// The entries below an array, as a set.
#[derive(Default)]
struct Entries {
    bytes: Vec<u8>,
    list: Vec<Entry>,
}

struct Entry {
    start: usize,
    end: usize,
    path: u32,
    /// A scalar, or an empty array or object.
    leaf: bool,
    /// Whether there is a row for it, or only terms.
    row: bool,
}

impl Entries {
    fn bytes_of(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.start..entry.end]
    }

    fn collect(
        &mut self,
        paths: &mut Paths<'_>,
        path: u32,
        value: Raw<'_>,
        cursor: PolicyCursor<'_>,
        depth: usize,
    ) {
        let filled = is_filled(&value);
        let (row, inside) = (cursor.indexes_scalar(), cursor.indexes_inside() && depth <= DEPTH_MAX);
        if row || filled && inside {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(&path.to_be_bytes());
            encoding::encode_raw(&mut self.bytes, value);
            self.list.push(Entry { start, end: self.bytes.len(), path, leaf: !filled, row });
        }
        if !filled || !inside {
            return;
        }
        if value.kind() == Kind::Array {
            let (element, cursor) = (paths.child(path, PathStep::Element), cursor.element());
            for value in value.elements() {
                self.collect(paths, element, value, cursor, depth + 1);
            }
        } else {
            for (name, member) in value.members() {
                let cursor = cursor.name(name);
                if cursor.indexes_scalar() || cursor.indexes_inside() {
                    let path = paths.child(path, PathStep::Name(name));
                    self.collect(paths, path, member, cursor, depth + 1);
                }
            }
        }
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        let of = |entry: &Entry| &bytes[entry.start..entry.end];
        self.list.sort_unstable_by(|a, b| of(a).cmp(of(b)));
        self.list.dedup_by(|a, b| of(a) == of(b));
    }
}

/// What a path has in either version, for the terms that are counted once per path.
#[derive(Default)]
struct Group {
    path: u32,
    leaf: [bool; 2],
    filled: [bool; 2],
}

impl Group {
    fn note(&mut self, version: usize, entry: Option<&Entry>) {
        if let Some(entry) = entry {
            self.leaf[version] |= entry.leaf;
            self.filled[version] |= !entry.leaf;
        }
    }

    fn terms(&self) -> usize {
        // Below an array a filled array or object always counts as a deep one.
        usize::from(self.leaf[0] != self.leaf[1]) + 2 * usize::from(self.filled[0] != self.filled[1])
    }
}

fn time(version: Version<'_>) -> Value {
    Value::from(i64::from(version.ts))
}

fn is_filled(value: &Raw<'_>) -> bool {
    matches!(value.kind(), Kind::Object | Kind::Array) && !value.is_empty()
}

fn kinds_differ(old: Option<Raw<'_>>, new: Option<Raw<'_>>) -> bool {
    old.map(Raw::kind) != new.map(Raw::kind)
}
