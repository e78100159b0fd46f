//! Writers, readers, splits and merges at the same time, over a store that fails and comes back at random.
//!
//! Every writer has items of its own and knows what it was told: written, not written, or nothing. At every moment a
//! reader of such an item must see the last version that was acknowledged, or one of those after it that nobody could
//! tell about; and once a later version was seen, never an earlier one.

mod items_support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use items_support::*;
use orrery_engine::{EngineConfig, Error, Kind, Operation, Scope};
use orrery_storage::doubles::{FaultRates, Flaky};
use orrery_storage::{EmbeddedOptions, EmbeddedStore, MemoryStore, Store};
use serde_json::json;

const WRITERS: usize = 4;
const ITEMS: usize = 6;

fn is_passing(error: &Error) -> bool {
    matches!(error.kind, Kind::Unavailable | Kind::RangeGone | Kind::Conflict)
}

/// What a writer knows of one of its items.
#[derive(Debug, Default, Clone)]
struct Known {
    /// What it may be, the oldest first; 0: it is not there.
    candidates: Vec<u64>,
    acknowledged: Vec<(u32, u64)>,
}

impl Known {
    fn saw(&mut self, n: u64, seed: u64) {
        let at = self.candidates.iter().position(|candidate| *candidate == n);
        let at = at.unwrap_or_else(|| panic!("seed {seed}: {n} is none of {:?}", self.candidates));
        // What was seen is published, and what is published stays.
        self.candidates.drain(..at);
    }
}

fn number(item: &orrery_engine::Item) -> u64 {
    serde_json::from_str::<serde_json::Value>(&text_of(item)).unwrap()["n"].as_u64().unwrap()
}

fn write_and_read(fixture: &Fixture, writer: usize, rounds: u64, seed: u64) -> Vec<Known> {
    let mut known = vec![Known { candidates: vec![0], ..Known::default() }; ITEMS];
    for n in 1..=rounds {
        let at = (n as usize * 7 + writer) % ITEMS;
        let (pk, id) = (format!("w{writer}k{at}"), format!("{writer}-{at}"));
        let (_, _, document) = parts(&format!(r#"{{"id":"{id}","pk":"{pk}","n":{n}}}"#));
        let item = &mut known[at];
        match fixture.write(&pk, Operation::Upsert { id: id.clone(), document }) {
            Ok(reply) => {
                item.candidates = vec![n];
                item.acknowledged.push((reply.at.range_id, reply.at.lsn));
            }
            Err(error) if error.kind == Kind::OutcomeUnknown => item.candidates.push(n),
            Err(error) => {
                assert!(is_passing(&error), "seed {seed}: {error:?}");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        match fixture.read(&pk, &id) {
            Ok(read) => item.saw(number(&read), seed),
            Err(error) if error.kind == Kind::NotFound => item.saw(0, seed),
            Err(error) => assert!(is_passing(&error), "seed {seed}: {error:?}"),
        }
    }
    known
}

fn insist<T>(seed: u64, mut ask: impl FnMut() -> orrery_engine::Result<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match ask() {
            Ok(value) => return value,
            Err(error) => {
                assert!(is_passing(&error) && Instant::now() < deadline, "seed {seed}: {error:?}");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

fn run(store: Arc<dyn Store>, line: &orrery_storage::doubles::Line, seed: u64, rounds: u64) {
    let fixture = Fixture::over(store, EngineConfig::default(), json!({}), 400);
    line.set(FaultRates { commits: 25, claims: 100, hangs: 10, hang_max: Duration::from_millis(5) });
    let done = AtomicBool::new(false);
    let (known, mut reshaped) = std::thread::scope(|scope| {
        let fixture = &fixture;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write_and_read(fixture, writer, rounds, seed)))
            .collect();
        let reshaping = scope.spawn(|| {
            let (mut made, mut split) = (0, true);
            while !done.load(Ordering::Relaxed) {
                let job = match split {
                    true => fixture.account.split_partition(&fixture.container, None),
                    false => fixture.account.merge_partitions(&fixture.container, None),
                };
                made += usize::from(job.is_ok_and(|job| wait(job.done()).is_ok()));
                split = fixture.container.ranges().len() < 4;
                std::thread::sleep(Duration::from_millis(5));
            }
            made
        });
        let known: Vec<Vec<Known>> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        done.store(true, Ordering::Relaxed);
        (known, reshaping.join().unwrap())
    });
    line.set(FaultRates::default());

    let acknowledged: usize = known.iter().flatten().map(|item| item.acknowledged.len()).sum();
    println!(
        "seed {seed}: {acknowledged} writes acknowledged, {} faults, {reshaped} splits and merges",
        line.faults()
    );

    let mut lsns: BTreeSet<(u32, u64)> = BTreeSet::new();
    let mut there: BTreeMap<String, u64> = BTreeMap::new();
    for (writer, items) in known.into_iter().enumerate() {
        for (at, mut item) in items.into_iter().enumerate() {
            let (pk, id) = (format!("w{writer}k{at}"), format!("{writer}-{at}"));
            let read = insist(seed, || match fixture.read(&pk, &id) {
                Err(error) if error.kind == Kind::NotFound => Ok(None),
                found => found.map(Some),
            });
            item.saw(read.as_ref().map_or(0, number), seed);
            for acknowledged in &item.acknowledged {
                assert!(lsns.insert(*acknowledged), "seed {seed}: {acknowledged:?} was given twice");
            }
            // Ranges change; within one, a later write has a later LSN.
            for pair in item.acknowledged.windows(2) {
                assert!(pair[0].0 != pair[1].0 || pair[0].1 < pair[1].1, "seed {seed}: {pair:?}");
            }
            there.extend(read.map(|read| (id, number(&read))));
        }
    }
    let listed = insist(seed, || fixture.try_items());
    assert_eq!(listed.len(), there.len(), "seed {seed}");
    let mut told = Vec::new();
    for range in fixture.container.ranges() {
        let (changes, _) = insist(seed, || fixture.try_changes(&Scope::Range(range.id)));
        told.extend(changes.iter().map(|item| (item.id().to_owned(), number(item))));
        let partition = insist(seed, || fixture.container.partition(range.id));
        assert_eq!(partition.check_index().unwrap(), [""; 0], "seed {seed}");
    }
    told.sort();
    assert_eq!(told, there.into_iter().collect::<Vec<_>>(), "seed {seed}: the feed shows each item once");
    assert_eq!(fixture.container.usage().items, listed.len() as u64, "seed {seed}");
    // Whatever was in the middle of something can go on.
    insist(seed, || wait(fixture.account.split_partition(&fixture.container, None)?.done()));
    reshaped += 1;
    assert!(line.faults() > 0 && reshaped > 0, "seed {seed}");
    let lists = |fixture: &Fixture| {
        let mut texts: Vec<String> = insist(seed, || fixture.try_items()).iter().map(text_of).collect();
        texts.sort();
        texts
    };
    let before = lists(&fixture);
    let mut again = fixture;
    again.reopen();
    assert_eq!(lists(&again), before, "seed {seed}: after a restart");
    let check = again.account.check(&mut |_, _| ());
    assert!(check.findings.is_empty(), "seed {seed}: {:?}", check.findings);
}

fn seeds() -> impl Iterator<Item = u64> {
    let first = std::env::var("ORRERY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_118u64);
    (0..6).map(move |n: u64| first.wrapping_add(n))
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_written() {
    for seed in seeds() {
        let store = Flaky::new(MemoryStore::new(), seed);
        let line = store.line();
        run(Arc::new(store), &line, seed, 150);
    }
}

#[test]
fn nor_over_a_store_on_disk() {
    for seed in seeds().take(2) {
        let directory = tempfile::tempdir().unwrap();
        let inner = EmbeddedStore::open(directory.path(), EmbeddedOptions::default()).unwrap();
        let store = Flaky::new(inner, seed);
        let line = store.line();
        run(Arc::new(store), &line, seed, 100);
    }
}
