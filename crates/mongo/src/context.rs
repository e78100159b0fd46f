//! What a command says besides its filter, update or pipeline: what every parser and evaluator is given.

use std::sync::Arc;

use orrery_budget::Budget;

use crate::value::Document;

/// The surroundings of one command.
#[derive(Clone)]
pub struct Context {
    /// `$$NOW`, milliseconds since 1970.
    pub now_ms: i64,
    /// `$$CLUSTER_TIME`: seconds and increment.
    pub cluster_time: (u32, u32),
    /// The variables of `let`, evaluated: `$$name`.
    pub variables: Document,
    /// How texts compare; `None` is by their bytes.
    pub collation: Option<Arc<crate::order::Collation>>,
    /// What the command may use of memory, steps and time.
    pub budget: Budget,
    /// A source of random numbers for `$rand`, `$sample`.
    pub random: fn() -> u64,
}

impl Context {
    /// A command that nothing is known of.
    #[doc(hidden)]
    pub fn for_tests() -> Context {
        Context {
            now_ms: 1_700_000_000_000,
            cluster_time: (1_700_000_000, 1),
            variables: Document::new(),
            collation: None,
            budget: Budget::unlimited(),
            random: || 0x5DEE_CE66_D125_A3F1,
        }
    }
}
