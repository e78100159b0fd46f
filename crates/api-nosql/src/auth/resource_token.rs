//! Resource tokens as text, as they stand in permissions and in the authorization of requests.
//!
//! ```text
//! type=resource&ver=1&sig=<signature>;<payload>;          both in base64, the form that every client passes on whole
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orrery_engine::access::ResourceToken;

/// The whole token, as it stands in a permission.
pub fn write(token: &ResourceToken) -> String {
    let (signature, payload) = (STANDARD.encode(&token.signature), STANDARD.encode(&token.payload));
    format!("type=resource&ver=1&sig={signature};{payload};")
}

/// Reads what follows `sig=`. Whether the token is genuine is a question for the account's keys.
pub fn read(text: &str) -> Option<ResourceToken> {
    // Some clients cut the last semicolon off.
    let (signature, payload) = text.strip_suffix(';').unwrap_or(text).split_once(';')?;
    let (signature, payload) = (STANDARD.decode(signature).ok()?, STANDARD.decode(payload).ok()?);
    Some(ResourceToken { signature, payload })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_with_or_without_the_last_semicolon() {
        let token = ResourceToken { signature: vec![1, 2, 3], payload: vec![0xFF; 40] };
        let text = write(&token);
        let rest = text.strip_prefix("type=resource&ver=1&sig=").unwrap();
        assert_eq!(read(rest).as_ref(), Some(&token));
        assert_eq!(read(rest.trim_end_matches(';')).as_ref(), Some(&token));
        for malformed in ["nothing", "!!;!!;", "AAAA;!!;", ""] {
            assert!(read(malformed).is_none(), "{malformed}");
        }
    }
}
