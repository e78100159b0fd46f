//! One request: receive its body, have it answered, count it, log it.
//!
//! The order of things is chosen for the common case, an answer that is ready at once: no timer is armed, no task is
//! spawned, a body that came in one piece is not copied. Only when something is not ready does a deadline begin.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use crate::api::{Api, Client, ConnectionInfo, Refusal, SharedBackend, Summary};
use crate::limits::{BODIES_BYTES_MAX, DISCARDED_BYTES_MAX, REQUESTS_IN_FLIGHT_MAX};
use crate::log::LogSink;
use crate::metrics::Metrics;
use crate::request_log::{Line, RequestLog};
use crate::watch::Watch;

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

pub struct Dispatcher<A> {
    pub api: A,
    pub backend: SharedBackend,
    pub metrics: Metrics,
    pub request_log: RequestLog,
    pub log: LogSink,
    pub request_timeout: Duration,
    /// Bytes of bodies being received in more than one piece.
    bodies_bytes: AtomicUsize,
}

impl<A: Api> Dispatcher<A> {
    pub fn new(
        api: A,
        backend: SharedBackend,
        request_log: RequestLog,
        log: LogSink,
        request_timeout: Duration,
    ) -> Self {
        let metrics = Metrics::new(A::NAME);
        Dispatcher {
            api,
            backend,
            metrics,
            request_log,
            log,
            request_timeout,
            bodies_bytes: AtomicUsize::new(0),
        }
    }

    pub async fn answer(
        &self,
        request: Request<Incoming>,
        connection: ConnectionInfo,
        client: Client,
        watch: &Watch,
    ) -> Result<Response<Bytes>, HungUp> {
        let began = Instant::now();
        let in_flight = InFlight::enter(&self.metrics, watch);
        if let Some(response) = self.own_path(&request) {
            return Ok(response);
        }
        let method = request.method().clone();
        let uri = request.uri().clone();
        let (response, summary) = if in_flight.before >= REQUESTS_IN_FLIGHT_MAX as i64 {
            self.refuse(Refusal::Overloaded)
        } else {
            match self.receive(request).await {
                Ok(mut request) => {
                    self.api.attach(&mut request, connection, client);
                    self.handle(request).await
                }
                Err(refusal) => self.refuse(refusal),
            }
        };
        if let Some(fault) = &summary.fault
            && !fault.delay.is_zero()
        {
            tokio::time::sleep(fault.delay).await;
        }
        let duration_us = began.elapsed().as_micros() as u64;
        let status = response.status().as_u16();
        self.metrics.request(summary.operation, status, duration_us, summary.charge_ru);
        if self.request_log.wants(status) || summary.fault.is_some() {
            let activity =
                response.headers().get(ACTIVITY_ID).and_then(|value| value.to_str().ok()).unwrap_or("");
            self.request_log.write(&Line {
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

    async fn handle(&self, request: Request<Bytes>) -> (Response<Bytes>, Summary) {
        // Pinned here and passed on by reference: the future is some kilobytes, and wrappers that own it would each copy it.
        let future = pin!(self.api.handle(request));
        match within(self.request_timeout, guarded(future)).await {
            Some(Ok(response)) => {
                let summary = self.api.summary(&response);
                (response, summary)
            }
            Some(Err(Panicked)) => {
                self.metrics.panics.fetch_add(1, Relaxed);
                self.refuse(Refusal::Defect)
            }
            None => self.refuse(Refusal::TimedOut),
        }
    }

    fn refuse(&self, refusal: Refusal) -> (Response<Bytes>, Summary) {
        let mut response = self.api.refuse(refusal);
        if refusal != Refusal::Overloaded && refusal != Refusal::Defect {
            // The rest of the body may still be on its way; reading it only to throw it away helps nobody.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        (response, Summary { operation: refusal.parts().2, ..Summary::default() })
    }

    /// The whole body, within the limits of size and time.
    async fn receive(&self, request: Request<Incoming>) -> Result<Request<Bytes>, Refusal> {
        let (head, body) = request.into_parts();
        if body.is_end_stream() {
            return Ok(Request::from_parts(head, Bytes::new()));
        }
        let waits_to_be_asked = head.headers.contains_key(header::EXPECT);
        let received = within(self.request_timeout, self.receive_body(body, waits_to_be_asked)).await;
        let bytes = received.unwrap_or(Err(Refusal::TimedOut))?;
        Ok(Request::from_parts(head, bytes))
    }

    async fn receive_body(&self, mut body: Incoming, waits_to_be_asked: bool) -> Result<Bytes, Refusal> {
        let bytes_max = self.api.body_bytes_max() as u64;
        let announced = body.size_hint().exact();
        let result = match announced {
            Some(bytes) if bytes > bytes_max => Err(Refusal::BodyTooLarge),
            _ => self.collect(&mut body, announced, bytes_max).await,
        };
        if result == Err(Refusal::BodyTooLarge) {
            self.metrics.bodies_refused.fetch_add(1, Relaxed);
            // A client that is still sending does not read: closing now would show it a broken connection instead of
            // the refusal. One that asked first (`Expect`) has sent nothing.
            let mut left = if waits_to_be_asked { 0 } else { DISCARDED_BYTES_MAX };
            while left > 0
                && let Some(Ok(frame)) = body.frame().await
            {
                left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            }
        }
        result
    }

    async fn collect(
        &self,
        body: &mut Incoming,
        announced: Option<u64>,
        bytes_max: u64,
    ) -> Result<Bytes, Refusal> {
        let mut first = Bytes::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| Refusal::BodyBroken)?.into_data() else { continue };
            if first.is_empty() && (announced == Some(data.len() as u64) || body.is_end_stream()) {
                return Ok(data);
            }
            if first.is_empty() {
                first = data;
                break;
            }
        }
        // In several pieces: memory for it is taken from a shared allowance first.
        let mut reserved = Reserved { total: &self.bodies_bytes, bytes: 0 };
        reserved.grow_to(announced.unwrap_or(first.len() as u64) as usize)?;
        let mut bytes = BytesMut::with_capacity(reserved.bytes);
        bytes.extend_from_slice(&first);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| Refusal::BodyBroken)?.into_data() else { continue };
            let length = bytes.len() + data.len();
            if length as u64 > bytes_max {
                return Err(Refusal::BodyTooLarge);
            }
            reserved.grow_to(length)?;
            bytes.extend_from_slice(&data);
        }
        Ok(bytes.freeze())
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
            "/metrics" => {
                let mut text = self.metrics.render(Some(&self.backend.figures()), self.log.dropped());
                self.backend.account_metrics(&mut text);
                (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text)
            }
            "/health/live" => (StatusCode::OK, json, r#"{"status":"live"}"#.into()),
            "/health/ready" if self.backend.figures().writes_stopped => (
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

/// A share of the allowance for bodies, given back when dropped.
struct Reserved<'a> {
    total: &'a AtomicUsize,
    bytes: usize,
}

impl Reserved<'_> {
    fn grow_to(&mut self, bytes: usize) -> Result<(), Refusal> {
        let more = bytes.saturating_sub(self.bytes);
        if self.total.fetch_add(more, Relaxed) + more > BODIES_BYTES_MAX {
            self.total.fetch_sub(more, Relaxed);
            return Err(Refusal::Overloaded);
        }
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Relaxed);
    }
}

/// Runs a future with a deadline that only begins when the first poll finds it not ready. `None`: too late.
async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    match poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        Poll::Ready(output) => Some(output),
        Poll::Pending => tokio::time::timeout(limit, future).await.ok(),
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
