//! Sorted rows that no index has in order: a window of them is put in order at once, and kept for the pages to come.
//!
//! Items that lack the sorted path, long runs of equal values, candidates of a filter: where a page's rows lie is
//! only known when everything has been looked at. So the look is for many pages. The first rows from the page's
//! position on, up to `window_rows` of them, are noted by number and key, and kept under a number that the position
//! carries (`result_cache`). A later page only loads its own items. Reading a result of any length to its end looks
//! at everything once for each window, and no page holds more than one window.
//!
//! ```text
//! an entry of a window: number of the item (8) · what its sort keys were (8) · key of the item
//! ```
//!
//! An item that was changed meanwhile is shown as it is now, if it still sorts where it did; one that sorts
//! elsewhere, or is gone, is passed over, as it would be by any page that goes on behind its old place. Without the
//! window, after a restart or for want of room, the page's position says where to go on and a new one is made.

use bytes::Bytes;
use orrery_model::{Value, murmur3_x64_128};
use orrery_query::merge::CachedRows;
use orrery_query::{Execution, Flow, SortPosition};

use super::index_order::{keys_in, keys_of};
use super::sorted::Sorted;
use super::top_k::{Paths, TopK, as_queries_see_them};
use crate::item::{Item, readable};
use crate::query::access_path::{Candidate, ItemReader};
use crate::query::page::Ran;
use crate::query::position::{WindowPosition, stored_keys};
use crate::query::result_cache::ResultCachePlace;
use crate::query::{PartitionQuery, QueryPosition, SystemOf};

/// Where the items of a window come from.
pub(super) enum Source<'c> {
    /// Everything in the span.
    Span,
    Candidates(&'c [Candidate]),
    /// Entries of one value.
    Run(&'c [Bytes]),
}

/// How the rows of a window went out.
enum Shown {
    /// No row comes after the page.
    Over,
    /// The page ends before this entry.
    Full(usize),
    /// There is room in the page.
    Through,
}

const MARK_AT: usize = 8;
const KEY_AT: usize = 16;

impl<'q> Sorted<'_, 'q> {
    /// Whether the order of the rows is that of paths which can be read from an item alone, each of which is one row.
    pub(super) fn sorts_plainly(&self, paths: &Paths) -> bool {
        let prepared = self.reader.query.prepared;
        let plain = |(path, _): &(Vec<String>, bool)| {
            path.first().is_some_and(|name| !name.starts_with('_') || (name == "_ts" && path.len() == 1))
        };
        paths.len() == prepared.order_count() && paths.iter().all(plain) && prepared.gives_a_row_per_item()
    }

    /// A page from a new window; `None` where the order is not that simple.
    pub(super) fn windowed(&mut self, source: &Source<'_>) -> Ran<Option<Option<QueryPosition>>> {
        let paths = self.reader.query.prepared.order_paths();
        if !self.sorts_plainly(&paths) {
            return Ok(None);
        }
        let mut execution = self.execution().presorted();
        loop {
            let from = execution.sort_position().cloned();
            let (rows, cut) = self.window(from.as_ref(), execution.passed(), source, &paths)?;
            match self.show(&mut execution, &rows, 0, &paths)? {
                Shown::Over => return Ok(Some(None)),
                Shown::Full(next) => return Ok(Some(self.behind(&execution, rows, next, !cut))),
                Shown::Through if !cut => return Ok(Some(None)),
                // All of them were skipped by OFFSET.
                Shown::Through if self.output.rows() == 0 && execution.sort_position() != from.as_ref() => {}
                Shown::Through => return Ok(Some(self.after_page(&execution))),
            }
        }
    }

    /// Puts the entries of one value in order and shows them; `None` where the page has room for what comes behind
    /// them.
    pub(super) fn run_window(
        &mut self,
        execution: &mut Execution<'q>,
        run: &[Bytes],
        paths: &Paths,
    ) -> Ran<Option<Option<QueryPosition>>> {
        let from = execution.sort_position().cloned();
        let (rows, cut) = self.window(from.as_ref(), execution.passed(), &Source::Run(run), paths)?;
        Ok(match self.show(execution, &rows, 0, paths)? {
            Shown::Over => Some(None),
            Shown::Full(next) => Some(self.behind(execution, rows, next, false)),
            Shown::Through if cut => Some(self.after_page(execution)),
            Shown::Through => None,
        })
    }

    /// A page from the window that an earlier one has made; `None` where it is gone.
    pub(super) fn kept_window(&mut self, window: WindowPosition) -> Ran<Option<Option<QueryPosition>>> {
        let Some(cache) = self.reader.query.result_cache else { return Ok(None) };
        let place = self.window_place();
        let Some(kept) = cache.find(&place, window.cached, 0) else { return Ok(None) };
        let paths = self.reader.query.prepared.order_paths();
        let next = usize::try_from(window.next).unwrap_or(usize::MAX);
        if next >= kept.rows.len() || !self.sorts_plainly(&paths) {
            return Ok(None);
        }
        let mut execution = self.execution().presorted();
        let shown = self.show(&mut execution, &kept.rows, next, &paths)?;
        if self.output.rows() > 0 {
            self.reader.report.cached();
        }
        Ok(match shown {
            Shown::Full(next) if next < kept.rows.len() => {
                Some(self.after_page(&execution).map(|at| at.in_window(window.cached, next)))
            }
            Shown::Over => {
                cache.forget(&place, window.cached);
                Some(None)
            }
            Shown::Full(_) | Shown::Through => {
                cache.forget(&place, window.cached);
                match (kept.ends, self.output.rows()) {
                    (true, _) => Some(None),
                    (false, 0) => None,
                    (false, _) => Some(self.after_page(&execution)),
                }
            }
        })
    }

    /// The first rows behind a position, and whether more of them come after those.
    fn window(
        &mut self,
        after: Option<&SortPosition>,
        passed: u64,
        source: &Source<'_>,
        paths: &Paths,
    ) -> Ran<(orrery_query::Rows, bool)> {
        let rows_max = self.reader.query.costs.window_rows.max(1) as u64;
        let page = self.wanted(passed).min(rows_max.max(self.reader.query.limits.rows as u64));
        let ahead = match self.reader.query.result_cache {
            Some(_) => self.wanted_at_all(passed).min(rows_max).max(page),
            None => page,
        };
        let mut top = TopK::new(paths, after, ahead as usize, page as usize);
        match source {
            Source::Span => sift_span(self.reader, &mut top, paths)?,
            Source::Candidates(candidates) => {
                for candidate in *candidates {
                    sift_item(self.reader, &mut top, paths, &candidate.reference, !candidate.uncertain)?;
                }
            }
            Source::Run(references) => {
                for reference in *references {
                    sift_item(self.reader, &mut top, paths, reference, false)?;
                }
            }
        }
        let (kept, cut) = top.finish();
        let mut rows = orrery_query::Rows::default();
        let mut entry = Vec::new();
        for kept in kept {
            entry.clear();
            entry.extend_from_slice(&kept.number.to_be_bytes());
            entry.extend_from_slice(&mark(&kept.keys).to_be_bytes());
            entry.extend_from_slice(&kept.thing);
            rows.push(&entry);
        }
        Ok((rows, cut))
    }

    /// Shows the items of a window from an entry on.
    fn show(
        &mut self,
        execution: &mut Execution<'q>,
        rows: &orrery_query::Rows,
        from: usize,
        paths: &Paths,
    ) -> Ran<Shown> {
        for at in from..rows.len() {
            if self.reader.allowance.is_out_of_time()? && self.output.rows() > 0 {
                return Ok(Shown::Full(at));
            }
            let Some(item) =
                rows.get(at).map(|entry| in_its_place(self.reader, entry, paths)).transpose()?.flatten()
            else {
                continue;
            };
            if self.output.push(execution, &item, &mut self.reader.allowance)? == Flow::Stop {
                return Ok(if execution.is_done() { Shown::Over } else { Shown::Full(at + 1) });
            }
        }
        Ok(Shown::Through)
    }

    /// Where to go on after a page that did not take all of its window, which is kept for that.
    fn behind(
        &self,
        execution: &Execution<'q>,
        rows: orrery_query::Rows,
        next: usize,
        ends: bool,
    ) -> Option<QueryPosition> {
        if next >= rows.len() {
            return if ends { None } else { self.after_page(execution) };
        }
        let at = self.after_page(execution)?;
        let Some(cache) = self.reader.query.result_cache else { return Some(at) };
        let number = cache.keep(self.window_place(), CachedRows { first: 0, rows, ends });
        Some(at.in_window(number, next))
    }

    fn window_place(&self) -> ResultCachePlace {
        let PartitionQuery { span, prepared, .. } = *self.reader.query;
        ResultCachePlace::of_span(self.reader.view.identity(), span, prepared.order_fingerprint())
    }
}

/// Offers all items of the span that pass the filter.
fn sift_span(reader: &mut ItemReader<'_>, top: &mut TopK<'_, Bytes>, paths: &Paths) -> Ran<()> {
    reader.report.scan();
    reader.foresee_all()?;
    let every = reader.query.prepared.takes_every_item();
    reader.visit(&mut |reader, key, item, document| {
        let body = readable(document);
        let system = SystemOf { item, system: reader.query.system };
        if !every && !reader.query.prepared.matches(system.row_of(body), &reader.allowance.meter)? {
            reader.count_loaded(document.len());
            return Ok(Flow::More);
        }
        reader.count_sifted();
        let keys = as_queries_see_them(keys_in(item, body, paths));
        if top.admits(&keys, item.number) {
            top.keep(keys, item.number, Bytes::copy_from_slice(key));
        }
        Ok(Flow::More)
    })
}

/// Offers an item. `sure`: it is known to pass the filter.
fn sift_item(
    reader: &mut ItemReader<'_>,
    top: &mut TopK<'_, Bytes>,
    paths: &Paths,
    reference: &[u8],
    sure: bool,
) -> Ran<()> {
    reader.allowance.check()?;
    let key = reader.view.item_key(reference)?;
    let Some(item) = reader.look_at(&key)? else { return Ok(()) };
    if !sure && !reader.passes(&item)? {
        reader.count_loaded(item.document.len());
        return Ok(());
    }
    reader.count_sifted();
    let keys = as_queries_see_them(keys_of(&item, paths));
    if top.admits(&keys, item.number) {
        top.keep(keys, item.number, key);
    }
    Ok(())
}

/// The item of an entry, unless it has gone or come to sort elsewhere.
fn in_its_place(reader: &mut ItemReader<'_>, entry: &[u8], paths: &Paths) -> Ran<Option<Item>> {
    let (Some((number, rest)), Some(key)) = (entry.split_first_chunk(), entry.get(KEY_AT..)) else {
        return Ok(None);
    };
    let was = rest.first_chunk::<{ KEY_AT - MARK_AT }>();
    let Some(item) = reader.load(key)? else { return Ok(None) };
    let same = item.number == u64::from_be_bytes(*number)
        && was == Some(&mark(&as_queries_see_them(keys_of(&item, paths))).to_be_bytes());
    Ok(same.then_some(item))
}

/// Tells sort keys from others.
fn mark(keys: &[Value]) -> u64 {
    murmur3_x64_128(&stored_keys(keys)).0
}
