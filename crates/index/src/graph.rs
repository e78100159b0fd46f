//! Vectors as a graph in which the nearest to another are found by walking, without looking at most of them.
//!
//! Every node has links to a few others: the near ones of every direction, so that from anywhere a way leads closer to any
//! place (Vamana, the graph of DiskANN). A search keeps a list of the nearest nodes that it has met and goes on from the nearest
//! that it has not gone on from yet, until it has done so from all on the list. A longer list finds more and costs more.
//!
//! ```text
//! insert   search for the vector; link it with those found, pruned; link these back, and prune the ones that have too many
//! remove   search for the vector; whoever has a link to it gets links to some of those it had links to instead
//! ```
//!
//! All that is known of vectors are their codes (`quantize`). Links to nodes that are gone are passed over, and vanish when
//! the node that has them is written again. Where nodes are kept is the caller's business ([`GraphRows`]).
//!
//! Searches begin at a sample of the nodes rather than at one: groups of vectors that lie far apart need not have links
//! between them.

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
/// Links that a node gets for one to a node that goes.
const REPLACEMENTS: usize = 3;

/// Nodes of a graph, wherever they are.
pub trait GraphRows {
    type Code: AsRef<[u8]>;
    type Error;

    /// The code of a node; `None` when it is gone.
    fn code(&mut self, node: u32) -> Result<Option<Self::Code>, Self::Error>;
    /// The links of a node, none when it is gone.
    fn links(&mut self, node: u32) -> Result<Vec<u32>, Self::Error>;
}

/// A graph that is changed.
pub trait GraphEdit: GraphRows {
    fn set_links(&mut self, node: u32, links: Vec<u32>);
}

/// How far apart the vectors of two codes are, as a graph sees it: a square, and 0 for the same vector.
///
/// Dot products know no nearness, so vectors are thought to have one more dimension, which brings all of them to one length:
/// the nearest there have the largest products.
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

    /// Goes on until it has gone on from the `list` nearest of all that were met, and then from `patience` others without finding
    /// one for the list: how much there is to find nobody knows, but where the list still gets better there is more.
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
            for node in rows.links(next.node)? {
                let Some(met) = self.meet(rows, node, nearness)? else { continue };
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

/// Links a new node. `list`: how thoroughly its neighbours are searched for. Its code must be there already.
pub fn insert<R: GraphEdit>(
    rows: &mut R,
    measure: &Measure,
    entries: &[u32],
    node: u32,
    list: usize,
) -> Result<(), R::Error> {
    let Some(code) = rows.code(node)? else { return Ok(()) };
    let Some(probe) = measure.quantizer.probe_code(code.as_ref(), measure.metric) else { return Ok(()) };
    let nearness = |code: &[u8]| measure.nearness(&probe, code);
    let mut search = GraphSearch::default();
    search.seen.insert(node);
    search.begin(rows, entries, &nearness)?;
    search.run(rows, list, 0, &nearness)?;
    // Those at which it began lie all over the place: without far ones around, groups would lose touch with each other.
    let mut around = Vec::with_capacity(list + entries.len());
    let far: Vec<Met> = search.met[list.min(search.met.len())..]
        .iter()
        .filter(|met| entries.contains(&met.node))
        .copied()
        .collect();
    for met in search.nearest(list).iter().chain(&far) {
        if let Some(code) = rows.code(met.node)?
            && let Some(unpacked) = measure.quantizer.unpack(code.as_ref())
        {
            around.push(Neighbour { node: met.node, distance: -met.nearness, unpacked });
        }
    }
    let links = pruned(measure, node, around);
    rows.set_links(node, links.clone());
    for other in links {
        add_links(rows, measure, other, &[node])?;
    }
    Ok(())
}

/// Takes a node out, whose code and links must still be there: whoever has a link to it gets others instead. Then the caller
/// removes it.
pub fn remove<R: GraphEdit>(
    rows: &mut R,
    measure: &Measure,
    entries: &[u32],
    node: u32,
    list: usize,
) -> Result<(), R::Error> {
    let Some(code) = rows.code(node)? else { return Ok(()) };
    let Some(probe) = measure.quantizer.probe_code(code.as_ref(), measure.metric) else { return Ok(()) };
    let nearness = |code: &[u8]| measure.nearness(&probe, code);
    let mut search = GraphSearch::default();
    search.begin(rows, entries, &nearness)?;
    search.run(rows, list, 0, &nearness)?;
    let linked = rows.links(node)?;
    let mut others: Vec<u32> =
        search.nearest(list).iter().map(|met| met.node).chain(linked.iter().copied()).collect();
    others.sort_unstable();
    others.dedup();
    let mut heirs = Vec::with_capacity(linked.len());
    for other in linked {
        if let Some(code) = rows.code(other)?
            && let Some(unpacked) = measure.quantizer.unpack(code.as_ref())
        {
            heirs.push((other, unpacked));
        }
    }
    for other in others.into_iter().filter(|other| *other != node) {
        let mut links = rows.links(other)?;
        let before = links.len();
        links.retain(|link| *link != node);
        if links.len() == before {
            continue;
        }
        let Some(code) = rows.code(other)? else { continue };
        let Some(own) = measure.quantizer.unpack(code.as_ref()) else { continue };
        let mut nearest: Vec<(f32, u32)> = heirs
            .iter()
            .filter(|(heir, _)| *heir != other && !links.contains(heir))
            .map(|(heir, unpacked)| (measure.between(&own, unpacked), *heir))
            .collect();
        nearest.sort_unstable_by(|left, right| left.0.total_cmp(&right.0));
        let added: Vec<u32> = nearest.into_iter().take(REPLACEMENTS).map(|(_, heir)| heir).collect();
        rows.set_links(other, links);
        add_links(rows, measure, other, &added)?;
    }
    Ok(())
}

/// Adds links to a node, and prunes them when they are too many.
fn add_links<R: GraphEdit>(
    rows: &mut R,
    measure: &Measure,
    node: u32,
    added: &[u32],
) -> Result<(), R::Error> {
    let mut links = rows.links(node)?;
    links.extend(
        added
            .iter()
            .filter(|link| **link != node)
            .copied()
            .filter(|link| !links.contains(link))
            .collect::<Vec<_>>(),
    );
    if links.len() > LINKS_MAX {
        let Some(code) = rows.code(node)? else { return Ok(()) };
        let Some(own) = measure.quantizer.unpack(code.as_ref()) else { return Ok(()) };
        let mut around = Vec::with_capacity(links.len());
        for link in links {
            if let Some(code) = rows.code(link)?
                && let Some(unpacked) = measure.quantizer.unpack(code.as_ref())
            {
                around.push(Neighbour { node: link, distance: measure.between(&own, &unpacked), unpacked });
            }
        }
        links = pruned(measure, node, around);
    }
    rows.set_links(node, links);
    Ok(())
}

struct Neighbour {
    node: u32,
    distance: f32,
    unpacked: Unpacked,
}

/// The links of a node among those around it: near ones first, without those to which a chosen one leads. What room is left
/// goes to the nearest that were passed over, which is what keeps copies of one vector together.
fn pruned(measure: &Measure, node: u32, mut around: Vec<Neighbour>) -> Vec<u32> {
    // Copies form a chain by their numbers, or they would all be linked with the same few.
    let apart = |other: &Neighbour| other.node.abs_diff(node);
    around.sort_unstable_by(|left, right| {
        left.distance.total_cmp(&right.distance).then(apart(left).cmp(&apart(right)))
    });
    let most = SLACKS[SLACKS.len() - 1];
    // How much nearer the nearest chosen one is: beyond the slack, the direct link is not needed.
    let mut nearer = vec![0f32; around.len()];
    let mut is_chosen = vec![false; around.len()];
    let mut chosen = Vec::with_capacity(LINKS);
    for slack in SLACKS {
        for at in 0..around.len() {
            if chosen.len() >= LINKS {
                return chosen;
            }
            if is_chosen[at] || nearer[at] > slack {
                continue;
            }
            is_chosen[at] = true;
            chosen.push(around[at].node);
            for other in at + 1..around.len() {
                if is_chosen[other] || nearer[other] > most {
                    continue;
                }
                let between = measure.between(&around[at].unpacked, &around[other].unpacked);
                let times = if between > 0.0 { around[other].distance / between } else { f32::INFINITY };
                nearer[other] = nearer[other].max(times);
            }
        }
    }
    let rest = (0..around.len()).filter(|at| !is_chosen[*at]).map(|at| around[at].node);
    let room = LINKS - chosen.len();
    chosen.extend(rest.take(room));
    chosen
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
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[derive(Default)]
    struct Memory {
        codes: Vec<Option<Vec<u8>>>,
        links: Vec<Vec<u32>>,
    }

    impl GraphRows for Memory {
        type Code = Vec<u8>;
        type Error = Infallible;

        fn code(&mut self, node: u32) -> Result<Option<Vec<u8>>, Infallible> {
            Ok(self.codes[node as usize].clone())
        }

        fn links(&mut self, node: u32) -> Result<Vec<u32>, Infallible> {
            Ok(self.links[node as usize].clone())
        }
    }

    impl GraphEdit for Memory {
        fn set_links(&mut self, node: u32, links: Vec<u32>) {
            assert!(links.len() <= LINKS_MAX && !links.contains(&node));
            self.links[node as usize] = links;
        }
    }

    fn fraction(n: u64) -> f64 {
        let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let n = (n ^ n >> 29).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((n ^ n >> 32) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Around one of some centres, or of none.
    fn vector(n: u64, dimensions: u64, centres: u64) -> Vec<f64> {
        let centre = (fraction(n + 1_000_000) * centres as f64) as u64;
        let middle = |at| if centres == 0 { 0.0 } else { fraction(centre * 1_000 + at) - 0.5 };
        let length = 0.5 + fraction(n + 2_000_000);
        (0..dimensions).map(|at| length * (middle(at) + 0.4 * (fraction(n * 9_973 + at) - 0.5))).collect()
    }

    struct Built {
        memory: Memory,
        measure: Measure,
        vectors: Vec<Vec<f64>>,
        entries: Vec<u32>,
    }

    fn built(vectors: Vec<Vec<f64>>, metric: Metric) -> Built {
        let quantizer = Quantizer::new(vectors[0].len(), None);
        let measure = Measure { quantizer, metric, longest: 10.0 };
        let mut memory = Memory::default();
        let mut entries = Vec::new();
        for (node, vector) in vectors.iter().enumerate() {
            let mut code = Vec::new();
            quantizer.encode(&mut code, vector);
            memory.codes.push(Some(code));
            memory.links.push(Vec::new());
            insert(&mut memory, &measure, &entries, node as u32, 60).unwrap();
            if node % 100 == 0 {
                entries.push(node as u32);
            }
        }
        Built { memory, measure, vectors, entries }
    }

    impl Built {
        /// How many of the ten nearest are found, of all that were looked for, and how many nodes were compared for each.
        fn recall(&mut self, list: usize, centres: u64) -> (f64, u64) {
            let dimensions = self.vectors[0].len() as u64;
            let (mut found, mut compared) = (0, 0);
            for n in 0..20 {
                let wanted = vector(90_000_000 + n, dimensions, centres);
                let mut exact = crate::Probe::new(&wanted, self.measure.metric).unwrap();
                let mut all: Vec<(f64, u32)> = Vec::new();
                for (node, vector) in self.vectors.iter().enumerate() {
                    if self.memory.codes[node].is_some() {
                        let mut row = Vec::new();
                        crate::encode_vector(&mut row, vector, crate::Element::Float32);
                        all.push((exact.compare(&row).unwrap().value, node as u32));
                    }
                }
                all.sort_by(|left, right| right.0.total_cmp(&left.0));
                let probe = self.measure.quantizer.probe(&wanted, self.measure.metric).unwrap();
                let nearness = |code: &[u8]| probe.compare(code);
                let mut search = GraphSearch::default();
                search.begin(&mut self.memory, &self.entries, &nearness).unwrap();
                // In two steps, which must come to the same.
                search.run(&mut self.memory, list / 3, 0, &nearness).unwrap();
                search.run(&mut self.memory, list, 0, &nearness).unwrap();
                compared += search.effort().0;
                let near: Vec<u32> = search.nearest(list).iter().map(|met| met.node).collect();
                found += all[..10].iter().filter(|(_, node)| near.contains(node)).count();
            }
            (found as f64 / 200.0, compared / 20)
        }
    }

    #[test]
    fn nearly_all_of_the_nearest_are_found_among_few_that_are_compared() {
        for (metric, centres) in [
            (Metric::Cosine, 30),
            (Metric::Cosine, 0),
            (Metric::Euclidean, 30),
            (Metric::DotProduct, 30),
            (Metric::DotProduct, 0),
        ] {
            let vectors = (0..4_000).map(|n| vector(n, 24, centres)).collect();
            let (recall, compared) = built(vectors, metric).recall(150, centres);
            println!("{metric:?} {centres}: {recall} {compared}");
            assert!(recall >= 0.95 && compared < 2_500, "{metric:?} {centres}: {recall} {compared}");
        }
    }

    /// Groups that come one after the other have nothing in common with those before.
    #[test]
    fn groups_far_apart_are_found() {
        let group = |n: u64| {
            let centre = n / 40;
            (0..24).map(|at| fraction(centre * 1_000 + at) - 0.5 + 0.02 * fraction(n * 9_973 + at)).collect()
        };
        let mut built = built((0..3_000).map(group).collect(), Metric::Euclidean);
        let mut missed = 0;
        for n in (0..3_000).step_by(17) {
            let wanted: Vec<f64> = group(n);
            let probe = built.measure.quantizer.probe(&wanted, Metric::Euclidean).unwrap();
            let nearness = |code: &[u8]| probe.compare(code);
            let mut search = GraphSearch::default();
            search.begin(&mut built.memory, &built.entries, &nearness).unwrap();
            search.run(&mut built.memory, 60, 50, &nearness).unwrap();
            // Who is who in a group is beyond what codes tell.
            missed += usize::from(!search.nearest(20).iter().all(|met| u64::from(met.node) / 40 == n / 40));
        }
        assert!(missed <= 12, "{missed} of 177");
    }

    #[test]
    fn what_is_left_when_most_are_removed_is_still_found() {
        let mut built = built((0..3_000).map(|n| vector(n, 24, 30)).collect(), Metric::Cosine);
        for node in (0..3_000u32).filter(|node| node % 4 != 0) {
            remove(&mut built.memory, &built.measure, &built.entries, node, 60).unwrap();
            built.memory.codes[node as usize] = None;
            built.memory.links[node as usize].clear();
            built.entries.retain(|entry| *entry != node);
        }
        let (recall, compared) = built.recall(150, 30);
        assert!(recall >= 0.95, "{recall} {compared}");
    }

    #[test]
    fn copies_of_one_vector_stay_together() {
        let mut vectors: Vec<Vec<f64>> = (0..1_000).map(|n| vector(n, 24, 10)).collect();
        vectors.extend(std::iter::repeat_n(vector(5, 24, 10), 300));
        let mut built = built(vectors, Metric::Cosine);
        let probe = built.measure.quantizer.probe(&vector(5, 24, 10), Metric::Cosine).unwrap();
        let nearness = |code: &[u8]| probe.compare(code);
        let mut search = GraphSearch::default();
        search.begin(&mut built.memory, &built.entries, &nearness).unwrap();
        search.run(&mut built.memory, 200, 0, &nearness).unwrap();
        let copies = search.nearest(200).iter().filter(|met| met.node >= 1_000 || met.node == 5).count();
        assert!(copies >= 150, "{copies}");
    }

    #[test]
    fn codes_compared_with_each_other_come_near_the_truth() {
        for asked in [None, Some(24), Some(6), Some(3)] {
            let quantizer = Quantizer::new(24, asked);
            let code = |n| {
                let mut code = Vec::new();
                quantizer.encode(&mut code, &vector(n, 24, 0));
                code
            };
            for n in 0..50 {
                let (a, b) = (code(n), code(n + 50));
                let whole = quantizer.cosine(&quantizer.unpack(&a).unwrap(), &quantizer.unpack(&b).unwrap());
                let (probed, length) = quantizer.probe_code(&a, Metric::Cosine).unwrap().cosine(&b).unwrap();
                assert!((whole - probed).abs() < 0.02, "{asked:?} {whole} {probed}");
                assert_eq!(length, quantizer.unpack(&b).unwrap().length);
            }
        }
        assert!(Quantizer::new(3, None).unpack(&[1, 2, 3]).is_none());
        assert!(Quantizer::new(3, None).probe_code(&[], Metric::Cosine).is_none());
    }
}
