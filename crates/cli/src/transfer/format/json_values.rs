//! The objects of a JSON array, or JSON objects one behind the other, whatever the line breaks.
//!
//! A value is cut out by its brackets and not looked into. One that is broken inside is one bad record; one whose
//! brackets do not match takes what follows with it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Result;

use super::{RECORD_BYTES_MAX, RawRecord, Reader, input};

const BUFFER_BYTES: usize = 1024 * 1024;
const SHOWN_BYTES: usize = 1024;

pub struct JsonValues {
    input: BufReader<Box<dyn Read + Send>>,
    position: u64,
}

/// Where inside a value the reader is.
#[derive(Default)]
struct Inside {
    depth: usize,
    string: bool,
    escaped: bool,
}

impl Inside {
    /// Whether the value ends with this byte.
    fn step(&mut self, byte: u8) -> bool {
        if self.string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.string = false,
                _ => {}
            }
            return !self.string && self.depth == 0;
        }
        match byte {
            b'"' => self.string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

impl JsonValues {
    pub fn open(path: &Path, from: u64) -> Result<JsonValues> {
        Ok(JsonValues { input: BufReader::with_capacity(BUFFER_BYTES, input(path, from)?), position: from })
    }

    /// Up to the first byte of the next value. The array's own brackets and the commas between values are passed over.
    fn skip(&mut self) -> Result<bool> {
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(false);
            }
            let begins = |byte: &u8| !byte.is_ascii_whitespace() && !b"[],\xEF\xBB\xBF".contains(byte);
            let at = buffer.iter().position(begins);
            let used = at.unwrap_or(buffer.len());
            self.input.consume(used);
            self.position += used as u64;
            if at.is_some() {
                return Ok(true);
            }
        }
    }
}

impl Reader for JsonValues {
    fn next(&mut self) -> Result<Option<RawRecord>> {
        if !self.skip()? {
            return Ok(None);
        }
        let (mut value, mut inside, mut too_long) = (Vec::new(), Inside::default(), false);
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                let shown = value.len().min(SHOWN_BYTES);
                let text = String::from_utf8_lossy(&value[..shown]).into_owned();
                return Ok(Some(RawRecord::Bad { text, reason: "the file ends inside of it".into() }));
            }
            let scalar = value.is_empty() && !matches!(buffer[0], b'{' | b'[' | b'"');
            let end = match scalar {
                true => buffer.iter().position(|byte| b",]\n".contains(byte)).map(|at| at.max(1) - 1),
                false => buffer.iter().position(|byte| inside.step(*byte)),
            };
            let used = end.map_or(buffer.len(), |end| end + 1);
            if value.len() + used > RECORD_BYTES_MAX {
                too_long = true;
                value.truncate(SHOWN_BYTES);
            } else if !too_long {
                value.extend_from_slice(&buffer[..used]);
            }
            self.input.consume(used);
            self.position += used as u64;
            if end.is_some() || scalar {
                break;
            }
        }
        Ok(Some(match too_long {
            false => RawRecord::Text(value),
            true => RawRecord::Bad {
                text: String::from_utf8_lossy(&value).into_owned(),
                reason: format!("more than {RECORD_BYTES_MAX} bytes"),
            },
        }))
    }

    fn position(&self) -> u64 {
        self.position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, from: u64) -> Vec<(String, u64)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let mut reader = JsonValues::open(file.path(), from).unwrap();
        let mut found = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            found.push(match record {
                RawRecord::Text(text) => (String::from_utf8(text).unwrap(), reader.position()),
                RawRecord::Bad { reason, .. } => (format!("bad: {reason}"), reader.position()),
                RawRecord::Row(_) => unreachable!(),
            });
        }
        found
    }

    #[test]
    fn arrays_and_objects_in_a_row_are_cut_at_their_brackets() {
        let text = "[\n {\"a\":\"]}\\\"\"},{\"b\":[1,{}]} ,\n{}]\n";
        let found = values(text, 0);
        let texts: Vec<&str> = found.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, [r#"{"a":"]}\""}"#, r#"{"b":[1,{}]}"#, "{}"]);
        assert_eq!(values(text, found[0].1), found[1..], "it goes on where it was");
        assert_eq!(values("{\"a\":1}\n{\n\"b\":2\n}", 0).len(), 2);
        assert_eq!(values("[1,\"x\",{}]", 0).len(), 3, "what is no object is a record that will be refused");
        assert_eq!(values("[]", 0), []);
    }

    #[test]
    fn an_end_in_the_middle_is_a_bad_record() {
        assert!(values("[{\"a\":1},{\"b\":", 0)[1].0.contains("ends inside"));
    }
}
