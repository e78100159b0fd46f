//! Which way the page of a sorted query goes: what each way costs, by what is known and what is estimated.
//!
//! Costs are in entries read one after the other. How many items pass a filter is estimated from the index
//! (`PartitionView::kept_estimate`), as if the conditions had nothing to do with each other or with the order. A walk
//! that goes by such a figure has leave for a few times as many entries as it should need; then what is left of the
//! page comes from candidates after all. So a wrong figure costs a few times the better way, and not more.

use super::index_order::IndexOrder;
use super::sorted::Sorted;
use crate::query::access_path::{KeyTest, candidates_max};
use crate::query::output::Estimated;
use crate::query::page::Ran;

/// Of what a filter lets through that no index knows, one in so many items is assumed.
const UNKNOWN_PART: u64 = 10;

/// A walk that was thought to meet enough items soon may take so many times as long, and so many entries in any case.
const WALK_SLACK: u64 = 4;
const WALK_ENTRIES_MIN: u64 = 256;

/// So many changed items may be asked in any case.
const CHANGED_FEW: usize = 8;

/// Whoever asks for a second page is thought to ask for so many more. Each page walks anew, and candidates are put in
/// order for many pages at once.
const PAGES_TO_COME: u64 = 8;

/// A walk that tests its entries.
pub(super) struct Tested<'f> {
    pub test: KeyTest<'f>,
    /// It costs less than to collect candidates.
    pub walks: bool,
    /// How many entries it may read.
    pub entries_max: u64,
    /// About so many items pass.
    pub matches: u64,
    /// Items that may be asked for one by one because columns do not have them.
    pub changed_max: usize,
}

impl<'q> Sorted<'_, 'q> {
    /// The walk with tests, and whether it is the cheapest way; `None` where nobody knows. `lacking` items have no
    /// entry and are tested besides.
    pub(super) fn tested(&mut self, walk: &IndexOrder, lacking: usize) -> Ran<Option<Tested<'q>>> {
        if self.reader.query.prepared.takes_every_item() {
            return Ok(None);
        }
        let Some(test) = self.reader.key_test(&|scan| walk.holds(scan)) else { return Ok(None) };
        let Some(matches) = self.reader.estimated_matches()? else { return Ok(None) };
        let (items, wanted) = (self.reader.view.item_count().max(1), self.wanted(self.passed));
        let (costs, load_cost) = (self.reader.query.costs, self.load_cost());
        let walked = wanted.saturating_mul(items).checked_div(matches).unwrap_or(u64::MAX).min(items);
        let test_cost = load_cost.saturating_mul(test.keys() + u64::from(test.loads_most()));
        let loads = wanted.min(matches).saturating_mul(load_cost);
        let pages = match self.after {
            Some(_) if self.wanted_at_all(self.passed) > wanted => PAGES_TO_COME,
            _ => 1,
        };
        let tests = walked.saturating_add(lacking as u64).saturating_mul(costs.entry_cost + test_cost);
        let walk_cost = tests.saturating_add(loads).saturating_mul(pages);
        let scan = items.saturating_mul(costs.scan_cost);
        let collected = matches.min(candidates_max(&costs, items) as u64).saturating_mul(costs.entry_cost);
        // Candidates are loaded, or met on a walk that knows them.
        let candidates = matches.saturating_mul(load_cost);
        let met = walked.saturating_mul(costs.entry_cost).saturating_add(loads);
        let found = if matches > candidates_max(&costs, items) as u64 { scan } else { candidates.min(met) };
        let collect_cost = collected.saturating_add(found);
        let walks = walk_cost < collect_cost.min(scan);
        self.reader.report.estimated(Estimated { matches, items, walk_cost, collect_cost, scan, walks });
        let entries_max = walked.saturating_mul(WALK_SLACK).max(WALK_ENTRIES_MIN);
        let changed_max = walk_cost.min(collect_cost).min(scan).checked_div(load_cost).unwrap_or(0) as usize;
        let changed_max = changed_max.max(CHANGED_FEW);
        Ok(Some(Tested { test, walks, entries_max, matches, changed_max }))
    }

    /// Items of a small partition are mostly found in memory.
    pub(super) fn load_cost(&self) -> u64 {
        let costs = &self.reader.query.costs;
        match self.reader.view.item_count() > costs.remembered_items {
            true => costs.load_cost,
            false => costs.load_cost.div_ceil(3),
        }
    }

    /// Whether the walk costs less than what else there is to do, with so many candidates if they are known. `lacking`
    /// items are loaded besides.
    pub(super) fn is_worth_walking(
        &self,
        walk: &IndexOrder,
        candidates: Option<u64>,
        lacking: usize,
    ) -> bool {
        let wanted = self.wanted(self.passed);
        let items = self.reader.view.item_count().max(1);
        let costs = &self.reader.query.costs;
        let scan = items * costs.scan_cost;
        let loads = wanted.saturating_add(lacking as u64).saturating_mul(costs.load_cost);
        match candidates {
            _ if walk.filtered => loads < scan,
            Some(found) => {
                let walked = wanted.saturating_mul(items) / found.max(1);
                let load_cost = self.load_cost();
                let loads = wanted.saturating_add(lacking as u64).saturating_mul(load_cost);
                walked.saturating_mul(costs.entry_cost).saturating_add(loads) < found * load_cost
            }
            None if self.reader.query.prepared.takes_every_item() => loads < scan,
            None => loads.saturating_mul(UNKNOWN_PART) < scan,
        }
    }
}
