//! An entity as an item of its container, in the form that Cosmos DB gives it.
//!
//! ```text
//! {"id":"r","$id":"r","$pk":"p","Age":{"$t":16,"$v":23},"Name":{"$t":2,"$v":"Ann"}}
//! ```
//!
//! `id` is the row key, so an entity is one row of its logical partition. Members that have no type are not properties
//! of the entity: another API may have put them there, and a merge leaves them alone.

use std::borrow::Cow;

use bytes::Bytes;
use orrery_engine::is_system_property;
use orrery_model::{DocWriter, Kind, Raw};

use crate::edm::EdmValue;
use crate::entity::Entity;

pub const PARTITION_KEY: &str = "$pk";
pub const ROW_KEY: &str = "$id";

/// Stands for the empty row key of storage, which no id can be. Keys hold no control characters, so nothing else is
/// it, and it sorts where the empty key does.
const EMPTY_ROW_KEY: &str = "\u{1}";

/// The id of an entity's item.
pub fn id(row_key: &str) -> &str {
    if row_key.is_empty() { EMPTY_ROW_KEY } else { row_key }
}

/// The member of the item in which a property is kept. Names that mean something to the item are kept under another.
pub fn member(property: &str) -> Cow<'_, str> {
    match property {
        // `$id` is the row key.
        "id" => Cow::Borrowed("$$id"),
        name if name == "ttl" || is_system_property(name) => Cow::Owned(format!("${name}")),
        name => Cow::Borrowed(name),
    }
}

/// The property that a member keeps; `None` for members that are the item's own.
fn property(member: &str) -> Option<&str> {
    match member {
        "id" | ROW_KEY | PARTITION_KEY => None,
        "$$id" => Some("id"),
        name => Some(name.strip_prefix('$').unwrap_or(name)),
    }
}

/// The item of a new entity.
pub fn write(partition_key: &str, row_key: &str, entity: &Entity<'_>) -> Bytes {
    let mut out = begin(partition_key, row_key);
    for (name, value) in &entity.properties {
        out.key(&member(name));
        value.store(&mut out);
    }
    out.end_object();
    out.finish().into()
}

/// The item with the properties of an entity put over its own.
pub fn merge(old: Raw<'_>, partition_key: &str, row_key: &str, entity: &Entity<'_>) -> Bytes {
    let mut out = begin(partition_key, row_key);
    let mut left: Vec<(Cow<'_, str>, &EdmValue<'_>)> =
        entity.properties.iter().map(|(name, value)| (member(name), value)).collect();
    for (name, value) in old.members() {
        if matches!(name, "id" | ROW_KEY | PARTITION_KEY) {
            continue;
        }
        out.key(name);
        match left.iter().position(|(new, _)| new == name) {
            Some(at) => left.remove(at).1.store(&mut out),
            None => out.raw(value),
        }
    }
    for (name, value) in left {
        out.key(&name);
        value.store(&mut out);
    }
    out.end_object();
    out.finish().into()
}

fn begin(partition_key: &str, row_key: &str) -> DocWriter {
    let mut out = DocWriter::with_capacity(512);
    out.begin_object();
    out.key("id");
    out.string(id(row_key));
    out.key(ROW_KEY);
    out.string(row_key);
    out.key(PARTITION_KEY);
    out.string(partition_key);
    out
}

/// An item as an entity.
#[derive(Clone, Copy)]
pub struct StoredEntity<'a>(Raw<'a>);

impl<'a> StoredEntity<'a> {
    /// `None` for items that are no entities.
    pub fn of(document: Raw<'a>) -> Option<StoredEntity<'a>> {
        let has_key = document.get(PARTITION_KEY).is_some_and(|key| key.kind() == Kind::String);
        has_key.then_some(StoredEntity(document))
    }

    pub fn partition_key(self) -> &'a str {
        self.0.get(PARTITION_KEY).and_then(Raw::as_str).unwrap_or_default()
    }

    /// By the id, under which the entity is found and sorted, whatever another API has written to `$id`.
    pub fn row_key(self) -> &'a str {
        match self.id() {
            EMPTY_ROW_KEY => "",
            id => id,
        }
    }

    pub fn id(self) -> &'a str {
        self.0.get("id").and_then(Raw::as_str).unwrap_or_default()
    }

    pub fn property(self, name: &str) -> Option<EdmValue<'a>> {
        EdmValue::stored(self.0.get(&member(name))?)
    }

    /// In stored order.
    pub fn properties(self) -> impl Iterator<Item = (&'a str, EdmValue<'a>)> {
        self.0.members().filter_map(|(name, value)| Some((property(name)?, EdmValue::stored(value)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use orrery_model::NumberStyle;

    fn json(document: &[u8]) -> String {
        let mut out = Vec::new();
        Raw::document(document).unwrap().write_json(&mut out, NumberStyle::Item);
        String::from_utf8(out).unwrap()
    }

    fn entity(text: &'static str) -> Entity<'static> {
        Entity::parse(text.as_bytes(), Dialect::Cosmos).unwrap()
    }

    #[test]
    fn an_entity_is_kept_as_the_service_keeps_it() {
        let stored = write(
            "p",
            "r",
            &entity(r#"{"Age":23,"id":"own","_ts":true,"ttl":5,"L@odata.type":"Edm.Int64","L":"-7"}"#),
        );
        assert_eq!(
            json(&stored),
            r#"{"id":"r","$id":"r","$pk":"p","Age":{"$t":16,"$v":23},"$$id":{"$t":2,"$v":"own"},"$_ts":{"$t":8,"$v":true},"$ttl":{"$t":16,"$v":5},"L":{"$t":18,"$v":"-0000000000000000007"}}"#
        );
        let read = StoredEntity::of(Raw::document(&stored).unwrap()).unwrap();
        assert_eq!((read.partition_key(), read.row_key()), ("p", "r"));
        let names: Vec<&str> = read.properties().map(|(name, _)| name).collect();
        assert_eq!(names, ["Age", "id", "_ts", "ttl", "L"]);
        assert_eq!(read.property("L"), Some(EdmValue::Int64(-7)));
    }

    #[test]
    fn a_merge_keeps_what_it_does_not_name() {
        let old = write("p", "r", &entity(r#"{"A":1,"B":2}"#));
        let merged = merge(Raw::document(&old).unwrap(), "p", "r", &entity(r#"{"C":3,"A":"x"}"#));
        assert_eq!(
            json(&merged),
            r#"{"id":"r","$id":"r","$pk":"p","A":{"$t":2,"$v":"x"},"B":{"$t":16,"$v":2},"C":{"$t":16,"$v":3}}"#
        );
    }

    #[test]
    fn items_of_other_apis_are_entities_as_far_as_they_have_their_form() {
        let parse = |text: &str| orrery_model::parse_json(text.as_bytes(), &Default::default()).unwrap();
        let plain = parse(r#"{"id":"a","n":1}"#);
        assert!(StoredEntity::of(Raw::document(&plain).unwrap()).is_none());
        let mixed = parse(r#"{"id":"a","$pk":"p","n":1,"Age":{"$t":16,"$v":3},"odd":{"$t":99,"$v":3}}"#);
        let read = StoredEntity::of(Raw::document(&mixed).unwrap()).unwrap();
        assert_eq!(read.properties().collect::<Vec<_>>(), [("Age", EdmValue::Int32(3))]);
        assert_eq!(read.row_key(), "a");
    }

    #[test]
    fn the_empty_row_key_has_an_id() {
        let stored = write("", "", &Entity::default());
        assert_eq!(json(&stored), "{\"id\":\"\\u0001\",\"$id\":\"\",\"$pk\":\"\"}");
        assert_eq!(StoredEntity::of(Raw::document(&stored).unwrap()).unwrap().row_key(), "");
    }
}
