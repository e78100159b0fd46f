//! Every version of every item, deletes included, for containers whose change feed policy keeps them.
//!
//! ```text
//! version  format 1 | kind | flags | ts u32 | previous lsn u64 | key u32+bytes | current u32+bytes | previous
//! ```
//!
//! A change writes one version row beside its feed row, in the same commit: the new version as it is stored, and of a
//! delete (or where the policy asks for it, of every change) the one before. Rows stay for as long as the policy says
//! and then leave from the beginning; a mark tells up to where they have gone, so that a reader who comes back too
//! late is told instead of being given half.

use std::sync::atomic::Ordering;

use bytes::{BufMut, Bytes, BytesMut};
use orrery_storage::{Direction, Table, keys};

use super::commit_page::{CommitPage, InSpan};
use super::rows::{ChangeKind, damaged, decode_detached, decode_lsn, encode_lsn};
use super::scan::{PageLimits, Span};
use super::transaction::Transaction;
use super::{Partition, Settings, upkeep};
use crate::definition::ContainerDefinition;
use crate::error::{Error, Result};
use crate::item::{Item, Position};

const FORMAT: u8 = 1;
const FLAG_CURRENT: u8 = 1;
const FLAG_PREVIOUS: u8 = 2;

/// Rows removed by one commit.
const REMOVALS_PER_COMMIT: usize = 1000;
/// Commits of one visit; then other partitions have their turn.
const COMMITS_PER_VISIT: usize = 20;
/// How often old versions are looked for, at most.
const RETENTION_INTERVAL_S: u32 = 60;

/// Name of the meta row that says up to which LSN versions have been removed.
pub(super) const VERSIONS_GONE: &str = "versions-gone";

/// What a container's policy keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    /// 0: no versions are kept.
    pub(super) retention_s: u32,
    /// Whether replaced versions are told as well.
    pub(super) previous: bool,
}

impl Kept {
    pub(super) fn of(definition: &ContainerDefinition) -> Kept {
        let policy = definition.json.get("changeFeedPolicy");
        let minutes = policy.and_then(|policy| policy.get("retentionDuration")?.as_u64()).unwrap_or(0);
        let previous = policy.and_then(|policy| policy.get("previousImages")?.as_bool()).unwrap_or(false);
        Kept { retention_s: u32::try_from(minutes.saturating_mul(60)).unwrap_or(u32::MAX), previous }
    }
}

/// One change of an item.
#[derive(Debug, Clone)]
pub struct ItemVersion {
    pub kind: ChangeKind,
    pub lsn: u64,
    /// Second of the change.
    pub ts: u32,
    /// The change that had written the version before; 0: there was none.
    pub previous_lsn: u64,
    /// What the change left; nothing after a delete.
    pub current: Option<Item>,
    /// What was there before, where it is kept.
    pub previous: Option<Item>,
}

#[derive(Debug)]
pub struct PartitionVersions {
    pub versions: Vec<ItemVersion>,
    /// Everything up to this commit has been seen.
    pub lsn: u64,
    pub at: Position,
}

pub(super) struct VersionRow {
    pub(super) kind: ChangeKind,
    pub(super) ts: u32,
    pub(super) previous_lsn: u64,
    pub(super) key: Bytes,
    /// Item rows.
    pub(super) current: Option<Bytes>,
    pub(super) previous: Option<Bytes>,
}

impl VersionRow {
    pub(super) fn encode(&self) -> Bytes {
        let length = |row: &Option<Bytes>| row.as_ref().map_or(0, |row| 4 + row.len());
        let size = 3 + 4 + 8 + 4 + self.key.len() + length(&self.current) + length(&self.previous);
        let mut out = BytesMut::with_capacity(size);
        let flags = if self.current.is_some() { FLAG_CURRENT } else { 0 }
            | if self.previous.is_some() { FLAG_PREVIOUS } else { 0 };
        out.put_slice(&[FORMAT, self.kind as u8, flags]);
        out.put_u32_le(self.ts);
        out.put_u64_le(self.previous_lsn);
        for part in [Some(&self.key), self.current.as_ref(), self.previous.as_ref()].into_iter().flatten() {
            out.put_u32_le(part.len() as u32);
            out.put_slice(part);
        }
        out.freeze()
    }

    pub(super) fn decode(row: &Bytes) -> Result<VersionRow> {
        let mut at = 0usize;
        let mut take = |length: usize| {
            let part = row.get(at..at.checked_add(length)?)?;
            at += length;
            Some(row.slice_ref(part))
        };
        let number = |bytes: Bytes| bytes.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        let decoded = (|| {
            let head = take(3)?;
            let kind = ChangeKind::from_u8(head[1]).filter(|_| head[0] == FORMAT)?;
            let ts = number(take(4)?) as u32;
            let previous_lsn = number(take(8)?);
            let mut part = |is_there: bool| match is_there {
                true => {
                    let length = number(take(4)?) as usize;
                    Some(Some(take(length)?))
                }
                false => Some(None),
            };
            let key = part(true)??;
            let current = part(head[2] & FLAG_CURRENT != 0)?;
            let previous = part(head[2] & FLAG_PREVIOUS != 0)?;
            Some(VersionRow { kind, ts, previous_lsn, key, current, previous })
        })();
        decoded.filter(|_| at == row.len()).ok_or_else(|| damaged("version"))
    }
}

impl Partition {
    /// Whether the container keeps all versions.
    pub fn keeps_versions(&self) -> bool {
        self.settings().kept.retention_s > 0
    }

    /// The next page of versions, after a commit that has been seen; `None`: from now on.
    pub fn read_versions(
        &self,
        span: &Span,
        after: Option<u64>,
        limits: PageLimits,
        session: &[(u32, u64)],
    ) -> Result<PartitionVersions> {
        let view = self.view(session)?;
        let snapshot = self.snapshot()?;
        let after = after.unwrap_or(view.lsn);
        if after < self.shared.agenda.versions_gone.load(Ordering::Acquire) {
            return Err(Error::bad_request(
                "The continuation is older than the retention of the container's change feed policy; versions after it \
                 have been removed.",
            ));
        }
        let in_span = InSpan::new(span);
        let mut page = CommitPage::after(after, limits);
        let mut versions = Vec::new();
        let mut rows = snapshot.scan(Table::Feed, keys::versions_after(after), Direction::Forward);
        while let Some(row) = rows.next_row().transpose()? {
            let Some(keys::FeedTableKey::Version { lsn, .. }) = keys::FeedTableKey::decode(&row.key) else {
                return Err(damaged("version"));
            };
            if !page.takes(lsn) {
                break;
            }
            let row = VersionRow::decode(&row.value)?;
            if !in_span.holds(&row.key) {
                continue;
            }
            let current = row.current.map(decode_detached).transpose()?;
            let previous = row.previous.map(decode_detached).transpose()?;
            page.holds([&current, &previous].into_iter().flatten().map(|item| item.document.len()).sum());
            let (kind, ts, previous_lsn) = (row.kind, row.ts, row.previous_lsn);
            versions.push(ItemVersion { kind, lsn, ts, previous_lsn, current, previous });
        }
        let at = self.stands_at(view.lsn.max(page.last()), 0);
        Ok(PartitionVersions { versions, lsn: page.seen(view.lsn), at })
    }

    /// Removes versions that are older than the policy keeps them. Returns whether that is done.
    pub(super) fn remove_old_versions(&self, now_s: u32) -> Result<bool> {
        let settings = self.settings();
        let keep_from = match settings.kept.retention_s {
            0 => u32::MAX,
            retention_s => now_s.saturating_sub(retention_s),
        };
        let agenda = &self.shared.agenda;
        for _ in 0..COMMITS_PER_VISIT {
            let snapshot = self.snapshot()?;
            let mut rows = snapshot.scan(Table::Feed, keys::versions_after(0), Direction::Forward);
            let mut old = Vec::new();
            let mut gone = 0;
            let mut left = false;
            while let Some(row) = rows.next_row().transpose()? {
                let Some(keys::FeedTableKey::Version { lsn, .. }) = keys::FeedTableKey::decode(&row.key)
                else {
                    return Err(damaged("version"));
                };
                // Whole commits leave, so that the mark is an LSN.
                if VersionRow::decode(&row.value)?.ts >= keep_from
                    || old.len() >= REMOVALS_PER_COMMIT && lsn != gone
                {
                    left = true;
                    break;
                }
                gone = lsn;
                old.push(row.key);
            }
            drop(rows);
            drop(snapshot);
            let full = old.len() >= REMOVALS_PER_COMMIT;
            if !old.is_empty() {
                // Readers that come from before are refused from now on, whether or not the rows are gone yet.
                agenda.versions_gone.fetch_max(gone, Ordering::AcqRel);
                let mut transaction = Transaction::begin(self, &settings)?;
                old.into_iter().for_each(|key| transaction.stage(Table::Feed, key, None));
                transaction.stage(Table::Feed, keys::meta(VERSIONS_GONE), Some(encode_lsn(gone)));
                upkeep::durable(transaction.finish_marks()?)?;
            }
            if !full {
                let next = if left { now_s.saturating_add(RETENTION_INTERVAL_S) } else { upkeep::NEVER };
                agenda.versions_s.store(next, Ordering::Release);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// When old versions are looked for after an open, and up to where they had been removed.
pub(super) fn agenda(snapshot: &dyn orrery_storage::Snapshot) -> Result<(u32, u64)> {
    let first =
        snapshot.scan(Table::Feed, keys::versions_after(0), Direction::Forward).next_row().transpose()?;
    let gone = snapshot.get(Table::Feed, &keys::meta(VERSIONS_GONE))?;
    let gone = gone.map(|row| decode_lsn(&row)).transpose()?.unwrap_or(0);
    Ok((if first.is_some() { 0 } else { upkeep::NEVER }, gone))
}

impl Settings {
    /// The row of a change, if the policy keeps versions.
    pub(super) fn version_row(
        &self,
        kind: ChangeKind,
        ts: u32,
        key: &Bytes,
        current: Option<&Bytes>,
        previous: Option<&Item>,
    ) -> Option<VersionRow> {
        if self.kept.retention_s == 0 {
            return None;
        }
        let tells_previous = self.kept.previous || current.is_none();
        Some(VersionRow {
            kind,
            ts,
            previous_lsn: previous.map_or(0, |item| item.lsn),
            key: key.clone(),
            current: current.cloned(),
            previous: previous
                .filter(|_| tells_previous)
                .map(|item| super::rows::ItemHeader::of(item).encode(&item.document).0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_version_row_reads_back_as_it_was_written(
            ts: u32, previous_lsn: u64, key: Vec<u8>, current: Option<Vec<u8>>, previous: Option<Vec<u8>>
        ) {
            let row = VersionRow {
                kind: ChangeKind::Replace,
                ts,
                previous_lsn,
                key: key.into(),
                current: current.map(Bytes::from),
                previous: previous.map(Bytes::from),
            };
            let read = VersionRow::decode(&row.encode()).unwrap();
            prop_assert_eq!((read.ts, read.previous_lsn, &read.key), (ts, previous_lsn, &row.key));
            prop_assert_eq!((&read.current, &read.previous), (&row.current, &row.previous));
        }

        #[test]
        fn damaged_rows_are_errors_not_panics(row: Vec<u8>) {
            let _ = VersionRow::decode(&row.into());
        }
    }
}
