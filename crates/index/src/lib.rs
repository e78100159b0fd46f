//! Values as index keys: byte strings whose order is the order of the values.
//!
//! An index row is *which path*, *which value*, *which item*; this crate is about the value. [`encode_raw`] and
//! [`encode_value`] write one so that comparing bytes compares values across all types, and so that no encoding is a
//! prefix of another: what follows in the key (the item) never disturbs the order, and [`split`] finds the border
//! without being told a length. [`decode`] gives the value back, so many queries never load the item.
//!
//! Three kinds of entries say less than the item does, and [`is_exact`] tells them: strings longer than
//! [`STRING_BYTES_MAX`] are cut (a hash of the whole keeps look-ups by equality selective), of arrays and objects with
//! content only the kind is kept, and decimals of 128 bits lie among the numbers. Whoever reads such an entry asks the
//! item.
//!
//! - `value`, `number`: one value. `range`: the byte range of "everything above 5", "every string that starts with x".
//! - `composite`: several values in one key, each ascending or descending. `cell`: places on the earth or a plane.
//! - `text`: words and where they stand. `vector`, `quantize`: vectors, whole and in few bits. `graph`: the nearest
//!   by walking.
//!
//! ```
//! use orrery_index::{ValueRange, decode, encode_value};
//! use orrery_model::Value;
//! let mut entry = Vec::new();
//! encode_value(&mut entry, &Value::from("lion"));
//! assert!(ValueRange::starts_with("li").contains(&entry));
//! assert_eq!(decode(&entry), Some(Value::from("lion")));
//! ```
//!
//! Pure: where rows are kept, which paths are indexed and when is the engine's business.
#![forbid(unsafe_code)]

mod cell;
mod composite;
mod graph;
mod number;
mod quantize;
mod range;
mod text;
mod value;
mod vector;

pub use cell::{CELL_BYTES, Cell, Grid, Region, Touch, ranges as cell_ranges};
pub use composite::{Component, CompositeRange, encode_component, encode_component_value, split_component};
pub use graph::{
    GraphEdit, GraphRows, GraphSearch, LINKS, LINKS_MAX, Measure, Met, NODES_MAX, insert as link_node,
    linked_node, remove as unlink_node,
};
pub use quantize::{CODE_BYTES_MAX, CodeProbe, Quantizer, Unpacked};
pub use range::{ValueRange, prefix_end};
pub use text::{STEM_BYTES_MAX, count_places, decode_places, encode_places, encode_stem};
pub use value::{
    ENTRY_BYTES_MAX, STRING_BYTES_MAX, decode, encode_extended, encode_raw, encode_undefined, encode_value,
    is_exact, kind_of, split,
};
pub use vector::{Element, Likeness, Metric, Probe, encode_vector};
