//! Where the next page of a query begins.
//!
//! A query that streams goes on at an item: the feed's own position, how many rows counted against TOP and LIMIT so
//! far, and how many rows of the first item were delivered already (a JOIN makes several). A query that has to see
//! everything first (sorting, grouping) goes on after a number of delivered rows.

use orrery_engine::FeedContinuation;

const STREAM: u8 = 1;
const WHOLE: u8 = 2;

#[derive(Clone, Debug, PartialEq)]
pub enum QueryPosition {
    Stream { feed: Option<FeedContinuation>, passed: u64, swallow: u64 },
    Whole { delivered: u64 },
}

impl QueryPosition {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            QueryPosition::Stream { feed, passed, swallow } => {
                let mut out = vec![STREAM];
                out.extend_from_slice(&passed.to_be_bytes());
                out.extend_from_slice(&swallow.to_be_bytes());
                if let Some(feed) = feed {
                    out.extend_from_slice(&feed.encode());
                }
                out
            }
            QueryPosition::Whole { delivered } => {
                let mut out = vec![WHOLE];
                out.extend_from_slice(&delivered.to_be_bytes());
                out
            }
        }
    }

    pub fn decode(bytes: &[u8]) -> Option<QueryPosition> {
        let (kind, rest) = bytes.split_first()?;
        let (first, rest) = rest.split_first_chunk::<8>()?;
        let first = u64::from_be_bytes(*first);
        match *kind {
            STREAM => {
                let (swallow, rest) = rest.split_first_chunk::<8>()?;
                let feed = if rest.is_empty() { None } else { Some(FeedContinuation::decode(rest)?) };
                Some(QueryPosition::Stream { feed, passed: first, swallow: u64::from_be_bytes(*swallow) })
            }
            WHOLE if rest.is_empty() => Some(QueryPosition::Whole { delivered: first }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_read_back_and_damage_is_noticed() {
        for position in [
            QueryPosition::Stream { feed: None, passed: 3, swallow: 1 },
            QueryPosition::Whole { delivered: 70 },
        ] {
            let bytes = position.encode();
            assert_eq!(QueryPosition::decode(&bytes), Some(position));
            for end in 0..bytes.len() {
                assert_eq!(QueryPosition::decode(&bytes[..end]), None);
            }
        }
        assert_eq!(QueryPosition::decode(&[9; 20]), None);
    }
}
