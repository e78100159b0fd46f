//! Splits and merges of physical partitions, while they serve.
//!
//! ```text
//! queued ─ planning ─ copying ─ catching up ─ handing over ─ done
//!             │          │           │             │
//!             └──────────┴───────────┴─────────────┴──── failed: the old partitions go on
//! ```
//!
//! One thread does one job after the other. A *split* cuts a range where about half of its bytes lie on each side,
//! never inside an effective key; a *merge* joins two neighbours. Both build new partitions beside the old ones and
//! hand over in a pause of milliseconds (`partition::copy`, `catalog::reshape`). The copy works and rests in equal
//! parts, so that it takes at most half a core, and its space on disk is at most what the old partitions hold; theirs
//! is freed afterwards.
//!
//! Jobs come from requests, and once a second from a look at the containers: a partition at its size limit, or fewer
//! partitions than the provisioned throughput asks for, is a job. A partition whose whole content is one logical
//! partition cannot be split; it is not tried again before it has grown noticeably.

mod due;
mod job;
mod run;

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

pub use job::{Job, JobKind, JobProgress, JobReason, JobStep};

use crate::account::Account;
use crate::container::Container;
use crate::error::{Error, Kind, Result};

/// Jobs that may wait.
const JOBS_MAX: usize = 1_000;
/// Finished jobs that are remembered.
const FINISHED_MAX: usize = 100;
/// How often containers are looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The jobs of an account, and the thread that does them.
pub(crate) struct Splits {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Inner {
    state: Mutex<JobQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct JobQueue {
    stopping: bool,
    next_number: u64,
    waiting: VecDeque<Arc<Job>>,
    running: Option<Arc<Job>>,
    finished: VecDeque<Arc<Job>>,
    figures: SplitFigures,
}

/// What splits and merges have come to since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SplitFigures {
    pub splits: u64,
    pub merges: u64,
    pub failures: u64,
    /// How long writers have waited for handovers.
    pub paused_us: u64,
    /// Waiting or running.
    pub jobs: u64,
    /// Of the job that runs.
    pub items_total: u64,
    pub items_copied: u64,
}

impl Splits {
    pub(crate) fn start(account: &Weak<Account>) -> Splits {
        let inner = Arc::new(Inner::default());
        let (worker, account) = (inner.clone(), account.clone());
        let thread = std::thread::Builder::new()
            .name("orrery-splitter".to_owned())
            .spawn(move || worker.run(&account))
            .map_err(|error| tracing::warn!(%error, "the splitter could not be started; partitions will not split"))
            .ok();
        Splits { inner, thread: Mutex::new(thread) }
    }

    /// Gives up what is under way, which leaves the old partitions as they are, and ends the thread.
    pub(crate) fn stop(&self) {
        self.inner.state.lock().stopping = true;
        self.inner.changed.notify_all();
        if let Some(thread) = self.thread.lock().take()
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the splitter ended by a panic");
        }
    }

    pub(crate) fn submit(
        &self,
        container: &Arc<Container>,
        kind: JobKind,
        parents: Vec<u32>,
        reason: JobReason,
    ) -> Result<Arc<Job>> {
        let mut state = self.inner.state.lock();
        if state.stopping {
            return Err(Error::new(Kind::WritesStopped, "The server is shutting down."));
        }
        let same = |job: &&Arc<Job>| {
            Arc::ptr_eq(&job.container, container) && job.parents.iter().any(|id| parents.contains(id))
        };
        if state.running.iter().chain(&state.waiting).any(|job| same(&job)) {
            return Err(Error::new(Kind::Conflict, "The partition is already being split or merged."));
        }
        if state.waiting.len() >= JOBS_MAX {
            let message = "Too many splits and merges are waiting.";
            return Err(Error::new(Kind::Throttled { retry_after_ms: 1_000 }, message));
        }
        state.next_number += 1;
        let job = Arc::new(Job::new(state.next_number, container.clone(), kind, parents, reason));
        state.waiting.push_back(job.clone());
        self.inner.changed.notify_all();
        Ok(job)
    }

    /// Everything that waits, runs, or ended lately; the latest first.
    pub(crate) fn jobs(&self) -> Vec<Arc<Job>> {
        let state = self.inner.state.lock();
        let all = state.waiting.iter().rev().chain(&state.running).chain(state.finished.iter().rev());
        all.cloned().collect()
    }
}

impl Splits {
    fn figures(&self) -> SplitFigures {
        let state = self.inner.state.lock();
        let running = state.running.as_ref().map(|job| job.progress());
        SplitFigures {
            jobs: state.waiting.len() as u64 + u64::from(state.running.is_some()),
            items_total: running.as_ref().map_or(0, |job| job.items_total),
            items_copied: running.as_ref().map_or(0, |job| job.items_copied),
            ..state.figures
        }
    }
}

impl Drop for Splits {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Inner {
    fn run(&self, account: &Weak<Account>) {
        loop {
            let job = {
                let mut state = self.state.lock();
                if state.waiting.is_empty() && !state.stopping {
                    self.changed.wait_for(&mut state, LOOK_INTERVAL);
                }
                if state.stopping {
                    return;
                }
                state.running = state.waiting.pop_front();
                state.running.clone()
            };
            let Some(account) = account.upgrade() else { return };
            match job {
                Some(job) => {
                    run::run(&account, &job, &|| self.state.lock().stopping);
                    let mut state = self.state.lock();
                    state.running = None;
                    let progress = job.progress();
                    state.figures.paused_us += progress.paused_us;
                    match (progress.step, job.kind) {
                        (JobStep::Done, JobKind::Split) => state.figures.splits += 1,
                        (JobStep::Done, JobKind::Merge) => state.figures.merges += 1,
                        _ => state.figures.failures += 1,
                    }
                    if state.finished.len() >= FINISHED_MAX {
                        state.finished.pop_front();
                    }
                    state.finished.push_back(job);
                }
                None => due::look(&account),
            }
        }
    }
}

/// Splits and merges on demand.
impl Account {
    /// Splits a range, or the largest one. The job says how it goes on.
    pub fn split_partition(&self, container: &Arc<Container>, range_id: Option<u32>) -> Result<Arc<Job>> {
        if container.definition().partition_key.system_key {
            return Err(Error::bad_request(
                "A container without a partition key has one partition for ever.",
            ));
        }
        let range_id = match range_id {
            Some(id) => container.partition(id)?.range_id(),
            None => due::largest(container)?,
        };
        self.splits().submit(container, JobKind::Split, vec![range_id], JobReason::Demand)
    }

    /// Merges a range with its right neighbour, or the two neighbours that hold least.
    pub fn merge_partitions(&self, container: &Arc<Container>, range_id: Option<u32>) -> Result<Arc<Job>> {
        let pair = due::pair_to_merge(self, container, range_id)?;
        self.splits().submit(container, JobKind::Merge, pair.to_vec(), JobReason::Demand)
    }

    pub fn split_figures(&self) -> SplitFigures {
        self.splits().figures()
    }

    /// Splits and merges that wait, run, or ended lately; the latest first.
    pub fn split_jobs(&self) -> Vec<Arc<Job>> {
        self.splits().jobs()
    }
}
