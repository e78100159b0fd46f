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
        Some(message) => {
            let lines: Vec<&str> = message.lines().filter(|line| !line.starts_with("ActivityId")).collect();
            let text = lines.join(" ").trim().to_owned();
            format!("{} {text}", answer.status)
        }
        None => answer.message(),
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
