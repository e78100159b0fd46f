//! What a space held at one moment, for as long as somebody keeps it: what forks lie on.
//!
//! A snapshot reads through the tree versions of its time, which the trees keep for it, and with them everything that
//! came later; so it may not live long. An image takes the one version of each tree that it reads for itself: its
//! memtable and its tables, which nobody changes, and whose files stay while anyone has them. The trees forget it and
//! go on. So an image takes what it costs to copy a few lists, whatever is in them, and what it holds is room on the
//! disk for tables that compaction has replaced since, at most as much as there was when it was made, and a memtable of
//! each tree.
//!
//! Nothing of it is on the disk: after a crash, the tables that only an image had are removed like the remains of
//! a compaction.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use lsm_tree::{AbstractTree, InternalValue, Tree};

use super::core::Owner;
use super::trees::{SPACE_BYTES, guarded, prefixed, prefixed_bounds};
use super::visit::Sources;
use crate::store::{
    Direction, KEY_BYTES_MAX, KeyRange, Row, RowIterator, Snapshot, SpaceId, StoreError, TABLES, Table, Visit,
};

type Bounds = (Bound<Bytes>, Bound<Bytes>);
type Entries = Box<dyn DoubleEndedIterator<Item = lsm_tree::Result<InternalValue>> + Send>;

pub(super) struct Image {
    /// Tables that only this has are removed when it goes, which has to be before another opens the directory.
    owner: Arc<Owner>,
    space: SpaceId,
    tables: [TableImage; TABLES.len()],
}

struct TableImage {
    /// Holds the version of the tree.
    scan: Box<dyn Fn(&Bounds) -> Entries + Send + Sync>,
    /// Reads the same with less effort. At some moments it cannot be had.
    sources: Option<Sources>,
}

impl Image {
    /// Images of several spaces, all of the moment that the last published commit has made.
    pub(super) fn of(owner: &Arc<Owner>, spaces: &[SpaceId]) -> Result<Vec<Image>, StoreError> {
        let pin = owner.core.snapshots.open();
        let held = || {
            let _gate = pin.enter()?;
            spaces.iter().map(|space| Image::new(owner, *space, pin.seqno)).collect()
        };
        let images = held();
        owner.core.snapshots.close(&pin);
        images
    }

    /// While a snapshot of this number is open.
    fn new(owner: &Arc<Owner>, space: SpaceId, seqno: u64) -> Result<Image, StoreError> {
        let core = &owner.core;
        let hold = |table: Table| -> Result<TableImage, StoreError> {
            let scan = guarded(|| Ok(held(core.trees.tree(table), seqno)))?;
            let sources = core.trees.sources(table, space, &KeyRange::all(), seqno)?;
            Ok(TableImage { scan, sources })
        };
        let tables = [hold(Table::Items)?, hold(Table::Index)?, hold(Table::Feed)?];
        Ok(Image { owner: owner.clone(), space, tables })
    }

    fn noted<T>(&self, table: Table, result: Result<T, StoreError>) -> Result<T, StoreError> {
        result.inspect_err(|error| self.owner.core.read_failed(table, error))
    }
}

/// The rows of a tree as a snapshot of this number sees them, whatever becomes of the tree.
fn held(tree: &Tree, seqno: u64) -> Box<dyn Fn(&Bounds) -> Entries + Send + Sync> {
    let version = tree.get_version_history_lock().get_version_for_snapshot(seqno);
    Box::new(move |bounds| Box::new(Tree::create_internal_range(version.clone(), bounds, seqno, None)))
}

impl Snapshot for Image {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Ok(None);
        }
        let key = prefixed(self.space, key);
        let image = &self.tables[table as usize];
        let found = guarded(|| match &image.sources {
            Some(sources) => sources.get(&key),
            None => {
                let bounds = (Bound::Included(key.clone()), Bound::Included(key.clone()));
                Ok((image.scan)(&bounds).next().transpose()?.map(|row| row.value))
            }
        });
        self.noted(table, found).map(|value| value.map(Bytes::from))
    }

    fn visit(&self, table: Table, range: KeyRange, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        if let Some(sources) = &self.tables[table as usize].sources {
            let sources = sources.within(prefixed_bounds(self.space, &range));
            return self.noted(table, guarded(|| sources.visit(visit)));
        }
        let mut rows = self.scan(table, range, Direction::Forward);
        while let Some(row) = rows.next_row().transpose()? {
            if visit(&row.key, &row.value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn scan(&self, table: Table, range: KeyRange, direction: Direction) -> Box<dyn RowIterator> {
        if range.is_empty() {
            return Box::new(ImageRows { rows: None, failed: None, direction });
        }
        let bounds = prefixed_bounds(self.space, &range);
        let rows = self.noted(table, guarded(|| Ok((self.tables[table as usize].scan)(&bounds))));
        let (rows, failed) = match rows {
            Ok(rows) => (Some(rows), None),
            Err(error) => (None, Some(error)),
        };
        Box::new(ImageRows { rows, failed, direction })
    }
}

struct ImageRows {
    rows: Option<Entries>,
    failed: Option<StoreError>,
    direction: Direction,
}

impl RowIterator for ImageRows {
    fn next_row(&mut self) -> Option<Result<Row, StoreError>> {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        let rows = self.rows.as_mut()?;
        let row = guarded(|| {
            let row = match self.direction {
                Direction::Forward => rows.next(),
                Direction::Reverse => rows.next_back(),
            };
            row.transpose()
        });
        let row = row.transpose().map(|row| {
            row.map(|row| Row {
                key: Bytes::from(row.key.user_key).slice(SPACE_BYTES..),
                value: row.value.into(),
            })
        });
        if !matches!(row, Some(Ok(_))) {
            // The end, or an error: what comes after it would leave rows out.
            self.rows = None;
        }
        row
    }
}
