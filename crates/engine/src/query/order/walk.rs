//! Going through an index in order: runs of equal values, the items that have none, and what comes after the page.
//!
//! Which entries lead to items of the result is known beforehand (`Members::Known`: the candidates were collected), is
//! looked up for each entry (`Members::Tested`), or is for the items to tell.

use std::collections::HashSet;

use bytes::Bytes;
use orrery_model::Value;
use orrery_query::{Execution, Flow, SortPosition};

use super::index_order::{self, IndexOrder, Missed};
use super::sorted::{Sorted, is_undefined};
use super::steps::{Step, Steps};
use crate::item::Item;
use crate::partition::index::Lacking;
use crate::query::QueryPosition;
use crate::query::access_path::{Candidate, ItemReader, KeyTest, Told};
use crate::query::page::Ran;

/// Entries and items that are looked at to find out whether anything comes after a full page; an entry that is tested
/// counts as so many.
const AHEAD_ENTRIES_MAX: usize = 1_024;
const AHEAD_ITEMS_MAX: usize = 16;
const TESTED_AS_ENTRIES: usize = 8;

/// Which entries lead to items that may pass the filter.
pub(super) enum Members<'m> {
    All,
    Known(HashSet<&'m [u8]>),
    Tested(&'m KeyTest<'m>),
}

impl<'m> Members<'m> {
    pub fn of(candidates: &'m [Candidate]) -> Members<'m> {
        Members::Known(candidates.iter().map(|candidate| &candidate.reference[..]).collect())
    }

    pub fn has(&self, reader: &mut ItemReader<'_>, reference: &[u8]) -> Ran<bool> {
        match self {
            Members::All => Ok(true),
            Members::Known(members) => Ok(members.contains(reference)),
            Members::Tested(test) => {
                let mut read = 0;
                let told = test.told(reader.view, reference, &mut read)?;
                reader.allowance.spend(read)?;
                Ok(told != Told::Fails)
            }
        }
    }

    fn weight(&self) -> usize {
        if matches!(self, Members::Tested(_)) { TESTED_AS_ENTRIES } else { 1 }
    }
}

/// What a walk has before it when its page is full.
struct Ahead<'a, 'v> {
    walk: &'a IndexOrder,
    /// The first step after the present run.
    next: Option<Step>,
    steps: &'a mut Steps<'v>,
    members: &'a Members<'a>,
}

/// How a walk ended.
pub(super) enum Walked<'q> {
    /// The page is complete; go on here, if anywhere.
    Page(Option<QueryPosition>),
    /// All entries were walked, or as many as there was leave for, and the page has room.
    Through(Box<Execution<'q>>),
    /// A run is so long that reading everything is faster. Nothing was delivered.
    GaveUp,
}

impl<'q> Sorted<'_, 'q> {
    pub(super) fn walk(
        &mut self,
        walk: &IndexOrder,
        steps: &mut Steps<'_>,
        members: &Members<'_>,
        lacking: &Lacking,
        entries_max: u64,
    ) -> Ran<Walked<'q>> {
        let mut execution = self.execution().presorted();
        let after = self.after;
        let paths = self.reader.query.prepared.order_paths();
        let first = walk.misses_undefined.as_ref().is_some_and(|missed| missed.first);
        let among_them = after.is_some_and(is_undefined) && walk.misses_undefined.is_some();
        if first || among_them {
            let from = after.filter(|_| among_them).map_or(0, |after| after.number);
            match self.push_lacking(&mut execution, lacking, from, members, &paths)? {
                Flow::Stop => return Ok(Walked::Page(self.after_page(&execution))),
                Flow::More if lacking.more => return Ok(self.walked_through(execution)),
                Flow::More => {}
            }
        }
        if among_them && !first {
            return Ok(Walked::Page(None));
        }
        let costs = &self.reader.query.costs;
        let part = self.reader.view.item_count() / costs.candidates_part.max(1);
        let run_max = match self.sorts_plainly(&paths) {
            true => costs.run_entries_max.max(part as usize),
            false => costs.run_entries_max,
        };
        let mut next = steps.next_step(self.reader)?;
        let mut run: Vec<Step> = Vec::new();
        while let Some(first) = next.take() {
            run.clear();
            let mut last: Option<Step> = None;
            let mut step = Some(first);
            while let Some(at) = step.take() {
                self.reader.allowance.check()?;
                // What a run begins with tells what belongs to it; it is kept whether it passes or not.
                if steps.passes(self.reader, members, &at)? {
                    run.push(at);
                } else {
                    last = Some(at);
                }
                if run.len() > run_max || steps.rows_read() > entries_max {
                    break;
                }
                let Some(behind) = steps.next_step(self.reader)? else { break };
                match run.first().or(last.as_ref()) {
                    Some(begun) if steps.is_same_run(begun, &behind) => step = Some(behind),
                    _ => next = Some(behind),
                }
            }
            if run.len() > run_max {
                self.reader.count_entries(steps.rows_read());
                return Ok(match self.output.rows() {
                    0 => Walked::GaveUp,
                    _ => Walked::Page(self.after_page(&execution)),
                });
            }
            if steps.rows_read() > entries_max {
                self.reader.count_entries(steps.rows_read());
                return Ok(Walked::Through(Box::new(execution)));
            }
            // Too long to be loaded for one page.
            if run.len() > costs.run_entries_max {
                let references = run.iter().map(|step| steps.reference(self.reader, step));
                let references = references.collect::<Ran<Vec<Bytes>>>()?;
                match self.run_window(&mut execution, &references, &paths)? {
                    None => continue,
                    Some(page) => {
                        self.reader.count_entries(steps.rows_read());
                        return Ok(Walked::Page(page));
                    }
                }
            }
            let out_of_time = self.reader.allowance.is_out_of_time()?;
            let mut last: Option<(Vec<Value>, u64)> = None;
            let mut items = load_run(self.reader, steps, &run, &paths)?.into_iter();
            while let Some((keys, _, item)) = items.next() {
                if self.output.push(&mut execution, &item, &mut self.reader.allowance)? == Flow::Stop {
                    self.reader.count_entries(steps.rows_read());
                    let mut rest = items.map(|(.., item)| item);
                    let ahead = Ahead { walk, next, steps, members };
                    let page = match self.after_page(&execution) {
                        Some(position) if has_more(self.reader, &mut rest, ahead)? => Some(position),
                        _ => None,
                    };
                    return Ok(Walked::Page(page));
                }
                last = Some((keys, item.number));
            }
            if out_of_time && let Some((keys, number)) = last {
                self.reader.count_entries(steps.rows_read());
                let after = SortPosition { keys, number, rows: u64::MAX };
                return Ok(Walked::Page(Some(self.position(after, execution.passed()))));
            }
        }
        self.reader.count_entries(steps.rows_read());
        let Some(missed) = walk.misses_undefined.as_ref().filter(|missed| !missed.first) else {
            return Ok(Walked::Page(None));
        };
        let Some(lacking) = items_lacking(self.reader, missed)? else {
            return Ok(Walked::Through(Box::new(execution)));
        };
        Ok(match self.push_lacking(&mut execution, &lacking, 0, members, &paths)? {
            Flow::Stop => Walked::Page(self.after_page(&execution)),
            Flow::More if lacking.more => self.walked_through(execution),
            Flow::More => Walked::Page(None),
        })
    }

    /// What comes next is not known: it is looked for by the next page, if this one has rows.
    fn walked_through(&self, execution: Execution<'q>) -> Walked<'q> {
        match self.output.rows() {
            0 => Walked::Through(Box::new(execution)),
            _ => Walked::Page(self.after_page(&execution)),
        }
    }

    /// Pushes those of a list of items that have no value to sort by, from a number on.
    fn push_lacking(
        &mut self,
        execution: &mut Execution<'q>,
        lacking: &Lacking,
        from: u64,
        members: &Members<'_>,
        paths: &[(Vec<String>, bool)],
    ) -> Ran<Flow> {
        for (number, reference) in &lacking.items {
            if *number < from || !members.has(self.reader, reference)? {
                continue;
            }
            self.reader.allowance.check()?;
            let key = self.reader.view.item_key(reference)?;
            let Some(item) = self.reader.load(&key)? else { continue };
            // Those that have got a value are among the entries; others may have come in the place of those that are
            // gone.
            let lacks = index_order::keys_of(&item, paths).first().is_some_and(Value::is_undefined);
            if lacks
                && item.number == *number
                && self.output.push(execution, &item, &mut self.reader.allowance)? == Flow::Stop
            {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    }
}

/// The items that an index in order has no entries of, where they are few enough to be known.
pub(super) fn items_lacking(reader: &mut ItemReader<'_>, missed: &Missed) -> Ran<Option<Lacking>> {
    let (view, span, items_max) = (reader.view, reader.query.span, reader.query.costs.absent_items_max);
    view.lacking(missed.path, &missed.names, span, items_max, &mut || reader.allowance.check())
}

/// Whether a row comes after the last one of a full page, so that a result ends with its last row and not with an
/// empty page. Looks at little, and where that does not tell, there may be more.
fn has_more(
    reader: &mut ItemReader<'_>,
    run: &mut dyn Iterator<Item = Item>,
    ahead: Ahead<'_, '_>,
) -> Ran<bool> {
    let prepared = reader.query.prepared;
    if prepared.takes_every_item() && (ahead.next.is_some() || run.next().is_some()) {
        return Ok(true);
    }
    if prepared.needs().joins || !(prepared.takes_every_item() || prepared.filters_purely()) {
        return Ok(true);
    }
    for item in run {
        if reader.passes(&item)? {
            return Ok(true);
        }
    }
    let Ahead { walk, mut next, steps, members } = ahead;
    let (mut read, mut looked_at) = (0, 0);
    while let Some(step) = next {
        reader.allowance.check()?;
        if steps.passes(reader, members, &step)? {
            if let Some((_, item)) = steps.load(reader, &step, false)?
                && reader.passes(&item)?
            {
                return Ok(true);
            }
            looked_at += 1;
        }
        read += members.weight();
        if read >= AHEAD_ENTRIES_MAX || looked_at >= AHEAD_ITEMS_MAX {
            return Ok(true);
        }
        next = steps.next_step(reader)?;
    }
    let Some(missed) = walk.misses_undefined.as_ref().filter(|missed| !missed.first) else {
        return Ok(false);
    };
    let Some(found) = items_lacking(reader, missed)?.filter(|found| !found.more) else { return Ok(true) };
    for (_, reference) in &found.items {
        if members.has(reader, reference)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The items of a run, in the order of the sort keys and then of their numbers.
fn load_run(
    reader: &mut ItemReader<'_>,
    steps: &Steps<'_>,
    run: &[Step],
    paths: &[(Vec<String>, bool)],
) -> Ran<Vec<(Vec<Value>, Bytes, Item)>> {
    let mut items = Vec::with_capacity(run.len());
    for step in run {
        reader.allowance.check()?;
        if let Some((key, item)) = steps.load(reader, step, true)? {
            items.push((index_order::keys_of(&item, paths), key, item));
        }
    }
    if items.len() > 1 {
        index_order::sort_run(&mut items, paths);
    }
    Ok(items)
}
