//! An entity as a client sends it: JSON with types beside the values.
//!
//! ```text
//! {"PartitionKey":"p","RowKey":"r","Age":23,"Orders@odata.type":"Edm.Int64","Orders":"255"}
//! ```
//!
//! Types that are not named follow from the JSON. What is null is as if it were not there; `Timestamp` and everything
//! that begins with `odata.` is the server's and passed over.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer, MapAccess, Visitor};

use crate::dialect::Dialect;
use crate::edm::{EdmType, EdmValue};
use crate::errors::{Code, Result, TableError};
use crate::names;

/// Most properties besides keys and timestamp.
pub const PROPERTIES_MAX: usize = 252;
/// Longest string or binary of storage.
const STORAGE_VALUE_BYTES_MAX: usize = 64 * 1024;
/// Largest entity of storage.
const STORAGE_ENTITY_BYTES_MAX: usize = 1024 * 1024;
const TYPE_SUFFIX: &str = "@odata.type";
/// Cosmos DB takes a property of this name for its own etag and does not keep it; `etag` and `ETag` are the client's.
const RESERVED_BY_COSMOS: &str = "Etag";

#[derive(Debug, Default, PartialEq)]
pub struct Entity<'a> {
    pub partition_key: Option<Cow<'a, str>>,
    pub row_key: Option<Cow<'a, str>>,
    /// A key was sent with a type that is none of strings. No new entity can have one.
    pub keys_typed: bool,
    /// In the order in which they were sent.
    pub properties: Vec<(Cow<'a, str>, EdmValue<'a>)>,
}

impl<'a> Entity<'a> {
    pub fn parse(body: &'a [u8], dialect: Dialect) -> Result<Entity<'a>> {
        let text = std::str::from_utf8(body).map_err(|_| invalid())?;
        let mut from = serde_json::Deserializer::from_str(text);
        let members = from.deserialize_map(MembersVisitor).map_err(|_| invalid())?;
        from.end().map_err(|_| invalid())?;
        Entity::of_members(members, dialect)
    }

    fn of_members(members: Vec<(Cow<'a, str>, Scalar<'a>)>, dialect: Dialect) -> Result<Entity<'a>> {
        let mut types: Vec<(&str, EdmType)> = Vec::new();
        for (name, value) in &members {
            if let Some(of) = name.strip_suffix(TYPE_SUFFIX) {
                let Scalar::String(kind) = value else { return Err(invalid()) };
                types.push((of, EdmType::named(kind).ok_or_else(invalid)?));
            }
        }
        // Annotations borrow the names that the values give away below.
        let types: Vec<(String, EdmType)> =
            types.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect();
        let mut entity = Entity::default();
        for (name, value) in members {
            if name.ends_with(TYPE_SUFFIX) || name.starts_with("odata.") || name == "Timestamp" {
                continue;
            }
            let kind = types.iter().find(|(of, _)| *of == name).map(|(_, kind)| *kind);
            if dialect == Dialect::Cosmos && name == RESERVED_BY_COSMOS {
                continue;
            }
            let place = match &*name {
                "PartitionKey" => &mut entity.partition_key,
                "RowKey" => &mut entity.row_key,
                _ => {
                    entity.add(name, value, kind)?;
                    continue;
                }
            };
            entity.keys_typed |= kind.is_some_and(|kind| kind != EdmType::String);
            match value {
                Scalar::Null => {}
                Scalar::String(_) if place.is_some() => return Err(Code::DuplicatePropertiesSpecified.into()),
                Scalar::String(key) => *place = Some(key),
                _ => return Err(invalid()),
            }
        }
        entity.check(dialect)?;
        Ok(entity)
    }

    fn add(&mut self, name: Cow<'a, str>, value: Scalar<'a>, kind: Option<EdmType>) -> Result<()> {
        names::check_property(&name)?;
        let Some(value) = value.typed(kind)? else { return Ok(()) };
        if self.properties.len() == PROPERTIES_MAX {
            return Err(Code::TooManyProperties.into());
        }
        if self.properties.iter().any(|(known, _)| *known == name) {
            return Err(Code::DuplicatePropertiesSpecified.into());
        }
        self.properties.push((name, value));
        Ok(())
    }

    fn check(&self, dialect: Dialect) -> Result<()> {
        if dialect == Dialect::Cosmos {
            // What an item may hold is the engine's rule.
            return Ok(());
        }
        let named = |name: &str| 2 * name.len() + 8;
        let sizes = self.properties.iter().map(|(name, value)| value.size_bytes_max() + named(name));
        if sizes.sum::<usize>() <= STORAGE_VALUE_BYTES_MAX {
            return Ok(());
        }
        let mut size = 0;
        for (name, value) in &self.properties {
            let value_bytes = value.size_bytes();
            if value_bytes > STORAGE_VALUE_BYTES_MAX + 4 {
                return Err(Code::PropertyValueTooLarge.into());
            }
            size += value_bytes + named(name);
        }
        match size > STORAGE_ENTITY_BYTES_MAX {
            true => Err(Code::EntityTooLarge.into()),
            false => Ok(()),
        }
    }
}

fn invalid() -> TableError {
    TableError::from(Code::InvalidInput)
}

/// A value of JSON that a property can have.
enum Scalar<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Double(f64),
    String(Cow<'a, str>),
}

impl<'a> Scalar<'a> {
    /// The value in its type; `None` for null.
    fn typed(self, kind: Option<EdmType>) -> Result<Option<EdmValue<'a>>> {
        Ok(Some(match (self, kind) {
            (Scalar::Null, _) => return Ok(None),
            (Scalar::String(text), kind) => {
                EdmValue::parse(kind.unwrap_or(EdmType::String), text).ok_or_else(invalid)?
            }
            (Scalar::Bool(value), None | Some(EdmType::Boolean)) => EdmValue::Boolean(value),
            (Scalar::Integer(value), None | Some(EdmType::Int32)) => {
                EdmValue::Int32(i32::try_from(value).map_err(|_| invalid())?)
            }
            (Scalar::Integer(value), Some(EdmType::Int64)) => EdmValue::Int64(value),
            (Scalar::Integer(value), Some(EdmType::Double)) => EdmValue::Double(value as f64),
            (Scalar::Double(value), None | Some(EdmType::Double)) => EdmValue::Double(value),
            _ => return Err(invalid()),
        }))
    }
}

impl<'de> de::Deserialize<'de> for Scalar<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Scalar<'de>, D::Error> {
        from.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value of a property")
    }

    fn visit_unit<E: de::Error>(self) -> std::result::Result<Scalar<'de>, E> {
        Ok(Scalar::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> std::result::Result<Scalar<'de>, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> std::result::Result<Scalar<'de>, E> {
        Ok(Scalar::Integer(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> std::result::Result<Scalar<'de>, E> {
        // Beyond the long integers there are doubles only.
        Ok(i64::try_from(value).map_or(Scalar::Double(value as f64), Scalar::Integer))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> std::result::Result<Scalar<'de>, E> {
        Ok(Scalar::Double(value))
    }

    fn visit_borrowed_str<E: de::Error>(self, value: &'de str) -> std::result::Result<Scalar<'de>, E> {
        Ok(Scalar::String(Cow::Borrowed(value)))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> std::result::Result<Scalar<'de>, E> {
        Ok(Scalar::String(Cow::Owned(value.to_owned())))
    }
}

/// A name, borrowed where it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> de::Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Name<'de>, D::Error> {
        match Scalar::deserialize(from)? {
            Scalar::String(name) => Ok(Name(name)),
            _ => Err(de::Error::custom("a name is a string")),
        }
    }
}

struct MembersVisitor;

/// Members that are looked at before there are too many: each property may bring its type, and there are those of the
/// server.
const MEMBERS_MAX: usize = 3 * PROPERTIES_MAX;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<(Cow<'de, str>, Scalar<'de>)>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an entity")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> std::result::Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(16);
        while let Some(Name(name)) = from.next_key()? {
            if members.len() == MEMBERS_MAX {
                return Err(de::Error::custom("too many members"));
            }
            members.push((name, from.next_value()?));
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<(String, EdmValue<'_>)>> {
        let entity = Entity::parse(text.as_bytes(), Dialect::Cosmos)?;
        Ok(entity.properties.into_iter().map(|(name, value)| (name.into_owned(), value)).collect())
    }

    #[test]
    fn types_follow_from_annotations_and_from_json() {
        for (text, expected) in [
            (r#"{"A":1}"#, EdmValue::Int32(1)),
            (r#"{"A":1.0}"#, EdmValue::Double(1.0)),
            (r#"{"A":true}"#, EdmValue::Boolean(true)),
            (r#"{"A":"x\ny"}"#, EdmValue::String("x\ny".into())),
            (r#"{"A@odata.type":"Edm.Int64","A":"5"}"#, EdmValue::Int64(5)),
            (r#"{"A":"5","A@odata.type":"Edm.Int64"}"#, EdmValue::Int64(5)),
            (r#"{"A":5,"A@odata.type":"Edm.Int64"}"#, EdmValue::Int64(5)),
            (r#"{"A":5,"A@odata.type":"Edm.Double"}"#, EdmValue::Double(5.0)),
            (r#"{"A":"2.5","A@odata.type":"Edm.Double"}"#, EdmValue::Double(2.5)),
            (r#"{"A":"5","A@odata.type":"Edm.String"}"#, EdmValue::String("5".into())),
            (r#"{"A":"AQ==","A@odata.type":"Edm.Binary"}"#, EdmValue::Binary("AQ==".into())),
        ] {
            assert_eq!(parsed(text).unwrap(), [("A".to_owned(), expected)], "{text}");
        }
        let text = r#"{"PartitionKey":"p","RowKey":"r","Timestamp":"x","odata.etag":"W/","N":null}"#;
        let entity = Entity::parse(text.as_bytes(), Dialect::Cosmos).unwrap();
        assert_eq!((entity.partition_key.as_deref(), entity.row_key.as_deref()), (Some("p"), Some("r")));
        assert!(entity.properties.is_empty() && !entity.keys_typed);
        let typed = br#"{"RowKey":"2020-01-01","RowKey@odata.type":"Edm.DateTime"}"#;
        assert!(Entity::parse(typed, Dialect::Cosmos).unwrap().keys_typed);
    }

    #[test]
    fn what_is_no_entity_is_refused_by_its_code() {
        let many: Vec<String> = (0..253).map(|n| format!("\"a{n}\":1")).collect();
        let many = format!("{{{}}}", many.join(","));
        for (text, code) in [
            ("", "InvalidInput"),
            ("[]", "InvalidInput"),
            (r#"{"A":1} x"#, "InvalidInput"),
            (r#"{"A":{}}"#, "InvalidInput"),
            (r#"{"A":[1]}"#, "InvalidInput"),
            (r#"{"A":2147483648}"#, "InvalidInput"),
            (r#"{"A":"x","A@odata.type":"Edm.Int64"}"#, "InvalidInput"),
            (r#"{"A":"x","A@odata.type":"Edm.Odd"}"#, "InvalidInput"),
            (r#"{"A":true,"A@odata.type":"Edm.Int32"}"#, "InvalidInput"),
            (r#"{"PartitionKey":5}"#, "InvalidInput"),
            (r#"{"A":1,"A":2}"#, "DuplicatePropertiesSpecified"),
            (r#"{"a b":1}"#, "PropertyNameInvalid"),
            (&many, "TooManyProperties"),
        ] {
            assert_eq!(parsed(text).unwrap_err().code.name(), code, "{text}");
        }
    }

    #[test]
    fn storage_has_limits_of_its_own() {
        let long = "x".repeat(33 * 1024);
        let text = format!("{{\"A\":\"{long}\"}}");
        assert!(Entity::parse(text.as_bytes(), Dialect::Cosmos).is_ok());
        let refused = Entity::parse(text.as_bytes(), Dialect::Storage).unwrap_err();
        assert_eq!(refused.code, Code::PropertyValueTooLarge);
    }
}
