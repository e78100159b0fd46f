//! Unique keys: which values of a document a constraint claims within its logical partition.
//!
//! A constraint is a list of paths. Its claim is the list of values there, brought into a form in which equal values
//! are equal bytes: numbers by value (1 and 1.0 are the same), objects without regard to the order of their members,
//! a missing value as null, because the service counts it as one. Short claims stand in the row's key as they are,
//! long ones as a SHA-256, so that a row's key is bounded whatever a client stores and no two values can be made to
//! collide.

use orrery_model::{Kind, PropertyPath, Raw};
use sha2::{Digest, Sha256};
use smallvec::SmallVec;

/// Longest claim that is kept as it is.
const CLAIM_BYTES_MAX: usize = 96;
/// What a long claim's hash is marked with; no short claim starts with it.
const HASHED: u8 = 0xFF;

/// The values that a document claims for the paths of a constraint.
pub(super) fn claim(paths: &[PropertyPath], document: Raw<'_>) -> SmallVec<[u8; 32]> {
    let mut bytes = Vec::new();
    for path in paths {
        write_value(document.path(path), &mut bytes);
    }
    if bytes.len() <= CLAIM_BYTES_MAX {
        return SmallVec::from_vec(bytes);
    }
    let mut hashed = SmallVec::new();
    hashed.push(HASHED);
    hashed.extend_from_slice(&Sha256::digest(&bytes));
    hashed
}

/// Each value starts with a tag and says where it ends, so lists of values cannot run into each other.
fn write_value(value: Option<Raw<'_>>, out: &mut Vec<u8>) {
    let Some(value) = value else { return out.push(0) };
    match value.kind() {
        Kind::Bool => out.push(1 + u8::from(value.as_bool() == Some(true))),
        Kind::Number => {
            let number = value.as_number();
            // Whole numbers of 64 bits are exact; a double that is one of them gives the same bytes.
            match number.and_then(|number| number.as_i64()) {
                Some(whole) => {
                    out.push(3);
                    out.extend_from_slice(&whole.to_le_bytes());
                }
                None => {
                    out.push(4);
                    out.extend_from_slice(
                        &number.map_or(0.0, |number| number.as_f64()).to_bits().to_le_bytes(),
                    );
                }
            }
        }
        Kind::String => {
            let text = value.as_str().unwrap_or_default();
            out.push(5);
            write_text(text, out);
        }
        Kind::Array => {
            out.push(6);
            for element in value.elements() {
                write_value(Some(element), out);
            }
            out.push(0xFE);
        }
        Kind::Object => {
            let mut members: Vec<_> = value.members().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push(7);
            for (name, member) in members {
                out.push(5);
                write_text(name, out);
                write_value(Some(member), out);
            }
            out.push(0xFE);
        }
        _ => match value.as_extended() {
            Some(extended) => {
                let mut identity = Vec::new();
                extended.write_identity(&mut identity);
                out.push(8);
                out.extend_from_slice(&(identity.len() as u32).to_le_bytes());
                out.extend_from_slice(&identity);
            }
            None => out.push(0),
        },
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_model::{ParseOptions, parse_extended_json};

    fn claim_of(text: &str) -> SmallVec<[u8; 32]> {
        let document = parse_extended_json(text.as_bytes(), &ParseOptions::default()).unwrap();
        let paths = ["/a", "/b/c"].map(|path| PropertyPath::parse(path).unwrap());
        claim(&paths, Raw::document(&document).unwrap())
    }

    fn check(one: &str, other: &str, equal: bool) {
        assert_eq!(claim_of(one) == claim_of(other), equal, "{one} {other}");
    }

    #[test]
    fn equal_values_claim_the_same() {
        check(r#"{"a":1}"#, r#"{"a":1.0,"z":5}"#, true);
        check(r#"{"a":null}"#, r#"{"b":{"c":null}}"#, true);
        check(r#"{"a":{"x":1,"y":[2]}}"#, r#"{"a":{"y":[2],"x":1}}"#, true);
        check(r#"{"a":"x","b":{"c":2}}"#, r#"{"b":{"c":2},"a":"x"}"#, true);
        check(r#"{"a":1}"#, r#"{"a":{"$numberLong":"1"}}"#, true);
        check(r#"{"a":{"$numberDecimal":"1"}}"#, r#"{"a":{"$numberDecimal":"1.0"}}"#, true);
    }

    #[test]
    fn different_values_claim_different_things() {
        check(r#"{"a":1}"#, r#"{"a":"1"}"#, false);
        check(r#"{"a":false}"#, r#"{"a":null}"#, false);
        check(r#"{"a":9007199254740993}"#, r#"{"a":9007199254740992}"#, false);
        check(r#"{"a":"xy"}"#, r#"{"a":"x","b":{"c":"y"}}"#, false);
        check(r#"{"a":[1,[2]]}"#, r#"{"a":[1,2]}"#, false);
        check(r#"{"a":[]}"#, r#"{"a":{}}"#, false);
        check(r#"{"a":1}"#, r#"{"a":{"$numberDecimal":"1"}}"#, false);
        check(r#"{"a":null}"#, r#"{"a":{"$minKey":1}}"#, false);
        check(r#"{"a":{"$minKey":1}}"#, r#"{"a":{"$maxKey":1}}"#, false);
        check(r#"{"a":{"$code":"f"}}"#, r#"{"a":{"$code":"g"}}"#, false);
    }

    #[test]
    fn a_long_claim_is_bounded_and_still_distinct() {
        let long = |last: char| claim_of(&format!("{{\"a\":\"{}{last}\"}}", "x".repeat(500)));
        assert_eq!(long('a').len(), 33);
        assert_ne!(long('a'), long('b'));
    }
}
