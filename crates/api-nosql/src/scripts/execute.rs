//! Running a procedure: `POST …/sprocs/{id}` with the partition key in a header and an array of parameters as the body.

use http::StatusCode;
use orrery_engine::{
    Error, Position, RequestClass, ScriptAnswer, ScriptCall, ScriptKind, ScriptReply, ScriptStop, ScriptWork,
};
use orrery_model::{Kind as ValueKind, ParseOptions, PartitionKey, Raw, parse_json};
use orrery_query::QueryEnv;
use orrery_script::{Claim, Finished};

use super::identity::Renames;
use super::job::{Ended, Input, Job};
use super::transaction::SCRIPT_RU;
use super::{failures, resources};
use crate::errors::{ApiError, INPUT_INVALID, KEY_MISMATCH, PAYLOAD_INVALID, Result, substatus};
use crate::headers::{Answer, SCRIPT_LOGGING};
use crate::query::query_env;
use crate::rid::ascii;
use crate::service::{Context, Target};
use crate::{consistency, items, request_class, scope};

/// A procedure that answers nothing answers this.
const NO_BODY: &str = "\"\"";

pub async fn execute(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let script = resources::find(context, &target, ScriptKind::Procedure)?;
    let key = scope::key(context)?;
    let definition = target.container.definition();
    if key.0.len() < definition.partition_key.paths.len() && !definition.partition_key.system_key {
        let error = ApiError::bad_request(KEY_MISMATCH).substatus(substatus::PARTITION_KEY_MISMATCH);
        return Err(error.at(items::place(&target, &key)));
    }
    items::check_routable(&target, &key)?;
    let arguments = arguments(context)?;
    let session = consistency::session(context)?;
    let class = request_class::class(context)?;
    let work = ScriptWork::Procedure { id: script.definition.id.clone(), arguments };
    let ScriptReply { result, log, charge_ru, at, held } =
        run_call(context, &target, &key, work, session, class).await?;
    let body = match result {
        Ok(ScriptAnswer::Procedure { body }) => body.unwrap_or_else(|| NO_BODY.to_owned()),
        Ok(ScriptAnswer::Triggers { .. }) => return Err(answered_otherwise(&target, &key)),
        Err(stop) => return Err(stopped(&target, &key, stop, charge_ru, at, &log)),
    };
    drop(held);
    let alt_path = format!("{}/sprocs/{}", target.alt_path(), script.definition.id);
    let rid = target.rid.script(ScriptKind::Procedure, script.number);
    let mut answer = context
        .answer(StatusCode::OK)
        .at(items::at(at))
        .charge(charge_ru)
        .owner(alt_path, ascii(&rid))
        .body(body.into_bytes());
    if let Some((name, value)) = failures::log_header(&log) {
        answer = answer.set(name, value);
    }
    Ok(answer)
}

/// Has a script run where its partition is, with the clock, the dice and the budget of the request.
pub async fn run_call(
    context: &Context<'_>,
    target: &Target,
    key: &PartitionKey,
    work: ScriptWork,
    session: Vec<(u32, u64)>,
    class: RequestClass,
) -> Result<ScriptReply> {
    let logging = context.flag(SCRIPT_LOGGING);
    let QueryEnv { now_ticks, random_seed, .. } = query_env::bare(context);
    let budget = Some(context.budget.clone());
    let call = ScriptCall { work, session, class, logging, now_ticks, random_seed, budget };
    target.container.run_script(key, call).await.map_err(|error| items::failed(target, key, error))
}

/// A procedure, on a thread of its own.
pub fn run(job: &Job, claim: &Claim, id: &str, arguments: &str) -> Ended<Finished> {
    let mut log = String::new();
    let program = match job.program(ScriptKind::Procedure, id) {
        Ok(program) => program,
        Err(stop) => return (Err((stop, 0.0)), log),
    };
    let outcome = job.transaction(claim).run(|draft, until| {
        log.clear();
        let mut written = Renames::new(&job.place.rid);
        let input = Input {
            program: &program,
            arguments,
            operation: "Execute",
            request_body: None,
            response_body: None,
        };
        job.run_program(draft, until, &mut written, input, &mut log)
    });
    (outcome, log)
}

/// What a script's end is to the client; the console comes along.
pub fn stopped(
    target: &Target,
    key: &PartitionKey,
    stop: ScriptStop,
    charge_ru: f64,
    at: Position,
    log: &str,
) -> ApiError {
    let at = items::at(at);
    let mut error = match stop {
        ScriptStop::Failed(failure) => failures::failed(&failure).charge(charge_ru.max(SCRIPT_RU)).at(at),
        ScriptStop::Engine(error) => items::failed(target, key, error),
        ScriptStop::Busy => failures::busy().at(at),
        ScriptStop::Stuck => failures::stuck().at(at),
        ScriptStop::Closed => failures::closed().at(at),
    };
    error.headers.extend(failures::log_header(log));
    error
}

/// The node that has the partition answered something else than it was asked.
pub fn answered_otherwise(target: &Target, key: &PartitionKey) -> ApiError {
    items::failed(target, key, Error::internal("A script was answered with the reply to another."))
}

/// The parameters as JSON text. No body is no parameters.
fn arguments(context: &Context<'_>) -> Result<String> {
    if context.body.iter().all(u8::is_ascii_whitespace) {
        return Ok("[]".to_owned());
    }
    let stored = parse_json(context.body, &ParseOptions::default())
        .map_err(|_| ApiError::bad_request(PAYLOAD_INVALID))?;
    match Raw::document(&stored) {
        Ok(root) if root.kind() == ValueKind::Array => {}
        _ => return Err(ApiError::bad_request(INPUT_INVALID)),
    }
    String::from_utf8(context.body.to_vec()).map_err(|_| ApiError::bad_request(PAYLOAD_INVALID))
}
