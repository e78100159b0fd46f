//! The stems of all texts at a path, each once: for terms in which letters may differ.

use std::ops::Bound;

use bytes::Bytes;
use orrery_index::{STEM_BYTES_MAX, prefix_end};
use orrery_storage::{Direction, KeyRange, Table, keys};

use super::super::rows::damaged;
use super::view::{PartitionView, TextPath};
use crate::error::{Error, Result};

/// Rows of one stem that are read before the scan starts over behind them: opening one costs about as much.
const REPEATED_ROWS: usize = 24;
/// What ends a stem.
const END: u8 = 0;

impl PartitionView {
    /// Shows stems in order until `visit` has seen enough. Stems that are too long to be written out are passed over.
    /// Returns the rows that were read; `None` where there are more stems than `stems_max`.
    pub fn visit_stems(
        &self,
        text: &TextPath,
        stems_max: u64,
        visit: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Option<u64>> {
        let Some(path) = text.number() else { return Ok(Some(0)) };
        let mut head = Vec::with_capacity(keys::index::HEAD_BYTES);
        keys::index::push_word_head(&mut head, path);
        let end = Bound::Excluded(Bytes::from(prefix_end(&head)));
        let scan = |start: Vec<u8>| {
            let range = KeyRange { start: Bound::Included(start.into()), end: end.clone() };
            self.snapshot().scan(Table::Index, range, Direction::Forward)
        };
        let mut rows = scan(head.clone());
        let mut last: Vec<u8> = Vec::new();
        let (mut repeated, mut stems, mut read) = (0, 0, 0);
        while let Some(row) = rows.next_row().transpose().map_err(Error::from)? {
            read += 1;
            let body = row.key.get(head.len()..).ok_or_else(|| damaged("word"))?;
            let length = body.iter().position(|byte| *byte == END).ok_or_else(|| damaged("word"))?;
            let stem = &body[..length];
            if stem == last {
                repeated += 1;
                if repeated > REPEATED_ROWS {
                    rows = scan(prefix_end(&[&head[..], stem, &[END]].concat()));
                    repeated = 0;
                }
                continue;
            }
            stems += 1;
            if stems > stems_max {
                return Ok(None);
            }
            last.clear();
            last.extend_from_slice(stem);
            repeated = 0;
            if length <= STEM_BYTES_MAX
                && let Ok(stem) = std::str::from_utf8(stem)
                && !visit(stem)
            {
                break;
            }
        }
        Ok(Some(read))
    }
}
