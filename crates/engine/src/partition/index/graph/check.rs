//! Whether the graphs of a partition know every vector that they should, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use orrery_index::linked_node;
use orrery_storage::{Direction, KeyRange, Snapshot, Table, keys};

use super::{Graph, ODD, ROOTS_MAX, decode_node, words};
use crate::error::Result;
use crate::partition::rows::damaged;

/// Differences between the graphs in a snapshot and the codes they stand for, as text.
pub(in super::super) fn differences(snapshot: &dyn Snapshot) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut rows = snapshot.scan(Table::Index, keys::index::graphs(), Direction::Forward);
    while let Some(row) = rows.next_row().transpose()? {
        let path = keys::index::graph_path(&row.key).ok_or_else(|| damaged("graph"))?;
        match Graph::decode(&row.value) {
            // What is being dropped may be in any state.
            Some(graph) if graph.dropping => {}
            Some(graph) => check(snapshot, path, &graph, &mut found)?,
            None => found.push(format!("the graph of path {path} cannot be read")),
        }
    }
    Ok(found)
}

fn check(snapshot: &dyn Snapshot, path: u16, graph: &Graph, found: &mut Vec<String>) -> Result<()> {
    let [touched, nodes, links, node_of] = keys::index::graph_parts(path);
    let read = |range: KeyRange| -> Result<BTreeMap<Bytes, Bytes>> {
        let mut rows = snapshot.scan(Table::Index, range, Direction::Forward);
        let mut read = BTreeMap::new();
        while let Some(row) = rows.next_row().transpose()? {
            read.insert(row.key.slice(keys::index::HEAD_BYTES..), row.value);
        }
        Ok(read)
    };
    let mut code_head = Vec::new();
    keys::index::push_code_head(&mut code_head, path);
    let (codes, touched) = (read(KeyRange::prefix(&code_head))?, read(touched)?);
    let (nodes, links, node_of) = (read(nodes)?, read(links)?, read(node_of)?);
    let number = |key: &[u8]| u32::from_be_bytes(key.try_into().unwrap_or_default());
    let nodes: BTreeMap<u32, (Bytes, Bytes)> = nodes
        .iter()
        .map(|(key, row)| Ok((number(key), decode_node(row).ok_or_else(|| damaged("node"))?)))
        .collect::<Result<_>>()?;
    let mut waiting: BTreeSet<Bytes> = BTreeSet::new();
    let mut odd: BTreeSet<Bytes> = BTreeSet::new();
    for key in touched.keys() {
        let (touch, reference) = key.split_first_chunk().ok_or_else(|| damaged("touched"))?;
        let reference = key.slice(key.len() - reference.len()..);
        if u64::from_be_bytes(*touch) == 0 {
            odd.insert(reference);
        } else if graph.touched_to.as_ref().is_some_and(|to| key <= to) {
            found.push(format!("path {path}: a touched row was left behind: {}", key.escape_ascii()));
        } else {
            waiting.insert(reference);
        }
    }
    let waits = |reference: &Bytes| {
        waiting.contains(reference) || graph.codes_to.as_ref().is_some_and(|to| reference > to)
    };
    for (reference, code) in &codes {
        let node = node_of.get(reference).and_then(|row| words(row)?.first().copied());
        let known = match node {
            Some(ODD) => code.is_empty() && odd.contains(reference),
            Some(node) => nodes.get(&node).is_some_and(|linked| *linked == (reference.clone(), code.clone())),
            None => false,
        };
        if !known && !waits(reference) {
            found.push(format!("path {path}: the graph misses {}", reference.escape_ascii()));
        }
    }
    for (reference, row) in &node_of {
        let node = words(row).and_then(|words| words.first().copied()).ok_or_else(|| damaged("node of"))?;
        let there = match node {
            ODD => odd.remove(reference),
            node => nodes.get(&node).is_some_and(|(of, _)| of == reference),
        };
        if !there || !codes.contains_key(reference) && !waits(reference) {
            found.push(format!("path {path}: {} is no item's node", reference.escape_ascii()));
        }
    }
    for (node, (reference, _)) in &nodes {
        if node_of.get(reference).and_then(|row| words(row)?.first().copied()) != Some(*node) {
            found.push(format!("path {path}: node {node} has lost its item"));
        }
    }
    let mut lost: Vec<u32> =
        links.keys().map(|key| number(key)).filter(|node| !nodes.contains_key(node)).collect();
    lost.extend(graph.beginnings().into_iter().filter(|entry| !nodes.contains_key(entry)));
    for node in lost {
        found.push(format!("path {path}: node {node} is not there"));
    }
    if !odd.is_empty() || graph.nodes as usize != nodes.len() || graph.roots.is_empty() != nodes.is_empty() {
        found.push(format!(
            "path {path}: {} nodes, {} counted, {} roots, {} odd ones too many",
            nodes.len(),
            graph.nodes,
            graph.roots.len(),
            odd.len()
        ));
    }
    let mut reached: BTreeSet<u32> = BTreeSet::new();
    let mut open = graph.beginnings();
    while let Some(node) = open.pop() {
        if nodes.contains_key(&node) && reached.insert(node) {
            let row = links.get(&node.to_be_bytes()[..]);
            let links = row.map_or(Some(Vec::new()), |row| words(row)).ok_or_else(|| damaged("links"))?;
            open.extend(links.into_iter().map(linked_node));
        }
    }
    if graph.roots.len() < ROOTS_MAX && reached.len() < nodes.len() {
        found.push(format!("path {path}: {} nodes cannot be reached", nodes.len() - reached.len()));
    }
    Ok(())
}
