//! One script on a thread of its own, over drafts of its logical partition: a procedure, or a write with triggers
//! around it.

use std::sync::Arc;

use orrery_budget::{Budget, Held};
use orrery_engine::{
    Draft, Drafted, Env, Error, LogicalPartition, Position, Script, ScriptAnswer, ScriptCall, ScriptFailure,
    ScriptFailureKind, ScriptKind, ScriptReply, ScriptStop, ScriptWork,
};
use orrery_query::QueryEnv;
use orrery_script::{Call, Claim, Failure, FailureKind, Finished, Program, Refused, Until};

use super::collection::{Charges, Items, ScriptContainer};
use super::identity::Renames;
use super::transaction::{SCRIPT_RU, Stop, Transaction};
use super::{Host, execute, triggers, udfs};
use crate::items;

/// Everything that a script needs.
pub struct Job {
    host: Host,
    over: LogicalPartition,
    call: ScriptCall,
    pub(super) place: ScriptContainer,
    env: QueryEnv,
    random: Arc<dyn Env>,
    usage: String,
    budget: Budget,
}

/// How a script ended, and what it wrote to its console.
pub(super) type Ended<T> = (Result<Drafted<T>, (Stop, f64)>, String);

impl Job {
    pub fn new(
        host: Host,
        random: Arc<dyn Env>,
        over: LogicalPartition,
        call: ScriptCall,
        budget: Budget,
    ) -> Job {
        let container = over.container();
        let env = QueryEnv {
            now_ticks: call.now_ticks,
            random_seed: call.random_seed,
            udfs: udfs::of_container(&host, container, &budget),
            budget: Some(budget.clone()),
            ..container.definition().query_env()
        };
        let mut usage = Vec::new();
        items::push_usage(&mut usage, over.position().usage);
        let usage = String::from_utf8(usage).unwrap_or_default();
        Job { place: ScriptContainer::of(container), host, over, call, env, random, usage, budget }
    }

    pub fn run(self, claim: &Claim) -> ScriptReply {
        match &self.call.work {
            ScriptWork::Procedure { id, arguments } => {
                self.reply(execute::run(&self, claim, id, arguments), |finished, renames| {
                    let Finished { response_body, held, .. } = finished;
                    (ScriptAnswer::Procedure { body: response_body.map(|body| renames.apply(body)) }, held)
                })
            }
            ScriptWork::Triggers { write, pre, post } => {
                let ended = triggers::run(&self, claim, write, [pre, post]);
                self.reply(ended, |triggers::Written { outcome, etag, body }, renames| {
                    let renamed = |text: Option<String>| text.map(|text| renames.apply(text));
                    (ScriptAnswer::Triggers { outcome, etag: renamed(etag), body: renamed(body) }, None)
                })
            }
        }
    }

    /// The reply, in which names are final.
    fn reply<T>(
        &self,
        (outcome, log): Ended<T>,
        answer: impl FnOnce(T, &Renames) -> (ScriptAnswer, Option<Held>),
    ) -> ScriptReply {
        match outcome {
            Ok(Drafted { value, charge_ru, at, rewritten }) => {
                let renames = Renames::of(&self.place.rid, &rewritten);
                let (answer, held) = answer(value, &renames);
                ScriptReply { result: Ok(answer), log: renames.apply(log), charge_ru, at, held }
            }
            Err((stop, charge_ru)) => {
                let at = self.over.position();
                let stop = match stop {
                    Stop::Failure(failure) => ScriptStop::Failed(told(failure)),
                    Stop::Engine(error) => ScriptStop::Engine(Error { at: error.at.or(Some(at)), ..error }),
                };
                ScriptReply { result: Err(stop), log, charge_ru, at, held: None }
            }
        }
    }

    /// The compiled form of a script of the container.
    pub(super) fn program(&self, kind: ScriptKind, id: &str) -> Result<Program, Stop> {
        let container = self.over.container();
        let scripts = container.scripts();
        let script: &Arc<Script> = scripts.by_id(kind, id).ok_or_else(Error::not_found)?;
        Ok(self.host.program(container, script)?)
    }

    pub(super) fn transaction<'a>(&'a self, claim: &'a Claim) -> Transaction<'a> {
        Transaction {
            over: &self.over,
            session: &self.call.session,
            class: self.call.class,
            limits: &self.host.limits,
            claim,
        }
    }

    /// Runs one program on a draft. What it writes to its console is added to the log.
    pub(super) fn run_program(
        &self,
        draft: &mut Draft<'_>,
        until: &Until,
        written: &mut Renames,
        input: Input<'_>,
        log: &mut String,
    ) -> Result<Finished, Stop> {
        draft.charge(SCRIPT_RU);
        let alt_link = self.place.alt_link();
        let call = Call {
            program: input.program,
            arguments: input.arguments,
            operation: input.operation,
            self_link: &self.place.self_link,
            alt_link: &alt_link,
            request_body: input.request_body,
            response_body: input.response_body,
            quota: items::QUOTA,
            usage: &self.usage,
            logging: self.call.logging,
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
}

/// What one program is run with.
pub(super) struct Input<'a> {
    pub(super) program: &'a Program,
    pub(super) arguments: &'a str,
    /// As `getOperationType` tells it.
    pub(super) operation: &'static str,
    pub(super) request_body: Option<&'a str>,
    pub(super) response_body: Option<&'a str>,
}

/// The reply for a script that was not run, or was given up.
pub fn not_run(why: Refused, at: Position) -> ScriptReply {
    let stop = match why {
        Refused::Busy => ScriptStop::Busy,
        Refused::Stuck => ScriptStop::Stuck,
        Refused::Closed => ScriptStop::Closed,
    };
    ScriptReply { result: Err(stop), log: String::new(), charge_ru: 0.0, at, held: None }
}

fn told(Failure { kind, exception, stack, number }: Failure) -> ScriptFailure {
    let kind = match kind {
        FailureKind::Compile => ScriptFailureKind::Compile,
        FailureKind::Threw => ScriptFailureKind::Threw,
        FailureKind::OutOfMemory => ScriptFailureKind::OutOfMemory,
        FailureKind::TimedOut => ScriptFailureKind::TimedOut,
        FailureKind::ResultTooLarge => ScriptFailureKind::ResultTooLarge,
        FailureKind::Exceeded(exceeded) => ScriptFailureKind::Exceeded(exceeded),
    };
    ScriptFailure { kind, exception, stack, number }
}
