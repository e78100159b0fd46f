//! Reading a collection as it was: the present is asked, and put right by what has changed since (`HeldContainer`).

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use orrery_engine::{Container, Database, Etag, HeldContainer, Kind};
use orrery_model::PartitionKey;
use orrery_mongo::{Error, Result};
use parking_lot::Mutex;

use super::item_form::Found;
use crate::errors::of_engine;

/// Collections that are held when a transaction begins; others are when it comes to them.
const COLLECTIONS_MAX: usize = 256;
/// How long a moment can be read by its time.
const MOMENT_TIME_MAX: Duration = Duration::from_secs(300);
/// Moments that can be read at a time.
const MOMENTS_MAX: usize = 64;

/// What a moment that can no longer be read is answered with.
const SNAPSHOT_TOO_OLD: i32 = 239;
/// The reader begins anew.
const SNAPSHOT_UNAVAILABLE: i32 = 246;

/// By database and container; `None`: it cannot be held.
type Collections = HashMap<(u32, u32), Option<Arc<HeldContainer>>>;

/// Collections as they were at a moment.
#[derive(Default)]
pub struct Moment(Mutex<Collections>);

impl Moment {
    /// Holds the collections of a database as they are now.
    pub fn of_database(database: Option<Arc<Database>>) -> Result<Moment> {
        let moment = Moment::default();
        for container in database.iter().flat_map(|database| database.containers()).take(COLLECTIONS_MAX) {
            moment.of(&container)?;
        }
        Ok(moment)
    }

    /// A collection as it was; `None` where it cannot be held.
    pub fn of(&self, container: &Arc<Container>) -> Result<Option<Arc<HeldContainer>>> {
        let key = (container.database().number, container.number());
        let mut held = self.0.lock();
        if let Some(known) = held.get(&key) {
            return Ok(known.clone());
        }
        let new = HeldContainer::new(container).map_err(unavailable)?.map(Arc::new);
        held.insert(key, new.clone());
        Ok(new)
    }
}

pub fn unavailable(error: orrery_engine::Error) -> Error {
    match error.kind {
        Kind::RangeGone => Error::new(
            SNAPSHOT_UNAVAILABLE,
            "Unable to read from a snapshot because the collection has been divided or emptied meanwhile. Please retry.",
        ),
        _ => of_engine(error),
    }
}

/// Moments that sessions read by their time.
#[derive(Default)]
pub struct Moments(Mutex<Kept>);

/// Moments by their time, with when they were kept.
type Kept = VecDeque<((u32, u32), Instant, Arc<Moment>)>;

impl Moments {
    /// Keeps a moment under its time.
    pub fn keep(&self, time: (u32, u32), moment: Arc<Moment>) {
        let mut kept = self.0.lock();
        retire(&mut kept);
        if kept.len() >= MOMENTS_MAX {
            kept.pop_front();
        }
        kept.push_back((time, Instant::now(), moment));
    }

    pub fn at(&self, time: (u32, u32)) -> Result<Arc<Moment>> {
        let mut kept = self.0.lock();
        retire(&mut kept);
        let found = kept.iter().find(|(known, ..)| *known == time).map(|(.., moment)| moment.clone());
        found.ok_or_else(|| {
            Error::new(
                SNAPSHOT_TOO_OLD,
                format!(
                    "Read timestamp Timestamp({}, {}) is older than the oldest available timestamp: a moment can be read for {} s.",
                    time.0,
                    time.1,
                    MOMENT_TIME_MAX.as_secs()
                ),
            )
        })
    }

    /// Lets go of moments that are too old, where there are any.
    pub fn retire(&self) {
        if let Some(mut kept) = self.0.try_lock()
            && !kept.is_empty()
        {
            retire(&mut kept);
        }
    }
}

fn retire(kept: &mut Kept) {
    while kept.front().is_some_and(|(_, since, _)| since.elapsed() > MOMENT_TIME_MAX) {
        kept.pop_front();
    }
}

/// Puts right what a query of the present has found.
pub struct Past {
    held: Arc<HeldContainer>,
    /// Items that were given, or left out, as they were then.
    settled: HashSet<Bytes>,
}

impl Past {
    pub fn new(held: Arc<HeldContainer>) -> Past {
        Past { held, settled: HashSet::new() }
    }

    /// What was there instead of an item that is there now.
    pub fn of_then(&mut self, key: &PartitionKey, id: &str, found: Found) -> Result<Option<Found>> {
        let at = self.held.key_of(key, id);
        let lsn = Etag::lsn_of(&found.etag).unwrap_or(u64::MAX);
        if !self.held.is_later(&at, lsn).map_err(unavailable)? {
            return Ok(Some(found));
        }
        let then = self.held.item(&at).map_err(unavailable)?;
        self.settled.insert(at);
        Ok(then.map(|item| Found { etag: item.etag.to_string(), document: item.document }))
    }

    /// Items that have changed since and were not found: as they were, with their ids.
    pub fn rest(&mut self) -> Result<Vec<(String, Found)>> {
        let mut rest = Vec::new();
        for at in self.held.changed().map_err(unavailable)? {
            if !self.settled.insert(at.clone()) {
                continue;
            }
            let Some(item) = self.held.item(&at).map_err(unavailable)? else { continue };
            let id = HeldContainer::id_of(&at).unwrap_or_default();
            rest.push((id, Found { etag: item.etag.to_string(), document: item.document }));
        }
        Ok(rest)
    }
}

/// One item as it was.
pub fn read(held: &HeldContainer, key: &PartitionKey, id: &str) -> Result<Option<Found>> {
    let item = held.item(&held.key_of(key, id)).map_err(unavailable)?;
    Ok(item.map(|item| Found { etag: item.etag.to_string(), document: item.document }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_by_its_time_and_not_for_ever() {
        let moments = Moments::default();
        for at in 0..=MOMENTS_MAX as u32 {
            moments.keep((at, 1), Arc::default());
        }
        assert!(moments.at((1, 1)).is_ok());
        assert_eq!(moments.at((0, 1)).map(drop).unwrap_err().code, SNAPSHOT_TOO_OLD);
        assert_eq!(moments.at((7, 2)).map(drop).unwrap_err().code, SNAPSHOT_TOO_OLD);
    }
}
