//! Directory tokens as the vendor's emulator takes them.
//!
//! Official test suites talk to an emulator with a token that no directory has signed: a JWT whose header names the
//! key `CosmosEmulatorPrimaryMaster` and whose third part is the well-known master key itself. It proves as much as
//! the well-known key does, so it is accepted exactly where that key is: the caller checks that before.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use subtle::ConstantTimeEq;

const KEY_ID: &str = "CosmosEmulatorPrimaryMaster";
const REFUSED: &str = "The provided directory token is not valid for this account.";
const NOT_NOW: &str = "The provided directory token is not valid at the current time.";

/// `Err` holds the message for the client.
pub fn check(token: &str, master_key: &str, now_s: u64, skew_s: u64) -> Result<(), &'static str> {
    let mut parts = token.split('.');
    let (Some(header), Some(claims), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(REFUSED);
    };
    let signature = decode(signature).ok_or(REFUSED)?;
    if !bool::from(signature.as_slice().ct_eq(master_key.as_bytes())) {
        return Err(REFUSED);
    }
    let header = object(header).ok_or(REFUSED)?;
    if header.get("kid").and_then(Value::as_str) != Some(KEY_ID) {
        return Err(REFUSED);
    }
    let claims = object(claims).ok_or(REFUSED)?;
    let time = |name: &str| claims.get(name).and_then(Value::as_u64);
    let started = time("nbf").is_none_or(|begin| begin <= now_s.saturating_add(skew_s));
    // A token without an end would be good for ever.
    let ended = time("exp").is_none_or(|end| end.saturating_add(skew_s) < now_s);
    if started && !ended { Ok(()) } else { Err(NOT_NOW) }
}

fn decode(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok()
}

fn object(part: &str) -> Option<Value> {
    serde_json::from_slice(&decode(part)?).ok()
}
