//! Many threads on one partition: no update is lost, no LSN is skipped or given twice, nobody sees time go backwards.

mod items_support;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use items_support::*;
use orrery_engine::{Kind, Operation, ReadOptions, Scope, Write};
use serde_json::json;

const THREADS: u64 = 8;
const ROUNDS: u64 = 150;

fn counter(id: &str, n: i64) -> String {
    format!(r#"{{"id":"{id}","pk":"a","n":{n}}}"#)
}

fn value(fixture: &Fixture, id: &str) -> (i64, String, u64) {
    let reply = wait(fixture.container.read_item(&key("a"), id, &ReadOptions::default())).unwrap();
    let n = reply.item.body().get("n").and_then(|n| n.as_number()).and_then(|n| n.as_i64()).unwrap();
    (n, reply.item.etag.to_string(), reply.at.lsn)
}

#[test]
fn no_update_is_lost_and_no_lsn_is_skipped() {
    let fixture = Arc::new(Fixture::new(json!({})));
    fixture.create(&counter("shared", 0)).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (fixture, done) = (fixture.clone(), done.clone());
        std::thread::spawn(move || {
            let mut last = (0, 0);
            while !done.load(Ordering::Relaxed) {
                let (n, _, lsn) = value(&fixture, "shared");
                assert!(n >= last.0 && lsn >= last.1, "{n} {lsn} after {last:?}");
                last = (n, lsn);
            }
        })
    };
    let writers: Vec<_> = (0..THREADS)
        .map(|thread| {
            let fixture = fixture.clone();
            std::thread::spawn(move || {
                let mut seen = Vec::new();
                let mut increments = 0;
                for round in 0..ROUNDS {
                    // An item of its own.
                    let own = fixture
                        .upsert(&counter(&format!("own-{thread}-{}", round % 10), round as i64))
                        .unwrap();
                    seen.push((own.at.lsn, own.item.unwrap().etag.to_string()));
                    // One that all fight for: read, add one, write if nobody else did.
                    let (n, etag, _) = value(&fixture, "shared");
                    let (_, id, document) = parts(&counter("shared", n + 1));
                    match fixture.write("a", Write::new(Operation::Replace { id, document }).if_match(etag)) {
                        Ok(reply) => {
                            increments += 1;
                            seen.push((reply.at.lsn, reply.item.unwrap().etag.to_string()));
                        }
                        Err(error) => assert_eq!(error.kind, Kind::PreconditionFailed),
                    }
                }
                (seen, increments)
            })
        })
        .collect();
    let mut lsns = BTreeSet::from([1]);
    let mut etags = HashSet::new();
    let mut increments = 0;
    for writer in writers {
        let (seen, own_increments) = writer.join().unwrap();
        increments += own_increments;
        for (lsn, etag) in seen {
            assert!(lsns.insert(lsn), "{lsn} was given twice");
            assert!(etags.insert(etag));
        }
    }
    done.store(true, Ordering::Relaxed);
    reader.join().unwrap();
    assert_eq!(lsns, (1..=lsns.len() as u64).collect::<BTreeSet<_>>(), "without gaps");
    assert_eq!(value(&fixture, "shared").0, increments);
    assert_eq!(fixture.only_partition().lsn(), lsns.len() as u64);
    assert_eq!(fixture.list(&Scope::All, 1000).len() as u64, 1 + THREADS * 10);
    assert_eq!(fixture.stored_items(), 1 + THREADS * 10);
}

#[test]
fn of_many_creates_of_one_id_exactly_one_succeeds() {
    let fixture = Arc::new(Fixture::new(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}})));
    for round in 0..30 {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let fixture = fixture.clone();
                std::thread::spawn(move || {
                    let id = fixture
                        .create(&format!(r#"{{"id":"{round}","pk":"a","u":"{round}-{thread}"}}"#))
                        .is_ok();
                    let unique = fixture
                        .create(&format!(r#"{{"id":"u{round}-{thread}","pk":"a","u":{round}}}"#))
                        .is_ok();
                    (u64::from(id), u64::from(unique))
                })
            })
            .collect();
        let won = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        assert_eq!(won, (1, 1), "round {round}");
    }
    assert_eq!(fixture.stored_items(), 60);
}
