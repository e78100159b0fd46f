//! What an offer gives to each physical partition.
//!
//! A container with throughput of its own divides it evenly over its partitions, each with its own limiter; what one
//! does not use the others cannot have. A share is never more than a partition can serve: throughput beyond that
//! comes into force when the container has been split. Containers without throughput of their own share their
//! database's: a [`Pool`] of `ceil(T / t)` limiters, each for an equal part of the hash space, and a partition
//! belongs to the part in which it begins. Autoscale allows its maximum at any moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwap;

use super::SERVERLESS_RU;
use super::limiter::{BUCKETS_MAX, BucketShares, Limiter};
use crate::config::EngineConfig;

/// The throughput that the containers of a database share.
pub(crate) struct Pool {
    state: ArcSwap<PoolState>,
    pub(super) buckets: BucketShares,
}

#[derive(Default)]
struct PoolState {
    total_ru: u32,
    limiters: Vec<Arc<Limiter>>,
}

impl Pool {
    pub(crate) fn new() -> Pool {
        Pool { state: ArcSwap::default(), buckets: BucketShares::default() }
    }

    /// Follows the database's offer. Limiters that stay keep their debts.
    pub(crate) fn set(&self, total_ru: u32, buckets: [u8; BUCKETS_MAX], config: &EngineConfig) {
        self.buckets.set(buckets);
        let count = total_ru.div_ceil(config.partition_throughput_limit.max(1)).max(1) as usize;
        let mut limiters = self.state.load().limiters.clone();
        limiters.resize_with(count, || Arc::new(Limiter::new()));
        self.state.store(Arc::new(PoolState { total_ru, limiters }));
    }

    pub(crate) fn total_ru(&self) -> u32 {
        self.state.load().total_ru
    }

    /// How many equal parts of the hash space have a limiter each.
    pub(super) fn parts(&self) -> u32 {
        self.state.load().limiters.len() as u32
    }

    pub(super) fn share_milli(&self) -> u64 {
        let state = self.state.load();
        u64::from(state.total_ru) * 1000 / state.limiters.len().max(1) as u64
    }

    pub(super) fn limiter(&self, part: u32) -> Option<Arc<Limiter>> {
        let state = self.state.load();
        state.limiters.get(part as usize).or(state.limiters.last()).cloned()
    }
}

/// The throughput behind one container.
pub(crate) struct Supply {
    config: Arc<EngineConfig>,
    /// Containers without throughput of their own.
    pool: Option<Arc<Pool>>,
    /// A container that has no key to be divided by is served by one partition whatever it is given.
    fixed: bool,
    total_ru: AtomicU32,
    partitions: AtomicU32,
    share_milli: AtomicU64,
    buckets: BucketShares,
}

impl Supply {
    pub(crate) fn own(config: Arc<EngineConfig>, total_ru: u32, fixed: bool) -> Supply {
        let supply = Supply {
            config,
            pool: None,
            fixed,
            total_ru: AtomicU32::new(total_ru),
            partitions: AtomicU32::new(1),
            share_milli: AtomicU64::new(0),
            buckets: BucketShares::default(),
        };
        supply.divide();
        supply
    }

    pub(crate) fn shared(config: Arc<EngineConfig>, pool: Arc<Pool>) -> Supply {
        Supply { pool: Some(pool), ..Supply::own(config, 0, false) }
    }

    /// Follows the container's offer.
    pub(crate) fn set_throughput(&self, total_ru: u32, buckets: [u8; BUCKETS_MAX]) {
        self.buckets.set(buckets);
        self.total_ru.store(total_ru, Relaxed);
        self.divide();
    }

    /// Follows the container's map of ranges: whoever makes or changes it says how many there are.
    pub(crate) fn set_partitions(&self, partitions: usize) {
        self.partitions.store(partitions as u32, Relaxed);
        self.divide();
    }

    fn divide(&self) {
        let limit = self.config.partition_throughput_limit.max(1);
        let even =
            u64::from(self.total_ru.load(Relaxed)) * 1000 / u64::from(self.partitions.load(Relaxed).max(1));
        let share = match (self.config.serverless, self.fixed) {
            (true, _) => u64::from(SERVERLESS_RU) * 1000,
            (false, true) => even,
            (false, false) => even.min(u64::from(limit) * 1000),
        };
        // At least a thousandth: a rate of nothing could never pay a debt.
        self.share_milli.store(share.max(1), Relaxed);
    }

    pub(super) fn pool(&self) -> Option<&Arc<Pool>> {
        if self.config.serverless { None } else { self.pool.as_ref() }
    }

    /// What one partition may spend per second, in thousandths.
    pub(super) fn share_milli(&self) -> u64 {
        match self.pool() {
            Some(pool) => pool.share_milli(),
            None => self.share_milli.load(Relaxed),
        }
    }

    pub(crate) fn share_ru(&self) -> f64 {
        self.share_milli() as f64 / 1000.0
    }

    pub(super) fn buckets(&self) -> &BucketShares {
        self.pool().map_or(&self.buckets, |pool| &pool.buckets)
    }

    pub(super) fn enforced(&self) -> bool {
        self.config.throttling.is_on()
    }

    pub(super) fn burst(&self) -> bool {
        self.config.burst && !self.config.serverless
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.pool().is_some()
    }

    /// Whether the throughput asks for more partitions than there are.
    pub(crate) fn wants_partitions(&self) -> Option<u32> {
        if self.fixed || self.config.serverless || self.pool.is_some() {
            return None;
        }
        let wanted = self.total_ru.load(Relaxed).div_ceil(self.config.partition_throughput_limit.max(1));
        (wanted > self.partitions.load(Relaxed)).then_some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Arc<EngineConfig> {
        Arc::new(EngineConfig { partition_throughput_limit: 10_000, ..EngineConfig::default() })
    }

    #[test]
    fn throughput_is_divided_evenly_and_no_partition_gets_more_than_it_can_serve() {
        let supply = Supply::own(config(), 30_000, false);
        supply.set_partitions(5);
        assert_eq!(supply.share_milli(), 6_000_000);
        supply.set_throughput(100_000, [100; BUCKETS_MAX]);
        assert_eq!((supply.share_milli(), supply.wants_partitions()), (10_000_000, Some(10)));
        supply.set_partitions(10);
        assert_eq!((supply.share_milli(), supply.wants_partitions()), (10_000_000, None));
        let fixed = Supply::own(
            Arc::new(EngineConfig { partition_throughput_limit: 100, ..EngineConfig::default() }),
            400,
            true,
        );
        assert_eq!(fixed.share_milli(), 400_000);
    }

    #[test]
    fn a_pool_has_a_limiter_for_each_part_of_the_hash_space() {
        let pool = Arc::new(Pool::new());
        pool.set(25_000, [100; BUCKETS_MAX], &config());
        assert_eq!((pool.parts(), pool.share_milli()), (3, 25_000_000 / 3));
        let kept = pool.limiter(0).unwrap();
        pool.set(400, [100; BUCKETS_MAX], &config());
        assert!(Arc::ptr_eq(&kept, &pool.limiter(2).unwrap()), "a part that is gone falls to the last");
        let supply = Supply::shared(config(), pool);
        assert_eq!((supply.share_milli(), supply.is_shared()), (400_000, true));
    }

    #[test]
    fn a_serverless_partition_has_five_thousand_whatever_the_offer() {
        let config = Arc::new(EngineConfig { serverless: true, ..EngineConfig::default() });
        assert_eq!(Supply::own(config, 400, false).share_milli(), 5_000_000);
    }
}
