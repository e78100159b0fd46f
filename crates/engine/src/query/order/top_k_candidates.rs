//! The best few of many candidates: their sort keys are read first, and only those that can be on the page are shown
//! to the query, which would else write out rows that it drops later.
//!
//! Where the candidates are more than a few of all items, and columns have what the query filters and sorts by, the
//! columns are read instead. Everything is counted as if it had been the candidates.

use std::rc::Rc;

use orrery_query::SortPosition;

use super::index_order::keys_of;
use super::sorted::Sorted;
use super::top_k::{Paths, TopK, as_queries_see_them};
use crate::item::Item;
use crate::partition::Span;
use crate::query::access_path::{Candidate, ItemReader, Part, STEP_ROWS};
use crate::query::page::Ran;

/// Pages of more rows are not worth it.
pub(super) const WANTED_MAX: u64 = 1_000;
/// Rows of columns that are read in the time in which a candidate is loaded.
pub(super) const ROWS_PER_LOAD: u64 = 200;

pub(super) struct TopCandidates {
    pub items: Vec<Item>,
    /// Candidates that are known to pass the filter.
    pub matched: u64,
}

impl Sorted<'_, '_> {
    /// The candidates among which the next rows are, in no order; `None` where sort keys or rows are not that simple.
    pub(super) fn top_k(&mut self, candidates: &[Candidate]) -> Ran<Option<TopCandidates>> {
        let prepared = self.reader.query.prepared;
        // One more than the page takes, so that it is known whether there is another.
        let wanted = self.wanted(self.passed).saturating_add(1);
        let paths = prepared.order_paths();
        if wanted > WANTED_MAX || candidates.len() as u64 <= wanted || !self.sorts_plainly(&paths) {
            return Ok(None);
        }
        if let Some(best) = top_k_by_columns(self.reader, candidates, self.after, wanted as usize, &paths)? {
            return Ok(Some(best));
        }
        let mut top = TopK::new(&paths, self.after, wanted as usize, wanted as usize);
        let mut matched = 0;
        for candidate in candidates {
            self.reader.allowance.check()?;
            let key = self.reader.view.item_key(&candidate.reference)?;
            let Some(item) = self.reader.load(&key)? else { continue };
            let sure = !candidate.uncertain;
            matched += u64::from(sure);
            let keys = as_queries_see_them(keys_of(&item, &paths));
            if !top.admits(&keys, item.number) {
                continue;
            }
            if !sure && !self.reader.passes(&item)? {
                continue;
            }
            matched += u64::from(!sure);
            top.keep(keys, item.number, item);
        }
        let (kept, _) = top.finish();
        Ok(Some(TopCandidates { items: kept.into_iter().map(|kept| kept.thing).collect(), matched }))
    }
}

/// The same from columns; `None` if there are none for this query, or the candidates are too few for them.
fn top_k_by_columns(
    reader: &mut ItemReader<'_>,
    candidates: &[Candidate],
    after: Option<&SortPosition>,
    wanted: usize,
    paths: &Paths,
) -> Ran<Option<TopCandidates>> {
    let (prepared, costs) = (reader.query.prepared, &reader.query.costs);
    let items = reader.view.item_count();
    let all = matches!(reader.query.span, Span::All);
    let few = (candidates.len() as u64).saturating_mul(ROWS_PER_LOAD) < items;
    if !all || few || costs.column_asks == 0 || items < costs.column_items_min {
        return Ok(None);
    }
    if candidates.iter().any(|candidate| candidate.uncertain) {
        return Ok(None);
    }
    let Some(sort) = prepared.column_sort() else { return Ok(None) };
    let Some(ready) = reader.view.ready_columns(sort.sources())? else {
        reader.make_columns_now(sort.sources(), costs.column_sort_asks)?;
        return Ok(None);
    };
    let set = &ready.set;
    let Some(Some(columns)) = set.columns(sort.sources()) else { return Ok(None) };
    reader.allowance.spend((set.rows() / STEP_ROWS) as u64)?;
    let places = reader.places(&ready, &columns)?;
    let mut top: TopK<'_, Found> = TopK::new(paths, after, wanted, wanted);
    let (mut found, mut bytes) = (0, 0);
    let meter = Rc::clone(&reader.allowance.meter);
    let mut rows = sort.run(prepared, columns, &meter);
    reader.show_all(&ready, &(0..set.rows()), &places, &mut |reader, part| match part {
        Part::Rows(part) => Ok(rows.visit(part, &mut |row, keys| {
            found += 1;
            bytes += u64::from(set.sizes[row]);
            if top.admits(&keys, set.numbers[row]) {
                top.keep(keys, set.numbers[row], Found::Row(row));
            }
        })?),
        Part::Item(_, item) => {
            if reader.passes(item)? {
                found += 1;
                bytes += item.document.len() as u64;
                let keys = as_queries_see_them(keys_of(item, paths));
                if top.admits(&keys, item.number) {
                    top.keep(keys, item.number, Found::Item(item.clone()));
                }
            }
            Ok(())
        }
    })?;
    // Entries say how many there are.
    if found != candidates.len() as u64 {
        return Ok(None);
    }
    let mut best = Vec::with_capacity(wanted);
    for kept in top.finish().0 {
        let item = match kept.thing {
            Found::Item(item) => Some(item),
            Found::Row(row) => reader.look_at(&set.key(row))?,
        };
        let Some(item) = item else { return Ok(None) };
        best.push(item);
    }
    reader.count_all_loaded(found, bytes);
    reader.report.ordered_by_columns();
    Ok(Some(TopCandidates { items: best, matched: found }))
}

/// Where one of the best is.
enum Found {
    Row(usize),
    Item(Item),
}
