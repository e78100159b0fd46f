//! Running a procedure: `POST …/sprocs/{id}` with the partition key in a header and an array of parameters as the body.

use http::StatusCode;
use orrery_engine::ScriptKind;
use orrery_model::{Kind as ValueKind, ParseOptions, Raw, parse_json};
use orrery_script::{Call, Finished};

use super::collection::{Charges, Items, Place};
use super::identity::Renames;
use super::transaction::{SCRIPT_RU, Stop, Transaction};
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
    let logging = context.flag(SCRIPT_LOGGING);
    let place = Place::of(&target);
    let env = query_env::of_container(context, &target);
    let [(_, quota), (_, usage)] = items::usage_headers(&target, items::place(&target, &key));
    let (quota, usage) = (header_text(&quota), header_text(&usage));

    let host = context.service.scripts.clone();
    let random = context.account().env().clone();
    let (container, job_key, job_script) = (target.container.clone(), key.clone(), script.clone());
    let time = host.limits.time;
    let budget = context.budget.clone();
    let job_host = host.clone();
    let run = host.pool.run(time, move |claim| {
        let mut log = String::new();
        let program = match job_host.program(container.core(), &job_script) {
            Ok(program) => program,
            Err(failure) => return (Err((Stop::Failure(failure), 0.0)), log, place),
        };
        let alt_link = place.alt_link();
        let call = Call {
            program: &program,
            arguments: &arguments,
            operation: "Execute",
            self_link: &place.self_link,
            alt_link: &alt_link,
            request_body: None,
            response_body: None,
            quota: &quota,
            usage: &usage,
            logging,
        };
        let transaction = Transaction {
            container: &container,
            key: &job_key,
            session: &session,
            class,
            limits: &job_host.limits,
            claim,
        };
        let outcome = transaction.run(|draft, until| {
            draft.charge(SCRIPT_RU);
            let mut written = Renames::new(&place.rid);
            let mut charges = Charges::new(&budget.ending(until.deadline))?;
            let mut collection = Items {
                draft,
                place: &place,
                env: &env,
                random: random.as_ref(),
                written: &mut written,
                charges: &mut charges,
            };
            let report = orrery_script::run(&call, &job_host.limits, until, &budget, &mut collection);
            log = report.log;
            charges.check()?;
            Ok(report.outcome?)
        });
        (outcome, log, place)
    });
    let (outcome, log, place) =
        run.await.map_err(|why| failures::refused(why).at(items::place(&target, &key)))?;
    match outcome {
        Ok(drafted) => {
            let renames = Renames::of(&place.rid, &drafted.rewritten);
            let Finished { response_body, held, .. } = drafted.value;
            let body = renames.apply(response_body.unwrap_or_else(|| NO_BODY.to_owned()));
            drop(held);
            let alt_path = format!("{}/sprocs/{}", target.alt_path(), script.definition.id);
            let rid = target.rid.script(ScriptKind::Procedure, script.number);
            let mut answer = context
                .answer(StatusCode::OK)
                .at(items::at(drafted.at))
                .charge(drafted.charge_ru)
                .owner(&alt_path, ascii(&rid))
                .body(body.into_bytes());
            if let Some((name, value)) = failures::log_header(&renames.apply(log)) {
                answer = answer.set(name, value);
            }
            Ok(answer)
        }
        Err((stop, charge_ru)) => Err(stopped(&target, &key, stop, charge_ru, &log)),
    }
}

/// What a script's end is to the client; the console comes along.
pub fn stopped(
    target: &Target,
    key: &orrery_model::PartitionKey,
    stop: Stop,
    charge_ru: f64,
    log: &str,
) -> ApiError {
    let mut error = match stop {
        Stop::Failure(failure) => {
            failures::failed(&failure).charge(charge_ru.max(SCRIPT_RU)).at(items::place(target, key))
        }
        Stop::Engine(error) => items::failed(target, key, error),
    };
    error.headers.extend(failures::log_header(log));
    error
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

pub fn header_text(value: &http::HeaderValue) -> String {
    value.to_str().unwrap_or_default().to_owned()
}
