//! The key space of a physical partition: every stored key, with its encoder, decoder and printed form together.
//!
//! | row | table | key |
//! |---|---|---|
//! | item | `Items` | escaped EPK, escaped partition key, id bytes |
//! | order | `Index` | `01`, escaped EPK, item number (u64, big-endian) |
//! | index rows | `Index` | from `02` on, see [`index`] |
//! | feed | `Feed` | `01`, LSN (u64, big-endian), position in the commit (u8), after a merge the item number (u64) |
//! | expiry | `Feed` | `02`, second (u32, big-endian), item key |
//! | unique | `Feed` | `03`, escaped EPK, escaped partition key, constraint (u16, big-endian), values |
//! | meta | `Feed` | `04`, name |
//! | purge | `Feed` | `05`, escaped EPK, escaped partition key |
//! | version | `Feed` | `06`, LSN (u64, big-endian), position within the commit (u8), item number (u64, big-endian) |
//!
//! An *escaped* part writes each byte `00` as `00 FF` and ends with `00 00`. So no part is a prefix of another, and
//! byte order of whole keys equals order by (EPK, partition key, id). That is what makes a split point a key, a
//! logical partition a range, and the leftovers of a split ranges to drop. The last part of a key needs no end.
//!
//! Example: the item with EPK `0A 00`, partition key `41`, id `x` has the key `0A 00FF 0000  41 0000  78`.
//!
//! Parts are plain bytes here: how an EPK or a partition key is made is the model's business, and how the values of a
//! unique constraint are brought to a bounded length is the engine's.

pub mod index;

use std::borrow::Cow;
use std::fmt;
use std::ops::Bound;

use bytes::Bytes;

use crate::store::{KeyRange, prefix_end};

const TAG_FEED: u8 = 1;
const TAG_EXPIRY: u8 = 2;
const TAG_UNIQUE: u8 = 3;
const TAG_META: u8 = 4;
const TAG_PURGE: u8 = 5;
const TAG_VERSION: u8 = 6;

/// Tags of `Table::Index`.
const TAG_ORDER: u8 = 1;

/// The key of an item in `Table::Items`; also the item reference inside other rows.
pub fn item(epk: &[u8], partition_key: &[u8], id: &[u8]) -> Bytes {
    let mut key = logical_partition_prefix(epk, partition_key, id.len());
    key.extend_from_slice(id);
    key.into()
}

/// Every item whose EPK lies in `[epk_min, epk_max)`, in `Table::Items`.
pub fn items_in_epk_range(epk_min: &[u8], epk_max: &[u8]) -> KeyRange {
    KeyRange::half_open(escaped(epk_min), escaped(epk_max))
}

/// Every item of one logical partition, in `Table::Items`.
pub fn items_of_logical_partition(epk: &[u8], partition_key: &[u8]) -> KeyRange {
    KeyRange::prefix(&logical_partition_prefix(epk, partition_key, 0))
}

/// What every item key of one logical partition starts with, and nothing else does.
pub fn logical_partition(epk: &[u8], partition_key: &[u8]) -> Bytes {
    logical_partition_prefix(epk, partition_key, 0).into()
}

/// The row that lists an item of an EPK in order of creation, in `Table::Index`. Its value is the item's key.
pub fn order(epk: &[u8], number: u64) -> Bytes {
    let mut key = order_prefix(epk, 8);
    key.extend_from_slice(&number.to_be_bytes());
    key.into()
}

/// Every order row whose EPK lies in `[epk_min, epk_max)`, by EPK, then by number.
pub fn order_in_epk_range(epk_min: &[u8], epk_max: &[u8]) -> KeyRange {
    KeyRange::half_open(order_prefix(epk_min, 0), order_prefix(epk_max, 0))
}

/// Every order row of one EPK, by number.
pub fn order_of_epk(epk: &[u8]) -> KeyRange {
    KeyRange::prefix(&order_prefix(epk, 0))
}

/// Every order row of the partition.
pub fn orders() -> KeyRange {
    KeyRange::prefix(&[TAG_ORDER])
}

/// The number in an order key; `None` when the bytes are no order key.
pub fn order_number(key: &[u8]) -> Option<u64> {
    let (tag, rest) = key.split_first()?;
    let (_, number) = unescape(rest)?;
    (*tag == TAG_ORDER).then_some(u64::from_be_bytes(number.try_into().ok()?))
}

/// The feed row of a change, in `Table::Feed`. `sub` tells the changes of one commit apart.
pub fn feed(lsn: u64, sub: u8) -> Bytes {
    let mut key = [0; 10];
    key[0] = TAG_FEED;
    key[1..9].copy_from_slice(&lsn.to_be_bytes());
    key[9] = sub;
    Bytes::copy_from_slice(&key)
}

/// The feed row of a version that came through a merge of partitions: their LSNs say nothing about each other, so the
/// item's number tells rows of the same LSN apart.
pub fn feed_merged(lsn: u64, sub: u8, number: u64) -> Bytes {
    let mut key = [0; 18];
    key[..10].copy_from_slice(&feed(lsn, sub));
    key[10..].copy_from_slice(&number.to_be_bytes());
    Bytes::copy_from_slice(&key)
}

/// Every feed row with an LSN greater than `lsn`. `feed_after(0)` is the whole feed when LSNs start at 1.
pub fn feed_after(lsn: u64) -> KeyRange {
    KeyRange { start: Bound::Excluded(feed(lsn, u8::MAX)), end: prefix_end(&[TAG_FEED]) }
}

/// The row of one version of an item, kept for readers of all versions, in `Table::Feed`.
pub fn version(lsn: u64, sub: u8, number: u64) -> Bytes {
    let mut key = [0; 18];
    key[0] = TAG_VERSION;
    key[1..9].copy_from_slice(&lsn.to_be_bytes());
    key[9] = sub;
    key[10..].copy_from_slice(&number.to_be_bytes());
    Bytes::copy_from_slice(&key)
}

/// Every version row with an LSN greater than `lsn`.
pub fn versions_after(lsn: u64) -> KeyRange {
    KeyRange { start: Bound::Excluded(version(lsn, u8::MAX, u64::MAX)), end: prefix_end(&[TAG_VERSION]) }
}

/// The row that says every item of a logical partition up to an LSN is deleted, in `Table::Feed`.
pub fn purge(epk: &[u8], partition_key: &[u8]) -> Bytes {
    let mut key = vec![TAG_PURGE];
    key.extend_from_slice(&logical_partition_prefix(epk, partition_key, 0));
    key.into()
}

/// Every purge row.
pub fn purges() -> KeyRange {
    KeyRange::prefix(&[TAG_PURGE])
}

/// The row that says an item expires at `second`, in `Table::Feed`.
pub fn expiry(second: u32, item_key: &[u8]) -> Bytes {
    let mut key = Vec::with_capacity(5 + item_key.len());
    key.push(TAG_EXPIRY);
    key.extend_from_slice(&second.to_be_bytes());
    key.extend_from_slice(item_key);
    key.into()
}

/// Every expiry row up to and including `second`, earliest first.
pub fn expiry_up_to(second: u32) -> KeyRange {
    let mut last = [TAG_EXPIRY, 0, 0, 0, 0];
    last[1..].copy_from_slice(&second.to_be_bytes());
    KeyRange { start: Bound::Included(Bytes::from_static(&[TAG_EXPIRY])), end: prefix_end(&last) }
}

/// The row that claims `values` for a unique constraint within a logical partition, in `Table::Feed`.
/// `values` is opaque; the caller keeps it short enough for `KEY_BYTES_MAX` (by hashing what is long).
pub fn unique(epk: &[u8], partition_key: &[u8], constraint: u16, values: &[u8]) -> Bytes {
    let mut key = unique_prefix(epk, partition_key, 2 + values.len());
    key.extend_from_slice(&constraint.to_be_bytes());
    key.extend_from_slice(values);
    key.into()
}

/// Every unique row of one logical partition.
pub fn unique_of_logical_partition(epk: &[u8], partition_key: &[u8]) -> KeyRange {
    KeyRange::prefix(&unique_prefix(epk, partition_key, 0))
}

/// Every unique row whose EPK lies in `[epk_min, epk_max)`.
pub fn unique_in_epk_range(epk_min: &[u8], epk_max: &[u8]) -> KeyRange {
    let bound = |epk| {
        let mut key = vec![TAG_UNIQUE];
        push_escaped(&mut key, epk);
        key
    };
    KeyRange::half_open(bound(epk_min), bound(epk_max))
}

/// A named row of the partition itself (counters, marks), in `Table::Feed`.
pub fn meta(name: &str) -> Bytes {
    let mut key = Vec::with_capacity(1 + name.len());
    key.push(TAG_META);
    key.extend_from_slice(name.as_bytes());
    key.into()
}

/// Every meta row.
pub fn metas() -> KeyRange {
    KeyRange::prefix(&[TAG_META])
}

/// The parts of an item key. Borrowed where nothing had to be unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemKey<'k> {
    pub epk: Cow<'k, [u8]>,
    pub partition_key: Cow<'k, [u8]>,
    pub id: &'k [u8],
}

impl<'k> ItemKey<'k> {
    /// `None` when the bytes are not an item key.
    pub fn decode(key: &'k [u8]) -> Option<ItemKey<'k>> {
        let (epk, rest) = unescape(key)?;
        let (partition_key, id) = unescape(rest)?;
        Some(ItemKey { epk, partition_key, id })
    }
}

/// The parts of a key in `Table::Feed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedTableKey<'k> {
    Feed {
        lsn: u64,
        sub: u8,
    },
    Expiry {
        second: u32,
        item_key: &'k [u8],
    },
    Unique {
        epk: Cow<'k, [u8]>,
        partition_key: Cow<'k, [u8]>,
        constraint: u16,
        values: &'k [u8],
    },
    Meta {
        name: &'k str,
    },
    Version {
        lsn: u64,
        sub: u8,
        number: u64,
    },
    /// `logical_partition` is what [`logical_partition`] made.
    Purge {
        logical_partition: &'k [u8],
    },
}

impl<'k> FeedTableKey<'k> {
    /// `None` when the bytes are not a key of this table.
    pub fn decode(key: &'k [u8]) -> Option<FeedTableKey<'k>> {
        let (tag, rest) = key.split_first()?;
        match *tag {
            TAG_FEED => {
                let (lsn, sub) = rest.split_first_chunk()?;
                let (sub, number) = sub.split_first()?;
                matches!(number.len(), 0 | 8)
                    .then_some(FeedTableKey::Feed { lsn: u64::from_be_bytes(*lsn), sub: *sub })
            }
            TAG_EXPIRY => {
                let (second, item_key) = rest.split_first_chunk()?;
                Some(FeedTableKey::Expiry { second: u32::from_be_bytes(*second), item_key })
            }
            TAG_UNIQUE => {
                let (epk, rest) = unescape(rest)?;
                let (partition_key, rest) = unescape(rest)?;
                let (constraint, values) = rest.split_first_chunk()?;
                let constraint = u16::from_be_bytes(*constraint);
                Some(FeedTableKey::Unique { epk, partition_key, constraint, values })
            }
            TAG_META => Some(FeedTableKey::Meta { name: std::str::from_utf8(rest).ok()? }),
            TAG_VERSION => {
                let (lsn, rest) = rest.split_first_chunk()?;
                let (sub, number) = rest.split_first()?;
                let number = u64::from_be_bytes(number.try_into().ok()?);
                Some(FeedTableKey::Version { lsn: u64::from_be_bytes(*lsn), sub: *sub, number })
            }
            TAG_PURGE => Some(FeedTableKey::Purge { logical_partition: rest }),
            _ => None,
        }
    }
}

/// `item 0a00/"A"/"x"`: EPK in hexadecimal, the other parts as text with everything unprintable escaped.
impl fmt::Display for ItemKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "item {}/{}/{}", Hex(&self.epk), Text(&self.partition_key), Text(self.id))
    }
}

impl fmt::Display for FeedTableKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FeedTableKey::Feed { lsn, sub } => write!(f, "feed {lsn}.{sub}"),
            FeedTableKey::Version { lsn, sub, number } => write!(f, "version {lsn}.{sub} {number}"),
            FeedTableKey::Expiry { second, item_key } => match ItemKey::decode(item_key) {
                Some(item) => write!(f, "expiry {second} {item}"),
                None => write!(f, "expiry {second} {}", Hex(item_key)),
            },
            FeedTableKey::Unique { epk, partition_key, constraint, values } => {
                write!(f, "unique {}/{}/{constraint} {}", Hex(epk), Text(partition_key), Hex(values))
            }
            FeedTableKey::Meta { name } => write!(f, "meta {name}"),
            FeedTableKey::Purge { logical_partition } => match ItemKey::decode(logical_partition) {
                Some(item) => write!(f, "purge {}/{}", Hex(&item.epk), Text(&item.partition_key)),
                None => write!(f, "purge {}", Hex(logical_partition)),
            },
        }
    }
}

struct Hex<'b>(&'b [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

struct Text<'b>(&'b [u8]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// Room for the escapes that a part usually needs; a part with more zero bytes grows its buffer once.
const ESCAPE_ROOM: usize = 8;

fn logical_partition_prefix(epk: &[u8], partition_key: &[u8], room: usize) -> Vec<u8> {
    let mut key = Vec::with_capacity(epk.len() + partition_key.len() + ESCAPE_ROOM + room);
    push_escaped(&mut key, epk);
    push_escaped(&mut key, partition_key);
    key
}

fn unique_prefix(epk: &[u8], partition_key: &[u8], room: usize) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + epk.len() + partition_key.len() + ESCAPE_ROOM + room);
    key.push(TAG_UNIQUE);
    push_escaped(&mut key, epk);
    push_escaped(&mut key, partition_key);
    key
}

fn order_prefix(epk: &[u8], room: usize) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + epk.len() + ESCAPE_ROOM + room);
    key.push(TAG_ORDER);
    push_escaped(&mut key, epk);
    key
}

fn escaped(part: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(part.len() + ESCAPE_ROOM);
    push_escaped(&mut key, part);
    key
}

fn push_escaped(key: &mut Vec<u8>, part: &[u8]) {
    // Runs between zeros are copied whole: parts are mostly text and hashes, where zeros are rare.
    let mut runs = part.split(|byte| *byte == 0);
    key.extend_from_slice(runs.next().unwrap_or_default());
    for run in runs {
        key.extend_from_slice(&[0, 0xFF]);
        key.extend_from_slice(run);
    }
    key.extend_from_slice(&[0, 0]);
}

/// Splits off one escaped part; `None` when it does not end or holds an escape that is none.
fn unescape(key: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let mut part: Cow<'_, [u8]> = Cow::Borrowed(&[]);
    let mut rest = key;
    loop {
        let zero = rest.iter().position(|byte| *byte == 0)?;
        let (run, after) = rest.split_at(zero);
        if part.is_empty() {
            part = Cow::Borrowed(run);
        } else {
            part.to_mut().extend_from_slice(run);
        }
        match after.get(1)? {
            0 => return Some((part, &after[2..])),
            0xFF => part.to_mut().push(0),
            _ => return None,
        }
        rest = &after[2..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contains(range: &KeyRange, key: &[u8]) -> bool {
        let above = match &range.start {
            Bound::Included(start) => key >= &start[..],
            Bound::Excluded(start) => key > &start[..],
            Bound::Unbounded => true,
        };
        let below = match &range.end {
            Bound::Included(end) => key <= &end[..],
            Bound::Excluded(end) => key < &end[..],
            Bound::Unbounded => true,
        };
        above && below
    }

    /// Short strings over few bytes, so that prefixes, zeros and equal parts are common.
    fn part() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0u8, 1, 0x41, 0xFE, 0xFF]), 0..6)
    }

    proptest! {
        #[test]
        fn byte_order_of_item_keys_is_order_of_their_parts(
            a in (part(), part(), part()), b in (part(), part(), part())
        ) {
            prop_assert_eq!(item(&a.0, &a.1, &a.2).cmp(&item(&b.0, &b.1, &b.2)), a.cmp(&b));
        }

        #[test]
        fn an_item_key_decodes_to_its_parts(epk in part(), pk in part(), id in part()) {
            let key = item(&epk, &pk, &id);
            let parts = ItemKey::decode(&key).expect("just encoded");
            prop_assert_eq!((&parts.epk[..], &parts.partition_key[..], parts.id), (&epk[..], &pk[..], &id[..]));
        }

        #[test]
        fn a_unique_key_decodes_to_its_parts(epk in part(), pk in part(), constraint: u16, values in part()) {
            let key = unique(&epk, &pk, constraint, &values);
            prop_assert_eq!(FeedTableKey::decode(&key), Some(FeedTableKey::Unique {
                epk: Cow::Borrowed(&epk), partition_key: Cow::Borrowed(&pk), constraint, values: &values
            }));
        }

        #[test]
        fn an_epk_range_holds_exactly_its_items(
            epk in part(), pk in part(), id in part(), min in part(), max in part()
        ) {
            let inside = epk >= min && epk < max;
            prop_assert_eq!(contains(&items_in_epk_range(&min, &max), &item(&epk, &pk, &id)), inside);
            prop_assert_eq!(contains(&unique_in_epk_range(&min, &max), &unique(&epk, &pk, 7, &id)), inside);
        }

        #[test]
        fn a_logical_partition_is_exactly_a_range(
            a in (part(), part()), b in (part(), part()), id in part()
        ) {
            prop_assert_eq!(contains(&items_of_logical_partition(&a.0, &a.1), &item(&b.0, &b.1, &id)), a == b);
            prop_assert_eq!(contains(&unique_of_logical_partition(&a.0, &a.1), &unique(&b.0, &b.1, 1, &id)), a == b);
        }

        #[test]
        fn feed_and_expiry_ranges_hold_exactly_what_they_say(
            lsn: u64, sub: u8, after: u64, second: u32, up_to: u32, id in part()
        ) {
            prop_assert_eq!(contains(&feed_after(after), &feed(lsn, sub)), lsn > after);
            prop_assert_eq!(contains(&feed_after(after), &feed_merged(lsn, sub & 0x7F, 7)), lsn > after);
            prop_assert_eq!(contains(&expiry_up_to(up_to), &expiry(second, &id)), second <= up_to);
            prop_assert!(!contains(&feed_after(after), &expiry(second, &id)));
            prop_assert!(!contains(&expiry_up_to(up_to), &feed(lsn, sub)));
            prop_assert!(!contains(&expiry_up_to(up_to), &unique(&id, &id, 1, &id)));
        }

        #[test]
        fn order_rows_sort_by_epk_then_number(
            a in (part(), any::<u64>()), b in (part(), any::<u64>()), min in part(), max in part()
        ) {
            prop_assert_eq!(order(&a.0, a.1).cmp(&order(&b.0, b.1)), a.cmp(&b));
            prop_assert_eq!(contains(&order_of_epk(&b.0), &order(&a.0, a.1)), a.0 == b.0);
            prop_assert_eq!(contains(&order_in_epk_range(&min, &max), &order(&a.0, a.1)), a.0 >= min && a.0 < max);
            prop_assert_eq!(order_number(&order(&a.0, a.1)), Some(a.1));
        }

        #[test]
        fn decoding_never_panics(key in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(decoded) = ItemKey::decode(&key) { decoded.to_string(); }
            if let Some(decoded) = FeedTableKey::decode(&key) { decoded.to_string(); }
        }
    }

    #[test]
    fn keys_print_their_parts() {
        let key = item(&[0x0A, 0], b"A", "gr\u{fc}n".as_bytes());
        assert_eq!(ItemKey::decode(&key).unwrap().to_string(), r#"item 0a00/"A"/"gr\xc3\xbcn""#);
        let print = |key: Bytes| FeedTableKey::decode(&key).unwrap().to_string();
        assert_eq!(print(feed(7, 2)), "feed 7.2");
        assert_eq!(print(feed_merged(7, 2, 9)), "feed 7.2");
        assert_eq!(print(version(7, 2, 9)), "version 7.2 9");
        assert!(
            contains(&versions_after(6), &version(7, 0, 0))
                && !contains(&versions_after(7), &version(7, 9, 9))
        );
        assert_eq!(print(purge(b"\x01", b"p")), r#"purge 01/"p""#);
        assert_eq!(print(expiry(9, &item(b"\x01", b"p", b"i"))), r#"expiry 9 item 01/"p"/"i""#);
        assert_eq!(print(unique(b"\x01", b"p", 2, b"\xAB")), r#"unique 01/"p"/2 ab"#);
        assert_eq!(print(meta("lsn")), "meta lsn");
        assert!(contains(&metas(), &meta("lsn")));
    }

    #[test]
    fn bytes_that_are_no_key_decode_to_nothing() {
        assert_eq!(ItemKey::decode(b""), None);
        assert_eq!(ItemKey::decode(b"\x01\x00\x01"), None);
        assert_eq!(ItemKey::decode(b"\x01\x00"), None);
        assert_eq!(FeedTableKey::decode(b"\x01\x00"), None);
        assert_eq!(FeedTableKey::decode(b"\x09"), None);
        assert_eq!(FeedTableKey::decode(b"\x04\xFF"), None);
    }
}
