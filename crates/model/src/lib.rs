//! Values, documents, paths, ordering, partition keys and patches: the pure heart of the database.
//!
//! Everything above this crate speaks in two kinds of values. [`Raw`] is a borrowed view into a
//! stored document: it is two words and a tag, it is `Copy`, and reading one property touches only the
//! bytes of that property. [`Value`] is owned and knows `Undefined`; literals, parameters and computed results
//! are values. [`parse_json`] turns a client's text into a stored document, [`Raw::write_json`] turns it back,
//! [`DocWriter`] builds documents from parts. What other APIs store and JSON has no word for is [`Extended`].
//!
//! ```
//! use orrery_model::{parse_json, NumberStyle, ParseOptions, Raw};
//! let stored = parse_json(br#"{"id":"a","size":{"w":2.50}}"#, &ParseOptions::default()).unwrap();
//! let item = Raw::document(&stored).unwrap();
//! assert_eq!(item.get("size").unwrap().get("w").unwrap().as_number().unwrap().as_f64(), 2.5);
//! let mut text = Vec::new();
//! item.write_json(&mut text, NumberStyle::Item);
//! assert_eq!(text, br#"{"id":"a","size":{"w":2.5}}"#);
//! ```
//!
//! Nothing here does input or output, keeps time, or knows a protocol.
#![forbid(unsafe_code)]

mod decimal128;
mod document;
mod epk;
mod extended;
mod json;
mod key_definition;
mod murmur;
mod number;
mod order;
mod partition_key;
mod patch;
mod path;
mod type_order;
mod value;

pub use decimal128::{Decimal128, Magnitude};
pub use document::format::{DEPTH_MAX, READ_DEPTH_MAX, key_hash};
pub use document::raw::{CorruptDocument, Kind, NumberWidth, Raw};
pub use document::table::{Elements, Members};
pub use document::writer::DocWriter;
pub use epk::{Epk, HexError};
pub use extended::{Extended, ExtendedValue};
pub use json::extended::parse_extended_json;
pub use json::parser::{JSON_BYTES_MAX, JsonError, ParseOptions, parse_json, parse_json_value};
pub use json::text::{write_json_number, write_json_string};
pub use key_definition::{KeyKind, KeyVersion, PartitionKeyDefinition};
pub use murmur::{murmur3_x64_128, murmur3_x86_32};
pub use number::{Number, NumberStyle};
pub use order::{bson_order, compare_raw, equal_raw};
pub use partition_key::{KEY_COMPONENTS_MAX, KeyComponent, KeyError, PartitionKey};
pub use patch::{PatchError, PatchErrorKind, PatchOp, Patched, Pointer, apply_patch, apply_patch_from};
pub use path::{PathError, PropertyPath};
pub use type_order::Type;
pub use value::Value;
