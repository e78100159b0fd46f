//! The budget of one request, made when somebody first asks for it: a point read never does and pays nothing.
//!
//! ```text
//! context.budget.hold(bytes)?    // makes it: memory from the pool of the process, the request's deadline, its client
//! context.budget.check()?
//! ```

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use orrery_api::Client;
use orrery_budget::{Budget, Limits, MemoryPool};
use orrery_query::limits::HELD_BYTES_MAX;

pub(crate) struct RequestBudget<'a> {
    pool: &'a Arc<MemoryPool>,
    deadline: Option<Instant>,
    client: &'a Client,
    made: OnceLock<Budget>,
}

impl<'a> RequestBudget<'a> {
    pub fn new(
        pool: &'a Arc<MemoryPool>,
        deadline: Option<Instant>,
        client: &'a Client,
    ) -> RequestBudget<'a> {
        RequestBudget { pool, deadline, client, made: OnceLock::new() }
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
            let is_gone = match self.client.clone() {
                Client::Unknown => None,
                client => Some(Box::new(move || client.is_gone()) as Box<dyn Fn() -> bool + Send + Sync>),
            };
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
        let client = Client::new(|| true);
        let budget = RequestBudget::new(&pool, Some(Instant::now()), &client);
        assert!(budget.made().is_none());
        let held = budget.hold(1 << 20).unwrap();
        assert_eq!(budget.made().unwrap().used_bytes(), 1 << 20);
        assert_eq!(budget.check(), Err(orrery_budget::Exceeded::Time));
        drop((held, budget));
        assert_eq!(pool.taken_bytes(), 0);
    }
}
