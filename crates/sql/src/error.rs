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

impl SqlError {
    /// An error at a place of the text.
    pub fn at(code: &'static str, message: impl Into<String>, span: crate::ast::Span) -> SqlError {
        let (start, end) = (span.start as usize, span.end as usize);
        SqlError { code, message: message.into(), start, end, others: Vec::new(), exceeded: None }
    }

    /// An error of the query as a whole, reported without a location.
    pub fn whole(code: &'static str, message: impl Into<String>) -> SqlError {
        SqlError { code, message: message.into(), start: 0, end: 0, others: Vec::new(), exceeded: None }
    }

    /// Whether the service prints a location with this error.
    pub fn has_location(&self) -> bool {
        self.code.starts_with("SC")
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
