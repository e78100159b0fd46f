//! One traversal from a request to its frames.
//!
//! ```text
//! script | bytecode ── parse ── graph of the caller ── execute ── results ── frames of 64: 206 … 206, 200
//! ```
//!
//! Frames go out while the traversal runs. A client that does not read holds up its own traversal, which waits as
//! long as its time lasts; nothing but the frames in between is kept for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_api::{Fault, Summary};
use orrery_budget::{Budget, Limits as BudgetLimits};
use orrery_engine::faults::{Asked, Effect, FaultStatus, LostHalf};
use orrery_engine::{Error as EngineError, Kind, block_on};
use orrery_gremlin::value::Value;
use orrery_gremlin::{Flow, Options, Script, execute, from_bytecode, parse};
use uuid::Uuid;

use crate::access::{Identity, Permitted};
use crate::errors::{Failure, code};
use crate::graph::{ContainerGraph, Spent};
use crate::message::{Attribute, Format, Request, Response};
use crate::service::Core;

/// Longest script.
pub const SCRIPT_BYTES_MAX: usize = 64 * 1024;
/// Results of a frame, unless the client says otherwise.
const FRAME_RESULTS: usize = 64;
const FRAME_RESULTS_MAX: usize = 10_000;
/// Rounds of one repeat().
const REPEAT_LOOPS_MAX: u32 = 10_000;
/// Bindings of one request.
const BINDINGS_MAX: usize = 1_000;
const RETRY_AFTER_MS_DEFAULT: u64 = 100;

/// Takes frames. `false`: nobody wants them any more.
pub trait Outlet {
    fn send(&mut self, frame: Vec<u8>, budget: &Budget) -> Result<bool, Failure>;
}

/// What became of a request, for the log.
pub struct Done {
    pub summary: Summary,
    pub status: u16,
    /// The connection ends without an answer, because a fault rule says so.
    pub hung_up: bool,
}

/// What a request asks to be run.
pub struct Work<'r> {
    pub core: &'r Core,
    pub request: &'r Request,
    pub identity: &'r Identity,
    /// A frame ends with the result that crosses this.
    pub frame_bytes: usize,
    pub is_gone: Box<dyn Fn() -> bool + Send + Sync>,
}

/// The attributes of every frame, and what they count.
struct Meter {
    activity: Uuid,
    began: Instant,
    spent: Arc<Spent>,
    reported_ru: f64,
    reported_at: Instant,
}

impl Meter {
    fn attributes(&mut self, status: u32) -> Vec<(&'static str, Attribute)> {
        let (total_ru, now) = (self.spent.charge_ru(), Instant::now());
        let ms = |duration: Duration| Attribute::Double((duration.as_secs_f64() * 1e7).round() / 1e4);
        let ru = |charge_ru: f64| Attribute::Double((charge_ru * 100.0).round() / 100.0);
        let attributes = vec![
            ("x-ms-status-code", Attribute::Integer(status)),
            ("x-ms-activity-id", Attribute::Text(self.activity.hyphenated().to_string())),
            ("x-ms-request-charge", ru(total_ru - self.reported_ru)),
            ("x-ms-total-request-charge", ru(total_ru)),
            ("x-ms-server-time-ms", ms(now - self.reported_at)),
            ("x-ms-total-server-time-ms", ms(now - self.began)),
        ];
        (self.reported_ru, self.reported_at) = (total_ru, now);
        attributes
    }
}

/// Results on their way into frames.
struct Frames<'w> {
    id: Uuid,
    format: Format,
    size: usize,
    bytes: usize,
    bytecode: bool,
    data: Vec<u8>,
    count: usize,
    meter: Meter,
    outlet: &'w mut dyn Outlet,
    budget: Budget,
}

impl Frames<'_> {
    fn result(&mut self, value: &Value) -> Result<Flow, Failure> {
        // The last frame has another code: a full one waits for what follows.
        if (self.count >= self.size || self.data.len() >= self.bytes) && !self.flush(code::PARTIAL)? {
            return Ok(Flow::Stop);
        }
        if self.count > 0 && !self.format.is_binary() {
            self.data.push(b',');
        }
        self.format.write(value, &mut self.data);
        self.count += 1;
        Ok(Flow::Continue)
    }

    fn flush(&mut self, code: u16) -> Result<bool, Failure> {
        let attributes = self.meter.attributes(200);
        let frame = Response {
            id: Some(self.id),
            format: self.format,
            code,
            message: "",
            attributes: &attributes,
            data: &self.data,
            count: self.count,
        };
        let frame = frame.write();
        self.data.clear();
        self.count = 0;
        self.outlet.send(frame, &self.budget)
    }

    fn fail(&mut self, failure: &Failure) -> Vec<u8> {
        self.meter.spent.add(failure.charge_ru);
        let mut attributes = self.meter.attributes(failure.status);
        attributes.extend(failure_attributes(failure));
        let message = failure.message(self.meter.activity, self.id);
        Response {
            id: Some(self.id),
            format: self.format,
            code: failure.code,
            message: &message,
            attributes: &attributes,
            data: &[],
            count: 0,
        }
        .write()
    }
}

fn failure_attributes(failure: &Failure) -> Vec<(&'static str, Attribute)> {
    let mut attributes = vec![("x-ms-substatus-code", Attribute::Integer(failure.substatus))];
    if let Some(ms) = failure.retry_after_ms {
        attributes.push(("x-ms-retry-after-ms", Attribute::Text(time_span(ms))));
    }
    attributes.push(("x-ms-source", Attribute::Text("Microsoft.Azure.Documents.Client".to_owned())));
    attributes
}

/// As .NET writes a span of time: `00:00:03.9500000`.
fn time_span(ms: u64) -> String {
    let (seconds, ms) = (ms / 1000, ms % 1000);
    format!("{:02}:{:02}:{:02}.{:03}0000", seconds / 3600, seconds / 60 % 60, seconds % 60, ms)
}

/// A frame for a request that was not run.
pub fn refusal(core: &Core, id: Option<Uuid>, format: Format, failure: &Failure) -> Vec<u8> {
    let activity = core.random_id();
    let mut attributes = vec![
        ("x-ms-status-code", Attribute::Integer(failure.status)),
        ("x-ms-activity-id", Attribute::Text(activity.hyphenated().to_string())),
        ("x-ms-request-charge", Attribute::Double(0.0)),
        ("x-ms-total-request-charge", Attribute::Double(0.0)),
        ("x-ms-server-time-ms", Attribute::Double(0.0)),
        ("x-ms-total-server-time-ms", Attribute::Double(0.0)),
    ];
    attributes.extend(failure_attributes(failure));
    let message = failure.message(activity, id.unwrap_or_default());
    Response {
        id,
        format,
        code: failure.code,
        message: &message,
        attributes: &attributes,
        data: &[],
        count: 0,
    }
    .write()
}

/// A frame without results: a challenge, or the answer to something that has none.
pub fn empty(id: Uuid, format: Format, code: u16) -> Vec<u8> {
    let status = if code == code::AUTHENTICATE { 407 } else { 200 };
    let attributes = [("x-ms-status-code", Attribute::Integer(status))];
    Response { id: Some(id), format, code, message: "", attributes: &attributes, data: &[], count: 0 }.write()
}

impl Work<'_> {
    /// Runs the request to its end. Blocks.
    pub fn run(self, outlet: &mut dyn Outlet) -> Done {
        let Work { core, request, identity, frame_bytes, is_gone } = self;
        let bytecode = request.op == "bytecode";
        let spent = Arc::new(Spent::default());
        let began = Instant::now();
        let allowed = request.arg("evaluationTimeout").or_else(|| request.arg("scriptEvaluationTimeout"));
        let allowed =
            allowed.and_then(Value::as_i64).and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms > 0);
        let time = allowed
            .map_or(core.config.request_time, |ms| core.config.request_time.min(Duration::from_millis(ms)));
        let limits = BudgetLimits {
            memory_bytes: core.config.memory_bytes,
            deadline: began.checked_add(time),
            ..BudgetLimits::default()
        };
        let budget = Budget::with(core.config.memory.clone(), limits, Some(is_gone));
        let size =
            request.arg("batchSize").and_then(Value::as_i64).and_then(|size| usize::try_from(size).ok());
        let mut frames = Frames {
            id: request.id,
            format: if bytecode { request.format.of_bytecode() } else { request.format },
            size: size.map_or(FRAME_RESULTS, |size| size.clamp(1, FRAME_RESULTS_MAX)),
            bytes: frame_bytes,
            bytecode,
            data: Vec::new(),
            count: 0,
            meter: Meter {
                activity: core.random_id(),
                began,
                spent: spent.clone(),
                reported_ru: 0.0,
                reported_at: began,
            },
            outlet,
            budget: budget.clone(),
        };
        let mut summary = Summary::of(if bytecode { "gremlin_bytecode" } else { "gremlin_script" });
        let outcome = answer(core, request, identity, &mut frames, &mut summary.fault);
        let hung_up = summary.fault.as_ref().is_some_and(|fault| fault.drop);
        let status = match &outcome {
            _ if hung_up => 200,
            Ok(()) => match frames.flush(code::SUCCESS) {
                Ok(_) => 200,
                Err(failure) => failure.http_status(),
            },
            Err(failure) => {
                let frame = frames.fail(failure);
                summary.substatus = failure.substatus;
                // The time may be over and the answer must still go out.
                let _ = frames.outlet.send(frame, &Budget::unlimited());
                failure.http_status()
            }
        };
        summary.charge_ru = spent.charge_ru();
        Done { summary, status, hung_up }
    }
}

fn answer(
    core: &Core,
    request: &Request,
    identity: &Identity,
    frames: &mut Frames<'_>,
    injected: &mut Option<Fault>,
) -> Result<(), Failure> {
    let (script, text) = script_of(request)?;
    let writes = script.writes();
    let Permitted { container, limits, writes: may_write } =
        block_on(core.authorizer.permit(&core.account, identity))?;
    if writes && !may_write {
        return Err(Failure::forbidden());
    }
    let asked = Asked {
        operation: if writes { "create_item" } else { "query_items" },
        reads: !writes,
        database: &identity.database,
        container: &identity.container,
    };
    if let Some(fault) = core.account.faults().meet(asked, || None) {
        *injected = Some(Fault {
            rule: fault.rule.clone(),
            delay: fault.delay,
            drop: matches!(fault.effect, Effect::Lost(_)),
        });
        std::thread::sleep(fault.delay);
        match fault.effect {
            Effect::Answer(answer) => return Err(of_fault(answer.status, answer.retry_after_ms)),
            Effect::Lost(LostHalf::Request) => return Ok(()),
            _ => {}
        }
    }
    let (budget, spent) = (frames.budget.clone(), frames.meter.spent.clone());
    let env = core.account.env().clone();
    let seed = env.random_u64();
    let mut graph = {
        let cache = core.cache.clone();
        ContainerGraph::new(container, env, limits, budget.clone(), spent, cache, writes)?
    };
    // Drivers that send bytecode expect references, unless they ask for more.
    let materialize = match request.text_arg("materializeProperties") {
        Some("tokens") => false,
        Some(_) => true,
        None => !frames.bytecode,
    };
    let options = Options {
        budget,
        materialize_properties: materialize,
        id_and_label_as_keys: true,
        repeat_loops_max: REPEAT_LOOPS_MAX,
        script: text,
        seed,
        ..Options::default()
    };
    let mut broken = None;
    let mut sink = |results: Vec<(Value, u64)>| {
        for (value, bulk) in results {
            let taken = match frames.bytecode {
                true => frames.result(&Value::Traverser(Arc::new((value, bulk)))),
                false => repeated(frames, &value, bulk),
            };
            match taken {
                Ok(Flow::Continue) => {}
                Ok(Flow::Stop) => return Ok(Flow::Stop),
                Err(failure) => {
                    broken = Some(failure);
                    return Ok(Flow::Stop);
                }
            }
        }
        Ok(Flow::Continue)
    };
    let ran = execute(&script, &mut graph, &options, &mut sink);
    match broken {
        Some(failure) => Err(failure),
        None => ran.map_err(Failure::from),
    }
}

fn repeated(frames: &mut Frames<'_>, value: &Value, bulk: u64) -> Result<Flow, Failure> {
    for _ in 0..bulk {
        if frames.result(value)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// The script of a request, and its text.
fn script_of(request: &Request) -> Result<(Script, String), Failure> {
    match request.arg("gremlin") {
        Some(Value::Traversal(bytecode)) => {
            if bytecode.source.iter().any(|instruction| &*instruction.name == "tx") {
                return Err(Failure::unsupported(
                    "Transactions are not supported: every write is durable by itself.",
                ));
            }
            Ok((from_bytecode(bytecode.clone()), String::new()))
        }
        Some(Value::String(text)) => {
            if text.len() > SCRIPT_BYTES_MAX {
                let limit = SCRIPT_BYTES_MAX / 1024;
                return Err(Failure::malformed(format!(
                    "The script is larger than {limit} KB. Send what varies as bindings, or several scripts."
                )));
            }
            let mut bindings = HashMap::new();
            if let Some(Value::Map(given)) = request.arg("bindings") {
                if given.len() > BINDINGS_MAX {
                    return Err(Failure::arguments(format!(
                        "A request has at most {BINDINGS_MAX} bindings."
                    )));
                }
                for (name, value) in given.iter() {
                    let Some(name) = name.as_str() else {
                        return Err(Failure::arguments("The name of a binding is a text."));
                    };
                    bindings.insert(name.to_owned(), value.clone());
                }
            }
            Ok((parse(text, &bindings)?, text.to_string()))
        }
        _ => Err(Failure::arguments("A request to evaluate has the argument 'gremlin'.")),
    }
}

fn of_fault(status: FaultStatus, retry_after_ms: Option<u64>) -> Failure {
    let kind = match status {
        FaultStatus::Throttled => {
            Kind::Throttled { retry_after_ms: retry_after_ms.unwrap_or(RETRY_AFTER_MS_DEFAULT) }
        }
        FaultStatus::RetryWith => Kind::Conflict,
        FaultStatus::Gone => Kind::RangeGone,
        FaultStatus::Unavailable => Kind::Unavailable,
    };
    EngineError::new(kind, "A fault rule refused the request.").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_written_as_dot_net_does() {
        assert_eq!(time_span(3_950), "00:00:03.9500000");
        assert_eq!(time_span(3_723_004), "01:02:03.0040000");
    }
}
