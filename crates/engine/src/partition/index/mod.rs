//! The index of a partition: which rows an item has, who may rely on them, and how they change with the policy.
//!
//! Rows are written in the item's own commit, as the difference between two versions. What rows an item should have
//! is a function of its document, its time and a policy; nothing else is remembered. So the rows of an item can be
//! made again at any time, which is how a policy is changed, how data from before the index is taken in, and how the
//! children of a split get theirs.
//!
//! A `Scheme` says under which policies rows were made: the present one, and while a change of policy is being
//! worked off the *stale* ones before it. Meanwhile an item's rows follow one of them and nobody knows which. Writers
//! therefore take out what any of them asked for; readers may use a path when all of them index it.
//!
//! - `paths`: numbers for paths. `walk`: from versions to rows. `scheme`: policies, present and stale.
//! - `search`: rows of search indexes. `graph`: graphs over vectors, made later. `write`: rows in a commit.
//!   `rebuild`: after a change of policy. `view`, `entries`: reading. `postings`: entries in memory. `absent`: items
//!   that lack a path. `check`: are the rows right?

mod absent;
mod check;
mod entries;
mod estimate;
mod graph;
mod paths;
mod postings;
mod rebuild;
mod scheme;
mod search;
mod stems;
mod view;
mod walk;
mod write;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use orrery_model::Raw;
use orrery_storage::{Direction, Snapshot, Table, keys};
use parking_lot::{Mutex, RwLock};

pub(crate) use absent::{Lacking, Part};
pub use entries::{Entries, Entry};
pub use estimate::Estimate;
pub use graph::{GraphPath, TouchedVector};
pub use scheme::Composite;
pub use search::VectorForm;
pub(super) use view::items_range;
pub use view::{IndexedPath, Items, PartitionView, PathNumber, SpatialPath, TextPath, VectorPath};
pub(super) use write::Stage;

/// Names of the meta rows that say which rows of the index there are.
pub(super) const MARKS: [&str; 2] = [scheme::SCHEME, rebuild::MARK];

use absent::Absences;
use estimate::Estimates;
use paths::{Dictionary, NewPaths, Paths};
use postings::Postings;
use scheme::Scheme;
use walk::{Layout, Version, Walk};

use crate::definition::ContainerDefinition;
use crate::error::Result;

/// What writers and readers of a partition share about its index.
pub(super) struct Index {
    /// Replaced under the partition's lock alone.
    scheme: ArcSwap<Scheme>,
    /// Whether the store has been told of the scheme. Used under the partition's lock alone.
    recorded: AtomicBool,
    dictionary: RwLock<Dictionary>,
    /// Whether an item may be without rows because they would have been too many.
    unindexed: AtomicBool,
    /// Items that a rebuild has done since it began or was taken up.
    rebuilt_items: AtomicU64,
    /// Words of all texts at a path, as of an LSN: queries ask for them again and again.
    words: Mutex<HashMap<u16, (u64, u64)>>,
    absences: Absences,
    postings: Postings,
    estimates: Estimates,
    /// Paths with a graph that is told what is touched. Replaced under the partition's lock alone.
    graphs: ArcSwap<Vec<u16>>,
    /// The last commit that told a graph something. Changed under the partition's lock alone.
    touch: AtomicU64,
    /// A graph has something to look at.
    unlinked: AtomicBool,
}

/// A moment in the life of an index, see [`Index::mark`].
pub(super) struct Mark {
    scheme: Arc<Scheme>,
    paths: usize,
    announced: u64,
    touch: u64,
}

impl Mark {
    pub(super) fn is_same(&self, other: &Mark) -> bool {
        Arc::ptr_eq(&self.scheme, &other.scheme)
            && self.paths == other.paths
            && self.announced == other.announced
            && self.touch == other.touch
    }
}

impl Index {
    pub(super) fn open(
        snapshot: &dyn Snapshot,
        definition: Arc<ContainerDefinition>,
        is_new: bool,
    ) -> Result<Index> {
        let (scheme, recorded) = Scheme::open(snapshot, definition, is_new)?;
        let unindexed = snapshot
            .scan(Table::Index, keys::index::unindexed_items(), Direction::Forward)
            .next_row()
            .transpose()?
            .is_some();
        let (graphs, touch, unlinked) = graph::open(snapshot)?;
        Ok(Index {
            graphs: ArcSwap::from_pointee(graphs),
            touch: AtomicU64::new(touch),
            unlinked: AtomicBool::new(unlinked),
            scheme: ArcSwap::from_pointee(scheme),
            recorded: AtomicBool::new(recorded),
            dictionary: RwLock::new(Dictionary::open(snapshot)?),
            unindexed: AtomicBool::new(unindexed),
            rebuilt_items: AtomicU64::new(0),
            words: Mutex::default(),
            absences: Absences::default(),
            postings: Postings::default(),
            estimates: Estimates::default(),
        })
    }

    /// The index of a partition that is just being made.
    pub(super) fn empty(definition: Arc<ContainerDefinition>) -> Index {
        Index {
            graphs: ArcSwap::default(),
            touch: AtomicU64::new(0),
            unlinked: AtomicBool::new(false),
            scheme: ArcSwap::from_pointee(Scheme::empty(definition)),
            recorded: AtomicBool::new(false),
            dictionary: RwLock::new(Dictionary::default()),
            unindexed: AtomicBool::new(false),
            rebuilt_items: AtomicU64::new(0),
            words: Mutex::default(),
            absences: Absences::default(),
            postings: Postings::default(),
            estimates: Estimates::default(),
        }
    }

    /// Whether rows of an earlier policy are left.
    pub(super) fn is_behind(&self) -> bool {
        !self.scheme.load().stale.is_empty()
    }

    /// What rows were made under; the same mark later says that rows which were not submitted yet are still right.
    /// `None` while a rebuild is going on. The caller holds the partition's lock.
    pub(super) fn mark(&self) -> Option<Mark> {
        let scheme = self.scheme.load_full();
        let paths = self.dictionary.read().len();
        let announced = self.absences.announced();
        let touch = self.touch.load(Ordering::Relaxed);
        scheme.stale.is_empty().then_some(Mark { scheme, paths, announced, touch })
    }

    /// Takes note of the container's present definition. The caller holds the partition's lock, and nothing has been
    /// written under the definition yet. `is_empty`: there is no item, and every reader can see that. Returns whether
    /// there is something to rebuild.
    pub(super) fn follow(
        &self,
        definition: &Arc<ContainerDefinition>,
        is_empty: impl FnOnce() -> bool,
    ) -> bool {
        let scheme = self.scheme.load();
        if Arc::ptr_eq(&scheme.definition, definition) {
            return false;
        }
        let (mut next, same_rows) = scheme.followed_by(definition.clone());
        if !same_rows {
            self.recorded.store(false, Ordering::Relaxed);
            self.rebuilt_items.store(0, Ordering::Relaxed);
            if is_empty() {
                next.stale.clear();
            }
            // A graph may have lost its index.
            self.look_at_graphs();
        }
        let behind = !same_rows && !next.stale.is_empty();
        self.scheme.store(Arc::new(next));
        behind
    }

    /// Has upkeep look at graphs, if there are any.
    fn look_at_graphs(&self) {
        if !self.graphs.load().is_empty() {
            self.unlinked.store(true, Ordering::Release);
        }
    }

    /// From now on writers tell the graph of a path what they touch, or no longer. The caller holds the partition's
    /// lock.
    fn note_graph(&self, path: u16, told: bool) {
        let mut graphs = Vec::clone(&self.graphs.load());
        graphs.retain(|known| *known != path);
        if told {
            graphs.push(path);
        }
        self.graphs.store(Arc::new(graphs));
        // Rows that were made before and not submitted yet do not know of it.
        self.touch.fetch_add(1, Ordering::Relaxed);
    }

    /// How many terms the time of a write counts in a version.
    pub(super) fn time_terms(&self) -> usize {
        usize::from(self.scheme.load().is_timed())
    }

    /// The terms by which two versions of an item differ, under the present policy and without the time of the write.
    pub(super) fn terms(&self, old: Option<Raw<'_>>, new: Option<Raw<'_>>) -> usize {
        let scheme = self.scheme.load();
        let dictionary = self.dictionary.read();
        count(scheme.layout(), &dictionary, old, new)
    }
}

/// The index terms by which two versions of an item differ; those of one version when the other is not there. The
/// time of the write is not among them.
#[cfg(test)]
pub(crate) fn terms(definition: &ContainerDefinition, old: Option<Raw<'_>>, new: Option<Raw<'_>>) -> usize {
    let composites: Vec<u16> = (0..definition.indexing.composite.len() as u16).collect();
    let layout = Layout { policy: &definition.indexing, composites: &composites };
    count(layout, &Dictionary::default(), old, new)
}

fn count(layout: Layout<'_>, dictionary: &Dictionary, old: Option<Raw<'_>>, new: Option<Raw<'_>>) -> usize {
    let mut new_paths = NewPaths::default();
    let paths = Paths { dictionary, new: &mut new_paths };
    let (old, new) = (old.map(|body| Version { body, ts: 0 }), new.map(|body| Version { body, ts: 0 }));
    Walk::terms(layout, paths, old, new)
}
