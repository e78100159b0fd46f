//! What a new API has to write: a protocol of one-line requests, made for this test and thrown away after it.
//!
//! It reads, writes, queries four partitions with the rows merged in order, follows the change feed and is kept out
//! by the access rules, and all of its own is decoding, calling and encoding: [`Lines::answer`].

mod items_support;
mod query_support;

use items_support::*;
use orrery_budget::Budget;
use orrery_engine::access::{
    Demand, KeySlot, Part, Principal, Reach, Resource, ResourceName, Subject, permit,
};
use orrery_engine::{
    ChangeMode, ChangePositions, ChangeStart, ChangesFrom, DistributedQuery, EngineConfig, Error, FeedChange,
    Operation, PageRequest, QueryOptions, Result, Scope, StatementSource, Write,
};
use orrery_query::merge::{MergePlan, Merged, PageSize};
use orrery_query::{JsonText, Prepared};
use orrery_storage::MemoryStore;
use query_support::{TestHost, TestSystem};
use serde_json::json;
use std::sync::Arc;

struct Lines<'f>(&'f Fixture);

impl Lines<'_> {
    fn answer(&self, who: &Principal, line: &str) -> Result<String> {
        let Fixture { account, container, .. } = self.0;
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let reads = verb != "put";
        let [database, name] = ["d", "c"].map(ResourceName::plain);
        let resource = Resource { database, container: name, part: Part::Whole };
        let subject = || Subject { resource, key: None, item_at: None, has_scope: false };
        wait(permit(account, who, Demand { reach: Reach::Container, reads }, subject))?;
        match verb {
            "put" => {
                let (pk, id, document) = parts(rest);
                let write = Write::new(Operation::Upsert { id, document });
                Ok(wait(container.write_item(&key(&pk), write))?.at.lsn.to_string())
            }
            "get" => {
                let (pk, id) = rest.split_once(' ').unwrap_or((rest, ""));
                Ok(text_of(&wait(container.read_item(&key(pk), id, &Default::default()))?.item))
            }
            "sql" => {
                let bad = |error| Error::bad_request(format!("{error}"));
                let (env, query) =
                    (container.definition().query_env(), orrery_sql::parse_query(rest).map_err(bad)?);
                let prepared = Prepared::new(&query, &[], &env).map_err(bad)?;
                let plan = MergePlan::new(&query, &prepared, &[], &env).map_err(bad)?;
                let (budget, statement) = (Budget::unlimited(), StatementSource::of_text(rest, &[]));
                let options = QueryOptions::new(&budget, &TestSystem, &JsonText, statement);
                let mut run = DistributedQuery::new(container, container.shares_of(&Scope::All)?, options);
                let page = run.page(&Merged::new(&plan), None, PageSize { rows: 100, bytes: 1 << 20 });
                let (rows, _) = page.map_err(|failure| Error::bad_request(format!("{failure:?}")))?;
                Ok(String::from_utf8_lossy(&rows.into_bytes()).into_owned())
            }
            _ => {
                let start =
                    ChangeStart { positions: ChangePositions::None, otherwise: ChangesFrom::Beginning };
                let page = PageRequest::new(100);
                let feed = container.read_change_feed(&Scope::All, &start, ChangeMode::LatestVersion, &page);
                let page = wait(feed).map_err(|failure| Error::bad_request(format!("{failure:?}")))?;
                let changed = page.changes.iter().filter_map(|change| match change {
                    FeedChange::Latest(item) => Some(item.id().to_owned()),
                    FeedChange::Version(_) => None,
                });
                Ok(changed.collect::<Vec<_>>().join(","))
            }
        }
    }
}

#[test]
fn an_api_is_decoding_calling_and_encoding() {
    let fixture = Fixture::over(Arc::new(MemoryStore::new()), EngineConfig::default(), json!({}), 40_000);
    assert_eq!(fixture.container.ranges().len(), 4);
    TestHost::register(&fixture.account, None);
    let api = Lines(&fixture);
    let (owner, reader) = (Principal::Key(KeySlot::Primary), Principal::Key(KeySlot::SecondaryReadonly));
    for n in 0..20 {
        let item =
            json!({ "id": format!("i{n:02}"), "pk": format!("k{n}"), "n": (n * 7) % 20, "even": n % 2 == 0 });
        api.answer(&owner, &format!("put {item}")).unwrap();
    }
    assert!(api.answer(&reader, "get k3 i03").unwrap().contains(r#""n":1"#));
    let sorted = api.answer(&reader, "sql SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC").unwrap();
    assert_eq!(sorted, "19,18,17");
    let grouped =
        api.answer(&reader, "sql SELECT c.even, SUM(c.n) AS s FROM c GROUP BY c.even ORDER BY c.even");
    assert_eq!(grouped.unwrap(), r#"{"even":false,"s":100},{"even":true,"s":90}"#);
    let mut changed: Vec<_> = api.answer(&reader, "changes").unwrap().split(',').map(str::to_owned).collect();
    changed.sort();
    assert_eq!((changed.len(), changed[19].as_str()), (20, "i19"));
    assert_eq!(
        api.answer(&reader, r#"put {"id":"x","pk":"k"}"#).unwrap_err().kind,
        orrery_engine::Kind::AccessDenied
    );
    assert_eq!(api.answer(&owner, "get k x").unwrap_err().kind, orrery_engine::Kind::NotFound);
}
