//! What is done around every command: who may, which session and transaction, failures on purpose, what replies end
//! with.

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_api::{Fault, Summary};
use orrery_engine::faults::{Asked, Effect as FaultEffect, FaultStatus, LostHalf};
use orrery_mongo::{Bson, Document, Error, Result, doc, error::code};
use parking_lot::Mutex;

use super::concerns::{check_read_concern, concern_error, moment_of};
use super::{Call, Client, Command, LastCommand, TABLE, Work, options};
use crate::auth::{self, Access};
use crate::collection::Spent;
use crate::collection::past::Moment;
use crate::collection::transaction::Transaction;
use crate::config::AuthMode;
use crate::control::Control;
use crate::failpoints::{Effect, is_resumable, is_retryable};
use crate::operations::{Caller, Ended};
use crate::reply::{Reply, of_error};
use crate::service::Core;
use crate::sessions::{self, Retry, SessionId};
use crate::wire::Request;

/// What a transaction began from is gone: it may be tried anew as a whole.
const SNAPSHOT_UNAVAILABLE: i32 = 246;

/// Where a command is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the thread of its connection: it has nothing to wait for.
    Here,
    /// It waits for the store, and not for long.
    Aside,
    /// It may read much: when its turn comes.
    Long,
}

/// A command on its way.
pub struct Prepared {
    body: Document,
    database: String,
    state: State,
    effect: Option<Effect>,
    fault: Option<Fault>,
    pause: Option<Duration>,
    control: Arc<Control>,
    spent: Arc<Spent>,
    session: Option<SessionId>,
    txn_number: Option<i64>,
    transactional: bool,
    transaction: Option<Arc<Mutex<Transaction>>>,
    moment: Option<((u32, u32), Arc<Moment>)>,
    began: Instant,
    streams: bool,
    /// Opens a change stream or goes on with one.
    change_stream: bool,
}

enum State {
    Run(&'static Command),
    Done(&'static str, Result<Reply>),
}

/// What became of a command.
pub struct Outcome {
    pub reply: Vec<u8>,
    pub summary: Summary,
    pub status: u16,
    pub hangs_up: bool,
    /// There is more, for clients that take replies without asking.
    pub more: bool,
    /// Whether it may be packed.
    pub packs: bool,
}

impl Outcome {
    pub fn defect() -> Outcome {
        let error = Error::new(code::INTERNAL_ERROR, "The server failed while answering; its log says more.");
        Outcome {
            reply: refusal(&error, false),
            summary: Summary::of("defect"),
            status: 500,
            hangs_up: false,
            more: false,
            packs: false,
        }
    }
}

/// An error as a whole reply.
pub fn refusal(error: &Error, legacy: bool) -> Vec<u8> {
    let mut document = of_error(error, &[]);
    if legacy {
        document.push_front("$err", error.message.to_string());
    }
    Reply::Document(document).write(&Document::new())
}

/// The command of a name.
pub fn find(name: &str) -> Option<&'static Command> {
    TABLE.iter().find(|command| command.name == name || command.aliases.contains(&name))
}

impl Prepared {
    /// How long to wait before it is run.
    pub fn pause(&mut self) -> Option<Duration> {
        self.pause.take()
    }

    pub fn place(&self) -> Place {
        match &self.state {
            State::Done(..) => Place::Here,
            State::Run(command) if command.work == Work::Little => Place::Here,
            State::Run(command) => match command.name {
                "insert" | "commitTransaction" | "createUser" => Place::Aside,
                "find" if has_id(self.body.get("filter")) => Place::Aside,
                "findAndModify" if has_id(self.body.get("query")) => Place::Aside,
                "update" if all_have_id(self.body.get("updates")) => Place::Aside,
                "delete" if all_have_id(self.body.get("deletes")) => Place::Aside,
                _ => Place::Long,
            },
        }
    }
}

fn has_id(filter: Option<&Bson>) -> bool {
    let id = filter.and_then(Bson::as_document).and_then(|filter| filter.get("_id"));
    id.is_some_and(|id| !matches!(id, Bson::Document(_) | Bson::Regex(_)))
}

fn all_have_id(statements: Option<&Bson>) -> bool {
    let statements = statements.and_then(Bson::as_array).unwrap_or_default();
    statements.len() <= 16
        && statements.iter().all(|one| has_id(one.as_document().and_then(|one| one.get("q"))))
}

/// Looks at everything of a command but what it does.
pub fn prepare(core: &Arc<Core>, client: &mut Client, request: Request) -> Prepared {
    let control = Control::new();
    control.begin(client.alive.clone(), core.config.request_time);
    let database = match request.body.get("$db").and_then(Bson::as_str) {
        Some(name) => name.to_owned(),
        None => request.database.clone().unwrap_or_default(),
    };
    let streams = request.flags & crate::wire::EXHAUST_ALLOWED != 0;
    let mut prepared = Prepared {
        body: request.body,
        database,
        state: State::Done("unknown", Ok(Reply::NotYet)),
        effect: None,
        fault: None,
        pause: None,
        control,
        spent: Arc::default(),
        session: None,
        txn_number: None,
        transactional: false,
        transaction: None,
        moment: None,
        began: Instant::now(),
        streams,
        change_stream: false,
    };
    let name = prepared.body.first().map(|(name, _)| name.clone()).unwrap_or_else(|| "".into());
    let Some(command) = find(&name) else {
        let shown: String = name.chars().take(128).collect();
        let error = Error::new(code::COMMAND_NOT_FOUND, format!("no such command: '{shown}'"));
        prepared.state = State::Done("unknown_command", Err(error));
        return prepared;
    };
    prepared.change_stream = is_change_stream(core, &prepared.body, command.name);
    prepared.state = match permit(core, client, command, &mut prepared) {
        Ok(None) => State::Run(command),
        Ok(Some(reply)) => State::Done(command.name, Ok(Reply::Document(reply))),
        Err(error) => State::Done(command.name, Err(error)),
    };
    prepared
}

fn is_change_stream(core: &Core, body: &Document, name: &str) -> bool {
    match name {
        "getMore" => {
            let id = body.first().and_then(|(_, id)| id.as_i64());
            id.is_some_and(|id| core.cursors.is_change_stream(id))
        }
        "aggregate" => super::change_stream::asked(stages_of(body)).is_some(),
        _ => false,
    }
}

fn stages_of(body: &Document) -> &[Bson] {
    body.get("pipeline").and_then(Bson::as_array).unwrap_or_default()
}

/// Whether the pipeline of a command writes its rows into a collection.
fn writes_rows(body: &Document) -> bool {
    let last = stages_of(body).last().and_then(Bson::as_document);
    last.is_some_and(|stage| stage.contains("$out") || stage.contains("$merge"))
}

fn permit(
    core: &Arc<Core>,
    client: &mut Client,
    command: &'static Command,
    prepared: &mut Prepared,
) -> Result<Option<Document>> {
    if core.config.auth == AuthMode::Required {
        auth::check(client.identity.as_ref(), command.access, command.name, &prepared.database)?;
    }
    if prepared.database.is_empty() {
        return Err(Error::new(40571, "OP_MSG requests require a $db argument"));
    }
    check_api(&prepared.body, command)?;
    if let Some(time) = prepared.body.get("$clusterTime").and_then(Bson::as_document).and_then(|time| time.get("clusterTime"))
        && let Bson::Timestamp { seconds, increment } = time
        // A time that nobody can have seen is not believed.
        && *seconds <= core.account.env().now_s().saturating_add(365 * 24 * 3600)
    {
        core.clock.seen((*seconds, *increment));
    }
    if let Some(ms) = options::number(&prepared.body, "maxTimeMS")? {
        if ms < 0 {
            return Err(Error::bad_value(format!(
                "BSON field 'maxTimeMS' value must be >= 0, actual value '{ms}'"
            )));
        }
        if ms > 0 && core.fail_points.meet_time() {
            return Err(Error::new(code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"));
        }
        if ms > 0 && command.name != "getMore" {
            let time =
                Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX)).min(core.config.request_time);
            prepared.control.begin(client.alive.clone(), time);
        }
    }
    if let Some(effect) = (command.name != "configureFailPoint")
        .then(|| {
            core.fail_points.meet(
                prepared.body.first().map_or(command.name, |(name, _)| name),
                client.app_name.as_deref().or_else(|| app_name_in(&prepared.body)),
            )
        })
        .flatten()
    {
        prepared.pause = effect.block;
        let closes = effect.close;
        let failure = effect.failure(command.name);
        prepared.effect = Some(effect);
        prepared.session_of(core)?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        if closes {
            return Err(Error::new(code::HOST_UNREACHABLE, "the connection is closed by a fail point"));
        }
    }
    prepared.session_of(core)?;
    meet_fault(core, command, prepared)?;
    prepared.begin_transaction(core, command)?;
    core.moments.retire();
    if let Some(concern) = options::document(&prepared.body, "readConcern")? {
        check_read_concern(concern, prepared.change_stream, writes_rows(&prepared.body))?;
        let reads = matches!(command.name, "find" | "aggregate" | "distinct");
        if options::text(concern, "level")? == Some("snapshot") && reads && !prepared.transactional {
            prepared.moment = Some(moment_of(core, concern, &prepared.database)?);
        }
    }
    let retryable = matches!(command.name, "insert" | "update" | "delete" | "findAndModify" | "bulkWrite");
    if let (Some(session), Some(number), false, true) =
        (prepared.session, prepared.txn_number, prepared.transactional, retryable)
        && let Retry::Done(reply) =
            core.sessions.begin_write(session, number, &prepared.what(command.name))?
    {
        return Ok(Some(reply));
    }
    if retryable
        && prepared.txn_number.is_some()
        && !prepared.transactional
        && let Some(before) = core.fail_points.meet_write()
    {
        prepared.effect = Some(Effect { close: true, ..Effect::default() });
        if before {
            return Err(Error::new(code::HOST_UNREACHABLE, "the connection is closed by a fail point"));
        }
    }
    Ok(None)
}

/// What a client calls itself in its first `hello`.
fn app_name_in(body: &Document) -> Option<&str> {
    let application = body.get("client")?.as_document()?.get("application")?.as_document()?;
    application.get("name")?.as_str()
}

fn check_api(body: &Document, command: &Command) -> Result<()> {
    let Some(version) = body.get("apiVersion") else {
        if body.contains("apiStrict") || body.contains("apiDeprecationErrors") {
            return Err(Error::new(
                4886600,
                "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion",
            ));
        }
        return Ok(());
    };
    if version.as_str() != Some("1") {
        let shown = version.as_str().unwrap_or_default();
        return Err(Error::new(
            code::API_VERSION_ERROR,
            format!("API version must be \"1\", got \"{shown}\""),
        ));
    }
    if body.get("apiStrict").is_some_and(Bson::is_truthy) && !command.stable {
        return Err(Error::new(
            code::API_STRICT_ERROR,
            format!("Provided apiStrict:true, but the command {} is not in API Version 1.", command.name),
        ));
    }
    if body.get("apiStrict").is_some_and(Bson::is_truthy) {
        const OUTSIDE: [&str; 6] = [
            "$currentOp",
            "$indexStats",
            "$listLocalSessions",
            "$listSessions",
            "$planCacheStats",
            "$search",
        ];
        let mut names = stages_of(body).iter().filter_map(|stage| stage.as_document()?.first());
        if let Some((name, _)) = names.find(|(name, _)| OUTSIDE.contains(&name.as_ref())) {
            return Err(Error::new(
                code::API_STRICT_ERROR,
                format!("stage {name} is not allowed with 'apiStrict: true' in API Version 1"),
            ));
        }
    }
    Ok(())
}

impl Prepared {
    /// What a retryable write is told from another of the same number by.
    fn what(&self, name: &str) -> String {
        let argument = self.body.first().and_then(|(_, value)| value.as_str()).unwrap_or_default();
        format!("{name} {}.{argument}", self.database)
    }

    fn session_of(&mut self, core: &Core) -> Result<()> {
        if self.session.is_some() {
            return Ok(());
        }
        self.session = self.body.get("lsid").and_then(sessions::id_of);
        self.txn_number = self.body.get("txnNumber").and_then(Bson::as_i64);
        self.transactional =
            self.body.get("autocommit").is_some_and(|commits| commits.as_bool() == Some(false));
        if let Some(session) = self.session {
            core.sessions.touch(session)?;
        }
        if self.txn_number.is_some() && self.session.is_none() {
            return Err(Error::new(
                code::INVALID_OPTIONS,
                "Transaction number requires a session ID to also be specified",
            ));
        }
        Ok(())
    }

    fn begin_transaction(&mut self, core: &Core, command: &Command) -> Result<()> {
        if !self.transactional || matches!(command.name, "commitTransaction" | "abortTransaction") {
            return Ok(());
        }
        let (Some(session), Some(number)) = (self.session, self.txn_number) else {
            return Err(Error::new(code::INVALID_OPTIONS, "'autocommit' needs a session and a 'txnNumber'"));
        };
        let starts = self.body.get("startTransaction").is_some_and(Bson::is_truthy);
        if !command.in_transactions {
            return Err(Error::new(
                code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                format!("Cannot run '{}' in a multi-document transaction.", command.name),
            ));
        }
        if command.name == "aggregate" && writes_rows(&self.body) {
            return Err(Error::new(
                code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                "$out and $merge cannot be used in a transaction",
            ));
        }
        if self.body.contains("writeConcern") {
            return Err(Error::new(
                code::INVALID_OPTIONS,
                "writeConcern is not allowed within a multi-statement transaction",
            ));
        }
        let transaction = core.sessions.transaction(session, number, starts)?;
        if starts {
            let moment = Moment::of_database(core.catalog.database(core, &self.database))?;
            transaction.lock().moment = Some(Arc::new(moment));
        }
        self.transaction = Some(transaction);
        Ok(())
    }
}

/// A fault that the operator asked for, whichever api a request comes through.
fn meet_fault(core: &Core, command: &Command, prepared: &mut Prepared) -> Result<()> {
    if !matches!(command.access, Access::Read | Access::Write) {
        return Ok(());
    }
    let reads = command.access == Access::Read;
    let container = prepared.body.first().and_then(|(_, value)| value.as_str()).unwrap_or_default();
    let asked = Asked {
        operation: if reads { "query_items" } else { "create_item" },
        reads,
        database: &prepared.database,
        container,
    };
    let Some(fault) = core.account.faults().meet(asked, || None) else { return Ok(()) };
    prepared.pause = Some(prepared.pause.unwrap_or_default() + fault.delay);
    let drops = matches!(fault.effect, FaultEffect::Lost(_));
    prepared.fault = Some(Fault { rule: fault.rule.clone(), delay: fault.delay, drop: drops });
    match fault.effect {
        FaultEffect::Answer(answer) => Err(match answer.status {
            FaultStatus::Throttled => crate::errors::throttled(answer.retry_after_ms.unwrap_or(100)),
            FaultStatus::RetryWith => sessions::conflict(),
            FaultStatus::Gone => {
                Error::new(code::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE, "A fault rule refused the request.")
            }
            FaultStatus::Unavailable => {
                Error::new(code::SHUTDOWN_IN_PROGRESS, "A fault rule refused the request.")
            }
        }),
        FaultEffect::Lost(LostHalf::Request) => {
            Err(Error::new(code::HOST_UNREACHABLE, "A fault rule has lost the request."))
        }
        _ => Ok(()),
    }
}

/// Runs a command; `None`: there is nothing yet, ask again.
pub fn run(core: &Arc<Core>, client: &mut Client, prepared: &mut Prepared) -> Option<Outcome> {
    let is_long = prepared.place() == Place::Long;
    let (name, result, more, ran) = match &mut prepared.state {
        State::Done(name, result) => (*name, std::mem::replace(result, Ok(Reply::NotYet)), false, None),
        State::Run(command) => {
            let command = *command;
            let mut call = Call {
                core,
                client,
                command,
                body: &prepared.body,
                database: &prepared.database,
                session: prepared.session,
                transaction: prepared.transaction.clone(),
                txn_number: prepared.txn_number,
                moment: prepared.moment.clone(),
                control: &prepared.control,
                spent: &prepared.spent,
                waited: prepared.began.elapsed(),
                streams: prepared.streams,
                more: false,
            };
            let listed = (is_long || command.name == "currentOp").then(|| {
                let (caller, now_ms) = (caller_of(call.client), core.now_ms());
                core.operations.begin(command.name, call.database, call.body, caller, call.control, now_ms)
            });
            let result = (command.run)(&mut call).map_err(|error| call.control.explain(error));
            listed.inspect(|number| core.operations.end(*number));
            let more = call.more;
            if matches!(result, Ok(Reply::NotYet)) {
                return None;
            }
            let writes = command.access == Access::Write;
            let ended = Ended { name: command.name, database: call.database, body: call.body, writes };
            core.operations.ended(ended, prepared.began.elapsed(), || caller_of(call.client), core.now_ms());
            (command.name, result, more, Some(command))
        }
    };
    let took = prepared.began.elapsed();
    if name != "getLastRequestStatistics" {
        client.last =
            LastCommand { name, charge_ru: prepared.spent.charge_ru(), took_ms: took.as_secs_f64() * 1e3 };
    }
    Some(finish(core, prepared, name, result, more, ran))
}

fn caller_of(client: &Client) -> Caller {
    Caller { client: client.peer.to_string(), connection: client.number, app_name: client.app_name.clone() }
}

fn finish(
    core: &Core,
    prepared: &mut Prepared,
    name: &'static str,
    result: Result<Reply>,
    more: bool,
    ran: Option<&'static Command>,
) -> Outcome {
    let mut summary = Summary::of(name);
    summary.charge_ru = prepared.spent.charge_ru();
    summary.fault = prepared.fault.take();
    let effect = prepared.effect.take().unwrap_or_default();
    let hangs_up = effect.close || summary.fault.as_ref().is_some_and(|fault| fault.drop);
    let mut reply = match result {
        Ok(reply) => reply,
        Err(error) => {
            let mut labels: Vec<&str> = Vec::new();
            if prepared.transactional
                && ran.is_some()
                && name != "commitTransaction"
                && name != "abortTransaction"
            {
                // A transaction that has seen an error is over.
                if let (Some(session), Some(number)) = (prepared.session, prepared.txn_number) {
                    core.sessions.end(session, number, false);
                    if let Some(transaction) = &prepared.transaction {
                        super::hidden::settle(core, transaction, false);
                    }
                }
            }
            match &effect.labels {
                Some(given) => labels.extend(given.iter().map(String::as_str)),
                // What a test makes of a `getMore` from outside is no trouble of the stream itself.
                None if prepared.change_stream
                    && name == "getMore"
                    && effect.error.is_some()
                    && !effect.inside => {}
                None => labels.extend(labels_of(prepared, name, error.code)),
            }
            let status = status_of(error.code);
            summary.substatus = u32::try_from(error.code).unwrap_or(0);
            let mut document = of_error(&error, &labels);
            // What a concern cannot have is told beside what went wrong.
            if ran.is_some_and(|command| command.access == Access::Write)
                && !prepared.transactional
                && let Some(concern) = concern_error(&prepared.body)
            {
                document.push("writeConcernError", concern);
            }
            let mut tail = tail(core);
            tail.remove("ok");
            return Outcome {
                reply: Reply::Document(document).write(&tail),
                summary,
                status,
                hangs_up,
                more: false,
                packs: packs(name),
            };
        }
    };
    if let Reply::Document(document) = &mut reply {
        if let (Some(session), Some(number), false, Some(command)) =
            (prepared.session, prepared.txn_number, prepared.transactional, ran)
            && command.access == Access::Write
        {
            core.sessions.wrote(session, number, &prepared.what(command.name), document);
        }
        let concern = effect.write_concern_error.map(Bson::Document).or_else(|| {
            let writes = ran
                .is_some_and(|command| command.access == Access::Write || writes_rows(&prepared.body))
                && !prepared.transactional;
            writes.then(|| concern_error(&prepared.body)).flatten()
        });
        if let Some(mut concern) = concern {
            let failure =
                concern.as_document().and_then(|concern| concern.get("code")).and_then(Bson::as_i64);
            let retryable = failure.and_then(|number| i32::try_from(number).ok()).is_some_and(is_retryable);
            let mut labels: Vec<Bson> = Vec::new();
            match &effect.labels {
                Some(given) => labels.extend(given.iter().map(|label| Bson::from(label.as_str()))),
                None if retryable
                    && prepared.txn_number.is_some()
                    && (!prepared.transactional || ends(name)) =>
                {
                    labels.push("RetryableWriteError".into())
                }
                None => {}
            }
            if let Bson::Document(concern) = &mut concern
                && let Some(given) = concern.remove("errorLabels")
                && let Some(given) = given.as_array()
            {
                labels = given.to_vec();
            }
            document.push("writeConcernError", concern);
            if !labels.is_empty() {
                document.push("errorLabels", Bson::array(labels));
            }
        }
    }
    let mut tail = tail(core);
    match &reply {
        Reply::Document(document) if document.contains("ok") => drop(tail.remove("ok")),
        // `$out` and `$merge` answer with a cursor over nothing.
        Reply::Batch(_) if ran.is_some() && writes_rows(&prepared.body) => {
            concern_error(&prepared.body).into_iter().for_each(|error| tail.push("writeConcernError", error));
        }
        _ => {}
    }
    Outcome { reply: reply.write(&tail), summary, status: 200, hangs_up, more, packs: packs(name) }
}

/// Secrets and what comes before compression is agreed are never packed.
fn packs(name: &str) -> bool {
    !matches!(
        name,
        "hello" | "saslStart" | "saslContinue" | "getnonce" | "authenticate" | "createUser" | "updateUser"
    )
}

fn ends(name: &str) -> bool {
    matches!(name, "commitTransaction" | "abortTransaction")
}

fn labels_of(prepared: &Prepared, name: &str, number: i32) -> Vec<&'static str> {
    let retryable = is_retryable(number);
    if prepared.change_stream && is_resumable(number) {
        return vec!["ResumableChangeStreamError"];
    }
    if prepared.transactional && !ends(name) {
        let transient = retryable
            || matches!(
                number,
                code::WRITE_CONFLICT
                    | code::NO_SUCH_TRANSACTION
                    | code::LOCK_TIMEOUT
                    | SNAPSHOT_UNAVAILABLE
                    | code::REQUEST_RATE_TOO_LARGE
            );
        return if transient { vec!["TransientTransactionError"] } else { Vec::new() };
    }
    if ends(name) {
        return match number {
            _ if retryable => vec!["RetryableWriteError"],
            code::NO_SUCH_TRANSACTION | code::WRITE_CONFLICT | code::LOCK_TIMEOUT | SNAPSHOT_UNAVAILABLE => {
                vec!["TransientTransactionError"]
            }
            _ => Vec::new(),
        };
    }
    if prepared.txn_number.is_some() && retryable {
        return vec!["RetryableWriteError"];
    }
    Vec::new()
}

/// What every reply ends with.
fn tail(core: &Core) -> Document {
    let (seconds, increment) = core.cluster_time();
    let time = Bson::Timestamp { seconds, increment };
    let nothing: Arc<[u8]> = vec![0; 20].into();
    doc! {
        "ok" => 1.0,
        "$clusterTime" => doc! {
            "clusterTime" => time.clone(),
            "signature" => doc! { "hash" => Bson::Binary { subtype: 0, bytes: nothing }, "keyId" => 0i64 },
        },
        "operationTime" => time,
    }
}

/// The class that log and metrics count an error in.
fn status_of(number: i32) -> u16 {
    match number {
        code::UNAUTHORIZED | code::AUTHENTICATION_FAILED => 401,
        code::NAMESPACE_NOT_FOUND | code::CURSOR_NOT_FOUND | code::COMMAND_NOT_FOUND => 404,
        code::DUPLICATE_KEY | code::WRITE_CONFLICT => 409,
        code::REQUEST_RATE_TOO_LARGE => 429,
        code::MAX_TIME_MS_EXPIRED => 408,
        code::INTERNAL_ERROR => 500,
        code::SHUTDOWN_IN_PROGRESS => 503,
        _ => 400,
    }
}
