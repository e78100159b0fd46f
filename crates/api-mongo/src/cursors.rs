//! Cursors that wait for their next `getMore`: bounded in number, closed when nobody has asked for long.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_mongo::pipeline::Rows;
use orrery_mongo::{Document, Error, Result, error::code};
use parking_lot::Mutex;

use crate::collection::Spent;
use crate::control::Control;
use crate::sessions::SessionId;

/// Cursors of a server at one time.
pub const CURSORS_MAX: usize = 10_000;
/// How long one is kept for whoever asks again.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// Where rows that may still come are taken from.
pub trait Tail: Send {
    /// The next row, or none for now.
    fn poll(&mut self) -> Result<Option<Document>>;
    /// Where reading goes on, of change streams.
    fn token(&self) -> Option<Document>;
    /// Nothing will ever come again.
    fn is_over(&self) -> bool;
}

pub enum Source {
    Rows(Box<dyn Rows>),
    Tail(Box<dyn Tail>),
}

pub struct Cursor {
    pub namespace: String,
    pub source: Source,
    /// Rows that may still be given; `None`: all there are.
    pub limit: Option<u64>,
    pub control: Arc<Control>,
    pub spent: Arc<Spent>,
    pub session: Option<SessionId>,
    /// Opened in this transaction.
    pub transaction: Option<i64>,
    /// How long a `getMore` without a time of its own waits for rows.
    pub awaits: bool,
    pub user: Option<Arc<str>>,
    /// The command that opened it had a `maxTimeMS`, which all its batches share.
    pub timed: bool,
    used: Instant,
    no_timeout: bool,
}

impl Cursor {
    pub fn new(namespace: String, source: Source, control: Arc<Control>, spent: Arc<Spent>) -> Cursor {
        Cursor {
            namespace,
            source,
            limit: None,
            control,
            spent,
            session: None,
            transaction: None,
            awaits: false,
            user: None,
            timed: false,
            used: Instant::now(),
            no_timeout: false,
        }
    }

    pub fn without_timeout(mut self, no_timeout: bool) -> Cursor {
        self.no_timeout = no_timeout;
        self
    }

    fn is_idle(&self, now: Instant) -> bool {
        !self.no_timeout && now.duration_since(self.used) > IDLE_MAX
    }
}

enum Slot {
    Waiting(Box<Cursor>),
    /// A `getMore` works with it; if it was killed meanwhile it does not come back.
    InUse {
        namespace: String,
        killed: bool,
    },
}

#[derive(Default)]
pub struct Cursors(Mutex<HashMap<i64, Slot>>);

impl Cursors {
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Keeps a new cursor and says under which number.
    pub fn keep(&self, cursor: Cursor, random: impl Fn() -> u64) -> Result<i64> {
        let mut cursors = self.0.lock();
        if cursors.len() >= CURSORS_MAX {
            let now = Instant::now();
            cursors.retain(|_, slot| !matches!(slot, Slot::Waiting(cursor) if cursor.is_idle(now)));
            if cursors.len() >= CURSORS_MAX {
                return Err(Error::new(
                    code::OPERATION_FAILED,
                    format!(
                        "there are {CURSORS_MAX} open cursors already: close some, or read them to their end"
                    ),
                ));
            }
        }
        loop {
            let id = i64::try_from(random() >> 1).unwrap_or(1).max(1);
            if let std::collections::hash_map::Entry::Vacant(free) = cursors.entry(id) {
                free.insert(Slot::Waiting(Box::new(cursor)));
                return Ok(id);
            }
        }
    }

    /// Whether a cursor that waits is a change stream.
    pub fn is_change_stream(&self, id: i64) -> bool {
        match self.0.lock().get(&id) {
            Some(Slot::Waiting(cursor)) => {
                matches!(&cursor.source, Source::Tail(tail) if tail.token().is_some())
            }
            _ => false,
        }
    }

    /// Takes a cursor out to work with it.
    pub fn take(&self, id: i64) -> Result<Cursor> {
        let missing = || Error::new(code::CURSOR_NOT_FOUND, format!("cursor id {id} not found"));
        let mut cursors = self.0.lock();
        let now = Instant::now();
        match cursors.remove(&id) {
            None => Err(missing()),
            Some(Slot::Waiting(cursor)) if cursor.is_idle(now) => Err(missing()),
            Some(Slot::Waiting(cursor)) => {
                cursors.insert(id, Slot::InUse { namespace: cursor.namespace.clone(), killed: false });
                Ok(*cursor)
            }
            Some(used @ Slot::InUse { .. }) => {
                cursors.insert(id, used);
                Err(Error::new(12051, format!("cursor id {id} is already in use")))
            }
        }
    }

    /// Puts a cursor back; `false`: it was killed meanwhile.
    pub fn put_back(&self, id: i64, mut cursor: Cursor) -> bool {
        cursor.used = Instant::now();
        let mut cursors = self.0.lock();
        match cursors.get(&id) {
            Some(Slot::InUse { killed: false, .. }) => {
                cursors.insert(id, Slot::Waiting(Box::new(cursor)));
                true
            }
            _ => {
                cursors.remove(&id);
                false
            }
        }
    }

    /// A cursor that was taken has come to its end.
    pub fn finished(&self, id: i64) {
        self.0.lock().remove(&id);
    }

    /// Closes a cursor of a namespace; `false`: there is none.
    pub fn kill(&self, id: i64, namespace: &str) -> bool {
        let mut cursors = self.0.lock();
        match cursors.get_mut(&id) {
            Some(Slot::Waiting(cursor)) if cursor.namespace == namespace => cursors.remove(&id).is_some(),
            Some(Slot::InUse { namespace: own, killed }) if own == namespace => {
                !std::mem::replace(killed, true)
            }
            _ => false,
        }
    }

    /// Closes what sessions have opened, or of what a test knows the namespace.
    pub fn kill_where(&self, mut dead: impl FnMut(&Cursor) -> bool) {
        self.0.lock().retain(|_, slot| !matches!(slot, Slot::Waiting(cursor) if dead(cursor)));
    }
}
