//! The schemas: what columns the rows have that clients send and read.
//!
//! Columns stand in the order in which bits are given to them and numbers to their names: fixed, variable, sparse.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int32,
    UInt32,
    Float64,
    Utf8,
    Binary,
}

/// Where in a row a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Always there, without a bit.
    Required,
    /// There if its bit says so; its place is kept in any case.
    Fixed,
    Variable,
    Sparse,
}

pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub storage: Storage,
}

pub struct Schema {
    pub id: u32,
    pub columns: &'static [Column],
}

impl Schema {
    /// How many columns have a bit that says whether they are there.
    pub fn bits(&self) -> usize {
        self.columns
            .iter()
            .filter(|column| matches!(column.storage, Storage::Fixed | Storage::Variable))
            .count()
    }
}

macro_rules! schemas {
    ($($(#[$about:meta])* $schema:ident $columns:ident $id:literal: $($constant:ident $name:literal $kind:ident $storage:ident,)*;)*) => {
        $(
            $(#[$about])*
            pub static $schema: Schema = Schema {
                id: $id,
                columns: &[$(Column { name: $name, kind: Kind::$kind, storage: Storage::$storage },)*],
            };

            /// Where in its row each column is.
            #[allow(dead_code, reason = "a table is whole, whoever uses which part of it")]
            pub mod $columns {
                #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "these are the names of constants")]
                enum Place { $($constant,)* }
                $(pub const $constant: usize = Place::$constant as usize;)*
            }
        )*
    };
}

schemas! {
    /// The head of a segment of a stream; its length is its own.
    SEGMENT segment 0x7FFF_D8F0:
        LENGTH "length" Int32 Fixed,
        COMMENT "comment" Utf8 Sparse,
        SDL "sdl" Utf8 Sparse,
    ;
    /// What stands before each row.
    RECORD record 0x7FFF_D8F1:
        LENGTH "length" Int32 Required,
        CRC32 "crc32" UInt32 Required,
    ;
    /// One operation of a batch.
    OPERATION operation 0x7FE1_5470:
        OPERATION_TYPE "operationType" Int32 Fixed,
        RESOURCE_TYPE "resourceType" Int32 Fixed,
        PARTITION_KEY "partitionKey" Utf8 Variable,
        EFFECTIVE_PARTITION_KEY "effectivePartitionKey" Binary Variable,
        ID "id" Utf8 Variable,
        BINARY_ID "binaryId" Binary Variable,
        RESOURCE_BODY "resourceBody" Binary Variable,
        INDEXING_DIRECTIVE "indexingDirective" Utf8 Sparse,
        IF_MATCH "ifMatch" Utf8 Sparse,
        IF_NONE_MATCH "ifNoneMatch" Utf8 Sparse,
        TIME_TO_LIVE "timeToLiveInSeconds" Int32 Sparse,
        MINIMAL_RETURN "minimalReturnPreference" Bool Sparse,
    ;
    /// What became of one.
    RESULT result 0x7FE1_5471:
        STATUS "statusCode" Int32 Fixed,
        SUBSTATUS "subStatusCode" Int32 Fixed,
        ETAG "eTag" Utf8 Variable,
        RESOURCE_BODY "resourceBody" Binary Variable,
        RETRY_AFTER_MS "retryAfterMilliseconds" UInt32 Sparse,
        REQUEST_CHARGE "requestCharge" Float64 Sparse,
    ;
}

/// The types of sparse columns, and of those that are passed over: their code, and how long a value is.
pub enum Length {
    Bytes(usize),
    /// Seven bits in each byte, the highest one says that another follows.
    Varint,
    /// Its length as such a number, and so many bytes.
    Prefixed,
}

pub const NULL: u8 = 1;
pub const FALSE: u8 = 2;
pub const TRUE: u8 = 3;

/// The code of a kind; a truth has two, and this is true.
pub fn code(kind: Kind) -> u8 {
    match kind {
        Kind::Bool => TRUE,
        Kind::Int32 => 7,
        Kind::UInt32 => 11,
        Kind::Float64 => 16,
        Kind::Utf8 => 20,
        Kind::Binary => 21,
    }
}

/// How long a value of this type is; `None` for those that hold others, and for what is no type.
#[rustfmt::skip]
pub fn length(code: u8) -> Option<Length> {
    Some(match code {
        NULL | FALSE | TRUE => Length::Bytes(0),
        5 | 9 => Length::Bytes(1),                  // Int8, UInt8
        6 | 10 => Length::Bytes(2),                 // Int16, UInt16
        7 | 11 | 15 => Length::Bytes(4),            // Int32, UInt32, Float32
        8 | 12 | 16 | 18 | 23 => Length::Bytes(8),  // Int64, UInt64, Float64, DateTime, UnixDateTime
        24 => Length::Bytes(12),                    // MongoDbObjectId
        17 | 19 | 22 => Length::Bytes(16),          // Decimal, Guid, Float128
        13 | 14 => Length::Varint,                  // VarInt, VarUInt
        20 | 21 => Length::Prefixed,                // Utf8, Binary
        _ => return None,
    })
}
