//! Reading table files block by block, past what is damaged.
//!
//! A table file is data blocks in the order of their keys, then an index, a filter and metadata, then a table of
//! contents. Every block begins with the same four bytes and has checksums of its header and of its content, so it
//! can be found and believed without any of the others: where a block does not read, the search goes on at the next
//! one that does. What lies between is a gap, and the keys before and after it say what it may have held.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsm_tree::checksum::ChecksummedWriter;
use lsm_tree::coding::Decode;
use lsm_tree::file::MAGIC_BYTES;
use lsm_tree::table::block::decoder::ParsedItem;
use lsm_tree::table::block::{BlockType, Header};
use lsm_tree::table::{Block, BlockHandle, BlockOffset, DataBlock};
use lsm_tree::{Cache, Checksum, CompressionType, InternalValue, Table, UserKey};

use super::trees::guarded;
use crate::store::StoreError;

/// A table file, taken apart.
pub(super) struct TableFile {
    pub(super) path: PathBuf,
    /// Data blocks that can be read, in order.
    pub(super) blocks: Vec<GoodBlock>,
    pub(super) gaps: Vec<Gap>,
    /// Why the file does not open as a table, although all its rows may be there.
    pub(super) unopenable: Option<String>,
}

#[derive(Clone, Copy)]
pub(super) struct GoodBlock {
    handle: BlockHandle,
    compression: CompressionType,
}

/// Bytes that are no block.
#[derive(Debug, Clone)]
pub(super) struct Gap {
    pub(super) offset: u64,
    pub(super) size_bytes: u64,
    /// Whether rows may have been in it; otherwise only what helps to find them.
    pub(super) rows: bool,
    /// The last key before it and the first after it, where there are some.
    pub(super) after: Option<UserKey>,
    pub(super) before: Option<UserKey>,
}

impl Gap {
    fn end(&self) -> u64 {
        self.offset + self.size_bytes
    }
}

impl TableFile {
    /// Reads the whole file and finds its blocks.
    pub(super) fn read(path: &Path) -> std::io::Result<TableFile> {
        let bytes = std::fs::read(path)?;
        let opened = open(path);
        let mut found = Found::default();
        let mut at = 0;
        while at < bytes.len() {
            match block_at(&bytes[at..]) {
                Some((block, compression, length)) => {
                    found.add(at as u64, length as u64, block, compression);
                    at += length;
                }
                None => {
                    let next = find_block(&bytes, at + 1).unwrap_or(bytes.len());
                    found.gap(at as u64, (next - at) as u64);
                    at = next;
                }
            }
        }
        // Behind the rows there is more than blocks: only what is known to be one counts. Opening the table has
        // checked the rest.
        let (rows_end, others) = match &opened {
            Ok(table) => {
                let regions = &table.regions;
                let others = [Some(regions.tli), regions.index, regions.filter_tli, regions.filter];
                (*regions.tli.offset(), others.into_iter().flatten().collect())
            }
            Err(_) => (found.others_from.unwrap_or(u64::MAX), Vec::new()),
        };
        found.gaps.retain_mut(|gap| {
            gap.rows = gap.offset < rows_end;
            gap.rows
                || others.iter().any(|block: &BlockHandle| (gap.offset..gap.end()).contains(&block.offset()))
        });
        Ok(TableFile {
            path: path.to_owned(),
            blocks: found.blocks,
            gaps: found.gaps,
            unopenable: opened.err().map(|error| error.to_string()),
        })
    }

    /// The rows of all blocks that can be read, in order.
    pub(super) fn rows(&self) -> std::io::Result<impl Iterator<Item = InternalValue> + use<>> {
        let file = File::open(&self.path)?;
        let blocks = self.blocks.clone();
        Ok(blocks.into_iter().flat_map(move |block| {
            let read = guarded(|| Block::from_file(&file, block.handle, block.compression));
            read.map(rows_of).unwrap_or_default()
        }))
    }
}

/// Opens a table without loading more than its metadata.
pub(super) fn open(path: &Path) -> Result<Table, StoreError> {
    let cache = Arc::new(Cache::with_capacity_bytes(0));
    guarded(|| Table::recover(path.to_owned(), Checksum::from_raw(0), 0, 0, cache, None, false, false))
}

/// The checksum that manifests keep of their tables, and `current` of the manifest.
pub(super) fn checksum(path: &Path) -> std::io::Result<u128> {
    let mut hasher = ChecksummedWriter::new(std::io::sink());
    std::io::copy(&mut File::open(path)?, &mut hasher)?;
    hasher.flush()?;
    Ok(hasher.checksum().into_u128())
}

#[derive(Default)]
struct Found {
    blocks: Vec<GoodBlock>,
    gaps: Vec<Gap>,
    last_key: Option<UserKey>,
    /// Where blocks without rows begin.
    others_from: Option<u64>,
}

impl Found {
    fn add(&mut self, offset: u64, length: u64, block: Block, compression: CompressionType) {
        match block.header.block_type {
            BlockType::Data => {
                let handle = BlockHandle::new(BlockOffset(offset), length as u32);
                let rows = rows_of(block);
                if let Some(first) = rows.first() {
                    self.open_gaps().for_each(|gap| gap.before = Some(first.key.user_key.clone()));
                }
                self.last_key = rows.last().map(|row| row.key.user_key.clone()).or(self.last_key.take());
                self.blocks.push(GoodBlock { handle, compression });
            }
            _ => drop(self.others_from.get_or_insert(offset)),
        }
    }

    fn gap(&mut self, offset: u64, size_bytes: u64) {
        let after = self.last_key.clone();
        self.gaps.push(Gap { offset, size_bytes, rows: true, after, before: None });
    }

    /// Gaps behind which no row has been read yet.
    fn open_gaps(&mut self) -> impl Iterator<Item = &mut Gap> {
        self.gaps.iter_mut().filter(|gap| gap.before.is_none())
    }
}

/// The block that the bytes begin with, and how long it is.
fn block_at(bytes: &[u8]) -> Option<(Block, CompressionType, usize)> {
    if !bytes.starts_with(&MAGIC_BYTES) {
        return None;
    }
    // Only metadata says how a table is compressed. A block that says the same length twice is not.
    let header = guarded(|| Header::decode_from(&mut &bytes[..])).ok()?;
    let length = Header::serialized_len().checked_add(header.data_length as usize)?;
    let compression = match header.data_length == header.uncompressed_length {
        true => CompressionType::None,
        false => CompressionType::Lz4,
    };
    if bytes.len() < length {
        return None;
    }
    let read = |compression| guarded(|| Block::from_reader(&mut &bytes[..length], compression)).ok();
    let block = read(compression)?;
    // Compression may also leave the length as it was.
    if header.block_type == BlockType::Data && rows_of(block.clone()).is_empty() {
        let block = read(CompressionType::Lz4).filter(|block| !rows_of(block.clone()).is_empty())?;
        return Some((block, CompressionType::Lz4, length));
    }
    Some((block, compression, length))
}

fn find_block(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = bytes.get(at..)?.windows(MAGIC_BYTES.len()).position(|four| four == MAGIC_BYTES) {
        at += found;
        if block_at(&bytes[at..]).is_some() {
            return Some(at);
        }
        at += 1;
    }
    None
}

fn rows_of(block: Block) -> Vec<InternalValue> {
    let block = DataBlock::new(block);
    let bytes = block.as_slice();
    guarded(|| Ok(block.iter().map(|row| row.materialize(bytes)).collect())).unwrap_or_default()
}
