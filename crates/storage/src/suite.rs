//! One suite for every store: what the traits promise, as checks that each implementation runs.
//!
//! `suite` takes a function that opens an empty store. A store that passes here can serve the engine; a store that is
//! wrapped in `Mirror` with another one passes only if both agree.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use bytes::Bytes;

use crate::store::{
    Claim, Commit, Direction, Durability, Epoch, Fork, KEY_BYTES_MAX, KeyRange, Row, Snapshot, Space,
    SpaceId, Store, StoreError, TABLES, Table, VALUE_BYTES_MAX,
};

type Open<'o> = &'o dyn Fn() -> Arc<dyn Store>;

/// Runs every check; panics with the name of what is wrong.
pub fn suite(open: Open<'_>) {
    rows_are_read_back_in_order(open);
    ranges_hold_exactly_what_they_say(open);
    a_commit_is_seen_whole_or_not_at_all(open);
    the_last_change_of_a_key_wins(open);
    a_snapshot_does_not_change(open);
    an_iterator_outlives_its_snapshot(open);
    tables_and_spaces_are_apart(open);
    commits_are_applied_in_the_order_of_submission(open);
    every_callback_is_called_once(open);
    a_callback_may_submit(open);
    an_older_handle_is_fenced(open);
    only_the_last_owner_can_renew(open);
    epochs_ascend_and_begin_above_what_is_asked(open);
    what_was_submitted_before_a_new_owner_is_there(open);
    rows_outside_the_limits_are_refused(open);
    a_failed_commit_fails_those_behind_it(open);
    large_values_and_long_keys_are_kept(open);
    a_dropped_space_is_empty(open);
    forks_share_what_was_there_and_go_apart(open);
    a_closed_store_refuses(open);
}

const SPACE: SpaceId = SpaceId(7);

fn open_space(open: Open<'_>) -> (Arc<dyn Store>, Arc<dyn Space>) {
    let store = open();
    let space = store.open_space(SPACE).expect("opens");
    (store, space)
}

fn put(space: &dyn Space, table: Table, key: &str, value: &str) {
    let mut commit = Commit::default();
    commit.put(table, key.to_owned(), value.to_owned());
    space.commit(commit, Durability::Strict).expect("commits");
}

fn snapshot(space: &dyn Space) -> Box<dyn Snapshot> {
    space.snapshot().expect("snapshot")
}

/// All rows of a range. A visitor must see the same as the iterator.
pub fn rows(snapshot: &dyn Snapshot, table: Table, range: KeyRange, direction: Direction) -> Vec<Row> {
    let mut rows = snapshot.scan(table, range.clone(), direction);
    let rows: Vec<Row> = std::iter::from_fn(move || rows.next_row()).map(|row| row.expect("row")).collect();
    if direction == Direction::Forward {
        let mut visited = Vec::with_capacity(rows.len());
        let mut visit = |key: &[u8], value: &[u8]| {
            visited.push(Row { key: Bytes::copy_from_slice(key), value: Bytes::copy_from_slice(value) });
            ControlFlow::Continue(())
        };
        snapshot.visit(table, range, &mut visit).expect("visit");
        assert_eq!(visited, rows, "a visitor sees other rows than the iterator");
    }
    rows
}

fn keys(snapshot: &dyn Snapshot, range: KeyRange, direction: Direction) -> Vec<Bytes> {
    rows(snapshot, Table::Items, range, direction).into_iter().map(|row| row.key).collect()
}

/// A store may have no forks, and then says so.
fn forks_share_what_was_there_and_go_apart(open: Open<'_>) {
    let (store, space) = open_space(open);
    ["a", "b", "d"].iter().for_each(|key| put(&*space, Table::Items, key, "before"));
    put(&*space, Table::Index, "i", "before");
    let [first, second, empty] = [8, 9, 10].map(SpaceId);
    let fork = |origin, space| Fork { origin, space };
    match store.fork_spaces(&[fork(Some(SPACE), first), fork(None, empty)]) {
        Err(StoreError::Refused(_)) => return,
        forked => forked.expect("forks"),
    }
    let origin_then = snapshot(&*space);
    let forked = store.open_space(first).expect("opens");
    let empty = store.open_space(empty).expect("opens");
    put(&*space, Table::Items, "a", "after");
    put(&*space, Table::Items, "e", "after");
    let mut commit = Commit::default();
    commit.delete(Table::Items, "b");
    commit.put(Table::Items, "c", "forked");
    forked.commit(commit, Durability::Strict).expect("commits");
    let text = |space: &dyn Space| -> String {
        let rows = rows(&*snapshot(space), Table::Items, KeyRange::all(), Direction::Forward);
        let row = |row: &Row| format!("{:?}={:?} ", row.key, row.value).replace(['b', '"'], "");
        rows.iter().map(row).collect()
    };
    assert_eq!(text(&*space), "a=after =efore d=efore e=after ");
    assert_eq!(text(&*forked), "a=efore c=forked d=efore ");
    assert_eq!(text(&*empty), "");
    let keys_of = |range, direction| keys(&*snapshot(&*forked), range, direction);
    assert_eq!(keys_of(KeyRange::all(), Direction::Reverse), ["d", "c", "a"]);
    assert_eq!(keys_of(KeyRange::half_open("a", "d"), Direction::Forward), ["a", "c"]);
    let found = |key: &str| snapshot(&*forked).get(Table::Items, key.as_bytes()).expect("get");
    assert_eq!((found("b"), found("e"), found("d")), (None, None, Some("before".into())));
    // A fork of a fork, which outlives both that it came from.
    store.fork_spaces(&[fork(Some(first), second)]).expect("forks");
    let second = store.open_space(second).expect("opens");
    store.drop_space(SPACE).expect("drops");
    store.drop_space(first).expect("drops");
    assert_eq!(text(&*second), "a=efore c=forked d=efore ");
    assert_eq!(rows(&*snapshot(&*second), Table::Index, KeyRange::all(), Direction::Forward).len(), 1);
    assert_eq!(rows(&*origin_then, Table::Items, KeyRange::all(), Direction::Forward).len(), 3);
    assert!(matches!(store.fork_spaces(&[fork(None, second.id())]), Err(StoreError::Refused(_))));
}

fn rows_are_read_back_in_order(open: Open<'_>) {
    let (_store, space) = open_space(open);
    let mut expected = BTreeMap::new();
    let mut commit = Commit::default();
    for number in 0..500u32 {
        // A walk over all residues, so that insertion order is far from key order.
        let key = Bytes::from(format!("{:03}", number * 271 % 500));
        commit.put(Table::Items, key.clone(), number.to_string());
        expected.insert(key, Bytes::from(number.to_string()));
    }
    space.commit(commit, Durability::Strict).expect("commits");
    let snapshot = snapshot(&*space);
    for (key, value) in &expected {
        assert_eq!(snapshot.get(Table::Items, key).expect("get").as_ref(), Some(value));
    }
    let forward: Vec<Row> = expected.into_iter().map(|(key, value)| Row { key, value }).collect();
    assert_eq!(rows(&*snapshot, Table::Items, KeyRange::all(), Direction::Forward), forward);
    let reverse: Vec<Row> = forward.iter().rev().cloned().collect();
    assert_eq!(rows(&*snapshot, Table::Items, KeyRange::all(), Direction::Reverse), reverse);
    let asked = [Bytes::from("003"), Bytes::from("nothing"), Bytes::from("001")];
    let got = snapshot.get_many(Table::Items, &asked).expect("get_many");
    assert_eq!((got[0].is_some(), got[1].is_none(), got[2].is_some()), (true, true, true));
    assert_eq!(snapshot.get(Table::Items, b"").expect("get"), None);
    assert_eq!(snapshot.get(Table::Items, &vec![1; 100_000]).expect("get"), None);
}

fn ranges_hold_exactly_what_they_say(open: Open<'_>) {
    let (_store, space) = open_space(open);
    let all: Vec<Bytes> =
        [&b"a"[..], b"a\0", b"ab", b"b", b"b\xFF", b"b\xFF\xFF", b"c", b"\xFF", b"\xFF\xFF"]
            .map(Bytes::from_static)
            .into();
    let mut commit = Commit::default();
    for key in &all {
        commit.put(Table::Items, key.clone(), "");
    }
    space.commit(commit, Durability::Strict).expect("commits");
    let snapshot = snapshot(&*space);
    let mut bounds = vec![Bound::Unbounded];
    for key in all.iter().chain([&Bytes::from_static(b"aa"), &Bytes::from_static(b"\0")]) {
        bounds.extend([Bound::Included(key.clone()), Bound::Excluded(key.clone())]);
    }
    for start in &bounds {
        for end in &bounds {
            let after = |key: &&Bytes| match start {
                Bound::Included(start) => *key >= start,
                Bound::Excluded(start) => *key > start,
                Bound::Unbounded => true,
            };
            let before = |key: &&Bytes| match end {
                Bound::Included(end) => *key <= end,
                Bound::Excluded(end) => *key < end,
                Bound::Unbounded => true,
            };
            let mut expected: Vec<Bytes> = all.iter().filter(after).filter(before).cloned().collect();
            let range = KeyRange { start: start.clone(), end: end.clone() };
            assert_eq!(keys(&*snapshot, range.clone(), Direction::Forward), expected, "{range:?}");
            expected.reverse();
            assert_eq!(keys(&*snapshot, range.clone(), Direction::Reverse), expected, "{range:?}");
        }
    }
    assert_eq!(keys(&*snapshot, KeyRange::prefix(b"b"), Direction::Forward), all[3..6]);
    assert_eq!(keys(&*snapshot, KeyRange::prefix(b"\xFF"), Direction::Forward), all[7..]);
}

fn a_commit_is_seen_whole_or_not_at_all(open: Open<'_>) {
    let (_store, space) = open_space(open);
    let stop = Arc::new(AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while stop.load(Ordering::Relaxed) == 0 {
                    let snapshot = snapshot(&*space);
                    let seen = TABLES.map(|table| snapshot.get(table, b"number").expect("get"));
                    assert!(seen[0] == seen[1] && seen[1] == seen[2], "a torn commit: {seen:?}");
                }
            });
        }
        for number in 0..200u32 {
            let mut commit = Commit::default();
            for table in TABLES {
                commit.put(table, "number", number.to_string());
            }
            space.commit(commit, Durability::Relaxed).expect("commits");
        }
        stop.store(1, Ordering::Relaxed);
    });
}

fn the_last_change_of_a_key_wins(open: Open<'_>) {
    let (_store, space) = open_space(open);
    let mut commit = Commit::default();
    commit.put(Table::Items, "put-put", "1");
    commit.put(Table::Items, "put-put", "2");
    commit.put(Table::Items, "put-delete", "1");
    commit.delete(Table::Items, "put-delete");
    commit.delete(Table::Items, "delete-put");
    commit.put(Table::Items, "delete-put", "2");
    space.commit(commit, Durability::Strict).expect("commits");
    let snapshot = snapshot(&*space);
    assert_eq!(snapshot.get(Table::Items, b"put-put").expect("get"), Some("2".into()));
    assert_eq!(snapshot.get(Table::Items, b"put-delete").expect("get"), None);
    assert_eq!(snapshot.get(Table::Items, b"delete-put").expect("get"), Some("2".into()));
    assert_eq!(keys(&*snapshot, KeyRange::all(), Direction::Forward).len(), 2);
}

fn a_snapshot_does_not_change(open: Open<'_>) {
    let (_store, space) = open_space(open);
    put(&*space, Table::Items, "kept", "old");
    put(&*space, Table::Items, "deleted", "old");
    let before = snapshot(&*space);
    put(&*space, Table::Items, "kept", "new");
    put(&*space, Table::Items, "added", "new");
    let mut commit = Commit::default();
    commit.delete(Table::Items, "deleted");
    space.commit(commit, Durability::Strict).expect("commits");
    assert_eq!(before.get(Table::Items, b"kept").expect("get"), Some("old".into()));
    assert_eq!(before.get(Table::Items, b"deleted").expect("get"), Some("old".into()));
    assert_eq!(keys(&*before, KeyRange::all(), Direction::Forward), ["deleted", "kept"]);
    assert_eq!(keys(&*snapshot(&*space), KeyRange::all(), Direction::Forward), ["added", "kept"]);
}

fn an_iterator_outlives_its_snapshot(open: Open<'_>) {
    let (_store, space) = open_space(open);
    for key in ["a", "b", "c"] {
        put(&*space, Table::Items, key, "old");
    }
    let before = snapshot(&*space);
    let mut rows = before.scan(Table::Items, KeyRange::all(), Direction::Forward);
    assert_eq!(rows.next_row().expect("row").expect("row").key, "a");
    drop(before);
    put(&*space, Table::Items, "c", "new");
    assert_eq!(rows.next_row().expect("row").expect("row").key, "b");
    assert_eq!(rows.next_row().expect("row").expect("row").value, "old");
    assert!(rows.next_row().is_none() && rows.next_row().is_none());
}

fn tables_and_spaces_are_apart(open: Open<'_>) {
    let (store, space) = open_space(open);
    // Neighbours in number, and the ends of the number range.
    let others = [0, 6, 8, u32::MAX].map(|id| store.open_space(SpaceId(id)).expect("opens"));
    for table in TABLES {
        put(&*space, table, "key", &format!("{table:?}"));
    }
    for other in &others {
        put(&**other, Table::Items, "key", &format!("{:?}", other.id()));
        put(&**other, Table::Items, "\u{0}", "first");
    }
    let snapshot = snapshot(&*space);
    for table in TABLES {
        assert_eq!(snapshot.get(table, b"key").expect("get"), Some(format!("{table:?}").into()));
        assert_eq!(rows(&*snapshot, table, KeyRange::all(), Direction::Forward).len(), 1);
        assert_eq!(rows(&*snapshot, table, KeyRange::all(), Direction::Reverse).len(), 1);
    }
    for other in &others {
        let rows =
            rows(&*other.snapshot().expect("snapshot"), Table::Items, KeyRange::all(), Direction::Forward);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].value, format!("{:?}", other.id()));
    }
}

fn commits_are_applied_in_the_order_of_submission(open: Open<'_>) {
    let (_store, space) = open_space(open);
    let (sender, receiver) = mpsc::channel();
    for number in 0..300u32 {
        let mut commit = Commit::default();
        commit.put(Table::Items, "last", number.to_string());
        commit.put(Table::Feed, number.to_be_bytes().to_vec(), "");
        let durability = if number % 3 == 0 { Durability::Strict } else { Durability::Relaxed };
        let sender = sender.clone();
        let done =
            Box::new(move |result: Result<(), StoreError>| sender.send((number, result)).expect("awaited"));
        space.submit(commit, durability, done);
    }
    for number in 0..300 {
        let (answered, result) = receiver.recv().expect("answered");
        assert_eq!(answered, number, "answers come in order");
        result.expect("commits");
    }
    let snapshot = snapshot(&*space);
    assert_eq!(snapshot.get(Table::Items, b"last").expect("get"), Some("299".into()));
    assert_eq!(rows(&*snapshot, Table::Feed, KeyRange::all(), Direction::Forward).len(), 300);
}

fn every_callback_is_called_once(open: Open<'_>) {
    let (_store, space) = open_space(open);
    let calls = Arc::new(AtomicU64::new(0));
    std::thread::scope(|scope| {
        for writer in 0..4u32 {
            let (space, calls) = (space.clone(), calls.clone());
            scope.spawn(move || {
                for number in 0..50u32 {
                    let calls = calls.clone();
                    let mut commit = Commit::default();
                    commit.put(Table::Items, format!("{writer}-{number}"), "");
                    let count = Box::new(move |result: Result<(), StoreError>| {
                        result.expect("commits");
                        calls.fetch_add(1, Ordering::SeqCst);
                    });
                    space.submit(commit, Durability::Relaxed, count);
                }
            });
        }
    });
    // A commit of nothing is answered in its turn.
    space.commit(Commit::default(), Durability::Strict).expect("commits");
    assert_eq!(calls.load(Ordering::SeqCst), 200);
    assert_eq!(keys(&*snapshot(&*space), KeyRange::all(), Direction::Forward).len(), 200);
}

fn a_callback_may_submit(open: Open<'_>) {
    let (_store, space) = open_space(open);
    let (sender, receiver) = mpsc::channel();
    let next = space.clone();
    let mut first = Commit::default();
    first.put(Table::Items, "first", "");
    let chained = Box::new(move |result: Result<(), StoreError>| {
        result.expect("commits");
        assert!(next.snapshot().expect("snapshot").get(Table::Items, b"first").expect("get").is_some());
        let mut second = Commit::default();
        second.put(Table::Items, "second", "");
        next.submit(
            second,
            Durability::Strict,
            Box::new(move |result| sender.send(result).expect("awaited")),
        );
    });
    space.submit(first, Durability::Strict, chained);
    receiver.recv().expect("answered").expect("commits");
    assert_eq!(keys(&*snapshot(&*space), KeyRange::all(), Direction::Forward), ["first", "second"]);
}

fn an_older_handle_is_fenced(open: Open<'_>) {
    let (store, old) = open_space(open);
    put(&*old, Table::Items, "old", "");
    let new = store.open_space(SPACE).expect("opens");
    let mut commit = Commit::default();
    commit.put(Table::Items, "late", "");
    let refused = old.commit(commit.clone(), Durability::Strict);
    assert!(matches!(refused, Err(StoreError::Fenced(SPACE))), "{refused:?}");
    put(&*new, Table::Items, "new", "");
    for handle in [&new, &old] {
        assert_eq!(keys(&*snapshot(&**handle), KeyRange::all(), Direction::Forward), ["new", "old"]);
    }
    // Another space's owner is not concerned.
    let other = store.open_space(SpaceId(8)).expect("opens");
    store.open_space(SPACE).expect("opens");
    other.commit(commit, Durability::Strict).expect("commits");
}

fn only_the_last_owner_can_renew(open: Open<'_>) {
    let (store, first) = open_space(open);
    put(&*first, Table::Items, "first", "");
    let second = store.claim_space(SPACE, Claim::Renew(first.epoch())).expect("nobody else came");
    put(&*second, Table::Items, "second", "");
    let refused = store.claim_space(SPACE, Claim::Renew(first.epoch()));
    assert!(matches!(refused, Err(StoreError::Fenced(SPACE))), "{:?}", refused.err());
    // A claim that was refused takes nothing away.
    put(&*second, Table::Items, "third", "");
    let other = store.open_space(SPACE).expect("opens");
    let refused = store.claim_space(SPACE, Claim::Renew(second.epoch()));
    assert!(matches!(refused, Err(StoreError::Fenced(SPACE))), "{:?}", refused.err());
    put(&*other, Table::Items, "fourth", "");
    assert_eq!(keys(&*snapshot(&*other), KeyRange::all(), Direction::Forward).len(), 4);
}

fn epochs_ascend_and_begin_above_what_is_asked(open: Open<'_>) {
    let (store, space) = open_space(open);
    let mut newest = space.epoch();
    for above in [0, 40, 3] {
        let space = store.claim_space(SPACE, Claim::Take(Epoch(above))).expect("opens");
        assert!(space.epoch() > newest && space.epoch() > Epoch(above), "{:?}", space.epoch());
        newest = space.epoch();
    }
}

fn what_was_submitted_before_a_new_owner_is_there(open: Open<'_>) {
    let (store, old) = open_space(open);
    for number in 0..200u32 {
        let mut commit = Commit::default();
        commit.put(Table::Items, format!("{number:03}"), "");
        old.submit(commit, Durability::Relaxed, Box::new(|result| result.expect("commits")));
    }
    let new = store.open_space(SPACE).expect("opens");
    assert_eq!(keys(&*snapshot(&*new), KeyRange::all(), Direction::Forward).len(), 200);
}

fn rows_outside_the_limits_are_refused(open: Open<'_>) {
    let store = open();
    let outside: [(Bytes, Bytes); 3] = [
        (Bytes::new(), Bytes::new()),
        (vec![1; KEY_BYTES_MAX + 1].into(), Bytes::new()),
        ("key".into(), vec![0; VALUE_BYTES_MAX + 1].into()),
    ];
    for (key, value) in outside {
        let space = store.open_space(SPACE).expect("opens");
        let mut commit = Commit::default();
        commit.put(Table::Items, "fine", "");
        commit.put(Table::Items, key, value);
        assert!(commit.check().is_err());
        let refused = space.commit(commit, Durability::Strict);
        assert!(matches!(refused, Err(StoreError::Limit(_))), "{refused:?}");
        assert!(
            keys(&*snapshot(&*space), KeyRange::all(), Direction::Forward).is_empty(),
            "nothing of it is applied"
        );
    }
}

fn a_failed_commit_fails_those_behind_it(open: Open<'_>) {
    let (store, space) = open_space(open);
    let (sender, receiver) = mpsc::channel();
    for key in ["first", "", "third"] {
        let mut commit = Commit::default();
        commit.put(Table::Items, key, "");
        let sender = sender.clone();
        space.submit(
            commit,
            Durability::Strict,
            Box::new(move |result: Result<(), StoreError>| sender.send(result.is_ok()).expect("awaited")),
        );
    }
    let answers: Vec<bool> = receiver.iter().take(3).collect();
    assert_eq!(answers, [true, false, false]);
    let space = store.open_space(SPACE).expect("opens");
    put(&*space, Table::Items, "after", "");
    assert_eq!(keys(&*snapshot(&*space), KeyRange::all(), Direction::Forward), ["after", "first"]);
}

fn large_values_and_long_keys_are_kept(open: Open<'_>) {
    let (_store, space) = open_space(open);
    let long = Bytes::from(vec![0xFF; KEY_BYTES_MAX]);
    let large = Bytes::from((0..3_000_000u32).map(|number| (number * 7 % 251) as u8).collect::<Vec<u8>>());
    let mut commit = Commit::default();
    commit.put(Table::Items, long.clone(), large.clone());
    commit.put(Table::Items, "empty", "");
    space.commit(commit, Durability::Strict).expect("commits");
    let snapshot = snapshot(&*space);
    assert_eq!(snapshot.get(Table::Items, &long).expect("get"), Some(large.clone()));
    assert_eq!(snapshot.get(Table::Items, b"empty").expect("get"), Some(Bytes::new()), "empty is not absent");
    let all = rows(&*snapshot, Table::Items, KeyRange::all(), Direction::Forward);
    assert_eq!((all[0].value.len(), &all[1].key, &all[1].value), (0, &long, &large));
}

fn a_dropped_space_is_empty(open: Open<'_>) {
    let (store, space) = open_space(open);
    let neighbours = [6, 8].map(|id| store.open_space(SpaceId(id)).expect("opens"));
    for space in neighbours.iter().chain([&space]) {
        for table in TABLES {
            for number in 0..20 {
                put(&**space, table, &number.to_string(), "value");
            }
        }
    }
    let before = snapshot(&*space);
    store.drop_space(SPACE).expect("drops");
    assert_eq!(
        rows(&*before, Table::Items, KeyRange::all(), Direction::Forward).len(),
        20,
        "older snapshots stay"
    );
    assert!(keys(&*snapshot(&*space), KeyRange::all(), Direction::Forward).is_empty());
    let mut commit = Commit::default();
    commit.put(Table::Items, "late", "");
    assert!(matches!(space.commit(commit, Durability::Strict), Err(StoreError::Fenced(SPACE))));
    let again = store.open_space(SPACE).expect("opens");
    for table in TABLES {
        assert!(rows(&*snapshot(&*again), table, KeyRange::all(), Direction::Forward).is_empty());
        for neighbour in &neighbours {
            assert_eq!(rows(&*snapshot(&**neighbour), table, KeyRange::all(), Direction::Forward).len(), 20);
        }
    }
    put(&*again, Table::Items, "new", "life");
    assert_eq!(keys(&*snapshot(&*again), KeyRange::all(), Direction::Forward), ["new"]);
    store.drop_space(SpaceId(4711)).expect("a space without rows can be dropped");
}

fn a_closed_store_refuses(open: Open<'_>) {
    let (store, space) = open_space(open);
    put(&*space, Table::Items, "key", "value");
    let before = snapshot(&*space);
    store.close().expect("closes");
    store.close().expect("closes twice");
    assert_eq!(
        before.get(Table::Items, b"key").expect("get"),
        Some("value".into()),
        "an open snapshot goes on"
    );
    assert!(matches!(space.commit(Commit::default(), Durability::Strict), Err(StoreError::Closed)));
    assert!(matches!(store.open_space(SPACE), Err(StoreError::Closed)));
    assert!(matches!(store.drop_space(SPACE), Err(StoreError::Closed)));
    assert!(matches!(space.snapshot(), Err(StoreError::Closed)));
}
