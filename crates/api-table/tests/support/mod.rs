//! A client for tests: both APIs over one account in memory, with a clock that stands still, and requests signed as
//! clients sign them.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use http::{HeaderName, HeaderValue, Method, Request};
use orrery_api::{Connection, Either, HttpApi};
use orrery_api_nosql::{AccountKeys, CrossPartition, ScriptLimits, Service, ServiceConfig};
use orrery_api_table::{DialectChoice, TableConfig, TableKeys, TableService};
use orrery_budget::MemoryPool;
use orrery_engine::{Account, ConsistencyLevel, EngineConfig, Env, TestEnv, block_on};
use orrery_storage::MemoryStore;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;
use sha2::Sha256;

pub const ACCOUNT: &str = "orrery";
const PRIMARY: [u8; 32] = [1; 32];
const READ_ONLY: [u8; 32] = [3; 32];
/// 15 November 2023, 22:13:20.
const NOW_MS: u64 = 1_700_000_000_000;

pub struct Client {
    api: Either<TableService, Service>,
    env: Arc<TestEnv>,
}

/// Who signs, and how.
#[derive(Clone, Copy)]
#[allow(dead_code)] // Not every test uses all of them.
pub enum Signer<'a> {
    Key(&'a str),
    Lite,
    /// A shared access signature with these parameters.
    Sas(&'a str),
}

impl Client {
    pub fn new(config: &Value) -> Client {
        let env = Arc::new(TestEnv::new(NOW_MS, 7));
        let engine = EngineConfig {
            partition_throughput_limit: config["partition_throughput_limit"].as_u64().unwrap_or(10_000)
                as u32,
            throttling: (config["throttling"] == true).into(),
            ..EngineConfig::default()
        };
        let account =
            Account::open(Arc::new(MemoryStore::new()), engine, env.clone() as Arc<dyn Env>).unwrap();
        let keys = AccountKeys {
            primary: PRIMARY.to_vec(),
            primary_readonly: READ_ONLY.to_vec(),
            ..AccountKeys::default()
        };
        let nosql = ServiceConfig {
            scripts: ScriptLimits::default(),
            keys,
            consistency: ConsistencyLevel::Session,
            account_name: ACCOUNT.to_owned(),
            region: "Local".to_owned(),
            version: "test".to_owned(),
            auth_clock_skew_s: 900,
            query_page_time: orrery_api_nosql::QUERY_PAGE_TIME_DEFAULT,
            cross_partition: CrossPartition::Server,
            direct_mode: true,
            request_time: orrery_api_nosql::REQUEST_TIME_DEFAULT,
            memory: MemoryPool::unlimited(),
        };
        let table = TableConfig {
            account_name: ACCOUNT.to_owned(),
            keys: TableKeys { full: vec![PRIMARY.to_vec()], read_only: vec![READ_ONLY.to_vec()] },
            development: true,
            dialect: DialectChoice::Auto,
            clock_skew_s: 900,
            query_page_time: Duration::from_secs(5),
            request_time: Duration::from_secs(60),
            memory: MemoryPool::unlimited(),
        };
        let api = Either(TableService::new(account.clone(), table), Service::new(account, nosql));
        Client { api, env }
    }

    #[allow(dead_code)]
    pub fn advance_ms(&self, ms: u64) {
        self.env.advance_ms(ms);
    }

    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
        host: &str,
        signer: Signer<'_>,
    ) -> Reply {
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(self.env.now_ms()));
        let kind = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let kind = kind.map_or("", |(_, value)| value.as_str());
        let (mut path, mut authorization) = (path.to_owned(), None);
        let is_table = path.starts_with("/orrery") || path.starts_with("/devstoreaccount1");
        match signer {
            Signer::Key(name) => {
                let key = match name {
                    "primary" => Some(PRIMARY.to_vec()),
                    "read_only" => Some(READ_ONLY.to_vec()),
                    "development" => STANDARD.decode(orrery_api_table::DEVELOPMENT_KEY).ok(),
                    "wrong" => Some(vec![9; 32]),
                    _ => None,
                };
                authorization = key.map(|key| match is_table {
                    true => shared_key(&key, method, kind, &date, &path, false),
                    false => master_key(&key, method, &path, &date),
                });
            }
            Signer::Lite => authorization = Some(shared_key(&PRIMARY, method, kind, &date, &path, true)),
            Signer::Sas(parameters) => {
                let separator = if path.contains('?') { '&' } else { '?' };
                path = format!("{path}{separator}{parameters}&sig={}", sas(parameters));
            }
        }
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(&path)
            .header("host", host)
            .header("x-ms-version", if is_table { "2019-02-02" } else { "2020-07-15" })
            .header("x-ms-date", &date)
            .body(Bytes::from(body))
            .unwrap();
        if let Some(authorization) = authorization {
            request.headers_mut().insert("authorization", authorization.parse().unwrap());
        }
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            request.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
        }
        let address = ([127, 0, 0, 1], 8902).into();
        let connection =
            Connection { tls: false, local: address, peer: address, client: orrery_api::Client::Unknown };
        let (parts, body) = block_on(self.api.handle(request, connection)).response.into_parts();
        Reply { status: parts.status.as_u16(), headers: parts.headers, body }
    }
}

fn hmac(key: &[u8], text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

fn shared_key(key: &[u8], method: &str, kind: &str, date: &str, path: &str, lite: bool) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let account = path.split('/').nth(1).unwrap_or("").trim_end_matches("-secondary");
    let comp = query.split('&').find_map(|part| part.strip_prefix("comp="));
    let comp = comp.map(|comp| format!("?comp={comp}")).unwrap_or_default();
    let resource = format!("/{account}{path}{comp}");
    match lite {
        true => format!("SharedKeyLite {account}:{}", hmac(key, &format!("{date}\n{resource}"))),
        false => {
            format!("SharedKey {account}:{}", hmac(key, &format!("{method}\n\n{kind}\n{date}\n{resource}")))
        }
    }
}

/// The signature of parameters as they stand, encoded for an address.
fn sas(parameters: &str) -> String {
    let get = |name: &str| {
        let value = parameters.split('&').find_map(|part| part.strip_prefix(&format!("{name}=")));
        percent_decode_str(value.unwrap_or("")).decode_utf8_lossy().into_owned()
    };
    let lines = |names: &[&str]| names.iter().map(|name| get(name)).collect::<Vec<_>>().join("\n");
    let text = match get("tn").as_str() {
        "" => format!("{ACCOUNT}\n{}\n", lines(&["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"])),
        table => format!(
            "{}\n/table/{ACCOUNT}/{}\n{}",
            lines(&["sp", "st", "se"]),
            table.to_lowercase(),
            lines(&["si", "sip", "spr", "sv", "spk", "srk", "epk", "erk"])
        ),
    };
    utf8_percent_encode(&hmac(&PRIMARY, &text), NON_ALPHANUMERIC).to_string()
}

/// The signature of a name-based request of the NoSQL API.
fn master_key(key: &[u8], method: &str, path: &str, date: &str) -> String {
    let path = path.split('?').next().unwrap_or("");
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (kind, link) = match segments.len() {
        0 => ("", String::new()),
        n if n % 2 == 1 => (segments[n - 1], segments[..n - 1].join("/")),
        n => (segments[n - 2], segments.join("/")),
    };
    let text = format!("{}\n{kind}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
    let token = format!("type=master&ver=1.0&sig={}", hmac(key, &text));
    utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string()
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
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {:?} {}", self.status, self.headers, self.text())
    }
}
