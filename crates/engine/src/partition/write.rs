//! The calls that change items: one item, an atomic batch, a bulk, a whole logical partition.
//!
//! Each call checks what can be checked without looking at stored items, runs a transaction under the partition's lock,
//! computes the charge after the lock is free, and hands back a future that is ready when the outcome is durable.

use orrery_model::{Epk, PartitionKey, Raw};
use orrery_storage::{Table, keys};

use super::durability::{Submitted, Ticket};
use super::gate::gone;
use super::item_key::ItemKey;
use super::rows::{ChangeKind, encode_lsn};
use super::transaction::{Applied, PreparedWrite, Transaction};
use super::{AfterPublish, Partition, Settings};
use crate::batch::{self, AnswerSize, BatchOperation, BatchReply, OperationResult};
use crate::charge::{self, Version};
use crate::error::{Error, Kind, Result};
use crate::item::{self, Item, Operation, Outcome, Write, WriteAck, WriteReply};
use crate::throughput::RequestClass;

/// Logical partitions that may be waiting to be emptied at the same time.
const PURGES_MAX: usize = 1000;
/// How often a transaction is run again because it needed a size that was not known: once for each logical partition
/// that its operations can touch.
const MEASUREMENTS_MAX: usize = batch::BATCH_OPERATIONS_MAX;

/// The ticket, the LSN that the answer stands at, and what the transaction returned. A failure comes with a ticket too
/// when it rests on what is not yet durable.
type Transacted<T> = Result<(Option<Ticket>, u64, T), (Option<Ticket>, Error)>;

const KEY_MISMATCH: &str = "The partition key in the item doesn't match the one specified with the request.";

impl Partition {
    /// Writes one item.
    pub(crate) fn submit_item(&self, key: &PartitionKey, epk: &Epk, write: &Write) -> Submitted<WriteReply> {
        self.metered(write.class, Some(key), || self.write_one(key, epk, write))
    }

    fn write_one(&self, key: &PartitionKey, epk: &Epk, write: &Write) -> Submitted<WriteReply> {
        let settings = self.settings();
        let prepared = self
            .check_session(write)
            .and_then(|()| self.prepare(&settings, key, epk, write))
            .map_err(|error| error.charged(charge::REFUSED_WRITE_RU));
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return (None, Err(error)),
        };
        let outcome = self.transact(&settings, |transaction| transaction.apply(0, &prepared));
        match outcome {
            Ok((ticket, lsn, applied)) => {
                let charge_ru = settings.charge(&applied);
                let at = self.stands_at(lsn, lsn);
                (ticket, Ok(WriteReply { outcome: applied.outcome, item: applied.item, charge_ru, at }))
            }
            Err((ticket, error)) => {
                let charge_ru = self.refusal_charge(&settings, &prepared, error.kind);
                (ticket, Err(error.charged(charge_ru)))
            }
        }
    }

    /// Writes every operation or none, in one commit. Later operations see what earlier ones did.
    pub(crate) fn submit_batch(
        &self,
        key: &PartitionKey,
        epk: &Epk,
        operations: &[BatchOperation],
    ) -> Submitted<BatchReply> {
        let class = operations.first().map(|first| first.class).unwrap_or_default();
        self.metered(class, Some(key), || self.write_atomic(key, epk, operations))
    }

    fn write_atomic(
        &self,
        key: &PartitionKey,
        epk: &Epk,
        operations: &[BatchOperation],
    ) -> Submitted<BatchReply> {
        let settings = self.settings();
        let checked = batch::check_length(operations.len())
            .and_then(|()| operations.iter().try_for_each(|operation| self.check_session(operation)));
        if let Err(error) = checked {
            return (None, Err(error));
        }
        let mut prepared: Vec<Result<PreparedWrite<'_>>> =
            operations.iter().map(|write| self.prepare(&settings, key, epk, write)).collect();
        let mut done: Vec<Applied> = Vec::with_capacity(prepared.len());
        // Stops at the first operation that fails; the transaction is then dropped whole.
        let outcome = self.transact(&settings, |transaction| {
            done.clear();
            let mut size = AnswerSize::default();
            for (sub, operation) in prepared.iter_mut().enumerate() {
                let applied = match operation {
                    Ok(operation) => {
                        size.admit(operation.write)?;
                        transaction.apply(sub as u8, operation)?
                    }
                    Err(error) => return Err(std::mem::replace(error, batch::failed_dependency())),
                };
                size.add(applied.item.as_ref());
                done.push(applied);
            }
            Ok(())
        });
        match outcome {
            Ok((ticket, lsn, ())) => {
                let results: Vec<OperationResult> =
                    done.into_iter().map(|applied| settings.result(applied)).collect();
                let charge_ru = results.iter().map(|result| result.charge_ru).sum();
                let at = self.stands_at(lsn, lsn);
                (ticket, Ok(BatchReply { results, committed: true, charge_ru, at }))
            }
            Err((ticket, error)) => {
                // What belongs to the whole request rather than to one operation is told once.
                let culprit = done.len();
                let of_all = error.kind.is_of_the_partition();
                if of_all || culprit == prepared.len() {
                    return (ticket, Err(error));
                }
                let mut results: Vec<OperationResult> = Vec::with_capacity(prepared.len());
                for applied in &done {
                    results.push(failed(batch::failed_dependency(), settings.charge(applied)));
                }
                let charge_ru = match prepared.get(culprit) {
                    Some(Ok(prepared)) => self.refusal_charge(&settings, prepared, error.kind),
                    _ => charge::REFUSED_WRITE_RU,
                };
                results.push(failed(error, charge_ru));
                while results.len() < prepared.len() {
                    results.push(failed(batch::failed_dependency(), 0.0));
                }
                let charge_ru = results.iter().map(|result| result.charge_ru).sum();
                (ticket, Ok(BatchReply { results, committed: false, charge_ru, at: self.position() }))
            }
        }
    }

    /// Writes each operation that can be written, in one commit. Without `continue_on_error` those after the first
    /// failure are not tried.
    pub(crate) fn submit_bulk(
        &self,
        operations: &[(PartitionKey, BatchOperation)],
        continue_on_error: bool,
    ) -> Submitted<BatchReply> {
        let class = operations.first().map(|(_, first)| first.class).unwrap_or_default();
        // One key stands for the whole bulk; over many bulks the hot ones still show.
        let any = self.env.random_u64() as usize % operations.len().max(1);
        let key = operations.get(any).map(|(key, _)| key);
        self.metered(class, key, || self.write_each(operations, continue_on_error))
    }

    fn write_each(
        &self,
        operations: &[(PartitionKey, BatchOperation)],
        continue_on_error: bool,
    ) -> Submitted<BatchReply> {
        let settings = self.settings();
        let checked = batch::check_length(operations.len())
            .and_then(|()| operations.iter().try_for_each(|(_, operation)| self.check_session(operation)));
        if let Err(error) = checked {
            return (None, Err(error));
        }
        let mut prepared: Vec<Result<PreparedWrite<'_>>> = Vec::with_capacity(operations.len());
        for (key, write) in operations {
            let epk = match settings.effective(key) {
                Ok(epk) => epk,
                Err(error) => {
                    prepared.push(Err(error));
                    continue;
                }
            };
            if epk < self.min || epk >= self.max {
                return (None, Err(gone()));
            }
            prepared.push(self.prepare(&settings, key, &epk, write));
        }
        let mut results: Vec<Result<Applied>> = Vec::with_capacity(prepared.len());
        let outcome = self.transact(&settings, |transaction| {
            results.clear();
            let mut size = AnswerSize::default();
            for (sub, operation) in prepared.iter().enumerate() {
                let result = match operation {
                    _ if !continue_on_error && results.iter().any(Result::is_err) => {
                        Err(batch::failed_dependency())
                    }
                    Ok(operation) => {
                        size.admit(operation.write).and_then(|()| transaction.apply(sub as u8, operation))
                    }
                    // The error itself is taken out below; a transaction may run more than once.
                    Err(_) => Err(batch::failed_dependency()),
                };
                if transaction.size_wanted.is_some() {
                    return Err(Error::internal("The size of a logical partition is not known yet."));
                }
                size.add(result.as_ref().ok().and_then(|applied| applied.item.as_ref()));
                results.push(result);
            }
            Ok(())
        });
        let (ticket, lsn) = match outcome {
            Ok((ticket, lsn, ())) => (ticket, lsn),
            Err((ticket, error)) => return (ticket, Err(error)),
        };
        let mut not_tried = false;
        let results: Vec<OperationResult> = results
            .into_iter()
            .zip(prepared)
            .map(|(result, prepared)| match (result, prepared) {
                (Ok(applied), _) => settings.result(applied),
                (Err(error), _) if not_tried => failed(error, 0.0),
                (Err(error), Ok(prepared)) => {
                    not_tried = !continue_on_error;
                    let charge_ru = self.refusal_charge(&settings, &prepared, error.kind);
                    failed(error, charge_ru)
                }
                (Err(_), Err(error)) => {
                    not_tried = !continue_on_error;
                    failed(error, charge::REFUSED_WRITE_RU)
                }
            })
            .collect();
        let charge_ru = results.iter().map(|result| result.charge_ru).sum();
        let committed = results.iter().all(|result| result.status.is_ok());
        let at = self.stands_at(lsn, lsn);
        (ticket, Ok(BatchReply { results, committed, charge_ru, at }))
    }

    /// Deletes every item of a logical partition: one small commit hides them all, the sweeper removes their rows.
    pub(crate) fn submit_purge(&self, key: &PartitionKey, epk: &Epk) -> Submitted<WriteAck> {
        self.metered(RequestClass::default(), Some(key), || self.purge(key, epk))
    }

    fn purge(&self, key: &PartitionKey, epk: &Epk) -> Submitted<WriteAck> {
        let settings = self.settings();
        let target = ItemKey::new(epk, key, "");
        let outcome = target.check().map_err(|error| (None, error)).and_then(|()| {
            self.transact(&settings, |transaction| {
                if transaction.reads.overlay.purges.len() >= PURGES_MAX {
                    let message = "Too many partition keys are being deleted at the same time.";
                    return Err(Error::new(Kind::Throttled { retry_after_ms: 1000 }, message));
                }
                let logical_partition = target.key.clone();
                let lsn = transaction.lsn();
                let mut encoded = Vec::new();
                key.encode(&mut encoded);
                let row = keys::purge(epk.as_bytes(), &encoded);
                transaction.stage(Table::Feed, row, Some(encode_lsn(lsn)));
                transaction.feed(0, ChangeKind::Purge, 0, logical_partition.clone());
                transaction.reads.overlay.purges.insert(logical_partition.clone(), lsn);
                transaction.after = AfterPublish::PurgeStarted { logical_partition, lsn };
                Ok(())
            })
        });
        match outcome {
            Ok((ticket, lsn, ())) => {
                self.shared.agenda.purge();
                let at = self.stands_at(lsn, lsn);
                (ticket, Ok(WriteAck { charge_ru: charge::create(&Version::default(), 0), at }))
            }
            Err((ticket, error)) => (ticket, Err(error)),
        }
    }

    /// Runs a transaction to its end.
    pub(super) fn transact<T>(
        &self,
        settings: &Settings,
        mut run: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Transacted<T> {
        for _ in 0..=MEASUREMENTS_MAX {
            let mut transaction = Transaction::begin(self, settings).map_err(|error| (None, error))?;
            let result = run(&mut transaction);
            if let Some(target) = transaction.size_wanted.take() {
                // Reading a large range must not hold up other writers.
                drop(transaction);
                self.measure(&target).map_err(|error| (None, error))?;
                continue;
            }
            return match result {
                Ok(value) => {
                    let lsn = if transaction.changes_anything() { transaction.lsn() } else { self.lsn() };
                    let expiry = transaction.earliest_expiry();
                    let (deletes, versions) = (transaction.deletes(), transaction.versions());
                    let ticket = transaction.finish().map_err(|error| (None, error))?;
                    self.shared.agenda.note(expiry, deletes, versions);
                    Ok((ticket, lsn, value))
                }
                Err(error) => Err((transaction.abandon(), error)),
            };
        }
        Err((None, Error::new(Kind::Conflict, "The size of a logical partition could not be determined.")))
    }

    /// Checks everything about an operation that does not depend on what is stored.
    pub(super) fn prepare<'w>(
        &self,
        settings: &Settings,
        key: &PartitionKey,
        epk: &Epk,
        write: &'w Write,
    ) -> Result<PreparedWrite<'w>> {
        let target = ItemKey::new(epk, key, write.operation.id());
        let mut renamed = None;
        let content = match &write.operation {
            Operation::Create { id, document }
            | Operation::Upsert { id, document }
            | Operation::Replace { id, document } => {
                let body = Raw::document(document).map_err(|corrupt| {
                    Error::bad_request(item::INVALID_INPUT).caused_by(corrupt.to_string())
                })?;
                let new_id = item::document_id(body)?;
                if new_id != id {
                    // A replace may give an item another id; everything else must say which item it means.
                    if !matches!(write.operation, Operation::Replace { .. }) {
                        return Err(Error::bad_request(item::INVALID_INPUT));
                    }
                    renamed = Some(ItemKey::new(epk, key, new_id));
                }
                settings.check_key(key, body)?;
                Some(self.content(settings, renamed.as_ref().unwrap_or(&target), document.clone())?)
            }
            Operation::Patch { .. }
            | Operation::Delete { .. }
            | Operation::Read { .. }
            | Operation::Attach { .. } => None,
        };
        let condition = match &write.operation {
            Operation::Patch { condition: Some(condition), .. } => Some(condition.prepare(&self.owner)?),
            _ => None,
        };
        Ok(PreparedWrite { target, renamed, write, content, condition })
    }

    /// What a refused operation costs.
    pub(super) fn refusal_charge(
        &self,
        settings: &Settings,
        prepared: &PreparedWrite<'_>,
        kind: Kind,
    ) -> f64 {
        match (&prepared.write.operation, &prepared.content, kind) {
            (Operation::Read { .. }, ..) => charge::LOOK_UP_RU,
            (_, Some(content), Kind::AlreadyExists | Kind::UniqueKeyViolated) => {
                let version = settings.version(content.ttl, &content.document);
                charge::refused_create(&version, self.terms_of(&content.document))
            }
            _ => charge::REFUSED_WRITE_RU,
        }
    }

    /// The index terms of a document that was not stored.
    fn terms_of(&self, document: &[u8]) -> usize {
        let index = &self.shared.index;
        Raw::document(document).map_or(0, |body| index.terms(None, Some(body)) + index.time_terms())
    }

    pub(super) fn check_session(&self, write: &Write) -> Result<()> {
        if write.session.is_empty() { Ok(()) } else { self.view(&write.session).map(|_| ()) }
    }
}

fn failed(error: Error, charge_ru: f64) -> OperationResult {
    OperationResult { status: Err(error), item: None, charge_ru }
}

impl Settings {
    /// The key inside a document must be the one the request names.
    fn check_key(&self, key: &PartitionKey, body: Raw<'_>) -> Result<()> {
        let definition = &self.definition.partition_key;
        let matches = definition.extract(body) == *key;
        if matches { Ok(()) } else { Err(Error::new(Kind::PartitionKeyMismatch, KEY_MISMATCH)) }
    }

    /// Where a full key lies in the hash space.
    fn effective(&self, key: &PartitionKey) -> Result<Epk> {
        let definition = &self.definition.partition_key;
        if key.0.len() == definition.paths.len() || definition.system_key && key.0.is_empty() {
            return Ok(definition.effective(key));
        }
        let too_short = key.0.len() < definition.paths.len();
        Err(if too_short { Error::key_too_short() } else { Error::key_too_long() })
    }

    fn result(&self, applied: Applied) -> OperationResult {
        let charge_ru = self.charge(&applied);
        OperationResult { status: Ok(applied.outcome), item: applied.item, charge_ru }
    }

    pub(super) fn charge(&self, applied: &Applied) -> f64 {
        let version = |item: &Option<Item>| {
            item.as_ref().map_or_else(Version::default, |item| {
                let document = self.version(item.ttl, &item.document);
                Version { size_bytes: document.size_bytes + item.attached_bytes(), ..document }
            })
        };
        let (old, new) = (version(&applied.old), version(&applied.item));
        match applied.outcome {
            Outcome::Read => charge::read(new.size_bytes),
            Outcome::Created => charge::create(&new, applied.terms),
            Outcome::Replaced if applied.patch_operations > 0 => {
                charge::patch(&old, &new, applied.terms, applied.patch_operations)
            }
            Outcome::Replaced => charge::replace(&old, &new, applied.terms),
            Outcome::Deleted => charge::delete(&old, applied.terms),
        }
    }

    fn version(&self, ttl: Option<i32>, document: &[u8]) -> Version {
        Version {
            size_bytes: document.len(),
            unique_keys: self.rules.constraints(),
            expires: self.definition.default_ttl.is_some() && ttl.is_some_and(|ttl| ttl > 0),
        }
    }
}
