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
use orrery_index::Grid;
use orrery_model::PropertyPath;
use orrery_query::{ANALYSER, Language};
use orrery_storage::{Snapshot, Table, keys};
use serde_json::{Value, json};

use super::search::grid_of;
use super::walk::{Layout, TIME};
use crate::definition::{
    CompositePath, ContainerDefinition, IndexingMode, IndexingPolicy, PathStep, TEXT_ANALYSER, VectorIndex,
};
use crate::error::Result;
use crate::item::is_system_property;

/// Stale policies that are kept apart. A container whose policy is changed more often than this before the first
/// change is worked off is treated as if anything could be indexed and nothing surely were.
const STALE_MAX: usize = 8;

/// Of such a container, this many different sets of search indexes are remembered.
const FORGOTTEN_MAX: usize = 64;

pub(super) const SCHEME: &str = "index-scheme";
/// Members that items have without storing them, other than the time: their paths have no entries.
fn has_no_entries(name: &str) -> bool {
    name != TIME && is_system_property(name)
}

/// Members of the indexing policy that say which rows there are.
const POLICY_MEMBERS: [&str; 8] = [
    "indexingMode",
    "automatic",
    "includedPaths",
    "excludedPaths",
    "compositeIndexes",
    "spatialIndexes",
    "fullTextIndexes",
    "vectorIndexes",
];
const SEARCH_MEMBERS: [&str; 3] = ["spatialIndexes", "fullTextIndexes", "vectorIndexes"];
/// Members of the definition that these rest on, and how texts were cut into words.
const BESIDE_MEMBERS: [&str; 4] =
    ["geospatialConfig", "vectorEmbeddingPolicy", "fullTextPolicy", TEXT_ANALYSER];

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
        let from = json.as_object().ok_or_else(|| super::super::rows::damaged("index scheme"))?;
        Ok(Stale { json: json.clone(), policy: IndexingPolicy::parse_rows(from)?, composites })
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
            stale = forgotten(&stale);
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

    /// The policy, with the parts of others that its rows depend on.
    fn policy_json(&self) -> Value {
        let json = &self.definition.json;
        let mut kept = serde_json::Map::new();
        for (from, names) in [(&json["indexingPolicy"], &POLICY_MEMBERS[..]), (json, &BESIDE_MEMBERS[..])] {
            for name in names {
                if let Some(member) = from.get(name) {
                    kept.insert((*name).to_owned(), member.clone());
                }
            }
        }
        if kept.contains_key("fullTextPolicy") {
            kept.insert(TEXT_ANALYSER.to_owned(), ANALYSER.into());
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
        if has_no_entries(first) || computed.iter().any(|property| property.name == first) {
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

    /// How shapes at a place are divided into cells, where all of them are; and whether others than points may be
    /// among them.
    pub(super) fn spatial_at<'s>(
        &self,
        steps: impl Iterator<Item = PathStep<'s>> + Clone,
    ) -> Option<(Grid, bool)> {
        if self.is_virtual(steps.clone()) {
            return None;
        }
        let policies =
            std::iter::once(&self.definition.indexing).chain(self.stale.iter().map(|stale| &stale.policy));
        let mut found: Option<(Grid, bool)> = None;
        for policy in policies {
            let index = policy.spatial_at(steps.clone())?;
            let grid = grid_of(policy, index);
            let larger = index.types.iter().any(|kind| *kind != "Point");
            match &mut found {
                None => found = Some((grid, larger)),
                Some((other, any)) if *other == grid => *any |= larger,
                Some(_) => return None,
            }
        }
        found
    }

    /// The language of the words of the texts at a place, where all of them are indexed.
    pub(super) fn words_at(&self, names: &[&str]) -> Option<Language> {
        let first = names.first().map(|name| PathStep::Name(name));
        let indexed = |policy: &IndexingPolicy| {
            let index = policy.full_text.iter().find(|index| index.path.segments().iter().eq(names))?;
            (policy.mode != IndexingMode::None).then_some(index.language)
        };
        let language = indexed(&self.definition.indexing)?;
        let alike = self.stale.iter().all(|stale| indexed(&stale.policy) == Some(language));
        (alike && !self.is_virtual(first.into_iter())).then_some(language)
    }

    /// The vector index of a place, where it has all vectors.
    pub(super) fn vectors_at(&self, names: &[&str]) -> Option<&VectorIndex> {
        let policy = &self.definition.indexing;
        let first = names.first().map(|name| PathStep::Name(name));
        if policy.mode == IndexingMode::None || self.is_virtual(first.into_iter()) {
            return None;
        }
        let index = policy.vector.iter().find(|index| index.path.segments().iter().eq(names))?;
        let has =
            |stale: &Stale| stale.policy.mode != IndexingMode::None && stale.policy.vector.contains(index);
        self.stale.iter().all(has).then_some(index)
    }

    /// Whether a place is not in the stored item but made for it.
    fn is_virtual<'s>(&self, mut steps: impl Iterator<Item = PathStep<'s>>) -> bool {
        let Some(PathStep::Name(first)) = steps.next() else { return true };
        let computed = &self.definition.computed_properties;
        is_system_property(first) || computed.iter().any(|property| property.name == first)
    }

    /// The composite indexes that have an entry for every item.
    pub(super) fn readable_composites(&self) -> Vec<Composite> {
        let policy = &self.definition.indexing;
        if policy.mode == IndexingMode::None {
            return Vec::new();
        }
        let computed = |path: &PropertyPath| {
            path.segments().first().is_some_and(|first| {
                has_no_entries(first)
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

/// Stands for policies too many to be kept: nothing is surely indexed, and everything may be. Rows of search indexes
/// are not made for everything, so what was asked for of those is still listed.
fn forgotten(stale: &[Stale]) -> Vec<Stale> {
    let mut policies = vec![json!({ "indexingMode": "none" }), json!({ "indexingMode": "consistent" })];
    for stale in stale.iter().rev() {
        let mut search = json!({ "includedPaths": [], "excludedPaths": [{ "path": "/*" }] });
        let mut any = false;
        for name in SEARCH_MEMBERS {
            if let Some(indexes) = stale.json.get(name) {
                any |= indexes.as_array().is_some_and(|indexes| !indexes.is_empty());
                search[name] = indexes.clone();
            }
        }
        for name in BESIDE_MEMBERS {
            if let Some(beside) = stale.json.get(name) {
                search[name] = beside.clone();
            }
        }
        if any && !policies.contains(&search) && policies.len() < FORGOTTEN_MAX {
            policies.push(search);
        }
    }
    policies.iter().filter_map(|policy| Stale::read(policy, Vec::new()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::KeyKinds;

    fn definition(language: &str) -> Arc<ContainerDefinition> {
        let json = json!({
            "id": "c",
            "partitionKey": { "paths": ["/pk"], "kind": "Hash" },
            "fullTextPolicy": { "defaultLanguage": language, "fullTextPaths": [{ "path": "/text" }] },
            "indexingPolicy": { "fullTextIndexes": [{ "path": "/text" }] },
        });
        Arc::new(ContainerDefinition::parse(&json, KeyKinds::All).unwrap())
    }

    /// The row as it was written before there were languages.
    fn before_languages(scheme: &Scheme) -> Vec<u8> {
        let mut json: Value = serde_json::from_slice(&scheme.encode()).unwrap();
        assert!(json["policies"][0]["policy"].as_object_mut().unwrap().remove(TEXT_ANALYSER).is_some());
        json.to_string().into_bytes()
    }

    #[test]
    fn texts_of_other_languages_are_indexed_anew_where_their_stems_are_english() {
        let french = definition("fr-FR");
        let (scheme, known) =
            Scheme::decode(&before_languages(&Scheme::empty(french.clone())), &french).unwrap();
        assert!(!known && scheme.stale.len() == 1);
        assert_eq!(scheme.words_at(&["text"]), None, "some stems are English, some French");
        assert_eq!(scheme.settled().words_at(&["text"]), Some(Language::French));
        // Stored again it is as it was read.
        let (again, known) = Scheme::decode(&scheme.encode(), &french).unwrap();
        assert!(known && again.stale.len() == 1 && again.words_at(&["text"]).is_none());

        let english = definition("en-US");
        let (scheme, known) =
            Scheme::decode(&before_languages(&Scheme::empty(english.clone())), &english).unwrap();
        assert!(known && scheme.stale.is_empty());
        assert_eq!(scheme.words_at(&["text"]), Some(Language::English));
    }

    #[test]
    fn another_language_is_another_policy() {
        let (scheme, same) = Scheme::empty(definition("de-DE")).followed_by(definition("es-ES"));
        assert!(!same && scheme.stale.len() == 1);
        assert_eq!(scheme.settled().words_at(&["text"]), Some(Language::Spanish));
        assert!(Scheme::empty(definition("pt-BR")).followed_by(definition("pt-PT")).1);
    }
}
