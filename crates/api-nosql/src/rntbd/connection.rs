//! One connection: frames in, frames out, requests in between, each at its own pace.
//!
//! ```text
//! read ─> input: whole frames ─┬─ short work: done at once, in place ────────────┐
//!                              ├─ what must wait (a commit), and what is long:   ├─> output ─> write
//!                              │  a task of its own                              │
//!                              └─ a payload too large, or of a stranger: passed over, refused
//! ```
//!
//! Answers go out as they are ready; clients match them by the number of the request. Nothing more is read while as
//! much is in flight, or waits to be taken, as a connection may have. When it is told to end, what is in flight is
//! answered.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::BytesMut;
use orrery_api::{Attendant, ByteStream, Connection, Summary};
use tokio::io::{AsyncReadExt, AsyncWriteExt, WriteHalf};
use tokio::task::JoinSet;

use super::call::{Call, Reply, Shared};
use super::frame::{BrokenFrame, CONTEXT_BYTES_MAX, extent};
use super::handshake;
use super::input::{Arrived, Input};
use super::output::Output;
use super::request;
use crate::service::Service;

/// Requests of one connection at one time; clients stop at 30 unless they are told otherwise.
const IN_FLIGHT_MAX: usize = 256;
/// Bytes of answers that a connection has not taken. Beyond it nothing more is read.
const UNSENT_BYTES_MAX: usize = 8 * 1024 * 1024;
const READ_BYTES: usize = 16 * 1024;
/// A larger payload is worked at where that holds up nobody.
const PAYLOAD_IN_PLACE_BYTES: usize = 32 * 1024;

pub async fn serve(
    service: Arc<Service>,
    stream: Box<dyn ByteStream>,
    connection: Connection,
    attendant: Arc<dyn Attendant>,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    let context = loop {
        if let Some(extent) = extent(&buffer, CONTEXT_BYTES_MAX).map_err(broken)? {
            break extent.total();
        }
        if reader.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    };
    if buffer.len() < context {
        return Err(io::Error::other("a context request has no payload"));
    }
    let hello = buffer.split_to(context);
    attendant.request_began();
    let began = std::time::Instant::now();
    let hello = handshake::answer(&hello, &service.config.version)
        .ok_or_else(|| io::Error::other("the first frame is no context request"));
    let status = if hello.as_ref().is_ok_and(|hello| !hello.refused) { 200 } else { 400 };
    attendant.request_ended(&Summary::of("connect"), status, began.elapsed());
    let hello = hello?;
    writer.write_all(&hello.answer).await?;
    writer.flush().await?;
    if hello.refused {
        return writer.shutdown().await;
    }
    let shared =
        Arc::new(Shared { service, connection, attendant: attendant.clone(), generation: hello.generation });
    let mut input = Input::new(buffer);
    let mut output = Output::new(attendant.clone(), hello.loses_answers);
    let mut running = JoinSet::new();
    let mut ended = attendant.ended();
    let (mut ending, mut unflushed) = (false, false);
    loop {
        let mut has_room = !ending && running.len() < IN_FLIGHT_MAX && output.bytes() < UNSENT_BYTES_MAX;
        while has_room {
            match input.next(&shared) {
                Ok(None) => break,
                Ok(Some(Arrived::Call(call))) => match started(&shared, *call, &mut running).await {
                    Some(reply) if reply.hangs_up => return Ok(()),
                    Some(reply) => output.push(reply),
                    None => {}
                },
                Ok(Some(Arrived::Refused(reply))) => output.push(*reply),
                // Where the next frame would begin cannot be told: what is in flight is answered, and nothing more.
                Err(BrokenFrame(why)) => {
                    tracing::debug!(peer = %shared.connection.peer, why, "a frame is broken");
                    ending = true;
                }
            }
            has_room = !ending && running.len() < IN_FLIGHT_MAX && output.bytes() < UNSENT_BYTES_MAX;
        }
        if ending && running.is_empty() && output.is_empty() && !unflushed {
            return writer.shutdown().await;
        }
        let gap = output.gap();
        tokio::select! {
            biased;
            sent = send(&mut writer, if gap.is_none() { output.next() } else { &[] }),
                if unflushed || !output.is_empty() && gap.is_none() =>
            {
                let bytes = sent?;
                unflushed = bytes > 0;
                output.written(bytes);
            }
            Some(done) = running.join_next(), if !running.is_empty() => match done {
                Ok(Reply { hangs_up: true, .. }) => return Ok(()),
                Ok(reply) => output.push(reply),
                // A task catches what goes wrong in it; one that was cancelled goes with its runtime.
                Err(error) => return Err(io::Error::other(error)),
            },
            read = reader.read_buf(input.room()), if has_room => if read? == 0 {
                return Ok(());
            },
            () = tokio::time::sleep(gap.unwrap_or_default()), if gap.is_some() => {}
            () = &mut ended, if !ending => ending = true,
        }
    }
}

/// Writes some of it; when there is nothing, what lies in buffers of the connection.
async fn send(writer: &mut WriteHalf<Box<dyn ByteStream>>, bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        writer.flush().await?;
        return Ok(0);
    }
    match writer.write(bytes).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        written => Ok(written),
    }
}

/// Begins a call. What has nothing to wait for is answered here and now.
async fn started(shared: &Arc<Shared>, call: Call, running: &mut JoinSet<Reply>) -> Option<Reply> {
    let aside = request::takes_long(call.head.operation) || call.payload.len() > PAYLOAD_IN_PLACE_BYTES;
    let mut work: Pin<Box<dyn Future<Output = Reply> + Send>> = Box::pin(shared.clone().answer(call));
    if !aside {
        let first = std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context)));
        if let Poll::Ready(reply) = first.await {
            return Some(reply);
        }
    }
    running.spawn(work);
    None
}

fn broken(BrokenFrame(why): BrokenFrame) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
