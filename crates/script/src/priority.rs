//! How much of the processor a script's thread gets while others want it.
//!
//! A script begins a little below the threads of requests. That gives it a fair part of a busy machine, but the
//! scheduler lets a thread of nearly the same priority finish its tick, milliseconds in which a request that has just
//! got its answer from the disk waits. So a script that has used much processor time falls to where nearly every
//! request that wakes goes first; not to the bottom, where a script on a busy machine would not get done at all.
//! Nobody without privileges can raise a priority again: such a thread runs no other script.
//!
//! Only Linux has priorities of threads; elsewhere scripts are threads like all others.

#![cfg_attr(target_os = "linux", allow(unsafe_code))]

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Processor time of one script before it falls. Most take a few milliseconds.
const LONG: Duration = Duration::from_millis(20);
#[cfg(target_os = "linux")]
const NICE: i32 = 5;
/// A tenth of the processor next to one thread of requests, which are late half as often as beside the one above.
#[cfg(target_os = "linux")]
const NICE_LONG: i32 = 10;
#[cfg(target_os = "linux")]
const NICE_STUCK: i32 = 19;

/// What a thread does for the pool.
#[derive(Clone, Copy)]
enum Work {
    /// Nothing, or it is no thread of the pool.
    None,
    /// When its script began, and the processor time that the thread had taken until then.
    Script(Instant, Duration),
    /// A script that has taken long.
    Long,
}

thread_local! {
    static WORK: Cell<Work> = const { Cell::new(Work::None) };
}

/// A script begins on this thread.
pub(crate) fn begin() {
    WORK.set(Work::Script(Instant::now(), cpu_time()));
}

/// Asked now and then by a script that runs: lowers the thread when it is time.
pub(crate) fn look() {
    let Work::Script(began, taken) = WORK.get() else { return };
    // Processor time is dearer to ask for, and never more than time itself.
    if began.elapsed() >= LONG && cpu_time().saturating_sub(taken) >= LONG {
        set_long();
        WORK.set(Work::Long);
    }
}

/// Whether this thread has fallen.
pub(crate) fn has_fallen() -> bool {
    cfg!(target_os = "linux") && matches!(WORK.get(), Work::Long)
}

/// Lowers this thread's priority, and tells which thread it is.
#[cfg(target_os = "linux")]
pub(crate) fn lower() -> i32 {
    // SAFETY: plain system calls without pointers. On Linux they are about the calling thread alone.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, NICE);
        libc::syscall(libc::SYS_gettid) as i32
    }
}

#[cfg(target_os = "linux")]
fn set_long() {
    // SAFETY: as above.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, NICE_LONG);
    }
}

/// The bottom, for a thread that was given up and still runs: what nobody else wants of the processor.
#[cfg(target_os = "linux")]
pub(crate) fn lowest(thread: i32) {
    if let Ok(thread) = u32::try_from(thread) {
        // SAFETY: as above; the struct lives on this stack and is read by the call.
        unsafe {
            libc::setpriority(libc::PRIO_PROCESS, thread, NICE_STUCK);
            let param: libc::sched_param = std::mem::zeroed();
            libc::sched_setscheduler(thread as libc::pid_t, libc::SCHED_IDLE, &param);
        }
    }
}

#[cfg(target_os = "linux")]
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct lives on this stack and is written by the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn lower() -> i32 {
    0
}

#[cfg(not(target_os = "linux"))]
fn set_long() {}

#[cfg(not(target_os = "linux"))]
pub(crate) fn lowest(_thread: i32) {}

#[cfg(not(target_os = "linux"))]
fn cpu_time() -> Duration {
    Duration::ZERO
}
