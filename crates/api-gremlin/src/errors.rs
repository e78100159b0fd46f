//! What can go wrong, as clients of Cosmos DB see it: a code of TinkerPop in the frame, a code of Cosmos DB among the
//! status attributes, and a message in the service's envelope, which names the activity, the kind and the place.

use orrery_budget::Exceeded;
use orrery_engine::{DistributedFailure, Error as EngineError, Kind, QueryFailure};
use orrery_gremlin::ErrorKind;
use uuid::Uuid;

/// Codes of frames, which are TinkerPop's.
pub mod code {
    pub const SUCCESS: u16 = 200;
    pub const PARTIAL: u16 = 206;
    pub const UNAUTHORIZED: u16 = 401;
    pub const AUTHENTICATE: u16 = 407;
    pub const MALFORMED: u16 = 498;
    pub const INVALID_ARGUMENTS: u16 = 499;
    pub const SERVER_ERROR: u16 = 500;
    pub const SCRIPT: u16 = 597;
    pub const TIMEOUT: u16 = 598;
}

const SOURCE: &str = "Microsoft.Azure.Cosmos.Gremlin.Core";
const DEFAULT_RETRY_MS: u64 = 100;

/// The families of failures, each with the service's words around the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Compile,
    Runtime,
    Unsupported,
    Malformed,
    Arguments,
    Timeout,
    Memory,
    /// Of the storage below, such as a throttled or conflicting request.
    Storage,
    Unauthorized,
    Busy,
}

impl Family {
    /// Exception type, prefix of the text, context, scope, code between the layers of the service.
    fn words(self) -> [&'static str; 5] {
        match self {
            Family::Compile => [
                "GraphCompileException",
                "Gremlin Query Compilation Error: ",
                "graphcompute",
                "graphparse-translate-script",
                "QuerySyntaxError",
            ],
            Family::Runtime => [
                "GraphRuntimeException",
                "Gremlin Query Execution Error: ",
                "graphcompute",
                "graphcomp-execquery",
                "GraphRuntimeError",
            ],
            Family::Unsupported => [
                "GraphNotSupportedException",
                "Unsupported Error: ",
                "graphcompute",
                "graphcmd-invoke",
                "NotSupported",
            ],
            Family::Malformed => [
                "GraphMalformedException",
                "Gremlin Malformed Request: ",
                "global",
                "graphreq-parse",
                "MalformedRequest",
            ],
            Family::Arguments => {
                ["ArgumentException", "", "graphcompute", "graphreq-bindings", "MalformedRequest"]
            }
            Family::Timeout => [
                "GraphTimeoutException",
                "Gremlin Query Execution Error: ",
                "graphcompute",
                "graphcomp-execquery",
                "GraphTimeout",
            ],
            Family::Memory => [
                "GraphMemoryLimitException",
                "Gremlin Query Execution Error: ",
                "graphcompute",
                "graphcomp-execquery",
                "GraphMemoryLimit",
            ],
            Family::Storage => [
                "DocumentClientException",
                "Gremlin Query Execution Error: ",
                "graphcompute",
                "graphcomp-execquery",
                "DocumentClientError",
            ],
            Family::Unauthorized => ["UnauthorizedException", "", "global", "graphreq-auth", "Unauthorized"],
            Family::Busy => ["ServiceBusyException", "", "global", "graphreq-queue", "TooManyRequests"],
        }
    }
}

/// A failure, ready to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Of the frame.
    pub code: u16,
    /// `x-ms-status-code`.
    pub status: u32,
    pub substatus: u32,
    pub family: Family,
    pub text: String,
    pub retry_after_ms: Option<u64>,
    pub charge_ru: f64,
}

impl Failure {
    fn new(code: u16, status: u32, family: Family, text: impl Into<String>) -> Failure {
        Failure {
            code,
            status,
            substatus: 0,
            family,
            text: text.into(),
            retry_after_ms: None,
            charge_ru: 0.0,
        }
    }

    pub fn malformed(text: impl Into<String>) -> Failure {
        Failure::new(code::MALFORMED, 1004, Family::Malformed, text)
    }

    pub fn arguments(text: impl Into<String>) -> Failure {
        Failure::new(code::INVALID_ARGUMENTS, 1004, Family::Arguments, text)
    }

    pub fn compile(text: impl Into<String>) -> Failure {
        Failure::new(code::SCRIPT, 1000, Family::Compile, text)
    }

    pub fn runtime(text: impl Into<String>) -> Failure {
        Failure::new(code::SERVER_ERROR, 1000, Family::Runtime, text)
    }

    pub fn unsupported(text: impl Into<String>) -> Failure {
        Failure::new(code::SERVER_ERROR, 1004, Family::Unsupported, text)
    }

    pub fn unauthorized() -> Failure {
        Failure::new(
            code::UNAUTHORIZED,
            401,
            Family::Unauthorized,
            "Unauthorized: Invalid credentials provided",
        )
    }

    pub fn forbidden() -> Failure {
        Failure::new(
            code::SERVER_ERROR,
            403,
            Family::Storage,
            "Insufficient permissions provided in the authorization header for the corresponding request. Please \
             retry with another authorization header.",
        )
    }

    pub fn busy() -> Failure {
        let text = "Connection is too busy. Please retry after sometime or open more connections.";
        Failure::new(code::SERVER_ERROR, 1008, Family::Busy, text)
    }

    pub fn defect() -> Failure {
        Failure::new(
            code::SERVER_ERROR,
            500,
            Family::Runtime,
            "The server failed while answering; its log says more.",
        )
    }

    /// The whole message.
    pub fn message(&self, activity: Uuid, request: Uuid) -> String {
        let [exception, prefix, context, scope, interop] = self.family.words();
        if self.family == Family::Unauthorized {
            return self.text.clone();
        }
        format!(
            "\r\n\nActivityId : {activity}\nExceptionType : {exception}\nExceptionMessage :\r\n\t{prefix}{}\r\n\
             \tSource : {SOURCE}\r\n\tGremlinRequestId : {request}\r\n\tContext : {context}\r\n\tScope : {scope}\r\n\
             \tGraphInterOpStatusCode : {interop}\r\n\tHResult : 0x80131500\r\n",
            self.text
        )
    }

    /// The status that log and metrics count it under.
    pub fn http_status(&self) -> u16 {
        match (self.code, self.status) {
            (_, 400..=599) => self.status as u16,
            (code::MALFORMED | code::INVALID_ARGUMENTS | code::SCRIPT, _) => 400,
            (code::TIMEOUT, _) => 408,
            (_, 1000 | 1004) => 400,
            (_, 1003 | 1008) => 429,
            _ => 500,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// What the service says about a storage error, by kind.
impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        let charge_ru = error.charge_ru;
        if let Some(cause) = &error.cause {
            tracing::warn!(message = %error.message, %cause, "traversal failed");
        }
        let storage =
            |status, text: &str| Failure::new(code::SERVER_ERROR, status, Family::Storage, text.to_owned());
        let mut failure = match error.kind {
            Kind::NotFound => {
                storage(404, "NotFoundException: Entity with the specified id does not exist in the system.")
            }
            Kind::OwnerNotFound | Kind::StaleContainer => storage(404, "Owner resource does not exist"),
            Kind::AlreadyExists | Kind::UniqueKeyViolated => {
                storage(409, "Conflicting request to resource has been attempted. Retry to avoid conflicts.")
            }
            Kind::PreconditionFailed | Kind::PatchConditionFailed | Kind::NotModified => {
                storage(412, "PreconditionFailedException: One of the specified pre-condition is not met")
            }
            Kind::BadRequest
            | Kind::PartitionKeyMismatch
            | Kind::PartitionKeyTooShort
            | Kind::PartitionKeyTooLong => storage(400, &error.message),
            Kind::TooLarge => storage(413, &error.message),
            Kind::Forbidden | Kind::PartitionFull => storage(403, &error.message),
            Kind::AccessDenied => Failure::forbidden(),
            Kind::Throttled { retry_after_ms } => Failure {
                substatus: 3200,
                retry_after_ms: Some(retry_after_ms),
                ..storage(
                    429,
                    "RequestRateTooLargeException: Request rate is large. More Request Units may be needed, so no \
                     changes were made. Please retry this request later. Learn more: \
                     http://aka.ms/cosmosdb-error-429",
                )
            },
            Kind::Conflict => storage(449, &error.message),
            Kind::FailedDependency => storage(424, &error.message),
            Kind::MethodNotAllowed => storage(405, &error.message),
            Kind::RangeGone => storage(410, &error.message),
            Kind::SessionAhead => storage(404, &error.message),
            Kind::WritesStopped | Kind::NoRoom | Kind::Unavailable => storage(503, &error.message),
            Kind::OutcomeUnknown => storage(408, &error.message),
            Kind::Internal => storage(500, &error.message),
        };
        failure.charge_ru = charge_ru;
        failure
    }
}

impl From<Exceeded> for Failure {
    fn from(exceeded: Exceeded) -> Failure {
        let text = exceeded.to_string();
        match exceeded {
            Exceeded::Time => Failure::new(
                code::TIMEOUT,
                1009,
                Family::Timeout,
                "The traversal took longer than the server allows and was ended.",
            ),
            Exceeded::RequestMemory { limit_bytes } => Failure::new(
                code::SERVER_ERROR,
                1003,
                Family::Memory,
                format!(
                    "Query exceeded memory limit. Bytes Consumed: more than {limit_bytes}, Max: {limit_bytes}"
                ),
            ),
            Exceeded::ProcessMemory { .. } => Failure {
                retry_after_ms: Some(DEFAULT_RETRY_MS),
                ..Failure::new(code::SERVER_ERROR, 429, Family::Memory, text)
            },
            Exceeded::Answer { .. } => Failure::new(code::SERVER_ERROR, 1001, Family::Memory, text),
            Exceeded::Steps { .. } => Failure::new(code::SERVER_ERROR, 429, Family::Runtime, text),
            Exceeded::ClientGone => Failure::new(
                code::SERVER_ERROR,
                1007,
                Family::Runtime,
                "The connection was closed before the traversal ended.",
            ),
        }
    }
}

/// What the evaluator says, with what the store said inside of it.
impl From<orrery_gremlin::Error> for Failure {
    fn from(error: orrery_gremlin::Error) -> Failure {
        if let Some(failure) = error.storage_error().and_then(|error| error.downcast_ref::<Failure>()) {
            return failure.clone();
        }
        if let Some(exceeded) = error.exceeded {
            return exceeded.into();
        }
        let text = error.message;
        match error.kind {
            ErrorKind::Compile => Failure::compile(text),
            ErrorKind::Runtime => Failure::runtime(text),
            ErrorKind::NotSupported => Failure::unsupported(text),
            ErrorKind::Argument => Failure::arguments(text),
            ErrorKind::Timeout => Exceeded::Time.into(),
            ErrorKind::Memory => Failure::new(code::SERVER_ERROR, 1003, Family::Memory, text),
            ErrorKind::Limit => Failure::new(code::SERVER_ERROR, 429, Family::Runtime, text),
            ErrorKind::Cancelled => Exceeded::ClientGone.into(),
            ErrorKind::Storage => Failure::runtime(text),
        }
    }
}

impl From<DistributedFailure> for Failure {
    fn from(failure: DistributedFailure) -> Failure {
        match failure {
            DistributedFailure::Page(QueryFailure::Engine(error)) | DistributedFailure::Refused(error) => {
                error.into()
            }
            DistributedFailure::Page(QueryFailure::Exceeded(exceeded)) => exceeded.into(),
            DistributedFailure::Page(QueryFailure::Query { error, charge_ru, .. }) => {
                Failure { charge_ru, ..Failure::runtime(error.to_string()) }
            }
            DistributedFailure::Merge(error) => Failure::runtime(error.to_string()),
            DistributedFailure::Page(QueryFailure::Lengthy) | DistributedFailure::Continuation => {
                Failure::defect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_is_the_services() {
        let message = Failure::runtime("Cannot add a vertex.").message(Uuid::nil(), Uuid::nil());
        assert!(
            message.starts_with("\r\n\nActivityId : 00000000-0000-0000-0000-000000000000\n"),
            "{message}"
        );
        assert!(message.contains("ExceptionType : GraphRuntimeException\nExceptionMessage :\r\n\tGremlin Query Execution Error: Cannot add a vertex.\r\n"));
        assert!(message.contains("\tGraphInterOpStatusCode : GraphRuntimeError\r\n"));
    }

    #[test]
    fn a_throttled_write_is_a_500_with_a_429_inside() {
        let error = EngineError::new(Kind::Throttled { retry_after_ms: 3950 }, "later");
        let failure = Failure::from(error.charged(2.5));
        assert_eq!((failure.code, failure.status, failure.substatus), (500, 429, 3200));
        assert_eq!(
            (failure.retry_after_ms, failure.charge_ru, failure.http_status()),
            (Some(3950), 2.5, 429)
        );
    }
}
