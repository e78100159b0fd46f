//! Decorators of the trait that serve as test doubles: a store that fails for good, a store that fails and comes back
//! (`flaky`), a store that counts, two stores compared.
//!
//! They wrap real stores. What is tested through them is the caller's handling, never a made-up store's behaviour.

mod flaky;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::queue::{Gather, Queue};
use crate::store::{
    Claim, Commit, Direction, Done, Durability, Epoch, Fork, KeyRange, Row, RowIterator, Snapshot, Space,
    SpaceId, SpaceStats, Store, StoreError, StoreStats, Table,
};

pub use flaky::{Fault, FaultRates, Flaky, Line};

/// Fails the commit with this number (counted from 1 over all spaces) and every later one, as a store does whose disk
/// has failed. Reads go on.
pub struct FailAfter<S> {
    inner: S,
    left: Arc<AtomicU64>,
}

impl<S: Store> FailAfter<S> {
    /// The first `commits` commits succeed.
    pub fn new(inner: S, commits: u64) -> FailAfter<S> {
        FailAfter { inner, left: Arc::new(AtomicU64::new(commits)) }
    }
}

fn failed() -> StoreError {
    StoreError::WritesStopped("a test made it fail".into())
}

/// Takes one of the commits that are left.
fn take(left: &AtomicU64) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

impl<S: Store> Store for FailAfter<S> {
    fn claim_space(&self, id: SpaceId, claim: Claim) -> Result<Arc<dyn Space>, StoreError> {
        Ok(Arc::new(FailingSpace { inner: self.inner.claim_space(id, claim)?, left: self.left.clone() }))
    }

    fn drop_space(&self, id: SpaceId) -> Result<(), StoreError> {
        if take(&self.left) { self.inner.drop_space(id) } else { Err(failed()) }
    }

    fn fork_spaces(&self, forks: &[Fork]) -> Result<(), StoreError> {
        self.inner.fork_spaces(forks)
    }

    fn blocking(&self) -> bool {
        self.inner.blocking()
    }

    fn stats(&self) -> StoreStats {
        let writes_stopped = self.left.load(Ordering::SeqCst) == 0;
        StoreStats { writes_stopped, ..self.inner.stats() }
    }

    fn close(&self) -> Result<(), StoreError> {
        self.inner.close()
    }
}

struct FailingSpace {
    inner: Arc<dyn Space>,
    left: Arc<AtomicU64>,
}

impl Space for FailingSpace {
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
        if take(&self.left) {
            return self.inner.submit(commit, durability, done);
        }
        // Through the queue of the real store: the answer comes in its turn and on the store's thread.
        self.inner.submit(Commit::default(), durability, Box::new(move |_| done(Err(failed()))));
    }

    fn stats(&self) -> SpaceStats {
        self.inner.stats()
    }
}

/// Counts the calls, to show what an operation costs.
pub struct Counting<S> {
    inner: S,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    commits: AtomicU64,
    rows_written: AtomicU64,
    snapshots: AtomicU64,
    gets: AtomicU64,
    scans: AtomicU64,
    rows_scanned: AtomicU64,
}

/// What was counted so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    pub commits: u64,
    pub rows_written: u64,
    pub snapshots: u64,
    pub gets: u64,
    pub scans: u64,
    pub rows_scanned: u64,
}

fn add(count: &AtomicU64, by: usize) {
    count.fetch_add(by as u64, Ordering::Relaxed);
}

impl<S: Store> Counting<S> {
    pub fn new(inner: S) -> Counting<S> {
        Counting { inner, counts: Arc::default() }
    }

    pub fn counted(&self) -> Counted {
        let counts = &self.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counted {
            commits: read(&counts.commits),
            rows_written: read(&counts.rows_written),
            snapshots: read(&counts.snapshots),
            gets: read(&counts.gets),
            scans: read(&counts.scans),
            rows_scanned: read(&counts.rows_scanned),
        }
    }
}

impl<S: Store> Store for Counting<S> {
    fn claim_space(&self, id: SpaceId, claim: Claim) -> Result<Arc<dyn Space>, StoreError> {
        Ok(Arc::new(CountingSpace { inner: self.inner.claim_space(id, claim)?, counts: self.counts.clone() }))
    }

    fn drop_space(&self, id: SpaceId) -> Result<(), StoreError> {
        self.inner.drop_space(id)
    }

    fn fork_spaces(&self, forks: &[Fork]) -> Result<(), StoreError> {
        self.inner.fork_spaces(forks)
    }

    fn blocking(&self) -> bool {
        self.inner.blocking()
    }

    fn stats(&self) -> StoreStats {
        self.inner.stats()
    }

    fn close(&self) -> Result<(), StoreError> {
        self.inner.close()
    }
}

struct CountingSpace {
    inner: Arc<dyn Space>,
    counts: Arc<Counts>,
}

impl Space for CountingSpace {
    fn id(&self) -> SpaceId {
        self.inner.id()
    }

    fn epoch(&self) -> Epoch {
        self.inner.epoch()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        add(&self.counts.snapshots, 1);
        Ok(Box::new(CountingSnapshot { inner: self.inner.snapshot()?, counts: self.counts.clone() }))
    }

    fn check_room(&self, commit: &Commit) -> Result<(), StoreError> {
        self.inner.check_room(commit)
    }

    fn submit(&self, commit: Commit, durability: Durability, done: Done) {
        add(&self.counts.commits, 1);
        add(&self.counts.rows_written, commit.changes.len());
        self.inner.submit(commit, durability, done);
    }

    fn stats(&self) -> SpaceStats {
        self.inner.stats()
    }
}

struct CountingSnapshot {
    inner: Box<dyn Snapshot>,
    counts: Arc<Counts>,
}

impl Snapshot for CountingSnapshot {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        add(&self.counts.gets, 1);
        self.inner.get(table, key)
    }

    fn get_many(&self, table: Table, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, StoreError> {
        add(&self.counts.gets, keys.len());
        self.inner.get_many(table, keys)
    }

    fn scan(&self, table: Table, range: KeyRange, direction: Direction) -> Box<dyn RowIterator> {
        add(&self.counts.scans, 1);
        Box::new(CountingRows {
            inner: self.inner.scan(table, range, direction),
            counts: self.counts.clone(),
        })
    }
}

struct CountingRows {
    inner: Box<dyn RowIterator>,
    counts: Arc<Counts>,
}

impl RowIterator for CountingRows {
    fn next_row(&mut self) -> Option<Result<Row, StoreError>> {
        let row = self.inner.next_row();
        add(&self.counts.rows_scanned, row.is_some().into());
        row
    }
}

/// Writes to two stores and compares every read; panics when they differ.
///
/// A thread of its own gives both stores the same order of commits. It holds `pair` while the two differ, so a snapshot
/// is of the same moment in both.
pub struct Mirror<A, B> {
    stores: Arc<(A, B)>,
    worker: Arc<Worker>,
}

struct Worker {
    jobs: Queue<Box<dyn FnOnce() + Send>>,
    pair: Mutex<()>,
}

impl<A: Store + 'static, B: Store + 'static> Mirror<A, B> {
    pub fn new(a: A, b: B) -> Mirror<A, B> {
        let worker = Arc::new(Worker { jobs: Queue::new(), pair: Mutex::new(()) });
        let thread = worker.clone();
        std::thread::spawn(move || {
            let mut jobs = Vec::new();
            while thread.jobs.take(&mut jobs, Gather::default()) {
                jobs.drain(..).for_each(|job| job());
            }
        });
        Mirror { stores: Arc::new((a, b)), worker }
    }

    /// Does the same with both stores, behind what was submitted before.
    fn both<X: Send + 'static, Y: Send + 'static>(
        &self,
        what: &'static str,
        a: impl FnOnce(&A) -> Result<X, StoreError> + Send + 'static,
        b: impl FnOnce(&B) -> Result<Y, StoreError> + Send + 'static,
    ) -> Result<(X, Y), StoreError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let (stores, worker) = (self.stores.clone(), self.worker.clone());
        self.worker.jobs.push_control(Box::new(move || {
            let _pair = worker.pair.lock();
            let _ = sender.send((a(&stores.0), b(&stores.1)));
        }));
        let (a, b) = receiver.recv().expect("the worker answers");
        same(what, a, b)
    }
}

impl<A, B> Drop for Mirror<A, B> {
    fn drop(&mut self) {
        self.worker.jobs.end();
    }
}

impl<A: Store + 'static, B: Store + 'static> Store for Mirror<A, B> {
    fn claim_space(&self, id: SpaceId, claim: Claim) -> Result<Arc<dyn Space>, StoreError> {
        let claimed =
            self.both("claim_space", move |a| a.claim_space(id, claim), move |b| b.claim_space(id, claim))?;
        let (a, b) = claimed;
        Ok(Arc::new(MirrorSpace { a, b, worker: self.worker.clone() }))
    }

    fn drop_space(&self, id: SpaceId) -> Result<(), StoreError> {
        self.both("drop_space", move |a| a.drop_space(id), move |b| b.drop_space(id)).map(|_| ())
    }

    fn fork_spaces(&self, forks: &[Fork]) -> Result<(), StoreError> {
        let (a, b) = (forks.to_vec(), forks.to_vec());
        self.both("fork_spaces", move |store| store.fork_spaces(&a), move |store| store.fork_spaces(&b))
            .map(|_| ())
    }

    fn blocking(&self) -> bool {
        self.stores.0.blocking() || self.stores.1.blocking()
    }

    fn stats(&self) -> StoreStats {
        self.stores.0.stats()
    }

    fn close(&self) -> Result<(), StoreError> {
        self.both("close", |a| a.close(), |b| b.close()).map(|_| ())
    }
}

/// Both succeed, or both fail in the same way; anything else is what the mirror is there to find.
fn same<A, B>(what: &str, a: Result<A, StoreError>, b: Result<B, StoreError>) -> Result<(A, B), StoreError> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(a), Err(b)) if std::mem::discriminant(&a) == std::mem::discriminant(&b) => Err(a),
        (a, b) => panic!("the stores differ in {what}: {:?} and {:?}", a.err(), b.err()),
    }
}

struct MirrorSpace {
    a: Arc<dyn Space>,
    b: Arc<dyn Space>,
    worker: Arc<Worker>,
}

impl Space for MirrorSpace {
    fn id(&self) -> SpaceId {
        self.a.id()
    }

    fn epoch(&self) -> Epoch {
        self.a.epoch()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        let _pair = self.worker.pair.lock();
        let (a, b) = same("snapshot", self.a.snapshot(), self.b.snapshot())?;
        Ok(Box::new(MirrorSnapshot { a, b }))
    }

    fn submit(&self, commit: Commit, durability: Durability, done: Done) {
        let (a, b, worker) = (self.a.clone(), self.b.clone(), self.worker.clone());
        let bytes = commit.size_bytes();
        let job = move || {
            let pair = worker.pair.lock();
            let result = same("commit", a.commit(commit.clone(), durability), b.commit(commit, durability));
            drop(pair);
            done(result.map(|_| ()));
        };
        self.worker.jobs.push(Box::new(job), bytes);
    }

    fn stats(&self) -> SpaceStats {
        self.a.stats()
    }
}

struct MirrorSnapshot {
    a: Box<dyn Snapshot>,
    b: Box<dyn Snapshot>,
}

impl Snapshot for MirrorSnapshot {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let (a, b) = same("get", self.a.get(table, key), self.b.get(table, key))?;
        assert_eq!(a, b, "the stores differ in {table:?} {:?}", key.escape_ascii().to_string());
        Ok(a)
    }

    fn scan(&self, table: Table, range: KeyRange, direction: Direction) -> Box<dyn RowIterator> {
        let (a, b) = (self.a.scan(table, range.clone(), direction), self.b.scan(table, range, direction));
        Box::new(MirrorRows { a, b })
    }
}

struct MirrorRows {
    a: Box<dyn RowIterator>,
    b: Box<dyn RowIterator>,
}

impl RowIterator for MirrorRows {
    fn next_row(&mut self) -> Option<Result<Row, StoreError>> {
        match (self.a.next_row(), self.b.next_row()) {
            (None, None) => None,
            (Some(a), Some(b)) => Some(same("scan", a, b).map(|(a, b)| {
                assert_eq!(a, b, "the stores differ in a scan");
                a
            })),
            (a, b) => panic!("the stores differ in a scan: {a:?} and {b:?}"),
        }
    }
}
