//! What a page may still use: steps, memory of its request, and time.
//!
//! A page that is tried where it must be short has a number of steps. Reading an entry or looking at an item is one,
//! finding an item and its bytes are some more, and so are the rounds of the loops inside a query and the bytes of
//! its rows. A page that has used them up gives up and is run again where it holds up nobody.

use std::rc::Rc;
use std::time::Instant;

use orrery_budget::Budget;
use orrery_query::Meter;

use crate::query::page::{Failed, Ran};
use crate::query::{PartitionQuery, QueryLimits};

/// Items between two looks at the clock.
const CLOCK_ITEMS: u64 = 32;

/// The steps, the memory and the time of one page.
pub(in crate::query) struct Allowance<'q> {
    /// Memory, and steps inside of the evaluator.
    pub meter: Rc<Meter>,
    budget: &'q Budget,
    deadline: Option<Instant>,
    seen: u64,
    steps_left: u64,
}

impl<'q> Allowance<'q> {
    pub fn new(budget: &'q Budget, limits: &QueryLimits) -> Allowance<'q> {
        Allowance {
            meter: Rc::new(Meter::new(budget)),
            budget,
            deadline: limits.deadline,
            seen: 0,
            steps_left: limits.steps.unwrap_or(u64::MAX),
        }
    }

    pub fn steps_left(&self) -> u64 {
        self.steps_left
    }

    /// Takes steps from those that the page was given.
    pub fn spend(&mut self, steps: u64) -> Ran<()> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(Failed::Lengthy)?;
        Ok(())
    }

    /// Gives up at once, rather than halfway, where so many steps will not suffice.
    pub fn foresee(&self, steps: u64) -> Ran<()> {
        if steps > self.steps_left { Err(Failed::Lengthy) } else { Ok(()) }
    }

    /// Counts an item or an entry, and every few of them asks whether to go on.
    pub fn check(&mut self) -> Ran<()> {
        self.seen += 1;
        self.spend(1)?;
        if self.seen.is_multiple_of(CLOCK_ITEMS) {
            self.budget.check()?;
        }
        Ok(())
    }

    /// Asks whether to go on, counting nothing.
    pub fn check_budget(&self) -> Ran<()> {
        Ok(self.budget.check()?)
    }

    /// Whether the page should end before the next item. Never before the first.
    pub fn is_out_of_time(&mut self) -> Ran<bool> {
        self.check()?;
        let look = self.seen.is_multiple_of(CLOCK_ITEMS);
        Ok(look && self.deadline.is_some_and(|deadline| Instant::now() >= deadline))
    }
}

/// What collecting candidates asks from time to time: whether so many entries are too many, and whether anybody waits.
pub(in crate::query) fn tick<'q>(
    query: &'q PartitionQuery<'q>,
    steps: u64,
) -> impl FnMut(u64) -> Ran<()> + use<'q> {
    move |read| if read > steps { Err(Failed::Lengthy) } else { Ok(query.budget.check()?) }
}
