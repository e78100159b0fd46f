//! The map of a container's ranges: which physical partition owns which part of the hash space.
//!
//! A map is never changed. A split or a merge puts another in its place, which shares the slots of the ranges it did
//! not touch, so their open partitions stay open. Whoever has routed by the old map finds a partition that says it is
//! gone, and routes again.

use std::sync::{Arc, OnceLock};

use orrery_model::Epk;
use orrery_storage::SpaceId;
use parking_lot::Mutex;

use crate::etag::Etag;
use crate::partition::Partition;

/// One physical partition as clients see it in the map of ranges.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeInfo {
    pub id: u32,
    pub min: Epk,
    pub max: Epk,
    /// The ranges this one came from, oldest first.
    pub parents: Vec<u32>,
    /// The LSN at which the range began: 0, or where its parents ended.
    pub lsn: u64,
    /// The share of the container's throughput that this range serves.
    pub throughput_fraction: f64,
    pub etag: Etag,
    pub ts: u32,
}

/// A range of the map with the partition behind it, once it is open.
pub(crate) struct Slot {
    info: RangeInfo,
    pub(crate) space: SpaceId,
    pub(crate) partition: OnceLock<Arc<Partition>>,
    /// Held while the partition is being opened: taking a space twice would fence the first owner.
    pub(crate) opening: Mutex<()>,
}

impl Slot {
    pub(crate) fn new(info: RangeInfo, space: SpaceId) -> Slot {
        Slot { info, space, partition: OnceLock::new(), opening: Mutex::new(()) }
    }

    pub(crate) fn opened(info: RangeInfo, space: SpaceId, partition: Arc<Partition>) -> Slot {
        Slot { info, space, partition: OnceLock::from(partition), opening: Mutex::new(()) }
    }

    pub(crate) fn id(&self) -> u32 {
        self.info.id
    }

    pub(crate) fn min(&self) -> &Epk {
        &self.info.min
    }

    pub(crate) fn max(&self) -> &Epk {
        &self.info.max
    }

    pub(crate) fn start_lsn(&self) -> u64 {
        self.info.lsn
    }

    pub(crate) fn parents(&self) -> &[u32] {
        &self.info.parents
    }
}

/// What the catalog has to remember of a container's ranges, beyond those that serve.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeHistory {
    /// Every range that has a row, also those that were split, with its space.
    pub(crate) rows: Vec<(u32, SpaceId)>,
    /// Ranges that were split or merged, and the part of the hash space that each of them was.
    pub(crate) gone: Vec<(u32, Epk, Epk)>,
    /// The id of the next range; ids are never given twice.
    pub(crate) next_range: u32,
}

/// The ranges that serve, and what is remembered of the others.
pub(crate) struct RangeMap {
    /// Sorted by `min`, never empty.
    slots: Vec<Arc<Slot>>,
    pub(crate) history: RangeHistory,
}

impl RangeMap {
    pub(crate) fn new(mut slots: Vec<Arc<Slot>>, history: RangeHistory) -> RangeMap {
        slots.sort_by(|a, b| a.info.min.cmp(&b.info.min));
        RangeMap { slots, history }
    }

    pub(crate) fn slots(&self) -> &[Arc<Slot>] {
        &self.slots
    }

    pub(crate) fn by_id(&self, id: u32) -> Option<&Arc<Slot>> {
        self.slots.iter().find(|slot| slot.info.id == id)
    }

    /// The part of the hash space that a range was before it was split or merged.
    pub(crate) fn was(&self, id: u32) -> Option<(Epk, Epk)> {
        let gone = self.history.gone.iter().find(|(gone, _, _)| *gone == id);
        gone.map(|(_, min, max)| (min.clone(), max.clone()))
    }

    /// The range that owns a key: the last one that starts at or before it.
    pub(crate) fn owner(&self, epk: &Epk) -> Option<&Arc<Slot>> {
        let after = self.slots.partition_point(|slot| slot.info.min <= *epk);
        after.checked_sub(1).and_then(|at| self.slots.get(at))
    }

    pub(crate) fn overlapping(&self, min: &Epk, max: &Epk) -> impl Iterator<Item = &Arc<Slot>> {
        self.slots.iter().filter(move |slot| slot.info.min < *max && slot.info.max > *min)
    }

    /// Throughput is divided evenly, so a range's share follows from the map it stands in.
    pub(crate) fn infos(&self) -> Vec<RangeInfo> {
        let throughput_fraction = 1.0 / self.slots.len().max(1) as f64;
        self.slots.iter().map(|slot| RangeInfo { throughput_fraction, ..slot.info.clone() }).collect()
    }
}
