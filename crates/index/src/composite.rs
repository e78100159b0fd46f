//! Composite keys: the values of several paths in a row, each ascending or descending.
//!
//! A descending component has every byte turned over, which reverses its order and leaves it free of prefixes. A
//! missing value is the component `undefined`, so every item has exactly one key and an index answers for all of
//! them.
//!
//! A range over a composite index fixes the first components and bounds the next one; what follows is free.

use orrery_model::{Raw, Value};

use crate::range::{ValueRange, prefix_end};
use crate::value;

/// One component as it stands in a key.
#[derive(Debug, Clone, Copy)]
pub struct Component<'k> {
    bytes: &'k [u8],
    descending: bool,
}

impl Component<'_> {
    /// The component as an ascending encoding, for `decode`, `is_exact` and comparisons.
    pub fn encoded(&self) -> Vec<u8> {
        let mut out = self.bytes.to_vec();
        if self.descending {
            turn(&mut out);
        }
        out
    }

    /// The bytes as they stand in the key: equal components of one index are equal bytes.
    pub fn key_bytes(&self) -> &[u8] {
        self.bytes
    }
}

/// Appends a component; `None` is undefined.
pub fn encode_component(out: &mut Vec<u8>, component: Option<Raw<'_>>, descending: bool) {
    let start = out.len();
    match component {
        Some(component) => value::encode_raw(out, component),
        None => value::encode_undefined(out),
    }
    if descending {
        turn(&mut out[start..]);
    }
}

/// Appends a component that is not in the document.
pub fn encode_component_value(out: &mut Vec<u8>, component: &Value, descending: bool) {
    let start = out.len();
    value::encode_value(out, component);
    if descending {
        turn(&mut out[start..]);
    }
}

/// Splits a component off the front of a key; `None` when the bytes do not start with one.
pub fn split_component(key: &[u8], descending: bool) -> Option<(Component<'_>, &[u8])> {
    let length = if descending {
        let window = &key[..key.len().min(value::ENTRY_BYTES_MAX)];
        let mut turned = [0; value::ENTRY_BYTES_MAX];
        turned[..window.len()].copy_from_slice(window);
        turn(&mut turned[..window.len()]);
        value::split(&turned[..window.len()])?.0.len()
    } else {
        value::split(key)?.0.len()
    };
    let (bytes, rest) = key.split_at_checked(length)?;
    Some((Component { bytes, descending }, rest))
}

/// The keys of a composite index whose first components are given and whose next one lies in a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompositeRange {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    point: bool,
}

impl CompositeRange {
    /// `equal`: a range for each component from the first on, of which all but the last must be points. `descending`
    /// are the orders of the index's components. `None` when there are more ranges than components, or a range that
    /// is not the last is no point.
    pub fn new(ranges: &[ValueRange], descending: &[bool]) -> Option<CompositeRange> {
        if ranges.len() > descending.len() {
            return None;
        }
        let mut fixed = Vec::new();
        let Some((last, before)) = ranges.split_last() else {
            return Some(CompositeRange { start: Vec::new(), end: vec![0xFF], point: false });
        };
        for (range, descending) in before.iter().zip(descending) {
            if !range.is_point() {
                return None;
            }
            let start = fixed.len();
            fixed.extend_from_slice(&range.start);
            if *descending {
                turn(&mut fixed[start..]);
            }
        }
        let (mut start, mut end) = (last.start.clone(), last.end.clone());
        if descending[before.len()] {
            // Turned over, the range's end comes first: behind everything that starts like it.
            turn(&mut start);
            turn(&mut end);
            (start, end) = (prefix_end(&end), prefix_end(&start));
        }
        let point = last.is_point() && ranges.len() == descending.len();
        let behind = |tail: Vec<u8>| [&fixed[..], &tail[..]].concat();
        Some(CompositeRange { start: behind(start), end: behind(end), point })
    }

    /// Whether all components are fixed, so that rows come in the order of their items.
    pub fn is_point(&self) -> bool {
        self.point
    }
}

fn turn(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
}
