//! Whether an item passes a filter, as far as the keys of its index entries tell.
//!
//! An item has the value that a condition asks for if it has that entry, whose key is known: one row is looked up
//! instead of collecting all entries of the value. Ranges and searches cannot be looked up that way; of those the
//! item decides.

use orrery_query::pushdown::Scan;

use super::ItemReader;
use super::lookup::{Bound, Lookup, bind};
use crate::partition::Span;
use crate::partition::index::{PartitionView, PathNumber};
use crate::query::page::Ran;

/// Values of a list that are looked up one by one.
const LISTED_VALUES_MAX: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) enum Told {
    Fails,
    Passes,
    /// The item has to be asked.
    Unknown,
}

/// A filter as a tree of keys to look up.
pub(in crate::query) struct KeyTest<'f> {
    root: Node<'f>,
    exact: bool,
}

enum Node<'f> {
    /// One of a few values at a path.
    Values {
        path: PathNumber,
        scan: &'f Scan,
    },
    /// What holds for all entries that are walked.
    Given,
    Unknown,
    All(Vec<Node<'f>>),
    Any(Vec<Node<'f>>),
}

impl<'q> ItemReader<'q> {
    /// The filter as keys to look up; `None` where the index knows nothing of it. `given`: conditions that are known
    /// to hold.
    pub fn key_test(&self, given: &dyn Fn(&Scan) -> bool) -> Option<KeyTest<'q>> {
        let Bound { lookup, exact } = bind(self.filter, self.view, &Span::All, false)?;
        Some(KeyTest { root: Node::of(&lookup, given), exact })
    }
}

impl<'f> Node<'f> {
    fn of(lookup: &Lookup<'f>, given: &dyn Fn(&Scan) -> bool) -> Node<'f> {
        match lookup {
            // What no item has is not worth a test.
            Lookup::Nothing | Lookup::Cells { .. } | Lookup::Term { .. } => Node::Unknown,
            Lookup::Scan { scan, .. } if given(scan) => Node::Given,
            Lookup::Scan { path, scan } => {
                let points = scan.ranges.iter().all(|range| range.is_point());
                match points && scan.ranges.len() <= LISTED_VALUES_MAX && scan.check.is_none() {
                    true => Node::Values { path: *path, scan },
                    false => Node::Unknown,
                }
            }
            Lookup::All(parts) => Node::All(parts.iter().map(|part| Node::of(part, given)).collect()),
            Lookup::Any(parts) => Node::Any(parts.iter().map(|part| Node::of(part, given)).collect()),
        }
    }

    /// Keys that are looked up for one item at most.
    fn keys(&self) -> u64 {
        match self {
            Node::Values { scan, .. } => scan.ranges.len() as u64,
            Node::Given | Node::Unknown => 0,
            Node::All(parts) | Node::Any(parts) => parts.iter().map(Node::keys).sum(),
        }
    }

    /// Whether most items have to be asked.
    fn loads_most(&self) -> bool {
        match self {
            Node::Values { .. } | Node::Given => false,
            Node::Unknown => true,
            Node::All(parts) => !parts.iter().any(|part| matches!(part, Node::Values { .. })),
            Node::Any(parts) => parts.iter().any(Node::loads_most),
        }
    }

    fn is_decisive(&self) -> bool {
        match self {
            Node::Values { scan, .. } => scan.exact && scan.ranges.iter().all(|range| is_told(&range.start)),
            Node::Given => true,
            Node::Unknown => false,
            Node::All(parts) | Node::Any(parts) => parts.iter().all(Node::is_decisive),
        }
    }

    fn told(&self, view: &PartitionView, reference: &[u8], read: &mut u64) -> Ran<Told> {
        Ok(match self {
            Node::Values { path, scan } => {
                for range in &scan.ranges {
                    *read += 1;
                    if view.has_entry(*path, range, reference)? {
                        return Ok(if is_told(&range.start) { Told::Passes } else { Told::Unknown });
                    }
                }
                Told::Fails
            }
            Node::Given => Told::Passes,
            Node::Unknown => Told::Unknown,
            Node::All(parts) => {
                let mut all = Told::Passes;
                for part in parts {
                    match part.told(view, reference, read)? {
                        Told::Fails => return Ok(Told::Fails),
                        Told::Unknown => all = Told::Unknown,
                        Told::Passes => {}
                    }
                }
                all
            }
            Node::Any(parts) => {
                let mut any = Told::Fails;
                for part in parts {
                    match part.told(view, reference, read)? {
                        Told::Passes => return Ok(Told::Passes),
                        Told::Unknown => any = Told::Unknown,
                        Told::Fails => {}
                    }
                }
                any
            }
        })
    }
}

/// Whether an entry of this value is one of this value alone.
fn is_told(encoded: &[u8]) -> bool {
    orrery_index::is_exact(encoded)
}

impl KeyTest<'_> {
    /// Keys that are looked up for one item at most; 0 where only items tell.
    pub fn keys(&self) -> u64 {
        self.root.keys()
    }

    /// Whether most items have to be asked all the same.
    pub fn loads_most(&self) -> bool {
        self.root.loads_most()
    }

    /// Whether it always tells, and right: no item has to be asked.
    pub fn is_decisive(&self) -> bool {
        self.exact && self.root.is_decisive()
    }

    /// Adds the keys that were looked up to `read`.
    pub fn told(&self, view: &PartitionView, reference: &[u8], read: &mut u64) -> Ran<Told> {
        Ok(match self.root.told(view, reference, read)? {
            Told::Passes if !self.exact => Told::Unknown,
            told => told,
        })
    }
}
