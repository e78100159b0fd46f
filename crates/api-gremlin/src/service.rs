//! The Gremlin API to the server: a stream api (WebSocket) and an HTTP api (one script, one answer).

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri};
use orrery_api::{
    Answered, Attendant, ByteStream, Claim, Connection, HttpApi, Lengthy, StreamApi, StreamFuture,
};
use orrery_engine::Account;
use uuid::Uuid;

use crate::access::Authorizer;
use crate::config::GremlinConfig;
use crate::graph::cache::GraphCache;
use crate::graph::host::{HOST, host};
use crate::{http_script, upgrade, websocket};

/// Where scripts are posted to on a port that others share.
pub const HTTP_PATH: &str = "/gremlin";

/// What every connection uses.
pub struct Core {
    pub account: Arc<Account>,
    pub config: GremlinConfig,
    pub authorizer: Authorizer,
    pub lengthy: Lengthy,
    pub cache: Arc<GraphCache>,
}

impl Core {
    pub fn random_id(&self) -> Uuid {
        let env = self.account.env();
        let mut random = [0u8; 16];
        random[..8].copy_from_slice(&env.random_u64().to_le_bytes());
        random[8..].copy_from_slice(&env.random_u64().to_le_bytes());
        uuid::Builder::from_random_bytes(random).into_uuid()
    }

    /// Runs what may take long where that holds up nobody.
    pub fn lengthy<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let (mut work, mut result) = (Some(work), None);
        (self.lengthy)(&mut || result = work.take().map(|work| work()));
        result.expect("the server runs what it is given")
    }
}

/// The Gremlin API for one account.
pub struct GremlinService(Arc<Core>);

impl GremlinService {
    pub fn new(account: Arc<Account>, config: GremlinConfig, lengthy: Lengthy) -> GremlinService {
        let host = host(config.memory.clone(), config.memory_bytes);
        account.set_query_host(HOST, Arc::new(host));
        let authorizer = Authorizer::new(config.keys.clone(), account.number(), config.clock_skew_s);
        let cache = Arc::new(GraphCache::new(config.cache_bytes));
        GremlinService(Arc::new(Core { account, config, authorizer, lengthy, cache }))
    }
}

impl StreamApi for GremlinService {
    fn name(&self) -> &'static str {
        "gremlin"
    }

    fn claims(&self, first: &[u8]) -> Claim {
        upgrade::claim(first)
    }

    fn serve<'a>(
        &'a self,
        stream: Box<dyn ByteStream>,
        connection: Connection,
        attendant: Arc<dyn Attendant>,
    ) -> StreamFuture<'a> {
        Box::pin(websocket::serve(self.0.clone(), stream, connection, attendant))
    }
}

impl HttpApi for GremlinService {
    fn name(&self, _: &Uri) -> &'static str {
        "gremlin"
    }

    fn claims(&self, uri: &Uri) -> bool {
        uri.path().trim_end_matches('/') == HTTP_PATH
    }

    fn body_bytes_max(&self) -> usize {
        websocket::MESSAGE_BYTES_MAX
    }

    fn may_take_long(&self, _: &Method, _: &Uri, _: &HeaderMap) -> bool {
        true
    }

    async fn handle(&self, request: Request<Bytes>, connection: Connection) -> Answered {
        http_script::answer(&self.0, request, &connection)
    }
}
