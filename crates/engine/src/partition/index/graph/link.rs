//! Taking vectors into the graph, and out of it, a few with each commit.
//!
//! Upkeep is the only one who writes a graph, one visit at a time, so what a snapshot shows of it is what there is.
//! What a commit is made of is read without the partition's lock; writers who come meanwhile leave touched rows
//! behind those that were read. A touched row only says where to look: what is linked is the code that the item has
//! in the snapshot.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use orrery_index::{GraphEdit, GraphRows, Measure, NODES_MAX, linked_node, prefix_end};
use orrery_storage::{Direction, KeyRange, Snapshot, Table, keys};

use super::super::super::rows::damaged;
use super::super::super::transaction::Transaction;
use super::super::super::{Partition, upkeep};
use super::super::paths::Found;
use super::super::scheme::Scheme;
use super::{
    BUILD_LIST, ENTRIES_MAX, Graph, LONGEST_ROOM, ODD, ROOTS_MAX, decode_node, encode_links, encode_node,
    measure_of, words,
};
use crate::definition::{PathStep, VectorIndex};
use crate::error::{Error, Result};

/// Vectors that are taken up in one commit. Each rewrites the links of some dozens of others.
const VECTORS_PER_COMMIT: usize = 32;
/// Commits of one visit; then other partitions have their turn.
const COMMITS_PER_VISIT: usize = 4;
/// Rows that are only looked at, because nothing has to be done about them.
const LOOKS_PER_COMMIT: usize = 1_000;
/// Rows removed in one commit.
const REMOVALS_PER_COMMIT: usize = 1_000;

impl Partition {
    /// Whether there is work on graphs: rows that nobody has looked at, a graph to begin, or one to drop.
    pub(in crate::partition) fn linking_is_due(&self) -> bool {
        let index = &self.shared.index;
        if index.unlinked.load(Ordering::Acquire) {
            return true;
        }
        let scheme = index.scheme.load();
        let wanted = scheme.graphs().count();
        wanted > index.graphs.load().len()
            && self.usage().items >= self.config.graph_items_min
            && scheme.graphs().any(|index| self.may_begin(index))
    }

    /// Whether the graph of an index is to be begun: its path has a number, and no graph.
    fn may_begin(&self, index: &VectorIndex) -> bool {
        self.graph_number(index).is_some_and(|path| !self.shared.index.graphs.load().contains(&path))
    }

    /// Does a bounded part of the work on graphs. Returns whether all is done.
    pub(in crate::partition) fn link_vectors(&self) -> Result<bool> {
        let index = &self.shared.index;
        index.unlinked.store(false, Ordering::Release);
        let linked = self.link_all();
        if !matches!(linked, Ok(true)) {
            index.unlinked.store(true, Ordering::Release);
        }
        linked
    }

    fn link_all(&self) -> Result<bool> {
        // What was submitted and is not published yet will be seen by a later visit.
        let published_lsn = self.lsn();
        let scheme = self.shared.index.scheme.load_full();
        for _ in 0..COMMITS_PER_VISIT {
            if !self.link_some(&scheme)? {
                let on_its_way = self.shared.overlay.lock().next_lsn - 1 > published_lsn;
                if on_its_way {
                    self.shared.index.unlinked.store(true, Ordering::Release);
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One commit. Returns whether there was anything to do.
    fn link_some(&self, scheme: &Arc<Scheme>) -> Result<bool> {
        let snapshot = self.snapshot()?;
        let mut rows = snapshot.scan(Table::Index, keys::index::graphs(), Direction::Forward);
        let mut known: HashMap<u16, Option<Graph>> = HashMap::new();
        while let Some(row) = rows.next_row().transpose()? {
            let path = keys::index::graph_path(&row.key).ok_or_else(|| damaged("graph"))?;
            known.insert(path, Graph::decode(&row.value));
        }
        drop(rows);
        for index in scheme.graphs() {
            let Some(path) = self.graph_number(index) else { continue };
            let worked = match known.remove(&path) {
                Some(Some(graph)) if graph.is_of(index) => {
                    self.link_some_of(scheme, index, path, graph, snapshot.as_ref())?
                }
                Some(graph) => self.drop_some(scheme, path, graph, snapshot.as_ref())?,
                None if self.usage().items >= self.config.graph_items_min => {
                    self.begin_graph(scheme, index, path)?
                }
                None => false,
            };
            if worked {
                return Ok(true);
            }
        }
        // Graphs of indexes that are no more; while some rows may follow a policy that has them, they stay.
        if scheme.stale.is_empty()
            && let Some((path, graph)) = known.into_iter().next()
        {
            return self.drop_some(scheme, path, graph, snapshot.as_ref());
        }
        Ok(false)
    }

    fn graph_number(&self, index: &VectorIndex) -> Option<u16> {
        let steps = index.path.segments().iter().map(|name| PathStep::Name(name));
        match self.shared.index.dictionary.read().find(steps) {
            Found::Path(path) => Some(path),
            Found::Absent | Found::Unknown => None,
        }
    }

    /// From here on writers say what they touch; whatever was submitted before is among the codes.
    fn begin_graph(&self, scheme: &Arc<Scheme>, index: &VectorIndex, path: u16) -> Result<bool> {
        let Some(measure) = measure_of(index, 0.0) else { return Ok(false) };
        let settings = self.settings();
        let mut transaction = Transaction::begin(self, &settings)?;
        if !self.is_current(scheme) {
            return Ok(true);
        }
        let graph = Graph::begin(index, measure.quantizer);
        transaction.stage(Table::Index, keys::index::graph(path), Some(graph.encode()));
        self.shared.index.note_graph(path, true);
        upkeep::durable(transaction.finish_marks()?)?;
        Ok(true)
    }

    /// Removes rows of a graph, what says that there is one last of all.
    fn drop_some(
        &self,
        scheme: &Arc<Scheme>,
        path: u16,
        graph: Option<Graph>,
        snapshot: &dyn Snapshot,
    ) -> Result<bool> {
        let mut gone: Vec<Bytes> = Vec::new();
        for range in keys::index::graph_parts(path) {
            let mut rows = snapshot.scan(Table::Index, range, Direction::Forward);
            while gone.len() < REMOVALS_PER_COMMIT
                && let Some(row) = rows.next_row().transpose()?
            {
                gone.push(row.key);
            }
        }
        let settings = self.settings();
        let mut transaction = Transaction::begin(self, &settings)?;
        if !self.is_current(scheme) {
            return Ok(true);
        }
        // Writers stop to leave rows before the last of them are looked for.
        let was_dropping = graph.as_ref().is_some_and(|graph| graph.dropping);
        self.shared.index.note_graph(path, false);
        if gone.is_empty() && was_dropping {
            transaction.stage(Table::Index, keys::index::graph(path), None);
        } else {
            let marked = Graph { dropping: true, ..graph.unwrap_or_else(Graph::broken) };
            transaction.stage(Table::Index, keys::index::graph(path), Some(marked.encode()));
        }
        for key in gone {
            transaction.stage(Table::Index, key, None);
        }
        upkeep::durable(transaction.finish_marks()?)?;
        Ok(true)
    }

    /// Takes up some vectors. Returns whether there were any.
    fn link_some_of(
        &self,
        scheme: &Arc<Scheme>,
        index: &VectorIndex,
        path: u16,
        graph: Graph,
        snapshot: &dyn Snapshot,
    ) -> Result<bool> {
        let Some(measure) = measure_of(index, graph.longest) else { return Ok(false) };
        let list = index.build_list.map_or(BUILD_LIST, |list| list as usize);
        let mut work = Work {
            snapshot,
            path,
            graph,
            measure,
            list,
            nodes: HashMap::new(),
            links: HashMap::new(),
            node_of: HashMap::new(),
            looked_at: Vec::new(),
        };
        let worked = work.touched()? | work.codes()?;
        if !worked {
            return Ok(false);
        }
        let settings = self.settings();
        let mut transaction = Transaction::begin(self, &settings)?;
        if self.is_current(scheme) {
            work.stage(&mut transaction);
            upkeep::durable(transaction.finish_marks()?)?;
        }
        Ok(true)
    }
}

/// One commit's worth of changes to a graph.
struct Work<'s> {
    snapshot: &'s dyn Snapshot,
    path: u16,
    graph: Graph,
    measure: Measure,
    list: usize,
    /// What differs from the snapshot. `None`: removed.
    nodes: HashMap<u32, Option<(Bytes, Bytes)>>,
    links: HashMap<u32, Vec<u32>>,
    node_of: HashMap<Bytes, Option<u32>>,
    /// Touched rows that are done with.
    looked_at: Vec<Bytes>,
}

impl Work<'_> {
    /// Takes up vectors that were touched, in that order.
    fn touched(&mut self) -> Result<bool> {
        let mut head = Vec::with_capacity(keys::index::HEAD_BYTES);
        keys::index::push_touched_head(&mut head, self.path);
        let start = match &self.graph.touched_to {
            Some(tail) => Bound::Excluded([&head[..], tail].concat().into()),
            None => Bound::Included(keys::index::touched(self.path, 1, &[])),
        };
        let range = KeyRange { start, end: Bound::Excluded(prefix_end(&head).into()) };
        let mut rows = self.snapshot.scan(Table::Index, range, Direction::Forward);
        let mut linked = 0;
        while linked < VECTORS_PER_COMMIT
            && self.looked_at.len() < LOOKS_PER_COMMIT
            && let Some(row) = rows.next_row().transpose()?
        {
            let (_, reference) = keys::index::touched_of(&row.key).ok_or_else(|| damaged("touched"))?;
            let reference = row.key.slice(row.key.len() - reference.len()..);
            linked += usize::from(self.take_up(&reference)?);
            self.graph.touched_to = Some(row.key.slice(head.len()..));
            self.looked_at.push(row.key);
        }
        Ok(!self.looked_at.is_empty())
    }

    /// Takes up vectors that were there before the graph.
    fn codes(&mut self) -> Result<bool> {
        let Some(after) = self.graph.codes_to.clone() else { return Ok(false) };
        let mut head = Vec::with_capacity(keys::index::HEAD_BYTES);
        keys::index::push_code_head(&mut head, self.path);
        let start = [&head[..], &after].concat();
        let range =
            KeyRange { start: Bound::Excluded(start.into()), end: Bound::Excluded(prefix_end(&head).into()) };
        let mut rows = self.snapshot.scan(Table::Index, range, Direction::Forward);
        let (mut linked, mut looks) = (0, 0);
        while linked < VECTORS_PER_COMMIT && looks < LOOKS_PER_COMMIT {
            let Some(row) = rows.next_row().transpose()? else {
                self.graph.codes_to = None;
                break;
            };
            let reference = row.key.slice(head.len()..);
            linked += usize::from(self.take_up(&reference)?);
            looks += 1;
            self.graph.codes_to = Some(reference);
        }
        Ok(true)
    }

    /// Has the graph know the vector of an item as it is. Returns whether that was work.
    fn take_up(&mut self, reference: &Bytes) -> Result<bool> {
        let mut key = Vec::with_capacity(keys::index::HEAD_BYTES + reference.len());
        keys::index::push_code_head(&mut key, self.path);
        key.extend_from_slice(reference);
        let code = self.snapshot.get(Table::Index, &key)?;
        let known = self.node_of(reference)?;
        let is_known = match (known, &code) {
            (None, None) => true,
            (Some(ODD), Some(code)) => code.is_empty(),
            (Some(node), Some(code)) => self.node(node)?.is_some_and(|(_, linked)| linked == *code),
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_known {
            return Ok(false);
        }
        if let Some(node) = known.filter(|node| *node != ODD) {
            self.remove(node)?;
        }
        match code {
            None => drop(self.node_of.insert(reference.clone(), None)),
            Some(code) => self.insert(reference, code)?,
        }
        Ok(true)
    }

    fn insert(&mut self, reference: &Bytes, code: Bytes) -> Result<()> {
        let Some(unpacked) = self.measure.quantizer.unpack(&code) else {
            self.node_of.insert(reference.clone(), Some(ODD));
            return Ok(());
        };
        if unpacked.length > self.graph.longest {
            self.graph.longest = unpacked.length * LONGEST_ROOM;
            self.measure.longest = self.graph.longest;
        }
        let node = self.graph.next;
        if node >= NODES_MAX - 1 {
            // Numbers have run out: everything begins anew.
            self.graph.dropping = true;
            return Ok(());
        }
        self.graph.next += 1;
        self.graph.nodes += 1;
        self.node_of.insert(reference.clone(), Some(node));
        self.nodes.insert(node, Some((reference.clone(), code)));
        let (measure, entries, list) = (self.measure, self.graph.beginnings(), self.list);
        if orrery_index::link_node(self, &measure, &entries, node, list)?
            && self.graph.roots.len() < ROOTS_MAX
        {
            self.graph.roots.push(node);
        }
        // A sample of all nodes: each new one takes the place of another as often as is its share.
        if self.graph.entries.len() < ENTRIES_MAX {
            self.graph.entries.push(node);
        } else if let Some(entry) = self.graph.entries.get_mut((mixed(node) % (u64::from(node) + 1)) as usize)
        {
            *entry = node;
        }
        Ok(())
    }

    fn remove(&mut self, node: u32) -> Result<()> {
        let (measure, entries, list) = (self.measure, self.graph.beginnings(), self.list);
        let orphans = orrery_index::unlink_node(self, &measure, &entries, node, list)?;
        self.graph.entries.retain(|entry| *entry != node);
        if self.graph.roots.contains(&node) {
            self.graph.roots.retain(|root| *root != node);
            // Others of its group may only be found from it.
            for link in self.links(node)? {
                let heir = linked_node(link);
                if self.node(heir)?.is_some() && !self.graph.roots.contains(&heir) {
                    self.graph.roots.push(heir);
                    break;
                }
            }
        }
        let room = ROOTS_MAX.saturating_sub(self.graph.roots.len());
        let known = self.graph.roots.clone();
        self.graph.roots.extend(orphans.into_iter().filter(|orphan| !known.contains(orphan)).take(room));
        self.graph.nodes = self.graph.nodes.saturating_sub(1);
        self.nodes.insert(node, None);
        self.links.remove(&node);
        Ok(())
    }

    fn node(&self, node: u32) -> Result<Option<(Bytes, Bytes)>> {
        if let Some(row) = self.nodes.get(&node) {
            return Ok(row.clone());
        }
        match self.snapshot.get(Table::Index, &keys::index::node(self.path, node))? {
            Some(row) => Ok(Some(decode_node(&row).ok_or_else(|| damaged("node"))?)),
            None => Ok(None),
        }
    }

    fn node_of(&self, reference: &Bytes) -> Result<Option<u32>> {
        if let Some(node) = self.node_of.get(reference) {
            return Ok(*node);
        }
        let row = self.snapshot.get(Table::Index, &keys::index::node_of(self.path, reference))?;
        row.map(|row| words(&row).and_then(|words| words.first().copied()).ok_or_else(|| damaged("node of")))
            .transpose()
    }

    fn stage(self, transaction: &mut Transaction<'_>) {
        let path = self.path;
        let mut stage =
            |key: &[u8], value| transaction.stage(Table::Index, Bytes::copy_from_slice(key), value);
        for (node, row) in &self.nodes {
            let gone = row.is_none();
            stage(
                &keys::index::node(path, *node),
                row.as_ref().map(|(reference, code)| encode_node(reference, code)),
            );
            if gone {
                stage(&keys::index::links(path, *node), None);
            }
        }
        for (node, links) in &self.links {
            stage(&keys::index::links(path, *node), Some(encode_links(links)));
        }
        for (reference, node) in &self.node_of {
            stage(&keys::index::node_of(path, reference), node.map(|node| encode_links(&[node])));
            // Those without a code stand before all others and wait for nobody.
            let odd = keys::index::touched(path, 0, reference);
            stage(&odd, (*node == Some(ODD)).then(Bytes::new));
        }
        for key in &self.looked_at {
            stage(key, None);
        }
        stage(&keys::index::graph(path), Some(self.graph.encode()));
    }
}

impl GraphRows for Work<'_> {
    type Code = Bytes;
    type Error = Error;

    fn code(&mut self, node: u32) -> Result<Option<Bytes>> {
        Ok(self.node(node)?.map(|(_, code)| code))
    }

    fn links(&mut self, node: u32) -> Result<Vec<u32>> {
        if let Some(links) = self.links.get(&node) {
            return Ok(links.clone());
        }
        match self.snapshot.get(Table::Index, &keys::index::links(self.path, node))? {
            Some(row) => words(&row).ok_or_else(|| damaged("links")),
            None => Ok(Vec::new()),
        }
    }
}

impl GraphEdit for Work<'_> {
    fn set_links(&mut self, node: u32, links: Vec<u32>) {
        self.links.insert(node, links);
    }
}

/// A number that looks random and is always the same.
fn mixed(node: u32) -> u64 {
    let mixed = (u64::from(node) ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ mixed >> 29).wrapping_mul(0x94D0_49BB_1331_11EB) >> 16
}
