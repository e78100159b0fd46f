//! A transaction under way: its writes are kept back, seen by its own reads, and committed as one batch of one
//! logical partition.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use orrery_engine::{BATCH_OPERATIONS_MAX, Container, Kind, Operation, Position, Write, block_on};
use orrery_model::PartitionKey;
use orrery_mongo::{Error, Result, error::code};

use super::Scope;
use super::past::Moment;
use crate::errors::of_engine;
use crate::sessions::conflict;

pub struct Transaction {
    pub began: Instant,
    target: Option<(Arc<Container>, PartitionKey)>,
    writes: BTreeMap<String, Staged>,
    /// Collections that it has made: others do not see them before its end, and they are gone if it fails.
    pub created: Vec<(String, String)>,
    /// What its reads see beside its own writes.
    pub moment: Option<Arc<Moment>>,
}

struct Staged {
    /// The version that was there when the transaction first wrote; `None`: there was none.
    base: Option<String>,
    /// What is there then; `None`: nothing.
    document: Option<Bytes>,
}

/// What a write inside of a transaction finds.
pub enum Present {
    /// The transaction has written the document before.
    Own(Option<Bytes>),
    Untouched,
}

impl Transaction {
    pub fn new() -> Transaction {
        Transaction {
            began: Instant::now(),
            target: None,
            writes: BTreeMap::new(),
            created: Vec::new(),
            moment: None,
        }
    }

    /// What the transaction has written in a container.
    pub fn overlay(&self, container: &Container) -> BTreeMap<String, Option<Bytes>> {
        match &self.target {
            Some((target, _)) if is_same(target, container) => {
                self.writes.iter().map(|(id, staged)| (id.clone(), staged.document.clone())).collect()
            }
            _ => BTreeMap::new(),
        }
    }

    pub fn present(&self, id: &str) -> Present {
        self.writes.get(id).map_or(Present::Untouched, |staged| Present::Own(staged.document.clone()))
    }

    /// Whether the transaction may write there.
    pub fn aim(&mut self, container: &Arc<Container>, key: &PartitionKey) -> Result<()> {
        match &self.target {
            None => {
                self.target = Some((container.clone(), key.clone()));
                Ok(())
            }
            Some((target, known)) if is_same(target, container) && known == key => Ok(()),
            Some((target, _)) => Err(Error::new(
                code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                format!(
                    "A transaction writes to one collection, and of a sharded one to one value of its shard key; this one has \
                     written to '{}.{}' already. Commit it, and write there in another.",
                    target.database().name,
                    target.name()
                ),
            )),
        }
    }

    pub fn stage(&mut self, id: &str, base: Option<String>, document: Option<Bytes>) -> Result<()> {
        if let Some(staged) = self.writes.get_mut(id) {
            staged.document = document;
            return Ok(());
        }
        if self.writes.len() >= BATCH_OPERATIONS_MAX {
            return Err(Error::new(
                code::TRANSACTION_TOO_LARGE,
                format!(
                    "A transaction writes at most {BATCH_OPERATIONS_MAX} documents. Divide it into several."
                ),
            ));
        }
        self.writes.insert(id.to_owned(), Staged { base, document });
        Ok(())
    }

    /// Writes all of it or nothing.
    pub fn commit(&mut self, scope: &Scope) -> Result<()> {
        let Some((container, key)) = self.target.take() else { return Ok(()) };
        let mut operations = Vec::with_capacity(self.writes.len());
        for (id, staged) in std::mem::take(&mut self.writes) {
            let write = match (staged.base, staged.document) {
                (None, None) => continue,
                (None, Some(document)) => Write::new(Operation::Create { id, document }),
                (Some(etag), Some(document)) => {
                    Write::new(Operation::Replace { id, document }).if_match(etag)
                }
                (Some(etag), None) => Write::new(Operation::Delete { id }).if_match(etag),
            };
            operations.push(write);
        }
        if operations.is_empty() {
            return Ok(());
        }
        let watched = scope.core.watched.load(std::sync::atomic::Ordering::Relaxed);
        if watched {
            scope.core.recent.begin();
        }
        let written = block_on(container.write_batch(&key, operations));
        if watched {
            let place =
                |at: &Position| (container.database().number, container.number(), at.range_id, at.lsn);
            scope.core.recent.end(written.iter().map(|reply| (place(&reply.at), false)));
        }
        let reply = written.map_err(of_engine)?;
        scope.spent.add(reply.charge_ru);
        if reply.committed {
            return Ok(());
        }
        let culprit = reply.results.into_iter().filter_map(|result| result.status.err());
        let culprit = culprit.filter(|error| error.kind != Kind::FailedDependency).last();
        Err(match culprit {
            Some(error)
                if !matches!(error.kind, Kind::PreconditionFailed | Kind::NotFound | Kind::AlreadyExists) =>
            {
                of_engine(error)
            }
            _ => conflict(),
        })
    }
}

fn is_same(one: &Container, other: &Container) -> bool {
    one.number() == other.number() && one.database().number == other.database().number
}
