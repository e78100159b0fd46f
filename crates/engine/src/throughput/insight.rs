//! What the partitions of an account hold and spend, for people and for tools.

use orrery_model::{Epk, PartitionKey};

use super::hot::HotKey;
use crate::account::{Account, Ref};
use crate::block_on;
use crate::container::Container;
use crate::error::Result;
use crate::feed::Scope;
use crate::offer::{Offer, OfferOwner, Throughput};
use crate::partition::Partition;

/// Partitions that one report covers; ask by database or container for the rest.
pub const INSIGHT_PARTITIONS_MAX: usize = 1_000;

/// A logical partition and what it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct LargeKey {
    pub key: PartitionKey,
    pub size_bytes: u64,
    pub items: u64,
}

/// One physical partition.
#[derive(Debug, Clone)]
pub struct PartitionInsight {
    pub database: String,
    pub container: String,
    pub range_id: u32,
    pub min: Epk,
    pub max: Epk,
    pub items: u64,
    pub size_bytes: u64,
    pub size_limit_bytes: u64,
    /// RU/s that it may spend, and whether others spend from the same budget.
    pub share_ru: f64,
    pub shared: bool,
    /// Since the partition was opened.
    pub consumed_ru: f64,
    pub requests: u64,
    pub throttled: u64,
    /// RU/s over the last ten seconds.
    pub rate_ru: f64,
    /// The most RU in one second of the last minute.
    pub peak_ru: f64,
    pub hot: Vec<HotKey>,
    pub largest: Vec<LargeKey>,
    /// How much of the partition has been measured for `largest`, 0 to 1.
    pub surveyed: f64,
}

impl PartitionInsight {
    /// The busiest second of the last minute as a part of the share; 1 is all of it.
    pub fn normalized(&self) -> f64 {
        if self.share_ru > 0.0 { (self.peak_ru / self.share_ru).min(1.0) } else { 0.0 }
    }

    /// The figures alone, which cost next to nothing.
    pub(crate) fn figures(partition: &Partition) -> PartitionInsight {
        let (owner, figures, usage) = (partition.owner(), partition.figures(), partition.usage());
        let (min, max) = partition.bounds();
        PartitionInsight {
            database: owner.database().name.clone(),
            container: owner.name().to_owned(),
            range_id: partition.range_id(),
            min: min.clone(),
            max: max.clone(),
            items: usage.items,
            size_bytes: usage.size_bytes,
            size_limit_bytes: partition.size_limit(),
            share_ru: partition.share_ru(),
            shared: owner.supply().is_shared(),
            consumed_ru: figures.consumed_ru,
            requests: figures.requests,
            throttled: figures.throttled,
            rate_ru: figures.rate_ru,
            peak_ru: figures.peak_ru,
            hot: Vec::new(),
            largest: Vec::new(),
            surveyed: 0.0,
        }
    }

    pub(crate) fn with_keys(partition: &Partition, count: usize) -> Result<PartitionInsight> {
        let mut insight = PartitionInsight::figures(partition);
        if count > 0 {
            insight.hot = partition.hot_keys(count);
            (insight.largest, insight.surveyed) = partition.largest_keys(count)?;
        }
        Ok(insight)
    }
}

impl Account {
    /// What partitions hold and spend: of one container, one database, or all, with their `keys` hottest and largest
    /// logical partitions. Partitions are opened for it; at most `INSIGHT_PARTITIONS_MAX` are reported.
    pub fn insights(
        &self,
        database: Option<&str>,
        container: Option<&str>,
        keys: usize,
    ) -> Result<Vec<PartitionInsight>> {
        let databases = match database {
            Some(name) => vec![self.database(Ref::Name(name))?],
            None => self.databases(),
        };
        let mut found = Vec::new();
        for database in databases {
            let containers = match container {
                Some(name) => vec![database.container(Ref::Name(name))?],
                None => database.containers(),
            };
            for container in containers {
                for partition in container.refs_of(&Scope::All)? {
                    if found.len() >= INSIGHT_PARTITIONS_MAX {
                        return Ok(found);
                    }
                    found.push(block_on(partition.insight(keys))?);
                }
            }
        }
        Ok(found)
    }

    /// The figures of the partitions that are open, without their keys.
    pub fn open_partition_figures(&self) -> Vec<PartitionInsight> {
        self.open_partitions().iter().map(|partition| PartitionInsight::figures(partition)).collect()
    }

    /// The RU/s of an offer that are in force: of autoscale, what the busiest partition asked for in the last minute,
    /// between a tenth of the maximum and all of it.
    pub fn throughput_in_force(&self, offer: &Offer) -> u32 {
        let Throughput::Autoscale { max, .. } = offer.throughput else { return offer.throughput.ceiling() };
        let busiest = self
            .containers_of(offer.owner)
            .iter()
            .flat_map(|container| container.open_partitions().collect::<Vec<_>>())
            .map(|partition| PartitionInsight::figures(&partition).normalized())
            .fold(0.0, f64::max);
        ((f64::from(max) * busiest).ceil() as u32).clamp(max / 10, max)
    }

    /// The lowest value that an offer may be set to now: what it held since it was last set counts too.
    pub fn offer_minimum(&self, offer: &Offer) -> u32 {
        let containers = self.containers_of(offer.owner);
        let open = containers.iter().flat_map(|container| container.open_partitions().collect::<Vec<_>>());
        let size_bytes: u64 = open.map(|partition| partition.usage().size_bytes).sum();
        let shared = matches!(offer.owner, OfferOwner::Database(_)).then_some(containers.len());
        let storage_kb = offer.storage_max_ever_kb.max(size_bytes / 1024);
        offer.throughput.minimum_of(offer.throughput_max_ever, storage_kb, shared.unwrap_or(0))
    }

    /// Whether throughput was raised beyond what the present partitions can serve, so that splits are due.
    pub fn offer_is_pending(&self, offer: &Offer) -> bool {
        matches!(offer.owner, OfferOwner::Container(..))
            && self
                .containers_of(offer.owner)
                .iter()
                .any(|container| container.core().supply().wants_partitions().is_some())
    }

    /// The containers that an offer provides for.
    fn containers_of(&self, owner: OfferOwner) -> Vec<std::sync::Arc<Container>> {
        let (OfferOwner::Database(number) | OfferOwner::Container(number, _)) = owner;
        let Ok(database) = self.database(Ref::Number(number)) else { return Vec::new() };
        match owner {
            OfferOwner::Container(_, number) => database.container(Ref::Number(number)).into_iter().collect(),
            OfferOwner::Database(_) => database
                .containers()
                .into_iter()
                .filter(|container| container.core().supply().is_shared())
                .collect(),
        }
    }
}
