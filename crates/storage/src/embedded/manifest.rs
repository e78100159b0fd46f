//! The manifest of a tree: `current` names it and has its checksum, which the crate writes but does not compare. A
//! flipped bit in a manifest can move all rows of a table in time, so it is compared here before a tree is opened.

use std::path::{Path, PathBuf};

use super::blocks;
use crate::store::StoreError;

const CURRENT: &str = "current";

/// What `current` says: where the manifest is, and its checksum.
pub(super) fn current(tree: &Path) -> std::io::Result<Option<(PathBuf, u128)>> {
    let bytes = match std::fs::read(tree.join(CURRENT)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    let said = bytes.split_first_chunk::<8>().and_then(|(id, rest)| match rest.split_first_chunk::<16>() {
        Some((checksum, [0])) => Some((u64::from_le_bytes(*id), u128::from_le_bytes(*checksum))),
        _ => None,
    });
    let (id, checksum) = said.ok_or_else(|| std::io::Error::other("`current` makes no sense"))?;
    Ok(Some((tree.join(format!("v{id}")), checksum)))
}

/// Whether the manifest is what was written. A tree without `current` has none to check.
pub(super) fn check(tree: &Path) -> Result<(), StoreError> {
    let damaged =
        |what: &dyn std::fmt::Display| StoreError::Damaged(format!("{}: {what}", tree.display()).into());
    let Some((manifest, expected)) = current(tree).map_err(|error| damaged(&error))? else { return Ok(()) };
    let name = manifest.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match blocks::checksum(&manifest) {
        Ok(checksum) if checksum == expected => Ok(()),
        Ok(_) => Err(damaged(&format!("its manifest {name} is not what `current` says"))),
        Err(error) => Err(damaged(&format!("its manifest {name} cannot be read: {error}"))),
    }
}

/// The tables that a manifest names, with their checksums.
pub(super) fn tables(manifest: &Path) -> std::io::Result<Vec<(u64, u128)>> {
    let damaged = || std::io::Error::other("the manifest is damaged");
    let reader = sfa::Reader::new(manifest).map_err(|_| damaged())?;
    let mut section = reader.toc().section(b"tables").ok_or_else(damaged)?.buf_reader(manifest)?;
    let mut tables = Vec::new();
    for _ in 0..u8::from_le_bytes(take(&mut section)?) {
        for _ in 0..u8::from_le_bytes(take(&mut section)?) {
            for _ in 0..u32::from_le_bytes(take(&mut section)?) {
                let id = u64::from_le_bytes(take(&mut section)?);
                let _kind_of_checksum: [u8; 1] = take(&mut section)?;
                let checksum = u128::from_le_bytes(take(&mut section)?);
                let _sequence_number: [u8; 8] = take(&mut section)?;
                tables.push((id, checksum));
            }
        }
    }
    Ok(tables)
}

fn take<const N: usize>(reader: &mut impl std::io::Read) -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The tables that keep a tree from being opened, for a message.
pub(super) fn unopenable_tables(tree: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(tree.join("tables")) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| blocks::open(path).is_err())
        .filter_map(|path| Some(format!("tables/{}", path.file_name()?.to_str()?)))
        .collect();
    names.sort();
    names
}
