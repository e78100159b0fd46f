//! Keys that could be used.

use std::collections::BTreeSet;

use crate::request::{Known, Request, knows};
use crate::sample::Sample;

/// Paths that are combined with each other.
const COMBINED_MAX: usize = 8;
/// Missing in more items than this, a path is no key.
const MISSING_SHARE_MAX: f64 = 0.001;
/// Logical partitions that a suffix makes of one.
pub const SUFFIXES: u32 = 20;
const SUFFIXED_LOCALITY: f64 = 0.5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    Single,
    Hierarchical,
    /// One value with a suffix calculated from another.
    Suffix,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub shape: Shape,
    pub paths: Vec<String>,
}

impl Candidate {
    pub fn single(path: &str) -> Candidate {
        Candidate { shape: Shape::Single, paths: vec![path.to_owned()] }
    }

    /// As `orrery import --partition-key` takes it.
    pub fn rule(&self) -> String {
        match self.shape {
            Shape::Single | Shape::Hierarchical => self.paths.join(","),
            Shape::Suffix => {
                format!("/partitionKey=calculated({},{},{SUFFIXES})", self.paths[0], self.paths[1])
            }
        }
    }

    /// How near a request comes to asking one partition, if this is the key: 1 if it does, 0 if it asks all.
    pub fn locality(&self, request: &Request) -> f64 {
        match self.shape {
            // A prefix of a hierarchical key leads to the partitions of the prefix alone.
            Shape::Single | Shape::Hierarchical => f64::from(u8::from(knows(&request.known, &self.paths[0]))),
            Shape::Suffix if self.is_exact(request) => 1.0,
            // Not one partition, but as many as there are suffixes, instead of all.
            Shape::Suffix if knows(&request.known, &self.paths[0]) => SUFFIXED_LOCALITY,
            Shape::Suffix => 0.0,
        }
    }

    /// Whether a request knows the whole key.
    pub fn is_exact(&self, request: &Request) -> bool {
        self.paths.iter().all(|path| knows(&request.known, path))
    }
}

/// All that are worth measuring.
pub fn candidates(sample: &Sample, requests: &[Request]) -> Vec<Candidate> {
    let usable: Vec<&str> = sample
        .paths()
        .iter()
        .filter(|path| !path.unfit && path.texts.len() > 1)
        .filter(|path| {
            let missing = path.values.iter().filter(|value| value.is_none()).count();
            missing as f64 <= MISSING_SHARE_MAX * sample.len() as f64
        })
        .map(|path| path.name.as_str())
        .collect();
    let mut all: Vec<Candidate> = usable.iter().map(|path| Candidate::single(path)).collect();
    // Only what requests ask by is worth combining; without requests, what groups items.
    let asked: BTreeSet<&str> = requests
        .iter()
        .filter_map(|request| match &request.known {
            Known::Paths(paths) => Some(paths.iter().map(String::as_str)),
            Known::All => None,
        })
        .flatten()
        .collect();
    let groups = |path: &&&str| {
        let distinct = sample.path(path).map_or(0, |values| values.texts.len());
        distinct * 2 <= sample.len()
    };
    let firsts: Vec<&str> = match asked.is_empty() {
        false => usable
            .iter()
            .copied()
            .filter(|path| asked.contains(path) && *path != "/id")
            .take(COMBINED_MAX)
            .collect(),
        true => usable.iter().filter(groups).copied().take(COMBINED_MAX).collect(),
    };
    for first in &firsts {
        let mut seconds: Vec<&str> = usable.iter().copied().filter(|path| path != first).collect();
        seconds.sort_by_key(|path| (!asked.contains(path), *path == "/id"));
        for second in seconds.into_iter().take(COMBINED_MAX) {
            for shape in [Shape::Hierarchical, Shape::Suffix] {
                all.push(Candidate { shape, paths: vec![(*first).to_owned(), second.to_owned()] });
            }
        }
    }
    all
}
