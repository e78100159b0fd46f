//! Errors of the query language in the service's own terms: a code, a message, and where in the text.

use orrery_budget::Exceeded;

/// A query that was refused.
///
/// `code` is what stands in the service's error list: `SC1001` and the like, `2206` and `4001` for the
/// few that are plain numbers, and empty for refusals that come as a bare sentence. `start` and `end`
/// count UTF-16 code units, as every client of the service does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SqlError {
    pub code: &'static str,
    pub message: String,
    pub start: usize,
    pub end: usize,
    /// Further errors found in the same text; the service lists them all.
    pub others: Vec<SqlError>,
    /// Nothing is wrong with the query, but its request has used up its budget.
    pub exceeded: Option<Exceeded>,
}

/// All codes there are.
const CODES: &[&str] = &[
    "2206", "4001", "SC1001", "SC1002", "SC1010", "SC1011", "SC1012", "SC2001", "SC2005", "SC2006", "SC2011",
    "SC2022", "SC2033", "SC2034", "SC2041", "SC2050", "SC2060", "SC2061", "SC2062", "SC2071", "SC2101",
    "SC2102", "SC2103", "SC2202", "SC2203", "SC2204", "SC2213", "SC2221", "SC2223", "SC2224", "SC2225",
    "SC2228", "SC2229", "SC2240", "SC2990",
];

impl SqlError {
    /// An error at a place of the text.
    pub fn at(code: &'static str, message: impl Into<String>, span: crate::ast::Span) -> SqlError {
        debug_assert!(code.is_empty() || CODES.contains(&code), "{code} is not listed");
        let (start, end) = (span.start as usize, span.end as usize);
        SqlError { code, message: message.into(), start, end, others: Vec::new(), exceeded: None }
    }

    /// An error of the query as a whole, reported without a location.
    pub fn whole(code: &'static str, message: impl Into<String>) -> SqlError {
        debug_assert!(code.is_empty() || CODES.contains(&code), "{code} is not listed");
        SqlError { code, message: message.into(), start: 0, end: 0, others: Vec::new(), exceeded: None }
    }

    /// Whether the service prints a location with this error.
    pub fn has_location(&self) -> bool {
        self.code.starts_with("SC")
    }

    /// The code of an error that came as text; empty where it is none.
    pub fn known_code(code: &str) -> &'static str {
        CODES.iter().find(|known| **known == code).copied().unwrap_or_default()
    }

    /// This error and all that were found with it.
    pub fn all(&self) -> impl Iterator<Item = &SqlError> {
        std::iter::once(self).chain(self.others.iter())
    }
}

impl From<Exceeded> for SqlError {
    fn from(exceeded: Exceeded) -> SqlError {
        SqlError { exceeded: Some(exceeded), ..SqlError::whole("", exceeded.to_string()) }
    }
}

impl From<Box<SqlError>> for SqlError {
    fn from(error: Box<SqlError>) -> SqlError {
        *error
    }
}
