//! A stream of which the first bytes were read ahead, to see what they say, and are given back to whoever reads next.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::limits::{FIRST_BYTES_MAX, FIRST_READ_BYTES};

pub struct Peeked<S> {
    inner: S,
    /// Bytes read ahead and not yet given back: `ahead[given..]`.
    ahead: Vec<u8>,
    given: usize,
}

impl<S: AsyncRead + Unpin> Peeked<S> {
    /// Reads until it is decided what the first bytes are. `decide` is told whether more can come: with the last
    /// bytes that are kept it must decide. `None`: the other side left without a word, or in the middle of one.
    pub async fn read<T>(
        mut inner: S,
        mut decide: impl FnMut(&[u8], bool) -> Option<T>,
    ) -> io::Result<Option<(Peeked<S>, T)>> {
        let mut ahead = vec![0; FIRST_READ_BYTES];
        let mut length = 0;
        loop {
            let read = inner.read(&mut ahead[length..]).await?;
            if read == 0 {
                return Ok(None);
            }
            length += read;
            if let Some(decided) = decide(&ahead[..length], length < FIRST_BYTES_MAX) {
                ahead.truncate(length);
                return Ok(Some((Peeked { inner, ahead, given: 0 }, decided)));
            }
            if length == ahead.len() {
                ahead.resize((2 * length).min(FIRST_BYTES_MAX), 0);
            }
            debug_assert!(length < ahead.len(), "whoever gets the last bytes decides");
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Peeked<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.given == self.ahead.len() {
            return Pin::new(&mut self.inner).poll_read(context, buffer);
        }
        let count = buffer.remaining().min(self.ahead.len() - self.given);
        buffer.put_slice(&self.ahead[self.given..self.given + count]);
        self.given += count;
        if self.given == self.ahead.len() {
            self.ahead = Vec::new();
            self.given = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Peeked<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
