//! Entries and chunks carry a checksum over themselves and their place, so that what comes back is what was written,
//! and was written there.

use bytes::Bytes;
use orrery_storage::{SpaceId, StoreError};

/// What kind of bytes, and where they belong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    pub(crate) space: SpaceId,
    /// The number of an entry, or the entry that a checkpoint is at.
    pub(crate) at: u64,
    /// The epoch of an entry, or the number of a chunk.
    pub(crate) with: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Entry = 1,
    Chunk = 2,
}

const SEAL_BYTES: usize = 4;

fn checksum(place: Place, data: &[u8]) -> u32 {
    let mut bytes = [0; 21];
    bytes[0] = place.kind as u8;
    bytes[1..5].copy_from_slice(&place.space.0.to_le_bytes());
    bytes[5..13].copy_from_slice(&place.at.to_le_bytes());
    bytes[13..].copy_from_slice(&place.with.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&bytes), data)
}

pub(crate) fn sealed(place: Place, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SEAL_BYTES + data.len());
    bytes.extend_from_slice(&checksum(place, data).to_le_bytes());
    bytes.extend_from_slice(data);
    bytes
}

pub(crate) fn unsealed(place: Place, bytes: Bytes) -> Result<Bytes, StoreError> {
    let sum = bytes.first_chunk::<SEAL_BYTES>().copied().map(u32::from_le_bytes);
    let data = bytes.slice(SEAL_BYTES.min(bytes.len())..);
    if sum != Some(checksum(place, &data)) {
        let Place { kind, space, at, with } = place;
        let what = match kind {
            Kind::Entry => format!("entry {at} of epoch {with}"),
            Kind::Chunk => format!("chunk {with} of checkpoint {at}"),
        };
        let what = format!("{what} of space {} fails its checksum in the log", space.0);
        return Err(StoreError::Damaged(what.into()));
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_bytes_are_good_in_their_own_place_only() {
        let place = Place { kind: Kind::Entry, space: SpaceId(3), at: 7, with: 2 };
        let bytes = Bytes::from(sealed(place, b"data"));
        assert_eq!(unsealed(place, bytes.clone()).unwrap(), "data");
        for other in [
            Place { kind: Kind::Chunk, ..place },
            Place { space: SpaceId(4), ..place },
            Place { at: 8, ..place },
            Place { with: 3, ..place },
        ] {
            assert!(matches!(unsealed(other, bytes.clone()), Err(StoreError::Damaged(_))));
        }
        for cut in 0..bytes.len() {
            assert!(unsealed(place, bytes.slice(..cut)).is_err());
        }
    }
}
