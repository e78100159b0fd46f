//! Time to live: what a valid `ttl` is, and when an item is over.
//!
//! A container without `defaultTtl` expires nothing, whatever its items say. With `defaultTtl: -1` only items with a
//! `ttl` of their own expire; with a number, that many seconds are the default. An item's `ttl: -1` means never.
//!
//! The clock of an item is the second of its last write, rounded down, so it is over only when one more second has
//! passed than its time to live: an item is never taken early. From then on it is invisible to reads, feeds, unique
//! keys and creates, although its rows may still wait for the sweeper. The expiry row that leads the sweeper there is
//! a hint: what counts is the item, so a changed `defaultTtl` takes effect at once.

use orrery_model::{NumberStyle, Raw};

use crate::error::{Error, Result};
use crate::item::Item;

/// The `ttl` inside a document. Anything but a positive whole number of 32 bits or -1 is refused.
pub(super) fn ttl_of(document: Raw<'_>) -> Result<Option<i32>> {
    let Some(value) = document.get("ttl") else { return Ok(None) };
    let seconds =
        value.as_number().and_then(|number| number.as_i64()).and_then(|whole| i32::try_from(whole).ok());
    match seconds {
        Some(seconds) if seconds > 0 || seconds == -1 => Ok(Some(seconds)),
        _ => {
            let mut text = Vec::new();
            value.write_json(&mut text, NumberStyle::Item);
            let shown: String = String::from_utf8_lossy(&text).chars().take(64).collect();
            Err(Error::bad_request(format!(
                "The input ttl '{shown}' is invalid. Ensure to provide a nonzero positive integer less than or equal to \
                 '2147483647', or '-1' which means never expire."
            )))
        }
    }
}

/// The first second in which an item is over, if it ever is.
pub(super) fn over_from(default_ttl: Option<i32>, ts: u32, ttl: Option<i32>) -> Option<u32> {
    let seconds = u32::try_from(ttl.unwrap_or(default_ttl?)).ok()?;
    default_ttl?;
    ts.checked_add(seconds)?.checked_add(1)
}

pub(super) fn is_over(default_ttl: Option<i32>, item: &Item, now_s: u32) -> bool {
    over_from(default_ttl, item.ts, item.ttl).is_some_and(|second| second <= now_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_model::{ParseOptions, parse_json};

    fn check(ttl: &str, expected: Result<Option<i32>, &str>) {
        let text = format!("{{\"id\":\"a\"{}{ttl}}}", if ttl.is_empty() { "" } else { ",\"ttl\":" });
        let document = parse_json(text.as_bytes(), &ParseOptions::default()).unwrap();
        match (ttl_of(Raw::document(&document).unwrap()), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{ttl}"),
            (Err(error), Err(shown)) => {
                assert!(error.message.starts_with(&format!("The input ttl '{shown}' is invalid.")), "{error}")
            }
            (found, expected) => panic!("{ttl}: {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn a_ttl_is_a_positive_number_of_seconds_or_minus_one() {
        check("", Ok(None));
        check("1", Ok(Some(1)));
        check("5.0", Ok(Some(5)));
        check("-1", Ok(Some(-1)));
        check("2147483647", Ok(Some(i32::MAX)));
        check("2147483648", Err("2147483648"));
        check("0", Err("0"));
        check("-10", Err("-10"));
        check("null", Err("null"));
        check("\"5\"", Err("\"5\""));
        check("1.5", Err("1.5"));
    }

    #[test]
    fn the_container_decides_whether_anything_expires() {
        assert_eq!(over_from(None, 100, Some(5)), None);
        assert_eq!(over_from(Some(-1), 100, None), None);
        assert_eq!(over_from(Some(-1), 100, Some(5)), Some(106));
        assert_eq!(over_from(Some(10), 100, None), Some(111));
        assert_eq!(over_from(Some(10), 100, Some(-1)), None);
        assert_eq!(over_from(Some(i32::MAX), u32::MAX, None), None);
    }
}
