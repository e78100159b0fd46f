//! Bodies of requests: JSON text, or the binary form of it; those about resources are small and rare enough to become
//! trees.

use std::borrow::Cow;

use serde_json::Value;

use crate::binary_json;
use crate::errors::{ApiError, INPUT_INVALID, PAYLOAD_INVALID, Result};
use crate::service::Context;

/// A body as text, in which clients need not send it.
pub fn text(body: &[u8]) -> Result<Cow<'_, [u8]>> {
    if !binary_json::is_binary(body) {
        return Ok(Cow::Borrowed(body));
    }
    binary_json::to_text(body).map(Cow::Owned).map_err(|_| ApiError::bad_request(PAYLOAD_INVALID))
}

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
