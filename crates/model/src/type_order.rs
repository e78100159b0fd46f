//! The types of values, in the one order that all of the database sorts them in.
//!
//! SQL has seven of them, the rest is what only other APIs store. Sorting, comparing and index keys rest on this list:
//! `order` compares values by it, `query` evaluates by it, and `index` checks its type bytes against it.

use crate::document::raw::Kind;

/// What a value is, from the type that sorts first to the one that sorts last. Decimals lie among the numbers by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    Undefined,
    MinKey,
    Null,
    Bool,
    Number,
    Decimal,
    String,
    Array,
    Object,
    Binary,
    ObjectId,
    Date,
    Timestamp,
    Regex,
    Code,
    MaxKey,
}

impl Type {
    pub const ALL: [Type; 16] = [
        Type::Undefined,
        Type::MinKey,
        Type::Null,
        Type::Bool,
        Type::Number,
        Type::Decimal,
        Type::String,
        Type::Array,
        Type::Object,
        Type::Binary,
        Type::ObjectId,
        Type::Date,
        Type::Timestamp,
        Type::Regex,
        Type::Code,
        Type::MaxKey,
    ];

    #[inline]
    pub fn of(kind: Kind) -> Type {
        match kind {
            Kind::Null => Type::Null,
            Kind::Bool => Type::Bool,
            Kind::Number => Type::Number,
            Kind::String => Type::String,
            Kind::Array => Type::Array,
            Kind::Object => Type::Object,
            Kind::ObjectId => Type::ObjectId,
            Kind::Date => Type::Date,
            Kind::Timestamp => Type::Timestamp,
            Kind::Decimal => Type::Decimal,
            Kind::Binary => Type::Binary,
            Kind::Regex => Type::Regex,
            Kind::Code => Type::Code,
            Kind::MinKey => Type::MinKey,
            Kind::MaxKey => Type::MaxKey,
        }
    }

    /// Whether only other APIs than SQL store it. Nothing of the language equals it or compares with it.
    pub fn is_extended(self) -> bool {
        !matches!(
            self,
            Type::Undefined
                | Type::Null
                | Type::Bool
                | Type::Number
                | Type::String
                | Type::Array
                | Type::Object
        )
    }

    /// Whether SQL's MIN and MAX are defined beside it. Of what sorts in the midst of these, only decimals are found
    /// nowhere else.
    pub fn has_extremes(self) -> bool {
        matches!(
            self,
            Type::Undefined | Type::Null | Type::Bool | Type::Number | Type::Decimal | Type::String
        )
    }

    /// Place in MongoDB's order of types.
    pub(crate) fn in_bson(self) -> u8 {
        match self {
            Type::MinKey => 0,
            Type::Undefined | Type::Null => 1,
            Type::Number | Type::Decimal => 2,
            Type::String => 3,
            Type::Object => 4,
            Type::Array => 5,
            Type::Binary => 6,
            Type::ObjectId => 7,
            Type::Bool => 8,
            Type::Date => 9,
            Type::Timestamp => 10,
            Type::Regex => 11,
            Type::Code => 12,
            Type::MaxKey => 13,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_its_own_order() {
        assert!(Type::ALL.is_sorted_by(|a, b| a < b));
    }
}
