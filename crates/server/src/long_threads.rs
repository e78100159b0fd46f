//! Threads for long work, to which the system prefers those that answer short requests.
//!
//! A thread that computes for long and one that wakes up for a point read are the same to the system: the one that
//! wakes waits until the other has had its slice, milliseconds, and with several of them many milliseconds. So long
//! work runs on threads of a lower priority. Nobody without privileges can raise a priority again, so these threads
//! do nothing else; whoever has long work gives it to one of them and waits.
//!
//! There are as many as work goes on at one time (`lengthy`), made when they are needed. The one that was used last
//! is used first: what its part of the allocator kept is used again, and others are not needed any more and end.
//!
//! Only Linux has priorities of threads; elsewhere long work stays on the thread that it comes from.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;

/// Steps below the process: a tenth of a processor next to one thread that answers requests, all of it next to
/// nobody. Long scripts have the same.
#[cfg(target_os = "linux")]
const NICE: libc::c_int = 10;
/// A thread without work ends after this.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Those without work, the last one to have had some at the end.
static IDLE: Mutex<Vec<(thread::ThreadId, SyncSender<Job>)>> = Mutex::new(Vec::new());

struct Job {
    /// Borrowed from the thread that waits in [`run`].
    work: &'static mut (dyn FnMut() + Send),
    runtime: Option<Handle>,
    done: SyncSender<thread::Result<()>>,
}

/// Runs work on one of the threads and waits for it. A panic goes on in the caller.
pub fn run(work: &mut (dyn FnMut() + Send)) {
    if !cfg!(target_os = "linux") {
        return work();
    }
    let Some(thread) = IDLE.lock().pop().map(|(_, thread)| thread).or_else(start) else {
        // The system gives no more threads: better at a wrong priority than not at all.
        return work();
    };
    let (done, finished) = sync_channel(1);
    // SAFETY: the reference is used by the thread before it answers, drops it, or refuses the job, and not after
    // that. This function does not return, nor unwind, until one of those has happened: there is nothing between here
    // and `recv` that could fail.
    #[allow(unsafe_code)]
    let work =
        unsafe { std::mem::transmute::<&mut (dyn FnMut() + Send), &'static mut (dyn FnMut() + Send)>(work) };
    let job = Job { work, runtime: Handle::try_current().ok(), done };
    if let Err(refused) = thread.send(job) {
        return (refused.0.work)();
    }
    match finished.recv() {
        Ok(Ok(())) => {}
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => unreachable!("a thread answers whatever becomes of its work"),
    }
}

fn start() -> Option<SyncSender<Job>> {
    let (sender, jobs) = sync_channel(1);
    let own = sender.clone();
    thread::Builder::new().name("long".to_owned()).spawn(move || serve(own, &jobs)).ok()?;
    Some(sender)
}

fn serve(own: SyncSender<Job>, jobs: &Receiver<Job>) {
    lower();
    let id = thread::current().id();
    loop {
        let job = match jobs.recv_timeout(IDLE_MAX) {
            Ok(job) => job,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let mut idle = IDLE.lock();
                match idle.iter().position(|(other, _)| *other == id) {
                    Some(place) => {
                        idle.remove(place);
                        return;
                    }
                    // Somebody has just taken this thread, and is about to say for what.
                    None => continue,
                }
            }
        };
        let Job { work, runtime, done } = job;
        let result = {
            let _context = runtime.as_ref().map(Handle::enter);
            catch_unwind(AssertUnwindSafe(work))
        };
        // Before the answer: whoever waits for it may have the next work at once.
        IDLE.lock().push((id, own.clone()));
        // The caller waits, so it cannot have gone.
        let _ = done.send(result);
    }
}

#[cfg(target_os = "linux")]
fn lower() {
    // SAFETY: system calls without pointers. On Linux they are about the calling thread alone.
    #[allow(unsafe_code)]
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, libc::getpriority(libc::PRIO_PROCESS, 0) + NICE);
    }
}

#[cfg(not(target_os = "linux"))]
fn lower() {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn work_is_done_before_the_caller_goes_on_and_may_borrow() {
        let done = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let mut mine = 0;
                        run(&mut || mine += 1);
                        assert_eq!(mine, 1);
                        done.fetch_add(mine, Relaxed);
                    }
                });
            }
        });
        assert_eq!(done.load(Relaxed), 1600);
    }

    #[test]
    fn a_panic_goes_on_in_the_caller_and_the_thread_lives() {
        let failed = catch_unwind(|| run(&mut || panic!("on purpose")));
        assert_eq!(failed.unwrap_err().downcast_ref(), Some(&"on purpose"));
        let mut done = false;
        run(&mut || done = true);
        assert!(done);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn it_runs_below_the_priority_of_its_caller() {
        // SAFETY: as in `lower`.
        #[allow(unsafe_code)]
        let priority = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        let (here, mut there) = (priority(), 0);
        run(&mut || there = priority());
        assert_eq!(there, (here + NICE).min(19));
        assert_eq!(priority(), here);
    }
}
