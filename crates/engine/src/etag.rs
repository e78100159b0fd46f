//! The version mark of a resource, derived from what its row already holds and never stored itself.
//!
//! The text has the service's shape, a quoted guid whose last group ends the time of the write:
//!
//! ```text
//! "00000c85-0000-0700-0000-655f3a2c0000"
//!  ^^^^^^^^ ^^^^ version, low 32 and high 16 bits: lsn * 128 + position within the commit
//!                ^^^^      always the same: there is one region
//!                          ^^^^^^^^ second of the write
//! ```
//!
//! Two versions of an item never share an etag, because no two changes of a partition share (lsn, position). An item
//! that was deleted and created again gets a new one for the same reason.

use std::fmt;

/// Positions of one commit that a version can tell apart.
pub const COMMIT_POSITIONS: u64 = 128;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Etag([u8; 16]);

/// Length of the text with its quotes.
pub const ETAG_TEXT_BYTES: usize = 38;

impl Etag {
    /// The etag of change `sub` of commit `lsn`, written in second `ts`.
    pub fn of_change(lsn: u64, sub: u8, ts: u32) -> Etag {
        Etag::new(lsn.wrapping_mul(COMMIT_POSITIONS) | u64::from(sub), ts)
    }

    /// `version` counts the changes of whatever owns the resource; 48 bits of it are kept.
    pub fn new(version: u64, ts: u32) -> Etag {
        let mut bytes = [0; 16];
        bytes[0..4].copy_from_slice(&(version as u32).to_be_bytes());
        bytes[4..6].copy_from_slice(&((version >> 32) as u16).to_be_bytes());
        bytes[6] = 0x07;
        bytes[10..14].copy_from_slice(&ts.to_be_bytes());
        Etag(bytes)
    }

    /// The commit that wrote the version that a text names; of its number 41 bits.
    pub fn lsn_of(text: &str) -> Option<u64> {
        let digits = |at: std::ops::Range<usize>| u64::from_str_radix(text.get(at)?, 16).ok();
        Some((digits(10..14)? << 32 | digits(1..9)?) / COMMIT_POSITIONS)
    }

    pub(crate) fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Etag {
        Etag(bytes)
    }

    /// The quoted text, ASCII.
    pub fn text(self) -> [u8; ETAG_TEXT_BYTES] {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; ETAG_TEXT_BYTES];
        text[0] = b'"';
        text[ETAG_TEXT_BYTES - 1] = b'"';
        let mut at = 1;
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                at += 1;
            }
            text[at] = HEX[usize::from(byte >> 4)];
            text[at + 1] = HEX[usize::from(byte & 15)];
            at += 2;
        }
        text
    }

    /// Whether a condition names this version: the whole text with its quotes, or `*` for any version.
    pub fn matches(self, condition: &str) -> bool {
        condition == "*" || condition.as_bytes() == self.text()
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_tells_the_commit() {
        for lsn in [1, 127, 1 << 20, 1 << 33, (1 << 41) - 1] {
            let text = Etag::of_change(lsn, 5, 1_700_000_000).to_string();
            assert_eq!(Etag::lsn_of(&text), Some(lsn));
        }
        assert_eq!(Etag::lsn_of("*"), None);
    }

    #[test]
    fn the_text_is_a_quoted_guid_with_the_time_in_it() {
        let etag = Etag::of_change(25, 5, 0x655f_3a2c);
        assert_eq!(etag.to_string(), "\"00000c85-0000-0700-0000-655f3a2c0000\"");
        assert_eq!(Etag::new(0xABCD_0000_0001, 0).to_string(), "\"00000001-abcd-0700-0000-000000000000\"");
    }

    #[test]
    fn a_condition_is_the_whole_text_or_a_star() {
        let etag = Etag::of_change(25, 5, 7);
        let text = etag.to_string();
        assert!(etag.matches(&text) && etag.matches("*"));
        assert!(!etag.matches(text.trim_matches('"')));
        assert!(!etag.matches("") && !etag.matches(&Etag::of_change(25, 6, 7).to_string()));
    }
}
