//! How large the logical partitions are: a walk over the items, a piece at a time, whenever somebody asks.
//!
//! Items sort by logical partition, so one running sum measures each exactly and only the largest are kept. A walk
//! reads every row, which is why nobody walks unasked: each call goes on where the last one stopped, by at most
//! [`ROWS_PER_CALL`] rows (some 50 ms), and a finished walk is good for [`GOOD_FOR_S`].

use std::ops::Bound;

use bytes::Bytes;
use orrery_model::PartitionKey;
use orrery_storage::{Direction, KeyRange, Table, keys};
use parking_lot::Mutex;

use super::Partition;
use crate::error::Result;
use crate::throughput::LargeKey;

const ROWS_PER_CALL: usize = 100_000;
const GOOD_FOR_S: u32 = 60;
/// The largest logical partitions that a walk remembers.
const LARGEST_MAX: usize = 32;

#[derive(Default)]
pub(super) struct LargestKeys(Mutex<Progress>);

#[derive(Default)]
struct Progress {
    walk: Walk,
    finished: Option<(u32, Vec<Found>)>,
}

#[derive(Default)]
struct Walk {
    /// The last row that was read.
    last: Option<Bytes>,
    rows: u64,
    current: Option<Found>,
    largest: Vec<Found>,
}

#[derive(Clone)]
struct Found {
    /// What the keys of its items begin with.
    prefix: Bytes,
    size_bytes: u64,
    items: u64,
}

impl Walk {
    fn row(&mut self, key: &Bytes, value_bytes: usize) {
        let id_bytes = keys::ItemKey::decode(key).map_or(0, |parts| parts.id.len());
        let prefix = key.slice(..key.len() - id_bytes);
        self.rows += 1;
        self.last = Some(key.clone());
        let size_bytes = (key.len() + value_bytes) as u64;
        match &mut self.current {
            Some(current) if current.prefix == prefix => {
                current.size_bytes += size_bytes;
                current.items += 1;
            }
            _ => {
                self.close();
                self.current = Some(Found { prefix, size_bytes, items: 1 });
            }
        }
    }

    /// The running sum is complete: keep it if it is among the largest.
    fn close(&mut self) {
        let Some(found) = self.current.take() else { return };
        let at = self.largest.partition_point(|other| other.size_bytes >= found.size_bytes);
        if at < LARGEST_MAX {
            self.largest.insert(at, found);
            self.largest.truncate(LARGEST_MAX);
        }
    }
}

impl Found {
    fn report(&self) -> Option<LargeKey> {
        let parts = keys::ItemKey::decode(&self.prefix)?;
        let key = PartitionKey::decode(&parts.partition_key)?;
        Some(LargeKey { key, size_bytes: self.size_bytes, items: self.items })
    }
}

impl Partition {
    /// The largest logical partitions as far as the walk has come, and how far that is (0 to 1).
    pub(crate) fn largest_keys(&self, count: usize) -> Result<(Vec<LargeKey>, f64)> {
        let mut state = self.survey.0.lock();
        let now_s = self.env.now_s();
        let fresh = state.finished.as_ref().is_some_and(|(at_s, _)| now_s < at_s.saturating_add(GOOD_FOR_S));
        if !fresh {
            let finished = self.walk(&mut state.walk)?;
            if finished {
                let mut walk = std::mem::take(&mut state.walk);
                walk.close();
                state.finished = Some((now_s, walk.largest));
            }
        }
        let report = |found: &[Found]| found.iter().take(count).filter_map(Found::report).collect();
        Ok(match &state.finished {
            Some((_, largest)) => (report(largest), 1.0),
            None => {
                let items = self.usage().items.max(1);
                (report(&state.walk.largest), (state.walk.rows as f64 / items as f64).min(1.0))
            }
        })
    }

    /// Goes on with a walk; true when it has come to the end.
    fn walk(&self, walk: &mut Walk) -> Result<bool> {
        let snapshot = self.space.snapshot()?;
        let range = match &walk.last {
            None => KeyRange::all(),
            Some(last) => KeyRange { start: Bound::Excluded(last.clone()), end: Bound::Unbounded },
        };
        let mut rows = snapshot.scan(Table::Items, range, Direction::Forward);
        for _ in 0..ROWS_PER_CALL {
            match rows.next_row().transpose()? {
                Some(row) => walk.row(&row.key, row.value.len()),
                None => return Ok(true),
            }
        }
        Ok(false)
    }
}
