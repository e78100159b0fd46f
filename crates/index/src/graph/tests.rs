//! How much graphs find, and at what effort.

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
        assert!(links.len() <= LINKS_MAX && links.iter().all(|link| linked_node(*link) != node));
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
    let (mut entries, mut far) = (Vec::new(), 0);
    for (node, vector) in vectors.iter().enumerate() {
        let mut code = Vec::new();
        quantizer.encode(&mut code, vector);
        memory.codes.push(Some(code));
        memory.links.push(Vec::new());
        let begins = insert(&mut memory, &measure, &entries, node as u32, 60).unwrap();
        far += usize::from(begins);
        if node % 100 == 0 || begins {
            entries.push(node as u32);
        }
    }
    let mut built = Built { memory, measure, vectors, entries };
    built.check_reach();
    assert!(far <= 100, "{far} are far from others");
    built
}

impl Built {
    /// All nodes can be reached from the entries.
    fn check_reach(&mut self) {
        let mut reached = vec![false; self.memory.codes.len()];
        let mut open = self.entries.clone();
        while let Some(node) = open.pop() {
            if self.memory.codes[node as usize].is_some()
                && !std::mem::replace(&mut reached[node as usize], true)
            {
                open.extend(self.memory.links[node as usize].iter().map(|link| linked_node(*link)));
            }
        }
        let lost =
            self.memory.codes.iter().zip(&reached).filter(|(code, reached)| code.is_some() && !**reached);
        assert_eq!(lost.count(), 0);
    }

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
    assert!(missed <= 3, "{missed} of 177");
}

#[test]
fn what_is_left_when_most_are_removed_is_still_found() {
    let mut built = built((0..3_000).map(|n| vector(n, 24, 30)).collect(), Metric::Cosine);
    for node in (0..3_000u32).filter(|node| node % 4 != 0) {
        let orphans = remove(&mut built.memory, &built.measure, &built.entries, node, 60).unwrap();
        built.memory.codes[node as usize] = None;
        built.memory.links[node as usize].clear();
        built.entries.retain(|entry| *entry != node);
        built.entries.extend(orphans);
    }
    built.check_reach();
    assert!(built.entries.len() < 100, "{} entries", built.entries.len());
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
