//! One command by one request, for clients that cannot open a socket, as the pages of the portal.
//!
//! ```text
//! POST /_orrery/mongo   {"find": "orders", "filter": {"total": {"$gt": 5}}, "$db": "shop"}
//! 200                   {"cursor": {"firstBatch": [{"_id": {"$oid": "…"}, "total": {"$numberInt": "7"}}], …}, "ok": …}
//! ```
//!
//! Commands and replies are Extended JSON, replies in its canonical form, so that every value keeps its type. The
//! request is signed as those of the REST API are; a key that only reads may only read here too. Cursors and sessions
//! live as long as elsewhere: `getMore` is one more request.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac as _};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use orrery_api::{Answered, Connection, Summary};
use orrery_budget::Budget;
use orrery_engine::AccountKeys;
use orrery_engine::access::KeySlot;
use orrery_mongo::{Error, Result, ValueRef, codec, error::code, ext_json};
use percent_encoding::percent_decode_str;
use sha2::Sha256;

use crate::auth::Identity;
use crate::commands::{self, Client, Outcome};
use crate::config::AuthMode;
use crate::connection;
use crate::reply::{Reply, of_error};
use crate::service::Core;
use crate::wire;

const PATH: &str = "/_orrery/mongo";
/// What is signed, between the verb and the date.
const SIGNED: &str = "_orrery\n_orrery/mongo";
/// Commands with more than this come by a driver.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Extended JSON says the type of every value.
const TEXT_BYTES_PER_BYTE: usize = 8;
const X_MS_DATE: &str = "x-ms-date";
const X_MS_REQUEST_CHARGE: &str = "x-ms-request-charge";

/// Whether a request is a command.
pub fn claims(uri: &Uri) -> bool {
    uri.path() == PATH
}

/// The account's keys, ready to sign.
pub struct SigningKeys {
    keys: Vec<(KeySlot, Hmac<Sha256>)>,
    skew_s: u64,
}

impl SigningKeys {
    pub fn new(keys: &AccountKeys, skew_s: u64) -> SigningKeys {
        let signing = |(slot, key)| Hmac::new_from_slice(key).ok().map(|key| (slot, key));
        SigningKeys { keys: keys.present().filter_map(signing).collect(), skew_s }
    }

    /// The key that signed a request, if it is one of these and the request is of now.
    fn signer(&self, method: &Method, headers: &HeaderMap, now_ms: u64) -> Option<KeySlot> {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let (token, date) = (header(AUTHORIZATION.as_str())?, header(X_MS_DATE)?);
        let made_s = seconds_of(date)?;
        let token = percent_decode_str(token).decode_utf8().ok()?;
        let signature = STANDARD.decode(token.strip_prefix("type=master&ver=1.0&sig=")?).ok()?;
        let text =
            format!("{}\n{SIGNED}\n{}\n\n", method.as_str().to_ascii_lowercase(), date.to_ascii_lowercase());
        let made =
            |key: &Hmac<Sha256>| key.clone().chain_update(text.as_bytes()).verify_slice(&signature).is_ok();
        // Every key is tried, whichever it is.
        let signer =
            self.keys.iter().fold(None, |found, (slot, key)| if made(key) { Some(*slot) } else { found });
        signer.filter(|_| made_s.abs_diff(now_ms / 1_000) <= self.skew_s)
    }
}

fn seconds_of(text: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(text).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// Who asks; `None` where nobody has to say.
fn identity(core: &Core, method: &Method, headers: &HeaderMap) -> Result<Option<Identity>> {
    if core.config.auth == AuthMode::Off {
        return Ok(None);
    }
    // Dates of signatures are the machine's, wherever a test has moved the clock.
    let env = core.account.env();
    let now_ms = env.now_ms().saturating_sub(env.moved_ms());
    match core.signing_keys.signer(method, headers, now_ms) {
        Some(slot) => Ok(Some(core.authenticator.of_key(slot))),
        None => Err(Error::new(
            code::UNAUTHORIZED,
            "The request is not signed with a key of the account, or was signed long ago: POST, type _orrery, link \
             _orrery/mongo.",
        )),
    }
}

/// Refuses a request that nobody has signed, before its body is waited for.
pub fn refuse_head(core: &Core, method: &Method, headers: &HeaderMap) -> Option<Answered> {
    identity(core, method, headers).err().map(|error| refused(&error))
}

pub async fn answer(core: &Arc<Core>, request: Request<Bytes>, connection: &Connection) -> Answered {
    let (head, body) = request.into_parts();
    let asked = || {
        let identity = identity(core, &head.method, &head.headers)?;
        if head.method != Method::POST {
            return Err(Error::bad_value("A command comes by POST, as Extended JSON."));
        }
        let text = std::str::from_utf8(&body).map_err(|_| Error::failed_to_parse("not UTF-8"))?;
        Ok((identity, ext_json::parse_document(text, ext_json::Reading::Query)?))
    };
    let (identity, body) = match asked() {
        Ok(asked) => asked,
        Err(error) => return refused(&error),
    };
    let mut client = Client::new(0, connection);
    client.identity = identity;
    let request =
        wire::Request { request_id: 0, body, database: None, legacy: false, flags: 0, compressor: None };
    let mut prepared = commands::prepare(core, &mut client, request);
    if let Some(pause) = prepared.pause() {
        tokio::time::sleep(pause).await;
    }
    let outcome = connection::answer(core, &mut client, &mut prepared).await;
    // A reply as text, and as the document that it is made from, take several times its bytes.
    let budget = Budget::new(core.config.memory.clone());
    match budget.hold(outcome.reply.len().saturating_mul(TEXT_BYTES_PER_BYTE)) {
        Ok(_held) => respond(outcome),
        Err(exceeded) => refused(&Error::new(
            code::EXCEEDED_MEMORY_LIMIT,
            format!(
                "The reply is too large for one answer over HTTP ({exceeded}): ask for fewer documents at a time."
            ),
        )),
    }
}

fn refused(error: &Error) -> Answered {
    let status = if error.code == code::UNAUTHORIZED { 401 } else { 400 };
    let reply = Reply::Document(of_error(error, &[])).write(&orrery_mongo::Document::new());
    let summary = Summary::of("over_http");
    respond(Outcome { reply, summary, status, hangs_up: false, more: false, packs: false })
}

fn respond(outcome: Outcome) -> Answered {
    let Outcome { reply, summary, status, .. } = outcome;
    let mut text = String::with_capacity(reply.len() * 2);
    match codec::read_document(&reply) {
        Ok(document) => {
            ext_json::write(ValueRef::OwnedDocument(&document), ext_json::Style::Canonical, &mut text)
        }
        Err(_) => text.push_str("{}"),
    }
    let mut response = Response::new(Bytes::from(text));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(charge) = HeaderValue::from_str(&format!("{:.2}", summary.charge_ru)) {
        headers.insert(X_MS_REQUEST_CHARGE, charge);
    }
    Answered::new(response, summary)
}
