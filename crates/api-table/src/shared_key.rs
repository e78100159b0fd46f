//! `Authorization: SharedKey account:signature` and `SharedKeyLite`.
//!
//! ```text
//! SharedKey      VERB \n Content-MD5 \n Content-Type \n date \n resource
//! SharedKeyLite  date \n resource
//! resource       / account path [?comp=x]        the path as it was sent, in path style with the account once more
//! ```

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use http::header::{CONTENT_TYPE, DATE};
use http::{HeaderMap, HeaderName, Method};
use sha2::Sha256;

use crate::errors::{Code, Result, TableError};

pub const X_MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");
const SIGNATURE_BYTES: usize = 32;
const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");

/// A key of the account, ready to sign: what is the same for every text is computed once.
#[derive(Clone)]
pub struct SigningKey(Hmac<Sha256>);

impl SigningKey {
    /// `None` for an empty key, with which everybody could sign.
    pub fn new(key: &[u8]) -> Option<SigningKey> {
        let signing = Hmac::new_from_slice(key).ok();
        signing.filter(|_| !key.is_empty()).map(SigningKey)
    }

    /// Whether a signature is the key's for a text in pieces, in constant time.
    pub fn has_signed(&self, text: &[&str], signature: &[u8]) -> bool {
        self.sign(text).verify_slice(signature).is_ok()
    }

    pub fn sign(&self, text: &[&str]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        text.iter().for_each(|piece| mac.update(piece.as_bytes()));
        mac
    }
}

/// What the header says.
pub struct Authorization<'h> {
    pub account: &'h str,
    lite: bool,
    signature: [u8; SIGNATURE_BYTES],
}

impl<'h> Authorization<'h> {
    /// `None` where the scheme is another one.
    pub fn parse(header: &'h str) -> Option<Result<Authorization<'h>>> {
        let (scheme, rest) = header.trim().split_once(' ')?;
        let lite = match scheme {
            "SharedKey" => false,
            "SharedKeyLite" => true,
            _ => return None,
        };
        let parsed = rest.trim().split_once(':').and_then(|(account, signature)| {
            // The decoder asks for room for its estimate of the length, not for the length.
            let mut room = [0; SIGNATURE_BYTES + 2];
            let length = STANDARD.decode_slice(signature, &mut room).ok()?;
            let signature = room[..length].try_into().ok()?;
            Some(Authorization { account, lite, signature })
        });
        Some(parsed.ok_or_else(|| Code::AuthenticationFailed.into()))
    }

    /// Whether a key made the signature for this request.
    pub fn is_by(&self, key: &SigningKey, request: &Signed<'_>) -> bool {
        let signed = |path: &str| self.is_by_path(key, request, path);
        signed(request.path) || request.other_paths().iter().any(|path| signed(path))
    }

    fn is_by_path(&self, key: &SigningKey, request: &Signed<'_>, path: &str) -> bool {
        let header =
            |name: HeaderName| request.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
        let (comp_name, comp) = request.comp.map_or(("", ""), |comp| ("?comp=", comp));
        let dated = [request.date(), "\n/", self.account, path, comp_name, comp];
        if self.lite {
            return key.has_signed(&dated, &self.signature);
        }
        let (md5, kind) = (header(CONTENT_MD5), header(CONTENT_TYPE));
        let mut text = [""; 12];
        text[..6].copy_from_slice(&[request.method.as_str(), "\n", md5, "\n", kind, "\n"]);
        text[6..].copy_from_slice(&dated);
        key.has_signed(&text, &self.signature)
    }
}

/// What is signed.
pub struct Signed<'r> {
    pub method: &'r Method,
    pub headers: &'r HeaderMap,
    /// As it was sent.
    pub path: &'r str,
    pub comp: Option<&'r str>,
    /// The same path at the primary endpoint: clients that fall back to the secondary one have signed it before.
    pub primary: Option<&'r str>,
}

impl Signed<'_> {
    fn date(&self) -> &str {
        let header = |name: HeaderName| self.headers.get(name).and_then(|value| value.to_str().ok());
        header(X_MS_DATE).or_else(|| header(DATE)).unwrap_or("")
    }

    /// Refuses a request that was signed long ago, or will be.
    pub fn check_date(&self, now_s: u64, skew_s: u64) -> Result<()> {
        let signed = httpdate::parse_http_date(self.date())
            .ok()
            .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
            .map(|since| since.as_secs());
        match signed {
            Some(signed) if signed.abs_diff(now_s) <= skew_s => Ok(()),
            Some(_) => Err(TableError::new(
                Code::AuthenticationFailed,
                "Server failed to authenticate the request. The date header is too far from the server's time.",
            )),
            None => Err(TableError::new(
                Code::AuthenticationFailed,
                "Server failed to authenticate the request. x-ms-date or Date must be a date.",
            )),
        }
    }

    /// The path as it looked before or after an HTTP library quoted its signs anew. All of them name the same resource.
    fn other_paths(&self) -> Vec<String> {
        const SIGNS: [(&str, &str); 6] =
            [("%27", "'"), ("%28", "("), ("%29", ")"), ("%2C", ","), ("%3D", "="), ("%24", "$")];
        let unquoted =
            SIGNS.iter().fold(self.path.to_owned(), |path, (quoted, sign)| path.replace(quoted, sign));
        let quotes_only = unquoted.replace('\'', "%27");
        let quoted = SIGNS.iter().fold(unquoted.clone(), |path, (quoted, sign)| path.replace(sign, quoted));
        let mut paths: Vec<String> = self.primary.map(str::to_owned).into_iter().collect();
        for other in [unquoted, quotes_only, quoted] {
            if other != self.path && !paths.contains(&other) {
                paths.push(other);
            }
        }
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn signature(key: &SigningKey, text: &str) -> String {
        STANDARD.encode(key.sign(&[text]).finalize().into_bytes())
    }

    #[test]
    fn both_forms_are_recognised_and_nothing_else() {
        let date = "Mon, 04 Jan 2021 22:25:57 GMT";
        let headers = headers(&[("x-ms-date", date), ("content-type", "application/json")]);
        let path = "/acc/t(PartitionKey=%27p%27,RowKey='r')";
        let request =
            Signed { method: &Method::PUT, headers: &headers, path, comp: Some("acl"), primary: None };
        let resource = "/acc/acc/t(PartitionKey='p',RowKey='r')?comp=acl";
        let key = &SigningKey::new(b"secret").unwrap();
        let other = &SigningKey::new(b"other").unwrap();
        assert!(SigningKey::new(b"").is_none());
        for (scheme, text) in [
            ("SharedKey", format!("PUT\n\napplication/json\n{date}\n{resource}")),
            ("SharedKeyLite", format!("{date}\n{resource}")),
        ] {
            let header = format!("{scheme} acc:{}", signature(key, &text));
            let authorization = Authorization::parse(&header).unwrap().ok().unwrap();
            assert!(authorization.is_by(key, &request), "{scheme}");
            assert!(!authorization.is_by(other, &request));
            let elsewhere = Signed { path: "/acc/u", ..request };
            assert!(!authorization.is_by(key, &elsewhere));
        }
        assert!(Authorization::parse("Bearer x").is_none() && Authorization::parse("").is_none());
        assert!(Authorization::parse("SharedKey nonsense").unwrap().is_err());
        assert!(Authorization::parse("SharedKey a:%%").unwrap().is_err());
    }

    #[test]
    fn dates_must_be_near() {
        let headers = headers(&[("x-ms-date", "Thu, 01 Jan 1970 00:10:00 GMT")]);
        let request =
            Signed { method: &Method::GET, headers: &headers, path: "/", comp: None, primary: None };
        assert!(request.check_date(600, 900).is_ok() && request.check_date(1500, 900).is_ok());
        assert!(request.check_date(1501, 900).is_err());
        let none = HeaderMap::new();
        assert!(Signed { headers: &none, ..request }.check_date(0, 900).is_err());
    }
}
