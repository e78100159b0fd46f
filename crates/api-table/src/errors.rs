//! What can go wrong, as the Table service says it: one table of codes, and the body that carries one.
//!
//! ```text
//! {"odata.error":{"code":"TableNotFound","message":{"lang":"en-us","value":"The table specified does not exist.\n…"}}}
//! ```
//!
//! Errors of the engine are mapped in one exhaustive match, so a new kind does not compile until it has a code here.

use std::borrow::Cow;

use http::StatusCode;
use orrery_budget::Exceeded;
use orrery_engine::{DistributedFailure, Error as EngineError, Kind, QueryFailure};

use crate::dialect::Dialect;

pub type Result<T, E = TableError> = std::result::Result<T, E>;

macro_rules! codes {
    ($($name:ident $text:literal $status:literal $message:literal;)*) => {
        /// Every error code that this server answers with.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code { $($name,)* }

        /// Code, its name on the wire, status, usual message.
        pub const CODES: &[(Code, &str, u16, &str)] = &[$((Code::$name, $text, $status, $message),)*];
    };
}

codes! {
    AtomFormatNotSupported "AtomFormatNotSupported" 415 "Atom format is not supported.";
    AuthenticationFailed "AuthenticationFailed" 403 "Server failed to authenticate the request. Make sure the value of the Authorization header is formed correctly including the signature.";
    AuthorizationFailure "AuthorizationFailure" 403 "This request is not authorized to perform this operation.";
    AuthorizationPermissionMismatch "AuthorizationPermissionMismatch" 403 "This request is not authorized to perform this operation using this permission.";
    AuthorizationProtocolMismatch "AuthorizationProtocolMismatch" 403 "This request is not authorized to perform this operation using this protocol.";
    AuthorizationResourceTypeMismatch "AuthorizationResourceTypeMismatch" 403 "This request is not authorized to perform this operation using this resource type.";
    AuthorizationServiceMismatch "AuthorizationServiceMismatch" 403 "This request is not authorized to perform this operation using this service.";
    AuthorizationSourceIPMismatch "AuthorizationSourceIPMismatch" 403 "This request is not authorized to perform this operation using this source IP.";
    BadRequest "BadRequest" 400 "The input name is invalid.";
    CommandsInBatchActOnDifferentPartitions "CommandsInBatchActOnDifferentPartitions" 400 "All commands in a batch must operate on same entity group.";
    ContentLengthExceeded "RequestBodyTooLarge" 413 "The request body is too large and exceeds the maximum permissible limit.";
    CorsPreflightFailure "CorsPreflightFailure" 403 "CORS not enabled or no matching rule found for this request.";
    DuplicatePropertiesSpecified "DuplicatePropertiesSpecified" 400 "A property is specified more than one time.";
    EntityAlreadyExists "EntityAlreadyExists" 409 "The specified entity already exists.";
    EntityTooLarge "EntityTooLarge" 400 "The entity is larger than the maximum allowed size.";
    InsufficientAccountPermissions "InsufficientAccountPermissions" 403 "The account being accessed does not have sufficient permissions to execute this operation.";
    InternalError "InternalError" 500 "The server encountered an internal error. Please retry the request.";
    InternalServerError "InternalServerError" 500 "The resource name presented contains invalid character.";
    InvalidDuplicateRow "InvalidDuplicateRow" 400 "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.";
    InvalidInput "InvalidInput" 400 "One of the request inputs is not valid.";
    InvalidQueryParameterValue "InvalidQueryParameterValue" 400 "Value for one of the query parameters specified in the request URI is invalid.";
    InvalidResourceName "InvalidResourceName" 400 "The specified resource name contains invalid characters.";
    InvalidUri "InvalidUri" 400 "The requested URI does not represent any resource on the server.";
    InvalidXmlDocument "InvalidXmlDocument" 400 "XML specified is not syntactically valid.";
    KeyValueTooLarge "KeyValueTooLarge" 400 "The key value is larger than the maximum allowed size.";
    MediaTypeNotSupported "MediaTypeNotSupported" 415 "None of the provided media types are supported.";
    MethodNotAllowed "MethodNotAllowed" 405 "The requested method is not allowed on the specified resource.";
    MissingRequiredHeader "MissingRequiredHeader" 400 "An HTTP header that's mandatory for this request is not specified.";
    NoAuthenticationInformation "NoAuthenticationInformation" 401 "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
    NotImplemented "NotImplemented" 501 "The requested operation is not implemented on the specified resource.";
    OperationTimedOut "OperationTimedOut" 408 "The operation could not be completed within the specified time.";
    OutOfRangeInput "OutOfRangeInput" 400 "One of the request inputs is out of range.";
    PropertiesNeedValue "PropertiesNeedValue" 400 "The values are not specified for all properties in the entity.";
    PropertyNameInvalid "PropertyNameInvalid" 400 "The property name is invalid.";
    PropertyNameTooLong "PropertyNameTooLong" 400 "The property name exceeds the maximum allowed length.";
    PropertyValueTooLarge "PropertyValueTooLarge" 400 "The property value exceeds the maximum allowed size. If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.";
    ResourceNotFound "ResourceNotFound" 404 "The specified resource does not exist.";
    ServerBusy "ServerBusy" 503 "The server is currently unable to receive requests. Please retry your request.";
    TableAlreadyExists "TableAlreadyExists" 409 "The table specified already exists.";
    TableNotFound "TableNotFound" 404 "The table specified does not exist.";
    TooManyProperties "TooManyProperties" 400 "The entity contains more properties than allowed.";
    TooManyRequests "429" 429 "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429";
    WriteOnSecondary "WriteOperationNotSupportedOnSecondary" 403 "Write operations are not allowed.";
    UpdateConditionNotSatisfied "UpdateConditionNotSatisfied" 412 "The update condition specified in the request was not satisfied.";
}

impl Code {
    fn row(self) -> &'static (Code, &'static str, u16, &'static str) {
        // The table is made by the same macro, in the same order.
        &CODES[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.row().1
    }

    pub fn status(self) -> StatusCode {
        StatusCode::from_u16(self.row().2).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// A refused request.
#[derive(Debug)]
pub struct TableError {
    pub code: Code,
    pub message: Cow<'static, str>,
    pub retry_after_ms: Option<u64>,
    pub charge_ru: f64,
    /// Which operation of a batch went wrong.
    pub operation: Option<usize>,
    /// For the log.
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl From<Code> for TableError {
    fn from(code: Code) -> TableError {
        TableError {
            code,
            message: Cow::Borrowed(code.row().3),
            retry_after_ms: None,
            charge_ru: 0.0,
            operation: None,
            cause: None,
        }
    }
}

impl TableError {
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> TableError {
        TableError { message: message.into(), ..TableError::from(code) }
    }

    /// An address that means nothing.
    pub fn url() -> TableError {
        TableError::new(Code::InvalidInput, "Request url is invalid.")
    }

    /// The same error, about one operation of a batch.
    pub fn of_operation(self, index: usize) -> TableError {
        TableError { operation: Some(index), ..self }
    }

    /// An error of the engine about an entity.
    pub fn of_entity(error: EngineError) -> TableError {
        TableError::from_engine(error, Code::ResourceNotFound, Code::EntityAlreadyExists)
    }

    /// An error of the engine about a table.
    pub fn of_table(error: EngineError) -> TableError {
        TableError::from_engine(error, Code::ResourceNotFound, Code::TableAlreadyExists)
    }

    fn from_engine(error: EngineError, missing: Code, taken: Code) -> TableError {
        let code = match error.kind {
            Kind::NotFound => missing,
            Kind::OwnerNotFound | Kind::StaleContainer => Code::TableNotFound,
            Kind::AlreadyExists | Kind::UniqueKeyViolated => taken,
            Kind::PreconditionFailed | Kind::PatchConditionFailed | Kind::NotModified => {
                Code::UpdateConditionNotSatisfied
            }
            Kind::TooLarge => Code::EntityTooLarge,
            Kind::Throttled { .. } => Code::TooManyRequests,
            Kind::BadRequest
            | Kind::PartitionKeyMismatch
            | Kind::PartitionKeyTooShort
            | Kind::PartitionKeyTooLong
            | Kind::FailedDependency => Code::InvalidInput,
            Kind::Forbidden | Kind::PartitionFull | Kind::AccessDenied => {
                Code::InsufficientAccountPermissions
            }
            Kind::MethodNotAllowed => Code::MethodNotAllowed,
            Kind::RangeGone
            | Kind::SessionAhead
            | Kind::Conflict
            | Kind::WritesStopped
            | Kind::NoRoom
            | Kind::Unavailable => Code::ServerBusy,
            Kind::OutcomeUnknown => Code::OperationTimedOut,
            Kind::Internal => Code::InternalError,
        };
        let retry_after_ms = match error.kind {
            Kind::Throttled { retry_after_ms } => Some(retry_after_ms),
            _ => None,
        };
        // The engine's words where they say more than the code does.
        let message = match code {
            Code::InvalidInput | Code::InsufficientAccountPermissions | Code::InternalError => {
                Cow::Owned(error.message)
            }
            Code::ServerBusy => Cow::Owned(format!("{} {}", code.row().3, error.message)),
            Code::TooManyRequests => Cow::Owned(format!("Message: {{\"Errors\":[\"{}\"]}}", error.message)),
            _ => Cow::Borrowed(code.row().3),
        };
        TableError {
            code,
            message,
            retry_after_ms,
            charge_ru: error.charge_ru,
            operation: None,
            cause: error.cause,
        }
    }

    pub fn status(&self) -> StatusCode {
        self.code.status()
    }

    /// The body, as a dialect writes it. `time` is when the request came.
    pub fn body(&self, dialect: Dialect, request_id: &str, time: &str) -> Vec<u8> {
        let mut value = String::with_capacity(self.message.len() + 128);
        if let Some(index) = self.operation {
            value.push_str(&format!("{index}:"));
        }
        value.push_str(&self.message);
        match dialect {
            Dialect::Cosmos => value.push_str(&format!("\nRequestID:{request_id}\n")),
            Dialect::Storage => value.push_str(&format!("\nRequestId:{request_id}\nTime:{time}")),
        }
        let mut body = Vec::with_capacity(value.len() + 128);
        body.extend_from_slice(b"{\"odata.error\":{\"code\":");
        orrery_model::write_json_string(&mut body, self.code.name());
        body.extend_from_slice(b",\"message\":{\"lang\":\"en-us\",\"value\":");
        orrery_model::write_json_string(&mut body, &value);
        body.extend_from_slice(b"}}}\r\n");
        body
    }
}

impl From<Exceeded> for TableError {
    fn from(exceeded: Exceeded) -> TableError {
        match exceeded {
            Exceeded::Time | Exceeded::ClientGone => Code::OperationTimedOut.into(),
            _ => Code::ServerBusy.into(),
        }
    }
}

impl From<DistributedFailure> for TableError {
    fn from(failure: DistributedFailure) -> TableError {
        match failure {
            DistributedFailure::Page(failure) => failure.into(),
            DistributedFailure::Refused(error) => TableError::of_entity(error),
            DistributedFailure::Merge(error) => TableError::new(Code::InvalidInput, error.to_string()),
            DistributedFailure::Continuation => Code::InvalidInput.into(),
        }
    }
}

impl From<QueryFailure> for TableError {
    fn from(failure: QueryFailure) -> TableError {
        match failure {
            QueryFailure::Engine(error) => TableError::of_entity(error),
            QueryFailure::Exceeded(exceeded) => exceeded.into(),
            QueryFailure::Lengthy => Code::OperationTimedOut.into(),
            QueryFailure::Query { error, charge_ru, .. } => {
                TableError { charge_ru, ..TableError::new(Code::InvalidInput, error.to_string()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_codes_is_in_the_order_of_the_codes() {
        for (code, name, status, _) in CODES {
            assert_eq!((code.name(), code.status().as_u16()), (*name, *status));
        }
    }

    #[test]
    fn a_body_says_code_message_request_and_culprit() {
        let error = TableError::from(Code::EntityAlreadyExists).of_operation(3);
        let text = String::from_utf8(error.body(Dialect::Cosmos, "r-1", "")).unwrap();
        assert_eq!(
            text,
            "{\"odata.error\":{\"code\":\"EntityAlreadyExists\",\"message\":{\"lang\":\"en-us\",\
             \"value\":\"3:The specified entity already exists.\\nRequestID:r-1\\n\"}}}\r\n"
        );
        let storage = TableError::url().body(Dialect::Storage, "r", "2020-01-01T00:00:00.0000000Z");
        assert!(
            String::from_utf8(storage).unwrap().contains("RequestId:r\\nTime:2020-01-01T00:00:00.0000000Z\"")
        );
    }
}
