//! What one writer knows must be in the container.

use std::collections::{BTreeMap, BTreeSet};

/// Logical partitions, ids per writer and partition, unique values per writer and partition.
pub const PARTITIONS: u64 = 8;
pub const IDS: u64 = 12;
pub const VALUES: u64 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub partition: u64,
    pub id: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    pub revision: u64,
    pub value: u64,
    pub etag: String,
}

/// An item's content after an operation; `None`: deleted.
pub type After = Option<(u64, u64)>;

#[derive(Debug, Default)]
pub struct Model {
    pub items: BTreeMap<Key, Live>,
    /// Items that changed since the change feed was last read.
    pub changed: BTreeSet<Key>,
}

#[derive(Debug, Clone)]
pub enum Step {
    Create {
        key: Key,
        revision: u64,
        value: u64,
    },
    Upsert {
        key: Key,
        revision: u64,
        value: u64,
    },
    /// With the etag the writer knows, or with a wrong one.
    Replace {
        key: Key,
        revision: u64,
        value: u64,
        right_etag: bool,
    },
    Delete {
        key: Key,
    },
}

impl Step {
    pub fn key(&self) -> Key {
        match self {
            Step::Create { key, .. }
            | Step::Upsert { key, .. }
            | Step::Replace { key, .. }
            | Step::Delete { key } => *key,
        }
    }
}

/// What must come of a step: the new content, or a refusal with this status.
pub type Expected = Result<After, u16>;

impl Model {
    /// What a step does to items that are `view` over this model (the earlier steps of a batch).
    pub fn expect(&self, step: &Step, view: &BTreeMap<Key, After>) -> Expected {
        let content = |key: Key| match view.get(&key) {
            Some(after) => *after,
            None => self.items.get(&key).map(|live| (live.revision, live.value)),
        };
        let taken = |key: Key, value: u64| {
            (0..IDS)
                .map(|id| Key { id, ..key })
                .any(|other| other != key && content(other).is_some_and(|(_, has)| has == value))
        };
        let key = step.key();
        let exists = content(key).is_some();
        match step {
            Step::Create { .. } if exists => Err(409),
            Step::Replace { .. } | Step::Delete { .. } if !exists => Err(404),
            Step::Replace { right_etag: false, .. } => Err(412),
            Step::Delete { .. } => Ok(None),
            Step::Create { revision, value, .. }
            | Step::Upsert { revision, value, .. }
            | Step::Replace { revision, value, .. } => {
                if taken(key, *value) {
                    Err(409)
                } else {
                    Ok(Some((*revision, *value)))
                }
            }
        }
    }

    pub fn apply(&mut self, key: Key, after: After, etag: Option<&str>) {
        self.changed.insert(key);
        match after {
            Some((revision, value)) => {
                let etag = etag.unwrap_or_default().to_owned();
                self.items.insert(key, Live { revision, value, etag });
            }
            None => drop(self.items.remove(&key)),
        }
    }
}
