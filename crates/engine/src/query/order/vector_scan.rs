//! The nearest vectors, from the rows of a vector index.
//!
//! A scan over these rows compares every vector of the span with the one that is wanted; nothing else of the items is
//! read. Whole vectors are compared as they are, and the scan knows how far off it may be: whatever could still be
//! among the nearest is loaded, and the evaluator decides, so that the answer is exact. Codes tell roughly: of the
//! likeliest some times as many as are wanted are loaded and decided about. Beside a filter the likeliest are tried
//! one after the other until enough have passed. Where there is a graph over the codes it is walked instead
//! (`graph`).
//!
//! Items without a vector that could be compared come after all others, or before them by distances (`incomparable`).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use bytes::Bytes;
use orrery_index::{Likeness, Metric, Probe};
use orrery_query::pushdown::{Filter, Nearest, Place};
use orrery_query::{DistanceFunction, Execution};

use super::graph::Wanted;
use super::incomparable::{Incomparable, Told};
use super::push_reference;
use super::sorted::Sorted;
use crate::partition::index::{Entry, VectorForm, VectorPath};
use crate::query::QueryPosition;
use crate::query::access_path::ItemReader;
use crate::query::page::Ran;

/// Vectors whose likeness is kept beside a filter; with more, all items are read.
const COMPARED_MAX: usize = 4_000_000;
/// Loaded for each wanted row, unless the query says otherwise: by an index of codes, and by one with a graph over
/// them.
const LIST_MULTIPLIER: u32 = 5;
const GRAPH_MULTIPLIER: u32 = 10;
/// Loaded in any case.
const LIST_MIN: usize = 32;
/// Candidates that are collected before those without a chance are dropped, for each wanted row and besides.
const SLACK_FACTOR: usize = 4;
const SLACK: usize = 1_024;
/// Candidates of a filter that are compared as they are.
const FEW_CANDIDATES: usize = 256;

/// A vector that may be among the nearest. What cannot be compared has no likeness and is asked first.
pub(super) struct Neighbor {
    pub at_most: f64,
    pub at_least: f64,
    pub reference: Bytes,
}

/// What came of looking for the nearest.
pub(super) enum Walked<'q> {
    /// All rows of the page, and perhaps others.
    Rows(Box<Execution<'q>>),
    /// Reading all items is better.
    TooFew,
    /// This was not the way.
    Nowhere,
}

/// The likeliest of many, or all of them.
pub(super) struct Closest {
    pub found: Vec<Neighbor>,
    /// What is less alike than this cannot be among the likeliest.
    threshold: f64,
    keep: Option<usize>,
}

impl Closest {
    pub fn new(keep: Option<usize>) -> Closest {
        Closest { found: Vec::new(), threshold: f64::NEG_INFINITY, keep }
    }

    /// False: there are more than can be kept.
    fn offer(&mut self, likeness: Option<Likeness>, entry: &Entry) -> bool {
        let (at_most, at_least) = match likeness {
            Some(Likeness { value, error }) if !value.is_nan() => (value + error, value - error),
            // Only the item can tell; a length beyond what numbers hold is one reason.
            _ => (f64::INFINITY, f64::NEG_INFINITY),
        };
        if at_most < self.threshold {
            return true;
        }
        let found = &mut self.found;
        found.push(Neighbor { at_most, at_least, reference: entry.reference_bytes() });
        let slack =
            self.keep.map_or(COMPARED_MAX, |keep| keep.saturating_mul(SLACK_FACTOR).saturating_add(SLACK));
        if found.len() > slack {
            let Some(keep) = self.keep.filter(|keep| *keep > 0) else { return false };
            found.select_nth_unstable_by(keep - 1, |left, right| right.at_least.total_cmp(&left.at_least));
            self.threshold = found[keep - 1].at_least;
            found.retain(|candidate| candidate.at_most >= self.threshold);
        }
        found.len() <= COMPARED_MAX
    }

    pub fn offer_code(&mut self, likeness: Option<f32>, entry: &Entry) -> bool {
        self.offer(likeness.map(|value| Likeness { value: f64::from(value), error: 0.0 }), entry)
    }
}

impl<'q> Sorted<'_, 'q> {
    /// A page of a query for the nearest vectors; `None` where no index helps.
    pub(super) fn nearest(
        &mut self,
        place: &Place,
        wanted: &Nearest,
        undefined_first: bool,
    ) -> Ran<Option<Option<QueryPosition>>> {
        let Some(vectors) = place.names().and_then(|names| self.reader.view.vectors(&names)) else {
            return Ok(None);
        };
        let needs = self.reader.query.prepared.needs();
        let rows = needs.top.or(needs.limit).map(|rows| rows.saturating_add(needs.offset.unwrap_or(0)));
        let Some(rows) = rows.and_then(|rows| usize::try_from(rows).ok()) else { return Ok(None) };
        let coded = matches!(vectors.form, VectorForm::Coded(_));
        // Codes are no brute force.
        if wanted.vector.len() != vectors.dimensions || wanted.brute_force && coded || rows == 0 {
            return Ok(None);
        }
        let list = if coded { list_size(&vectors, wanted, rows) } else { rows };
        let costs = &self.reader.query.costs;
        let (loads, items) = (list as u64, self.reader.view.item_count());
        if loads.saturating_mul(costs.load_cost) > items.saturating_mul(costs.scan_cost) {
            return Ok(None);
        }
        let filtered = !matches!(self.reader.filter, Filter::Everything);
        let candidates = if filtered { self.reader.candidates()? } else { None };
        if candidates.as_ref().is_some_and(|all| all.len() <= FEW_CANDIDATES.max(list)) {
            return self.in_memory(candidates).map(Some);
        }
        let members: Option<HashSet<Bytes>> =
            candidates.as_ref().map(|all| all.iter().map(|candidate| candidate.reference.clone()).collect());
        // What is over and not removed yet takes no place among the nearest.
        let all_count = !filtered && self.reader.view.hides_nothing()?;
        let (vectors, members) = (&vectors, members.as_ref());
        let mut others =
            Incomparable::new(place, self.reader.filter.defines(place), undefined_first, vectors);
        match self.leading(&mut others, members)? {
            Told::Page(page) => return Ok(Some(page)),
            Told::Unknown => return self.in_memory(candidates).map(Some),
            Told::All => {}
        }
        let whole = Wanted { place, nearest: wanted, vectors, members, list, all_count, others: &others };
        let before = (self.reader.mark(), self.output.matched_items());
        let mut execution = match self.walked(&whole)? {
            Walked::Rows(execution) => *execution,
            Walked::TooFew => return self.in_memory(candidates).map(Some),
            Walked::Nowhere => {
                // It is not the query's cost: it would not have been tried with a graph that is less far.
                self.reader.back_to(before.0);
                self.output.set_matched(before.1);
                match self.scanned(&whole)? {
                    Walked::Rows(execution) => *execution,
                    Walked::TooFew => return self.in_memory(candidates).map(Some),
                    Walked::Nowhere => return Ok(None),
                }
            }
        };
        self.output.finish(&mut execution)?;
        Ok(Some(self.after_page(&execution)))
    }

    /// The rows of the nearest by a look at all vectors.
    fn scanned(&mut self, wanted: &Wanted<'_>) -> Ran<Walked<'q>> {
        let Wanted { list, .. } = *wanted;
        let coded = matches!(wanted.vectors.form, VectorForm::Coded(_));
        let keep = wanted.all_count.then_some(list);
        let Some(mut found) = compared(self.reader, wanted.vectors, wanted.nearest, wanted.members, keep)?
        else {
            return Ok(Walked::Nowhere);
        };
        self.reader.report.ranked(if coded { "codes of vectors" } else { "vectors" }, wanted.place);
        found.sort_unstable_by(|left, right| {
            right.at_most.total_cmp(&left.at_most).then_with(|| left.reference.cmp(&right.reference))
        });
        let mut execution = self.led(wanted)?;
        // The lowest likeness that the wanted rows have at least.
        let mut best: BinaryHeap<Reverse<Ordered>> = BinaryHeap::new();
        for (tried, candidate) in found.iter().enumerate() {
            let reached = best.peek().filter(|_| best.len() >= list);
            if reached.is_some_and(|reached| coded || candidate.at_most < reached.0.0) {
                break;
            }
            let before = execution.keyed();
            push_reference(self.reader, self.output, &mut execution, &candidate.reference)?;
            if execution.keyed() > before && candidate.at_most.is_finite() {
                best.push(Reverse(Ordered(candidate.at_least)));
                if best.len() > list {
                    best.pop();
                }
            }
            if self.reader.is_tedious(tried as u64, best.len()) {
                return Ok(Walked::TooFew);
            }
        }
        self.followed(execution, wanted, HashSet::new())
    }
}

/// The vectors that may be among the nearest `keep`, or all of them.
fn compared(
    reader: &mut ItemReader<'_>,
    vectors: &VectorPath,
    wanted: &Nearest,
    members: Option<&HashSet<Bytes>>,
    keep: Option<usize>,
) -> Ran<Option<Vec<Neighbor>>> {
    let Some(mut compare) = comparison(vectors, wanted) else { return Ok(None) };
    let view = reader.view;
    let mut entries = view.vector_entries(vectors, reader.query.span);
    let mut closest = Closest::new(keep);
    while let Some(entry) = entries.next_entry()? {
        reader.allowance.check()?;
        if members.is_some_and(|members| !members.contains(entry.reference())) {
            continue;
        }
        if !closest.offer(compare(entry.payload()), &entry) {
            return Ok(None);
        }
    }
    reader.count_entries(entries.rows_read());
    Ok(Some(closest.found))
}

/// Compares the vector of a row with the wanted one; `None` where only the item can tell.
type Comparison = Box<dyn FnMut(&[u8]) -> Option<Likeness>>;

fn comparison(vectors: &VectorPath, wanted: &Nearest) -> Option<Comparison> {
    let metric = metric_of(wanted.function);
    Some(match vectors.form {
        VectorForm::Whole(_) => {
            let mut probe = Probe::new(&wanted.vector, metric)?;
            Box::new(move |row| probe.compare(row))
        }
        VectorForm::Coded(quantizer) => {
            let probe = quantizer.probe(&wanted.vector, metric)?;
            Box::new(move |row| Some(Likeness { value: f64::from(probe.compare(row)?), error: 0.0 }))
        }
    })
}

pub(super) fn metric_of(function: DistanceFunction) -> Metric {
    match function {
        DistanceFunction::Cosine => Metric::Cosine,
        DistanceFunction::DotProduct => Metric::DotProduct,
        DistanceFunction::Euclidean => Metric::Euclidean,
    }
}

/// How many of the likeliest are looked at.
fn list_size(vectors: &VectorPath, wanted: &Nearest, rows: usize) -> usize {
    let list = wanted.list_multiplier.unwrap_or(LIST_MULTIPLIER);
    let multiplier = match vectors.is_graph {
        true => list.max(wanted.graph_multiplier.unwrap_or(GRAPH_MULTIPLIER)),
        false => list,
    };
    rows.saturating_mul(multiplier.max(1) as usize).max(LIST_MIN)
}

/// Numbers in their order.
#[derive(PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Ordered) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Ordered) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
