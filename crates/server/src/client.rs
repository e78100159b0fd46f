//! Whether the client of a request is still there, asked from the thread that works for it.
//!
//! While a request is being answered its task is busy, and does not hear what the connection has to say. So whoever
//! works for long asks by itself:
//!
//! - HTTP/1: the socket, whether the other side has closed it or its sending half. A client that waits for an answer
//!   does neither.
//! - HTTP/2: a flag. What may take long is answered by a task of its own there, and the task of the stream, which
//!   only waits for it, is dropped when the stream is reset or its connection breaks.

use std::future::Future;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use orrery_api::Client;

use crate::lengthy;

/// The only request of a connection at this time: the socket tells.
pub fn of_socket(socket: RawFd) -> Client {
    Client::Connection(pause_and_ask, socket)
}

/// Whoever asks after its client has worked for a while, and lets others have a turn.
fn pause_and_ask(socket: RawFd) -> bool {
    lengthy::pause();
    has_hung_up(socket)
}

/// Has a task of its own answer the client of a stream, and tells it when nobody waits for it any more. `None`: it was
/// ended from outside.
pub async fn answered_aside<F>(answer: impl FnOnce(Client) -> F) -> Option<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let gone = Arc::new(AtomicBool::new(false));
    let _waiting = Waiting(gone.clone());
    let client = Client::new(move || {
        lengthy::pause();
        gone.load(Relaxed)
    });
    tokio::spawn(answer(client)).await.ok()
}

struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Whether the other side of a socket has closed it, or the half that it sends on; also with bytes still unread, such
/// as the farewell of TLS.
#[cfg(target_os = "linux")]
pub(crate) fn has_hung_up(socket: RawFd) -> bool {
    const ENDED: libc::c_short = libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR;
    let mut asked = libc::pollfd { fd: socket, events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: one struct that lives on this stack; a time of zero returns at once. A number that is no open file is
    // answered in the struct.
    #[allow(unsafe_code)]
    let answered = unsafe { libc::poll(&mut asked, 1, 0) };
    answered == 1 && asked.revents & ENDED != 0
}

/// Other systems do not tell the end of a connection from bytes that wait to be read.
#[cfg(not(target_os = "linux"))]
pub(crate) fn has_hung_up(_: RawFd) -> bool {
    false
}
