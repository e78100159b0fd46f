//! A client for tests: signs requests and hands them to a service in the same process.

// Each test file is a program of its own and uses its own part of this.
#![allow(dead_code)]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use http::{HeaderName, HeaderValue, Method, Request};
use orrery_api::{Answered, Connection, HttpApi};
use orrery_api_nosql::{AccountKeys, CrossPartition, EMULATOR_KEY, Service, ServiceConfig};
pub use orrery_engine::block_on;
use orrery_engine::{Account, ConsistencyLevel, EngineConfig, Env, TestEnv};
use orrery_storage::{MemoryStore, Store};
use serde_json::Value;
use sha2::Sha256;

/// 15 November 2023, when the clock of a scenario starts.
const START_MS: u64 = 1_700_000_000_000;

pub struct Client {
    service: Service,
    account: Arc<Account>,
    config: ServiceConfig,
    env: Arc<TestEnv>,
    keys: AccountKeys,
}

impl Client {
    /// `config` may set `consistency`, `partition_throughput_limit`, `throttling`, `serverless`,
    /// `cross_partition_queries` and `seed`, which makes it another account.
    pub fn new(config: &Value) -> Client {
        Client::over(Arc::new(MemoryStore::new()), config)
    }

    /// The same over another store.
    pub fn over(store: Arc<dyn Store>, config: &Value) -> Client {
        let env = Arc::new(TestEnv::new(START_MS, config["seed"].as_u64().unwrap_or(7)));
        let flag = |name: &str| config[name].as_bool().unwrap_or(false);
        let mut engine = EngineConfig {
            throttling: flag("throttling").into(),
            serverless: flag("serverless"),
            ..EngineConfig::default()
        };
        if let Some(limit) = config["partition_throughput_limit"].as_u64() {
            engine.partition_throughput_limit = limit as u32;
        }
        let account = Account::open(store, engine, env.clone() as Arc<dyn Env>).unwrap();
        let keys = AccountKeys {
            primary: STANDARD.decode(EMULATOR_KEY).unwrap(),
            secondary: vec![2; 64],
            primary_readonly: vec![3; 64],
            secondary_readonly: vec![4; 64],
        };
        let consistency = config["consistency"].as_str().map_or(ConsistencyLevel::Session, |name| {
            ConsistencyLevel::parse(name).expect("a consistency level")
        });
        let cross_partition = match config["cross_partition_queries"].as_str() {
            Some("server") => CrossPartition::Server,
            _ => CrossPartition::Sdk,
        };
        let mut scripts = orrery_api_nosql::ScriptLimits::default();
        if let Some(seconds) = config["script_timeout_s"].as_u64() {
            scripts.time = Duration::from_secs(seconds);
        }
        let config = ServiceConfig {
            scripts,
            keys: keys.clone(),
            consistency,
            account_name: "orrery".to_owned(),
            region: "Local".to_owned(),
            version: "test".to_owned(),
            auth_clock_skew_s: 900,
            query_page_time: orrery_api_nosql::QUERY_PAGE_TIME_DEFAULT,
            cross_partition,
            direct_mode: true,
            request_time: orrery_api_nosql::REQUEST_TIME_DEFAULT,
            memory: orrery_budget::MemoryPool::unlimited(),
        };
        let service = Service::new(account.clone(), config.clone());
        Client { service, account, config, env, keys }
    }

    /// Another service over the same account: what was only in memory is gone.
    pub fn restart(&mut self) {
        self.service = Service::new(self.account.clone(), self.config.clone());
    }

    /// The direct protocol in front of the same account.
    pub fn direct(&self) -> orrery_api_nosql::DirectApi {
        orrery_api_nosql::DirectApi(Arc::new(Service::new(self.account.clone(), self.config.clone())))
    }

    pub fn now_s(&self) -> u64 {
        self.env.now_ms() / 1000
    }

    pub fn advance_ms(&self, ms: u64) {
        self.env.advance_ms(ms);
    }

    /// Signs and sends a request. `key` names who signs; an unknown name sends it unsigned.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
        key: &str,
    ) -> Reply {
        let (parts, body) = self.answer(self.request(method, path, headers, body, key)).into_parts();
        Reply { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub fn answer(&self, request: Request<Bytes>) -> http::Response<Bytes> {
        block_on(self.handled(request)).response
    }

    /// The service is asked with the connection that the request brings along.
    fn handled(&self, mut request: Request<Bytes>) -> impl Future<Output = Answered> {
        let connection = request.extensions_mut().remove::<Connection>().expect("put there by `request`");
        self.service.handle(request, connection)
    }

    /// Sends a request and goes away without waiting for the answer.
    pub fn leave(&self, request: Request<Bytes>, after: Duration) {
        let mut future = pin!(self.handled(request));
        let pending = future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        assert!(pending, "the answer was there at once");
        std::thread::sleep(after);
    }

    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
        key: &str,
    ) -> Request<Bytes> {
        let key = match key {
            "primary" => Some(&self.keys.primary),
            "secondary" => Some(&self.keys.secondary),
            "primary_readonly" => Some(&self.keys.primary_readonly),
            "secondary_readonly" => Some(&self.keys.secondary_readonly),
            _ => None,
        };
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(self.env.now_ms()));
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(path)
            .header("host", "localhost:8081")
            .header("x-ms-version", "2020-07-15")
            .header("x-ms-date", &date);
        if let Some(key) = key {
            request = request.header("authorization", sign(key, method, path, &date));
        }
        let mut request = request.body(Bytes::from(body)).unwrap();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            request.headers_mut().insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let address = "127.0.0.1:8081".parse().unwrap();
        request.extensions_mut().insert(Connection {
            tls: false,
            local: address,
            peer: address,
            client: orrery_api::Client::Unknown,
        });
        request
    }
}

/// The same request once more.
pub fn again(request: &Request<Bytes>) -> Request<Bytes> {
    let mut copy = Request::new(request.body().clone());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    copy
}

/// The signature of a name-based request.
fn sign(key: &[u8], method: &str, path: &str, date: &str) -> String {
    // Addresses are signed as what they are of.
    let path = match path.split_once("?$resolveFor=") {
        Some((_, of)) => of.split('&').next().unwrap_or(""),
        None => path.split('?').next().unwrap_or(""),
    };
    let decoded: Vec<String> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .map(|segment| percent_encoding::percent_decode_str(segment).decode_utf8_lossy().into_owned())
        .collect();
    let (kind, link) = match decoded.len() {
        0 => ("", String::new()),
        6 if decoded[5] == "partitionkeydelete" => ("colls", decoded[..4].join("/")),
        2 if decoded[0] == "offers" => ("offers", decoded[1].to_lowercase()),
        n if n % 2 == 1 => (decoded[n - 1].as_str(), decoded[..n - 1].join("/")),
        n => (decoded[n - 2].as_str(), decoded.join("/")),
    };
    let text = format!("{}\n{kind}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    let token = format!("type=master&ver=1.0&sig={}", STANDARD.encode(mac.finalize().into_bytes()));
    percent_encoding::utf8_percent_encode(&token, percent_encoding::NON_ALPHANUMERIC).to_string()
}

pub struct Reply {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: Bytes,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {}", self.status, self.headers, self.text())
    }
}
