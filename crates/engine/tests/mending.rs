//! Mending a partition whose derived rows are gone: everything follows from the items again, however many rows there
//! are.

mod items_support;

use items_support::*;
use orrery_engine::{Account, Mending};
use orrery_storage::{Commit, Direction, Durability, KeyRange, SpaceId, Table};
use serde_json::json;

/// More than a report of findings keeps.
const ITEMS: usize = 10_400;

#[test]
fn an_index_tree_that_is_lost_whole_is_made_anew_from_the_items() {
    let mut fixture = Fixture::new(json!({}));
    for number in 0..ITEMS {
        fixture.create(&json!({"id": number.to_string(), "pk": "k", "n": number}).to_string()).unwrap();
    }
    let space = SpaceId(fixture.account.spaces()[0].space);

    // Opening a space again shuts out whoever had it before.
    let rows = fixture.store.open_space(space).unwrap();
    let mut commit = Commit::default();
    let snapshot = rows.snapshot().unwrap();
    let mut scan = snapshot.scan(Table::Index, KeyRange::all(), Direction::Forward);
    while let Some(row) = scan.next_row().transpose().unwrap() {
        commit.delete(Table::Index, row.key);
    }
    drop(scan);
    assert!(commit.changes.len() > 2 * ITEMS, "order rows and index rows");
    rows.commit(commit, Durability::Strict).unwrap();
    drop((snapshot, rows));

    let open = |fixture: &Fixture| {
        Account::open_idle(fixture.store.clone(), fixture.config.clone(), fixture.env.clone()).unwrap()
    };
    let account = open(&fixture);
    let found = account.check(&mut |_, _| ());
    assert!(found.findings.len() as u64 + found.more >= ITEMS as u64, "every order row is missed");
    account.mend(Mending { lossy: true, remake_index: true }, &mut |_, _| ()).unwrap();
    let account = open(&fixture);
    account.remake_indexes(&mut |_, _| ()).unwrap();
    let found = account.check(&mut |_, _| ());
    assert!(found.findings.is_empty() && found.more == 0, "{:?}", found.findings.first());

    fixture.reopen();
    let listed = fixture.list(&orrery_engine::Scope::All, 1_000);
    assert_eq!(listed.len(), ITEMS);
    assert_eq!((&*listed[0], &*listed[ITEMS - 1]), ("0", &*(ITEMS - 1).to_string()), "in creation order");
}
