//! Several operations in one request: an atomic batch on one logical partition, or a bulk of independent ones.
//!
//! An atomic batch is one commit with one LSN: later operations see what earlier ones did, and when one fails nothing
//! has happened; the culprit carries its own error and every other operation says that it failed with it. A bulk is
//! also one commit, but operations that fail are simply left out of it.

use crate::error::{Error, Kind, Result};
use crate::item::{Item, Operation, Outcome, Position, Write};

/// Most operations in one batch or bulk request. A version has room for 128 changes per commit.
pub const BATCH_OPERATIONS_MAX: usize = 100;

/// An operation that reads or patches an item is refused when the items before it come to more: those that bring their
/// item along are bounded by the size of the request, these are not.
pub const BATCH_ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One operation of a batch: what a single write is, with reads allowed.
pub type BatchOperation = Write;

/// What became of one operation.
#[derive(Debug)]
pub struct OperationResult {
    pub status: Result<Outcome>,
    /// The version that was written or read.
    pub item: Option<Item>,
    pub charge_ru: f64,
}

#[derive(Debug)]
pub struct BatchReply {
    /// In the order of the request.
    pub results: Vec<OperationResult>,
    /// Whether every operation took effect.
    pub committed: bool,
    pub charge_ru: f64,
    pub at: Position,
}

/// Refuses what is no batch at all.
pub(crate) fn check_length(operations: usize) -> Result<()> {
    match operations {
        0 => Err(Error::bad_request("Batch request has no operations.")),
        1..=BATCH_OPERATIONS_MAX => Ok(()),
        _ => Err(Error::bad_request("Batch request has more operations than what is supported.")),
    }
}

/// What the items of an answer come to so far.
#[derive(Default)]
pub(crate) struct AnswerSize(usize);

impl AnswerSize {
    /// Refuses what would make the answer still longer.
    pub fn admit(&self, write: &Write) -> Result<()> {
        let adds = matches!(write.operation, Operation::Read { .. } | Operation::Patch { .. });
        match adds && self.0 > BATCH_ANSWER_BYTES_MAX {
            true => {
                Err(Error::new(Kind::TooLarge, "Response size too large. Ask for fewer items at a time."))
            }
            false => Ok(()),
        }
    }

    pub fn add(&mut self, item: Option<&Item>) {
        self.0 += item.map_or(0, |item| item.document.len());
    }
}

/// The answer for an operation that was not tried, or was undone, because another one failed.
pub(crate) fn failed_dependency() -> Error {
    Error::new(
        Kind::FailedDependency,
        "The operation was not performed because another operation of its batch failed.",
    )
}
