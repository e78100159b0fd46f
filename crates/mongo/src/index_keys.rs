//! The keys that a document has in an index: one for each combination of what its paths lead to.
//!
//! ```text
//! {a: 1, b: [2, 3]}             {a: 1, b: 1}      (1, 2) (1, 3)
//! {a: [{b: 1, c: 2}, {b: 3}]}   {"a.b": 1, "a.c": 1}   (1, 2) (3, null)
//! ```
//!
//! An array is gone through once for all paths that lead into it, so that what stands together in an element stays
//! together. Two arrays side by side have no key.

use crate::error::{Error, Result, code};
use crate::order::{Collation, identity};
use crate::value::{Bson, Kind};
use crate::value_ref::ValueRef;

/// Keys of one document in one index.
const KEYS_MAX: usize = 100_000;

/// Where a path has got to.
#[derive(Clone, Copy)]
struct Part<'a> {
    value: Option<ValueRef<'a>>,
    /// What of the path is left, and how much of it was gone.
    path: &'a str,
    gone: usize,
    /// An array here is a value: it is an element of one.
    ends: bool,
}

impl<'a> Part<'a> {
    fn rest(&self) -> &'a str {
        &self.path[self.gone..]
    }

    fn gone_path(&self) -> &'a str {
        self.path[..self.gone].trim_end_matches('.')
    }

    /// Follows the path as far as there are documents.
    fn advance(&mut self) {
        while !self.rest().is_empty() {
            let Some(value) = self.value else { return };
            if value.kind() == Kind::Array {
                return;
            }
            let name = self.rest().split('.').next().unwrap_or_default();
            self.value = if value.kind() == Kind::Document { value.get(name) } else { None };
            self.gone = (self.gone + name.len() + 1).min(self.path.len());
        }
    }

    fn array(&self) -> Option<ValueRef<'a>> {
        self.value.filter(|value| value.kind() == Kind::Array && !(self.ends && self.rest().is_empty()))
    }
}

/// The values of a document at the paths of an index, combined as its keys are. `None`: missing.
pub fn combinations<'a>(document: ValueRef<'a>, paths: &[&'a str]) -> Result<Vec<Vec<Option<ValueRef<'a>>>>> {
    let parts = paths.iter().map(|path| Part { value: Some(document), path, gone: 0, ends: false }).collect();
    let mut found = Vec::new();
    expand(parts, &mut found)?;
    Ok(found)
}

fn expand<'a>(mut parts: Vec<Part<'a>>, found: &mut Vec<Vec<Option<ValueRef<'a>>>>) -> Result<()> {
    parts.iter_mut().for_each(Part::advance);
    let Some(first) = parts.iter().position(|part| part.array().is_some()) else {
        if found.len() >= KEYS_MAX {
            return Err(Error::new(
                code::CANNOT_CREATE_INDEX,
                format!("a document has more than {KEYS_MAX} keys in an index"),
            ));
        }
        found.push(parts.into_iter().map(|part| part.value).collect());
        return Ok(());
    };
    let (prefix, array) = (parts[first].gone_path(), parts[first].array());
    let Some(array) = array else { return Ok(()) };
    let same = |part: &Part<'_>| part.array().is_some() && part.gone_path() == prefix;
    // A number may name an element instead of going through all of them.
    let numbered = |part: &Part<'a>| {
        let name = part.rest().split('.').next().unwrap_or_default();
        let number: usize = name.parse().ok()?;
        array.at(number).map(|element| (element, name.len()))
    };
    let mut one_by_one = false;
    for part in parts.iter_mut().filter(|part| same(part)) {
        match numbered(part) {
            Some((element, length)) => {
                part.value = Some(element);
                part.gone = (part.gone + length + 1).min(part.path.len());
                part.ends = false;
            }
            None => one_by_one = true,
        }
    }
    if !one_by_one {
        return expand(parts, found);
    }
    let side = parts.iter().find(|part| part.array().is_some() && !same(part));
    if let Some(side) = side
        && numbered(side).is_none()
    {
        return Err(Error::new(
            code::CANNOT_INDEX_PARALLEL_ARRAYS,
            format!(
                "cannot index parallel arrays [{}] [{}]",
                side.path.split('.').next().unwrap_or_default(),
                prefix.rsplit('.').next().unwrap_or_default()
            ),
        ));
    }
    let elements: Vec<Option<ValueRef<'a>>> =
        if array.is_empty() { vec![None] } else { array.elements().map(Some).collect() };
    for element in elements {
        let next = parts.iter().map(|part| {
            if !same(part) {
                return *part;
            }
            match element {
                // Of an empty array the array itself has a key, which is none of null's.
                None if part.rest().is_empty() => {
                    Part { value: Some(ValueRef::Owned(&Bson::Undefined)), ends: true, ..*part }
                }
                Some(element) if part.rest().is_empty() => Part { value: Some(element), ends: true, ..*part },
                Some(element) if element.kind() == Kind::Document => {
                    Part { value: Some(element), ends: false, ..*part }
                }
                _ => Part { value: None, ..*part },
            }
        });
        expand(next.collect(), found)?;
    }
    Ok(())
}

/// The keys of a document as bytes that are equal exactly where MongoDB holds the keys for equal, in order and each
/// once. None where the index is sparse and the document has nothing for it.
pub fn keys(
    document: ValueRef<'_>,
    paths: &[&str],
    sparse: bool,
    collation: Option<&Collation>,
) -> Result<Vec<Vec<u8>>> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for values in combinations(document, paths)? {
        if sparse && values.iter().all(Option::is_none) {
            continue;
        }
        let mut key = Vec::with_capacity(16 * values.len());
        for value in values {
            identity(value.unwrap_or(ValueRef::Owned(&Bson::Null)), collation, &mut key);
        }
        keys.push(key);
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext_json::{Reading, Style, parse_document, to_text};

    fn check(document: &str, paths: &[&str], expected: &str) {
        let document = parse_document(document, Reading::Data).unwrap();
        let shown = match combinations(ValueRef::from(&document), paths) {
            Err(error) => error.code.to_string(),
            Ok(found) => {
                let shown = |value: &Option<ValueRef<'_>>| {
                    value.map_or("-".to_owned(), |value| to_text(value, Style::Relaxed))
                };
                let key =
                    |key: &Vec<Option<ValueRef<'_>>>| key.iter().map(shown).collect::<Vec<_>>().join(",");
                found.iter().map(key).collect::<Vec<_>>().join(" ")
            }
        };
        assert_eq!(shown, expected, "{paths:?}");
    }

    #[test]
    fn arrays_have_a_key_for_each_element() {
        check(r#"{"a":1}"#, &["a"], "1");
        check(r#"{"a":[1,2]}"#, &["a"], "1 2");
        check(r#"{"a":[[1],2]}"#, &["a"], "[1] 2");
        check(r#"{"a":1,"b":[2,3]}"#, &["a", "b"], "1,2 1,3");
        check(r#"{"a":[{"b":1},{"c":2},3]}"#, &["a.b"], "1 - -");
        check(r#"{"a":{"b":[1,{"c":2}]}}"#, &["a.b.c"], "- 2");
    }

    #[test]
    fn what_stands_together_in_an_element_stays_together() {
        check(r#"{"a":[{"b":1,"c":2},{"b":3}]}"#, &["a.b", "a.c"], "1,2 3,-");
        check(r#"{"a":[{"b":[1,2],"c":3}]}"#, &["a.b", "a.c"], "1,3 2,3");
        check(r#"{"x":0,"a":[{"b":1},{"b":2}]}"#, &["x", "a.b"], "0,1 0,2");
    }

    #[test]
    fn two_arrays_side_by_side_have_no_key() {
        check(r#"{"a":[1],"b":[2]}"#, &["a", "b"], "171");
        check(r#"{"a":[{"b":[1],"c":[2]}]}"#, &["a.b", "a.c"], "171");
    }

    #[test]
    fn numbers_name_elements() {
        check(r#"{"a":[5,6]}"#, &["a.1"], "6");
        check(r#"{"a":[{"b":5},{"b":6}]}"#, &["a.1.b"], "6");
        check(r#"{"a":[{"0":7}]}"#, &["a.5.0"], "-");
    }

    #[test]
    fn an_empty_array_and_nothing_have_keys_of_their_own() {
        let undefined = "{\"$undefined\":true}";
        check(r#"{"a":[]}"#, &["a"], undefined);
        check(r#"{"a":[]}"#, &["a.b"], "-");
        check(r#"{}"#, &["a", "b"], "-,-");
        let nothing = crate::Document::new();
        assert!(keys((&nothing).into(), &["a", "b"], true, None).unwrap().is_empty());
        assert_eq!(keys((&nothing).into(), &["a"], false, None).unwrap().len(), 1);
    }

    #[test]
    fn numbers_of_one_value_have_one_key() {
        let of = |text: &str| {
            let document = parse_document(text, Reading::Data).unwrap();
            keys((&document).into(), &["a"], false, None).unwrap()
        };
        assert_eq!(of(r#"{"a":1}"#), of(r#"{"a":{"$numberDecimal":"1.0"}}"#));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":"1"}"#));
        assert_eq!(of(r#"{"a":[1,1,2]}"#).len(), 2);
    }
}
