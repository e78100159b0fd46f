//! Splits and merges of partitions on demand, under `/_orrery/splits`.
//!
//! ```text
//! POST /_orrery/splits  {"operation": "split", "database": "shop", "container": "orders", "range": "0"}  202, the job
//! GET  /_orrery/splits                                                                                      every job
//! ```
//!
//! Without a range the largest partition is split, or the two neighbours that hold least are merged. A job goes on by
//! itself; `step` says how far it is. The service has no such path, so no client of it is in the way.

use http::StatusCode;
use orrery_engine::Ref;
use orrery_engine::split::Job;
use serde_json::{Value, json};

use crate::body;
use crate::errors::{ApiError, Plane, Result};
use crate::headers::Answer;
use crate::scope;
use crate::service::Context;

pub fn list(context: &Context<'_>) -> Result<Answer> {
    let jobs: Vec<Value> = context.account().split_jobs().iter().map(|job| job_json(job)).collect();
    Ok(context.answer(StatusCode::OK).body(json!({ "jobs": jobs }).to_string().into_bytes()))
}

pub fn start(context: &Context<'_>) -> Result<Answer> {
    let engine = |error| ApiError::from_engine(error, Plane::Resources);
    let request = body::object(context)?;
    let text = |name: &str| match &request[name] {
        Value::String(text) => Ok(Some(text.as_str())),
        Value::Null => Ok(None),
        _ => Err(ApiError::refused(format!("The member '{name}' must be a string."))),
    };
    let required =
        |name: &str| text(name)?.ok_or_else(|| ApiError::refused(format!("The member '{name}' is missing.")));
    let account = context.account();
    let database = account.database(Ref::Name(required("database")?)).map_err(engine)?;
    let container = database.container(Ref::Name(required("container")?)).map_err(engine)?;
    let range = text("range")?.map(scope::range_id).transpose()?;
    let job = match required("operation")? {
        "split" => account.split_partition(&container, range),
        "merge" => account.merge_partitions(&container, range),
        other => {
            return Err(ApiError::refused(format!(
                "The operation '{other}' is unknown. Allowed: split, merge."
            )));
        }
    };
    let job = job.map_err(engine)?;
    Ok(context.answer(StatusCode::ACCEPTED).body(job_json(&job).to_string().into_bytes()))
}

fn job_json(job: &Job) -> Value {
    let progress = job.progress();
    let ids = |ranges: &[u32]| ranges.iter().map(u32::to_string).collect::<Vec<_>>();
    json!({
        "job": job.number,
        "operation": job.kind.name(),
        "reason": job.reason.name(),
        "database": job.container.database().name,
        "container": job.container.name(),
        "step": progress.step.name(),
        "from": ids(&job.parents),
        "to": ids(&progress.children),
        "items": progress.items_total,
        "itemsCopied": progress.items_copied,
        "changesApplied": progress.changes_applied,
        "pausedMs": progress.paused_us as f64 / 1000.0,
        "tookMs": progress.took_ms,
        "error": progress.failure,
    })
}
