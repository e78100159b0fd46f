//! What was done through this api lately: the order of writes, which of them replaced a whole document, and changes of
//! collections. Change streams tell by it what the feed does not.
//!
//! Kept in memory and for a while. A stream that comes later has the seconds of the feed, and sees a replacement as an
//! update.

use std::collections::{HashMap, VecDeque};

use orrery_mongo::Document;
use parking_lot::Mutex;

/// Writes that are remembered.
const WRITES_MAX: usize = 20_000;
/// Changes of collections that are remembered.
const CHANGES_MAX: usize = 1_000;

#[derive(Default)]
pub struct Recent(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    next: u64,
    /// Writes that have begun and are not written down yet.
    begun: usize,
    writes: HashMap<Place, Written>,
    order: VecDeque<Place>,
    changes: VecDeque<CollectionChange>,
}

/// A database, a container, a range and a commit.
type Place = (u32, u32, u32, u64);

/// What is known of a write.
#[derive(Clone, Copy)]
pub struct Written {
    /// Its place among all writes and changes of collections.
    pub order: u64,
    /// It replaced a whole document.
    pub whole: bool,
}

/// A change of a collection.
#[derive(Clone)]
pub struct CollectionChange {
    pub order: u64,
    pub seconds: u32,
    pub database: String,
    pub collection: String,
    /// `create`, `createIndexes`, `dropIndexes`, `modify`, `rename`.
    pub kind: &'static str,
    pub description: Document,
}

impl Recent {
    /// Writes begin.
    pub fn begin(&self) {
        self.0.lock().begun += 1;
    }

    /// They have ended; these commits came of them.
    pub fn end(&self, commits: impl IntoIterator<Item = (Place, bool)>) {
        let mut kept = self.0.lock();
        kept.begun = kept.begun.saturating_sub(1);
        for (place, whole) in commits {
            kept.next += 1;
            let order = kept.next;
            if kept.writes.insert(place, Written { order, whole }).is_none() {
                kept.order.push_back(place);
            }
            if kept.order.len() > WRITES_MAX
                && let Some(oldest) = kept.order.pop_front()
            {
                kept.writes.remove(&oldest);
            }
        }
    }

    /// What is known of a write that was made in one of these places, and whether more may be known in a moment.
    pub fn written(&self, mut places: impl Iterator<Item = Place>) -> (Option<Written>, bool) {
        let kept = self.0.lock();
        (places.find_map(|place| kept.writes.get(&place).copied()), kept.begun > 0)
    }

    pub fn changed(
        &self,
        database: &str,
        collection: &str,
        kind: &'static str,
        description: Document,
        seconds: u32,
    ) {
        let mut kept = self.0.lock();
        kept.next += 1;
        let order = kept.next;
        if kept.changes.len() >= CHANGES_MAX {
            kept.changes.pop_front();
        }
        kept.changes.push_back(CollectionChange {
            order,
            seconds,
            database: database.to_owned(),
            collection: collection.to_owned(),
            kind,
            description,
        });
    }

    /// Where it stands.
    pub fn now(&self) -> u64 {
        self.0.lock().next
    }

    /// Changes of collections after a place.
    pub fn changes_after(&self, order: u64) -> Vec<CollectionChange> {
        let kept = self.0.lock();
        kept.changes.iter().filter(|change| change.order > order).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_keep_their_order_and_what_they_were() {
        let recent = Recent::default();
        recent.begin();
        let written = |range, lsn| recent.written([(1, 1, range, lsn)].into_iter());
        assert!(written(0, 1).0.is_none());
        assert!(written(0, 1).1);
        recent.end([((1, 1, 0, 1), false), ((1, 1, 3, 7), true)]);
        recent.changed("db", "c", "create", Document::new(), 5);
        let (first, later) = written(0, 1);
        // Of several places in which it may have been made, it was made in one.
        let (second, _) = recent.written([(1, 1, 0, 7), (1, 1, 3, 7)].into_iter());
        assert!(!later && !first.unwrap().whole && second.unwrap().whole);
        assert!(first.unwrap().order < second.unwrap().order);
        assert_eq!(recent.changes_after(0).len(), 1);
        assert!(recent.changes_after(recent.now()).is_empty());
    }

    #[test]
    fn old_writes_are_forgotten() {
        let recent = Recent::default();
        recent.end((0..WRITES_MAX as u64 + 1).map(|lsn| ((1, 1, 0, lsn), false)));
        let written = |lsn| recent.written([(1, 1, 0, lsn)].into_iter()).0;
        assert!(written(0).is_none());
        assert!(written(1).is_some());
    }
}
