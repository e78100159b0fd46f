//! The MongoDB API to the server: a stream api, on a port of its own and, by its first bytes, on the shared one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use orrery_api::{
    Answered, Attendant, ByteStream, Claim, Connection, HttpApi, Lengthy, StreamApi, StreamFuture, Summary,
};
use orrery_engine::Account;
use orrery_mongo::Document;
use parking_lot::Mutex;

use crate::auth::Authenticator;
use crate::catalog::Catalog;
use crate::collection::host::{HOST, host};
use crate::collection::past::Moments;
use crate::collection::rules;
use crate::collection::transaction::Transaction;
use crate::config::MongoConfig;
use crate::cursors::Cursors;
use crate::failpoints::FailPoints;
use crate::operations::Operations;
use crate::over_http::{self, SigningKeys};
use crate::recent::Recent;
use crate::sessions::Sessions;
use crate::{connection, wire};

/// By the numbers of a database and a container.
type IndexLocks = HashMap<(u32, u32), Arc<Mutex<()>>>;

/// By database and collection: the transaction that has made it.
type Hidden = HashMap<(String, String), Weak<Mutex<Transaction>>>;

/// What every connection uses.
pub struct Core {
    pub account: Arc<Account>,
    pub config: MongoConfig,
    pub lengthy: Lengthy,
    pub authenticator: Authenticator,
    pub signing_keys: SigningKeys,
    pub catalog: Catalog,
    pub cursors: Cursors,
    pub sessions: Sessions,
    pub fail_points: FailPoints,
    pub operations: Operations,
    pub clock: Clock,
    /// One for each container whose indexes change.
    pub index_locks: Mutex<IndexLocks>,
    pub started: Instant,
    pub counts: Counts,
    /// Somebody has opened a change stream: new containers keep what these need.
    pub watched: AtomicBool,
    /// What change streams want to know beside the feed.
    pub recent: Recent,
    /// Moments that sessions read.
    pub moments: Moments,
    /// Collections that transactions under way have made.
    pub hidden: Mutex<Hidden>,
}

/// How often what was asked, for `serverStatus`.
#[derive(Default)]
pub struct Counts {
    pub connections: AtomicU64,
    pub connections_ever: AtomicI32,
    pub requests: AtomicU64,
    pub inserts: AtomicU64,
    pub queries: AtomicU64,
    pub updates: AtomicU64,
    pub deletes: AtomicU64,
    pub get_mores: AtomicU64,
    pub commands: AtomicU64,
}

/// The time of the cluster: seconds, and a count within the second. Never goes back.
#[derive(Default)]
pub struct Clock(AtomicU64);

impl Clock {
    /// The present time, later than any before.
    pub fn tick(&self, now_s: u32) -> (u32, u32) {
        let least = u64::from(now_s) << 32 | 1;
        let next = |last: u64| Some((last + 1).max(least));
        let last = self.0.fetch_update(Relaxed, Relaxed, next).unwrap_or_default();
        split((last + 1).max(least))
    }

    pub fn now(&self, now_s: u32) -> (u32, u32) {
        split(self.0.load(Relaxed).max(u64::from(now_s) << 32 | 1))
    }

    /// Another member has seen this time; a client carries it here.
    pub fn seen(&self, time: (u32, u32)) {
        self.0.fetch_max(u64::from(time.0) << 32 | u64::from(time.1), Relaxed);
    }
}

fn split(time: u64) -> (u32, u32) {
    ((time >> 32) as u32, time as u32)
}

impl Core {
    /// Runs what may take long where that holds up nobody.
    pub fn lengthy<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let (mut work, mut result) = (Some(work), None);
        (self.lengthy)(&mut || result = work.take().map(|work| work()));
        result.expect("the server runs what it is given")
    }

    pub fn now_ms(&self) -> i64 {
        i64::try_from(self.account.env().now_ms()).unwrap_or(i64::MAX)
    }

    pub fn cluster_time(&self) -> (u32, u32) {
        self.clock.now(self.account.env().now_s())
    }

    /// An object id as drivers make them: the second, a number of the process, a count.
    pub fn new_object_id(&self) -> [u8; 12] {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut id = [0; 12];
        id[..4].copy_from_slice(&self.account.env().now_s().to_be_bytes());
        let process = (u64::from(std::process::id()) << 16 ^ u64::from(self.account.number())).to_be_bytes();
        id[4..9].copy_from_slice(&process[3..]);
        id[9..].copy_from_slice(&COUNT.fetch_add(1, Relaxed).to_be_bytes()[5..]);
        id
    }

    /// Tells change streams of a change of a collection.
    pub fn changed(&self, database: &str, collection: &str, kind: &'static str, description: Document) {
        if self.watched.load(Relaxed) {
            self.recent.changed(database, collection, kind, description, self.account.env().now_s());
        }
    }

    pub fn random_u64(&self) -> u64 {
        self.account.env().random_u64()
    }
}

/// The MongoDB API for one account.
pub struct MongoService(Arc<Core>);

/// Lets an account read the rules of this api: everybody who opens one with collections needs them.
pub fn register_rules(account: &Account) {
    account.set_rule_host(rules::HOST, Arc::new(rules::IndexRules));
}

impl MongoService {
    pub fn new(account: Arc<Account>, config: MongoConfig, lengthy: Lengthy) -> MongoService {
        let host = host(config.memory.clone(), config.memory_bytes);
        account.set_query_host(HOST, Arc::new(host));
        register_rules(&account);
        let authenticator = Authenticator::new(&config, account.env().random_u64());
        let signing_keys = SigningKeys::new(&config.keys, config.clock_skew_s);
        // Streams that are resumed behind a restart follow what has been written until they come.
        let watched = account
            .databases()
            .iter()
            .flat_map(|database| database.containers())
            .any(|one| one.keeps_versions());
        MongoService(Arc::new(Core {
            account,
            config,
            lengthy,
            authenticator,
            signing_keys,
            catalog: Catalog::default(),
            cursors: Cursors::default(),
            sessions: Sessions::default(),
            fail_points: FailPoints::default(),
            operations: Operations::default(),
            clock: Clock::default(),
            index_locks: Mutex::default(),
            started: Instant::now(),
            counts: Counts::default(),
            watched: AtomicBool::new(watched),
            recent: Recent::default(),
            moments: Moments::default(),
            hidden: Mutex::default(),
        }))
    }
}

#[cfg(test)]
impl MongoService {
    pub(crate) fn core(&self) -> Arc<Core> {
        self.0.clone()
    }
}

impl StreamApi for MongoService {
    fn name(&self) -> &'static str {
        "mongo"
    }

    fn claims(&self, first: &[u8]) -> Claim {
        wire::claim(first)
    }

    fn serve<'a>(
        &'a self,
        stream: Box<dyn ByteStream>,
        connection: Connection,
        attendant: Arc<dyn Attendant>,
    ) -> StreamFuture<'a> {
        Box::pin(connection::serve(self.0.clone(), stream, connection, attendant))
    }
}

/// Somebody has come to the port with a browser.
const OVER_HTTP: &str = "This is the port of the MongoDB API, which speaks MongoDB's own protocol and not HTTP. Connect with a driver or mongosh.\n";

impl HttpApi for MongoService {
    fn name(&self, _: &Uri) -> &'static str {
        "mongo"
    }

    /// On a port that is shared with others.
    fn claims(&self, uri: &Uri) -> bool {
        over_http::claims(uri)
    }

    fn body_bytes_max(&self) -> usize {
        over_http::BODY_BYTES_MAX
    }

    fn may_take_long(&self, _: &Method, uri: &Uri, _: &HeaderMap) -> bool {
        over_http::claims(uri)
    }

    fn refuse_head(&self, head: &Parts, _: &Connection) -> Option<Answered> {
        match over_http::claims(&head.uri) {
            true => over_http::refuse_head(&self.0, &head.method, &head.headers),
            false => Some(not_http()),
        }
    }

    async fn handle(&self, request: Request<Bytes>, connection: Connection) -> Answered {
        match over_http::claims(request.uri()) {
            true => over_http::answer(&self.0, request, &connection).await,
            false => not_http(),
        }
    }
}

fn not_http() -> Answered {
    let mut response = Response::new(Bytes::from_static(OVER_HTTP.as_bytes()));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    Answered::new(response, Summary::of("over_http"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_cluster_never_goes_back() {
        let clock = Clock::default();
        assert_eq!(clock.tick(100), (100, 1));
        assert_eq!(clock.tick(100), (100, 2));
        assert_eq!(clock.tick(99), (100, 3));
        clock.seen((200, 7));
        assert_eq!(clock.now(101), (200, 7));
        assert_eq!(clock.tick(201), (201, 1));
    }
}
