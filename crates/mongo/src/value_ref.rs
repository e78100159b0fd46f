//! A borrowed value: in an owned one, or in the bytes of a stored item.
//!
//! Filters, sort keys and field paths read through this, so that an item of a container is looked at where it lies and
//! only what an expression asks for is taken out of it.

use std::sync::Arc;

use orrery_model::{Decimal128, Elements, Extended, Members, Number, NumberWidth, Raw};

use crate::stored::{self, StoredMembers};
use crate::value::{Bson, Document, Kind, Regex};

#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    Owned(&'a Bson),
    OwnedDocument(&'a Document),
    /// A value inside of a stored item.
    Stored(Raw<'a>),
    /// A stored item as a whole, of which clients see `_id` where it has `id` (see [`stored`]).
    Item(Raw<'a>),
}

/// A number as it is stored, for arithmetic and comparison.
#[derive(Clone, Copy, Debug)]
pub enum NumberRef {
    Int32(i32),
    Int64(i64),
    Double(f64),
    Decimal(Decimal128),
}

impl<'a> From<&'a Bson> for ValueRef<'a> {
    fn from(value: &'a Bson) -> ValueRef<'a> {
        ValueRef::Owned(value)
    }
}

impl<'a> From<&'a Document> for ValueRef<'a> {
    fn from(document: &'a Document) -> ValueRef<'a> {
        ValueRef::OwnedDocument(document)
    }
}

impl<'a> ValueRef<'a> {
    pub fn kind(self) -> Kind {
        match self {
            ValueRef::Owned(value) => value.kind(),
            ValueRef::OwnedDocument(_) | ValueRef::Item(_) => Kind::Document,
            ValueRef::Stored(raw) => match raw.kind() {
                orrery_model::Kind::Null => Kind::Null,
                orrery_model::Kind::Bool => Kind::Bool,
                orrery_model::Kind::Number => match raw.number_width() {
                    Some(NumberWidth::Int32) => Kind::Int32,
                    Some(NumberWidth::Int64) => Kind::Int64,
                    _ => Kind::Double,
                },
                orrery_model::Kind::String => Kind::String,
                orrery_model::Kind::Array => Kind::Array,
                orrery_model::Kind::Object => Kind::Document,
                orrery_model::Kind::ObjectId => Kind::ObjectId,
                orrery_model::Kind::Date => Kind::Date,
                orrery_model::Kind::Timestamp => Kind::Timestamp,
                orrery_model::Kind::Decimal => Kind::Decimal,
                orrery_model::Kind::Binary => Kind::Binary,
                orrery_model::Kind::Regex => Kind::Regex,
                orrery_model::Kind::Code => Kind::Code,
                orrery_model::Kind::MinKey => Kind::MinKey,
                orrery_model::Kind::MaxKey => Kind::MaxKey,
                _ => Kind::Undefined,
            },
        }
    }

    pub fn is_null(self) -> bool {
        matches!(self.kind(), Kind::Null)
    }

    pub fn as_bool(self) -> Option<bool> {
        match self {
            ValueRef::Owned(value) => value.as_bool(),
            ValueRef::Stored(raw) => raw.as_bool(),
            _ => None,
        }
    }

    /// A string, or a symbol.
    pub fn as_str(self) -> Option<&'a str> {
        match self {
            ValueRef::Owned(value) => value.as_str(),
            ValueRef::Stored(raw) => raw.as_str(),
            _ => None,
        }
    }

    /// The bytes of a string or a symbol, which are UTF-8: for comparing.
    pub(crate) fn text_bytes(self) -> &'a [u8] {
        match self {
            ValueRef::Owned(value) => value.as_str().unwrap_or_default().as_bytes(),
            ValueRef::Stored(raw) => raw.string_bytes().unwrap_or_default(),
            _ => &[],
        }
    }

    pub fn as_number(self) -> Option<NumberRef> {
        match self {
            ValueRef::Owned(Bson::Int32(value)) => Some(NumberRef::Int32(*value)),
            ValueRef::Owned(Bson::Int64(value)) => Some(NumberRef::Int64(*value)),
            ValueRef::Owned(Bson::Double(value)) => Some(NumberRef::Double(*value)),
            ValueRef::Owned(Bson::Decimal(value)) => Some(NumberRef::Decimal(*value)),
            ValueRef::Stored(raw) => match (raw.as_number(), raw.number_width()) {
                (Some(Number::Int(value)), Some(NumberWidth::Int32)) => Some(NumberRef::Int32(value as i32)),
                (Some(Number::Int(value)), _) => Some(NumberRef::Int64(value)),
                (Some(Number::UInt(value)), _) => Some(NumberRef::Double(value as f64)),
                (Some(Number::Double(value)), _) => Some(NumberRef::Double(value)),
                (None, _) => match raw.as_extended() {
                    Some(Extended::Decimal(value)) => Some(NumberRef::Decimal(value)),
                    _ => None,
                },
            },
            _ => None,
        }
    }

    /// A value that JSON has no word for.
    pub fn as_extended(self) -> Option<Extended<'a>> {
        match self {
            ValueRef::Owned(value) => match value {
                Bson::ObjectId(id) => Some(Extended::ObjectId(*id)),
                Bson::Date(date) => Some(Extended::Date(*date)),
                Bson::Timestamp { seconds, increment } => {
                    Some(Extended::Timestamp { seconds: *seconds, increment: *increment })
                }
                Bson::Decimal(value) => Some(Extended::Decimal(*value)),
                Bson::Binary { subtype, bytes } => Some(Extended::Binary { subtype: *subtype, bytes }),
                Bson::Regex(regex) => {
                    Some(Extended::Regex { pattern: &regex.pattern, options: &regex.options })
                }
                Bson::Code(text) => Some(Extended::Code(text)),
                Bson::MinKey => Some(Extended::MinKey),
                Bson::MaxKey => Some(Extended::MaxKey),
                _ => None,
            },
            ValueRef::Stored(raw) => raw.as_extended(),
            _ => None,
        }
    }

    /// A member of a document.
    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        match self {
            ValueRef::Owned(Bson::Document(document)) | ValueRef::OwnedDocument(document) => {
                document.get(name).map(ValueRef::Owned)
            }
            ValueRef::Stored(raw) => raw.get(name).map(ValueRef::Stored),
            ValueRef::Item(raw) => stored::member(raw, name).map(ValueRef::Stored),
            ValueRef::Owned(_) => None,
        }
    }

    /// An element of an array.
    pub fn at(self, index: usize) -> Option<ValueRef<'a>> {
        match self {
            ValueRef::Owned(Bson::Array(elements)) => elements.get(index).map(ValueRef::Owned),
            ValueRef::Stored(raw) => raw.at(index).map(ValueRef::Stored),
            _ => None,
        }
    }

    /// Elements of an array, or members of a document.
    pub fn len(self) -> usize {
        match self {
            ValueRef::Owned(Bson::Array(elements)) => elements.len(),
            ValueRef::Owned(Bson::Document(document)) | ValueRef::OwnedDocument(document) => document.len(),
            ValueRef::Stored(raw) => raw.len(),
            ValueRef::Item(_) => self.members().count(),
            ValueRef::Owned(_) => 0,
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Elements of an array; none of anything else.
    pub fn elements(self) -> ElementsOf<'a> {
        match self {
            ValueRef::Owned(Bson::Array(elements)) => ElementsOf::Owned(elements.iter()),
            ValueRef::Stored(raw) if raw.kind() == orrery_model::Kind::Array => {
                ElementsOf::Stored(raw.elements())
            }
            _ => ElementsOf::Owned([].iter()),
        }
    }

    /// Members of a document; none of anything else.
    pub fn members(self) -> MembersOf<'a> {
        match self {
            ValueRef::Owned(Bson::Document(document)) | ValueRef::OwnedDocument(document) => {
                MembersOf::Owned(document.as_slice().iter())
            }
            ValueRef::Stored(raw) if raw.kind() == orrery_model::Kind::Object => {
                MembersOf::Stored(raw.members())
            }
            ValueRef::Item(raw) => MembersOf::Item(stored::members(raw)),
            _ => MembersOf::Owned([].iter()),
        }
    }

    /// Takes the value out. Costs nothing but a count where it is owned.
    pub fn to_bson(self) -> Bson {
        match self {
            ValueRef::Owned(value) => value.clone(),
            ValueRef::OwnedDocument(document) => Bson::Document(document.clone()),
            ValueRef::Item(_) => Bson::Document(self.to_document()),
            ValueRef::Stored(raw) => match raw.kind() {
                orrery_model::Kind::Null => Bson::Null,
                orrery_model::Kind::Bool => Bson::Bool(raw.as_bool().unwrap_or_default()),
                orrery_model::Kind::Number => match self.as_number() {
                    Some(NumberRef::Int32(value)) => Bson::Int32(value),
                    Some(NumberRef::Int64(value)) => Bson::Int64(value),
                    Some(NumberRef::Double(value)) => Bson::Double(value),
                    _ => Bson::Null,
                },
                orrery_model::Kind::String => Bson::String(raw.as_str().unwrap_or_default().into()),
                orrery_model::Kind::Array => Bson::array(self.elements().map(ValueRef::to_bson).collect()),
                orrery_model::Kind::Object => Bson::Document(self.to_document()),
                _ => raw.as_extended().map_or(Bson::Null, of_extended),
            },
        }
    }

    /// Takes a document out; an empty one of anything else.
    pub fn to_document(self) -> Document {
        match self {
            ValueRef::Owned(Bson::Document(document)) | ValueRef::OwnedDocument(document) => document.clone(),
            _ => self.members().map(|(name, value)| (Arc::from(name), value.to_bson())).collect(),
        }
    }
}

/// The owned form of a value that JSON has no word for.
pub fn of_extended(value: Extended<'_>) -> Bson {
    match value {
        Extended::ObjectId(id) => Bson::ObjectId(id),
        Extended::Date(date) => Bson::Date(date),
        Extended::Timestamp { seconds, increment } => Bson::Timestamp { seconds, increment },
        Extended::Decimal(value) => Bson::Decimal(value),
        Extended::Binary { subtype, bytes } => Bson::Binary { subtype, bytes: bytes.into() },
        Extended::Regex { pattern, options } => {
            Bson::Regex(Arc::new(Regex { pattern: pattern.into(), options: options.into() }))
        }
        Extended::Code(text) => Bson::Code(text.into()),
        Extended::MinKey => Bson::MinKey,
        Extended::MaxKey => Bson::MaxKey,
    }
}

pub enum ElementsOf<'a> {
    Owned(std::slice::Iter<'a, Bson>),
    Stored(Elements<'a>),
}

impl<'a> Iterator for ElementsOf<'a> {
    type Item = ValueRef<'a>;

    fn next(&mut self) -> Option<ValueRef<'a>> {
        match self {
            ElementsOf::Owned(elements) => elements.next().map(ValueRef::Owned),
            ElementsOf::Stored(elements) => elements.next().map(ValueRef::Stored),
        }
    }
}

pub enum MembersOf<'a> {
    Owned(std::slice::Iter<'a, (Arc<str>, Bson)>),
    Stored(Members<'a>),
    Item(StoredMembers<'a>),
}

impl<'a> Iterator for MembersOf<'a> {
    type Item = (&'a str, ValueRef<'a>);

    fn next(&mut self) -> Option<(&'a str, ValueRef<'a>)> {
        match self {
            MembersOf::Owned(members) => {
                members.next().map(|(name, value)| (&**name, ValueRef::Owned(value)))
            }
            MembersOf::Stored(members) => members.next().map(|(name, value)| (name, ValueRef::Stored(value))),
            MembersOf::Item(members) => members.next().map(|(name, value)| (name, ValueRef::Stored(value))),
        }
    }
}
