//! Protocols of requests and answers over HTTP.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, Uri};
use orrery_budget::Budget;

use crate::{Connection, Refusal, Summary};

/// A protocol served over HTTP.
pub trait HttpApi: Send + Sync + 'static {
    /// The `api` label of metrics, for a request.
    fn name(&self, uri: &Uri) -> &'static str;

    /// Whether requests for this address are this api's. Asked only where several share a port.
    fn claims(&self, _: &Uri) -> bool {
        true
    }

    /// Largest body of a request.
    fn body_bytes_max(&self) -> usize;

    /// Whether a request may keep a thread busy for long enough that its client could lose patience, or have a large
    /// answer.
    fn may_take_long(&self, _: &Method, _: &Uri, _: &HeaderMap) -> bool {
        false
    }

    /// The refusal of a request whose body is not worth waiting for. Asked when the body has not arrived together
    /// with the headers.
    fn refuse_head(&self, _: &Parts, _: &Connection) -> Option<Answered> {
        None
    }

    /// Answers every request, also with errors.
    fn handle(
        &self,
        request: Request<Bytes>,
        connection: Connection,
    ) -> impl Future<Output = Answered> + Send;

    /// A refusal by the server, as this protocol writes it.
    fn refuse(&self, refusal: Refusal, _: &Uri) -> Response<Bytes> {
        refusal.response()
    }
}

/// An answer, and what it cost.
#[derive(Debug)]
pub struct Answered {
    pub response: Response<Bytes>,
    pub summary: Summary,
    /// The budget of the request, if it used one. The body is held in it until the network has taken it.
    pub budget: Option<Budget>,
}

impl Answered {
    pub fn new(response: Response<Bytes>, summary: Summary) -> Answered {
        Answered { response, summary, budget: None }
    }
}

/// One api on several ports.
impl<A: HttpApi> HttpApi for Arc<A> {
    fn name(&self, uri: &Uri) -> &'static str {
        A::name(self, uri)
    }

    fn claims(&self, uri: &Uri) -> bool {
        A::claims(self, uri)
    }

    fn body_bytes_max(&self) -> usize {
        A::body_bytes_max(self)
    }

    fn may_take_long(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
        A::may_take_long(self, method, uri, headers)
    }

    fn refuse_head(&self, head: &Parts, connection: &Connection) -> Option<Answered> {
        A::refuse_head(self, head, connection)
    }

    fn handle(
        &self,
        request: Request<Bytes>,
        connection: Connection,
    ) -> impl Future<Output = Answered> + Send {
        A::handle(self, request, connection)
    }

    fn refuse(&self, refusal: Refusal, uri: &Uri) -> Response<Bytes> {
        A::refuse(self, refusal, uri)
    }
}

/// Two apis on one port: what the first claims is its own, everything else is the second's. Nests for more.
pub struct Either<A, B>(pub A, pub B);

impl<A: HttpApi, B: HttpApi> HttpApi for Either<A, B> {
    fn name(&self, uri: &Uri) -> &'static str {
        match self.0.claims(uri) {
            true => self.0.name(uri),
            false => self.1.name(uri),
        }
    }

    fn claims(&self, uri: &Uri) -> bool {
        self.0.claims(uri) || self.1.claims(uri)
    }

    fn body_bytes_max(&self) -> usize {
        self.0.body_bytes_max().max(self.1.body_bytes_max())
    }

    fn may_take_long(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
        match self.0.claims(uri) {
            true => self.0.may_take_long(method, uri, headers),
            false => self.1.may_take_long(method, uri, headers),
        }
    }

    fn refuse_head(&self, head: &Parts, connection: &Connection) -> Option<Answered> {
        match self.0.claims(&head.uri) {
            true => self.0.refuse_head(head, connection),
            false => self.1.refuse_head(head, connection),
        }
    }

    async fn handle(&self, request: Request<Bytes>, connection: Connection) -> Answered {
        match self.0.claims(request.uri()) {
            true => self.0.handle(request, connection).await,
            false => self.1.handle(request, connection).await,
        }
    }

    fn refuse(&self, refusal: Refusal, uri: &Uri) -> Response<Bytes> {
        match self.0.claims(uri) {
            true => self.0.refuse(refusal, uri),
            false => self.1.refuse(refusal, uri),
        }
    }
}
