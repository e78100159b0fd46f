//! Exit codes that scripts can use.

use crate::workload::client::Answer;

/// What the numbers mean; 1 is for everything that has none of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCodes {
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Conflict = 4,
    Incomplete = 5,
    NotPermitted = 6,
}

/// As `--help` tells it.
pub const EXIT_CODES_HELP: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 exists already or has changed, 5 done in part, 6 not permitted.";

/// Something that went wrong in a way that has a number.
#[derive(Debug)]
pub struct Failure {
    pub code: ExitCodes,
    pub message: String,
}

impl Failure {
    pub fn new(code: ExitCodes, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    pub fn of_answer(answer: &Answer) -> Failure {
        let code = match answer.status {
            404 => ExitCodes::NotFound,
            409 | 412 => ExitCodes::Conflict,
            401 | 403 => ExitCodes::NotPermitted,
            _ => ExitCodes::Failed,
        };
        Failure::new(code, message(answer))
    }
}

/// The first line of an error's text: what follows identifies the request, and is for logs.
fn message(answer: &Answer) -> String {
    let parsed: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    match parsed["message"].as_str() {
        Some(message) => format!("{} {}", answer.status, without_trailer(&sentences(message))),
        None => answer.message(),
    }
}

/// Some messages end with when and where the request was sent, which is for logs too.
fn without_trailer(text: &str) -> &str {
    let end = text.find("RequestStartTime:").unwrap_or(text.len());
    text[..end].trim_end_matches([' ', ',', '\t'])
}

/// The service wraps many of its messages into JSON: `Message: {"Errors":["…"]}`. People want the sentences.
fn sentences(message: &str) -> String {
    let lines: Vec<&str> = message.lines().filter(|line| !line.starts_with("ActivityId")).collect();
    let text = lines.join(" ").trim().to_owned();
    let inner = text.find('{').and_then(|at| serde_json::from_str::<serde_json::Value>(&text[at..]).ok());
    let Some(inner) = inner else { return text };
    let errors = ["errors", "Errors"].iter().find_map(|name| inner[name].as_array());
    let one = |error: &serde_json::Value| -> Option<String> {
        let message = error.as_str().or_else(|| error["message"].as_str())?;
        match (error["location"]["start"].as_u64(), error["location"]["end"].as_u64()) {
            (Some(start), Some(end)) => Some(format!("{message} (characters {start} to {end})")),
            _ => Some(message.to_owned()),
        }
    };
    let told: Vec<String> = errors.into_iter().flatten().filter_map(one).collect();
    if told.is_empty() { text } else { told.join(" ") }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::{sentences, without_trailer};

    #[test]
    fn when_a_request_was_sent_is_for_logs() {
        let text =
            "Not there. More: https://aka.ms/x,  RequestStartTime: Thu, 19 Nov 2026 22:16:35 GMT, Number: 1";
        assert_eq!(without_trailer(text), "Not there. More: https://aka.ms/x");
        assert_eq!(without_trailer("Plain."), "Plain.");
    }

    #[test]
    fn messages_become_sentences() {
        for (message, told) in [
            ("Message: {\"Errors\":[\"Resource Not Found.\"]}\r\nActivityId: 1", "Resource Not Found."),
            (
                r#"Message: {"errors":[{"message":"Identifier 'x' could not be resolved.","location":{"start":7,"end":8}}]}"#,
                "Identifier 'x' could not be resolved. (characters 7 to 8)",
            ),
            ("A plain one.\nActivityId: 1", "A plain one."),
            ("Message: {not JSON}", "Message: {not JSON}"),
        ] {
            assert_eq!(sentences(message), told);
        }
    }
}
