//! Queries inside a partition: whatever plan finds the items, the rows are those of the naive evaluator.
//!
//! Each case makes a container with a random policy, fills it, changes some of it, and asks random queries, whole and in
//! pages of random sizes. A failure prints its seed; `ORRERY_SEED=n` runs that case alone, `ORRERY_CASES=n` that many.

mod items_support;
mod query_support;

use std::collections::BTreeMap;

use orrery_engine::query::Progress;
use orrery_engine::{QueryPosition, Scope};
use query_support::{Case, Dice, VALUES, check_case};

/// Cases of an ordinary run. Each asks dozens of queries.
const CASES: u64 = 60;

fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn planned_queries_answer_as_the_naive_evaluator() {
    let mut ways = BTreeMap::new();
    if let Some(seed) = environment("ORRERY_SEED") {
        return check_case(seed, &VALUES, &mut ways);
    }
    for seed in 0..environment("ORRERY_CASES").unwrap_or(CASES) {
        check_case(seed, &VALUES, &mut ways);
    }
    // Items found, all of them, in order, counted, values: every way was gone, and none by chance alone.
    for way in ["items", "all", "in", "counted", "values"] {
        assert!(ways.get(way).is_some_and(|pages| *pages > 20), "{way}: {ways:?}");
    }
}

#[test]
fn a_position_of_another_kind_of_query_is_refused() {
    let case = Case::new(&mut Dice(1));
    let query = case.prepare("SELECT * FROM c ORDER BY c.n").unwrap();
    let partition = case.partitions().remove(0);
    let from = QueryPosition::Created { from: 3, progress: Progress::default() };
    assert!(case.page(&partition, &Scope::All, &query, Some(&from), 10).is_err());
}
