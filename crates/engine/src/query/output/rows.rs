//! The rows of one page on their way out: counted, charged, and ended when the page is full or late.

use std::time::Instant;

use orrery_budget::{Budget, Exceeded, Held};
use orrery_query::merge::CachedRows;
use orrery_query::{Flow, Row};
use orrery_sql::SqlError;

use crate::query::page::Ran;
use crate::query::{PageSink, QueryLimits};

/// Rows between two looks at the clock.
const CLOCK_ROWS: u64 = 32;

/// The rows of the page.
pub(super) struct PageRows<'s> {
    sink: &'s mut PageSink<'s>,
    rows: usize,
    bytes: usize,
    limits: QueryLimits,
    /// Rows behind the page are collected here, as long as they fit.
    spill: Option<CachedRows>,
    budget: &'s Budget,
    held: Option<Held>,
    /// Why a row was not taken.
    exceeded: Option<Exceeded>,
    timed: u64,
}

/// Rows of a page are charged in pieces of this size; what is less is not worth the asking.
const PAGE_PIECE_BYTES: usize = 64 * 1024;

impl<'s> PageRows<'s> {
    pub fn new(sink: &'s mut PageSink<'s>, limits: QueryLimits, budget: &'s Budget) -> PageRows<'s> {
        PageRows {
            sink,
            rows: 0,
            bytes: 0,
            limits,
            spill: None,
            budget,
            held: None,
            exceeded: None,
            timed: 0,
        }
    }

    pub fn size_bytes(&self) -> usize {
        self.bytes
    }

    pub fn count(&self) -> usize {
        self.rows
    }

    /// Fails if a row was not taken for want of memory.
    pub fn check(&self) -> Ran<()> {
        self.exceeded.map_or(Ok(()), |exceeded| Err(exceeded.into()))
    }

    pub fn spill(&mut self) {
        self.spill = Some(CachedRows::default());
    }

    pub fn take_spilled(&mut self) -> Option<CachedRows> {
        self.spill.take()
    }

    /// What the rows are charged with.
    pub fn into_held(self) -> Option<Held> {
        self.held
    }

    pub fn take(&mut self, row: Row<'_>) -> Result<Flow, SqlError> {
        // Parts of groups all belong to the one page that they are in.
        let apart = row.is_group();
        let behind = !apart && self.is_full();
        if behind {
            if self.exceeded.is_some() {
                return Ok(Flow::Stop);
            }
            if let Some(spill) = &mut self.spill {
                spill.rows.write(&row)?;
            }
        } else {
            let bytes = (self.sink)(row)?;
            if self.has_no_room(bytes + 1) {
                return Ok(Flow::Stop);
            }
            self.rows += 1;
            self.bytes += bytes + 1;
        }
        let room = match &self.spill {
            _ if apart => true,
            Some(spill) => spill.has_room(),
            None => !self.is_full() && !self.is_late(),
        };
        Ok(if room { Flow::More } else { Flow::Stop })
    }

    fn has_no_room(&mut self, bytes: usize) -> bool {
        let wanted = self.bytes + bytes;
        let held = self.held.as_ref().map_or(PAGE_PIECE_BYTES, Held::bytes);
        if wanted > held {
            let wanted = wanted + wanted / 2;
            let charged = match &mut self.held {
                Some(held) => held.resize(wanted),
                none => self.budget.hold(wanted).map(|held| *none = Some(held)),
            };
            self.exceeded = charged.err();
        }
        self.exceeded.is_some()
    }

    /// Whether the time of a page is over. One item may make more rows than there is time for, so rows are asked too.
    fn is_late(&mut self) -> bool {
        self.timed += 1;
        self.timed.is_multiple_of(CLOCK_ROWS)
            && self.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn is_full(&self) -> bool {
        self.rows >= self.limits.rows || self.bytes >= self.limits.bytes
    }
}
