//! Hops: the edges of a whole frontier, or where they lead.
//!
//! ```text
//! frontier ── known from memory ─────────────────────────────┐
//!      └───── one query for each partition ── edges ── ends ──┴── neighbours, read where that is wanted
//! ```
//!
//! Where only the far ends are asked for, nothing else is taken out of an edge, and ends of edges out of a vertex are
//! kept (`cache`).

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use orrery_engine::{Freshness, Scope};
use orrery_gremlin::graph::{Adjacent, AdjacentLookup, Cursor, Found, Page, Want};
use orrery_gremlin::value::{Direction, Edge, Vertex};
use orrery_gremlin::{Result, Value};
use orrery_model::{Epk, PartitionKey};

use super::cache::{Far, Kept, NEIGHBOURS_MAX, Place, What, joined};
use super::reads::{PAGE_ROWS_MAX, Run, Task, compiled};
use super::statement::{Conditions, Statement};
use super::{ContainerGraph, KeptCharges, failed};
use crate::errors::Failure;

/// Vertices of a frontier that one query asks for.
const FRONTIER_MAX: usize = 512;

/// Far ends, each with the place in the frontier from which it was reached.
type Ends = Vec<(u32, Arc<Vertex>)>;

/// A frontier, and how far the queries for it have come.
struct Walk {
    run: Run,
    /// Which vertices of the frontier have an id.
    sources: HashMap<Arc<str>, Vec<u32>, RandomState>,
    /// What is known already or will be kept, by vertex; nothing where that is not so of any.
    known: Vec<Known>,
    /// The charges of the queries for edges out of the frontier.
    charge_ru: f64,
}

enum Known {
    No,
    /// Answered from memory.
    Yes,
    /// What is found will be kept, unless it is too much.
    Gathered(Place, Freshness, Vec<Far>),
}

impl Walk {
    fn is_known(&self, at: usize) -> bool {
        matches!(self.known.get(at), Some(Known::Yes))
    }

    fn resumed(cursor: Cursor) -> Result<Walk> {
        match cursor.downcast::<Walk>() {
            Ok(walk) => Ok(*walk),
            Err(_) => Err(failed(Failure::defect())),
        }
    }

    /// Whether edges out of the frontier are still to come.
    fn goes_out(&self) -> bool {
        self.run.tasks.front().is_some_and(|task| task.frontier_end == Direction::Out)
    }
}

impl ContainerGraph {
    pub(super) fn find_adjacent(
        &mut self,
        frontier: &[Arc<Vertex>],
        lookup: &AdjacentLookup,
        from: Option<Cursor>,
    ) -> Result<Page<Adjacent>> {
        let (mut walk, known) = match from {
            Some(cursor) => (Walk::resumed(cursor)?, Vec::new()),
            None => self.begin_walk(frontier, lookup)?,
        };
        let items = match &lookup.want {
            Want::Edges => self.next_edges(frontier, &mut walk)?,
            want => {
                let mut far = known;
                self.next_ends(frontier, &mut walk, &mut far)?;
                self.arrived(far, want)?
            }
        };
        let next = (!walk.run.tasks.is_empty()).then(|| Box::new(walk) as Cursor);
        Ok(Page { items, next })
    }

    fn next_edges(&mut self, frontier: &[Arc<Vertex>], walk: &mut Walk) -> Result<Vec<Adjacent>> {
        let (rows, end) = self.fetch(&mut walk.run, PAGE_ROWS_MAX)?;
        let mut edges = Vec::with_capacity(rows.len());
        let sources = &walk.sources;
        self.each_row(&rows, |graph, document, system| {
            let Some(edge) = graph.form().edge(document, system) else { return };
            let edge = Arc::new(edge);
            let near = if end == Direction::Out { &edge.out_v } else { &edge.in_v };
            for source in near.id.as_str().and_then(|id| sources.get(id)).into_iter().flatten() {
                let Some(vertex) = frontier.get(*source as usize) else { continue };
                if graph.same_partition(&vertex.partition, &near.partition) {
                    edges.push(Adjacent { source: *source, found: Found::Edge(edge.clone()) });
                }
            }
        });
        Ok(edges)
    }

    /// Adds the far ends of the next edges.
    fn next_ends(&mut self, frontier: &[Arc<Vertex>], walk: &mut Walk, far: &mut Ends) -> Result<()> {
        let before_ru = self.spent.charge_ru();
        let (rows, end) = self.fetch(&mut walk.run, PAGE_ROWS_MAX)?;
        far.reserve(rows.len());
        let Walk { sources, known, .. } = walk;
        // Labels repeat.
        let mut last_label: Arc<str> = Arc::from("");
        self.each_row(&rows, |graph, document, _| {
            let Some((near, near_partition, found)) = graph.form().ends(document, end, &last_label) else {
                return;
            };
            if !Arc::ptr_eq(&found.label, &last_label) {
                last_label = found.label.clone();
            }
            let mut vertex = None;
            for source in sources.get(near).into_iter().flatten() {
                let at = *source as usize;
                let Some(from) = frontier.get(at) else { continue };
                if !graph.same_partition(&from.partition, &near_partition) {
                    continue;
                }
                if end == Direction::Out {
                    match known.get_mut(at) {
                        Some(Known::Yes) => continue,
                        Some(Known::Gathered(_, _, gathered)) => gathered.push(found.clone()),
                        _ => {}
                    }
                }
                let vertex = vertex.get_or_insert_with(|| Arc::new(found.clone().into_vertex()));
                far.push((*source, vertex.clone()));
            }
        });
        walk.charge_ru += self.spent.charge_ru() - before_ru;
        if !walk.goes_out() {
            self.keep_walk(walk);
        }
        Ok(())
    }

    /// Keeps what was found, when all of it was.
    fn keep_walk(&mut self, walk: &mut Walk) {
        let known = std::mem::take(&mut walk.known);
        let gathered = |known: &Known| match known {
            Known::Gathered(_, _, far) => far.len() + 1,
            _ => 0,
        };
        let all: usize = known.iter().map(gathered).sum();
        for known in known {
            let Known::Gathered(place, fresh, far) = known else { continue };
            if far.len() > NEIGHBOURS_MAX {
                continue;
            }
            // Each has its part of what they cost together.
            let charge_ru = walk.charge_ru * (far.len() + 1) as f64 / all as f64;
            self.cache.keep(place, Kept { fresh, what: What::Hop(far.into()), charge_ru });
        }
    }

    /// What was wanted of the vertices at the other end.
    fn arrived(&mut self, far: Ends, want: &Want) -> Result<Vec<Adjacent>> {
        let vertex = |(source, vertex)| Adjacent { source, found: Found::Vertex(vertex) };
        if !matches!(want, Want::LoadedVertices { .. }) {
            return Ok(far.into_iter().map(vertex).collect());
        }
        let mut wanted: Vec<Arc<Vertex>> = Vec::new();
        // What is filled in later is no part of a vertex's hash.
        #[allow(clippy::mutable_key_type)]
        let mut places: HashMap<Arc<Vertex>, usize, RandomState> = HashMap::default();
        let mut at = Vec::with_capacity(far.len());
        for (source, vertex) in far {
            let place = *places.entry(vertex).or_insert_with_key(|vertex| {
                wanted.push(vertex.clone());
                wanted.len() - 1
            });
            at.push((source, place));
        }
        let read = self.read_vertices(&wanted)?;
        let loaded = |(source, place): (u32, usize)| {
            let vertex = read.get(place)?.clone()?;
            Some(Adjacent { source, found: Found::Vertex(vertex) })
        };
        Ok(at.into_iter().filter_map(loaded).collect())
    }

    fn same_partition(&self, one: &Value, other: &Value) -> bool {
        // A reference that a client sent does not say where it lies.
        one == other || one.is_null() || other.is_null() || self.key(one) == self.key(other)
    }

    /// The queries for a frontier, and the far ends that are known without them.
    fn begin_walk(&mut self, frontier: &[Arc<Vertex>], lookup: &AdjacentLookup) -> Result<(Walk, Ends)> {
        let mut walk = Walk {
            run: Run::of(Default::default()),
            sources: HashMap::default(),
            known: Vec::new(),
            charge_ru: 0.0,
        };
        let mut far = Vec::new();
        let out = lookup.direction != Direction::In;
        let ends_only = lookup.want != Want::Edges && lookup.edge_filters.is_empty();
        if out && ends_only && self.may_keep() {
            self.recall(frontier, lookup, &mut walk, &mut far)?;
        }
        let all_known =
            walk.known.len() == frontier.len() && walk.known.iter().all(|known| matches!(known, Known::Yes));
        if all_known && lookup.direction == Direction::Out {
            return Ok((walk, far));
        }
        walk.sources.reserve(frontier.len());
        for (at, vertex) in frontier.iter().enumerate() {
            if let Value::String(id) = &vertex.id {
                walk.sources.entry(id.clone()).or_default().push(at as u32);
            }
        }
        if out {
            self.out_tasks(frontier, lookup, &mut walk)?;
        }
        if lookup.direction != Direction::Out {
            let ids: Vec<&str> = walk.sources.keys().map(|id| &**id).collect();
            for ids in ids.chunks(FRONTIER_MAX) {
                let statement = self.edge_statement(Conditions::into(ids), lookup)?;
                walk.run.tasks.push_back(Task { scope: Scope::All, statement, frontier_end: Direction::In });
            }
        }
        Ok((walk, far))
    }

    /// What is kept of a frontier, and what will be.
    fn recall(
        &mut self,
        frontier: &[Arc<Vertex>],
        lookup: &AdjacentLookup,
        walk: &mut Walk,
        far: &mut Ends,
    ) -> Result<()> {
        let labels = joined(&lookup.edge_labels);
        let mut spent = KeptCharges::default();
        walk.known.reserve(frontier.len());
        for (at, vertex) in frontier.iter().enumerate() {
            let fresh = self.key(&vertex.partition).and_then(|key| self.container.freshness(&key));
            let Some(fresh) = fresh else {
                walk.known.push(Known::No);
                continue;
            };
            let place = Place::of(fresh, vertex, Some(&labels));
            if let Some(kept) = self.cache.get(&place, fresh)
                && let What::Hop(ends) = &kept.what
            {
                self.budget.step(1 + ends.len() as u64 / 8)?;
                self.use_kept(&mut spent, &kept)?;
                far.extend(ends.iter().map(|end| (at as u32, Arc::new(end.clone().into_vertex()))));
                walk.known.push(Known::Yes);
            } else {
                walk.known.push(Known::Gathered(place, fresh, Vec::new()));
            }
        }
        self.charge_kept(spent);
        Ok(())
    }

    fn edge_statement(&self, base: Conditions, lookup: &AdjacentLookup) -> Result<Arc<Statement>> {
        let conditions = match lookup.edge_labels.is_empty() {
            true => base,
            false => base.labels(lookup.edge_labels.iter().map(|label| &**label)),
        };
        compiled(conditions.filters(&lookup.edge_filters, false, self.partition_key.as_deref()))
    }

    /// Edges out of a frontier: one query for each physical partition, and of each logical one that is alone there.
    fn out_tasks(&self, frontier: &[Arc<Vertex>], lookup: &AdjacentLookup, walk: &mut Walk) -> Result<()> {
        struct Group<'f> {
            scope: Scope,
            keys: Vec<PartitionKey>,
            ids: Vec<&'f str>,
        }
        let ranges = self.container.ranges();
        let mut groups: Vec<Option<Group<'_>>> = (0..=ranges.len()).map(|_| None).collect();
        for (at, vertex) in frontier.iter().enumerate() {
            if walk.is_known(at) {
                continue;
            }
            let Some(id) = vertex.id.as_str() else { continue };
            let key = self.key(&vertex.partition);
            let range = match &key {
                Some(key) => {
                    let epk: Epk = self.container.span(key).map_err(failed)?.0;
                    ranges.partition_point(|range| range.min <= epk).saturating_sub(1)
                }
                None => ranges.len(),
            };
            let Some(group) = groups.get_mut(range) else { continue };
            let scope = || match ranges.get(range) {
                Some(range) => Scope::Epk { min: range.min.clone(), max: range.max.clone(), range: None },
                None => Scope::All,
            };
            let group =
                group.get_or_insert_with(|| Group { scope: scope(), keys: Vec::new(), ids: Vec::new() });
            group.ids.push(id);
            // Whether there are several is all that matters.
            if let Some(key) = key
                && group.keys.len() < 2
                && !group.keys.contains(&key)
            {
                group.keys.push(key);
            }
        }
        for Group { scope, mut keys, ids } in groups.into_iter().flatten() {
            let scope = match keys.len() {
                1 if !keys[0].0.is_empty() => Scope::Key(keys.remove(0)),
                _ => scope,
            };
            for ids in ids.chunks(FRONTIER_MAX) {
                let statement = self.edge_statement(Conditions::out_of(ids), lookup)?;
                walk.run.tasks.push_back(Task {
                    scope: scope.clone(),
                    statement,
                    frontier_end: Direction::Out,
                });
            }
        }
        Ok(())
    }

    /// All edges that touch vertices, for whoever removes them.
    pub(super) fn touching(&mut self, vertices: &[Arc<Vertex>]) -> Result<Vec<Arc<Edge>>> {
        let lookup = AdjacentLookup {
            direction: Direction::Both,
            edge_labels: Vec::new(),
            edge_filters: Vec::new(),
            want: Want::Edges,
            limit_per_source: None,
        };
        let (mut edges, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.find_adjacent(vertices, &lookup, cursor)?;
            edges.extend(page.items.into_iter().filter_map(|adjacent| match adjacent.found {
                Found::Edge(edge) => Some(edge),
                Found::Vertex(_) => None,
            }));
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(edges),
            }
        }
    }
}
