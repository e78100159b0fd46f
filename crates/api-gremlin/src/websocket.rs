//! A WebSocket connection: messages in, frames out, several requests at a time.
//!
//! ```text
//! message ── read ─┬─ not known yet: kept, and the first one challenged (407)
//!                  ├─ authentication: those that were kept are run, or refused (401)
//!                  └─ eval, bytecode ── a task each ── frames ── queue ── written by the connection
//! ```
//!
//! What a connection keeps is bounded: requests in flight, requests that wait for credentials, frames that wait to be
//! written. A connection that ends takes its traversals with it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, HeaderValue, Response, header};
use orrery_api::{Attendant, ByteStream, Client, Connection, Summary};
use orrery_budget::Budget;
use orrery_gremlin::Value;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::handshake::server::Response as UpgradeResponse;
use tokio_tungstenite::tungstenite::handshake::server::{Callback, ErrorResponse, Request as Upgrade};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use crate::access::Identity;
use crate::errors::{Failure, code};
use crate::execution::{Done, Outlet, Work, empty, refusal};
use crate::message::{self, Format, Request, Unreadable};
use crate::sasl::Credentials;
use crate::service::Core;

/// Largest message of a client.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Read and written at once; connections are many and mostly idle.
const BUFFER_BYTES: usize = 8 * 1024;
const WRITE_BUFFER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Requests of one connection that run or wait to run.
const IN_FLIGHT_MAX: usize = 64;
/// Requests that are kept until the client has said who it is.
const KEPT_MAX: usize = 32;
/// Frames of all requests of a connection that wait to be written.
const FRAMES_MAX: usize = 8;
/// A frame ends with the result that crosses this.
const FRAME_BYTES: usize = 256 * 1024;
/// Of what a client calls itself.
const DRIVER_CHARS_MAX: usize = 200;
/// How long a traversal waits before it looks again whether there is room for its frame.
const FULL_PAUSE: Duration = Duration::from_millis(2);

/// Refuses an opening handshake that comes from where nothing should come from.
struct Doorkeeper<'c> {
    core: &'c Core,
    /// What the client calls itself.
    driver: &'c mut String,
}

impl Callback for Doorkeeper<'_> {
    fn on_request(
        self,
        request: &Upgrade,
        response: UpgradeResponse,
    ) -> Result<UpgradeResponse, ErrorResponse> {
        let check = &self.core.config.hosts;
        if let Some(name) = request.headers().get(header::USER_AGENT).and_then(|name| name.to_str().ok()) {
            self.driver.extend(name.chars().take(DRIVER_CHARS_MAX));
        }
        let mut verdict = check(request.headers(), request.uri());
        // Browsers let any page open any WebSocket, and say which page it was.
        if !is_own_page(request.headers()) {
            verdict = verdict.and_then(|()| check(&foreign(), &http::Uri::from_static("/")));
        }
        match verdict {
            Ok(()) => Ok(response),
            Err(refusal) => {
                let (status, body, _) = refusal.parts();
                let mut refused: ErrorResponse = Response::new(Some(body.to_owned()));
                *refused.status_mut() = status;
                Err(refused)
            }
        }
    }
}

/// Whether no page asks, or one of this very server: the same name and the same port. Pages of other ports of a
/// machine are other people's.
fn is_own_page(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    origin.zip(host).is_some_and(|((_, origin), host)| origin.eq_ignore_ascii_case(host))
}

/// A request by a name that nobody has: refused where names are checked at all.
fn foreign() -> HeaderMap {
    HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("page.invalid"))])
}

pub async fn serve(
    core: Arc<Core>,
    stream: Box<dyn ByteStream>,
    connection: Connection,
    attendant: Arc<dyn Attendant>,
) -> io::Result<()> {
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_write_buffer_size(WRITE_BUFFER_BYTES_MAX)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let mut driver = String::new();
    let doorkeeper = Doorkeeper { core: &core, driver: &mut driver };
    let accepted = tokio_tungstenite::accept_hdr_async_with_config(stream, doorkeeper, Some(config));
    let mut socket = accepted.await.map_err(io::Error::other)?;
    let (sender, mut frames) = mpsc::channel(FRAMES_MAX);
    let mut session = Session {
        core,
        driver,
        identity: None,
        kept: Vec::new(),
        challenged: false,
        sender,
        in_flight: Arc::new(AtomicUsize::new(0)),
        gone: Gone(Arc::new(AtomicBool::new(false))),
        client: connection.client,
        attendant: attendant.clone(),
    };
    let mut ended = std::pin::pin!(attendant.ended());
    let mut finishing = false;
    loop {
        if finishing && session.in_flight.load(Relaxed) == 0 && frames.is_empty() {
            let away = CloseFrame { code: CloseCode::Away, reason: "the server is stopping".into() };
            return close(&mut socket, Some(away)).await;
        }
        tokio::select! {
            biased;
            frame = frames.recv() => match frame {
                Some(Out::Frame(frame)) => socket.send(frame).await.map_err(io::Error::other)?,
                Some(Out::HangUp) | None => return Ok(()),
                Some(Out::Wake) => {}
            },
            () = &mut ended, if !finishing => finishing = true,
            message = socket.next(), if !finishing => match message {
                None => return Ok(()),
                Some(Ok(Message::Binary(bytes))) => {
                    let read = message::read_binary(&bytes, session.core.config.results);
                    for frame in session.take(read) {
                        socket.send(frame).await.map_err(io::Error::other)?;
                    }
                }
                Some(Ok(Message::Text(text))) => {
                    let read = message::read_json(text.as_bytes(), Format::Untyped);
                    for frame in session.take(read) {
                        socket.send(frame).await.map_err(io::Error::other)?;
                    }
                }
                Some(Ok(Message::Close(_))) => return close(&mut socket, None).await,
                // Pings are answered by the library.
                Some(Ok(_)) => socket.flush().await.map_err(io::Error::other)?,
                Some(Err(SocketError::Capacity(_))) => {
                    let large = CloseFrame { code: CloseCode::Size, reason: "Request size is too large".into() };
                    return close(&mut socket, Some(large)).await;
                }
                Some(Err(error)) => return Err(io::Error::other(error)),
            },
        }
    }
}

type Socket = tokio_tungstenite::WebSocketStream<Box<dyn ByteStream>>;

async fn close(socket: &mut Socket, frame: Option<CloseFrame>) -> io::Result<()> {
    match socket.close(frame).await {
        Ok(()) | Err(SocketError::ConnectionClosed) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// What tasks hand to their connection.
enum Out {
    Frame(Message),
    /// The connection ends without an answer.
    HangUp,
    /// A request has ended.
    Wake,
}

/// Tells the traversals of a connection that it has ended.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

struct Session {
    core: Arc<Core>,
    /// What the client calls itself.
    driver: String,
    identity: Option<Identity>,
    kept: Vec<Request>,
    challenged: bool,
    sender: mpsc::Sender<Out>,
    in_flight: Arc<AtomicUsize>,
    gone: Gone,
    client: Client,
    attendant: Arc<dyn Attendant>,
}

impl Session {
    /// Takes a message; gives what is to be answered at once.
    fn take(&mut self, read: Result<Request, Unreadable>) -> Vec<Message> {
        let request = match read {
            Ok(request) => Request { format: request.format.for_driver(&self.driver), ..request },
            Err(Unreadable { id, format, failure }) => {
                self.log("gremlin_malformed", failure.http_status());
                return vec![Message::binary(refusal(&self.core, id, format, &failure))];
            }
        };
        match request.op.as_str() {
            "authentication" => self.authenticate(&request),
            "eval" | "bytecode" if self.identity.is_none() => self.keep(request),
            "eval" | "bytecode" => self.run(request).into_iter().collect(),
            // The end of a session, or of side effects: there are none to forget.
            "close" => vec![Message::binary(empty(request.id, request.format, code::SUCCESS))],
            other => {
                let shown: String = other.chars().take(64).collect();
                let failure = Failure::malformed(format!("Unsupported request operation: '{shown}'."));
                vec![self.refused(&request, "gremlin_malformed", &failure)]
            }
        }
    }

    fn refused(&self, request: &Request, operation: &'static str, failure: &Failure) -> Message {
        self.log(operation, failure.http_status());
        Message::binary(refusal(&self.core, Some(request.id), request.format, failure))
    }

    fn log(&self, operation: &'static str, status: u16) {
        self.attendant.request_began();
        self.attendant.request_ended(&Summary::of(operation), status, Duration::ZERO);
    }

    /// Keeps a request of somebody who is not known yet. One challenge at a time is enough: its answer serves all.
    fn keep(&mut self, request: Request) -> Vec<Message> {
        if self.kept.len() == KEPT_MAX {
            return vec![self.refused(&request, "gremlin_authentication", &Failure::busy())];
        }
        let challenge = empty(request.id, request.format, code::AUTHENTICATE);
        self.kept.push(request);
        match std::mem::replace(&mut self.challenged, true) {
            true => Vec::new(),
            false => vec![Message::binary(challenge)],
        }
    }

    fn authenticate(&mut self, request: &Request) -> Vec<Message> {
        let sasl = request.arg("sasl").or_else(|| request.arg("SASL"));
        let credentials = match sasl {
            Some(Value::String(text)) => Credentials::of_text(text),
            Some(Value::Binary(bytes)) => Credentials::of_bytes(bytes),
            _ => None,
        };
        let now_ms = self.core.account.env().now_ms();
        let known = credentials.ok_or_else(Failure::unauthorized);
        let known = known.and_then(|credentials| self.core.authorizer.recognise(&credentials, now_ms));
        self.challenged = false;
        let kept = std::mem::take(&mut self.kept);
        match known {
            Ok(identity) => {
                self.identity = Some(identity);
                let alone = kept.is_empty();
                let mut answers: Vec<Message> =
                    kept.into_iter().filter_map(|request| self.run(request)).collect();
                if alone {
                    answers.push(Message::binary(empty(request.id, request.format, code::SUCCESS)));
                }
                answers
            }
            Err(failure) => {
                self.identity = None;
                let refused = |session: &Session, request: &Request| {
                    session.refused(request, "gremlin_authentication", &failure)
                };
                match kept.is_empty() {
                    true => vec![refused(self, request)],
                    false => kept.iter().map(|request| refused(self, request)).collect(),
                }
            }
        }
    }

    /// Has a request run; gives the answer if it is not.
    fn run(&mut self, request: Request) -> Option<Message> {
        let identity = self.identity.clone()?;
        if self.in_flight.fetch_add(1, Relaxed) >= IN_FLIGHT_MAX {
            self.in_flight.fetch_sub(1, Relaxed);
            return Some(self.refused(&request, "gremlin_script", &Failure::busy()));
        }
        let (core, sender, attendant) = (self.core.clone(), self.sender.clone(), self.attendant.clone());
        let (client, gone) = (self.client.clone(), self.gone.0.clone());
        let in_flight = self.in_flight.clone();
        attendant.request_began();
        tokio::spawn(async move {
            let began = Instant::now();
            let is_gone = move || gone.load(Relaxed) || client.is_gone();
            let mut outlet = Queue(sender.clone());
            let work = Work {
                core: &core,
                request: &request,
                identity: &identity,
                frame_bytes: FRAME_BYTES,
                is_gone: Box::new(is_gone),
            };
            let run = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work.run(&mut outlet)));
            let done = core.lengthy(run).unwrap_or_else(|_| {
                let frame = refusal(&core, Some(request.id), request.format, &Failure::defect());
                let _ = sender.try_send(Out::Frame(Message::binary(frame)));
                Done { summary: Summary::of("gremlin_script"), status: 500, hung_up: false }
            });
            attendant.request_ended(&done.summary, done.status, began.elapsed());
            in_flight.fetch_sub(1, Relaxed);
            let last = if done.hung_up { Out::HangUp } else { Out::Wake };
            // The connection may be gone, and with it the need to tell it.
            let _ = sender.send(last).await;
        });
        None
    }
}

/// Frames on their way to the connection.
struct Queue(mpsc::Sender<Out>);

impl Outlet for Queue {
    fn send(&mut self, frame: Vec<u8>, budget: &Budget) -> Result<bool, Failure> {
        let mut out = Out::Frame(Message::binary(frame));
        loop {
            match self.0.try_send(out) {
                Ok(()) => return Ok(true),
                Err(mpsc::error::TrySendError::Closed(_)) => return Ok(false),
                // Asking the budget lets others have this thread's turn.
                Err(mpsc::error::TrySendError::Full(back)) => {
                    budget.check()?;
                    std::thread::sleep(FULL_PAUSE);
                    out = back;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_this_server_alone_open_sockets() {
        let own = |pairs: &[(&'static str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| {
                (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
            });
            is_own_page(&HeaderMap::from_iter(pairs))
        };
        let host = ("host", "localhost:8081");
        assert!(own(&[host]), "no page at all");
        assert!(own(&[host, ("origin", "http://localhost:8081")]));
        assert!(own(&[host, ("origin", "https://LOCALHOST:8081")]));
        for other in
            ["http://localhost:3000", "http://localhost", "http://evil.example:8081", "null", "file://"]
        {
            assert!(!own(&[host, ("origin", other)]), "{other}");
        }
    }
}
