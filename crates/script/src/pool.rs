//! The threads that scripts run on: few, apart from those that serve requests, and replaceable.
//!
//! Most scripts take milliseconds, and a few threads serve many of them. One that takes longer gives up its place to
//! the next that waits and goes on beside it, as long as there are not too many of those: whoever fills the threads
//! with scripts that use up their five seconds holds up no others.
//!
//! QuickJS asks the clock in script code and in regular expressions, the heap when it hands out memory, and `guards.js`
//! bounds what else could take long. Should a built-in get stuck all the same, its thread is given up: whoever waits is
//! answered, another thread takes its place, and the stuck one gets what nobody else wants of the processor and can no
//! longer commit anything, because it must [`Claim`] the answer first. Threads that were given up are counted; when too
//! many are, scripts are refused until one of them ends.
//!
//! On Linux scripts run at a lower priority than requests, and at a still lower one once they have taken long
//! ([`priority`]), so that a script that burns its five seconds on every core leaves the latency of everybody else
//! alone. A thread cannot come back from there: it ends with its script, and another takes its place.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use futures_channel::oneshot;
use parking_lot::{Condvar, Mutex};

use crate::priority;

/// Room for QuickJS's own stack limit and for what the database does between a script's turns.
const THREAD_STACK_BYTES: usize = 4 * 1024 * 1024;
/// How often running scripts are looked at.
const WATCH_EVERY: Duration = Duration::from_millis(50);
/// A script that has run for longer gives up its place.
const LONG: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy)]
pub struct PoolLimits {
    pub threads: usize,
    /// Threads beside those, of scripts that take long.
    pub long: usize,
    /// Scripts that wait for a thread.
    pub queue: usize,
    /// Threads that may be stuck at the same time.
    pub given_up: usize,
    /// How long after its time a script is given up.
    pub grace: Duration,
}

impl Default for PoolLimits {
    fn default() -> PoolLimits {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        PoolLimits {
            threads: (2 * cores).clamp(4, 16),
            long: 32,
            queue: 256,
            given_up: 32,
            grace: Duration::from_millis(500),
        }
    }
}

/// Why a script was not run, or was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Too many wait already; try again later.
    Busy,
    /// It did not stop when its time was over.
    Stuck,
    /// The server is shutting down.
    Closed,
}

const RUNNING: u8 = 0;
const CLAIMED: u8 = 1;
const GIVEN_UP: u8 = 2;

/// The right to have an effect. A job asks for it once, before it changes anything outside.
pub struct Claim {
    state: Arc<AtomicU8>,
    gone: Arc<AtomicBool>,
}

impl Claim {
    /// False when the caller was already told that the script failed, or waits no longer.
    pub fn take(&self) -> bool {
        if self.gone.load(Ordering::Acquire) {
            return false;
        }
        let taken = self.state.compare_exchange(RUNNING, CLAIMED, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok() || self.state.load(Ordering::Acquire) == CLAIMED
    }

    /// Gives the right back, before trying again.
    pub fn release(&self) {
        // Nothing to give back is fine too.
        let _ = self.state.compare_exchange(CLAIMED, RUNNING, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Turns true when nobody waits for the job any more.
    pub fn gone(&self) -> &Arc<AtomicBool> {
        &self.gone
    }
}

/// Lives as long as somebody waits for a job: a request that is given up drops its future.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

struct Job {
    run: Box<dyn FnOnce(&Claim) + Send>,
    /// Tells whoever waits that the job will not answer.
    refuse: Arc<dyn Fn(Refused) + Send + Sync>,
    state: Arc<AtomicU8>,
    gone: Arc<AtomicBool>,
    time: Duration,
    queued: Instant,
}

struct Running {
    state: Arc<AtomicU8>,
    refuse: Arc<dyn Fn(Refused) + Send + Sync>,
    began: Instant,
    give_up_at: Instant,
    thread: i32,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    running: HashMap<u64, Running>,
    next: u64,
    threads: usize,
    idle: usize,
    given_up: usize,
    watched: bool,
    closed: bool,
}

impl Jobs {
    /// Whether one more thread may be started for what waits.
    fn has_room(&self, limits: &PoolLimits) -> bool {
        let long = self.running.values().filter(|running| running.began.elapsed() > LONG).count();
        self.threads < limits.threads + long.min(limits.long)
    }
}

struct PoolCore {
    limits: PoolLimits,
    state: Mutex<Jobs>,
    work: Condvar,
    watch: Condvar,
}

pub struct Pool {
    shared: Arc<PoolCore>,
}

impl Pool {
    pub fn new(limits: PoolLimits) -> Pool {
        let (state, work, watch) = (Mutex::default(), Condvar::new(), Condvar::new());
        Pool { shared: Arc::new(PoolCore { limits, state, work, watch }) }
    }

    /// Runs a job on a thread of the pool. `time` is what it is expected to take at most. Dropping the future tells the
    /// job that nobody waits for it, which is then not begun, ends early or at least has no effect.
    pub fn run<T: Send + 'static, J: FnOnce(&Claim) -> T + Send + 'static>(
        &self,
        time: Duration,
        job: J,
    ) -> impl Future<Output = Result<T, Refused>> + Send + use<T, J> {
        let (sender, answer) = oneshot::channel::<Result<T, Refused>>();
        let sender = Arc::new(Mutex::new(Some(sender)));
        let refuse = {
            let sender = sender.clone();
            Arc::new(move |why| {
                if let Some(sender) = sender.lock().take() {
                    drop(sender.send(Err(why)));
                }
            })
        };
        let run = Box::new(move |claim: &Claim| {
            let result = job(claim);
            if let Some(sender) = sender.lock().take() {
                drop(sender.send(Ok(result)));
            }
        });
        let state = Arc::new(AtomicU8::new(RUNNING));
        let gone = Arc::new(AtomicBool::new(false));
        let waiting = Waiting(gone.clone());
        let refused = self.submit(Job { run, refuse, state, gone, time, queued: Instant::now() }).err();
        async move {
            let _waiting = waiting;
            match refused {
                Some(why) => Err(why),
                None => answer.await.unwrap_or(Err(Refused::Closed)),
            }
        }
    }

    fn submit(&self, job: Job) -> Result<(), Refused> {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        if state.closed {
            return Err(Refused::Closed);
        }
        if state.waiting.len() >= shared.limits.queue || state.given_up >= shared.limits.given_up {
            return Err(Refused::Busy);
        }
        state.waiting.push_back(job);
        if state.idle >= state.waiting.len() {
            shared.work.notify_one();
        } else if state.has_room(&shared.limits) {
            spawn_worker(shared, &mut state)?;
        }
        if !state.watched {
            let watcher = shared.clone();
            let spawned = std::thread::Builder::new()
                .name("orrery-scripts-watch".to_owned())
                .spawn(move || watcher.watch());
            state.watched = spawned.is_ok();
        }
        shared.watch.notify_one();
        Ok(())
    }
}

impl Drop for Pool {
    /// Ends the threads when their scripts are done; nobody waits for them.
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        for job in state.waiting.drain(..) {
            (job.refuse)(Refused::Closed);
        }
        self.shared.work.notify_all();
        self.shared.watch.notify_all();
    }
}

fn spawn_worker(shared: &Arc<PoolCore>, state: &mut Jobs) -> Result<(), Refused> {
    let worker = shared.clone();
    let spawned = std::thread::Builder::new()
        .name("orrery-script".to_owned())
        .stack_size(THREAD_STACK_BYTES)
        .spawn(move || worker.work());
    match spawned {
        Ok(_) => state.threads += 1,
        // Another thread will come to the job, if there is one.
        Err(error) if state.threads > 0 => tracing::warn!(%error, "no further script thread"),
        Err(error) => {
            tracing::error!(%error, "no script thread could be started");
            if let Some(job) = state.waiting.pop_back() {
                (job.refuse)(Refused::Busy);
            }
            return Err(Refused::Busy);
        }
    }
    Ok(())
}

impl PoolCore {
    fn work(self: Arc<PoolCore>) {
        let thread = priority::lower();
        let mut state = self.state.lock();
        loop {
            let Some(job) = state.waiting.pop_front() else {
                if state.closed {
                    state.threads -= 1;
                    return;
                }
                state.idle += 1;
                self.work.wait(&mut state);
                state.idle -= 1;
                continue;
            };
            if job.gone.load(Ordering::Acquire) {
                continue;
            }
            if job.queued.elapsed() > job.time {
                (job.refuse)(Refused::Busy);
                continue;
            }
            let number = state.next;
            state.next += 1;
            let began = Instant::now();
            let give_up_at = began + job.time + self.limits.grace;
            let running =
                Running { state: job.state.clone(), refuse: job.refuse.clone(), began, give_up_at, thread };
            state.running.insert(number, running);
            drop(state);
            priority::begin();
            let claim = Claim { state: job.state.clone(), gone: job.gone };
            let run = job.run;
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&claim))).is_err();
            if panicked {
                tracing::error!("a script's thread panicked");
                (job.refuse)(Refused::Closed);
            }
            state = self.state.lock();
            state.running.remove(&number);
            if job.state.load(Ordering::Acquire) == GIVEN_UP {
                // Another thread has this one's place.
                state.given_up -= 1;
                return;
            }
            // The thread may be one too many now, or one that nobody should get.
            let surplus = state.threads > self.limits.threads && !state.has_room(&self.limits);
            if priority::has_fallen() || surplus {
                state.threads -= 1;
                if !state.waiting.is_empty() && state.has_room(&self.limits) {
                    let _ = spawn_worker(&self, &mut state);
                }
                return;
            }
        }
    }

    /// Gives up threads whose scripts did not stop, answers those who have waited long enough, and finds threads for
    /// others.
    fn watch(self: Arc<PoolCore>) {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return;
            }
            if state.running.is_empty() && state.waiting.is_empty() {
                self.watch.wait(&mut state);
            } else {
                self.watch.wait_for(&mut state, WATCH_EVERY);
            }
            let now = Instant::now();
            let stuck: Vec<u64> = state
                .running
                .iter()
                .filter(|(_, running)| now >= running.give_up_at)
                .filter(|(_, running)| {
                    let state = &running.state;
                    state.compare_exchange(RUNNING, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire).is_ok()
                })
                .map(|(number, _)| *number)
                .collect();
            for number in stuck {
                let Some(running) = state.running.remove(&number) else { continue };
                tracing::warn!("a script did not stop in time; its thread is given up");
                priority::lowest(running.thread);
                state.threads -= 1;
                state.given_up += 1;
                (running.refuse)(Refused::Stuck);
            }
            // Nobody waits longer for a thread than a script may take.
            state.waiting.retain(|job| {
                let waits = job.queued.elapsed() <= job.time;
                if !waits {
                    (job.refuse)(Refused::Busy);
                }
                waits && !job.gone.load(Ordering::Acquire)
            });
            for _ in state.idle..state.waiting.len() {
                if !state.has_room(&self.limits) || spawn_worker(&self, &mut state).is_err() {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn wait<T>(future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return value;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn pool(threads: usize, queue: usize, given_up: usize) -> Pool {
        Pool::new(PoolLimits { threads, long: 0, queue, given_up, grace: Duration::from_millis(10) })
    }

    #[test]
    fn more_than_the_queue_holds_is_refused_at_once() {
        let pool = pool(1, 1, 4);
        let (release, held) = mpsc::channel::<()>();
        let (started, on_start) = mpsc::channel();
        let first = pool.run(Duration::from_secs(9), move |_| {
            started.send(()).unwrap();
            held.recv().unwrap();
            1
        });
        on_start.recv().unwrap();
        let second = pool.run(Duration::from_secs(9), |_| 2);
        let third = pool.run(Duration::from_secs(9), |_| 3);
        assert_eq!(wait(third), Err(Refused::Busy));
        release.send(()).unwrap();
        assert_eq!((wait(first), wait(second)), (Ok(1), Ok(2)));
    }

    #[test]
    fn a_stuck_thread_is_replaced_and_its_job_may_have_no_effect_any_more() {
        let pool = pool(1, 8, 2);
        let (release, held) = mpsc::channel::<()>();
        let (told, effect) = mpsc::channel();
        let stuck = pool.run(Duration::from_millis(10), move |claim| {
            held.recv().unwrap();
            told.send(claim.take()).unwrap();
        });
        assert_eq!(wait(stuck), Err(Refused::Stuck));
        assert_eq!(wait(pool.run(Duration::from_secs(9), |claim| claim.take())), Ok(true));
        release.send(()).unwrap();
        assert!(!effect.recv().unwrap(), "a job that was given up must not claim its answer");
    }

    #[test]
    fn jobs_that_take_long_hold_up_no_others_until_there_are_too_many_of_them() {
        let limits = PoolLimits { threads: 1, long: 3, queue: 8, given_up: 8, grace: Duration::from_secs(9) };
        let pool = Pool::new(limits);
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let start = |place: i32| {
            let held = held.clone();
            pool.run(Duration::from_secs(99), move |_| {
                while held.lock().try_recv().is_err() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                place
            })
        };
        let mut long: Vec<_> = (0..3).map(start).collect();
        assert_eq!(
            wait(pool.run(Duration::from_secs(30), |_| 7)),
            Ok(7),
            "three are long, one place is left"
        );
        long.push(start(3));
        let began = Instant::now();
        while pool.shared.state.lock().running.len() < 4 {
            assert!(began.elapsed() < Duration::from_secs(30), "it finds the place");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(wait(pool.run(Duration::from_millis(200), |_| 8)), Err(Refused::Busy));
        for _ in 0..4 {
            release.send(()).unwrap();
        }
        assert_eq!(long.into_iter().map(wait).collect::<Vec<_>>(), (0..4).map(Ok).collect::<Vec<_>>());
        assert_eq!(wait(pool.run(Duration::from_secs(30), |_| 9)), Ok(9));
    }

    #[test]
    fn a_job_that_has_claimed_its_answer_is_left_alone() {
        let pool = pool(1, 8, 2);
        let slow = pool.run(Duration::from_millis(100), |claim| {
            assert!(claim.take());
            std::thread::sleep(Duration::from_millis(600));
            7
        });
        assert_eq!(wait(slow), Ok(7));
    }

    #[test]
    fn a_job_for_which_nobody_waits_is_told_so_and_may_have_no_effect() {
        let pool = pool(1, 8, 2);
        let (told, seen) = mpsc::channel();
        let running = pool.run(Duration::from_secs(9), move |claim| {
            told.send(None).unwrap();
            while !claim.gone().load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
            told.send(Some(claim.take())).unwrap();
        });
        let queued = pool.run(Duration::from_secs(9), |_| panic!("nobody wants this any more"));
        assert_eq!(seen.recv().unwrap(), None);
        drop(queued);
        drop(running);
        assert_eq!(seen.recv().unwrap(), Some(false));
        assert_eq!(wait(pool.run(Duration::from_secs(9), |claim| claim.take())), Ok(true));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_has_worked_for_long_is_replaced() {
        let pool = pool(1, 8, 2);
        let nice = |_: &Claim| {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let rest = stat.rsplit_once(')').unwrap().1.to_owned();
            (std::thread::current().id(), rest.split_whitespace().nth(16).unwrap().parse::<i32>().unwrap())
        };
        let (first, usual) = wait(pool.run(Duration::from_secs(9), nice)).unwrap();
        assert_eq!(
            wait(pool.run(Duration::from_secs(9), nice)),
            Ok((first, usual)),
            "one thread for short work"
        );
        let long = pool.run(Duration::from_secs(99), move |claim| {
            while nice(claim).1 == usual {
                priority::look();
            }
            nice(claim)
        });
        assert_eq!(wait(long), Ok((first, 10)));
        let (next, nice_again) = wait(pool.run(Duration::from_secs(9), nice)).unwrap();
        assert!(next != first && nice_again == usual, "{nice_again}");
    }

    #[test]
    fn a_panic_is_an_answer_too() {
        let pool = pool(1, 8, 2);
        assert_eq!(wait(pool.run(Duration::from_secs(9), |_| panic!("boom"))), Err::<(), _>(Refused::Closed));
        assert_eq!(wait(pool.run(Duration::from_secs(9), |_| 1)), Ok(1));
    }
}
