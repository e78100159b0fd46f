//! Changes of a container's map of ranges: one range becomes two, or two become one.
//!
//! ```text
//! begin      numbers for the new spaces, with drop rows for them
//! (build)    outside the catalog: rows are copied, for as long as it takes
//! hand over  pause; last changes; one commit: new ranges in, old ranges out, drop rows the other way round
//! ```
//!
//! There is no state in between that a start would have to find its way out of. Before the commit the new spaces are
//! spaces to be dropped, after it the old ones are; a crash at any moment leaves one or the other, and the start
//! drops what it finds, as after a deleted container. When nobody can tell whether the commit was written, neither
//! the old nor the new partitions serve until the catalog has been read again (`follow`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::catalog::PARTITIONS_MAX;
use crate::catalog::load::{info_of_row, ownership_of_row};
use crate::catalog::rows::{ContainerRow, RangeRow, RangeStatus, RowKey, drop_value};
use crate::catalog::writer::Writer;
use crate::container::Container;
use crate::error::{Error, Kind, Result};
use crate::partition::{Partition, Pause, Successor, seal_all};
use crate::ranges::{RangeHistory, RangeMap, Slot};

/// Ranges that a container may have had in its life: their ids have 16 bits in item numbers.
const RANGES_MAX: u32 = 1 << 16;
/// Ancestors that a range names. Clients need those that their maps may still hold.
const PARENTS_MAX: usize = 1_000;

/// Successors that are nearly as far as the partitions they replace.
pub(crate) struct Handover {
    pub(crate) container: Arc<Container>,
    /// With the LSN up to which the successors have seen each of them.
    pub(crate) parents: Vec<(Arc<Partition>, u64)>,
    pub(crate) successors: Vec<Successor>,
    pub(crate) paused_us: Arc<AtomicU64>,
}

impl Writer {
    /// Gives out the spaces of `children` new ranges. Until the handover they count as spaces to be dropped.
    pub(crate) fn begin_reshape(&mut self, container: &Container, children: usize) -> Result<Vec<u32>> {
        self.check_present(container)?;
        let map = container.map();
        let children = u32::try_from(children).unwrap_or(u32::MAX);
        if map.history.next_range.saturating_add(children) > RANGES_MAX {
            let message = format!("The container has had {RANGES_MAX} partitions, which is the most it can.");
            return Err(Error::new(Kind::Forbidden, message));
        }
        if map.slots().len() as u32 + children > PARTITIONS_MAX + 1 {
            let message = format!("The container has {PARTITIONS_MAX} partitions, which is the most it can.");
            return Err(Error::new(Kind::Forbidden, message));
        }
        let mut change = self.prepare();
        let mut spaces = Vec::new();
        for _ in 0..children {
            let space = change.new_space()?;
            change.put(RowKey::Drop(space), drop_value());
            spaces.push(space);
        }
        let database = self.database(container.database().number)?;
        self.make_fork_spaces(&database, &spaces)?;
        if let Err(error) = self.commit(change) {
            self.forget_fork_spaces(&database, &spaces);
            return Err(error);
        }
        self.building.extend(&spaces);
        self.publish(|_| ());
        Ok(spaces)
    }

    /// Gives up: the rows built so far are removed in the background. Not those of a handover that has been made after
    /// all; while that is not known, the rows of the catalog will tell.
    pub(crate) fn abandon_reshape(&mut self, spaces: &[u32]) {
        for space in spaces {
            if self.building.remove(space) && !self.is_lost() {
                self.drops.insert(*space);
            }
        }
    }

    /// Makes the successors owners of their ranges. On an error the old partitions go on as if nothing had been.
    ///
    /// This runs on the catalog's thread, so that nothing else of the catalog can lengthen the pause.
    pub(crate) fn hand_over(&mut self, handover: &mut Handover) -> Result<Vec<u32>> {
        let Handover { container, parents, successors, paused_us } = handover;
        self.check_present(container)?;
        let map = container.map();
        let slots: Vec<Arc<Slot>> = parents
            .iter()
            .filter_map(|(parent, _)| map.by_id(parent.range_id()).cloned())
            .filter(|slot| {
                slot.serving()
                    .is_some_and(|open| parents.iter().any(|(parent, _)| Arc::ptr_eq(parent, &open)))
            })
            .collect();
        if slots.len() != parents.len() {
            return Err(Error::new(Kind::Conflict, "A partition was opened again while it was copied."));
        }
        let paused_at = Instant::now();
        let pause = Pause::begin(parents.iter().map(|(parent, _)| parent.clone()).collect());
        pause.drain()?;
        for (parent, seen) in parents.iter_mut() {
            *seen = parent.stage_changes(*seen, successors)?.lsn;
        }
        // Above every LSN that any of the old partitions has given, so that session tokens of theirs stay true.
        let start_lsn = parents.iter().map(|(parent, _)| parent.lsn()).max().unwrap_or(0);
        let durability = self.shared.config.durability;
        seal_all(successors, start_lsn, durability)?;

        let mut change = self.prepare();
        let (lsn, ts) = (change.meta.lsn, change.ts);
        let (database, number) = (container.database().number, container.number());
        let version = container.core().version();
        let mut next_range = map.history.next_range;
        let mut rows = map.history.rows.clone();
        let mut gone = map.history.gone.clone();
        let mut new_slots: Vec<Arc<Slot>> = map
            .slots()
            .iter()
            .filter(|slot| !slots.iter().any(|parent| Arc::ptr_eq(parent, slot)))
            .cloned()
            .collect();
        let mut ancestors: Vec<u32> = slots.iter().flat_map(|slot| slot.parents().iter().copied()).collect();
        ancestors.extend(slots.iter().map(|slot| slot.id()));
        ancestors.sort_unstable();
        ancestors.dedup();
        let forgotten = ancestors.len().saturating_sub(PARENTS_MAX);
        ancestors.drain(..forgotten);
        for slot in &slots {
            let row = RangeRow {
                lsn,
                ts,
                start_lsn: slot.start_lsn(),
                space: slot.space.0,
                status: RangeStatus::Gone,
                owner: slot.ownership.owner,
                epoch: slot.ownership.epoch.0,
                min: slot.min().clone(),
                max: slot.max().clone(),
                parents: slot.parents().to_vec(),
            };
            change.put(RowKey::Range(database, number, slot.id()), row.encode());
            change.put(RowKey::Drop(slot.space.0), drop_value());
            gone.push((slot.id(), slot.min().clone(), slot.max().clone()));
        }
        let mut children = Vec::new();
        for successor in successors.iter() {
            let id = next_range;
            next_range += 1;
            let (min, max) = successor.bounds();
            let space = successor.space();
            let row = RangeRow {
                lsn,
                ts,
                start_lsn,
                space: space.id().0,
                status: RangeStatus::Online,
                owner: 0,
                epoch: space.epoch().0,
                min: min.clone(),
                max: max.clone(),
                parents: ancestors.clone(),
            };
            change.put(RowKey::Range(database, number, id), row.encode());
            change.delete(RowKey::Drop(space.id().0));
            let partition = Arc::new(Partition::open(container.setup(id, min, max, space.clone()))?);
            let ownership = ownership_of_row(&row);
            new_slots.push(Arc::new(Slot::opened(info_of_row(id, &row), space.id(), ownership, partition)));
            rows.push((id, space.id()));
            children.push(id);
        }
        let container_row = ContainerRow {
            lsn: version.lsn,
            ts: version.ts,
            next_range,
            definition: version.definition.json.to_string(),
        };
        change.put(RowKey::Container(database, number), container_row.encode());
        if let Err(error) = self.commit(change) {
            if self.is_lost() {
                // In this order: nobody opens an old partition before it is known that its range is still there.
                slots.iter().for_each(|slot| slot.doubt());
                parents.iter().for_each(|(parent, _)| parent.give_up());
            }
            return Err(error);
        }

        for successor in successors.iter() {
            self.building.remove(&successor.space().id().0);
        }
        container.set_map(RangeMap::new(new_slots, RangeHistory { rows, gone, next_range }));
        self.publish(|_| ());
        pause.leave();
        slots.iter().for_each(|slot| slot.leave());
        paused_us.store(paused_at.elapsed().as_micros() as u64, Ordering::Relaxed);
        self.queue_drops(slots.iter().map(|slot| slot.space.0));
        Ok(children)
    }
}
