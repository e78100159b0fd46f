//! Keys of the index rows of a physical partition, in `Table::Index`.
//!
//! | row | key | value |
//! |---|---|---|
//! | value | `02`, path (u16), encoded value, item reference | - |
//! | composite | `03`, composite index (u16), encoded components, item reference | - |
//! | path | `04`, path (u16) | the path above it and the step from there |
//! | unindexed | `05`, item key | - |
//! | cell | `10`, path (u16), cell of a shape (8 bytes), item reference | - |
//! | word | `20`, path (u16), encoded stem, item reference | length of the text, places of the stem in it |
//! | length | `21`, path (u16), item reference | length of the text; nothing where it is no text |
//! | vector | `30`, path (u16), item reference | the vector |
//! | code | `31`, path (u16), item reference | the vector in few bits |
//! | touched | `32`, path (u16), count of commits (u64), item reference | a code that the graph has not taken up |
//! | node | `33`, path (u16), node (u32) | item reference, code |
//! | links | `34`, path (u16), node (u32) | other nodes |
//! | node of | `35`, path (u16), item reference | node |
//! | graph | `36`, path (u16) | how far the graph of a path is |
//! | *kept* | `11`–`1F` spatial, `22`–`2F` full text, `37`–`3F` vectors | |
//!
//! Rows up to `31` follow from items. Those of graphs are made from them later and can be made anew.
//!
//! Numbers are big-endian. How a value becomes bytes is `orrery-index`'s business; here it is a part that ends by
//! itself.
//!
//! An *item reference* is the item's key with the effective partition key cut to [`REFERENCE_EPK_BYTES`]: the rest of
//! it follows from the partition key, which stands behind it, and would be the largest and least compressible part of
//! the row. Within one value rows thus sort by hash, partition key and id: nearly as items do, so that what is found
//! is read almost in order; a logical partition is a range; and two scans can be merged.

use std::borrow::Cow;
use std::fmt;
use std::ops::Bound;

use bytes::Bytes;

use super::{Hex, Text, push_escaped, unescape};
use crate::store::{KEY_BYTES_MAX, KeyRange};

const TAG_VALUE: u8 = 2;
const TAG_COMPOSITE: u8 = 3;
const TAG_PATH: u8 = 4;
const TAG_UNINDEXED: u8 = 5;
const TAG_CELL: u8 = 0x10;
const TAG_WORD: u8 = 0x20;
const TAG_LENGTH: u8 = 0x21;
const TAG_VECTOR: u8 = 0x30;
const TAG_CODE: u8 = 0x31;
const TAG_TOUCHED: u8 = 0x32;
const TAG_NODE: u8 = 0x33;
const TAG_LINKS: u8 = 0x34;
const TAG_NODE_OF: u8 = 0x35;
const TAG_GRAPH: u8 = 0x36;
/// Where the tags of search indexes end.
const TAG_SEARCH_END: u8 = 0x40;

/// How much of an effective partition key stands in a reference.
pub const REFERENCE_EPK_BYTES: usize = 3;
/// What a row's key holds before its value.
pub const HEAD_BYTES: usize = 3;
/// Room that index rows need beside an item's key: eight components, each a cut string of escapes.
pub const ROOM_BYTES: usize = 1200;
const _: () = assert!(ROOM_BYTES < KEY_BYTES_MAX / 8);

/// Appends what the rows of a path start with.
pub fn push_value_head(key: &mut Vec<u8>, path: u16) {
    key.push(TAG_VALUE);
    key.extend_from_slice(&path.to_be_bytes());
}

/// Appends what the rows of a composite index start with.
pub fn push_composite_head(key: &mut Vec<u8>, composite: u16) {
    key.push(TAG_COMPOSITE);
    key.extend_from_slice(&composite.to_be_bytes());
}

/// Appends what the rows of the cells of a path start with.
pub fn push_cell_head(key: &mut Vec<u8>, path: u16) {
    key.push(TAG_CELL);
    key.extend_from_slice(&path.to_be_bytes());
}

/// Appends what the rows of the words of the texts at a path start with.
pub fn push_word_head(key: &mut Vec<u8>, path: u16) {
    key.push(TAG_WORD);
    key.extend_from_slice(&path.to_be_bytes());
}

/// Appends what the rows of the lengths of the texts at a path start with.
pub fn push_length_head(key: &mut Vec<u8>, path: u16) {
    key.push(TAG_LENGTH);
    key.extend_from_slice(&path.to_be_bytes());
}

/// Appends what the rows of the vectors at a path start with.
pub fn push_vector_head(key: &mut Vec<u8>, path: u16) {
    key.push(TAG_VECTOR);
    key.extend_from_slice(&path.to_be_bytes());
}

/// Appends what the rows of the codes of vectors at a path start with.
pub fn push_code_head(key: &mut Vec<u8>, path: u16) {
    key.push(TAG_CODE);
    key.extend_from_slice(&path.to_be_bytes());
}

/// The path and the reference in the key of a code; `None` when the key is another row's.
pub fn code_of(key: &[u8]) -> Option<(u16, &[u8])> {
    match key {
        [TAG_CODE, high, low, reference @ ..] => Some((u16::from_be_bytes([*high, *low]), reference)),
        _ => None,
    }
}

/// What the graph of a path has yet to look at: `touch` counts the commits that left something to do.
pub fn touched(path: u16, touch: u64, reference: &[u8]) -> Bytes {
    let mut key = Vec::with_capacity(HEAD_BYTES + 8 + reference.len());
    push_touched_head(&mut key, path);
    key.extend_from_slice(&touch.to_be_bytes());
    key.extend_from_slice(reference);
    key.into()
}

/// Appends what the rows start with that the graph of a path has yet to look at.
pub fn push_touched_head(key: &mut Vec<u8>, path: u16) {
    key.push(TAG_TOUCHED);
    key.extend_from_slice(&path.to_be_bytes());
}

/// The number of the commit and the reference in the key of a touched row; `None` when the key is another row's.
pub fn touched_of(key: &[u8]) -> Option<(u64, &[u8])> {
    let (touch, reference) = key.strip_prefix(&[TAG_TOUCHED])?.get(2..)?.split_first_chunk()?;
    Some((u64::from_be_bytes(*touch), reference))
}

/// A node of the graph of a path.
pub fn node(path: u16, node: u32) -> [u8; HEAD_BYTES + 4] {
    numbered(TAG_NODE, path, node)
}

/// The links of a node of the graph of a path.
pub fn links(path: u16, node: u32) -> [u8; HEAD_BYTES + 4] {
    numbered(TAG_LINKS, path, node)
}

fn numbered(tag: u8, path: u16, number: u32) -> [u8; HEAD_BYTES + 4] {
    let ([high, low], [a, b, c, d]) = (path.to_be_bytes(), number.to_be_bytes());
    [tag, high, low, a, b, c, d]
}

/// The number in the key of a node; `None` when the key is another row's.
pub fn node_number(key: &[u8]) -> Option<u32> {
    let (number, rest) = key.strip_prefix(&[TAG_NODE])?.get(2..)?.split_first_chunk()?;
    rest.is_empty().then(|| u32::from_be_bytes(*number))
}

/// Which node of the graph of a path an item is.
pub fn node_of(path: u16, reference: &[u8]) -> Bytes {
    let [high, low] = path.to_be_bytes();
    [&[TAG_NODE_OF, high, low], reference].concat().into()
}

/// How far the graph of a path is.
pub fn graph(path: u16) -> Bytes {
    let [high, low] = path.to_be_bytes();
    Bytes::copy_from_slice(&[TAG_GRAPH, high, low])
}

/// The graphs that have been begun.
pub fn graphs() -> KeyRange {
    KeyRange::prefix(&[TAG_GRAPH])
}

/// The path in the key of a graph; `None` when the key is another row's.
pub fn graph_path(key: &[u8]) -> Option<u16> {
    match key {
        [TAG_GRAPH, high, low] => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

/// Everything that belongs to the graph of a path, without what says how far it is.
pub fn graph_parts(path: u16) -> [KeyRange; 4] {
    let [high, low] = path.to_be_bytes();
    [TAG_TOUCHED, TAG_NODE, TAG_LINKS, TAG_NODE_OF].map(|tag| KeyRange::prefix(&[tag, high, low]))
}

/// Every row of every graph.
pub fn graph_rows() -> KeyRange {
    KeyRange::half_open(Bytes::from_static(&[TAG_TOUCHED]), Bytes::from_static(&[TAG_SEARCH_END]))
}

/// Whether a row is asked for by its key, again and again, where others of its table are scanned.
pub fn is_asked_for(key: &[u8]) -> bool {
    matches!(key, [TAG_NODE | TAG_LINKS, ..])
}

/// Every row of every search index that follows from an item.
pub fn searches() -> KeyRange {
    KeyRange::half_open(Bytes::from_static(&[TAG_CELL]), Bytes::from_static(&[TAG_TOUCHED]))
}

/// Every row of every composite index.
pub fn composites() -> KeyRange {
    KeyRange::prefix(&[TAG_COMPOSITE])
}

/// The composite index of a row; `None` when the key is another row's.
pub fn composite_of(key: &[u8]) -> Option<u16> {
    match key {
        [TAG_COMPOSITE, high, low, ..] => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

/// Every row of the index, whatever it is for; order rows are not among them.
pub fn everything() -> KeyRange {
    KeyRange { start: Bound::Included(Bytes::from_static(&[TAG_VALUE])), end: Bound::Unbounded }
}

/// Every row of every path.
pub fn values() -> KeyRange {
    KeyRange::prefix(&[TAG_VALUE])
}

/// The row that says which path a number stands for.
pub fn path(path: u16) -> Bytes {
    let [high, low] = path.to_be_bytes();
    Bytes::copy_from_slice(&[TAG_PATH, high, low])
}

/// Every path row, by number.
pub fn paths() -> KeyRange {
    KeyRange::prefix(&[TAG_PATH])
}

/// The number in the key of a path row.
pub fn path_number(key: &[u8]) -> Option<u16> {
    match key {
        [TAG_PATH, high, low] => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

/// The row that says an item has no other index rows, because they would be too many.
pub fn unindexed(item_key: &[u8]) -> Bytes {
    [&[TAG_UNINDEXED], item_key].concat().into()
}

pub fn unindexed_items() -> KeyRange {
    KeyRange::prefix(&[TAG_UNINDEXED])
}

/// The reference to an item, from its key and its effective partition key.
pub fn reference(epk: &[u8], item_key: &[u8]) -> Vec<u8> {
    let mut reference = Vec::with_capacity(REFERENCE_EPK_BYTES + item_key.len());
    reference.extend_from_slice(&reference_epk(epk));
    reference.extend_from_slice(&item_key[escaped_bytes(epk)..]);
    reference
}

/// What references to items under an effective partition key start with.
pub fn reference_epk(epk: &[u8]) -> [u8; REFERENCE_EPK_BYTES] {
    let mut start = [0; REFERENCE_EPK_BYTES];
    let kept = epk.len().min(REFERENCE_EPK_BYTES);
    start[..kept].copy_from_slice(&epk[..kept]);
    start
}

/// The encoded partition key in a reference; `None` when the bytes are no reference.
pub fn reference_partition_key(reference: &[u8]) -> Option<Cow<'_, [u8]>> {
    Some(unescape(reference.get(REFERENCE_EPK_BYTES..)?)?.0)
}

/// The encoded partition key in a reference and the id behind it; `None` when the bytes are no reference.
pub fn reference_parts(reference: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    unescape(reference.get(REFERENCE_EPK_BYTES..)?)
}

/// The key of the item that a reference means, given its whole effective partition key.
pub fn referenced(epk: &[u8], reference: &[u8]) -> Option<Bytes> {
    let tail = reference.get(REFERENCE_EPK_BYTES..)?;
    let mut key = Vec::with_capacity(epk.len() + super::ESCAPE_ROOM + tail.len());
    push_escaped(&mut key, epk);
    key.extend_from_slice(tail);
    Some(key.into())
}

fn escaped_bytes(part: &[u8]) -> usize {
    part.len() + part.iter().filter(|byte| **byte == 0).count() + 2
}

/// Where in an item key the partition key begins; `None` when the bytes are no item key.
pub fn epk_bytes(item_key: &[u8]) -> Option<usize> {
    let (_, rest) = unescape(item_key)?;
    Some(item_key.len() - rest.len())
}

/// The parts of an index row's key, as far as they can be told apart without knowing how values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKey<'k> {
    Value {
        path: u16,
        rest: &'k [u8],
    },
    Composite {
        composite: u16,
        rest: &'k [u8],
    },
    Cell {
        path: u16,
        rest: &'k [u8],
    },
    Word {
        path: u16,
        rest: &'k [u8],
    },
    Length {
        path: u16,
        rest: &'k [u8],
    },
    Vector {
        path: u16,
        rest: &'k [u8],
    },
    Code {
        path: u16,
        rest: &'k [u8],
    },
    /// A part of the graph of a path.
    Graph {
        path: u16,
        part: &'static str,
        rest: &'k [u8],
    },
    Path {
        path: u16,
    },
    Unindexed {
        item_key: &'k [u8],
    },
}

impl<'k> IndexKey<'k> {
    /// `None` when the bytes are not the key of an index row.
    pub fn decode(key: &'k [u8]) -> Option<IndexKey<'k>> {
        match key {
            [TAG_VALUE, high, low, rest @ ..] => {
                Some(IndexKey::Value { path: u16::from_be_bytes([*high, *low]), rest })
            }
            [TAG_COMPOSITE, high, low, rest @ ..] => {
                Some(IndexKey::Composite { composite: u16::from_be_bytes([*high, *low]), rest })
            }
            [TAG_CELL, high, low, rest @ ..] => {
                Some(IndexKey::Cell { path: u16::from_be_bytes([*high, *low]), rest })
            }
            [TAG_WORD, high, low, rest @ ..] => {
                Some(IndexKey::Word { path: u16::from_be_bytes([*high, *low]), rest })
            }
            [TAG_LENGTH, high, low, rest @ ..] => {
                Some(IndexKey::Length { path: u16::from_be_bytes([*high, *low]), rest })
            }
            [TAG_VECTOR, high, low, rest @ ..] => {
                Some(IndexKey::Vector { path: u16::from_be_bytes([*high, *low]), rest })
            }
            [TAG_CODE, high, low, rest @ ..] => {
                Some(IndexKey::Code { path: u16::from_be_bytes([*high, *low]), rest })
            }
            [tag @ TAG_TOUCHED..TAG_SEARCH_END, high, low, rest @ ..] => {
                let part = match *tag {
                    TAG_TOUCHED => "touched",
                    TAG_NODE => "node",
                    TAG_LINKS => "links",
                    TAG_NODE_OF => "node of",
                    TAG_GRAPH => "graph",
                    _ => return None,
                };
                Some(IndexKey::Graph { path: u16::from_be_bytes([*high, *low]), part, rest })
            }
            [TAG_PATH, high, low] => Some(IndexKey::Path { path: u16::from_be_bytes([*high, *low]) }),
            [TAG_UNINDEXED, item_key @ ..] => Some(IndexKey::Unindexed { item_key }),
            _ => None,
        }
    }
}

impl fmt::Display for IndexKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexKey::Value { path, rest } => write!(f, "value {path} {}", Hex(rest)),
            IndexKey::Composite { composite, rest } => write!(f, "composite {composite} {}", Hex(rest)),
            IndexKey::Cell { path, rest } => write!(f, "cell {path} {}", Hex(rest)),
            IndexKey::Word { path, rest } => write!(f, "word {path} {}", Text(rest)),
            IndexKey::Length { path, rest } => write!(f, "length {path} {}", Text(rest)),
            IndexKey::Vector { path, rest } => write!(f, "vector {path} {}", Text(rest)),
            IndexKey::Code { path, rest } => write!(f, "code {path} {}", Text(rest)),
            IndexKey::Graph { path, part, rest } => write!(f, "{part} {path} {}", Hex(rest)),
            IndexKey::Path { path } => write!(f, "path {path}"),
            IndexKey::Unindexed { item_key } => write!(f, "unindexed {}", Text(item_key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0u8, 1, 0x41, 0xFE, 0xFF]), 0..6)
    }

    proptest! {
        #[test]
        fn a_reference_leads_back_to_its_item(epk in part(), pk in part(), id in part()) {
            let key = super::super::item(&epk, &pk, &id);
            let reference = reference(&epk, &key);
            prop_assert_eq!(reference_partition_key(&reference).map(Cow::into_owned), Some(pk));
            prop_assert_eq!(referenced(&epk, &reference), Some(key.clone()));
            prop_assert_eq!(epk_bytes(&key), Some(escaped_bytes(&epk)));
        }

        #[test]
        fn rows_of_graphs_read_back_and_sort_by_number(path: u16, a: u32, b: u32, touch: u64, reference in part()) {
            prop_assert_eq!(node_number(&node(path, a)), Some(a));
            prop_assert_eq!(node(path, a).cmp(&node(path, b)), a.cmp(&b));
            let key = touched(path, touch, &reference);
            prop_assert_eq!(touched_of(&key), Some((touch, &reference[..])));
            prop_assert_eq!(graph_path(&graph(path)), Some(path));
            prop_assert!(is_asked_for(&node(path, a)) && is_asked_for(&links(path, b)));
        }

        #[test]
        fn references_sort_by_hash_partition_key_and_id(
            a in (part(), part(), part()), b in (part(), part(), part())
        ) {
            let reference = |(epk, pk, id): &(Vec<u8>, Vec<u8>, Vec<u8>)| reference(epk, &super::super::item(epk, pk, id));
            let parts = |(epk, pk, id): &(Vec<u8>, Vec<u8>, Vec<u8>)| (reference_epk(epk), pk.clone(), id.clone());
            prop_assert_eq!(reference(&a).cmp(&reference(&b)), parts(&a).cmp(&parts(&b)));
        }

        #[test]
        fn damaged_keys_are_none_not_panics(key: Vec<u8>) {
            let _ = (code_of(&key), touched_of(&key), node_number(&key), graph_path(&key), is_asked_for(&key));
            let _ = IndexKey::decode(&key).map(|key| key.to_string());
            let _ = reference_partition_key(&key);
            let _ = referenced(&[1, 0], &key);
            let _ = epk_bytes(&key);
        }
    }
}
