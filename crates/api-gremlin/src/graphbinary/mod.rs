//! GraphBinary 1: values as bytes, each with a code of its type and a flag that says whether it is null.
//!
//! ```text
//! 01 00 00000001              the int 1, fully qualified: type, flag, value
//! 03 00 00000001 61           the string a
//! 09 00 00000000              a list without items
//! fe 01                       null
//! ```

mod read;
mod trees;
mod write;

pub use read::Reader;
pub use trees::trees_as_maps;
pub use write::{string as write_string, value as write_value};

/// Codes of types.
pub mod code {
    pub const INT: u8 = 0x01;
    pub const LONG: u8 = 0x02;
    pub const STRING: u8 = 0x03;
    pub const DATE: u8 = 0x04;
    pub const TIMESTAMP: u8 = 0x05;
    pub const CLASS: u8 = 0x06;
    pub const DOUBLE: u8 = 0x07;
    pub const FLOAT: u8 = 0x08;
    pub const LIST: u8 = 0x09;
    pub const MAP: u8 = 0x0a;
    pub const SET: u8 = 0x0b;
    pub const UUID: u8 = 0x0c;
    pub const EDGE: u8 = 0x0d;
    pub const PATH: u8 = 0x0e;
    pub const PROPERTY: u8 = 0x0f;
    pub const GRAPH: u8 = 0x10;
    pub const VERTEX: u8 = 0x11;
    pub const VERTEX_PROPERTY: u8 = 0x12;
    pub const BARRIER: u8 = 0x13;
    pub const BINDING: u8 = 0x14;
    pub const BYTECODE: u8 = 0x15;
    pub const CARDINALITY: u8 = 0x16;
    pub const COLUMN: u8 = 0x17;
    pub const DIRECTION: u8 = 0x18;
    pub const OPERATOR: u8 = 0x19;
    pub const ORDER: u8 = 0x1a;
    pub const PICK: u8 = 0x1b;
    pub const POP: u8 = 0x1c;
    pub const LAMBDA: u8 = 0x1d;
    pub const P: u8 = 0x1e;
    pub const SCOPE: u8 = 0x1f;
    pub const T: u8 = 0x20;
    pub const TRAVERSER: u8 = 0x21;
    pub const BIG_DECIMAL: u8 = 0x22;
    pub const BIG_INTEGER: u8 = 0x23;
    pub const BYTE: u8 = 0x24;
    pub const BYTE_BUFFER: u8 = 0x25;
    pub const SHORT: u8 = 0x26;
    pub const BOOLEAN: u8 = 0x27;
    pub const TEXT_P: u8 = 0x28;
    pub const STRATEGY: u8 = 0x29;
    pub const BULK_SET: u8 = 0x2a;
    pub const TREE: u8 = 0x2b;
    pub const MERGE: u8 = 0x2e;
    pub const DT: u8 = 0x2f;
    pub const GTYPE: u8 = 0x30;
    pub const CHAR: u8 = 0x80;
    pub const DURATION: u8 = 0x81;
    pub const INSTANT: u8 = 0x83;
    pub const OFFSET_DATE_TIME: u8 = 0x88;
    pub const NULL: u8 = 0xfe;
}
