//! Threads that help with the shares of queries: a few, started when they are first needed, for all queries together.
//!
//! Whoever has several things to do calls [`spread`]: it does them on its own thread, one after the other, and
//! workers that are idle take some of them off it. With none idle everything is done by the caller, which changes the
//! time it takes and nothing else.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex};

/// Workers that there are at most, however many cores.
const THREADS_MAX: usize = 64;
/// Calls for help that may wait; with more the callers are better off alone.
const QUEUE_MAX: usize = 256;

/// How many threads can run at once.
pub fn cores() -> usize {
    // Asking the system means reading several of its files.
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Several things to do, of which everybody who helps takes the next.
trait Batch: Send + Sync {
    fn help(&self);
}

struct Work<T, F> {
    work: F,
    count: usize,
    next: AtomicUsize,
    done: Mutex<Done<T>>,
    all_done: Condvar,
}

struct Done<T> {
    answers: Vec<Option<T>>,
    count: usize,
}

impl<T: Send, F: Fn(usize) -> T + Send + Sync> Batch for Work<T, F> {
    fn help(&self) {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            if at >= self.count {
                return;
            }
            // One that panics gives no answer, and its caller says so; the others go on.
            let answer = catch_unwind(AssertUnwindSafe(|| (self.work)(at))).ok();
            let mut done = self.done.lock();
            done.answers[at] = answer;
            done.count += 1;
            if done.count == self.count {
                self.all_done.notify_one();
            }
        }
    }
}

#[derive(Default)]
struct Workers {
    state: Mutex<State>,
    called: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<dyn Batch>>,
    idle: usize,
    threads: usize,
}

fn workers() -> &'static Workers {
    static WORKERS: OnceLock<Workers> = OnceLock::new();
    WORKERS.get_or_init(Workers::default)
}

impl Workers {
    /// Asks for so many helpers.
    fn call(&'static self, batch: &Arc<dyn Batch>, helpers: usize) {
        let mut state = self.state.lock();
        for _ in 0..helpers.min(QUEUE_MAX.saturating_sub(state.queue.len())) {
            state.queue.push_back(batch.clone());
            if state.idle > 0 {
                self.called.notify_one();
            } else if state.threads < cores().min(THREADS_MAX) {
                // A thread that the system does not give is one helper less.
                let started =
                    std::thread::Builder::new().name("query".to_owned()).spawn(move || self.serve());
                state.threads += usize::from(started.is_ok());
            }
        }
    }

    /// Takes back the calls that nobody has heard.
    fn forget(&self, batch: &Arc<dyn Batch>) {
        self.state.lock().queue.retain(|waiting| !Arc::ptr_eq(waiting, batch));
    }

    fn serve(&self) {
        let mut state = self.state.lock();
        loop {
            match state.queue.pop_front() {
                Some(batch) => {
                    drop(state);
                    batch.help();
                    drop(batch);
                    state = self.state.lock();
                }
                None => {
                    state.idle += 1;
                    self.called.wait(&mut state);
                    state.idle -= 1;
                }
            }
        }
    }
}

/// Calls `work` with each number below `count`, here and on as many as `helpers` workers, and answers in order.
/// `None` stands for one that has panicked.
pub fn spread<T: Send + 'static>(
    count: usize,
    helpers: usize,
    work: impl Fn(usize) -> T + Send + Sync + 'static,
) -> Vec<Option<T>> {
    let done = Mutex::new(Done { answers: (0..count).map(|_| None).collect(), count: 0 });
    let work = Arc::new(Work { work, count, next: AtomicUsize::new(0), done, all_done: Condvar::new() });
    let batch: Arc<dyn Batch> = work.clone();
    workers().call(&batch, helpers.min(count.saturating_sub(1)));
    work.help();
    let mut done = work.done.lock();
    while done.count < count {
        work.all_done.wait(&mut done);
    }
    let answers = std::mem::take(&mut done.answers);
    drop(done);
    workers().forget(&batch);
    answers
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread::ThreadId;
    use std::time::Duration;

    use super::*;

    #[test]
    fn everything_is_done_once_and_in_order() {
        for round in 0..200 {
            let answers = spread(round % 9, 3, |at| at * 2);
            let expected: Vec<Option<usize>> = (0..round % 9).map(|at| Some(at * 2)).collect();
            assert_eq!(answers, expected);
        }
        assert!(workers().state.lock().threads <= cores().min(THREADS_MAX));
    }

    #[test]
    fn without_helpers_the_caller_does_all_of_it() {
        let here = std::thread::current().id();
        assert!(spread(5, 0, |_| std::thread::current().id()).into_iter().all(|at| at == Some(here)));
    }

    #[test]
    fn helpers_help() {
        let threads = |_| {
            std::thread::sleep(Duration::from_millis(20));
            std::thread::current().id()
        };
        let used: HashSet<ThreadId> = spread(4, 3, threads).into_iter().flatten().collect();
        assert!(used.len() > 1 || cores() == 1);
    }

    #[test]
    fn one_that_panics_gives_no_answer_and_hurts_no_other() {
        let answers = spread(6, 2, |at| if at == 3 { panic!("on purpose") } else { at });
        assert_eq!(answers, [Some(0), Some(1), Some(2), None, Some(4), Some(5)]);
        assert_eq!(spread(2, 1, |at| at), [Some(0), Some(1)]);
    }
}
