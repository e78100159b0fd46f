//! One request from decoded HTTP to an answer: path, action, caller, work, headers.
//!
//! ```text
//! path ── routes ── Resource ── actions ── Action ── recognise ── Caller ── tables, entities, query, batch … ── Answer
//! ```
//!
//! Nothing here knows a socket or a runtime. Whatever exists is looked up only for callers who have been recognised.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use orrery_api::{Answered, Client, Connection, HttpApi, Lengthy, Refusal, Summary};
use orrery_budget::{Budget, Limits};
use orrery_engine::access::ResourceTokens;
use orrery_engine::faults::{Asked, Effect, FaultStatus, LostHalf};
use orrery_engine::{Account, Error as EngineError, Kind};
use orrery_model::{KeyComponent, PartitionKey};
use orrery_query::limits::HELD_BYTES_MAX;

use crate::access::Caller;
use crate::actions::{self, Action};
use crate::config::{DATABASE, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, TableConfig};
use crate::date_time;
use crate::dialect::Dialect;
use crate::errors::{Code, Result, TableError};
use crate::params::Params;
use crate::query::Statements;
use crate::render::{Metadata, Rendering};
use crate::routes::{self, Resource};
use crate::sas::{Circumstances, Token};
use crate::shared_key::{Authorization, Signed, SigningKey};
use crate::{account_properties, batch, cors, entities, query, resource_token, tables};

/// Largest body: a batch of storage.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The version of the protocol that answers name.
const VERSION: HeaderValue = HeaderValue::from_static("2019-02-02");
const X_MS_VERSION: HeaderName = HeaderName::from_static("x-ms-version");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-request-id");
const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
const REQUEST_CHARGE: HeaderName = HeaderName::from_static("x-ms-request-charge");
const ERROR_CODE: HeaderName = HeaderName::from_static("x-ms-error-code");
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("x-ms-retry-after-ms");
const NO_SNIFF: HeaderName = HeaderName::from_static("x-content-type-options");
const HTTP_METHOD: HeaderName = HeaderName::from_static("x-http-method");
const RETRY_AFTER_MS_DEFAULT: u64 = 100;

/// First segments of the NoSQL API's paths: an account of such a name has no path style on a shared port.
const OTHER_PATHS: [&str; 7] = ["dbs", "offers", "addresses", "media", "_orrery", "health", "metrics"];

/// The Table API for one account.
pub struct TableService {
    pub(crate) account: Arc<Account>,
    pub(crate) config: TableConfig,
    pub(crate) statements: Statements,
    keys: SigningKeys,
    tokens: ResourceTokens,
    lengthy: Lengthy,
}

/// The keys of the account, ready to sign.
struct SigningKeys {
    full: Vec<SigningKey>,
    read_only: Vec<SigningKey>,
    development: Option<SigningKey>,
}

/// What an action answers.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub charge_ru: f64,
    pub budget: Option<Budget>,
}

impl Answer {
    pub fn new(status: StatusCode) -> Answer {
        Answer {
            status,
            headers: HeaderMap::with_capacity(16),
            body: Vec::new(),
            charge_ru: 0.0,
            budget: None,
        }
    }

    pub fn set(mut self, name: HeaderName, value: impl AsRef<str>) -> Answer {
        // What cannot stand in a header is left out.
        if let Ok(value) = HeaderValue::from_str(value.as_ref()) {
            self.headers.insert(name, value);
        }
        self
    }

    pub fn charge(mut self, charge_ru: f64) -> Answer {
        self.charge_ru = charge_ru;
        self
    }

    pub fn xml(self, body: String) -> Answer {
        let answer = self.set(CONTENT_TYPE, "application/xml");
        Answer { body: body.into_bytes(), ..answer }
    }
}

/// One request, as the handlers see it.
pub(crate) struct Context<'a> {
    pub service: &'a TableService,
    pub dialect: Dialect,
    pub action: Action,
    pub caller: &'a Caller,
    pub params: &'a Params<'a>,
    pub headers: &'a HeaderMap,
    pub metadata: Metadata,
    /// The name that the caller calls the account by.
    pub account_name: &'a str,
    /// The address of the account, without a slash at its end.
    pub endpoint: &'a str,
    pub connection: &'a Connection,
    pub started: Instant,
    pub body: &'a [u8],
}

impl<'a> Context<'a> {
    pub fn rendering(&self) -> Rendering<'a> {
        Rendering {
            dialect: self.dialect,
            metadata: self.metadata,
            account: self.account_name,
            endpoint: self.endpoint,
        }
    }

    pub fn header(&self, name: HeaderName) -> Option<&'a str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// An answer of JSON at the level that was asked for.
    pub fn json(&self, status: StatusCode, body: Vec<u8>) -> Answer {
        let kind = match (self.dialect, self.metadata) {
            (Dialect::Cosmos, Metadata::None) => "application/json;odata=nometadata",
            (Dialect::Cosmos, Metadata::Minimal) => "application/json;odata=minimalmetadata",
            (Dialect::Cosmos, Metadata::Full) => "application/json;odata=fullmetadata",
            (Dialect::Storage, Metadata::None) => {
                "application/json;odata=nometadata;streaming=true;charset=utf-8"
            }
            (Dialect::Storage, Metadata::Minimal) => {
                "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
            }
            (Dialect::Storage, Metadata::Full) => {
                "application/json;odata=fullmetadata;streaming=true;charset=utf-8"
            }
        };
        let mut answer = Answer::new(status);
        answer.headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        Answer { body, ..answer }
    }

    pub fn account(&self) -> &'a Arc<Account> {
        &self.service.account
    }

    /// Runs what may take long where that holds up nobody.
    pub fn lengthy<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let (mut work, mut result) = (Some(work), None);
        (self.service.lengthy)(&mut || result = work.take().map(|work| work()));
        result.expect("the server runs what it is given")
    }

    /// Memory, time and patience for one request.
    pub fn budget(&self) -> Budget {
        let limits = Limits {
            memory_bytes: HELD_BYTES_MAX,
            deadline: self.started.checked_add(self.service.config.request_time),
            ..Limits::default()
        };
        let is_gone = match self.connection.client.clone() {
            Client::Unknown => None,
            client => Some(Box::new(move || client.is_gone()) as Box<dyn Fn() -> bool + Send + Sync>),
        };
        Budget::with(self.service.config.memory.clone(), limits, is_gone)
    }
}

impl HttpApi for TableService {
    fn name(&self, _: &Uri) -> &'static str {
        "table"
    }

    fn claims(&self, uri: &Uri) -> bool {
        let path = uri.path();
        let first = path.get(1..).map_or("", |rest| rest.split_once('/').map_or(rest, |(first, _)| first));
        !OTHER_PATHS.contains(&first) && self.under_account(path).is_some()
    }

    fn body_bytes_max(&self) -> usize {
        BODY_BYTES_MAX
    }

    fn may_take_long(&self, method: &Method, uri: &Uri, _: &HeaderMap) -> bool {
        let one_entity = uri.path().ends_with("')") || uri.path().ends_with("%27)");
        method == Method::GET && !one_entity
    }

    fn refuse_head(&self, head: &Parts, connection: &Connection) -> Option<Answered> {
        // Nobody who is not known keeps the server waiting for a body.
        let known = self.head(head, connection);
        let error = self.recognise(head, &known, connection).err()?;
        Some(self.finish(Err(error), "invalid", head, &known))
    }

    async fn handle(&self, request: Request<Bytes>, connection: Connection) -> Answered {
        self.answer(request, &connection).await
    }

    fn refuse(&self, refusal: Refusal, _: &Uri) -> Response<Bytes> {
        let code = match refusal {
            Refusal::BodyTooLarge => Code::ContentLengthExceeded,
            Refusal::TimedOut => Code::OperationTimedOut,
            Refusal::Overloaded => Code::ServerBusy,
            Refusal::Defect => Code::InternalError,
            Refusal::BodyBroken | Refusal::TlsRequired | Refusal::HostInvalid | Refusal::HostForeign => {
                return refusal.response();
            }
        };
        let error = TableError::from(code);
        let mut response = Response::new(Bytes::from(error.body(Dialect::Cosmos, "", "")));
        *response.status_mut() = error.status();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

/// What is known of a request before anything is done.
struct Head<'a> {
    dialect: Dialect,
    params: Params<'a>,
    /// The path without the account.
    path: &'a str,
    account_name: &'a str,
    endpoint: String,
    conditional: bool,
    /// The same path at the primary endpoint, if the secondary one was asked.
    primary: Option<String>,
    secondary: bool,
}

/// A path of path style, taken apart.
struct UnderAccount<'p> {
    rest: &'p str,
    name: &'p str,
    secondary: bool,
}

impl TableService {
    pub fn new(account: Arc<Account>, config: TableConfig) -> TableService {
        use base64::Engine as _;
        let host = query::host(config.memory.clone());
        account.set_query_host(query::HOST, Arc::new(host));
        let development = || base64::engine::general_purpose::STANDARD.decode(DEVELOPMENT_KEY).ok();
        let signing = |keys: &[Vec<u8>]| keys.iter().filter_map(|key| SigningKey::new(key)).collect();
        let keys = SigningKeys {
            full: signing(&config.keys.full),
            read_only: signing(&config.keys.read_only),
            development: config.development.then(development).flatten().and_then(|key| SigningKey::new(&key)),
        };
        TableService {
            tokens: resource_token::tokens(&config.keys, &account, config.clock_skew_s),
            account,
            statements: Statements::default(),
            keys,
            config,
            lengthy: |work| work(),
        }
    }

    /// The same service, with the server's way to run what may take long.
    pub fn with_lengthy(self, lengthy: Lengthy) -> TableService {
        TableService { lengthy, ..self }
    }

    /// The server's way to run what may take long.
    pub(crate) fn lengthy(&self) -> Lengthy {
        self.lengthy
    }

    /// What follows the account in a path of path style, and the account's name there.
    fn under_account<'p>(&'p self, path: &'p str) -> Option<UnderAccount<'p>> {
        let under = |name: &'p str| {
            let (rest, secondary) = routes::under_account(path, name)?;
            Some(UnderAccount { rest, name, secondary })
        };
        let development = self.config.development.then_some(DEVELOPMENT_ACCOUNT);
        under(&self.config.account_name).or_else(|| under(development?))
    }

    fn head<'a>(&'a self, parts: &'a Parts, connection: &Connection) -> Head<'a> {
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let host =
            host.or_else(|| parts.uri.authority().map(|authority| authority.as_str())).unwrap_or("localhost");
        let tunnels = parts.headers.contains_key(HTTP_METHOD);
        let scheme = if connection.tls { "https" } else { "http" };
        let (path, account_name, prefix, secondary) = match self.under_account(parts.uri.path()) {
            Some(UnderAccount { rest, name, secondary }) => {
                let prefix = &parts.uri.path()[..parts.uri.path().len() - rest.len()];
                (rest, name, prefix, secondary)
            }
            None => (parts.uri.path(), self.config.account_name.as_str(), "", false),
        };
        // Longer than a slash and the name: the secondary endpoint, or more than one of them.
        let primary = (prefix.len() > account_name.len() + 1).then(|| format!("/{account_name}{path}"));
        Head {
            primary,
            secondary,
            dialect: self.config.dialect.of_request(host, tunnels),
            params: Params::parse(parts.uri.query().unwrap_or("")),
            path,
            account_name,
            endpoint: [scheme, "://", host, prefix].concat(),
            conditional: parts.headers.contains_key(http::header::IF_MATCH),
        }
    }

    async fn answer(&self, request: Request<Bytes>, connection: &Connection) -> Answered {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let head = self.head(&parts, connection);
        let mut operation = "invalid";
        let mut fault = None;
        let outcome = self.act(&parts, &head, &body, connection, started, &mut operation, &mut fault).await;
        let mut answered = self.finish(outcome, operation, &parts, &head);
        answered.summary.fault = fault;
        answered
    }

    #[allow(clippy::too_many_arguments)]
    async fn act(
        &self,
        parts: &Parts,
        head: &Head<'_>,
        body: &Bytes,
        connection: &Connection,
        started: Instant,
        operation: &mut &'static str,
        injected: &mut Option<orrery_api::Fault>,
    ) -> Result<Answer> {
        let resource = routes::parse(head.path);
        if parts.method == Method::OPTIONS {
            *operation = Action::Preflight.name();
            return cors::preflight(self, &parts.headers);
        }
        // Who asks must be known before anything is said about what was asked.
        let caller = self.recognise(parts, head, connection)?;
        let resource = resource.map_err(|error| match caller {
            Caller::Key { .. } => self.nested(error, parts, head),
            // Which tables there are is not said to those who were granted one.
            _ => error,
        })?;
        let tunnelled = parts.headers.get(HTTP_METHOD).and_then(|method| method.to_str().ok());
        let action = actions::decide(&parts.method, tunnelled, &resource, &head.params, head.conditional)?;
        *operation = action.name();
        caller.permits(&self.account, action, &resource, head.dialect).await?;
        // Cosmos DB has no endpoint that only reads.
        if head.secondary && head.dialect == Dialect::Storage && !action.is_read() {
            return Err(Code::WriteOnSecondary.into());
        }
        let format = head.params.filled("$format");
        let accept = parts.headers.get(http::header::ACCEPT).and_then(|accept| accept.to_str().ok());
        if !body.is_empty() && is_atom(&parts.headers) {
            return Err(Code::AtomFormatNotSupported.into());
        }
        let context = Context {
            service: self,
            dialect: head.dialect,
            action,
            caller: &caller,
            params: &head.params,
            headers: &parts.headers,
            metadata: Metadata::of_accept(format.or(accept).unwrap_or("")),
            account_name: head.account_name,
            endpoint: &head.endpoint,
            connection,
            started,
            body,
        };
        if let Some(fault) = self.fault(action, &resource) {
            *injected = Some(orrery_api::Fault {
                rule: fault.rule.clone(),
                delay: fault.delay,
                drop: matches!(fault.effect, Effect::Lost(_)),
            });
            match fault.effect {
                Effect::Answer(answer) => return Err(fault_error(answer.status, answer.retry_after_ms)),
                // Nobody will see it.
                Effect::Lost(LostHalf::Request) => return Ok(Answer::new(StatusCode::OK)),
                _ => {}
            }
        }
        dispatch(&context, &resource).await
    }

    /// The error for an address below a table, which names nothing. Storage takes what stands below for an entity.
    fn nested(&self, error: TableError, parts: &Parts, head: &Head<'_>) -> TableError {
        let Some((table, _)) = head.path.trim_start_matches('/').split_once('/') else { return error };
        if head.dialect == Dialect::Cosmos {
            return error;
        }
        if matches!(head.params.get("comp"), Some("properties" | "stats")) {
            return Code::InvalidQueryParameterValue.into();
        }
        if let Err(missing) = tables::find(&self.account, table, head.dialect) {
            return missing;
        }
        let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
        match parts.method {
            Method::POST if kind.starts_with("multipart/") => Code::MediaTypeNotSupported.into(),
            Method::POST => Code::PropertiesNeedValue.into(),
            _ => routes::keys_missing(),
        }
    }

    fn fault(&self, action: Action, resource: &Resource) -> Option<orrery_engine::faults::Fault> {
        let asked = Asked {
            operation: action.fault_name(),
            reads: action.is_read(),
            database: DATABASE,
            container: resource.table().unwrap_or(""),
        };
        self.account.faults().meet(asked, || match resource {
            Resource::Entity(name) => {
                Some(PartitionKey([KeyComponent::String(name.partition_key.clone())].into_iter().collect()))
            }
            _ => None,
        })
    }

    /// Who asks, by signature.
    fn recognise(&self, parts: &Parts, head: &Head<'_>, connection: &Connection) -> Result<Caller> {
        let now_ms = self.account.env().now_ms();
        let header = parts.headers.get(http::header::AUTHORIZATION).and_then(|header| header.to_str().ok());
        if let Some(authorization) = header.and_then(Authorization::parse) {
            let authorization = authorization?;
            let request = Signed {
                method: &parts.method,
                headers: &parts.headers,
                path: parts.uri.path(),
                primary: head.primary.as_deref(),
                comp: head.params.get("comp"),
            };
            let machine_ms = now_ms.saturating_sub(self.account.env().moved_ms());
            request.check_date(machine_ms / 1000, self.config.clock_skew_s)?;
            if authorization.account != head.account_name {
                return Err(Code::AuthenticationFailed.into());
            }
            if self.full_keys(head.account_name).any(|key| authorization.is_by(key, &request)) {
                return Ok(Caller::Key { read_only: false });
            }
            let read_only = self.keys.read_only.iter().filter(|_| head.account_name != DEVELOPMENT_ACCOUNT);
            return match read_only.into_iter().any(|key| authorization.is_by(key, &request)) {
                true => Ok(Caller::Key { read_only: true }),
                false => Err(Code::AuthenticationFailed.into()),
            };
        }
        if let Some(header) = header {
            let bearer = resource_token::recognise(header, &self.tokens, now_ms);
            return bearer.unwrap_or_else(|| Err(Code::AuthenticationFailed.into())).map(Caller::Bearer);
        }
        match Token::parse(&head.params) {
            None => Err(Code::NoAuthenticationInformation.into()),
            Some(token) => {
                let token = token?;
                if !token.is_by(self.full_keys(head.account_name), head.account_name) {
                    return Err(Code::AuthenticationFailed.into());
                }
                let policy = match token.policy() {
                    None => None,
                    Some((table, id)) => {
                        let policies = tables::policies_of(self, table, head.dialect)?;
                        let found = policies.into_iter().find(|policy| policy.id == id);
                        // A policy that was taken back takes its signatures with it.
                        Some(found.ok_or_else(|| TableError::from(Code::AuthenticationFailed))?)
                    }
                };
                let circumstances = Circumstances {
                    now_ticks: date_time::of_unix_seconds(now_ms / 1000),
                    tls: connection.tls,
                    peer: SocketAddr::ip(&connection.peer),
                };
                token.grant(&circumstances, policy.as_ref()).map(Caller::Signature)
            }
        }
    }

    /// The keys that open everything, under a name of the account.
    fn full_keys<'s>(&'s self, account_name: &str) -> impl Iterator<Item = &'s SigningKey> + use<'s> {
        let development = self.keys.development.as_ref().filter(|_| account_name == DEVELOPMENT_ACCOUNT);
        let own = account_name == self.config.account_name;
        self.keys.full.iter().filter(move |_| own).chain(development)
    }

    pub(crate) fn random_id(&self) -> uuid::Uuid {
        let env = self.account.env();
        let mut random = [0u8; 16];
        random[..8].copy_from_slice(&env.random_u64().to_le_bytes());
        random[8..].copy_from_slice(&env.random_u64().to_le_bytes());
        uuid::Builder::from_random_bytes(random).into_uuid()
    }

    /// The client's own id for the request if it is a guid, or a new one.
    fn request_id(&self, headers: &HeaderMap) -> uuid::Uuid {
        let given = headers.get(CLIENT_REQUEST_ID).and_then(|id| id.to_str().ok());
        given.and_then(|id| uuid::Uuid::try_parse(id).ok()).unwrap_or_else(|| self.random_id())
    }

    fn finish(
        &self,
        outcome: Result<Answer>,
        operation: &'static str,
        parts: &Parts,
        head: &Head<'_>,
    ) -> Answered {
        let mut id = uuid::Uuid::encode_buffer();
        let id: &str = self.request_id(&parts.headers).hyphenated().encode_lower(&mut id);
        let mut answer = match outcome {
            Ok(answer) => answer,
            Err(error) => self.render(&error, head.dialect, id),
        };
        let headers = &mut answer.headers;
        headers.insert(X_MS_VERSION, VERSION);
        if let Ok(id) = HeaderValue::from_str(id) {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(given) = parts.headers.get(CLIENT_REQUEST_ID).filter(|id| id.len() <= 1024) {
            headers.insert(CLIENT_REQUEST_ID, given.clone());
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(NO_SNIFF, HeaderValue::from_static("nosniff"));
        headers.insert(REQUEST_CHARGE, charge_header(answer.charge_ru));
        if parts.headers.contains_key(http::header::ORIGIN) && parts.method != Method::OPTIONS {
            cors::allow(self, &parts.method, &parts.headers, &mut answer.headers);
        }
        let summary = Summary { operation, substatus: 0, charge_ru: answer.charge_ru, fault: None };
        let mut response = Response::new(Bytes::from(answer.body));
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        let mut answered = Answered::new(response, summary);
        answered.budget = answer.budget;
        answered
    }

    fn render(&self, error: &TableError, dialect: Dialect, id: &str) -> Answer {
        if let Some(cause) = &error.cause {
            tracing::warn!(code = error.code.name(), message = %error.message, cause = %cause, "request failed");
        }
        let time = date_time::text(date_time::of_unix_seconds(self.account.env().now_ms() / 1000));
        let mut answer = Answer::new(error.status())
            .set(CONTENT_TYPE, "application/json;odata=fullmetadata")
            .set(ERROR_CODE, error.code.name())
            .charge(error.charge_ru);
        if error.code == Code::NoAuthenticationInformation {
            answer = answer.set(http::header::WWW_AUTHENTICATE, "SharedKey realm=\"table\"");
        }
        if let Some(retry_after_ms) = error.retry_after_ms {
            let seconds = Duration::from_millis(retry_after_ms).as_secs_f64().ceil().max(1.0);
            answer =
                answer.set(RETRY_AFTER_MS, retry_after_ms.to_string()).set(RETRY_AFTER, format!("{seconds}"));
        }
        answer.body = error.body(dialect, id, &time);
        answer
    }
}

/// Whether a body has the format that there was before JSON. Clients of that time accept nothing else by name, and read
/// the answers in JSON that they get.
fn is_atom(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/atom+xml"))
}

/// A charge with its two decimals.
fn charge_header(charge_ru: f64) -> HeaderValue {
    // Neither negative nor infinite, whatever is said.
    let hundredths = (charge_ru * 100.0).round().max(0.0) as u64;
    let mut text = [b'0'; 24];
    let mut rest = hundredths;
    let mut at = text.len();
    while rest > 0 || at > text.len() - 4 {
        at -= 1;
        if at == text.len() - 3 {
            text[at] = b'.';
            continue;
        }
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    HeaderValue::from_bytes(&text[at..]).unwrap_or(HeaderValue::from_static("0.00"))
}

fn fault_error(status: FaultStatus, retry_after_ms: Option<u64>) -> TableError {
    let kind = match status {
        FaultStatus::Throttled => {
            Kind::Throttled { retry_after_ms: retry_after_ms.unwrap_or(RETRY_AFTER_MS_DEFAULT) }
        }
        FaultStatus::RetryWith => Kind::Conflict,
        FaultStatus::Gone => Kind::RangeGone,
        FaultStatus::Unavailable => Kind::Unavailable,
    };
    let message = match status {
        FaultStatus::Throttled => {
            "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429"
        }
        _ => "A fault rule refused the request.",
    };
    let mut error = TableError::of_entity(EngineError::new(kind, message));
    error.retry_after_ms = retry_after_ms.or(error.retry_after_ms);
    error
}

async fn dispatch(context: &Context<'_>, resource: &Resource) -> Result<Answer> {
    match (context.action, resource) {
        (Action::ListTables, _) => tables::list(context),
        (Action::CreateTable, _) => tables::create(context).await,
        (Action::ReadTable, Resource::Table(table)) => tables::read(context, table),
        (Action::DeleteTable, Resource::Table(table)) => tables::delete(context, table).await,
        (Action::ReadPolicies, Resource::Entities(table)) => tables::read_policies(context, table),
        (Action::SetPolicies, Resource::Entities(table)) => tables::set_policies(context, table).await,
        (Action::ReadEntity, Resource::Entity(name)) => entities::read(context, name).await,
        (Action::QueryEntities, Resource::Entities(table)) => query::execute(context, table),
        (Action::InsertEntity, Resource::Entities(table)) => entities::insert(context, table).await,
        (
            Action::ReplaceEntity
            | Action::InsertOrReplaceEntity
            | Action::MergeEntity
            | Action::InsertOrMergeEntity
            | Action::DeleteEntity,
            Resource::Entity(name),
        ) => entities::change(context, name).await,
        (Action::Batch, _) => batch::execute(context).await,
        (Action::ReadProperties, _) => account_properties::read(context),
        (Action::SetProperties, _) => account_properties::set(context).await,
        (Action::ReadStatistics, _) => account_properties::statistics(context),
        _ => Err(Code::MethodNotAllowed.into()),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::{charge_header, is_atom};

    #[test]
    fn atom_is_no_longer_spoken() {
        let of = |kind: &str| HeaderMap::from_iter([(http::header::CONTENT_TYPE, kind.parse().unwrap())]);
        assert!(is_atom(&of("application/atom+xml;type=entry")));
        assert!(!is_atom(&of("application/json")) && !is_atom(&HeaderMap::new()));
    }

    #[test]
    fn a_charge_has_two_decimals() {
        for (charge_ru, text) in [
            (0.0, "0.00"),
            (1.0, "1.00"),
            (0.38, "0.38"),
            (6.666_666, "6.67"),
            (10.0, "10.00"),
            (1234.5, "1234.50"),
            (f64::NAN, "0.00"),
            (-1.0, "0.00"),
            (f64::INFINITY, "184467440737095516.15"),
        ] {
            assert_eq!(charge_header(charge_ru), text, "{charge_ru}");
        }
    }
}
