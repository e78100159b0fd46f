//! Continuations of item feeds and queries: where the next page begins, as the client carries it.
//!
//! ```text
//! {"token":"+RID:~AAAAAYAAAAI=#RT:1#P:AQIDBA","range":{"min":"","max":"FF"}}
//! ```
//!
//! The shape is the service's, because some clients look inside it; what comes after `#P:` is ours, and opaque. The
//! rid ties a continuation to its container. Anything else, from another server, another container, or damaged on the
//! way, is refused. A continuation holds no secret and grants nothing, so it is not signed: forged ones can at most ask
//! for a page that their sender could have asked for anyway.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use serde_json::Value;

use crate::errors::{ApiError, CONTINUATION_INVALID, Result};
use crate::headers::{self, CONTINUATION, CONTINUATION_LIMIT};
use crate::rid::ContainerRid;
use crate::service::Context;

/// Longer than any that this server writes.
const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// The position inside a continuation, if the request has one.
///
/// Requests that name their partition themselves (`inside`) bypass the gateway on the service, and a partition takes
/// its own bare token, `-RID:~…#RT:1#…`. Such a token from elsewhere names no position here: the feed begins anew, as
/// it does there.
pub fn of_request(context: &Context<'_>, rid: &ContainerRid, inside: bool) -> Result<Option<Vec<u8>>> {
    match context.text(CONTINUATION).filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => match read(text, rid) {
            Some(position) => Ok(Some(position)),
            None if inside && is_bare(text) => Ok(None),
            None => Err(invalid()),
        },
    }
}

fn is_bare(text: &str) -> bool {
    (text.starts_with("-RID:~") || text.starts_with("+RID:~")) && text.contains("#RT:")
}

/// The longest continuation that the client takes. The service's own unit is a kilobyte, and clients name small
/// numbers.
pub fn bytes_max(context: &Context<'_>) -> usize {
    let limit_kb = context.text(CONTINUATION_LIMIT).and_then(|text| text.trim().parse::<usize>().ok());
    limit_kb.filter(|limit| *limit > 0).map_or(TOKEN_BYTES_MAX, |limit| limit.saturating_mul(1024))
}

pub fn invalid() -> ApiError {
    ApiError::refused(CONTINUATION_INVALID)
}

pub fn header(rid: &ContainerRid, position: &[u8]) -> HeaderValue {
    let mut text = Vec::with_capacity(position.len() * 4 / 3 + 96);
    text.extend_from_slice(b"{\"token\":\"+RID:~");
    text.extend_from_slice(rid.as_str().as_bytes());
    text.extend_from_slice(b"#RT:1#P:");
    text.extend_from_slice(URL_SAFE_NO_PAD.encode(position).as_bytes());
    text.extend_from_slice(b"\",\"range\":{\"min\":\"\",\"max\":\"FF\"}}");
    headers::value(text)
}

pub fn read(text: &str, rid: &ContainerRid) -> Option<Vec<u8>> {
    if text.len() > TOKEN_BYTES_MAX {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    // Clients that merge continuations of several ranges wrap them in a list.
    let object = match &value {
        Value::Array(list) if list.len() == 1 => &list[0],
        other => other,
    };
    let token = object.get("token")?.as_str()?;
    let rest = token.strip_prefix("+RID:~")?.strip_prefix(rid.as_str())?;
    URL_SAFE_NO_PAD.decode(rest.strip_prefix("#RT:1#P:")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_by_the_same_container_only() {
        let rid = ContainerRid::new(1, 2);
        let text = header(&rid, b"here").to_str().unwrap().to_owned();
        assert_eq!(read(&text, &rid).as_deref(), Some(&b"here"[..]));
        assert_eq!(read(&format!("[{text}]"), &rid).as_deref(), Some(&b"here"[..]));
        assert_eq!(read(&text, &ContainerRid::new(1, 3)), None);
    }

    #[test]
    fn foreign_and_damaged_continuations_are_refused() {
        let rid = ContainerRid::new(1, 2);
        for text in [
            "garbage",
            "{}",
            "[]",
            "7",
            r#"{"token":5}"#,
            r#"{"token":"-RID:~x#RT:1#TRC:100"}"#,
            r#"{"token":"+RID:~AAAAAYAAAAI=#RT:1#P:!!"}"#,
        ] {
            assert_eq!(read(text, &rid), None, "{text}");
        }
        assert_eq!(read(&"[".repeat(200_000), &rid), None);
        assert_eq!(read(&"[".repeat(60_000), &rid), None);
    }
}
