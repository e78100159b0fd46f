//! The seam to the protocols: what the transport needs of an api, and nothing of what it means.
//!
//! The transport reads a whole request, hands it over, and sends the whole answer. It refuses by itself only what an api
//! should never see (a body too large, a server too busy) and asks the api how such a refusal reads in its protocol.

use std::future::Future;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use orrery_budget::MemoryPool;

pub use crate::client::Client;
use crate::metrics::StoreFigures;

/// A protocol served over HTTP.
pub trait Api: Send + Sync + 'static {
    /// The `api` label of metrics.
    const NAME: &'static str;

    /// Largest body of a request.
    fn body_bytes_max(&self) -> usize;

    /// Tells the api over which connection a request came, and by whom it can learn whether its client is still there;
    /// called before [`handle`](Api::handle).
    fn attach(&self, request: &mut Request<Bytes>, connection: ConnectionInfo, client: Client);

    /// The memory that all requests share.
    fn memory(&self) -> &Arc<MemoryPool>;

    /// Whether a request may keep a thread busy for long enough that its client could lose patience, or have a large
    /// answer.
    fn may_take_long(&self, _: &Method, _: &Uri, _: &HeaderMap) -> bool {
        false
    }

    /// The refusal of a request whose body is not worth waiting for. Asked when the body has not arrived together with the
    /// headers.
    fn refuse_head(&self, _: &Parts) -> Option<Response<Bytes>> {
        None
    }

    /// Answers every request, also with errors.
    fn handle(&self, request: Request<Bytes>) -> impl Future<Output = Response<Bytes>> + Send;

    /// What the log and the metrics say about an answer.
    fn summary(&self, response: &Response<Bytes>) -> Summary;

    /// A refusal by the transport, as this protocol writes it.
    fn refuse(&self, refusal: Refusal) -> Response<Bytes> {
        refusal.response()
    }
}

/// What lies behind the api: asked for health and figures, closed at the end.
pub trait Backend: Send + Sync + 'static {
    fn figures(&self) -> StoreFigures;
    /// Figures of the account in the text format of Prometheus, added to those of the transport; with the names of databases
    /// and containers if `named`.
    fn account_metrics(&self, _: &mut String, named: bool) {
        let _ = named;
    }
    fn close(&self) -> anyhow::Result<()>;
}

pub type SharedBackend = Arc<dyn Backend>;

#[derive(Debug, Clone, Copy)]
pub struct ConnectionInfo {
    pub tls: bool,
    pub local: SocketAddr,
    pub peer: SocketAddr,
    pub socket: RawFd,
}

#[derive(Debug, Clone, Default)]
pub struct Summary {
    pub operation: &'static str,
    pub substatus: u32,
    pub charge_ru: f64,
    /// A fault that the operator asked for.
    pub fault: Option<Fault>,
}

/// What the transport does to an answer because a fault rule says so.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The name of the rule, for the log.
    pub rule: Arc<str>,
    pub delay: Duration,
    /// Hang up without an answer.
    pub drop: bool,
}

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
