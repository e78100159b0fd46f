//! Rows of queries as items: the etag of a version, and behind it its document as it is stored, numbers with their
//! widths.

use bytes::Bytes;
use orrery_model::{DocWriter, Number, Value};
use orrery_query::{Eval, RowFormat};
use orrery_sql::SqlError;

/// Length of an etag's text.
pub const ETAG_BYTES: usize = 38;

/// Writes whole items. The system members are those of `VersionMembers`.
pub struct ItemForm;

impl RowFormat for ItemForm {
    fn name(&self) -> &'static str {
        "mongo-item"
    }

    fn write(&self, row: &Eval<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let mut etag = [b' '; ETAG_BYTES];
        let document = match row {
            Eval::Item(view) => {
                if let Value::String(text) = view.system.value(0)
                    && text.len() == ETAG_BYTES
                {
                    etag.copy_from_slice(text.as_bytes());
                }
                let mut writer = DocWriter::keeping_widths(256);
                writer.raw(view.document);
                writer.finish()
            }
            // Statements select whole items; anything else is no document.
            _ => Value::Number(Number::Int(0)).to_document(),
        };
        out.extend_from_slice(&etag);
        out.extend_from_slice(&document);
        Ok(())
    }
}

/// A stored document and the version that it is.
#[derive(Clone, Debug)]
pub struct Found {
    pub document: Bytes,
    /// The version; of what a transaction has written itself there is none yet.
    pub etag: String,
}

/// An item out of a row.
pub fn read(row: Bytes) -> Option<Found> {
    if row.len() < ETAG_BYTES {
        return None;
    }
    let etag = std::str::from_utf8(&row[..ETAG_BYTES]).ok()?.to_owned();
    Some(Found { etag, document: row.slice(ETAG_BYTES..) })
}
