//! One request: receive its body, have it answered, count it, log it.
//!
//! The order of things is chosen for the common case, an answer that is ready at once: no timer is armed, no task is
//! spawned, a body that came in one piece is not copied. Only when something is not ready does a deadline begin.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Instant;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use orrery_api::{Answered, Connection, HttpApi, Refusal, Summary};
use orrery_portal::Portal;

use crate::answer::Answer;
use crate::connection::Watch;
use crate::deadline::within;
use crate::limits::{LONG_REQUESTS_WAIT, REQUESTS_IN_FLIGHT_MAX};
use crate::metrics::Metrics;
use crate::pages;
use crate::request_log::Line;
use crate::transport::Transport;
use crate::upload::{self, Unreceived};

const ACTIVITY_ID: &str = "x-ms-activity-id";

/// The connection ends without an answer, because a fault rule says so.
#[derive(Debug)]
pub struct HungUp;

impl std::fmt::Display for HungUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("hung up on purpose (a fault rule)")
    }
}

impl std::error::Error for HungUp {}

/// The requests of one port.
pub struct Dispatcher<A> {
    pub api: A,
    portal: Option<Arc<Portal>>,
    transport: Arc<Transport>,
}

impl<A: HttpApi> Dispatcher<A> {
    pub fn new(api: A, portal: Option<Arc<Portal>>, transport: Arc<Transport>) -> Self {
        Dispatcher { api, portal, transport }
    }

    pub fn transport(&self) -> &Arc<Transport> {
        &self.transport
    }

    /// Answers a request of a connection. `long`: what [`HttpApi::may_take_long`] said about it.
    pub async fn answer(
        &self,
        request: Request<Incoming>,
        connection: Connection,
        watch: &Arc<Watch>,
        long: bool,
    ) -> Result<Response<Answer>, HungUp> {
        let began = Instant::now();
        let in_flight = InFlight::enter(&self.transport.metrics, watch);
        if let Some(response) = self.own_path(&request) {
            let answered = Answered::new(response, Summary::default());
            return Ok(self.dressed(answered, request.uri(), watch).0);
        }
        if let Some(portal) = &self.portal
            && let Some(asked) = portal.asked(request.method(), request.uri(), request.headers())
        {
            let response = match self.transport.hosts.check(request.headers(), request.uri()) {
                Err(refusal) => self.refuse(refusal, request.uri()).response,
                Ok(()) => pages::answer(portal, asked, &request, &self.transport).await,
            };
            return Ok(self.dressed(Answered::new(response, Summary::default()), request.uri(), watch).0);
        }
        let (head, body) = request.into_parts();
        let method = head.method.clone();
        let uri = head.uri.clone();
        let answered = if in_flight.before >= REQUESTS_IN_FLIGHT_MAX as i64 {
            self.refuse(Refusal::Overloaded, &uri)
        } else if let Err(refusal) = self.transport.hosts.check(&head.headers, &head.uri) {
            self.refuse(refusal, &uri)
        } else {
            self.received(head, body, connection, &uri, watch, long).await
        };
        let (response, summary) = self.dressed(answered, &uri, watch);
        if let Some(fault) = &summary.fault
            && !fault.delay.is_zero()
        {
            tokio::time::sleep(fault.delay).await;
        }
        let duration_us = began.elapsed().as_micros() as u64;
        let status = response.status().as_u16();
        self.transport.metrics.request(self.api.name(&uri), &summary, status, duration_us);
        if self.transport.request_log.wants(status) || summary.fault.is_some() {
            let activity =
                response.headers().get(ACTIVITY_ID).and_then(|value| value.to_str().ok()).unwrap_or("");
            self.transport.request_log.write(&Line {
                method: method.as_str(),
                path: uri.path(),
                operation: summary.operation,
                status,
                substatus: summary.substatus,
                charge_ru: summary.charge_ru,
                duration_us,
                activity,
                fault: summary.fault.as_ref().map_or("", |fault| &fault.rule),
            });
        }
        match summary.fault {
            Some(fault) if fault.drop => Err(HungUp),
            _ => Ok(response),
        }
    }

    async fn received(
        &self,
        head: Parts,
        body: Incoming,
        connection: Connection,
        uri: &Uri,
        watch: &Watch,
        long: bool,
    ) -> Answered {
        let (pool, limit) = (self.transport.backend.memory(), self.transport.request_timeout);
        let upload = match upload::receive(&self.api, pool, limit, &head, &connection, body).await {
            Ok(upload) => upload,
            Err(Unreceived::Refused(refusal)) => {
                if refusal == Refusal::BodyTooLarge {
                    self.transport.metrics.bodies_refused.fetch_add(1, Relaxed);
                }
                return self.refuse(refusal, uri);
            }
            Err(Unreceived::Unwanted(answered)) => return closing(*answered),
        };
        if long && !self.transport.has_room(watch) {
            return self.refuse(Refusal::Overloaded, uri);
        }
        let _turn = match long {
            false => None,
            true => match within(LONG_REQUESTS_WAIT, self.transport.long.acquire()).await {
                Some(turn) => turn.ok(),
                None => return self.refuse(Refusal::Overloaded, uri),
            },
        };
        self.handle(Request::from_parts(head, upload.bytes), connection, uri).await
    }

    /// The response with its body as the network takes it, or a refusal if there is no room for one more unread answer.
    fn dressed(&self, answered: Answered, uri: &Uri, watch: &Arc<Watch>) -> (Response<Answer>, Summary) {
        let Answered { response, summary, budget } = answered;
        let (parts, body) = response.into_parts();
        let response = match Answer::new(body, watch, self.transport.backend.memory(), budget) {
            Ok(answer) => Response::from_parts(parts, answer),
            Err(_) => {
                self.transport.metrics.answers_refused.fetch_add(1, Relaxed);
                self.refused(Refusal::Overloaded, uri, watch)
            }
        };
        (response, summary)
    }

    /// A refusal for a request that nobody looked at.
    pub fn refused(&self, refusal: Refusal, uri: &Uri, watch: &Arc<Watch>) -> Response<Answer> {
        self.refuse(refusal, uri).response.map(|body| Answer::small(body, watch))
    }

    async fn handle(&self, request: Request<Bytes>, connection: Connection, uri: &Uri) -> Answered {
        // Pinned here and passed on by reference: the future is some kilobytes, and wrappers that own it would each
        // copy it.
        let future = pin!(self.api.handle(request, connection));
        match within(self.transport.request_timeout, guarded(future)).await {
            Some(Ok(answered)) => answered,
            Some(Err(Panicked)) => {
                self.transport.metrics.panics.fetch_add(1, Relaxed);
                self.refuse(Refusal::Defect, uri)
            }
            None => self.refuse(Refusal::TimedOut, uri),
        }
    }

    fn refuse(&self, refusal: Refusal, uri: &Uri) -> Answered {
        let response = self.api.refuse(refusal, uri);
        let answered = Answered::new(response, Summary::of(refusal.parts().2));
        // The rest of the body may still be on its way; reading it only to throw it away helps nobody.
        match refusal {
            Refusal::Overloaded | Refusal::Defect => answered,
            _ => closing(answered),
        }
    }

    /// `/health/…` and `/metrics`: no route of the api begins like them.
    fn own_path(&self, request: &Request<Incoming>) -> Option<Response<Bytes>> {
        let path = request.uri().path();
        if !path.starts_with("/health/") && path != "/metrics" {
            return None;
        }
        let json = "application/json";
        let (status, kind, body) = match path {
            _ if request.method() != Method::GET && request.method() != Method::HEAD => {
                (StatusCode::METHOD_NOT_ALLOWED, json, r#"{"message":"allowed: GET, HEAD"}"#.into())
            }
            "/metrics" if self.transport.hosts.check(request.headers(), request.uri()).is_err() => {
                return Some(self.refuse(Refusal::HostForeign, request.uri()).response);
            }
            "/metrics" => match self.has_key(request.headers()) {
                false if self.transport.metrics_auth => {
                    let message = r#"{"code":"Unauthorized","message":"The metrics need one of the account's keys: Authorization: Bearer KEY"}"#;
                    let mut response = Response::new(Bytes::from_static(message.as_bytes()));
                    *response.status_mut() = StatusCode::UNAUTHORIZED;
                    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(json));
                    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                    return Some(response);
                }
                with_names => {
                    let transport = &self.transport;
                    let figures = transport.backend.figures();
                    let mut text = transport.metrics.render(Some(&figures), transport.log.dropped());
                    transport.backend.account_metrics(&mut text, with_names);
                    (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text)
                }
            },
            "/health/live" => (StatusCode::OK, json, r#"{"status":"live"}"#.into()),
            "/health/ready" if self.transport.backend.figures().store.writes_stopped => (
                StatusCode::SERVICE_UNAVAILABLE,
                json,
                r#"{"status":"not ready","message":"the store has stopped accepting writes; the log says why"}"#.into(),
            ),
            "/health/ready" => (StatusCode::OK, json, r#"{"status":"ready"}"#.into()),
            _ => (StatusCode::NOT_FOUND, json, r#"{"message":"allowed: /health/live, /health/ready"}"#.into()),
        };
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        Some(response)
    }

    /// Whether a request shows one of the account's keys, as scrapers of metrics can: `Authorization: Bearer KEY`.
    fn has_key(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        shown
            .and_then(|text| text.strip_prefix("Bearer "))
            .is_some_and(|key| self.transport.keys.has(key.trim()))
    }
}

fn closing(mut answered: Answered) -> Answered {
    let headers = answered.response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    answered
}

/// Counts a request in and, however it ends, out.
struct InFlight<'a> {
    metrics: &'a Metrics,
    watch: &'a Watch,
    before: i64,
}

impl<'a> InFlight<'a> {
    fn enter(metrics: &'a Metrics, watch: &'a Watch) -> InFlight<'a> {
        watch.request_began();
        InFlight { metrics, watch, before: metrics.requests_in_flight.fetch_add(1, Relaxed) }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.metrics.requests_in_flight.fetch_sub(1, Relaxed);
        self.watch.request_ended();
    }
}

struct Panicked;

/// A defect in one request must not take the other streams of its connection with it; the panic hook has logged it.
async fn guarded<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}
