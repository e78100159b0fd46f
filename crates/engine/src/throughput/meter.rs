//! The meter of one physical partition: admits, charges, and keeps the figures that insight reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use orrery_model::{Epk, PartitionKey, PartitionKeyDefinition};

use super::hot::{Hot, HotKey};
use super::limiter::{Limiter, Rules};
use super::recent::Recent;
use super::supply::{Pool, Supply};
use super::{RATE_IS_LARGE, RequestClass};
use crate::env::Env;
use crate::error::{Error, Kind, Result};

const NS_PER_S: u64 = 1_000_000_000;
const NS_PER_MS: i64 = 1_000_000;
/// Seconds over which the present rate is averaged.
const RATE_SPAN_S: u64 = 10;

pub(crate) struct Meter {
    own: Limiter,
    /// Which part of a pool of how many parts the partition belongs to: `parts << 32 | part`.
    place: AtomicU64,
    consumed_milli: AtomicU64,
    requests: AtomicU64,
    throttled: AtomicU64,
    recent: Recent,
    hot: Hot,
}

/// What the figures say at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) consumed_ru: f64,
    pub(crate) requests: u64,
    pub(crate) throttled: u64,
    /// Averaged over the last seconds.
    pub(crate) rate_ru: f64,
    /// The most in one second of the last minute.
    pub(crate) peak_ru: f64,
}

impl Meter {
    pub(crate) fn new() -> Meter {
        Meter {
            own: Limiter::new(),
            place: AtomicU64::new(0),
            consumed_milli: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            throttled: AtomicU64::new(0),
            recent: Recent::new(),
            hot: Hot::new(),
        }
    }

    /// Lets a request in, or refuses it with the time to wait.
    pub(crate) fn admit(&self, at: &MeteredRange<'_>, class: RequestClass) -> Result<()> {
        if !at.supply.enforced() {
            return Ok(());
        }
        let rules = at.rules();
        let refused = match at.supply.pool() {
            None => self.own.admit(&rules, class),
            Some(pool) => match self.shared(pool, at) {
                Some(limiter) => limiter.admit(&rules, class),
                None => Ok(()),
            },
        };
        refused.map_err(|wait_ns| {
            self.throttled.fetch_add(1, Relaxed);
            // Rounded up: a client that comes back at that moment finds the debt paid.
            let retry_after_ms = (wait_ns.max(1) as u64).div_ceil(NS_PER_MS as u64);
            Error::new(Kind::Throttled { retry_after_ms }, RATE_IS_LARGE)
        })
    }

    /// Takes what a request cost out of the budget and notes it. `key` is the logical partition it was about, if one.
    pub(crate) fn charge(
        &self,
        at: &MeteredRange<'_>,
        class: RequestClass,
        charge_ru: f64,
        key: Option<&PartitionKey>,
    ) {
        let now_ns = at.env.monotonic_ns();
        let charge_milli = (charge_ru * 1000.0).round() as u64;
        let total_milli = self.consumed_milli.fetch_add(charge_milli, Relaxed) + charge_milli;
        self.requests.fetch_add(1, Relaxed);
        self.recent.add(now_ns / NS_PER_S, charge_milli);
        if let Some(key) = key
            && self.hot.is_due(total_milli)
        {
            self.hot.note(key, total_milli, now_ns / NS_PER_S, at.env.random_u64());
        }
        if at.supply.enforced() {
            let rules = Rules { now_ns: now_ns as i64, ..at.rules_without_time() };
            match at.supply.pool() {
                None => self.own.charge(&rules, class, charge_ru),
                Some(pool) => {
                    if let Some(limiter) = self.shared(pool, at) {
                        limiter.charge(&rules, class, charge_ru);
                    }
                }
            }
        }
    }

    /// The limiter of the part of the hash space in which the partition begins.
    fn shared(&self, pool: &Pool, at: &MeteredRange<'_>) -> Option<Arc<Limiter>> {
        let parts = pool.parts();
        let known = self.place.load(Relaxed);
        let part = match (known >> 32) as u32 == parts {
            true => known as u32,
            false => {
                let boundaries = at.key.boundaries(parts);
                let part = boundaries.partition_point(|boundary| boundary <= at.min).saturating_sub(1) as u32;
                self.place.store(u64::from(parts) << 32 | u64::from(part), Relaxed);
                part
            }
        };
        pool.limiter(part)
    }

    pub(crate) fn figures(&self, env: &dyn Env) -> Figures {
        let second = env.monotonic_ns() / NS_PER_S;
        let ru = |milli: u64| milli as f64 / 1000.0;
        Figures {
            consumed_ru: ru(self.consumed_milli.load(Relaxed)),
            requests: self.requests.load(Relaxed),
            throttled: self.throttled.load(Relaxed),
            rate_ru: ru(self.recent.average_milli(second, RATE_SPAN_S)),
            peak_ru: ru(self.recent.peak_milli(second)),
        }
    }

    pub(crate) fn hot_keys(&self, count: usize) -> Vec<HotKey> {
        self.hot.top(count)
    }
}

/// Where a meter stands: its container's supply and its part of the hash space.
pub(crate) struct MeteredRange<'a> {
    pub(crate) supply: &'a Supply,
    pub(crate) env: &'a dyn Env,
    pub(crate) key: &'a PartitionKeyDefinition,
    pub(crate) min: &'a Epk,
}

impl<'a> MeteredRange<'a> {
    fn rules(&self) -> Rules<'a> {
        Rules { now_ns: self.env.monotonic_ns() as i64, ..self.rules_without_time() }
    }

    fn rules_without_time(&self) -> Rules<'a> {
        Rules {
            now_ns: 0,
            share_milli: self.supply.share_milli(),
            burst: self.supply.burst(),
            buckets: self.supply.buckets(),
        }
    }
}
