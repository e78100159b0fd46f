//! The first few of many candidates in the order of partition key and id.
//!
//! The reference in an index entry is made of both, so what comes first is known before any item is loaded, and only
//! the items of the page are.

use orrery_model::{KeyComponent, PartitionKey, PartitionKeyDefinition, Value};
use orrery_query::SortPosition;
use orrery_storage::keys;

use super::sorted::Sorted;
use super::top_k::{Paths, TopK, compare};
use super::top_k_candidates::{TopCandidates, WANTED_MAX};
use crate::query::access_path::Candidate;
use crate::query::page::Ran;

/// So many candidates for each row are loaded more cheaply than put in order beforehand.
const CANDIDATES_PER_ROW_MIN: u64 = 2;
/// How often more are looked for because items turned out not to pass, each time so many times as many.
const ROUNDS_MAX: u32 = 4;
const ROUND_FACTOR: usize = 8;

/// What a sort key is.
#[derive(PartialEq)]
enum Part {
    Component(usize),
    Id,
}

impl Sorted<'_, '_> {
    /// The candidates that come first, in order; `None` where the order is another one, or few of those that come
    /// first pass the filter.
    pub(super) fn first_by_key(&mut self, candidates: &[Candidate]) -> Ran<Option<TopCandidates>> {
        // One more than the page takes, so that it is known whether there is another.
        let wanted = self.wanted(self.passed).saturating_add(1);
        let many = candidates.len() as u64 > wanted.saturating_mul(CANDIDATES_PER_ROW_MIN);
        let paths = self.reader.query.prepared.order_paths();
        if wanted > WANTED_MAX || !many || !self.sorts_plainly(&paths) {
            return Ok(None);
        }
        let Some(parts) = parts_of(&paths, &self.reader.view.definition().partition_key) else {
            return Ok(None);
        };
        let mut items = Vec::with_capacity(wanted as usize);
        let mut from = self.after.cloned();
        for round in 0..ROUNDS_MAX {
            let missing = wanted as usize - items.len();
            let tried = missing.saturating_mul(ROUND_FACTOR.pow(round)).min(candidates.len());
            // No two items share these keys, so the numbers of items decide nothing.
            let mut top = TopK::new(&paths, from.as_ref(), tried, tried);
            for (at, candidate) in candidates.iter().enumerate() {
                self.reader.allowance.check()?;
                let Some(keys) = keys_in(&candidate.reference, &parts) else { return Ok(None) };
                if top.admits(&keys, u64::MAX) {
                    top.keep(keys, u64::MAX, at);
                }
            }
            let (kept, more) = top.finish();
            let Some(last) = kept.last().map(|last| last.keys.clone()) else { break };
            for kept in kept {
                let candidate = &candidates[kept.thing];
                let key = self.reader.view.item_key(&candidate.reference)?;
                let Some(item) = self.reader.load(&key)? else { continue };
                // The position may be that of this item, or of one that was there before it.
                let behind = self.after.is_none_or(|after| {
                    compare(&kept.keys, &after.keys, &paths).is_gt() || item.number > after.number
                });
                if behind && (!candidate.uncertain || self.reader.passes(&item)?) {
                    items.push(item);
                }
                if items.len() as u64 == wanted {
                    break;
                }
            }
            if items.len() as u64 == wanted || !more {
                let matched = items.len() as u64;
                return Ok(Some(TopCandidates { items, matched }));
            }
            from = Some(SortPosition { keys: last, number: u64::MAX, rows: 0 });
        }
        Ok(None)
    }
}

/// What each sort key is, if all of them together name an item.
fn parts_of(paths: &Paths, definition: &PartitionKeyDefinition) -> Option<Vec<Part>> {
    let components: Vec<&[String]> = definition.paths.iter().map(|path| path.segments()).collect();
    let part = |path: &[String]| match path {
        [name] if name == "id" => Some(Part::Id),
        path => components.iter().position(|component| *component == path).map(Part::Component),
    };
    let parts = paths.iter().map(|(path, _)| part(path)).collect::<Option<Vec<Part>>>()?;
    let mut needed = (0..components.len()).map(Part::Component).chain([Part::Id]);
    needed.all(|part| parts.contains(&part)).then_some(parts)
}

/// The sort keys of the item that a reference means; `None` where the item itself may have another form of them.
fn keys_in(reference: &[u8], parts: &[Part]) -> Option<Vec<Value>> {
    let (encoded, id) = keys::index::reference_parts(reference)?;
    let components = PartitionKey::decode(&encoded)?.0;
    let value = |part: &Part| match part {
        Part::Id => std::str::from_utf8(id).ok().map(Value::from),
        Part::Component(at) => match components.get(*at)? {
            KeyComponent::String(text) => Some(Value::from(text.as_str())),
            KeyComponent::Bool(value) => Some(Value::Bool(*value)),
            // Numbers are kept as doubles there.
            KeyComponent::Undefined | KeyComponent::Null | KeyComponent::Number(_) => None,
        },
    };
    parts.iter().map(value).collect()
}
