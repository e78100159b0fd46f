//! Controls for tests, under `/_orrery`: a clock that can be moved forward, and an account that can be emptied.
//!
//! ```text
//! GET  /_orrery/clock                          {"nowMs": 1795003200000, "movedMs": 0}
//! POST /_orrery/clock  {"advanceMs": 3600000}  the same, an hour later: items expire, tokens end, budgets fill
//! POST /_orrery/reset                          204; no databases are left
//! ```
//!
//! The clock is the engine's: `_ts`, time to live, tokens of permissions, throughput. Dates of signatures are still
//! compared with the machine's clock, so clients need not know. It never goes back. A server has these routes only if
//! it was started with `--test-controls on`.

use http::StatusCode;
use http::header::CONTENT_TYPE;
use orrery_engine::Ref;
use serde_json::json;

use crate::body;
use crate::errors::{ApiError, Plane, Result};
use crate::headers::Answer;
use crate::service::Context;

/// The clock is not moved further than this at once: a hundred years.
const ADVANCE_MS_MAX: u64 = 100 * 366 * 24 * 3600 * 1000;

pub fn read_clock(context: &Context<'_>) -> Result<Answer> {
    check_allowed(context)?;
    let env = context.account().env();
    let clock = json!({"nowMs": env.now_ms(), "movedMs": env.moved_ms()});
    Ok(context.answer(StatusCode::OK).body(clock.to_string().into_bytes()))
}

pub fn move_clock(context: &Context<'_>) -> Result<Answer> {
    check_allowed(context)?;
    let wanted = body::object(context)?;
    let by_ms =
        wanted.get("advanceMs").and_then(|value| value.as_u64()).filter(|by_ms| *by_ms <= ADVANCE_MS_MAX);
    let by_ms = by_ms.ok_or_else(|| {
        ApiError::refused(format!("The body must be {{\"advanceMs\": N}} with N from 0 to {ADVANCE_MS_MAX}."))
    })?;
    context.account().env().move_clock(by_ms);
    tracing::info!(by_ms, "the clock was moved");
    read_clock(context)
}

pub async fn reset(context: &Context<'_>) -> Result<Answer> {
    check_allowed(context)?;
    for database in context.account().databases() {
        let deleted = context.account().delete_database(Ref::Number(database.number), None).await;
        deleted.map_err(|error| ApiError::from_engine(error, Plane::Resources))?;
    }
    tracing::info!("all databases were deleted");
    let mut answer = context.answer(StatusCode::NO_CONTENT);
    answer.headers.remove(CONTENT_TYPE);
    Ok(answer)
}

fn check_allowed(context: &Context<'_>) -> Result<()> {
    match context.account().env().is_movable() {
        true => Ok(()),
        false => Err(ApiError::refused("This is for tests: start the server with --test-controls on.")),
    }
}
