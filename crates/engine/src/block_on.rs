//! Waiting for a future without a runtime. The engine needs no more of an executor than this.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

/// How often whoever waits looks whether it still should.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs a future to its end on this thread, for callers that have no executor: background work, tools, tests. One
/// that is ready at once, as calls of partitions are that are in this process, costs no more than calling it.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return output;
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// The same until `check` fails, which is asked now and then; the future is dropped then.
pub(crate) fn block_on_while<F: Future, E>(
    future: F,
    mut check: impl FnMut() -> Result<(), E>,
) -> Result<F::Output, E> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return Ok(output),
            Poll::Pending => std::thread::park_timeout(LOOK_EVERY),
        }
        check()?;
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
