//! The budgets that a request must pass at one physical partition: the share, the ceiling of a burst, its throughput
//! bucket.
//!
//! - The *share* is the partition's part of the throughput; it saves one second of it, with bursts allowed five
//!   minutes.
//! - A *burst* spends what was saved at no more than 3,000 RU/s, and only where the share is below that.
//! - *Low priority* leaves a fifth of a second to the others: when the budget is short, it is refused first.
//! - A *throughput bucket* is a percentage of the share that requests with its number may take together.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::RequestClass;
use super::bucket::Bucket;

/// The percentage of a throughput bucket that is no limit.
pub const BUCKET_UNLIMITED: u8 = 100;
/// Throughput buckets of a container, counted from 1.
pub const BUCKETS_MAX: usize = 5;

const WINDOW_NS: i64 = 1_000_000_000;
const BURST_WINDOW_NS: i64 = 300 * WINDOW_NS;
/// A burst is never faster than this, and a larger share has none.
const BURST_MILLI: u64 = 3_000_000;
const LOW_PRIORITY_RESERVE_NS: i64 = WINDOW_NS / 5;

/// The percentage of the throughput that each throughput bucket may use; 100 where nothing else was said.
#[derive(Debug)]
pub(super) struct BucketShares([AtomicU8; BUCKETS_MAX]);

impl Default for BucketShares {
    fn default() -> BucketShares {
        BucketShares([const { AtomicU8::new(BUCKET_UNLIMITED) }; BUCKETS_MAX])
    }
}

impl BucketShares {
    pub(super) fn set(&self, percents: [u8; BUCKETS_MAX]) {
        self.0.iter().zip(percents).for_each(|(cell, percent)| cell.store(percent.clamp(1, 100), Relaxed));
    }

    fn percent(&self, bucket: usize) -> u64 {
        self.0.get(bucket).map_or(100, |cell| u64::from(cell.load(Relaxed)))
    }
}

/// What is allowed at the moment of a request.
pub(super) struct Rules<'a> {
    pub(super) now_ns: i64,
    /// The partition's share, in thousandths of RU/s.
    pub(super) share_milli: u64,
    pub(super) burst: bool,
    pub(super) buckets: &'a BucketShares,
}

impl Rules<'_> {
    fn bursts(&self) -> bool {
        self.burst && self.share_milli < BURST_MILLI
    }
}

pub(super) struct Limiter {
    share: Bucket,
    burst: Bucket,
    buckets: [Bucket; BUCKETS_MAX],
}

impl Limiter {
    pub(super) fn new() -> Limiter {
        Limiter {
            share: Bucket::new(),
            burst: Bucket::new(),
            buckets: std::array::from_fn(|_| Bucket::new()),
        }
    }

    /// Refuses with the nanoseconds after which every budget allows the request.
    pub(super) fn admit(&self, rules: &Rules<'_>, class: RequestClass) -> Result<(), i64> {
        let reserve_ns = if class.low_priority { LOW_PRIORITY_RESERVE_NS } else { 0 };
        let mut wait_ns = self.share.admit(rules.now_ns, rules.share_milli, reserve_ns).err();
        if rules.bursts() {
            wait_ns = wait_ns.max(self.burst.admit(rules.now_ns, BURST_MILLI, 0).err());
        }
        if let Some((bucket, rate_milli)) = self.bucket(rules, class) {
            wait_ns = wait_ns.max(bucket.admit(rules.now_ns, rate_milli, 0).err());
        }
        wait_ns.map_or(Ok(()), Err)
    }

    pub(super) fn charge(&self, rules: &Rules<'_>, class: RequestClass, charge_ru: f64) {
        let bursts = rules.bursts();
        let window_ns = if bursts { BURST_WINDOW_NS } else { WINDOW_NS };
        self.share.charge(rules.now_ns, rules.share_milli, window_ns, charge_ru);
        if bursts {
            self.burst.charge(rules.now_ns, BURST_MILLI, WINDOW_NS, charge_ru);
        }
        if let Some((bucket, rate_milli)) = self.bucket(rules, class) {
            bucket.charge(rules.now_ns, rate_milli, WINDOW_NS, charge_ru);
        }
    }

    /// The throughput bucket of a request with its rate, where it is a limit at all.
    fn bucket(&self, rules: &Rules<'_>, class: RequestClass) -> Option<(&Bucket, u64)> {
        let index = usize::from(class.bucket?).checked_sub(1)?;
        let percent = rules.buckets.percent(index);
        let bucket = self.buckets.get(index).filter(|_| percent < 100)?;
        Some((bucket, (rules.share_milli * percent / 100).max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = WINDOW_NS;

    struct Bench {
        limiter: Limiter,
        shares: BucketShares,
        share_ru: u64,
        burst: bool,
    }

    impl Bench {
        fn new(share_ru: u64, burst: bool) -> Bench {
            Bench { limiter: Limiter::new(), shares: BucketShares::default(), share_ru, burst }
        }

        fn rules(&self, now_ns: i64) -> Rules<'_> {
            Rules { now_ns, share_milli: self.share_ru * 1000, burst: self.burst, buckets: &self.shares }
        }

        /// Requests of 1 RU that are served when `class` asks as fast as it can from `from` to `to`.
        fn served(&self, class: RequestClass, from: i64, to: i64) -> i64 {
            let (mut now, mut count) = (from, 0);
            while now < to {
                match self.limiter.admit(&self.rules(now), class) {
                    Ok(()) => {
                        self.limiter.charge(&self.rules(now), class, 1.0);
                        count += 1;
                    }
                    Err(wait_ns) => now += wait_ns,
                }
            }
            count
        }
    }

    #[test]
    fn five_idle_minutes_are_spent_in_a_burst_of_three_thousand_per_second() {
        let bench = Bench::new(100, true);
        // 30,000 RU saved: at 3,000 RU/s they last a good ten seconds.
        let first = bench.served(RequestClass::default(), 600 * S, 605 * S);
        assert!((15_000..=18_100).contains(&first), "{first}");
        let rest = bench.served(RequestClass::default(), 605 * S, 700 * S);
        assert!((first + rest - 40_000).abs() < 500, "{first} + {rest}");
    }

    #[test]
    fn a_large_share_has_no_burst() {
        let bench = Bench::new(4_000, true);
        let served = bench.served(RequestClass::default(), 600 * S, 601 * S);
        assert!((7_900..=8_100).contains(&served), "a full second saved and a second earned: {served}");
    }

    #[test]
    fn low_priority_is_refused_first_and_gets_everything_when_alone() {
        let low = RequestClass { low_priority: true, ..RequestClass::default() };
        let bench = Bench::new(100, false);
        let alone = bench.served(low, 0, 20 * S);
        assert!((1_950..=2_100).contains(&alone), "{alone}");
        let bench = Bench::new(100, false);
        bench.served(RequestClass::default(), 0, S);
        assert!(bench.limiter.admit(&bench.rules(S + S / 10), low).is_err());
        bench.limiter.admit(&bench.rules(S + S / 10), RequestClass::default()).unwrap();
    }

    #[test]
    fn a_throughput_bucket_is_held_to_its_percentage() {
        let bench = Bench::new(1_000, false);
        bench.shares.set([30, 100, 100, 100, 100]);
        let in_bucket = RequestClass { bucket: Some(1), ..RequestClass::default() };
        let served = bench.served(in_bucket, 0, 10 * S);
        assert!((2_900..=3_400).contains(&served), "{served}");
        assert!(bench.served(RequestClass::default(), 10 * S, 11 * S) > 900, "others have the rest");
    }
}
