//! The change feed of a container: which items have changed since a point, over all partitions of a scope.
//!
//! Positions in different partitions have nothing to do with each other, so a reader has one in each
//! ([`ChangePositions`]). A page goes through the partitions in hash order until it is full; one that it does not
//! reach keeps its place. A partition that came from others begins where the reader was in them: items keep the
//! numbers of their changes. Of two that were merged, the earlier position counts, and what the reader has seen of
//! the other comes again.

use crate::call::PartitionRef;
use crate::container::Container;
use crate::error::{Error, Kind};
use crate::feed::{ChangesFrom, PageRequest, Scope};
use crate::item::{Item, Position};
use crate::partition::ItemVersion;

/// About what an item takes beside its document when it is written as text, and a version beside its items. Pages are
/// limited by that.
const ITEM_BYTES: usize = 240;
const VERSION_BYTES: usize = 200;

/// Where a reader begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeStart {
    pub positions: ChangePositions,
    /// For partitions that have no position yet.
    pub otherwise: ChangesFrom,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangePositions {
    None,
    /// The one position of a scope inside one partition.
    One(u64),
    /// By range.
    Each(Vec<(u32, u64)>),
}

impl ChangeStart {
    /// Where reading begins in a range that came from `parents`.
    pub fn of_range(&self, range: u32, parents: &[u32]) -> ChangesFrom {
        match &self.positions {
            ChangePositions::None => self.otherwise,
            // A scope that was inside one partition may lie in several by now.
            ChangePositions::One(lsn) => ChangesFrom::After(*lsn),
            ChangePositions::Each(list) => {
                let own = list.iter().find(|(known, _)| *known == range).map(|(_, lsn)| *lsn);
                let inherited =
                    || list.iter().filter(|(known, _)| parents.contains(known)).map(|(_, lsn)| *lsn).min();
                own.or_else(inherited).map_or(self.otherwise, ChangesFrom::After)
            }
        }
    }
}

/// What a reader wants to see of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeMode {
    /// Each item once, at its latest version.
    LatestVersion,
    /// Every change by itself, deletes among them. From now on or from a position.
    AllVersions,
}

#[derive(Debug)]
pub enum FeedChange {
    Latest(Item),
    Version(ItemVersion),
}

impl FeedChange {
    /// About how long it is as text.
    pub fn size_hint(&self) -> usize {
        let item = |item: &Item| item.document.len() + item.document.len() / 4 + ITEM_BYTES;
        match self {
            FeedChange::Latest(latest) => item(latest),
            FeedChange::Version(version) => {
                let items = [&version.current, &version.previous].into_iter().flatten();
                VERSION_BYTES + items.map(item).sum::<usize>()
            }
        }
    }
}

/// A page over the partitions of a scope.
#[derive(Debug)]
pub struct ChangeFeedPage {
    pub changes: Vec<FeedChange>,
    /// Where to go on, by range.
    pub positions: Vec<(u32, u64)>,
    /// Whether the scope lies in one partition.
    pub single: bool,
    pub charge_ru: f64,
    pub at: Position,
}

/// Why there is no page.
#[derive(Debug)]
pub enum ChangeFeedFailure {
    Engine(Error),
    /// The first partition has no throughput left.
    Refused(Error),
    /// All versions cannot be read from the beginning or from a time.
    NoPosition,
}

impl From<Error> for ChangeFeedFailure {
    fn from(error: Error) -> ChangeFeedFailure {
        ChangeFeedFailure::Engine(error)
    }
}

impl Container {
    /// A page of changes of a scope, admitted and charged by every partition that it turns to.
    pub async fn read_change_feed(
        &self,
        scope: &Scope,
        start: &ChangeStart,
        mode: ChangeMode,
        page: &PageRequest,
    ) -> Result<ChangeFeedPage, ChangeFeedFailure> {
        let partitions = self.refs_of(scope)?;
        let ranges = self.ranges();
        let single = partitions.len() == 1;
        let key = match scope {
            Scope::Key(key) => Some(key),
            _ => None,
        };
        let mut page = page.clone();
        let mut found = ChangeFeedPage {
            changes: Vec::new(),
            positions: Vec::with_capacity(partitions.len()),
            single,
            charge_ru: 0.0,
            at: Position::default(),
        };
        let mut turned_to_one = false;
        for partition in &partitions {
            let range = partition.range_id();
            let parents = ranges.iter().find(|info| info.id == range).map_or(&[][..], |info| &info.parents);
            let from = start.of_range(range, parents);
            let mut full = page.max_items == 0 || page.max_bytes == 0;
            if !full && let Err(error) = partition.admit(page.class).await {
                if error.kind == Kind::RangeGone {
                    return Err(error.into());
                }
                if found.changes.is_empty() {
                    return Err(ChangeFeedFailure::Refused(error));
                }
                // What was found is answered; this partition is asked again with the next page.
                full = true;
            }
            if full {
                // This partition keeps its place, if it has one.
                if let ChangesFrom::After(lsn) = from {
                    found.positions.push((range, lsn));
                }
                continue;
            }
            let part = self.part_of(scope, partition, single)?;
            let (changes, at, charge, lsn) = match mode {
                ChangeMode::AllVersions => {
                    let after = match from {
                        ChangesFrom::After(lsn) => Some(lsn),
                        ChangesFrom::Now => None,
                        ChangesFrom::Beginning | ChangesFrom::Time(_) => {
                            return Err(ChangeFeedFailure::NoPosition);
                        }
                    };
                    let read = self.read_versions(&part, after, &page).await?;
                    let changes: Vec<_> = read.versions.into_iter().map(FeedChange::Version).collect();
                    (changes, read.at, read.charge_ru, read.lsn)
                }
                ChangeMode::LatestVersion => {
                    let read = self.read_changes(&part, from, &page).await?;
                    let changes = read.items.into_iter().map(FeedChange::Latest).collect();
                    (changes, read.at, read.charge_ru, read.lsn)
                }
            };
            if !std::mem::replace(&mut turned_to_one, true) {
                found.at = at;
            }
            let charge_ru = page.class.read_charge(charge);
            // A range that was split meanwhile has nobody left to charge.
            drop(partition.charge(page.class, charge_ru, key).await);
            found.charge_ru += charge_ru;
            found.positions.push((range, lsn));
            page.max_items -= changes.len().min(page.max_items);
            page.max_bytes = page.max_bytes.saturating_sub(changes.iter().map(FeedChange::size_hint).sum());
            found.changes.extend(changes);
        }
        Ok(found)
    }

    /// The part of a scope that lies in one of its partitions.
    fn part_of(&self, scope: &Scope, partition: &PartitionRef, single: bool) -> Result<Scope, Error> {
        let range = partition.range_id();
        Ok(match scope {
            scope if single => scope.clone(),
            Scope::All | Scope::Range(_) => Scope::Range(range),
            Scope::Epk { min, max, .. } => {
                Scope::Epk { min: min.clone(), max: max.clone(), range: Some(range) }
            }
            Scope::Key(key) => {
                let (min, max) = self.span(key)?;
                Scope::Epk { min, max, range: Some(range) }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_begins_where_its_parents_were_read_to() {
        let from = |list: &[(u32, u64)], range, parents: &[u32]| {
            let positions = ChangePositions::Each(list.to_vec());
            ChangeStart { positions, otherwise: ChangesFrom::Beginning }.of_range(range, parents)
        };
        assert_eq!(from(&[(0, 43), (1, 12)], 1, &[]), ChangesFrom::After(12));
        assert_eq!(from(&[(0, 43), (1, 12)], 2, &[]), ChangesFrom::Beginning);
        assert_eq!(from(&[(0, 43), (1, 12)], 2, &[0]), ChangesFrom::After(43));
        assert_eq!(from(&[(0, 43), (1, 12)], 5, &[0, 1, 3]), ChangesFrom::After(12));
        assert_eq!(from(&[(0, 43), (2, 50)], 2, &[0]), ChangesFrom::After(50));
    }
}
