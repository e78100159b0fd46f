//! Commands: one table, and what is done around each of them.
//!
//! ```text
//! request ── name ── who may ── session, transaction ── fail point, fault rule ── run ── labels, times ── reply
//! ```

mod aggregate;
mod bulk_write;
mod change_stream;
mod collections;
mod concerns;
mod cosmos;
mod create;
mod cursor;
mod databases;
mod delete;
mod describe;
mod difference;
mod explain;
mod find;
mod find_and_modify;
mod handshake;
mod hidden;
mod index_policy;
mod indexes;
pub(crate) mod insert;
mod lineage;
pub(crate) mod options;
mod resume_token;
mod run;
mod server_info;
mod sessions;
mod table;
pub mod text;
mod unique;
mod update;
mod users;
mod validation;

use std::net::SocketAddr;
use std::sync::Arc;

use orrery_api::Connection;
use orrery_mongo::{Bson, Context, Document, Error, Result, error::code};
use parking_lot::Mutex;

use crate::auth::{Access, Conversation, Identity};
use crate::collection::past::Moment;
use crate::collection::transaction::Transaction;
use crate::collection::{Collection, Scope, Spent};
use crate::control::Control;
use crate::reply::Reply;
use crate::service::Core;
use crate::sessions::SessionId;
use crate::wire::Compressor;

pub use run::{Outcome, Place, Prepared, prepare, refusal, run};
pub use table::TABLE;

/// One command.
pub struct Command {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub access: Access,
    /// Whether it may be part of a transaction.
    pub in_transactions: bool,
    /// Whether it is part of version 1 of the stable API.
    pub stable: bool,
    pub work: Work,
    /// What it does, for the documentation.
    pub about: &'static str,
    pub run: fn(&mut Call<'_>) -> Result<Reply>,
}

/// How much a command may have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing that could take long or wait.
    Little,
    /// It waits for the store, or reads what there is.
    Much,
}

/// What is known of a connection.
pub struct Client {
    pub number: i32,
    pub peer: SocketAddr,
    pub local: SocketAddr,
    pub alive: orrery_api::Client,
    pub app_name: Option<Arc<str>>,
    /// The client has described itself, which it may do once.
    pub described: bool,
    pub identity: Option<Identity>,
    pub conversation: Option<Conversation>,
    pub compressors: Vec<Compressor>,
    pub last: LastCommand,
}

/// What `getLastRequestStatistics` tells.
#[derive(Clone, Default)]
pub struct LastCommand {
    pub name: &'static str,
    pub charge_ru: f64,
    pub took_ms: f64,
}

impl Client {
    pub fn new(number: i32, connection: &Connection) -> Client {
        Client {
            number,
            peer: connection.peer,
            local: connection.local,
            alive: connection.client.clone(),
            app_name: None,
            described: false,
            identity: None,
            conversation: None,
            compressors: Vec::new(),
            last: LastCommand::default(),
        }
    }
}

/// A command that runs.
pub struct Call<'c> {
    pub core: &'c Arc<Core>,
    pub client: &'c mut Client,
    pub command: &'static Command,
    pub body: &'c Document,
    pub database: &'c str,
    pub session: Option<SessionId>,
    pub transaction: Option<Arc<Mutex<Transaction>>>,
    pub txn_number: Option<i64>,
    /// The moment that a session reads, and its time.
    pub moment: Option<((u32, u32), Arc<Moment>)>,
    pub control: &'c Arc<Control>,
    pub spent: &'c Arc<Spent>,
    /// When the command was first run, of one that waits.
    pub waited: std::time::Duration,
    /// The reply is the first of several that nobody asks for one by one.
    pub streams: bool,
    /// There is more to be had, of a command that may answer several times.
    pub more: bool,
}

impl Call<'_> {
    /// What the first member says: the collection, for most commands.
    pub fn argument(&self) -> &Bson {
        self.body.first().map_or(&Bson::Null, |(_, value)| value)
    }

    /// The collection that the command is about.
    pub fn collection_name(&self) -> Result<&str> {
        match self.argument() {
            Bson::String(name) if !name.is_empty() => {
                if name.contains('\0') {
                    return Err(Error::new(
                        code::INVALID_NAMESPACE,
                        "namespaces cannot have embedded null characters",
                    ));
                }
                Ok(name)
            }
            Bson::String(_) => Err(Error::new(
                code::INVALID_NAMESPACE,
                format!("Invalid namespace specified '{}.'", self.database),
            )),
            other => Err(Error::new(
                code::INVALID_NAMESPACE,
                format!("collection name has invalid type {}", other.kind().name()),
            )),
        }
    }

    pub fn scope(&self) -> Scope {
        let transaction = match (&self.session, &self.transaction) {
            (Some(session), Some(transaction)) => Some((*session, transaction.clone())),
            _ => None,
        };
        let moment = match (&self.moment, &transaction) {
            (Some((_, moment)), _) => Some(moment.clone()),
            (None, Some((_, open))) => open.lock().moment.clone(),
            (None, None) => None,
        };
        Scope { core: self.core.clone(), spent: self.spent.clone(), transaction, moment }
    }

    pub fn collection(&self, name: &str) -> Result<Option<Collection>> {
        self.core.catalog.collection(self.core, self.database, name)
    }

    /// What filters, updates and expressions are given, with the variables of `let` and the collation of the command.
    pub fn context(&self, collation: Option<&Document>) -> Result<Context> {
        options::context(self, collation)
    }
}
