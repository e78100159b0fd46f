//! Pages of the change feed, whichever of its modes: what fits on one, and which items it is about.
//!
//! A page never ends inside a commit, so that a position is an LSN and nothing else. It may hold a few entries more
//! than asked for that reason.

use bytes::Bytes;
use orrery_storage::keys;

use super::item_key::ItemKey;
use super::scan::{PageLimits, Span};

/// Rows that one call looks at. A page that found too little by then ends early and says where to go on.
const ROWS_MAX: usize = 100_000;

/// A page being filled, in the order of commits.
pub(super) struct CommitPage {
    limits: PageLimits,
    entries: usize,
    bytes: usize,
    rows: usize,
    last: u64,
    /// Whether the page ended before the rows did.
    pub(super) more: bool,
}

impl CommitPage {
    pub(super) fn after(lsn: u64, limits: PageLimits) -> CommitPage {
        CommitPage { limits, entries: 0, bytes: 0, rows: 0, last: lsn, more: false }
    }

    /// Whether the next row, of this commit, is still looked at.
    pub(super) fn takes(&mut self, lsn: u64) -> bool {
        let full = self.entries >= self.limits.items || self.bytes >= self.limits.bytes && self.entries > 0;
        if lsn != self.last && (full || self.rows >= ROWS_MAX) {
            self.more = true;
            return false;
        }
        self.last = lsn;
        self.rows += 1;
        true
    }

    pub(super) fn holds(&mut self, document_bytes: usize) {
        self.entries += 1;
        self.bytes += document_bytes;
    }

    /// The last commit that was looked at.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Everything up to this commit has been seen, where `newest` is the partition's.
    pub(super) fn seen(&self, newest: u64) -> u64 {
        if self.more { self.last } else { self.last.max(newest) }
    }
}

/// Which item keys lie in a span.
pub(super) struct InSpan<'s> {
    span: &'s Span,
    /// What the keys of a logical partition begin with.
    prefix: Option<Bytes>,
}

impl<'s> InSpan<'s> {
    pub(super) fn new(span: &'s Span) -> InSpan<'s> {
        let prefix = match span {
            Span::Key { epk, key } => Some(ItemKey::new(epk, key, "").key),
            Span::All | Span::Epk { .. } => None,
        };
        InSpan { span, prefix }
    }

    pub(super) fn holds(&self, key: &[u8]) -> bool {
        match self.span {
            Span::All => true,
            Span::Key { .. } => self.prefix.as_ref().is_some_and(|prefix| key.starts_with(prefix)),
            Span::Epk { min, max } => keys::ItemKey::decode(key)
                .is_some_and(|parts| *parts.epk >= *min.as_bytes() && *parts.epk < *max.as_bytes()),
        }
    }
}
