//! The catalog as rows of space 0: keys, values, and both directions of their encoding.
//!
//! | row | key | value (after a version byte) |
//! |---|---|---|
//! | meta | `00` | account number, catalog LSN, the next database, offer and space number |
//! | database | `01`, number | LSN, ts, next container number, name |
//! | container | `02`, database, number | LSN, ts, next range id, definition as JSON text |
//! | range | `03`, database, container, range id | LSN, ts, start LSN, space, status, owner, epoch, min, max, parents |
//! | offer | `04`, number | LSN, ts, owner, throughput, highest throughput and storage ever, buckets if any |
//! | drop | `05`, space | nothing: the space is to be dropped |
//! | fork | `06`, database | nothing: the database is a fork, and ends with the process that made it |
//! | script | `20`, database, container, number (two words) | LSN, ts, kind, time and operation of triggers, id, body |
//!
//! Numbers in keys are big-endian, so rows come back in creation order and everything under a database is one
//! range of keys. Tags `10` and `11` are users and permissions, see `user_rows`, `12` client encryption keys, see
//! `encryption_keys`; others from there on are left for resources that come later.
//!
//! Every value starts with the version of its row kind. A row of an unknown version is refused by name: a newer
//! program wrote it, and guessing could lose what it said.

use bytes::Bytes;
use orrery_model::Epk;
use orrery_storage::ByteReader;

use crate::error::{Error, Result};
use crate::offer::{Level, OfferOwner, Throughput};
use crate::script::{ScriptDefinition, ScriptKind, TriggerOperation, TriggerTime};
use crate::throughput::{BUCKET_UNLIMITED, BUCKETS_MAX};

const TAG_META: u8 = 0;
const TAG_DATABASE: u8 = 1;
const TAG_CONTAINER: u8 = 2;
const TAG_RANGE: u8 = 3;
const TAG_OFFER: u8 = 4;
const TAG_DROP: u8 = 5;
const TAG_FORK: u8 = 6;
const TAG_USER: u8 = 0x10;
const TAG_PERMISSION: u8 = 0x11;
const TAG_ENCRYPTION_KEY: u8 = 0x12;
const TAG_SCRIPT: u8 = 0x20;

/// The version that every row kind is written with today.
const VERSION: u8 = 1;

/// Where a row lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKey {
    Meta,
    Database(u32),
    Container(u32, u32),
    Range(u32, u32, u32),
    Offer(u32),
    Drop(u32),
    /// The database that is a fork.
    Fork(u32),
    /// Database and user.
    User(u32, u32),
    /// Database, user and permission.
    Permission(u32, u32, u32),
    /// Database and client encryption key.
    EncryptionKey(u32, u32),
    /// The number's upper and lower half come last.
    Script(u32, u32, u32, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MetaRow {
    pub(crate) account: u32,
    /// Counts the catalog's commits; resources carry the one that last changed them.
    pub(crate) lsn: u64,
    pub(crate) next_database: u32,
    pub(crate) next_offer: u32,
    pub(crate) next_space: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabaseRow {
    pub(crate) lsn: u64,
    pub(crate) ts: u32,
    /// Containers and users draw their numbers from it.
    pub(crate) next_container: u32,
    pub(crate) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerRow {
    pub(crate) lsn: u64,
    pub(crate) ts: u32,
    pub(crate) next_range: u32,
    pub(crate) definition: String,
}

/// What a range is doing. Splits add states; the numbers stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeStatus {
    Online = 1,
    /// Children are being built from it; it still serves.
    Splitting = 2,
    /// Replaced by its children; kept so that its id is answered as gone and never given again.
    Gone = 3,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RangeRow {
    pub(crate) lsn: u64,
    pub(crate) ts: u32,
    /// The partition's LSN when the range began.
    pub(crate) start_lsn: u64,
    pub(crate) space: u32,
    pub(crate) status: RangeStatus,
    /// The node that serves the range; 0: whoever has the store open.
    pub(crate) owner: u64,
    /// Grows with every change of owner; a commit with an older one is refused.
    pub(crate) epoch: u64,
    pub(crate) min: Epk,
    pub(crate) max: Epk,
    pub(crate) parents: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfferRow {
    pub(crate) lsn: u64,
    pub(crate) ts: u32,
    pub(crate) owner: OfferOwner,
    pub(crate) throughput: Throughput,
    pub(crate) throughput_max_ever: u32,
    pub(crate) storage_max_ever_kb: u64,
    pub(crate) buckets: [u8; BUCKETS_MAX],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptRow {
    pub(crate) lsn: u64,
    pub(crate) ts: u32,
    pub(crate) definition: ScriptDefinition,
}

impl RowKey {
    pub(crate) fn script(database: u32, container: u32, number: u64) -> RowKey {
        RowKey::Script(database, container, (number >> 32) as u32, number as u32)
    }

    pub(crate) fn encode(self) -> Bytes {
        let (tag, numbers): (u8, &[u32]) = match self {
            RowKey::Meta => (TAG_META, &[]),
            RowKey::Database(database) => (TAG_DATABASE, &[database]),
            RowKey::Container(database, container) => (TAG_CONTAINER, &[database, container]),
            RowKey::Range(database, container, range) => (TAG_RANGE, &[database, container, range]),
            RowKey::Offer(number) => (TAG_OFFER, &[number]),
            RowKey::Drop(space) => (TAG_DROP, &[space]),
            RowKey::Fork(database) => (TAG_FORK, &[database]),
            RowKey::User(database, user) => (TAG_USER, &[database, user]),
            RowKey::Permission(database, user, number) => (TAG_PERMISSION, &[database, user, number]),
            RowKey::EncryptionKey(database, number) => (TAG_ENCRYPTION_KEY, &[database, number]),
            RowKey::Script(database, container, high, low) => (TAG_SCRIPT, &[database, container, high, low]),
        };
        let mut key = Vec::with_capacity(1 + 4 * numbers.len());
        key.push(tag);
        numbers.iter().for_each(|number| key.extend_from_slice(&number.to_be_bytes()));
        key.into()
    }

    /// `None` when the bytes are not a key of the catalog.
    pub(crate) fn decode(key: &[u8]) -> Option<RowKey> {
        let (tag, rest) = key.split_first()?;
        let (chunks, odd) = rest.as_chunks::<4>();
        if !odd.is_empty() {
            return None;
        }
        let number = |at: usize| u32::from_be_bytes(chunks[at]);
        match (*tag, chunks.len()) {
            (TAG_META, 0) => Some(RowKey::Meta),
            (TAG_DATABASE, 1) => Some(RowKey::Database(number(0))),
            (TAG_CONTAINER, 2) => Some(RowKey::Container(number(0), number(1))),
            (TAG_RANGE, 3) => Some(RowKey::Range(number(0), number(1), number(2))),
            (TAG_OFFER, 1) => Some(RowKey::Offer(number(0))),
            (TAG_DROP, 1) => Some(RowKey::Drop(number(0))),
            (TAG_FORK, 1) => Some(RowKey::Fork(number(0))),
            (TAG_USER, 2) => Some(RowKey::User(number(0), number(1))),
            (TAG_PERMISSION, 3) => Some(RowKey::Permission(number(0), number(1), number(2))),
            (TAG_ENCRYPTION_KEY, 2) => Some(RowKey::EncryptionKey(number(0), number(1))),
            (TAG_SCRIPT, 4) => Some(RowKey::Script(number(0), number(1), number(2), number(3))),
            _ => None,
        }
    }
}

impl MetaRow {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = start();
        put_u32(&mut out, self.account);
        put_u64(&mut out, self.lsn);
        put_u32(&mut out, self.next_database);
        put_u32(&mut out, self.next_offer);
        put_u32(&mut out, self.next_space);
        out.into()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<MetaRow> {
        Reader::read("meta", value, |r| {
            Some(MetaRow {
                account: r.u32()?,
                lsn: r.u64()?,
                next_database: r.u32()?,
                next_offer: r.u32()?,
                next_space: r.u32()?,
            })
        })
    }
}

impl DatabaseRow {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = start();
        put_u64(&mut out, self.lsn);
        put_u32(&mut out, self.ts);
        put_u32(&mut out, self.next_container);
        put_bytes(&mut out, self.name.as_bytes());
        out.into()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<DatabaseRow> {
        Reader::read("database", value, |r| {
            Some(DatabaseRow { lsn: r.u64()?, ts: r.u32()?, next_container: r.u32()?, name: r.text()? })
        })
    }
}

impl ContainerRow {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = start();
        put_u64(&mut out, self.lsn);
        put_u32(&mut out, self.ts);
        put_u32(&mut out, self.next_range);
        put_bytes(&mut out, self.definition.as_bytes());
        out.into()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<ContainerRow> {
        Reader::read("container", value, |r| {
            Some(ContainerRow { lsn: r.u64()?, ts: r.u32()?, next_range: r.u32()?, definition: r.text()? })
        })
    }
}

impl RangeRow {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = start();
        put_u64(&mut out, self.lsn);
        put_u32(&mut out, self.ts);
        put_u64(&mut out, self.start_lsn);
        put_u32(&mut out, self.space);
        out.push(self.status as u8);
        put_u64(&mut out, self.owner);
        put_u64(&mut out, self.epoch);
        put_bytes(&mut out, self.min.as_bytes());
        put_bytes(&mut out, self.max.as_bytes());
        put_u32(&mut out, self.parents.len() as u32);
        self.parents.iter().for_each(|parent| put_u32(&mut out, *parent));
        out.into()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<RangeRow> {
        Reader::read("range", value, |r| {
            Some(RangeRow {
                lsn: r.u64()?,
                ts: r.u32()?,
                start_lsn: r.u64()?,
                space: r.u32()?,
                status: match r.u8()? {
                    1 => RangeStatus::Online,
                    2 => RangeStatus::Splitting,
                    3 => RangeStatus::Gone,
                    _ => return None,
                },
                owner: r.u64()?,
                epoch: r.u64()?,
                min: Epk(r.bytes()?.into()),
                max: Epk(r.bytes()?.into()),
                parents: {
                    let count = r.u32()?;
                    (0..count).map(|_| r.u32()).collect::<Option<Vec<u32>>>()?
                },
            })
        })
    }
}

impl OfferRow {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = start();
        put_u64(&mut out, self.lsn);
        put_u32(&mut out, self.ts);
        let (kind, database, container) = match self.owner {
            OfferOwner::Database(database) => (0, database, 0),
            OfferOwner::Container(database, container) => (1, database, container),
        };
        out.push(kind);
        put_u32(&mut out, database);
        put_u32(&mut out, container);
        let (kind, ru, percent) = match self.throughput {
            Throughput::Manual(ru) => (0, ru, 0),
            Throughput::Level(level) => (2, level.ru(), 0),
            // An increment of nothing has a kind of its own: 0 means that there is none.
            Throughput::Autoscale { max, increment_percent: Some(0) } => (3, max, 0),
            Throughput::Autoscale { max, increment_percent } => (1, max, increment_percent.unwrap_or(0)),
        };
        out.push(kind);
        put_u32(&mut out, ru);
        put_u32(&mut out, percent);
        put_u32(&mut out, self.throughput_max_ever);
        put_u64(&mut out, self.storage_max_ever_kb);
        if self.buckets != [BUCKET_UNLIMITED; BUCKETS_MAX] {
            out.extend_from_slice(&self.buckets);
        }
        out.into()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<OfferRow> {
        Reader::read("offer", value, |r| {
            let (lsn, ts) = (r.u64()?, r.u32()?);
            let owner = match (r.u8()?, r.u32()?, r.u32()?) {
                (0, database, 0) => OfferOwner::Database(database),
                (1, database, container) => OfferOwner::Container(database, container),
                _ => return None,
            };
            let throughput = match (r.u8()?, r.u32()?, r.u32()?) {
                (0, ru, 0) => Throughput::Manual(ru),
                (2, ru, 0) => Throughput::Level(Level::of_ru(ru)?),
                (1, max, 0) => Throughput::Autoscale { max, increment_percent: None },
                (1, max, percent) => Throughput::Autoscale { max, increment_percent: Some(percent) },
                (3, max, 0) => Throughput::Autoscale { max, increment_percent: Some(0) },
                _ => return None,
            };
            let (throughput_max_ever, storage_max_ever_kb) = (r.u32()?, r.u64()?);
            // Rows without throughput buckets, the usual ones, end here.
            let mut buckets = [BUCKET_UNLIMITED; BUCKETS_MAX];
            if !r.is_at_end() {
                for percent in &mut buckets {
                    *percent = r.u8()?;
                }
            }
            Some(OfferRow { lsn, ts, owner, throughput, throughput_max_ever, storage_max_ever_kb, buckets })
        })
    }
}

impl ScriptRow {
    pub(crate) fn encode(&self) -> Bytes {
        let ScriptDefinition { kind, id, body, trigger, spelling } = &self.definition;
        let mut out = start();
        put_u64(&mut out, self.lsn);
        put_u32(&mut out, self.ts);
        out.push(*kind as u8);
        out.push(trigger.map_or(0, |(time, _)| time as u8));
        out.push(trigger.map_or(0, |(_, operation)| operation as u8));
        for text in [id, body, &spelling.0, &spelling.1] {
            put_bytes(&mut out, text.as_bytes());
        }
        out.into()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<ScriptRow> {
        Reader::read("script", value, |r| {
            let (lsn, ts) = (r.u64()?, r.u32()?);
            let kind = ScriptKind::from_u8(r.u8()?)?;
            let trigger = match (kind, r.u8()?, r.u8()?) {
                (ScriptKind::Trigger, time, operation) => {
                    Some((TriggerTime::from_u8(time)?, TriggerOperation::from_u8(operation)?))
                }
                (_, 0, 0) => None,
                _ => return None,
            };
            let (id, body, spelling) = (r.text()?, r.text()?, (r.text()?, r.text()?));
            Some(ScriptRow { lsn, ts, definition: ScriptDefinition { kind, id, body, trigger, spelling } })
        })
    }
}

/// The value of a drop row.
pub(crate) fn drop_value() -> Bytes {
    start().into()
}

/// What opening an account says about a catalog that it cannot read.
pub(crate) fn damaged(what: &str) -> Error {
    Error::internal(format!("The catalog is damaged: {what}."))
}

pub(super) fn start() -> Vec<u8> {
    vec![VERSION]
}

pub(super) fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_be_bytes());
}

pub(super) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// Length, then the bytes. A value is bounded by the store's own limit, far below 4 GiB.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

/// Reads the fields of a catalog row: numbers with their highest byte first, as keys have them.
pub(super) struct Reader<'v>(ByteReader<'v>);

impl<'v> Reader<'v> {
    /// Reads a whole value: its version must be known and no byte may be left over.
    pub(super) fn read<T>(
        kind: &str,
        value: &'v [u8],
        fields: impl FnOnce(&mut Reader<'v>) -> Option<T>,
    ) -> Result<T> {
        match value.split_first() {
            Some((&VERSION, rest)) => {
                let mut reader = Reader(ByteReader(rest));
                let row = fields(&mut reader).filter(|_| reader.is_at_end());
                row.ok_or_else(|| damaged(&format!("a {kind} row cannot be decoded")))
            }
            Some((version, _)) => Err(Error::internal(format!(
                "The catalog holds a {kind} row of version {version}; this program reads version {VERSION}. It was \
                 written by a newer program."
            ))),
            None => Err(damaged(&format!("a {kind} row is empty"))),
        }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.0.0.is_empty()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.0.u8()
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.0.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.0.array().map(u64::from_be_bytes)
    }

    pub(super) fn bytes(&mut self) -> Option<&'v [u8]> {
        let length = self.u32()? as usize;
        self.0.bytes(length)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range() -> RangeRow {
        RangeRow {
            lsn: 9,
            ts: 1_700_000_000,
            start_lsn: 3,
            space: 7,
            status: RangeStatus::Splitting,
            owner: 1 << 40,
            epoch: 5,
            min: Epk::from_hex("0CCC").unwrap(),
            max: Epk::max(),
            parents: vec![0, 4],
        }
    }

    fn offer() -> OfferRow {
        OfferRow {
            lsn: 2,
            ts: 3,
            owner: OfferOwner::Container(4, 5),
            throughput: Throughput::Autoscale { max: 7_000, increment_percent: Some(20) },
            throughput_max_ever: 9_000,
            storage_max_ever_kb: 11,
            buckets: [30, 100, 100, 100, 5],
        }
    }

    #[test]
    fn every_row_decodes_to_what_was_encoded() {
        let meta = MetaRow { account: 1, lsn: 2, next_database: 3, next_offer: 4, next_space: 5 };
        assert_eq!(MetaRow::decode(&meta.encode()).unwrap(), meta);
        let database = DatabaseRow { lsn: 1, ts: 2, next_container: 3, name: "grün".into() };
        assert_eq!(DatabaseRow::decode(&database.encode()).unwrap(), database);
        let container = ContainerRow { lsn: 1, ts: 2, next_range: 3, definition: "{}".into() };
        assert_eq!(ContainerRow::decode(&container.encode()).unwrap(), container);
        assert_eq!(RangeRow::decode(&range().encode()).unwrap(), range());
        assert_eq!(OfferRow::decode(&offer().encode()).unwrap(), offer());
        let manual =
            OfferRow { owner: OfferOwner::Database(1), throughput: Throughput::Manual(400), ..offer() };
        assert_eq!(OfferRow::decode(&manual.encode()).unwrap(), manual);
        for (kind, trigger) in [
            (ScriptKind::Procedure, None),
            (ScriptKind::Trigger, Some((TriggerTime::Post, TriggerOperation::Delete))),
        ] {
            let definition = ScriptDefinition {
                kind,
                id: "s".into(),
                body: "() => 1".into(),
                trigger,
                spelling: ("post".into(), "delete".into()),
            };
            let script = ScriptRow { lsn: 1, ts: 2, definition };
            assert_eq!(ScriptRow::decode(&script.encode()).unwrap(), script);
        }
        let keys = [
            RowKey::Meta,
            RowKey::Database(1),
            RowKey::Container(1, 2),
            RowKey::Range(1, 2, 3),
            RowKey::Offer(4),
            RowKey::Drop(5),
            RowKey::User(1, 6),
            RowKey::Permission(1, 6, 7),
            RowKey::script(1, 2, 1 << 40 | 3),
        ];
        for key in keys {
            assert_eq!(RowKey::decode(&key.encode()), Some(key));
        }
    }

    #[test]
    fn a_cut_or_lengthened_row_is_damaged_and_never_a_panic() {
        let whole = range().encode();
        for length in 0..whole.len() {
            assert!(RangeRow::decode(&whole[..length]).is_err());
        }
        let longer = [&whole[..], &[0]].concat();
        assert!(RangeRow::decode(&longer).is_err());
        assert_eq!(RowKey::decode(&[]), None);
        assert_eq!(RowKey::decode(&[TAG_RANGE, 0, 0]), None);
        assert_eq!(RowKey::decode(&[0x77]), None);
    }

    #[test]
    fn a_row_of_a_newer_version_is_refused_by_name() {
        let mut value = offer().encode().to_vec();
        value[0] = 2;
        let error = OfferRow::decode(&value).unwrap_err();
        assert!(error.message.contains("offer row of version 2"), "{error}");
    }

    #[test]
    fn rows_under_a_database_are_one_range_of_keys() {
        let inside = RowKey::Container(7, u32::MAX).encode();
        assert!(RowKey::Container(7, 0).encode() < inside && inside < RowKey::Container(8, 0).encode());
    }
}
