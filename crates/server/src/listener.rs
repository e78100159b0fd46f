//! Accepting connections and running each in the protocol it speaks.
//!
//! ```text
//! accept ─> first bytes (`sniff`) ─┬─ TLS handshake ─> ALPN ─┬─ h2 ─────────> HTTP/2
//!                                  │                         └─ first bytes, as without TLS
//!                                  ├─ claimed by a stream api ───────────────> the api itself (`attendant`)
//!                                  ├─ "PRI * HTTP/2" ────────────────────────> HTTP/2
//!                                  └─ anything else ─────────────────────────> HTTP/1.1
//! ```
//!
//! HTTP/1.1 runs on hyper's connection directly: no router, no middleware, no boxed bodies.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use orrery_api::{Client, Connection, HttpApi, Refusal, StreamApi};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::api::Apis;
use crate::attendant;
use crate::client::{self, answered_aside};
use crate::config::TlsMode;
use crate::connection::{Order, Watch};
use crate::dispatch::{Dispatcher, HungUp};
use crate::limits::{
    ACCEPT_BACKLOG, ACCEPT_PAUSE, ACCEPTED_AT_ONCE, HEADER_BYTES_MAX, HTTP2_CONNECTION_WINDOW_BYTES,
    HTTP2_ERROR_RESETS_MAX, HTTP2_PENDING_RESETS_MAX, HTTP2_SEND_BUFFER_BYTES_MAX, HTTP2_STREAM_WINDOW_BYTES,
    STREAMS_PER_CONNECTION_MAX,
};
use crate::peeked::Peeked;
use crate::sniff::{Spoken, recognise};
use crate::stream::Stream;
use crate::tls::ALPN_HTTP2;
use crate::transport::Transport;

/// A port: which protocols are spoken there.
pub struct Port<A> {
    pub dispatcher: Dispatcher<A>,
    /// Protocols that are told by their first bytes.
    pub streams: Vec<Arc<dyn StreamApi>>,
}

impl<A: HttpApi> Port<A> {
    pub fn new(apis: Apis<A>, transport: Arc<Transport>) -> Port<A> {
        Port { dispatcher: Dispatcher::new(apis.http, apis.portal, transport), streams: apis.streams }
    }

    pub fn transport(&self) -> &Arc<Transport> {
        self.dispatcher.transport()
    }
}

pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv6() { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(ACCEPT_BACKLOG)
}

/// Accepts until the future is dropped.
pub async fn accept<A: HttpApi>(listener: TcpListener, port: Arc<Port<A>>) {
    for number in 1.. {
        if number % ACCEPTED_AT_ONCE == 0 {
            tokio::task::yield_now().await;
        }
        let (tcp, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let metrics = &port.transport().metrics;
        metrics.connections_accepted.fetch_add(1, Relaxed);
        match port.transport().connections.open(port.transport().connections_max, peer.ip()) {
            Some(watch) => {
                let port = port.clone();
                tokio::spawn(async move {
                    if let Err(error) = serve(tcp, peer, watch, &port).await {
                        tracing::debug!(%peer, %error, "connection ended");
                    }
                });
            }
            None => {
                metrics.connections_refused.fetch_add(1, Relaxed);
                // Best effort for a plain client; a TLS client just sees the end.
                let _ = tcp.try_write(plain_refusal(Refusal::Overloaded).as_bytes());
            }
        }
    }
}

async fn serve<A: HttpApi>(
    tcp: TcpStream,
    peer: SocketAddr,
    watch: Arc<Watch>,
    port: &Arc<Port<A>>,
) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let local = tcp.local_addr()?;
    let socket = tcp.as_raw_fd();
    let info = |tls| Info { tls, local, peer, socket };
    let metrics = &port.transport().metrics;
    let opening = async {
        let stream = Stream::new(tcp, watch.clone());
        let recognise = |first: &[u8], more| recognise(first, more, &port.streams);
        let Some((stream, spoken)) = Peeked::read(stream, recognise).await? else { return Ok(None) };
        if !matches!(spoken, Spoken::Tls) {
            return Ok(Some(Opened::Plain(stream, spoken)));
        }
        if port.transport().tls_mode == TlsMode::Off {
            return Err(io::Error::other("TLS is switched off"));
        }
        let acceptor = port.transport().tls.acceptor().await.map_err(|error| {
            tracing::error!(error = format!("{error:#}"), "TLS is not available");
            io::Error::other(error)
        })?;
        let stream = acceptor.accept(stream).await.inspect_err(|_| {
            metrics.tls_failures.fetch_add(1, Relaxed);
        })?;
        let (http2, stream) = (stream.get_ref().1.alpn_protocol() == Some(ALPN_HTTP2), Box::new(stream));
        if http2 || port.streams.is_empty() {
            return Ok(Some(Opened::Tls(stream, http2)));
        }
        let inside = Peeked::read(stream, recognise).await?;
        Ok(inside.map(|(stream, spoken)| Opened::TlsPeeked(Box::new(stream), spoken)))
    };
    let opened = tokio::select! {
        opened = opening => opened?,
        _ = watch.ordered() => return Ok(()),
    };
    match opened {
        None => Ok(()),
        Some(Opened::Plain(stream, _)) if port.transport().tls_mode == TlsMode::Required => {
            use tokio::io::AsyncWriteExt;
            let mut stream = stream;
            stream.write_all(plain_refusal(Refusal::TlsRequired).as_bytes()).await?;
            stream.shutdown().await
        }
        Some(Opened::Plain(stream, spoken)) => {
            let _open = Open::enter(&metrics.connections_plain);
            speak(stream, spoken, info(false), watch, port).await
        }
        Some(Opened::Tls(stream, http2)) => {
            let _open = Open::enter(&metrics.connections_tls);
            run(stream, http2, info(true), watch, port).await
        }
        Some(Opened::TlsPeeked(stream, spoken)) => {
            let _open = Open::enter(&metrics.connections_tls);
            speak(stream, spoken, info(true), watch, port).await
        }
    }
}

type TlsStream = tokio_rustls::server::TlsStream<Peeked<Stream>>;

enum Opened {
    Plain(Peeked<Stream>, Spoken),
    Tls(Box<TlsStream>, bool),
    /// What is inside was looked at, too.
    TlsPeeked(Box<Peeked<Box<TlsStream>>>, Spoken),
}

/// A connection as every request on it knows it, and its socket.
#[derive(Clone, Copy)]
struct Info {
    tls: bool,
    local: SocketAddr,
    peer: SocketAddr,
    socket: RawFd,
}

impl Info {
    fn connection(self, client: Client) -> Connection {
        Connection { tls: self.tls, local: self.local, peer: self.peer, client }
    }
}

/// Hands a connection to whoever speaks its protocol.
async fn speak<A: HttpApi, S>(
    stream: S,
    spoken: Spoken,
    info: Info,
    watch: Arc<Watch>,
    port: &Arc<Port<A>>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match spoken {
        Spoken::Stream(api) => {
            let connection = info.connection(client::of_socket(info.socket));
            attendant::attend(api.as_ref(), Box::new(stream), connection, watch, port.transport().clone())
                .await
        }
        Spoken::Http2 => run(stream, true, info, watch, port).await,
        // Inside of TLS another handshake is no HTTP either, and is refused as such.
        Spoken::Http1 | Spoken::Tls => run(stream, false, info, watch, port).await,
    }
}

async fn run<A: HttpApi, S>(
    stream: S,
    http2: bool,
    info: Info,
    watch: Arc<Watch>,
    port: &Arc<Port<A>>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let context = Arc::new((port.clone(), watch.clone()));
    let service = service_fn(move |request: Request<Incoming>| {
        let context = context.clone();
        async move {
            let (port, watch) = &*context;
            let dispatcher = &port.dispatcher;
            let long = dispatcher.api.may_take_long(request.method(), request.uri(), request.headers());
            if !http2 {
                let connection = info.connection(client::of_socket(info.socket));
                return dispatcher.answer(request, connection, watch, long).await;
            }
            // The streams of a connection must not take more than their share.
            let Some(turn) = watch.turn(long, dispatcher.transport().request_timeout).await else {
                return Ok(dispatcher.refused(Refusal::Overloaded, request.uri(), watch));
            };
            if !long {
                let connection = info.connection(Client::Unknown);
                return dispatcher.answer(request, connection, watch, false).await;
            }
            let context = context.clone();
            let answered = answered_aside(|client| async move {
                // Kept here: a stream that was reset gives its turn back when the work for it has ended.
                let _turn = turn;
                let (port, watch) = &*context;
                port.dispatcher.answer(request, info.connection(client), watch, true).await
            });
            answered.await.unwrap_or(Err(HungUp))
        }
    });
    // The same few lines for two types of connection, which share no trait that has a graceful end.
    macro_rules! drive {
        ($connection:expr) => {{
            let mut connection = pin!($connection);
            loop {
                tokio::select! {
                    biased;
                    result = connection.as_mut() => return result.map_err(io::Error::other),
                    order = watch.ordered() => match order {
                        Order::Finish => connection.as_mut().graceful_shutdown(),
                        Order::Close => return Ok(()),
                    },
                }
            }
        }};
    }
    if http2 {
        watch.set_multiplexed();
        drive!(
            hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
                .initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
                .initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
                .max_header_list_size(HEADER_BYTES_MAX as u32)
                .max_pending_accept_reset_streams(HTTP2_PENDING_RESETS_MAX)
                .max_local_error_reset_streams(HTTP2_ERROR_RESETS_MAX)
                .max_send_buf_size(HTTP2_SEND_BUFFER_BYTES_MAX)
                .serve_connection(TokioIo::new(stream), service)
        )
    } else {
        drive!(
            hyper::server::conn::http1::Builder::new()
                .max_header_size(HEADER_BYTES_MAX)
                .serve_connection(TokioIo::new(stream), service)
        )
    }
}

fn plain_refusal(refusal: Refusal) -> String {
    let (status, body, _) = refusal.parts();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

struct Open<'a>(&'a AtomicI64);

impl<'a> Open<'a> {
    fn enter(count: &'a AtomicI64) -> Open<'a> {
        count.fetch_add(1, Relaxed);
        Open(count)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
