//! Searches inside a partition: whatever index finds the items, the rows are those of the naive evaluator.
//!
//! As `queries`, with shapes on the earth and on a plane, and with texts. A failure prints its seed; `ORRERY_SEED=n`
//! runs that case alone, `ORRERY_CASES=n` that many.

mod items_support;
mod query_support;

use std::collections::BTreeMap;

use query_support::{SEARCHES, check_case};

/// Cases of an ordinary run. Each asks dozens of queries.
const CASES: u64 = 15;

fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn searches_answer_as_the_naive_evaluator() {
    let mut ways = BTreeMap::new();
    if let Some(seed) = environment("ORRERY_SEED") {
        return check_case(seed, &SEARCHES, &mut ways);
    }
    for seed in 0..environment("ORRERY_CASES").unwrap_or(CASES) {
        check_case(seed, &SEARCHES, &mut ways);
    }
    for way in ["items", "all", "in", "counted"] {
        assert!(ways.get(way).is_some_and(|pages| *pages > 20), "{way}: {ways:?}");
    }
}
