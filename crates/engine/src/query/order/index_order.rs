//! Walking an index in the order that a query sorts by.
//!
//! Entries come by value; those of one value are a *run*, whose items come by number, so that a client which goes on
//! by value and resource id misses nothing. Entries that do not tell their value (long strings, arrays, objects) make
//! a run of all that cannot be told apart, and the items decide. A very long run is not worth loading for one page:
//! the query then sorts in memory.

use bytes::Bytes;
use orrery_index::{CompositeRange, ValueRange, is_exact, prefix_end, split, split_component};
use orrery_model::{Kind, Raw, Value};
use orrery_query::pushdown::{Filter, Place, Scan, Step};
use orrery_query::{Prepared, SortPosition};
use orrery_storage::Direction;

use crate::item::Item;
use crate::partition::Span;
use crate::partition::index::{Composite, Entries, Entry, IndexedPath, PartitionView, PathNumber};
use crate::query::access_path::lookup::indexed;

/// An index whose order is the query's.
pub(super) struct IndexOrder {
    kind: OrderKind,
    direction: Direction,
    /// The path whose items without an entry come before or after all others, and have to be looked for.
    pub misses_undefined: Option<Missed>,
    /// The filter holds for every entry that is walked.
    pub filtered: bool,
    /// The walked index, for people.
    pub text: String,
}

/// Items without an entry: of which path, and on which side of the others they come.
pub(super) struct Missed {
    pub path: PathNumber,
    pub names: Vec<String>,
    pub first: bool,
}

enum OrderKind {
    Path {
        path: PathNumber,
        place: Place,
        range: ValueRange,
    },
    /// `fixed` components have one value, the next `sorted` ones are the query's keys, the first of them within
    /// `first`.
    Composite {
        composite: Composite,
        range: CompositeRange,
        fixed: usize,
        sorted: usize,
        points: Vec<ValueRange>,
        first: ValueRange,
    },
}

/// The walk for a query's ORDER BY, if there is one.
pub(super) fn find(prepared: &Prepared, filter: &Filter, view: &PartitionView) -> Option<IndexOrder> {
    let keys = prepared.order_paths();
    if keys.is_empty() || keys.len() != prepared.order_count() {
        return None;
    }
    composite(&keys, filter, view).or_else(|| single(&keys, filter, view))
}

fn place_of(path: &[String]) -> Place {
    Place(path.iter().cloned().map(Step::Name).collect())
}

fn single(keys: &[(Vec<String>, bool)], filter: &Filter, view: &PartitionView) -> Option<IndexOrder> {
    let [(path, descending)] = keys else { return None };
    let place = place_of(path);
    let IndexedPath::Entries(number) = indexed(view, &place) else { return None };
    let defined = filter.defines(&place) || is_always_defined(path);
    // Undefined comes before everything.
    let missed = Missed { path: number, names: path.clone(), first: !descending };
    let range = match own_ranges(filter, &place) {
        Some(ranges) => all_of(ranges)?,
        None => ValueRange::defined(),
    };
    let filtered = matches!(filter, Filter::Scan(_)) && is_implied(filter, &[], &place, &range);
    Some(IndexOrder {
        direction: if *descending { Direction::Reverse } else { Direction::Forward },
        misses_undefined: (!defined).then_some(missed),
        filtered,
        text: format!("{place}{}", if *descending { " descending" } else { "" }),
        kind: OrderKind::Path { path: number, place, range },
    })
}

/// Members that every item has.
fn is_always_defined(path: &[String]) -> bool {
    matches!(path, [name] if name == "_ts" || name == "id")
}

/// The ranges that a filter leaves at a place.
fn own_ranges<'f>(filter: &'f Filter, place: &Place) -> Option<&'f [ValueRange]> {
    match filter {
        Filter::Scan(scan) if scan.place == *place && place.is_single() => Some(&scan.ranges),
        Filter::All(parts) => parts.iter().find_map(|part| own_ranges(part, place)),
        _ => None,
    }
}

/// One range that covers a list of them in order.
fn all_of(ranges: &[ValueRange]) -> Option<ValueRange> {
    if let [range] = ranges {
        return Some(range.clone());
    }
    Some(ValueRange::of_bytes(ranges.first()?.start.clone(), ranges.last()?.end.clone()))
}

/// The one value that a filter fixes at a place.
fn point_at(filter: &Filter, path: &[String]) -> Option<ValueRange> {
    match own_ranges(filter, &place_of(path))? {
        [range] if range.is_point() => Some(range.clone()),
        _ => None,
    }
}

fn composite(keys: &[(Vec<String>, bool)], filter: &Filter, view: &PartitionView) -> Option<IndexOrder> {
    let mut best: Option<IndexOrder> = None;
    let mut best_fixed = 0;
    for index in view.composites() {
        let names: Vec<&[String]> = index.paths.iter().map(|part| part.path.segments()).collect();
        for fixed in (0..index.paths.len()).rev() {
            let Some(sorted) = index.paths.get(fixed..fixed + keys.len()) else { continue };
            let turned = sorted.first().zip(keys.first()).is_some_and(|(part, key)| part.descending != key.1);
            let fits = sorted.iter().zip(keys).all(|(part, (path, descending))| {
                part.path.segments() == &path[..] && (part.descending != *descending) == turned
            });
            // A composite index of which only the first component is used orders no better than that path's own.
            if !fits || (fixed == 0 && keys.len() == 1) {
                continue;
            }
            let points: Option<Vec<ValueRange>> =
                names[..fixed].iter().map(|path| point_at(filter, path)).collect();
            let Some(points) = points else { continue };
            if points.iter().any(|point| !is_exact(&point.start)) || (best.is_some() && fixed <= best_fixed) {
                continue;
            }
            let Some(place) = keys.first().map(|(path, _)| place_of(path)) else { continue };
            let first = own_ranges(filter, &place).and_then(all_of).unwrap_or_else(ValueRange::all);
            let mut ranges = points.clone();
            ranges.push(first.clone());
            let Some(range) = CompositeRange::new(&ranges, &index.descending()) else { continue };
            let filtered = is_implied(filter, &names[..fixed], &place, &first);
            let text = format!(
                "composite ({}){}",
                index.paths.iter().map(|part| part.path.to_string()).collect::<Vec<_>>().join(", "),
                if turned { " backwards" } else { "" }
            );
            best_fixed = fixed;
            best = Some(IndexOrder {
                kind: OrderKind::Composite {
                    composite: index.clone(),
                    range,
                    fixed,
                    sorted: keys.len(),
                    points,
                    first,
                },
                direction: if turned { Direction::Reverse } else { Direction::Forward },
                misses_undefined: None,
                filtered,
                text,
            });
        }
    }
    best
}

/// Whether a filter says nothing but that the places `fixed` have one value each and that the one at `place` is in a
/// range.
fn is_implied(filter: &Filter, fixed: &[&[String]], place: &Place, range: &ValueRange) -> bool {
    match filter {
        Filter::Scan(scan) => {
            let is_fixed = || fixed.iter().any(|path| place_of(path) == scan.place);
            let is_range = scan.place == *place && scan.ranges == std::slice::from_ref(range);
            scan.exact && scan.check.is_none() && (is_range || is_fixed())
        }
        Filter::All(parts) => parts.iter().all(|part| is_implied(part, fixed, place, range)),
        _ => false,
    }
}

impl IndexOrder {
    /// Whether a condition holds for all entries that are walked.
    pub fn holds(&self, scan: &Scan) -> bool {
        let is = |place: &Place, range: &ValueRange| {
            scan.check.is_none() && scan.place == *place && scan.ranges == std::slice::from_ref(range)
        };
        match &self.kind {
            OrderKind::Path { place, range, .. } => is(place, range),
            OrderKind::Composite { composite, fixed, points, first, .. } => {
                let places = composite.paths.iter().map(|part| place_of(part.path.segments()));
                let ranges = points.iter().chain(std::iter::once(first));
                places.take(fixed + 1).zip(ranges).any(|(place, range)| is(&place, range))
            }
        }
    }

    /// The entries from a position on.
    pub fn entries<'v>(
        &self,
        view: &'v PartitionView,
        span: &Span,
        after: Option<&SortPosition>,
    ) -> Entries<'v> {
        match &self.kind {
            OrderKind::Path { path, range, .. } => {
                let mut range = range.clone();
                if let Some(key) = after.and_then(|after| after.keys.first()) {
                    range = self.rest(range, key);
                }
                view.entries(*path, &range, span, self.direction, None)
            }
            OrderKind::Composite { composite, range, fixed, points, first, .. } => {
                let mut rest = after.and_then(|after| after.keys.first()).and_then(|key| {
                    let turned =
                        composite.paths.get(*fixed)?.descending != (self.direction == Direction::Reverse);
                    let mut ranges = points.clone();
                    ranges.push(rest_of(first.clone(), key, turned));
                    CompositeRange::new(&ranges, &composite.descending())
                });
                if let (Some(rest), Some(after)) = (&mut rest, after)
                    && self.direction == Direction::Forward
                    && composite.paths.iter().all(|part| !part.descending)
                    && after.keys.first().is_some_and(|key| first.start <= ValueRange::equal(key).start)
                {
                    begin_deeper(&mut rest.start, &after.keys);
                }
                let range = rest.as_ref().unwrap_or(range);
                view.composite_entries(composite, range, span, self.direction, None)
            }
        }
    }

    /// The values of a single path that are walked from a position on, and whether they come from the last.
    pub fn values(&self, after: Option<&SortPosition>) -> Option<(ValueRange, bool)> {
        let OrderKind::Path { range, .. } = &self.kind else { return None };
        let key = after.and_then(|after| after.keys.first());
        let range = key.map_or_else(|| range.clone(), |key| self.rest(range.clone(), key));
        Some((range, self.direction == Direction::Reverse))
    }

    fn rest(&self, range: ValueRange, key: &Value) -> ValueRange {
        rest_of(range, key, self.direction == Direction::Reverse)
    }

    /// What all entries of a run begin with.
    pub fn run_of<'e>(&self, entry: &'e Entry) -> &'e [u8] {
        let value = entry.value();
        match &self.kind {
            OrderKind::Path { .. } => undecided_start(value).unwrap_or(value),
            OrderKind::Composite { composite, fixed, sorted, .. } => {
                let mut rest = value;
                for part in composite.paths.iter().take(fixed + sorted) {
                    let Some((component, behind)) = split_component(rest, part.descending) else {
                        return value;
                    };
                    let start = value.len() - rest.len();
                    if let Some(shared) = undecided_start(&component.encoded()) {
                        return &value[..start + shared.len()];
                    }
                    rest = behind;
                }
                &value[..value.len() - rest.len()]
            }
        }
    }
}

/// Moves a start at the first key on to the keys after it, so that entries which share the first key are not gone
/// through again.
fn begin_deeper(start: &mut Vec<u8>, keys: &[Value]) {
    for pair in keys.windows(2) {
        // What follows a value that its entry does not tell is in no order.
        if !is_exact(&ValueRange::equal(&pair[0]).start) {
            return;
        }
        let next = ValueRange::equal(&pair[1]).start;
        start.extend_from_slice(undecided_start(&next).unwrap_or(&next));
    }
}

/// What the range of a component keeps from a key on, with the key itself.
fn rest_of(range: ValueRange, key: &Value, descending: bool) -> ValueRange {
    let at = ValueRange::equal(key).start;
    let at = undecided_start(&at).map_or(at.clone(), <[u8]>::to_vec);
    if descending {
        ValueRange::of_bytes(range.start, prefix_end(&at).min(range.end))
    } else {
        ValueRange::of_bytes(at.max(range.start), range.end)
    }
}

/// Of an entry that does not tell its value: what it shares with those it cannot be told apart from. Cut strings, and
/// what else is cut, end in a hash, by which they are in no particular order.
fn undecided_start(encoded: &[u8]) -> Option<&[u8]> {
    const CUT_HASH_BYTES: usize = 4;
    if is_exact(encoded) || split(encoded).is_none() {
        return None;
    }
    match orrery_index::kind_of(encoded) {
        Some(Kind::String | Kind::Regex | Kind::Code | Kind::Binary) => {
            encoded.len().checked_sub(CUT_HASH_BYTES).map(|end| &encoded[..end])
        }
        _ => Some(encoded),
    }
}

/// The sort keys of an item, by which a run is put in order.
pub(super) fn keys_of(item: &Item, paths: &[(Vec<String>, bool)]) -> Vec<Value> {
    keys_in(item, item.body(), paths)
}

/// The same of a document that lies elsewhere.
pub(super) fn keys_in(item: &Item, document: Raw<'_>, paths: &[(Vec<String>, bool)]) -> Vec<Value> {
    let key = |path: &[String]| match path {
        [name] if name == "_ts" => Value::from(i64::from(item.ts)),
        names => {
            let found = names.iter().try_fold(document, |value, name| value.get(name));
            found.map_or(Value::Undefined, Raw::to_value)
        }
    };
    paths.iter().map(|(path, _)| key(path)).collect()
}

/// A run in the order of its keys, then of its numbers.
pub(super) fn sort_run(run: &mut [(Vec<Value>, Bytes, Item)], paths: &[(Vec<String>, bool)]) {
    run.sort_by(|left, right| {
        let by_keys = left.0.iter().zip(&right.0).zip(paths).map(|((left, right), (_, descending))| {
            let order = left.compare(right);
            if *descending { order.reverse() } else { order }
        });
        by_keys
            .fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
            .then(left.2.number.cmp(&right.2.number))
    });
}
