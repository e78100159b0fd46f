//! One request from decoded HTTP to an answer: route, decide, authorize, act, render.
//!
//! ```text
//! path ── routes ── Path ── actions ── Action ── auth ── Principal ── access ── Limits ── databases, items … ── Answer
//!                     └──────────── every step may end in an ApiError, which is rendered as JSON ──────────────┘
//! ```
//!
//! Nothing here knows a socket or a runtime; the server hands in a whole request and gets a whole response. Paths are
//! checked before credentials because a path that names nothing has nothing to protect; everything that exists or
//! might exist is looked up only for callers who have been recognised.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CONTENT_LOCATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use orrery_api::{Answered, Connection, HttpApi, Lengthy, Refusal, Summary};
use orrery_budget::Budget;
use orrery_engine::access::{Limits, Principal};
use orrery_engine::faults::{Asked, Effect, LostHalf};
use orrery_engine::{Account, Container, Database, RESULT_CACHE_BYTES_MAX, ResultCache, SQL_HOST};

use crate::access;
use crate::actions::{self, Action};
use crate::auth::{Authorizer, Claim};
use crate::config::ServiceConfig;
use crate::errors::{ApiError, Plane, RequestFacts, Result, URL_INVALID, Voice, substatus};
use crate::faults;
use crate::fields::Fields;
use crate::generation::ClientGeneration;
use crate::headers::{self, Answer, At, ServiceHeaders};
use crate::host::Host;
use crate::recording::Recorder;
use crate::request_budget::RequestBudget;
use crate::rid::ContainerRid;
use crate::routes::{OWN_TYPE, Path};
use crate::scripts::{self, ScriptHost};
use crate::{
    account, addresses, admin, advise, attachments, barriers, batch, changes, conflicts, containers,
    databases, encryption_keys, feed, forks, formats, identity, items, media, offers, partition_key_delete,
    permissions, query, ranges, scope, splits, test_controls, users,
};

/// Bodies above this are refused by whoever reads them from the network. Items end at 2 MB, batches too; the rest is
/// room for JSON that is longer than what it says.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Longest activity id that is echoed; others get one of ours.
const ACTIVITY_BYTES_MAX: usize = 64;

/// The API for one account.
pub struct Service {
    pub(crate) account: Arc<Account>,
    pub(crate) config: ServiceConfig,
    pub(crate) headers: ServiceHeaders,
    pub(crate) authorizer: Authorizer,
    pub(crate) scripts: Arc<ScriptHost>,
    /// Rows of queries that are ready before they are asked for.
    pub(crate) result_cache: Arc<ResultCache>,
    pub(crate) statements: query::Statements,
    lengthy: Lengthy,
    recorder: Option<Arc<Recorder>>,
}

impl HttpApi for Service {
    fn name(&self, _: &Uri) -> &'static str {
        "nosql"
    }

    fn body_bytes_max(&self) -> usize {
        BODY_BYTES_MAX
    }

    fn may_take_long(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
        actions::may_take_long(method, uri.path(), headers)
    }

    fn refuse_head(&self, head: &http::request::Parts, connection: &Connection) -> Option<Answered> {
        self.refused_head(head, connection)
    }

    async fn handle(&self, request: Request<Bytes>, connection: Connection) -> Answered {
        self.answer(request, &connection).await
    }

    fn refuse(&self, refusal: Refusal, _: &Uri) -> Response<Bytes> {
        match refusal {
            Refusal::BodyTooLarge => body_too_large(),
            Refusal::Overloaded => overloaded(),
            other => other.response(),
        }
    }
}

/// One request, as the handlers see it.
pub(crate) struct Context<'a> {
    pub service: &'a Service,
    pub action: Action,
    pub principal: &'a Principal,
    /// What the caller may not touch although the action is permitted. Applied in `scope`.
    pub limits: &'a Limits,
    pub path: &'a Path<'a>,
    pub fields: Fields<'a>,
    /// What the client's version of the protocol knows.
    pub generation: ClientGeneration,
    pub uri: &'a Uri,
    pub connection: &'a Connection,
    /// Memory, time and patience of the request; made by the first who asks.
    pub budget: RequestBudget<'a>,
    pub body: &'a Bytes,
    /// What a client of the direct protocol believes.
    pub direct: Option<&'a Direct<'a>>,
}

/// A request that was decoded, whichever protocol brought it.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub action: Action,
    pub method: &'a Method,
    pub path: &'a Path<'a>,
    pub fields: Fields<'a>,
    pub generation: ClientGeneration,
    pub uri: &'a Uri,
    pub connection: &'a Connection,
    pub body: &'a Bytes,
    pub direct: Option<&'a Direct<'a>>,
    pub started: Instant,
    pub now_ms: u64,
}

/// What is left of a request beside its answer.
#[derive(Default)]
pub(crate) struct Performed {
    pub budget: Option<Budget>,
    pub fault: Option<orrery_api::Fault>,
}

/// What a client of the direct protocol believes about the container that it asks: it resolves names by itself, and
/// remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Direct<'a> {
    pub container_rid: Option<&'a str>,
    /// The range whose address it uses.
    pub range: Option<u32>,
}

impl Service {
    pub fn new(account: Arc<Account>, config: ServiceConfig) -> Service {
        let authorizer = Authorizer::new(&config.keys, account.number(), config.auth_clock_skew_s);
        let headers = ServiceHeaders::new(&config.version);
        let scripts = Arc::new(ScriptHost::new(config.scripts));
        let (memory, env) = (config.memory.clone(), account.env().clone());
        let results_max = (config.memory.limit_bytes() / 8).min(RESULT_CACHE_BYTES_MAX);
        let result_cache = Arc::new(ResultCache::new(results_max));
        let host =
            Arc::new(Host { scripts: scripts.clone(), memory, env, result_cache: result_cache.clone() });
        account.set_query_host(SQL_HOST, host.clone());
        account.set_script_host(host);
        Service {
            scripts,
            result_cache,
            account,
            config,
            headers,
            authorizer,
            statements: query::Statements::default(),
            lengthy: |work| work(),
            recorder: None,
        }
    }

    /// The same service, with the server's way to run what may take long.
    pub fn with_lengthy(self, lengthy: Lengthy) -> Service {
        Service { lengthy, ..self }
    }

    /// The same service, which writes down what it is asked.
    pub fn with_recorder(self, recorder: Option<Arc<Recorder>>) -> Service {
        Service { recorder, ..self }
    }

    /// Answers a request; every failure is an answer too.
    async fn answer(&self, request: Request<Bytes>, connection: &Connection) -> Answered {
        let started = Instant::now();
        let now_ms = self.account.env().now_ms();
        let (parts, body) = request.into_parts();
        let activity = self.activity(&parts.headers);
        let generation = ClientGeneration::of(&parts.headers);
        let fields = Fields::of_headers(&parts.headers);
        let path = Path::of_uri(&parts.uri);
        let mut operation = "invalid";
        let mut performed = Performed::default();
        let outcome = match &path {
            _ if parts.method == Method::OPTIONS => {
                Err(ApiError::new(StatusCode::FORBIDDEN, Voice::Silent, "Forbidden"))
            }
            Err(_) => Err(ApiError::refused(URL_INVALID)),
            Ok(path) => match actions::decide(path.resource, &parts.method, &parts.headers) {
                // Which verbs a resource has is no secret, but who asks must be known before anything else is said.
                Err(error) => self.recognise(&parts.method, path, fields, now_ms).and_then(|_| Err(error)),
                Ok(action) => {
                    operation = action.name();
                    let wanted = Wanted {
                        action,
                        method: &parts.method,
                        path,
                        fields,
                        generation,
                        uri: &parts.uri,
                        connection,
                        body: &body,
                        direct: None,
                        started,
                        now_ms,
                    };
                    self.perform(&wanted, &mut performed).await
                }
            },
        };
        let answer = match outcome {
            Ok(answer) => answer,
            Err(error) => self.render(&error, &activity, parts.uri.path(), now_ms),
        };
        // The account and query plans are answered without an activity, as on the service.
        let named = !(answer.status.is_success() && matches!(operation, "read_account" | "plan_query"));
        let mut answered =
            finish(answer, operation, named.then_some(&activity), &parts, generation, connection, started);
        answered.budget = performed.budget;
        answered.summary.fault = performed.fault;
        answered
    }

    /// Does what a request wants, if whoever asks may have it.
    pub(crate) async fn perform(&self, wanted: &Wanted<'_>, performed: &mut Performed) -> Result<Answer> {
        let Wanted { action, method, path, fields, now_ms, .. } = *wanted;
        let (principal, limits) = self.admit(action, method, path, fields, now_ms).await?;
        let deadline = wanted.started.checked_add(self.config.request_time);
        let context = Context {
            service: self,
            action,
            principal: &principal,
            limits: &limits,
            path,
            fields,
            generation: wanted.generation,
            uri: wanted.uri,
            connection: wanted.connection,
            budget: RequestBudget::new(&self.config.memory, deadline, &wanted.connection.client),
            body: wanted.body,
            direct: wanted.direct,
        };
        let key = || scope::header_key(&context).ok();
        let asked = Asked {
            operation: action.name(),
            reads: action.is_read(),
            database: path.id(0),
            container: path.id(1),
        };
        let fault = match path.resource_type {
            OWN_TYPE => None,
            _ => self.account.faults().meet(asked, key),
        };
        performed.fault = fault.as_ref().map(|fault| orrery_api::Fault {
            rule: fault.rule.clone(),
            delay: fault.delay,
            drop: matches!(fault.effect, Effect::Lost(_)),
        });
        let outcome = match fault.map(|fault| fault.effect) {
            Some(Effect::Answer(answer)) => Err(faults::error(&answer)),
            // Nobody will see it.
            Some(Effect::Lost(LostHalf::Request)) => Ok(Answer::gateway(StatusCode::OK, &self.headers)),
            _ => dispatch(&context).await,
        };
        if let Some(recorder) = &self.recorder {
            let (status, charge_ru) = match &outcome {
                Ok(answer) => (answer.status, answer.charge_ru),
                Err(error) => (error.status, error.charge_ru.unwrap_or(0.0)),
            };
            recorder.note(&context, status.as_u16(), charge_ru);
        }
        let outcome = outcome.map(|answer| formats::in_wanted_form(&context, answer));
        performed.budget = context.budget.made().cloned();
        outcome
    }

    /// The refusal of a request that can be refused without its body, in the same words: nobody who is not known
    /// keeps the server waiting for one. Whether a grant covers an item may be a question for a partition elsewhere;
    /// such a request is judged when it is there.
    fn refused_head(&self, parts: &http::request::Parts, connection: &Connection) -> Option<Answered> {
        let started = Instant::now();
        let now_ms = self.account.env().now_ms();
        let (method, headers) = (&parts.method, &parts.headers);
        let fields = Fields::of_headers(headers);
        let mut operation = "invalid";
        let admitted = match Path::of_uri(&parts.uri) {
            Err(_) => Err(ApiError::refused(URL_INVALID)),
            Ok(path) => match actions::decide(path.resource, method, headers) {
                Err(error) => self.recognise(method, &path, fields, now_ms).and(Err(error)),
                Ok(action) => {
                    operation = action.name();
                    at_once(pin!(self.admit(action, method, &path, fields, now_ms)))?.map(drop)
                }
            },
        };
        let error = admitted.err()?;
        let activity = self.activity(headers);
        let answer = self.render(&error, &activity, parts.uri.path(), now_ms);
        let generation = ClientGeneration::of(headers);
        Some(finish(answer, operation, Some(&activity), parts, generation, connection, started))
    }

    /// The server's way to run what may take long.
    pub(crate) fn lengthy(&self) -> Lengthy {
        self.lengthy
    }

    fn recognise(
        &self,
        method: &Method,
        path: &Path<'_>,
        fields: Fields<'_>,
        now_ms: u64,
    ) -> Result<Principal> {
        let moved_ms = self.account.env().moved_ms();
        self.authorizer.recognise(&Claim { method, path, fields, now_ms, moved_ms })
    }

    /// Who asks, and within which limits.
    pub(crate) async fn admit(
        &self,
        action: Action,
        method: &Method,
        path: &Path<'_>,
        fields: Fields<'_>,
        now_ms: u64,
    ) -> Result<(Principal, Limits)> {
        let principal = self.recognise(method, path, fields, now_ms)?;
        let limits =
            access::permit(&self.account, &principal, &access::Request { action, path, fields }).await?;
        Ok((principal, limits))
    }

    /// The client's own id for the request, or a new one.
    fn activity(&self, headers: &HeaderMap) -> HeaderValue {
        if let Some(given) = headers.get(headers::ACTIVITY_ID)
            && (1..=ACTIVITY_BYTES_MAX).contains(&given.len())
            && given.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        {
            return given.clone();
        }
        let mut text = uuid::Uuid::encode_buffer();
        headers::text_value(self.random_id().hyphenated().encode_lower(&mut text))
    }

    fn random_id(&self) -> uuid::Uuid {
        let env = self.account.env();
        let mut random = [0u8; 16];
        random[..8].copy_from_slice(&env.random_u64().to_le_bytes());
        random[8..].copy_from_slice(&env.random_u64().to_le_bytes());
        uuid::Builder::from_random_bytes(random).into_uuid()
    }

    pub(crate) fn render(&self, error: &ApiError, activity: &HeaderValue, uri: &str, now_ms: u64) -> Answer {
        if let Some(cause) = &error.cause {
            tracing::warn!(status = error.status.as_u16(), message = %error.message, cause = %cause, "request failed");
        }
        let mut answer = if error.voice.is_gateway() {
            Answer::gateway(error.status, &self.headers)
        } else {
            let at = error.at.unwrap_or_else(|| At::catalog(self.account.catalog_lsn()));
            let answer = Answer::new(error.status, &self.headers);
            // A refused size never reached a partition, a throttled request was not let in.
            match error.status {
                StatusCode::PAYLOAD_TOO_LARGE => answer,
                _ => answer.at(at),
            }
        };
        if error.status == StatusCode::TOO_MANY_REQUESTS {
            answer.tells_session = false;
        }
        if let Some(charge_ru) = error.charge_ru {
            answer = answer.charge(charge_ru);
        }
        if error.substatus != 0 {
            answer = answer.set(headers::SUBSTATUS, headers::number(u64::from(error.substatus)));
            answer.substatus = error.substatus;
        }
        if let Some(retry_after_ms) = error.retry_after_ms {
            answer = answer.set(headers::RETRY_AFTER_MS, headers::number(retry_after_ms));
        }
        for (name, value) in &error.headers {
            answer = answer.set(name.clone(), value.clone());
        }
        if error.status == StatusCode::NOT_MODIFIED {
            return answer;
        }
        let facts = RequestFacts {
            activity: activity.to_str().unwrap_or_default(),
            uri,
            version: &self.config.version,
            started: httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(now_ms)),
        };
        answer.body(error.body(&facts))
    }
}

/// What comes of work that has nothing to wait for.
fn at_once<T>(work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match work.poll(&mut std::task::Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

/// The response to a request, with what the server may want to log and count.
fn finish(
    answer: Answer,
    operation: &'static str,
    activity: Option<&HeaderValue>,
    parts: &http::request::Parts,
    generation: ClientGeneration,
    connection: &Connection,
    started: Instant,
) -> Answered {
    let summary =
        Summary { operation, substatus: answer.substatus, charge_ru: answer.charge_ru, fault: None };
    let mut response = answer.finish(activity, started, generation.has_vector_sessions());
    if parts.method != Method::POST {
        response.headers_mut().insert(CONTENT_LOCATION, location(parts, connection));
    }
    Answered::new(response, summary)
}

async fn dispatch(context: &Context<'_>) -> Result<Answer> {
    match context.action {
        Action::ReadItem => items::read(context).await,
        Action::CreateItem | Action::UpsertItem => {
            unhurried(context, pin!(items::create_or_upsert(context))).await
        }
        Action::ReplaceItem => unhurried(context, pin!(items::replace(context))).await,
        Action::PatchItem => items::patch(context).await,
        Action::DeleteItem => items::delete(context).await,
        Action::Batch => unhurried(context, pin!(batch::execute(context))).await,
        Action::ListItems => feed::read(context),
        Action::ReadChanges => context.lengthy(|| changes::read(context)),
        Action::QueryItems => query::by_length(context, query::items::execute),
        Action::PlanQuery => query::by_length(context, query::plan::execute),
        Action::DeletePartitionKey => partition_key_delete::execute(context).await,
        Action::ReadAccount => account::read(context),
        Action::ListDatabases => databases::list(context),
        Action::QueryDatabases => context.lengthy(|| databases::query(context)),
        Action::CreateDatabase => databases::create(context).await,
        Action::ReadDatabase => databases::read(context),
        Action::DeleteDatabase => databases::delete(context).await,
        Action::ListContainers => containers::list(context),
        Action::QueryContainers => context.lengthy(|| containers::query(context)),
        Action::CreateContainer => containers::create(context).await,
        Action::ReadContainer => containers::read(context),
        Action::ReplaceContainer => containers::replace(context).await,
        Action::DeleteContainer => containers::delete(context).await,
        Action::ListRanges => ranges::list(context),
        Action::QueryRanges => context.lengthy(|| ranges::query(context)),
        Action::ListConflicts => conflicts::list(context),
        Action::QueryConflicts => context.lengthy(|| conflicts::query(context)),
        Action::ReadConflict | Action::DeleteConflict => conflicts::missing(context),
        Action::ListOffers => offers::list(context),
        Action::QueryOffers => context.lengthy(|| offers::query(context)),
        Action::ReadOffer => offers::read(context),
        Action::ReplaceOffer => offers::replace(context).await,
        Action::ListSplits => splits::list(context),
        Action::StartSplit => context.lengthy(|| splits::start(context)),
        Action::ReadPartitions => context.lengthy(|| admin::partitions(context)),
        Action::ReadIdentity => identity::read(context),
        Action::CheckQuery => query::check::check(context),
        Action::ReadFaults => admin::read_faults(context),
        Action::ReplaceFaults => admin::replace_faults(context),
        Action::ClearFaults => admin::clear_faults(context),
        Action::ReadThrottling => admin::read_throttling(context),
        Action::SwitchThrottling => admin::switch_throttling(context),
        Action::ReadClock => test_controls::read_clock(context),
        Action::MoveClock => test_controls::move_clock(context),
        Action::ResetAccount => test_controls::reset(context).await,
        Action::ReadAdvice => context.lengthy(|| advise::read(context)),
        Action::ListForks => forks::list(context),
        Action::CreateFork => forks::create(context).await,
        Action::DropForks => forks::drop_all(context).await,
        Action::ListUsers => users::list(context),
        Action::QueryUsers => context.lengthy(|| users::query(context)),
        Action::CreateUser | Action::UpsertUser => users::create_or_upsert(context).await,
        Action::ReadUser => users::read(context),
        Action::ReplaceUser => users::replace(context).await,
        Action::DeleteUser => users::delete(context).await,
        Action::ListPermissions => permissions::list(context),
        Action::QueryPermissions => context.lengthy(|| permissions::query(context)),
        Action::CreatePermission | Action::UpsertPermission => permissions::create_or_upsert(context).await,
        Action::ReadPermission => permissions::read(context),
        Action::ReplacePermission => permissions::replace(context).await,
        Action::DeletePermission => permissions::delete(context).await,
        Action::ListEncryptionKeys => encryption_keys::list(context),
        Action::QueryEncryptionKeys => encryption_keys::query(context),
        Action::CreateEncryptionKey => encryption_keys::create(context).await,
        Action::ReadEncryptionKey => encryption_keys::read(context),
        Action::ReplaceEncryptionKey => encryption_keys::replace(context).await,
        Action::ListScripts => scripts::resources::list(context),
        Action::QueryScripts => context.lengthy(|| scripts::resources::query(context)),
        Action::CreateScript | Action::UpsertScript => scripts::resources::create_or_upsert(context).await,
        Action::ReadScript => scripts::resources::read(context),
        Action::ReplaceScript => scripts::resources::replace(context).await,
        Action::DeleteScript => scripts::resources::delete(context).await,
        Action::ExecuteProcedure => scripts::execute::execute(context).await,
        Action::ListAttachments => attachments::list(context),
        Action::QueryAttachments => context.lengthy(|| attachments::query(context)),
        Action::CreateAttachment | Action::UpsertAttachment => attachments::create_or_upsert(context).await,
        Action::ReadAttachment => attachments::read(context),
        Action::ReplaceAttachment => attachments::replace(context).await,
        Action::DeleteAttachment => attachments::delete(context).await,
        Action::ReadMedia => media::read(context),
        Action::ReplaceMedia => media::replace(context).await,
        Action::ReadAddresses => addresses::of_container(context),
        Action::ReadCatalogAddresses => addresses::of_catalog(context),
        Action::HeadContainer => barriers::container(context),
        Action::HeadCatalog => Ok(barriers::catalog(context)),
    }
}

/// A larger body is parsed, indexed and written where that holds up nobody: up to then it takes about a millisecond.
const BODY_IN_PLACE_BYTES: usize = 32 * 1024;

/// Does what is done at once for a large body, up to the first thing to wait for, as [`Context::lengthy`] work. Takes
/// the work by reference, because it is some kilobytes.
async fn unhurried<T: Send>(
    context: &Context<'_>,
    mut work: Pin<&mut (impl Future<Output = T> + Send)>,
) -> T {
    let mut begun = context.body.len() <= BODY_IN_PLACE_BYTES;
    poll_fn(|task| match std::mem::replace(&mut begun, true) {
        false => {
            let waker = task.waker();
            context.lengthy(|| work.as_mut().poll(&mut std::task::Context::from_waker(waker)))
        }
        true => work.as_mut().poll(task),
    })
    .await
}

/// The address of what was asked for, as the client wrote it.
fn location(parts: &http::request::Parts, connection: &Connection) -> HeaderValue {
    let host = match (parts.headers.get(HOST), parts.uri.authority()) {
        (Some(host), _) => host.as_bytes(),
        (None, Some(authority)) => authority.as_str().as_bytes(),
        (None, None) => b"",
    };
    let path = parts.uri.path();
    let mut text = Vec::with_capacity(host.len() + path.len() + 8);
    text.extend_from_slice(if connection.tls { b"https://" } else { b"http://" });
    text.extend_from_slice(host);
    text.extend_from_slice(path.as_bytes());
    headers::value(text)
}

impl<'a> Context<'a> {
    /// A header as text; headers that are not UTF-8 count as absent.
    pub fn text(&self, name: HeaderName) -> Option<&'a str> {
        self.fields.text(&name)
    }

    pub fn flag(&self, name: HeaderName) -> bool {
        self.fields.flag(&name)
    }

    /// Runs what may take long where it holds up nobody. Handing over costs as much as a short query, so whoever can
    /// tell runs short work in place.
    pub fn lengthy<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let (mut work, mut result) = (Some(work), None);
        (self.service.lengthy)(&mut || result = work.take().map(|work| work()));
        result.expect("the server runs what it is given")
    }

    pub fn account(&self) -> &'a Arc<Account> {
        &self.service.account
    }

    /// The position of answers that come from the catalog.
    pub fn catalog_at(&self) -> At {
        At::catalog(self.service.account.catalog_lsn())
    }

    pub fn answer(&self, status: StatusCode) -> Answer {
        Answer::new(status, &self.service.headers).uncached()
    }

    /// The database that the path names, by name or by rid.
    pub fn database(&self) -> Result<Arc<Database>> {
        access::name(self.path.id(0))
            .find_database(self.account())
            .map_err(|error| ApiError::from_engine(error, Plane::Resources))
    }

    /// The container that the path names, by name or by rid.
    pub fn container(&self) -> Result<Arc<Container>> {
        let database = self.database()?;
        access::name(self.path.id(1))
            .find_container(&database)
            .map_err(|error| ApiError::from_engine(error, Plane::Resources))
    }

    /// The same for requests about what is inside: a client that remembers an earlier container of the same name is
    /// told so.
    pub fn container_inside(&self) -> Result<Target> {
        let container = match (self.container(), self.direct) {
            (Err(error), Some(_)) if error.status == StatusCode::NOT_FOUND => return Err(stale_name()),
            (found, _) => found?,
        };
        let rid = ContainerRid::new(container.database().number, container.number());
        let believed = self.direct.and_then(|direct| direct.container_rid);
        if believed.is_some_and(|believed| believed != rid.as_str()) {
            return Err(stale_name());
        }
        if let Some(intended) = self.text(headers::INTENDED_RID)
            && intended != rid.as_str()
        {
            let message = "The container was created again under the same name: the resource id that the request was meant for is not the present one.";
            return Err(ApiError::bad_request(message).substatus(substatus::STALE_CONTAINER));
        }
        Ok(Target { container, rid })
    }

    /// An id for what a client has given none.
    pub fn new_id(&self) -> String {
        self.service.random_id().to_string()
    }

    pub fn content_type(&self) -> &'a str {
        self.text(CONTENT_TYPE).unwrap_or("")
    }
}

/// Clients of the direct protocol resolve names themselves, and must be told when one has come to mean something else.
fn stale_name() -> ApiError {
    ApiError::new(
        StatusCode::GONE,
        Voice::Partition,
        "The container that the request was meant for is not the one that has its name now.",
    )
    .charge(0.0)
    .substatus(substatus::NAME_STALE)
}

/// A container that a request goes into.
pub(crate) struct Target {
    pub container: Arc<Container>,
    pub rid: ContainerRid,
}

impl Target {
    /// `dbs/{name}/colls/{name}`
    pub fn alt_path(&self) -> String {
        let (database, container) = (&self.container.database().name, self.container.name());
        let mut path = String::with_capacity(database.len() + container.len() + 11);
        path.push_str("dbs/");
        path.push_str(database);
        path.push_str("/colls/");
        path.push_str(container);
        path
    }
}

/// For a server that stops reading a body at [`BODY_BYTES_MAX`].
fn body_too_large() -> Response<Bytes> {
    plain(StatusCode::PAYLOAD_TOO_LARGE, "Request size is too large", None)
}

/// For a server that takes no more requests for the moment.
fn overloaded() -> Response<Bytes> {
    plain(
        StatusCode::SERVICE_UNAVAILABLE,
        "The server has no room for another request. Please retry later.",
        Some(1000),
    )
}

/// An error without a service around it.
fn plain(status: StatusCode, message: &str, retry_after_ms: Option<u64>) -> Response<Bytes> {
    let mut answer = Answer::new(status, &ServiceHeaders::new(env!("CARGO_PKG_VERSION")));
    if let Some(retry_after_ms) = retry_after_ms {
        answer = answer.set(headers::RETRY_AFTER_MS, headers::number(retry_after_ms));
    }
    let error = ApiError::new(status, Voice::Partition, message);
    let facts =
        RequestFacts { activity: "", uri: "", version: env!("CARGO_PKG_VERSION"), started: String::new() };
    answer.body(error.body(&facts)).finish(None, Instant::now(), true)
}
