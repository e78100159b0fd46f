//! Who is asking: master keys, signatures and dates.
//!
//! A client signs verb, resource type, resource link and date with HMAC-SHA256; the body, the query string and the
//! other headers are not covered. The server builds the same text from the path that it received and compares in
//! constant time. Each key's hash state (inner and outer pad) is computed once at start, so that checking a
//! signature costs two short hashes.
//!
//! ```text
//! authorization: type%3Dmaster%26ver%3D1.0%26sig%3D…        x-ms-date: Thu, 27 Apr 2017 00:51:12 GMT
//! text:          "get\ndocs\ndbs/d/colls/c/docs/a\nthu, 27 apr 2017 00:51:12 gmt\n\n"
//! ```
//!
//! Clients differ in what they sign for the link: the decoded path, the path as sent, or only the last rid in lower
//! case. The likeliest is tried first, the others only when it fails. Two keys write, two only read. Tokens of the
//! directory (AAD) are accepted in one form alone, the emulator's, and only while the well-known emulator key is the
//! account's key; see `aad`. Resource tokens are written and read here, see `resource_token`; making and checking them,
//! and what they open, is a matter of the engine's `access`.

mod aad;
mod resource_token;

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use http::header::{AUTHORIZATION, DATE};
use http::{Method, StatusCode};
use orrery_engine::access::{Grant, KeySlot, Principal, ResourceTokens, TokenRefused};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::config::{AccountKeys, EMULATOR_KEY};
use crate::errors::{ApiError, Result, Voice};
use crate::fields::Fields;
use crate::headers::X_MS_DATE;
use crate::http_date;
use crate::routes::{Path, Resource};

/// A date is a few dozen characters; a longer one is refused before it is looked at.
const DATE_BYTES_MAX: usize = 64;
/// A directory token of the emulator is about 1.5 KB; nothing legitimate is longer than this.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
const SIGNATURE_BYTES: usize = 32;

const MISSING: &str =
    "Required Header authorization is missing. Ensure a valid Authorization token is passed.";
const MALFORMED: &str =
    "Authorization header doesn't confirm to the required format. Please verify and try again.";
const NO_DATE: &str = "The authorization token must be accompanied by the date it was made with. Ensure that the x-ms-date or the date header is set and holds an RFC 1123 date.";
const WRONG_TOKEN: &str = "The input authorization token can't serve the request. The wrong key is being used or the expected payload is not built as per the protocol. For more info: https://aka.ms/cosmosdb-tsg-unauthorized.";
const TOKEN_KIND: &str =
    "The type of the authorization token is not accepted by this account. Use a master key.";

pub struct Authorizer {
    /// The account's keys, ready to sign.
    keys: Vec<(KeySlot, Hmac<Sha256>)>,
    tokens: ResourceTokens,
    /// Whether the well-known key is the account's own: only then are the emulator's directory tokens good.
    emulator: bool,
    skew: Duration,
}

/// What of a request tells who sent it.
pub struct Claim<'a> {
    pub method: &'a Method,
    pub path: &'a Path<'a>,
    pub fields: Fields<'a>,
    pub now_ms: u64,
    /// How much of that is no time of the machine: dates of signatures are.
    pub moved_ms: u64,
}

impl Authorizer {
    pub fn new(keys: &AccountKeys, account: u32, skew_s: u64) -> Authorizer {
        let signing = |key| Hmac::new_from_slice(key).expect("HMAC takes keys of any length");
        let tokens = ResourceTokens::new(keys, account, skew_s);
        let well_known = STANDARD.decode(EMULATOR_KEY).expect("the constant is base64");
        let emulator = keys.primary == well_known || keys.secondary == well_known;
        Authorizer {
            keys: keys.present().map(|(slot, key)| (slot, signing(key))).collect(),
            tokens,
            emulator,
            skew: Duration::from_secs(skew_s),
        }
    }

    /// Who sent the request; an error when that cannot be told.
    pub fn recognise(&self, claim: &Claim<'_>) -> Result<Principal> {
        let header = claim.fields.get(&AUTHORIZATION).ok_or_else(|| unauthorized(MISSING))?;
        let header = std::str::from_utf8(header).map_err(|_| unauthorized(MALFORMED))?;
        if header.is_empty() {
            return Err(unauthorized(MISSING));
        }
        if header.len() > TOKEN_BYTES_MAX {
            return Err(unauthorized(MALFORMED));
        }
        let decoded = decoded(header).ok_or_else(|| unauthorized(MALFORMED))?;
        let token = Token::parse(&decoded).ok_or_else(|| unauthorized(MALFORMED))?;
        match token.kind {
            kind if kind.eq_ignore_ascii_case("master") => self.check_signature(token.signature, claim),
            kind if kind.eq_ignore_ascii_case("resource") => self.check_token(token.signature, claim.now_ms),
            kind if kind.eq_ignore_ascii_case("aad") && self.emulator => {
                let now_s = claim.now_ms / 1000;
                aad::check(token.signature, EMULATOR_KEY, now_s, self.skew.as_secs())
                    .map_err(unauthorized)?;
                Ok(Principal::Directory)
            }
            _ => Err(unauthorized(TOKEN_KIND)),
        }
    }

    /// The text of a resource token for what the grant says. `None` for principals that cannot make one.
    pub fn issue(&self, principal: &Principal, grant: &Grant, random: u32) -> Option<String> {
        self.tokens.issue(principal, grant, random).map(|token| resource_token::write(&token))
    }

    fn check_token(&self, text: &str, now_ms: u64) -> Result<Principal> {
        let token = resource_token::read(text).ok_or_else(|| unauthorized(MALFORMED))?;
        match self.tokens.verify(&token, now_ms) {
            Ok(grant) => Ok(Principal::Granted(Box::new(grant))),
            Err(TokenRefused::NotGenuine) => Err(unauthorized(WRONG_TOKEN)),
            Err(TokenRefused::NotNow { start_s, expiry_s }) => {
                let time = |second: u32| UNIX_EPOCH + Duration::from_secs(u64::from(second));
                Err(not_now(time(start_s), time(expiry_s), UNIX_EPOCH + Duration::from_millis(now_ms)))
            }
        }
    }

    fn check_signature(&self, signature: &str, claim: &Claim<'_>) -> Result<Principal> {
        let dates = Dates::of(claim.fields)?;
        // The decoder asks for room for its estimate of the length, not for the length.
        let mut given = [0u8; SIGNATURE_BYTES + 2];
        let length = STANDARD.decode_slice(signature, &mut given);
        if length != Ok(SIGNATURE_BYTES) {
            return Err(unauthorized(MALFORMED));
        }
        let given = &given[..SIGNATURE_BYTES];
        let slot = self.signer_of(given, claim, &dates).ok_or_else(|| wrong_signature(claim, &dates))?;
        self.check_date(&dates, claim.now_ms.saturating_sub(claim.moved_ms))?;
        Ok(Principal::Key(slot))
    }

    /// The key that made the signature.
    fn signer_of(&self, given: &[u8], claim: &Claim<'_>, dates: &Dates<'_>) -> Option<KeySlot> {
        // Offers are addressed by rid alone, everything else usually by name.
        if claim.path.resource != Resource::Offer
            && let Some(slot) = self.matching(given, claim, dates, Link::Segments(claim.path))
        {
            return Some(slot);
        }
        let others = [claim.path.rid_link(), Some(claim.path.link()), claim.path.raw_link()];
        others.into_iter().flatten().find_map(|link| self.matching(given, claim, dates, Link::Text(&link)))
    }

    fn matching(
        &self,
        given: &[u8],
        claim: &Claim<'_>,
        dates: &Dates<'_>,
        link: Link<'_>,
    ) -> Option<KeySlot> {
        let signed = |key: &Hmac<Sha256>| {
            let mut mac = key.clone();
            mac.update(verb(claim.method).as_bytes());
            mac.update(b"\n");
            mac.update(claim.path.resource_type.as_bytes());
            mac.update(b"\n");
            link.feed(&mut mac);
            mac.update(b"\n");
            mac.update(dates.x_ms_date.lowered());
            mac.update(b"\n");
            mac.update(dates.date.lowered());
            mac.update(b"\n");
            let made = mac.finalize().into_bytes();
            bool::from(made.ct_eq(given))
        };
        self.keys.iter().find(|(_, key)| signed(key)).map(|(slot, _)| *slot)
    }

    fn check_date(&self, dates: &Dates<'_>, now_ms: u64) -> Result<()> {
        let text = if dates.x_ms_date.text.is_empty() { dates.date.text } else { dates.x_ms_date.text };
        let made = http_date::parse(text).ok_or_else(|| unauthorized(NO_DATE))?;
        let now = UNIX_EPOCH + Duration::from_millis(now_ms);
        let apart = now.duration_since(made).unwrap_or_else(|earlier| earlier.duration());
        if apart <= self.skew { Ok(()) } else { Err(not_now(made, made + self.skew, now)) }
    }
}

/// Text with its escapes (`%3D`) resolved, as far as they are any; `None` when they make no UTF-8. Never `+` to
/// space: a signature may hold a plus sign that its client did not encode.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    let mut rest = text.as_bytes();
    let mut bytes = Vec::new();
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        if bytes.is_empty() {
            bytes.reserve(text.len());
        }
        let digit = |at: usize| rest.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        bytes.extend_from_slice(&rest[..at]);
        match (digit(at + 1), digit(at + 2)) {
            (Some(high), Some(low)) => {
                bytes.push((high << 4 | low) as u8);
                rest = &rest[at + 3..];
            }
            _ => {
                bytes.push(b'%');
                rest = &rest[at + 1..];
            }
        }
    }
    if rest.len() == text.len() {
        return Some(Cow::Borrowed(text));
    }
    bytes.extend_from_slice(rest);
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// The three parts of an authorization value.
struct Token<'a> {
    kind: &'a str,
    signature: &'a str,
}

impl<'a> Token<'a> {
    fn parse(text: &'a str) -> Option<Token<'a>> {
        let (kind, rest) = text.strip_prefix("type=")?.split_once('&')?;
        let (_version, signature) = rest.strip_prefix("ver=")?.split_once('&')?;
        Some(Token { kind, signature: signature.strip_prefix("sig=")? })
    }
}

enum Link<'a> {
    Segments(&'a Path<'a>),
    Text(&'a str),
}

impl Link<'_> {
    fn feed(&self, mac: &mut Hmac<Sha256>) {
        match self {
            Link::Text(text) => mac.update(text.as_bytes()),
            Link::Segments(path) => {
                for (n, segment) in path.link_segments().iter().enumerate() {
                    if n > 0 {
                        mac.update(b"/");
                    }
                    mac.update(segment.as_bytes());
                }
            }
        }
    }
}

/// The dates of a request. When `x-ms-date` is there the other is not part of the signed text.
struct Dates<'a> {
    x_ms_date: Lowered<'a>,
    date: Lowered<'a>,
}

struct Lowered<'a> {
    text: &'a str,
    bytes: [u8; DATE_BYTES_MAX],
}

impl<'a> Lowered<'a> {
    fn new(text: &'a str) -> Option<Lowered<'a>> {
        let mut bytes = [0; DATE_BYTES_MAX];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        bytes.make_ascii_lowercase();
        Some(Lowered { text, bytes })
    }

    fn lowered(&self) -> &[u8] {
        &self.bytes[..self.text.len()]
    }
}

impl<'a> Dates<'a> {
    fn of(fields: Fields<'a>) -> Result<Dates<'a>> {
        let text = |name| fields.text(&name).unwrap_or("");
        let x_ms_date = text(X_MS_DATE);
        let date = if x_ms_date.is_empty() { text(DATE) } else { "" };
        if x_ms_date.is_empty() && date.is_empty() {
            return Err(unauthorized(NO_DATE));
        }
        match (Lowered::new(x_ms_date), Lowered::new(date)) {
            (Some(x_ms_date), Some(date)) => Ok(Dates { x_ms_date, date }),
            _ => Err(unauthorized(NO_DATE)),
        }
    }
}

fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::HEAD => "head",
        _ => "",
    }
}

fn unauthorized(message: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, Voice::Gateway, message)
}

/// Says which text the server signed, so that whoever writes a client can compare it with his.
fn wrong_signature(claim: &Claim<'_>, dates: &Dates<'_>) -> ApiError {
    let link = if claim.path.resource == Resource::Offer {
        claim.path.rid_link().unwrap_or_default()
    } else {
        claim.path.link()
    };
    unauthorized(format!(
        "{WRONG_TOKEN} Server used the following payload to sign: '{}\n{}\n{}\n{}\n{}\n'",
        verb(claim.method),
        claim.path.resource_type,
        link,
        dates.x_ms_date.text.to_ascii_lowercase(),
        dates.date.text.to_ascii_lowercase(),
    ))
}

fn not_now(start: SystemTime, end: SystemTime, now: SystemTime) -> ApiError {
    ApiError::new(
        StatusCode::FORBIDDEN,
        Voice::Gateway,
        format!(
            "The authorization token is not valid at the current time. Please create another token and retry (token start time: {}, token expiry time: {}, current server time: {}).",
            httpdate::fmt_http_date(start),
            httpdate::fmt_http_date(end),
            httpdate::fmt_http_date(now),
        ),
    )
}

#[cfg(test)]
mod tests;
