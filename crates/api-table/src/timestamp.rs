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
    let mut etag = String::with_capacity(48);
    etag.push_str("W/\"datetime'");
    for char in date_time::text(ticks).chars() {
        match char {
            ':' => etag.push_str("%3A"),
            char => etag.push(char),
        }
    }
    etag.push_str("'\"");
    etag
}

/// Whether a condition names the version of this time. Some clients send the etag with its colons as they are.
pub fn matches(condition: &str, ticks: u64) -> bool {
    let condition = condition.trim();
    condition == "*" || condition == etag(ticks) || condition.replace(':', "%3A") == etag(ticks)
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
