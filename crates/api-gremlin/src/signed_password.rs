//! A password that is a signature: for clients that can sign with a key and cannot show it, as the pages of the portal.
//!
//! ```text
//! type=master&ver=1.0&date=Thu, 27 Apr 2017 00:51:12 GMT&sig=BASE64
//! text: "gremlin\ncolls\ndbs/shop/colls/people\nthu, 27 apr 2017 00:51:12 gmt\n\n"
//! ```
//!
//! It is made as the header of the REST API is, of a verb that no request there has: neither is good in the other's
//! place. It opens one graph, for as long as clocks may be apart.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use orrery_engine::AccountKeys;
use orrery_engine::access::KeySlot;
use percent_encoding::percent_decode_str;
use sha2::Sha256;

use crate::sasl::Credentials;

const PREFIX: &str = "type=master&ver=1.0&";

/// Signatures of an account's keys.
pub struct SigningKeys {
    keys: Vec<(KeySlot, Hmac<Sha256>)>,
    skew_s: u64,
}

impl SigningKeys {
    pub fn new(keys: &AccountKeys, skew_s: u64) -> SigningKeys {
        let signing = |(slot, key)| Hmac::new_from_slice(key).ok().map(|key| (slot, key));
        SigningKeys { keys: keys.present().filter_map(signing).collect(), skew_s }
    }

    /// The key that made the password, if it is one of these, for this graph and now.
    pub fn signer(&self, credentials: &Credentials, now_ms: u64) -> Option<KeySlot> {
        let decoded = percent_decode_str(credentials.password.trim()).decode_utf8().ok()?;
        let (date, signature) = decoded.strip_prefix(PREFIX)?.strip_prefix("date=")?.split_once("&sig=")?;
        let signature = STANDARD.decode(signature).ok()?;
        let time = httpdate::parse_http_date(date).ok()?;
        let signed_s = time.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs();
        if signed_s.abs_diff(now_ms / 1_000) > self.skew_s {
            return None;
        }
        let Credentials { database, container, .. } = credentials;
        let text =
            format!("gremlin\ncolls\ndbs/{database}/colls/{container}\n{}\n\n", date.to_ascii_lowercase());
        let made =
            |key: &Hmac<Sha256>| key.clone().chain_update(text.as_bytes()).verify_slice(&signature).is_ok();
        // Every key is tried, whichever it is.
        self.keys.iter().fold(None, |found, (slot, key)| if made(key) { Some(*slot) } else { found })
    }
}

/// Whether a password wants to be one.
pub fn is_signature(password: &str) -> bool {
    let password = password.trim_start();
    password.starts_with("type=master") || password.starts_with("type%3Dmaster")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Thu, 27 Apr 2017 00:51:12 GMT";
    const DATE_MS: u64 = 1_493_254_272_000;

    fn credentials(container: &str, date: &str, text: &str) -> Credentials {
        let signature = Hmac::<Sha256>::new_from_slice(b"read").unwrap().chain_update(text).finalize();
        let password = format!("{PREFIX}date={date}&sig={}", STANDARD.encode(signature.into_bytes()));
        Credentials { database: "shop".into(), container: container.into(), password }
    }

    #[test]
    fn a_signature_opens_one_graph_for_a_while() {
        let keys = AccountKeys {
            primary: b"first".to_vec(),
            primary_readonly: b"read".to_vec(),
            ..AccountKeys::default()
        };
        let keys = SigningKeys::new(&keys, 900);
        let text = "gremlin\ncolls\ndbs/shop/colls/people\nthu, 27 apr 2017 00:51:12 gmt\n\n";
        let good = credentials("people", DATE, text);
        assert_eq!(keys.signer(&good, DATE_MS + 900_000), Some(KeySlot::PrimaryReadonly));
        assert!(is_signature(&good.password));
        assert_eq!(keys.signer(&good, DATE_MS + 901_000), None, "too old");
        assert_eq!(keys.signer(&good, DATE_MS - 901_000), None, "of the future");
        assert_eq!(keys.signer(&credentials("other", DATE, text), DATE_MS), None, "another graph");
        let rest = "get\ncolls\ndbs/shop/colls/people\nthu, 27 apr 2017 00:51:12 gmt\n\n";
        assert_eq!(keys.signer(&credentials("people", DATE, rest), DATE_MS), None, "of a request");
        for wrong in ["", PREFIX, "type=master&ver=1.0&date=x&sig=AAAA", "type=master&ver=1.0&sig=AAAA"] {
            let password = wrong.to_owned();
            let given = Credentials { password, ..credentials("people", DATE, text) };
            assert_eq!(keys.signer(&given, DATE_MS), None, "{wrong}");
        }
    }
}
