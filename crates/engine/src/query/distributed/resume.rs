//! Where the next page of a query over several partitions begins, and what becomes of that when the map of ranges
//! changes.
//!
//! Inside a partition its own position says ([`QueryPosition`]). Over all of them a position names its shares by the
//! part of the hash space that they are, which outlives splits and merges: a part that several shares have taken over
//! goes on in each of them at the same place, because positions name items, which keep their keys and numbers. A
//! share that spans more than a part is cut, so that what was read and what was not are apart.

use orrery_model::{Epk, Value};
use orrery_query::merge::{MergePosition, SortedPosition};

use super::shares::Share;
use crate::feed::Scope;
use crate::query::QueryPosition;

/// Where a query over several partitions goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum DistributedPosition {
    /// What is left of each part, in hash order. After the last part nothing has been read yet.
    Chain { parts: Vec<Part>, passed: u64 },
    /// `at.share` and `at.last` count for nothing; `[min, max)` says which they were. What lies before the positions
    /// of the parts was read before their partitions were split or merged.
    Sorted { parts: Vec<Part>, min: Epk, max: Epk, at: SortedPosition },
    /// After so many rows, which are kept under a number unless that is 0.
    Materialized { delivered: u64, cached: u64 },
}

/// A part of the hash space, `[min, max)`, and the position in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub min: Epk,
    pub max: Epk,
    pub inner: Option<Vec<u8>>,
}

/// What a position depends on beside the shares.
#[derive(Clone, Copy, Debug)]
pub struct Resuming {
    /// The query has an OFFSET: how much of it the rows before have used up is known to the partition that was, and
    /// to nobody else.
    pub skips: bool,
    /// The shares are merged by their sort keys.
    pub sorts: bool,
}

/// The shares of a query, and where those begin that took over a part which had been read partly.
#[derive(Debug, Default)]
pub(super) struct SharesAt {
    pub shares: Vec<Share>,
    pub inherited: Vec<Option<Vec<u8>>>,
}

impl SharesAt {
    /// Where the shares begin that a position speaks of. `None` when it cannot be told.
    pub fn go_on(&mut self, start: DistributedPosition, query: Resuming) -> Option<MergePosition> {
        let (parts, passed) = match start {
            DistributedPosition::Materialized { delivered, cached } => {
                return Some(MergePosition::Materialized { delivered, cached });
            }
            DistributedPosition::Sorted { parts, min, max, at } => {
                self.inherit(&parts, &[&min, &max]);
                // The share of the last row, or those that it has become; one that it has become a part of was cut.
                let share = self.shares.iter().position(|share| share.max > min)?;
                let last = self.shares.iter().rposition(|share| share.min < max)?.max(share);
                if share < last {
                    // Each goes on behind the row by itself. The next position is in one of them and must not forget
                    // the others.
                    let (after, passed) = (at.after.clone(), at.passed);
                    let begun = QueryPosition::Sorted { after, passed, window: None }.encode();
                    self.inherited[share..=last].fill(Some(begun));
                }
                return Some(MergePosition::Sorted(SortedPosition { share, last, ..at }));
            }
            DistributedPosition::Chain { parts, passed } => (parts, passed),
        };
        // All of a logical partition is always in one place, and its position in that place.
        if let ([Share { scope: Scope::Key(_), .. }], [part, ..]) = (&self.shares[..], &parts[..]) {
            return Some(MergePosition::Chain { share: 0, inner: part.inner.clone(), passed });
        }
        self.inherit(&parts, &[]);
        let part_of = |share: &Share| part_of(&parts, share);
        let first = self.shares.iter().position(|share| share.min >= parts[0].min)?;
        let taken_over = self.shares.iter().filter(|share| part_of(share).is_some());
        let whole =
            |share: &Share| part_of(share).is_some_and(|part| part.min == share.min && part.max == share.max);
        let (count, changed) =
            taken_over.fold((0, false), |(count, changed), share| (count + 1, changed || !whole(share)));
        let alone = self.shares.len() == 1;
        let carries = |inner: &Vec<u8>| {
            QueryPosition::decode(inner).is_some_and(|at| at.holds_in_parts(alone || query.sorts))
        };
        let lost = changed && (query.skips && !alone || !self.inherited.iter().flatten().all(carries));
        if count == 0 || lost {
            return None;
        }
        let inner = self.inherited.get(first).cloned().flatten();
        Some(MergePosition::Chain { share: first, inner, passed })
    }

    /// Lets every share begin at the position of the part that it has taken over or is in. Shares are cut where parts
    /// end, and at these keys besides.
    fn inherit(&mut self, parts: &[Part], cuts: &[&Epk]) {
        let ends = parts.iter().flat_map(|part| [&part.min, &part.max]);
        for at in ends.chain(cuts.iter().copied()) {
            let halves = self.shares.iter().enumerate().find_map(|(n, share)| Some((n, share.cut(at)?)));
            if let Some((n, halves)) = halves {
                self.shares.splice(n..=n, halves);
            }
        }
        self.inherited = self.shares.iter().map(|share| part_of(parts, share)?.inner.clone()).collect();
    }

    /// A position with its shares named by their parts of the hash space.
    pub fn distributed_position(&self, position: &MergePosition) -> DistributedPosition {
        match position {
            MergePosition::Materialized { delivered, cached } => {
                DistributedPosition::Materialized { delivered: *delivered, cached: *cached }
            }
            MergePosition::Sorted(at) => {
                let min = self.shares.get(at.share).map(|share| share.min.clone()).unwrap_or_default();
                let max = self.shares.get(at.last).map_or_else(Epk::max, |share| share.max.clone());
                // What lies before all rows of the last row's keys has been passed by everyone.
                let counts = |inner: &Option<Vec<u8>>| match inner.as_deref().map(QueryPosition::decode) {
                    Some(Some(QueryPosition::Sorted { after, .. })) => equal(&after.keys, &at.after.keys),
                    inner => inner.is_some(),
                };
                let begun = self.shares.iter().zip(&self.inherited).filter(|(_, inner)| counts(inner));
                let mut parts: Vec<Part> = Vec::new();
                for (share, inner) in begun {
                    match parts.last_mut().filter(|last| last.max == share.min && last.inner == *inner) {
                        Some(last) => last.max = share.max.clone(),
                        None => {
                            let (min, max) = (share.min.clone(), share.max.clone());
                            parts.push(Part { min, max, inner: inner.clone() });
                        }
                    }
                }
                DistributedPosition::Sorted { parts, min, max, at: at.clone() }
            }
            MergePosition::Chain { share, inner, passed } => {
                let inherited = |at: usize| self.inherited.get(at).cloned().flatten();
                let mut parts: Vec<Part> = Vec::new();
                for (at, part) in self.shares.iter().enumerate().skip(*share) {
                    let inner =
                        if at == *share { inner.clone().or_else(|| inherited(at)) } else { inherited(at) };
                    if at > *share && inner.is_none() {
                        break;
                    }
                    match parts.last_mut().filter(|last| at > share + 1 && last.inner == inner) {
                        Some(last) => last.max = part.max.clone(),
                        None => parts.push(Part { min: part.min.clone(), max: part.max.clone(), inner }),
                    }
                }
                DistributedPosition::Chain { parts, passed: *passed }
            }
        }
    }

    /// Whether every share begins with its first row, so that rows can be counted from there.
    pub fn begin_at_once(&self) -> bool {
        self.inherited.iter().all(Option::is_none)
    }
}

fn equal(left: &[Value], right: &[Value]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.compare(right).is_eq())
}

fn part_of<'p>(parts: &'p [Part], share: &Share) -> Option<&'p Part> {
    parts.iter().find(|part| part.min <= share.min && share.max <= part.max)
}

#[cfg(test)]
mod tests {
    use orrery_query::SortPosition;

    use super::*;

    fn epk(text: &str) -> Epk {
        Epk::from_hex(text).unwrap()
    }

    fn shares(ends: &[&str]) -> SharesAt {
        let share = |(n, pair): (usize, &[&str])| {
            let range = n as u32;
            Share { scope: Scope::Range(range), range, min: epk(pair[0]), max: epk(pair[1]) }
        };
        SharesAt { shares: ends.windows(2).enumerate().map(share).collect(), inherited: Vec::new() }
    }

    /// The share of a position, named before the map changed and found after.
    fn moved(before: &[&str], share: usize, after: &[&str]) -> (usize, usize, Vec<String>) {
        let after_row = SortPosition { keys: vec![1.into()], number: 5, rows: 1 };
        let at = SortedPosition { share, last: share, after: after_row, passed: 3 };
        let named = shares(before).distributed_position(&MergePosition::Sorted(at));
        let mut now = shares(after);
        let query = Resuming { skips: false, sorts: true };
        let Some(MergePosition::Sorted(at)) = now.go_on(named, query) else { panic!("lost") };
        (at.share, at.last, now.shares.iter().map(|share| share.min.to_string()).collect())
    }

    #[test]
    fn the_share_of_a_sorted_position_is_found_again_after_splits_and_merges() {
        assert_eq!(moved(&["", "80", "FF"], 1, &["", "80", "FF"]), (1, 1, vec!["".into(), "80".into()]));
        let split = vec!["".to_string(), "40".into(), "80".into()];
        assert_eq!(moved(&["", "80", "FF"], 0, &["", "40", "80", "FF"]), (0, 1, split));
        // What was merged is cut where the share was, so that no other row is taken for one of its own.
        let merged = vec!["".to_string(), "40".into(), "80".into()];
        assert_eq!(moved(&["", "40", "80", "FF"], 1, &["", "FF"]), (1, 1, merged));
    }

    #[test]
    fn counted_rows_are_of_no_use_to_those_who_have_taken_over() {
        let delivered = QueryPosition::Delivered { rows: 9, order: crate::query::Order::Stored, cached: 0 };
        let part = Part { min: epk(""), max: epk("80"), inner: Some(delivered.encode()) };
        let start = DistributedPosition::Chain { parts: vec![part], passed: 9 };
        let query = Resuming { skips: false, sorts: false };
        assert!(shares(&["", "80", "FF"]).go_on(start.clone(), query).is_some());
        assert!(shares(&["", "40", "80", "FF"]).go_on(start, query).is_none());
    }
}
