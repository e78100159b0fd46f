//! Triggers around the write of one item: those that the request names, in its order, in the item's own commit.
//!
//! A trigger before the write may change the document; one after it sees what was stored and may change the answer. When
//! any of them fails nothing has happened.

use http::{HeaderName, StatusCode};
use orrery_engine::{Draft, Operation, Outcome, Script, ScriptKind, TriggerOperation, TriggerTime, Write};
use orrery_model::{NumberStyle, PartitionKey, Raw};
use orrery_script::{Call, Program, Until};
use std::sync::Arc;

use super::collection::{Charges, Items, Place};
use super::execute::{header_text, stopped};
use super::identity::Renames;
use super::resources::{operation_word, time_word};
use super::transaction::{SCRIPT_RU, Stop, Transaction};
use super::{Host, failures};
use crate::errors::{ApiError, Plane, Result};
use crate::headers::{Answer, POST_TRIGGERS, PRE_TRIGGERS, SCRIPT_LOGGING};
use crate::item_json::{size_hint, write_item};
use crate::items;
use crate::query::query_env;
use crate::service::{Context, Target};

/// Triggers that one request may name, before and after together.
const TRIGGERS_MAX: usize = 10;

/// The triggers of a request.
pub struct Triggers {
    pre: Vec<Arc<Script>>,
    post: Vec<Arc<Script>>,
}

/// The triggers that the request names; `None` when it names none.
pub fn of_request(context: &Context<'_>, target: &Target, operation: &Operation) -> Result<Option<Triggers>> {
    let pre = named(context, target, PRE_TRIGGERS, TriggerTime::Pre, operation)?;
    let post = named(context, target, POST_TRIGGERS, TriggerTime::Post, operation)?;
    if pre.len() + post.len() > TRIGGERS_MAX {
        return Err(ApiError::bad_request(format!("A request may name at most {TRIGGERS_MAX} triggers.")));
    }
    Ok((!pre.is_empty() || !post.is_empty()).then_some(Triggers { pre, post }))
}

fn named(
    context: &Context<'_>,
    target: &Target,
    header: HeaderName,
    time: TriggerTime,
    operation: &Operation,
) -> Result<Vec<Arc<Script>>> {
    let names = context.text(header).unwrap_or("").split(',').map(str::trim).filter(|name| !name.is_empty());
    let scripts = target.container.scripts();
    names
        .map(|name| {
            let script = scripts.by_id(ScriptKind::Trigger, name).ok_or_else(|| {
                let error = orrery_engine::Error::not_found();
                ApiError::from_engine(error, Plane::Resources)
                    .at(items::place(target, &PartitionKey::default()))
            })?;
            let Some((at, of)) = script.definition.trigger else {
                return Err(ApiError::bad_request(format!("'{name}' is not a trigger.")));
            };
            if at != time {
                return Err(ApiError::bad_request(format!(
                    "Trigger '{name}' is of type {} and cannot be executed as a {} trigger.",
                    time_word(at),
                    time_word(time)
                )));
            }
            if !suits(of, operation) {
                return Err(ApiError::bad_request(format!(
                    "Trigger '{name}' is registered for the operation {} and cannot be executed with {}.",
                    operation_word(of),
                    operation_name(operation)
                )));
            }
            Ok(script.clone())
        })
        .collect()
}

/// Whether a trigger for one kind of operation may run with another.
fn suits(of: TriggerOperation, operation: &Operation) -> bool {
    match operation {
        // Whether an upsert creates or replaces is known only afterwards.
        Operation::Upsert { .. } => of != TriggerOperation::Delete,
        Operation::Create { .. } => matches!(of, TriggerOperation::All | TriggerOperation::Create),
        Operation::Replace { .. } | Operation::Patch { .. } => {
            matches!(of, TriggerOperation::All | TriggerOperation::Replace | TriggerOperation::Update)
        }
        Operation::Delete { .. } => matches!(of, TriggerOperation::All | TriggerOperation::Delete),
        // Triggers are about items; those of attachments went with them.
        Operation::Read { .. } | Operation::Attach { .. } => false,
    }
}

/// As `getOperationType` tells it.
fn operation_name(operation: &Operation) -> &'static str {
    match operation {
        Operation::Create { .. } => "Create",
        Operation::Upsert { .. } => "Upsert",
        Operation::Replace { .. } => "Replace",
        Operation::Patch { .. } => "Patch",
        Operation::Delete { .. } => "Delete",
        Operation::Read { .. } => "Read",
        Operation::Attach { .. } => "Attach",
    }
}

/// What is left of a write with triggers.
struct Written {
    outcome: Outcome,
    etag: Option<String>,
    body: Option<String>,
}

/// Writes an item with triggers around it.
pub async fn write(
    context: &Context<'_>,
    target: &Target,
    key: &PartitionKey,
    write: Write,
    triggers: Triggers,
) -> Result<Answer> {
    let host = context.service.scripts.clone();
    let place = Place::of(target);
    let [(_, quota), (_, usage)] = items::usage_headers(target, items::place(target, key));
    let job = Job {
        host: host.clone(),
        container: target.container.clone(),
        place: place.clone(),
        key: key.clone(),
        env: query_env::of_container(context, target),
        random: context.account().env().clone(),
        quota: header_text(&quota),
        usage: header_text(&usage),
        logging: context.flag(SCRIPT_LOGGING),
        budget: context.budget.clone(),
        write,
        triggers,
    };
    let run = host.pool.run(host.limits.time, move |claim| job.run(claim));
    let (outcome, log) = run.await.map_err(|why| failures::refused(why).at(items::place(target, key)))?;
    let drafted = outcome.map_err(|(stop, charge_ru)| stopped(target, key, stop, charge_ru, &log))?;
    let renames = Renames::of(&place.rid, &drafted.rewritten);
    let Written { outcome, etag, body } = drafted.value;
    let status = match outcome {
        Outcome::Created => StatusCode::CREATED,
        Outcome::Replaced | Outcome::Read => StatusCode::OK,
        Outcome::Deleted => StatusCode::NO_CONTENT,
    };
    let mut answer = items::answer(context, target, status, items::at(drafted.at), drafted.charge_ru);
    if let Some(etag) = etag {
        answer = answer.etag(&renames.apply(etag));
    }
    match body {
        Some(body) if items::wants_body(context) => answer = answer.body(renames.apply(body).into_bytes()),
        Some(_) => {}
        None => drop(answer.headers.remove(http::header::CONTENT_TYPE)),
    }
    if let Some((name, value)) = failures::log_header(&renames.apply(log)) {
        answer = answer.set(name, value);
    }
    Ok(answer)
}

/// Everything that a write with triggers needs on a thread of its own.
struct Job {
    host: Host,
    container: Arc<orrery_engine::Container>,
    place: Place,
    key: PartitionKey,
    env: orrery_query::QueryEnv,
    random: Arc<dyn orrery_engine::Env>,
    quota: String,
    usage: String,
    logging: bool,
    budget: orrery_budget::Budget,
    write: Write,
    triggers: Triggers,
}

type Ended = Result<orrery_engine::Drafted<Written>, (Stop, f64)>;

impl Job {
    fn run(self, claim: &orrery_script::Claim) -> (Ended, String) {
        let mut log = String::new();
        let compiled = |scripts: &[Arc<Script>]| -> Result<Vec<Program>, orrery_script::Failure> {
            scripts.iter().map(|script| self.host.program(self.container.core(), script)).collect()
        };
        let programs = compiled(&self.triggers.pre).and_then(|pre| Ok((pre, compiled(&self.triggers.post)?)));
        let (pre, post) = match programs {
            Ok(programs) => programs,
            Err(failure) => return (Err((Stop::Failure(failure), 0.0)), log),
        };
        let transaction = Transaction {
            container: &self.container,
            key: &self.key,
            session: &self.write.session,
            class: self.write.class,
            limits: &self.host.limits,
            claim,
        };
        let ended = transaction.run(|draft, until| {
            log.clear();
            self.attempt(draft, until, &pre, &post, &mut log)
        });
        (ended, log)
    }

    fn attempt(
        &self,
        draft: &mut Draft<'_>,
        until: &Until,
        pre: &[Program],
        post: &[Program],
        log: &mut String,
    ) -> Result<Written, Stop> {
        let mut written = Renames::new(&self.place.rid);
        let mut request = document_text(&self.write.operation);
        for program in pre {
            let finished =
                self.trigger(draft, &mut written, until, program, request.as_deref(), None, log)?;
            request = finished.request_body;
        }
        let operation = self.operation(request.as_deref())?;
        let mut write = self.write.clone();
        write.operation = operation;
        let (outcome, item) = draft.write(write)?;
        let mut response = item.as_ref().map(|item| {
            written.watch(item);
            let mut out = Vec::with_capacity(size_hint(item));
            write_item(&mut out, &self.place.rid, item);
            String::from_utf8(out).unwrap_or_default()
        });
        for program in post {
            let finished = self.trigger(
                draft,
                &mut written,
                until,
                program,
                request.as_deref(),
                response.as_deref(),
                log,
            )?;
            response = finished.response_body;
        }
        Ok(Written { outcome, etag: item.map(|item| item.etag.to_string()), body: response })
    }

    #[allow(clippy::too_many_arguments)]
    fn trigger(
        &self,
        draft: &mut Draft<'_>,
        written: &mut Renames,
        until: &Until,
        program: &Program,
        request_body: Option<&str>,
        response_body: Option<&str>,
        log: &mut String,
    ) -> Result<orrery_script::Finished, Stop> {
        draft.charge(SCRIPT_RU);
        let alt_link = self.place.alt_link();
        let call = Call {
            program,
            arguments: "[]",
            operation: operation_name(&self.write.operation),
            self_link: &self.place.self_link,
            alt_link: &alt_link,
            request_body,
            response_body,
            quota: &self.quota,
            usage: &self.usage,
            logging: self.logging,
        };
        let mut charges = Charges::new(&self.budget.ending(until.deadline))?;
        let mut collection = Items {
            draft,
            place: &self.place,
            env: &self.env,
            random: self.random.as_ref(),
            written,
            charges: &mut charges,
        };
        let report = orrery_script::run(&call, &self.host.limits, until, &self.budget, &mut collection);
        if !log.is_empty() && !report.log.is_empty() {
            log.push('\n');
        }
        log.push_str(&report.log);
        charges.check()?;
        Ok(report.outcome?)
    }

    /// The write as the triggers left it.
    fn operation(&self, request: Option<&str>) -> Result<Operation, Stop> {
        let changed = |request: Option<&str>| {
            let text = request.unwrap_or("null");
            let document = items::document(text.as_bytes());
            document.map_err(|error| Stop::Engine(orrery_engine::Error::bad_request(error.message.clone())))
        };
        let id_of = |document: &bytes::Bytes| {
            items::id_of(document)
                .map_err(|error| Stop::Engine(orrery_engine::Error::bad_request(error.message.clone())))
        };
        if self.triggers.pre.is_empty() {
            return Ok(self.write.operation.clone());
        }
        Ok(match &self.write.operation {
            Operation::Create { .. } => {
                let document = changed(request)?;
                Operation::Create { id: id_of(&document)?, document }
            }
            Operation::Upsert { .. } => {
                let document = changed(request)?;
                Operation::Upsert { id: id_of(&document)?, document }
            }
            Operation::Replace { id, .. } => {
                Operation::Replace { id: id.clone(), document: changed(request)? }
            }
            other => other.clone(),
        })
    }
}

/// The document that a write brings, as JSON.
fn document_text(operation: &Operation) -> Option<String> {
    let (Operation::Create { document, .. }
    | Operation::Upsert { document, .. }
    | Operation::Replace { document, .. }) = operation
    else {
        return None;
    };
    let mut out = Vec::with_capacity(document.len() + document.len() / 4);
    Raw::document(document).ok()?.write_json(&mut out, NumberStyle::Item);
    String::from_utf8(out).ok()
}
