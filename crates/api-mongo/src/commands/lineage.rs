//! Where a change stream stands in a container whose ranges are split and merged.
//!
//! Ranges come and go, and commits keep their numbers: a range that is new to a stream begins with commits that the
//! stream was told of by the ranges it came from. They are left out one by one, by what was reached in the range where
//! their key lay at that time.

use std::collections::BTreeMap;

use orrery_engine::{Container, ItemVersion, RangeInfo};
use orrery_model::Epk;

/// By range: the commits that were told, and how many changes of the next.
pub type Reached = BTreeMap<u32, (u64, u32)>;

/// Every range as far as it goes at this moment.
pub fn now(container: &Container) -> Reached {
    let place = |range: u32| container.position_for(range, &[]).map(|position| position.lsn).unwrap_or(0);
    container.ranges().iter().map(|range| (range.id, (place(range.id), 0))).collect()
}

/// After which commit a range is read, and how many changes of the next were told.
pub fn begins(reached: &Reached, range: &RangeInfo) -> (u64, u32) {
    if let Some(place) = reached.get(&range.id) {
        return *place;
    }
    // A range that came from others begins where the one was read least far.
    let inherited = range.parents.iter().filter_map(|parent| reached.get(parent)).map(|(lsn, _)| *lsn).min();
    (inherited.unwrap_or(0), 0)
}

/// Whether a version of a range was told when its key lay in one of the ranges that this one came from.
pub fn was_told(container: &Container, reached: &Reached, range: &RangeInfo, version: &ItemVersion) -> bool {
    let told = |parent: &&u32| reached.get(*parent).is_some_and(|(lsn, _)| *lsn >= version.lsn);
    version.lsn <= range.lsn
        && range.parents.iter().any(|parent| told(&parent))
        && place_of(container, version).is_some_and(|place| {
            range.parents.iter().filter(told).any(|parent| was_in(container, *parent, &place))
        })
}

/// The ranges in which a version may have been written, the likeliest first.
pub fn origins(container: &Container, range: &RangeInfo, version: &ItemVersion) -> Vec<u32> {
    if version.lsn > range.lsn || range.parents.is_empty() {
        return vec![range.id];
    }
    let place = place_of(container, version);
    let held = |parent: &&u32| place.as_ref().is_some_and(|place| was_in(container, **parent, place));
    range.parents.iter().rev().filter(held).copied().collect()
}

/// Drops the places of ranges that are gone and whose successors were all read further.
pub fn forget_what_is_behind(container: &Container, reached: &mut Reached) {
    let ranges = container.ranges();
    let behind = |gone: u32, lsn: u64| {
        let Some((min, max)) = container.gone_range(gone) else { return false };
        let mut successors = ranges.iter().filter(|range| range.min < max && min < range.max);
        successors.all(|range| reached.get(&range.id).is_some_and(|(place, _)| *place >= lsn))
    };
    let is_there = |id: u32| ranges.iter().any(|range| range.id == id);
    let gone: Vec<u32> = reached
        .iter()
        .filter(|(id, (lsn, _))| !is_there(**id) && behind(**id, *lsn))
        .map(|(id, _)| *id)
        .collect();
    reached.retain(|id, _| !gone.contains(id));
}

fn was_in(container: &Container, range: u32, place: &Epk) -> bool {
    container.gone_range(range).is_some_and(|(min, max)| min <= *place && *place < max)
}

/// Where the item of a version lies in the hash space.
fn place_of(container: &Container, version: &ItemVersion) -> Option<Epk> {
    let item = version.current.as_ref().or(version.previous.as_ref())?;
    let key = container.definition().partition_key.extract(item.body());
    container.effective(&key).ok()
}

#[cfg(test)]
mod tests {
    use orrery_engine::Etag;

    use super::*;

    #[test]
    fn a_range_begins_where_the_least_read_of_its_parents_ended() {
        let mut range = RangeInfo {
            id: 3,
            min: Epk::default(),
            max: Epk::default(),
            parents: vec![0, 1, 2],
            lsn: 60,
            throughput_fraction: 1.0,
            etag: Etag::new(1, 0),
            ts: 0,
        };
        let reached = Reached::from([(1, (50, 0)), (2, (40, 2))]);
        assert_eq!(begins(&reached, &range), (40, 0));
        range.parents.clear();
        assert_eq!(begins(&reached, &range), (0, 0));
        range.id = 2;
        assert_eq!(begins(&reached, &range), (40, 2));
    }
}
