//! Finding elements: by key and id, by index, over one partition or all of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use orrery_engine::{
    DistributedFailure, DistributedPosition, DistributedQuery, Item, Kind, QueryOptions, ReadOptions,
    Resuming, Scope, StatementSource, block_on,
};
use orrery_gremlin::graph::{Cursor, ElementId, Lookup, Page};
use orrery_gremlin::value::{Direction, Edge, Vertex};
use orrery_gremlin::{Result, Value};
use orrery_model::{PartitionKey, Raw};
use orrery_query::merge::{Merged, PageSize};
use orrery_query::{RowFormat, Rows};

use super::cache::{Kept, Place, What};
use super::document::{Form, System, displaced_id, is_displaced, is_edge};
use super::host::SYSTEM;
use super::item_form::{self, ItemForm};
use super::statement::{Conditions, Statement};
use super::{ContainerGraph, KeptCharges, failed};
use crate::errors::Failure;

/// Elements of a page.
pub(super) const PAGE_ROWS_MAX: usize = 1_000;
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One query, and where in the hash space it runs.
pub(super) struct Task {
    pub scope: Scope,
    pub statement: Arc<Statement>,
    /// Of edges: which of their ends the frontier is.
    pub frontier_end: Direction,
}

/// Queries one after the other, and how far they have come.
pub(super) struct Run {
    pub tasks: VecDeque<Task>,
    position: Option<DistributedPosition>,
}

impl Run {
    pub fn of(tasks: VecDeque<Task>) -> Run {
        Run { tasks, position: None }
    }

    fn resumed(cursor: Cursor) -> Result<Run> {
        match cursor.downcast::<Run>() {
            Ok(run) => Ok(*run),
            Err(_) => Err(failed(Failure::defect())),
        }
    }

    fn into_cursor(self) -> Option<Cursor> {
        (!self.tasks.is_empty()).then(|| Box::new(self) as Cursor)
    }
}

impl ContainerGraph {
    pub(super) fn form(&self) -> Form<'_> {
        Form { partition_key: self.partition_key.as_deref(), system: &self.system_properties }
    }

    /// Remembers a version that the traversal has seen.
    pub(super) fn saw(&mut self, key: &PartitionKey, id: &str, etag: &str) {
        /// About what an entry takes beside its texts.
        const ENTRY_BYTES: usize = 160;
        // What there is no memory for is not remembered, and changed as it is found.
        if let Some(seen) = &mut self.seen
            && self.budget.take(ENTRY_BYTES + id.len()).is_ok()
        {
            seen.insert(place(key, id), etag.to_owned());
        }
    }

    pub(super) fn find_vertices(
        &mut self,
        lookup: &Lookup,
        from: Option<Cursor>,
    ) -> Result<Page<Arc<Vertex>>> {
        if let (Some(ids), None) = (&lookup.ids, &from) {
            return self.vertices_by_id(ids, lookup).map(Page::last);
        }
        let mut run = match from {
            Some(cursor) => Run::resumed(cursor)?,
            None => Run::of(self.tasks(Conditions::vertices(), lookup, true)?),
        };
        let (rows, _) = self.fetch(&mut run, page_rows(lookup.limit))?;
        let mut vertices = Vec::with_capacity(rows.len());
        self.each_row(&rows, |graph, document, system| {
            vertices.extend(graph.form().vertex(document, system).map(Arc::new));
        });
        Ok(Page { items: vertices, next: run.into_cursor() })
    }

    pub(super) fn find_edges(&mut self, lookup: &Lookup, from: Option<Cursor>) -> Result<Page<Arc<Edge>>> {
        if let (Some(ids), None) = (&lookup.ids, &from) {
            return self.edges_by_id(ids, lookup).map(Page::last);
        }
        let mut run = match from {
            Some(cursor) => Run::resumed(cursor)?,
            None => Run::of(self.tasks(Conditions::edges(), lookup, false)?),
        };
        let (rows, _) = self.fetch(&mut run, page_rows(lookup.limit))?;
        let mut edges = Vec::with_capacity(rows.len());
        self.each_row(&rows, |graph, document, system| {
            edges.extend(graph.form().edge(document, system).map(Arc::new));
        });
        Ok(Page { items: edges, next: run.into_cursor() })
    }

    /// The queries of a lookup without ids: one for each logical partition that is named, or one for all of them.
    fn tasks(&self, base: Conditions, lookup: &Lookup, of_vertices: bool) -> Result<VecDeque<Task>> {
        let statement = self.statement(base, lookup, of_vertices)?;
        let task = |scope| Task { scope, statement: statement.clone(), frontier_end: Direction::Out };
        Ok(self.scopes(lookup.partitions.as_deref()).into_iter().map(task).collect())
    }

    fn statement(&self, base: Conditions, lookup: &Lookup, of_vertices: bool) -> Result<Arc<Statement>> {
        let conditions = of_labels(base, lookup);
        let conditions = conditions.filters(&lookup.filters, of_vertices, self.partition_key.as_deref());
        compiled(conditions)
    }

    pub(super) fn scopes(&self, partitions: Option<&[Value]>) -> Vec<Scope> {
        let Some(values) = partitions else { return vec![Scope::All] };
        let mut keys: Vec<PartitionKey> = Vec::new();
        for key in values.iter().filter_map(|value| self.key(value)) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys.into_iter().map(Scope::Key).collect()
    }

    /// The scope as far as the caller may see; `None`: nothing of it.
    pub(super) fn permitted(&self, scope: &Scope) -> Option<Scope> {
        let Some(granted) = self.limits.key() else { return Some(scope.clone()) };
        match scope {
            Scope::Key(key) => self.limits.permits_key(key).is_ok().then(|| scope.clone()),
            _ => Some(Scope::Key(granted.clone())),
        }
    }

    /// The next rows, all of one query, and which end of edges its frontier is; none when the queries have come to
    /// their end.
    pub(super) fn fetch(&mut self, run: &mut Run, rows: usize) -> Result<(Rows, Direction)> {
        self.budget.check()?;
        loop {
            let Some(task) = run.tasks.front() else { return Ok((Rows::default(), Direction::Out)) };
            let end = task.frontier_end;
            let Some(scope) = self.permitted(&task.scope) else {
                run.tasks.pop_front();
                continue;
            };
            let (found, next) =
                self.page(&scope, &task.statement, &ItemForm, run.position.take(), rows).map_err(failed)?;
            run.position = next;
            if run.position.is_none() {
                run.tasks.pop_front();
            }
            if !found.is_empty() {
                return Ok((found, end));
            }
        }
    }

    pub(super) fn page(
        &mut self,
        scope: &Scope,
        statement: &Statement,
        format: &'static dyn RowFormat,
        position: Option<DistributedPosition>,
        rows: usize,
    ) -> std::result::Result<(Rows, Option<DistributedPosition>), DistributedFailure> {
        let began = Instant::now();
        let (container, budget) = (&self.container, &self.budget);
        let read = || {
            let shares = container.shares_of(scope)?;
            let source = StatementSource::of_tree(&statement.query);
            let mut options = QueryOptions::new(budget, &SYSTEM, format, source);
            options.page_bytes = PAGE_BYTES_MAX;
            let mut query = DistributedQuery::new(container, shares, options);
            let resuming = Resuming { skips: false, sorts: false };
            let start = position.clone().map(|position| query.go_on(position, resuming)).transpose()?;
            let merged = Merged::new(&statement.plan);
            let (rows, next) = query.page(&merged, start, PageSize { rows, bytes: PAGE_BYTES_MAX })?;
            let next = next.map(|next| query.distributed_position(&next));
            Ok((rows, next, query.charge_ru(), query.share_count()))
        };
        let (rows, next, charge_ru, fanout) =
            container.routed(scope, DistributedFailure::is_range_gone, read)?;
        self.spent.add(charge_ru);
        self.did(fanout, rows.len(), rows.size_bytes(), began);
        Ok((rows, next))
    }

    /// Calls `each` with the documents of a page, whose versions count as seen.
    pub(super) fn each_row(
        &mut self,
        rows: &Rows,
        mut each: impl FnMut(&mut ContainerGraph, Raw<'_>, System<'_>),
    ) {
        for row in rows.iter() {
            let Some((document, system)) = item_form::read(row) else { continue };
            if self.seen.is_some()
                && let (Some(etag), Some(id)) = (system.etag, document.get("id").and_then(Raw::as_str))
            {
                let key = self.container.definition().partition_key.extract(document);
                self.saw(&key, id, etag);
            }
            if is_displaced(document)
                && let Some(id) = document.get(super::document::EDGE_ID).and_then(Raw::as_str)
            {
                let key = self.container.definition().partition_key.extract(document);
                self.displaced.insert(place(&key, id));
            }
            each(self, document, system);
        }
    }

    /// One item by its key and id; `None` where there is none that the caller may see.
    pub(super) fn item(&mut self, key: &PartitionKey, id: &str) -> Result<Option<Item>> {
        if self.limits.permits_key(key).is_err() || id.is_empty() {
            return Ok(None);
        }
        let began = Instant::now();
        let read = block_on(self.container.read_item(key, id, &ReadOptions::default()));
        match read {
            Ok(reply) => {
                self.spent.add(reply.charge_ru);
                self.did(1, 1, reply.item.document.len(), began);
                if self.seen.is_some() {
                    self.saw(key, id, &reply.item.etag.to_string());
                }
                Ok(Some(reply.item))
            }
            Err(error) if error.kind == Kind::NotFound => {
                self.spent.add(error.charge_ru);
                self.did(1, 0, 0, began);
                Ok(None)
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn vertex_at(&mut self, key: &PartitionKey, id: &str) -> Result<Option<Arc<Vertex>>> {
        let Some(item) = self.item(key, id)? else { return Ok(None) };
        let etag = item.etag.to_string();
        let system = System { etag: Some(&etag), ts: Some(item.ts) };
        Ok(self.form().vertex(item.body(), system).map(Arc::new))
    }

    fn edge_at(&mut self, key: &PartitionKey, id: &str) -> Result<Option<Arc<Edge>>> {
        let Some(item) = self.edge_item(key, id)? else { return Ok(None) };
        let etag = item.etag.to_string();
        let system = System { etag: Some(&etag), ts: Some(item.ts) };
        Ok(self.form().edge(item.body(), system).map(Arc::new))
    }

    /// The item of an edge, under its own id or under the other.
    pub(super) fn edge_item(&mut self, key: &PartitionKey, id: &str) -> Result<Option<Item>> {
        let is_own = |item: &Item| is_edge(item.body()) && !is_displaced(item.body());
        if let Some(item) = self.item(key, id)?.filter(is_own) {
            return Ok(Some(item));
        }
        let item = self.item(key, &displaced_id(id))?.filter(|item| is_displaced(item.body()));
        if item.is_some() {
            self.displaced.insert(place(key, id));
        }
        Ok(item)
    }

    /// The id of the item of an edge that was read before.
    pub(super) fn edge_item_id(&self, key: &PartitionKey, id: &str) -> String {
        match !self.displaced.is_empty() && self.displaced.contains(&place(key, id)) {
            true => displaced_id(id),
            false => id.to_owned(),
        }
    }

    /// Where ids lead: to places that are known, and to those that only a query over all partitions finds.
    fn places<'i>(
        &self,
        ids: &'i [ElementId],
        partitions: Option<&[Value]>,
    ) -> (Vec<(PartitionKey, &'i str)>, Vec<&'i str>) {
        let fixed = self.partition_key.is_none();
        let named: Option<Vec<PartitionKey>> =
            partitions.map(|values| values.iter().filter_map(|value| self.key(value)).collect());
        let (mut points, mut anywhere) = (Vec::new(), Vec::new());
        for ElementId { partition, id } in ids {
            let Some(id) = id.as_str() else { continue };
            match (partition, &named) {
                (Some(partition), _) => points.extend(self.key(partition).map(|key| (key, id))),
                (None, _) if fixed => points.push((PartitionKey::default(), id)),
                (None, Some(keys)) => points.extend(keys.iter().map(|key| (key.clone(), id))),
                (None, None) => match self.limits.key() {
                    Some(granted) => points.push((granted.clone(), id)),
                    None => anywhere.push(id),
                },
            }
        }
        (points, anywhere)
    }

    fn vertices_by_id(&mut self, ids: &[ElementId], lookup: &Lookup) -> Result<Vec<Arc<Vertex>>> {
        let (points, anywhere) = self.places(ids, lookup.partitions.as_deref());
        let mut found = Vec::with_capacity(points.len());
        for (key, id) in points {
            found.extend(self.vertex_at(&key, id)?);
        }
        if !anywhere.is_empty() {
            let conditions = Conditions::vertices().ids(anywhere.iter().copied());
            let statement = self.statement(conditions, lookup, true)?;
            self.everywhere(statement, |graph, document, system| {
                found.extend(graph.form().vertex(document, system).map(Arc::new));
            })?;
        }
        Ok(found)
    }

    fn edges_by_id(&mut self, ids: &[ElementId], lookup: &Lookup) -> Result<Vec<Arc<Edge>>> {
        let (points, anywhere) = self.places(ids, lookup.partitions.as_deref());
        let mut found = Vec::with_capacity(points.len());
        for (key, id) in points {
            found.extend(self.edge_at(&key, id)?);
        }
        if !anywhere.is_empty() {
            let conditions = Conditions::edges().edge_ids(&anywhere);
            let statement = self.statement(conditions, lookup, false)?;
            self.everywhere(statement, |graph, document, system| {
                found.extend(graph.form().edge(document, system).map(Arc::new));
            })?;
        }
        Ok(found)
    }

    /// Runs a query over all partitions to its end.
    fn everywhere(
        &mut self,
        statement: Arc<Statement>,
        mut each: impl FnMut(&mut ContainerGraph, Raw<'_>, System<'_>),
    ) -> Result<()> {
        let mut run = Run::of([Task { scope: Scope::All, statement, frontier_end: Direction::Out }].into());
        while !run.tasks.is_empty() {
            let (rows, _) = self.fetch(&mut run, PAGE_ROWS_MAX)?;
            self.each_row(&rows, &mut each);
        }
        Ok(())
    }

    /// The vertices that references name, those that are kept without reading them.
    pub(super) fn read_vertices(&mut self, vertices: &[Arc<Vertex>]) -> Result<Vec<Option<Arc<Vertex>>>> {
        let mut found = Vec::with_capacity(vertices.len());
        let mut spent = KeptCharges::default();
        let may_keep = self.may_keep();
        for vertex in vertices {
            self.budget.step(1)?;
            let Some(id) = vertex.id.as_str() else {
                found.push(None);
                continue;
            };
            let Some(key) = self.key(&vertex.partition) else {
                // A reference that a client sent does not say where it lies.
                let ids = [ElementId { partition: None, id: vertex.id.clone() }];
                found.push(self.vertices_by_id(&ids, &Lookup::default())?.into_iter().next());
                continue;
            };
            let fresh = if may_keep { self.container.freshness(&key) } else { None };
            let Some(fresh) = fresh else {
                found.push(self.vertex_at(&key, id)?);
                continue;
            };
            let place = Place::of(fresh, vertex, None);
            if let Some(kept) = self.cache.get(&place, fresh)
                && let What::Vertex { label, properties } = &kept.what
            {
                self.use_kept(&mut spent, &kept)?;
                let known = Vertex::reference(vertex.id.clone(), label.clone(), vertex.partition.clone());
                known.fill(properties.clone());
                found.push(Some(Arc::new(known)));
                continue;
            }
            let before_ru = self.spent.charge_ru();
            let read = self.vertex_at(&key, id)?;
            if let Some(read) = &read
                && let Some(properties) = read.properties()
            {
                let charge_ru = self.spent.charge_ru() - before_ru;
                let what = What::Vertex { label: read.label.clone(), properties: properties.clone() };
                self.cache.keep(place, Kept { fresh, what, charge_ru });
            }
            found.push(read);
        }
        self.charge_kept(spent);
        Ok(found)
    }

    pub(super) fn read_edges(&mut self, edges: &[Arc<Edge>]) -> Result<Vec<Option<Arc<Edge>>>> {
        let mut found = Vec::with_capacity(edges.len());
        for edge in edges {
            self.budget.step(1)?;
            let partition = self.key(&edge.out_v.partition).map(|_| edge.out_v.partition.clone());
            let ids = [ElementId { partition, id: edge.id.clone() }];
            found.push(self.edges_by_id(&ids, &Lookup::default())?.into_iter().next());
        }
        Ok(found)
    }
}

pub(super) fn of_labels(conditions: Conditions, lookup: &Lookup) -> Conditions {
    match lookup.labels.as_deref() {
        Some(labels) => conditions.labels(labels.iter().map(|label| &**label)),
        None => conditions,
    }
}

pub(super) fn compiled(conditions: Conditions) -> Result<Arc<Statement>> {
    conditions.compile().map(Arc::new).map_err(|error| failed(Failure::runtime(error.to_string())))
}

/// How many elements to ask for at once. The evaluator may need more than its limit, when it throws some away.
fn page_rows(limit: Option<u64>) -> usize {
    limit
        .and_then(|limit| usize::try_from(limit).ok())
        .map_or(PAGE_ROWS_MAX, |limit| limit.clamp(1, PAGE_ROWS_MAX))
}

/// What tells an item from others of its container.
pub(super) fn place(key: &PartitionKey, id: &str) -> (String, String) {
    let mut text = Vec::new();
    key.write_json(&mut text);
    (String::from_utf8_lossy(&text).into_owned(), id.to_owned())
}
