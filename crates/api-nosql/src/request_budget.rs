//! The budget of one request, made when somebody first asks for it: a point read never does and pays nothing.
//!
//! ```text
//! context.budget.hold(bytes)?    // makes it: memory from the pool of the process, the request's deadline, its client
//! context.budget.check()?
//! ```

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use orrery_budget::{Budget, Limits, MemoryPool};
use orrery_query::limits::HELD_BYTES_MAX;

use crate::presence::Presence;

pub(crate) struct RequestBudget<'a> {
    pool: &'a Arc<MemoryPool>,
    deadline: Option<Instant>,
    presence: Option<&'a Presence>,
    made: OnceLock<Budget>,
}

impl<'a> RequestBudget<'a> {
    pub fn new(
        pool: &'a Arc<MemoryPool>,
        deadline: Option<Instant>,
        presence: Option<&'a Presence>,
    ) -> RequestBudget<'a> {
        RequestBudget { pool, deadline, presence, made: OnceLock::new() }
    }

    /// The budget, if anybody has asked for it.
    pub fn made(&self) -> Option<&Budget> {
        self.made.get()
    }
}

impl Deref for RequestBudget<'_> {
    type Target = Budget;

    fn deref(&self) -> &Budget {
        self.made.get_or_init(|| {
            let limits =
                Limits { memory_bytes: HELD_BYTES_MAX, deadline: self.deadline, ..Limits::default() };
            let is_gone = self.presence.cloned().map(|presence| -> Box<dyn Fn() -> bool + Send + Sync> {
                Box::new(move || presence.is_gone())
            });
            Budget::with(self.pool.clone(), limits, is_gone)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_by_the_first_who_asks() {
        let pool = MemoryPool::new(1 << 30);
        let presence = Presence::new(|| true);
        let budget = RequestBudget::new(&pool, Some(Instant::now()), Some(&presence));
        assert!(budget.made().is_none());
        let held = budget.hold(1 << 20).unwrap();
        assert_eq!(budget.made().unwrap().used_bytes(), 1 << 20);
        assert_eq!(budget.check(), Err(orrery_budget::Exceeded::Time));
        drop((held, budget));
        assert_eq!(pool.taken_bytes(), 0);
    }
}
