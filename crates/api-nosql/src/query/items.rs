//! Queries over items: where they run, and their pages.
//!
//! A query runs in one logical partition, one range or one span when its headers say so, and otherwise where its filter
//! leads. A filter that fixes the partition key leads to one partition. Everything else is a query over all partitions,
//! which the client must have allowed.
//!
//! Over several partitions the gateway of the service only strings results together, page after page, and no page
//! reaches from one partition into the next; what needs merging it refuses, with the plan by which the client can
//! merge itself (see `plan`). A server that is told to merge answers such queries as well, and every server where the
//! request says `x-orrery-merge: true` (a browser has no query engine); so do requests that name several partitions
//! by their headers, which no plan could help.

use std::cell::LazyCell;
use std::ops::Deref;

use http::{HeaderValue, StatusCode};
use orrery_engine::query::distributed::cores;
use orrery_engine::{
    DistributedFailure, DistributedQuery, QueryFailure, QueryOptions, ResultCachePlace, Resuming, Scope,
    Share, StatementSource,
};
use orrery_model::PartitionKey;
use orrery_query::merge::{MergePlan, MergePosition, Merged, PageSize};
use orrery_query::{JsonText, QueryEnv, Rows, plan as planning};

use super::position::{self, Mark};
use super::query_env::WireSystem;
use super::query_metrics;
use super::request::{self, QueryRequest};
use super::statements::Statement;
use super::{plan, query_env};
use crate::config::CrossPartition;
use crate::errors::{ApiError, Plane, Result};
use crate::headers::{self, Answer};
use crate::paging::{PAGE_BYTES_MAX, page_items};
use crate::resource_feed::{close_envelope, open_envelope};
use crate::service::{Context, Target};
use crate::{consistency, continuation, items, paging, request_class, scope};

/// Partitions that are merged on the thread of the request, if that is short.
const SHARES_IN_PLACE_MAX: usize = 8;
const EXECUTION_INFO: HeaderValue =
    HeaderValue::from_static("{\"reverseRidEnabled\":false,\"reverseIndexScan\":false}");
pub(crate) const CROSS_PARTITION_DISABLED: &str = "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception.";

pub fn execute(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let rows = page_items(context)?;
    let session = consistency::session(context)?;
    let env = LazyCell::new(|| query_env::of_container(context, &target));
    let statement = context.service.statements.of_request(context, &target, || env.clone())?;
    let scope = scope::of_request(context, &target)?;
    scope::routed_query(context, &target, &scope, |scope| {
        page(context, &target, &statement, &env, scope, &session, rows)
    })
}

fn page(
    context: &Context<'_>,
    target: &Target,
    statement: &Statement,
    env: &dyn Deref<Target = QueryEnv>,
    scope: &Scope,
    session: &[(u32, u64)],
    rows: usize,
) -> Result<Answer> {
    let Statement { query, request, prepared, .. } = statement;
    let QueryShares { shares, plan } = query_shares(context, target, statement, env, scope)?;
    let inside = !matches!(scope, Scope::All);
    // Most queries begin at the beginning and end on their first page.
    let mark = || match inside {
        true => Mark::of_shape(query),
        false => Mark::of_text(&request.text, &request.parameters),
    };
    let merged = match plan {
        // What names no part of the container is served as the gateway does it: one partition after the other.
        Some(plan) if !inside && !context.flag(headers::MERGE) => Merged::new(plan).one_by_one(),
        Some(plan) => Merged::new(plan),
        None => Merged::single(prepared),
    };
    let mut begins_with = Vec::with_capacity(64);
    open_envelope(&mut begins_with, "Documents", target.rid.as_str());
    let system = WireSystem(target.rid);
    let options = QueryOptions {
        session,
        class: request_class::class(context)?,
        degree: degree(context),
        read_ahead: context.flag(headers::PARALLELIZE),
        page_time: context.service.config.query_page_time,
        page_bytes: PAGE_BYTES_MAX,
        budget: &context.budget,
        // Each page of a sorted merge asks the partitions for what comes after its last row, so nobody would come for
        // what they know beyond it.
        result_cache: (!merged.is_sorted()).then_some(&context.service.result_cache),
        result_place: plan.map(|_| result_place(target, request, scope)),
        system: &system,
        statement: StatementSource::of_text(&request.text, &request.parameters),
        format: &JsonText,
        begins_with: &begins_with,
        timed: context.flag(headers::POPULATE_METRICS),
        explained: query_metrics::is_wanted(context),
        lengthy: None,
        gives_up: false,
    };
    let mut query_run = DistributedQuery::new(&target.container, shares, options);
    let start = match continuation::of_request(context, &target.rid, inside)? {
        None => None,
        Some(bytes) => {
            let start = position::decode(&bytes, mark()).ok_or_else(continuation::invalid)?;
            let resuming = Resuming { skips: query.offset_limit.is_some(), sorts: merged.is_sorted() };
            Some(query_run.go_on(start, resuming).map_err(|failure| failed(target, failure))?)
        }
    };
    let size = PageSize { rows, bytes: PAGE_BYTES_MAX };
    let read = |run: &mut DistributedQuery<'_>, start: Option<MergePosition>| {
        let (page, next) = run.page(&merged, start, size).map_err(|failure| failed(target, failure))?;
        let next = next.map(|next| header_of(context, target, &merged, run, mark(), &next));
        answer(context, target, run, scope, page, next)
    };
    // It shows how long it takes, unless many partitions are asked.
    let few = if plan.is_some() { SHARES_IN_PLACE_MAX } else { 1 };
    if query_run.share_count() <= few && prepared.is_steady() {
        query_run.options.lengthy = Some(context.service.lengthy());
        query_run.options.gives_up = true;
        let answered = read(&mut query_run, start.clone());
        if !query_run.gave_up() {
            return answered;
        }
        query_run.options.lengthy = None;
        query_run.options.gives_up = false;
    }
    // All of it, to the last byte of the answer and to the freeing of its rows.
    context.lengthy(|| read(&mut query_run, start))
}

/// A page that failed, in the words of this protocol.
fn failed(target: &Target, failure: DistributedFailure) -> ApiError {
    let refused =
        |error| ApiError::from_engine(error, Plane::Items).at(items::place(target, &PartitionKey::default()));
    match failure {
        DistributedFailure::Continuation => continuation::invalid(),
        // A merge that fails does so while it runs.
        DistributedFailure::Merge(error) => request::failed(&error, true),
        DistributedFailure::Refused(error) => {
            let at = items::at(error.at.unwrap_or_default());
            ApiError::from_engine(error, Plane::Items).at(at)
        }
        DistributedFailure::Page(QueryFailure::Exceeded(exceeded)) => ApiError::exceeded(exceeded),
        DistributedFailure::Page(QueryFailure::Engine(error)) => refused(error),
        DistributedFailure::Page(QueryFailure::Lengthy) => {
            refused(orrery_engine::Error::internal("A query ran out of steps that nobody counted."))
        }
        DistributedFailure::Page(QueryFailure::Query { error, charge_ru, at }) => {
            let at = items::at(at);
            let mut failed = request::failed(&error, true).charge(charge_ru).at(at);
            failed.headers = items::usage_headers(target, at).into();
            failed
        }
    }
}

/// Where the merged rows of a query are kept.
fn result_place(target: &Target, request: &QueryRequest, scope: &Scope) -> ResultCachePlace {
    let mut owner = target.rid.as_str().as_bytes().to_vec();
    // Ranges come and go, and keys print themselves without ambiguity.
    owner.extend_from_slice(format!("{scope:?}").as_bytes());
    ResultCachePlace { owner, query: position::fingerprint(&request.text, &request.parameters) }
}

/// Where a query runs, and how its shares are merged if there are several.
struct QueryShares<'s> {
    shares: Vec<Share>,
    plan: Option<&'s MergePlan>,
}

fn query_shares<'s>(
    context: &Context<'_>,
    target: &Target,
    statement: &'s Statement,
    env: &dyn Deref<Target = QueryEnv>,
    scope: &Scope,
) -> Result<QueryShares<'s>> {
    let Statement { query, request, prepared, ranges, .. } = statement;
    let definition = target.container.definition();
    let merging = |shares: Vec<Share>| -> Result<QueryShares<'s>> {
        // The form of a query does not depend on composite indexes; only whether it may be run does.
        if prepared.order_count() > 1
            && let Some(refusal) = prepared.composite_refusal(env)
        {
            return Err(request::failed(&refusal, false));
        }
        // Where several partitions stand in for one, the client merges. Only the order of its rows is not its business.
        let merged = shares.len() == 1 || scope::is_stand_in(context, scope) && !prepared.needs().order_by;
        if merged && !planning::counts_distinct_rows(query) {
            return Ok(QueryShares { shares, plan: None });
        }
        let plan = statement.merge_plan(env).map_err(|error| request::failed(error, false))?;
        Ok(QueryShares { shares, plan: Some(plan) })
    };
    if !matches!(scope, Scope::All) {
        let shares = target.container.shares_of(scope);
        return merging(shares.map_err(|error| ApiError::from_engine(error, Plane::Items))?);
    }
    let shares = target.container.shares_of_ranges(ranges);
    let pinned = matches!(ranges.as_slice(), [range] if range.is_point());
    let merges = planning::counts_distinct_rows(query) || prepared.lists_aggregates();
    let plain = !merges || !prepared.needs().from;
    if definition.partition_key.system_key || (pinned && plain) {
        return merging(shares);
    }
    let merges_here = context.flag(headers::MERGE);
    if !pinned && !merges_here && !context.flag(headers::ENABLE_CROSS_PARTITION) {
        return Err(ApiError::refused(CROSS_PARTITION_DISABLED));
    }
    // Rows that are only put one after the other need no plan to be let through.
    if planning::is_served_as_it_is(query, prepared) {
        return merging(shares);
    }
    match context.service.config.cross_partition {
        CrossPartition::Sdk if !merges_here => plan::check_gateway(context, target, query, request, env)?,
        // What cannot be merged is refused however many partitions there are today.
        CrossPartition::Sdk | CrossPartition::Server => {
            statement.merge_plan(env).map_err(|error| request::failed(error, false))?;
        }
    }
    merging(shares)
}

/// How many partitions to ask at once: as the client says, and not more than there are cores to do it.
fn degree(context: &Context<'_>) -> usize {
    let cores = cores();
    match context.text(headers::DEGREE_OF_PARALLELISM).and_then(|text| text.trim().parse::<i64>().ok()) {
        Some(wanted) if wanted >= 0 => usize::try_from(wanted).unwrap_or(cores).clamp(1, cores),
        _ => cores,
    }
}

/// The continuation, in the short form if the client cannot carry the long one.
fn header_of(
    context: &Context<'_>,
    target: &Target,
    merged: &Merged<'_>,
    run: &DistributedQuery<'_>,
    mark: Mark,
    next: &MergePosition,
) -> HeaderValue {
    let write = |position: &MergePosition| {
        let position = position::encode(mark, &run.distributed_position(position));
        continuation::header(&target.rid, &position)
    };
    let long = write(next);
    match merged.shortened(next).filter(|_| run.begin_at_once()) {
        Some(short) if long.len() > continuation::bytes_max(context) => write(&short),
        _ => long,
    }
}

fn answer(
    context: &Context<'_>,
    target: &Target,
    run: &DistributedQuery<'_>,
    scope: &Scope,
    page: Rows,
    next: Option<HeaderValue>,
) -> Result<Answer> {
    let (count, size_bytes) = (page.len(), page.size_bytes());
    // The buffer that the rows were written to is the body. From here on the server holds it until it is sent.
    let _held = paging::hold(context, size_bytes)?;
    let mut body = page.into_bytes();
    close_envelope(&mut body, count);
    let at = items::at(run.at());
    let mut answer = items::answer(context, target, StatusCode::OK, at, run.charge_ru())
        .count(count)
        .set(headers::QUERY_EXECUTION_INFO, EXECUTION_INFO);
    if let Some(next) = next {
        answer = answer.set(headers::CONTINUATION, next);
    }
    let answer = query_metrics::told(run.insight(), context, target, scope, (count, size_bytes), answer);
    Ok(answer.body(body))
}
