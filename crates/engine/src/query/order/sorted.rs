//! Sorted queries: from an index that has the order, or in memory.
//!
//! Five ways, and what each costs in look-ups (one entry read is 1, loading an item is 8, an item of a scan is 2):
//! - walk the index in order until the page is full, and look up for each entry whether its item passes the filter: 9
//!   for each, and nothing is collected (`choice` says when, `walk` how);
//! - load the candidates that the filter leads to and sort them: 1 to collect, and 8 to load each;
//! - where partition key and id are the order, sort the candidates by what their entries say, and load those of the
//!   page (`by_key`): 1 for each;
//! - walk the index in order and pass by all that are no candidates: 1 for each entry besides;
//! - read everything and keep the best, for this page and those that follow (`window`): 2 for each item of the span.
//!
//! The cheapest is taken, so the best ten of a filter cost about the same in a small and in a large container.

use orrery_model::Value;
use orrery_query::pushdown::Filter;
use orrery_query::{Execution, SortPosition};

use super::choice::Tested;
use super::index_order::{self, IndexOrder};
use super::push_all;
use super::steps::Steps;
use super::top_k_candidates::TopCandidates;
use super::walk::{Members, Walked, items_lacking};
use super::window::Source;
use crate::partition::Span;
use crate::partition::index::Lacking;
use crate::query::QueryPosition;
use crate::query::access_path::{Candidate, ItemReader};
use crate::query::output::Output;
use crate::query::page::Ran;
use crate::query::position::{Order, SORT_KEYS_BYTES_MAX, WindowPosition, stored_keys};

/// A page of a query with ORDER BY.
pub(in crate::query) struct Sorted<'p, 'q> {
    pub reader: &'p mut ItemReader<'q>,
    pub output: &'p mut Output<'q>,
    /// The last row that was delivered.
    pub after: Option<&'p SortPosition>,
    /// Rows that were counted against OFFSET, LIMIT and TOP.
    pub passed: u64,
}

impl<'p, 'q> Sorted<'p, 'q> {
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
        if let Some(named) = self.reader.named() {
            return self.in_memory(Some(named));
        }
        let walk = index_order::find(self.reader.query.prepared, self.reader.filter, self.reader.view)
            .filter(|_| !matches!(self.reader.query.span, Span::Key { .. }));
        // An index that has the filter's items together, in order, is hard to beat.
        let at_once = walk.as_ref().is_some_and(|walk| walk.filtered && self.is_worth_walking(walk, None, 0));
        if walk.is_some() && !at_once {
            // What fits into the page is loaded whichever way is taken.
            if let Some(few) = self.reader.few_candidates(self.wanted(self.passed))? {
                return self.in_memory(Some(few));
            }
        }
        if let Some(walk) = &walk
            && !at_once
            && let Some(tested) = self.tested(walk, 0)?
        {
            if let Some(page) = self.walk_columns(walk, &tested)? {
                return Ok(page);
            }
            if tested.walks
                && let Some(page) = self.walk_tested(walk, &tested)?
            {
                return Ok(page);
            }
        }
        let candidates = match self.reader.filter {
            Filter::Nothing => Some(Vec::new()),
            _ if at_once => None,
            _ => self.reader.candidates()?,
        };
        if let Some(candidates) = &candidates
            && let Some(first) = self.first_by_key(candidates)?
        {
            return self.deliver(first);
        }
        let found = candidates.as_ref().map(|candidates| candidates.len() as u64);
        let walk = walk.filter(|walk| at_once || self.is_worth_walking(walk, found, 0));
        let Some(walk) = walk else { return self.in_memory(candidates) };
        let Some(lacking) = self.lacking_of(&walk)? else { return self.in_memory(candidates) };
        let mut lacking_count = lacking.items.len();
        if self.reader.query.prepared.takes_every_item() {
            // No more of them are loaded than there are rows.
            lacking_count =
                lacking_count.min(usize::try_from(self.wanted(self.passed)).unwrap_or(usize::MAX));
        }
        if !at_once && !self.is_worth_walking(&walk, found, lacking_count) {
            return self.in_memory(candidates);
        }
        self.reader.report.walk(&walk.text);
        let walked = {
            let members = match &candidates {
                Some(candidates) if !walk.filtered => Members::of(candidates),
                _ => Members::All,
            };
            let (view, span) = (self.reader.view, self.reader.query.span);
            let entries = Box::new(walk.entries(view, span, self.entries_after(&walk)));
            self.walk(&walk, &mut Steps::Entries { entries, walk: &walk }, &members, &lacking, u64::MAX)?
        };
        match walked {
            Walked::Page(next) => Ok(next),
            // What is left are the items that have no entry: they come last.
            Walked::Through(execution) => self.behind_walk(&execution, candidates),
            Walked::GaveUp => {
                let candidates = if at_once { self.reader.candidates()? } else { candidates };
                self.in_memory(candidates)
            }
        }
    }

    /// A walk whose entries are tested one by one; `None` where candidates have to be collected after all, and nothing
    /// was delivered.
    fn walk_tested(&mut self, walk: &IndexOrder, tested: &Tested<'q>) -> Ran<Option<Option<QueryPosition>>> {
        let Some(lacking) = self.lacking_of(walk)? else { return Ok(None) };
        if !lacking.items.is_empty()
            && !self.tested(walk, lacking.items.len())?.is_some_and(|tested| tested.walks)
        {
            return Ok(None);
        }
        self.reader.report.walk_tested(&walk.text);
        let entries =
            Box::new(walk.entries(self.reader.view, self.reader.query.span, self.entries_after(walk)));
        let mut steps = Steps::Entries { entries, walk };
        let members = Members::Tested(&tested.test);
        match self.walk(walk, &mut steps, &members, &lacking, tested.entries_max)? {
            Walked::Page(next) => Ok(Some(next)),
            Walked::Through(execution) => {
                let candidates = self.reader.candidates()?;
                self.behind_walk(&execution, candidates).map(Some)
            }
            Walked::GaveUp => Ok(None),
        }
    }

    /// Where the entries of a walk go on: the page's position, unless that is among the items without one.
    pub(super) fn entries_after(&self, walk: &IndexOrder) -> Option<&'p SortPosition> {
        self.after.filter(|after| walk.misses_undefined.is_none() || !is_undefined(after))
    }

    /// The rest of a page that a walk has begun.
    pub(super) fn behind_walk(
        &mut self,
        execution: &Execution<'q>,
        candidates: Option<Vec<Candidate>>,
    ) -> Ran<Option<QueryPosition>> {
        let (after, passed) = (execution.sort_position().cloned(), execution.passed());
        let (reader, output) = (&mut *self.reader, &mut *self.output);
        Sorted { reader, output, after: after.as_ref(), passed }.in_memory(candidates)
    }

    /// The items that a walk misses and the page may need; `None` where they are not known, and it cannot be gone
    /// without them.
    pub(super) fn lacking_of(&mut self, walk: &IndexOrder) -> Ran<Option<Lacking>> {
        let Some(missed) = &walk.misses_undefined else { return Ok(Some(Lacking::default())) };
        let among_them = self.after.is_some_and(is_undefined);
        // They are behind us, or come later.
        if !among_them && (!missed.first || self.after.is_some()) {
            return Ok(Some(Lacking::default()));
        }
        items_lacking(self.reader, missed)
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
        if let Some(candidates) = &candidates
            && let Some(best) = self.top_k(candidates)?
        {
            return self.deliver(best);
        }
        let mut execution = self.execution();
        push_all(self.reader, self.output, &mut execution, candidates, false)?;
        self.output.finish(&mut execution)?;
        Ok(self.after_page(&execution))
    }

    /// A page of the best that were found.
    fn deliver(&mut self, best: TopCandidates) -> Ran<Option<QueryPosition>> {
        let mut execution = self.execution();
        let matched = self.output.matched_items() + best.matched;
        for item in best.items {
            self.output.push(&mut execution, &item, &mut self.reader.allowance)?;
        }
        self.output.set_matched(matched);
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
    pub(super) fn position(&self, after: SortPosition, passed: u64) -> QueryPosition {
        if self.reader.query.prepared.is_partial() || stored_keys(&after.keys).len() <= SORT_KEYS_BYTES_MAX {
            return QueryPosition::Sorted { after, passed, window: None };
        }
        let rows = passed.saturating_sub(self.reader.query.prepared.needs().offset.unwrap_or(0));
        QueryPosition::Delivered { rows, order: Order::Stored, cached: 0 }
    }
}

pub(super) fn is_undefined(after: &SortPosition) -> bool {
    after.keys.first().is_some_and(Value::is_undefined)
}
