//! Queries that the index answers without loading items: counts, extremes, aggregates over one path.
//!
//! Only while every entry's item counts: where something has expired or was purged and is not removed yet, items are asked.

use std::rc::Rc;

use orrery_index::{ValueRange, prefix_end};
use orrery_model::Value;
use orrery_query::access::{Cover, Filter};
use orrery_query::{Execution, Flow};
use orrery_storage::Direction;

use super::index_order::{keys_in, keys_of};
use super::lookup::{self, Bound, Found, Lookup};
use super::materialized::order_matters;
use super::page::{Ran, Run, tick};
use super::position::Order;
use super::{QueryPosition, SystemOf};
use crate::item::readable;
use crate::partition::Span;
use crate::partition::index::{Entry, IndexedPath, PathNumber};

/// Most candidates that are intersected for a count; beyond, the items are read in a row.
const COUNTED_CANDIDATES_MAX: usize = 1_000_000;
/// Entries of one value that are read in a row before the rest of them is leapt over: finding the next value costs about as much.
const REPEATED_ENTRIES_MAX: usize = 32;
/// Most values of a path that are held to group or to tell apart by them.
const KEYED_VALUES_MAX: usize = 1_000_000;

fn path_of(cover: &Cover) -> [(Vec<String>, bool); 1] {
    let names = cover.place.names().unwrap_or_default();
    [(names.into_iter().map(str::to_owned).collect(), false)]
}

impl<'q> Run<'q> {
    /// The page, if the index alone gives it. `delivered` rows of it were sent before.
    pub fn covered(&mut self, delivered: u64) -> Ran<Option<Option<QueryPosition>>> {
        let prepared = self.query.prepared;
        if delivered == 0
            && let Some(statistics) = prepared.statistics()
            && let Some(totals) = self.statistics(&statistics)?
        {
            let mut execution = Execution::new(prepared).within(&self.meter).written_as(self.query.format);
            execution.set_totals(&totals);
            self.report.counted("rows of words");
            self.finish(&mut execution)?;
            return Ok(Some(None));
        }
        if delivered == 0
            && prepared.counts_items()
            && let Some(items) = self.count_items()?
        {
            let mut execution = Execution::new(prepared).within(&self.meter).written_as(self.query.format);
            execution.count_items(items);
            self.metrics.matched_items += items;
            self.finish(&mut execution)?;
            return Ok(Some(None));
        }
        // Inside a logical partition the entries of many values do not lie together, and its items do.
        if matches!(self.query.span, Span::Key { .. }) {
            return Ok(None);
        }
        // Rows of groups and distinct rows come in the order of their first items, which entries do not tell.
        let keyed = prepared.needs().group_by || order_matters(prepared);
        if keyed && delivered == 0 && self.is_small()? {
            return Ok(None);
        }
        let Some(cover) = prepared.cover() else { return Ok(None) };
        if self.view.hides_nothing()?
            && let IndexedPath::Entries(path) = lookup::indexed(self.view, &cover.place)
            && let Some(done) = self.over_entries(&cover, path, delivered, keyed)?
        {
            return Ok(Some(done));
        }
        // What began by value goes on by value, without the index if need be.
        if keyed { self.over_values(&cover, delivered).map(Some) } else { Ok(None) }
    }

    /// How many items pass the filter, where entries tell.
    fn count_items(&mut self) -> Ran<Option<u64>> {
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
                    self.count_orders().map(Some)
                }
            };
        }
        // Reading all entries of one path to check them is less than reading all items; of several paths it is not.
        let alone = matches!(self.filter, Filter::Scan(_));
        let Some(Bound { lookup, exact: true }) = lookup::bind(self.filter, view, span, alone) else {
            return Ok(None);
        };
        let mut entries_read = 0;
        let meter = Rc::clone(&self.meter);
        let reading = lookup::Reading { view, span, prepared, meter: &meter };
        let count = match &lookup {
            Lookup::Nothing => 0,
            Lookup::Scan { path, scan } => {
                let ask = &mut |reference: Option<&[u8]>| match reference {
                    Some(reference) => self.matches(reference),
                    None => self.check_cancelled().map(|()| false),
                };
                lookup::count(*path, scan, reading, &mut entries_read, ask)?
            }
            Lookup::Cells { .. } | Lookup::Term { .. } | Lookup::All(_) | Lookup::Any(_) => {
                let found = lookup::collect(
                    &lookup,
                    reading,
                    COUNTED_CANDIDATES_MAX,
                    &mut entries_read,
                    &mut tick(self.query, self.steps_left),
                )?;
                let Found::Candidates(candidates) = found else { return Ok(None) };
                // Asking many items one by one costs more than reading them all in a row.
                let asked = candidates.iter().filter(|candidate| candidate.uncertain).count();
                if asked > lookup::candidates_max(&self.query.tuning, view.item_count()) {
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

    /// How many items a part of the partition holds. Every item has one row that tells its place in the order of creation.
    pub(super) fn count_orders(&mut self) -> Ran<u64> {
        let mut orders = self.view.orders(self.query.span);
        let mut count = 0;
        while orders.next_order()?.is_some() {
            self.check_cancelled()?;
            count += 1;
        }
        self.metrics.index_entries += count;
        Ok(count)
    }

    fn matches(&mut self, reference: &[u8]) -> Ran<bool> {
        self.check_cancelled()?;
        let key = self.view.item_key(reference)?;
        let Some(item) = self.load(&key)? else { return Ok(false) };
        Ok(self
            .query
            .prepared
            .matches(SystemOf { item: &item, system: self.query.system }.row(), &self.meter)?)
    }

    /// Runs the query over the values of a path's entries. `None` where entries do not tell the order of the rows.
    fn over_entries(
        &mut self,
        cover: &Cover,
        path: PathNumber,
        delivered: u64,
        keyed: bool,
    ) -> Ran<Option<Option<QueryPosition>>> {
        let ranges = match self.filter {
            Filter::Scan(scan) if scan.place == cover.place => scan.ranges.clone(),
            _ => vec![ValueRange::defined()],
        };
        let view = self.view;
        if keyed {
            let Some(values) = self.values_in_order(path, &ranges)? else { return Ok(None) };
            self.report.covered(&cover.place.to_string());
            return self.push_values(cover, &values, delivered).map(Some);
        }
        self.report.covered(&cover.place.to_string());
        let mut execution = Execution::resume(&cover.prepared, 0, delivered)
            .within(&self.meter)
            .written_as(self.query.format);
        let plain = match self.filter {
            Filter::Scan(scan) => scan.check.is_none() && scan.exact,
            _ => self.query.prepared.takes_every_item(),
        };
        if plain && cover.is_extreme() && self.extremes(cover, path, &ranges, &mut execution)? {
            return self.end_covered(execution, delivered).map(Some);
        }
        for range in &ranges {
            let mut entries = view.entries(path, range, self.query.span, Direction::Forward, None);
            while let Some(entry) = entries.next_entry()? {
                self.check_cancelled()?;
                self.push_entry(cover, &entry, 0, &mut execution)?;
            }
            self.metrics.index_entries += entries.rows_read();
        }
        self.end_covered(execution, delivered).map(Some)
    }

    /// The values of a path's entries, as far as the query tells them apart; `None` where there are too many, or where entries
    /// do not tell which comes first: of long strings, arrays and objects.
    fn values_in_order(&mut self, path: PathNumber, ranges: &[ValueRange]) -> Ran<Option<Vec<Value>>> {
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
                self.check_cancelled()?;
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
                self.meter.take(size_of::<Value>() + last.len())?;
                values.push(value);
                if values.len() > KEYED_VALUES_MAX {
                    return Ok(None);
                }
            }
            self.metrics.index_entries += entries.rows_read();
        }
        Ok(Some(values))
    }

    /// Runs the query over the values that the items have, in their order.
    fn over_values(&mut self, cover: &Cover, delivered: u64) -> Ran<Option<QueryPosition>> {
        self.report.scan();
        self.foresee_all()?;
        let path = path_of(cover);
        let mut values = Vec::new();
        self.visit(&mut |run, _, item, document| {
            run.count(document.len());
            let value = keys_in(item, readable(document), &path).pop().unwrap_or_default();
            if !value.is_undefined() {
                run.meter.take(size_of::<Value>() + value.to_document().len())?;
                values.push(value);
            }
            Ok(Flow::More)
        })?;
        values.sort_by(Value::compare);
        self.push_values(cover, &values, delivered)
    }

    fn push_values(&mut self, cover: &Cover, values: &[Value], delivered: u64) -> Ran<Option<QueryPosition>> {
        let mut execution = Execution::resume(&cover.prepared, 0, delivered)
            .within(&self.meter)
            .written_as(self.query.format);
        for (number, value) in values.iter().enumerate() {
            let out = &mut self.out;
            if execution.push_value(value, number as u64, &mut |row| out.take(row))? == Flow::Stop {
                return Ok(self.rest(delivered, Order::Value, execution.is_done()));
            }
        }
        self.end_covered(execution, delivered)
    }

    fn end_covered(&mut self, mut execution: Execution<'_>, delivered: u64) -> Ran<Option<QueryPosition>> {
        self.metrics.matched_items += execution.matched();
        let out = &mut self.out;
        execution.finish(&mut |row| out.take(row))?;
        self.check_out()?;
        Ok(self.rest(delivered, Order::Value, execution.is_done()))
    }

    /// MIN and MAX are at the ends of the ranges. False where an end does not tell its value.
    fn extremes(
        &mut self,
        cover: &Cover,
        path: PathNumber,
        ranges: &[ValueRange],
        execution: &mut Execution<'_>,
    ) -> Ran<bool> {
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
                    if !entry.is_exact()
                        && orrery_index::kind_of(entry.value()) == Some(orrery_model::Kind::String)
                    {
                        return Ok(false);
                    }
                    ends.push(entry);
                    break;
                }
            }
        }
        for (number, entry) in ends.iter().enumerate() {
            self.push_entry(cover, entry, number as u64, execution)?;
        }
        Ok(true)
    }

    fn push_entry(
        &mut self,
        cover: &Cover,
        entry: &Entry,
        number: u64,
        execution: &mut Execution<'_>,
    ) -> Ran<Flow> {
        let value = match entry.decode() {
            Some(value) => value,
            None => {
                let key = self.view.item_key(entry.reference())?;
                let Some(item) = self.load(&key)? else { return Ok(Flow::More) };
                keys_of(&item, &path_of(cover)).pop().unwrap_or_default()
            }
        };
        let out = &mut self.out;
        Ok(execution.push_value(&value, number, &mut |row| out.take(row))?)
    }
}
