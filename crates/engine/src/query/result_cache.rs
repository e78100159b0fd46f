//! Rows that are ready before anyone has asked for them.
//!
//! A query that must see everything before its first row (groups, DISTINCT, ranks) knows its later pages when it has
//! made the first. They are kept here for a while, so that reading such a result to its end costs one run and not one
//! for each page. What is kept is a convenience: after a restart, or when there was no room, the query is run again
//! and the rows that were delivered are left out.
//!
//! Whoever goes on with kept rows gets the rest of the very result that his first page began, whatever was written
//! since. A result is found by where it was made, by its query, and by a number that the client carries; a number
//! alone opens nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use orrery_query::merge::CachedRows;
use parking_lot::Mutex;

use crate::partition::Span;

/// What all kept results together may take; one of them is limited by `HELD_RESULT_BYTES_MAX`.
pub const RESULT_CACHE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Results that nobody came back for are forgotten after this time.
const HELD_TIME_MAX: Duration = Duration::from_secs(600);

/// Where a result was made and by which query.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResultCachePlace {
    /// Names the partition or the container, and which part of it.
    pub owner: Vec<u8>,
    pub query: u128,
}

impl ResultCachePlace {
    /// A part of a partition.
    pub(super) fn of_span(partition: u64, span: &Span, query: u128) -> ResultCachePlace {
        let mut owner = partition.to_be_bytes().to_vec();
        match span {
            Span::All => {}
            Span::Epk { min, max } => {
                owner.push(1);
                owner.extend_from_slice(&(min.as_bytes().len() as u64).to_be_bytes());
                owner.extend_from_slice(min.as_bytes());
                owner.extend_from_slice(max.as_bytes());
            }
            Span::Key { key, .. } => {
                owner.push(2);
                key.encode(&mut owner);
            }
        }
        ResultCachePlace { owner, query }
    }
}

/// The kept results of all queries.
#[derive(Debug)]
pub struct ResultCache {
    kept: Mutex<Kept>,
    last: AtomicU64,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Kept {
    results: HashMap<(ResultCachePlace, u64), Result>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct Result {
    rows: Arc<CachedRows>,
    /// Which use of the store was the last of this result, and when.
    used: u64,
    used_at: Instant,
}

impl Default for ResultCache {
    fn default() -> ResultCache {
        ResultCache::new(RESULT_CACHE_BYTES_MAX)
    }
}

impl ResultCache {
    pub fn new(bytes_max: usize) -> ResultCache {
        ResultCache { kept: Mutex::default(), last: AtomicU64::new(0), bytes_max }
    }

    /// Keeps rows, if need be in the place of others. The number is never 0.
    pub fn keep(&self, place: ResultCachePlace, rows: CachedRows) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = rows.size_bytes() + place.owner.len();
        if bytes > self.bytes_max {
            return number;
        }
        let mut kept = self.kept.lock();
        kept.make_room(self.bytes_max - bytes);
        kept.bytes += bytes;
        kept.uses += 1;
        let result = Result { rows: Arc::new(rows), used: kept.uses, used_at: Instant::now() };
        kept.results.insert((place, number), result);
        number
    }

    /// The rows of a result, if they are still there and begin early enough.
    pub fn find(&self, place: &ResultCachePlace, number: u64, delivered: u64) -> Option<Arc<CachedRows>> {
        let mut kept = self.kept.lock();
        kept.uses += 1;
        let used = kept.uses;
        let result = kept.results.get_mut(&(place.clone(), number))?;
        if result.used_at.elapsed() > HELD_TIME_MAX {
            return None;
        }
        (result.used, result.used_at) = (used, Instant::now());
        Some(result.rows.clone()).filter(|rows| rows.first <= delivered)
    }

    /// A result was read to its end.
    pub fn forget(&self, place: &ResultCachePlace, number: u64) {
        self.kept.lock().remove(&(place.clone(), number));
    }

    /// Bytes that are kept.
    pub fn size_bytes(&self) -> usize {
        self.kept.lock().bytes
    }
}

impl Kept {
    fn make_room(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max {
            let oldest =
                self.results.iter().min_by_key(|(_, result)| result.used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { return };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &(ResultCachePlace, u64)) {
        if let Some(result) = self.results.remove(key) {
            self.bytes -= result.rows.size_bytes() + key.0.owner.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_query::Rows;

    fn place(query: u128) -> ResultCachePlace {
        ResultCachePlace { owner: b"here".to_vec(), query }
    }

    fn rows(first: u64, texts: &[&str]) -> CachedRows {
        let mut rows = Rows::default();
        texts.iter().for_each(|text| rows.push(text.as_bytes()));
        CachedRows { first, rows, ends: true }
    }

    #[test]
    fn rows_are_found_by_place_query_and_number_only() {
        let cache = ResultCache::default();
        let number = cache.keep(place(1), rows(2, &["c", "d"]));
        let found = cache.find(&place(1), number, 3).unwrap();
        assert_eq!(found.after(3).collect::<Vec<_>>(), [b"d"]);
        assert!(found.after(4).next().is_none());
        assert!(cache.find(&place(1), number, 1).is_none(), "row 1 was never kept");
        assert!(cache.find(&place(2), number, 3).is_none());
        assert!(cache.find(&place(1), number + 1, 3).is_none());
        cache.forget(&place(1), number);
        assert!(cache.find(&place(1), number, 3).is_none());
        assert_eq!(cache.size_bytes(), 0);
    }

    #[test]
    fn the_result_that_was_not_used_for_longest_makes_room() {
        let text = "x".repeat(1_000);
        let one = rows(0, &[&text]).size_bytes() + 4;
        let cache = ResultCache::new(2 * one);
        let first = cache.keep(place(1), rows(0, &[&text]));
        let second = cache.keep(place(1), rows(0, &[&text]));
        assert!(cache.find(&place(1), first, 0).is_some());
        let third = cache.keep(place(1), rows(0, &[&text]));
        assert!(cache.find(&place(1), second, 0).is_none());
        assert!(cache.find(&place(1), first, 0).is_some() && cache.find(&place(1), third, 0).is_some());
        assert_eq!(cache.size_bytes(), 2 * one);
        cache.keep(place(1), rows(0, &[&"y".repeat(10_000)]));
        assert!(cache.find(&place(1), first, 0).is_some(), "what is too large displaces nothing");
    }
}
