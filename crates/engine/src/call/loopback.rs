//! A way out of the process that leads back into it: every call is encoded, goes through a pipe of the operating
//! system, is decoded, answered, and comes back in the same way.
//!
//! ```text
//! caller ─ encode ─ pipe ─ serve: decode, begin ─┬─ ready ────────────┬─ encode ─ pipe ─ deliver: decode ─ caller
//!                                                ├─ durable ── finish ─┤
//!                                                └─ page of a query ───┘
//! ```
//!
//! It proves that calls are data and nothing else: the tests of the engine run through it as they run without
//! (`ORRERY_LOOPBACK=1`). A few threads do what a node would do with its connections; like there, requests are begun
//! in the order in which they arrive, and answers come in the order in which they are ready. Pages of queries have
//! threads of their own, so that whoever gives one up is heard while it is made.

use std::collections::HashMap;
use std::future::Future;
use std::io::{self, PipeReader, PipeWriter, Read, Write as _};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use futures_channel::oneshot;
use parking_lot::Mutex;

use super::codec::{FRAME_BYTES_MAX, Frame, LENGTH_BYTES};
use super::partition_ref::RemotePartition;
use super::query_page::Gone;
use super::{Answer, AnswerFuture, Call, Link, PartitionAddress, PartitionRef, Request, serve};
use crate::error::{Error, Kind, OUTCOME_UNKNOWN, Result};
use crate::partition::Partition;

/// Pages of queries that are made at once. Others wait, as many as there are threads that ask.
const PAGE_THREADS: usize = 4;

/// Pages of queries that went through a loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagesSent {
    pub asked: u64,
    /// Pages and scripts that nobody waited for any more.
    pub given_up: u64,
    /// Pages and scripts that are being made, or wait for it.
    pub running: usize,
}

pub(crate) struct Loopback {
    near: Arc<Mutex<PipeWriter>>,
    next_call: AtomicU64,
    /// Pages of queries that were asked for, what was given up, and what is being made.
    pages: AtomicU64,
    given_up: Arc<AtomicU64>,
    running: Arc<Running>,
    waiting: Arc<Waiting>,
    partitions: Arc<Mutex<Partitions>>,
}

/// The partitions that can be called. Those that are no longer open are gone.
type Partitions = HashMap<PartitionAddress, Weak<Partition>>;

/// The pages and scripts that are made at present.
type Running = Mutex<HashMap<u64, Gone>>;

/// The calls that wait for an answer; `None` when no more answers will come.
type Waiting = Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>;

impl Loopback {
    pub(crate) fn start() -> Result<Arc<Loopback>> {
        let (requests, near) = io::pipe().map_err(no_pipe)?;
        let (answers, far) = io::pipe().map_err(no_pipe)?;
        let waiting: Arc<Waiting> = Arc::new(Mutex::new(Some(HashMap::new())));
        let partitions: Arc<Mutex<Partitions>> = Arc::default();
        let (finish, woken) = mpsc::channel();
        let (queue, pages) = mpsc::channel();
        let pages = Arc::new(Mutex::new(pages));
        let running: Arc<Running> = Arc::default();
        let node = Node {
            partitions: partitions.clone(),
            answers: Arc::new(Mutex::new(far)),
            finish,
            pages: queue,
            running: running.clone(),
        };
        let deliver_to = waiting.clone();
        spawn("loopback-serve", move || node.serve(requests))?;
        spawn("loopback-finish", move || finish_woken(&woken))?;
        for _ in 0..PAGE_THREADS {
            let pages = pages.clone();
            spawn("loopback-page", move || make_pages(&pages))?;
        }
        spawn("loopback-deliver", move || deliver(answers, &deliver_to))?;
        Ok(Arc::new(Loopback {
            near: Arc::new(Mutex::new(near)),
            next_call: AtomicU64::new(1),
            pages: AtomicU64::new(0),
            given_up: Arc::default(),
            running,
            waiting,
            partitions,
        }))
    }

    pub(crate) fn pages(&self) -> PagesSent {
        PagesSent {
            asked: self.pages.load(Ordering::Relaxed),
            given_up: self.given_up.load(Ordering::Relaxed),
            running: self.running.lock().len(),
        }
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

    fn send(&self, to: PartitionAddress, request: Request) -> Result<(oneshot::Receiver<Answer>, Asked)> {
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        let is_lengthy = request.is_lengthy();
        self.pages.fetch_add(u64::from(matches!(request, Request::QueryPage(_))), Ordering::Relaxed);
        let frame = Frame { call, body: Call::Ask(to, Box::new(request)) }
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
        let near = is_lengthy.then(|| (self.near.clone(), self.given_up.clone()));
        Ok((receiver, Asked { call, waiting: self.waiting.clone(), near }))
    }
}

/// A call whose answer somebody waits for, until this is dropped.
struct Asked {
    call: u64,
    waiting: Arc<Waiting>,
    /// Where to say that nobody does, if that is worth it.
    near: Option<(Arc<Mutex<PipeWriter>>, Arc<AtomicU64>)>,
}

impl Drop for Asked {
    fn drop(&mut self) {
        // An answer that has come was taken off the list.
        let waited = self.waiting.lock().as_mut().and_then(|waiting| waiting.remove(&self.call));
        if let (Some(_), Some((near, given_up))) = (waited, &self.near)
            && let Some(frame) = (Frame { call: self.call, body: Call::Cancel }).encode()
        {
            given_up.fetch_add(1, Ordering::Relaxed);
            let _ = near.lock().write_all(&frame);
        }
    }
}

impl Link for Loopback {
    fn call(&self, to: PartitionAddress, request: Request) -> AnswerFuture {
        let may_write = request.may_write();
        let sent = self.send(to, request);
        Box::pin(async move {
            let (answer, _asked) = sent?;
            answer.await.map_err(|_| match may_write {
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

/// The side that has the partitions.
struct Node {
    partitions: Arc<Mutex<Partitions>>,
    answers: Arc<Mutex<PipeWriter>>,
    finish: Sender<Arc<Task>>,
    pages: Sender<Arc<Task>>,
    running: Arc<Running>,
}

impl Node {
    /// Takes requests off the pipe and begins to answer them, until the pipe ends.
    fn serve(&self, mut requests: PipeReader) {
        while let Some(frame) = read_frame(&mut requests) {
            let Ok(Frame { call, body }) = Frame::<Call>::decode(frame) else {
                tracing::error!("a request of the loopback cannot be read; no more are answered");
                return;
            };
            match body {
                Call::Ask(address, request) => self.begin(call, address, *request),
                Call::Cancel => {
                    if let Some(gone) = self.running.lock().get(&call) {
                        gone.store(true, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    fn begin(&self, call: u64, address: PartitionAddress, request: Request) {
        let partition = self.partitions.lock().get(&address).and_then(Weak::upgrade);
        let (is_page, is_lengthy) = (matches!(request, Request::QueryPage(_)), request.is_lengthy());
        let gone = Gone::new(AtomicBool::new(false));
        if is_lengthy {
            self.running.lock().insert(call, gone.clone());
        }
        let running = self.running.clone();
        let answer = async move {
            let answer = match partition {
                Some(partition) => serve::answer(partition, request, gone).await,
                None => Answer::Moved,
            };
            if is_lengthy {
                running.lock().remove(&call);
            }
            answer
        };
        let future = Mutex::new(Some(Box::pin(answer) as Pin<Box<dyn Future<Output = Answer> + Send>>));
        let (answers, finish) = (self.answers.clone(), self.finish.clone());
        let task = Arc::new(Task { call, future, answers, finish });
        match is_page {
            // The threads are there as long as this side is.
            true => drop(self.pages.send(task)),
            false => task.run(),
        }
    }
}

/// Makes pages of queries until there will be no more.
fn make_pages(pages: &Mutex<Receiver<Arc<Task>>>) {
    loop {
        let next = pages.lock().recv();
        match next {
            Ok(task) => task.run(),
            Err(_) => return,
        }
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
