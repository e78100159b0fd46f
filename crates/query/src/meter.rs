//! What one execution uses of its request's budget.
//!
//! Evaluating an expression allocates little and often, so charges are counted here, on one thread, and passed on to
//! the [`Budget`] in pieces. What is charged falls into two kinds: *transient* memory lives as long as the values of
//! one combination of sources (`Frame` gives it back), *held* memory as long as the rows, groups or keys it belongs
//! to.
//!
//! Steps are counted the same way. Every few thousand of them the budget is asked whether the request may go on: its
//! clock and its client are looked at from inside the innermost loop, whatever the query does.

use std::cell::Cell;

use orrery_budget::{Budget, Exceeded};
use orrery_sql::SqlError;

use crate::eval::Evaluated;
use crate::limits::HELD_BYTES_MAX;

/// Charges are passed on in pieces of this size; a query that never holds as much never touches its budget.
const PIECE_BYTES: usize = 16 * 1024;
/// Steps between two looks at the clock, about a tenth of a millisecond.
const LOOK_STEPS: u64 = 2_048;

#[derive(Debug)]
pub struct Meter {
    /// `None`: nobody's; then the limit of a request holds, and no clock runs.
    budget: Option<Budget>,
    used_bytes: Cell<usize>,
    passed_on_bytes: Cell<usize>,
    steps: Cell<u64>,
    steps_max: Cell<u64>,
    next_look: Cell<u64>,
    /// Set by functions, which have no way to fail.
    refused: Cell<Option<Exceeded>>,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter::with(None)
    }
}

impl Meter {
    pub fn new(budget: &Budget) -> Meter {
        Meter::with(Some(budget.clone()))
    }

    fn with(budget: Option<Budget>) -> Meter {
        Meter {
            budget,
            used_bytes: Cell::new(0),
            passed_on_bytes: Cell::new(0),
            steps: Cell::new(0),
            steps_max: Cell::new(u64::MAX),
            next_look: Cell::new(LOOK_STEPS),
            refused: Cell::new(None),
        }
    }

    pub fn used_bytes(&self) -> usize {
        self.used_bytes.get()
    }

    /// Charges memory that is about to be taken, or just was.
    #[inline]
    pub fn take(&self, bytes: usize) -> Result<(), Exceeded> {
        let used = self.used_bytes.get().saturating_add(bytes);
        if used > self.passed_on_bytes.get().saturating_add(PIECE_BYTES) {
            self.pass_on(used)?;
        }
        self.used_bytes.set(used);
        Ok(())
    }

    #[cold]
    fn pass_on(&self, used: usize) -> Result<(), Exceeded> {
        let passed_on = self.passed_on_bytes.get();
        match &self.budget {
            None if used > HELD_BYTES_MAX => {
                return Err(Exceeded::RequestMemory { limit_bytes: HELD_BYTES_MAX });
            }
            None => {}
            Some(budget) => budget.take(used - passed_on)?,
        }
        self.passed_on_bytes.set(used);
        Ok(())
    }

    #[inline]
    pub fn give_back(&self, bytes: usize) {
        let used = self.used_bytes.get().saturating_sub(bytes);
        self.used_bytes.set(used);
        // Loops give back what their next round takes again, so a piece is kept.
        if self.passed_on_bytes.get() > used.saturating_add(4 * PIECE_BYTES) {
            let idle = self.passed_on_bytes.get() - used;
            self.passed_on_bytes.set(used);
            if let Some(budget) = &self.budget {
                budget.give_back(idle);
            }
        }
    }

    /// Whether there is room for something that a function is about to build. If not, the query ends after the call.
    pub fn has_room(&self, bytes: usize) -> bool {
        match self.take(bytes) {
            Ok(()) => {
                self.give_back(bytes);
                true
            }
            Err(exceeded) => {
                self.refused.set(Some(exceeded));
                false
            }
        }
    }

    /// Counts steps that a function takes.
    pub fn work(&self, steps: u64) {
        if let Err(exceeded) = self.step(steps) {
            self.refused.set(Some(exceeded));
        }
    }

    /// What a function had no room for.
    #[inline]
    pub(crate) fn refused(&self) -> Evaluated<()> {
        match self.refused.get() {
            None => Ok(()),
            Some(exceeded) => Err(Box::new(SqlError::from(exceeded))),
        }
    }

    /// Counts steps of work.
    #[inline]
    pub fn step(&self, steps: u64) -> Result<(), Exceeded> {
        let now = self.steps.get().saturating_add(steps);
        self.steps.set(now);
        if now >= self.next_look.get() { self.look(now) } else { Ok(()) }
    }

    #[cold]
    fn look(&self, now: u64) -> Result<(), Exceeded> {
        if now > self.steps_max.get() {
            return Err(Exceeded::Steps { limit: self.steps_max.get() });
        }
        self.next_look.set(now.saturating_add(LOOK_STEPS).min(self.steps_max.get().saturating_add(1)));
        // The request's own count is kept by whoever counts items and entries; here only time and client matter.
        self.budget.as_ref().map_or(Ok(()), Budget::check)
    }

    /// All steps so far.
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// Ends with [`Exceeded::Steps`] after so many more steps.
    pub fn allow_steps(&self, more: u64) {
        let now = self.steps.get();
        self.steps_max.set(now.saturating_add(more));
        let look = now.saturating_add(LOOK_STEPS).min(self.steps_max.get().saturating_add(1));
        self.next_look.set(self.next_look.get().min(look));
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.give_back(self.passed_on_bytes.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use orrery_budget::MemoryPool;

    use super::*;

    #[test]
    fn small_amounts_touch_no_budget_and_large_ones_come_back() {
        let pool = MemoryPool::new(1 << 20);
        let budget = Budget::new(pool.clone());
        let meter = Meter::new(&budget);
        meter.take(PIECE_BYTES).unwrap();
        assert_eq!(budget.used_bytes(), 0);
        meter.take(100 * 1024).unwrap();
        assert!(budget.used_bytes() >= 100 * 1024);
        meter.give_back(100 * 1024);
        assert!(budget.used_bytes() <= 5 * PIECE_BYTES);
        assert!(matches!(meter.take(2 << 20), Err(Exceeded::RequestMemory { .. })));
        assert!(!meter.has_room(2 << 20) && meter.refused().is_err());
        drop(meter);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn steps_end_where_they_were_allowed_to() {
        let meter = Meter::default();
        meter.allow_steps(10);
        assert_eq!((meter.step(10), meter.step(1)), (Ok(()), Err(Exceeded::Steps { limit: 10 })));
        meter.allow_steps(u64::MAX);
        assert_eq!(meter.step(100_000), Ok(()));
    }
}
