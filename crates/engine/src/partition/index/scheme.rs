//! Under which policies a partition's index rows were made.
//!
//! Stored as one row, so that a crash or a restart in the middle of a change finds out what is left:
//!
//! ```json
//! { "changes": 4, "nextComposite": 2,
//!   "policies": [ { "policy": { "indexingMode": "consistent", … }, "composites": [0, 1] }, … ] }
//! ```
//!
//! The first policy is the present one, the others are stale. The row is written with the first commit under a new
//! policy; until then nothing differs from what the row says. A partition without the row was filled before there was
//! an index, or under none: that is the stale policy "nothing".
//!
//! A composite index is known by a number that is its own from one policy to the next. One that goes and comes back
//! gets another: rows of the first may be left, and nobody looks at them until they are removed.

use std::sync::Arc;

use bytes::Bytes;
use orrery_model::PropertyPath;
use orrery_storage::{Snapshot, Table, keys};
use serde_json::{Value, json};

use super::walk::{Layout, TIME};
use crate::definition::{CompositePath, ContainerDefinition, IndexingMode, IndexingPolicy, PathStep};
use crate::error::{Error, Result};

/// Stale policies that are kept apart. A container whose policy is changed more often than this before the first
/// change is worked off is treated as if anything could be indexed and nothing surely were.
const STALE_MAX: usize = 8;

pub(super) const SCHEME: &str = "index-scheme";
/// Members that items have without storing them, other than the time; their paths have no entries.
const SYSTEM_NAMES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_lsn"];

pub(super) struct Scheme {
    pub(super) definition: Arc<ContainerDefinition>,
    /// Numbers of the definition's composite indexes, in their order.
    composites: Vec<u16>,
    pub(super) stale: Vec<Stale>,
    next_composite: u16,
    /// Counts changes of policy: a visit of all items belongs to one of them.
    pub(super) changes: u64,
}

/// A policy that some rows may still follow.
#[derive(Clone)]
pub(super) struct Stale {
    json: Value,
    policy: IndexingPolicy,
    composites: Vec<u16>,
}

impl Stale {
    pub(super) fn layout(&self) -> Layout<'_> {
        Layout { policy: &self.policy, composites: &self.composites }
    }

    fn read(json: &Value, composites: Vec<u16>) -> Result<Stale> {
        Ok(Stale { json: json.clone(), policy: IndexingPolicy::parse_rows(json)?, composites })
    }
}

/// A composite index that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composite {
    pub(super) number: u16,
    pub paths: Vec<CompositePath>,
}

impl Composite {
    /// The orders of its components, as ranges are made with them.
    pub fn descending(&self) -> Vec<bool> {
        self.paths.iter().map(|part| part.descending).collect()
    }
}

impl Scheme {
    /// The scheme of a stored partition under its container's definition, and whether the store knows it like this.
    pub(super) fn open(
        snapshot: &dyn Snapshot,
        definition: Arc<ContainerDefinition>,
        is_new: bool,
    ) -> Result<(Scheme, bool)> {
        let scheme = match snapshot.get(Table::Feed, &keys::meta(SCHEME))? {
            Some(row) => return Scheme::decode(&row, &definition),
            None if is_new => Scheme::empty(definition),
            None => Scheme::unindexed(definition)?,
        };
        Ok((scheme, false))
    }

    /// The scheme of a partition in which nothing has been written.
    pub(super) fn empty(definition: Arc<ContainerDefinition>) -> Scheme {
        let count = definition.indexing.composite.len() as u16;
        let composites = (0..count).collect();
        Scheme { definition, composites, stale: Vec::new(), next_composite: count, changes: 0 }
    }

    /// The scheme of a partition that was filled without an index.
    fn unindexed(definition: Arc<ContainerDefinition>) -> Result<Scheme> {
        let mut scheme = Scheme::empty(definition);
        let nothing = Stale::read(&json!({ "indexingMode": "none" }), Vec::new())?;
        if !nothing.policy.makes_rows_of(&scheme.definition.indexing) {
            scheme.stale.push(nothing);
        }
        Ok(scheme)
    }

    fn decode(row: &[u8], definition: &Arc<ContainerDefinition>) -> Result<(Scheme, bool)> {
        let damaged = |_| super::super::rows::damaged("index scheme");
        let json: Value = serde_json::from_slice(row).map_err(damaged)?;
        let broken = || super::super::rows::damaged("index scheme");
        let policies = json["policies"].as_array().ok_or_else(broken)?;
        let mut read = Vec::with_capacity(policies.len());
        for entry in policies {
            let composites = entry["composites"].as_array().ok_or_else(broken)?;
            let composites: Option<Vec<u16>> =
                composites.iter().map(|number| u16::try_from(number.as_u64()?).ok()).collect();
            read.push(Stale::read(&entry["policy"], composites.ok_or_else(broken)?)?);
        }
        let next_composite =
            json["nextComposite"].as_u64().and_then(|next| u16::try_from(next).ok()).ok_or_else(broken)?;
        let changes = json["changes"].as_u64().ok_or_else(broken)?;
        let mut read = read.into_iter();
        let first = read.next().ok_or_else(broken)?;
        let stale: Vec<Stale> = read.collect();
        if first.policy.makes_rows_of(&definition.indexing) {
            let composites = first.composites;
            let definition = definition.clone();
            return Ok((Scheme { definition, composites, stale, next_composite, changes }, true));
        }
        // The definition was changed and nothing has been written since.
        Ok((Scheme::after(first, stale, next_composite, changes, definition.clone()), false))
    }

    /// The scheme after `last` was the present policy.
    fn after(
        last: Stale,
        mut stale: Vec<Stale>,
        mut next_composite: u16,
        changes: u64,
        definition: Arc<ContainerDefinition>,
    ) -> Scheme {
        let before: Vec<(&Vec<CompositePath>, u16)> =
            last.policy.composite.iter().zip(last.composites.iter().copied()).collect();
        let composites = definition
            .indexing
            .composite
            .iter()
            .map(|composite| match before.iter().find(|(paths, _)| *paths == composite) {
                Some((_, number)) => *number,
                None => {
                    let number = next_composite;
                    next_composite = next_composite.wrapping_add(1);
                    number
                }
            })
            .collect();
        stale.push(last);
        if stale.len() > STALE_MAX {
            stale = ["none", "consistent"]
                .iter()
                .filter_map(|mode| Stale::read(&json!({ "indexingMode": mode }), Vec::new()).ok())
                .collect();
        }
        Scheme { definition, composites, stale, next_composite, changes: changes + 1 }
    }

    /// The scheme under another definition, and whether rows are the same under both.
    pub(super) fn followed_by(&self, definition: Arc<ContainerDefinition>) -> (Scheme, bool) {
        if self.definition.indexing.makes_rows_of(&definition.indexing) {
            let scheme = Scheme {
                definition,
                composites: self.composites.clone(),
                stale: self.stale.clone(),
                next_composite: self.next_composite,
                changes: self.changes,
            };
            return (scheme, true);
        }
        let last = Stale {
            json: self.policy_json(),
            policy: self.definition.indexing.clone(),
            composites: self.composites.clone(),
        };
        (Scheme::after(last, self.stale.clone(), self.next_composite, self.changes, definition), false)
    }

    /// The scheme when every item has been brought up to the present policy.
    pub(super) fn settled(&self) -> Scheme {
        Scheme {
            definition: self.definition.clone(),
            composites: self.composites.clone(),
            stale: Vec::new(),
            next_composite: self.next_composite,
            changes: self.changes,
        }
    }

    pub(super) fn encode(&self) -> Bytes {
        let present = json!({ "policy": self.policy_json(), "composites": self.composites });
        let stale =
            self.stale.iter().map(|stale| json!({ "policy": stale.json, "composites": stale.composites }));
        let policies: Vec<Value> = std::iter::once(present).chain(stale).collect();
        json!({ "changes": self.changes, "nextComposite": self.next_composite, "policies": policies })
            .to_string()
            .into()
    }

    /// The part of the policy that makes rows of values and composites.
    fn policy_json(&self) -> Value {
        let policy = &self.definition.json["indexingPolicy"];
        let mut kept = serde_json::Map::new();
        for name in ["indexingMode", "automatic", "includedPaths", "excludedPaths", "compositeIndexes"] {
            if let Some(member) = policy.get(name) {
                kept.insert(name.to_owned(), member.clone());
            }
        }
        Value::Object(kept)
    }

    pub(super) fn layout(&self) -> Layout<'_> {
        Layout { policy: &self.definition.indexing, composites: &self.composites }
    }

    /// Whether the time of a write has an entry.
    pub(super) fn is_timed(&self) -> bool {
        self.definition.indexing.cursor().name(TIME).indexes_scalar()
    }

    /// Whether every item that has something at a path has an entry for it.
    pub(super) fn covers<'s>(&self, steps: impl IntoIterator<Item = PathStep<'s>> + Clone) -> bool {
        let Some(PathStep::Name(first)) = steps.clone().into_iter().next() else { return false };
        let computed = &self.definition.computed_properties;
        if SYSTEM_NAMES.contains(&first) || computed.iter().any(|property| property.name == first) {
            return false;
        }
        let is_id = first == "id" && steps.clone().into_iter().nth(1).is_none();
        let covered = |policy: &IndexingPolicy| {
            is_id && policy.mode != IndexingMode::None
                || steps
                    .clone()
                    .into_iter()
                    .fold(policy.cursor(), |cursor, step| cursor.step(step))
                    .indexes_scalar()
        };
        covered(&self.definition.indexing) && self.stale.iter().all(|stale| covered(&stale.policy))
    }

    /// The composite indexes that have an entry for every item.
    pub(super) fn readable_composites(&self) -> Vec<Composite> {
        let policy = &self.definition.indexing;
        if policy.mode == IndexingMode::None {
            return Vec::new();
        }
        let computed = |path: &PropertyPath| {
            path.segments().first().is_some_and(|first| {
                SYSTEM_NAMES.contains(&first.as_str())
                    || self.definition.computed_properties.iter().any(|property| property.name == *first)
            })
        };
        policy
            .composite
            .iter()
            .zip(&self.composites)
            .filter(|(paths, number)| {
                self.stale
                    .iter()
                    .all(|stale| stale.policy.mode != IndexingMode::None && stale.composites.contains(number))
                    && !paths.iter().any(|part| computed(&part.path))
            })
            .map(|(paths, number)| Composite { number: *number, paths: paths.clone() })
            .collect()
    }

    /// Whether rows of a composite index may be removed whole.
    pub(super) fn has_composite(&self, number: u16) -> bool {
        self.definition.indexing.mode != IndexingMode::None && self.composites.contains(&number)
    }
}

impl IndexingPolicy {
    /// Reads the part of a stored policy that makes rows of values and composites.
    fn parse_rows(json: &Value) -> Result<IndexingPolicy> {
        let from = json.as_object().ok_or_else(|| Error::internal("A stored index scheme is damaged."))?;
        IndexingPolicy::parse(Some(from))
    }
}
