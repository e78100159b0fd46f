//! What a client reads when a script fails: always 400, with the exception and its stack in the message, and the number
//! of the error as the substatus, so that a script can say to its caller what kind of failure it was.

use http::{HeaderName, HeaderValue, StatusCode};
use orrery_engine::{ScriptFailure, ScriptFailureKind as FailureKind};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::errors::{ApiError, Voice};
use crate::headers::{self, SCRIPT_LOG};

/// The substatus of a script that does not compile.
const COMPILE_ERROR: u32 = 0xFFFF;
/// Longest log that a header carries, encoded: clients give up on responses with much longer headers.
const LOG_HEADER_BYTES_MAX: usize = 12 * 1024;
/// What the service does not escape in a log, besides letters and digits.
const LOG_ESCAPED: &percent_encoding::AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');
/// When to come back to a server whose script threads are all busy.
const BUSY_RETRY_MS: u64 = 500;

pub fn failed(failure: &ScriptFailure) -> ApiError {
    let ScriptFailure { kind, exception, stack, number } = failure;
    let trace = if stack.is_empty() { "undefined".to_owned() } else { format!("{exception}\n{stack}") };
    let said = |doing: &str| {
        format!("Encountered exception while {doing}. Exception = {exception}\r\nStack trace: {trace}")
    };
    match kind {
        FailureKind::Compile => ApiError::bad_request(said("compiling Javascript")).substatus(COMPILE_ERROR),
        FailureKind::Threw | FailureKind::OutOfMemory => {
            ApiError::bad_request(said("executing function")).substatus(number.unwrap_or(0))
        }
        FailureKind::TimedOut => {
            ApiError::new(StatusCode::REQUEST_TIMEOUT, Voice::Partition, said("executing function"))
                .charge(0.0)
        }
        FailureKind::Exceeded(exceeded) => ApiError::exceeded(*exceeded).charge(0.0),
        FailureKind::ResultTooLarge => {
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, Voice::Partition, said("executing function"))
                .charge(0.0)
        }
    }
}

/// All threads are busy, and so many wait for one that no more are taken.
pub fn busy() -> ApiError {
    let message = "Too many scripts are waiting to be executed. Please retry later.";
    let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, Voice::Partition, message);
    error.substatus = crate::errors::substatus::THROTTLED;
    error.retry_after_ms = Some(BUSY_RETRY_MS);
    error
}

pub fn stuck() -> ApiError {
    ApiError::new(
        StatusCode::REQUEST_TIMEOUT,
        Voice::Partition,
        "Encountered exception while executing function. Exception = Error: The script did not stop when its time was over.",
    )
    .charge(0.0)
}

pub fn closed() -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, Voice::Partition, "The server is shutting down.")
}

/// The console as a header; nothing when the script wrote nothing.
pub fn log_header(log: &str) -> Option<(HeaderName, HeaderValue)> {
    if log.is_empty() {
        return None;
    }
    let mut text = String::with_capacity(log.len() + log.len() / 2);
    for piece in utf8_percent_encode(log, LOG_ESCAPED) {
        if text.len() + piece.len() > LOG_HEADER_BYTES_MAX {
            text.push_str("...");
            break;
        }
        text.push_str(piece);
    }
    Some((SCRIPT_LOG, headers::value(text.into_bytes())))
}
