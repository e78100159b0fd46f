//! Queries that were parsed before, by their text.
//!
//! Applications send the same few texts over and over, with other parameters. A syntax tree depends on nothing but
//! its text, so it can be kept whatever happens to containers and their policies; everything else is made anew for
//! each request.

use std::sync::Arc;

use orrery_sql::{Query, SqlError, parse_query};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// What all kept texts and trees may take, about.
const BYTES_MAX: u64 = 8 * 1024 * 1024;
/// A longer text is likely made by a program that puts its values into it, and never comes again.
const TEXT_BYTES_MAX: usize = 8 * 1024;
/// A byte of text becomes about this much of a tree.
const TREE_BYTES_PER_BYTE: u64 = 24;
const ENTRY_BYTES: u64 = 256;
/// For the size of the cache's own table.
const TEXTS_EXPECTED: usize = 1_000;

pub struct ParseCache(Cache<Box<str>, Arc<Query>, Weights>);

#[derive(Clone)]
struct Weights;

impl Weighter<Box<str>, Arc<Query>> for Weights {
    fn weight(&self, text: &Box<str>, _: &Arc<Query>) -> u64 {
        ENTRY_BYTES + TREE_BYTES_PER_BYTE * text.len() as u64
    }
}

impl Default for ParseCache {
    fn default() -> ParseCache {
        ParseCache(Cache::with_weighter(TEXTS_EXPECTED, BYTES_MAX, Weights))
    }
}

impl ParseCache {
    pub fn parse(&self, text: &str) -> Result<Arc<Query>, SqlError> {
        if text.len() > TEXT_BYTES_MAX {
            return parse_query(text).map(Arc::new);
        }
        if let Some(query) = self.0.get(text) {
            return Ok(query);
        }
        let query = Arc::new(parse_query(text)?);
        self.0.insert(text.into(), query.clone());
        Ok(query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_parsed_once_and_a_wrong_one_every_time() {
        let texts = ParseCache::default();
        let first = texts.parse("SELECT * FROM c").unwrap();
        assert!(Arc::ptr_eq(&first, &texts.parse("SELECT * FROM c").unwrap()));
        assert!(!Arc::ptr_eq(&first, &texts.parse("SELECT * FROM d").unwrap()));
        assert_eq!(texts.parse("SELECT").unwrap_err().code, texts.parse("SELECT").unwrap_err().code);
    }

    #[test]
    fn texts_stay_within_their_bytes() {
        let texts = ParseCache::default();
        for number in 0..10_000 {
            texts
                .parse(&format!("SELECT * FROM c WHERE c.n = {number} AND c.text != '{}'", "x".repeat(200)))
                .unwrap();
        }
        assert!(texts.0.weight() <= BYTES_MAX);
        let long = format!("SELECT '{}'", "x".repeat(TEXT_BYTES_MAX));
        assert!(!Arc::ptr_eq(&texts.parse(&long).unwrap(), &texts.parse(&long).unwrap()));
    }
}
