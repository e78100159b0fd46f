//! One connection to the primary of a PostgreSQL cluster: how it is found, how long an answer may take, and what an
//! answer means.
//!
//! Every rule is from a failure that was seen ([ADR 37](../../../../docs/adr/0037-the-log-is-the-database.md)):
//!
//! - All hosts are tried at the same time, each under one timer that covers the handshake and the first query: a server
//!   that is stopped accepts connections and never answers.
//! - Of several that call themselves primary the one with the highest timeline is taken, and none below one that was
//!   seen before: an old primary that comes back believes in itself for a while.
//! - Every statement has a timer here. Nothing is ever cancelled: a commit that waits for its standby *succeeds* when
//!   it is cancelled, with a warning. So a warning between question and answer means that the outcome is not known.
//! - A connection that was lost is not repaired, and what was in flight on it is not repeated.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, poll_fn, select};
use futures_util::stream::FuturesUnordered;
use orrery_storage::StoreError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Connection, Row, SimpleQueryMessage, Statement};

use super::target::{Place, Target};
use super::tls::{Connect, Stream};

/// Connection, handshake and first query, of each host.
const CONNECT_TIME: Duration = Duration::from_secs(2);
/// What the other hosts get to show a higher timeline once a primary was found.
const GRACE: Duration = Duration::from_millis(300);
/// Until then an answer must have come.
pub(super) const STATEMENT_TIME: Duration = Duration::from_secs(5);
/// The same for much data at once, or when rows are removed.
pub(super) const BULK_TIME: Duration = Duration::from_secs(30);

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server has answered, and has done nothing. The connection is good.
    Refused(StoreError),
    /// The connection is of no use any more. What was asked last may have been done.
    Lost(String),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        Trouble::Refused(error)
    }
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Trouble {
        match error.as_db_error() {
            Some(db) => of_server(db),
            None => Trouble::Lost(with_causes(&error)),
        }
    }
}

/// What an error that the server has sent means.
fn of_server(error: &DbError) -> Trouble {
    let code = error.code().code();
    let text: Arc<str> = format!("PostgreSQL: {} ({code})", error.message()).into();
    let advice = |advice: &str| StoreError::Refused(format!("{text}. {advice}").into());
    match code {
        // Shut down, failed over, or a server that became a standby.
        "57P01" | "57P02" | "57P03" | "57P05" | "25006" => Trouble::Lost(text.to_string()),
        _ if code.starts_with("08") => Trouble::Lost(text.to_string()),
        "53100" => Trouble::Refused(StoreError::NoRoom(text)),
        "42501" => Trouble::Refused(advice("The user must own its database, or may create in its schema")),
        _ if code.starts_with("28") => {
            Trouble::Refused(advice("Look at user and password in the address of the store"))
        }
        "3D000" => Trouble::Refused(advice("Make it: CREATE DATABASE … OWNER …")),
        _ if code.starts_with("42") => Trouble::Refused(StoreError::Refused(text)),
        "XX001" | "XX002" => Trouble::Refused(StoreError::Damaged(text)),
        // Rolled back, and perhaps not the next time: conflicts, too many connections, no memory.
        _ => Trouble::Refused(StoreError::Unavailable(text)),
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// What statements are run with. They are prepared when they are first used.
pub(super) struct Session {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

type Params<'p> = &'p [&'p (dyn ToSql + Sync)];

impl Session {
    pub(super) async fn query(&mut self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, Trouble> {
        let statement = self.prepared(sql).await?;
        Ok(self.client.query(&statement, params).await?)
    }

    pub(super) async fn execute(&mut self, sql: &'static str, params: Params<'_>) -> Result<u64, Trouble> {
        let statement = self.prepared(sql).await?;
        Ok(self.client.execute(&statement, params).await?)
    }

    /// Statements without parameters, not prepared.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), Trouble> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Runs work between BEGIN and COMMIT, and takes it back if it is refused.
    pub(super) async fn transaction<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Session) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        self.batch("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
        match work(self).await {
            Ok(done) => {
                self.batch("COMMIT").await?;
                Ok(done)
            }
            Err(Trouble::Refused(error)) => {
                self.batch("ROLLBACK").await?;
                Err(Trouble::Refused(error))
            }
            Err(lost) => Err(lost),
        }
    }

    async fn prepared(&mut self, sql: &'static str) -> Result<Statement, Trouble> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }
}

/// Waits for something that another thread drives. Whoever asks may itself be a thread of a runtime, which must not
/// enter another one; parking it is all that is done here. Such a thread has a share of polls for each of its tasks;
/// when that is used up, it would be woken after the task has returned, which here it never does: so without a share.
fn wait<T>(handle: &Handle, work: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    // Sockets and timers belong to that runtime.
    let _entered = handle.enter();
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut work = pin!(tokio::task::unconstrained(work));
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// A connection. The runtime's thread reads and writes; who asks waits.
pub(super) struct Link {
    session: Session,
    warned: Arc<AtomicBool>,
    /// Whether this is PostgreSQL, and not another engine that speaks its protocol.
    pub(super) plain: bool,
    /// Counts the promotions of the cluster; 0 where that is not known.
    pub(super) timeline: u32,
    handle: Handle,
}

impl Link {
    /// Finds the primary among the hosts. `timeline_min` is the highest that was ever seen.
    pub(super) fn connect(
        handle: &Handle,
        target: &Target,
        tls: Option<&Arc<rustls::ClientConfig>>,
        timeline_min: u32,
    ) -> Result<Link, StoreError> {
        let found = wait(handle, find_primary(target, tls, timeline_min))?;
        let session = Session { client: found.client, statements: HashMap::new() };
        let Candidate { warned, plain, timeline, .. } = found;
        Ok(Link { session, warned, plain, timeline, handle: handle.clone() })
    }

    /// Whether the connection seems to be there: what is known without asking.
    pub(super) fn is_open(&self) -> bool {
        !self.session.client.is_closed()
    }

    /// Runs statements under one timer.
    pub(super) fn run<T>(
        &mut self,
        time: Duration,
        work: impl AsyncFnOnce(&mut Session) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        self.warned.store(false, Ordering::Relaxed);
        let session = &mut self.session;
        let result = wait(&self.handle, async { tokio::time::timeout(time, work(session)).await });
        let result =
            result.unwrap_or_else(|_| Err(Trouble::Lost(format!("no answer in {} s", time.as_secs()))));
        match result {
            Ok(_) if self.warned.load(Ordering::Relaxed) => {
                Err(Trouble::Lost("the server has answered with a warning".into()))
            }
            result => result,
        }
    }
}

struct Candidate {
    client: Client,
    warned: Arc<AtomicBool>,
    plain: bool,
    timeline: u32,
}

async fn find_primary(
    target: &Target,
    tls: Option<&Arc<rustls::ClientConfig>>,
    timeline_min: u32,
) -> Result<Candidate, StoreError> {
    let mut trying: FuturesUnordered<_> = target
        .places
        .iter()
        .map(|place| async move {
            let tried = tokio::time::timeout(CONNECT_TIME, try_place(target, tls, place)).await;
            let late = || Err(Trouble::Lost(format!("no answer in {} s", CONNECT_TIME.as_secs())));
            (place, tried.unwrap_or_else(|_| late()))
        })
        .collect();
    let mut best: Option<Candidate> = None;
    let mut grace = Box::pin(tokio::time::sleep(CONNECT_TIME * 2));
    let mut failures = Vec::new();
    let mut refusal = None;
    loop {
        let (place, tried) = match select(trying.next(), &mut grace).await {
            Either::Left((Some(tried), _)) => tried,
            Either::Left((None, _)) | Either::Right(_) => break,
        };
        match tried {
            Ok(found) if found.timeline < timeline_min => {
                let timeline = found.timeline;
                failures.push(format!("{place}: is of timeline {timeline}, and {timeline_min} was seen"));
            }
            Ok(found) => {
                if best.as_ref().is_none_or(|best| best.timeline < found.timeline) {
                    best = Some(found);
                }
                grace = Box::pin(tokio::time::sleep(GRACE));
            }
            Err(Trouble::Lost(why)) => failures.push(format!("{place}: {why}")),
            Err(Trouble::Refused(error)) => {
                failures.push(format!("{place}: {error}"));
                if !matches!(error, StoreError::Unavailable(_)) {
                    refusal.get_or_insert(error);
                }
            }
        }
    }
    match (best, refusal) {
        (Some(best), _) => Ok(best),
        // What no later attempt will change, such as a wrong password.
        (None, Some(refusal)) => Err(refusal),
        (None, None) => {
            Err(StoreError::Unavailable(format!("no primary of PostgreSQL ({})", failures.join("; ")).into()))
        }
    }
}

trait Socket: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Socket for T {}
type AnySocket = Box<dyn Socket>;

async fn try_place(
    target: &Target,
    tls: Option<&Arc<rustls::ClientConfig>>,
    place: &Place,
) -> Result<Candidate, Trouble> {
    let failed = |error: std::io::Error| Trouble::Lost(error.to_string());
    let mut config = target.config.clone();
    let (socket, host): (AnySocket, String) = match place {
        Place::Tcp(host, port) => {
            let socket = TcpStream::connect((host.as_str(), *port)).await.map_err(failed)?;
            socket.set_nodelay(true).map_err(failed)?;
            (Box::new(socket), host.clone())
        }
        #[cfg(unix)]
        Place::Socket(path) => {
            config.ssl_mode(SslMode::Disable);
            (Box::new(tokio::net::UnixStream::connect(path).await.map_err(failed)?), String::new())
        }
    };
    let (client, connection) = config.connect_raw(socket, Connect { config: tls.cloned(), host }).await?;
    let plain = connection.parameter("crdb_version").is_none()
        && connection.parameter("server_version").is_some_and(|version| !version.contains("-YB"));
    let warned = Arc::new(AtomicBool::new(false));
    tokio::spawn(drive(connection, warned.clone()));
    let greeting = match plain {
        true => GREETING_PLAIN,
        false => GREETING,
    };
    let messages = client.simple_query(greeting).await?;
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let column = |index| row.and_then(|row| row.get(index)).unwrap_or_default();
    if column(0) == "on" {
        return Err(Trouble::Lost("is a standby".into()));
    }
    let timeline = column(1).get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0);
    // What an operator may have relaxed for other users of the server would lose acknowledged writes here.
    if plain && ["off", "local"].contains(&column(2)) {
        client.batch_execute("SET synchronous_commit = on").await?;
    }
    Ok(Candidate { client, warned, plain, timeline })
}

/// The name of the segment of write-ahead log begins with the timeline. The server's control data would say it too, but
/// late after a promotion.
const GREETING_PLAIN: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN 'on' ELSE 'off' END, \
     CASE WHEN pg_is_in_recovery() THEN '' ELSE pg_walfile_name(pg_current_wal_lsn()) END, \
     current_setting('synchronous_commit')";
const GREETING: &str = "SHOW transaction_read_only";

async fn drive(mut connection: Connection<AnySocket, Stream<AnySocket>>, warned: Arc<AtomicBool>) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notice(notice) = message {
            // Texts are translated; what is no more than a notice says so in every language.
            let harmless = [Severity::Notice, Severity::Info, Severity::Log, Severity::Debug];
            if !notice.parsed_severity().is_some_and(|severity| harmless.contains(&severity)) {
                tracing::warn!(code = notice.code().code(), text = notice.message(), "PostgreSQL warns");
                warned.store(true, Ordering::Relaxed);
            }
        }
    }
}
