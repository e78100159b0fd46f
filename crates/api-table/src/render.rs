//! Entities and tables as JSON, at the three levels of metadata.
//!
//! Members come in the order in which Cosmos DB prints them: metadata, etag, keys, properties as they were inserted,
//! timestamp.

use std::fmt::Write as _;

use orrery_model::{Number, NumberStyle, write_json_number, write_json_string};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::date_time;
use crate::dialect::Dialect;
use crate::edm::{EdmType, EdmValue, unusual};
use crate::stored::StoredEntity;
use crate::timestamp;

/// How much is told about values besides the values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Metadata {
    None,
    #[default]
    Minimal,
    Full,
}

impl Metadata {
    /// The level that an `Accept` header or `$format` asks for.
    pub fn of_accept(accept: &str) -> Metadata {
        // What clients send, before anybody has to look closer.
        match accept {
            "application/json;odata=minimalmetadata" => return Metadata::Minimal,
            "application/json;odata=nometadata" => return Metadata::None,
            "application/json;odata=fullmetadata" => return Metadata::Full,
            _ => {}
        }
        let accept = accept.to_ascii_lowercase();
        match accept {
            _ if accept.contains("odata=nometadata") => Metadata::None,
            _ if accept.contains("odata=fullmetadata") => Metadata::Full,
            _ => Metadata::Minimal,
        }
    }
}

/// What an answer is written for.
#[derive(Debug, Clone, Copy)]
pub struct Rendering<'a> {
    pub dialect: Dialect,
    pub metadata: Metadata,
    pub account: &'a str,
    /// The address of the account, without a slash at its end.
    pub endpoint: &'a str,
}

/// What is percent-encoded in the addresses of entities.
const ADDRESS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// `people(PartitionKey='p',RowKey='r')`, as part of an address.
pub fn entity_address(table: &str, partition_key: &str, row_key: &str) -> String {
    let encoded = |key: &str| utf8_percent_encode(&key.replace('\'', "''"), ADDRESS).to_string();
    format!(
        "{}(PartitionKey='{}',RowKey='{}')",
        utf8_percent_encode(table, ADDRESS),
        encoded(partition_key),
        encoded(row_key)
    )
}

/// An object that is written member by member.
struct Members<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Members<'o> {
    fn open(out: &'o mut Vec<u8>) -> Members<'o> {
        out.push(b'{');
        Members { out, first: true }
    }

    fn name(&mut self, name: &str) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        write_json_string(self.out, name);
        self.out.push(b':');
    }

    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        write_json_string(self.out, value);
    }

    fn close(self) {
        self.out.push(b'}');
    }
}

impl Rendering<'_> {
    /// A list: `rows` writes them, with their commas.
    pub fn list(&self, of: &str, out: &mut Vec<u8>, rows: impl FnOnce(&mut Vec<u8>)) {
        out.push(b'{');
        let named = self.metadata != Metadata::None && (self.dialect == Dialect::Storage || of == "Tables");
        if named {
            out.extend_from_slice(b"\"odata.metadata\":");
            write_json_string(out, &format!("{}/$metadata#{of}", self.endpoint));
            out.push(b',');
        }
        out.extend_from_slice(b"\"value\":[");
        rows(out);
        out.extend_from_slice(b"]}");
    }

    /// A table; alone, or one of a list.
    pub fn table(&self, name: &str, alone: bool, out: &mut Vec<u8>) {
        let mut members = Members::open(out);
        if alone && self.metadata != Metadata::None {
            members.text("odata.metadata", &format!("{}/$metadata#Tables/@Element", self.endpoint));
        }
        if self.metadata == Metadata::Full {
            let address = format!("Tables('{}')", utf8_percent_encode(name, ADDRESS));
            members.text("odata.type", &format!("{}.Tables", self.account));
            members.text("odata.id", &format!("{}/{address}", self.endpoint));
            members.text("odata.editLink", &address);
        }
        members.text("TableName", name);
        members.close();
    }

    /// An entity of a table; alone, or one of a list.
    pub fn entity(
        &self,
        table: &str,
        entity: StoredEntity<'_>,
        ticks: u64,
        select: Option<&[String]>,
        alone: bool,
        out: &mut Vec<u8>,
    ) {
        let full = self.metadata == Metadata::Full;
        let mut members = Members::open(out);
        if self.metadata != Metadata::None {
            if alone {
                let mut link = String::with_capacity(self.endpoint.len() + 2 * table.len() + 24);
                link.push_str(self.endpoint);
                if self.dialect == Dialect::Cosmos {
                    link.push('/');
                    link.push_str(table);
                }
                let _ = write!(link, "/$metadata#{table}/@Element");
                members.text("odata.metadata", &link);
            }
            if full {
                let address = entity_address(table, entity.partition_key(), entity.row_key());
                members.text("odata.type", &format!("{}.{table}", self.account));
                members.text("odata.id", &format!("{}/{address}", self.endpoint));
                members.text("odata.editLink", &address);
            }
            members.text("odata.etag", &timestamp::etag(ticks));
        }
        match select {
            None => self.all_members(&mut members, entity, ticks),
            Some(names) => self.selected_members(&mut members, entity, ticks, names),
        }
        members.close();
    }

    fn all_members(&self, members: &mut Members<'_>, entity: StoredEntity<'_>, ticks: u64) {
        members.text("PartitionKey", entity.partition_key());
        members.text("RowKey", entity.row_key());
        for (name, value) in entity.properties() {
            self.property(members, name, &value);
        }
        self.timestamp(members, ticks);
    }

    fn selected_members(
        &self,
        members: &mut Members<'_>,
        entity: StoredEntity<'_>,
        ticks: u64,
        names: &[String],
    ) {
        for name in names {
            match name.as_str() {
                "PartitionKey" => members.text(name, entity.partition_key()),
                "RowKey" => members.text(name, entity.row_key()),
                "Timestamp" => self.timestamp(members, ticks),
                _ => match entity.property(name) {
                    Some(value) => self.property(members, name, &value),
                    None if self.dialect == Dialect::Storage => {
                        members.name(name);
                        members.out.extend_from_slice(b"null");
                    }
                    None => {}
                },
            }
        }
    }

    fn timestamp(&self, members: &mut Members<'_>, ticks: u64) {
        let typed = match self.metadata {
            Metadata::None => false,
            Metadata::Minimal => self.dialect == Dialect::Cosmos,
            Metadata::Full => true,
        };
        if typed {
            members.text("Timestamp@odata.type", EdmType::DateTime.name());
        }
        members.text("Timestamp", &date_time::text(ticks));
    }

    fn property(&self, members: &mut Members<'_>, name: &str, value: &EdmValue<'_>) {
        let unusual_double = matches!(value, EdmValue::Double(value) if !value.is_finite());
        if self.metadata != Metadata::None && (value.kind().is_annotated() || unusual_double) {
            let mut annotation = String::with_capacity(name.len() + 11);
            annotation.push_str(name);
            annotation.push_str("@odata.type");
            members.text(&annotation, value.kind().name());
        }
        members.name(name);
        let out = &mut *members.out;
        match value {
            EdmValue::Guid(text) | EdmValue::String(text) | EdmValue::Binary(text) => {
                write_json_string(out, text)
            }
            EdmValue::Boolean(true) => out.extend_from_slice(b"true"),
            EdmValue::Boolean(false) => out.extend_from_slice(b"false"),
            EdmValue::DateTime(ticks) => {
                out.push(b'"');
                date_time::write(*ticks, out);
                out.push(b'"');
            }
            EdmValue::Int32(value) => {
                write_json_number(out, Number::Int(i64::from(*value)), NumberStyle::Item)
            }
            EdmValue::Int64(value) => {
                out.push(b'"');
                write_json_number(out, Number::Int(*value), NumberStyle::Item);
                out.push(b'"');
            }
            EdmValue::Double(value) => match unusual(*value) {
                Some(name) => write_json_string(out, name),
                None => self.double(*value, out),
            },
        }
    }

    /// Storage shows by a point that a number is a double, Cosmos DB does not.
    fn double(&self, value: f64, out: &mut Vec<u8>) {
        let start = out.len();
        write_json_number(out, Number::from(value), NumberStyle::Item);
        let pointed = out[start..].iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        if self.dialect == Dialect::Storage && !pointed {
            out.extend_from_slice(b".0");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::Entity;
    use crate::stored;
    use orrery_model::Raw;

    const ENTITY: &str =
        r#"{"Age":23,"D":1.0,"L":"5","L@odata.type":"Edm.Int64","N":"NaN","N@odata.type":"Edm.Double"}"#;
    const TIME: &str = "2021-01-04T22:25:57.4388744Z";

    fn shown(dialect: Dialect, metadata: Metadata, select: Option<&[String]>, alone: bool) -> String {
        let entity = Entity::parse(ENTITY.as_bytes(), dialect).unwrap();
        let stored = stored::write("O'Brien", "r/1", &entity);
        let rendering = Rendering { dialect, metadata, account: "acc", endpoint: "http://h/acc" };
        let mut out = Vec::new();
        let entity = StoredEntity::of(Raw::document(&stored).unwrap()).unwrap();
        rendering.entity("t", entity, date_time::parse(TIME).unwrap(), select, alone, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_level_tells_more() {
        assert_eq!(
            shown(Dialect::Cosmos, Metadata::None, None, true),
            r#"{"PartitionKey":"O'Brien","RowKey":"r/1","Age":23,"D":1,"L":"5","N":"NaN","Timestamp":"2021-01-04T22:25:57.4388744Z"}"#
        );
        assert_eq!(
            shown(Dialect::Cosmos, Metadata::Minimal, None, true),
            r#"{"odata.metadata":"http://h/acc/t/$metadata#t/@Element","odata.etag":"W/\"datetime'2021-01-04T22%3A25%3A57.4388744Z'\"","PartitionKey":"O'Brien","RowKey":"r/1","Age":23,"D":1,"L@odata.type":"Edm.Int64","L":"5","N@odata.type":"Edm.Double","N":"NaN","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2021-01-04T22:25:57.4388744Z"}"#
        );
        let full = shown(Dialect::Storage, Metadata::Full, None, false);
        assert!(full.contains(r#""odata.type":"acc.t","odata.id":"http://h/acc/t(PartitionKey='O%27%27Brien',RowKey='r%2F1')""#), "{full}");
        assert!(full.contains(r#""D":1.0"#) && !full.contains("odata.metadata"), "{full}");
    }

    #[test]
    fn a_selection_names_what_is_shown() {
        let names = ["Age".to_owned(), "None".to_owned(), "RowKey".to_owned()];
        let storage = shown(Dialect::Storage, Metadata::None, Some(&names), false);
        assert_eq!(storage, r#"{"Age":23,"None":null,"RowKey":"r/1"}"#);
        let cosmos = shown(Dialect::Cosmos, Metadata::None, Some(&names), false);
        assert_eq!(cosmos, r#"{"Age":23,"RowKey":"r/1"}"#);
    }

    #[test]
    fn a_level_is_asked_for_by_name() {
        for (accept, level) in [
            ("application/json;odata=nometadata", Metadata::None),
            ("application/json;odata=FullMetadata", Metadata::Full),
            ("application/json", Metadata::Minimal),
            ("", Metadata::Minimal),
        ] {
            assert_eq!(Metadata::of_accept(accept), level, "{accept}");
        }
    }
}
