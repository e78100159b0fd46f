//! HybridRow, the binary form in which .NET sends batches and wants their results.
//!
//! A *row* is what its schema says: a version and the schema's number, bits that tell which columns are there,
//! columns of a fixed width, columns that begin with their length, and then the rare ones (*sparse*), each with its
//! type and its name. A body is a stream of rows (`record_io`): the head of a segment, and for each row a head with
//! its length and checksum.
//!
//! ```text
//! 81 F0D8FF7F  01 0A000000                    a segment, of 10 bytes
//! 81 F1D8FF7F  1F000000 12A975AE              a record of 31 bytes follows
//! 81 7054E17F  47 00000000 02000000           an operation with columns 0, 1, 2 and 6: Create (0) of a document (2)
//!              05 5B2261225D  0A 7B226964…    partitionKey ["a"], resourceBody {"id":"1"}
//! ```
//!
//! The schemas are tables (`schemas`), and one reader and one writer serve all of them (`row`). Missing on purpose:
//! columns that hold arrays, objects or other rows. No schema here has them, and whoever sends one is refused.

mod record_io;
mod row;
pub mod schemas;

pub use record_io::{Writer, is_stream, records};
pub use row::{Cell, read, write};

/// The bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

type Result<T> = std::result::Result<T, Malformed>;

/// The only version there is; the first byte of every row.
const VERSION: u8 = 0x81;
/// The version and the number of the schema.
const HEADER_BYTES: usize = 5;

#[cfg(test)]
mod tests;
