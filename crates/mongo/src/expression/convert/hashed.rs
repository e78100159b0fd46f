//! `$toHashedIndexKey`: the hash of MongoDB's hashed indexes, which is the first half of an MD5.
//!
//! The digest is over a seed, then of each element its rank among the types, its name (but of the outermost) and its
//! value; all numbers count as long integers.

use md5::{Digest, Md5};

use crate::error::Result;
use crate::expression::Node;
use crate::expression::number;
use crate::expression::parse::Parser;
use crate::expression::table::{Operator, own};
use crate::value::{Bson, Kind};
use crate::value_ref::ValueRef;

pub(crate) static OPERATORS: &[Operator] = &[own(
    "$toHashedIndexKey",
    of_operand,
    "{$toHashedIndexKey: value}",
    "The hash by which a hashed index knows a value.",
)];

/// Its operand is one value: an array is that, and no list of arguments.
fn of_operand(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    Ok(Node::Lazy {
        name,
        run: |call| Ok(Some(Bson::Int64(hash(call.arguments[0].evaluate_in(call.scope)?.as_ref())))),
        arguments: vec![parser.expression(argument)?],
        variables: Vec::new(),
    })
}

/// The hash of a value, or of none.
pub fn hash(value: Option<&Bson>) -> i64 {
    let mut digest = Md5::new();
    digest.update(0i32.to_le_bytes());
    match value {
        Some(value) => add(&mut digest, value, None),
        None => digest.update(0i32.to_le_bytes()),
    }
    let bytes = digest.finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&bytes[..8]);
    i64::from_le_bytes(first)
}

fn add(digest: &mut Md5, value: &Bson, name: Option<&str>) {
    let rank: i32 = match value.kind() {
        Kind::MinKey => -1,
        Kind::Undefined => 0,
        kind => crate::order::rank(kind).into(),
    };
    digest.update(rank.to_le_bytes());
    if let Some(name) = name {
        digest.update(name.as_bytes());
        digest.update([0]);
    }
    match value {
        Bson::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                add(digest, element, Some(&at.to_string()));
            }
            digest.update(0i32.to_le_bytes());
        }
        Bson::Document(document) => {
            for (name, value) in document.iter() {
                add(digest, value, Some(name));
            }
            digest.update(0i32.to_le_bytes());
        }
        value => match number::of(value) {
            Some(number) => digest.update(number.to_i64_saturated(false).to_le_bytes()),
            None => {
                // Type and empty name, then the value.
                let mut bytes = Vec::new();
                crate::codec::write_element("", ValueRef::Owned(value), &mut bytes);
                digest.update(bytes.get(2..).unwrap_or_default());
            }
        },
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn hashes_are_those_of_hashed_indexes() {
        assert_eq!(super::hash(Some(&42.into())), -944_302_157_085_130_861);
        assert_eq!(super::hash(Some(&42.7.into())), -944_302_157_085_130_861);
    }
}
