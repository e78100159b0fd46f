//! Pages over many items: lists of items and the change feed, across the partitions of a container.
//!
//! A list goes through the partitions in hash order and fills its page across their borders; its continuation names
//! the partition by its range of the hash space and the position inside. Changes are read from one partition at a
//! time, because positions in different partitions have nothing to do with each other.

use std::sync::Arc;

use bytes::Bytes;
use orrery_model::{Epk, PartitionKey};

use crate::charge;
use crate::container::Container;
use crate::error::{Error, Kind, Result};
use crate::item::{Item, Position, SessionRequirement};
use crate::partition::Partition;
pub use crate::partition::{PageLimits, ScanPosition, Span};

/// What a page is about.
#[derive(Debug, Clone)]
pub enum Scope {
    All,
    /// A full key, or the first values of a hierarchical one.
    Key(PartitionKey),
    /// One partition.
    Range(u32),
    /// A part of the hash space, `[min, max)`, possibly as seen by one partition.
    Epk {
        min: Epk,
        max: Epk,
        range: Option<u32>,
    },
}

#[derive(Debug, Clone)]
pub struct PageRequest {
    pub max_items: usize,
    pub max_bytes: usize,
    pub continuation: Option<FeedContinuation>,
    pub session: SessionRequirement,
}

impl PageRequest {
    pub fn new(max_items: usize) -> PageRequest {
        PageRequest {
            max_items,
            max_bytes: PAGE_BYTES_DEFAULT,
            continuation: None,
            session: SessionRequirement::new(),
        }
    }

    fn limits(&self) -> PageLimits {
        PageLimits { items: self.max_items.clamp(1, PAGE_ITEMS_MAX), bytes: self.max_bytes }
    }
}

/// Bytes of documents on a page when the caller does not say.
pub const PAGE_BYTES_DEFAULT: usize = 4 * 1024 * 1024;
/// Most items on a page, whatever is asked.
pub const PAGE_ITEMS_MAX: usize = 100_000;

#[derive(Debug)]
pub struct FeedPage {
    pub items: Vec<Item>,
    /// `None`: this was the last page.
    pub continuation: Option<FeedContinuation>,
    pub charge_ru: f64,
    pub at: Position,
}

/// Where reading changes begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangesFrom {
    Beginning,
    Now,
    /// With the changes of this second.
    Time(u32),
    /// After a commit that has been seen.
    After(u64),
}

#[derive(Debug)]
pub struct ChangesPage {
    pub items: Vec<Item>,
    /// Go on after this commit.
    pub lsn: u64,
    /// Whether more is already there.
    pub more: bool,
    pub charge_ru: f64,
    pub at: Position,
}

/// Where a list goes on: the partition that covered `[min, max)`, and the position in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedContinuation {
    pub min: Epk,
    pub max: Epk,
    pub position: ScanPosition,
}

const CONTINUATION_FORMAT: u8 = 1;
const POSITION_START: u8 = 0;
const POSITION_CREATED: u8 = 1;
const POSITION_KEYED: u8 = 2;

impl FeedContinuation {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![CONTINUATION_FORMAT];
        for epk in [&self.min, &self.max] {
            // An effective partition key is at most 1 KB.
            out.extend_from_slice(&(epk.as_bytes().len() as u16).to_be_bytes());
            out.extend_from_slice(epk.as_bytes());
        }
        match &self.position {
            ScanPosition::Start => out.push(POSITION_START),
            ScanPosition::Created { after } => {
                out.push(POSITION_CREATED);
                out.extend_from_slice(&after.to_be_bytes());
            }
            ScanPosition::Keyed { after } => {
                out.push(POSITION_KEYED);
                out.extend_from_slice(after);
            }
        }
        out
    }

    /// `None` when the bytes are no continuation.
    pub fn decode(bytes: &[u8]) -> Option<FeedContinuation> {
        let (format, rest) = bytes.split_first()?;
        if *format != CONTINUATION_FORMAT {
            return None;
        }
        let (min, rest) = take_epk(rest)?;
        let (max, rest) = take_epk(rest)?;
        let (tag, rest) = rest.split_first()?;
        let position = match *tag {
            POSITION_START if rest.is_empty() => ScanPosition::Start,
            POSITION_CREATED => ScanPosition::Created { after: u64::from_be_bytes(rest.try_into().ok()?) },
            POSITION_KEYED if !rest.is_empty() => ScanPosition::Keyed { after: Bytes::copy_from_slice(rest) },
            _ => return None,
        };
        Some(FeedContinuation { min, max, position })
    }
}

fn take_epk(bytes: &[u8]) -> Option<(Epk, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (epk, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some((Epk(epk.into()), rest))
}

/// A page of items.
pub(crate) fn read_feed(container: &Container, scope: &Scope, page: &PageRequest) -> Result<FeedPage> {
    let partitions = container.partitions_of(scope)?;
    let span = span_of(container, scope)?;
    let (first, mut position) = match &page.continuation {
        None => (0, ScanPosition::Start),
        Some(continuation) => resume(&partitions, continuation)?,
    };
    let mut left = page.limits();
    let mut items: Vec<Item> = Vec::new();
    let mut at = Position::default();
    let mut continuation = None;
    for (index, partition) in partitions.iter().enumerate().skip(first) {
        let found = partition.scan_items(&span, &position, left, &page.session)?;
        if items.is_empty() {
            at = found.at;
        }
        left.items -= found.items.len().min(left.items);
        left.bytes = left.bytes.saturating_sub(found.items.iter().map(|item| item.document.len()).sum());
        items.extend(found.items);
        if let Some(next) = found.next {
            continuation = Some(go_on(partition, next));
            break;
        }
        position = ScanPosition::Start;
        if left.items == 0 || left.bytes == 0 && !items.is_empty() {
            continuation = next_with_items(&partitions[index + 1..], &span, page)?;
            break;
        }
    }
    let charge_ru = charge::page(items.iter().map(|item| item.document.len()));
    Ok(FeedPage { items, continuation, charge_ru, at })
}

/// A page of changes. The scope must lie in one partition; a client whose map of ranges is old is told so.
pub(crate) fn read_changes(
    container: &Container,
    scope: &Scope,
    from: ChangesFrom,
    page: &PageRequest,
) -> Result<ChangesPage> {
    let partitions = container.partitions_of(scope)?;
    let [partition] = &partitions[..] else {
        let message = "The requested resource is no longer available at the server.";
        return Err(Error::new(Kind::RangeGone, message));
    };
    let span = span_of(container, scope)?;
    let found = partition.read_changes(&span, from, page.limits(), &page.session)?;
    let charge_ru = charge::page(found.items.iter().map(|item| item.document.len()));
    Ok(ChangesPage { items: found.items, lsn: found.lsn, more: found.more, charge_ru, at: found.at })
}

pub(crate) fn span_of(container: &Container, scope: &Scope) -> Result<Span> {
    Ok(match scope {
        Scope::All | Scope::Range(_) => Span::All,
        Scope::Epk { min, max, .. } => Span::Epk { min: min.clone(), max: max.clone() },
        Scope::Key(key) => {
            let definition = container.definition();
            let paths = definition.partition_key.paths.len();
            let fixed = definition.partition_key.system_key && key.0.is_empty();
            if key.0.len() == paths || fixed {
                Span::Key { epk: definition.partition_key.effective(key), key: key.clone() }
            } else {
                let (min, max) = container.span(key)?;
                Span::Epk { min, max }
            }
        }
    })
}

fn resume(partitions: &[Arc<Partition>], continuation: &FeedContinuation) -> Result<(usize, ScanPosition)> {
    let covers = |partition: &&Arc<Partition>| {
        let (min, max) = partition.bounds();
        *min == continuation.min && *max == continuation.max
    };
    match partitions.iter().position(|partition| covers(&partition)) {
        Some(index) => Ok((index, continuation.position.clone())),
        None => Err(Error::bad_request("Invalid Continuation Token")),
    }
}

fn go_on(partition: &Partition, position: ScanPosition) -> FeedContinuation {
    let (min, max) = partition.bounds();
    FeedContinuation { min: min.clone(), max: max.clone(), position }
}

/// The page is full exactly where a partition ends: the list goes on if any later partition has an item.
fn next_with_items(
    partitions: &[Arc<Partition>],
    span: &Span,
    page: &PageRequest,
) -> Result<Option<FeedContinuation>> {
    let one = PageLimits { items: 1, bytes: usize::MAX };
    for partition in partitions {
        let found = partition.scan_items(span, &ScanPosition::Start, one, &page.session)?;
        if !found.items.is_empty() {
            return Ok(Some(go_on(partition, ScanPosition::Start)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_continuation_reads_back_as_it_was_written(
            min: Vec<u8>, max: Vec<u8>, number: u64, row in prop::collection::vec(any::<u8>(), 1..40), kind in 0..3
        ) {
            let position = match kind {
                0 => ScanPosition::Start,
                1 => ScanPosition::Created { after: number },
                _ => ScanPosition::Keyed { after: row.into() },
            };
            let continuation = FeedContinuation { min: Epk(min.into()), max: Epk(max.into()), position };
            prop_assert_eq!(FeedContinuation::decode(&continuation.encode()), Some(continuation));
        }

        #[test]
        fn foreign_bytes_are_no_continuation_and_no_panic(bytes: Vec<u8>) {
            let _ = FeedContinuation::decode(&bytes);
        }
    }
}
