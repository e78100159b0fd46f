//! Waiting for durability: what a write hands back between being submitted and being acknowledged.
//!
//! A write is checked, given its LSN and submitted on the caller's thread; the ticket becomes ready when the store has
//! published the commit. Dropping the future changes nothing about the write itself: it was submitted and will happen.

use futures_channel::oneshot;
use orrery_storage::StoreError;

use crate::error::{Error, Kind, Result};

pub(crate) type Ticket = oneshot::Receiver<Result<(), StoreError>>;

/// What a write hands back: the ticket, and the answer that may be given when it is ready.
pub(crate) type Submitted<T> = (Option<Ticket>, Result<T>);

/// The answer once everything it rests on is durable. Without a ticket that is now.
pub(crate) async fn settle<T>(ticket: Option<Ticket>, answer: Result<T>) -> Result<T> {
    if let Some(ticket) = ticket {
        match ticket.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(Error::new(Kind::WritesStopped, "The server is shutting down.")),
        }
    }
    answer
}
