//! Queries over several partitions: the rows are those of one partition after the other, in pages of any size, on any
//! number of threads, and whatever is split or merged between two pages.

mod items_support;
mod query_support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use items_support::*;
use orrery_budget::Budget;
use orrery_engine::{
    DistributedFailure, DistributedPosition, DistributedQuery, EngineConfig, Item, PageRequest, QueryOptions,
    RequestClass, ResultCache, ResultCachePlace, Resuming, Scope, StatementSource, SystemOf,
};
use orrery_query::merge::{MergePlan, Merged, PageSize};
use orrery_query::{Execution, Flow, JsonText, Prepared, QueryEnv, Row, RowFormat, StoredForm};
use orrery_storage::MemoryStore;
use query_support::{TestHost, TestSystem};
use serde_json::json;

const QUERIES: &[&str] = &[
    "SELECT VALUE c.id FROM c",
    "SELECT TOP 17 VALUE c.id FROM c WHERE c.n > 2",
    "SELECT VALUE [c.n, c.id] FROM c ORDER BY c.n",
    "SELECT VALUE [c.n, c.id] FROM c ORDER BY c.n DESC",
    "SELECT TOP 25 c.n, c.id FROM c ORDER BY c.kind",
    "SELECT VALUE [c.kind, c.id] FROM c ORDER BY c.kind DESC OFFSET 7 LIMIT 40",
    "SELECT VALUE [c.id, t.z] FROM c JOIN t IN c.tags ORDER BY c.n",
    "SELECT VALUE t.z FROM c JOIN t IN c.tags ORDER BY c.n",
    "SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n",
    "SELECT DISTINCT VALUE c.kind FROM c",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE AVG(c.n) FROM c WHERE c.n > 3",
    "SELECT MIN(c.n) AS low, MAX(c.kind) AS high, SUM(c.n) AS s FROM c",
    "SELECT c.kind, COUNT(1) AS n, AVG(c.n) AS m, MAKESET(c.n) AS s FROM c GROUP BY c.kind",
    "SELECT c.kind, c.n, COUNT(1) AS k FROM c GROUP BY c.kind, c.n ORDER BY c.n DESC",
    "SELECT TOP 3 c.n, COUNT(1) AS k FROM c GROUP BY c.n",
];

fn fixture(items: u64, partitions: usize) -> Fixture {
    let fixture = Fixture::over(Arc::new(MemoryStore::new()), EngineConfig::default(), json!({}), 400);
    for n in 0..items {
        let mixed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        // Many rows tie, and some lack what is sorted by.
        let sorted = if mixed % 11 == 0 { String::new() } else { format!(r#""n":{},"#, mixed % 6) };
        let tags = format!(r#"[{{"z":{}}},{{}},{{"z":"{n}"}}]"#, mixed % 3);
        let text =
            format!(r#"{{"id":"i{n:03}","pk":"k{}",{sorted}"kind":"k{}","tags":{tags}}}"#, n % 53, mixed % 5);
        fixture.create(&text).unwrap();
    }
    while fixture.container.ranges().len() < partitions {
        split(&fixture);
    }
    fixture
}

/// Splits the partition that holds most.
fn split(fixture: &Fixture) {
    let container = &fixture.container;
    let largest = container.ranges().into_iter().max_by_key(|range| container.usage_of_range(range.id).items);
    let range = largest.map(|range| range.id);
    wait(fixture.account.split_partition(container, range).unwrap().done()).unwrap();
}

fn merge(fixture: &Fixture) {
    wait(fixture.account.merge_partitions(&fixture.container, None).unwrap().done()).unwrap();
}

/// A query, and where its pages go.
struct Asked {
    text: String,
    plan: MergePlan,
    prepared: Prepared,
    skips: bool,
    result_cache: Option<Arc<ResultCache>>,
    degree: usize,
    format: &'static dyn RowFormat,
    scope: Scope,
}

impl Asked {
    fn new(text: &str) -> Asked {
        let query = orrery_sql::parse_query(text).unwrap();
        let prepared = Prepared::new(&query, &[], &QueryEnv::default()).unwrap();
        let plan = MergePlan::new(&query, &prepared, &[], &QueryEnv::default()).unwrap();
        let skips = query.offset_limit.is_some();
        let text = text.to_owned();
        Asked {
            text,
            plan,
            prepared,
            skips,
            result_cache: None,
            degree: 1,
            format: &JsonText,
            scope: Scope::All,
        }
    }

    fn page(
        &self,
        fixture: &Fixture,
        start: Option<DistributedPosition>,
        rows: usize,
    ) -> Result<(Vec<Vec<u8>>, Option<DistributedPosition>), DistributedFailure> {
        let budget = Budget::unlimited();
        TestHost::register(&fixture.account, self.result_cache.clone());
        let run = || {
            let shares = fixture.container.shares_of(&self.scope)?;
            let options = QueryOptions {
                session: &[],
                class: RequestClass::default(),
                degree: self.degree,
                read_ahead: self.degree > 2,
                page_time: Duration::from_secs(60),
                page_bytes: 1 << 20,
                budget: &budget,
                result_cache: self.result_cache.as_ref(),
                result_place: Some(ResultCachePlace { owner: b"test".to_vec(), query: 1 }),
                system: &TestSystem,
                statement: StatementSource::of_text(&self.text, &[]),
                format: self.format,
                begins_with: b"[",
                timed: false,
                explained: false,
                lengthy: None,
                gives_up: false,
            };
            let merged = Merged::new(&self.plan);
            let mut query = DistributedQuery::new(&fixture.container, shares, options);
            let resuming = Resuming { skips: self.skips, sorts: merged.is_sorted() };
            let start = start.clone().map(|start| query.go_on(start, resuming)).transpose()?;
            let (page, next) = query.page(&merged, start, PageSize { rows, bytes: 1 << 20 })?;
            assert!(query.charge_ru() > 0.0);
            let next = next.map(|next| query.distributed_position(&next));
            Ok((page.iter().map(<[u8]>::to_vec).collect(), next))
        };
        fixture.container.routed(&self.scope, DistributedFailure::is_range_gone, run)
    }

    /// All pages, with something done between every two of them.
    fn pages(&self, fixture: &Fixture, rows: usize, mut between: impl FnMut(usize)) -> Vec<String> {
        let (mut all, mut start) = (Vec::new(), None);
        for number in 0..10_000 {
            let (page, next) = self.page(fixture, start.take(), rows).unwrap();
            assert!(page.len() <= rows);
            all.extend(page.into_iter().map(|row| String::from_utf8_lossy(&row).into_owned()));
            match next {
                None => return all,
                next => start = next,
            }
            between(number);
        }
        panic!("the query has no end");
    }

    /// What the evaluator says over all items, one partition after the other.
    fn naive(&self, fixture: &Fixture) -> Vec<String> {
        let mut rows = Vec::new();
        let mut sink = |row: Row<'_>| {
            let mut written = Vec::new();
            row.write(&mut written)?;
            rows.push(String::from_utf8_lossy(&written).into_owned());
            Ok(Flow::More)
        };
        let mut execution = Execution::new(&self.prepared).written_as(self.format);
        let mut stopped = false;
        for (at, range) in fixture.container.ranges().into_iter().enumerate() {
            let (scope, page) = (Scope::Range(range.id), PageRequest::new(1_000_000));
            let feed = wait(fixture.container.read_feed(&scope, &page));
            let items = feed.unwrap().items.into_iter().map(|item| (item.number, item));
            for (number, item) in items.collect::<BTreeMap<u64, Item>>() {
                let row = SystemOf { item: &item, system: &TestSystem };
                let number = (at as u64) << 40 | number;
                stopped =
                    stopped || execution.push_numbered(row.row(), number, &mut sink).unwrap() == Flow::Stop;
            }
        }
        execution.finish(&mut sink).unwrap();
        rows
    }
}

#[test]
fn merged_pages_are_those_of_one_partition_after_the_other() {
    let fixture = fixture(180, 4);
    for text in QUERIES {
        for (rows, degree, result_cache) in [(1_000, 1, false), (7, 1, true), (5, 3, false), (23, 4, true)] {
            let result_cache = result_cache.then(|| Arc::new(ResultCache::default()));
            let asked = Asked { degree, result_cache, ..Asked::new(text) };
            let found = asked.pages(&fixture, rows, |_| {});
            assert_eq!(found, asked.naive(&fixture), "{text}, pages of {rows}, {degree} at once");
        }
    }
}

#[test]
fn rows_are_written_in_the_form_that_is_asked_for() {
    let fixture = fixture(60, 3);
    for text in QUERIES {
        let asked = Asked { format: &StoredForm, ..Asked::new(text) };
        assert_eq!(asked.pages(&fixture, 9, |_| {}), asked.naive(&fixture), "{text}");
    }
}

#[test]
fn sorted_pages_go_on_where_they_were_after_splits_and_merges() {
    for text in [
        "SELECT VALUE [c.n, c.id] FROM c ORDER BY c.n",
        "SELECT VALUE [c.kind, c.id] FROM c ORDER BY c.kind DESC",
        "SELECT VALUE [c.n, c.id, t.z] FROM c JOIN t IN c.tags ORDER BY c.n DESC",
        "SELECT TOP 70 VALUE [c.kind, c.id] FROM c ORDER BY c.kind",
    ] {
        for rows in [4, 9, 31] {
            let fixture = fixture(120, 2);
            let asked = Asked { degree: 2, ..Asked::new(text) };
            let mut expected = asked.naive(&fixture);
            let mut found = asked.pages(&fixture, rows, |number| match number {
                2 | 5 => split(&fixture),
                3 => merge(&fixture),
                _ => {}
            });
            // A row that lacks what is sorted by begins with its id.
            let key_of = |row: &String| match row.split(',').next() {
                Some(key) if !key.starts_with("[\"i") => key.to_owned(),
                _ => String::new(),
            };
            let first_keys = |rows: &[String]| rows.iter().map(key_of).collect::<Vec<_>>();
            assert_eq!(first_keys(&found), first_keys(&expected), "{text}, pages of {rows}");
            if !text.contains("TOP") {
                found.sort();
                expected.sort();
                assert_eq!(found, expected, "{text}, pages of {rows}");
            } else {
                found.sort();
                found.dedup();
                assert_eq!(found.len(), 70, "{text}, pages of {rows}");
            }
        }
    }
}

#[test]
fn what_one_partition_has_begun_its_successors_go_on_with() {
    for text in [
        "SELECT TOP 60 VALUE [c.n, c.id] FROM c ORDER BY c.n",
        "SELECT VALUE [c.n, c.id] FROM c ORDER BY c.n",
    ] {
        let fixture = fixture(90, 1);
        let asked = Asked::new(text);
        let expected = asked.naive(&fixture);
        let found = asked.pages(&fixture, 8, |number| {
            if number == 1 || number == 3 {
                split(&fixture);
            }
        });
        let sorted = |mut rows: Vec<String>| {
            rows.sort();
            rows
        };
        assert_eq!(found.len(), expected.len(), "{text}");
        assert_eq!(found[..16], expected[..16], "{text}");
        if !text.contains("TOP") {
            assert_eq!(sorted(found), sorted(expected), "{text}");
        }
    }
}

#[test]
fn a_request_is_run_again_by_a_new_map_and_one_that_names_a_range_is_told() {
    let fixture = fixture(60, 1);
    let runs = |scope: &Scope, changes: usize| {
        let mut runs = 0;
        let result = fixture.container.routed(
            scope,
            |_: &()| true,
            || {
                runs += 1;
                if runs <= changes {
                    split(&fixture);
                }
                Err::<(), ()>(())
            },
        );
        assert!(result.is_err());
        runs
    };
    assert_eq!(runs(&Scope::All, 0), 1, "by the same map it would go the same way");
    assert_eq!(runs(&Scope::All, 2), 3);
    assert_eq!(runs(&Scope::Range(0), 1), 1);
}
