//! Sessions of clients: the last retryable write and what it answered, and the transaction under way.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_mongo::{Bson, Document, Error, Result, error::code};
use parking_lot::Mutex;

use crate::collection::transaction::Transaction;

pub type SessionId = [u8; 16];

/// Sessions of a server at one time.
const SESSIONS_MAX: usize = 100_000;
/// What clients are told.
pub const TIMEOUT_MINUTES: i32 = 30;
const IDLE_MAX: Duration = Duration::from_secs(TIMEOUT_MINUTES as u64 * 60);
/// A transaction that has not been ended is aborted.
pub const TRANSACTION_TIME_MAX: Duration = Duration::from_secs(60);

struct Session {
    used: Instant,
    txn_number: i64,
    /// The number is a transaction's, not a retryable write's.
    transactional: bool,
    /// What the write with the present number has answered.
    reply: Option<(String, Document)>,
    transaction: State,
}

#[derive(Clone)]
enum State {
    None,
    Open(Arc<Mutex<Transaction>>),
    Committed,
    Aborted,
}

#[derive(Default)]
pub struct Sessions {
    all: Mutex<HashMap<SessionId, Session>>,
    /// Documents that transactions under way have written: nobody else's transaction may.
    intents: Mutex<HashMap<(u32, u32, String), SessionId>>,
}

/// How a retryable write goes on.
pub enum Retry {
    First,
    /// It has been done: this is what it answered.
    Done(Document),
}

fn too_old(number: i64, last: i64) -> Error {
    Error::new(
        code::TRANSACTION_TOO_OLD,
        format!(
            "Retryable write with txnNumber {number} is prohibited on session because a newer retryable write with txnNumber {last} has already started on this session."
        ),
    )
}

pub fn no_such_transaction(number: i64) -> Error {
    Error::new(
        code::NO_SUCH_TRANSACTION,
        format!("Given transaction number {number} does not match any in-progress transactions."),
    )
}

impl Sessions {
    pub fn len(&self) -> usize {
        self.all.lock().len()
    }

    fn with<T>(&self, id: SessionId, work: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        let mut all = self.all.lock();
        let now = Instant::now();
        if all.len() >= SESSIONS_MAX && !all.contains_key(&id) {
            all.retain(|_, session| now.duration_since(session.used) < IDLE_MAX);
            if all.len() >= SESSIONS_MAX {
                return Err(Error::new(
                    code::TOO_MANY_LOGICAL_SESSIONS,
                    format!("there are {SESSIONS_MAX} sessions already; end some"),
                ));
            }
        }
        let session = all.entry(id).or_insert_with(|| Session {
            used: now,
            txn_number: -1,
            transactional: false,
            reply: None,
            transaction: State::None,
        });
        session.used = now;
        work(session)
    }

    pub fn touch(&self, id: SessionId) -> Result<()> {
        self.with(id, |_| Ok(()))
    }

    /// A write that may be sent twice begins.
    pub fn begin_write(&self, id: SessionId, number: i64, what: &str) -> Result<Retry> {
        let (retry, dropped) = self.with(id, |session| {
            if number < session.txn_number {
                return Err(too_old(number, session.txn_number));
            }
            if number > session.txn_number {
                session.txn_number = number;
                session.transactional = false;
                session.reply = None;
                return Ok((Retry::First, std::mem::replace(&mut session.transaction, State::None)));
            }
            if session.transactional {
                return Err(Error::new(
                    code::INCOMPATIBLE_TRANSACTION_OPTION,
                    "a retryable write has the number of a transaction of its session",
                ));
            }
            // A number that was another write's is no retry of it.
            let known = session.reply.as_ref().filter(|(known, _)| known == what);
            Ok((known.map_or(Retry::First, |(_, reply)| Retry::Done(reply.clone())), State::None))
        })?;
        self.release(id, dropped);
        Ok(retry)
    }

    pub fn wrote(&self, id: SessionId, number: i64, what: &str, reply: &Document) {
        let _ = self.with(id, |session| {
            if session.txn_number == number {
                session.reply = Some((what.to_owned(), reply.clone()));
            }
            Ok(())
        });
    }

    /// The transaction that a command belongs to; begun if it says so.
    pub fn transaction(&self, id: SessionId, number: i64, starts: bool) -> Result<Arc<Mutex<Transaction>>> {
        let (found, dropped) = self.with(id, |session| {
            if number < session.txn_number {
                return Err(Error::new(
                    code::TRANSACTION_TOO_OLD,
                    format!("Cannot start transaction {number} on session because a newer transaction {} has already started.", session.txn_number),
                ));
            }
            if starts {
                if number == session.txn_number && session.transactional && !matches!(session.transaction, State::Aborted | State::None) {
                    return Err(Error::new(50911, format!("Cannot start a transaction at given transaction number {number} a transaction with the same number is in state kInProgress")));
                }
                let transaction = Arc::new(Mutex::new(Transaction::new()));
                session.txn_number = number;
                session.transactional = true;
                session.reply = None;
                let before = std::mem::replace(&mut session.transaction, State::Open(transaction.clone()));
                return Ok((transaction, before));
            }
            match &session.transaction {
                _ if number != session.txn_number || !session.transactional => Err(no_such_transaction(number)),
                State::Open(transaction) => Ok((transaction.clone(), State::None)),
                State::Committed => Err(Error::new(code::TRANSACTION_COMMITTED, format!("Transaction with {{ txnNumber: {number} }} has been committed."))),
                State::Aborted | State::None => Err(Error::new(code::NO_SUCH_TRANSACTION, format!("Transaction with {{ txnNumber: {number} }} has been aborted."))),
            }
        })?;
        self.release(id, dropped);
        let late = found.lock().began.elapsed() > TRANSACTION_TIME_MAX;
        if late {
            self.end(id, number, false);
            return Err(Error::new(
                290,
                "the transaction has been open for longer than it may, and was aborted",
            ));
        }
        Ok(found)
    }

    /// The transaction to commit; `None`: it has been committed already.
    pub fn to_commit(&self, id: SessionId, number: i64) -> Result<Option<Arc<Mutex<Transaction>>>> {
        self.with(id, |session| match &session.transaction {
            _ if number != session.txn_number || !session.transactional => Err(no_such_transaction(number)),
            State::Open(transaction) => Ok(Some(transaction.clone())),
            State::Committed => Ok(None),
            State::Aborted | State::None => Err(no_such_transaction(number)),
        })
    }

    /// Ends a transaction; what it has claimed is free again. `false`: there was none to end.
    pub fn end(&self, id: SessionId, number: i64, committed: bool) -> bool {
        let dropped = self.with(id, |session| {
            if session.txn_number != number || !matches!(session.transaction, State::Open(_)) {
                return Err(no_such_transaction(number));
            }
            let end = if committed { State::Committed } else { State::Aborted };
            Ok(std::mem::replace(&mut session.transaction, end))
        });
        match dropped {
            Ok(open) => {
                self.release(id, open);
                true
            }
            Err(_) => false,
        }
    }

    fn release(&self, id: SessionId, state: State) {
        if matches!(state, State::Open(_)) {
            self.intents.lock().retain(|_, owner| *owner != id);
        }
    }

    /// Claims a document for a transaction.
    pub fn claim(&self, id: SessionId, database: u32, container: u32, item: &str) -> Result<()> {
        /// Of all transactions together.
        const INTENTS_MAX: usize = 1_000_000;
        let mut intents = self.intents.lock();
        if intents.len() >= INTENTS_MAX {
            return Err(Error::new(code::TRANSACTION_TOO_LARGE, "transactions hold too many documents"));
        }
        let owner = intents.entry((database, container, item.to_owned())).or_insert(id);
        match *owner == id {
            true => Ok(()),
            false => Err(conflict()),
        }
    }

    pub fn remove(&self, id: SessionId) {
        let removed = self.all.lock().remove(&id);
        if let Some(session) = removed {
            self.release(id, session.transaction);
        }
    }

    pub fn clear(&self) {
        self.all.lock().clear();
        self.intents.lock().clear();
    }
}

pub fn conflict() -> Error {
    Error::new(
        code::WRITE_CONFLICT,
        "Caused by :: Write conflict during plan execution and yielding is disabled. :: Please retry your operation or multi-document transaction.",
    )
}

/// The id of a session, out of `lsid`.
pub fn id_of(lsid: &Bson) -> Option<SessionId> {
    match lsid.as_document()?.get("id")? {
        Bson::Binary { bytes, .. } => <[u8; 16]>::try_from(&bytes[..]).ok(),
        _ => None,
    }
}
