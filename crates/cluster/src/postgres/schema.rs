//! The tables, their version, and how they are made on first use.
//!
//! SQL that any engine with PostgreSQL's protocol takes, so that the log could be kept by another one. What only
//! PostgreSQL has makes it cheaper, not right, and is left out elsewhere: `PLAIN_ONLY`, and the timeline of a primary.

use orrery_storage::StoreError;

use super::link::{Session, Trouble};
use crate::log::new_identity;

/// What this version writes and reads.
const VERSION: i32 = 1;

const TABLES: &str = "\
CREATE TABLE orrery_store (one integer PRIMARY KEY, version integer NOT NULL, identity text NOT NULL);
CREATE TABLE orrery_space (
  space bigint PRIMARY KEY, epoch bigint NOT NULL, owner text NOT NULL,
  checkpoint bigint, chunks bigint NOT NULL, log_from bigint NOT NULL);
CREATE TABLE orrery_log (
  space bigint NOT NULL, number bigint NOT NULL, epoch bigint NOT NULL, data bytea NOT NULL,
  PRIMARY KEY (space, number));
CREATE TABLE orrery_chunk (
  space bigint NOT NULL, checkpoint bigint NOT NULL, number bigint NOT NULL, data bytea NOT NULL,
  PRIMARY KEY (space, checkpoint, number));";

/// Compression of what does not compress costs more than everything else about an insert. Logs grow at one end and are
/// cut at the other, so they are tidied early.
const PLAIN_ONLY: &str = "\
ALTER TABLE orrery_space SET (fillfactor = 50);
ALTER TABLE orrery_log ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE orrery_chunk ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE orrery_log SET (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0,
  toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_cost_delay = 0);
ALTER TABLE orrery_chunk SET (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0,
  toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_cost_delay = 0);";

/// The identity of the log in this database. Makes the tables when there are none.
pub(super) async fn open(session: &mut Session, plain: bool) -> Result<String, Trouble> {
    if !exists(session).await? {
        let identity = new_identity()?;
        let made = session
            .transaction(async |session| {
                session.batch(TABLES).await?;
                if plain {
                    session.batch(PLAIN_ONLY).await?;
                }
                session.execute("INSERT INTO orrery_store VALUES (1, $1, $2)", &[&VERSION, &identity]).await
            })
            .await;
        match made {
            Ok(_) => {
                tracing::info!(identity, "made the tables of a new store in PostgreSQL");
                return Ok(identity);
            }
            // Somebody else has made them at the same time, or nobody may.
            Err(Trouble::Refused(error)) => {
                if !exists(session).await? {
                    return Err(Trouble::Refused(error));
                }
            }
            Err(lost) => return Err(lost),
        }
    }
    let rows = session.query("SELECT version, identity FROM orrery_store WHERE one = 1", &[]).await?;
    let Some(row) = rows.first() else {
        let text = "the table orrery_store is empty: this is not a store, or a damaged one";
        return Err(StoreError::Damaged(text.into()).into());
    };
    match row.get::<_, i32>(0) {
        VERSION => Ok(row.get(1)),
        version => {
            let text = format!(
                "the store in PostgreSQL has version {version}, and this server knows version {VERSION}: \
                 start the version of orrery that made it"
            );
            Err(StoreError::Refused(text.into()).into())
        }
    }
}

async fn exists(session: &mut Session) -> Result<bool, Trouble> {
    let sql = "SELECT 1 FROM information_schema.tables WHERE table_name = 'orrery_store' \
               AND table_schema = ANY (current_schemas(false))";
    Ok(!session.query(sql, &[]).await?.is_empty())
}
