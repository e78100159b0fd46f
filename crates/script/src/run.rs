//! One execution of a procedure or trigger, from its first statement to its last callback.

use std::rc::Rc;

use orrery_budget::{Budget, Held};
use rquickjs::{Array, Ctx, Function, Object, Value};

use crate::bytecode;
use crate::collection::{Collection, Operation, OperationError, Options};
use crate::failure::{self, Failure, FailureKind};
use crate::image::{self, Image, Ready, Turn};
use crate::limits::{LAST_PART, Limits, Until};
use crate::program::Program;

/// What a script is run with.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub program: &'a Program,
    /// A JSON array.
    pub arguments: &'a str,
    /// What the request is, as `getOperationType` tells it.
    pub operation: &'a str,
    pub self_link: &'a str,
    pub alt_link: &'a str,
    /// JSON.
    pub request_body: Option<&'a str>,
    /// JSON.
    pub response_body: Option<&'a str>,
    pub quota: &'a str,
    pub usage: &'a str,
    pub logging: bool,
}

/// What a script leaves behind.
#[derive(Debug, Default)]
pub struct Finished {
    /// JSON; `None` when it never set one.
    pub response_body: Option<String>,
    pub request_body: Option<String>,
    /// What the request is charged for the two.
    pub held: Option<Held>,
}

#[derive(Debug)]
pub struct Report {
    pub outcome: Result<Finished, Failure>,
    /// What it wrote to the console, if anybody wanted to know.
    pub log: String,
}

/// Runs a script on this thread until it is done or fails, or its time is over. What it keeps in memory is charged to
/// `budget` while it runs, and its answer as long as that lives.
pub fn run(
    call: &Call<'_>,
    limits: &Limits,
    until: &Until,
    budget: &Budget,
    collection: &mut dyn Collection,
) -> Report {
    let report = image::with_fresh(limits, until, budget, |image| {
        let late = until.deadline.checked_sub(limits.time / LAST_PART).unwrap_or(until.deadline);
        image.turn.begin(limits, late, budget, call.logging);
        let sandbox = &image.sandbox;
        let outcome = sandbox.context.with(|ctx| {
            let script = Script::start(&ctx, call, image);
            match script.and_then(|script| script.drive(&ctx, call, limits, until, budget, collection)) {
                Ok(finished) => Ok(finished),
                Err(Ended::Exception) => Err(sandbox.failure(&ctx)),
                Err(Ended::Failure(failure)) => Err(sandbox.ended(failure)),
            }
        });
        Report { outcome, log: image.turn.take_log() }
    });
    report.unwrap_or_else(|failure| Report { outcome: Err(failure), log: String::new() })
}

/// Why a script ended early.
enum Ended {
    /// The exception is pending in the context.
    Exception,
    Failure(Failure),
}

impl From<rquickjs::Error> for Ended {
    fn from(error: rquickjs::Error) -> Ended {
        match error {
            rquickjs::Error::Exception => Ended::Exception,
            rquickjs::Error::Allocation => {
                Ended::Failure(Failure::new(FailureKind::OutOfMemory, "InternalError: out of memory"))
            }
            other => Ended::Failure(Failure::new(FailureKind::Threw, format!("Error: {other}"))),
        }
    }
}

/// A script that has made its first turn.
struct Script<'js> {
    driver: Ready<'js>,
    turn: Rc<Turn>,
}

impl<'js> Script<'js> {
    fn start(ctx: &Ctx<'js>, call: &Call<'_>, image: &Image) -> Result<Script<'js>, Ended> {
        let driver = image.driver(ctx)?;
        let host = &driver.host;
        host.set("selfLink", call.self_link)?;
        host.set("altLink", call.alt_link)?;
        host.set("operation", call.operation)?;
        host.set("requestBody", call.request_body)?;
        host.set("responseBody", call.response_body)?;
        host.set("quota", call.quota)?;
        host.set("usage", call.usage)?;
        let script = bytecode::evaluate(ctx, &call.program.bytecode)?;
        let Some(function) = script.as_function() else {
            let message = "TypeError: The script must be a function.";
            return Err(Ended::Failure(Failure::new(FailureKind::Compile, message)));
        };
        let () = driver.call.call((function.clone(), call.arguments))?;
        Ok(Script { driver, turn: image.turn.clone() })
    }

    /// Carries out one operation after the other until none is left.
    fn drive(
        &self,
        ctx: &Ctx<'js>,
        call: &Call<'_>,
        limits: &Limits,
        until: &Until,
        budget: &Budget,
        collection: &mut dyn Collection,
    ) -> Result<Finished, Ended> {
        let mut operations = 0;
        loop {
            while ctx.execute_pending_job() {
                if until.is_over_now() {
                    return Err(Ended::Failure(Failure::timed_out()));
                }
            }
            let Some(asked) = self.driver.take.call::<_, Option<Array<'js>>>(())? else { break };
            if until.is_over_now() {
                return Err(Ended::Failure(Failure::timed_out()));
            }
            operations += 1;
            if operations > limits.operations {
                let message =
                    format!("Error: The script asked for more than {} operations.", limits.operations);
                return Err(Ended::Failure(Failure::new(FailureKind::Threw, message)));
            }
            let (kind, link): (String, String) = (asked.get(0)?, asked.get(1)?);
            // A place among the documents that were written here, or a text of the script's.
            let body: Value<'js> = asked.get(2)?;
            let body = match body.as_number() {
                Some(place) => self.turn.take_written(place),
                None => body.as_string().map(|text| text.to_string()).transpose()?,
            };
            let options = Options { unseen: !asked.get::<bool>(4)?, ..options(ctx, asked.get(3)?)? };
            match perform(collection, &kind, &link, body.as_deref().unwrap_or(""), &options) {
                Ok(done) => {
                    let () = self.driver.done.call((done.resource, done.continuation, done.not_modified))?;
                }
                Err(error) if collection.is_over() => {
                    let failure = Failure::new(FailureKind::Threw, format!("Error: {}", error.message));
                    return Err(Ended::Failure(Failure { number: Some(u32::from(error.status)), ..failure }));
                }
                Err(error) => {
                    let thrown = failure::without_stack(ctx)?;
                    let () = self.driver.fail.call((thrown, error.status, error.message))?;
                }
            }
        }
        if let Some(problem) = self.driver.problem.call::<_, Option<Object<'js>>>(())? {
            let reason = problem.get::<_, Value<'js>>("reason")?;
            return Err(Ended::Failure(Failure::of_value(&reason)));
        }
        let response_body = self.body(&self.driver.body, limits)?;
        let request_body = match call.request_body {
            Some(_) => self.body(&self.driver.request_body, limits)?,
            None => None,
        };
        let bytes = [&response_body, &request_body].into_iter().flatten().map(String::len).sum();
        let held = budget.hold(bytes).map_err(|exceeded| Ended::Failure(Failure::exceeded(exceeded)))?;
        Ok(Finished { response_body, request_body, held: Some(held) })
    }

    /// A body that the script leaves behind, unless it is too long.
    fn body(&self, body: &Function<'js>, limits: &Limits) -> Result<Option<String>, Ended> {
        let most = limits.result_bytes;
        let too_long = |length: usize| {
            let message = format!("Error: The response is {length} bytes long; {most} are allowed.");
            Ended::Failure(Failure::new(FailureKind::ResultTooLarge, message))
        };
        // Characters are counted first, so that nothing is made of what is far too long.
        let body: Value<'js> = body.call((most as f64,))?;
        if let Some(length) = body.as_number() {
            return Err(too_long(length as usize));
        }
        let Some(body) = body.as_string() else { return Ok(None) };
        let body = body.to_string()?;
        if body.len() > most { Err(too_long(body.len())) } else { Ok(Some(body)) }
    }
}

fn perform(
    collection: &mut dyn Collection,
    kind: &str,
    link: &str,
    document: &str,
    options: &Options,
) -> Result<crate::Done, OperationError> {
    let operation = match kind {
        "create" => Operation::Create { collection: link, document },
        "upsert" => Operation::Upsert { collection: link, document },
        "replace" => Operation::Replace { document_link: link, document },
        "delete" => Operation::Delete { document_link: link },
        "read" => Operation::Read { document_link: link },
        "list" => Operation::List { collection: link },
        "query" => Operation::Query { collection: link, query: document },
        // The queue is the API's own, but a script that replaces built-ins can reach into what it does with them.
        _ => return Err(OperationError { status: 400, message: "There is no such operation.".to_owned() }),
    };
    collection.perform(operation, options)
}

fn options<'js>(ctx: &Ctx<'js>, text: Option<String>) -> rquickjs::Result<Options> {
    let Some(text) = text else { return Ok(Options::default()) };
    let value = ctx.json_parse(text)?;
    let Some(object) = value.as_object() else { return Ok(Options::default()) };
    let string = |name: &str| -> rquickjs::Result<Option<String>> {
        let found: Value<'js> = object.get(name)?;
        found.as_string().map(|text| text.to_string()).transpose()
    };
    let page_size = object.get::<_, Value<'js>>("pageSize")?.as_number();
    Ok(Options {
        if_match: string("etag")?,
        if_none_match: string("ifNoneMatch")?,
        fixed_id: object.get::<_, Value<'js>>("fixed")?.as_bool().unwrap_or(false),
        page_size: page_size.filter(|size| *size >= 1.0).map(|size| size as usize),
        continuation: string("continuation")?,
        unseen: false,
    })
}
