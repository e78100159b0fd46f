//! Graphs over the vectors of a path, for `diskANN` indexes: kept beside the index rows, and behind them.
//!
//! What an item's commit writes about a vector is its code, as for other indexes of codes, and, once there is a
//! graph, a row that says that the graph has not looked at it yet. Upkeep takes these up in the order in which they
//! were written (`link`): a commit of its own links some vectors, takes out others that are gone, and says how far it
//! got.
//!
//! ```text
//! code      of every vector, in the order of items; in the item's commit
//! touched   every code that was written or removed and has not been looked at since; in the item's commit
//! node      item, code     links   other nodes     node of   item -> node     graph   how far it is; all by upkeep
//! ```
//!
//! So at any moment the vectors of a partition are those that the graph leads to, the touched ones, and, while a
//! graph is being begun, the codes that upkeep has not come to. A query looks at all three, and the items decide.
//! That holds in every snapshot, because each commit moves a vector from one to the other; nothing depends on when
//! upkeep comes.
//!
//! A graph is begun when a partition has many items, and can be dropped and begun again at any time. Numbers of nodes
//! are not used twice in one graph.

mod check;
mod link;
mod view;

use std::ops::Bound;

use bytes::{Buf, BufMut, Bytes};
use orrery_index::{Measure, Metric, Quantizer};
use orrery_storage::{Direction, KeyRange, Snapshot, Table, keys};

use super::scheme::Scheme;
use super::search::{VectorForm, form_of};
use crate::definition::{IndexingMode, VectorIndex};
use crate::error::Result;
use crate::partition::rows::damaged;

pub(super) use check::differences;
pub use view::{GraphPath, TouchedVector};

/// Nodes at which searches begin, beside roots.
const ENTRIES_MAX: usize = 64;
/// Other nodes at which searches begin, because they may not be found else. Each costs every search a comparison.
const ROOTS_MAX: usize = 1_024;
/// How thoroughly neighbours are searched for, where the policy does not say.
const BUILD_LIST: usize = 100;
/// Dot products want to know the longest vector; with some room it need not be changed often.
const LONGEST_ROOM: f32 = 1.25;
const VERSION: u8 = 2;
/// The value of a touched row whose vector is gone. Codes are longer.
pub(super) const GONE: &[u8] = &[0];
/// In the place of a node: a vector without a code, which only its item can tell about.
const ODD: u32 = u32::MAX;

/// Whether an index keeps a graph.
pub(super) fn is_graph(index: &VectorIndex) -> bool {
    index.kind == "diskANN"
}

/// How the graph of an index measures; `None` for an index without codes.
pub(super) fn measure_of(index: &VectorIndex, longest: f32) -> Option<Measure> {
    let VectorForm::Coded(quantizer) = form_of(index) else { return None };
    Some(Measure { quantizer, metric: metric_of(index), longest })
}

fn metric_of(index: &VectorIndex) -> Metric {
    match index.distance_function {
        "euclidean" => Metric::Euclidean,
        "dotproduct" => Metric::DotProduct,
        _ => Metric::Cosine,
    }
}

impl Scheme {
    /// The indexes of the present policy that keep graphs.
    pub(super) fn graphs(&self) -> impl Iterator<Item = &VectorIndex> {
        let policy = &self.definition.indexing;
        let on = policy.mode != IndexingMode::None;
        policy.vector.iter().filter(move |index| on && is_graph(index))
    }
}

/// The paths whose graphs are told what is touched, the last commit that told one, and whether there is something to
/// look at.
pub(super) fn open(snapshot: &dyn Snapshot) -> Result<(Vec<u16>, u64, bool)> {
    let mut rows = snapshot.scan(Table::Index, keys::index::graphs(), Direction::Forward);
    let (mut told, mut touch, mut any) = (Vec::new(), 0, false);
    while let Some(row) = rows.next_row().transpose()? {
        any = true;
        let path = keys::index::graph_path(&row.key).ok_or_else(|| damaged("graph"))?;
        // One that cannot be read is dropped first.
        let Some(graph) = Graph::decode(&row.value).filter(|graph| !graph.dropping) else { continue };
        told.push(path);
        let mut head = Vec::with_capacity(keys::index::HEAD_BYTES);
        keys::index::push_touched_head(&mut head, path);
        let mut range = KeyRange::prefix(&head);
        if let Some(tail) = &graph.touched_to {
            let last = Bytes::from([&head[..], tail].concat());
            touch = touch.max(keys::index::touched_of(&last).ok_or_else(|| damaged("graph"))?.0);
            range.start = Bound::Excluded(last);
        }
        let mut touched = snapshot.scan(Table::Index, range, Direction::Reverse);
        if let Some(row) = touched.next_row().transpose()? {
            touch = touch.max(keys::index::touched_of(&row.key).ok_or_else(|| damaged("touched"))?.0);
        }
    }
    Ok((told, touch, any))
}

/// How far a graph is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Graph {
    /// All its rows are being removed.
    dropping: bool,
    metric: u8,
    code_bytes: u16,
    /// The number of the next node.
    next: u32,
    pub(super) nodes: u32,
    longest: f32,
    /// The last touched row that was taken up, without its head.
    touched_to: Option<Bytes>,
    /// The last item whose code was taken up when the graph was begun; `None`: all were.
    codes_to: Option<Bytes>,
    /// Nodes at which searches begin: a sample of all,
    entries: Vec<u32>,
    /// and those that are far from others or have no parent. All nodes can be reached from them.
    roots: Vec<u32>,
}

impl Graph {
    /// Nodes at which searches begin.
    fn beginnings(&self) -> Vec<u32> {
        let sampled = self.entries.iter().filter(|entry| !self.roots.contains(entry));
        self.roots.iter().chain(sampled).copied().collect()
    }

    fn begin(index: &VectorIndex, quantizer: Quantizer) -> Graph {
        Graph {
            dropping: false,
            metric: metric_of(index) as u8,
            code_bytes: quantizer.code_bytes() as u16,
            next: 0,
            nodes: 0,
            longest: 0.0,
            touched_to: None,
            codes_to: Some(Bytes::new()),
            entries: Vec::new(),
            roots: Vec::new(),
        }
    }

    /// Stands for one that cannot be read, and is to be dropped.
    fn broken() -> Graph {
        Graph {
            dropping: true,
            metric: 0,
            code_bytes: 0,
            next: 0,
            nodes: 0,
            longest: 0.0,
            touched_to: None,
            codes_to: None,
            entries: Vec::new(),
            roots: Vec::new(),
        }
    }

    /// Whether it is the graph of an index, and not to be dropped.
    fn is_of(&self, index: &VectorIndex) -> bool {
        let code_bytes = match form_of(index) {
            VectorForm::Coded(quantizer) => quantizer.code_bytes(),
            VectorForm::Whole(_) => return false,
        };
        !self.dropping && self.metric == metric_of(index) as u8 && usize::from(self.code_bytes) == code_bytes
    }

    fn encode(&self) -> Bytes {
        let mut row = Vec::with_capacity(64 + 4 * self.entries.len());
        row.put_u8(VERSION);
        row.put_u8(u8::from(self.dropping));
        row.put_u8(self.metric);
        row.put_u16_le(self.code_bytes);
        row.put_u32_le(self.next);
        row.put_u32_le(self.nodes);
        row.put_f32_le(self.longest);
        for place in [&self.touched_to, &self.codes_to] {
            row.put_u8(u8::from(place.is_some()));
            let bytes = place.as_deref().unwrap_or_default();
            row.put_u16_le(bytes.len() as u16);
            row.put_slice(bytes);
        }
        row.put_u16_le(self.entries.len() as u16);
        self.entries.iter().chain(&self.roots).for_each(|node| row.put_u32_le(*node));
        row.into()
    }

    /// `None`: not one that this version has written.
    fn decode(row: &[u8]) -> Option<Graph> {
        let mut rest = row;
        if rest.try_get_u8().ok()? != VERSION {
            return None;
        }
        let dropping = rest.try_get_u8().ok()? != 0;
        let (metric, code_bytes) = (rest.try_get_u8().ok()?, rest.try_get_u16_le().ok()?);
        let (next, nodes) = (rest.try_get_u32_le().ok()?, rest.try_get_u32_le().ok()?);
        let longest = rest.try_get_f32_le().ok()?;
        let mut place = || {
            let known = rest.try_get_u8().ok()? != 0;
            let bytes = usize::from(rest.try_get_u16_le().ok()?);
            let (place, behind) = rest.split_at_checked(bytes)?;
            rest = behind;
            Some(known.then(|| Bytes::copy_from_slice(place)))
        };
        let (touched_to, codes_to) = (place()?, place()?);
        let sampled = usize::from(rest.try_get_u16_le().ok()?);
        let mut entries = words(rest)?;
        if sampled > entries.len() {
            return None;
        }
        let roots = entries.split_off(sampled);
        Some(Graph {
            dropping,
            metric,
            code_bytes,
            next,
            nodes,
            longest,
            touched_to,
            codes_to,
            entries,
            roots,
        })
    }
}

/// The value of a node's row.
fn encode_node(reference: &[u8], code: &[u8]) -> Bytes {
    let mut row = Vec::with_capacity(2 + reference.len() + code.len());
    row.put_u16_le(reference.len() as u16);
    row.put_slice(reference);
    row.put_slice(code);
    row.into()
}

/// The item of a node, and its code.
fn decode_node(row: &Bytes) -> Option<(Bytes, Bytes)> {
    let (length, _) = row.split_first_chunk()?;
    let end = 2 + usize::from(u16::from_le_bytes(*length));
    (end <= row.len()).then(|| (row.slice(2..end), row.slice(end..)))
}

fn encode_links(links: &[u32]) -> Bytes {
    links.iter().flat_map(|link| link.to_le_bytes()).collect()
}

fn words(bytes: &[u8]) -> Option<Vec<u32>> {
    let (words, rest) = bytes.as_chunks();
    rest.is_empty().then(|| words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_is_reads_back() {
        let graph = Graph {
            dropping: false,
            metric: 2,
            code_bytes: 72,
            next: 9,
            nodes: 7,
            longest: 1.5,
            touched_to: Some(Bytes::from_static(b"abc")),
            codes_to: None,
            entries: vec![1, 5],
            roots: vec![1],
        };
        let row = graph.encode();
        assert_eq!(Graph::decode(&row), Some(graph));
        for end in 0..row.len() {
            assert!(Graph::decode(&row[..end]).is_none_or(|graph| graph.roots.is_empty()));
        }
    }

    #[test]
    fn nodes_read_back() {
        let row = encode_node(b"item", b"code");
        assert_eq!(decode_node(&row), Some((Bytes::from_static(b"item"), Bytes::from_static(b"code"))));
        assert_eq!(decode_node(&row.slice(..4)), None);
        assert_eq!(words(&encode_links(&[3, 70_000])), Some(vec![3, 70_000]));
        assert_eq!(words(&[1, 2, 3]), None);
    }
}
