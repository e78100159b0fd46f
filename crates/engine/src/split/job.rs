//! One split or merge: what it is about, how far it is, and how it ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use futures_channel::oneshot;
use parking_lot::Mutex;

use crate::container::Container;
use crate::error::{Error, Kind, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    Split,
    Merge,
}

impl JobKind {
    pub fn name(self) -> &'static str {
        match self {
            JobKind::Split => "split",
            JobKind::Merge => "merge",
        }
    }
}

/// Why a job exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobReason {
    /// Someone asked.
    Demand,
    /// The partition has reached its size limit.
    Size,
    /// The provisioned throughput asks for more partitions.
    Throughput,
}

impl JobReason {
    pub fn name(self) -> &'static str {
        match self {
            JobReason::Demand => "demand",
            JobReason::Size => "size",
            JobReason::Throughput => "throughput",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum JobStep {
    Queued = 0,
    Planning = 1,
    Copying = 2,
    CatchingUp = 3,
    HandingOver = 4,
    Done = 5,
    Failed = 6,
}

const STEPS: [(JobStep, &str); 7] = [
    (JobStep::Queued, "queued"),
    (JobStep::Planning, "planning"),
    (JobStep::Copying, "copying"),
    (JobStep::CatchingUp, "catching up"),
    (JobStep::HandingOver, "handing over"),
    (JobStep::Done, "done"),
    (JobStep::Failed, "failed"),
];

impl JobStep {
    pub fn name(self) -> &'static str {
        STEPS[self as usize].1
    }

    pub fn is_end(self) -> bool {
        matches!(self, JobStep::Done | JobStep::Failed)
    }
}

pub struct Job {
    pub number: u64,
    pub kind: JobKind,
    pub reason: JobReason,
    pub container: Arc<Container>,
    pub parents: Vec<u32>,
    step: AtomicU8,
    pub(super) items_total: AtomicU64,
    pub(super) items_copied: AtomicU64,
    pub(super) changes_applied: AtomicU64,
    pub(super) paused_us: Arc<AtomicU64>,
    pub(super) took_ms: AtomicU64,
    end: Mutex<End>,
}

#[derive(Default)]
struct End {
    children: Vec<u32>,
    failure: Option<(Kind, String)>,
    waiting: Vec<oneshot::Sender<()>>,
}

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobProgress {
    pub step: JobStep,
    pub items_total: u64,
    pub items_copied: u64,
    /// Changes that were made while the copy ran and have been applied to it.
    pub changes_applied: u64,
    /// How long writers had to wait.
    pub paused_us: u64,
    pub took_ms: u64,
    pub children: Vec<u32>,
    pub failure: Option<String>,
}

impl Job {
    pub(super) fn new(
        number: u64,
        container: Arc<Container>,
        kind: JobKind,
        parents: Vec<u32>,
        reason: JobReason,
    ) -> Job {
        Job {
            number,
            kind,
            reason,
            container,
            parents,
            step: AtomicU8::new(JobStep::Queued as u8),
            items_total: AtomicU64::new(0),
            items_copied: AtomicU64::new(0),
            changes_applied: AtomicU64::new(0),
            paused_us: Arc::default(),
            took_ms: AtomicU64::new(0),
            end: Mutex::default(),
        }
    }

    pub fn step(&self) -> JobStep {
        STEPS.get(usize::from(self.step.load(Ordering::Acquire))).map_or(JobStep::Failed, |step| step.0)
    }

    pub fn progress(&self) -> JobProgress {
        let step = self.step();
        let end = self.end.lock();
        JobProgress {
            step,
            items_total: self.items_total.load(Ordering::Relaxed),
            items_copied: self.items_copied.load(Ordering::Relaxed),
            changes_applied: self.changes_applied.load(Ordering::Relaxed),
            paused_us: self.paused_us.load(Ordering::Relaxed),
            took_ms: self.took_ms.load(Ordering::Relaxed),
            children: end.children.clone(),
            failure: end.failure.as_ref().map(|(_, message)| message.clone()),
        }
    }

    /// Waits for the end. The ids of the new ranges, or why there are none.
    pub async fn done(&self) -> Result<Vec<u32>> {
        let end = {
            let mut end = self.end.lock();
            if self.step().is_end() {
                None
            } else {
                let (sender, receiver) = oneshot::channel();
                end.waiting.push(sender);
                Some(receiver)
            }
        };
        if let Some(end) = end {
            // Woken by the dropped sender.
            let _ = end.await;
        }
        let end = self.end.lock();
        match &end.failure {
            Some((kind, message)) => Err(Error::new(*kind, message.clone())),
            None => Ok(end.children.clone()),
        }
    }

    pub(super) fn enter(&self, step: JobStep) {
        self.step.store(step as u8, Ordering::Release);
    }

    pub(super) fn finish(&self, result: &Result<Vec<u32>>) {
        let mut end = self.end.lock();
        match result {
            Ok(children) => end.children.clone_from(children),
            Err(error) => end.failure = Some((error.kind, error.message.clone())),
        }
        self.enter(if result.is_ok() { JobStep::Done } else { JobStep::Failed });
        end.waiting.clear();
    }
}
