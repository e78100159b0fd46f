//! Doing a job: plan, copy, catch up, hand over.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use orrery_model::Epk;
use orrery_storage::SpaceId;

use super::job::{Job, JobKind, JobReason, JobStep};
use crate::account::Account;
use crate::block_on;
use crate::catalog::reshape::Handover;
use crate::container::Container;
use crate::error::{Error, Kind, Result};
use crate::partition::{FeedHold, Partition, Settings, Successor};

/// Rounds of catching up. Each has less to do than the one before, as long as copying is faster than writing.
const ROUNDS_MAX: usize = 30;
/// Changes that the pause may have to apply: a few milliseconds of work.
const LAST_CHANGES_MAX: u64 = 256;
/// What the last round may take when the rounds are used up: the pause has to apply what came meanwhile, which takes
/// about as long. More would be a pause that people notice.
const LAST_ROUND_MAX: Duration = Duration::from_millis(500);
/// The longest rest between two steps of the copy.
const REST_MAX: Duration = Duration::from_millis(20);
/// Equal ranges among which the middle of an empty range is looked for: 2^1 to 2^this.
const MIDDLE_BITS_MAX: u32 = 16;

pub(super) fn run(account: &Account, job: &Job, stopping: &dyn Fn() -> bool) {
    let started = Instant::now();
    let result = attempt(account, job, stopping);
    if result.as_ref().is_err_and(|error| !is_passing(error)) {
        // Not before it has grown: a look a second later would find the same and copy everything again.
        job.parents
            .iter()
            .filter_map(|id| job.container.partition(*id).ok())
            .for_each(|parent| parent.cannot_be_split());
    }
    let took = started.elapsed();
    job.took_ms.store(took.as_millis() as u64, Ordering::Relaxed);
    job.finish(&result);
    let progress = job.progress();
    let (database, container) = (&job.container.database().name, job.container.name());
    match &result {
        Ok(children) => tracing::info!(
            job = job.kind.name(),
            reason = job.reason.name(),
            database,
            container,
            from = ?job.parents,
            to = ?children,
            items = progress.items_copied,
            changes = progress.changes_applied,
            paused_ms = progress.paused_us as f64 / 1000.0,
            took_ms = progress.took_ms,
            "partitions changed"
        ),
        Err(error) => tracing::warn!(
            job = job.kind.name(),
            reason = job.reason.name(),
            database,
            container,
            from = ?job.parents,
            %error,
            cause = ?error.cause,
            "partitions stay as they are"
        ),
    }
}

/// Whether the same may succeed as soon as the store is back: the partition itself is not the reason.
fn is_passing(error: &Error) -> bool {
    matches!(error.kind, Kind::Unavailable | Kind::OutcomeUnknown | Kind::RangeGone | Kind::Conflict)
}

fn attempt(account: &Account, job: &Job, stopping: &dyn Fn() -> bool) -> Result<Vec<u32>> {
    job.enter(JobStep::Planning);
    let container = &job.container;
    let parents: Vec<Arc<Partition>> =
        job.parents.iter().map(|id| container.partition(*id)).collect::<Result<_>>()?;
    let ranges = ranges_to_make(container, job, &parents)?;
    let items = parents.iter().map(|parent| parent.usage().items).sum();
    job.items_total.store(items, Ordering::Relaxed);

    let (owner, children) = (container.clone(), ranges.len());
    let spaces = block_on(account.change(move |writer| writer.begin_reshape(&owner, children)))?;
    let built = build(account, job, parents, ranges, &spaces, stopping);
    let result = built.and_then(|mut handover| {
        job.enter(JobStep::HandingOver);
        block_on(account.change(move |writer| writer.hand_over(&mut handover)))
    });
    if result.is_err() {
        // When the catalog cannot be told any more, the next start does the same.
        let _ = account.tell(move |writer| writer.abandon_reshape(&spaces));
    }
    result
}

/// Copies everything and catches up until little is left.
fn build(
    account: &Account,
    job: &Job,
    parents: Vec<Arc<Partition>>,
    ranges: Vec<(Epk, Epk)>,
    spaces: &[u32],
    stopping: &dyn Fn() -> bool,
) -> Result<Handover> {
    let go_on = || match stopping() {
        true => Err(Error::new(Kind::WritesStopped, "The server is shutting down.")),
        false => Ok(()),
    };
    let merged = parents.len() > 1;
    let mut successors = Vec::with_capacity(ranges.len());
    for ((min, max), space) in ranges.into_iter().zip(spaces) {
        let space = account.store().open_space(SpaceId(*space))?;
        let settings = Settings::of(job.container.core());
        successors.push(Successor::new(space, min, max, settings, merged));
    }

    job.enter(JobStep::Copying);
    let _holds: Vec<FeedHold> = parents.iter().map(FeedHold::new).collect();
    let mut seen: Vec<u64> = parents.iter().map(|parent| parent.lsn()).collect();
    for parent in &parents {
        parent.copy_purges(&mut successors)?;
        let mut next = None;
        loop {
            go_on()?;
            let started = Instant::now();
            let step = parent.copy_items(next, &mut successors)?;
            job.items_copied.fetch_add(step.items, Ordering::Relaxed);
            next = step.next;
            if next.is_none() {
                break;
            }
            rest(started);
        }
        let mut next = None;
        loop {
            go_on()?;
            let started = Instant::now();
            next = parent.copy_versions(next, &mut successors)?.next;
            if next.is_none() {
                break;
            }
            rest(started);
        }
    }

    job.enter(JobStep::CatchingUp);
    let mut last_round = Duration::MAX;
    for _ in 0..ROUNDS_MAX {
        go_on()?;
        let started = Instant::now();
        let mut left = 0;
        for (parent, seen) in parents.iter().zip(&mut seen) {
            let round = parent.catch_up(*seen, &mut successors)?;
            *seen = round.lsn;
            left += round.changes;
        }
        job.changes_applied.fetch_add(left, Ordering::Relaxed);
        last_round = started.elapsed();
        if left <= LAST_CHANGES_MAX {
            last_round = Duration::ZERO;
            break;
        }
    }
    if last_round > LAST_ROUND_MAX {
        let message = "The partition is written to faster than it can be copied; it stays whole for now.";
        return Err(Error::new(Kind::Throttled { retry_after_ms: 60_000 }, message));
    }
    Ok(Handover {
        container: job.container.clone(),
        parents: parents.into_iter().zip(seen).collect(),
        successors,
        paused_us: job.paused_us.clone(),
    })
}

/// Works and rests in equal parts: half a core at most, and others reach the store in between.
fn rest(worked_since: Instant) {
    std::thread::sleep(worked_since.elapsed().min(REST_MAX));
}

fn ranges_to_make(container: &Container, job: &Job, parents: &[Arc<Partition>]) -> Result<Vec<(Epk, Epk)>> {
    let reason = job.reason;
    match (job.kind, parents) {
        (JobKind::Split, [parent]) => {
            let (min, max) = parent.bounds();
            let point = match parent.split_point()? {
                Some(point) => point,
                // More partitions for more throughput: where there is nothing to halve, the range is.
                None if parent.usage().items == 0 || reason == JobReason::Throughput => {
                    middle(container, min, max).ok_or_else(|| {
                        Error::bad_request("The partition's range is too narrow to be split.")
                    })?
                }
                None => {
                    return Err(Error::bad_request(
                        "The partition cannot be split: everything in it has the same partition key.",
                    ));
                }
            };
            Ok(vec![(min.clone(), point.clone()), (point, max.clone())])
        }
        (JobKind::Merge, [left, right]) if left.bounds().1 == right.bounds().0 => {
            Ok(vec![(left.bounds().0.clone(), right.bounds().1.clone())])
        }
        _ => Err(Error::bad_request("Only two neighbouring partitions can be merged.")),
    }
}

/// About the middle of a part of the hash space. Looked for among the boundaries of equal ranges, which exist in every
/// version of the hash.
fn middle(container: &Container, min: &Epk, max: &Epk) -> Option<Epk> {
    let definition = container.definition();
    let mut found = None;
    for bits in 1..=MIDDLE_BITS_MAX {
        let boundaries = definition.partition_key.boundaries(1 << bits);
        let inside: Vec<&Epk> = boundaries.iter().filter(|epk| *epk > min && *epk < max).collect();
        if !inside.is_empty() {
            found = Some(inside[(inside.len() - 1) / 2].clone());
        }
        // An uneven range needs a few more boundaries for its middle to be near one.
        if inside.len() >= 7 || inside.len() == 1 && boundaries.len() == 3 {
            break;
        }
    }
    found
}
