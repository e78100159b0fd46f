//! Where the next page of a query begins, as clients carry it.
//!
//! What a position means is the engine's (`DistributedPosition`); here it becomes bytes and is read back. A mark made
//! from the query's text comes first, so that a continuation is refused when it is used with another query:
//!
//! ```text
//! format (1) · mark of the query (4) · kind (1) · what that kind needs
//! ```

use orrery_engine::DistributedPosition;
use orrery_engine::query::distributed::Part;
use orrery_engine::query::{decode_keys, encode_keys};
use orrery_model::{Epk, NumberStyle, Value, murmur3_x64_128};
use orrery_query::SortPosition;
use orrery_query::merge::SortedPosition;
use orrery_sql::Query;

/// The form of what follows; another number is another form.
const FORMAT: u8 = 4;
const CHAIN: u8 = 1;
const SORTED: u8 = 2;
const DELIVERED: u8 = 3;
/// Sorted, in partitions that have taken over what was read partly.
const SORTED_IN_PARTS: u8 = 4;
/// Keys that one ORDER BY may have; the language allows fewer.
const KEYS_MAX: usize = 64;

/// What ties a continuation to its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark([u8; 4]);

impl Mark {
    /// Of a query that the gateway spreads over the partitions: its text and parameters.
    pub fn of_text(text: &str, parameters: &[(String, Value)]) -> Mark {
        Mark::short(fingerprint(text, parameters))
    }

    /// Of a query that a client sends to one partition. Clients that merge sorted results themselves change the filter
    /// between pages, so only what is read, and in which order, must stay the same.
    pub fn of_shape(query: &Query) -> Mark {
        let shape = Query { filter: None, offset_limit: None, ..query.clone() };
        Mark::hash(shape.to_string().as_bytes())
    }

    fn hash(bytes: &[u8]) -> Mark {
        Mark::short(hash(bytes))
    }

    fn short(fingerprint: u128) -> Mark {
        let [a, b, c, d, ..] = fingerprint.to_be_bytes();
        Mark([a, b, c, d])
    }
}

/// Tells a query and its parameters from others.
pub fn fingerprint(text: &str, parameters: &[(String, Value)]) -> u128 {
    let mut bytes = text.as_bytes().to_vec();
    for (name, value) in parameters {
        bytes.push(0);
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(u8::from(!value.is_undefined()));
        value.write_json(&mut bytes, NumberStyle::Query);
    }
    hash(&bytes)
}

fn hash(bytes: &[u8]) -> u128 {
    let (high, low) = murmur3_x64_128(bytes);
    u128::from(high) << 64 | u128::from(low)
}

pub fn encode(mark: Mark, start: &DistributedPosition) -> Vec<u8> {
    let mut out = vec![FORMAT];
    out.extend_from_slice(&mark.0);
    match start {
        DistributedPosition::Chain { parts, passed } => {
            out.push(CHAIN);
            out.extend_from_slice(&passed.to_be_bytes());
            out.extend_from_slice(&encode_parts(parts));
        }
        DistributedPosition::Sorted { parts, min, max, at } => {
            if parts.is_empty() {
                out.push(SORTED);
            } else {
                out.push(SORTED_IN_PARTS);
                push_bytes(&mut out, &encode_parts(parts));
            }
            push_bytes(&mut out, min.as_bytes());
            push_bytes(&mut out, max.as_bytes());
            for number in [at.passed, at.after.number, at.after.rows] {
                out.extend_from_slice(&number.to_be_bytes());
            }
            out.extend_from_slice(&encode_keys(&at.after.keys));
        }
        DistributedPosition::Materialized { delivered, cached } => {
            out.push(DELIVERED);
            out.extend_from_slice(&delivered.to_be_bytes());
            if *cached != 0 {
                out.extend_from_slice(&cached.to_be_bytes());
            }
        }
    }
    out
}

/// Reads a position back; `None` if it is damaged or belongs to another query.
pub fn decode(bytes: &[u8], mark: Mark) -> Option<DistributedPosition> {
    let (format, rest) = bytes.split_first()?;
    let (found, rest) = rest.split_first_chunk::<4>()?;
    if *format != FORMAT || *found != mark.0 {
        return None;
    }
    let (kind, mut rest) = rest.split_first()?;
    match *kind {
        CHAIN => {
            let passed = take_number(&mut rest)?;
            Some(DistributedPosition::Chain { parts: decode_parts(rest)?, passed })
        }
        SORTED | SORTED_IN_PARTS => {
            let parts = if *kind == SORTED { Vec::new() } else { decode_parts(take_bytes(&mut rest)?)? };
            let (min, max) = (take_epk(&mut rest)?, take_epk(&mut rest)?);
            let passed = take_number(&mut rest)?;
            let number = take_number(&mut rest)?;
            let rows = take_number(&mut rest)?;
            let keys = decode_keys(rest).filter(|keys| keys.len() <= KEYS_MAX)?;
            let at = SortedPosition { share: 0, last: 0, after: SortPosition { keys, number, rows }, passed };
            (min < max).then_some(DistributedPosition::Sorted { parts, min, max, at })
        }
        DELIVERED => {
            let delivered = take_number(&mut rest)?;
            let cached = if rest.is_empty() { 0 } else { take_number(&mut rest)? };
            rest.is_empty().then_some(DistributedPosition::Materialized { delivered, cached })
        }
        _ => None,
    }
}

fn encode_parts(parts: &[Part]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        push_bytes(&mut out, part.min.as_bytes());
        push_bytes(&mut out, part.max.as_bytes());
        // A position of the engine is never empty.
        push_bytes(&mut out, part.inner.as_deref().unwrap_or_default());
    }
    out
}

/// At least one part, in hash order.
fn decode_parts(mut bytes: &[u8]) -> Option<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    while !bytes.is_empty() {
        let (min, max) = (take_epk(&mut bytes)?, take_epk(&mut bytes)?);
        let inner = Some(take_bytes(&mut bytes)?.to_vec()).filter(|inner| !inner.is_empty());
        if min >= max || parts.last().is_some_and(|last| last.max > min) {
            return None;
        }
        parts.push(Part { min, max, inner });
    }
    (!parts.is_empty()).then_some(parts)
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // Keys come from items of at most 2 MB.
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn take_bytes<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (taken, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    *bytes = rest;
    Some(taken)
}

fn take_epk(bytes: &mut &[u8]) -> Option<Epk> {
    take_bytes(bytes).map(|bytes| Epk(bytes.into()))
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions() -> Vec<DistributedPosition> {
        let epk = |text: &str| Epk::from_hex(text).unwrap();
        let part = |min, max, inner| Part { min: epk(min), max: epk(max), inner };
        let keys = vec![Value::Undefined, 5.into(), "a".into(), Value::Null];
        let at =
            SortedPosition { share: 0, last: 0, after: SortPosition { keys, number: 7, rows: 1 }, passed: 9 };
        vec![
            DistributedPosition::Chain { parts: vec![part("", "3F", None)], passed: 4 },
            DistributedPosition::Chain {
                parts: vec![part("", "3F", Some(vec![1, 2, 3])), part("3F", "FF", Some(vec![4]))],
                passed: 0,
            },
            DistributedPosition::Sorted { parts: Vec::new(), min: epk("7F"), max: epk("FF"), at: at.clone() },
            DistributedPosition::Sorted {
                parts: vec![part("", "7F", Some(vec![9]))],
                min: epk(""),
                max: epk("3F"),
                at,
            },
            DistributedPosition::Materialized { delivered: 12, cached: 0 },
            DistributedPosition::Materialized { delivered: 12, cached: 7 },
        ]
    }

    #[test]
    fn positions_over_all_shares_read_back_for_their_query_only() {
        let mark = Mark::of_text("SELECT * FROM c", &[]);
        let other = Mark::of_text("SELECT * FROM c", &[("@a".to_string(), 1.into())]);
        for position in positions() {
            let bytes = encode(mark, &position);
            assert_eq!(decode(&bytes, mark), Some(position));
            assert_eq!(decode(&bytes, other), None);
        }
    }

    #[test]
    fn damaged_positions_are_refused_or_mean_something_and_never_panic() {
        let mark = Mark::of_text("q", &[]);
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        for position in positions() {
            let whole = encode(mark, &position);
            for _ in 0..5_000 {
                let mut bytes = whole.clone();
                for _ in 0..random() % 4 {
                    let at = random() % bytes.len();
                    bytes[at] = random() as u8;
                }
                bytes.truncate(random() % (bytes.len() + 1));
                if let Some(found) = decode(&bytes, mark) {
                    assert_eq!(decode(&encode(mark, &found), mark), Some(found));
                }
            }
        }
    }

    #[test]
    fn a_filter_may_change_between_pages_of_one_partition_but_not_the_order() {
        let mark = |text: &str| Mark::of_shape(&orrery_sql::parse_query(text).unwrap());
        let first = mark("SELECT c.a FROM c WHERE true ORDER BY c.a");
        assert_eq!(first, mark("SELECT c.a FROM c WHERE c.a >= 5 ORDER BY c.a"));
        assert_ne!(first, mark("SELECT c.a FROM c WHERE true ORDER BY c.b"));
    }
}
