//! Items, reduced to the values of paths that could be keys.

use std::collections::HashMap;

use serde_json::Value;

/// Items of a sample.
pub const ITEMS_MAX: usize = 200_000;
/// Different paths that are looked at; items with more have names that are values.
const PATHS_MAX: usize = 200;
/// The latest items are this part of all, and at least so many.
const RECENT_PART: usize = 50;
const RECENT_ITEMS_MIN: usize = 50;
/// Names of a path: a property, or one inside of an object.
const DEPTH_MAX: usize = 2;
/// What no key can be made of: the server's own, and what decides when an item dies.
const OTHERS: [&str; 6] = ["_rid", "_self", "_etag", "_attachments", "_ts", "ttl"];

/// One value of a path, by its place among all values that were seen.
pub(crate) type ValueId = u32;

#[derive(Debug, Default)]
pub struct Sample {
    paths: Vec<PathValues>,
    places: HashMap<String, usize>,
    pub(crate) sizes: Vec<u32>,
    /// Items in the order in which they were written.
    times: Vec<i64>,
}

#[derive(Debug)]
pub(crate) struct PathValues {
    pub name: String,
    /// By item; `None` where it is missing.
    pub values: Vec<Option<ValueId>>,
    ids: HashMap<String, ValueId>,
    pub texts: Vec<String>,
    /// An array, an object or a number with a fraction was seen: no key.
    pub unfit: bool,
}

impl Sample {
    /// Takes an item; false when there are enough.
    pub fn add(&mut self, item: &Value, size_bytes: u64) -> bool {
        if self.len() >= ITEMS_MAX {
            return false;
        }
        let row = self.len();
        self.sizes.push(u32::try_from(size_bytes).unwrap_or(u32::MAX));
        self.times.push(item["_ts"].as_i64().unwrap_or(row as i64));
        if let Some(object) = item.as_object() {
            for (name, value) in object.iter().filter(|(name, _)| !OTHERS.contains(&name.as_str())) {
                self.note(row, &format!("/{name}"), value, DEPTH_MAX);
            }
        }
        for path in &mut self.paths {
            path.values.resize(row + 1, None);
        }
        true
    }

    fn note(&mut self, row: usize, path: &str, value: &Value, depth: usize) {
        if let (Value::Object(object), true) = (value, depth > 1) {
            for (name, value) in object {
                self.note(row, &format!("{path}/{name}"), value, depth - 1);
            }
        }
        let Some(place) = self.place(path, row) else { return };
        let path = &mut self.paths[place];
        let text = match value {
            Value::Object(_) | Value::Array(_) => {
                path.unfit = true;
                return;
            }
            Value::Number(number)
                if number.as_i64().is_none()
                    && number.as_f64().is_some_and(|number| number.fract() != 0.0) =>
            {
                path.unfit = true;
                return;
            }
            value => value.to_string(),
        };
        let next = path.texts.len() as ValueId;
        let id = *path.ids.entry(text.clone()).or_insert(next);
        if id == next {
            path.texts.push(text);
        }
        path.values.resize(row, None);
        path.values.push(Some(id));
    }

    fn place(&mut self, path: &str, row: usize) -> Option<usize> {
        if let Some(place) = self.places.get(path) {
            return Some(*place);
        }
        // Quotes in names would have to be escaped in a path; keys with such names are rare enough to leave out.
        if self.paths.len() >= PATHS_MAX || path.contains(['"', '\'', '\\']) {
            return None;
        }
        let new = PathValues {
            name: path.to_owned(),
            values: vec![None; row],
            ids: HashMap::new(),
            texts: Vec::new(),
            unfit: false,
        };
        self.places.insert(path.to_owned(), self.paths.len());
        self.paths.push(new);
        Some(self.paths.len() - 1)
    }

    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    pub fn size_bytes(&self) -> u64 {
        self.sizes.iter().map(|size| u64::from(*size)).sum()
    }

    pub(crate) fn paths(&self) -> &[PathValues] {
        &self.paths
    }

    pub(crate) fn path(&self, name: &str) -> Option<&PathValues> {
        self.places.get(name).map(|place| &self.paths[*place])
    }

    /// The items that were written last: a moment's worth of them.
    pub(crate) fn recent(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|row| self.times[*row]);
        let recent = (self.len() / RECENT_PART).max(RECENT_ITEMS_MIN).min(self.len());
        order.split_off(self.len() - recent)
    }
}
