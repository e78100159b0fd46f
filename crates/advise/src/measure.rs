//! What a candidate would mean for the items of a sample and for the requests of a recording.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use crate::candidate::{Candidate, SUFFIXES, Shape};
use crate::choose::Options;
use crate::request::Request;
use crate::sample::Sample;

/// Bars of the picture.
const SLOTS: usize = 32;
/// A query in a partition that has nothing costs about this.
const EMPTY_QUERY_RU: f64 = 2.8;

#[derive(Debug, Clone, PartialEq)]
pub struct Measures {
    /// Different keys in the sample.
    pub distinct: usize,
    /// As many keys of the same size would be as uneven: 1 / Σ share².
    pub effective: f64,
    /// Of all bytes, in the largest logical partition.
    pub largest_share: f64,
    /// The key of that partition.
    pub largest_key: String,
    /// Its size now, and when the container is as large as is expected.
    pub largest_bytes: u64,
    pub projected_bytes: u64,
    /// Of the items that were written last, in one logical partition.
    pub recent_share: f64,
    /// Different values of the first path, and how much of the latest writes one of them has.
    pub first_distinct: usize,
    pub first_recent_share: f64,
    /// Of the requests, and of their charge, that ask one partition.
    pub local_requests: f64,
    pub local_charge: f64,
    /// Of the charge, by requests that know the whole key.
    pub exact_charge: f64,
    /// Of the requests, to the key that is asked for most; as far as requests named their key.
    pub hottest_share: f64,
    /// Items that are in one transaction scope now would still be.
    pub keeps_transactions: bool,
    pub before_ru: f64,
    pub after_ru: f64,
    /// Bytes in each of equal slices of the hash space: the picture.
    pub slots: Vec<u64>,
}

/// The key of an item, as a number.
fn keys(sample: &Sample, candidate: &Candidate) -> Option<Vec<u64>> {
    let columns: Vec<_> = candidate.paths.iter().map(|path| sample.path(path)).collect::<Option<_>>()?;
    let key = |row: usize| {
        let mut hasher = DefaultHasher::new();
        for (n, column) in columns.iter().enumerate() {
            let text = column.values[row].map(|id| column.texts[id as usize].as_str());
            match (candidate.shape, n) {
                (Shape::Suffix, 1) => {
                    let mut inner = DefaultHasher::new();
                    text.hash(&mut inner);
                    (inner.finish() % u64::from(SUFFIXES)).hash(&mut hasher);
                }
                _ => text.hash(&mut hasher),
            }
        }
        hasher.finish()
    };
    Some((0..sample.len()).map(key).collect())
}

fn shown(sample: &Sample, candidate: &Candidate, row: usize) -> String {
    let parts = candidate.paths.iter().filter_map(|path| {
        let column = sample.path(path)?;
        Some(column.values[row].map_or("undefined", |id| column.texts[id as usize].as_str()))
    });
    parts.collect::<Vec<_>>().join(", ")
}

pub fn measure(
    sample: &Sample,
    requests: &[Request],
    candidate: &Candidate,
    current: &Candidate,
    options: &Options,
) -> Option<Measures> {
    let keys = keys(sample, candidate)?;
    let total = sample.size_bytes().max(1);
    let mut bytes: HashMap<u64, (u64, usize)> = HashMap::new();
    let mut slots = vec![0; SLOTS];
    for (row, key) in keys.iter().enumerate() {
        let size = u64::from(sample.sizes[row]);
        bytes.entry(*key).or_insert((0, row)).0 += size;
        slots[(key >> 59) as usize] += size;
    }
    let largest = bytes.values().max_by_key(|(size, row)| (*size, std::cmp::Reverse(*row)))?;
    let share = |size: u64| size as f64 / total as f64;
    let effective =
        1.0 / bytes.values().map(|(size, _)| share(*size).powi(2)).sum::<f64>().max(f64::MIN_POSITIVE);
    let recent = sample.recent();
    let firsts = self::keys(sample, &Candidate::single(&candidate.paths[0]))?;
    let first_distinct = firsts.iter().collect::<HashSet<_>>().len();
    let largest_share = share(largest.0);
    let mut asked: HashMap<&str, usize> = HashMap::new();
    let (mut local, mut local_ru, mut exact_ru, mut before_ru, mut after_ru) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let partitions = f64::from(options.physical_partitions.max(1));
    for request in requests {
        if let Some(key) = &request.key {
            *asked.entry(key).or_default() += 1;
        }
        let locality = candidate.locality(request);
        let now_local = locality >= 1.0;
        local += locality;
        before_ru += request.charge_ru;
        local_ru += request.charge_ru * locality;
        if candidate.is_exact(request) {
            exact_ru += request.charge_ru;
        }
        after_ru += match (request.is_local, now_local) {
            (true, false) => request.charge_ru + EMPTY_QUERY_RU * (partitions - 1.0).max(1.0),
            (false, true) => (request.charge_ru - EMPTY_QUERY_RU * (partitions - 1.0))
                .max(request.charge_ru / partitions)
                .max(1.0),
            _ => request.charge_ru,
        };
    }
    let count = requests.len().max(1) as f64;
    Some(Measures {
        distinct: bytes.len(),
        effective,
        largest_share,
        largest_key: shown(sample, candidate, largest.1),
        largest_bytes: (largest_share * options.size_bytes as f64) as u64,
        projected_bytes: (largest_share * options.projected_bytes as f64) as u64,
        recent_share: most_of(&keys, &recent),
        first_distinct,
        first_recent_share: most_of(&firsts, &recent),
        local_requests: local / count,
        local_charge: if before_ru > 0.0 { local_ru / before_ru } else { local / count },
        exact_charge: if before_ru > 0.0 { exact_ru / before_ru } else { 0.0 },
        hottest_share: asked.values().max().map_or(0.0, |most| *most as f64 / count),
        keeps_transactions: determines(sample, current, &keys),
        before_ru,
        after_ru,
        slots,
    })
}

/// The share of the key that most of these items have.
fn most_of(keys: &[u64], rows: &[usize]) -> f64 {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for row in rows {
        *counts.entry(keys[*row]).or_default() += 1;
    }
    counts.values().max().map_or(0.0, |most| *most as f64 / rows.len().max(1) as f64)
}

/// Whether items of one present key are all under one new key.
fn determines(sample: &Sample, current: &Candidate, new: &[u64]) -> bool {
    let Some(old) = keys(sample, current) else { return false };
    let mut seen: HashMap<u64, u64> = HashMap::new();
    old.iter().zip(new).all(|(old, new)| seen.entry(*old).or_insert(*new) == new)
}
