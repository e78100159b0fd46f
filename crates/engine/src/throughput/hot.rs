//! Which logical partitions spend the request units: a small sketch that sees a sample of the requests.
//!
//! About every [`SAMPLE_RU`] request units one request is noted, at a random point, and stands for everything spent
//! since the last: the more a key costs the likelier it is the one. The sketch is SpaceSaving: [`KEYS_MAX`] counters,
//! and a key that has none takes over the smallest one with its count, so what is heavy is never missed and an
//! estimate is at most too high by the smallest counter. Counters halve every minute, so that the answer is about
//! now.
//!
//! A request that is not sampled pays one comparison; one that is tries a lock and gives up if somebody holds it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use orrery_model::PartitionKey;
use parking_lot::Mutex;

/// One sample stands for about this many request units.
const SAMPLE_RU: u64 = 20;
const KEYS_MAX: usize = 64;
/// Keys are kept in their stored form up to this length; longer ones are not noted.
const KEY_BYTES_MAX: usize = 2_048;
const HALVED_EVERY_S: u64 = 60;

/// A logical partition and its part of what its physical partition spends.
#[derive(Debug, Clone, PartialEq)]
pub struct HotKey {
    pub key: PartitionKey,
    /// 0 to 1, an estimate.
    pub share: f64,
}

pub(super) struct Hot {
    /// The total, in thousandths of RU, at which the next sample is taken.
    next_at: AtomicU64,
    sketch: Mutex<Sketch>,
}

#[derive(Default)]
struct Sketch {
    counters: Vec<Counter>,
    /// Everything noted, with what has halved.
    weight: f64,
    /// The total at the last sample.
    seen: u64,
    halved_at_s: u64,
}

struct Counter {
    key: Box<[u8]>,
    weight: f64,
}

impl Hot {
    pub(super) fn new() -> Hot {
        Hot { next_at: AtomicU64::new(0), sketch: Mutex::new(Sketch::default()) }
    }

    /// Whether the request that brought the total here is one to note.
    pub(super) fn is_due(&self, total_milli: u64) -> bool {
        total_milli >= self.next_at.load(Relaxed)
    }

    pub(super) fn note(&self, key: &PartitionKey, total_milli: u64, second: u64, random: u64) {
        let Some(mut sketch) = self.sketch.try_lock() else { return };
        // Between half and one and a half times the distance: a workload with a period must not always hit the same
        // key.
        let distance = SAMPLE_RU * 500 + random % (SAMPLE_RU * 1000);
        self.next_at.store(total_milli + distance, Relaxed);
        let mut encoded = Vec::with_capacity(64);
        key.encode(&mut encoded);
        if encoded.len() <= KEY_BYTES_MAX {
            sketch.add(&encoded, total_milli, second);
        }
    }

    /// The heaviest keys, heaviest first.
    pub(super) fn top(&self, count: usize) -> Vec<HotKey> {
        let sketch = self.sketch.lock();
        let mut found: Vec<(&[u8], f64)> =
            sketch.counters.iter().map(|counter| (&*counter.key, counter.weight)).collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        let weight = sketch.weight.max(f64::MIN_POSITIVE);
        found
            .into_iter()
            .take(count)
            .filter_map(|(key, part)| {
                Some(HotKey { key: PartitionKey::decode(key)?, share: (part / weight).min(1.0) })
            })
            .collect()
    }
}

impl Sketch {
    fn add(&mut self, key: &[u8], total_milli: u64, second: u64) {
        let periods = second.saturating_sub(self.halved_at_s) / HALVED_EVERY_S;
        if periods > 0 {
            let factor = 0.5f64.powi(i32::try_from(periods).unwrap_or(i32::MAX));
            self.counters.iter_mut().for_each(|counter| counter.weight *= factor);
            self.weight *= factor;
            self.halved_at_s = second;
        }
        let weight = total_milli.saturating_sub(self.seen) as f64;
        self.seen = total_milli;
        self.weight += weight;
        if let Some(counter) = self.counters.iter_mut().find(|counter| *counter.key == *key) {
            counter.weight += weight;
            return;
        }
        if self.counters.len() < KEYS_MAX {
            self.counters.push(Counter { key: key.into(), weight });
            return;
        }
        let smallest = self.counters.iter_mut().min_by(|a, b| a.weight.total_cmp(&b.weight));
        if let Some(counter) = smallest {
            counter.key = key.into();
            counter.weight += weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_model::KeyComponent;

    fn key(n: u64) -> PartitionKey {
        PartitionKey([KeyComponent::Number(n as f64)].into_iter().collect())
    }

    /// Spends 1 RU per request, keys chosen by `choose`, and returns the report.
    fn spend(requests: u64, choose: impl Fn(u64) -> u64) -> Vec<HotKey> {
        let hot = Hot::new();
        for n in 1..=requests {
            if hot.is_due(n * 1000) {
                let random = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
                hot.note(&key(choose(n)), n * 1000, n / 10_000, random);
            }
        }
        hot.top(3)
    }

    #[test]
    fn a_key_that_spends_a_third_is_found_among_thousands() {
        let mix = |n: u64| n.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 33;
        let top = spend(200_000, |n| if n % 3 == 0 { 7 } else { 1_000 + mix(n) % 5_000 });
        assert_eq!(top[0].key, key(7));
        assert!((0.28..0.40).contains(&top[0].share), "{}", top[0].share);
        assert!(top[1].share < 0.1, "{}", top[1].share);
    }

    #[test]
    fn an_even_workload_has_no_hot_key() {
        let top = spend(200_000, |n| n % 997);
        assert!(top[0].share < 0.05, "{}", top[0].share);
    }

    #[test]
    fn yesterdays_heat_is_forgotten() {
        let hot = Hot::new();
        hot.note(&key(1), 1_000_000, 0, 0);
        hot.note(&key(2), 1_010_000, 3_600, 0);
        assert_eq!(hot.top(1)[0].key, key(2));
    }
}
