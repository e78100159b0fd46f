//! Bodies of requests about resources: JSON objects, small and rare enough to become trees.

use serde_json::Value;

use crate::errors::{ApiError, INPUT_INVALID, PAYLOAD_INVALID, Result};
use crate::service::Context;

/// The body as a JSON object.
pub fn object(context: &Context<'_>) -> Result<Value> {
    match serde_json::from_slice::<Value>(context.body) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) => Err(ApiError::bad_request(INPUT_INVALID)),
        Err(_) => Err(ApiError::bad_request(PAYLOAD_INVALID)),
    }
}

/// The required `id` of a resource.
pub fn id(body: &Value) -> Result<&str> {
    match body.get("id") {
        Some(Value::String(id)) => Ok(id),
        Some(_) => Err(ApiError::bad_request(INPUT_INVALID)),
        None => Err(ApiError::bad_request(
            "The input content is invalid because the required properties - 'id; ' - are missing",
        )),
    }
}
