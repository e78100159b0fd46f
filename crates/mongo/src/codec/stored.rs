//! To stored documents.

use orrery_model::{DocWriter, Extended};

use super::write::before_nul;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

/// Writes a value into a stored document, numbers with their widths.
///
/// Types that the stored form has no tag for are kept as what is nearest: undefined as null, a symbol as a string,
/// code without its scope, a pointer as the document that drivers make of it.
pub fn write_stored(value: ValueRef<'_>, writer: &mut DocWriter) {
    match value {
        ValueRef::Stored(raw) => writer.raw(raw),
        ValueRef::Item(_) => write_stored_members(value, writer),
        ValueRef::OwnedDocument(document) => write_stored_document(document, writer),
        ValueRef::Owned(value) => match value {
            Bson::Double(value) => writer.double(*value),
            Bson::String(text) | Bson::Symbol(text) => writer.string(text),
            Bson::Document(document) => write_stored_document(document, writer),
            Bson::Array(elements) => {
                writer.begin_array();
                elements.iter().for_each(|element| write_stored(ValueRef::Owned(element), writer));
                writer.end_array();
            }
            Bson::Undefined | Bson::Null => writer.null(),
            Bson::Bool(value) => writer.bool(*value),
            Bson::DbPointer(pointer) => write_pointer(&pointer.0, pointer.1, writer),
            Bson::CodeWithScope(code) => writer.extended(Extended::Code(&code.0)),
            Bson::Int32(value) => writer.int32(*value),
            Bson::Int64(value) => writer.int64(*value),
            Bson::Regex(regex) => writer.extended(Extended::Regex {
                pattern: before_nul(&regex.pattern),
                options: before_nul(&regex.options),
            }),
            Bson::Binary { .. }
            | Bson::ObjectId(_)
            | Bson::Date(_)
            | Bson::Code(_)
            | Bson::Timestamp { .. }
            | Bson::Decimal(_)
            | Bson::MinKey
            | Bson::MaxKey => match ValueRef::Owned(value).as_extended() {
                Some(value) => writer.extended(value),
                None => writer.null(),
            },
        },
    }
}

fn write_stored_document(document: &Document, writer: &mut DocWriter) {
    writer.begin_object();
    for (name, value) in document.iter() {
        writer.key(name);
        write_stored(ValueRef::Owned(value), writer);
    }
    writer.end_object();
}

fn write_stored_members(document: ValueRef<'_>, writer: &mut DocWriter) {
    writer.begin_object();
    for (name, value) in document.members() {
        writer.key(name);
        write_stored(value, writer);
    }
    writer.end_object();
}

pub fn write_pointer(collection: &str, id: [u8; 12], writer: &mut DocWriter) {
    writer.begin_object();
    writer.key("$ref");
    writer.string(collection);
    writer.key("$id");
    writer.extended(Extended::ObjectId(id));
    writer.end_object();
}
