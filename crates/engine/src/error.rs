//! What can go wrong, by what the caller can do about it.
//!
//! `Kind` is closed on purpose: every api maps it in one exhaustive `match`, so a new kind does not compile until
//! each wire has decided what it looks like there. `message` says it in plain words, carries no secrets and knows no
//! protocol; an API whose clients look for other words has them by kind. `cause` is for the log and is never sent.

use orrery_storage::StoreError;

use crate::item::Position;

/// An error of the engine. `Display` is the message.
#[derive(Debug)]
pub struct Error {
    pub kind: Kind,
    pub message: String,
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// What the refused request cost. 0 where the partition had nothing to do.
    pub charge_ru: f64,
    /// Where the partition stood that refused, if the request got as far as one.
    pub at: Option<Position>,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    NotFound,
    /// The database or container that a request goes through is missing (the item itself was never looked for).
    OwnerNotFound,
    AlreadyExists,
    UniqueKeyViolated,
    PreconditionFailed,
    /// The condition of a patch did not hold.
    PatchConditionFailed,
    NotModified,
    BadRequest,
    /// The key given with the request is not the key inside the item.
    PartitionKeyMismatch,
    /// The key has fewer values than the container's definition has paths.
    PartitionKeyTooShort,
    /// The key has more values than the container's definition has paths.
    PartitionKeyTooLong,
    /// The request was meant for an earlier container of the same name.
    StaleContainer,
    /// The partition key range does not exist any more; the client must read the map of ranges again.
    RangeGone,
    /// The session token names a change that this partition has not seen.
    SessionAhead,
    TooLarge,
    /// A quota is used up, or what is to be changed never changes.
    Forbidden,
    /// Whoever asks may not do this: see `access`.
    AccessDenied,
    /// A logical partition or a fixed container has reached its size limit.
    PartitionFull,
    Throttled {
        retry_after_ms: u64,
    },
    /// Another writer got in between; the same request may succeed when sent again.
    Conflict,
    /// An operation of an atomic batch that was not tried, or was undone, because another one failed.
    FailedDependency,
    MethodNotAllowed,
    /// The store refuses writes until the process is restarted; the message says why.
    WritesStopped,
    /// The disk is full: what adds something is refused until there is room.
    NoRoom,
    /// The server lacks something at the moment, such as descriptors or its store; nothing was done, and the same
    /// request may succeed later.
    Unavailable,
    /// The store did not say whether it has written: the request may have been carried out or not.
    OutcomeUnknown,
    Internal,
}

impl Kind {
    /// Whether it is the partition, its store or its container that refuses, whatever the request asks for.
    pub(crate) fn is_of_the_partition(self) -> bool {
        matches!(
            self,
            Kind::WritesStopped
                | Kind::NoRoom
                | Kind::Unavailable
                | Kind::OutcomeUnknown
                | Kind::Internal
                | Kind::OwnerNotFound
                | Kind::RangeGone
        )
    }
}

/// Stored bytes fail their checks: what they hold cannot be served, and everything else is.
pub const DAMAGED: &str = "The stored data that this request needs is damaged. Stop the server and run `orrery check` on its data directory.";

/// The service's words, for a partition that has lost its store and is being opened again.
pub const UNAVAILABLE: &str = "The request failed because the service is currently unavailable. Please retry. Learn more: https://aka.ms/cosmosdb-tsg-service-unavailable";
/// The service's words for a write of which nobody can say whether it was carried out.
pub const OUTCOME_UNKNOWN: &str = "Request timed out. The write may have been carried out or not. Learn more: https://aka.ms/cosmosdb-tsg-request-timeout";

impl Error {
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), cause: None, charge_ru: 0.0, at: None }
    }

    pub fn bad_request(message: impl Into<String>) -> Error {
        Error::new(Kind::BadRequest, message)
    }

    pub fn not_found() -> Error {
        Error::new(Kind::NotFound, "There is no such resource.")
    }

    pub fn owner_not_found() -> Error {
        Error::new(Kind::OwnerNotFound, "There is no such database or container.")
    }

    pub fn already_exists() -> Error {
        Error::new(Kind::AlreadyExists, "There is a resource of this name already.")
    }

    pub fn precondition_failed() -> Error {
        Error::new(Kind::PreconditionFailed, "The resource is another version than the request says.")
    }

    pub(crate) fn key_too_short() -> Error {
        Error::new(
            Kind::PartitionKeyTooShort,
            "The partition key has fewer values than the container has paths.",
        )
    }

    pub(crate) fn key_too_long() -> Error {
        Error::new(
            Kind::PartitionKeyTooLong,
            "The partition key has more values than the container has paths.",
        )
    }

    /// The store is away; nothing was done.
    pub fn unavailable() -> Error {
        Error::new(Kind::Unavailable, UNAVAILABLE)
    }

    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(Kind::Internal, message)
    }

    /// Says what the refusal cost.
    pub fn charged(mut self, charge_ru: f64) -> Error {
        self.charge_ru = charge_ru;
        self
    }

    /// Says where the partition stood.
    pub(crate) fn at(mut self, at: Position) -> Error {
        self.at = Some(at);
        self
    }

    /// Adds what the log should know.
    pub fn caused_by(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.cause = Some(cause.into());
        self
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

impl From<StoreError> for Error {
    /// What a client may learn about the store: whether writing again can help, and nothing about files.
    fn from(error: StoreError) -> Error {
        let (kind, message) = match &error {
            StoreError::WritesStopped(_) => (Kind::WritesStopped, error.to_string()),
            StoreError::NoRoom(_) => (Kind::NoRoom, error.to_string()),
            StoreError::Exhausted(_) => (Kind::Unavailable, error.to_string()),
            StoreError::Unavailable(_) => (Kind::Unavailable, UNAVAILABLE.to_owned()),
            StoreError::OutcomeUnknown(_) => (Kind::OutcomeUnknown, OUTCOME_UNKNOWN.to_owned()),
            StoreError::Closed => (Kind::WritesStopped, "The server is shutting down.".to_owned()),
            StoreError::Fenced(_) => {
                (Kind::RangeGone, "The partition is served by another owner.".to_owned())
            }
            // Only a reader that was held up for minutes sees this; asking again takes a new snapshot.
            StoreError::SnapshotExpired => {
                (Kind::Conflict, "The request took too long; please retry.".to_owned())
            }
            StoreError::Limit(_) => (Kind::TooLarge, "Request size is too large".to_owned()),
            StoreError::Damaged(_) => (Kind::Internal, DAMAGED.to_owned()),
            StoreError::Io(_) | StoreError::Refused(_) => {
                (Kind::Internal, "The store could not read its data.".to_owned())
            }
        };
        Error { kind, message, cause: Some(Box::new(error)), charge_ru: 0.0, at: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_store_says_why_and_keeps_its_cause() {
        let error = Error::from(StoreError::WritesStopped("no space left on device".into()));
        assert_eq!(error.kind, Kind::WritesStopped);
        assert!(error.message.contains("no space left"));
        assert!(std::error::Error::source(&error).is_some());
    }

    #[test]
    fn a_store_that_is_away_says_whether_anything_was_done() {
        let away = Error::from(StoreError::Unavailable("10.0.0.7: connection refused".into()));
        let unknown = Error::from(StoreError::OutcomeUnknown("10.0.0.7: connection reset".into()));
        assert_eq!((away.kind, unknown.kind), (Kind::Unavailable, Kind::OutcomeUnknown));
        assert!(!away.message.contains("10.0.0.7") && !unknown.message.contains("10.0.0.7"));
    }

    #[test]
    fn damage_does_not_tell_the_client_about_files() {
        let error = Error::from(StoreError::Damaged("table 7 of /data/secret".into()));
        assert_eq!(error.kind, Kind::Internal);
        assert!(!error.message.contains("secret") && error.message.contains("orrery check"));
    }
}
