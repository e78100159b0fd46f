//! Queries over items: where they run, in pages.
//!
//! A query runs in one logical partition, one range or one span when its headers say so, or when its filter fixes the
//! partition key. Otherwise it runs over the whole container, if the client allows it. There is no index yet: every
//! item of the scope is read and the query's own filter decides.
//!
//! Streaming queries stop when their page is full and go on exactly there: the chunk of items in which the page filled
//! is read again up to that item, and the position behind it is the continuation. Queries that must see everything
//! first are run again for each page and skip what was delivered, within the limits of the query crate.
//!
//! Over several partitions the gateway only strings results together; it refuses what needs merging, with the plan by
//! which the client can merge itself (see `plan`).

use http::{HeaderValue, StatusCode};
use orrery_engine::{FeedContinuation, PageRequest, Position, Scope};
use orrery_model::{KeyComponent, PartitionKey, Value};
use orrery_query::{Execution, Flow, KeyFilter, Prepared, QueryEnv};

use super::position::QueryPosition;
use super::request::{self, QueryRequest};
use super::{plan, surroundings};
use crate::errors::{ApiError, Plane, Result};
use crate::headers::{self, Answer};
use crate::paging::{PAGE_BYTES_MAX, page_items};
use crate::resource_feed::{close_envelope, open_envelope};
use crate::service::{Context, Target};
use crate::{consistency, continuation, items, scope};

/// Items that are read at a time.
const CHUNK_ITEMS: usize = 1_000;
/// A streaming page ends after this many items even if nothing matched; the client comes back for the rest.
const SCANNED_ITEMS_MAX: usize = 100_000;

const EXECUTION_INFO: HeaderValue =
    HeaderValue::from_static("{\"reverseRidEnabled\":false,\"reverseIndexScan\":false}");
const CROSS_PARTITION_DISABLED: &str = "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception.";

pub fn execute(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let page_size = page_items(context)?;
    let session = consistency::session(context)?;
    let request = QueryRequest::parse(context)?;
    let parsed = orrery_sql::parse_query(&request.text).map_err(|error| request::failed(&error, false))?;
    let env = surroundings::of_container(context, &target);
    let prepare = |env: &QueryEnv| {
        Prepared::new(&parsed, &request.parameters, env).map_err(|error| request::failed(&error, false))
    };
    // Which index a sort needs is a question for whoever runs it: the gateway's refusals come first.
    let mut prepared = prepare(&QueryEnv { composite_indexes: None, ..env.clone() })?;
    let scope = place(context, &target, &prepared, &parsed, &request, &env)?;
    if prepared.needs().order_by {
        prepared = prepare(&env)?;
    }
    let inside = !matches!(scope::of_request(context, &target)?, Scope::All);
    let start = match continuation::of_request(context, &target.rid, inside)? {
        None => None,
        Some(bytes) => Some(QueryPosition::decode(&bytes).ok_or_else(continuation::invalid)?),
    };
    let mut run = Run {
        target: &target,
        scope,
        session,
        page_size,
        page: Page::new(&target),
        at: None,
        scanned: Scanned::default(),
    };
    let next = run.page(&prepared, start)?;
    run.answer(context, next)
}

/// Where a query runs.
fn place(
    context: &Context<'_>,
    target: &Target,
    prepared: &Prepared,
    parsed: &orrery_sql::Query,
    request: &QueryRequest,
    env: &QueryEnv,
) -> Result<Scope> {
    let scope = scope::of_request(context, target)?;
    let definition = target.container.definition();
    if !matches!(scope, Scope::All) || definition.partition_key.system_key {
        return Ok(scope);
    }
    let paths = &definition.partition_key.paths;
    match prepared.partition_keys(paths) {
        // A query that reads no item runs anywhere.
        KeyFilter::Nothing => return Ok(Scope::All),
        KeyFilter::Points(points) => {
            if let [point] = points.as_slice()
                && point.len() == paths.len()
                && let Some(key) = key_of(point)
            {
                return Ok(Scope::Key(key));
            }
        }
        KeyFilter::Any => {}
    }
    if !context.flag(headers::ENABLE_CROSS_PARTITION) {
        return Err(ApiError::refused(CROSS_PARTITION_DISABLED));
    }
    plan::check_gateway(context, target, parsed, request, env)?;
    Ok(Scope::All)
}

fn key_of(point: &[Value]) -> Option<PartitionKey> {
    let components = point.iter().map(|value| match value {
        Value::Undefined => Some(KeyComponent::Undefined),
        Value::Null => Some(KeyComponent::Null),
        Value::Bool(value) => Some(KeyComponent::Bool(*value)),
        Value::Number(number) => Some(KeyComponent::Number(number.as_f64())),
        Value::String(text) => Some(KeyComponent::String(text.clone())),
        // No item has such a key, but the filter says so itself.
        Value::Array(_) | Value::Object(_) => None,
    });
    components.collect::<Option<_>>().map(PartitionKey)
}

/// One page in the making.
struct Run<'a> {
    target: &'a Target,
    scope: Scope,
    session: Vec<(u32, u64)>,
    page_size: usize,
    page: Page,
    at: Option<Position>,
    scanned: Scanned,
}

/// What was read to make the page.
#[derive(Default)]
struct Scanned {
    items: usize,
    bytes: usize,
}

/// The rows of the page as they will be sent.
struct Page {
    out: Vec<u8>,
    count: usize,
    head: usize,
}

impl Page {
    fn new(target: &Target) -> Page {
        let mut out = Vec::with_capacity(1024);
        open_envelope(&mut out, "Documents", target.rid.as_str());
        let head = out.len();
        Page { out, count: 0, head }
    }

    fn push(&mut self, row: &[u8]) {
        if self.count > 0 {
            self.out.push(b',');
        }
        self.out.extend_from_slice(row);
        self.count += 1;
    }

    fn is_full(&self, size: usize) -> bool {
        self.count >= size || self.out.len() - self.head >= PAGE_BYTES_MAX
    }
}

impl Run<'_> {
    fn page(&mut self, prepared: &Prepared, start: Option<QueryPosition>) -> Result<Option<QueryPosition>> {
        let streams = prepared.needs().is_streaming() && !prepared.needs().distinct;
        match (streams, start) {
            (true, None) => self.stream(prepared, None, 0, 0),
            (true, Some(QueryPosition::Stream { feed, passed, swallow })) => {
                self.stream(prepared, feed, passed, swallow)
            }
            (false, None) => self.whole(prepared, 0),
            (false, Some(QueryPosition::Whole { delivered })) => self.whole(prepared, delivered),
            // The continuation belongs to a query of another kind.
            _ => Err(continuation::invalid()),
        }
    }

    /// Emits rows while items come, and stops when the page is full.
    fn stream(
        &mut self,
        prepared: &Prepared,
        mut feed: Option<FeedContinuation>,
        passed: u64,
        swallow: u64,
    ) -> Result<Option<QueryPosition>> {
        let mut execution = Execution::resume(prepared, passed, swallow);
        // Rows that were swallowed belong to the first item of the page, and to no other.
        let mut swallowed = swallow;
        if !prepared.needs().from {
            self.read(&feed, 1)?;
            self.finish(&mut execution)?;
            return Ok(None);
        }
        loop {
            let chunk = self.read(&feed, CHUNK_ITEMS)?;
            for (n, item) in chunk.items.iter().enumerate() {
                let before = execution.passed();
                let delivered = self.page.count;
                let size = self.page_size;
                let page = &mut self.page;
                let flow = surroundings::with_row(&self.target.rid, item, |row| {
                    execution.push(row, &mut |json| {
                        page.push(json);
                        if page.is_full(size) { Flow::Stop } else { Flow::More }
                    })
                });
                let flow = flow.map_err(|error| self.failed(&error))?;
                if flow == Flow::More {
                    swallowed = 0;
                    continue;
                }
                if !self.page.is_full(self.page_size) {
                    // The query has all the rows it wanted.
                    return Ok(None);
                }
                if prepared.needs().joins {
                    // The item may have more rows: begin with it again and swallow those that were delivered.
                    let rows = (self.page.count - delivered) as u64 + swallowed;
                    let feed = self.position_after(&feed, &chunk.items[..n])?;
                    return Ok(Some(QueryPosition::Stream { feed, passed: before, swallow: rows }));
                }
                if n + 1 == chunk.items.len() && chunk.continuation.is_none() {
                    return Ok(None);
                }
                let feed = self.position_after(&feed, &chunk.items[..=n])?;
                return Ok(Some(QueryPosition::Stream { feed, passed: execution.passed(), swallow: 0 }));
            }
            match chunk.continuation {
                None => {
                    self.finish(&mut execution)?;
                    return Ok(None);
                }
                next => feed = next,
            }
            if self.scanned.items >= SCANNED_ITEMS_MAX {
                return Ok(Some(QueryPosition::Stream { feed, passed: execution.passed(), swallow: 0 }));
            }
        }
    }

    /// The position behind the last of `items`, which were read from `feed` on. Reading them again asks the feed for it;
    /// items that have come or gone in between move it by as much, never past an item that was not read.
    fn position_after(
        &mut self,
        feed: &Option<FeedContinuation>,
        items: &[orrery_engine::Item],
    ) -> Result<Option<FeedContinuation>> {
        let Some(last) = items.last() else { return Ok(feed.clone()) };
        let mut wanted = items.len();
        while wanted > 0 {
            let again = self.read_quietly(feed, wanted)?;
            match again.items.iter().position(|item| item.number == last.number) {
                Some(at) if at + 1 == again.items.len() => {
                    return Ok(again.continuation.or_else(|| feed.clone()));
                }
                Some(at) => wanted = at + 1,
                // Gone, or behind others that are new: end before it, so that nothing is passed over.
                None if again.items.len() < wanted => return Ok(again.continuation.or_else(|| feed.clone())),
                None => wanted -= 1,
            }
        }
        Ok(feed.clone())
    }

    /// Runs the whole query and keeps the rows of this page.
    fn whole(&mut self, prepared: &Prepared, delivered: u64) -> Result<Option<QueryPosition>> {
        let mut execution = Execution::resume(prepared, 0, delivered);
        let mut feed = None;
        let mut overflow = false;
        loop {
            let chunk = self.read(&feed, CHUNK_ITEMS)?;
            let mut stopped = false;
            for item in &chunk.items {
                let (page, size) = (&mut self.page, self.page_size);
                let flow = surroundings::with_row(&self.target.rid, item, |row| {
                    execution.push(row, &mut |json| take(page, size, &mut overflow, json))
                });
                if flow.map_err(|error| self.failed(&error))? == Flow::Stop {
                    stopped = true;
                    break;
                }
            }
            match chunk.continuation {
                Some(next) if !stopped => feed = Some(next),
                _ => break,
            }
        }
        let (page, size) = (&mut self.page, self.page_size);
        let finished = execution.finish(&mut |json| take(page, size, &mut overflow, json));
        finished.map_err(|error| self.failed(&error))?;
        let delivered = delivered + self.page.count as u64;
        Ok(overflow.then_some(QueryPosition::Whole { delivered }))
    }

    fn finish(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let page = &mut self.page;
        let finished = execution.finish(&mut |json| {
            page.push(json);
            Flow::More
        });
        finished.map(|_| ()).map_err(|error| self.failed(&error))
    }

    fn read(&mut self, feed: &Option<FeedContinuation>, items: usize) -> Result<orrery_engine::FeedPage> {
        let page = self.read_quietly(feed, items)?;
        self.at.get_or_insert(page.at);
        self.scanned.items += page.items.len();
        self.scanned.bytes += page.items.iter().map(|item| item.document.len()).sum::<usize>();
        Ok(page)
    }

    fn read_quietly(&self, feed: &Option<FeedContinuation>, items: usize) -> Result<orrery_engine::FeedPage> {
        let request = PageRequest {
            max_items: items,
            max_bytes: PAGE_BYTES_MAX,
            continuation: feed.clone(),
            session: self.session.clone(),
        };
        self.target.container.read_feed(&self.scope, &request).map_err(|error| {
            ApiError::from_engine(error, Plane::Items).at(items::place(self.target, &PartitionKey::default()))
        })
    }

    fn failed(&self, error: &orrery_sql::SqlError) -> ApiError {
        let at = items::at(self.at.unwrap_or_default());
        let mut failed = request::failed(error, true).charge(self.charge_ru()).at(at);
        failed.headers = items::usage_headers(self.target, at).into();
        failed
    }

    /// What the page cost: by the rows it holds, as the service's own pages do.
    fn charge_ru(&self) -> f64 {
        page_charge(self.page.count)
    }

    fn answer(mut self, context: &Context<'_>, next: Option<QueryPosition>) -> Result<Answer> {
        let charge_ru = self.charge_ru();
        close_envelope(&mut self.page.out, self.page.count);
        let at = items::at(self.at.unwrap_or_default());
        let mut answer = items::answer(context, self.target, StatusCode::OK, at, charge_ru)
            .count(self.page.count)
            .set(headers::QUERY_EXECUTION_INFO, EXECUTION_INFO);
        if let Some(next) = next {
            answer =
                answer.set(headers::CONTINUATION, continuation::header(&self.target.rid, &next.encode()));
        }
        if context.flag(headers::POPULATE_METRICS) {
            answer = answer.set(headers::QUERY_METRICS, self.metrics());
        }
        Ok(answer.body(self.page.out))
    }

    /// The figures that are known without an index; the times are not taken apart.
    fn metrics(&self) -> HeaderValue {
        let rows = self.page.count;
        let ratio = if self.scanned.items == 0 { 1.0 } else { rows as f64 / self.scanned.items as f64 };
        headers::text_value(&format!(
            "totalExecutionTimeInMs=0.00;queryCompileTimeInMs=0.00;queryLogicalPlanBuildTimeInMs=0.00;queryPhysicalPlanBuildTimeInMs=0.00;queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs=0.00;indexLookupTimeInMs=0.00;instructionCount=0;documentLoadTimeInMs=0.00;systemFunctionExecuteTimeInMs=0.00;userFunctionExecuteTimeInMs=0.00;retrievedDocumentCount={};retrievedDocumentSize={};outputDocumentCount={rows};outputDocumentSize={};writeOutputTimeInMs=0.00;indexUtilizationRatio={:.2}",
            self.scanned.items,
            self.scanned.bytes,
            self.page.out.len() - self.page.head,
            ratio.min(1.0),
        ))
    }
}

fn take(page: &mut Page, size: usize, overflow: &mut bool, json: &[u8]) -> Flow {
    if page.is_full(size) {
        *overflow = true;
        return Flow::Stop;
    }
    page.push(json);
    Flow::More
}

/// Recorded charges of pages by their rows, with straight lines between them.
const PAGE_CHARGES: [(f64, f64); 4] = [(0.0, 2.2), (1.0, 2.26), (1_000.0, 17.16), (2_500.0, 34.72)];

fn page_charge(rows: usize) -> f64 {
    let rows = rows as f64;
    let above = PAGE_CHARGES.iter().position(|(at, _)| *at >= rows).unwrap_or(PAGE_CHARGES.len() - 1).max(1);
    let ((low, from), (high, to)) = (PAGE_CHARGES[above - 1], PAGE_CHARGES[above]);
    from + (to - from) * (rows - low) / (high - low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_costs_by_its_rows() {
        assert!((page_charge(0) - 2.2).abs() < 1e-9);
        assert!((page_charge(1_000) - 17.16).abs() < 1e-9);
        assert!(page_charge(5_000) > page_charge(2_500));
    }

    #[test]
    fn only_scalars_are_keys() {
        assert!(key_of(&[Value::Null, Value::Bool(true)]).is_some());
        assert!(key_of(&[Value::Array(vec![])]).is_none());
    }
}
