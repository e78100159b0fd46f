//! The nearest vectors, found by walking the graph over them.
//!
//! The graph leads to those that it knows; the few that upkeep has not linked yet are compared one by one, as in a
//! scan. From there on all is as with codes: the likeliest are loaded and the evaluator decides. As many are loaded
//! as after a scan, so that a query costs the same however far the graph is.
//!
//! Beside a filter the likeliest are tried one after the other. When those on the list do not suffice the walk is
//! taken further with a longer one, until that would cost more than a scan.

use std::collections::HashSet;

use bytes::Bytes;
use orrery_index::{CodeProbe, GraphRows, GraphSearch};
use orrery_query::Execution;
use orrery_query::pushdown::{Nearest, Place};

use super::incomparable::Incomparable;
use super::push_reference;
use super::sorted::Sorted;
use super::vector_scan::{Closest, Neighbor, Walked, metric_of};
use crate::partition::Span;
use crate::partition::index::{GraphPath, TouchedVector, VectorForm, VectorPath};
use crate::query::access_path::ItemReader;
use crate::query::page::{Failed, Ran};

/// Nodes from which a walk goes on without finding anything before it ends, beside as many as its list is long.
const PATIENCE_MIN: usize = 100;
/// Times that a list grows at most at once.
const GROWTH_MAX: usize = 16;
/// The part of all nodes beyond which a walk is no better than a scan.
const WALK_PART: u64 = 4;
/// Members of a filter are this part of all vectors at least; fewer are compared one by one.
const MEMBERS_PART: u64 = 16;
/// Spans of so few items are scanned.
const SPAN_ITEMS: usize = 10_000;
/// Nodes that are compared for each from which a walk goes on, as a guess.
const COMPARED_PER_LISTED: u64 = 25;

/// A query for the nearest, as far as walks and scans have it in common.
pub(super) struct Wanted<'w> {
    pub place: &'w Place,
    pub nearest: &'w Nearest,
    pub vectors: &'w VectorPath,
    /// Items that the filter leads to, where it does.
    pub members: Option<&'w HashSet<Bytes>>,
    /// How many are loaded.
    pub list: usize,
    /// All that may be loaded are known to count.
    pub all_count: bool,
    /// Items that have no vector to compare.
    pub others: &'w Incomparable,
}

impl<'q> Sorted<'_, 'q> {
    /// The rows of the nearest by the graph; nowhere, where a scan is better.
    pub(super) fn walked(&mut self, wanted: &Wanted<'_>) -> Ran<Walked<'q>> {
        let VectorForm::Coded(quantizer) = wanted.vectors.form else { return Ok(Walked::Nowhere) };
        let metric = metric_of(wanted.nearest.function);
        let Some(graph) = self.reader.view.graph(wanted.vectors, metric)? else { return Ok(Walked::Nowhere) };
        let nodes = graph.nodes();
        let few_members =
            wanted.members.is_some_and(|members| (members.len() as u64).saturating_mul(MEMBERS_PART) < nodes);
        if nodes < self.reader.query.costs.graph_nodes_min || few_members {
            return Ok(Walked::Nowhere);
        }
        if !matches!(self.reader.query.span, Span::All) && self.reader.has_at_most(SPAN_ITEMS)? {
            return Ok(Walked::Nowhere);
        }
        let Some(probe) = quantizer.probe(&wanted.nearest.vector, metric) else { return Ok(Walked::Nowhere) };
        let mut beam = wanted.list;
        // Better at once than halfway.
        let steps = (beam.saturating_add(PATIENCE_MIN.max(beam)) as u64).saturating_mul(COMPARED_PER_LISTED);
        self.reader.allowance.foresee(steps)?;
        let Some(mut waiting) = unlinked(self.reader, wanted, &graph, &probe)? else {
            return Ok(Walked::Nowhere);
        };
        let nearness = |code: &[u8]| probe.compare(code);
        let mut search = GraphSearch::default();
        search.begin(&mut Nodes { reader: self.reader, graph: &graph }, &graph.entries(), &nearness)?;
        let mut execution = self.led(wanted)?;
        // Of an item that has lost its vector the graph may not know yet.
        let mut tries = Tries { items: wanted.others.references(), ..Tries::default() };
        loop {
            let patience = PATIENCE_MIN.max(beam);
            search.run(&mut Nodes { reader: self.reader, graph: &graph }, beam, patience, &nearness)?;
            let listed = search.nearest(beam);
            // What is not as near as the last on the list may be less near than nodes that were not met.
            let reach = match listed.last() {
                Some(last) if !search.is_exhausted() => f64::from(last.nearness),
                _ => f64::NEG_INFINITY,
            };
            for met in listed {
                if !tries.nodes.insert(met.node) {
                    continue;
                }
                let Some((reference, _)) = self.reader.view.node(&graph, met.node)? else { continue };
                if takes(self.reader, wanted, &reference)? {
                    let nearness = f64::from(met.nearness);
                    waiting.push(Neighbor { at_most: nearness, at_least: nearness, reference });
                }
            }
            waiting.sort_unstable_by(|left, right| {
                right.at_most.total_cmp(&left.at_most).then_with(|| left.reference.cmp(&right.reference))
            });
            let near = waiting.partition_point(|candidate| candidate.at_most >= reach);
            let enough = self.try_all(&mut execution, wanted, waiting.drain(..near), &mut tries)?;
            let (compared, walked) = search.effort();
            if enough || search.is_exhausted() && compared >= nodes {
                self.reader.count_entries(compared + walked);
                break;
            }
            if self.reader.is_tedious(tries.tried, tries.passed) {
                return Ok(Walked::TooFew);
            }
            let growth = (2 * wanted.list / (tries.passed + 1)).clamp(2, GROWTH_MAX);
            beam = beam.saturating_mul(growth);
            if search.is_exhausted() || beam as u64 > nodes / WALK_PART {
                return Ok(Walked::Nowhere);
            }
        }
        self.reader.report.ranked("a graph of vectors", wanted.place);
        self.followed(execution, wanted, tries.items)
    }

    /// Loads candidates, the likeliest first, until there are enough. Returns whether there are.
    fn try_all(
        &mut self,
        execution: &mut Execution<'q>,
        wanted: &Wanted<'_>,
        candidates: impl Iterator<Item = Neighbor>,
        tries: &mut Tries,
    ) -> Ran<bool> {
        for candidate in candidates {
            if tries.passed >= wanted.list {
                return Ok(true);
            }
            // An item may be in the graph as it was, and among the unlinked as it is.
            if !tries.items.insert(candidate.reference.clone()) {
                continue;
            }
            let before = execution.keyed();
            push_reference(self.reader, self.output, execution, &candidate.reference)?;
            tries.tried += 1;
            tries.passed += usize::from(execution.keyed() > before && candidate.at_most.is_finite());
            if self.reader.is_tedious(tries.tried, tries.passed) {
                return Ok(false);
            }
        }
        Ok(tries.passed >= wanted.list)
    }
}

/// The vectors that the graph does not lead to and that may be among the nearest; `None` where they are too many.
fn unlinked(
    reader: &mut ItemReader<'_>,
    wanted: &Wanted<'_>,
    graph: &GraphPath,
    probe: &CodeProbe,
) -> Ran<Option<Vec<Neighbor>>> {
    let mut closest = Closest::new(wanted.all_count.then_some(wanted.list));
    let is_member = |reference: &[u8]| wanted.members.is_none_or(|members| members.contains(reference));
    let view = reader.view;
    for mut entries in view.touched_entries(graph, reader.query.span) {
        while let Some(entry) = entries.next_entry()? {
            reader.allowance.check()?;
            let likeness = match TouchedVector::of(&entry) {
                TouchedVector::Gone => continue,
                TouchedVector::Unknown => None,
                TouchedVector::Code(code) => probe.compare(code),
            };
            if is_member(entry.reference()) && !closest.offer_code(likeness, &entry) {
                return Ok(None);
            }
        }
        reader.count_entries(entries.rows_read());
    }
    if let Some(mut entries) = view.unlinked_entries(graph, wanted.vectors, reader.query.span) {
        while let Some(entry) = entries.next_entry()? {
            reader.allowance.check()?;
            if is_member(entry.reference()) && !closest.offer_code(probe.compare(entry.payload()), &entry) {
                return Ok(None);
            }
        }
        reader.count_entries(entries.rows_read());
    }
    Ok(Some(closest.found))
}

/// Whether an item of the graph is in the span, and among the members of the filter.
fn takes(reader: &ItemReader<'_>, wanted: &Wanted<'_>, reference: &Bytes) -> Ran<bool> {
    let is_member = wanted.members.is_none_or(|members| members.contains(reference));
    Ok(is_member && reader.view.is_inside(reader.query.span, reference)?)
}

/// What a walk has tried.
#[derive(Default)]
struct Tries {
    nodes: HashSet<u32>,
    items: HashSet<Bytes>,
    tried: u64,
    /// Of these, how many passed the filter and have a distance.
    passed: usize,
}

/// The nodes of a graph as a page reads them.
struct Nodes<'r, 'q> {
    reader: &'r mut ItemReader<'q>,
    graph: &'r GraphPath,
}

impl GraphRows for Nodes<'_, '_> {
    type Code = Bytes;
    type Error = Failed;

    fn code(&mut self, node: u32) -> Ran<Option<Bytes>> {
        self.reader.allowance.check()?;
        Ok(self.reader.view.node(self.graph, node)?.map(|(_, code)| code))
    }

    fn links(&mut self, node: u32) -> Ran<Vec<u32>> {
        Ok(self.reader.view.node_links(self.graph, node)?)
    }
}
