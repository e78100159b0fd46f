//! The best few of many candidates: their sort keys are read first, and only those that can be on the page are shown to the
//! query, which would else write out rows that it drops later.

use std::cmp::Ordering;

use orrery_model::{Number, Value};
use orrery_query::SortPosition;

use super::SystemOf;
use super::lookup::Candidate;
use super::run::{Ran, Run};
use super::walk::keys_of;
use crate::item::Item;

/// Times as many as wanted that are held before the others are dropped; putting a few in order at a time would cost more.
const SLACK: usize = 2;
const HELD_MIN: usize = 64;
/// Pages of more rows are not worth it.
const WANTED_MAX: u64 = 1_000;

type Held = (Vec<Value>, Item);

pub(super) struct Best {
    pub items: Vec<Item>,
    /// Candidates that are known to pass the filter.
    pub matched: u64,
}

impl Run<'_> {
    /// The candidates among which the next rows are, in no order; `None` where sort keys or rows are not that simple.
    pub fn best(
        &mut self,
        candidates: &[Candidate],
        after: Option<&SortPosition>,
        passed: u64,
    ) -> Ran<Option<Best>> {
        let prepared = self.query.prepared;
        // One more than the page takes, so that it is known whether there is another; and the one that it begins after.
        let wanted = self.wanted(passed).saturating_add(1 + u64::from(after.is_some()));
        let paths = prepared.order_paths();
        let plain = |(path, _): &(Vec<String>, bool)| {
            path.first().is_some_and(|name| !name.starts_with('_') || (name == "_ts" && path.len() == 1))
        };
        if wanted > WANTED_MAX
            || candidates.len() as u64 <= wanted
            || paths.len() != prepared.order_count()
            || !paths.iter().all(plain)
            || !prepared.gives_a_row_per_item()
        {
            return Ok(None);
        }
        let wanted = wanted as usize;
        let before = |left: &[Value], right: &[Value]| -> Ordering {
            let by_key = left.iter().zip(right).zip(&paths).map(|((left, right), (_, descending))| {
                let order = left.compare(right);
                if *descending { order.reverse() } else { order }
            });
            by_key.fold(Ordering::Equal, Ordering::then)
        };
        let in_order =
            |left: &Held, right: &Held| before(&left.0, &right.0).then(left.1.number.cmp(&right.1.number));
        let mut held: Vec<Held> = Vec::with_capacity(HELD_MIN.max(SLACK * wanted));
        let (mut full, mut matched) = (false, 0);
        for candidate in candidates {
            self.check_cancelled()?;
            let key = self.view.item_key(&candidate.reference)?;
            let Some(item) = self.load(&key)? else { continue };
            let sure = !candidate.uncertain && self.exact;
            matched += u64::from(sure);
            let mut keys = keys_of(&item, &paths);
            keys.iter_mut().for_each(as_queries_see_it);
            let past = |after: &SortPosition| {
                before(&keys, &after.keys).then(item.number.cmp(&after.number)).is_lt()
            };
            if after.is_some_and(past) {
                continue;
            }
            let entry = (keys, item);
            if full && held.get(wanted - 1).is_some_and(|worst| in_order(&entry, worst).is_gt()) {
                continue;
            }
            let system = SystemOf { item: &entry.1, system: self.query.system };
            if !sure && !prepared.matches(system.row())? {
                continue;
            }
            matched += u64::from(!sure);
            held.push(entry);
            if held.len() >= HELD_MIN.max(SLACK * wanted) {
                held.sort_by(in_order);
                held.truncate(wanted);
                full = true;
            }
        }
        held.sort_by(in_order);
        held.truncate(wanted);
        Ok(Some(Best { items: held.into_iter().map(|(_, item)| item).collect(), matched }))
    }
}

/// Integers beyond 64 bits with sign are doubles once a query touches them.
fn as_queries_see_it(value: &mut Value) {
    if let Value::Number(Number::UInt(number)) = value {
        *value = Value::Number(Number::Double(*number as f64));
    }
}
