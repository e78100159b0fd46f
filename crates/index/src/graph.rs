//! Vectors as a graph in which the nearest to another are found by walking, without looking at most of them.
//!
//! Every node has links to a few others: the near ones of every direction, so that from anywhere a way leads closer
//! to any place (Vamana, the graph of DiskANN). A search keeps a list of the nearest nodes that it has met and goes
//! on from the nearest that it has not gone on from yet, until it has done so from all on the list. A longer list
//! finds more and costs more.
//!
//! ```text
//! insert   search for the vector; link it with those found, pruned; link these back, and prune those with too many
//! remove   search for the vector; whoever has a link to it gets links to some of those it had links to instead
//! ```
//!
//! All that is known of vectors are their codes (`quantize`). Links to nodes that are gone are passed over, and
//! vanish when the node that has them is written again. Where nodes are kept is the caller's business
//! ([`GraphRows`]).
//!
//! Every node can be reached. When it is linked, the nearest that there was before gets a link to it which is never
//! pruned: it is its *parent*. Parents have lower numbers than their children, so these links make trees, and
//! searches begin at their roots, beside a sample of all nodes. They begin, too, at nodes that were far from all
//! others when they came: the first of a group that lies close together. On the way to such a group a search would be
//! caught by other groups.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::quantize::{CodeProbe, Quantizer, Unpacked};
use crate::vector::Metric;

/// Links that a node is given, and how many it may have before it is pruned to as many again.
pub const LINKS: usize = 32;
pub const LINKS_MAX: usize = 48;
/// How much nearer a linked node must be to another for the direct link to be left out, in squares of distances. The
/// first choice leaves out more, so that near nodes leave room for far ones; the second fills up.
const SLACKS: [f32; 2] = [1.0, 1.2];
/// Marks a link to a child, which is never pruned.
const CHILD: u32 = 1 << 31;
/// Numbers of nodes are below.
pub const NODES_MAX: u32 = CHILD;
/// Children that a node has, where another is near enough.
const CHILDREN_MAX: usize = 8;
/// A node is far from all others when the nearest is this much further away than half of that one's links are, in
/// squares.
const FAR: f32 = 9.0;
/// What codes may be off, as a part of the square of lengths; and how many links tell something.
const NOISE: f32 = 0.05;
const FAR_LINKS_MIN: usize = 8;
/// Links that a node gets for one to a node that goes.
const REPLACEMENTS: usize = 3;

/// Nodes of a graph, wherever they are.
pub trait GraphRows {
    type Code: AsRef<[u8]>;
    type Error;

    /// The code of a node; `None` when it is gone.
    fn code(&mut self, node: u32) -> Result<Option<Self::Code>, Self::Error>;
    /// The links of a node as they were set, none when it is gone.
    fn links(&mut self, node: u32) -> Result<Vec<u32>, Self::Error>;
}

/// The node that a link leads to.
pub fn linked_node(link: u32) -> u32 {
    link & !CHILD
}

/// A graph that is changed.
pub trait GraphEdit: GraphRows {
    fn set_links(&mut self, node: u32, links: Vec<u32>);
}

/// How far apart the vectors of two codes are, as a graph sees it: a square, and 0 for the same vector.
///
/// Dot products know no nearness, so vectors are thought to have one more dimension, which brings all of them to one
/// length: the nearest there have the largest products.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    pub quantizer: Quantizer,
    pub metric: Metric,
    /// No vector is longer. Only matters to dot products.
    pub longest: f32,
}

impl Measure {
    fn distance(&self, cosine: f32, a: f32, b: f32) -> f32 {
        let distance = match self.metric {
            Metric::Cosine => 2.0 - 2.0 * cosine,
            Metric::Euclidean => a * a + b * b - 2.0 * a * b * cosine,
            Metric::DotProduct => {
                let square = self.longest * self.longest;
                let rest = |length: f32| (square - length * length).max(0.0).sqrt();
                2.0 * (square - a * b * cosine - rest(a) * rest(b))
            }
        };
        distance.max(0.0)
    }

    fn between(&self, a: &Unpacked, b: &Unpacked) -> f32 {
        self.distance(self.quantizer.cosine(a, b), a.length, b.length)
    }

    fn nearness(&self, probe: &CodeProbe, code: &[u8]) -> Option<f32> {
        let (cosine, length) = probe.cosine(code)?;
        Some(-self.distance(cosine, probe.length(), length))
    }
}

/// A node that was met, by how near it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Met {
    pub nearness: f32,
    pub node: u32,
}

impl Eq for Met {}

impl PartialOrd for Met {
    fn partial_cmp(&self, other: &Met) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Met {
    fn cmp(&self, other: &Met) -> Ordering {
        // Of copies the latest come first: they are the ones that the next one is linked with.
        self.nearness.total_cmp(&other.nearness).then(self.node.cmp(&other.node))
    }
}

/// A search that can be taken further with a longer list.
#[derive(Default)]
pub struct GraphSearch {
    seen: HashSet<u32, BuildHasherDefault<NodeHasher>>,
    /// All that were met.
    met: Vec<Met>,
    /// From these it has not gone on yet.
    open: BinaryHeap<Met>,
    gone_on_from: u64,
}

impl GraphSearch {
    /// Begins with some nodes. `nearness` of a code: more is nearer, `None` when it cannot be told.
    pub fn begin<R: GraphRows>(
        &mut self,
        rows: &mut R,
        nodes: &[u32],
        nearness: &dyn Fn(&[u8]) -> Option<f32>,
    ) -> Result<(), R::Error> {
        for node in nodes {
            self.meet(rows, *node, nearness)?;
        }
        Ok(())
    }

    fn meet<R: GraphRows>(
        &mut self,
        rows: &mut R,
        node: u32,
        nearness: &dyn Fn(&[u8]) -> Option<f32>,
    ) -> Result<Option<Met>, R::Error> {
        if !self.seen.insert(node) {
            return Ok(None);
        }
        let Some(nearness) = rows.code(node)?.and_then(|code| nearness(code.as_ref())) else {
            return Ok(None);
        };
        let met = Met { nearness, node };
        self.met.push(met);
        self.open.push(met);
        Ok(Some(met))
    }

    /// Goes on until it has gone on from the `list` nearest of all that were met, and then from `patience` others
    /// without finding one for the list: how much there is to find nobody knows, but where the list still gets better
    /// there is more.
    pub fn run<R: GraphRows>(
        &mut self,
        rows: &mut R,
        list: usize,
        patience: usize,
        nearness: &dyn Fn(&[u8]) -> Option<f32>,
    ) -> Result<(), R::Error> {
        let list = list.max(1);
        self.nearest_first(list);
        // The worst of the list is on top.
        let mut best: BinaryHeap<Reverse<Met>> =
            self.met.iter().take(list).map(|met| Reverse(*met)).collect();
        let mut in_vain = 0;
        while let Some(next) = self.open.peek().copied() {
            if best.len() >= list && best.peek().is_some_and(|worst| next < worst.0) {
                if in_vain >= patience {
                    break;
                }
                in_vain += 1;
            }
            self.open.pop();
            self.gone_on_from += 1;
            for link in rows.links(next.node)? {
                let Some(met) = self.meet(rows, linked_node(link), nearness)? else { continue };
                if best.len() >= list && best.peek().is_some_and(|worst| met < worst.0) {
                    continue;
                }
                in_vain = 0;
                best.push(Reverse(met));
                if best.len() > list {
                    best.pop();
                }
            }
        }
        self.nearest_first(list);
        Ok(())
    }

    /// Puts the nearest first, as many as are asked for, in order.
    fn nearest_first(&mut self, count: usize) {
        if count < self.met.len() {
            self.met.select_nth_unstable_by(count, |left, right| right.cmp(left));
        }
        let count = count.min(self.met.len());
        self.met[..count].sort_unstable_by(|left, right| right.cmp(left));
    }

    /// The nearest, in order: as many as the list of the last run was long, if there are.
    pub fn nearest(&self, list: usize) -> &[Met] {
        &self.met[..list.min(self.met.len())]
    }

    /// Whether there is no way on, however long the list.
    pub fn is_exhausted(&self) -> bool {
        self.open.is_empty()
    }

    /// Nodes that were compared, and nodes whose links were followed.
    pub fn effort(&self) -> (u64, u64) {
        (self.met.len() as u64, self.gone_on_from)
    }
}

/// Links a new node, with a higher number than all others. `list`: how thoroughly its neighbours are searched for.
/// Its code must be there already. Returns whether searches have to begin at it too.
pub fn insert<R: GraphEdit>(
    rows: &mut R,
    measure: &Measure,
    entries: &[u32],
    node: u32,
    list: usize,
) -> Result<bool, R::Error> {
    let Some(code) = rows.code(node)? else { return Ok(false) };
    let Some(probe) = measure.quantizer.probe_code(code.as_ref(), measure.metric) else { return Ok(true) };
    let nearness = |code: &[u8]| measure.nearness(&probe, code);
    let mut search = GraphSearch::default();
    search.seen.insert(node);
    search.begin(rows, entries, &nearness)?;
    search.run(rows, list, 0, &nearness)?;
    // Those at which it began lie all over the place: far ones keep ways open between groups.
    let mut around = Vec::with_capacity(list + entries.len());
    let far: Vec<Met> = search.met[list.min(search.met.len())..]
        .iter()
        .filter(|met| entries.contains(&met.node))
        .copied()
        .collect();
    for met in search.nearest(list).iter().chain(&far) {
        if let Some(unpacked) = unpacked(rows, measure, met.node)? {
            let (node, distance) = (met.node, -met.nearness);
            around.push(Neighbour { node, is_child: false, distance, unpacked });
        }
    }
    let candidates: Vec<u32> = search.nearest(list).iter().map(|met| met.node).collect();
    let parent = parent_among(rows, &candidates)?;
    let is_far = match search.nearest(1) {
        [nearest] => is_far(rows, measure, *nearest)?,
        _ => true,
    };
    let links = pruned(measure, node, around);
    rows.set_links(node, links.clone());
    for other in links.into_iter().filter(|other| Some(*other) != parent) {
        add_links(rows, measure, other, &[node])?;
    }
    if let Some(parent) = parent {
        add_links(rows, measure, parent, &[node | CHILD])?;
    }
    Ok(is_far)
}

/// Whether a node is far from all others, given the nearest.
fn is_far<R: GraphEdit>(rows: &mut R, measure: &Measure, nearest: Met) -> Result<bool, R::Error> {
    let Some(own) = unpacked(rows, measure, nearest.node)? else { return Ok(false) };
    let mut distances = Vec::with_capacity(LINKS_MAX);
    for link in rows.links(nearest.node)? {
        if let Some(other) = unpacked(rows, measure, linked_node(link))? {
            distances.push(measure.between(&own, &other));
        }
    }
    if distances.len() < FAR_LINKS_MIN {
        return Ok(false);
    }
    let middle = distances.len() / 2;
    let (_, usual, _) = distances.select_nth_unstable_by(middle, f32::total_cmp);
    let noise = match measure.metric {
        Metric::Cosine => NOISE,
        Metric::Euclidean => NOISE * own.length * own.length,
        Metric::DotProduct => NOISE * measure.longest * measure.longest,
    };
    Ok(-nearest.nearness > FAR * usual.max(noise))
}

/// The first of these, by how near they are, that has not too many children yet; or the first.
fn parent_among<R: GraphEdit>(rows: &mut R, candidates: &[u32]) -> Result<Option<u32>, R::Error> {
    for candidate in candidates {
        let children = rows.links(*candidate)?.iter().filter(|link| **link & CHILD != 0).count();
        if children < CHILDREN_MAX {
            return Ok(Some(*candidate));
        }
    }
    Ok(candidates.first().copied())
}

/// Takes a node out, whose code and links must still be there: whoever has a link to it gets others instead, and its
/// children get other parents. Then the caller removes it. Returns the children that found no parent: searches have
/// to begin at them too.
pub fn remove<R: GraphEdit>(
    rows: &mut R,
    measure: &Measure,
    entries: &[u32],
    node: u32,
    list: usize,
) -> Result<Vec<u32>, R::Error> {
    let Some(code) = rows.code(node)? else { return Ok(Vec::new()) };
    let Some(probe) = measure.quantizer.probe_code(code.as_ref(), measure.metric) else {
        return Ok(Vec::new());
    };
    let nearness = |code: &[u8]| measure.nearness(&probe, code);
    let mut search = GraphSearch::default();
    search.begin(rows, entries, &nearness)?;
    search.run(rows, list, 0, &nearness)?;
    let linked = rows.links(node)?;
    let mut others: Vec<u32> = search.nearest(list).iter().map(|met| met.node).collect();
    others.extend(linked.iter().map(|link| linked_node(*link)));
    others.sort_unstable();
    others.dedup();
    let mut heirs = Vec::with_capacity(linked.len());
    let mut children = Vec::new();
    for link in linked {
        if let Some(unpacked) = unpacked(rows, measure, linked_node(link))? {
            children.extend((link & CHILD != 0).then(|| (linked_node(link), unpacked.clone())));
            heirs.push((linked_node(link), unpacked));
        }
    }
    let mut near: Vec<(u32, Unpacked)> = Vec::with_capacity(others.len());
    for other in others.into_iter().filter(|other| *other != node) {
        let Some(own) = unpacked(rows, measure, other)? else { continue };
        let mut links = rows.links(other)?;
        let before = links.len();
        links.retain(|link| linked_node(*link) != node);
        if links.len() < before {
            let is_linked = |heir: &u32| links.iter().any(|link| linked_node(*link) == *heir);
            let mut nearest: Vec<(f32, u32)> = heirs
                .iter()
                .filter(|(heir, _)| *heir != other && !is_linked(heir))
                .map(|(heir, unpacked)| (measure.between(&own, unpacked), *heir))
                .collect();
            nearest.sort_unstable_by(|left, right| left.0.total_cmp(&right.0));
            let added: Vec<u32> = nearest.into_iter().take(REPLACEMENTS).map(|(_, heir)| heir).collect();
            rows.set_links(other, links);
            add_links(rows, measure, other, &added)?;
        }
        near.push((other, own));
    }
    let mut orphans = Vec::new();
    for (child, own) in children {
        let mut parents: Vec<(f32, u32)> = near
            .iter()
            .filter(|(other, _)| *other < child)
            .map(|(other, unpacked)| (measure.between(&own, unpacked), *other))
            .collect();
        parents.sort_unstable_by(|left, right| left.0.total_cmp(&right.0));
        let parents: Vec<u32> = parents.into_iter().map(|(_, other)| other).collect();
        match parent_among(rows, &parents)? {
            Some(parent) => add_links(rows, measure, parent, &[child | CHILD])?,
            None => orphans.push(child),
        }
    }
    Ok(orphans)
}

fn unpacked<R: GraphRows>(rows: &mut R, measure: &Measure, node: u32) -> Result<Option<Unpacked>, R::Error> {
    Ok(rows.code(node)?.and_then(|code| measure.quantizer.unpack(code.as_ref())))
}

/// Adds links to a node, and prunes them when they are too many.
fn add_links<R: GraphEdit>(
    rows: &mut R,
    measure: &Measure,
    node: u32,
    added: &[u32],
) -> Result<(), R::Error> {
    let mut links = rows.links(node)?;
    for new in added.iter().filter(|link| linked_node(**link) != node) {
        match links.iter_mut().find(|link| linked_node(**link) == linked_node(*new)) {
            Some(link) => *link |= new & CHILD,
            None => links.push(*new),
        }
    }
    if links.len() > LINKS_MAX {
        let Some(own) = unpacked(rows, measure, node)? else { return Ok(()) };
        let mut around = Vec::with_capacity(links.len());
        for link in links {
            let (node, is_child) = (linked_node(link), link & CHILD != 0);
            if let Some(unpacked) = unpacked(rows, measure, node)? {
                let distance = measure.between(&own, &unpacked);
                around.push(Neighbour { node, is_child, distance, unpacked });
            }
        }
        links = pruned(measure, node, around);
    }
    rows.set_links(node, links);
    Ok(())
}

struct Neighbour {
    node: u32,
    is_child: bool,
    distance: f32,
    unpacked: Unpacked,
}

impl Neighbour {
    fn link(&self) -> u32 {
        if self.is_child { self.node | CHILD } else { self.node }
    }
}

/// The links of a node among those around it: its children, then near ones first, without those to which a chosen one
/// leads. What room is left goes to the nearest that were passed over, which is what keeps copies of one vector
/// together.
fn pruned(measure: &Measure, node: u32, mut around: Vec<Neighbour>) -> Vec<u32> {
    // Copies form a chain by their numbers, or they would all be linked with the same few.
    let apart = |other: &Neighbour| other.node.abs_diff(node);
    around.sort_unstable_by(|left, right| {
        left.distance.total_cmp(&right.distance).then(apart(left).cmp(&apart(right)))
    });
    let mut choice = Choice {
        measure,
        nearer: vec![0.0; around.len()],
        is_chosen: vec![false; around.len()],
        links: Vec::with_capacity(LINKS),
        around: &around,
    };
    for at in (0..around.len()).filter(|at| around[*at].is_child) {
        choice.choose(at, 0);
    }
    for slack in SLACKS {
        for at in 0..around.len() {
            if choice.links.len() >= LINKS {
                return choice.links;
            }
            if !choice.is_chosen[at] && choice.nearer[at] <= slack {
                choice.choose(at, at + 1);
            }
        }
    }
    let rest = (0..around.len()).filter(|at| !choice.is_chosen[*at]).map(|at| around[at].node);
    let room = LINKS.saturating_sub(choice.links.len());
    let rest: Vec<u32> = rest.take(room).collect();
    choice.links.extend(rest);
    choice.links
}

struct Choice<'c> {
    measure: &'c Measure,
    around: &'c [Neighbour],
    /// How much nearer the nearest chosen one is: beyond the slack, the direct link is not needed.
    nearer: Vec<f32>,
    is_chosen: Vec<bool>,
    links: Vec<u32>,
}

impl Choice<'_> {
    /// Takes one, and finds out to which from a place on it leads.
    fn choose(&mut self, at: usize, from: usize) {
        self.is_chosen[at] = true;
        self.links.push(self.around[at].link());
        for other in from..self.around.len() {
            if self.is_chosen[other] || self.nearer[other] > SLACKS[SLACKS.len() - 1] {
                continue;
            }
            let between = self.measure.between(&self.around[at].unpacked, &self.around[other].unpacked);
            let times = if between > 0.0 { self.around[other].distance / between } else { f32::INFINITY };
            self.nearer[other] = self.nearer[other].max(times);
        }
    }
}

/// Numbers of nodes are given one after the other; spreading them is all that is needed.
#[derive(Default)]
struct NodeHasher(u64);

impl Hasher for NodeHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        let mixed = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed >> 32;
    }
}

#[cfg(test)]
mod tests;
