//! Errors on the wire: status, substatus, headers and a JSON body that every client can read.
//!
//! The body is always `{"code":…,"message":…}`. Who detected the error shows in the message and in the headers:
//! what the gateway refuses is a plain sentence and carries no charge and no session token; what a partition refuses
//! is wrapped as `Message: {"Errors":["…"]}`; and what a partition says about one item (missing, taken, precondition)
//! is a sentence followed by timings. Clients and their test suites look for these texts, so they are the service's.
//!
//! `status_of` is the one place where `engine::Kind` meets a status code, `words` the one where it meets the service's
//! texts, and `exceeded` the one where a used-up budget meets both. `from_engine` puts them together; operations of
//! batches and scripts, whose answers have another form, use them by themselves.

use http::{HeaderName, HeaderValue, StatusCode};
use orrery_budget::Exceeded;
use orrery_engine::charge::{THROTTLED_RU, catalog};
use orrery_engine::{Error as EngineError, Kind};

use crate::headers::At;
use crate::write::push_json_string;

/// When a request that found no memory may come again: answers are sent, and with them memory comes back, in less.
const SHORT_OF_MEMORY_RETRY_MS: u64 = 1000;

/// 449 has no name in the http crate.
pub const RETRY_WITH: u16 = 449;

pub const ENTITY_NOT_FOUND: &str = "Entity with the specified id does not exist in the system. More info: https://aka.ms/cosmosdb-tsg-not-found";
pub const ENTITY_EXISTS: &str = "Entity with the specified id already exists in the system.";
pub const ENTITY_PRECONDITION: &str =
    "Operation cannot be performed because one of the specified precondition is not met.";
pub const PAYLOAD_INVALID: &str =
    "The request payload is invalid. Ensure to provide a valid request payload.";
pub const INPUT_INVALID: &str = "One of the specified inputs is invalid";
/// The words for a resource that is not there, a name that is taken, and an etag that is not the current one.
pub const NOT_FOUND: &str = "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found";
pub const ALREADY_EXISTS: &str = "Resource with specified id, name, or unique index already exists.";
pub const PRECONDITION_FAILED: &str = "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed";
const KEY_OF_ITEM: &str = "PartitionKey extracted from document doesn't match the one specified in the header. Learn more: https://aka.ms/CosmosDB/sql/errors/wrong-pk-value";
const KEY_TOO_LONG: &str = "The partition key supplied in x-ms-partitionkey header has more components than defined in the the collection.";
pub const KEY_TOO_SHORT: &str = "The partition key supplied in x-ms-partitionkey header has fewer components than defined in the the collection.";
pub const KEY_MISMATCH: &str = "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key field values specified in the document.";
pub const CONTINUATION_INVALID: &str = "Invalid Continuation Token";
pub const URL_INVALID: &str = "Request url is invalid.";

/// Substatus codes that this server sends.
pub mod substatus {
    pub const PARTITION_KEY_MISMATCH: u32 = 1001;
    /// Of the direct protocol: the client resolved a name that has another meaning now.
    pub const NAME_STALE: u32 = 1000;
    pub const RANGE_GONE: u32 = 1002;
    /// Of the direct protocol: the address is of a range that others have taken over.
    pub const COMPLETING_SPLIT: u32 = 1007;
    pub const SESSION_AHEAD: u32 = 1002;
    pub const CROSS_PARTITION_QUERY: u32 = 1004;
    pub const PARTITION_FULL: u32 = 1014;
    pub const STALE_CONTAINER: u32 = 1024;
    pub const PATCH_CONDITION: u32 = 1110;
    pub const THROTTLED: u32 = 3200;
}

/// Who speaks, and how the message is dressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// The gateway, in a plain sentence.
    Gateway,
    /// The gateway, in `Message: {"Errors":[…]}`.
    GatewayErrors,
    /// The gateway, with JSON of its own inside the message (query errors).
    GatewayJson,
    /// A partition, in `Message: {"Errors":[…]}`.
    Partition,
    /// A partition, with JSON of its own inside the message.
    PartitionJson,
    /// A partition about one item: a sentence followed by timings.
    Entity,
    /// A code and nothing else.
    Silent,
}

impl Voice {
    pub fn is_gateway(self) -> bool {
        matches!(self, Voice::Gateway | Voice::GatewayErrors | Voice::GatewayJson | Voice::Silent)
    }
}

/// Where an engine error came from decides its words: a missing database is a resource, a missing item an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    Resources,
    Items,
}

/// An error on its way to the client. Boxed: most requests succeed, and every result has room for it.
#[derive(Debug)]
pub struct ApiError(Box<Parts>);

#[derive(Debug)]
pub struct Parts {
    pub status: StatusCode,
    pub substatus: u32,
    pub voice: Voice,
    pub message: String,
    /// Absent where the service sends none.
    pub charge_ru: Option<f64>,
    pub retry_after_ms: Option<u64>,
    pub at: Option<At>,
    /// The query plan that accompanies a refused cross-partition query.
    pub additional_info: Option<String>,
    /// Headers that this error has besides those of every error.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// For the log; never sent.
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

pub type Result<T, E = ApiError> = std::result::Result<T, E>;

impl std::ops::Deref for ApiError {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl std::ops::DerefMut for ApiError {
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.0
    }
}

impl ApiError {
    pub fn new(status: StatusCode, voice: Voice, message: impl Into<String>) -> ApiError {
        ApiError(Box::new(Parts {
            status,
            substatus: 0,
            voice,
            message: message.into(),
            charge_ru: None,
            retry_after_ms: None,
            at: None,
            additional_info: None,
            headers: Vec::new(),
            cause: None,
        }))
    }

    /// A 400 that the gateway writes: no charge, no session token.
    pub fn refused(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, Voice::Gateway, message)
    }

    /// A 400 that a partition writes.
    pub fn bad_request(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, Voice::Partition, message).charge(0.0)
    }

    pub fn charge(mut self, charge_ru: f64) -> ApiError {
        self.charge_ru = Some(charge_ru);
        self
    }

    pub fn substatus(mut self, substatus: u32) -> ApiError {
        self.substatus = substatus;
        self
    }

    pub fn at(mut self, at: At) -> ApiError {
        self.at = Some(at);
        self
    }

    pub fn code(&self) -> &'static str {
        code(self.status)
    }

    /// Whether the client's map of ranges is old.
    pub fn is_range_gone(&self) -> bool {
        self.status == StatusCode::GONE && self.substatus == 1002
    }

    /// What the engine said, in the words of the wire.
    pub fn from_engine(error: EngineError, plane: Plane) -> ApiError {
        if error.kind == Kind::AccessDenied {
            return crate::access::insufficient();
        }
        let (status, substatus) = status_of(error.kind);
        let voice = match (error.kind, plane) {
            (Kind::SessionAhead, _) => Voice::Entity,
            (
                Kind::NotFound | Kind::AlreadyExists | Kind::UniqueKeyViolated | Kind::PreconditionFailed,
                Plane::Items,
            ) => Voice::Entity,
            _ => Voice::Partition,
        };
        let message = match words(error.kind, plane) {
            Some(words) => words.to_owned(),
            None => error.message,
        };
        let retry_after_ms = match error.kind {
            Kind::Throttled { retry_after_ms } => Some(retry_after_ms),
            _ => None,
        };
        let charge_ru = match (error.kind, plane) {
            (Kind::TooLarge, _) => None,
            (Kind::Throttled { .. }, _) => Some(THROTTLED_RU),
            (Kind::NotFound, Plane::Resources) | (Kind::OwnerNotFound, _) => Some(catalog::READ_RU),
            _ => Some(error.charge_ru),
        };
        let mut answer = ApiError::new(status, voice, message);
        answer.substatus = substatus;
        answer.charge_ru = charge_ru;
        answer.retry_after_ms = retry_after_ms;
        answer.cause = error.cause;
        answer
    }

    /// What a request was refused for that used up its budget.
    pub fn exceeded(exceeded: Exceeded) -> ApiError {
        let status = match exceeded {
            Exceeded::ProcessMemory { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Exceeded::RequestMemory { .. } | Exceeded::Answer { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Exceeded::Steps { .. } => StatusCode::BAD_REQUEST,
            Exceeded::Time | Exceeded::ClientGone => StatusCode::REQUEST_TIMEOUT,
        };
        let mut answer = ApiError::new(status, Voice::Partition, exceeded.to_string());
        answer.retry_after_ms = exceeded.is_temporary().then_some(SHORT_OF_MEMORY_RETRY_MS);
        answer
    }

    /// The body. `tail` identifies the request and the server; see `Voice` for what comes before it.
    pub fn body(&self, request: &RequestFacts<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.message.len() + 320);
        out.extend_from_slice(b"{\"code\":");
        push_json_string(&mut out, self.code());
        if self.voice != Voice::Silent {
            out.extend_from_slice(b",\"message\":");
            push_json_string(&mut out, &self.message_text(request));
        }
        if let Some(info) = &self.additional_info {
            out.extend_from_slice(b",\"additionalErrorInfo\":");
            push_json_string(&mut out, info);
        }
        out.push(b'}');
        out
    }

    fn message_text(&self, request: &RequestFacts<'_>) -> String {
        let RequestFacts { activity, uri, version, started } = request;
        let message = &self.message;
        match self.voice {
            Voice::Gateway | Voice::Silent => {
                format!("{message}\r\nActivityId: {activity}, orrery/{version}")
            }
            Voice::GatewayErrors => {
                format!("Message: {}\r\nActivityId: {activity}, orrery/{version}", errors_json(message))
            }
            Voice::GatewayJson => {
                format!("Message: {message}\r\nActivityId: {activity}, orrery/{version}")
            }
            Voice::Partition => format!(
                "Message: {}\r\nActivityId: {activity}, Request URI: {uri}, RequestStats: , SDK: orrery/{version}",
                errors_json(message)
            ),
            Voice::PartitionJson => format!(
                "Message: {message}\r\nActivityId: {activity}, Request URI: {uri}, RequestStats: , SDK: orrery/{version}"
            ),
            Voice::Entity => format!(
                "{message}, \r\nRequestStartTime: {started}, Number of regions attempted: 1\r\nActivityId: {activity}, orrery/{version}"
            ),
        }
    }
}

/// What a message says about its request.
pub struct RequestFacts<'a> {
    pub activity: &'a str,
    pub uri: &'a str,
    pub version: &'a str,
    /// When the request came in, as an HTTP date.
    pub started: String,
}

/// A message as a partition wraps it.
pub fn errors_json(message: &str) -> String {
    let mut out = b"{\"Errors\":[".to_vec();
    push_json_string(&mut out, message);
    out.extend_from_slice(b"]}");
    String::from_utf8(out).unwrap_or_default()
}

/// The service's words for a kind of error, where they are always the same. `None`: the engine's message says it.
pub fn words(kind: Kind, plane: Plane) -> Option<&'static str> {
    match (kind, plane) {
        (Kind::NotFound, Plane::Items) => Some(ENTITY_NOT_FOUND),
        (Kind::NotFound, Plane::Resources) | (Kind::OwnerNotFound, _) => Some(NOT_FOUND),
        (Kind::AlreadyExists, Plane::Items) | (Kind::UniqueKeyViolated, _) => Some(ENTITY_EXISTS),
        (Kind::AlreadyExists, Plane::Resources) => Some(ALREADY_EXISTS),
        (Kind::PreconditionFailed, Plane::Items) | (Kind::PatchConditionFailed, _) => {
            Some(ENTITY_PRECONDITION)
        }
        (Kind::PreconditionFailed, Plane::Resources) => Some(PRECONDITION_FAILED),
        (Kind::PartitionKeyMismatch, _) => Some(KEY_OF_ITEM),
        (Kind::PartitionKeyTooShort, _) => Some(KEY_TOO_SHORT),
        (Kind::PartitionKeyTooLong, _) => Some(KEY_TOO_LONG),
        _ => None,
    }
}

/// The one mapping from what went wrong to what a client sees.
pub fn status_of(kind: Kind) -> (StatusCode, u32) {
    match kind {
        Kind::NotFound => (StatusCode::NOT_FOUND, 0),
        // The service answers a missing container without a substatus through its gateway; clients that follow
        // containers recreated under the same name rely on the rid check (1024) instead.
        Kind::OwnerNotFound => (StatusCode::NOT_FOUND, 0),
        Kind::AlreadyExists | Kind::UniqueKeyViolated => (StatusCode::CONFLICT, 0),
        Kind::PreconditionFailed => (StatusCode::PRECONDITION_FAILED, 0),
        Kind::PatchConditionFailed => (StatusCode::PRECONDITION_FAILED, substatus::PATCH_CONDITION),
        Kind::NotModified => (StatusCode::NOT_MODIFIED, 0),
        Kind::BadRequest => (StatusCode::BAD_REQUEST, 0),
        Kind::PartitionKeyMismatch | Kind::PartitionKeyTooShort | Kind::PartitionKeyTooLong => {
            (StatusCode::BAD_REQUEST, substatus::PARTITION_KEY_MISMATCH)
        }
        Kind::StaleContainer => (StatusCode::BAD_REQUEST, substatus::STALE_CONTAINER),
        Kind::RangeGone => (StatusCode::GONE, substatus::RANGE_GONE),
        Kind::SessionAhead => (StatusCode::NOT_FOUND, substatus::SESSION_AHEAD),
        Kind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, 0),
        Kind::Forbidden | Kind::AccessDenied => (StatusCode::FORBIDDEN, 0),
        Kind::PartitionFull => (StatusCode::FORBIDDEN, substatus::PARTITION_FULL),
        Kind::Throttled { .. } => (StatusCode::TOO_MANY_REQUESTS, substatus::THROTTLED),
        Kind::Conflict => (StatusCode::from_u16(RETRY_WITH).expect("449 is in range"), 0),
        Kind::FailedDependency => (StatusCode::FAILED_DEPENDENCY, 0),
        Kind::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, 0),
        Kind::WritesStopped | Kind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, 0),
        // Not 503: clients take that for a request that was not carried out.
        Kind::OutcomeUnknown => (StatusCode::REQUEST_TIMEOUT, 0),
        // Not 503: clients would go on trying for a long time without saying why.
        Kind::NoRoom => (StatusCode::INSUFFICIENT_STORAGE, 0),
        Kind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, 0),
    }
}

impl From<Exceeded> for ApiError {
    fn from(exceeded: Exceeded) -> ApiError {
        ApiError::exceeded(exceeded)
    }
}

/// The word for a status in a body; clients print it and some compare it.
pub fn code(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        408 => "RequestTimeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "PreconditionFailed",
        413 => "RequestEntityTooLarge",
        424 => "FailedDependency",
        429 => "TooManyRequests",
        RETRY_WITH => "RetryWith",
        500 => "InternalServerError",
        503 => "ServiceUnavailable",
        507 => "InsufficientStorage",
        _ => "BadRequest",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(error: &ApiError) -> String {
        let facts = RequestFacts {
            activity: "A",
            uri: "/dbs/d",
            version: "1",
            started: "Mon, 01 Jan 2024".to_owned(),
        };
        String::from_utf8(error.body(&facts)).unwrap()
    }

    #[test]
    fn the_gateway_speaks_plainly() {
        assert_eq!(
            body(&ApiError::refused("Request url is invalid.")),
            r#"{"code":"BadRequest","message":"Request url is invalid.\r\nActivityId: A, orrery/1"}"#
        );
    }

    #[test]
    fn a_partition_wraps_its_message() {
        let error = ApiError::from_engine(EngineError::bad_request("say \"what\""), Plane::Items);
        assert_eq!(
            body(&error),
            r#"{"code":"BadRequest","message":"Message: {\"Errors\":[\"say \\\"what\\\"\"]}\r\nActivityId: A, Request URI: /dbs/d, RequestStats: , SDK: orrery/1"}"#
        );
        assert_eq!(error.charge_ru, Some(0.0));
    }

    #[test]
    fn the_same_kind_has_other_words_for_items_and_for_resources() {
        let item = ApiError::from_engine(EngineError::not_found(), Plane::Items);
        assert!(
            body(&item)
                .starts_with(r#"{"code":"NotFound","message":"Entity with the specified id does not exist"#)
        );
        let resource = ApiError::from_engine(EngineError::not_found(), Plane::Resources);
        assert!(body(&resource).contains("Resource Not Found"));
        assert_eq!(resource.charge_ru, Some(2.0));
    }

    /// Clients look for these, whatever the engine calls them.
    #[test]
    fn kinds_with_words_of_their_own_have_the_services() {
        for (kind, plane, status, words) in [
            (
                Kind::OwnerNotFound,
                Plane::Items,
                404,
                "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found",
            ),
            (
                Kind::AlreadyExists,
                Plane::Items,
                409,
                "Entity with the specified id already exists in the system.",
            ),
            (
                Kind::AlreadyExists,
                Plane::Resources,
                409,
                "Resource with specified id, name, or unique index already exists.",
            ),
            (
                Kind::UniqueKeyViolated,
                Plane::Items,
                409,
                "Entity with the specified id already exists in the system.",
            ),
            (Kind::PatchConditionFailed, Plane::Items, 412, ENTITY_PRECONDITION),
            (
                Kind::PreconditionFailed,
                Plane::Resources,
                412,
                "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed",
            ),
            (
                Kind::PartitionKeyTooShort,
                Plane::Items,
                400,
                "The partition key supplied in x-ms-partitionkey header has fewer components than defined in the the collection.",
            ),
            (
                Kind::PartitionKeyTooLong,
                Plane::Items,
                400,
                "The partition key supplied in x-ms-partitionkey header has more components than defined in the the collection.",
            ),
            (
                Kind::PartitionKeyMismatch,
                Plane::Items,
                400,
                "PartitionKey extracted from document doesn't match the one specified in the header. Learn more: https://aka.ms/CosmosDB/sql/errors/wrong-pk-value",
            ),
        ] {
            let error = ApiError::from_engine(EngineError::new(kind, "said otherwise"), plane);
            assert_eq!((error.status.as_u16(), error.message.as_str()), (status, words), "{kind:?}");
        }
        let denied = ApiError::from_engine(EngineError::new(Kind::AccessDenied, "no"), Plane::Items);
        assert_eq!((denied.status.as_u16(), denied.voice, denied.charge_ru), (403, Voice::Gateway, None));
    }

    #[test]
    fn throttling_says_when_to_come_back() {
        let error = EngineError::new(Kind::Throttled { retry_after_ms: 12 }, "Request rate is large.");
        let error = ApiError::from_engine(error, Plane::Items);
        assert_eq!((error.status.as_u16(), error.substatus, error.retry_after_ms), (429, 3200, Some(12)));
    }

    #[test]
    fn a_used_up_budget_says_what_was_short_and_whether_to_come_back() {
        for (exceeded, status, code, retry) in [
            (Exceeded::ProcessMemory { limit_bytes: 64 << 20 }, 503, "ServiceUnavailable", Some(1000)),
            (Exceeded::RequestMemory { limit_bytes: 64 << 20 }, 413, "RequestEntityTooLarge", None),
            (Exceeded::Steps { limit: 5 }, 400, "BadRequest", None),
            (Exceeded::Time, 408, "RequestTimeout", None),
            (Exceeded::ClientGone, 408, "RequestTimeout", None),
        ] {
            let error = ApiError::from(exceeded);
            assert_eq!((error.status.as_u16(), error.code(), error.retry_after_ms), (status, code, retry));
            assert!(body(&error).contains(&exceeded.to_string()), "{exceeded:?}");
        }
    }

    #[test]
    fn the_plan_travels_as_text() {
        let mut error = ApiError::refused("no");
        error.additional_info = Some(r#"{"a":1}"#.to_owned());
        assert!(body(&error).ends_with(r#","additionalErrorInfo":"{\"a\":1}"}"#));
    }
}
