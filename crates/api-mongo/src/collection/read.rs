//! Finding documents: by id where a filter fixes it, else by a statement; what a transaction has written comes in
//! between.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use orrery_engine::{HeldContainer, Kind, ReadOptions, Scope as Reach, block_on};
use orrery_model::{DocWriter, KeyComponent, PartitionKey, Raw};
use orrery_mongo::filter::{Condition, Filter, Matched, Test};
use orrery_mongo::pipeline::{Row, Rows};
use orrery_mongo::{Bson, Context, Result, ValueRef, codec};

use super::item_form::Found;
use super::lowering::Lowered;
use super::past::{self, Past};
use super::scan::{Explained, Pages};
use super::{Collection, Scope, id_text, lowering, statement};
use crate::errors::of_engine;

/// Ids of one statement.
const IDS_MAX: usize = 1_000;

/// Documents of a collection that match a filter, with their versions.
pub struct Finding {
    source: Source,
    filter: Option<Filter>,
    context: Context,
    /// What a transaction has written: replaced, new (`Some`), or deleted.
    overlay: BTreeMap<String, Option<Bytes>>,
    seen: HashSet<String>,
    added: Option<std::vec::IntoIter<Found>>,
    /// It is read as it was.
    past: Option<Past>,
    collection: Collection,
}

enum Source {
    Points(std::vec::IntoIter<Found>),
    Pages(Box<Pages>),
}

impl Collection {
    /// Documents that match, in no order but that of their creation.
    pub fn find(
        &self,
        scope: &Scope,
        filter: Option<&Filter>,
        context: &Context,
        wanted: Option<u64>,
    ) -> Result<Finding> {
        let overlay = scope
            .transaction
            .as_ref()
            .map(|(_, open)| open.lock().overlay(&self.container))
            .unwrap_or_default();
        let reach = self.reach(filter);
        let held = self.held(scope)?;
        let mut past = held.map(Past::new);
        let source = match self.ids(filter) {
            Some(ids) if ids.len() <= 2 && reach.is_some() => {
                let key = reach.unwrap_or_default();
                let mut found = Vec::new();
                for id in ids {
                    found.extend(self.read(scope, &key, &id)?);
                }
                // Each was read as it was.
                past = None;
                Source::Points(found.into_iter())
            }
            ids => {
                let lowered = match ids {
                    Some(ids) if ids.len() <= IDS_MAX => {
                        let ids = ids.iter().map(|id| statement::text(id)).collect();
                        let condition = Some(statement::one_of(statement::path(["id"]), ids));
                        Lowered { condition, ..Lowered::default() }
                    }
                    _ => filter.map(|filter| lowering::lower(filter, self.meta.decimals)).unwrap_or_default(),
                };
                let statement = statement::select(lowered)?;
                let reach = of_key(reach);
                let wanted = wanted.filter(|_| filter.is_none());
                Source::Pages(Box::new(Pages::new(
                    self.container.clone(),
                    reach,
                    statement,
                    context.budget.clone(),
                    scope.spent.clone(),
                    wanted,
                )))
            }
        };
        Ok(Finding {
            source,
            filter: filter.cloned(),
            context: context.clone(),
            overlay,
            seen: HashSet::new(),
            added: None,
            past,
            collection: self.clone(),
        })
    }

    /// Whether what is in the container is what the command reads: no moment of before, nothing of a transaction.
    pub(super) fn reads_the_present(&self, scope: &Scope) -> bool {
        scope.moment.is_none() && scope.transaction.is_none()
    }

    /// The collection as it was, where the command reads it so.
    fn held(&self, scope: &Scope) -> Result<Option<Arc<HeldContainer>>> {
        match &scope.moment {
            Some(moment) => moment.of(&self.container),
            None => Ok(None),
        }
    }

    /// One item, as it is in the container, or was.
    pub fn read(&self, scope: &Scope, key: &PartitionKey, id: &str) -> Result<Option<Found>> {
        if id.is_empty() {
            return Ok(None);
        }
        if let Some(held) = self.held(scope)? {
            return past::read(&held, key, id);
        }
        match block_on(self.container.read_item(key, id, &ReadOptions::default())) {
            Ok(reply) => {
                scope.spent.add(reply.charge_ru);
                Ok(Some(Found { document: reply.item.document, etag: reply.item.etag.to_string() }))
            }
            Err(error) if error.kind == Kind::NotFound => {
                scope.spent.add(error.charge_ru);
                Ok(None)
            }
            Err(error) => Err(of_engine(error)),
        }
    }

    /// The ids of items that a filter leaves, if it fixes `_id`.
    pub(super) fn ids(&self, filter: Option<&Filter>) -> Option<Vec<String>> {
        let filter = filter?;
        if filter.collation.is_some() {
            return None;
        }
        let fixed = |value: &Bson| !matches!(value, Bson::Array(_) | Bson::Regex(_) | Bson::Undefined);
        if let Some((_, id)) = filter.equalities().into_iter().find(|(path, _)| *path == "_id") {
            return fixed(id).then(|| id_text::candidates(id));
        }
        let of_list = |condition: &Condition| match condition {
            Condition::Field { path, test: Test::In(values) }
                if &**path == "_id" && values.iter().all(fixed) =>
            {
                let mut ids: Vec<String> = values.iter().flat_map(id_text::candidates).collect();
                ids.sort();
                ids.dedup();
                Some(ids)
            }
            _ => None,
        };
        match &filter.root {
            Condition::And(parts) => parts.iter().find_map(of_list),
            one => of_list(one),
        }
    }

    /// The logical partition that a filter leaves, or all of them.
    pub(super) fn shares(&self, filter: Option<&Filter>) -> Reach {
        of_key(self.reach(filter))
    }

    /// The logical partition that a filter leaves; of a collection that is not sharded there is only one.
    fn reach(&self, filter: Option<&Filter>) -> Option<PartitionKey> {
        let Some(path) = self.shard_key() else { return Some(PartitionKey::default()) };
        let filter = filter?;
        if filter.collation.is_some() {
            return None;
        }
        let (_, value) = filter.equalities().into_iter().find(|(fixed, _)| **fixed == *path)?;
        // Null is found where there is nothing, too.
        if matches!(value, Bson::Null | Bson::Undefined | Bson::Array(_) | Bson::Regex(_) | Bson::Document(_))
        {
            return None;
        }
        let mut writer = DocWriter::keeping_widths(64);
        codec::write_stored(ValueRef::Owned(value), &mut writer);
        let bytes = writer.finish();
        let component = Raw::document(&bytes).ok().and_then(KeyComponent::from_raw)?;
        Some([component].into())
    }
}

fn of_key(key: Option<PartitionKey>) -> Reach {
    match key {
        Some(key) if !key.0.is_empty() => Reach::Key(key),
        _ => Reach::All,
    }
}

/// How documents are found.
pub enum Way {
    /// By their ids, one read each.
    ById,
    /// By a statement over the container, in its own words and those of the partitions.
    Statement { text: String, explained: Explained },
}

impl Finding {
    /// How the documents are found; the first of them are looked for.
    pub fn explain(&mut self) -> Result<Way> {
        match &mut self.source {
            Source::Points(_) => Ok(Way::ById),
            Source::Pages(pages) => {
                let text = pages.text();
                Ok(Way::Statement { text, explained: pages.explain()? })
            }
        }
    }

    pub fn next_found(&mut self) -> Result<Option<(Found, Matched)>> {
        loop {
            let Some(found) = self.next_unfiltered()? else { return Ok(None) };
            match &self.filter {
                None => return Ok(Some((found, Matched::default()))),
                Some(filter) => {
                    let matched = filter.find(codec::item(&found.document)?, &self.context)?;
                    if let Some(matched) = matched {
                        return Ok(Some((found, matched)));
                    }
                }
            }
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Found>> {
        loop {
            if let Some(added) = &mut self.added {
                return Ok(added.next());
            }
            let next = match &mut self.source {
                Source::Points(found) => found.next(),
                Source::Pages(pages) => pages.next()?,
            };
            let Some(found) = next else {
                self.added = Some(self.rest()?.into_iter());
                continue;
            };
            if self.overlay.is_empty() && self.past.is_none() {
                return Ok(Some(found));
            }
            let (key, id) = self.collection.place_of(&found)?;
            // What the transaction has written itself comes before what was there.
            if let Some(own) = self.overlay.get(&id) {
                let own = own.clone();
                self.seen.insert(id);
                if let Some(document) = own {
                    return Ok(Some(Found { document, etag: found.etag }));
                }
                continue;
            }
            match &mut self.past {
                None => return Ok(Some(found)),
                Some(past) => {
                    if let Some(then) = past.of_then(&key, &id, found)? {
                        return Ok(Some(then));
                    }
                }
            }
        }
    }

    /// What the source does not have: items as they were, and what the transaction has written.
    fn rest(&mut self) -> Result<Vec<Found>> {
        let mut rest = Vec::new();
        if let Some(past) = &mut self.past {
            for (id, found) in past.rest()? {
                self.context.budget.take(found.document.len())?;
                match self.overlay.get(&id) {
                    None => rest.push(found),
                    Some(own) => {
                        if self.seen.insert(id)
                            && let Some(document) = own.clone()
                        {
                            rest.push(Found { document, etag: found.etag });
                        }
                    }
                }
            }
        }
        let seen = std::mem::take(&mut self.seen);
        let new = std::mem::take(&mut self.overlay).into_iter();
        let new = new.filter(|(id, _)| !seen.contains(id)).filter_map(|(_, document)| document);
        rest.extend(new.map(|document| Found { document, etag: String::new() }));
        Ok(rest)
    }
}

impl Rows for Finding {
    fn next(&mut self) -> Result<Option<Row>> {
        Ok(self.next_found()?.map(|(found, _)| Row::Stored(found.document)))
    }
}
