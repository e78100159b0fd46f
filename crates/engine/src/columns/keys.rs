//! Keys in order: each without what it shares with the one before.
//!
//! ```text
//! block   shared 0 | rest | shared, rest | … sixteen keys, the first of them whole
//! ```

const BLOCK_KEYS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Keys {
    bytes: Vec<u8>,
    /// Where each block begins.
    blocks: Vec<u64>,
    len: usize,
    last: Vec<u8>,
}

impl Keys {
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn size_bytes(&self) -> usize {
        self.bytes.capacity() + 8 * self.blocks.capacity()
    }

    /// Adds a key behind all others.
    pub fn push(&mut self, key: &[u8]) {
        let first = self.len.is_multiple_of(BLOCK_KEYS);
        let shared = if first { 0 } else { self.last.iter().zip(key).take_while(|(a, b)| a == b).count() };
        if first {
            self.blocks.push(self.bytes.len() as u64);
        }
        push_length(&mut self.bytes, shared);
        push_length(&mut self.bytes, key.len() - shared);
        self.bytes.extend_from_slice(&key[shared..]);
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
        self.len += 1;
    }

    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.blocks.shrink_to_fit();
        self.last = Vec::new();
    }

    /// The keys from one on.
    pub fn from(&self, at: usize) -> Cursor<'_> {
        let block = at / BLOCK_KEYS;
        let offset = self.blocks.get(block).map_or(self.bytes.len(), |offset| *offset as usize);
        let mut cursor = Cursor { rest: &self.bytes[offset..], key: Vec::new() };
        for _ in block * BLOCK_KEYS..at {
            cursor.step();
        }
        cursor
    }

    /// Where a key is, or else where it would be.
    pub fn find(&self, key: &[u8]) -> Result<usize, usize> {
        let block = self.blocks.partition_point(|offset| {
            let mut cursor = Cursor { rest: &self.bytes[*offset as usize..], key: Vec::new() };
            cursor.step().is_some_and(|first| first <= key)
        });
        let Some(block) = block.checked_sub(1) else { return Err(0) };
        let mut cursor = self.from(block * BLOCK_KEYS);
        for at in block * BLOCK_KEYS..self.len.min((block + 1) * BLOCK_KEYS) {
            match cursor.step().map_or(std::cmp::Ordering::Greater, |found| found.cmp(key)) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Ok(at),
                std::cmp::Ordering::Greater => return Err(at),
            }
        }
        Err(self.len.min((block + 1) * BLOCK_KEYS))
    }
}

/// Goes through keys in order.
pub(super) struct Cursor<'k> {
    rest: &'k [u8],
    key: Vec<u8>,
}

impl Cursor<'_> {
    /// The next key.
    pub fn step(&mut self) -> Option<&[u8]> {
        let shared = take_length(&mut self.rest)?;
        let (own, rest) = { take_length(&mut self.rest).and_then(|own| self.rest.split_at_checked(own))? };
        self.rest = rest;
        self.key.truncate(shared);
        self.key.extend_from_slice(own);
        Some(&self.key)
    }
}

fn push_length(out: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

fn take_length(bytes: &mut &[u8]) -> Option<usize> {
    let (mut length, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        length |= usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(length);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn keys_are_found_where_a_sorted_list_has_them(
            keys in prop::collection::btree_set(prop::collection::vec(0u8..3, 0..200), 0..80),
            asked in prop::collection::vec(0u8..3, 0..6),
        ) {
            let sorted: Vec<Vec<u8>> = BTreeSet::into_iter(keys).collect();
            let mut packed = Keys::default();
            sorted.iter().for_each(|key| packed.push(key));
            packed.shrink();
            prop_assert_eq!(packed.len(), sorted.len());
            prop_assert_eq!(packed.find(&asked), sorted.binary_search(&asked));
            for (at, key) in sorted.iter().enumerate() {
                prop_assert_eq!(packed.find(key), Ok(at));
                prop_assert_eq!(packed.from(at).step().map(<[u8]>::to_vec), Some(key.clone()));
            }
            prop_assert!(packed.from(sorted.len()).step().is_none());
        }
    }
}
