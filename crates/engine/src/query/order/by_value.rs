//! Rows that the index gives without loading items: counts, extremes, aggregates and groups over one path.
//!
//! Values come in their order, and a page that began with them goes on by value, without the index if need be.

use orrery_index::ValueRange;
use orrery_model::Value;
use orrery_query::pushdown::{Cover, Filter};
use orrery_query::{Execution, Flow};
use orrery_storage::Direction;

use super::index_order::{keys_in, keys_of};
use super::materialized::{Materialized, order_matters};
use crate::item::readable;
use crate::partition::Span;
use crate::partition::index::{Entry, IndexedPath, PathNumber};
use crate::query::QueryPosition;
use crate::query::access_path::lookup;
use crate::query::page::Ran;
use crate::query::position::Order;

fn path_of(cover: &Cover) -> [(Vec<String>, bool); 1] {
    let names = cover.place.names().unwrap_or_default();
    [(names.into_iter().map(str::to_owned).collect(), false)]
}

impl Materialized<'_, '_> {
    /// The page, if the index alone gives it.
    pub(super) fn by_value(&mut self) -> Ran<Option<Option<QueryPosition>>> {
        let prepared = self.reader.query.prepared;
        if self.delivered == 0
            && let Some(statistics) = prepared.statistics()
            && let Some(totals) = self.reader.statistics(&statistics)?
        {
            let mut execution = self.reader.bounded(Execution::new(prepared));
            execution.set_totals(&totals);
            self.reader.report.counted("rows of words");
            self.output.finish(&mut execution)?;
            return Ok(Some(None));
        }
        if self.delivered == 0
            && prepared.counts_items()
            && let Some(items) = self.reader.count_items()?
        {
            let mut execution = self.reader.bounded(Execution::new(prepared));
            execution.count_items(items);
            self.output.count_matched(items);
            self.output.finish(&mut execution)?;
            return Ok(Some(None));
        }
        // Inside a logical partition the entries of many values do not lie together, and its items do.
        if matches!(self.reader.query.span, Span::Key { .. }) {
            return Ok(None);
        }
        // Rows of groups and distinct rows come in the order of their first items, which entries do not tell.
        let keyed = prepared.needs().group_by || order_matters(prepared);
        if keyed && self.delivered == 0 && self.reader.is_small()? {
            return Ok(None);
        }
        let Some(cover) = prepared.cover() else { return Ok(None) };
        if self.reader.view.hides_nothing()?
            && let IndexedPath::Entries(path) = lookup::indexed(self.reader.view, &cover.place)
            && let Some(done) = self.over_entries(&cover, path, keyed)?
        {
            return Ok(Some(done));
        }
        // What began by value goes on by value, without the index if need be.
        if keyed { self.over_values(&cover).map(Some) } else { Ok(None) }
    }

    /// Runs the query over the values of a path's entries. `None` where entries do not tell the order of the rows.
    fn over_entries(
        &mut self,
        cover: &Cover,
        path: PathNumber,
        keyed: bool,
    ) -> Ran<Option<Option<QueryPosition>>> {
        let ranges = match self.reader.filter {
            Filter::Scan(scan) if scan.place == cover.place => scan.ranges.clone(),
            _ => vec![ValueRange::defined()],
        };
        let view = self.reader.view;
        if keyed {
            let Some(values) = self.reader.values_in_order(path, &ranges)? else { return Ok(None) };
            self.reader.report.covered(&cover.place.to_string());
            return self.push_values(cover, &values).map(Some);
        }
        self.reader.report.covered(&cover.place.to_string());
        let mut execution = self.reader.bounded(Execution::resume(&cover.prepared, 0, self.delivered));
        let plain = match self.reader.filter {
            Filter::Scan(scan) => scan.check.is_none() && scan.exact,
            _ => self.reader.query.prepared.takes_every_item(),
        };
        // MIN and MAX are at the ends of the ranges.
        if plain
            && cover.is_extreme()
            && let Some(ends) = self.reader.extremes(path, &ranges)?
        {
            for (number, entry) in ends.iter().enumerate() {
                self.push_entry(cover, entry, number as u64, &mut execution)?;
            }
            return self.end(execution).map(Some);
        }
        for range in &ranges {
            let mut entries = view.entries(path, range, self.reader.query.span, Direction::Forward, None);
            while let Some(entry) = entries.next_entry()? {
                self.reader.allowance.check()?;
                self.push_entry(cover, &entry, 0, &mut execution)?;
            }
            self.reader.count_entries(entries.rows_read());
        }
        self.end(execution).map(Some)
    }

    /// Runs the query over the values that the items have, in their order.
    fn over_values(&mut self, cover: &Cover) -> Ran<Option<QueryPosition>> {
        self.reader.report.scan();
        self.reader.foresee_all()?;
        let path = path_of(cover);
        let mut values = Vec::new();
        self.reader.visit(&mut |reader, _, item, document| {
            reader.count_loaded(document.len());
            let value = keys_in(item, readable(document), &path).pop().unwrap_or_default();
            if !value.is_undefined() {
                reader.allowance.meter.take(size_of::<Value>() + value.to_document().len())?;
                values.push(value);
            }
            Ok(Flow::More)
        })?;
        values.sort_by(Value::compare);
        self.push_values(cover, &values)
    }

    fn push_values(&mut self, cover: &Cover, values: &[Value]) -> Ran<Option<QueryPosition>> {
        let mut execution = self.reader.bounded(Execution::resume(&cover.prepared, 0, self.delivered));
        for (number, value) in values.iter().enumerate() {
            if self.output.push_value(&mut execution, value, number as u64)? == Flow::Stop {
                return Ok(self.rest(Order::Value, execution.is_done()));
            }
        }
        self.end(execution)
    }

    fn end(&mut self, mut execution: Execution<'_>) -> Ran<Option<QueryPosition>> {
        self.output.count_matched(execution.matched());
        self.output.finish(&mut execution)?;
        Ok(self.rest(Order::Value, execution.is_done()))
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
                let key = self.reader.view.item_key(entry.reference())?;
                let Some(item) = self.reader.load(&key)? else { return Ok(Flow::More) };
                keys_of(&item, &path_of(cover)).pop().unwrap_or_default()
            }
        };
        self.output.push_value(execution, &value, number)
    }
}
