//! The binary form of JSON that some clients speak: read as text, and written from text.
//!
//! The Rust SDK writes items in this form unless it is told not to, and takes answers in it; the .NET SDK takes the
//! pages of queries in it, and items too if it is asked to (`formats` says when an answer is in it). A body begins
//! with the byte 0x80, which no JSON text can begin with, so nothing has to be negotiated for requests.
//!
//! A value is a *marker* byte and what the marker asks for (`markers`). Lengths, counts and numbers are
//! little-endian.
//!
//! ```text
//! 80                     the body begins
//! ED 0E 02               an object of 14 bytes and 2 members
//!    2C                  the word "id", one of those with a marker of their own
//!    81 31               a string (80) of 1 byte: "1"
//!    81 6E               "n"
//!    CB 07 00 00 00 …    a whole number of 8 bytes: 7
//! ```
//!
//! The reader takes every marker there is. Turning a body into text costs a copy, and in exchange there is one reader
//! of items, with one set of rules. The writer uses only what clients of every age can read: no references to earlier
//! strings, no packed strings, and whole numbers beyond 63 bits only if the client says that it knows them
//! ([`Features`]).

mod markers;
mod reader;
mod writer;

pub use reader::{is_binary, to_text};
pub use writer::{Features, from_text};

#[cfg(test)]
mod round_trip_tests;
