//! The three trees of `lsm-tree`: how they are set up, and the calls made to them.
//!
//! All trees share one sequence counter with the committer. Flushes and compactions take numbers from it for the
//! versions they make, and a snapshot finds its version by its number, so the counter must be one. The second counter
//! that a tree wants is raised past commits that are not yet published; it gets a dummy that nobody reads.
//!
//! A key in a tree is the space's number (4 bytes, big-endian) and the key of the row. Every call that may panic in the
//! crate (a lock poisoned by a failed background step, an assertion about a file) is caught here and becomes an error.

use std::ops::{Bound, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::{BufMut, Bytes, BytesMut};
use lsm_tree::compaction::{CompactionStrategy, Leveled, PullDown};
use lsm_tree::config::{
    BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, PinningPolicy,
};
use lsm_tree::{
    AbstractTree, AnyTree, Cache, CompressionType, Config, DescriptorTable, Guard, InternalValue, Memtable,
    SequenceNumberCounter, Tree, ValueType,
};
use parking_lot::{Mutex, RwLock};

use super::EmbeddedOptions;
use super::damage::Damage;
use super::directory::Directory;
use super::inspection;
use super::manifest;
use super::setback::{is_full, is_passing};
use super::visit::Sources;
use crate::store::{Change, Direction, KeyRange, Row, SpaceId, StoreError, TABLES, Table};

/// Files of tables that are kept open, over all trees.
const OPEN_TABLE_FILES_MAX: usize = 256;
pub(super) const SPACE_BYTES: usize = 4;
const BLOOM_BITS_PER_KEY: f32 = 10.0;
/// Runs of the first level that are merged when there is time for it.
const RUNS_THOROUGH: u8 = 2;

pub(super) struct Trees {
    trees: [Tree; TABLES.len()],
    pub(super) counter: SequenceNumberCounter,
    compaction: Arc<Leveled>,
    /// The last known version of each tree's tables, and a sequence number that is above everything in it: snapshots
    /// from there on may read it.
    tables_from: [Mutex<(u64, u64)>; TABLES.len()],
    /// Read while a step writes tables, of a tree each; and the numbers that failed steps may have given to tables.
    unfinished: [(RwLock<()>, Mutex<Range<u64>>); TABLES.len()],
    /// For a store that has nothing else to do: merges the first level from two runs on.
    thorough: Arc<Leveled>,
    l0_threshold: u8,
    pub(super) table_bytes_max: u64,
    /// The version that the last collection of garbage has left.
    pub(super) collected: [AtomicU64; TABLES.len()],
    pub(super) damage: [Damage; TABLES.len()],
}

impl Trees {
    /// Opens or creates the trees, side by side: each waits for several syncs of its own.
    pub(super) fn open(directory: &Directory, options: &EmbeddedOptions) -> Result<Trees, StoreError> {
        let counter = SequenceNumberCounter::new(1);
        let cache = Arc::new(Cache::with_capacity_bytes(options.cache_bytes / 2));
        let descriptors = Arc::new(DescriptorTable::new(OPEN_TABLE_FILES_MAX));
        let opened = std::thread::scope(|scope| {
            let threads = TABLES.map(|table| {
                let config = Config::new(directory.tree(table as usize), counter.clone(), Default::default())
                    .use_cache(cache.clone())
                    .use_descriptor_table(Some(descriptors.clone()));
                let path = directory.tree(table as usize);
                scope.spawn(move || {
                    manifest::check(&path)?;
                    guarded(|| configure(config, table).open())
                })
            });
            threads.map(|thread| thread.join().unwrap_or_else(|_| Err(panicked())))
        });
        let mut trees = Vec::new();
        for (table, tree) in TABLES.into_iter().zip(opened) {
            match tree {
                Ok(AnyTree::Standard(tree)) => trees.push(tree),
                Ok(AnyTree::Blob(_)) => return Err(StoreError::Damaged("a tree is of another kind".into())),
                Err(error) => {
                    let path = directory.tree(table as usize);
                    let tables = manifest::unopenable_tables(&path).join(", ");
                    let which = if tables.is_empty() { tables } else { format!(" ({tables})") };
                    return Err(StoreError::Damaged(format!("{}{which}: {error}", path.display()).into()));
                }
            }
        }
        let trees = trees.try_into().map_err(|_| panicked())?;
        let compaction = Leveled::default()
            .with_l0_threshold(options.l0_threshold)
            .with_table_target_size(options.table_bytes);
        // The size of the second level follows from the product of these two, and must stay the same.
        let thorough = Leveled::default().with_l0_threshold(RUNS_THOROUGH).with_table_target_size(
            options.table_bytes * u64::from(options.l0_threshold) / u64::from(RUNS_THOROUGH),
        );
        let trees = Trees {
            trees,
            counter,
            compaction: Arc::new(compaction),
            thorough: Arc::new(thorough),
            tables_from: Default::default(),
            l0_threshold: options.l0_threshold,
            table_bytes_max: options.table_bytes,
            collected: TABLES.map(|_| AtomicU64::new(u64::MAX)),
            damage: Default::default(),
            unfinished: Default::default(),
        };
        for table in TABLES {
            trees.note_version(table);
        }
        Ok(trees)
    }

    /// To be called when the tables of a tree have changed. Until then visitors leave them alone.
    pub(super) fn note_version(&self, table: Table) {
        let mut noted = self.tables_from[table as usize].lock();
        // The number is asked for after the version: those of the version are below it.
        let version = self.tree(table).current_version().id();
        *noted = (version, self.counter.get());
    }

    pub(super) fn tree(&self, table: Table) -> &Tree {
        &self.trees[table as usize]
    }

    /// The highest seqno in the tables of each tree. It can fall: compaction forgets deletions.
    pub(super) fn persisted(&self) -> [u64; TABLES.len()] {
        TABLES.map(|table| self.tree(table).get_highest_persisted_seqno().unwrap_or(0))
    }

    /// The memtables that rows go to. They stay the same until the committer rotates them.
    pub(super) fn active(&self) -> [Arc<Memtable>; TABLES.len()] {
        TABLES.map(|table| self.tree(table).active_memtable())
    }

    pub(super) fn get(&self, table: Table, key: &[u8], seqno: u64) -> Result<Option<Bytes>, StoreError> {
        guarded(|| self.tree(table).get(key, seqno)).map(|value| value.map(Bytes::from))
    }

    pub(super) fn scan(
        &self,
        table: Table,
        space: SpaceId,
        range: &KeyRange,
        seqno: u64,
    ) -> Result<TreeRows, StoreError> {
        let bounds = prefixed_bounds(space, range);
        guarded(|| Ok(TreeRows { rows: self.tree(table).range::<Bytes, _>(bounds, seqno, None) }))
    }

    /// The rows of a range for a visitor; `None` at moments when only a scan can see them all.
    pub(super) fn sources(
        &self,
        table: Table,
        space: SpaceId,
        range: &KeyRange,
        seqno: u64,
    ) -> Result<Option<Sources>, StoreError> {
        let tables_from = *self.tables_from[table as usize].lock();
        guarded(|| Ok(Sources::of(self.tree(table), prefixed_bounds(space, range), seqno, tables_from)))
    }

    /// Writes the sealed memtables of a tree as one sorted run. False when there were none.
    pub(super) fn flush(&self, table: Table, watermark: u64) -> Result<bool, StoreError> {
        let tree = self.tree(table);
        let flushed = self.swept(table, || guarded(|| tree.flush(&tree.get_flush_lock(), watermark)));
        self.note_version(table);
        flushed.map(|flushed| flushed.is_some())
    }

    /// Whether the first level holds several runs, of which every scan reads each.
    pub(super) fn has_runs(&self, table: Table) -> bool {
        self.damage[table as usize].count() == 0
            && self.tree(table).l0_run_count() >= usize::from(RUNS_THOROUGH)
    }

    /// One step of compaction. False when there was nothing to do. Damaged input is no failure of writing: the tables
    /// that are damaged are noted, and the next step works around them.
    pub(super) fn compact(&self, table: Table, watermark: u64, thorough: bool) -> Result<bool, StoreError> {
        self.look_if_suspected(table);
        let compacted = if self.is_damaged(table) {
            self.compact_around(table, watermark, usize::from(self.l0_threshold))
        } else if let Some(level) = self.tangled_level(table) {
            self.step(table, Arc::new(PullDown(level, level)), watermark)
        } else {
            let strategy = if thorough { &self.thorough } else { &self.compaction };
            self.step(table, strategy.clone(), watermark)
        };
        match compacted {
            Err(StoreError::Damaged(_) | StoreError::Io(_)) if self.look_for_damage(table) => Ok(true),
            compacted => compacted,
        }
    }

    pub(super) fn step(
        &self,
        table: Table,
        strategy: Arc<dyn CompactionStrategy>,
        watermark: u64,
    ) -> Result<bool, StoreError> {
        let tree = self.tree(table);
        let compacted = self.swept(table, || {
            guarded(|| {
                let before = tree.current_version().id();
                tree.compact(strategy, watermark)?;
                Ok(tree.current_version().id() != before)
            })
        });
        self.note_version(table);
        compacted
    }

    /// Drops the tables that hold rows of this space only. Rows in other tables stay, and older values may come back
    /// to light: whoever drops scans and deletes afterwards. False when there was no such table, which is usual for a
    /// small space and saves rewriting the manifest, for which readers would have to wait.
    pub(super) fn drop_tables_of(&self, table: Table, space: SpaceId) -> Result<bool, StoreError> {
        let bounds = prefixed_bounds(space, &KeyRange::all());
        let drop_tables = || {
            let tree = self.tree(table);
            let has_own_table = tree.current_version().iter_tables().any(|table| {
                let range = &table.metadata.key_range;
                space_of(range.min()) == space.0 && space_of(range.max()) == space.0
            });
            if has_own_table {
                tree.drop_range::<Bytes, _>(bounds)?;
            }
            Ok(has_own_table)
        };
        self.swept(table, || guarded(drop_tables)).inspect(|_| self.note_version(table))
    }

    /// Runs a step that writes tables. When it fails, what it has written is garbage: see `sweep`.
    pub(super) fn swept<T>(
        &self,
        table: Table,
        step: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (running, numbers) = &self.unfinished[table as usize];
        let _running = running.read();
        let first = self.tree(table).next_table_id();
        let result = step();
        if result.is_err() {
            let mut numbers = numbers.lock();
            let start = if numbers.is_empty() { first } else { first.min(numbers.start) };
            *numbers = start..self.tree(table).next_table_id();
        }
        result
    }

    /// Removes what failed steps have left of tables, which on a full disk is room that is missed. A moment when
    /// another step runs or an old version is read is none for it.
    pub(super) fn sweep(&self, table: Table) {
        let (running, numbers) = &self.unfinished[table as usize];
        let Some(_nothing_runs) = running.try_write() else { return };
        let mut numbers = numbers.lock();
        let tree = self.tree(table);
        if numbers.is_empty() || tree.version_free_list_len() > 0 {
            return;
        }
        let version = tree.current_version();
        for number in std::mem::take(&mut *numbers) {
            if version.iter_tables().all(|table| table.id() != number) {
                let _ = std::fs::remove_file(tree.tree_config().path.join("tables").join(number.to_string()));
            }
        }
    }

    /// Whether the tree on disk is the one in memory. A step that failed after its new version became the current one
    /// on disk must not be tried again: it would write over the manifest that the next open needs. Waits for the end
    /// of other steps, during which the two differ for a moment.
    pub(super) fn is_as_on_disk(&self, table: Table) -> std::io::Result<bool> {
        let _nothing_runs = self.unfinished[table as usize].0.write();
        let tree = self.tree(table);
        Ok(inspection::read_current(&tree.tree_config().path)? == tree.current_version().id())
    }

    /// Releases the versions, and with them memtables and dead tables, that no snapshot needs. Otherwise that
    /// happens in the next flush, which may be never. True when some are left.
    pub(super) fn release_versions(&self, table: Table, watermark: u64) -> Result<bool, StoreError> {
        let tree = self.tree(table);
        guarded(|| {
            if tree.version_free_list_len() > 0 {
                tree.get_version_history_lock().maintenance(&tree.tree_config().path, watermark)?;
            }
            Ok(tree.version_free_list_len() > 0)
        })
    }

    /// Sealed memtables that wait for their flush, over all trees.
    pub(super) fn sealed_memtables(&self) -> usize {
        self.trees.iter().map(AbstractTree::sealed_memtable_count).sum()
    }

    /// Whether a tree has more than this many sorted runs in its first level, or more than one memtable to flush.
    pub(super) fn is_behind(&self, runs_max: usize) -> bool {
        TABLES
            .into_iter()
            .any(|table| self.runs_to_merge(table) > runs_max || self.tree(table).sealed_memtable_count() > 1)
    }

    pub(super) fn table_bytes(&self, table: Table) -> u64 {
        guarded(|| Ok(self.tree(table).disk_space())).unwrap_or(u64::MAX)
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        let sum = || Ok(self.trees.iter().map(AbstractTree::disk_space).sum());
        guarded(sum).unwrap_or(0)
    }

    /// The tables' bytes of a space; a table that spans several spaces counts for each with its share.
    pub(super) fn space_bytes(&self, space: SpaceId) -> u64 {
        let of_tree = |tree: &Tree| -> u64 {
            let version = tree.current_version();
            let share = |min: u32, max: u32, size_bytes: u64| match (min..=max).contains(&space.0) {
                true => size_bytes / (u64::from(max - min) + 1),
                false => 0,
            };
            version
                .iter_tables()
                .map(|table| {
                    let range = &table.metadata.key_range;
                    share(space_of(range.min()), space_of(range.max()), table.metadata.file_size)
                })
                .sum()
        };
        guarded(|| Ok(self.trees.iter().map(of_tree).sum())).unwrap_or(0)
    }
}

fn configure(config: Config, table: Table) -> Config {
    let config = config.data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4));
    match table {
        // Read by exact key: filters answer misses, and filter and index blocks stay in memory. What a flush writes
        // is soon written again by compaction, which compresses it.
        Table::Items => config
            .data_block_compression_policy(CompressionPolicy::new([
                CompressionType::None,
                CompressionType::Lz4,
            ]))
            .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(
                BLOOM_BITS_PER_KEY,
            ))))
            .filter_block_pinning_policy(PinningPolicy::all(true))
            .index_block_pinning_policy(PinningPolicy::all(true)),
        // Only ever scanned: a filter would never be asked.
        Table::Index => config.filter_policy(FilterPolicy::disabled()),
        // Unique and meta rows are asked for by exact key, so the sparse table keeps its small filters.
        Table::Feed => config,
    }
}

/// Rows of one scan; owns the version of the tree that it reads.
pub(super) struct TreeRows {
    rows: Box<dyn DoubleEndedIterator<Item = lsm_tree::IterGuardImpl> + Send>,
}

impl TreeRows {
    /// The next row, its key without the space.
    pub(super) fn next(&mut self, direction: Direction) -> Option<Result<Row, StoreError>> {
        let row = guarded(|| {
            let guard = match direction {
                Direction::Forward => self.rows.next(),
                Direction::Reverse => self.rows.next_back(),
            };
            guard.map(|guard| guard.into_inner()).transpose()
        });
        row.map(|row| {
            row.map(|(key, value)| Row { key: Bytes::from(key).slice(SPACE_BYTES..), value: value.into() })
        })
        .transpose()
    }
}

/// Writes rows of one commit into the memtables. Infallible for changes that passed `Commit::check`.
pub(super) fn apply(
    active: &[Arc<Memtable>; TABLES.len()],
    space: SpaceId,
    seqno: u64,
    changes: Vec<Change>,
) {
    for table in TABLES {
        // The keys of one table share one allocation: they live and die with the same memtable.
        let of_table = |change: &&Change| change.table == table;
        let key_bytes: usize =
            changes.iter().filter(of_table).map(|change| SPACE_BYTES + change.key.len()).sum();
        if key_bytes == 0 {
            continue;
        }
        let mut keys = BytesMut::with_capacity(key_bytes);
        for change in changes.iter().filter(of_table) {
            keys.put_u32(space.0);
            keys.extend_from_slice(&change.key);
            let key = keys.split().freeze();
            let row = match &change.value {
                Some(value) => InternalValue::from_components(key, value.clone(), seqno, ValueType::Value),
                None => InternalValue::new_tombstone(key, seqno),
            };
            active[table as usize].insert(row);
        }
    }
}

/// `space` and `key` as one key of a tree.
pub(super) fn prefixed(space: SpaceId, key: &[u8]) -> Bytes {
    let mut prefixed = BytesMut::with_capacity(SPACE_BYTES + key.len());
    prefixed.put_u32(space.0);
    prefixed.extend_from_slice(key);
    prefixed.freeze()
}

pub(super) fn prefixed_bounds(space: SpaceId, range: &KeyRange) -> (Bound<Bytes>, Bound<Bytes>) {
    let start = match &range.start {
        Bound::Included(key) => Bound::Included(prefixed(space, key)),
        Bound::Excluded(key) => Bound::Excluded(prefixed(space, key)),
        Bound::Unbounded => Bound::Included(prefixed(space, &[])),
    };
    let end = match &range.end {
        Bound::Included(key) => Bound::Included(prefixed(space, key)),
        Bound::Excluded(key) => Bound::Excluded(prefixed(space, key)),
        Bound::Unbounded => match space.0.checked_add(1) {
            Some(next) => Bound::Excluded(prefixed(SpaceId(next), &[])),
            None => Bound::Unbounded,
        },
    };
    (start, end)
}

pub(super) fn space_of(key: &[u8]) -> u32 {
    key.first_chunk().map_or(0, |space| u32::from_be_bytes(*space))
}

/// Runs a call into the crate; its errors and its panics become ours.
pub(super) fn guarded<T>(call: impl FnOnce() -> lsm_tree::Result<T>) -> Result<T, StoreError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(lsm_tree::Error::Io(error))) if is_full(&error) => {
            Err(StoreError::NoRoom(format!("tables: {error}").into()))
        }
        Ok(Err(lsm_tree::Error::Io(error))) if is_passing(&error) => {
            Err(StoreError::Exhausted(format!("tables: {error}").into()))
        }
        Ok(Err(lsm_tree::Error::Io(error))) => Err(StoreError::Io(format!("tables: {error}").into())),
        Ok(Err(error)) => Err(StoreError::Damaged(format!("tables: {error}").into())),
        Err(_) => Err(panicked()),
    }
}

fn panicked() -> StoreError {
    StoreError::Damaged("tables: an internal check failed".into())
}
