//! Query plans, and the queries that the gateway leaves to the client.
//!
//! A client that merges the results of several ranges itself asks for a plan: how the query is rewritten for one range,
//! and what to do with the rows. A query over all partitions that comes without a plan is served as long as its rows
//! can be strung together; what needs merging is refused with 400/1004 and the plan in `additionalErrorInfo`, by which
//! clients know what to do next, and aggregates in a select list are refused for good.

use http::StatusCode;
use orrery_query::QueryEnv;
use orrery_query::plan::{Features, Gateway, NEEDS_PLAN_MESSAGE, PlanContext, QueryPlan, plan};
use orrery_sql::Query;

use super::query_env;
use super::request::{self, QueryRequest};
use crate::errors::{ApiError, Result, Voice, substatus};
use crate::headers::{Answer, SUPPORTED_FEATURES};
use crate::service::{Context, Target};

pub fn execute(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let query = QueryRequest::parse(context)?;
    let parsed = orrery_sql::parse_query(&query.text).map_err(|error| request::failed(&error, false))?;
    let surroundings = query_env::of_container(context, &target);
    let plan = make(&target, &parsed, &query, &surroundings, features(context))?;
    if let Some(refusal) = plan.refusal(features(context)) {
        return Err(request::refused(refusal));
    }
    let answer = Answer::gateway(StatusCode::OK, &context.service.headers).uncached();
    Ok(answer.body(plan.to_json().into_bytes()))
}

/// Refuses a query over several partitions that the gateway does not answer by itself.
pub fn check_gateway(
    context: &Context<'_>,
    target: &Target,
    parsed: &Query,
    query: &QueryRequest,
    env: &QueryEnv,
) -> Result<()> {
    let plan = make(target, parsed, query, env, features(context))?;
    match plan.gateway() {
        Gateway::Serve => Ok(()),
        Gateway::Refuse(message) => Err(request::refused(message)),
        Gateway::NeedsPlan => {
            let error = ApiError::new(StatusCode::BAD_REQUEST, Voice::Gateway, NEEDS_PLAN_MESSAGE);
            let mut error = error.substatus(substatus::CROSS_PARTITION_QUERY);
            error.additional_info = Some(plan.to_json());
            Err(error)
        }
    }
}

/// The plan for whoever can do these things with it.
pub fn make(
    target: &Target,
    parsed: &Query,
    query: &QueryRequest,
    env: &QueryEnv,
    features: Features,
) -> Result<QueryPlan> {
    let definition = target.container.definition();
    let surroundings = PlanContext { partition_key: &definition.partition_key, features, env };
    plan(parsed, &query.parameters, &surroundings).map_err(|error| request::failed(&error, false))
}

fn features(context: &Context<'_>) -> Features {
    Features::parse(context.text(SUPPORTED_FEATURES).unwrap_or(""))
}
