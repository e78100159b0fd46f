//! Changes of client encryption keys, and their row: LSN, ts, name, canonical text. They are made and wrapped anew,
//! and go with their database; like the service, the server does not delete one alone, because items may be encrypted
//! with it.

use std::sync::Arc;

use bytes::Bytes;

use crate::account::{Database, Ref};
use crate::catalog::CONTAINER_NUMBER_MAX;
use crate::catalog::changes::{check_match, next};
use crate::catalog::rows::{Reader, RowKey, put_bytes, put_u32, put_u64, start};
use crate::catalog::writer::{CatalogChange, Writer};
use crate::encryption_key::{ENCRYPTION_KEYS_MAX, EncryptionKey, EncryptionKeyDefinition, EncryptionKeys};
use crate::error::{Error, Kind, Result};
use crate::etag::Etag;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EncryptionKeyRow {
    pub(crate) lsn: u64,
    pub(crate) ts: u32,
    pub(crate) definition: EncryptionKeyDefinition,
}

impl EncryptionKeyRow {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = start();
        put_u64(&mut out, self.lsn);
        put_u32(&mut out, self.ts);
        put_bytes(&mut out, self.definition.name.as_bytes());
        put_bytes(&mut out, self.definition.text.as_bytes());
        out.into()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<EncryptionKeyRow> {
        Reader::read("client encryption key", value, |r| {
            let (lsn, ts) = (r.u64()?, r.u32()?);
            let (name, text) = (r.text()?, r.text()?);
            Some(EncryptionKeyRow { lsn, ts, definition: EncryptionKeyDefinition { name, text } })
        })
    }
}

pub(crate) fn key_of_row(number: u32, row: EncryptionKeyRow) -> EncryptionKey {
    EncryptionKey { number, definition: row.definition, etag: Etag::new(row.lsn, row.ts), ts: row.ts }
}

impl Writer {
    pub(crate) fn create_encryption_key(
        &mut self,
        database: u32,
        definition: EncryptionKeyDefinition,
    ) -> Result<Arc<EncryptionKey>> {
        let database = self.database(database).map_err(|_| Error::owner_not_found())?;
        let keys = database.encryption_keys.load_full();
        if keys.get(Ref::Name(&definition.name)).is_ok() {
            return Err(Error::already_exists());
        }
        if keys.len() >= ENCRYPTION_KEYS_MAX {
            let message = format!(
                "The database has reached its limit of {ENCRYPTION_KEYS_MAX} client encryption keys."
            );
            return Err(Error::new(Kind::Forbidden, message));
        }
        let mut change = self.prepare();
        let mut database_row =
            self.databases.get(&database.number).cloned().ok_or_else(Error::owner_not_found)?;
        let number = next(&mut database_row.next_container, CONTAINER_NUMBER_MAX, "client encryption key")?;
        change.put(RowKey::Database(database.number), database_row.encode());
        let key = self.put_encryption_key(change, &database, number, definition)?;
        self.databases.insert(database.number, database_row);
        Ok(key)
    }

    /// The same key, wrapped anew.
    pub(crate) fn replace_encryption_key(
        &mut self,
        database: u32,
        number: u32,
        definition: EncryptionKeyDefinition,
        if_match: Option<&str>,
    ) -> Result<Arc<EncryptionKey>> {
        let database = self.database(database)?;
        let old = database.encryption_keys.load().get(Ref::Number(number))?;
        check_match(old.etag, if_match)?;
        if old.definition.name != definition.name {
            return Err(Error::bad_request("The id of a client encryption key cannot be changed."));
        }
        let change = self.prepare();
        self.put_encryption_key(change, &database, number, definition)
    }

    fn put_encryption_key(
        &mut self,
        mut change: CatalogChange,
        database: &Database,
        number: u32,
        definition: EncryptionKeyDefinition,
    ) -> Result<Arc<EncryptionKey>> {
        let row = EncryptionKeyRow { lsn: change.meta.lsn, ts: change.ts, definition };
        change.put(RowKey::EncryptionKey(database.number, number), row.encode());
        self.commit(change)?;
        let key = Arc::new(key_of_row(number, row));
        let mut keys = EncryptionKeys::clone(&database.encryption_keys.load());
        keys.insert(key.clone());
        database.encryption_keys.store(Arc::new(keys));
        self.publish(|_| ());
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_decodes_to_what_was_encoded_and_a_cut_one_is_damaged() {
        let definition = EncryptionKeyDefinition { name: "grün".into(), text: "{}".into() };
        let row = EncryptionKeyRow { lsn: 3, ts: 4, definition };
        let whole = row.encode();
        assert_eq!(EncryptionKeyRow::decode(&whole).unwrap(), row);
        for length in 0..whole.len() {
            assert!(EncryptionKeyRow::decode(&whole[..length]).is_err());
        }
    }
}
