//! The body of an answer until the network has taken it.
//!
//! An answer that nobody reads stays in memory as long as its connection lives. So every answer counts towards its
//! connection until its last byte is written ([`Watch`]), and a large one is charged to the memory that all requests
//! share, in the budget of its request:
//!
//! ```text
//! at most 64 KB        counted for its connection: no allocation, nothing shared
//! larger               also charged to the pool, and known to the sweeper, which ends connections that do not read
//! beyond half the pool refused with 503, and whoever has read nothing for the longest time is hung up on
//! ```
//!
//! It is handed out in pieces of 64 KB: hyper buffers what it was given, and it must not be given four megabytes by
//! every stream of a client that reads nothing. A piece carries the charge too, so that what waits in hyper's buffers
//! is counted like what waits here.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, SizeHint};
use orrery_budget::{Budget, Exceeded, Held, MemoryPool};

use crate::connection::Watch;
use crate::limits::ANSWER_PIECE_BYTES;

/// A body that knows whether it was sent.
pub struct Answer {
    rest: Bytes,
    charge: Charge,
}

#[derive(Clone, Default)]
enum Charge {
    #[default]
    None,
    Small(Arc<Watch>, usize),
    Large(Arc<Unsent>),
}

/// A large answer that was not wholly sent yet.
pub struct Unsent {
    watch: Arc<Watch>,
    held: Held,
    /// The tick at which some of it was last taken.
    since: AtomicU32,
}

impl Answer {
    /// A body for a connection. Refused when the answers that wait to be read have taken what there is for them.
    pub fn new(
        body: Bytes,
        watch: &Arc<Watch>,
        pool: &Arc<MemoryPool>,
        budget: Option<Budget>,
    ) -> Result<Answer, Exceeded> {
        let bytes = body.len();
        let charge = match bytes {
            0 => Charge::None,
            _ if bytes <= ANSWER_PIECE_BYTES => Charge::small(watch, bytes),
            _ => {
                let unread_bytes_max = pool.limit_bytes() / 2;
                if !watch.connections().take_unread(bytes, unread_bytes_max) {
                    watch.connections().end_longest_unread();
                    return Err(Exceeded::ProcessMemory { limit_bytes: unread_bytes_max });
                }
                let unread = Unread { watch, bytes };
                let held = budget.unwrap_or_else(|| Budget::new(pool.clone())).hold(bytes)?;
                std::mem::forget(unread);
                watch.answer_began(bytes);
                let since = AtomicU32::new(watch.connections().now());
                let unsent = Arc::new(Unsent { watch: watch.clone(), held, since });
                watch.remember(&unsent);
                Charge::Large(unsent)
            }
        };
        Ok(Answer { rest: body, charge })
    }

    /// A short body that is not refused.
    pub fn small(body: Bytes, watch: &Arc<Watch>) -> Answer {
        let charge = Charge::small(watch, body.len());
        Answer { rest: body, charge }
    }
}

/// Gives back what was taken for an answer that is refused after all.
struct Unread<'a> {
    watch: &'a Watch,
    bytes: usize,
}

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        self.watch.connections().give_back_unread(self.bytes);
    }
}

impl Charge {
    fn small(watch: &Arc<Watch>, bytes: usize) -> Charge {
        watch.answer_began(bytes);
        Charge::Small(watch.clone(), bytes)
    }

    fn some_was_taken(&self) {
        match self {
            Charge::None => {}
            Charge::Small(watch, _) => drop(watch.answer_moved()),
            Charge::Large(unsent) => unsent.since.store(unsent.watch.answer_moved(), Relaxed),
        }
    }
}

impl Unsent {
    pub fn since(&self) -> u32 {
        self.since.load(Relaxed)
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.watch.connections().give_back_unread(self.held.bytes());
        self.watch.answer_ended(self.held.bytes());
    }
}

impl Body for Answer {
    type Data = Piece;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece = match self.rest.len() <= ANSWER_PIECE_BYTES {
            true => Piece::new(std::mem::take(&mut self.rest), std::mem::take(&mut self.charge)),
            false => {
                let bytes = self.rest.split_to(ANSWER_PIECE_BYTES);
                Piece::new(bytes, self.charge.clone())
            }
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        end(std::mem::take(&mut self.charge));
    }
}

/// A part of an answer on its way through hyper's buffers.
pub struct Piece {
    bytes: Bytes,
    charge: Charge,
}

impl Piece {
    fn new(bytes: Bytes, charge: Charge) -> Piece {
        Piece { bytes, charge }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.charge.some_was_taken();
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        end(std::mem::take(&mut self.charge));
    }
}

/// A small charge has one owner, which ends it; a large one ends with its last owner.
fn end(charge: Charge) {
    if let Charge::Small(watch, bytes) = charge {
        watch.answer_ended(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Connections;
    use http_body_util::BodyExt;

    const MIB: usize = 1024 * 1024;

    fn pieces(answer: &mut Answer, count: usize) -> Vec<Piece> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut take = || match Pin::new(&mut *answer).poll_frame(&mut context) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
            _ => None,
        };
        (0..count).map_while(|_| take()).collect()
    }

    fn watch() -> Arc<Watch> {
        Arc::new(Connections::default()).open(10, std::net::Ipv4Addr::LOCALHOST.into()).unwrap()
    }

    #[test]
    fn it_counts_until_its_last_piece_is_written() {
        let (watch, pool) = (watch(), MemoryPool::new(64 * MIB));
        let mut answer = Answer::new(vec![7; 200_000].into(), &watch, &pool, None).unwrap();
        assert_eq!((watch.unsent_bytes(), answer.size_hint().exact()), (200_000, Some(200_000)));
        let mut all = pieces(&mut answer, 9);
        assert!(all.len() == 4 && answer.is_end_stream());
        drop(answer);
        assert!(pool.taken_bytes() >= 200_000, "what waits in buffers counts");
        all.truncate(1);
        assert!(pool.taken_bytes() >= 200_000);
        let mut last = all.pop().unwrap();
        last.advance(last.remaining());
        drop(last);
        assert_eq!((watch.unsent_bytes(), pool.taken_bytes()), (0, 0));
    }

    #[test]
    fn a_small_one_touches_nothing_shared() {
        let (watch, pool) = (watch(), MemoryPool::new(0));
        let answer = Answer::new(Bytes::from_static(b"{}"), &watch, &pool, None).unwrap();
        assert_eq!(watch.unsent_bytes(), 2);
        let whole = futures_lite_collect(answer);
        assert_eq!((whole, watch.unsent_bytes()), (Bytes::from_static(b"{}"), 0));
        drop(Answer::new(Bytes::from_static(b"{}"), &watch, &pool, None).unwrap());
        assert_eq!(watch.unsent_bytes(), 0);
    }

    fn futures_lite_collect(answer: Answer) -> Bytes {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { answer.collect().await.unwrap().to_bytes() })
    }

    #[test]
    fn unread_answers_take_half_of_the_pool_and_no_more() {
        let (watch, pool) = (watch(), MemoryPool::new(64 * MIB));
        let answer = || Answer::new(vec![7; 4 * MIB].into(), &watch, &pool, None);
        let unread: Vec<Answer> = (0..8).map(|_| answer().unwrap()).collect();
        assert!(matches!(answer(), Err(Exceeded::ProcessMemory { .. })));
        assert!(Answer::new(vec![7; 1000].into(), &watch, &pool, None).is_ok(), "small ones go on");
        drop(unread);
        assert!(answer().is_ok());
        assert_eq!((watch.unsent_bytes(), pool.taken_bytes()), (0, 0));
    }
}
