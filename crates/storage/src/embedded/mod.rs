//! The embedded store: `lsm-tree` tables under a log, a committer and a scheduler of our own.
//!
//! ```text
//!  submit ──> queue ──> committer: number, append, sync, apply to memtables, publish, answer, rotate
//!                          │ one frame and one sync per group                │ sealed memtables
//!                          v                                                 v
//!                      log segments <── removed when flushed ──── flusher ──> tables ──> two compactors
//! ```
//!
//! - `committer` is the only writer. A commit is answered after the sync of the group that holds it, and is visible to
//!   snapshots only then. Memtables are rotated only by it, between groups, after a sync: so a table never holds a
//!   row that the log might lose, and "highest seqno in the tables" means that everything below is in them.
//! - `background` flushes, compacts, and tidies up when the store has become idle. Threads sleep on condition
//!   variables; an idle store uses no CPU.
//! - `cache` keeps items that are read again and again. `visit` shows many rows to whoever keeps none of them.
//! - `image` keeps what spaces held at one moment. Forks are spaces of a store in memory that lie on such images.
//! - `recovery` replays the log over the tables. `drops` removes the rows of dropped spaces.
//! - A failed write or sync of the log stops all writes for the life of the process. Reads go on. A disk that is full
//!   and a system without descriptors are no such failure: `reserve` has room for deletes, `setback` says what is
//!   tried again. Nor are damaged tables: `damage` knows them and compacts around them, and `blocks` reads what is
//!   left of them.

mod background;
mod blocks;
mod cache;
mod committer;
mod core;
mod damage;
mod directory;
mod drops;
mod files;
mod frame;
mod garbage;
mod image;
mod inspection;
mod log;
mod log_end;
mod manifest;
mod recovery;
mod reserve;
mod salvage;
mod setback;
mod snapshots;
mod space;
#[cfg(test)]
mod tests;
mod trees;
mod trim;
mod verify;
mod visit;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use self::committer::Request;
use self::core::{Core, Owner};
use self::directory::Directory;
use self::files::{LogDirectory, OsDirectory};
use self::image::Image;
pub use self::inspection::{Found, Inspection, MissingPart, inspect};
pub use self::log_end::take_log_as_it_is;
pub use self::salvage::Salvaged;
use self::space::EmbeddedSpace;
pub use self::verify::{FileDamage, HeldStore, Progress, Verified};
use crate::layers::Layers;
use crate::memory::{MemoryStore, Seed};
use crate::store::{Claim, Fork, Space, SpaceId, Store, StoreError, StoreStats};

/// Sizes and limits. The defaults are for a server with gigabytes of items; tests make them small.
#[derive(Debug, Clone)]
pub struct EmbeddedOptions {
    /// What is kept in memory to be read again: half of it for items, half for blocks of tables, over all trees.
    pub cache_bytes: u64,
    /// A memtable of this size is sealed and flushed: items, index, feed. The feed's is small because a log segment
    /// stays until every tree has flushed what is in it.
    pub memtable_bytes: [u64; 3],
    /// A log segment of this size is ended.
    pub segment_bytes: u64,
    /// Commits wait while the log is larger. From three quarters on, what holds its oldest segment is flushed.
    pub log_bytes_max: u64,
    /// What is kept back at most for deletes on a full disk.
    pub reserve_bytes_max: u64,
    /// Sorted runs in the first level that start a compaction.
    pub l0_threshold: u8,
    /// Size of a table made by compaction.
    pub table_bytes: u64,
    /// A snapshot may be held this long once something newer was published.
    pub snapshot_age_max: Duration,
    /// What may be written to forks: it is kept in memory.
    pub fork_bytes_max: u64,
}

const MIB: u64 = 1024 * 1024;

impl Default for EmbeddedOptions {
    fn default() -> EmbeddedOptions {
        EmbeddedOptions {
            cache_bytes: 64 * MIB,
            memtable_bytes: [8 * MIB, 8 * MIB, 2 * MIB],
            segment_bytes: 8 * MIB,
            log_bytes_max: 64 * MIB,
            reserve_bytes_max: 32 * MIB,
            l0_threshold: 8,
            table_bytes: 32 * MIB,
            snapshot_age_max: Duration::from_secs(300),
            fork_bytes_max: 1024 * MIB,
        }
    }
}

pub struct EmbeddedStore {
    owner: Arc<Owner>,
    /// From the first fork on.
    forks: OnceLock<MemoryStore>,
}

impl EmbeddedStore {
    /// Opens the store in `directory`, creating it when there is none, and recovers what the log holds.
    pub fn open(directory: impl AsRef<Path>, options: EmbeddedOptions) -> Result<EmbeddedStore, StoreError> {
        EmbeddedStore::open_with(directory.as_ref(), options, |path| {
            Arc::new(OsDirectory { path: path.into() })
        })
    }

    /// `open` with other files under the log.
    fn open_with(
        path: &Path,
        options: EmbeddedOptions,
        log_directory: impl FnOnce(&Path) -> Arc<dyn LogDirectory>,
    ) -> Result<EmbeddedStore, StoreError> {
        let (directory, found) = Directory::open(path)?;
        let log_directory = log_directory(&directory.log());
        let owner = Core::start(directory, found, options, log_directory)?;
        Ok(EmbeddedStore { owner, forks: OnceLock::new() })
    }

    /// Writes everything that is in memtables into tables, and waits for it.
    pub fn flush(&self) -> Result<(), StoreError> {
        self.core().ask(|reply| Request::Seal { reply })?;
        self.core().wait_for_flush()
    }

    fn core(&self) -> &Core {
        &self.owner.core
    }

    /// Where a fork is, if it is one.
    fn forks_with(&self, id: SpaceId) -> Option<&MemoryStore> {
        self.forks.get().filter(|forks| forks.has(id))
    }
}

impl Store for EmbeddedStore {
    fn claim_space(&self, id: SpaceId, claim: Claim) -> Result<Arc<dyn Space>, StoreError> {
        if let Some(forks) = self.forks_with(id) {
            return forks.claim_space(id, claim);
        }
        loop {
            match self.core().ask(|reply| Request::Open { id, claim, reply })? {
                Some((state, epoch)) => {
                    return Ok(Arc::new(EmbeddedSpace::new(id, epoch, state, self.owner.clone())));
                }
                None => self.core().wait_for_drop(id)?,
            }
        }
    }

    fn drop_space(&self, id: SpaceId) -> Result<(), StoreError> {
        if let Some(forks) = self.forks_with(id) {
            return forks.drop_space(id);
        }
        self.core().ask(|reply| Request::Drop { id, reply })
    }

    fn fork_spaces(&self, forks: &[Fork]) -> Result<(), StoreError> {
        if self.core().closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        let store = self.forks.get_or_init(|| MemoryStore::with_limit(self.core().options.fork_bytes_max));
        let on_disk: Vec<SpaceId> =
            forks.iter().filter_map(|fork| fork.origin).filter(|origin| !store.has(*origin)).collect();
        let mut images = Image::of(&self.owner, &on_disk)?.into_iter();
        let seeds = forks.iter().map(|fork| {
            let seed = match fork.origin {
                None => Seed::Empty,
                Some(origin) if store.has(origin) => Seed::Space(origin),
                Some(origin) => match images.next() {
                    Some(image) => {
                        Seed::Layers(Layers::over(Arc::new(image), self.core().trees.space_bytes(origin)))
                    }
                    None => Seed::Empty,
                },
            };
            (fork.space, seed)
        });
        store.seed(seeds.collect())
    }

    fn blocking(&self) -> bool {
        false
    }

    fn stats(&self) -> StoreStats {
        StoreStats { fork_bytes: self.forks.get().map_or(0, MemoryStore::held_bytes), ..self.core().stats() }
    }

    fn close(&self) -> Result<(), StoreError> {
        if let Some(forks) = self.forks.get() {
            forks.close()?;
        }
        let result = match self.core().ask(|reply| Request::Close { reply }) {
            // Closing twice is no error: the first time has done it.
            Err(StoreError::Closed) => Ok(()),
            result => result,
        };
        self.owner.stop_background();
        result
    }
}
