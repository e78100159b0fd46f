//! Sorted queries: from an index that has the order, or in memory.
//!
//! Three ways, and what each costs in look-ups (one entry read is 1, loading an item is 8, an item of a scan is 2):
//! - load the candidates that the filter leads to and sort them: 8 for each;
//! - walk the index in order and stop when the page is full: 8 for each entry until enough have passed, or 1 where
//!   the candidates are known and all others can be passed by. Where so many items pass the filter that some are soon
//!   met, the candidates are not even collected;
//! - read everything and keep the best, for this page and those that follow (`window`): 2 for each item of the span.
//!
//! The cheapest is taken, so the best ten of a filter cost about the same in a small and in a large container.

use std::collections::HashSet;

use bytes::Bytes;
use orrery_model::Value;
use orrery_query::pushdown::Filter;
use orrery_query::{Execution, Flow, SortPosition};

use super::index_order::{self, IndexOrder, Missed};
use super::push_all;
use super::top_k_candidates::TopCandidates;
use super::window::Source;
use crate::item::Item;
use crate::partition::Span;
use crate::partition::index::{Entries, Entry, Lacking};
use crate::query::QueryPosition;
use crate::query::access_path::{Candidate, ItemReader};
use crate::query::output::Output;
use crate::query::page::Ran;
use crate::query::position::{Order, SORT_KEYS_BYTES_MAX, WindowPosition, stored_keys};

/// Of what a filter lets through that no index knows, one in so many items is assumed.
const UNKNOWN_PART: u64 = 10;

/// A walk that was thought to meet enough items soon may take so many times as long, and so many entries in any case.
const WALK_SLACK: u64 = 4;
const WALK_ENTRIES_MIN: u64 = 256;

/// Entries and items that are looked at to find out whether anything comes after a full page.
const AHEAD_ENTRIES_MAX: usize = 1_024;
const AHEAD_ITEMS_MAX: usize = 16;

/// A page of a query with ORDER BY.
pub(in crate::query) struct Sorted<'p, 'q> {
    pub reader: &'p mut ItemReader<'q>,
    pub output: &'p mut Output<'q>,
    /// The last row that was delivered.
    pub after: Option<&'p SortPosition>,
    /// Rows that were counted against OFFSET, LIMIT and TOP.
    pub passed: u64,
}

/// What a walk has before it when its page is full.
struct Ahead<'a, 'v> {
    walk: &'a IndexOrder,
    /// The first entry after the present run.
    next: Option<Entry>,
    entries: &'a mut Entries<'v>,
    /// Whether an item may pass the filter, by its reference.
    wanted: &'a dyn Fn(&[u8]) -> bool,
}

/// How a walk ended.
enum Walked<'q> {
    /// The page is complete; go on here, if anywhere.
    Page(Option<QueryPosition>),
    /// All entries were walked, and the page has room.
    Through(Box<Execution<'q>>),
    /// A run is so long that reading everything is faster, or fewer items pass the filter than was thought. Nothing was
    /// delivered.
    GaveUp,
}

impl<'q> Sorted<'_, 'q> {
    /// A page after another, from the window that an earlier one has made if that is still there.
    pub fn go_on(&mut self, window: Option<WindowPosition>) -> Ran<Option<QueryPosition>> {
        let ready = window.map(|window| self.kept_window(window));
        match ready.transpose()?.flatten() {
            Some(page) => Ok(page),
            None => self.page(),
        }
    }

    pub fn page(&mut self) -> Ran<Option<QueryPosition>> {
        if let Some(page) = self.ranked()? {
            return Ok(page);
        }
        let walk = index_order::find(self.reader.query.prepared, self.reader.filter, self.reader.view)
            .filter(|_| !matches!(self.reader.query.span, Span::Key { .. }));
        // An index that has the filter's items together, in order, is hard to beat.
        let at_once = walk.as_ref().is_some_and(|walk| walk.filtered && self.is_worth_walking(walk, None, 0));
        let soon = match &walk {
            Some(walk) if !at_once => self.met_soon(walk)?,
            _ => None,
        };
        let candidates = match self.reader.filter {
            Filter::Nothing => Some(Vec::new()),
            _ if at_once || soon.is_some() => None,
            _ => self.reader.candidates()?,
        };
        let walk = walk.filter(|walk| at_once || self.is_worth_walking(walk, candidates.as_deref(), 0));
        let Some((walk, lacking)) = self.with_lacking(walk)? else {
            return self.in_memory(candidates);
        };
        let mut lacking_count = lacking.as_ref().map_or(0, |lacking| lacking.items.len());
        if self.reader.query.prepared.takes_every_item() {
            // No more of them are loaded than there are rows.
            lacking_count =
                lacking_count.min(usize::try_from(self.wanted(self.passed)).unwrap_or(usize::MAX));
        }
        if !at_once && !self.is_worth_walking(&walk, candidates.as_deref(), lacking_count) {
            return self.in_memory(candidates);
        }
        self.reader.report.walk(&walk.text);
        let execution = self.execution().presorted();
        let entries_max = soon.unwrap_or(u64::MAX);
        match self.walk(&walk, execution, candidates.as_deref(), lacking.as_ref(), entries_max)? {
            Walked::Page(next) => Ok(next),
            Walked::Through(execution) => {
                // What is left are the items that have no entry: they come last.
                let (after, passed) = (execution.sort_position().cloned(), execution.passed());
                let (reader, output) = (&mut *self.reader, &mut *self.output);
                Sorted { reader, output, after: after.as_ref(), passed }.in_memory(candidates)
            }
            Walked::GaveUp => {
                let uncollected = at_once || soon.is_some();
                let candidates = if uncollected { self.reader.candidates()? } else { candidates };
                self.in_memory(candidates)
            }
        }
    }

    /// The walk with the items that it misses, where they are known; `None` where it cannot be gone without them.
    fn with_lacking(&mut self, walk: Option<IndexOrder>) -> Ran<Option<(IndexOrder, Option<Lacking>)>> {
        let after = self.after;
        let Some(walk) = walk else { return Ok(None) };
        let Some(missed) = &walk.misses_undefined else { return Ok(Some((walk, None))) };
        let among_them = after.is_some_and(is_undefined);
        if missed.first && after.is_some() && !among_them {
            // They are behind us.
            return Ok(Some((walk, Some(Lacking::default()))));
        }
        if !missed.first && !among_them {
            return Ok(Some((walk, None)));
        }
        let lacking = items_lacking(self.reader, missed)?;
        Ok(lacking.map(|lacking| (walk, Some(lacking))))
    }

    /// The query from the page's position on.
    pub(super) fn execution(&self) -> Execution<'q> {
        let prepared = self.reader.query.prepared;
        self.reader.bounded(match self.after {
            Some(after) => Execution::resume_sorted(prepared, self.passed, after.clone()),
            None => Execution::new(prepared),
        })
    }

    /// Rows that the page can take, those to be skipped included.
    pub(super) fn wanted(&self, passed: u64) -> u64 {
        let offset = self.reader.query.prepared.needs().offset.unwrap_or(0);
        let page = (self.reader.query.limits.rows as u64).saturating_add(offset.saturating_sub(passed));
        self.wanted_at_all(passed).min(page)
    }

    /// The same of this page and all that follow.
    pub(super) fn wanted_at_all(&self, passed: u64) -> u64 {
        let needs = self.reader.query.prepared.needs();
        let all = needs.top.or(needs.limit).map(|count| count.saturating_add(needs.offset.unwrap_or(0)));
        all.map_or(u64::MAX, |all| all.saturating_sub(passed))
    }

    /// Where so many items pass the filter that a walk which loads every item meets enough of them before all could
    /// be collected: how many entries it may take. Beyond that the page ends with what it has, or they are collected
    /// after all.
    fn met_soon(&mut self, walk: &IndexOrder) -> Ran<Option<u64>> {
        if walk.misses_undefined.is_some() || !self.is_worth_walking(walk, None, 0) {
            return Ok(None);
        }
        let Some(matches) = self.reader.estimated_matches()? else { return Ok(None) };
        let (items, costs) = (self.reader.view.item_count(), &self.reader.query.costs);
        let walked = self.wanted(self.passed).saturating_mul(items) / matches.max(1);
        let is_soon = walked.saturating_mul(costs.load_cost) < matches.saturating_mul(costs.entry_cost);
        Ok(is_soon.then_some(walked.saturating_mul(WALK_SLACK).max(WALK_ENTRIES_MIN)))
    }

    /// `lacking` items are loaded besides.
    fn is_worth_walking(&self, walk: &IndexOrder, candidates: Option<&[Candidate]>, lacking: usize) -> bool {
        let wanted = self.wanted(self.passed);
        let items = self.reader.view.item_count().max(1);
        let costs = &self.reader.query.costs;
        let scan = items * costs.scan_cost;
        let loads = wanted.saturating_add(lacking as u64).saturating_mul(costs.load_cost);
        match candidates {
            _ if walk.filtered => loads < scan,
            Some(candidates) => {
                let found = candidates.len() as u64;
                let walked = wanted.saturating_mul(items) / found.max(1);
                // Items of a small partition are mostly found in memory.
                let load_cost = match items > costs.remembered_items {
                    true => costs.load_cost,
                    false => costs.load_cost.div_ceil(3),
                };
                let loads = wanted.saturating_add(lacking as u64).saturating_mul(load_cost);
                walked.saturating_mul(costs.entry_cost).saturating_add(loads) < found * load_cost
            }
            None if self.reader.query.prepared.takes_every_item() => loads < scan,
            None => loads.saturating_mul(UNKNOWN_PART) < scan,
        }
    }

    /// Sorts candidates, or everything.
    pub(super) fn in_memory(&mut self, candidates: Option<Vec<Candidate>>) -> Ran<Option<QueryPosition>> {
        // What one page takes of few candidates is found by looking at them only.
        let ahead = self.wanted_at_all(self.passed) > self.reader.query.limits.rows as u64;
        let source = match &candidates {
            None => Some(Source::Span),
            Some(found) if ahead && found.len() > self.reader.query.costs.window_candidates_min => {
                Some(Source::Candidates(found))
            }
            Some(_) => None,
        };
        if let Some(source) = source
            && let Some(page) = self.windowed(&source)?
        {
            return Ok(page);
        }
        let mut execution = self.execution();
        let best = match &candidates {
            Some(candidates) => self.top_k(candidates)?,
            None => None,
        };
        match best {
            Some(TopCandidates { items, matched }) => {
                let matched = self.output.matched_items() + matched;
                for item in items {
                    self.output.push(&mut execution, &item, &mut self.reader.allowance)?;
                }
                self.output.set_matched(matched);
            }
            None => drop(push_all(self.reader, self.output, &mut execution, candidates, false)?),
        }
        self.output.finish(&mut execution)?;
        Ok(self.after_page(&execution))
    }

    pub(super) fn after_page(&self, execution: &Execution<'_>) -> Option<QueryPosition> {
        if execution.is_done() {
            return None;
        }
        let after = execution.sort_position()?;
        Some(self.position(after.clone(), execution.passed()))
    }

    /// After the last sorted row; or after a number of rows, where the keys are too long to be carried around.
    /// Whoever merges carries nothing, and may have begun in the midst of the rows.
    fn position(&self, after: SortPosition, passed: u64) -> QueryPosition {
        if self.reader.query.prepared.is_partial() || stored_keys(&after.keys).len() <= SORT_KEYS_BYTES_MAX {
            return QueryPosition::Sorted { after, passed, window: None };
        }
        let rows = passed.saturating_sub(self.reader.query.prepared.needs().offset.unwrap_or(0));
        QueryPosition::Delivered { rows, order: Order::Stored, cached: 0 }
    }

    fn walk(
        &mut self,
        walk: &IndexOrder,
        mut execution: Execution<'q>,
        candidates: Option<&[Candidate]>,
        lacking: Option<&Lacking>,
        entries_max: u64,
    ) -> Ran<Walked<'q>> {
        let after = self.after;
        let paths = self.reader.query.prepared.order_paths();
        let first = walk.misses_undefined.as_ref().is_some_and(|missed| missed.first);
        let among_them = after.is_some_and(is_undefined) && walk.misses_undefined.is_some();
        if let Some(lacking) = lacking.filter(|_| first || among_them) {
            let from = after.filter(|_| among_them).map_or(0, |after| after.number);
            match self.push_lacking(&mut execution, lacking, from, candidates, &paths)? {
                Flow::Stop => return Ok(Walked::Page(self.after_page(&execution))),
                Flow::More if lacking.more => return Ok(self.walked_through(execution)),
                Flow::More => {}
            }
        }
        if among_them && !first {
            return Ok(Walked::Page(None));
        }
        let after = after.filter(|_| !among_them);
        let members: Option<HashSet<&[u8]>> = candidates
            .filter(|_| !walk.filtered)
            .map(|candidates| candidates.iter().map(|candidate| &candidate.reference[..]).collect());
        let view = self.reader.view;
        let costs = &self.reader.query.costs;
        let part = view.item_count() / costs.candidates_part.max(1);
        let run_max = match self.sorts_plainly(&paths) {
            true => costs.run_entries_max.max(part as usize),
            false => costs.run_entries_max,
        };
        let mut entries = walk.entries(view, self.reader.query.span, after);
        let mut next = entries.next_entry()?;
        let mut run: Vec<Bytes> = Vec::new();
        while let Some(first) = next.take() {
            run.clear();
            let prefix = walk.run_of(&first);
            let wanted =
                |reference: &[u8]| members.as_ref().is_none_or(|members| members.contains(reference));
            if wanted(first.reference()) {
                run.push(first.reference_bytes());
            }
            while let Some(entry) = entries.next_entry()? {
                if !entry.value().starts_with(prefix) {
                    next = Some(entry);
                    break;
                }
                self.reader.allowance.check()?;
                if wanted(entry.reference()) {
                    run.push(entry.reference_bytes());
                }
                if run.len() > run_max {
                    break;
                }
            }
            if run.len() > run_max {
                self.reader.count_entries(entries.rows_read());
                return Ok(match self.output.rows() {
                    0 => Walked::GaveUp,
                    _ => Walked::Page(self.after_page(&execution)),
                });
            }
            if entries.rows_read() > entries_max {
                self.reader.count_entries(entries.rows_read());
                return Ok(match self.output.rows() {
                    0 => Walked::GaveUp,
                    _ => Walked::Page(self.after_page(&execution)),
                });
            }
            // Too long to be loaded for one page.
            if run.len() > costs.run_entries_max {
                match self.run_window(&mut execution, &run, &paths)? {
                    None => continue,
                    Some(page) => {
                        self.reader.count_entries(entries.rows_read());
                        return Ok(Walked::Page(page));
                    }
                }
            }
            let out_of_time = self.reader.allowance.is_out_of_time()?;
            let mut last: Option<(Vec<Value>, u64)> = None;
            let mut items = load_run(self.reader, &run, &paths)?.into_iter();
            while let Some((keys, _, item)) = items.next() {
                if self.output.push(&mut execution, &item, &mut self.reader.allowance)? == Flow::Stop {
                    self.reader.count_entries(entries.rows_read());
                    let mut rest = items.map(|(.., item)| item);
                    let ahead = Ahead { walk, next, entries: &mut entries, wanted: &wanted };
                    let page = match self.after_page(&execution) {
                        Some(position) if has_more(self.reader, &mut rest, ahead)? => Some(position),
                        _ => None,
                    };
                    return Ok(Walked::Page(page));
                }
                last = Some((keys, item.number));
            }
            if out_of_time && let Some((keys, number)) = last {
                self.reader.count_entries(entries.rows_read());
                let after = SortPosition { keys, number, rows: u64::MAX };
                return Ok(Walked::Page(Some(self.position(after, execution.passed()))));
            }
        }
        self.reader.count_entries(entries.rows_read());
        let Some(missed) = walk.misses_undefined.as_ref().filter(|missed| !missed.first) else {
            return Ok(Walked::Page(None));
        };
        let Some(lacking) = items_lacking(self.reader, missed)? else {
            return Ok(Walked::Through(Box::new(execution)));
        };
        Ok(match self.push_lacking(&mut execution, &lacking, 0, candidates, &paths)? {
            Flow::Stop => Walked::Page(self.after_page(&execution)),
            Flow::More if lacking.more => self.walked_through(execution),
            Flow::More => Walked::Page(None),
        })
    }

    /// What comes next is not known: it is looked for by the next page, if this one has rows.
    fn walked_through(&self, execution: Execution<'q>) -> Walked<'q> {
        match self.output.rows() {
            0 => Walked::Through(Box::new(execution)),
            _ => Walked::Page(self.after_page(&execution)),
        }
    }

    /// Pushes those of a list of items that have no value to sort by, from a number on.
    fn push_lacking(
        &mut self,
        execution: &mut Execution<'q>,
        lacking: &Lacking,
        from: u64,
        candidates: Option<&[Candidate]>,
        paths: &[(Vec<String>, bool)],
    ) -> Ran<Flow> {
        let wanted = |reference: &Bytes| {
            candidates.is_none_or(|candidates| {
                candidates.binary_search_by(|candidate| candidate.reference.cmp(reference)).is_ok()
            })
        };
        for (number, reference) in &lacking.items {
            if *number < from || !wanted(reference) {
                continue;
            }
            self.reader.allowance.check()?;
            let key = self.reader.view.item_key(reference)?;
            let Some(item) = self.reader.load(&key)? else { continue };
            // Those that have got a value are among the entries; others may have come in the place of those that are
            // gone.
            let lacks = index_order::keys_of(&item, paths).first().is_some_and(Value::is_undefined);
            if lacks
                && item.number == *number
                && self.output.push(execution, &item, &mut self.reader.allowance)? == Flow::Stop
            {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    }
}

fn is_undefined(after: &SortPosition) -> bool {
    after.keys.first().is_some_and(Value::is_undefined)
}

/// The items that an index in order has no entries of, where they are few enough to be known.
fn items_lacking(reader: &mut ItemReader<'_>, missed: &Missed) -> Ran<Option<Lacking>> {
    let (view, span, items_max) = (reader.view, reader.query.span, reader.query.costs.absent_items_max);
    view.lacking(missed.path, &missed.names, span, items_max, &mut || reader.allowance.check())
}

/// Whether a row comes after the last one of a full page, so that a result ends with its last row and not with an
/// empty page. Looks at little, and where that does not tell, there may be more.
fn has_more(
    reader: &mut ItemReader<'_>,
    run: &mut dyn Iterator<Item = Item>,
    ahead: Ahead<'_, '_>,
) -> Ran<bool> {
    let prepared = reader.query.prepared;
    if prepared.takes_every_item() && (ahead.next.is_some() || run.next().is_some()) {
        return Ok(true);
    }
    if prepared.needs().joins || !(prepared.takes_every_item() || prepared.filters_purely()) {
        return Ok(true);
    }
    for item in run {
        if reader.passes(&item)? {
            return Ok(true);
        }
    }
    let Ahead { walk, mut next, entries, wanted } = ahead;
    let (mut read, mut looked_at) = (0, 0);
    while let Some(entry) = next {
        reader.allowance.check()?;
        if wanted(entry.reference()) {
            let key = reader.view.item_key(&entry.reference_bytes())?;
            if let Some(item) = reader.look_at(&key)?
                && reader.passes(&item)?
            {
                return Ok(true);
            }
            looked_at += 1;
        }
        read += 1;
        if read >= AHEAD_ENTRIES_MAX || looked_at >= AHEAD_ITEMS_MAX {
            return Ok(true);
        }
        next = entries.next_entry()?;
    }
    let Some(missed) = walk.misses_undefined.as_ref().filter(|missed| !missed.first) else {
        return Ok(false);
    };
    let lacking = items_lacking(reader, missed)?;
    Ok(lacking.is_none_or(|found| found.more || found.items.iter().any(|(_, item)| wanted(item))))
}

/// The items of a run, in the order of the sort keys and then of their numbers.
fn load_run(
    reader: &mut ItemReader<'_>,
    run: &[Bytes],
    paths: &[(Vec<String>, bool)],
) -> Ran<Vec<(Vec<Value>, Bytes, Item)>> {
    let mut items = Vec::with_capacity(run.len());
    for reference in run {
        reader.allowance.check()?;
        let key = reader.view.item_key(reference)?;
        if let Some(item) = reader.load(&key)? {
            items.push((index_order::keys_of(&item, paths), key, item));
        }
    }
    if items.len() > 1 {
        index_order::sort_run(&mut items, paths);
    }
    Ok(items)
}
