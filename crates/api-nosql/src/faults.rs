//! Faults in the words of this protocol: what a rule of the engine wants becomes the service's own error.

use http::StatusCode;
use orrery_engine::faults::{FaultAnswer, FaultStatus};
use orrery_engine::{Error as EngineError, Kind};

use crate::errors::{ApiError, Plane, Voice};

const RETRY_AFTER_MS_DEFAULT: u64 = 100;

const THROTTLED: &str = "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429";
const RETRY: &str = "Conflicting request to resource has been attempted. Retry to avoid conflicts.";
const GONE: &str = "The requested resource is no longer available at the server.";
const UNAVAILABLE: &str =
    "Service is currently unavailable. More info: https://aka.ms/cosmosdb-tsg-service-unavailable";

/// The service's own error.
pub fn error(answer: &FaultAnswer) -> ApiError {
    let engine = |kind, text| ApiError::from_engine(EngineError::new(kind, text), Plane::Items);
    let mut error = match answer.status {
        FaultStatus::Throttled => {
            let retry_after_ms = answer.retry_after_ms.unwrap_or(RETRY_AFTER_MS_DEFAULT);
            engine(Kind::Throttled { retry_after_ms }, THROTTLED)
        }
        FaultStatus::Gone => engine(Kind::RangeGone, GONE),
        FaultStatus::RetryWith => engine(Kind::Conflict, RETRY),
        FaultStatus::Unavailable => {
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, Voice::Partition, UNAVAILABLE).charge(0.0)
        }
    };
    if let Some(substatus) = answer.substatus {
        error.substatus = substatus;
    }
    error.retry_after_ms = answer.retry_after_ms.or(error.retry_after_ms);
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_the_services_own_error() {
        let answer = |status, retry_after_ms| error(&FaultAnswer { status, substatus: None, retry_after_ms });
        let throttled = answer(FaultStatus::Throttled, Some(7));
        assert_eq!(
            (throttled.status.as_u16(), throttled.substatus, throttled.retry_after_ms),
            (429, 3200, Some(7))
        );
        assert_eq!(throttled.charge_ru, Some(0.38));
        assert_eq!(
            (answer(FaultStatus::Gone, None).substatus, answer(FaultStatus::RetryWith, None).status.as_u16()),
            (1002, 449)
        );
        assert_eq!(answer(FaultStatus::Unavailable, None).code(), "ServiceUnavailable");
    }
}
