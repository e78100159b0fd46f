//! Functions of items and conditions.

use super::{Function, entry};
use crate::value::Eval;

pub(super) const FUNCTIONS: &[Function] = &[
    entry(
        "IIF",
        3,
        3,
        "condition, yes, no",
        "`yes` if the condition is true, `no` in every other case.",
        &[("IIF(1 < 2, 'a', 'b')", "\"a\""), ("IIF(1, 'a', 'b')", "\"b\"")],
        |_, a| if a[0].is_true() { a[1].clone() } else { a[2].clone() },
    )
    .takes_undefined(),
    entry(
        "DOCUMENTID",
        1,
        1,
        "item",
        "A number that tells the items of a physical partition apart, taken from the item's `_rid`.",
        &[("DOCUMENTID({})", "undefined")],
        |_, a| match a[0].member("_rid").as_str().and_then(document_number) {
            Some(number) => Eval::integer(number),
            None => Eval::Undefined,
        },
    ),
];

/// Bytes 8 to 15 of a resource id, little end first, are the item's number in its container.
fn document_number(rid: &str) -> Option<i64> {
    let mut bytes = Vec::with_capacity(16);
    let (mut bits, mut count) = (0u32, 0);
    for character in rid.bytes() {
        let value = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' => 62,
            // Resource ids write a minus where base64 has a slash.
            b'-' | b'/' => 63,
            b'=' => break,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    let number: [u8; 8] = bytes.get(8..16)?.try_into().ok()?;
    Some(i64::from_le_bytes(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_resource_id_is_its_last_eight_bytes() {
        assert_eq!(document_number("AAAAAAAAAAABAAAAAAAAAA=="), Some(1));
        assert_eq!(document_number("AAAA"), None);
        assert_eq!(document_number("?"), None);
    }
}
