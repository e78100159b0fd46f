//! Items without a vector that could be compared, in a query for the nearest ones.
//!
//! They have no distance, and undefined sorts before everything: by distances, which rise, they come before all
//! others, by similarities, which fall, after them. Among each other they come by number. An index of vectors does
//! not know them; which they are is told by a list in memory, which has none where every item has its vector, and the
//! first where many have none (`partition::index::Part`).
//!
//! Beside a filter the first of many may be of no use. What the filter leads to by an index of values, without what
//! has a vector, is then told by entries alone.
//!
//! A query by distances asks for the list at once, and where these items fill the page alone no vector is compared.
//! One by similarities asks only when the vectors do not suffice.

use std::collections::HashSet;

use bytes::Bytes;
use orrery_model::Value;
use orrery_query::pushdown::{Filter, Place};
use orrery_query::{Execution, SortPosition};

use super::graph::Wanted;
use super::sorted::Sorted;
use super::vector_scan::Walked;
use crate::item::Item;
use crate::partition::index::{Lacking, Part, VectorPath};
use crate::query::QueryPosition;
use crate::query::access_path::ItemReader;
use crate::query::page::Ran;

/// Items of a filter that are looked for among the vectors.
const MEMBERS_MAX: usize = 1_000_000;

/// The part of a full list that is looked at in vain before it is shortened.
const FORGOTTEN_PART: usize = 16;

/// The items of a query that have no vector to compare.
pub(super) struct Incomparable {
    place: Place,
    part: Part,
    vectors: VectorPath,
    first: bool,
    /// Those that come before all others, as far as they pass the filter.
    leading: Vec<(Bytes, Item)>,
}

/// What is known about the items that come first.
pub(super) enum Told {
    /// They fill the page.
    Page(Option<QueryPosition>),
    /// They are found, and the others follow.
    All,
    /// All items have to be read.
    Unknown,
}

impl Incomparable {
    /// `defined`: the filter leaves only items that have something in the place of the vector.
    pub fn new(place: &Place, defined: bool, first: bool, vectors: &VectorPath) -> Incomparable {
        let path = place.names().unwrap_or_default().into_iter().map(str::to_owned).collect();
        let part = Part::Vector { path, dimensions: vectors.dimensions, defined };
        Incomparable { place: place.clone(), part, vectors: *vectors, first, leading: Vec::new() }
    }

    pub fn references(&self) -> HashSet<Bytes> {
        self.leading.iter().map(|(reference, _)| reference.clone()).collect()
    }
}

impl<'q> Sorted<'_, 'q> {
    /// Looks for the items that come before all others.
    pub(super) fn leading(
        &mut self,
        others: &mut Incomparable,
        members: Option<&HashSet<Bytes>>,
    ) -> Ran<Told> {
        let after = self.after;
        // Behind a distance there are none.
        if !others.first || after.is_some_and(|after| !is_among_them(after)) {
            return Ok(Told::All);
        }
        let Some(mut lacking) = lacking_vector(self.reader, others)? else { return Ok(Told::Unknown) };
        let need = self.needed().unwrap_or(usize::MAX) as u64;
        let before = (self.reader.mark(), self.output.matched_items());
        loop {
            let mut execution = self.execution();
            let mut vain = Vain::default();
            for listed in &lacking.items {
                if execution.keyless() >= need {
                    break;
                }
                if listed.0 < from(after) || members.is_some_and(|members| !members.contains(&listed.1)) {
                    continue;
                }
                if let Some(item) = self.push_incomparable(&mut execution, &others.part, listed, &mut vain)? {
                    others.leading.push((listed.1.clone(), item));
                }
            }
            forget(self.reader, &others.part, vain)?;
            if execution.keyless() >= need {
                self.reader.report.ranked("items without a vector", &others.place);
                self.output.finish(&mut execution)?;
                return Ok(Told::Page(self.after_page(&execution)));
            }
            if !lacking.more {
                return Ok(Told::All);
            }
            others.leading = Vec::new();
            self.reader.back_to(before.0.clone());
            self.output.set_matched(before.1);
            match lacking_members(self.reader, others, members)? {
                Some(all) => lacking = all,
                None => return Ok(Told::Unknown),
            }
        }
    }

    /// An execution that has the items that come before all others.
    pub(super) fn led(&mut self, wanted: &Wanted<'_>) -> Ran<Execution<'q>> {
        let mut execution = self.execution();
        let matched = self.output.matched_items();
        for (_, item) in &wanted.others.leading {
            self.output.push(&mut execution, item, &mut self.reader.allowance)?;
        }
        // They were counted when they were found.
        self.output.set_matched(matched);
        Ok(execution)
    }

    /// Adds the items that come after all others, where there is room for them. `pushed` were pushed already.
    pub(super) fn followed(
        &mut self,
        mut execution: Execution<'q>,
        wanted: &Wanted<'_>,
        mut pushed: HashSet<Bytes>,
    ) -> Ran<Walked<'q>> {
        let after = self.after;
        let Wanted { others, members, .. } = *wanted;
        let rows = self.wanted_at_all(0);
        if others.first || execution.keyed() >= rows {
            return Ok(Walked::Rows(Box::new(execution)));
        }
        let Some(mut lacking) = lacking_vector(self.reader, others)? else { return Ok(Walked::TooFew) };
        let need = self.needed().unwrap_or(usize::MAX) as u64;
        let before = execution.keyless();
        let room = need.saturating_sub((execution.held() as u64).saturating_sub(before));
        loop {
            let mut vain = Vain::default();
            for listed in &lacking.items {
                if execution.keyless() - before >= room {
                    break;
                }
                let is_member = members.is_none_or(|members| members.contains(&listed.1));
                if listed.0 >= from(after) && is_member && pushed.insert(listed.1.clone()) {
                    self.push_incomparable(&mut execution, &others.part, listed, &mut vain)?;
                }
            }
            forget(self.reader, &others.part, vain)?;
            if !lacking.more || execution.keyless() - before >= room {
                return Ok(Walked::Rows(Box::new(execution)));
            }
            match lacking_members(self.reader, others, members)? {
                Some(all) => lacking = all,
                None => return Ok(Walked::TooFew),
            }
        }
    }

    /// Pushes an item of the list if it lacks the vector still. Returns it if it passed the filter; only then it
    /// counts as loaded.
    fn push_incomparable(
        &mut self,
        execution: &mut Execution<'q>,
        part: &Part,
        listed: &(u64, Bytes),
        vain: &mut Vain,
    ) -> Ran<Option<Item>> {
        self.reader.allowance.check()?;
        let key = self.reader.view.item_key(&listed.1)?;
        let Some(item) = self.reader.look_at(&key)? else {
            vain.gone.push(listed.clone());
            return Ok(None);
        };
        // Others may have come in the place of those that are gone.
        if item.number != listed.0 || !part.is_missing(item.body()) {
            vain.complete.push(listed.clone());
            return Ok(None);
        }
        let before = execution.matched();
        self.output.push(execution, &item, &mut self.reader.allowance)?;
        if execution.matched() == before {
            return Ok(None);
        }
        self.reader.count_loaded(item.document.len());
        Ok(Some(item))
    }
}

fn lacking_vector(reader: &mut ItemReader<'_>, others: &Incomparable) -> Ran<Option<Lacking>> {
    let (view, span) = (reader.view, reader.query.span);
    let items_max = reader.query.costs.absent_items_max;
    view.lacking_vector(&others.vectors, &others.part, span, items_max, &mut || reader.allowance.check())
}

/// The items that the filter leads to and that have no vector; `None` where there are too many of the ones or the
/// others.
fn lacking_members(
    reader: &mut ItemReader<'_>,
    others: &Incomparable,
    members: Option<&HashSet<Bytes>>,
) -> Ran<Option<Lacking>> {
    let mut left = match members {
        _ if matches!(reader.filter, Filter::Everything) => return Ok(None),
        Some(members) => members.clone(),
        None => match reader.candidates_up_to(MEMBERS_MAX)? {
            Some(candidates) => candidates.into_iter().map(|candidate| candidate.reference).collect(),
            None => return Ok(None),
        },
    };
    let (view, span) = (reader.view, reader.query.span);
    let mut entries = view.vector_entries(&others.vectors, span);
    while let Some(entry) = entries.next_entry()? {
        reader.allowance.check()?;
        left.remove(entry.reference());
    }
    reader.count_entries(entries.rows_read());
    if left.len() > reader.query.costs.absent_items_max {
        return Ok(None);
    }
    let mut items = Vec::with_capacity(left.len());
    for reference in left {
        reader.allowance.check()?;
        let item = reader.look_at(&view.item_key(&reference)?)?;
        items.extend(item.map(|item| (item.number, reference)));
    }
    items.sort_unstable();
    Ok(Some(Lacking { items, more: false }))
}

/// Takes off the list what was looked at in vain, when it is much.
fn forget(reader: &mut ItemReader<'_>, part: &Part, mut vain: Vain) -> Ran<()> {
    let many = reader.query.costs.absent_items_max / FORGOTTEN_PART;
    if vain.gone.len() + vain.complete.len() <= many {
        return Ok(());
    }
    // What is only hidden may be seen again.
    if reader.view.hides_nothing()? {
        vain.complete.append(&mut vain.gone);
    }
    reader.view.forget_lacking(part, &vain.complete);
    Ok(())
}

/// Items of a list that were not what it says.
#[derive(Default)]
struct Vain {
    /// Not there, or not to be seen.
    gone: Vec<(u64, Bytes)>,
    /// They have a vector.
    complete: Vec<(u64, Bytes)>,
}

/// Whether the last row of the page before has no distance, or what stands for none.
fn is_among_them(after: &SortPosition) -> bool {
    match after.keys.first() {
        Some(Value::Number(number)) => number.as_f64() == f64::MAX,
        key => key.is_some_and(Value::is_undefined),
    }
}

/// The number from which on the items of a page are.
fn from(after: Option<&SortPosition>) -> u64 {
    after.filter(|after| is_among_them(after)).map_or(0, |after| after.number)
}
