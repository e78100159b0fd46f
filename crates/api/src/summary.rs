//! What is told to the log and to the metrics.

use std::sync::Arc;
use std::time::Duration;

/// What the log and the metrics say about one request.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// A literal: one of a closed set, never anything that a client chose.
    pub operation: &'static str,
    /// 0 where there is none.
    pub substatus: u32,
    pub charge_ru: f64,
    /// A fault that the operator asked for.
    pub fault: Option<Fault>,
}

impl Summary {
    pub fn of(operation: &'static str) -> Summary {
        Summary { operation, ..Summary::default() }
    }
}

/// What is done to an answer because a fault rule says so. The api makes the answer; being late and hanging up is the
/// work of whoever sends it.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The name of the rule, for the log.
    pub rule: Arc<str>,
    pub delay: Duration,
    /// Hang up without an answer.
    pub drop: bool,
}
