//! One connection: a message in, a reply out, one at a time, as the protocol has it.
//!
//! Long work is done where it holds up nobody. A command that waits for what is not there yet (a tailable cursor, a
//! change stream) holds no thread meanwhile: it is asked again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use orrery_api::{Attendant, ByteStream, Connection, Summary};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::commands::{self, Client, Outcome, Prepared};
use crate::service::Core;
use crate::wire::{self, EXHAUST_ALLOWED, Envelope, HEADER_BYTES, Header, MORE_TO_COME, Unreadable};

const READ_BYTES: usize = 16 * 1024;
/// Kept between messages; what a large one took beyond it is given back.
const BUFFER_BYTES_KEPT: usize = 256 * 1024;
/// How long a command that waits is left alone.
const ASK_AGAIN: Duration = Duration::from_millis(10);

struct Count<'c>(&'c Core);

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.0.counts.connections.fetch_sub(1, Relaxed);
    }
}

pub async fn serve(
    core: Arc<Core>,
    mut stream: Box<dyn ByteStream>,
    connection: Connection,
    attendant: Arc<dyn Attendant>,
) -> io::Result<()> {
    core.counts.connections.fetch_add(1, Relaxed);
    let _count = Count(&core);
    let number = core.counts.connections_ever.fetch_add(1, Relaxed).wrapping_add(1);
    let mut client = Client::new(number, &connection);
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    let mut ended = std::pin::pin!(attendant.ended());
    let mut replies = 0i32;
    loop {
        let header = loop {
            if let Some(header) = Header::read(&buffer).map_err(|broken| io::Error::other(broken.0))? {
                if buffer.len() >= header.length {
                    break header;
                }
                buffer.reserve(header.length - buffer.len());
            } else {
                buffer.reserve(READ_BYTES);
            }
            tokio::select! {
                biased;
                read = stream.read_buf(&mut buffer) => if read? == 0 {
                    return Ok(());
                },
                () = &mut ended => return stream.shutdown().await,
            }
        };
        let message = buffer.split_to(header.length);
        if buffer.is_empty() && buffer.capacity() > BUFFER_BYTES_KEPT {
            buffer = BytesMut::with_capacity(READ_BYTES);
        }
        let began = Instant::now();
        attendant.request_began();
        core.counts.requests.fetch_add(1, Relaxed);
        let request = match wire::read(header, &message[HEADER_BYTES..]) {
            Ok(request) => request,
            Err(Unreadable::Broken(why)) => {
                attendant.request_ended(&Summary::of("malformed"), 400, began.elapsed());
                tracing::debug!(peer = %connection.peer, why, "a message is broken");
                return Ok(());
            }
            Err(Unreadable::Refused { request_id, legacy, error }) => {
                attendant.request_ended(&Summary::of("malformed"), 400, began.elapsed());
                let envelope =
                    Envelope { response_to: request_id, legacy, compressor: None, more_to_come: false };
                replies = replies.wrapping_add(1);
                send(
                    &mut stream,
                    &attendant,
                    &wire::write(envelope, replies, &commands::refusal(&error, legacy), true),
                )
                .await?;
                continue;
            }
        };
        drop(message);
        let silent = request.flags & MORE_TO_COME != 0;
        let streams = request.flags & EXHAUST_ALLOWED != 0;
        let (legacy, compressor) = (request.legacy, request.compressor);
        let mut response_to = request.request_id;
        let mut prepared = commands::prepare(&core, &mut client, request);
        loop {
            if let Some(pause) = prepared.pause() {
                tokio::time::sleep(pause).await;
            }
            let outcome = answer(&core, &mut client, &mut prepared).await;
            let Outcome { reply, summary, status, hangs_up, more, packs } = outcome;
            attendant.request_ended(&summary, status, began.elapsed());
            if hangs_up {
                return Ok(());
            }
            if silent {
                break;
            }
            let more_to_come = more && streams;
            let envelope =
                Envelope { response_to, legacy, compressor: compressor.filter(|_| packs), more_to_come };
            replies = replies.wrapping_add(1);
            send(&mut stream, &attendant, &wire::write(envelope, replies, &reply, false)).await?;
            if !more_to_come {
                break;
            }
            response_to = replies;
            attendant.request_began();
        }
    }
}

/// Runs a command, and again as long as it waits.
pub async fn answer(core: &Arc<Core>, client: &mut Client, prepared: &mut Prepared) -> Outcome {
    loop {
        let place = prepared.place();
        let mut run = || {
            let ran = std::panic::AssertUnwindSafe(|| commands::run(core, client, prepared));
            std::panic::catch_unwind(ran).unwrap_or_else(|_| Some(Outcome::defect()))
        };
        let outcome = match place {
            commands::Place::Here => run(),
            commands::Place::Aside => tokio::task::block_in_place(run),
            commands::Place::Long => core.lengthy(run),
        };
        match outcome {
            Some(outcome) => return outcome,
            None => tokio::time::sleep(ASK_AGAIN).await,
        }
    }
}

async fn send(
    stream: &mut Box<dyn ByteStream>,
    attendant: &Arc<dyn Attendant>,
    bytes: &[u8],
) -> io::Result<()> {
    attendant.answer_queued(bytes.len());
    let mut taken = 0;
    while taken < bytes.len() {
        let written = match stream.write(&bytes[taken..]).await {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            written => written,
        };
        match written {
            Ok(written) => {
                taken += written;
                attendant.answer_taken(written);
            }
            Err(error) => {
                attendant.answer_taken(bytes.len() - taken);
                return Err(error);
            }
        }
    }
    stream.flush().await
}
