//! Patch requests: from JSON to operations.
//!
//! The body is `{"operations":[…],"condition":"from c where …"}`, or the bare list of operations. What an operation
//! does to a document is the model's business, and whether a path may be patched the engine's.

use orrery_engine::Condition;
use orrery_model::{PatchOp, Pointer, Value, parse_json_value};

use crate::body::text as body_text;
use crate::errors::{ApiError, PAYLOAD_INVALID, Result};

/// More operations than any patch may have are not even decoded.
const OPERATIONS_DECODED_MAX: usize = 1_000;

pub struct PatchRequest {
    pub operations: Vec<PatchOp>,
    pub condition: Option<Condition>,
}

/// Turns the text of a condition into a test of stored items.
pub type Compile<'a> = &'a dyn Fn(&str) -> Result<Condition>;

pub fn parse(body: &[u8], compile: Compile<'_>) -> Result<PatchRequest> {
    let body = parse_json_value(&body_text(body)?).map_err(|_| ApiError::bad_request(PAYLOAD_INVALID))?;
    from_value(&body, compile)
}

pub fn from_value(body: &Value, compile: Compile<'_>) -> Result<PatchRequest> {
    let list = body.as_array().or_else(|| body.get("operations").and_then(Value::as_array));
    let list = list.filter(|list| !list.is_empty()).ok_or_else(|| {
        ApiError::bad_request(
            "The patch request holds no operations: 'operations' must be a list with at least one of them.",
        )
    })?;
    if list.len() > OPERATIONS_DECODED_MAX {
        return Err(ApiError::bad_request("The number of patch operations can't exceed '10'."));
    }
    let operations =
        list.iter().enumerate().map(|(n, value)| operation(n + 1, value)).collect::<Result<_>>()?;
    let condition = match body.get("condition") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.trim().is_empty() => None,
        Some(Value::String(text)) => Some(compile(text)?),
        Some(_) => return Err(ApiError::bad_request("The condition of a patch must be text.")),
    };
    Ok(PatchRequest { operations, condition })
}

fn operation(place: usize, value: &Value) -> Result<PatchOp> {
    let fail = |what: &str| ApiError::bad_request(format!("For Operation({place}): {what}"));
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let pointer = |name: &str| -> Result<Pointer> {
        let path = text(name).ok_or_else(|| fail(&format!("'{name}' is missing or is no text.")))?;
        Pointer::parse(path).ok_or_else(|| fail(&format!("'{path}' is not a valid path.")))
    };
    let given = || value.get("value").cloned().ok_or_else(|| fail("'value' is missing."));
    let kind = text("op").ok_or_else(|| fail("'op' is missing."))?;
    match kind.to_ascii_lowercase().as_str() {
        "add" => Ok(PatchOp::Add { path: pointer("path")?, value: given()? }),
        "set" => Ok(PatchOp::Set { path: pointer("path")?, value: given()? }),
        "replace" => Ok(PatchOp::Replace { path: pointer("path")?, value: given()? }),
        "remove" => Ok(PatchOp::Remove { path: pointer("path")? }),
        "incr" | "increment" => {
            let by =
                given()?.as_number().ok_or_else(|| fail("the value of an increment must be a number."))?;
            Ok(PatchOp::Increment { path: pointer("path")?, by })
        }
        "move" => Ok(PatchOp::Move { from: pointer("from")?, path: pointer("path")? }),
        _ => Err(fail(&format!(
            "'{kind}' is not a patch operation. Use add, set, replace, remove, incr or move."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_text(text: &str) -> std::result::Result<usize, String> {
        parse(text.as_bytes(), &|condition| Err(ApiError::refused(condition)))
            .map(|request| request.operations.len())
            .map_err(|error| error.message.clone())
    }

    #[test]
    fn every_operation_is_read() {
        let body = r#"{"operations":[
            {"op":"add","path":"/a","value":1},{"op":"set","path":"/b/0","value":null},
            {"op":"replace","path":"/c","value":{}},{"op":"remove","path":"/d"},
            {"op":"incr","path":"/e","value":-1.5},{"op":"move","from":"/f","path":"/g"}]}"#;
        assert_eq!(parse_text(body), Ok(6));
        assert_eq!(parse_text(r#"[{"op":"remove","path":"/d"}]"#), Ok(1), "a bare list");
    }

    #[test]
    fn a_wrong_operation_is_named_by_its_place() {
        let check = |operation: &str, want: &str| {
            let error = parse_text(&format!(r#"[{{"op":"remove","path":"/d"}},{operation}]"#)).unwrap_err();
            assert!(error.starts_with("For Operation(2): ") && error.contains(want), "{error}");
        };
        check(r#"{"op":"fly","path":"/a"}"#, "'fly' is not a patch operation");
        check(r#"{"op":"add","path":"/a"}"#, "'value' is missing");
        check(r#"{"op":"incr","path":"/a","value":"1"}"#, "must be a number");
        check(r#"{"op":"remove","path":"a"}"#, "not a valid path");
        check(r#"{"path":"/a"}"#, "'op' is missing");
    }

    #[test]
    fn a_body_without_operations_is_refused() {
        for body in ["{}", "[]", r#"{"operations":{}}"#, "7"] {
            assert!(parse_text(body).is_err(), "{body}");
        }
        assert_eq!(parse_text("{"), Err(PAYLOAD_INVALID.to_owned()));
    }
}
