//! Receiving the body of a request.
//!
//! A small body arrives together with its headers and is handed on as it lies. Whoever makes the server wait for more
//! is known first: the api checks the signature, which covers method, path and date only, before anything is kept for
//! it. Then memory is charged for what has arrived, not for what was announced; a pause of [`UPLOAD_STALL_TIMEOUT`]
//! ends it, and so does the time of the request.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header;
use http::request::Parts;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use orrery_api::{Answered, Connection, HttpApi, Refusal};
use orrery_budget::{Budget, Held, MemoryPool};

use crate::deadline::within;
use crate::limits::{
    DISCARDED_BYTES_MAX, DISCARDED_TIME_MAX, DISCARDED_UNKNOWN_BYTES_MAX, UPLOAD_ROOM_BYTES,
    UPLOAD_STALL_TIMEOUT,
};

/// A whole body, and the charge for it if it came in several pieces.
#[derive(Debug)]
pub struct Upload {
    pub bytes: Bytes,
    pub held: Option<Held>,
}

/// Why there is none.
#[derive(Debug)]
pub enum Unreceived {
    Refused(Refusal),
    /// The api does not want it, and says why.
    Unwanted(Box<Answered>),
}

impl From<Refusal> for Unreceived {
    fn from(refusal: Refusal) -> Unreceived {
        Unreceived::Refused(refusal)
    }
}

/// The body of a request, within the limits of size and time.
pub async fn receive<A: HttpApi>(
    api: &A,
    pool: &Arc<MemoryPool>,
    limit: Duration,
    head: &Parts,
    connection: &Connection,
    body: Incoming,
) -> Result<Upload, Unreceived> {
    if body.is_end_stream() {
        return Ok(Upload { bytes: Bytes::new(), held: None });
    }
    within(limit, receive_body(api, pool, head, connection, body))
        .await
        .unwrap_or(Err(Refusal::TimedOut.into()))
}

async fn receive_body<A: HttpApi>(
    api: &A,
    pool: &Arc<MemoryPool>,
    head: &Parts,
    connection: &Connection,
    mut body: Incoming,
) -> Result<Upload, Unreceived> {
    let waits_to_be_asked = head.headers.contains_key(header::EXPECT);
    let announced = body.size_hint().exact();
    let result = match announced {
        Some(bytes) if bytes > api.body_bytes_max() as u64 => Err(Refusal::BodyTooLarge.into()),
        _ => collect(api, pool, head, connection, &mut body, waits_to_be_asked).await,
    };
    if !waits_to_be_asked {
        // A client that is still sending does not read: closing now would show it a broken connection instead of
        // the refusal. One that asked first (`Expect`) has sent nothing.
        let bytes = match &result {
            Err(Unreceived::Refused(Refusal::BodyTooLarge)) => DISCARDED_BYTES_MAX,
            Err(Unreceived::Unwanted(_)) => DISCARDED_UNKNOWN_BYTES_MAX,
            _ => return result,
        };
        let _ = tokio::time::timeout(DISCARDED_TIME_MAX, discard(&mut body, bytes)).await;
    }
    result
}

async fn collect<A: HttpApi>(
    api: &A,
    pool: &Arc<MemoryPool>,
    head: &Parts,
    connection: &Connection,
    body: &mut Incoming,
    waits_to_be_asked: bool,
) -> Result<Upload, Unreceived> {
    let bytes_max = api.body_bytes_max();
    let announced = body.size_hint().exact().map_or(usize::MAX, |bytes| bytes as usize);
    let mut first = Bytes::new();
    if !waits_to_be_asked {
        // The usual body is in one piece, and there already. Asking for one that waits would send it on its way.
        match poll_fn(|context| Poll::Ready(Pin::new(&mut *body).poll_frame(context))).await {
            Poll::Ready(None) => return Ok(Upload { bytes: first, held: None }),
            Poll::Ready(Some(frame)) => {
                first = frame.map_err(|_| Refusal::BodyBroken)?.into_data().unwrap_or_default();
                if announced == first.len() || body.is_end_stream() {
                    return Ok(Upload { bytes: first, held: None });
                }
            }
            Poll::Pending => {}
        }
    }
    if let Some(refusal) = api.refuse_head(head, connection) {
        return Err(Unreceived::Unwanted(Box::new(refusal)));
    }
    let mut held = Budget::new(pool.clone()).hold(0).map_err(|_| Refusal::Overloaded)?;
    let mut bytes = BytesMut::new();
    let mut data = first;
    loop {
        let length = bytes.len() + data.len();
        if length > bytes_max {
            return Err(Refusal::BodyTooLarge.into());
        }
        if length > bytes.capacity() {
            // Doubling, so that copying stays cheap, but not beyond what can still come.
            let room =
                (2 * length).max(UPLOAD_ROOM_BYTES).min(announced.max(length)).min(bytes_max.max(length));
            held.resize(room).map_err(|_| Refusal::Overloaded)?;
            bytes.reserve(room - bytes.len());
        }
        bytes.extend_from_slice(&data);
        let Some(frame) = within(UPLOAD_STALL_TIMEOUT, body.frame()).await.ok_or(Refusal::TimedOut)? else {
            return Ok(Upload { bytes: bytes.freeze(), held: Some(held) });
        };
        data = frame.map_err(|_| Refusal::BodyBroken)?.into_data().unwrap_or_default();
    }
}

/// Reads and throws away.
async fn discard(body: &mut Incoming, bytes: usize) {
    let mut left = bytes;
    while left > 0
        && let Some(Ok(frame)) = body.frame().await
    {
        left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
    }
}
