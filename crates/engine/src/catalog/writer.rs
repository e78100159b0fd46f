//! The one thread that changes the catalog.
//!
//! Changes arrive as closures in a bounded mailbox and run one after the other, each with a blocking commit: the
//! caller's event loop never waits for a disk. Between changes, when nobody waits, the thread drops the spaces of
//! deleted containers, one at a time. A drop row is written by the commit that deletes the container and removed
//! after the space is gone; a crash in between repeats the drop at the next start, which does no harm because a
//! space number is never given again.
//!
//! A commit that fails for now is looked for at once: the catalog's space is claimed again, and its first row says
//! whether the change was made. Only when the store cannot be reached for that, or another owner has come, does the
//! caller get an error that leaves it open; changes are then refused as unavailable until `follow` has read the rows.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use orrery_storage::{Commit, Durability, Failure, Space, SpaceId, StoreError, Table};
use parking_lot::Mutex;

use crate::account::Shared;
use crate::catalog::CHANGES_QUEUE_MAX;
use crate::catalog::follow::Lost;
use crate::catalog::load::Loaded;
use crate::catalog::rows::{DatabaseRow, MetaRow, RowKey};
use crate::catalog::view::View;
use crate::error::{Error, Kind, Result};

/// How long a client waits before it tries again when the mailbox is full.
const RETRY_AFTER_MS: u64 = 100;
/// How long a drop that failed waits before it is tried again.
const DROP_RETRY: Duration = Duration::from_secs(10);

pub(crate) type Change = Box<dyn FnOnce(&mut Writer) + Send>;

/// The way to the writer's thread.
pub(crate) struct Mailbox {
    sender: Mutex<Option<SyncSender<Change>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Mailbox {
    pub(crate) fn start(writer: Writer) -> Result<Mailbox> {
        let (sender, receiver) = sync_channel(CHANGES_QUEUE_MAX);
        let thread = std::thread::Builder::new()
            .name("orrery-catalog".to_owned())
            .spawn(move || writer.run(&receiver))
            .map_err(|error| {
                Error::internal("The catalog's thread could not be started.").caused_by(error)
            })?;
        Ok(Mailbox { sender: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn send(&self, change: Change) -> Result<()> {
        let stopped = || Error::new(Kind::WritesStopped, "The server is shutting down.");
        match self.sender.lock().as_ref().ok_or_else(stopped)?.try_send(change) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(Error::new(
                Kind::Throttled { retry_after_ms: RETRY_AFTER_MS },
                "Too many changes of databases and containers are waiting.",
            )),
            Err(TrySendError::Disconnected(_)) => Err(stopped()),
        }
    }

    /// Finishes what was accepted and ends the thread. Later changes are refused.
    pub(crate) fn stop(&self) {
        drop(self.sender.lock().take());
        let thread = self.thread.lock().take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the catalog's thread ended by a panic");
        }
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The rows of a change while it is being prepared, with the counters it used up.
pub(crate) struct CatalogChange {
    pub(crate) meta: MetaRow,
    pub(crate) ts: u32,
    commit: Commit,
}

impl CatalogChange {
    pub(crate) fn put(&mut self, key: RowKey, value: impl Into<bytes::Bytes>) {
        self.commit.put(Table::Feed, key.encode(), value);
    }

    pub(crate) fn delete(&mut self, key: RowKey) {
        self.commit.delete(Table::Feed, key.encode());
    }
}

/// The catalog as its writer knows it.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) view: Arc<ArcSwap<View>>,
    pub(crate) space: Arc<dyn Space>,
    pub(crate) meta: MetaRow,
    /// The databases as stored: readers have no use for what these rows count.
    pub(crate) databases: HashMap<u32, DatabaseRow>,
    /// Spaces that are still to be dropped.
    pub(crate) drops: BTreeSet<u32>,
    /// Spaces that have drop rows and are being filled: a split or a merge is under way.
    pub(crate) building: BTreeSet<u32>,
    /// Databases whose rows an earlier process has left.
    pub(crate) stale_forks: BTreeSet<u32>,
    /// A commit has failed, and the rows have not been read since, or another owner writes them.
    pub(crate) lost: Option<Lost>,
}

impl Writer {
    /// The writer of what was read at the start.
    pub(crate) fn new(shared: Arc<Shared>, space: Arc<dyn Space>, loaded: Loaded) -> Writer {
        let mut writer = Writer {
            shared,
            view: Arc::default(),
            space,
            meta: loaded.meta,
            databases: HashMap::new(),
            drops: BTreeSet::new(),
            building: BTreeSet::new(),
            stale_forks: BTreeSet::new(),
            lost: None,
        };
        writer.adopt(loaded);
        writer
    }

    fn run(mut self, mailbox: &Receiver<Change>) {
        let mut drops_rest = false;
        loop {
            let change = if let Some(lost) = &self.lost {
                mailbox.recv_timeout(lost.interval())
            } else if self.drops.is_empty() {
                mailbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else if drops_rest {
                mailbox.recv_timeout(DROP_RETRY)
            } else {
                mailbox.try_recv().map_err(|error| match error {
                    TryRecvError::Empty => RecvTimeoutError::Timeout,
                    TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
                })
            };
            match change {
                Ok(change) => change(&mut self),
                Err(RecvTimeoutError::Timeout) if self.lost.is_some() => self.follow_idly(),
                Err(RecvTimeoutError::Timeout) => drops_rest = !self.drop_next_space(),
                // What is not dropped by now is dropped after the next start.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Starts a change: the counters may be advanced in it, and become true when it is committed.
    pub(crate) fn prepare(&self) -> CatalogChange {
        let meta = MetaRow { lsn: self.meta.lsn + 1, ..self.meta };
        CatalogChange { meta, ts: self.shared.env.now_s(), commit: Commit::default() }
    }

    /// Makes a change durable. After an error nothing has changed, neither here nor for readers; whether something
    /// has in the store is not known while the writer `is_lost`.
    pub(crate) fn commit(&mut self, prepared: CatalogChange) -> Result<()> {
        self.commit_as(prepared, self.shared.config.durability)
    }

    pub(crate) fn commit_as(&mut self, prepared: CatalogChange, durability: Durability) -> Result<()> {
        let CatalogChange { meta, mut commit, .. } = prepared;
        commit.put(Table::Feed, RowKey::Meta.encode(), meta.encode());
        // A commit that the store refuses for its size would make it refuse every later one, too.
        commit.check()?;
        match self.space.commit(commit, durability) {
            Ok(()) => {
                self.meta = meta;
                Ok(())
            }
            Err(error) if error.failure() == Failure::Final => Err(error.into()),
            Err(error) => self.resolve(meta, error),
        }
    }

    /// Shows readers the present state, changed by `edit`.
    pub(crate) fn publish(&self, edit: impl FnOnce(&mut View)) {
        let mut view = View::clone(&self.view.load());
        view.lsn = self.meta.lsn;
        edit(&mut view);
        self.view.store(Arc::new(view));
    }

    /// Queues spaces whose drop rows are committed.
    pub(crate) fn queue_drops(&mut self, spaces: impl IntoIterator<Item = u32>) {
        self.drops.extend(spaces);
    }

    /// Drops one space. False when it has to be tried again later.
    fn drop_next_space(&mut self) -> bool {
        let Some(space) = self.drops.first().copied() else { return true };
        match self.drop_space(space) {
            Ok(()) => {
                self.drops.remove(&space);
                true
            }
            Err(error) => {
                tracing::warn!(space, %error, "a deleted container's rows could not be removed yet");
                false
            }
        }
    }

    fn drop_space(&mut self, space: u32) -> Result<(), StoreError> {
        // Taking the space over fences whoever still holds it, so that no late commit brings rows back.
        drop(self.shared.store.open_space(SpaceId(space))?);
        self.shared.store.drop_space(SpaceId(space))?;
        // Losing this commit only repeats the drop, so it need not wait for the disk.
        let mut commit = Commit::default();
        commit.delete(Table::Feed, RowKey::Drop(space).encode());
        let removed = self.space.commit(commit, Durability::Relaxed);
        if let Err(error) = &removed {
            self.note_failure(error);
        }
        removed
    }
}
