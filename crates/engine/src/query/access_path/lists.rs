//! Items of a page in a list: in order of creation, or of storage.

use bytes::Bytes;
use orrery_query::Flow;

use super::ItemReader;
use super::lookup::Candidate;
use crate::item::{Item, readable};
use crate::partition::{Earliest, ORDERED_SCAN_ITEMS_MAX};
use crate::query::page::Ran;
use crate::query::{Progress, QueryPosition, SystemOf};

/// Bytes of items that are read to filter a small span before it is put in order of creation; with larger items it is
/// cheaper to take them in that order from the start.
pub(super) const PREFILTER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of items that are kept while candidates are put in order of creation; the others are loaded again.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What an item on a list takes, with its key.
const LISTED_BYTES: usize = 192;

/// An item on a list, loaded or not.
pub(in crate::query) struct Listed {
    pub number: u64,
    pub key: Bytes,
    pub item: Option<Item>,
}

/// Items in the order of the page, and whether there may be more behind them.
pub(in crate::query) struct List {
    pub items: Vec<Listed>,
    pub cut_off: bool,
    /// In order of creation, not of storage.
    created: bool,
}

impl List {
    /// Where the page goes on that begins with this item.
    pub fn position(&self, at: &Listed, progress: Progress) -> QueryPosition {
        match self.created {
            true => QueryPosition::Created { from: at.number, progress },
            false => QueryPosition::Stored { from: at.key.clone(), progress },
        }
    }
}

impl ItemReader<'_> {
    /// Candidates in order of creation, from a number on. Only the items tell their numbers, so all are loaded.
    pub fn by_creation(&mut self, candidates: Vec<Candidate>, from: u64) -> Ran<List> {
        self.allowance.meter.take(candidates.len() * LISTED_BYTES)?;
        let mut items = Vec::with_capacity(candidates.len());
        let mut kept_bytes = 0;
        for candidate in candidates {
            self.allowance.check()?;
            let key = self.view.item_key(&candidate.reference)?;
            let Some(item) = self.load(&key)? else { continue };
            if item.number < from {
                continue;
            }
            kept_bytes += item.document.len();
            if kept_bytes <= KEPT_BYTES_MAX {
                self.allowance.meter.take(item.document.len())?;
            }
            let number = item.number;
            items.push(Listed { number, key, item: (kept_bytes <= KEPT_BYTES_MAX).then_some(item) });
        }
        items.sort_unstable_by_key(|listed| listed.number);
        Ok(List { items, cut_off: false, created: true })
    }

    /// Candidates in storage order, from a key on.
    pub fn by_key(&mut self, candidates: &[Candidate], from: Option<&Bytes>) -> Ran<List> {
        self.allowance.meter.take(candidates.len() * LISTED_BYTES)?;
        let mut items = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            self.allowance.check()?;
            let key = self.view.item_key(&candidate.reference)?;
            if from.is_none_or(|from| key >= *from) {
                items.push(Listed { number: 0, key, item: None });
            }
        }
        items.sort_unstable_by(|left, right| left.key.cmp(&right.key));
        Ok(List { items, cut_off: false, created: false })
    }

    /// The items of the span from a number on, in order of creation; those that cannot pass the filter may be left out.
    pub fn list_created(&mut self, from: u64) -> Ran<List> {
        self.report.scan();
        // The span may have grown since the query began.
        let mut earliest = Earliest::new(ORDERED_SCAN_ITEMS_MAX);
        let mut keep = |number: u64, key: Bytes| {
            if number >= from {
                earliest.push(number, key);
            }
        };
        if !self.prefilter_columns(&mut keep)? && !self.prefilter(&mut keep)? {
            let mut orders = self.view.orders(self.query.span);
            while let Some((number, key)) = orders.next_order()? {
                self.allowance.check()?;
                keep(number, key);
            }
        }
        self.allowance.meter.take(earliest.len() * LISTED_BYTES)?;
        let cut_off = earliest.is_cut_off();
        let mut items = earliest.into_sorted_vec();
        items.dedup_by_key(|(number, _)| *number);
        let listed = |(number, key)| Listed { number, key, item: None };
        Ok(List { items: items.into_iter().map(listed).collect(), cut_off, created: true })
    }

    /// Reads the span in storage order, which is much faster than by number, and keeps what passes the filter. False:
    /// it has no filter that can be asked twice, or its items are large; all of them are to be kept.
    fn prefilter(&mut self, keep: &mut dyn FnMut(u64, Bytes)) -> Ran<bool> {
        self.foresee_all()?;
        if !self.query.prepared.filters_purely() {
            return Ok(false);
        }
        let mut making = self.make_columns(self.query.prepared.column_filter())?;
        let mut bytes = 0;
        self.visit(&mut |reader, key, item, document| {
            bytes += document.len();
            if bytes > PREFILTER_BYTES_MAX {
                return Ok(Flow::Stop);
            }
            making.push(reader, key, item.number, document);
            let system = SystemOf { item, system: reader.query.system };
            if reader.query.prepared.matches(system.row_of(readable(document)), &reader.allowance.meter)? {
                // Counted when it is loaded again for its row.
                keep(item.number, Bytes::copy_from_slice(key));
            } else {
                reader.count_loaded(document.len());
            }
            Ok(Flow::More)
        })?;
        let all = bytes <= PREFILTER_BYTES_MAX;
        if all {
            self.keep_columns(making);
        }
        Ok(all)
    }
}
