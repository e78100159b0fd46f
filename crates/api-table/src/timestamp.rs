//! The `Timestamp` of an entity and its etag, both made from what the item's row says about its version.
//!
//! ```text
//! Timestamp  2021-01-04T22:25:57.4388744Z
//! ETag       W/"datetime'2021-01-04T22%3A25%3A57.4388744Z'"
//! ```
//!
//! The second is that of the write. The seven digits behind it count the changes of the partition, so every write
//! gives another one, two in the same microsecond too, and so does a write that came through another API. Nothing is
//! stored for it. A partition would have to commit 78,125 times within a second before the digits come again.

use orrery_engine::Item;
use orrery_engine::etag::COMMIT_POSITIONS;

use crate::date_time::{self, TICKS_PER_S};

/// The time of a version, in ticks.
pub fn of_item(item: &Item) -> u64 {
    let change = item.lsn.wrapping_mul(COMMIT_POSITIONS) | u64::from(item.sub);
    date_time::of_unix_seconds(u64::from(item.ts)) + change % TICKS_PER_S
}

/// The etag of a time.
pub fn etag(ticks: u64) -> String {
    let text = date_time::bytes(ticks);
    let mut etag = Vec::with_capacity(48);
    etag.extend_from_slice(b"W/\"datetime'");
    for (at, part) in text.split(|byte| *byte == b':').enumerate() {
        if at > 0 {
            etag.extend_from_slice(b"%3A");
        }
        etag.extend_from_slice(part);
    }
    etag.extend_from_slice(b"'\"");
    // Digits and signs of ASCII.
    String::from_utf8(etag).unwrap_or_default()
}

/// Whether a condition names the version of this time. Some clients send the etag with its colons as they are.
pub fn matches(condition: &str, ticks: u64) -> bool {
    let condition = condition.trim();
    if condition == "*" {
        return true;
    }
    let etag = etag(ticks);
    condition == etag || condition.replace(':', "%3A") == etag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_is_the_time_with_its_colons_encoded() {
        let ticks = date_time::parse("2021-01-04T22:25:57.4388744Z").unwrap();
        assert_eq!(etag(ticks), "W/\"datetime'2021-01-04T22%3A25%3A57.4388744Z'\"");
        assert!(matches("*", ticks) && matches(&etag(ticks), ticks));
        assert!(matches("W/\"datetime'2021-01-04T22:25:57.4388744Z'\"", ticks));
        assert!(!matches(&etag(ticks + 1), ticks) && !matches("", ticks));
    }
}
