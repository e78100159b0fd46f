//! The map of a container's ranges: which physical partition owns which part of the hash space.
//!
//! A map is never changed. A split or a merge puts another in its place, which shares the slots of the ranges it did
//! not touch, so their open partitions stay open. Whoever has routed by the old map finds a partition that says it is
//! gone, and routes again.
//!
//! A *slot* is where the partition of a range is while it is open. One that has lost its store is let go, and another
//! is opened in its place (see `container::opening`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use arc_swap::ArcSwapOption;
use orrery_model::Epk;
use orrery_storage::{Epoch, SpaceId};
use parking_lot::{Mutex, MutexGuard};

use crate::container::Opening;
use crate::error::{Error, Kind, Result};
use crate::etag::Etag;
use crate::partition::{Partition, RANGE_GONE};

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

/// Which node serves a range, and since when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ownership {
    /// 0: whoever has the store open.
    pub(crate) owner: u64,
    /// The space is only ever taken with a higher one.
    pub(crate) epoch: Epoch,
}

/// The catalog says that the range serves.
const SERVES: u8 = 0;
/// The catalog does not know at the moment whether the range has gone to others.
const UNDECIDED: u8 = 1;
/// Others have the range.
const LEFT: u8 = 2;

/// A range of the map with the partition behind it, once it is open.
pub(crate) struct Slot {
    info: RangeInfo,
    pub(crate) space: SpaceId,
    pub(crate) ownership: Ownership,
    /// May be one that is lost, until somebody asks for it.
    partition: ArcSwapOption<Partition>,
    /// Held while the partition is being opened: taking a space twice would fence the first owner.
    opening: Mutex<Opening>,
    /// Its partition was lost, and no other has been opened since.
    reopening: AtomicBool,
    standing: AtomicU8,
}

impl Slot {
    pub(crate) fn new(info: RangeInfo, space: SpaceId, ownership: Ownership) -> Slot {
        Slot {
            info,
            space,
            ownership,
            partition: ArcSwapOption::empty(),
            opening: Mutex::default(),
            reopening: AtomicBool::new(false),
            standing: AtomicU8::new(SERVES),
        }
    }

    pub(crate) fn opened(
        info: RangeInfo,
        space: SpaceId,
        ownership: Ownership,
        partition: Arc<Partition>,
    ) -> Slot {
        let slot = Slot::new(info, space, ownership);
        slot.set(partition);
        slot
    }

    /// The partition, if it is open and has its store.
    pub(crate) fn serving(&self) -> Option<Arc<Partition>> {
        let partition = self.partition.load();
        partition.as_ref().filter(|partition| !partition.is_lost()).cloned()
    }

    /// The partition that was opened last, lost or not.
    pub(crate) fn latest(&self) -> Option<Arc<Partition>> {
        self.partition.load_full()
    }

    /// Whether a partition was open here and none is.
    pub(crate) fn is_lost(&self) -> bool {
        self.reopening.load(Ordering::Acquire)
            || self.partition.load().as_ref().is_some_and(|partition| partition.is_lost())
    }

    /// Waits for whoever opens the partition, or for the right to.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Opening> {
        self.opening.lock()
    }

    /// The right to open the partition, unless somebody has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Opening>> {
        self.opening.try_lock()
    }

    /// Takes a partition out that was lost.
    pub(crate) fn let_go(&self) -> Option<Arc<Partition>> {
        self.reopening.store(true, Ordering::Release);
        self.partition.swap(None)
    }

    pub(crate) fn set(&self, partition: Arc<Partition>) {
        self.partition.store(Some(partition));
        self.reopening.store(false, Ordering::Release);
    }

    /// Whether a partition may be opened here.
    pub(crate) fn check(&self) -> Result<()> {
        match self.standing.load(Ordering::Acquire) {
            SERVES if self.ownership.owner == 0 => Ok(()),
            LEFT => Err(Error::new(Kind::RangeGone, RANGE_GONE)),
            _ => Err(Error::unavailable()),
        }
    }

    /// Lets nobody open the partition until the catalog knows whether its range has gone.
    pub(crate) fn doubt(&self) {
        self.standing.store(UNDECIDED, Ordering::Release);
    }

    pub(crate) fn is_undecided(&self) -> bool {
        self.standing.load(Ordering::Acquire) == UNDECIDED
    }

    /// The range serves, after all.
    pub(crate) fn confirm(&self) {
        self.standing.store(SERVES, Ordering::Release);
    }

    /// Others have the range: nobody opens the partition again, by whatever map they came.
    pub(crate) fn leave(&self) {
        self.standing.store(LEFT, Ordering::Release);
        if let Some(partition) = self.latest() {
            partition.leave();
        }
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
