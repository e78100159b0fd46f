//! Triggers around the write of one item: those that the request names, in its order, in the item's own commit.
//!
//! A trigger before the write may change the document; one after it sees what was stored and may change the answer.
//! When any of them fails nothing has happened.

use std::sync::Arc;

use http::{HeaderName, StatusCode};
use orrery_engine::{
    Draft, Operation, Outcome, Script, ScriptAnswer, ScriptKind, ScriptReply, ScriptWork, TriggerOperation,
    TriggerTime, Write,
};
use orrery_model::{NumberStyle, PartitionKey, Raw};
use orrery_script::{Claim, Program, Until};

use super::execute::{answered_otherwise, run_call, stopped};
use super::failures;
use super::identity::Renames;
use super::job::{Ended, Input, Job};
use super::resources::{operation_word, time_word};
use super::transaction::Stop;
use crate::errors::{ApiError, Plane, Result};
use crate::headers::{Answer, POST_TRIGGERS, PRE_TRIGGERS};
use crate::item_json::{size_hint, write_item};
use crate::items;
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
pub struct Written {
    pub outcome: Outcome,
    pub etag: Option<String>,
    pub body: Option<String>,
}

/// Writes an item with triggers around it.
pub async fn write(
    context: &Context<'_>,
    target: &Target,
    key: &PartitionKey,
    write: Write,
    triggers: Triggers,
) -> Result<Answer> {
    let (session, class) = (write.session.clone(), write.class);
    let ids = |scripts: Vec<Arc<Script>>| scripts.iter().map(|script| script.definition.id.clone()).collect();
    let (pre, post) = (ids(triggers.pre), ids(triggers.post));
    let work = ScriptWork::Triggers { write: Box::new(write), pre, post };
    let ScriptReply { result, log, charge_ru, at, .. } =
        run_call(context, target, key, work, session, class).await?;
    let (outcome, etag, body) = match result {
        Ok(ScriptAnswer::Triggers { outcome, etag, body }) => (outcome, etag, body),
        Ok(ScriptAnswer::Procedure { .. }) => return Err(answered_otherwise(target, key)),
        Err(stop) => return Err(stopped(target, key, stop, charge_ru, at, &log)),
    };
    let status = match outcome {
        Outcome::Created => StatusCode::CREATED,
        Outcome::Replaced | Outcome::Read => StatusCode::OK,
        Outcome::Deleted => StatusCode::NO_CONTENT,
    };
    let mut answer = items::answer(context, target, status, items::at(at), charge_ru);
    if let Some(etag) = etag {
        answer = answer.etag(&etag);
    }
    match body {
        Some(body) if items::wants_body(context) => answer = answer.body(body.into_bytes()),
        Some(_) => {}
        None => drop(answer.headers.remove(http::header::CONTENT_TYPE)),
    }
    if let Some((name, value)) = failures::log_header(&log) {
        answer = answer.set(name, value);
    }
    Ok(answer)
}

/// A write with triggers before and after it, on a thread of its own.
pub fn run(job: &Job, claim: &Claim, write: &Write, [pre, post]: [&[String]; 2]) -> Ended<Written> {
    let mut log = String::new();
    let compiled = |ids: &[String]| -> Result<Vec<Program>, Stop> {
        ids.iter().map(|id| job.program(ScriptKind::Trigger, id)).collect()
    };
    let programs = compiled(pre).and_then(|pre| Ok((pre, compiled(post)?)));
    let (pre, post) = match programs {
        Ok(programs) => programs,
        Err(stop) => return (Err((stop, 0.0)), log),
    };
    let around = Around { job, write, pre: &pre, post: &post };
    let ended = job.transaction(claim).run(|draft, until| {
        log.clear();
        around.attempt(draft, until, &mut log)
    });
    (ended, log)
}

/// A write and the programs around it.
struct Around<'a> {
    job: &'a Job,
    write: &'a Write,
    pre: &'a [Program],
    post: &'a [Program],
}

impl Around<'_> {
    fn attempt(&self, draft: &mut Draft<'_>, until: &Until, log: &mut String) -> Result<Written, Stop> {
        let rid = &self.job.place.rid;
        let mut written = Renames::new(rid);
        let mut request = document_text(&self.write.operation);
        for program in self.pre {
            let input = self.input(program, request.as_deref(), None);
            request = self.job.run_program(draft, until, &mut written, input, log)?.request_body;
        }
        let operation = self.operation(request.as_deref())?;
        let (outcome, item) = draft.write(Write { operation, ..self.write.clone() })?;
        let mut response = item.as_ref().map(|item| {
            written.watch(item);
            let mut out = Vec::with_capacity(size_hint(item));
            write_item(&mut out, rid, item);
            String::from_utf8(out).unwrap_or_default()
        });
        for program in self.post {
            let input = self.input(program, request.as_deref(), response.as_deref());
            response = self.job.run_program(draft, until, &mut written, input, log)?.response_body;
        }
        Ok(Written { outcome, etag: item.map(|item| item.etag.to_string()), body: response })
    }

    fn input<'i>(
        &self,
        program: &'i Program,
        request_body: Option<&'i str>,
        response_body: Option<&'i str>,
    ) -> Input<'i> {
        let operation = operation_name(&self.write.operation);
        Input { program, arguments: "[]", operation, request_body, response_body }
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
        if self.pre.is_empty() {
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
