//! Groups, aggregates and filters from columns: what reading items would give, without reading them.
//!
//! Rows come in the order of the items' keys, changed and deferred ones in their places from the page's own snapshot,
//! and everything is counted as if items had been read the way they would have been: all of them in a row, or those
//! that the entries of a path lead to when each of them is checked. A client sees no difference but the time.

use std::ops::{Range, RangeBounds};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use orrery_query::columns::{Column, ColumnQuery, ColumnRun, ColumnSort, ColumnSource, LookedUp};
use orrery_query::pushdown::Check;
use orrery_query::{Execution, Flow};

use super::ItemReader;
use super::lists::PREFILTER_BYTES_MAX;
use super::lookup::{self, Bound, Lookup};
use crate::columns::{Building, ColumnSet, Ready, SetBuilder, Work, renew};
use crate::item::{Item, readable};
use crate::partition::{Span, rows_of};
use crate::query::SystemOf;
use crate::query::output::Output;
use crate::query::page::Ran;

/// Rows of columns that are one step of a page.
pub(in crate::query) const STEP_ROWS: usize = 32;
/// Rows between two looks at whether anybody waits.
const LOOK_ROWS: usize = 16 * 1_024;
/// Rows between two looks at how large a set has become.
const SIZE_ROWS: usize = 4 * 1_024;
/// A query that would not read all items has to be asked once more for each so many of them before they are read for
/// it.
const ITEMS_PER_ASK: u64 = 16 * 1_024;

/// A place among the rows where the item itself is asked.
pub(in crate::query) struct ItemPlace {
    pub row: usize,
    pub key: Bytes,
    /// What the set has there is out of date, if it has anything.
    changed: bool,
    /// The set has a row of this key.
    pub stored: bool,
    pub item: Option<Item>,
}

/// A check of each entry of a path, instead of which a column is read.
struct Checked<'f> {
    source: usize,
    check: &'f Check,
}

/// What a page is shown.
pub(in crate::query) enum Part<'p> {
    Rows(Range<usize>),
    Item(&'p Bytes, &'p Item),
}

/// Columns that are made while all items are looked at.
pub(in crate::query) struct Making {
    building: Option<Building>,
    rows: usize,
}

/// What a page has seen, as if it had read everything, and as if it had looked it up.
#[derive(Default)]
struct Seen {
    items: u64,
    bytes: u64,
    looked_up: LookedUp,
}

impl<'q> ItemReader<'q> {
    /// Adds all items of the span from columns; `None` if there are none for this query.
    pub fn push_columns(
        &mut self,
        output: &mut Output<'q>,
        execution: &mut Execution<'q>,
    ) -> Ran<Option<Flow>> {
        if self.query.costs.column_asks == 0 || !self.view.columns().is_noting() {
            return Ok(None);
        }
        let Some(query) = self.query.prepared.column_query() else { return Ok(None) };
        let Some(ready) = self.view.ready_columns(query.sources())? else { return Ok(None) };
        let Some(seen) = self.over_columns(&query, &ready, None, output, execution)? else { return Ok(None) };
        self.count_all_loaded(seen.items, seen.bytes);
        self.report.columns();
        Ok(Some(Flow::More))
    }

    /// The same for a query whose items would be found by checking all entries of one of its paths.
    pub fn push_checked(
        &mut self,
        output: &mut Output<'q>,
        execution: &mut Execution<'q>,
    ) -> Ran<Option<Flow>> {
        let costs = &self.query.costs;
        let all = matches!(self.query.span, Span::All);
        if !all || costs.column_asks == 0 || self.view.item_count() < costs.column_items_min {
            return Ok(None);
        }
        let Some(Bound { lookup: Lookup::Scan { scan, .. }, .. }) =
            lookup::bind(self.filter, self.view, self.query.span, false)
        else {
            return Ok(None);
        };
        let (Some(check), Some(names), true) = (&scan.check, scan.place.names(), scan.is_of_all()) else {
            return Ok(None);
        };
        let Some(mut query) = self.query.prepared.column_query() else { return Ok(None) };
        let Some(source) = query.sources().iter().position(|source| source.is_path(&names)) else {
            return Ok(None);
        };
        let Some(ready) = self.view.ready_columns(query.sources())? else {
            self.make_columns_now(query.sources(), 0)?;
            return Ok(None);
        };
        query.look_up(source, check);
        let Some(seen) =
            self.over_columns(&query, &ready, Some(Checked { source, check }), output, execution)?
        else {
            return Ok(None);
        };
        self.count_entries(seen.looked_up.entries);
        let candidates = seen.looked_up.candidates;
        if candidates <= lookup::candidates_max(costs, self.view.item_count()) as u64 {
            self.report.candidates(candidates);
            self.count_all_loaded(candidates, seen.looked_up.candidate_bytes);
        } else {
            self.report.gave_up();
            self.count_all_loaded(seen.items, seen.bytes);
        }
        self.report.columns();
        Ok(Some(Flow::More))
    }

    /// Adds the rows of the span. `None`, and nothing added, where entries would not have told what is checked.
    fn over_columns(
        &mut self,
        query: &ColumnQuery,
        ready: &Ready,
        checked: Option<Checked<'_>>,
        output: &mut Output<'q>,
        execution: &mut Execution<'q>,
    ) -> Ran<Option<Seen>> {
        let set = &ready.set;
        let Some(Some(columns)) = set.columns(query.sources()) else { return Ok(None) };
        if checked.as_ref().is_some_and(|checked| !columns[checked.source].is_plain()) {
            return Ok(None);
        }
        let span = self.query.span;
        let rows = rows_of(set, span).0;
        self.allowance.spend((rows.len() / STEP_ROWS) as u64)?;
        let places = self.places(ready, &columns)?;
        let source = checked.as_ref().map(|checked| &query.sources()[checked.source]);
        if source.is_some_and(|source| places.iter().any(|place| !tells(place, source))) {
            return Ok(None);
        }
        let mut run = ColumnRun::new(
            query,
            self.query.prepared,
            columns,
            &set.numbers,
            &set.sizes,
            &self.allowance.meter,
        );
        let mut seen = Seen::default();
        self.show_all(ready, &rows, &places, &mut |this, part| match part {
            Part::Rows(rows) => this.push_rows(set, &mut run, rows, &mut seen, output, execution),
            Part::Item(_, item) => {
                this.push_place(item, checked.as_ref().zip(source), &mut seen, output, execution)
            }
        })?;
        let by_rows = run.looked_up();
        seen.looked_up.entries += by_rows.entries;
        seen.looked_up.candidates += by_rows.candidates;
        seen.looked_up.candidate_bytes += by_rows.candidate_bytes;
        Ok(Some(seen))
    }

    /// Shows rows of a set and items in their places, in the order of their keys, and makes a new set of them if it
    /// is time to.
    pub fn show_all(
        &mut self,
        ready: &Ready,
        rows: &Range<usize>,
        places: &[ItemPlace],
        show: &mut dyn FnMut(&mut ItemReader<'q>, Part<'_>) -> Ran<()>,
    ) -> Ran<()> {
        let set = &ready.set;
        let renews = ready.is_to_renew() && matches!(self.query.span, Span::All);
        let mut renewed = renews.then(|| SetBuilder::like(set));
        let mut at = rows.start;
        for place in places {
            show(self, Part::Rows(at..place.row))?;
            if let Some(renewed) = &mut renewed {
                renewed.append(set, at..place.row);
                match &place.item {
                    Some(item) if place.changed => {
                        renewed.push(&place.key, item.number, item.document.len(), item.body());
                    }
                    None => {}
                    Some(_) => renewed.append(set, place.row..place.row + 1),
                }
            }
            at = place.row + usize::from(place.stored);
            if let Some(item) = &place.item {
                show(self, Part::Item(&place.key, item))?;
            }
        }
        show(self, Part::Rows(at..rows.end))?;
        if let Some(mut renewed) = renewed {
            renewed.append(set, at..rows.end);
            self.view.columns().renew(renewed, ready, self.view.position().lsn);
        }
        Ok(())
    }

    // ---- filters

    /// Keeps what passes the filter, by columns, and counts what does not as read. False, and nothing kept, where
    /// there are none for this query.
    pub fn prefilter_columns(&mut self, keep: &mut dyn FnMut(u64, Bytes)) -> Ran<bool> {
        let prepared = self.query.prepared;
        let off = self.query.costs.column_asks == 0 || !self.view.columns().is_noting();
        if off || !prepared.filters_purely() {
            return Ok(false);
        }
        let Some(query) = prepared.column_filter() else { return Ok(false) };
        let Some(ready) = self.view.ready_columns(query.sources())? else { return Ok(false) };
        let set = &ready.set;
        let Some(Some(columns)) = set.columns(query.sources()) else { return Ok(false) };
        let rows = rows_of(set, self.query.span).0;
        let places = self.places(&ready, &columns)?;
        // Large items are not read to filter them, but taken in order from the start.
        let placed = places.iter().filter_map(|place| Some(place.item.as_ref()?.document.len() as u64));
        let in_rows = set.sizes[rows.clone()].iter().map(|size| u64::from(*size));
        if placed.sum::<u64>() + in_rows.sum::<u64>() > PREFILTER_BYTES_MAX as u64 {
            return Ok(false);
        }
        self.allowance.spend((rows.len() / STEP_ROWS) as u64)?;
        let meter = Rc::clone(&self.allowance.meter);
        let mut run = ColumnRun::new(&query, prepared, columns, &set.numbers, &set.sizes, &meter);
        let mut selected = Vec::new();
        self.show_all(&ready, &rows, &places, &mut |this, part| {
            match part {
                Part::Rows(rows) => {
                    this.allowance.check_budget()?;
                    selected.clear();
                    run.select(rows.clone(), &mut selected)?;
                    let mut left_out = rows;
                    for row in &selected {
                        let row = *row as usize;
                        this.count_rows(set, left_out.start..row);
                        // Counted when it is loaded for its row.
                        keep(set.numbers[row], set.key(row).into());
                        left_out.start = row + 1;
                    }
                    this.count_rows(set, left_out);
                }
                Part::Item(key, item) => {
                    let system = SystemOf { item, system: this.query.system };
                    match prepared.matches(system.row(), &this.allowance.meter)? {
                        true => keep(item.number, key.clone()),
                        false => this.count_loaded(item.document.len()),
                    }
                }
            }
            Ok(())
        })?;
        self.report.columns();
        Ok(true)
    }

    fn count_rows(&mut self, set: &ColumnSet, rows: Range<usize>) {
        let bytes = set.sizes[rows.clone()].iter().map(|size| u64::from(*size)).sum();
        self.count_all_loaded(rows.len() as u64, bytes);
    }

    /// Where items are asked, in the order of their keys, and the items as the page sees them.
    pub fn places(&mut self, ready: &Ready, columns: &[&Column]) -> Ran<Vec<ItemPlace>> {
        let set = &ready.set;
        let (rows, range) = rows_of(set, self.query.span);
        let mut places: Vec<ItemPlace> = Vec::new();
        for key in &ready.changed {
            if (range.start.clone(), range.end.clone()).contains(key) {
                let found = set.find(key);
                let (row, key) = (found.unwrap_or_else(|row| row), key.clone());
                places.push(ItemPlace { row, key, changed: true, stored: found.is_ok(), item: None });
            }
        }
        for row in columns.iter().flat_map(|column| column.deferred()) {
            let row = *row as usize;
            if rows.contains(&row) {
                let key = set.key(row).into();
                places.push(ItemPlace { row, key, changed: false, stored: true, item: None });
            }
        }
        // New keys stand before the row that they come before; of one key the change counts.
        places.sort_by(|left, right| {
            let left = (left.row, left.stored, &left.key, !left.changed);
            left.cmp(&(right.row, right.stored, &right.key, !right.changed))
        });
        places.dedup_by(|later, earlier| later.stored && earlier.stored && later.row == earlier.row);
        for place in &mut places {
            self.allowance.check()?;
            place.item = self.look_at(&place.key)?;
        }
        Ok(places)
    }

    fn push_place(
        &mut self,
        item: &Item,
        checked: Option<(&Checked<'_>, &ColumnSource)>,
        seen: &mut Seen,
        output: &mut Output<'q>,
        execution: &mut Execution<'q>,
    ) -> Ran<()> {
        seen.items += 1;
        seen.bytes += item.document.len() as u64;
        if let Some((checked, source)) = checked {
            let value = source.read(item.body()).to_value();
            seen.looked_up.entries += u64::from(!value.is_undefined());
            if value.is_undefined()
                || !self.query.prepared.passes(checked.check, &value, &self.allowance.meter)?
            {
                return Ok(());
            }
            seen.looked_up.candidates += 1;
            seen.looked_up.candidate_bytes += item.document.len() as u64;
        }
        output.push(execution, item, &mut self.allowance)?;
        Ok(())
    }

    fn push_rows(
        &mut self,
        set: &ColumnSet,
        run: &mut ColumnRun<'_>,
        rows: Range<usize>,
        seen: &mut Seen,
        output: &mut Output<'q>,
        execution: &mut Execution<'q>,
    ) -> Ran<()> {
        let mut rest = rows;
        while !rest.is_empty() {
            let part = rest.start..rest.end.min(rest.start + LOOK_ROWS);
            self.allowance.check_budget()?;
            seen.items += part.len() as u64;
            seen.bytes += set.sizes[part.clone()].iter().map(|size| u64::from(*size)).sum::<u64>();
            let before = execution.matched();
            run.push(part.clone(), execution)?;
            output.count_matched(execution.matched() - before);
            rest.start = part.end;
        }
        Ok(())
    }

    // ---- orders

    /// Columns that have been put in the order of one of them, if there are any and reading the items that are not in
    /// them costs no more than this. Those that are missing are made, at once or beside.
    pub fn ordered_columns(&mut self, sort: &ColumnSort, changed_max: usize) -> Ran<Option<Ready>> {
        let costs = &self.query.costs;
        let all = matches!(self.query.span, Span::All);
        if !all || costs.column_asks == 0 || self.view.item_count() < costs.column_items_min {
            return Ok(None);
        }
        let Some(source) = sort.key().and_then(|key| sort.sources().get(key)) else { return Ok(None) };
        let (sources, asks) = (sort.sources(), costs.column_sort_asks);
        let Some(ready) = self.view.ready_columns(sources)? else {
            self.make_columns_now(sources, asks)?;
            return Ok(None);
        };
        let long = ready.set.rows() as u64 > costs.column_items_at_once;
        if ready.is_to_renew() {
            match long {
                true => self.view.columns().put_off(Work::Renew(sources.to_vec())),
                false => renew(self.view, &ready)?,
            }
        }
        if ready.changed.len() > changed_max {
            return Ok(None);
        }
        Ok(match ready.set.order(source) {
            Some(order) => order.is_some().then_some(ready),
            None if long => {
                self.view.columns().put_off(Work::Order(Arc::clone(&ready.set), source.clone()));
                None
            }
            None => {
                ready.set.make_order(source);
                self.view.columns().has_grown(&ready.set);
                ready.set.order(source).flatten().is_some().then_some(ready)
            }
        })
    }

    // ---- making them

    /// What becomes columns while all items are looked at; nothing, most often.
    pub fn make_columns(&mut self, query: Option<ColumnQuery>) -> Ran<Making> {
        let none = Making { building: None, rows: 0 };
        let costs = &self.query.costs;
        let all = matches!(self.query.span, Span::All);
        if !all || costs.column_asks == 0 || self.view.item_count() < costs.column_items_min {
            return Ok(none);
        }
        let Some(query) = query else { return Ok(none) };
        let building = self.view.begin_columns(query.sources(), costs.column_asks)?;
        Ok(Making { building, rows: 0 })
    }

    /// Looks at all items for no other reason: at once, or beside where that takes long.
    pub fn make_columns_now(&mut self, sources: &[ColumnSource], more_asks: u32) -> Ran<()> {
        let more = u32::try_from(self.view.item_count() / ITEMS_PER_ASK).unwrap_or(u32::MAX);
        let asks = self.query.costs.column_asks.saturating_add(more).saturating_add(more_asks);
        if !self.view.columns().ask(sources, asks) {
            return Ok(());
        }
        if self.view.item_count() > self.query.costs.column_items_at_once {
            self.view.columns().put_off(Work::Make(sources.to_vec()));
            return Ok(());
        }
        // Where steps are few this is left to whoever has more.
        self.foresee_all()?;
        let building = self.view.start_columns(sources)?;
        if building.is_none() {
            return Ok(());
        }
        let mut making = Making { building, rows: 0 };
        self.visit(&mut |reader, key, item, document| {
            making.push(reader, key, item.number, document);
            Ok(if making.building.is_some() { Flow::More } else { Flow::Stop })
        })?;
        self.keep_columns(making);
        Ok(())
    }

    /// All items were looked at.
    pub fn keep_columns(&mut self, making: Making) {
        if let Some(building) = making.building {
            self.view.columns().install(building, self.view.position().lsn);
        }
    }
}

/// Whether an index entry tells the value that an item has.
fn tells(place: &ItemPlace, source: &ColumnSource) -> bool {
    let Some(item) = &place.item else { return true };
    let mut encoded = Vec::new();
    orrery_index::encode_value(&mut encoded, &source.read(item.body()).to_value());
    orrery_index::decode(&encoded).is_some()
}

impl Making {
    pub fn push(&mut self, reader: &ItemReader<'_>, key: &[u8], number: u64, document: &[u8]) {
        let Some(building) = &mut self.building else { return };
        building.builder.push(key, number, document.len(), readable(document));
        self.rows += 1;
        if self.rows.is_multiple_of(SIZE_ROWS)
            && !reader.view.columns().budget().has_room_for(building.builder.size_bytes())
        {
            self.building = None;
            reader.view.columns().abandon();
        }
    }
}
