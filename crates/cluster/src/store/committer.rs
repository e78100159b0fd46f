//! The one thread that appends. What waits goes into the log in one call, whatever spaces it is of, and then to the
//! copy. While the copy takes it the next append is under way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use orrery_storage::{Commit, Done, Durability, Epoch, Gather, SpaceId, StoreError};

use super::Core;
use super::copy::{LocalSpace, Position};
use super::keeper::Frozen;
use super::rows::EntryBuilder;
use super::space::{Failed, Owned, SpaceState};
use crate::log::{Frame, Session};

pub(super) enum Request {
    Commit {
        space: Arc<SpaceState>,
        epoch: Epoch,
        failed: Arc<Failed>,
        commit: Commit,
        done: Done,
    },
    /// Answered when everything before it has been.
    Drained(SyncSender<()>),
    /// Answered with what an open space holds now, and how far that is.
    Frozen(Arc<SpaceState>, SyncSender<Result<Frozen, StoreError>>),
}

/// What one space has in a group.
struct Part {
    space: Arc<SpaceState>,
    owned: Owned,
    entry: EntryBuilder,
    commits: Vec<(Commit, Arc<Failed>, Done)>,
}

impl Core {
    pub(super) fn run_committer(&self) {
        let mut group = Vec::new();
        while self.queue.take(&mut group, Gather::default()) {
            let mut parts: BTreeMap<SpaceId, Part> = BTreeMap::new();
            for request in group.drain(..) {
                match request {
                    Request::Commit { space, epoch, failed, commit, done } => {
                        self.collect(&mut parts, space, epoch, failed, commit, done);
                    }
                    Request::Drained(sender) => {
                        self.append(std::mem::take(&mut parts));
                        let _ = sender.send(());
                    }
                    Request::Frozen(space, sender) => {
                        self.append(std::mem::take(&mut parts));
                        let _ = sender.send(self.freeze(&space));
                    }
                }
            }
            self.append(parts);
        }
    }

    /// Adds a commit to its space's part of the group, or answers it.
    fn collect(
        &self,
        parts: &mut BTreeMap<SpaceId, Part>,
        space: Arc<SpaceState>,
        epoch: Epoch,
        failed: Arc<Failed>,
        commit: Commit,
        done: Done,
    ) {
        let id = space.id;
        let owned = *space.owned.lock();
        let result = match &*failed.lock() {
            Some(error) => Err(error.clone()),
            None if owned.epoch != epoch => Err(StoreError::Fenced(id)),
            None => commit.check(),
        };
        if let Err(error) = result {
            self.append(std::mem::take(parts));
            return fail_in_turn(&space, &failed, done, error);
        }
        let part = parts.entry(id).or_insert_with(|| Part {
            space,
            owned,
            entry: EntryBuilder::new(owned.position.term),
            commits: Vec::new(),
        });
        if part.owned.epoch != epoch {
            // The space was taken again between two commits of the group.
            let space = part.space.clone();
            self.append(std::mem::take(parts));
            return fail_in_turn(&space, &failed, done, StoreError::Fenced(id));
        }
        part.entry.push(&commit.changes);
        part.commits.push((commit, failed, done));
    }

    fn append(&self, parts: BTreeMap<SpaceId, Part>) {
        // Parts of an older session are refused by the log; they must not keep the others from being written.
        let mut sessions: BTreeMap<Session, Vec<Part>> = BTreeMap::new();
        for part in parts.into_values() {
            sessions.entry(part.owned.session).or_default().push(part);
        }
        for (session, parts) in sessions {
            self.append_session(session, parts);
        }
    }

    fn append_session(&self, session: Session, parts: Vec<Part>) {
        let (mut frames, mut batches) = (Vec::with_capacity(parts.len()), Vec::with_capacity(parts.len()));
        for part in parts {
            let frame = Frame {
                space: part.space.id,
                epoch: part.owned.epoch,
                number: part.owned.position.intended + 1,
                data: part.entry.finish(),
            };
            frames.push(frame);
            batches.push((part.space, part.owned, part.commits));
        }
        let result = self.log.append(session, &frames);
        self.counters.groups.fetch_add(1, Ordering::Relaxed);
        for (frame, (space, owned, commits)) in frames.iter().zip(batches) {
            let result = match &result {
                Ok(fenced) if fenced.contains(&space.id) => Err(StoreError::Fenced(space.id)),
                Ok(_) => Ok(()),
                Err(error) => Err(error.clone()),
            };
            match result {
                Ok(()) => self.apply(&space, owned, frame, commits),
                Err(error) => {
                    for (_, failed, done) in commits {
                        fail_in_turn(&space, &failed, done, error.clone());
                    }
                }
            }
        }
    }

    /// Gives the copy what the log has.
    fn apply(
        &self,
        space: &Arc<SpaceState>,
        before: Owned,
        frame: &Frame,
        commits: Vec<(Commit, Arc<Failed>, Done)>,
    ) {
        self.counters.commits.fetch_add(commits.len() as u64, Ordering::Relaxed);
        let term = before.position.term;
        let after = Position { applied: frame.number, intended: frame.number, term };
        let mut due = false;
        let local: LocalSpace = {
            let mut owned = space.owned.lock();
            if owned.epoch == before.epoch {
                owned.position = after;
                owned.log_bytes += frame.data.len() as u64;
                let limit = self.options.checkpoint_bytes_min.max(owned.checkpoint_bytes);
                due = !owned.keeping && owned.log_bytes > limit;
                owned.keeping |= due;
            }
            space.local.lock().clone()
        };
        if due {
            self.keeper.add(space.clone());
        }
        let position = Position { applied: before.position.applied, ..after };
        let mut changes = Vec::with_capacity(commits.iter().map(|(commit, ..)| commit.changes.len()).sum());
        let mut answers = Vec::with_capacity(commits.len());
        for (commit, failed, done) in commits {
            changes.extend(commit.changes);
            answers.push((failed, done));
        }
        let space_of_answer = space.clone();
        let done = move |result: Result<(), StoreError>| {
            if result.is_err() {
                // It has to be filled anew.
                space_of_answer.owned.lock().position = Position::default();
            }
            for (failed, done) in answers {
                match &result {
                    Ok(()) => done(Ok(())),
                    // It is in the log, and whoever opens the space again will find it.
                    Err(error) => {
                        let text = format!("written to the log, but not to this server's copy: {error}");
                        let error = StoreError::OutcomeUnknown(text.into());
                        note(&failed, &error);
                        done(Err(error));
                    }
                }
            }
        };
        self.copy.apply(space.id, &local, position, changes, Box::new(done));
    }
}

/// Answers a commit that failed, after what is before it of the same space: the copy answers that, in order.
fn fail_in_turn(space: &SpaceState, failed: &Failed, done: Done, error: StoreError) {
    note(failed, &error);
    let local = space.local.lock().clone();
    let answer = Box::new(move |_| done(Err(error)));
    local.space.submit(Commit::default(), Durability::Relaxed, answer);
}

/// Those behind a commit that failed fail too. Of them it is known that nothing was written.
fn note(failed: &Failed, error: &StoreError) {
    let behind = match error {
        StoreError::OutcomeUnknown(why) => {
            StoreError::Unavailable(format!("an earlier write of the same space: {why}").into())
        }
        error => error.clone(),
    };
    failed.lock().get_or_insert(behind);
}
