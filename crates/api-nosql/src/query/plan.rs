//! Query plans, and the queries that the gateway leaves to the client.
//!
//! A client that merges results of several ranges itself asks for a plan first: how the query is rewritten for one
//! range, and what to do with the rows. This server does not make plans yet and says so; in turn it merges every query
//! itself, so that clients that try the gateway first never need one. What the service refuses whatever the client can
//! do, a list of aggregates without VALUE over several partitions, is refused here as well.

use orrery_query::Prepared;

use super::request::{self, QueryRequest};
use crate::errors::{ApiError, Result};
use crate::headers::Answer;
use crate::service::{Context, Target};

pub fn execute(context: &Context<'_>) -> Result<Answer> {
    context.container_inside()?;
    let query = QueryRequest::parse(context)?;
    orrery_sql::parse_query(&query.text).map_err(|error| request::failed(&error, false))?;
    Err(ApiError::refused(
        "Query plans are not supported by this server. Send the query itself: it is answered over all partitions.",
    ))
}

/// Queries over several partitions that the gateway does not answer.
pub fn refuse_merging(
    prepared: &Prepared,
    _parsed: &orrery_sql::Query,
    _request: &QueryRequest,
    _target: &Target,
) -> Result<()> {
    if prepared.lists_aggregates() {
        return Err(request::refused(
            "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates.",
        ));
    }
    Ok(())
}
