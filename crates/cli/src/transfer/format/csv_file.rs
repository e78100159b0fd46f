//! CSV: a header with the names of properties, then a row for each item.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use super::super::raw_json;
use super::{FormatOptions, RECORD_BYTES_MAX, RawRecord, Reader, cells, input, is_stdin};

/// Columns of a table.
const COLUMNS_MAX: usize = 10_000;

pub struct CsvRows {
    reader: csv::Reader<Box<dyn Read + Send>>,
    /// Where the file was entered behind its header.
    start: u64,
}

impl CsvRows {
    pub fn open(path: &Path, from: u64) -> Result<(CsvRows, Vec<String>)> {
        let build =
            |input| csv::ReaderBuilder::new().flexible(true).has_headers(from == 0).from_reader(input);
        let header = match from {
            0 => None,
            _ => Some(header(&mut csv::ReaderBuilder::new().flexible(true).from_reader(input(path, 0)?))?),
        };
        if is_stdin(path) && from > 0 {
            bail!("standard input cannot be read again");
        }
        let mut reader = build(input(path, from)?);
        let header = match header {
            Some(header) => header,
            None => self::header(&mut reader)?,
        };
        Ok((CsvRows { reader, start: from }, header))
    }
}

fn header(reader: &mut csv::Reader<Box<dyn Read + Send>>) -> Result<Vec<String>> {
    let found = reader.headers().context("no header")?;
    let names: Vec<String> =
        found.iter().map(|name| name.trim_start_matches('\u{FEFF}').trim().to_owned()).collect();
    if names.is_empty() || names.len() > COLUMNS_MAX {
        bail!("a header has 1 to {COLUMNS_MAX} names");
    }
    if let Some(twice) = names.iter().enumerate().find(|(n, name)| names[..*n].contains(name)) {
        bail!("the header names `{}` twice", twice.1);
    }
    if names.iter().any(String::is_empty) {
        bail!("a column of the header has no name");
    }
    Ok(names)
}

impl Reader for CsvRows {
    fn next(&mut self) -> Result<Option<RawRecord>> {
        let mut row = csv::ByteRecord::new();
        if !self.reader.read_byte_record(&mut row)? {
            return Ok(None);
        }
        if row.as_slice().len() > RECORD_BYTES_MAX {
            let text = String::from_utf8_lossy(&row.as_slice()[..1024]).into_owned();
            return Ok(Some(RawRecord::Bad { text, reason: format!("more than {RECORD_BYTES_MAX} bytes") }));
        }
        Ok(Some(RawRecord::Row(row)))
    }

    fn position(&self) -> u64 {
        self.start + self.reader.position().byte()
    }
}

/// The fields of a row, as many as the header has names.
pub fn fields<'r>(header: &[String], row: &'r csv::ByteRecord) -> Result<Vec<&'r str>, String> {
    if row.len() != header.len() {
        return Err(format!("{} fields where the header has {}", row.len(), header.len()));
    }
    row.iter().map(|field| std::str::from_utf8(field).map_err(|_| "not UTF-8".to_owned())).collect()
}

pub fn item(header: &[String], row: &csv::ByteRecord, options: &FormatOptions) -> Result<String, String> {
    let fields = fields(header, row)?;
    let value = |cell: &str| match options.text_only {
        true => (!cell.is_empty()).then(|| raw_json::quoted(cell)),
        false => cells::value(cell),
    };
    if let Some(separator) = options.nesting {
        return nested(header, &fields, separator, value);
    }
    let mut out = String::with_capacity(row.as_slice().len() * 2);
    out.push('{');
    for (name, cell) in header.iter().zip(fields) {
        let Some(value) = value(cell) else { continue };
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&raw_json::quoted(name));
        out.push(':');
        out.push_str(&value);
    }
    out.push('}');
    Ok(out)
}

/// `address.city` is the member `city` of the object `address`.
fn nested(
    header: &[String],
    fields: &[&str],
    separator: char,
    value: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut root = Map::new();
    for (name, cell) in header.iter().zip(fields) {
        let Some(value) = value(cell) else { continue };
        let value: Value = serde_json::from_str(&value).map_err(|error| error.to_string())?;
        let mut object = &mut root;
        let mut names = name.split(separator).peekable();
        while let Some(part) = names.next() {
            if names.peek().is_none() {
                object.insert(part.to_owned(), value);
                break;
            }
            let inner = object.entry(part).or_insert_with(|| Value::Object(Map::new()));
            object = inner
                .as_object_mut()
                .ok_or_else(|| format!("`{name}` is below a value that is no object"))?;
        }
    }
    Ok(Value::Object(root).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, options: &FormatOptions, from: u64) -> Vec<(Result<String, String>, u64)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let (mut reader, header) = CsvRows::open(file.path(), from).unwrap();
        let mut found = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            let RawRecord::Row(row) = record else { panic!() };
            found.push((item(&header, &row, options), reader.position()));
        }
        found
    }

    #[test]
    fn rows_become_items_and_reading_goes_on_where_it_was() {
        let text = "id,n,note\r\na,1,\"x, \"\"y\"\"\nz\"\nb,007,\nc,1\nd,,true\n";
        let found = read(text, &FormatOptions::default(), 0);
        assert_eq!(found[0].0.as_deref(), Ok(r#"{"id":"a","n":1,"note":"x, \"y\"\nz"}"#));
        assert_eq!(found[1].0.as_deref(), Ok(r#"{"id":"b","n":"007"}"#));
        assert_eq!(found[2].0.as_deref(), Err(&"2 fields where the header has 3".to_owned()));
        assert_eq!(found[3].0.as_deref(), Ok(r#"{"id":"d","note":true}"#));
        assert_eq!(read(text, &FormatOptions::default(), found[1].1), found[2..]);
    }

    #[test]
    fn text_stays_text_and_names_nest_if_asked() {
        let options = FormatOptions { text_only: true, ..Default::default() };
        assert_eq!(read("id,n\na,1\n", &options, 0)[0].0.as_deref(), Ok(r#"{"id":"a","n":"1"}"#));
        let options = FormatOptions { nesting: Some('.'), ..Default::default() };
        let found = read("id,at.city,at.zip\na,X,1\n", &options, 0);
        assert_eq!(found[0].0.as_deref(), Ok(r#"{"id":"a","at":{"city":"X","zip":1}}"#));
    }
}
