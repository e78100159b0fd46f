//! What can go wrong with a traversal, by what the caller can do about it.
//!
//! Messages are in the service's words and without its envelope (`Gremlin Query Execution Error: ` and so on), which
//! belongs to the wire.

use std::error::Error as StdError;
use std::fmt;

use orrery_budget::Exceeded;

pub type Result<T> = std::result::Result<T, Error>;

/// Where something stands in a script, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

impl Default for Position {
    fn default() -> Position {
        Position { line: 1, column: 1 }
    }
}

/// What kind of failure it is; the wire has a status code for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text is not Gremlin, or names a step that does not exist. GraphCompileException.
    Compile,
    /// It is Gremlin and failed while it ran. GraphRuntimeException.
    Runtime,
    /// Understood, and not offered. GraphNotSupportedException.
    NotSupported,
    /// A binding or request argument that cannot be used. ArgumentException.
    Argument,
    /// The time is over. GraphTimeoutException.
    Timeout,
    /// More memory than one request may take.
    Memory,
    /// Another limit: steps, depth of repeat, size of the script.
    Limit,
    /// The client has gone.
    Cancelled,
    /// What the graph's store answered; [`Error::storage`] has it.
    Storage,
}

/// A failure with its text.
#[derive(Debug)]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    pub position: Option<Position>,
    /// What the request had no more of.
    pub exceeded: Option<Exceeded>,
    storage: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), position: None, exceeded: None, storage: None }
    }

    pub fn runtime(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Runtime, message)
    }

    pub fn not_supported(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotSupported, message)
    }

    /// The text ends with where it is, as the service's does.
    pub fn compile(message: impl fmt::Display, at: Position) -> Error {
        let mut error =
            Error::new(ErrorKind::Compile, format!("{message} @ line {}, column {}.", at.line, at.column));
        error.position = Some(at);
        error
    }

    /// An error of the store behind the graph, handed through for who can map it.
    pub fn storage(error: impl StdError + Send + Sync + 'static) -> Error {
        let message = error.to_string();
        Error { storage: Some(Box::new(error)), ..Error::new(ErrorKind::Storage, message) }
    }

    /// What the store said, when it was the store.
    pub fn storage_error(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.storage.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {}

impl From<Exceeded> for Error {
    fn from(exceeded: Exceeded) -> Error {
        let kind = match exceeded {
            Exceeded::Time => ErrorKind::Timeout,
            Exceeded::ClientGone => ErrorKind::Cancelled,
            Exceeded::Steps { .. } => ErrorKind::Limit,
            _ => ErrorKind::Memory,
        };
        Error { exceeded: Some(exceeded), ..Error::new(kind, exceeded.to_string()) }
    }
}
