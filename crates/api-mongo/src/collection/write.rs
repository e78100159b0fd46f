//! Writing documents, each bound to the version that was read; many at a time where they are new.

use std::result::Result;

use bytes::Bytes;
use orrery_engine::{BATCH_OPERATIONS_MAX, Error as EngineError, Kind, Operation, Write, block_on};
use orrery_model::{PartitionKey, Raw};
use orrery_mongo::{Bson, Document, Error, ValueRef, codec, doc, error::code};

use super::transaction::Present;
use super::{Collection, Found, NewItem, Scope};
use crate::errors::of_engine;

/// Bytes of one commit of new documents.
const BULK_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Writes of one command that are under way at one time.
const WRITES_MAX: usize = 256;

/// Why a write was not made.
pub enum Refusal {
    /// Another version is there, or none: read again.
    Stale,
    /// A document with this id is there.
    Exists,
    /// Another document has its key in a unique index.
    Taken,
    Other(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Other(error)
    }
}

impl Refusal {
    fn of(error: EngineError) -> Refusal {
        match error.kind {
            Kind::PreconditionFailed | Kind::NotFound => Refusal::Stale,
            Kind::AlreadyExists => Refusal::Exists,
            Kind::UniqueKeyViolated => Refusal::Taken,
            _ => Refusal::Other(of_engine(error)),
        }
    }
}

pub enum Change {
    Create(Bytes),
    /// Some of a document is another.
    Update(Bytes),
    /// All of it is.
    Replace(Bytes),
    Delete,
}

impl Collection {
    /// Makes one change, bound to the version `etag` unless that is new.
    pub fn write(
        &self,
        scope: &Scope,
        key: &PartitionKey,
        id: &str,
        change: Change,
        etag: Option<&str>,
    ) -> Result<(), Refusal> {
        if scope.transaction.is_some() {
            return self.stage(scope, key, id, change, etag);
        }
        let whole = matches!(change, Change::Replace(_));
        let write = write_of(id, change, etag);
        let watched = self.begin(scope);
        let written = block_on(self.container.write_item(key, write));
        if watched {
            self.end(scope, written.iter().map(|reply| ((reply.at.range_id, reply.at.item_lsn), whole)));
        }
        match written {
            Ok(reply) => {
                scope.spent.add(reply.charge_ru);
                scope.core.clock.tick(scope.core.account.env().now_s());
                Ok(())
            }
            Err(error) => {
                scope.spent.add(error.charge_ru);
                Err(Refusal::of(error))
            }
        }
    }

    /// Makes many changes at a time; each may be refused by itself.
    pub fn write_many(
        &self,
        scope: &Scope,
        changes: Vec<(PartitionKey, String, Change, Option<String>)>,
    ) -> Vec<Result<(), Refusal>> {
        if scope.transaction.is_some() {
            let one = |(key, id, change, etag): (PartitionKey, String, Change, Option<String>)| {
                self.stage(scope, &key, &id, change, etag.as_deref())
            };
            return changes.into_iter().map(one).collect();
        }
        let mut results = Vec::with_capacity(changes.len());
        let mut changes = changes.into_iter();
        let watched = self.begin(scope);
        let mut commits = Vec::new();
        loop {
            let begun: Vec<_> = changes
                .by_ref()
                .take(WRITES_MAX)
                .map(|(key, id, change, etag)| {
                    self.container.write_item(&key, write_of(&id, change, etag.as_deref()))
                })
                .collect();
            if begun.is_empty() {
                break;
            }
            for written in begun {
                results.push(match block_on(written) {
                    Ok(reply) => {
                        scope.spent.add(reply.charge_ru);
                        if watched {
                            commits.push(((reply.at.range_id, reply.at.item_lsn), false));
                        }
                        Ok(())
                    }
                    Err(error) => {
                        scope.spent.add(error.charge_ru);
                        Err(Refusal::of(error))
                    }
                });
            }
        }
        if watched {
            self.end(scope, commits);
        }
        scope.core.clock.tick(scope.core.account.env().now_s());
        results
    }

    fn stage(
        &self,
        scope: &Scope,
        key: &PartitionKey,
        id: &str,
        change: Change,
        etag: Option<&str>,
    ) -> Result<(), Refusal> {
        let Some((session, open)) = &scope.transaction else { return Ok(()) };
        let mut transaction = open.lock();
        transaction.aim(&self.container, key)?;
        let (database, container) = (self.container.database().number, self.container.number());
        scope.core.sessions.claim(*session, database, container, id)?;
        let present = transaction.present(id);
        match change {
            Change::Create(document) => {
                let base = match present {
                    Present::Own(Some(_)) => return Err(Refusal::Exists),
                    Present::Own(None) => None,
                    Present::Untouched if self.read(scope, key, id)?.is_some() => {
                        return Err(Refusal::Exists);
                    }
                    Present::Untouched => None,
                };
                transaction.stage(id, base, Some(document))?;
            }
            Change::Update(document) | Change::Replace(document) => {
                transaction.stage(id, etag.map(str::to_owned), Some(document))?
            }
            Change::Delete => transaction.stage(id, etag.map(str::to_owned), None)?,
        }
        Ok(())
    }

    /// Where somebody follows changes: says that writes begin.
    fn begin(&self, scope: &Scope) -> bool {
        let watched = scope.core.watched.load(std::sync::atomic::Ordering::Relaxed);
        if watched {
            scope.core.recent.begin();
        }
        watched
    }

    /// They have ended with these commits, of which some replaced whole documents.
    fn end(&self, scope: &Scope, commits: impl IntoIterator<Item = ((u32, u64), bool)>) {
        let (database, container) = (self.container.database().number, self.container.number());
        let place = |(range, lsn): (u32, u64)| (database, container, range, lsn);
        scope.core.recent.end(commits.into_iter().map(|(commit, whole)| (place(commit), whole)));
    }

    /// Inserts items; the results are in their order, and stop at the first failure if that is asked for.
    pub fn insert(&self, scope: &Scope, items: Vec<NewItem>, ordered: bool) -> Vec<Result<(), Refusal>> {
        let ranges = self.container.ranges();
        if scope.transaction.is_some() || items.len() == 1 || ranges.len() > 1 {
            if !ordered && scope.transaction.is_none() {
                let changes =
                    items.into_iter().map(|item| (item.key, item.id, Change::Create(item.document), None));
                return self.write_many(scope, changes.collect());
            }
            let mut results = Vec::with_capacity(items.len());
            for NewItem { key, id, document } in items {
                results.push(self.write(scope, &key, &id, Change::Create(document), None));
                if ordered && results.last().is_some_and(Result::is_err) {
                    break;
                }
            }
            return results;
        }
        let Some(range) = ranges.first().map(|range| range.id) else { return Vec::new() };
        let mut results = Vec::with_capacity(items.len());
        let mut items = items.into_iter().peekable();
        while items.peek().is_some() {
            let (mut operations, mut bytes) = (Vec::new(), 0);
            while operations.len() < BATCH_OPERATIONS_MAX && (bytes == 0 || bytes < BULK_BYTES_MAX) {
                let Some(NewItem { key, id, document }) = items.next() else { break };
                bytes += document.len();
                operations.push((key, Write::new(Operation::Create { id, document })));
            }
            let again = operations.clone();
            let watched = self.begin(scope);
            let written = block_on(self.container.write_bulk(range, operations, !ordered));
            if watched {
                self.end(scope, written.iter().map(|reply| ((reply.at.range_id, reply.at.lsn), false)));
            }
            match written {
                Ok(reply) => {
                    scope.spent.add(reply.charge_ru);
                    for result in reply.results {
                        match result.status {
                            Ok(_) => results.push(Ok(())),
                            Err(error) if ordered && error.kind == Kind::FailedDependency => return results,
                            Err(error) => results.push(Err(Refusal::of(error))),
                        }
                    }
                }
                // The map of partitions has changed under it: one by one, by the new map.
                Err(error) if error.kind == Kind::RangeGone => {
                    for (key, write) in again {
                        let Operation::Create { id, document } = write.operation else { continue };
                        results.push(self.write(scope, &key, &id, Change::Create(document), None));
                        if ordered && results.last().is_some_and(Result::is_err) {
                            return results;
                        }
                    }
                }
                Err(error) => {
                    results.push(Err(Refusal::of(error)));
                    return results;
                }
            }
            if ordered && results.last().is_some_and(Result::is_err) {
                break;
            }
        }
        scope.core.clock.tick(scope.core.account.env().now_s());
        results
    }

    /// The key and the id of an item.
    pub fn place_of(&self, found: &Found) -> orrery_mongo::Result<(PartitionKey, String)> {
        let damaged = || Error::new(code::INTERNAL_ERROR, "the stored item is damaged");
        let raw = Raw::document(&found.document).map_err(|_| damaged())?;
        let id = raw.get("id").and_then(Raw::as_str).ok_or_else(damaged)?;
        Ok((self.key_of(raw), id.to_owned()))
    }

    /// The item that a changed document becomes: under the id that the old one had.
    pub fn changed_item(&self, found: &Found, document: &Document) -> orrery_mongo::Result<NewItem> {
        let (_, id) = self.place_of(found)?;
        let mut item = self.item_of(document)?;
        if item.id != id {
            // Written by another API, under an id of its own.
            let mut writer = orrery_model::DocWriter::keeping_widths(256);
            writer.begin_object();
            writer.key("id");
            writer.string(&id);
            for (name, value) in document.iter().filter(|(name, _)| &***name != "_id") {
                writer.key(orrery_mongo::stored::stored_name(name, value));
                codec::write_stored(ValueRef::Owned(value), &mut writer);
            }
            writer.end_object();
            item.document = Bytes::from(writer.finish());
            item.id = id;
        }
        Ok(item)
    }

    /// A document with this `_id` is there already.
    pub fn duplicate(&self, id: &Bson) -> Error {
        self.duplicate_of("_id_", &doc! { "_id" => 1 }, &doc! { "_id" => id.clone() })
    }

    pub fn duplicate_of(&self, index: &str, pattern: &Document, value: &Document) -> Error {
        let shown = crate::commands::text::shell(&Bson::Document(value.clone()));
        Error::new(
            code::DUPLICATE_KEY,
            format!(
                "E11000 duplicate key error collection: {} index: {index} dup key: {shown}",
                self.namespace()
            ),
        )
        .with_details(doc! { "keyPattern" => pattern.clone(), "keyValue" => value.clone() })
    }
}

fn write_of(id: &str, change: Change, etag: Option<&str>) -> Write {
    let id = id.to_owned();
    let write = match change {
        Change::Create(document) => Write::new(Operation::Create { id, document }),
        Change::Update(document) | Change::Replace(document) => {
            Write::new(Operation::Replace { id, document })
        }
        Change::Delete => Write::new(Operation::Delete { id }),
    };
    match etag {
        Some(etag) if !etag.is_empty() => write.if_match(etag),
        _ => write,
    }
}
