//! The first of an order by columns that were put in that order.
//!
//! What is loaded, and so what the page costs, is what it would be by index, where the same estimates choose: items
//! met on a walk, or all candidates. How many these are the columns tell, once for each filter.

use std::rc::Rc;

use orrery_query::columns::{Column, ColumnSort};

use super::choice::Tested;
use super::index_order::IndexOrder;
use super::sorted::Sorted;
use super::steps::Steps;
use super::top_k_candidates::{ROWS_PER_LOAD, WANTED_MAX};
use super::walk::{Members, Walked, items_lacking};
use crate::columns::ColumnSet;
use crate::query::QueryPosition;
use crate::query::access_path::{ItemPlace, ItemReader, STEP_ROWS, candidates_max};
use crate::query::page::Ran;

/// Rows in order that are gone through in the time in which an entry is read.
const ROWS_PER_ENTRY: u64 = 16;
/// Rows that are filtered at once.
const BLOCK_ROWS: usize = 1_024;

/// What the page would have done by index.
enum Instead {
    /// The same walk.
    Walk,
    /// So many candidates, of so many bytes, would have been loaded and sorted.
    Candidates(u64, u64),
}

impl<'q> Sorted<'_, 'q> {
    /// The page by columns; `None` where there are none for it, or another way is better.
    pub(super) fn walk_columns(
        &mut self,
        walk: &IndexOrder,
        tested: &Tested<'q>,
    ) -> Ran<Option<Option<QueryPosition>>> {
        let prepared = self.reader.query.prepared;
        let Some(sort) = prepared.column_sort().filter(|_| tested.test.is_decisive()) else {
            return Ok(None);
        };
        // All rows are read to find out how many pass, which a few candidates are not worth.
        let few = tested.matches <= self.wanted(self.passed)
            || tested.matches.saturating_mul(ROWS_PER_LOAD) < self.reader.view.item_count();
        if few && !tested.walks {
            return Ok(None);
        }
        let Some(ready) = self.reader.ordered_columns(sort, tested.changed_max)? else { return Ok(None) };
        let set = &*ready.set;
        let (Some(Some(columns)), Some(key)) = (set.columns(sort.sources()), sort.key()) else {
            return Ok(None);
        };
        let Some(order) = set.order(&sort.sources()[key]).flatten() else { return Ok(None) };
        let Some(lacking) = self.lacking_of(walk)? else { return Ok(None) };
        let places = self.reader.places(&ready, &columns)?;
        let instead = if tested.walks {
            let walks = |tested: Option<Tested<'_>>| tested.is_some_and(|tested| tested.walks);
            let still = lacking.items.is_empty() || walks(self.tested(walk, lacking.items.len())?);
            still.then_some(Instead::Walk)
        } else {
            let (found, bytes) = passing(self.reader, sort, set, &columns, &places)?;
            self.instead(walk, found, bytes, lacking.items.len())?
        };
        let Some(instead) = instead else { return Ok(None) };
        let filter = sort.run(prepared, columns.clone(), &self.reader.allowance.meter);
        let after = self.entries_after(walk);
        let in_order = (set, columns[key], order);
        let Some(mut steps) = Steps::of_columns(self.reader, walk, after, in_order, filter, places)? else {
            return Ok(None);
        };
        let (mark, matched) = (self.reader.mark(), self.output.matched_items());
        let entries_max = if tested.walks { tested.entries_max } else { u64::MAX };
        let members = Members::Tested(&tested.test);
        let walked = self.walk(walk, &mut steps, &members, &lacking, entries_max)?;
        if let Walked::GaveUp = walked {
            self.reader.back_to(mark);
            return Ok(None);
        }
        self.reader.report.walk_columns(&walk.text);
        let page = match walked {
            Walked::Page(next) => next,
            Walked::Through(execution) => {
                let candidates = self.reader.candidates()?;
                self.behind_walk(&execution, candidates)?
            }
            Walked::GaveUp => None,
        };
        if let Instead::Candidates(found, bytes) = instead {
            self.reader.back_to(mark);
            self.reader.count_entries(steps.rows_read());
            self.reader.count_all_loaded(found, bytes);
            self.output.set_matched(matched + found);
        }
        Ok(Some(page))
    }

    /// What would be done by index with so many candidates, if columns do better.
    fn instead(&mut self, walk: &IndexOrder, found: u64, bytes: u64, lacking: usize) -> Ran<Option<Instead>> {
        let costs = self.reader.query.costs;
        let items = self.reader.view.item_count();
        if found > candidates_max(&costs, items) as u64 {
            return Ok(None);
        }
        if self.is_worth_walking(walk, Some(found), 0) && self.is_worth_walking(walk, Some(found), lacking) {
            return Ok(Some(Instead::Walk));
        }
        // More than the page takes, each of which is one row, and all rows in this page.
        let (wanted, paths) =
            (self.wanted(self.passed).saturating_add(1), self.reader.query.prepared.order_paths());
        let in_one_page = self.wanted_at_all(self.passed) <= self.reader.query.limits.rows as u64;
        let many = found > wanted && wanted <= WANTED_MAX && found <= costs.run_entries_max as u64;
        if !in_one_page || !many || !self.sorts_plainly(&paths) {
            return Ok(None);
        }
        let walked = wanted.saturating_mul(items) / found;
        if walked / ROWS_PER_ENTRY > found.saturating_mul(costs.entry_cost + self.load_cost()) {
            return Ok(None);
        }
        // Those that lack the path are to be had as well.
        if let Some(missed) = &walk.misses_undefined
            && items_lacking(self.reader, missed)?.is_none_or(|lacking| lacking.more)
        {
            return Ok(None);
        }
        Ok(Some(Instead::Candidates(found, bytes)))
    }
}

/// How many items pass the filter, and their bytes.
fn passing(
    reader: &mut ItemReader<'_>,
    sort: &ColumnSort,
    set: &ColumnSet,
    columns: &[&Column],
    places: &[ItemPlace],
) -> Ran<(u64, u64)> {
    let meter = Rc::clone(&reader.allowance.meter);
    let mut filter = sort.run(reader.query.prepared, columns.to_vec(), &meter);
    let mut count = |rows: &mut Vec<u32>| -> Ran<(u64, u64)> {
        filter.retain(rows)?;
        Ok((rows.len() as u64, rows.iter().map(|row| u64::from(set.sizes[*row as usize])).sum()))
    };
    let (mut found, mut bytes) = match set.passing(sort.filter_fingerprint()) {
        Some(known) => known,
        None => {
            reader.allowance.spend((set.rows() / STEP_ROWS) as u64)?;
            let (mut found, mut bytes, mut rows) = (0, 0, Vec::with_capacity(BLOCK_ROWS));
            for start in (0..set.rows()).step_by(BLOCK_ROWS) {
                reader.allowance.check_budget()?;
                rows.clear();
                rows.extend(start as u32..set.rows().min(start + BLOCK_ROWS) as u32);
                let (more, more_bytes) = count(&mut rows)?;
                (found, bytes) = (found + more, bytes + more_bytes);
            }
            set.learn_passing(sort.filter_fingerprint(), (found, bytes));
            (found, bytes)
        }
    };
    let mut stale: Vec<u32> =
        places.iter().filter(|place| place.stored).map(|place| place.row as u32).collect();
    let (gone, gone_bytes) = count(&mut stale)?;
    (found, bytes) = (found - gone, bytes - gone_bytes);
    for item in places.iter().filter_map(|place| place.item.as_ref()) {
        if reader.passes(item)? {
            (found, bytes) = (found + 1, bytes + item.document.len() as u64);
        }
    }
    Ok((found, bytes))
}
