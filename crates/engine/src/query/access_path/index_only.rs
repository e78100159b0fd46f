//! What the index tells without loading items: how many there are, which values they have, how many words.
//!
//! Only while every entry's item counts: where something has expired or was purged and is not removed yet, items are
//! asked.

use std::rc::Rc;

use orrery_index::{ValueRange, prefix_end};
use orrery_model::{Kind, Value};
use orrery_query::pushdown::{Filter, Statistic};
use orrery_storage::Direction;

use super::allowance::tick;
use super::lookup::{self, Bound, Found, Lookup};
use super::{ItemReader, TermHits, search};
use crate::partition::Span;
use crate::partition::index::{Entry, PathNumber};
use crate::query::page::Ran;

/// Most candidates that are intersected for a count; beyond, the items are read in a row.
const COUNTED_CANDIDATES_MAX: usize = 1_000_000;
/// Entries of one value that are read in a row before the rest of them is leapt over: finding the next value costs
/// about as much.
const REPEATED_ENTRIES_MAX: usize = 32;
/// Most values of a path that are held to group or to tell apart by them.
const KEYED_VALUES_MAX: usize = 1_000_000;

impl ItemReader<'_> {
    /// How many items pass the filter, where entries tell.
    pub fn count_items(&mut self) -> Ran<Option<u64>> {
        let (view, span, prepared) = (self.view, self.query.span, self.query.prepared);
        if !view.hides_nothing()? {
            return Ok(None);
        }
        if prepared.takes_every_item() {
            return match span {
                Span::All => {
                    self.report.counted("the partition's own count");
                    Ok(Some(view.item_count()))
                }
                _ => {
                    self.report.counted("the order of creation");
                    let items = self.count_orders()?;
                    self.count_entries(items);
                    Ok(Some(items))
                }
            };
        }
        // Reading all entries of one path to check them is less than reading all items; of several paths it is not.
        let alone = matches!(self.filter, Filter::Scan(_));
        let Some(Bound { lookup, exact: true }) = lookup::bind(self.filter, view, span, alone) else {
            return Ok(None);
        };
        let mut entries_read = 0;
        let meter = Rc::clone(&self.allowance.meter);
        let reading = lookup::Reading { view, span, prepared, meter: &meter };
        let count = match &lookup {
            Lookup::Nothing => 0,
            Lookup::Scan { path, scan } => {
                let ask = &mut |reference: Option<&[u8]>| match reference {
                    Some(reference) => self.matches(reference),
                    None => self.allowance.check().map(|()| false),
                };
                lookup::count(*path, scan, reading, &mut entries_read, ask)?
            }
            Lookup::Cells { .. } | Lookup::Term { .. } | Lookup::All(_) | Lookup::Any(_) => {
                let found = lookup::collect(
                    &lookup,
                    reading,
                    COUNTED_CANDIDATES_MAX,
                    &mut entries_read,
                    &mut tick(self.query, self.allowance.steps_left()),
                )?;
                let Found::Candidates(candidates) = found else { return Ok(None) };
                // Asking many items one by one costs more than reading them all in a row.
                let asked = candidates.iter().filter(|candidate| candidate.uncertain).count();
                if asked > lookup::candidates_max(&self.query.costs, view.item_count()) {
                    return Ok(None);
                }
                let mut count = 0;
                for candidate in &candidates {
                    count += u64::from(!candidate.uncertain || self.matches(&candidate.reference)?);
                }
                count
            }
        };
        self.metrics.index_entries += entries_read;
        self.report.counted("index entries");
        Ok(Some(count))
    }

    /// How many items a part of the partition holds. Every item has one row that tells its place in the order of
    /// creation.
    fn count_orders(&mut self) -> Ran<u64> {
        let mut orders = self.view.orders(self.query.span);
        let mut count = 0;
        while orders.next_order()?.is_some() {
            self.allowance.check()?;
            count += 1;
        }
        Ok(count)
    }

    /// Whether the item of an entry passes the filter.
    fn matches(&mut self, reference: &[u8]) -> Ran<bool> {
        self.allowance.check()?;
        let key = self.view.item_key(reference)?;
        let Some(item) = self.load(&key)? else { return Ok(false) };
        self.passes(&item)
    }

    /// The values of a path's entries, as far as the query tells them apart; `None` where there are too many, or
    /// where entries do not tell which comes first: of long strings, arrays and objects.
    pub fn values_in_order(&mut self, path: PathNumber, ranges: &[ValueRange]) -> Ran<Option<Vec<Value>>> {
        let (view, span) = (self.view, self.query.span);
        let needs = self.query.prepared.needs();
        // Equal values make equal rows, of which DISTINCT wants one: the others need not even be read.
        let each_once = needs.distinct && !needs.group_by && needs.aggregates.is_empty();
        let mut values = Vec::new();
        let mut last = Vec::new();
        for range in ranges {
            let mut entries = view.entries(path, range, span, Direction::Forward, None);
            let mut repeated = 0;
            while let Some(entry) = entries.next_entry()? {
                self.allowance.check()?;
                if each_once && !last.is_empty() && entry.value() == last {
                    repeated += 1;
                    if repeated > REPEATED_ENTRIES_MAX {
                        self.metrics.index_entries += entries.rows_read();
                        let rest = ValueRange::of_bytes(prefix_end(&last), range.end.clone());
                        entries = view.entries(path, &rest, span, Direction::Forward, None);
                        repeated = 0;
                    }
                    continue;
                }
                let Some(value) = entry.decode() else { return Ok(None) };
                last.clear();
                last.extend_from_slice(entry.value());
                repeated = 0;
                self.allowance.meter.take(size_of::<Value>() + last.len())?;
                values.push(value);
                if values.len() > KEYED_VALUES_MAX {
                    return Ok(None);
                }
            }
            self.metrics.index_entries += entries.rows_read();
        }
        Ok(Some(values))
    }

    /// The entries with the least and the greatest value. `None` where one of them does not tell its value.
    pub fn extremes(&mut self, path: PathNumber, ranges: &[ValueRange]) -> Ran<Option<Vec<Entry>>> {
        let mut ends = Vec::with_capacity(2);
        for direction in [Direction::Forward, Direction::Reverse] {
            let in_order: Vec<&ValueRange> = match direction {
                Direction::Forward => ranges.iter().collect(),
                Direction::Reverse => ranges.iter().rev().collect(),
            };
            for range in in_order {
                let mut entries = self.view.entries(path, range, self.query.span, direction, None);
                let end = entries.next_entry()?;
                self.metrics.index_entries += entries.rows_read();
                if let Some(entry) = end {
                    // Of long strings that begin alike the index does not know which is the first.
                    if !entry.is_exact() && orrery_index::kind_of(entry.value()) == Some(Kind::String) {
                        return Ok(None);
                    }
                    ends.push(entry);
                    break;
                }
            }
        }
        Ok(Some(ends))
    }

    // ---- statistics

    /// The numbers that a query about all items asks for, where the index tells them.
    pub fn statistics(&mut self, statistics: &[Statistic]) -> Ran<Option<Vec<u64>>> {
        let (view, span) = (self.view, self.query.span);
        if !view.hides_nothing()? {
            return Ok(None);
        }
        let mut totals = Vec::with_capacity(statistics.len());
        for statistic in statistics {
            let path = match statistic {
                Statistic::Items => None,
                Statistic::Words(place, language) => Some((place, *language)),
                Statistic::Texts(place, term) => Some((place, term.language())),
            };
            let path = match path
                .map(|(place, language)| (place, search::text(view, place, [language].into_iter())))
            {
                Some((_, None)) => return Ok(None),
                Some((place, Some(path))) => Some((path, place)),
                None => None,
            };
            if let Some((_, place)) = path {
                self.report.used(place);
            }
            totals.push(match (statistic, path) {
                (Statistic::Words(..), Some((path, _))) => {
                    let (words, read) = view.total_words(&path, span)?;
                    self.metrics.index_entries += read;
                    words
                }
                (Statistic::Texts(_, term), Some((path, _))) => {
                    let Some(mut hits) = TermHits::new(view, &path, term, span)? else { return Ok(None) };
                    let mut count = 0;
                    while hits.next_hit()?.is_some() {
                        self.allowance.check()?;
                        count += 1;
                    }
                    self.metrics.index_entries += hits.read();
                    count
                }
                _ => self.items_of_span()?,
            });
        }
        Ok(Some(totals))
    }

    /// How many items there are. Only while nothing is hidden.
    fn items_of_span(&mut self) -> Ran<u64> {
        if matches!(self.query.span, Span::All) { Ok(self.view.item_count()) } else { self.count_orders() }
    }
}
