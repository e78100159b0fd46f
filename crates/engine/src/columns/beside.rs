//! Columns of large partitions are made beside the pages that ask for them.
//!
//! Reading a million items to make columns of them takes a second, and so does putting their rows in order: no page
//! waits for that. A page that finds nothing ready goes another way, and leaves word of what it would have had use
//! for; when it is done its view is handed to a thread of its own. There is one such thread at a time. Of small
//! partitions a page makes what it needs itself.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use orrery_query::columns::ColumnSource;

use super::set::{ColumnSet, SetBuilder};
use super::state::Ready;
use crate::error::Result;
use crate::item::readable;
use crate::partition::Span;
use crate::partition::index::PartitionView;

/// Rows between two looks at whether it is still worth going on; others get the processor meanwhile.
const LOOK_ROWS: u64 = 1_024;

/// Somebody is at it.
static BUSY: AtomicBool = AtomicBool::new(false);

/// What a page would have had use for.
pub(crate) enum Work {
    /// Columns of these sources.
    Make(Vec<ColumnSource>),
    /// The rows in the order of a column.
    Order(Arc<ColumnSet>, ColumnSource),
    /// A set without notes behind it.
    Renew(Vec<ColumnSource>),
}

/// Has the work done, unless somebody is at other work: then it is asked for again.
pub(crate) fn begin(view: PartitionView, work: Work) {
    if BUSY.swap(true, Ordering::AcqRel) {
        return;
    }
    let turn = Turn;
    let thread = std::thread::Builder::new().name("columns".to_owned());
    // Where there is no thread to be had, nothing is made.
    drop(thread.spawn(move || {
        let _turn = turn;
        // Columns are never needed. What fails here fails where it is read as well, and is told there.
        let _ = run(&view, work);
    }));
}

/// Nobody else begins until this is gone.
struct Turn;

impl Drop for Turn {
    fn drop(&mut self) {
        BUSY.store(false, Ordering::Release);
    }
}

fn run(view: &PartitionView, work: Work) -> Result<()> {
    match work {
        Work::Make(sources) => make(view, &sources),
        Work::Order(set, source) => {
            set.make_order(&source);
            view.columns().has_grown(&set);
            Ok(())
        }
        Work::Renew(sources) => match view.ready_columns(&sources)? {
            Some(ready) => renew(view, &ready),
            None => Ok(()),
        },
    }
}

fn make(view: &PartitionView, sources: &[ColumnSource]) -> Result<()> {
    let Some(mut building) = view.start_columns(sources)? else { return Ok(()) };
    let (mut rows, mut given_up) = (0, false);
    view.visit_items(&Span::All, &mut |key, item, document| {
        building.builder.push(key, item.number, document.len(), readable(document));
        rows += 1;
        if rows % LOOK_ROWS == 0 {
            given_up =
                view.is_closed() || !view.columns().budget().has_room_for(building.builder.size_bytes());
            std::thread::yield_now();
        }
        if given_up { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    match given_up {
        true => view.columns().abandon(),
        false => view.columns().install(building, view.position().lsn),
    }
    Ok(())
}

/// Makes a set anew from the old one and from the items that were changed since.
pub(crate) fn renew(view: &PartitionView, ready: &Ready) -> Result<()> {
    let set = &ready.set;
    let mut places = Vec::with_capacity(ready.changed.len());
    for key in &ready.changed {
        let found = set.find(key);
        places.push((found.unwrap_or_else(|row| row), found.is_ok(), key));
    }
    // New keys stand before the row that they come before.
    places.sort_unstable();
    let mut renewed = SetBuilder::like(set);
    let mut at = 0;
    for (row, stored, key) in places {
        renewed.append(set, at..row);
        if let Some(item) = view.item(key)? {
            renewed.push(key, item.number, item.document.len(), item.body());
        }
        at = row + usize::from(stored);
    }
    renewed.append(set, at..set.rows());
    view.columns().renew(renewed, ready, view.position().lsn);
    Ok(())
}
