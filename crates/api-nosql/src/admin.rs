//! Routes of this server's own, under `/_orrery`: what partitions hold and spend, and fault rules.
//!
//! They are signed as everything else is, with the type `_orrery` and the whole path as the link. The service has no
//! such path, so no client of it is in the way.

use http::StatusCode;
use http::header::CONTENT_TYPE;
use orrery_engine::PartitionInsight;
use orrery_engine::faults::Set;
use orrery_model::PartitionKey;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::actions::OPERATIONS;
use crate::body;
use crate::errors::{ApiError, Plane, Result};
use crate::headers::Answer;
use crate::service::Context;

/// Hot and large keys that are told for each partition.
const KEYS_DEFAULT: usize = 5;
const KEYS_MAX: usize = 32;

/// `GET /_orrery/partitions?db=D&container=C&keys=N`
pub fn partitions(context: &Context<'_>) -> Result<Answer> {
    let query = Query::parse(context.uri.query().unwrap_or(""))?;
    let account = context.account();
    let found = account
        .insights(query.database.as_deref(), query.container.as_deref(), query.keys)
        .map_err(|error| ApiError::from_engine(error, Plane::Resources))?;
    let config = account.config();
    Ok(answer(
        context,
        &json!({
            "throttling": config.throttling.is_on(),
            "serverless": config.serverless,
            "partitions": found.iter().map(partition_json).collect::<Vec<_>>(),
        }),
    ))
}

/// `GET /_orrery/throttling`: `{"enabled": false}`
pub fn read_throttling(context: &Context<'_>) -> Result<Answer> {
    let enabled = context.account().config().throttling.is_on();
    Ok(answer(context, &json!({ "enabled": enabled })))
}

/// `PUT /_orrery/throttling`: from now on, whatever `--throttling` has said, until the server ends.
pub fn switch_throttling(context: &Context<'_>) -> Result<Answer> {
    let wanted = body::object(context)?;
    let Some(enabled) = wanted.get("enabled").and_then(Value::as_bool) else {
        return Err(ApiError::refused("The body must be {\"enabled\": true} or {\"enabled\": false}."));
    };
    context.account().config().throttling.set(enabled);
    tracing::info!(enabled, "throttling was switched");
    read_throttling(context)
}

/// `GET /_orrery/faults`
pub fn read_faults(context: &Context<'_>) -> Result<Answer> {
    Ok(answer(context, &context.account().faults().to_json()))
}

/// `PUT /_orrery/faults`: all rules at once; their counts begin anew.
pub fn replace_faults(context: &Context<'_>) -> Result<Answer> {
    let rules = Set::parse(&body::object(context)?, OPERATIONS).map_err(ApiError::refused)?;
    context.account().faults().replace(rules);
    tracing::warn!(rules = context.account().faults().len(), "fault rules are in force");
    read_faults(context)
}

/// `DELETE /_orrery/faults`
pub fn clear_faults(context: &Context<'_>) -> Result<Answer> {
    context.account().faults().clear();
    tracing::info!("fault rules were taken away");
    let mut answer = context.answer(StatusCode::NO_CONTENT);
    answer.headers.remove(CONTENT_TYPE);
    Ok(answer)
}

fn answer(context: &Context<'_>, value: &Value) -> Answer {
    context.answer(StatusCode::OK).body(value.to_string().into_bytes())
}

#[derive(Debug, PartialEq)]
struct Query {
    database: Option<String>,
    container: Option<String>,
    keys: usize,
}

impl Query {
    fn parse(text: &str) -> Result<Query> {
        let mut query = Query { database: None, container: None, keys: KEYS_DEFAULT };
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = percent_decode_str(value)
                .decode_utf8()
                .map_err(|_| ApiError::refused(format!("The value of '{name}' is not UTF-8.")))?;
            match name {
                "db" => query.database = Some(value.into_owned()),
                "container" => query.container = Some(value.into_owned()),
                "keys" => {
                    query.keys = value.parse().ok().filter(|keys| *keys <= KEYS_MAX).ok_or_else(|| {
                        ApiError::refused(format!("The value of 'keys' must be a number up to {KEYS_MAX}."))
                    })?;
                }
                _ => {
                    return Err(ApiError::refused(format!(
                        "The parameter '{name}' is unknown. Allowed: db, container, keys."
                    )));
                }
            }
        }
        if query.container.is_some() && query.database.is_none() {
            return Err(ApiError::refused(
                "A container is named together with its database: db=…&container=…",
            ));
        }
        Ok(query)
    }
}

fn partition_json(insight: &PartitionInsight) -> Value {
    let hot = insight.hot.iter().map(|hot| {
        json!({
            "partitionKey": key_json(&hot.key),
            "share": rounded(hot.share),
            "ruPerSecond": rounded(hot.share * insight.rate_ru),
        })
    });
    let largest = insight.largest.iter().map(|large| {
        json!({
            "partitionKey": key_json(&large.key),
            "sizeBytes": large.size_bytes,
            "items": large.items,
        })
    });
    json!({
        "database": insight.database,
        "container": insight.container,
        "range": insight.range_id.to_string(),
        "min": insight.min.to_string(),
        "max": insight.max.to_string(),
        "items": insight.items,
        "sizeBytes": insight.size_bytes,
        "sizeLimitBytes": insight.size_limit_bytes,
        "throughput": rounded(insight.share_ru),
        "shared": insight.shared,
        "consumedRu": rounded(insight.consumed_ru),
        "requests": insight.requests,
        "throttled": insight.throttled,
        "ruPerSecond": rounded(insight.rate_ru),
        "peakRu": rounded(insight.peak_ru),
        "normalized": rounded(insight.normalized()),
        "hot": hot.collect::<Vec<_>>(),
        "largest": largest.collect::<Vec<_>>(),
        "surveyed": rounded(insight.surveyed),
    })
}

fn key_json(key: &PartitionKey) -> Value {
    let mut text = Vec::new();
    key.write_json(&mut text);
    serde_json::from_slice(&text).unwrap_or(Value::Null)
}

/// Estimates with more digits than they mean are hard to read.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_asked_for_by_name() {
        let all = Query::parse("").unwrap();
        assert_eq!(all, Query { database: None, container: None, keys: KEYS_DEFAULT });
        let one = Query::parse("db=a%20b&container=c&keys=0").unwrap();
        assert_eq!(
            (one.database.as_deref(), one.container.as_deref(), one.keys),
            (Some("a b"), Some("c"), 0)
        );
        for wrong in ["keys=x", "keys=33", "container=c", "nope=1", "db=%FF"] {
            assert_eq!(Query::parse(wrong).unwrap_err().status.as_u16(), 400, "{wrong}");
        }
    }
}
