//! Rows on their way out, and how they are written.
//!
//! An execution hands out a [`Row`]: a value that still lies in the item, the query or the frame it was computed in.
//! Whoever takes it writes it down in the form that its protocol speaks, straight into the buffer it is sent from.
//! Rows that must wait, to be sorted or for a page that nobody has asked for yet, are written in that form at once
//! ([`RowFormat`]) and handed out as the bytes they have become, so that no row is ever written twice.
//!
//! What JSON cannot hold (NaN and the infinities) is refused by [`JsonText`] when a row is written, with the service's
//! error; undefined members and elements are left out. Inside a query all of these are legal.

use orrery_budget::Exceeded;
use orrery_model::{DocWriter, Number, NumberStyle, Value, write_json_number, write_json_string};
use orrery_sql::SqlError;

use crate::eval::GroupPart;
use crate::exec::SortPosition;
use crate::limits::ROW_BYTES_MAX;
use crate::value::Eval;

/// Rows of the stored form begin with this much room.
const USUAL_ROW_BYTES: usize = 1024;

/// The form in which the rows of a result are written.
pub trait RowFormat: Sync {
    /// What nodes call it among themselves.
    fn name(&self) -> &'static str;

    /// Appends one row. After an error it does not matter what was appended.
    fn write(&self, row: &Eval<'_>, out: &mut Vec<u8>) -> Result<(), SqlError>;
}

/// Rows as JSON text, as the SQL API sends them.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonText;

impl RowFormat for JsonText {
    fn name(&self) -> &'static str {
        "json"
    }

    fn write(&self, row: &Eval<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let end = out.len() + ROW_BYTES_MAX;
        write_json(row, out, end)
    }
}

/// Rows in the stored document form, which keeps every type apart; undefined is `null` there, as it is in JSON.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoredForm;

impl RowFormat for StoredForm {
    fn name(&self) -> &'static str {
        "stored"
    }

    fn write(&self, row: &Eval<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let mut document = DocWriter::with_capacity(USUAL_ROW_BYTES);
        store(row, &mut document);
        let document = document.finish();
        if document.len() > ROW_BYTES_MAX {
            return Err(too_long());
        }
        out.extend_from_slice(&document);
        Ok(())
    }
}

/// What is in an item already is copied as it lies there.
fn store(value: &Eval<'_>, out: &mut DocWriter) {
    match value {
        Eval::Undefined | Eval::Null => out.null(),
        Eval::Bool(value) => out.bool(*value),
        Eval::Number(value) => out.number(*value),
        Eval::String(text) => out.string(text),
        Eval::Raw(node) => out.raw(node.0),
        Eval::Constant(value) => out.value(value),
        Eval::Extended(value) => out.value(value),
        Eval::Item(row) => row.store(out),
        Eval::Array(elements) => {
            out.begin_array();
            elements
                .iter()
                .filter(|element| !matches!(element, Eval::Undefined))
                .for_each(|element| store(element, out));
            out.end_array();
        }
        Eval::Object(members) => {
            out.begin_object();
            for (name, value) in members.iter().filter(|(_, value)| !matches!(value, Eval::Undefined)) {
                out.key(name);
                store(value, out);
            }
            out.end_object();
        }
    }
}

/// The format that nodes call so.
pub fn format_named(name: &str) -> Option<&'static dyn RowFormat> {
    let formats: [&'static dyn RowFormat; 2] = [&JsonText, &StoredForm];
    formats.into_iter().find(|format| format.name() == name)
}

/// One row of a result, or one group of a partial result.
pub struct Row<'r> {
    pub(crate) content: Content<'r>,
    /// Where the row stands, in a sorted result.
    pub place: Option<&'r SortPosition>,
    /// Bytes that are equal for equal rows, where a merge drops duplicates; else empty.
    pub mark: &'r [u8],
    /// Values that a merge has asked for beside the row (see `Prepared::partial`).
    pub carried: &'r [Value],
}

pub(crate) enum Content<'r> {
    Value(&'r Eval<'r>, &'r dyn RowFormat),
    Written(&'r [u8]),
    Group(Box<GroupPart>),
}

impl<'r> Row<'r> {
    /// A row that was written before.
    pub fn written(bytes: &'r [u8]) -> Row<'r> {
        Row { content: Content::Written(bytes), place: None, mark: &[], carried: &[] }
    }

    /// Appends the row in the format of its execution. A group is no row.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        match &self.content {
            Content::Value(value, format) => format.write(value, out),
            Content::Written(bytes) => {
                out.extend_from_slice(bytes);
                Ok(())
            }
            Content::Group(_) => Err(SqlError::whole("", "A part of a group has no row yet.")),
        }
    }

    pub fn is_group(&self) -> bool {
        matches!(self.content, Content::Group(_))
    }

    /// The group, of a partial result.
    pub fn into_group(self) -> Option<GroupPart> {
        match self.content {
            Content::Group(group) => Some(*group),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Row<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.content {
            Content::Value(value, _) => write!(out, "Row({value:?})"),
            Content::Written(bytes) => write!(out, "Row({})", String::from_utf8_lossy(bytes)),
            Content::Group(group) => write!(out, "Row({group:?})"),
        }
    }
}

/// Rows that were written, one after the other in one buffer with a comma between them.
///
/// The buffer may begin with what goes before the rows, so that an answer of JSON text needs no further copy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    bytes: Vec<u8>,
    /// Where the first row begins.
    start: usize,
    ends: Vec<usize>,
}

impl Rows {
    /// No rows, behind what an answer begins with.
    pub fn behind(bytes: Vec<u8>) -> Rows {
        Rows { start: bytes.len(), bytes, ends: Vec::new() }
    }

    /// Whether there is nothing at all, not even what an answer begins with.
    pub fn is_blank(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn push(&mut self, row: &[u8]) {
        self.separate();
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    /// Writes a row, and says how long it is.
    pub fn write(&mut self, row: &Row<'_>) -> Result<usize, SqlError> {
        let before = self.bytes.len();
        self.separate();
        let start = self.bytes.len();
        if let Err(error) = row.write(&mut self.bytes) {
            self.bytes.truncate(before);
            return Err(error);
        }
        self.ends.push(self.bytes.len());
        Ok(self.bytes.len() - start)
    }

    fn separate(&mut self) {
        if !self.ends.is_empty() {
            self.bytes.push(b',');
        }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all rows.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len() - self.start - self.ends.len().saturating_sub(1)
    }

    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let start = if at == 0 { self.start } else { self.ends[at - 1] + 1 };
        Some(&self.bytes[start..end])
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Where rows end, and all of them with a comma between them.
    pub(crate) fn parts(&self) -> (impl Iterator<Item = usize>, &[u8]) {
        (self.ends.iter().map(|end| end - self.start), &self.bytes[self.start..])
    }

    /// The same rows again; `None` where these are no rows.
    pub(crate) fn of_parts(ends: Vec<usize>, bytes: Vec<u8>) -> Option<Rows> {
        let mut start = 0;
        for (at, end) in ends.iter().enumerate() {
            // A comma stands between two rows.
            start += usize::from(at > 0);
            if *end < start {
                return None;
            }
            start = *end;
        }
        (start == bytes.len()).then_some(Rows { bytes, start: 0, ends })
    }

    /// All rows with a comma between them, behind what the buffer began with.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Appends `value` as JSON. A value of many parts ends where `out` has become longer than `end`; each of the parts is
/// no longer than an item or the query.
pub(crate) fn write_json(value: &Eval<'_>, out: &mut Vec<u8>, end: usize) -> Result<(), SqlError> {
    if out.len() > end {
        return Err(too_long());
    }
    match value {
        Eval::Undefined | Eval::Null => out.extend_from_slice(b"null"),
        Eval::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Eval::Number(number) => write_number(*number, out)?,
        Eval::String(text) => write_json_string(out, text),
        Eval::Item(row) => row.write_json(out),
        Eval::Raw(node) => node.0.write_json(out, NumberStyle::Query),
        Eval::Constant(value) => value.write_json(out, NumberStyle::Query),
        Eval::Extended(value) => value.write_json(out, NumberStyle::Query),
        Eval::Array(elements) => {
            out.push(b'[');
            let mut first = true;
            for element in elements.iter().filter(|element| !element.is_undefined()) {
                separate(&mut first, out);
                write_json(element, out, end)?;
            }
            out.push(b']');
        }
        Eval::Object(members) => {
            out.push(b'{');
            let mut first = true;
            for (name, value) in members.iter().filter(|(_, value)| !value.is_undefined()) {
                separate(&mut first, out);
                write_json_string(out, name);
                out.push(b':');
                write_json(value, out, end)?;
            }
            out.push(b'}');
        }
    }
    if out.len() > end { Err(too_long()) } else { Ok(()) }
}

fn too_long() -> SqlError {
    Exceeded::Answer { limit_bytes: ROW_BYTES_MAX }.into()
}

fn separate(first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::take(first) {
        out.push(b',');
    }
}

fn write_number(number: Number, out: &mut Vec<u8>) -> Result<(), SqlError> {
    if let Number::Double(value) = number
        && !value.is_finite()
    {
        return Err(SqlError::whole(
            "4001",
            "The response content contains a numeric value that cannot be represented in JSON \
             (e.g. Infinity and NaN).",
        ));
    }
    write_json_number(out, number, NumberStyle::Query);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_one_by_one() {
        let mut rows = Rows::behind(b"[".to_vec());
        rows.push(b"1");
        assert_eq!(rows.write(&Row::written(b"[2,3]")).unwrap(), 5);
        assert_eq!(rows.iter().collect::<Vec<_>>(), [&b"1"[..], b"[2,3]"]);
        assert_eq!((rows.len(), rows.size_bytes(), rows.get(2)), (2, 6, None));
        assert_eq!(rows.into_bytes(), b"[1,[2,3]");
        assert_eq!(Rows::default().size_bytes(), 0);
    }

    #[test]
    fn a_row_that_cannot_be_written_leaves_the_others_alone() {
        let mut rows = Rows::default();
        rows.push(b"1");
        let row = |value| Row { content: Content::Value(value, &JsonText), ..Row::written(b"") };
        let (refused, taken) =
            (Eval::array(vec![Eval::integer(1), Eval::double(f64::NAN)]), Eval::double(0.5));
        assert!(rows.write(&row(&refused)).is_err());
        rows.write(&row(&taken)).unwrap();
        assert_eq!(rows.into_bytes(), b"1,0.5");
    }

    #[test]
    fn the_stored_form_keeps_what_json_has_no_word_for() {
        let mut out = Vec::new();
        let value = Eval::array(vec![Eval::double(f64::INFINITY), Eval::Undefined, Eval::text("a")]);
        StoredForm.write(&value, &mut out).unwrap();
        let read = orrery_model::Raw::document(&out).unwrap().to_value();
        assert_eq!(read.as_array().unwrap().len(), 2);
        assert_eq!(read.at(0).unwrap().as_number().unwrap().as_f64(), f64::INFINITY);
    }

    #[test]
    fn an_item_in_the_stored_form_has_its_virtual_members_where_json_has_them() {
        let text = br#"{"id":"a","n":[1,{"x":null}],"s":"\u00e9\n","new":{"$t":2,"$v":true}}"#;
        let item = orrery_model::parse_json(text, &Default::default()).unwrap();
        let system = vec![("_etag", Value::from("e")), ("_ts", Value::from(5))];
        let document = orrery_model::Raw::document(&item).unwrap();
        for appended in [0, 1] {
            let row = Eval::Item(crate::row::RowView { document, system: &system, appended });
            let (mut json, mut stored) = (Vec::new(), Vec::new());
            JsonText.write(&row, &mut json).unwrap();
            StoredForm.write(&row, &mut stored).unwrap();
            let mut again = Vec::new();
            orrery_model::Raw::document(&stored).unwrap().write_json(&mut again, NumberStyle::Query);
            assert_eq!(String::from_utf8(again), String::from_utf8(json), "{appended}");
        }
    }
}
