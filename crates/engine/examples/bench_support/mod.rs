//! What the benchmarks of the engine share: filling a container, sizes on disk, CPU time, and dice that always fall
//! alike.

#![allow(dead_code)] // Not each of them needs all of it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use orrery_engine::block_on as wait;
use orrery_engine::{Container, Item, Operation, SystemProperties};
use orrery_model::{KeyComponent, ParseOptions, PartitionKey, Value, parse_json};

pub type Failure = Box<dyn std::error::Error>;

/// Writes that may be under way at the same time.
const IN_FLIGHT: usize = 64;

/// Upserts items, each a partition key, an id and the JSON of the document.
pub fn write_all(
    container: &Arc<Container>,
    items: impl Iterator<Item = (String, String, String)>,
) -> Result<(), Failure> {
    let mut under_way = VecDeque::new();
    for (key, id, text) in items {
        let document: Bytes = parse_json(text.as_bytes(), &ParseOptions::default())?.into();
        let key = PartitionKey([KeyComponent::String(key)].into_iter().collect());
        under_way.push_back(container.write_item(&key, Operation::Upsert { id, document }.into()));
        if under_way.len() >= IN_FLIGHT
            && let Some(first) = under_way.pop_front()
        {
            wait(first)?;
        }
    }
    under_way.into_iter().try_for_each(|write| wait(write).map(|_| ()))?;
    Ok(())
}

/// Items without system members.
pub struct NoSystem;

impl SystemProperties for NoSystem {
    fn to_shared(&self) -> std::sync::Arc<dyn SystemProperties> {
        std::sync::Arc::new(NoSystem)
    }

    fn host(&self) -> &'static str {
        "bench"
    }

    fn count(&self) -> usize {
        0
    }

    fn name(&self, _: usize) -> &'static str {
        ""
    }

    fn value(&self, _: &Item, _: usize) -> Value {
        Value::Undefined
    }

    fn write_json(&self, _: &Item, _: usize, _: &mut Vec<u8>) {}
}

pub fn directory_bytes(directory: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { directory_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

/// CPU time of this process, where the system tells (Linux).
pub fn cpu_seconds() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let fields: Vec<f64> = after_name.split(' ').map(|field| field.parse().unwrap_or_default()).collect();
    fields.get(11..13).map_or(0.0, |times| times.iter().sum::<f64>() / TICKS_PER_SECOND)
}

pub fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (n ^ n >> 29).wrapping_mul(0x94D0_49BB_1331_11EB) ^ n >> 32
}

/// From 0 to below 1.
pub fn fraction(n: u64) -> f64 {
    (mix(n) >> 11) as f64 / (1u64 << 53) as f64
}
