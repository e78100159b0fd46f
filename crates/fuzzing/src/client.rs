//! A service in the same process, with a clock that stands still, and requests to it that are signed.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use orrery_api::{Connection, HttpApi};
use orrery_api_nosql::{
    AccountKeys, CrossPartition, EMULATOR_KEY, QUERY_PAGE_TIME_DEFAULT, REQUEST_TIME_DEFAULT, ScriptLimits,
    Service, ServiceConfig,
};
use orrery_budget::MemoryPool;
use orrery_engine::{Account, ConsistencyLevel, EngineConfig, Env, TestEnv, block_on};
use orrery_storage::MemoryStore;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha2::Sha256;

/// 15 November 2023.
const NOW_MS: u64 = 1_700_000_000_000;
/// Small, so that an input that wants much is refused rather than slow.
const MEMORY_BYTES: usize = 64 * 1024 * 1024;

pub struct Client {
    service: Service,
    key: Vec<u8>,
}

impl Client {
    /// An account with a database `d`, a container `c` of two partitions in it, and a few items.
    pub fn new(cross_partition: CrossPartition) -> Client {
        let env = Arc::new(TestEnv::new(NOW_MS, 7));
        let engine = EngineConfig { partition_throughput_limit: 400, ..EngineConfig::default() };
        let account = Account::open(Arc::new(MemoryStore::new()), engine, env as Arc<dyn Env>);
        let key = STANDARD.decode(EMULATOR_KEY).expect("a constant");
        let keys = AccountKeys {
            primary: key.clone(),
            secondary: vec![2; 64],
            primary_readonly: vec![3; 64],
            secondary_readonly: vec![4; 64],
        };
        let scripts = ScriptLimits { time: Duration::from_millis(50), ..ScriptLimits::default() };
        let config = ServiceConfig {
            scripts,
            keys,
            consistency: ConsistencyLevel::Session,
            account_name: "orrery".to_owned(),
            region: "Local".to_owned(),
            version: "fuzzing".to_owned(),
            auth_clock_skew_s: 900,
            query_page_time: QUERY_PAGE_TIME_DEFAULT,
            cross_partition,
            direct_mode: true,
            request_time: REQUEST_TIME_DEFAULT,
            memory: MemoryPool::new(MEMORY_BYTES),
        };
        let client = Client { service: Service::new(account.expect("an empty store opens"), config), key };
        client.expect(201, "POST", "/dbs", &[], r#"{"id":"d"}"#);
        let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
        client.expect(201, "POST", "/dbs/d/colls", &[("x-ms-offer-throughput", "800")], container);
        for number in 0..8 {
            let pk = format!("[\"{}\"]", number % 3);
            let body =
                format!(r#"{{"id":"{number}","pk":"{}","n":{number},"a":[1,2,{number}]}}"#, number % 3);
            client.expect(
                201,
                "POST",
                "/dbs/d/colls/c/docs",
                &[("x-ms-documentdb-partitionkey", &pk)],
                &body,
            );
        }
        client
    }

    fn expect(&self, status: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let reply = self.send(method, path, &map(headers), body.as_bytes()).expect("a good request");
        assert_eq!(reply.status().as_u16(), status, "{method} {path}: {:?}", reply.body());
    }

    /// Signs and sends a request; none where no HTTP library would pass it on.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Option<Response<Bytes>> {
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(NOW_MS));
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).ok()?)
            .uri(path)
            .header("host", "localhost:8081")
            .header("x-ms-version", "2020-07-15")
            .header("x-ms-date", &date)
            .header("authorization", self.sign(method, path, &date))
            .body(Bytes::copy_from_slice(body))
            .ok()?;
        for (name, value) in headers {
            request.headers_mut().insert(name, value.clone());
        }
        let address = ([127, 0, 0, 1], 8081).into();
        let connection =
            Connection { tls: false, local: address, peer: address, client: orrery_api::Client::Unknown };
        Some(block_on(self.service.handle(request, connection)).response)
    }

    /// The signature of a name-based request.
    fn sign(&self, method: &str, path: &str, date: &str) -> String {
        let path = path.split('?').next().unwrap_or("");
        let decoded: Vec<String> = path
            .split('/')
            .filter(|segment| !segment.is_empty())
            .map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned())
            .collect();
        let (kind, link) = match decoded.len() {
            0 => ("", String::new()),
            count if count % 2 == 1 => (decoded[count - 1].as_str(), decoded[..count - 1].join("/")),
            count => (decoded[count - 2].as_str(), decoded.join("/")),
        };
        let text = format!("{}\n{kind}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("any length is a key");
        mac.update(text.as_bytes());
        let token = format!("type=master&ver=1.0&sig={}", STANDARD.encode(mac.finalize().into_bytes()));
        utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string()
    }
}

/// Headers, without those that HTTP does not allow.
pub fn map(headers: &[(&str, &str)]) -> HeaderMap {
    let pairs = headers.iter().filter_map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_bytes(value.as_bytes()).ok()?))
    });
    pairs.collect()
}

/// Whatever was sent, the server must have found an answer and said it properly.
pub fn check(reply: &Response<Bytes>) {
    let status = reply.status().as_u16();
    assert!(status < 500 || status == 503, "{status}: {}", String::from_utf8_lossy(reply.body()));
    if status >= 400 && !reply.body().is_empty() {
        let error: serde_json::Value = serde_json::from_slice(reply.body()).expect("errors are JSON");
        assert!(error["code"].is_string(), "{status} without a code: {error}");
    }
}
