//! A TCP connection that tells its watch when bytes arrive.
//!
//! A connection with much to read or to write lets others have its thread in between. The runtime sees to that by
//! counting operations, and an operation may be half a megabyte of pages, or the heads of fifty streams; so here
//! bytes count too.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::coop;

use crate::connection::Watch;
use crate::limits::{READ_IN_PLACE_BYTES, READ_STEP_BYTES, WRITE_STEP_BYTES};

pub struct Stream {
    tcp: TcpStream,
    watch: Arc<Watch>,
}

impl Stream {
    pub fn new(tcp: TcpStream, watch: Arc<Watch>) -> Stream {
        Stream { tcp, watch }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
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
