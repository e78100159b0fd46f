//! A TCP connection whose first bytes were looked at, and which tells its watch when bytes arrive.
//!
//! Plain HTTP/1.1, HTTP/2 and TLS share a port; the first bytes tell them apart. They are read once, kept, and given back
//! to whoever reads next, so telling apart costs one small copy per connection and nothing per request.
//!
//! A connection with much to read or to write lets others have its thread in between. The runtime sees to that by counting
//! operations, and an operation may be half a megabyte of pages, or the heads of fifty streams; so here bytes count too.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::coop;

use crate::limits::{READ_IN_PLACE_BYTES, READ_STEP_BYTES, WRITE_STEP_BYTES};
use crate::watch::Watch;

/// What every HTTP/2 client sends first.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// First byte of a TLS handshake record; no HTTP method starts with it.
const TLS_HANDSHAKE: u8 = 0x16;
/// Enough for the head of a usual request, so the second read is rarely needed.
const FIRST_READ_BYTES: usize = 2048;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoken {
    Tls,
    Http1,
    Http2,
}

pub struct Stream {
    tcp: TcpStream,
    /// Bytes read ahead and not yet given back: `ahead[given..]`.
    ahead: Vec<u8>,
    given: usize,
    watch: Arc<Watch>,
}

impl Stream {
    /// Reads until it is clear what the other side speaks. `None`: it left without a word.
    pub async fn open(mut tcp: TcpStream, watch: Arc<Watch>) -> io::Result<Option<(Stream, Spoken)>> {
        let mut ahead = vec![0; FIRST_READ_BYTES];
        let mut length = 0;
        loop {
            let read = tcp.read(&mut ahead[length..]).await?;
            if read == 0 {
                return Ok(None);
            }
            watch.bytes_arrived();
            length += read;
            if let Some(spoken) = recognise(&ahead[..length]) {
                ahead.truncate(length);
                return Ok(Some((Stream { tcp, ahead, given: 0, watch }, spoken)));
            }
        }
    }
}

/// `None`: so far it could become the HTTP/2 preface, or (`P…`) a method.
fn recognise(bytes: &[u8]) -> Option<Spoken> {
    match bytes {
        [TLS_HANDSHAKE, ..] => Some(Spoken::Tls),
        _ if bytes.starts_with(HTTP2_PREFACE) => Some(Spoken::Http2),
        _ if HTTP2_PREFACE.starts_with(bytes) => None,
        _ => Some(Spoken::Http1),
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.given < self.ahead.len() {
            let count = buffer.remaining().min(self.ahead.len() - self.given);
            buffer.put_slice(&self.ahead[self.given..self.given + count]);
            self.given += count;
            if self.given == self.ahead.len() {
                self.ahead = Vec::new();
                self.given = 0;
            }
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.tcp).poll_read(context, buffer))?;
        self.watch.bytes_arrived();
        let bytes = buffer.filled().len() - before;
        if bytes > READ_IN_PLACE_BYTES || self.watch.is_multiplexed() {
            spend(context, bytes.div_ceil(READ_STEP_BYTES));
        }
        Poll::Ready(Ok(()))
    }
}

/// Takes operations from those that this task may do before others have its thread. The next one after the last waits.
fn spend(context: &mut Context<'_>, operations: usize) {
    for _ in 0..operations {
        if !coop::has_budget_remaining() {
            break;
        }
        if let Poll::Ready(operation) = coop::poll_proceed(context) {
            operation.made_progress();
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.tcp).poll_write(context, bytes))?;
        spend(context, written / WRITE_STEP_BYTES);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.tcp).poll_write_vectored(context, slices))?;
        spend(context, written / WRITE_STEP_BYTES);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_protocols_apart() {
        for (bytes, spoken) in [
            (&b"\x16\x03\x01"[..], Some(Spoken::Tls)),
            (b"G", Some(Spoken::Http1)),
            (b"P", None),
            (b"PR", None),
            (b"PO", Some(Spoken::Http1)),
            (b"PATCH / HTTP/1.1", Some(Spoken::Http1)),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", None),
            (HTTP2_PREFACE, Some(Spoken::Http2)),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0", Some(Spoken::Http2)),
            (b"PRI * HTTP/1.1", Some(Spoken::Http1)),
            (b"\0\xff", Some(Spoken::Http1)),
        ] {
            assert_eq!(recognise(bytes), spoken, "{bytes:?}");
        }
    }
}
