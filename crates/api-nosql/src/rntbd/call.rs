//! One request of a connection, from its frame to its answer.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, Uri};
use orrery_api::{Attendant, Connection, Refusal, Summary};
use orrery_budget::{Budget, Held};

use super::frame::RequestHead;
use super::request::{self, FrameRequest, Return};
use super::response::{self, Recipient};
use crate::errors::{ApiError, Result, Voice};
use crate::fields::Fields;
use crate::generation::ClientGeneration;
use crate::headers::{Answer, text_value};
use crate::service::{Performed, Service, Wanted};

/// A larger answer is charged to the memory that all requests share until it is sent.
const ANSWER_FREE_BYTES: usize = 64 * 1024;

/// What the requests of a connection have in common.
pub struct Shared {
    pub service: Arc<Service>,
    pub connection: Connection,
    pub attendant: Arc<dyn Attendant>,
    /// What the client knows, by the version that it gave at first.
    pub generation: ClientGeneration,
}

/// A request as it has arrived.
pub struct Call {
    pub head: RequestHead,
    frame: Bytes,
    pub payload: Bytes,
    _held: Option<Held>,
}

impl Call {
    pub fn new(frame: Bytes, payload: Bytes, held: Option<Held>) -> Option<Call> {
        Some(Call { head: RequestHead::read(&frame)?, frame, payload, _held: held })
    }
}

/// An answer on its way.
pub struct Reply {
    pub frame: Vec<u8>,
    pub payload: Bytes,
    pub held: Option<Held>,
    /// The connection ends instead, because a fault rule says so.
    pub hangs_up: bool,
}

impl Shared {
    /// Answers every request, also with errors.
    pub async fn answer(self: Arc<Self>, call: Call) -> Reply {
        let started = Instant::now();
        let now_ms = self.service.account.env().now_ms();
        let in_flight = InFlight::enter(&*self.attendant, started);
        let mut returned = Return::default();
        let mut performed = Performed::default();
        let mut operation = "invalid";
        let outcome = match request::read(&call.head, &call.frame, &mut returned) {
            Err(error) => Err(error),
            Ok(asked) => {
                operation = asked.action.name();
                let work = pin!(self.perform(&call, &asked, &returned, started, now_ms, &mut performed));
                within(self.service.config.request_time, guarded(work))
                    .await
                    .unwrap_or_else(|refusal| Err(refused(refusal)))
            }
        };
        let answer = outcome.unwrap_or_else(|error| self.render(&error, &call.head, &returned, now_ms));
        let mut summary = Summary {
            operation,
            substatus: answer.substatus,
            charge_ru: answer.charge_ru,
            fault: performed.fault,
        };
        let (answer, held) = self.held(answer, performed.budget, &call.head, &returned, now_ms);
        if let Some(fault) = &summary.fault
            && !fault.delay.is_zero()
        {
            tokio::time::sleep(fault.delay).await;
        }
        let hangs_up = summary.fault.as_ref().is_some_and(|fault| fault.drop);
        summary.substatus = answer.substatus;
        in_flight.ended(&summary, answer.status.as_u16());
        let response = response::write(answer, &self.recipient(&call.head, returned, started));
        Reply { frame: response.frame, payload: response.payload, held, hangs_up }
    }

    async fn perform(
        &self,
        call: &Call,
        asked: &FrameRequest<'_>,
        returned: &Return<'_>,
        started: Instant,
        now_ms: u64,
        performed: &mut Performed,
    ) -> Result<Answer> {
        // It may keep a thread, of which there are so many; and the connection, and others, want some too.
        let _turn = match request::takes_long(call.head.operation) {
            false => None,
            true => match self.attendant.long_turn().await {
                Some(turn) => Some(turn),
                None => return Err(refused(Refusal::Overloaded)),
            },
        };
        let uri = Uri::default();
        let wanted = Wanted {
            action: asked.action,
            method: asked.method,
            path: &asked.path,
            fields: Fields::of_tokens(&asked.fields),
            generation: self.generation_of(returned),
            uri: &uri,
            connection: &self.connection,
            body: &call.payload,
            direct: Some(&asked.direct),
            started,
            now_ms,
        };
        self.service.perform(&wanted, performed).await
    }

    /// Why a request would be refused whatever its payload; `None`: it may be carried out, or that cannot be told yet.
    pub fn refusal(&self, head: &RequestHead, frame: &[u8]) -> Option<ApiError> {
        let mut returned = Return::default();
        let asked = match request::read(head, frame, &mut returned) {
            Ok(asked) => asked,
            Err(error) => return Some(error),
        };
        let now_ms = self.service.account.env().now_ms();
        let fields = Fields::of_tokens(&asked.fields);
        let admitted = pin!(self.service.admit(asked.action, asked.method, &asked.path, fields, now_ms));
        match admitted.poll(&mut std::task::Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(error)) => Some(error),
            Poll::Ready(Ok(_)) | Poll::Pending => None,
        }
    }

    /// The answer to a request that is not carried out.
    pub fn refused(&self, head: &RequestHead, frame: &[u8], error: &ApiError) -> Reply {
        let started = Instant::now();
        let in_flight = InFlight::enter(&*self.attendant, started);
        let mut returned = Return::default();
        let operation = match request::read(head, frame, &mut returned) {
            Ok(asked) => asked.action.name(),
            Err(_) => "invalid",
        };
        let answer = self.render(error, head, &returned, self.service.account.env().now_ms());
        in_flight.ended(
            &Summary { substatus: answer.substatus, ..Summary::of(operation) },
            answer.status.as_u16(),
        );
        let response = response::write(answer, &self.recipient(head, returned, started));
        Reply { frame: response.frame, payload: response.payload, held: None, hangs_up: false }
    }

    /// A large answer is charged for until it is sent, or refused if there is no room for it.
    fn held(
        &self,
        answer: Answer,
        budget: Option<Budget>,
        head: &RequestHead,
        returned: &Return<'_>,
        now_ms: u64,
    ) -> (Answer, Option<Held>) {
        if answer.body.len() <= ANSWER_FREE_BYTES {
            return (answer, None);
        }
        let budget = budget.unwrap_or_else(|| Budget::new(self.service.config.memory.clone()));
        match budget.hold(answer.body.len()) {
            Ok(held) => (answer, Some(held)),
            Err(exceeded) => (self.render(&exceeded.into(), head, returned, now_ms), None),
        }
    }

    fn render(&self, error: &ApiError, head: &RequestHead, returned: &Return<'_>, now_ms: u64) -> Answer {
        let mut text = uuid::Uuid::encode_buffer();
        let activity = uuid::Uuid::from_bytes_le(head.activity).hyphenated().encode_lower(&mut text);
        let activity: HeaderValue = text_value(activity);
        self.service.render(error, &activity, returned.replica_path, now_ms)
    }

    fn recipient<'f>(&self, head: &RequestHead, returned: Return<'f>, started: Instant) -> Recipient<'f> {
        Recipient {
            activity: head.activity,
            generation: self.generation_of(&returned),
            returned,
            catalog_lsn: self.service.account.catalog_lsn(),
            started,
        }
    }

    fn generation_of(&self, returned: &Return<'_>) -> ClientGeneration {
        returned.version.map_or(self.generation, |version| ClientGeneration::of_version(version.as_bytes()))
    }
}

/// What the server refuses by itself, in the words that it has over HTTP.
fn refused(refusal: Refusal) -> ApiError {
    let (status, message) = match refusal {
        Refusal::Overloaded => (
            StatusCode::SERVICE_UNAVAILABLE,
            "The server has no room for another request. Please retry later.",
        ),
        Refusal::TimedOut => (StatusCode::REQUEST_TIMEOUT, "The request took longer than the server allows"),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "The server failed while answering; its log says more"),
    };
    ApiError::new(status, Voice::Partition, message)
}

/// Waits for work, but not for ever. Only when it is not ready at once does a clock begin to run.
async fn within<T>(
    limit: Duration,
    work: impl Future<Output = std::result::Result<T, Refusal>>,
) -> std::result::Result<T, Refusal> {
    let mut work = pin!(work);
    if let Poll::Ready(done) = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        return done;
    }
    tokio::time::timeout(limit, work).await.unwrap_or(Err(Refusal::TimedOut))
}

/// A defect in one request must not take the others of its connection with it; the panic hook has logged it.
async fn guarded<T>(mut work: Pin<&mut impl Future<Output = T>>) -> std::result::Result<T, Refusal> {
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(_) => Poll::Ready(Err(Refusal::Defect)),
    })
    .await
}

/// Counts a request in and, however it ends, out.
struct InFlight<'a> {
    attendant: &'a dyn Attendant,
    started: Instant,
    is_over: bool,
}

impl<'a> InFlight<'a> {
    fn enter(attendant: &'a dyn Attendant, started: Instant) -> InFlight<'a> {
        attendant.request_began();
        InFlight { attendant, started, is_over: false }
    }

    fn ended(mut self, summary: &Summary, status: u16) {
        self.is_over = true;
        self.attendant.request_ended(summary, status, self.started.elapsed());
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // The connection has gone before the answer.
            let status = StatusCode::REQUEST_TIMEOUT.as_u16();
            self.attendant.request_ended(&Summary::of("abandoned"), status, self.started.elapsed());
        }
    }
}
