//! A store behind a line that fails and comes back, as a store on other machines does.
//!
//! A commit may be refused, get lost on its way, be written without an answer, be held up, or find that the space has
//! another owner. Once one of a handle has failed all later ones fail; those behind a commit that was written without
//! an answer may be written as well, in order, until one is lost. Claims and drops fail too, before they were done or
//! after. Rows are read from the store itself: nobody is shown anything that is not there.
//!
//! What happens follows from a seed, or is asked for (`Line::fail_next`, `Line::cut`). A thread of its own stands for
//! the one connection: when it is held up, everybody is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::queue::{Gather, Queue};
use crate::store::{
    Claim, Commit, Done, Durability, Epoch, Fork, Snapshot, Space, SpaceId, SpaceStats, Store, StoreError,
    StoreStats,
};

/// What can happen to a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is written, and the answer says so.
    Refuse,
    /// Nothing is written, and nobody can tell.
    LoseRequest,
    /// It is written, and nobody can tell.
    LoseAnswer,
    /// Another owner takes the space just before.
    LoseOwnership,
}

const FAULTS: [Fault; 4] = [Fault::Refuse, Fault::LoseRequest, Fault::LoseAnswer, Fault::LoseOwnership];

/// How often things go wrong, in thousandths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultRates {
    /// Commits that meet one of the faults.
    pub commits: u32,
    /// Claims and drops that fail.
    pub claims: u32,
    /// Commits that are held up for up to `hang_max`.
    pub hangs: u32,
    pub hang_max: Duration,
}

/// The line between a caller and the store, to be made good and bad.
#[derive(Clone)]
pub struct Line(Arc<LineState>);

struct LineState {
    condition: Mutex<Condition>,
    faults: AtomicU64,
}

struct Condition {
    /// Of the generator; never the same twice.
    random: u64,
    rates: FaultRates,
    asked_for: VecDeque<Asked>,
    cut: bool,
}

/// What the next commit was asked to meet.
#[derive(Clone, Copy, Default)]
struct Asked {
    fault: Option<Fault>,
    /// And nothing gets through afterwards.
    cut: bool,
}

impl Condition {
    /// splitmix64.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn happens(&mut self, in_a_thousand: u32) -> bool {
        in_a_thousand > 0 && self.random() % 1000 < u64::from(in_a_thousand)
    }
}

impl Line {
    pub fn set(&self, rates: FaultRates) {
        self.0.condition.lock().rates = rates;
    }

    /// The next commit of any space meets this.
    pub fn fail_next(&self, fault: Fault) {
        self.ask(0, Asked { fault: Some(fault), cut: false });
    }

    /// So many commits succeed, the next one meets this, and then nothing gets through until `mend`.
    pub fn cut_after(&self, commits: usize, fault: Fault) {
        self.ask(commits, Asked { fault: Some(fault), cut: true });
    }

    fn ask(&self, commits: usize, asked: Asked) {
        let mut condition = self.0.condition.lock();
        condition.asked_for.clear();
        condition.asked_for.resize(commits, Asked::default());
        condition.asked_for.push_back(asked);
    }

    /// Whether something was asked for that no commit has met yet.
    pub fn is_waiting(&self) -> bool {
        !self.0.condition.lock().asked_for.is_empty()
    }

    /// Nothing gets through until `mend`.
    pub fn cut(&self) {
        self.0.condition.lock().cut = true;
    }

    pub fn mend(&self) {
        let mut condition = self.0.condition.lock();
        condition.asked_for.clear();
        condition.cut = false;
    }

    /// How often something has gone wrong.
    pub fn faults(&self) -> u64 {
        self.0.faults.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.0.faults.fetch_add(1, Ordering::Relaxed);
    }

    /// What happens to the next commit, after which time.
    fn decide(&self) -> (Option<Fault>, Duration) {
        let mut condition = self.0.condition.lock();
        let rates = condition.rates;
        let mut wait = Duration::ZERO;
        if condition.happens(rates.hangs) {
            let most = (rates.hang_max.as_micros() as u64).max(1);
            wait = Duration::from_micros(condition.random() % most);
        }
        let fault = if let Some(asked) = condition.asked_for.pop_front() {
            condition.cut |= asked.cut;
            asked.fault
        } else if condition.cut {
            Some(Fault::LoseRequest)
        } else if condition.happens(rates.commits) {
            Some(FAULTS[condition.random() as usize % FAULTS.len()])
        } else {
            None
        };
        if fault.is_some() {
            self.count();
        }
        (fault, wait)
    }

    /// Whether a claim or a drop gets through, and whether its answer does.
    fn decide_control(&self) -> (bool, bool) {
        let mut condition = self.0.condition.lock();
        if condition.cut {
            return (false, false);
        }
        let rate = condition.rates.claims;
        if !condition.happens(rate) {
            return (true, true);
        }
        self.count();
        (condition.random().is_multiple_of(2), false)
    }

    fn coin(&self) -> bool {
        self.0.condition.lock().random().is_multiple_of(2)
    }
}

pub struct Flaky<S> {
    wire: Arc<Wire<S>>,
    /// Ends the thread when the store and every handle are gone.
    lifetime: Arc<Lifetime>,
}

struct Wire<S> {
    inner: S,
    line: Line,
}

type Jobs = Arc<Queue<Box<dyn FnOnce() + Send>>>;

struct Lifetime(Jobs);

impl Drop for Lifetime {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable("the line is down".into())
}

impl<S: Store + 'static> Flaky<S> {
    /// Nothing goes wrong before the line is told to.
    pub fn new(inner: S, seed: u64) -> Flaky<S> {
        let condition =
            Condition { random: seed, rates: FaultRates::default(), asked_for: VecDeque::new(), cut: false };
        let line = Line(Arc::new(LineState { condition: Mutex::new(condition), faults: AtomicU64::new(0) }));
        let jobs: Jobs = Arc::new(Queue::new());
        let thread = jobs.clone();
        std::thread::spawn(move || {
            let mut group = Vec::new();
            while thread.take(&mut group, Gather::default()) {
                group.drain(..).for_each(|job| job());
            }
        });
        Flaky { wire: Arc::new(Wire { inner, line }), lifetime: Arc::new(Lifetime(jobs)) }
    }

    pub fn line(&self) -> Line {
        self.wire.line.clone()
    }

    /// Does something with the store behind everything that was submitted before.
    fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&S) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let wire = self.wire.clone();
        self.lifetime.0.push_control(Box::new(move || {
            let (arrives, answered) = wire.line.decide_control();
            let result = if arrives { ask(&wire.inner) } else { Err(unavailable()) };
            drop(sender.send(if answered { result } else { Err(unavailable()) }));
        }));
        receiver.recv().unwrap_or(Err(StoreError::Closed))
    }
}

impl<S: Store + 'static> Store for Flaky<S> {
    fn claim_space(&self, id: SpaceId, claim: Claim) -> Result<Arc<dyn Space>, StoreError> {
        let inner = self.ask(move |inner| inner.claim_space(id, claim))?;
        let handle = Arc::new(Mutex::new(HandleState::default()));
        Ok(Arc::new(FlakySpace { inner, handle, wire: self.wire.clone(), lifetime: self.lifetime.clone() }))
    }

    fn drop_space(&self, id: SpaceId) -> Result<(), StoreError> {
        self.ask(move |inner| inner.drop_space(id))
    }

    fn fork_spaces(&self, forks: &[Fork]) -> Result<(), StoreError> {
        let forks = forks.to_vec();
        self.ask(move |inner| inner.fork_spaces(&forks))
    }

    fn blocking(&self) -> bool {
        self.wire.inner.blocking()
    }

    fn stats(&self) -> StoreStats {
        self.wire.inner.stats()
    }

    fn close(&self) -> Result<(), StoreError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let wire = self.wire.clone();
        self.lifetime.0.push_control(Box::new(move || drop(sender.send(wire.inner.close()))));
        receiver.recv().unwrap_or(Err(StoreError::Closed))
    }
}

#[derive(Default)]
struct HandleState {
    /// The first failure: later commits may build on the failed one, so they fail with it.
    failed: Option<StoreError>,
    /// Nothing has been lost yet, only answers: what comes next may still be written.
    written: bool,
}

struct FlakySpace<S> {
    inner: Arc<dyn Space>,
    handle: Arc<Mutex<HandleState>>,
    wire: Arc<Wire<S>>,
    lifetime: Arc<Lifetime>,
}

impl<S: Store + 'static> Space for FlakySpace<S> {
    fn id(&self) -> SpaceId {
        self.inner.id()
    }

    fn epoch(&self) -> Epoch {
        self.inner.epoch()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        self.inner.snapshot()
    }

    fn check_room(&self, commit: &Commit) -> Result<(), StoreError> {
        self.inner.check_room(commit)
    }

    fn submit(&self, commit: Commit, durability: Durability, done: Done) {
        let bytes = commit.size_bytes();
        let (inner, handle, wire) = (self.inner.clone(), self.handle.clone(), self.wire.clone());
        let job = move || {
            let result = handle.lock().commit(&wire, &*inner, commit, durability);
            done(result);
        };
        self.lifetime.0.push(Box::new(job), bytes);
    }

    fn stats(&self) -> SpaceStats {
        self.inner.stats()
    }
}

impl HandleState {
    fn commit<S: Store>(
        &mut self,
        wire: &Wire<S>,
        inner: &dyn Space,
        commit: Commit,
        durability: Durability,
    ) -> Result<(), StoreError> {
        if let Some(failed) = &self.failed {
            self.written = self.written && wire.line.coin() && inner.commit(commit, durability).is_ok();
            return Err(failed.clone());
        }
        let (fault, wait) = wire.line.decide();
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        let result = match fault {
            None => inner.commit(commit, durability),
            Some(Fault::Refuse) => Err(unavailable()),
            Some(Fault::LoseRequest) => Err(StoreError::OutcomeUnknown("no answer".into())),
            Some(Fault::LoseAnswer) => {
                let written = inner.commit(commit, durability);
                self.written = written.is_ok();
                written.and(Err(StoreError::OutcomeUnknown("no answer".into())))
            }
            Some(Fault::LoseOwnership) => {
                let taken = wire.inner.open_space(inner.id()).map(drop);
                taken.and_then(|()| inner.commit(commit, durability))
            }
        };
        if let Err(error) = &result {
            self.failed = Some(error.clone());
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;
    use crate::store::{Failure, Table};
    use crate::suite::suite;

    const SPACE: SpaceId = SpaceId(3);

    fn put(space: &dyn Space, key: &'static str) -> Result<(), StoreError> {
        let mut commit = Commit::default();
        commit.put(Table::Items, key, "");
        space.commit(commit, Durability::Strict)
    }

    fn has(space: &dyn Space, key: &str) -> bool {
        space.snapshot().unwrap().get(Table::Items, key.as_bytes()).unwrap().is_some()
    }

    #[test]
    fn a_good_line_changes_nothing() {
        suite(&|| Arc::new(Flaky::new(MemoryStore::new(), 1)));
    }

    #[test]
    fn each_fault_is_told_as_what_it_is_and_ends_the_handle() {
        for (fault, failure, written) in [
            (Fault::Refuse, Failure::Refused, false),
            (Fault::LoseRequest, Failure::OutcomeUnknown, false),
            (Fault::LoseAnswer, Failure::OutcomeUnknown, true),
            (Fault::LoseOwnership, Failure::OwnershipLost, false),
        ] {
            let store = Flaky::new(MemoryStore::new(), 1);
            let space = store.open_space(SPACE).unwrap();
            put(&*space, "before").unwrap();
            store.line().fail_next(fault);
            assert_eq!(put(&*space, "failed").unwrap_err().failure(), failure, "{fault:?}");
            assert_eq!(put(&*space, "later").unwrap_err().failure(), failure, "{fault:?}");
            let renewed = store.claim_space(SPACE, Claim::Renew(space.epoch()));
            let again = match fault {
                Fault::LoseOwnership => {
                    assert_eq!(renewed.err().unwrap().failure(), Failure::OwnershipLost);
                    store.open_space(SPACE).unwrap()
                }
                _ => renewed.unwrap(),
            };
            assert!(has(&*again, "before") && has(&*again, "failed") == written, "{fault:?}");
            assert_eq!(put(&*space, "late").unwrap_err().failure(), failure, "{fault:?}");
            assert!(!has(&*again, "late"));
            put(&*again, "again").unwrap();
        }
    }

    #[test]
    fn nothing_gets_through_a_line_that_is_cut() {
        let store = Flaky::new(MemoryStore::new(), 1);
        let space = store.open_space(SPACE).unwrap();
        store.line().cut();
        assert_eq!(put(&*space, "a").unwrap_err().failure(), Failure::OutcomeUnknown);
        assert!(matches!(store.open_space(SPACE), Err(StoreError::Unavailable(_))));
        assert!(matches!(store.drop_space(SPACE), Err(StoreError::Unavailable(_))));
        store.line().mend();
        let space = store.claim_space(SPACE, Claim::Renew(space.epoch())).unwrap();
        assert!(!has(&*space, "a"));
        put(&*space, "b").unwrap();
    }

    #[test]
    fn what_is_written_behind_a_lost_answer_is_written_in_order() {
        for seed in 0..50 {
            let store = Flaky::new(MemoryStore::new(), seed);
            let space = store.open_space(SPACE).unwrap();
            store.line().fail_next(Fault::LoseAnswer);
            let keys = ["0", "1", "2", "3", "4", "5"];
            for key in keys {
                let mut commit = Commit::default();
                commit.put(Table::Items, key, "");
                space.submit(commit, Durability::Strict, Box::new(|result| assert!(result.is_err())));
            }
            let again = store.open_space(SPACE).unwrap();
            let there: Vec<bool> = keys.iter().map(|key| has(&*again, key)).collect();
            assert!(there[0] && there.windows(2).all(|pair| pair[0] || !pair[1]), "seed {seed}: {there:?}");
        }
    }
}
