//! A container against a naive model of one, over random operations, batches, time, sweeps, purges and restarts.
//!
//! The model is a list of items. After every step the container must give the same answer, list the same items in the
//! same order, and tell the same changes; and its index rows must be those of its items.
//!
//! The same runs over a store that fails and comes back. Then a write may be refused for now, which must have changed
//! nothing, or end without an answer, and the container must show the items from before it or from after it, and stay
//! with that.

mod items_support;

use items_support::*;
use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_engine::split::Job;
use orrery_engine::{BatchOperation, EngineConfig, Error, Kind, Operation, Outcome, Scope};
use orrery_model::{Number, PatchOp, Pointer, Value as ModelValue};
use orrery_storage::doubles::{FaultRates, Flaky, Line};
use orrery_storage::{MemoryStore, Store};
use proptest::prelude::*;
use serde_json::json;

#[derive(Debug, Clone, Copy)]
struct Doc {
    id: u8,
    n: i64,
    unique: u8,
    ttl: Option<i32>,
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Create(Doc),
    Upsert(Doc),
    Replace(Doc),
    /// Sets `n`.
    Patch(u8, i64),
    Delete(u8),
    Read(u8),
}

#[derive(Debug, Clone)]
enum Step {
    Write(u8, Op),
    Batch(u8, Vec<Op>),
    Purge(u8),
    Advance(u64),
    Sweep,
    Reopen,
    DefaultTtl(Option<i32>),
    /// Begins to split the largest partition, or to merge two; what comes next runs beside it.
    Split,
    Merge,
    /// Waits for the end of that.
    Settle,
}

fn doc() -> impl Strategy<Value = Doc> {
    let ttl = prop::sample::select(vec![None, None, Some(-1), Some(2), Some(6)]);
    (0u8..4, 0i64..100, 0u8..6, ttl).prop_map(|(id, n, unique, ttl)| Doc { id, n, unique, ttl })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => doc().prop_map(Op::Create),
        3 => doc().prop_map(Op::Upsert),
        2 => doc().prop_map(Op::Replace),
        1 => (0u8..4, 0i64..100).prop_map(|(id, n)| Op::Patch(id, n)),
        2 => (0u8..4).prop_map(Op::Delete),
        1 => (0u8..4).prop_map(Op::Read),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0u8..3, op()).prop_map(|(pk, op)| Step::Write(pk, op)),
        4 => (0u8..3, prop::collection::vec(op(), 1..6)).prop_map(|(pk, ops)| Step::Batch(pk, ops)),
        1 => (0u8..3).prop_map(Step::Purge),
        2 => (1u64..5).prop_map(Step::Advance),
        2 => Just(Step::Sweep),
        1 => Just(Step::Reopen),
        1 => prop::sample::select(vec![None, Some(-1), Some(4)]).prop_map(Step::DefaultTtl),
    ]
}

/// The same over more keys, with splits and merges among the steps.
fn reshaping_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0u8..12, op()).prop_map(|(pk, op)| Step::Write(pk, op)),
        4 => (0u8..12, prop::collection::vec(op(), 1..6)).prop_map(|(pk, ops)| Step::Batch(pk, ops)),
        1 => (0u8..12).prop_map(Step::Purge),
        2 => (1u64..5).prop_map(Step::Advance),
        2 => Just(Step::Sweep),
        1 => Just(Step::Reopen),
        1 => prop::sample::select(vec![None, Some(-1), Some(4)]).prop_map(Step::DefaultTtl),
        2 => Just(Step::Split),
        1 => Just(Step::Merge),
        2 => Just(Step::Settle),
    ]
}

#[derive(Debug, Clone)]
struct Stored {
    pk: u8,
    doc: Doc,
    ts: u64,
    created: u64,
    changed: u64,
}

#[derive(Clone)]
struct Model {
    items: Vec<Stored>,
    default_ttl: Option<i32>,
    now_s: u64,
    /// Counts changes.
    clock: u64,
}

impl Model {
    fn live(&self, item: &Stored) -> bool {
        match self.default_ttl.map(|default| item.doc.ttl.unwrap_or(default)) {
            None | Some(-1) => true,
            Some(ttl) => self.now_s <= item.ts + ttl as u64,
        }
    }

    fn find(&self, pk: u8, id: u8) -> Option<&Stored> {
        self.items.iter().find(|item| item.pk == pk && item.doc.id == id && self.live(item))
    }

    fn put(&mut self, pk: u8, doc: Doc) -> Result<Outcome, Kind> {
        let taken = |item: &&Stored| item.pk == pk && item.doc.unique == doc.unique && item.doc.id != doc.id;
        if self.items.iter().filter(|item| self.live(item)).any(|item| taken(&item)) {
            return Err(Kind::UniqueKeyViolated);
        }
        let created = self.find(pk, doc.id).map(|old| old.created);
        self.items.retain(|item| (item.pk, item.doc.id) != (pk, doc.id));
        self.clock += 1;
        let (ts, clock) = (self.now_s, self.clock);
        self.items.push(Stored { pk, doc, ts, created: created.unwrap_or(clock), changed: clock });
        Ok(if created.is_some() { Outcome::Replaced } else { Outcome::Created })
    }

    fn apply(&mut self, pk: u8, op: &Op) -> Result<Outcome, Kind> {
        match *op {
            Op::Create(doc) if self.find(pk, doc.id).is_some() => Err(Kind::AlreadyExists),
            Op::Create(doc) | Op::Upsert(doc) => self.put(pk, doc),
            Op::Replace(doc) => match self.find(pk, doc.id) {
                Some(_) => self.put(pk, doc),
                None => Err(Kind::NotFound),
            },
            Op::Patch(id, n) => match self.find(pk, id).map(|old| old.doc) {
                Some(old) => self.put(pk, Doc { n, ..old }),
                None => Err(Kind::NotFound),
            },
            Op::Delete(id) => match self.find(pk, id).is_some() {
                true => {
                    self.items.retain(|item| (item.pk, item.doc.id) != (pk, id));
                    Ok(Outcome::Deleted)
                }
                false => Err(Kind::NotFound),
            },
            Op::Read(id) => self.find(pk, id).map(|_| Outcome::Read).ok_or(Kind::NotFound),
        }
    }

    /// What tells this state from any other.
    fn signature(&self) -> (Vec<String>, Vec<String>) {
        let of = |by: &dyn Fn(&Stored) -> u64| {
            let mut live: Vec<&Stored> = self.items.iter().filter(|item| self.live(item)).collect();
            live.sort_by_key(|item| by(item));
            by_key(live.iter().map(|item| stamped(&text(item.pk, &item.doc), item.ts)).collect())
        };
        (of(&|item| item.created), of(&|item| item.changed))
    }

    /// Texts of live items in the order that `by` gives.
    fn texts(&self, by: impl Fn(&Stored) -> u64) -> Vec<String> {
        let mut live: Vec<&Stored> = self.items.iter().filter(|item| self.live(item)).collect();
        live.sort_by_key(|item| by(item));
        live.iter().map(|item| text(item.pk, &item.doc)).collect()
    }
}

fn text(pk: u8, doc: &Doc) -> String {
    let ttl = doc.ttl.map(|ttl| format!(",\"ttl\":{ttl}")).unwrap_or_default();
    format!(r#"{{"id":"{}","pk":"p{pk}","n":{},"u":{}{ttl}}}"#, doc.id, doc.n, doc.unique)
}

fn operation(pk: u8, op: &Op) -> Operation {
    let parts = |doc: &Doc| (doc.id.to_string(), document(&text(pk, doc)));
    match op {
        Op::Create(doc) => {
            let (id, document) = parts(doc);
            Operation::Create { id, document }
        }
        Op::Upsert(doc) => {
            let (id, document) = parts(doc);
            Operation::Upsert { id, document }
        }
        Op::Replace(doc) => {
            let (id, document) = parts(doc);
            Operation::Replace { id, document }
        }
        Op::Patch(id, n) => {
            let path = Pointer::parse("/n").unwrap();
            let operations = vec![PatchOp::Set { path, value: ModelValue::Number(Number::Int(*n)) }];
            Operation::Patch { id: id.to_string(), operations, condition: None }
        }
        Op::Delete(id) => Operation::Delete { id: id.to_string() },
        Op::Read(id) => Operation::Read { id: id.to_string() },
    }
}

fn definition_json(default_ttl: Option<i32>) -> serde_json::Value {
    let mut json = json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}});
    if let Some(ttl) = default_ttl {
        json["defaultTtl"] = ttl.into();
    }
    json
}

/// A text with the time of its item.
fn stamped(text: &str, ts: u64) -> String {
    format!("{},\"_ts\":{ts}}}", &text[..text.len() - 1])
}

/// What a store may be, and what is done about it.
enum Ground {
    Good,
    Failing(Line, FaultRates),
}

impl Ground {
    /// Whether an error says no more than that the store was away.
    fn excuses(&self, error: &Error) -> bool {
        matches!(self, Ground::Failing(..))
            && matches!(
                error.kind,
                Kind::Unavailable | Kind::OutcomeUnknown | Kind::RangeGone | Kind::Conflict
            )
    }

    /// Asks until there is an answer. Only for what may be done twice.
    fn insist<T>(&self, mut ask: impl FnMut() -> orrery_engine::Result<T>) -> T {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            match ask() {
                Ok(value) => return value,
                Err(error) => {
                    assert!(self.excuses(&error), "{error:?}");
                    assert!(
                        Instant::now() < deadline,
                        "the store comes back and the container does not: {error:?}"
                    );
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// A write: `None` if nobody can say what came of it.
    fn write<T>(
        &self,
        mut write: impl FnMut() -> orrery_engine::Result<T>,
    ) -> Option<orrery_engine::Result<T>> {
        self.insist(|| match write() {
            Err(error) if self.excuses(&error) && error.kind == Kind::OutcomeUnknown => Ok(None),
            Err(error) if self.excuses(&error) => Err(error),
            answer => Ok(Some(answer)),
        })
    }

    /// Runs something that a bad store cannot be asked to do.
    fn calmly<T>(&self, run: impl FnOnce() -> T) -> T {
        if let Ground::Failing(line, _) = self {
            line.set(FaultRates::default());
        }
        let value = run();
        if let Ground::Failing(line, rates) = self {
            line.set(*rates);
        }
        value
    }
}

/// Which of two states the container is in, after a write of which nobody could say what came of it.
fn resolve(fixture: &Fixture, ground: &Ground, before: &Model, after: Model, step: &Step) -> Model {
    let shown = ground.insist(|| {
        let stamp = |item: &orrery_engine::Item| stamped(&text_of(item), u64::from(item.ts));
        let listed = fixture.try_items()?;
        let mut changes = Vec::new();
        for range in fixture.container.ranges() {
            changes.extend(fixture.try_changes(&Scope::Range(range.id))?.0.iter().map(stamp));
        }
        Ok((by_key(listed.iter().map(stamp).collect()), by_key(changes)))
    });
    if shown == after.signature() {
        return after;
    }
    assert_eq!(shown, before.signature(), "neither before nor after {step:?}");
    before.clone()
}

fn settle(jobs: &mut Vec<Arc<Job>>, ground: &Ground) {
    for job in jobs.drain(..) {
        // One that had nothing to cut or to join is refused, which is fine.
        match wait(job.done()) {
            Ok(_) => {}
            Err(error) if ground.excuses(&error) => {}
            Err(error) => assert!(matches!(error.kind, Kind::BadRequest | Kind::RangeGone), "{error:?}"),
        }
    }
}

/// Compares everything that can be listed. Between partitions there is no order, so with several of them only the
/// order within each key counts.
fn check(fixture: &Fixture, ground: &Ground, model: &Model, step: &Step) {
    let listed: Vec<String> = ground.insist(|| fixture.try_items()).iter().map(text_of).collect();
    assert_eq!(by_key(listed), by_key(model.texts(|item| item.created)), "after {step:?}");
    let changes: Vec<String> = loop {
        // A split that ends in between makes a range gone; then the map is read again, as clients do.
        let ranges = fixture.container.ranges();
        let read = |id| fixture.try_changes(&Scope::Range(id));
        let pages: Result<Vec<_>, _> = ranges.iter().map(|range| read(range.id)).collect();
        match pages {
            Ok(pages) if pages.len() == fixture.container.ranges().len() => {
                break pages.iter().flat_map(|(items, _)| items.iter().map(text_of)).collect();
            }
            Ok(_) => {}
            Err(error) => assert!(error.kind == Kind::RangeGone || ground.excuses(&error), "{error:?}"),
        }
    };
    assert_eq!(by_key(changes), by_key(model.texts(|item| item.changed)), "after {step:?}");
    for range in fixture.container.ranges() {
        // One that has just been split is gone, and so are its rows.
        if let Ok(partition) = fixture.container.partition(range.id)
            && let Ok(differences) = partition.check_index()
        {
            assert_eq!(differences, [""; 0], "after {step:?}");
        }
    }
}

fn by_key(mut texts: Vec<String>) -> Vec<String> {
    let key = |text: &String| serde_json::from_str::<serde_json::Value>(text).unwrap()["pk"].to_string();
    texts.sort_by_cached_key(key);
    texts
}

fn run(mut fixture: Fixture, ground: &Ground, steps: &[Step]) {
    let mut model = Model { items: Vec::new(), default_ttl: Some(-1), now_s: NOW_MS / 1000, clock: 0 };
    let mut jobs: Vec<Arc<Job>> = Vec::new();
    for step in steps {
        match step {
            Step::Write(pk, Op::Read(id)) => {
                let found = ground.insist(|| match fixture.read(&format!("p{pk}"), &id.to_string()) {
                    Err(error) if error.kind == Kind::NotFound => Ok(None),
                    found => found.map(|item| Some(text_of(&item))),
                });
                assert_eq!(found, model.find(*pk, *id).map(|item| text(*pk, &item.doc)), "{step:?}");
            }
            Step::Write(pk, op) => {
                let mut after = model.clone();
                let expected = after.apply(*pk, op);
                match ground.write(|| fixture.write(&format!("p{pk}"), operation(*pk, op))) {
                    Some(found) => {
                        let found = found.map(|reply| reply.outcome).map_err(|error| error.kind);
                        assert_eq!(found, expected, "{step:?}");
                        model = after;
                    }
                    None => model = resolve(&fixture, ground, &model, after, step),
                }
            }
            Step::Batch(pk, ops) => {
                let reply = ground.write(|| {
                    let operations: Vec<BatchOperation> =
                        ops.iter().map(|op| operation(*pk, op).into()).collect();
                    wait(fixture.container.write_batch(&key(&format!("p{pk}")), operations))
                });
                let mut next = model.clone();
                let mut expected: Vec<Result<Outcome, Kind>> = Vec::new();
                for op in ops {
                    let result = next.apply(*pk, op);
                    expected.push(result);
                    if result.is_err() {
                        break;
                    }
                }
                if expected.last().is_some_and(|last| last.is_err()) {
                    let culprit = expected.len() - 1;
                    expected.resize(ops.len(), Err(Kind::FailedDependency));
                    expected[..culprit].fill(Err(Kind::FailedDependency));
                    next = model.clone();
                }
                let Some(reply) = reply else {
                    model = resolve(&fixture, ground, &model, next, step);
                    check(&fixture, ground, &model, step);
                    continue;
                };
                model = next;
                let found: Vec<Result<Outcome, Kind>> = reply
                    .unwrap()
                    .results
                    .into_iter()
                    .map(|result| result.status.map_err(|error| error.kind))
                    .collect();
                assert_eq!(found, expected, "{step:?}");
            }
            Step::Purge(pk) => {
                ground.insist(|| wait(fixture.container.delete_partition_key(&key(&format!("p{pk}")))));
                model.items.retain(|item| item.pk != *pk);
            }
            Step::Advance(seconds) => {
                fixture.env.advance_ms(seconds * 1000);
                model.now_s += seconds;
            }
            Step::Sweep => {
                ground.insist(|| fixture.try_sweep());
                // Beside a handover a sweep may have had to leave things to the next.
                if jobs.is_empty() {
                    let live = model.texts(|item| item.created).len() as u64;
                    let stored = ground.insist(|| fixture.try_stored_items());
                    assert_eq!(stored, live, "a sweep leaves what is live");
                }
            }
            Step::Reopen => {
                settle(&mut jobs, ground);
                ground.calmly(|| fixture.reopen());
            }
            Step::Split => jobs.extend(fixture.account.split_partition(&fixture.container, None).ok()),
            Step::Merge => jobs.extend(fixture.account.merge_partitions(&fixture.container, None).ok()),
            Step::Settle => settle(&mut jobs, ground),
            Step::DefaultTtl(default_ttl) => {
                settle(&mut jobs, ground);
                // What is over and not yet removed would come back with a longer default.
                ground.insist(|| fixture.try_sweep());
                ground.insist(|| fixture.try_replace_definition(definition_json(*default_ttl)));
                model.default_ttl = *default_ttl;
            }
        }
        // Items that are over may have been removed for good by the account's own sweeper.
        let live: Vec<Stored> = model.items.iter().filter(|item| model.live(item)).cloned().collect();
        model.items = live;
        check(&fixture, ground, &model, step);
    }
    settle(&mut jobs, ground);
    // At the end everything that is left can be deleted, and then nothing is left of it.
    if let Ground::Failing(line, _) = ground {
        line.set(FaultRates::default());
    }
    for pk in 0..12 {
        ground.insist(|| wait(fixture.container.delete_partition_key(&key(&format!("p{pk}")))));
    }
    ground.insist(|| fixture.try_sweep());
    let usage = fixture.container.usage();
    assert_eq!((usage.items, usage.size_bytes), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_container_behaves_like_a_list_of_items(steps in prop::collection::vec(step(), 1..60)) {
        run(Fixture::new(definition_json(Some(-1))), &Ground::Good, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn so_does_one_on_disk_that_is_closed_and_opened(steps in prop::collection::vec(step(), 30..120)) {
        run(Fixture::embedded(definition_json(Some(-1))), &Ground::Good, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn so_does_one_whose_partitions_split_and_merge(steps in prop::collection::vec(reshaping_step(), 20..120)) {
        run(Fixture::new(definition_json(Some(-1))), &Ground::Good, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn so_does_one_on_disk_whose_partitions_split_and_merge(
        steps in prop::collection::vec(reshaping_step(), 30..120)
    ) {
        run(Fixture::embedded(definition_json(Some(-1))), &Ground::Good, &steps);
    }
}

/// Runs over a store that fails at random, by a seed that a failure shows.
fn run_failing(seed: u64, steps: &[Step]) {
    let store = Flaky::new(MemoryStore::new(), seed);
    let line = store.line();
    let rates = FaultRates { commits: 60, claims: 150, hangs: 20, hang_max: Duration::from_millis(3) };
    let store: Arc<dyn Store> = Arc::new(store);
    let fixture = Fixture::over(store, EngineConfig::default(), definition_json(Some(-1)), 400);
    line.set(rates);
    run(fixture, &Ground::Failing(line, rates), steps);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn so_does_one_whose_store_fails_and_comes_back(
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 20..80)
    ) {
        run_failing(seed, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn so_does_one_whose_partitions_split_and_merge_over_such_a_store(
        seed in any::<u64>(),
        steps in prop::collection::vec(reshaping_step(), 20..100)
    ) {
        run_failing(seed, &steps);
    }
}
