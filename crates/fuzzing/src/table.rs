//! Bytes as what clients of the Table API send: filters, batches, addresses, whole requests.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use http::{HeaderName, HeaderValue, Method, Request};
use orrery_api::{Connection, HttpApi};
use orrery_api_table::{DialectChoice, TableConfig, TableKeys, TableService, fuzzing};
use orrery_budget::MemoryPool;
use orrery_engine::{Account, EngineConfig, Env, TestEnv, block_on};
use orrery_storage::MemoryStore;
use sha2::Sha256;

const NOW_MS: u64 = 1_700_000_000_000;
const KEY: [u8; 32] = [1; 32];
const MEMORY_BYTES: usize = 64 * 1024 * 1024;
/// After so many requests the account is made anew: what they left behind adds up.
const REQUESTS_PER_ACCOUNT: u32 = 2_000;

thread_local! {
    static SERVICE: RefCell<Option<(TableService, u32)>> = const { RefCell::new(None) };
}

pub fn filter(input: &[u8]) {
    fuzzing::filter(&String::from_utf8_lossy(input));
}

pub fn batch(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let body = input.get(end + 1..).unwrap_or(&[]);
    fuzzing::batch(&String::from_utf8_lossy(&input[..end]), body);
}

pub fn address(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (path, query) = text.split_once('\n').unwrap_or((&text, ""));
    fuzzing::address(path, query);
}

pub fn request(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    fuzzing::entity(body.as_bytes());
    fuzzing::xml(body);
    let mut lines = head.lines();
    let Some((method, path)) = lines.next().and_then(|line| line.split_once(' ')) else { return };
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    SERVICE.with_borrow_mut(|service| {
        let (open, count) = service.get_or_insert_with(|| (made(), 0));
        send(open, method, path, &headers, body.as_bytes());
        *count += 1;
        if *count == REQUESTS_PER_ACCOUNT {
            *service = None;
        }
    });
}

/// An account with a table `t` of two partitions and a few entities.
fn made() -> TableService {
    let env = Arc::new(TestEnv::new(NOW_MS, 7));
    let engine = EngineConfig { partition_throughput_limit: 400, ..EngineConfig::default() };
    let account = Account::open(Arc::new(MemoryStore::new()), engine, env as Arc<dyn Env>);
    let config = TableConfig {
        account_name: "orrery".to_owned(),
        keys: TableKeys { full: vec![KEY.to_vec()], read_only: Vec::new() },
        development: true,
        dialect: DialectChoice::Auto,
        clock_skew_s: 900,
        query_page_time: Duration::from_secs(5),
        request_time: Duration::from_secs(60),
        memory: MemoryPool::new(MEMORY_BYTES),
    };
    let service = TableService::new(account.expect("an empty store opens"), config);
    let offer = [("x-ms-offer-throughput", "800")];
    assert_eq!(send(&service, "POST", "/orrery/Tables", &offer, br#"{"TableName":"t"}"#), Some(201));
    for number in 0..6 {
        let body = format!(r#"{{"PartitionKey":"p{}","RowKey":"{number}","N":{number}}}"#, number % 2);
        assert_eq!(send(&service, "POST", "/orrery/t", &[], body.as_bytes()), Some(201));
    }
    service
}

/// Signs and sends a request; none where no HTTP library would pass it on.
fn send(
    service: &TableService,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Option<u16> {
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(NOW_MS));
    let mut request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).ok()?)
        .uri(path)
        .header("host", "localhost:8902")
        .header("x-ms-date", &date)
        .body(Bytes::copy_from_slice(body))
        .ok()?;
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value))
        {
            request.headers_mut().insert(name, value);
        }
    }
    let kind =
        request.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or("").to_owned();
    let uri = request.uri().clone();
    let comp = uri.query().and_then(|query| query.split('&').find_map(|part| part.strip_prefix("comp=")));
    let comp = comp.map(|comp| format!("?comp={comp}")).unwrap_or_default();
    let text = format!("{method}\n\n{kind}\n{date}\n/orrery{}{comp}", uri.path());
    let mut mac = Hmac::<Sha256>::new_from_slice(&KEY).expect("any key will do");
    mac.update(text.as_bytes());
    let signature = format!("SharedKey orrery:{}", STANDARD.encode(mac.finalize().into_bytes()));
    request.headers_mut().entry("authorization").or_insert(signature.parse().ok()?);
    let address = ([127, 0, 0, 1], 8902).into();
    let connection =
        Connection { tls: false, local: address, peer: address, client: orrery_api::Client::Unknown };
    let response = block_on(service.handle(request, connection)).response;
    let status = response.status().as_u16();
    let defect = status == 500 && !String::from_utf8_lossy(response.body()).contains("InternalServerError");
    assert!(!defect, "{method} {path}: {:?}", response.body());
    Some(status)
}
