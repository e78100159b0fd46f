//! Columns of a partition: the values of a few paths of all its items in memory, for queries that would read every
//! item.
//!
//! A *set* has the key, the number and the size of every item in the order of their keys, and one column for each
//! path that was asked for. It is made by a query that reads all items anyway, when its paths are asked for again. It
//! is derived from the items and given up whenever that is simpler than keeping it: when too much was written, when
//! others need the room, at a restart.
//!
//! ```text
//!       announce      view of a query       publication
//! LSN ────┼──────────────┼──── noted keys ────┼───────────> writers note what they change, before they submit it
//!         after          base of the set
//! ```
//!
//! **Right under snapshots.** A set is read from a snapshot that holds every commit up to its base, and perhaps some
//! of those behind it; all keys that are changed behind the base are noted. So an item that is not noted is the same
//! in the set as in any snapshot that was taken from the base on, and a noted one is read from the reader's own
//! snapshot. Notes begin with an announcement under the lock of the writers; only views that hold all that was
//! submitted before it may become sets.
//!
//! - `set`: the columns. `keys`: keys of items, in order and in little room. `state`: notes, what was asked for, the
//!   present set. `beside`: what takes long, after the page. `budget`: the memory of all sets together. How queries use
//!   them: `query/access_path/columns`.

mod beside;
mod budget;
mod keys;
mod set;
mod state;

pub(crate) use beside::{Work, begin, renew};
pub(crate) use budget::ColumnBudget;
pub(crate) use set::{ColumnSet, SetBuilder};
pub(crate) use state::{Building, Columns, Ready};
