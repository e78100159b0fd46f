//! The body of a query, and the words for what is wrong with it.
//!
//! `{"query":"SELECT …","parameters":[{"name":"@a","value":1}]}`, or the bare text with the content type
//! `application/sql`. A parameter without a value is undefined, not null.

use http::StatusCode;
use orrery_model::{Value, parse_json_value};
use orrery_sql::{QUERY_TEXT_BYTES_MAX, SqlError};

use crate::errors::{ApiError, PAYLOAD_INVALID, Result, Voice};
use crate::service::Context;
use crate::write::{push_json_string, push_u64};

/// More than any query uses.
const PARAMETERS_MAX: usize = 10_000;
/// The code of a result that JSON cannot hold; it is the substatus as well.
const NOT_A_NUMBER: &str = "4001";

pub struct QueryRequest {
    pub text: String,
    pub parameters: Vec<(String, Value)>,
}

impl QueryRequest {
    pub fn parse(context: &Context<'_>) -> Result<QueryRequest> {
        let request = if is_bare_text(context) {
            let text = std::str::from_utf8(context.body).map_err(|_| ApiError::refused(PAYLOAD_INVALID))?;
            QueryRequest { text: text.to_owned(), parameters: Vec::new() }
        } else {
            parse_body(context.body)?
        };
        if request.text.len() > QUERY_TEXT_BYTES_MAX {
            return Err(refused("The SQL query text exceeded the maximum limit of 524288 characters."));
        }
        Ok(request)
    }
}

/// Whether the body is the query itself.
pub fn is_bare_text(context: &Context<'_>) -> bool {
    context.content_type().eq_ignore_ascii_case("application/sql")
}

pub fn parse_body(body: &[u8]) -> Result<QueryRequest> {
    let body = parse_json_value(body).map_err(|_| ApiError::refused(PAYLOAD_INVALID))?;
    let text = body.get("query").and_then(Value::as_str).ok_or_else(|| ApiError::refused(PAYLOAD_INVALID))?;
    let given = body.get("parameters").and_then(Value::as_array).unwrap_or_default();
    if given.len() > PARAMETERS_MAX {
        return Err(refused("The query has more parameters than what is supported."));
    }
    let mut parameters: Vec<(String, Value)> = Vec::with_capacity(given.len());
    let mut names = std::collections::HashSet::with_capacity(given.len());
    for parameter in given {
        let name = parameter.get("name").and_then(Value::as_str).unwrap_or("");
        if !is_name(name) {
            return Err(refused(format!(
                "Invalid query. Specified parameter name '{name}' is invalid. Parameter names should be in the format of symbol '@' followed by a valid identifier. E.g. @param1"
            )));
        }
        if !names.insert(name) {
            return Err(refused(format!("Invalid query. Specified duplicate parameter name '{name}'.")));
        }
        parameters.push((name.to_owned(), parameter.get("value").cloned().unwrap_or(Value::Undefined)));
    }
    Ok(QueryRequest { text: text.to_owned(), parameters })
}

fn is_name(name: &str) -> bool {
    let Some(identifier) = name.strip_prefix('@') else { return false };
    let mut characters = identifier.chars();
    characters.next().is_some_and(|first| first.is_alphabetic() || first == '_' || first.is_ascii_digit())
        && characters.all(|character| character.is_alphanumeric() || character == '_')
}

/// A query that the gateway refuses in a sentence.
pub fn refused(message: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, Voice::GatewayErrors, message)
}

/// A query that cannot be compiled, or whose result cannot be written. `running` says which of the two.
pub fn failed(error: &SqlError, running: bool) -> ApiError {
    if let Some(exceeded) = error.exceeded {
        return ApiError::exceeded(exceeded);
    }
    if error.code.is_empty() && error.others.is_empty() {
        return refused(&error.message);
    }
    let mut list = b"{\"errors\":[".to_vec();
    for (n, error) in error.all().enumerate() {
        if n > 0 {
            list.push(b',');
        }
        write(&mut list, error);
    }
    list.extend_from_slice(b"]}");
    let list = String::from_utf8(list).unwrap_or_default();
    let voice = if running { Voice::PartitionJson } else { Voice::GatewayJson };
    let answer = ApiError::new(StatusCode::BAD_REQUEST, voice, list);
    match error.code {
        NOT_A_NUMBER => answer.substatus(4001),
        _ => answer,
    }
}

fn write(out: &mut Vec<u8>, error: &SqlError) {
    out.extend_from_slice(b"{\"severity\":\"Error\"");
    if error.has_location() {
        out.extend_from_slice(b",\"location\":{\"start\":");
        push_u64(out, error.start as u64);
        out.extend_from_slice(b",\"end\":");
        push_u64(out, error.end as u64);
        out.push(b'}');
    }
    out.extend_from_slice(b",\"code\":");
    // Codes that are plain numbers are written as numbers.
    match error.code.parse::<u64>() {
        Ok(number) => push_u64(out, number),
        Err(_) => push_json_string(out, error.code),
    }
    out.extend_from_slice(b",\"message\":");
    push_json_string(out, &error.message);
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> std::result::Result<Vec<(String, Value)>, String> {
        parse_body(body.as_bytes()).map(|request| request.parameters).map_err(|error| error.message.clone())
    }

    #[test]
    fn a_parameter_without_a_value_is_undefined() {
        let parameters =
            parse(r#"{"query":"SELECT 1","parameters":[{"name":"@p"},{"name":"@q","value":null}]}"#).unwrap();
        assert!(parameters[0].1.is_undefined());
        assert!(parameters[1].1.is_null());
    }

    #[test]
    fn parameter_names_are_checked_in_the_services_words() {
        let wrong = parse(r#"{"query":"SELECT 1","parameters":[{"name":"p","value":1}]}"#).unwrap_err();
        assert!(wrong.starts_with("Invalid query. Specified parameter name 'p' is invalid."), "{wrong}");
        let twice = parse(r#"{"query":"","parameters":[{"name":"@p","value":1},{"name":"@p","value":2}]}"#)
            .unwrap_err();
        assert_eq!(twice, "Invalid query. Specified duplicate parameter name '@p'.");
    }

    #[test]
    fn a_syntax_error_says_where() {
        let error = SqlError {
            code: "SC1001",
            message: "Syntax error, incorrect syntax near 'x'.".into(),
            start: 3,
            end: 4,
            others: vec![],
            exceeded: None,
        };
        assert_eq!(
            failed(&error, false).message,
            r#"{"errors":[{"severity":"Error","location":{"start":3,"end":4},"code":"SC1001","message":"Syntax error, incorrect syntax near 'x'."}]}"#
        );
    }

    #[test]
    fn an_error_without_a_code_is_a_sentence() {
        let error = failed(&SqlError::whole("", "Compositions are not allowed."), false);
        assert_eq!(
            (error.voice, error.message.as_str()),
            (Voice::GatewayErrors, "Compositions are not allowed.")
        );
        assert_eq!(failed(&SqlError::whole("4001", "NaN"), true).substatus, 4001);
    }
}
