//! `POST /_orrery/check`: what is wrong with the text of a query, and where, without running it.
//!
//! ```text
//! {"query": "SELECT * FORM c"}    {"errors": [{"code": "SC1001", "message": "…", "start": 9, "end": 13}]}
//! ```
//!
//! For editors, which ask while somebody types: a wrong text is an answer and no error, nothing is charged, and no
//! container is looked at.

use http::StatusCode;
use orrery_sql::{SqlError, parse_query};
use serde_json::{Value, json};

use crate::body;
use crate::errors::{ApiError, Result};
use crate::headers::Answer;
use crate::service::Context;

pub fn check(context: &Context<'_>) -> Result<Answer> {
    let body = body::object(context)?;
    let Some(text) = body.get("query").and_then(Value::as_str) else {
        return Err(ApiError::refused("The body is an object with the member 'query', a text."));
    };
    let errors = parse_query(text).err().map_or_else(Vec::new, |error| told(&error));
    let answer = json!({ "errors": errors });
    Ok(context.answer(StatusCode::OK).body(answer.to_string().into_bytes()))
}

/// An error and those that were found with it.
fn told(error: &SqlError) -> Vec<Value> {
    let one = |error: &SqlError| json!({ "code": error.code, "message": error.message, "start": error.start, "end": error.end });
    std::iter::once(error).chain(&error.others).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_where_it_is() {
        let text = "SELECT * FORM c";
        let told = told(&parse_query(text).unwrap_err());
        let (start, end) = (told[0]["start"].as_u64().unwrap(), told[0]["end"].as_u64().unwrap());
        assert_eq!(&text[start as usize..end as usize], "FORM");
    }
}
