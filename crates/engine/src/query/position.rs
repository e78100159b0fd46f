//! Where the next page of a query begins in its partition.
//!
//! A position names a place in the *result*, not in a plan: an item's number, an item's key, or the keys of the last
//! sorted row. Whatever index the next page uses, and whatever was written meanwhile, it goes on behind that place,
//! so positions outlive restarts, rebuilt indexes and changed estimates. Only queries that must see everything again
//! (groups, DISTINCT) count the rows that were delivered.

use bytes::Bytes;
use orrery_model::{Raw, Value};
use orrery_query::SortPosition;

#[derive(Debug, Clone, PartialEq)]
pub enum QueryPosition {
    /// In order of creation: go on with the first item whose number is at least this.
    Created { from: u64, progress: Progress },
    /// In storage order: go on with the first item whose key is at least this.
    Stored { from: Bytes, progress: Progress },
    /// Sorted: go on after this row. `passed` rows count against OFFSET and LIMIT. What comes next may be known
    /// (`window`).
    Sorted { after: SortPosition, passed: u64, window: Option<WindowPosition> },
    /// Go on after as many rows: with those that were kept under a number, or by running again.
    Delivered { rows: u64, order: Order, cached: u64 },
}

/// An entry of a kept window, and the number under which that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowPosition {
    pub cached: u64,
    pub next: u64,
}

/// In which order items are taken by a query that is run again for each page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Stored,
    Created,
    /// By the value of the one path that the query reads.
    Value,
}

/// What rows before a position mean for the rows after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rows counted against OFFSET, LIMIT and TOP.
    pub passed: u64,
    /// Rows of the first item that were delivered already; a JOIN makes several.
    pub swallow: u64,
}

const CREATED: u8 = 1;
const STORED: u8 = 2;
const SORTED: u8 = 3;
const DELIVERED: u8 = 4;
const SORTED_IN_WINDOW: u8 = 5;

/// Sort keys longer than this are not carried by clients; such a query counts its rows instead.
pub(super) const SORT_KEYS_BYTES_MAX: usize = 4 * 1024;

impl QueryPosition {
    /// Whether the position means the same in each of several partitions that have taken over the one it was made in.
    /// Counted rows do not: nobody knows how many of them lay where. `alone` says that the caller combines what such
    /// partitions answer by itself, so that sorting and counting across them is its business.
    pub fn holds_in_parts(&self, alone: bool) -> bool {
        match self {
            QueryPosition::Created { .. } | QueryPosition::Stored { .. } => true,
            QueryPosition::Sorted { .. } => alone,
            QueryPosition::Delivered { .. } => false,
        }
    }

    /// The same position, with where it lies in a kept window.
    pub(super) fn in_window(mut self, cached: u64, next: usize) -> QueryPosition {
        if let QueryPosition::Sorted { window, .. } = &mut self {
            *window = Some(WindowPosition { cached, next: next as u64 });
        }
        self
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        match self {
            QueryPosition::Created { from, progress } => {
                out.push(CREATED);
                push_progress(&mut out, *progress);
                out.extend_from_slice(&from.to_be_bytes());
            }
            QueryPosition::Stored { from, progress } => {
                out.push(STORED);
                push_progress(&mut out, *progress);
                out.extend_from_slice(from);
            }
            QueryPosition::Sorted { after, passed, window } => {
                out.push(if window.is_some() { SORTED_IN_WINDOW } else { SORTED });
                for number in window.iter().flat_map(|window| [window.cached, window.next]) {
                    out.extend_from_slice(&number.to_be_bytes());
                }
                for number in [*passed, after.number, after.rows] {
                    out.extend_from_slice(&number.to_be_bytes());
                }
                out.extend_from_slice(&stored_keys(&after.keys));
            }
            QueryPosition::Delivered { rows, order, cached } => {
                out.extend_from_slice(&[DELIVERED, *order as u8]);
                out.extend_from_slice(&rows.to_be_bytes());
                if *cached != 0 {
                    out.extend_from_slice(&cached.to_be_bytes());
                }
            }
        }
        out
    }

    /// `None` when the bytes are no position.
    pub fn decode(bytes: &[u8]) -> Option<QueryPosition> {
        let (kind, rest) = bytes.split_first()?;
        match *kind {
            CREATED => {
                let (progress, rest) = take_progress(rest)?;
                Some(QueryPosition::Created { from: u64::from_be_bytes(rest.try_into().ok()?), progress })
            }
            STORED => {
                let (progress, rest) = take_progress(rest)?;
                (!rest.is_empty())
                    .then(|| QueryPosition::Stored { from: Bytes::copy_from_slice(rest), progress })
            }
            SORTED | SORTED_IN_WINDOW => {
                let (window, rest) = match *kind {
                    SORTED => (None, rest),
                    _ => {
                        let (cached, rest) = take_u64(rest)?;
                        let (next, rest) = take_u64(rest)?;
                        (Some(WindowPosition { cached, next }), rest)
                    }
                };
                let (passed, rest) = take_u64(rest)?;
                let (number, rest) = take_u64(rest)?;
                let (rows, rest) = take_u64(rest)?;
                let keys = keys_of(rest)?;
                Some(QueryPosition::Sorted { after: SortPosition { keys, number, rows }, passed, window })
            }
            DELIVERED => {
                let (order, rest) = rest.split_first()?;
                let orders = [Order::Stored, Order::Created, Order::Value];
                let order = orders.into_iter().find(|known| *known as u8 == *order)?;
                let (rows, rest) = take_u64(rest)?;
                let cached = match rest {
                    [] => 0,
                    rest => u64::from_be_bytes(rest.try_into().ok()?),
                };
                Some(QueryPosition::Delivered { rows, order, cached })
            }
            _ => None,
        }
    }
}

/// Sort keys as bytes, as positions carry them.
pub fn encode_keys(keys: &[Value]) -> Vec<u8> {
    stored_keys(keys)
}

/// `None` when the bytes are no sort keys.
pub fn decode_keys(bytes: &[u8]) -> Option<Vec<Value>> {
    keys_of(bytes)
}

/// The keys as one stored document. Undefined cannot stand in an array, so each key is an array of one or of none.
pub(super) fn stored_keys(keys: &[Value]) -> Vec<u8> {
    let boxed = keys.iter().map(|key| match key {
        Value::Undefined => Value::Array(Vec::new()),
        defined => Value::Array(vec![defined.clone()]),
    });
    Value::Array(boxed.collect()).to_document()
}

fn keys_of(bytes: &[u8]) -> Option<Vec<Value>> {
    let document = Raw::document(bytes).ok()?;
    document.verify().ok()?;
    let keys = document.to_value();
    let keys = keys.as_array()?.iter().map(|key| match key.as_array()? {
        [] => Some(Value::Undefined),
        [key] => Some(key.clone()),
        _ => None,
    });
    keys.collect()
}

fn push_progress(out: &mut Vec<u8>, progress: Progress) {
    out.extend_from_slice(&progress.passed.to_be_bytes());
    out.extend_from_slice(&progress.swallow.to_be_bytes());
}

fn take_progress(bytes: &[u8]) -> Option<(Progress, &[u8])> {
    let (passed, rest) = take_u64(bytes)?;
    let (swallow, rest) = take_u64(rest)?;
    Some((Progress { passed, swallow }, rest))
}

fn take_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn positions_read_back_as_they_were_written() {
        let progress = Progress { passed: 3, swallow: 1 };
        let keys =
            vec![Value::Undefined, Value::Null, Value::from("é"), Value::from(7), Value::Array(vec![])];
        for position in [
            QueryPosition::Created { from: 9, progress },
            QueryPosition::Stored { from: Bytes::from_static(b"key"), progress },
            QueryPosition::Sorted {
                after: SortPosition { keys: keys.clone(), number: 5, rows: 2 },
                passed: 11,
                window: None,
            },
            QueryPosition::Sorted {
                after: SortPosition { keys, number: 5, rows: 2 },
                passed: 11,
                window: Some(WindowPosition { cached: 3, next: 100 }),
            },
            QueryPosition::Delivered { rows: 70, order: Order::Created, cached: 0 },
            QueryPosition::Delivered { rows: 70, order: Order::Value, cached: 9 },
        ] {
            assert_eq!(QueryPosition::decode(&position.encode()), Some(position));
        }
    }

    proptest! {
        #[test]
        fn foreign_bytes_are_no_panic(kind in 0u8..7, rest: Vec<u8>) {
            let bytes = [vec![kind], rest].concat();
            if let Some(position) = QueryPosition::decode(&bytes) {
                prop_assert_eq!(QueryPosition::decode(&position.encode()), Some(position));
            }
        }
    }
}
