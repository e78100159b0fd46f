//! BSON bytes to values, to stored items, and back.
//!
//! Every reader checks lengths, ends and UTF-8, nests no deeper than [`DEPTH_MAX`], and never panics. [`elements`]
//! reads a document member by member without building it; an [`Element`] becomes a value or goes straight into a
//! stored document.

mod read;
mod stored;
pub(crate) mod tag;
pub(crate) mod write;

use orrery_model::Raw;

pub use read::{Element, Elements, elements, read_document};
pub use stored::write_stored;
pub use write::{write_document, write_element};

use crate::error::{Error, Result, code};
use crate::value_ref::ValueRef;

/// Documents and arrays within each other.
pub const DEPTH_MAX: usize = 180;

/// The root of stored bytes, as clients of MongoDB see it.
pub fn item(bytes: &[u8]) -> Result<ValueRef<'_>> {
    let damaged = |_| Error::new(code::INTERNAL_ERROR, "the stored item is damaged");
    Raw::document(bytes).map(ValueRef::Item).map_err(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Bson;

    #[test]
    fn damaged_bytes_are_refused() {
        let mut good = Vec::new();
        write_document(ValueRef::from(&crate::doc! {"a" => 1, "b" => vec![Bson::from("x")]}), &mut good);
        assert!(read_document(&good).is_ok());
        for cut in 0..good.len() {
            assert!(read_document(&good[..cut]).is_err(), "{cut} bytes");
        }
        for at in 0..good.len() {
            for byte in [0, 1, 0x7F, 0x80, 0xFF] {
                let mut bad = good.clone();
                bad[at] = byte;
                let _ = read_document(&bad);
            }
        }
    }

    #[test]
    fn deep_documents_are_refused() {
        let mut value = Bson::Int32(1);
        for _ in 0..DEPTH_MAX {
            value = Bson::array(vec![value]);
        }
        let mut out = Vec::new();
        write_document(ValueRef::from(&crate::doc! {"a" => value.clone()}), &mut out);
        assert_eq!(read_document(&out).unwrap_err().code, code::OVERFLOW);
        let Bson::Array(inner) = value else { unreachable!() };
        out.clear();
        write_document(ValueRef::from(&crate::doc! {"a" => inner[0].clone()}), &mut out);
        assert!(read_document(&out).is_ok());
    }
}
