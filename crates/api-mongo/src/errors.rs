//! What the engine refuses, in the codes of MongoDB.

use orrery_engine::{DistributedFailure, Error as EngineError, Kind, QueryFailure};
use orrery_mongo::{Error, error::code};

use crate::collection::rules::PARALLEL_ARRAYS;

/// The text that applications of Cosmos DB look for a waiting time in.
pub fn throttled(retry_after_ms: u64) -> Error {
    Error::new(
        code::REQUEST_RATE_TOO_LARGE,
        format!(
            "Error=16500, RetryAfterMs={retry_after_ms}, Details='Response status code does not indicate success: \
             TooManyRequests (429); Substatus: 3200; ActivityId: ; Reason: ({{\"Errors\":[\"Request rate is large. More \
             Request Units may be needed, so no changes were made. Please retry this request later. Learn more: \
             http://aka.ms/cosmosdb-error-429\"]}});"
        ),
    )
}

pub fn of_engine(error: EngineError) -> Error {
    let number = match error.kind {
        Kind::Throttled { retry_after_ms } => return throttled(retry_after_ms),
        Kind::NotFound => code::NO_SUCH_KEY,
        Kind::OwnerNotFound | Kind::StaleContainer => code::NAMESPACE_NOT_FOUND,
        Kind::AlreadyExists | Kind::UniqueKeyViolated => code::DUPLICATE_KEY,
        Kind::PreconditionFailed
        | Kind::PatchConditionFailed
        | Kind::Conflict
        | Kind::NotModified
        | Kind::SessionAhead
        | Kind::FailedDependency => code::WRITE_CONFLICT,
        Kind::BadRequest if error.message.starts_with(PARALLEL_ARRAYS) => code::CANNOT_INDEX_PARALLEL_ARRAYS,
        Kind::BadRequest | Kind::PartitionKeyTooShort | Kind::PartitionKeyTooLong => code::BAD_VALUE,
        Kind::PartitionKeyMismatch => {
            return Error::new(
                code::IMMUTABLE_FIELD,
                "Performing an update on the path of the shard key would modify it, which is immutable.",
            );
        }
        Kind::TooLarge => code::BSON_OBJECT_TOO_LARGE,
        Kind::Forbidden | Kind::MethodNotAllowed => code::ILLEGAL_OPERATION,
        Kind::AccessDenied => code::UNAUTHORIZED,
        Kind::PartitionFull | Kind::NoRoom => code::OPERATION_FAILED,
        Kind::WritesStopped | Kind::Unavailable => code::SHUTDOWN_IN_PROGRESS,
        // The client may look for a new primary and try again; a retryable write is applied once.
        Kind::RangeGone => code::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE,
        Kind::OutcomeUnknown => code::MAX_TIME_MS_EXPIRED,
        Kind::Internal => code::INTERNAL_ERROR,
    };
    Error::new(number, error.message)
}

pub fn of_query(failure: DistributedFailure) -> Error {
    match failure {
        DistributedFailure::Page(QueryFailure::Engine(error)) | DistributedFailure::Refused(error) => {
            of_engine(error)
        }
        DistributedFailure::Page(QueryFailure::Exceeded(exceeded)) => exceeded.into(),
        DistributedFailure::Page(QueryFailure::Query { error, .. }) | DistributedFailure::Merge(error) => {
            Error::new(code::INTERNAL_ERROR, error.to_string())
        }
        DistributedFailure::Page(QueryFailure::Lengthy) | DistributedFailure::Continuation => {
            Error::new(code::INTERNAL_ERROR, "a page of a scan could not be continued")
        }
    }
}
