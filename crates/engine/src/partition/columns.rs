//! Columns as queries reach them; see `crate::columns`.

use std::ops::{Bound, Range};
use std::sync::Arc;

use orrery_query::columns::ColumnSource;
use orrery_storage::KeyRange;

use super::index::PartitionView;
use super::scan::Span;
use crate::columns::{Building, ColumnSet, Columns, Ready};
use crate::error::Result;

impl PartitionView {
    pub(crate) fn columns(&self) -> &Arc<Columns> {
        &self.shared.columns
    }

    /// The present columns of these sources, if they are of use to this view.
    pub(crate) fn ready_columns(&self, sources: &[ColumnSource]) -> Result<Option<Ready>> {
        let Some(ready) = self.columns().ready(sources, self.position().lsn) else { return Ok(None) };
        // Items that are over or purged are in the set until they are removed.
        Ok(self.hides_nothing()?.then_some(ready))
    }

    /// Leave to make columns from all items that this view shows, if they were asked for so many times.
    pub(crate) fn begin_columns(&self, sources: &[ColumnSource], asks: u32) -> Result<Option<Building>> {
        if self.columns().ask(sources, asks) { self.start_columns(sources) } else { Ok(None) }
    }

    /// The same without asking.
    pub(crate) fn start_columns(&self, sources: &[ColumnSource]) -> Result<Option<Building>> {
        let columns = self.columns();
        if !self.hides_nothing()? {
            return Ok(None);
        }
        if !columns.is_noting() {
            // Writers hold this lock from their first look until they have submitted.
            let state = self.shared.overlay.lock();
            columns.announce(state.next_lsn - 1, self.item_count());
        }
        Ok(columns.begin(sources, self.position().lsn, self.item_count()))
    }
}

/// The rows of a set that lie in a span, and the keys in it.
pub(crate) fn rows_of(set: &ColumnSet, span: &Span) -> (Range<usize>, KeyRange) {
    let range = super::index::items_range(span);
    let from = |bound: &Bound<bytes::Bytes>, behind: bool| match bound {
        Bound::Included(key) | Bound::Excluded(key) => set.first_from(key),
        Bound::Unbounded if behind => set.rows(),
        Bound::Unbounded => 0,
    };
    let (start, end) = (from(&range.start, false), from(&range.end, true));
    (start..end.max(start), range)
}
