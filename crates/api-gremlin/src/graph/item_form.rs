//! Rows of queries as items: the etag and the time of a version, and behind them its document as it is stored,
//! numbers with their widths.

use orrery_model::{DocWriter, Number, Raw, Value};
use orrery_query::{Eval, RowFormat};
use orrery_sql::SqlError;

use super::document::System;

/// Length of an etag's text, and of a time.
const ETAG_BYTES: usize = 38;
const TS_BYTES: usize = 4;

/// Writes whole items. The system members are those of `VersionMembers`.
pub struct ItemForm;

impl RowFormat for ItemForm {
    fn name(&self) -> &'static str {
        "graph-item"
    }

    fn write(&self, row: &Eval<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let mut etag = [b' '; ETAG_BYTES];
        let mut ts = 0u32;
        let document = match row {
            Eval::Item(view) => {
                if let Value::String(text) = view.system.value(0)
                    && text.len() == ETAG_BYTES
                {
                    etag.copy_from_slice(text.as_bytes());
                }
                if let Value::Number(second) = view.system.value(1) {
                    ts = second.as_i64().and_then(|second| u32::try_from(second).ok()).unwrap_or(0);
                }
                let mut writer = DocWriter::keeping_widths(256);
                writer.raw(view.document);
                writer.finish()
            }
            // Statements select whole items; anything else is no element.
            _ => Value::Number(Number::Int(0)).to_document(),
        };
        out.extend_from_slice(&etag);
        out.extend_from_slice(&ts.to_le_bytes());
        out.extend_from_slice(&document);
        Ok(())
    }
}

/// An item out of a row.
pub fn read(row: &[u8]) -> Option<(Raw<'_>, System<'_>)> {
    let (etag, rest) = row.split_at_checked(ETAG_BYTES)?;
    let (ts, document) = rest.split_first_chunk::<TS_BYTES>()?;
    let system = System { etag: std::str::from_utf8(etag).ok(), ts: Some(u32::from_le_bytes(*ts)) };
    Some((Raw::document(document).ok()?, system))
}
