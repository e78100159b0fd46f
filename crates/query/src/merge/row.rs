//! Rows as JSON text, and what a merge needs to find in them without decoding the rest.
//!
//! A share's rows of a rewritten query look like `{"_rid":"…","orderByItems":[{"item":1},{}],"payload":…}`. Keys are
//! decoded, the payload is only cut out, so that it reaches the client exactly as the share wrote it.

use std::ops::Range;

use orrery_model::{Value, parse_json_value};
use orrery_sql::SqlError;

/// Rows one after the other in one buffer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Rows {
    pub fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        Some(&self.bytes[start..end])
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|at| self.get(at))
    }
}

/// The members of the object that a row is, as ranges of its text.
pub(super) struct Members<'r> {
    row: &'r [u8],
    found: Vec<(Range<usize>, Range<usize>)>,
}

impl<'r> Members<'r> {
    pub fn of(row: &'r [u8]) -> Result<Members<'r>, SqlError> {
        let mut found = Vec::with_capacity(4);
        let mut at = skip_space(row, 0);
        if row.get(at) != Some(&b'{') {
            return Err(unreadable());
        }
        at = skip_space(row, at + 1);
        while row.get(at) != Some(&b'}') {
            let name = at..value_end(row, at)?;
            at = skip_space(row, name.end);
            if row.get(at) != Some(&b':') {
                return Err(unreadable());
            }
            at = skip_space(row, at + 1);
            let value = at..value_end(row, at)?;
            at = skip_space(row, value.end);
            found.push((name, value));
            match row.get(at) {
                Some(b',') => at = skip_space(row, at + 1),
                Some(b'}') => {}
                _ => return Err(unreadable()),
            }
        }
        Ok(Members { row, found })
    }

    /// The text of a member; names of rewritten queries need no escapes.
    pub fn text(&self, name: &str) -> Option<&'r [u8]> {
        let quoted = |range: &Range<usize>| self.row.get(range.start + 1..range.end - 1);
        let (_, value) = self.found.iter().find(|(found, _)| quoted(found) == Some(name.as_bytes()))?;
        self.row.get(value.clone())
    }

    /// A member as a value; undefined if it is not there.
    pub fn value(&self, name: &str) -> Result<Value, SqlError> {
        self.text(name).map_or(Ok(Value::Undefined), parse)
    }
}

/// A row as a value.
pub(super) fn parse(text: &[u8]) -> Result<Value, SqlError> {
    parse_json_value(text).map_err(|_| unreadable())
}

/// `[{"item": a}, {}]` as values, undefined where there is no item.
pub(super) fn items(list: &Value) -> Vec<Value> {
    let item = |element: &Value| element.get("item").cloned().unwrap_or_default();
    list.as_array().unwrap_or_default().iter().map(item).collect()
}

/// What a share answered is not of the form that its query gives. It cannot come from a client.
pub(super) fn unreadable() -> SqlError {
    SqlError::whole("", "A partition answered a query in a form that cannot be merged.")
}

fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        at += 1;
    }
    at
}

/// The end of the JSON value that begins at `at`. Nesting is counted, not followed, so depth costs no stack.
fn value_end(text: &[u8], at: usize) -> Result<usize, SqlError> {
    let mut depth = 0usize;
    let mut next = at;
    loop {
        match text.get(next) {
            None => return Err(unreadable()),
            Some(b'"') => next = string_end(text, next)?,
            Some(b'{' | b'[') => {
                depth += 1;
                next += 1;
                continue;
            }
            Some(b'}' | b']') => {
                depth = depth.checked_sub(1).ok_or_else(unreadable)?;
                next += 1;
            }
            Some(b',' | b':' | b' ' | b'\t' | b'\r' | b'\n') if depth > 0 => {
                next += 1;
                continue;
            }
            Some(b',' | b':' | b' ' | b'\t' | b'\r' | b'\n') => return Err(unreadable()),
            Some(_) => {
                let word = text[next..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'));
                let length = word.count();
                if length == 0 {
                    return Err(unreadable());
                }
                next += length;
            }
        }
        if depth == 0 {
            return Ok(next);
        }
    }
}

fn string_end(text: &[u8], at: usize) -> Result<usize, SqlError> {
    let mut next = at + 1;
    loop {
        match text.get(next) {
            Some(b'"') => return Ok(next + 1),
            Some(b'\\') => next += 2,
            Some(_) => next += 1,
            None => return Err(unreadable()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_cut_out_as_they_are_written() {
        let row = br#"{"_rid":"a\"}","orderByItems":[{"item":1.50},{}],"payload":{"x":[1,{"y":"],"}]}}"#;
        let members = Members::of(row).unwrap();
        assert_eq!(members.text("payload"), Some(&br#"{"x":[1,{"y":"],"}]}"#[..]));
        assert_eq!(members.text("missing"), None);
        let keys = items(&members.value("orderByItems").unwrap());
        assert_eq!(keys, [Value::from(1.5), Value::Undefined]);
        assert_eq!(members.value("_rid").unwrap(), Value::from("a\"}"));
    }

    #[test]
    fn text_that_is_no_object_is_an_error_and_no_panic() {
        for text in
            ["", "1", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":\"", "{\"a\":]}", "{\"a\" 1}", "{\"a\\"]
        {
            assert!(Members::of(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Members::of(b" { } ").is_ok());
    }

    #[test]
    fn rows_come_back_one_by_one() {
        let mut rows = Rows::default();
        rows.push(b"1");
        rows.push(b"[2,3]");
        assert_eq!(rows.iter().collect::<Vec<_>>(), [&b"1"[..], b"[2,3]"]);
        assert_eq!((rows.len(), rows.size_bytes(), rows.get(2)), (2, 6, None));
    }
}
