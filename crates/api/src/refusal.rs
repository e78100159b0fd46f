//! What the server refuses by itself, before an api sees it.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    BodyTooLarge,
    /// The body ended early or is no valid HTTP.
    BodyBroken,
    /// The body did not arrive, or the answer was not ready, in time.
    TimedOut,
    Overloaded,
    /// A defect: the handler panicked.
    Defect,
    TlsRequired,
    /// The name that the request is addressed to is none.
    HostInvalid,
    /// The name is not one that this server answers to.
    HostForeign,
}

impl Refusal {
    pub const fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Refusal::BodyTooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                r#"{"code":"RequestEntityTooLarge","message":"Request size is too large"}"#,
                "body_too_large",
            ),
            Refusal::BodyBroken => (
                StatusCode::BAD_REQUEST,
                r#"{"code":"BadRequest","message":"The request body could not be read to its end"}"#,
                "body_broken",
            ),
            Refusal::TimedOut => (
                StatusCode::REQUEST_TIMEOUT,
                r#"{"code":"RequestTimeout","message":"The request took longer than the server allows"}"#,
                "timed_out",
            ),
            Refusal::Overloaded => (
                StatusCode::SERVICE_UNAVAILABLE,
                r#"{"code":"ServiceUnavailable","message":"The server is answering as many requests as it can; try again"}"#,
                "overloaded",
            ),
            Refusal::Defect => (
                StatusCode::INTERNAL_SERVER_ERROR,
                r#"{"code":"InternalServerError","message":"The server failed while answering; its log says more"}"#,
                "defect",
            ),
            Refusal::TlsRequired => (
                StatusCode::FORBIDDEN,
                r#"{"code":"Forbidden","message":"This server takes TLS connections only; use https"}"#,
                "tls_required",
            ),
            Refusal::HostInvalid => (
                StatusCode::BAD_REQUEST,
                r#"{"code":"BadRequest","message":"The Host header, or the authority of the URL, is no host name"}"#,
                "host_invalid",
            ),
            Refusal::HostForeign => (
                StatusCode::FORBIDDEN,
                r#"{"code":"Forbidden","message":"While the well-known key is in force this server answers to loopback names only (localhost, 127.0.0.1, [::1]), because any web page could use that key under a name of its own. Allow the name that you use with --allowed-hosts NAME, or give the server a key of its own: orrery key new"}"#,
                "host_foreign",
            ),
        }
    }

    pub fn response(self) -> Response<Bytes> {
        let (status, body, _) = self.parts();
        let mut response = Response::new(Bytes::from_static(body.as_bytes()));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}
