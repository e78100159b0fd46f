//! A log in PostgreSQL, which replicates it, fails it over and backs it up.
//!
//! Four tables (`schema`). An append of any number of spaces is one statement and one trip: rows are inserted for
//! those spaces whose epoch is still the writer's, under a lock that a new owner's raising of the epoch waits for.
//! `FOR SHARE` and nothing weaker: the fence was raced against `FOR KEY SHARE`, and lost.
//!
//! Two connections: one for owners (take, append), one for what may take longer (reads, checkpoints, cuts). When the
//! first is lost its session is over: appends are refused until spaces have been taken again. Taking commits a row,
//! and its commit cannot be confirmed before everything earlier is on the standby; so nothing is read that a failover
//! could still undo.

mod link;
mod schema;
mod target;
mod tls;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use orrery_storage::{Claim, Epoch, SpaceId, StoreError};
use parking_lot::Mutex;
use tokio::runtime::{Handle, Runtime};
use tokio_postgres::Row;

use self::link::{BULK_TIME, Link, STATEMENT_TIME, Session as LinkSession, Trouble};
use self::target::Target;
use crate::log::{Checkpoint, ENTRY_BYTES_MAX, Entry, Frame, Log, LogStats, Session, SpaceState, Taken};
use crate::seal::{Kind, Place, sealed, unsealed};

pub struct PostgresLog {
    driver: Driver,
    target: Target,
    tls: Option<Arc<rustls::ClientConfig>>,
    identity: String,
    owners: Mutex<Wire>,
    others: Mutex<Wire>,
    closed: AtomicBool,
    /// The highest that any connection has seen.
    timeline: AtomicU32,
    counters: Counters,
}

/// The thread that reads and writes the connections.
struct Driver(Option<Runtime>);

impl Driver {
    fn start() -> Result<Driver, StoreError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("postgres")
            .enable_io()
            .enable_time()
            .build();
        let failed = |error| StoreError::Exhausted(format!("no thread for PostgreSQL: {error}").into());
        Ok(Driver(Some(runtime.map_err(failed)?)))
    }

    fn handle(&self) -> Result<&Handle, StoreError> {
        self.0.as_ref().map(Runtime::handle).ok_or(StoreError::Closed)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Waiting for it is not possible on a thread of another runtime, where this may be.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// A connection while there is one, and how many there were.
#[derive(Default)]
struct Wire {
    link: Option<Link>,
    session: u64,
}

#[derive(Default)]
struct Counters {
    appends: AtomicU64,
    append_bytes: AtomicU64,
    connections: AtomicU64,
    unknown_outcomes: AtomicU64,
    connected: AtomicBool,
}

const APPEND: &str = "INSERT INTO orrery_log (space, number, epoch, data) \
    SELECT x.space, x.number, x.epoch, x.data \
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[]) AS x(space, number, epoch, data) \
    JOIN orrery_space s ON s.space = x.space AND s.epoch = x.epoch FOR SHARE OF s RETURNING space";
const INSERT_SPACE: &str = "INSERT INTO orrery_space (space, epoch, owner, checkpoint, chunks, log_from) \
    VALUES ($1, 0, '', NULL, 0, 1) ON CONFLICT (space) DO NOTHING";
const TAKE: &str = "UPDATE orrery_space SET epoch = GREATEST(epoch, $2) + 1, owner = $3 WHERE space = $1 \
    RETURNING epoch, checkpoint, chunks, log_from";
const RENEW: &str = "UPDATE orrery_space SET epoch = epoch + 1, owner = $3 \
    WHERE space = $1 AND (epoch = $2 OR (epoch = $2 + 1 AND owner = $3)) \
    RETURNING epoch, checkpoint, chunks, log_from";
const LAST: &str = "SELECT max(number) FROM orrery_log WHERE space = $1";
const MARK: &str = "INSERT INTO orrery_log (space, number, epoch, data) VALUES ($1, $2, $3, $4)";
/// About so many bytes, by a running total, in which long values are counted without being read.
const READ: &str = "SELECT number, epoch, data FROM ( \
      SELECT number, epoch, data, sum(octet_length(data)) OVER (ORDER BY number) - octet_length(data) AS before \
      FROM (SELECT number, epoch, data FROM orrery_log WHERE space = $1 AND number >= $2 \
            ORDER BY number LIMIT 256) AS page) AS sized \
    WHERE before = 0 OR before + octet_length(data) <= $3::bigint ORDER BY number";
const STATE: &str = "SELECT epoch, checkpoint, chunks, log_from, owner FROM orrery_space WHERE space = $1";
const SPACES: &str = "SELECT space FROM orrery_space ORDER BY space";
const WRITE_CHUNK: &str = "INSERT INTO orrery_chunk (space, checkpoint, number, data) \
    SELECT s.space, $3::bigint, $4::bigint, $5::bytea FROM orrery_space s WHERE s.space = $1 AND s.epoch = $2 FOR SHARE OF s \
    ON CONFLICT (space, checkpoint, number) DO UPDATE SET data = excluded.data";
const SET_CHECKPOINT: &str = "UPDATE orrery_space SET checkpoint = $3, chunks = $4, log_from = $3 \
    WHERE space = $1 AND epoch = $2 AND log_from <= $3 \
    AND EXISTS (SELECT 1 FROM orrery_log l WHERE l.space = $1 AND l.number = $3)";
const READ_CHUNK: &str = "SELECT data FROM orrery_chunk WHERE space = $1 AND checkpoint = $2 AND number = $3";
const FIRST: &str = "SELECT min(number) FROM orrery_log WHERE space = $1";
const CUT_LOG: &str = "DELETE FROM orrery_log WHERE space = $1 AND number < $2";
const OLD_CHECKPOINT: &str = "SELECT checkpoint, min(number) FROM orrery_chunk \
    WHERE space = $1 AND checkpoint < $2 GROUP BY checkpoint ORDER BY checkpoint LIMIT 1";
const CUT_CHUNKS: &str = "DELETE FROM orrery_chunk WHERE space = $1 AND checkpoint = $2 AND number < $3";
const DROP_RAISE: &str = "UPDATE orrery_space SET epoch = epoch + 1, owner = '', checkpoint = NULL, chunks = 0 \
    WHERE space = $1 RETURNING epoch, log_from";
const DROP_LOG_FROM: &str = "UPDATE orrery_space SET log_from = $2 WHERE space = $1";

/// What one `cut` removes at most: entries, of a few kilobytes mostly, or chunks of a megabyte.
const CUT_ENTRIES: i64 = 2000;
const CUT_CHUNKS_MAX: i64 = 32;

impl PostgresLog {
    /// Connects to the cluster at an address (`postgres://USER:PASSWORD@HOST,HOST/DATABASE?sslmode=…`) and makes the
    /// tables when there are none.
    pub fn open(address: &str) -> Result<PostgresLog, StoreError> {
        let target = Target::parse(address)?;
        let tls = tls::client_config(&target)?;
        let mut log = PostgresLog {
            driver: Driver::start()?,
            target,
            tls,
            identity: String::new(),
            owners: Mutex::default(),
            others: Mutex::default(),
            closed: AtomicBool::new(false),
            timeline: AtomicU32::new(0),
            counters: Counters::default(),
        };
        let mut wire = Wire::default();
        let opened =
            log.on(&mut wire, STATEMENT_TIME, async |session, plain| schema::open(session, plain).await);
        log.identity = opened?;
        *log.others.lock() = wire;
        Ok(log)
    }

    /// Runs statements on a connection, making one when there is none. What is asked twice must be no different from
    /// what is asked once: it is asked again if the connection turns out to be lost.
    fn on<T>(
        &self,
        wire: &mut Wire,
        time: Duration,
        mut work: impl AsyncFnMut(&mut LinkSession, bool) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        let mut again = true;
        loop {
            if self.closed.load(Ordering::Acquire) {
                return Err(StoreError::Closed);
            }
            let link = self.link(wire)?;
            let plain = link.plain;
            match link.run(time, async |session| work(session, plain).await) {
                Ok(done) => return Ok(done),
                Err(Trouble::Refused(error)) => return Err(error),
                Err(Trouble::Lost(why)) => {
                    self.lose(wire, &why);
                    if !std::mem::take(&mut again) {
                        return Err(StoreError::Unavailable(format!("PostgreSQL: {why}").into()));
                    }
                }
            }
        }
    }

    fn link<'w>(&self, wire: &'w mut Wire) -> Result<&'w mut Link, StoreError> {
        if wire.link.as_ref().is_some_and(|link| !link.is_open()) {
            self.lose(wire, "the server has closed the connection");
        }
        if wire.link.is_none() {
            let timeline_min = self.timeline.load(Ordering::Relaxed);
            let handle = self.driver.handle()?;
            let tls = self.tls.as_ref();
            let link = Link::connect(handle, &self.target, tls, timeline_min).inspect_err(|_| {
                self.counters.connected.store(false, Ordering::Relaxed);
            })?;
            self.timeline.fetch_max(link.timeline, Ordering::Relaxed);
            self.counters.connections.fetch_add(1, Ordering::Relaxed);
            self.counters.connected.store(true, Ordering::Relaxed);
            wire.session += 1;
            wire.link = Some(link);
        }
        wire.link.as_mut().ok_or(StoreError::Closed)
    }

    fn lose(&self, wire: &mut Wire, why: &str) {
        tracing::warn!(why, "lost a connection to PostgreSQL");
        self.counters.connected.store(false, Ordering::Relaxed);
        wire.link = None;
    }
}

impl Log for PostgresLog {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn take(&self, space: SpaceId, claim: Claim, owner: &str, marker: &Bytes) -> Result<Taken, StoreError> {
        let mut wire = self.owners.lock();
        let id = i64::from(space.0);
        let taken = self.on(&mut wire, STATEMENT_TIME, async |session, _| {
            session
                .transaction(async |session| {
                    let rows = match claim {
                        Claim::Take(above) => {
                            session.execute(INSERT_SPACE, &[&id]).await?;
                            session.query(TAKE, &[&id, &number(above.0)?, &owner]).await?
                        }
                        Claim::Renew(mine) => session.query(RENEW, &[&id, &number(mine.0)?, &owner]).await?,
                    };
                    let row = rows.first().ok_or(StoreError::Fenced(space))?;
                    let (epoch, checkpoint, log_from) = decode_state(row)?;
                    // Only now, under the lock: an append that was on its way is in the log, or will be refused.
                    let last: Option<i64> = session.query(LAST, &[&id]).await?[0].get(0);
                    let end = last.map_or(Ok(log_from - 1), unsigned)? + 1;
                    let place = Place { kind: Kind::Entry, space, at: end, with: epoch.0 };
                    let data = sealed(place, marker);
                    session.execute(MARK, &[&id, &number(end)?, &number(epoch.0)?, &data]).await?;
                    Ok(Taken { session: Session(0), epoch, checkpoint, log_from, end })
                })
                .await
        })?;
        Ok(Taken { session: Session(wire.session), ..taken })
    }

    fn append(&self, session: Session, frames: &[Frame]) -> Result<Vec<SpaceId>, StoreError> {
        if let Some(large) = frames.iter().find(|frame| frame.data.len() > ENTRY_BYTES_MAX) {
            return Err(StoreError::Limit(format!("entry of {} bytes", large.data.len()).into()));
        }
        let (mut ids, mut numbers, mut epochs, mut data) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut bytes = 0;
        for Frame { space, epoch, number: at, data: entry } in frames {
            let place = Place { kind: Kind::Entry, space: *space, at: *at, with: epoch.0 };
            ids.push(i64::from(space.0));
            numbers.push(number(*at)?);
            epochs.push(number(epoch.0)?);
            bytes += entry.len() as u64;
            data.push(sealed(place, entry));
        }
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        let mut wire = self.owners.lock();
        let open = wire.link.as_ref().is_some_and(Link::is_open);
        if !open && wire.link.is_some() {
            self.lose(&mut wire, "the server has closed the connection");
        }
        let current = wire.session;
        let Some(link) = wire.link.as_mut().filter(|_| current == session.0) else {
            return Err(StoreError::Unavailable("the connection to PostgreSQL was lost".into()));
        };
        let time = if bytes > 8 << 20 { BULK_TIME } else { STATEMENT_TIME };
        let answered =
            link.run(time, async |session| session.query(APPEND, &[&ids, &numbers, &epochs, &data]).await);
        match answered {
            Ok(rows) => {
                self.counters.appends.fetch_add(1, Ordering::Relaxed);
                self.counters.append_bytes.fetch_add(bytes, Ordering::Relaxed);
                if rows.len() == frames.len() {
                    return Ok(Vec::new());
                }
                let there: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
                let missing = frames.iter().filter(|frame| !there.contains(&i64::from(frame.space.0)));
                Ok(missing.map(|frame| frame.space).collect())
            }
            Err(Trouble::Refused(error)) => Err(error),
            Err(Trouble::Lost(why)) => {
                self.counters.unknown_outcomes.fetch_add(1, Ordering::Relaxed);
                self.lose(&mut wire, &why);
                Err(StoreError::OutcomeUnknown(format!("PostgreSQL: {why}").into()))
            }
        }
    }

    fn read(&self, space: SpaceId, from: u64, bytes_max: usize) -> Result<Vec<Entry>, StoreError> {
        let (id, from, bytes_max) = (i64::from(space.0), number(from)?, bytes_max.min(1 << 40) as i64);
        let rows = self.on(&mut self.others.lock(), BULK_TIME, async |session, _| {
            session.query(READ, &[&id, &from, &bytes_max]).await
        })?;
        let mut entries = Vec::with_capacity(rows.len());
        for row in rows {
            let (at, epoch) = (unsigned(row.get(0))?, Epoch(unsigned(row.get(1))?));
            let data = unsealed(
                Place { kind: Kind::Entry, space, at, with: epoch.0 },
                Bytes::from(row.get::<_, Vec<u8>>(2)),
            )?;
            entries.push(Entry { number: at, epoch, data });
        }
        Ok(entries)
    }

    fn state(&self, space: SpaceId) -> Result<Option<SpaceState>, StoreError> {
        let id = i64::from(space.0);
        let rows = self.on(&mut self.others.lock(), STATEMENT_TIME, async |session, _| {
            session.query(STATE, &[&id]).await
        })?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (epoch, checkpoint, log_from) = decode_state(row)?;
        Ok(Some(SpaceState { epoch, owner: row.get(4), checkpoint, log_from }))
    }

    fn spaces(&self) -> Result<Vec<SpaceId>, StoreError> {
        let rows = self.on(&mut self.others.lock(), STATEMENT_TIME, async |session, _| {
            session.query(SPACES, &[]).await
        })?;
        rows.iter().map(|row| Ok(SpaceId(unsigned(row.get(0))? as u32))).collect()
    }

    fn write_chunk(
        &self,
        space: SpaceId,
        epoch: Epoch,
        at: u64,
        chunk: u32,
        data: &Bytes,
    ) -> Result<(), StoreError> {
        let place = Place { kind: Kind::Chunk, space, at, with: chunk.into() };
        let (id, data) = (i64::from(space.0), sealed(place, data));
        let (epoch, at, chunk) = (number(epoch.0)?, number(at)?, i64::from(chunk));
        let written = self.on(&mut self.others.lock(), BULK_TIME, async |session, _| {
            session.execute(WRITE_CHUNK, &[&id, &epoch, &at, &chunk, &data]).await
        })?;
        if written == 0 { Err(StoreError::Fenced(space)) } else { Ok(()) }
    }

    fn set_checkpoint(&self, space: SpaceId, epoch: Epoch, checkpoint: Checkpoint) -> Result<(), StoreError> {
        let Checkpoint { at, chunks } = checkpoint;
        let (id, mine, place, chunks) =
            (i64::from(space.0), number(epoch.0)?, number(at)?, i64::from(chunks));
        let set = self.on(&mut self.others.lock(), STATEMENT_TIME, async |session, _| {
            session.execute(SET_CHECKPOINT, &[&id, &mine, &place, &chunks]).await
        })?;
        if set > 0 {
            return Ok(());
        }
        // Why not, or whether it was done by an attempt whose answer was lost.
        match self.state(space)? {
            Some(state) if state.checkpoint == Some(checkpoint) => Ok(()),
            Some(state) if state.epoch == epoch => {
                Err(StoreError::Refused(format!("a checkpoint at {at} of space {}", space.0).into()))
            }
            _ => Err(StoreError::Fenced(space)),
        }
    }

    fn read_chunk(&self, space: SpaceId, at: u64, chunk: u32) -> Result<Bytes, StoreError> {
        let (id, place, wanted) = (i64::from(space.0), number(at)?, i64::from(chunk));
        let rows = self.on(&mut self.others.lock(), BULK_TIME, async |session, _| {
            session.query(READ_CHUNK, &[&id, &place, &wanted]).await
        })?;
        let Some(row) = rows.first() else {
            let text = format!("chunk {chunk} of checkpoint {at} of space {} is missing in the log", space.0);
            return Err(StoreError::Damaged(text.into()));
        };
        let bytes = Bytes::from(row.get::<_, Vec<u8>>(0));
        unsealed(Place { kind: Kind::Chunk, space, at, with: chunk.into() }, bytes)
    }

    fn cut(&self, space: SpaceId) -> Result<bool, StoreError> {
        let id = i64::from(space.0);
        self.on(&mut self.others.lock(), BULK_TIME, async |session, _| {
            let rows = session.query(STATE, &[&id]).await?;
            let Some(row) = rows.first() else { return Ok(false) };
            let (_, _, log_from) = decode_state(row)?;
            let log_from = number(log_from)?;
            let first: Option<i64> = session.query(FIRST, &[&id]).await?[0].get(0);
            if let Some(first) = first.filter(|first| *first < log_from) {
                let before = log_from.min(first.saturating_add(CUT_ENTRIES));
                session.execute(CUT_LOG, &[&id, &before]).await?;
                return Ok(true);
            }
            let rows = session.query(OLD_CHECKPOINT, &[&id, &log_from]).await?;
            let Some(row) = rows.first() else { return Ok(false) };
            let (old, first): (i64, i64) = (row.get(0), row.get(1));
            let before = first.saturating_add(CUT_CHUNKS_MAX);
            session.execute(CUT_CHUNKS, &[&id, &old, &before]).await?;
            Ok(true)
        })
    }

    fn drop_space(&self, space: SpaceId) -> Result<(), StoreError> {
        let id = i64::from(space.0);
        self.on(&mut self.owners.lock(), STATEMENT_TIME, async |session, _| {
            session
                .transaction(async |session| {
                    let rows = session.query(DROP_RAISE, &[&id]).await?;
                    let Some(row) = rows.first() else { return Ok(()) };
                    let last: Option<i64> = session.query(LAST, &[&id]).await?[0].get(0);
                    let log_from = last.map_or(row.get(1), |last| last.saturating_add(1));
                    session.execute(DROP_LOG_FROM, &[&id, &log_from]).await?;
                    Ok(())
                })
                .await
        })
    }

    fn stats(&self) -> LogStats {
        let counters = &self.counters;
        LogStats {
            appends: counters.appends.load(Ordering::Relaxed),
            append_bytes: counters.append_bytes.load(Ordering::Relaxed),
            connections: counters.connections.load(Ordering::Relaxed),
            unknown_outcomes: counters.unknown_outcomes.load(Ordering::Relaxed),
            connected: counters.connected.load(Ordering::Relaxed),
        }
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.owners.lock().link = None;
        self.others.lock().link = None;
    }
}

/// Epoch, checkpoint and first entry, as every statement about a space returns them first.
fn decode_state(row: &Row) -> Result<(Epoch, Option<Checkpoint>, u64), StoreError> {
    let at: Option<i64> = row.get(1);
    let checkpoint = match at {
        Some(at) => Some(Checkpoint { at: unsigned(at)?, chunks: unsigned(row.get(2))? as u32 }),
        None => None,
    };
    Ok((Epoch(unsigned(row.get(0))?), checkpoint, unsigned(row.get(3))?))
}

/// PostgreSQL's integers have a sign.
fn number(value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::Limit(format!("the number {value} is too large").into()))
}

fn unsigned(value: i64) -> Result<u64, StoreError> {
    u64::try_from(value).map_err(|_| StoreError::Damaged(format!("the number {value} in PostgreSQL").into()))
}
