//! What can go wrong, by the code that drivers know it by.

use std::borrow::Cow;
use std::fmt;

use orrery_budget::Exceeded;

use crate::value::Document;

pub type Result<T> = std::result::Result<T, Error>;

/// A failure: a code of MongoDB and a text.
#[derive(Clone, Debug)]
pub struct Error {
    pub code: i32,
    pub message: Cow<'static, str>,
    /// Details for the client: `keyPattern`, `keyValue`, `errInfo`. Members of the error document.
    pub details: Option<Box<Document>>,
}

impl Error {
    pub fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Error {
        Error { code, message: message.into(), details: None }
    }

    pub fn bad_value(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(code::BAD_VALUE, message)
    }

    pub fn failed_to_parse(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(code::FAILED_TO_PARSE, message)
    }

    pub fn type_mismatch(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(code::TYPE_MISMATCH, message)
    }

    #[must_use]
    pub fn with_details(mut self, details: Document) -> Error {
        self.details = Some(Box::new(details));
        self
    }

    /// The name of the code; `Location<code>` where it has none.
    pub fn code_name(&self) -> Cow<'static, str> {
        code::name(self.code).map_or_else(|| Cow::Owned(format!("Location{}", self.code)), Cow::Borrowed)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<Exceeded> for Error {
    fn from(exceeded: Exceeded) -> Error {
        match exceeded {
            Exceeded::Time => Error::new(code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"),
            Exceeded::ClientGone => Error::new(code::INTERRUPTED, "operation was interrupted"),
            _ => Error::new(
                code::EXCEEDED_MEMORY_LIMIT,
                "the operation needs more memory than one request may use",
            ),
        }
    }
}

/// Codes with a name. Others are known by their number alone.
pub mod code {
    macro_rules! codes {
        ($($constant:ident $code:literal $name:literal)*) => {
            $(pub const $constant: i32 = $code;)*

            /// The name of a code.
            pub fn name(code: i32) -> Option<&'static str> {
                Some(match code {
                    $($code => $name,)*
                    _ => return None,
                })
            }
        };
    }

    codes! {
        INTERNAL_ERROR 1 "InternalError"
        BAD_VALUE 2 "BadValue"
        NO_SUCH_KEY 4 "NoSuchKey"
        GRAPH_CONTAINS_CYCLE 5 "GraphContainsCycle"
        HOST_UNREACHABLE 6 "HostUnreachable"
        HOST_NOT_FOUND 7 "HostNotFound"
        UNKNOWN_ERROR 8 "UnknownError"
        FAILED_TO_PARSE 9 "FailedToParse"
        USER_NOT_FOUND 11 "UserNotFound"
        UNSUPPORTED_FORMAT 12 "UnsupportedFormat"
        UNAUTHORIZED 13 "Unauthorized"
        TYPE_MISMATCH 14 "TypeMismatch"
        OVERFLOW 15 "Overflow"
        INVALID_LENGTH 16 "InvalidLength"
        PROTOCOL_ERROR 17 "ProtocolError"
        AUTHENTICATION_FAILED 18 "AuthenticationFailed"
        ILLEGAL_OPERATION 20 "IllegalOperation"
        INVALID_BSON 22 "InvalidBSON"
        LOCK_TIMEOUT 24 "LockTimeout"
        NAMESPACE_NOT_FOUND 26 "NamespaceNotFound"
        INDEX_NOT_FOUND 27 "IndexNotFound"
        PATH_NOT_VIABLE 28 "PathNotViable"
        NON_EXISTENT_PATH 29 "NonExistentPath"
        ROLE_NOT_FOUND 31 "RoleNotFound"
        CANNOT_BACKFILL_ARRAY 34 "CannotBackfillArray"
        CONFLICTING_UPDATE_OPERATORS 40 "ConflictingUpdateOperators"
        CURSOR_NOT_FOUND 43 "CursorNotFound"
        NAMESPACE_EXISTS 48 "NamespaceExists"
        DOLLAR_PREFIXED_FIELD_NAME 52 "DollarPrefixedFieldName"
        INVALID_ID_FIELD 53 "InvalidIdField"
        NOT_SINGLE_VALUE_FIELD 54 "NotSingleValueField"
        EMPTY_FIELD_NAME 56 "EmptyFieldName"
        DOTTED_FIELD_NAME 57 "DottedFieldName"
        COMMAND_NOT_FOUND 59 "CommandNotFound"
        SHARD_KEY_NOT_FOUND 61 "ShardKeyNotFound"
        MAX_TIME_MS_EXPIRED 50 "MaxTimeMSExpired"
        WRITE_CONCERN_FAILED 64 "WriteConcernFailed"
        IMMUTABLE_FIELD 66 "ImmutableField"
        CANNOT_CREATE_INDEX 67 "CannotCreateIndex"
        INVALID_OPTIONS 72 "InvalidOptions"
        INVALID_NAMESPACE 73 "InvalidNamespace"
        NOT_A_REPLICA_SET 76 "NoReplicationEnabled"
        INDEX_OPTIONS_CONFLICT 85 "IndexOptionsConflict"
        INDEX_KEY_SPECS_CONFLICT 86 "IndexKeySpecsConflict"
        NETWORK_TIMEOUT 89 "NetworkTimeout"
        SHUTDOWN_IN_PROGRESS 91 "ShutdownInProgress"
        OPERATION_FAILED 96 "OperationFailed"
        WRITE_CONFLICT 112 "WriteConflict"
        COMMAND_NOT_SUPPORTED 115 "CommandNotSupported"
        DOCUMENT_VALIDATION_FAILURE 121 "DocumentValidationFailure"
        COMMAND_FAILED 125 "CommandFailed"
        EXCEEDED_MEMORY_LIMIT 146 "ExceededMemoryLimit"
        READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET 134 "ReadConcernMajorityNotAvailableYet"
        DURATION_OVERFLOW 159 "DurationOverflow"
        VIEW_DEPTH_LIMIT_EXCEEDED 165 "ViewDepthLimitExceeded"
        COMMAND_NOT_SUPPORTED_ON_VIEW 166 "CommandNotSupportedOnView"
        OPTION_NOT_SUPPORTED_ON_VIEW 167 "OptionNotSupportedOnView"
        INVALID_PIPELINE_OPERATOR 168 "InvalidPipelineOperator"
        CANNOT_INDEX_PARALLEL_ARRAYS 171 "CannotIndexParallelArrays"
        CLIENT_METADATA_CANNOT_BE_MUTATED 186 "ClientMetadataCannotBeMutated"
        PRIMARY_STEPPED_DOWN 189 "PrimarySteppedDown"
        INVALID_UUID 207 "InvalidUUID"
        INVALID_INDEX_SPECIFICATION_OPTION 197 "InvalidIndexSpecificationOption"
        NO_SUCH_SESSION 206 "NoSuchSession"
        TOO_MANY_LOGICAL_SESSIONS 261 "TooManyLogicalSessions"
        CONVERSION_FAILURE 241 "ConversionFailure"
        NOT_IMPLEMENTED 238 "NotImplemented"
        QUERY_FEATURE_NOT_ALLOWED 224 "QueryFeatureNotAllowed"
        TRANSACTION_TOO_OLD 225 "TransactionTooOld"
        NO_SUCH_TRANSACTION 251 "NoSuchTransaction"
        TRANSACTION_COMMITTED 256 "TransactionCommitted"
        TRANSACTION_TOO_LARGE 257 "TransactionTooLarge"
        INCOMPATIBLE_TRANSACTION_OPTION 50911 "Location50911"
        EXCEEDED_TIME_LIMIT 262 "ExceededTimeLimit"
        OPERATION_NOT_SUPPORTED_IN_TRANSACTION 263 "OperationNotSupportedInTransaction"
        CHANGE_STREAM_FATAL_ERROR 280 "ChangeStreamFatalError"
        CHANGE_STREAM_HISTORY_LOST 286 "ChangeStreamHistoryLost"
        INVALID_RESUME_TOKEN 260 "InvalidResumeToken"
        NO_QUERY_EXECUTION_PLANS 291 "NoQueryExecutionPlans"
        QUERY_EXCEEDED_MEMORY_LIMIT 292 "QueryExceededMemoryLimitNoDiskUseAllowed"
        FEATURE_NOT_SUPPORTED 303 "FeatureNotSupported"
        API_VERSION_ERROR 322 "APIVersionError"
        API_STRICT_ERROR 323 "APIStrictError"
        UNSUPPORTED_OP_QUERY_COMMAND 352 "UnsupportedOpQueryCommand"
        REAUTHENTICATION_REQUIRED 391 "ReauthenticationRequired"
        SOCKET_EXCEPTION 9001 "SocketException"
        NOT_WRITABLE_PRIMARY 10107 "NotWritablePrimary"
        BSON_OBJECT_TOO_LARGE 10334 "BSONObjectTooLarge"
        DUPLICATE_KEY 11000 "DuplicateKey"
        INTERRUPTED 11601 "Interrupted"
        INTERRUPTED_AT_SHUTDOWN 11600 "InterruptedAtShutdown"
        INTERRUPTED_DUE_TO_REPL_STATE_CHANGE 11602 "InterruptedDueToReplStateChange"
        BACKGROUND_OPERATION_IN_PROGRESS 12586 "BackgroundOperationInProgressForDatabase"
        NOT_PRIMARY_NO_SECONDARY_OK 13435 "NotPrimaryNoSecondaryOk"
        NOT_PRIMARY_OR_SECONDARY 13436 "NotPrimaryOrSecondary"
        REQUEST_RATE_TOO_LARGE 16500 "RequestRateTooLarge"
    }
}
