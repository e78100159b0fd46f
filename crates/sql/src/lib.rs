//! The query language as text: lexer, parser, syntax tree and printer.
//!
//! `parse_query` turns SQL text into a [`Query`]; `Display` on any node of the tree prints it back in
//! the service's normal form (binary operators parenthesised, strings in double quotes), which is what
//! query plans hand to clients. Nothing here knows about data: names are resolved, functions are
//! looked up and values are computed by the query crate.
//!
//! ```
//! let query = orrery_sql::parse_query("select c.a+1 from c where c.b = 'x'").unwrap();
//! assert_eq!(query.to_string(), r#"SELECT (c.a + 1) FROM c WHERE (c.b = "x")"#);
//! let error = orrery_sql::parse_query("SELECT c.id FROM c;").unwrap_err();
//! assert_eq!((error.code, error.start), ("SC1010", 18));
//! ```
//!
//! Deliberately missing: block comments (the service refuses them), and any recovery after the first
//! syntax error (the service reports one).

pub mod ast;
mod error;
mod lexer;
mod parser;
mod printer;
mod token;

pub use ast::*;
pub use error::SqlError;
pub use parser::{parse_condition, parse_expression, parse_query};
pub use token::is_reserved;

/// Longest query text accepted, the service's documented limit.
pub const QUERY_TEXT_BYTES_MAX: usize = 512 * 1024;

/// How deep expressions and subqueries may nest. The parser, the printer and everything that walks the
/// tree recurse, so this bounds their stack; chains of AND and OR are flat and do not count.
pub const NESTING_MAX: usize = 100;
