//! Pages over many items: lists of items and the change feed, across the partitions of a container.
//!
//! A list goes through the partitions in hash order and fills its page across their borders; its continuation names
//! parts of the hash space and the position in each. Partitions may have been split or merged when it comes back: a
//! position then holds for every partition that has taken over some of its part, because items keep their numbers and
//! their order rows. Changes are read from one partition at a time, because positions in different partitions have
//! nothing to do with each other.

use std::collections::VecDeque;

use bytes::Bytes;
use orrery_model::{Epk, PartitionKey};

use crate::call::PartitionRef;
use crate::charge;
use crate::container::Container;
use crate::error::{Error, Kind, Result};
use crate::item::{Item, Position, SessionRequirement};
use crate::partition::RANGE_GONE;
pub use crate::partition::{ChangeKind, ItemVersion, PageLimits, ScanPosition, Span};
use crate::throughput::RequestClass;

/// What a page is about.
#[derive(Debug, Clone, PartialEq)]
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
    /// How a list is weighed against the budgets of the partitions that it goes through. Whoever reads changes weighs
    /// them.
    pub class: RequestClass,
}

impl PageRequest {
    pub fn new(max_items: usize) -> PageRequest {
        PageRequest {
            max_items,
            max_bytes: PAGE_BYTES_DEFAULT,
            continuation: None,
            session: SessionRequirement::new(),
            class: RequestClass::default(),
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

#[derive(Debug)]
pub struct VersionsPage {
    pub versions: Vec<ItemVersion>,
    /// Go on after this commit.
    pub lsn: u64,
    pub charge_ru: f64,
    pub at: Position,
}

/// Where a list goes on: what is left of it, in hash order. After the last part everything is still to be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedContinuation {
    pub parts: Vec<FeedPart>,
}

/// A part of the hash space, `[min, max)`, and the position in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedPart {
    pub min: Epk,
    pub max: Epk,
    pub position: ScanPosition,
}

const CONTINUATION_FORMAT: u8 = 2;
const POSITION_START: u8 = 0;
const POSITION_CREATED: u8 = 1;
const POSITION_KEYED: u8 = 2;

impl FeedContinuation {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![CONTINUATION_FORMAT];
        for part in &self.parts {
            put_bytes(&mut out, part.min.as_bytes());
            put_bytes(&mut out, part.max.as_bytes());
            match &part.position {
                ScanPosition::Start => out.push(POSITION_START),
                ScanPosition::Created { after } => {
                    out.push(POSITION_CREATED);
                    out.extend_from_slice(&after.to_be_bytes());
                }
                ScanPosition::Keyed { after } => {
                    out.push(POSITION_KEYED);
                    put_bytes(&mut out, after);
                }
            }
        }
        out
    }

    /// `None` when the bytes are no continuation.
    pub fn decode(bytes: &[u8]) -> Option<FeedContinuation> {
        let (format, mut rest) = bytes.split_first()?;
        if *format != CONTINUATION_FORMAT || rest.is_empty() {
            return None;
        }
        let mut parts = Vec::new();
        while !rest.is_empty() {
            let min = take_epk(&mut rest)?;
            let max = take_epk(&mut rest)?;
            let (tag, after_tag) = rest.split_first()?;
            rest = after_tag;
            let position = match *tag {
                POSITION_START => ScanPosition::Start,
                POSITION_CREATED => {
                    let (after, after_number) = rest.split_first_chunk()?;
                    rest = after_number;
                    ScanPosition::Created { after: u64::from_be_bytes(*after) }
                }
                POSITION_KEYED => {
                    let after = take_bytes(&mut rest).filter(|after| !after.is_empty())?;
                    ScanPosition::Keyed { after: Bytes::copy_from_slice(after) }
                }
                _ => return None,
            };
            parts.push(FeedPart { min, max, position });
        }
        Some(FeedContinuation { parts })
    }
}

/// Effective partition keys and order rows are far below 64 KB.
fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn take_bytes<'b>(from: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, rest) = from.split_first_chunk()?;
    let (bytes, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    *from = rest;
    Some(bytes)
}

fn take_epk(from: &mut &[u8]) -> Option<Epk> {
    take_bytes(from).map(|bytes| Epk(bytes.into()))
}

/// A page of items. Every partition that it turns to lets it in and is charged for what it gives; one that refuses
/// ends the page before it, unless there is nothing on it yet.
pub(crate) async fn read_feed(container: &Container, scope: &Scope, page: &PageRequest) -> Result<FeedPage> {
    let (min, max) = bounds_of(container, scope)?;
    let mut left = page.limits();
    let mut items: Vec<Item> = Vec::new();
    let mut at: Option<Position> = None;
    let mut parts = parts_left(page.continuation.as_ref(), min, max)?;
    let mut full = false;
    let mut turned_to: Vec<(PartitionRef, f64)> = Vec::new();
    while let Some(part) = parts.pop_front() {
        let partition = container.partition_at(scope, &part.min)?;
        if turned_to.last().is_none_or(|(last, _)| last.range_id() != partition.range_id()) && !full {
            match partition.admit(page.class).await {
                Ok(()) => turned_to.push((partition.clone(), 0.0)),
                // One that has gone is no refusal: the page is read again by the new map.
                Err(refused) if !items.is_empty() && refused.kind != Kind::RangeGone => {
                    parts.push_front(part);
                    break;
                }
                Err(refused) => return Err(refused),
            }
        }
        let end = part.max.clone().min(partition.bounds().1.clone());
        let span = span_inside(container, scope, &partition, &part.min, &end)?;
        // A page that is full exactly where a partition ends: the list goes on only if there is another item.
        let limits = if full { PageLimits { items: 1, bytes: usize::MAX } } else { left };
        let found = partition.scan_items(&span, &part.position, limits, &page.session).await?;
        if full && !found.items.is_empty() {
            parts.push_front(part);
            break;
        }
        at.get_or_insert(found.at);
        left.items -= found.items.len().min(left.items);
        left.bytes = left.bytes.saturating_sub(found.items.iter().map(|item| item.document.len()).sum());
        if let Some((_, charge_ru)) = turned_to.last_mut() {
            *charge_ru += found.items.iter().map(|item| charge::read(item.document.len())).sum::<f64>();
        }
        items.extend(found.items);
        if end < part.max {
            let position = part.position.clone();
            parts.push_front(FeedPart { min: end.clone(), max: part.max, position });
        }
        if let Some(position) = found.next {
            parts.push_front(FeedPart { min: part.min, max: end, position });
            break;
        }
        full = left.items == 0 || left.bytes == 0 && !items.is_empty();
    }
    // What begins at the beginning need not be told, except where it is the first.
    while parts.len() > 1 && parts.back().is_some_and(|part| part.position == ScanPosition::Start) {
        parts.pop_back();
    }
    let continuation = (!parts.is_empty()).then(|| FeedContinuation { parts: parts.into() });
    let charge_ru = charge::page(items.iter().map(|item| item.document.len()));
    // What a page costs beyond its items, the first partition bears.
    let of_items: f64 = turned_to.iter().map(|(_, charge_ru)| charge_ru).sum();
    if let Some((_, first)) = turned_to.first_mut() {
        *first += charge_ru - of_items;
    }
    let key = match scope {
        Scope::Key(key) => Some(key),
        _ => None,
    };
    for (partition, charge_ru) in turned_to.iter().filter(|(_, charge_ru)| *charge_ru > 0.0) {
        // Of a page that was read, there is an answer, also where the range has gone since.
        drop(partition.charge(page.class, page.class.read_charge(*charge_ru), key).await);
    }
    Ok(FeedPage { items, continuation, charge_ru, at: at.unwrap_or_default() })
}

/// What of `[min, max)` is still to be listed.
fn parts_left(continuation: Option<&FeedContinuation>, min: Epk, max: Epk) -> Result<VecDeque<FeedPart>> {
    let mut parts = VecDeque::new();
    let mut end = min;
    for part in continuation.iter().flat_map(|continuation| &continuation.parts) {
        // Overlapping parts are no continuation of ours and would list items twice; the first may begin later.
        if part.min >= part.max || part.max > max || part.min < end {
            return Err(Error::bad_request("Invalid Continuation Token"));
        }
        end = part.max.clone();
        parts.push_back(part.clone());
    }
    if end < max {
        parts.push_back(FeedPart { min: end, max, position: ScanPosition::Start });
    }
    Ok(parts)
}

/// The part of the hash space that a scope is about.
fn bounds_of(container: &Container, scope: &Scope) -> Result<(Epk, Epk)> {
    let of_range = |id: u32| -> Result<(Epk, Epk)> {
        let partition = container.by_id(id)?;
        let (min, max) = partition.bounds();
        Ok((min.clone(), max.clone()))
    };
    Ok(match scope {
        Scope::All => (Epk::MIN, Epk::max()),
        Scope::Range(id) => of_range(*id)?,
        Scope::Epk { min, max, range: None } => (min.clone(), max.clone().min(Epk::max())),
        Scope::Epk { min, max, range: Some(id) } => {
            let (range_min, range_max) = of_range(*id)?;
            (min.clone().max(range_min), max.clone().min(range_max))
        }
        Scope::Key(key) => container.span(key)?,
    })
}

/// The items of a scope that lie in `[min, end)` of a partition.
fn span_inside(
    container: &Container,
    scope: &Scope,
    partition: &PartitionRef,
    min: &Epk,
    end: &Epk,
) -> Result<Span> {
    let span = span_of(container, scope)?;
    let (partition_min, partition_max) = partition.bounds();
    Ok(match span {
        Span::Key { .. } => span,
        _ if min == partition_min && end == partition_max => Span::All,
        _ => Span::Epk { min: min.clone(), max: end.clone() },
    })
}

/// A page of changes. The scope must lie in one partition; a client whose map of ranges is old is told so.
pub(crate) async fn read_changes(
    container: &Container,
    scope: &Scope,
    from: ChangesFrom,
    page: &PageRequest,
) -> Result<ChangesPage> {
    let partitions = container.refs_of(scope)?;
    let [partition] = &partitions[..] else {
        return Err(Error::new(Kind::RangeGone, RANGE_GONE));
    };
    let span = span_of(container, scope)?;
    let found = partition.read_changes(&span, from, page.limits(), &page.session).await?;
    let charge_ru = charge::page(found.items.iter().map(|item| item.document.len()));
    Ok(ChangesPage { items: found.items, lsn: found.lsn, more: found.more, charge_ru, at: found.at })
}

/// A page of all versions. The scope must lie in one partition.
pub(crate) async fn read_versions(
    container: &Container,
    scope: &Scope,
    after: Option<u64>,
    page: &PageRequest,
) -> Result<VersionsPage> {
    let partitions = container.refs_of(scope)?;
    let [partition] = &partitions[..] else {
        return Err(Error::new(Kind::RangeGone, RANGE_GONE));
    };
    let span = span_of(container, scope)?;
    let found = partition.read_versions(&span, after, page.limits(), &page.session).await?;
    let documents = found.versions.iter().map(|version| {
        [&version.current, &version.previous].into_iter().flatten().map(|item| item.document.len()).sum()
    });
    let charge_ru = charge::page(documents);
    Ok(VersionsPage { versions: found.versions, lsn: found.lsn, charge_ru, at: found.at })
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
            let part = FeedPart { min: Epk(min.into()), max: Epk(max.into()), position };
            let continuation = FeedContinuation { parts: vec![part.clone(), part] };
            prop_assert_eq!(FeedContinuation::decode(&continuation.encode()), Some(continuation));
        }

        #[test]
        fn foreign_bytes_are_no_continuation_and_no_panic(bytes: Vec<u8>) {
            let _ = FeedContinuation::decode(&bytes);
        }
    }
}
