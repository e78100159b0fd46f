//! A way out of the process that leads back into it: every call is encoded, goes through a pipe of the operating
//! system, is decoded, answered, and comes back in the same way.
//!
//! ```text
//! caller ── encode ── pipe ── serve: decode, begin ─┬─ ready ────────────┬─ encode ── pipe ── deliver: decode ── caller
//!                                                   └─ durable ── finish ─┘
//! ```
//!
//! It proves that calls are data and nothing else: the tests of the engine run through it as they run without
//! (`ORRERY_LOOPBACK=1`). Three threads do what a node would do with its connections; like there, requests are begun
//! in the order in which they arrive, and answers come in the order in which they are ready.

use std::collections::HashMap;
use std::future::Future;
use std::io::{self, PipeReader, PipeWriter, Read, Write as _};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use futures_channel::oneshot;
use parking_lot::Mutex;

use super::codec::{FRAME_BYTES_MAX, Frame, LENGTH_BYTES};
use super::partition_ref::RemotePartition;
use super::{Answer, AnswerFuture, Link, PartitionAddress, PartitionRef, Request, serve};
use crate::error::{Error, Kind, OUTCOME_UNKNOWN, Result};
use crate::partition::Partition;

pub(crate) struct Loopback {
    near: Mutex<PipeWriter>,
    next_call: AtomicU64,
    waiting: Arc<Waiting>,
    partitions: Arc<Mutex<Partitions>>,
}

/// The partitions that can be called. Those that are no longer open are gone.
type Partitions = HashMap<PartitionAddress, Weak<Partition>>;

/// The calls that wait for an answer; `None` when no more answers will come.
type Waiting = Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>;

impl Loopback {
    pub(crate) fn start() -> Result<Arc<Loopback>> {
        let (requests, near) = io::pipe().map_err(no_pipe)?;
        let (answers, far) = io::pipe().map_err(no_pipe)?;
        let waiting: Arc<Waiting> = Arc::new(Mutex::new(Some(HashMap::new())));
        let partitions: Arc<Mutex<Partitions>> = Arc::default();
        let (finish, woken) = mpsc::channel();
        let far = Arc::new(Mutex::new(far));
        let known = partitions.clone();
        let deliver_to = waiting.clone();
        spawn("loopback-serve", move || serve(requests, &known, &far, &finish))?;
        spawn("loopback-finish", move || finish_woken(&woken))?;
        spawn("loopback-deliver", move || deliver(answers, &deliver_to))?;
        Ok(Arc::new(Loopback { near: Mutex::new(near), next_call: AtomicU64::new(1), waiting, partitions }))
    }

    /// The partition as if it were elsewhere.
    pub(crate) fn reach(
        self: &Arc<Self>,
        address: PartitionAddress,
        partition: &Arc<Partition>,
    ) -> PartitionRef {
        let mut known = self.partitions.lock();
        let is_known = known.get(&address).is_some_and(|known| known.as_ptr() == Arc::as_ptr(partition));
        if !is_known {
            known.retain(|_, partition| partition.strong_count() > 0);
            known.insert(address, Arc::downgrade(partition));
        }
        drop(known);
        let (min, max) = partition.bounds();
        let (min, max) = (min.clone(), max.clone());
        PartitionRef::Remote(Arc::new(RemotePartition { address, min, max, link: self.clone() }))
    }

    fn send(&self, to: PartitionAddress, request: Request) -> Result<oneshot::Receiver<Answer>> {
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        let frame = Frame { call, body: (to, request) }
            .encode()
            .ok_or_else(|| Error::new(Kind::TooLarge, "Request size is too large"))?;
        let (sender, receiver) = oneshot::channel();
        self.waiting.lock().as_mut().ok_or_else(no_answer)?.insert(call, sender);
        if self.near.lock().write_all(&frame).is_err() {
            if let Some(waiting) = self.waiting.lock().as_mut() {
                waiting.remove(&call);
            }
            return Err(no_answer());
        }
        Ok(receiver)
    }
}

impl Link for Loopback {
    fn call(&self, to: PartitionAddress, request: Request) -> AnswerFuture {
        let may_write = request.may_write();
        let sent = self.send(to, request);
        Box::pin(async move {
            sent?.await.map_err(|_| match may_write {
                true => Error::new(Kind::OutcomeUnknown, OUTCOME_UNKNOWN),
                false => no_answer(),
            })
        })
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop).map_err(no_pipe)
}

fn no_pipe(error: io::Error) -> Error {
    Error::new(Kind::Unavailable, "The server lacks what it needs to call partitions.").caused_by(error)
}

fn no_answer() -> Error {
    Error::new(Kind::Unavailable, "The node that has the partition does not answer; please retry.")
}

/// The next frame without its length; `None` at the end of the stream, or where it can no longer be trusted.
fn read_frame(stream: &mut PipeReader) -> Option<Bytes> {
    let mut length = [0; LENGTH_BYTES];
    stream.read_exact(&mut length).ok()?;
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_BYTES_MAX {
        return None;
    }
    // Grows with what arrives, not with what was announced.
    let mut frame = Vec::new();
    stream.take(length as u64).read_to_end(&mut frame).ok()?;
    (frame.len() == length).then(|| frame.into())
}

/// Takes requests off the pipe and begins to answer them, until the pipe ends.
fn serve(
    mut requests: PipeReader,
    partitions: &Mutex<Partitions>,
    answers: &Arc<Mutex<PipeWriter>>,
    finish: &Sender<Arc<Task>>,
) {
    while let Some(frame) = read_frame(&mut requests) {
        let Ok(Frame { call, body: (address, request) }) =
            Frame::<(PartitionAddress, Request)>::decode(frame)
        else {
            tracing::error!("a request of the loopback cannot be read; no more are answered");
            return;
        };
        let partition = partitions.lock().get(&address).and_then(Weak::upgrade);
        let answer = async move {
            match partition {
                Some(partition) => serve::answer(partition, request).await,
                None => Answer::Moved,
            }
        };
        let future = Mutex::new(Some(Box::pin(answer) as Pin<Box<dyn Future<Output = Answer> + Send>>));
        Arc::new(Task { call, future, answers: answers.clone(), finish: finish.clone() }).run();
    }
}

/// Goes on with answers that have what they waited for.
fn finish_woken(woken: &Receiver<Arc<Task>>) {
    while let Ok(task) = woken.recv() {
        task.run();
    }
}

/// An answer in the making.
struct Task {
    call: u64,
    future: Mutex<Option<Pin<Box<dyn Future<Output = Answer> + Send>>>>,
    answers: Arc<Mutex<PipeWriter>>,
    finish: Sender<Arc<Task>>,
}

impl Wake for Task {
    /// On the store's thread, which must not wait: another one goes on.
    fn wake(self: Arc<Self>) {
        let _ = self.finish.send(self.clone());
    }
}

impl Task {
    fn run(self: &Arc<Self>) {
        let mut future = self.future.lock();
        let waker = Waker::from(self.clone());
        let Some(Poll::Ready(body)) =
            future.as_mut().map(|future| future.as_mut().poll(&mut Context::from_waker(&waker)))
        else {
            return;
        };
        *future = None;
        drop(future);
        let frame = Frame { call: self.call, body }.encode().or_else(|| {
            let body = Answer::Failed(Error::new(Kind::TooLarge, "Response size too large"));
            Frame { call: self.call, body }.encode()
        });
        // A caller that has gone away is no reason to stop.
        frame.into_iter().for_each(|frame| drop(self.answers.lock().write_all(&frame)));
    }
}

/// Hands answers to those who wait for them, until the pipe ends; then nobody is left waiting.
fn deliver(mut answers: PipeReader, waiting: &Waiting) {
    while let Some(frame) = read_frame(&mut answers) {
        let Ok(Frame { call, body }) = Frame::<Answer>::decode(frame) else {
            tracing::error!("an answer of the loopback cannot be read; no more are delivered");
            break;
        };
        let caller = waiting.lock().as_mut().and_then(|waiting| waiting.remove(&call));
        if let Some(caller) = caller {
            // Who may have gone away.
            let _ = caller.send(body);
        }
    }
    *waiting.lock() = None;
}
