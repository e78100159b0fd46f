//! Names of headers, and the answer that carries them.
//!
//! Constant values are static, values that depend on the configuration are made once per service, and the LSN is
//! written once and shared by the five headers that repeat it. `Answer` collects the headers of a success; an
//! `ApiError` is turned into one at the end of the request.

use std::cell::RefCell;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, PRAGMA};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use orrery_engine::Usage;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::session;
use crate::write::{push_charge, push_u64};

macro_rules! names {
    ($($name:ident = $text:literal;)*) => { $(pub const $name: HeaderName = HeaderName::from_static($text);)* };
}

// Requests.
names! {
    A_IM = "a-im";
    AUTOPILOT = "x-ms-cosmos-offer-autopilot-settings";
    BATCH_ATOMIC = "x-ms-cosmos-batch-atomic";
    BATCH_CONTINUE = "x-ms-cosmos-batch-continue-on-error";
    CONSISTENCY_LEVEL = "x-ms-consistency-level";
    CONTENT_FORMAT = "x-ms-documentdb-content-serialization-format";
    CONTINUATION_LIMIT = "x-ms-documentdb-responsecontinuationtokenlimitinkb";
    CUSTOM_USER_AGENT = "x-ms-useragent";
    DEGREE_OF_PARALLELISM = "x-orrery-degree-of-parallelism";
    END_EPK = "x-ms-end-epk";
    ENABLE_CROSS_PARTITION = "x-ms-documentdb-query-enablecrosspartition";
    EXPLAIN = "x-orrery-explain";
    EXPIRY_SECONDS = "x-ms-documentdb-expiry-seconds";
    INTENDED_RID = "x-ms-cosmos-intended-collection-rid";
    IS_BATCH = "x-ms-cosmos-is-batch-request";
    IS_PLAN = "x-ms-cosmos-is-query-plan-request";
    IS_QUERY = "x-ms-documentdb-isquery";
    IS_UPSERT = "x-ms-documentdb-is-upsert";
    MAX_ITEM_COUNT = "x-ms-max-item-count";
    MERGE = "x-orrery-merge";
    MIGRATE_TO_AUTOSCALE = "x-ms-cosmos-migrate-offer-to-autopilot";
    MIGRATE_TO_MANUAL = "x-ms-cosmos-migrate-offer-to-manual-throughput";
    OFFER_TYPE = "x-ms-offer-type";
    OFFER_THROUGHPUT = "x-ms-offer-throughput";
    PARALLELIZE = "x-ms-documentdb-query-parallelizecrosspartitionquery";
    PARTITION_KEY = "x-ms-documentdb-partitionkey";
    POPULATE_INDEX_METRICS = "x-ms-cosmos-populateindexmetrics";
    POPULATE_INDEX_METRICS_V2 = "x-ms-cosmos-populateindexmetrics-v2";
    POPULATE_METRICS = "x-ms-documentdb-populatequerymetrics";
    POPULATE_QUOTA = "x-ms-documentdb-populatequotainfo";
    POPULATE_STATISTICS = "x-ms-documentdb-populatepartitionstatistics";
    POST_TRIGGERS = "x-ms-documentdb-post-trigger-include";
    PREFER = "prefer";
    PRIORITY_LEVEL = "x-ms-cosmos-priority-level";
    PRE_TRIGGERS = "x-ms-documentdb-pre-trigger-include";
    READ_KEY_TYPE = "x-ms-read-key-type";
    SLUG = "slug";
    SCRIPT_LOGGING = "x-ms-documentdb-script-enable-logging";
    START_EPK = "x-ms-start-epk";
    THROUGHPUT_BUCKET = "x-ms-cosmos-throughput-bucket";
    SUPPORTED_FEATURES = "x-ms-cosmos-supported-query-features";
    SUPPORTED_FORMATS = "x-ms-cosmos-supported-serialization-formats";
    VERSION = "x-ms-version";
    X_MS_DATE = "x-ms-date";
}

// Requests and answers.
names! {
    ACTIVITY_ID = "x-ms-activity-id";
    CONTINUATION = "x-ms-continuation";
    RANGE_ID = "x-ms-documentdb-partitionkeyrangeid";
    SESSION_TOKEN = "x-ms-session-token";
}

// Answers.
names! {
    ALT_CONTENT_PATH = "x-ms-alt-content-path";
    CONTENT_PATH = "x-ms-content-path";
    GATEWAY_VERSION = "x-ms-gatewayversion";
    GLOBAL_COMMITTED_LSN = "x-ms-global-committed-lsn";
    INDEX_UTILIZATION = "x-ms-cosmos-index-utilization";
    INDEX_PROGRESS = "x-ms-documentdb-collection-index-transformation-progress";
    ITEM_COUNT = "x-ms-item-count";
    ITEM_LLSN = "x-ms-cosmos-item-llsn";
    ITEM_LSN = "x-ms-item-lsn";
    LLSN = "x-ms-cosmos-llsn";
    LSN = "lsn";
    MEDIA_STORAGE_MAX = "x-ms-max-media-storage-usage-mb";
    MEDIA_STORAGE_USAGE = "x-ms-media-storage-usage-mb";
    MIN_THROUGHPUT = "x-ms-cosmos-min-throughput";
    QUERY_EXECUTION_INFO = "x-ms-cosmos-query-execution-info";
    QUERY_METRICS = "x-ms-documentdb-query-metrics";
    QUORUM_ACKED_LLSN = "x-ms-cosmos-quorum-acked-llsn";
    QUORUM_ACKED_LSN = "x-ms-quorum-acked-lsn";
    REPLACE_PENDING = "x-ms-offer-replace-pending";
    REQUEST_CHARGE = "x-ms-request-charge";
    REQUEST_DURATION = "x-ms-request-duration-ms";
    RESOURCE_QUOTA = "x-ms-resource-quota";
    RESOURCE_USAGE = "x-ms-resource-usage";
    RETRY_AFTER_MS = "x-ms-retry-after-ms";
    SCHEMA_VERSION = "x-ms-schemaversion";
    SCRIPT_LOG = "x-ms-documentdb-script-log-results";
    SERVICE_VERSION = "x-ms-serviceversion";
    SUBSTATUS = "x-ms-substatus";
}

/// Which headers a request may have: a filter before its map. Handlers ask for two dozen headers of which a usual
/// request has two or three, and a look into the map hashes the whole name.
#[derive(Clone, Copy, Debug)]
pub struct Sent(u64);

impl Sent {
    pub fn of<'n>(names: impl Iterator<Item = &'n HeaderName>) -> Sent {
        Sent(names.fold(0, |bits, name| bits | bit(name)))
    }

    /// False when the header is certainly not there.
    pub fn may_have(self, name: &HeaderName) -> bool {
        self.0 & bit(name) != 0
    }
}

/// Names differ in length, in their last letter and in the middle more than at their front.
fn bit(name: &HeaderName) -> u64 {
    let name = name.as_str().as_bytes();
    let letter = |at: usize| name.get(at).map_or(0, |letter| usize::from(*letter));
    let mixed = 7 * name.len() + 3 * letter(name.len() / 2) + letter(name.len().wrapping_sub(1));
    1 << (mixed % 64)
}

/// Room for every header of an item answer without growing.
const HEADERS_CAPACITY: usize = 32;

const SCHEMA: HeaderValue = HeaderValue::from_static("1.21");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store, no-cache");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
const RANGE_ZERO: HeaderValue = HeaderValue::from_static("0");

/// What names and links may not hold in a header as they are.
const HEADER_UNSAFE: &AsciiSet = CONTROLS;

/// A header value from bytes that this server wrote. Bytes that no header may hold (they can only come from a name)
/// give an empty value instead of a failed request.
pub fn value(text: Vec<u8>) -> HeaderValue {
    HeaderValue::from_maybe_shared(Bytes::from(text)).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// A header value from text that may hold anything: what is not plain ASCII is percent-encoded.
pub fn text_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text)
        .ok()
        .filter(|_| text.is_ascii())
        .unwrap_or_else(|| value(utf8_percent_encode(text, HEADER_UNSAFE).to_string().into_bytes()))
}

/// Values of some dozens of answers share a block of this size.
const BLOCK_BYTES: usize = 4096;

/// A short value that is made for one answer. An answer has about ten of them: they are written one behind the other
/// into a block of the thread, which goes when the last answer that has a piece of it has gone.
pub fn short(write: impl FnOnce(&mut Vec<u8>)) -> HeaderValue {
    thread_local!(static ROOM: RefCell<(Vec<u8>, BytesMut)> = RefCell::default());
    ROOM.with_borrow_mut(|(text, block)| {
        text.clear();
        write(text);
        if block.capacity() < text.len() {
            *block = BytesMut::with_capacity(BLOCK_BYTES.max(text.len()));
        }
        block.extend_from_slice(text);
        let piece = block.split().freeze();
        HeaderValue::from_maybe_shared(piece).unwrap_or_else(|_| HeaderValue::from_static(""))
    })
}

pub fn number(value_to_write: u64) -> HeaderValue {
    short(|text| push_u64(text, value_to_write))
}

/// Where in the history of a partition an answer was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// `None` for the catalog, whose answers name no range.
    pub range: Option<u32>,
    pub lsn: u64,
    /// The change that wrote the item itself, on reads.
    pub item_lsn: Option<u64>,
    /// The position is one of the catalog: no session of a range.
    pub of_catalog: bool,
    /// What the partition held there, where the answer came from it.
    pub usage: Option<Usage>,
}

impl At {
    pub fn catalog(lsn: u64) -> At {
        At { range: None, lsn, item_lsn: None, of_catalog: true, usage: None }
    }

    /// The catalog too, in answers about a container, which name its first range.
    pub fn container(lsn: u64) -> At {
        At { of_catalog: true, ..At::range(0, lsn) }
    }

    pub fn range(range: u32, lsn: u64) -> At {
        At { range: Some(range), lsn, item_lsn: None, of_catalog: false, usage: None }
    }

    /// What a session has seen that gets this answer.
    ///
    /// Clients take the token of any answer about a container for one of its ranges. A position of the catalog would
    /// make them ask that range for changes that it will never have, so there it says that nothing was seen.
    pub fn seen(self) -> u64 {
        if self.of_catalog { 0 } else { self.lsn }
    }
}

/// Values that depend on the configuration, made once.
pub struct ServiceHeaders {
    gateway_version: HeaderValue,
    service_version: HeaderValue,
}

impl ServiceHeaders {
    pub fn new(version: &str) -> ServiceHeaders {
        let versioned = text_value(&format!("version={version}"));
        ServiceHeaders { gateway_version: versioned.clone(), service_version: versioned }
    }
}

/// An answer in the making. What every protocol says in a form of its own is kept as what it is; the rest is headers.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub charge_ru: f64,
    pub substatus: u32,
    /// Where in the history of a partition it was made; `None` where no partition was asked.
    pub at: Option<At>,
    /// Whether it tells a session what it has seen.
    pub tells_session: bool,
    /// What it is about lies in this container.
    pub owner: Option<Owner>,
    charged: bool,
}

/// The owner of what was asked for, by name and by rid.
pub struct Owner {
    pub alt_path: String,
    pub rid: String,
}

impl Answer {
    /// An answer of the gateway itself: no position, no charge.
    pub fn gateway(status: StatusCode, service: &ServiceHeaders) -> Answer {
        let mut headers = HeaderMap::with_capacity(HEADERS_CAPACITY);
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(GATEWAY_VERSION, service.gateway_version.clone());
        Answer {
            status,
            headers,
            body: Bytes::new(),
            charge_ru: 0.0,
            substatus: 0,
            at: None,
            tells_session: true,
            owner: None,
            charged: false,
        }
    }

    /// An answer of a partition or of the catalog.
    pub fn new(status: StatusCode, service: &ServiceHeaders) -> Answer {
        let mut answer = Answer::gateway(status, service);
        answer.headers.insert(SCHEMA_VERSION, SCHEMA);
        answer.headers.insert(SERVICE_VERSION, service.service_version.clone());
        answer
    }

    pub fn uncached(mut self) -> Answer {
        self.headers.insert(CACHE_CONTROL, NO_STORE);
        self.headers.insert(PRAGMA, NO_CACHE);
        self
    }

    pub fn set(mut self, name: HeaderName, value: HeaderValue) -> Answer {
        self.headers.insert(name, value);
        self
    }

    pub fn charge(mut self, charge_ru: f64) -> Answer {
        self.charge_ru = charge_ru;
        self.charged = true;
        self
    }

    pub fn etag(mut self, text: &str) -> Answer {
        self.headers.insert(ETAG, text_value(text));
        self
    }

    pub fn at(mut self, at: At) -> Answer {
        self.at = Some(at);
        self
    }

    fn write_position(&mut self, at: At, vector_sessions: bool) {
        let lsn = number(at.lsn);
        for name in [LLSN, GLOBAL_COMMITTED_LSN, QUORUM_ACKED_LSN, QUORUM_ACKED_LLSN] {
            self.headers.insert(name, lsn.clone());
        }
        self.headers.insert(LSN, lsn);
        if self.tells_session {
            let token = session::header(at.range.unwrap_or(0), at.seen(), vector_sessions);
            self.headers.insert(SESSION_TOKEN, token);
        }
        match at.range {
            Some(0) => self.headers.insert(RANGE_ID, RANGE_ZERO),
            Some(range) => self.headers.insert(RANGE_ID, number(u64::from(range))),
            None => None,
        };
        if let Some(item_lsn) = at.item_lsn {
            let item_lsn = number(item_lsn);
            self.headers.insert(ITEM_LSN, item_lsn.clone());
            self.headers.insert(ITEM_LLSN, item_lsn);
        }
    }

    /// The owner of what was asked for, by name and by rid.
    pub fn owner(mut self, alt_path: String, rid: &str) -> Answer {
        self.owner = Some(Owner { alt_path, rid: rid.to_owned() });
        self
    }

    pub fn count(self, items: usize) -> Answer {
        self.set(ITEM_COUNT, number(items as u64))
    }

    pub fn body(mut self, body: Vec<u8>) -> Answer {
        self.body = Bytes::from(body);
        self
    }

    /// The answer over HTTP. `vector_sessions`: whether its client knows session tokens of today's form.
    pub fn finish(
        mut self,
        activity: Option<&HeaderValue>,
        started: Instant,
        vector_sessions: bool,
    ) -> Response<Bytes> {
        if let Some(at) = self.at {
            self.write_position(at, vector_sessions);
        }
        if self.charged {
            let charge_ru = self.charge_ru;
            self.headers.insert(REQUEST_CHARGE, short(|text| push_charge(text, charge_ru)));
        }
        if let Some(owner) = &self.owner {
            self.headers.insert(ALT_CONTENT_PATH, text_value(&owner.alt_path));
            self.headers.insert(CONTENT_PATH, text_value(&owner.rid));
        }
        if let Some(activity) = activity {
            self.headers.insert(ACTIVITY_ID, activity.clone());
        }
        // Only answers that passed the gateway tell how long they took, as on the service.
        if self.headers.contains_key(SCHEMA_VERSION) {
            self.headers.insert(REQUEST_DURATION, duration(started));
        }
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// Milliseconds with three decimals.
fn duration(started: Instant) -> HeaderValue {
    let microseconds = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    let rest = microseconds % 1000;
    short(|text| {
        push_u64(text, microseconds / 1000);
        text.extend_from_slice(&[
            b'.',
            b'0' + (rest / 100) as u8,
            b'0' + (rest / 10 % 10) as u8,
            b'0' + (rest % 10) as u8,
        ]);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_an_answer_is_told_in_every_header_that_clients_read() {
        let service = ServiceHeaders::new("1");
        let at = At { item_lsn: Some(7), ..At::range(3, 42) };
        let answer = Answer::new(StatusCode::OK, &service).at(at).charge(1.0);
        let answer = answer.finish(None, Instant::now(), true);
        for (name, want) in [
            ("lsn", "42"),
            ("x-ms-session-token", "3:-1#42"),
            ("x-ms-item-lsn", "7"),
            ("x-ms-request-charge", "1"),
        ] {
            assert_eq!(answer.headers()[name], want, "{name}");
        }
        assert_eq!(answer.headers()["x-ms-documentdb-partitionkeyrangeid"], "3");
    }

    #[test]
    fn what_was_sent_is_never_taken_for_absent() {
        let names = [IS_UPSERT, IS_QUERY, SESSION_TOKEN, PARTITION_KEY, ETAG, LSN, PREFER, A_IM];
        for sent in 0..1 << names.len() {
            let chosen = names.iter().enumerate().filter(|(at, _)| sent >> at & 1 == 1);
            let headers: HeaderMap = chosen.map(|(_, name)| (name.clone(), NO_CACHE)).collect();
            let filter = Sent::of(headers.keys());
            assert!(headers.keys().all(|name| filter.may_have(name)), "{headers:?}");
        }
        let usual: HeaderMap = [(PARTITION_KEY, NO_CACHE), (IS_UPSERT, NO_CACHE)].into_iter().collect();
        let filter = Sent::of(usual.keys());
        let absent = [SESSION_TOKEN, CONSISTENCY_LEVEL, PRE_TRIGGERS, POST_TRIGGERS, PREFER, PRIORITY_LEVEL];
        assert!(absent.iter().filter(|name| filter.may_have(name)).count() <= 1, "it does filter");
    }

    #[test]
    fn short_values_stay_what_they_were_when_others_are_written() {
        let values: Vec<HeaderValue> = (0..5000).map(|n| number(n * 1_000_003)).collect();
        for (n, value) in values.iter().enumerate() {
            assert_eq!(value, &(n * 1_000_003).to_string());
        }
        let long = "x".repeat(3 * BLOCK_BYTES);
        assert_eq!(short(|text| text.extend_from_slice(long.as_bytes())), long);
        assert_eq!(short(|text| text.extend_from_slice(b"a\nb")), "", "nothing that no header may hold");
    }

    #[test]
    fn the_catalog_names_no_range() {
        let answer = Answer::new(StatusCode::OK, &ServiceHeaders::new("1")).at(At::catalog(5));
        let answer = answer.finish(None, Instant::now(), true);
        assert!(!answer.headers().contains_key(RANGE_ID));
        assert_eq!(answer.headers()[SESSION_TOKEN], "0:-1#0");
    }

    #[test]
    fn names_outside_ascii_are_encoded_in_headers() {
        assert_eq!(text_value("dbs/你"), "dbs/%E4%BD%A0");
        assert_eq!(text_value("dbs/a b"), "dbs/a b");
        assert_eq!(text_value("a\nb"), "a%0Ab");
    }
}
