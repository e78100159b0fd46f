//! Which partitions are due to be split, and which can be merged.

use std::sync::Arc;

use super::job::{JobKind, JobReason};
use crate::account::Account;
use crate::catalog::PARTITIONS_MAX;
use crate::container::Container;
use crate::error::{Error, Kind, Result};
use crate::offer::OfferOwner;
use crate::partition::Partition;

/// Looks at every container. Partitions that were never opened since the start are not grown, so they are passed by.
pub(super) fn look(account: &Account) {
    for database in account.databases() {
        for container in database.containers() {
            if let Some((range_id, reason)) = due(account, &container) {
                // Already waiting or running is no reason to complain.
                let _ = account.splits().submit(&container, JobKind::Split, vec![range_id], reason);
            }
        }
    }
}

fn due(account: &Account, container: &Container) -> Option<(u32, JobReason)> {
    if container.definition().partition_key.system_key {
        return None;
    }
    let limit = account.config().partition_size_limit;
    let by_size = container
        .open_partitions()
        .filter(|partition| partition.usage().size_bytes >= limit && partition.may_be_split())
        .max_by_key(|partition| partition.usage().size_bytes);
    if let Some(partition) = by_size {
        return Some((partition.range_id(), JobReason::Size));
    }
    if (container.map().slots().len() as u32) < wanted(account, container) {
        let partitions = container.partitions().ok()?;
        let largest =
            partitions.iter().filter(|partition| partition.may_be_split()).max_by(|a, b| by_weight(a, b))?;
        return Some((largest.range_id(), JobReason::Throughput));
    }
    None
}

/// How many partitions the provisioned throughput asks for.
fn wanted(account: &Account, container: &Container) -> u32 {
    let database = container.database().number;
    let offer = account
        .offer_of(OfferOwner::Container(database, container.number()))
        .or_else(|| account.offer_of(OfferOwner::Database(database)));
    let limit = account.config().partition_throughput_limit.max(1);
    offer.map_or(1, |offer| offer.throughput.ceiling().div_ceil(limit)).clamp(1, PARTITIONS_MAX)
}

/// By bytes; of equals, the one with the wider range, which matters while a container is empty.
fn by_weight(a: &Arc<Partition>, b: &Arc<Partition>) -> std::cmp::Ordering {
    let bytes = |partition: &Partition| partition.usage().size_bytes;
    bytes(a).cmp(&bytes(b)).then_with(|| width(a).total_cmp(&width(b)))
}

/// The share of the hash space, from the first bytes of the bounds: exact enough to compare ranges.
fn width(partition: &Partition) -> f64 {
    let position = |epk: &[u8]| {
        epk.iter()
            .take(7)
            .fold((0.0, 1.0), |(sum, unit), byte| (sum + f64::from(*byte) * unit / 256.0, unit / 256.0))
            .0
    };
    // The hash space of the present version ends at 0x40; "FF" only says that nothing comes after.
    let (min, max) = partition.bounds();
    position(max.as_bytes()).min(0.25) - position(min.as_bytes()).min(0.25)
}

/// The range that holds most.
pub(super) fn largest(container: &Container) -> Result<u32> {
    let partitions = container.partitions()?;
    let largest = partitions.iter().max_by(|a, b| by_weight(a, b));
    largest
        .map(|partition| partition.range_id())
        .ok_or_else(|| Error::internal("A container has no partitions."))
}

/// Two neighbours that would be one healthy partition.
pub(super) fn pair_to_merge(account: &Account, container: &Container, left: Option<u32>) -> Result<[u32; 2]> {
    let partitions = container.partitions()?;
    if (partitions.len() as u32) <= wanted(account, container) {
        return Err(Error::bad_request(
            "The container's throughput asks for as many partitions as it has; lower it before merging.",
        ));
    }
    let bytes = |pair: &[Arc<Partition>]| -> u64 { pair.iter().map(|part| part.usage().size_bytes).sum() };
    let pair = match left {
        Some(id) => {
            let found = partitions.windows(2).find(|pair| pair[0].range_id() == id);
            match (found, container.partition(id)) {
                (Some(pair), _) => pair,
                (None, Ok(_)) => {
                    return Err(Error::bad_request(
                        "The partition has no neighbour after it to be merged with.",
                    ));
                }
                (None, Err(error)) => return Err(error),
            }
        }
        None => partitions.windows(2).min_by_key(|pair| bytes(pair)).ok_or_else(|| {
            Error::bad_request("The container has one partition; there is nothing to merge.")
        })?,
    };
    // One that is due to be split at once would only be work.
    if bytes(pair) >= account.config().partition_size_limit {
        let message = "The two partitions together would be above the size limit of one.";
        return Err(Error::new(Kind::BadRequest, message));
    }
    Ok([pair[0].range_id(), pair[1].range_id()])
}
