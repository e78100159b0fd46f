//! One record per line. A line that is no record costs nothing but itself.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Result;

use super::{RECORD_BYTES_MAX, RawRecord, Reader, input};

const BUFFER_BYTES: usize = 1024 * 1024;
/// Of a line that is too long, this much is shown.
const SHOWN_BYTES: usize = 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

pub struct Lines {
    input: BufReader<Box<dyn Read + Send>>,
    position: u64,
}

impl Lines {
    pub fn open(path: &Path, from: u64) -> Result<Lines> {
        Ok(Lines { input: BufReader::with_capacity(BUFFER_BYTES, input(path, from)?), position: from })
    }

    /// The next line without its end, and whether it was too long to be kept.
    fn line(&mut self) -> Result<Option<(Vec<u8>, bool)>> {
        let (mut line, mut too_long, mut any) = (Vec::new(), false, false);
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(any.then_some((line, too_long)));
            }
            any = true;
            let end = memchr::memchr(b'\n', buffer);
            let part = &buffer[..end.unwrap_or(buffer.len())];
            if line.len() + part.len() > RECORD_BYTES_MAX {
                too_long = true;
                line.truncate(SHOWN_BYTES);
            } else if !too_long {
                line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            self.position += used as u64;
            if end.is_some() {
                return Ok(Some((line, too_long)));
            }
        }
    }
}

impl Reader for Lines {
    fn next(&mut self) -> Result<Option<RawRecord>> {
        loop {
            let first = self.position == 0;
            let Some((mut line, too_long)) = self.line()? else { return Ok(None) };
            if first && line.starts_with(BYTE_ORDER_MARK) {
                line.drain(..BYTE_ORDER_MARK.len());
            }
            if too_long {
                let text = String::from_utf8_lossy(&line).into_owned();
                return Ok(Some(RawRecord::Bad {
                    text,
                    reason: format!("more than {RECORD_BYTES_MAX} bytes"),
                }));
            }
            while line.last().is_some_and(u8::is_ascii_whitespace) {
                line.pop();
            }
            if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
                return Ok(Some(RawRecord::Text(line)));
            }
        }
    }

    fn position(&self) -> u64 {
        self.position
    }
}
