//! One budget of request units per second, as a single atomic number.
//!
//! The number is the moment at which the budget was, or will be, exactly empty. What has been saved since then is
//! `(now - empty_at) * rate`, at most one window's worth; a moment in the future is a debt, and the distance to it is
//! how long a client should wait. Admitting compares two numbers; charging moves the moment. Nothing has to tick.
//!
//! Worked example: 400 RU/s, window one second, full. A query that costs 704.76 RU is admitted and moves the moment
//! from one second ago to 0.762 s ahead: everybody is refused for 762 ms, and the long-run rate is 400 RU/s all the
//! same.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

const NS_PER_S: f64 = 1e9;

/// Long before any clock's zero: a new budget is full.
const ALWAYS_EMPTY_BEFORE_NS: i64 = i64::MIN / 4;

pub(super) struct Bucket {
    empty_at_ns: AtomicI64,
    /// The rate that `empty_at_ns` was reckoned with, in thousandths of RU/s; 0 before the first use.
    rate_milli: AtomicU64,
}

impl Bucket {
    pub(super) fn new() -> Bucket {
        Bucket { empty_at_ns: AtomicI64::new(ALWAYS_EMPTY_BEFORE_NS), rate_milli: AtomicU64::new(0) }
    }

    /// Refuses with the nanoseconds to wait while less than `reserve_ns` worth of the rate is saved.
    pub(super) fn admit(&self, now_ns: i64, rate_milli: u64, reserve_ns: i64) -> Result<(), i64> {
        self.follow_rate(now_ns, rate_milli);
        let saved_ns = now_ns.saturating_sub(self.empty_at_ns.load(Relaxed));
        if saved_ns > reserve_ns { Ok(()) } else { Err(reserve_ns - saved_ns + 1) }
    }

    pub(super) fn charge(&self, now_ns: i64, rate_milli: u64, window_ns: i64, charge_ru: f64) {
        self.follow_rate(now_ns, rate_milli);
        // A charge is finite and the rate at least a thousandth; the conversion saturates.
        let cost_ns = (charge_ru * 1000.0 / rate_milli.max(1) as f64 * NS_PER_S) as i64;
        let oldest_ns = now_ns.saturating_sub(window_ns);
        // The closure always has an answer.
        let _ = self.empty_at_ns.fetch_update(Relaxed, Relaxed, |empty_at_ns| {
            Some(empty_at_ns.max(oldest_ns).saturating_add(cost_ns))
        });
    }

    /// Debts are request units, not time: whoever raises the throughput pays them off sooner.
    fn follow_rate(&self, now_ns: i64, rate_milli: u64) {
        let known = self.rate_milli.load(Relaxed);
        if known == rate_milli {
            return;
        }
        if self.rate_milli.compare_exchange(known, rate_milli, Relaxed, Relaxed).is_err() || known == 0 {
            return;
        }
        let _ = self.empty_at_ns.fetch_update(Relaxed, Relaxed, |empty_at_ns| {
            let debt_ns = empty_at_ns.saturating_sub(now_ns);
            let rescaled = (debt_ns as f64 * known as f64 / rate_milli.max(1) as f64) as i64;
            (debt_ns > 0).then(|| now_ns.saturating_add(rescaled))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const S: i64 = 1_000 * MS;

    fn rate(ru: u64) -> u64 {
        ru * 1000
    }

    #[test]
    fn a_costly_request_is_admitted_and_paid_for_afterwards() {
        let bucket = Bucket::new();
        bucket.admit(0, rate(400), 0).unwrap();
        bucket.charge(0, rate(400), S, 704.76);
        let wait_ns = bucket.admit(0, rate(400), 0).unwrap_err();
        assert_eq!(wait_ns / MS, 761);
        assert!(bucket.admit(761 * MS, rate(400), 0).is_err());
        bucket.admit(762 * MS, rate(400), 0).unwrap();
    }

    #[test]
    fn the_recorded_batches_of_the_service_are_all_served() {
        // 25 batches of 704.76 RU at 400 RU/s, one every two seconds.
        let bucket = Bucket::new();
        for n in 0..25 {
            bucket.admit(n * 2 * S, rate(400), 0).unwrap();
            bucket.charge(n * 2 * S, rate(400), S, 704.76);
        }
    }

    #[test]
    fn idle_time_saves_no_more_than_a_window() {
        let bucket = Bucket::new();
        let now = 3_600 * S;
        let served = (0..10_000)
            .take_while(|_| bucket.admit(now, rate(100), 0).is_ok())
            .inspect(|_| bucket.charge(now, rate(100), S, 1.0))
            .count();
        assert_eq!(served, 100);
    }

    #[test]
    fn the_long_run_rate_is_the_provisioned_one() {
        let bucket = Bucket::new();
        let (mut now, mut spent) = (0, 0.0f64);
        while now < 100 * S {
            match bucket.admit(now, rate(1_000), 0) {
                Ok(()) => {
                    bucket.charge(now, rate(1_000), S, 6.67);
                    spent += 6.67;
                }
                Err(wait_ns) => now += wait_ns,
            }
        }
        assert!((spent / 100.0 - 1_000.0).abs() < 20.0, "{spent}");
    }

    #[test]
    fn a_higher_rate_pays_a_debt_sooner() {
        let bucket = Bucket::new();
        bucket.charge(0, rate(400), 0, 4_000.0);
        assert_eq!(bucket.admit(0, rate(400), 0).unwrap_err() / S, 10);
        assert_eq!(bucket.admit(0, rate(4_000), 0).unwrap_err() / S, 1);
    }

    #[test]
    fn a_reserve_is_kept() {
        let bucket = Bucket::new();
        bucket.charge(0, rate(100), S, 85.0);
        assert!(bucket.admit(0, rate(100), S / 5).is_err());
        bucket.admit(0, rate(100), 0).unwrap();
    }

    #[test]
    fn absurd_figures_saturate() {
        let bucket = Bucket::new();
        bucket.charge(0, 1, S, f64::MAX);
        bucket.charge(0, 1, S, f64::MAX);
        assert!(bucket.admit(i64::MAX / 2, 1, 0).is_err());
    }
}
