//! The log: events and request lines, written by a thread of its own.
//!
//! Whoever logs appends a finished line to a buffer under a short lock and goes on; the writer thread swaps the
//! buffer for an empty one and writes it to stderr in one call. Nobody ever waits for a slow terminal or a full pipe:
//! a line that finds the buffer at its limit is dropped, and the next written batch says how many were. The writer
//! sleeps while there is nothing to write, and gathers lines for a few milliseconds after it wrote some, so a loaded
//! server pays for some hundred wake-ups a second, not for one per line.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{LogConfig, LogFormat};
use crate::limits::{LOG_BUFFER_BYTES_MAX, LOG_FLUSH_TIMEOUT, LOG_GATHER};

/// Where lines go. Cheap to clone.
#[derive(Clone)]
pub struct LogSink(Arc<LogBuffer>);

struct LogBuffer {
    state: Mutex<Unwritten>,
    work: Condvar,
    done: Condvar,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Unwritten {
    buffer: Vec<u8>,
    asleep: bool,
    closing: bool,
    closed: bool,
}

impl LogSink {
    /// A sink with its writer thread, writing to `output` (stderr, in the server).
    pub fn start(output: impl Write + Send + 'static) -> std::io::Result<LogSink> {
        let shared = Arc::new(LogBuffer {
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            dropped: AtomicU64::new(0),
        });
        let sink = LogSink(shared.clone());
        std::thread::Builder::new().name("log".into()).spawn(move || write_batches(&shared, output))?;
        Ok(sink)
    }

    /// Appends a line (which ends with a newline). Never blocks on the output.
    pub fn line(&self, line: &[u8]) {
        let mut state = self.0.state.lock();
        if state.closed || state.buffer.len() + line.len() > LOG_BUFFER_BYTES_MAX {
            drop(state);
            self.0.dropped.fetch_add(1, Relaxed);
            return;
        }
        state.buffer.extend_from_slice(line);
        if std::mem::take(&mut state.asleep) {
            drop(state);
            self.0.work.notify_one();
        }
    }

    /// Lines lost so far because the output was too slow.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Relaxed)
    }

    /// Writes what is buffered and stops the writer; gives up on an output that takes nothing.
    pub fn close(&self) {
        let deadline = Instant::now() + LOG_FLUSH_TIMEOUT;
        let mut state = self.0.state.lock();
        state.closing = true;
        self.0.work.notify_one();
        while !state.closed && !self.0.done.wait_until(&mut state, deadline).timed_out() {}
    }
}

fn write_batches(shared: &LogBuffer, mut output: impl Write) {
    let mut batch = Vec::new();
    let mut reported = 0;
    loop {
        {
            let mut state = shared.state.lock();
            while state.buffer.is_empty() && !state.closing {
                state.asleep = true;
                shared.work.wait(&mut state);
            }
            state.asleep = false;
            if state.buffer.is_empty() {
                state.closed = true;
                shared.done.notify_all();
                return;
            }
            std::mem::swap(&mut state.buffer, &mut batch);
        }
        let dropped = shared.dropped.load(Relaxed);
        if dropped > reported {
            batch.extend_from_slice(
                format!("log: {} lines dropped, the output was too slow\n", dropped - reported).as_bytes(),
            );
            reported = dropped;
        }
        // A log that cannot be written (closed pipe) has nobody left to tell.
        let _ = output.write_all(&batch).and_then(|()| output.flush());
        batch.clear();
        // A burst must not pin its memory.
        batch.shrink_to(64 * 1024);
        if !shared.state.lock().closing {
            std::thread::sleep(LOG_GATHER);
        }
    }
}

/// Makes `tracing` events go to the sink, in the configured format. The first call of a process counts.
pub fn install(config: &LogConfig, sink: &LogSink) {
    let filter =
        config.level.parse::<Targets>().unwrap_or_else(|_| Targets::new().with_default(tracing::Level::INFO));
    let sink = sink.clone();
    let writer = move || EventWriter(sink.clone());
    let registry = tracing_subscriber::registry().with(filter);
    let installed = match config.format {
        LogFormat::Text => {
            registry.with(tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer)).try_init()
        }
        LogFormat::Json => registry
            .with(tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(writer))
            .try_init(),
    };
    // A second server in one process (tests) logs through the first one's subscriber.
    drop(installed);
}

/// The formatter writes an event with one call, so one call is one line.
struct EventWriter(LogSink);

impl Write for EventWriter {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.line(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Takes what it is given into a channel; blocks while the gate is locked.
    struct Output(mpsc::Sender<Vec<u8>>, Arc<Mutex<()>>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _open = self.1.lock();
            let _ = self.0.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn sink() -> (LogSink, mpsc::Receiver<Vec<u8>>, Arc<Mutex<()>>) {
        let (sender, receiver) = mpsc::channel();
        let gate = Arc::new(Mutex::new(()));
        (LogSink::start(Output(sender, gate.clone())).unwrap(), receiver, gate)
    }

    #[test]
    fn every_line_arrives_in_order_and_close_waits_for_the_last() {
        let (sink, receiver, _) = sink();
        for n in 0..1000 {
            sink.line(format!("{n}\n").as_bytes());
        }
        sink.close();
        let text: Vec<u8> = receiver.try_iter().flatten().collect();
        let lines: Vec<String> = String::from_utf8(text).unwrap().lines().map(str::to_owned).collect();
        assert_eq!(lines, (0..1000).map(|n| n.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn a_stuck_output_drops_lines_and_says_how_many() {
        let (sink, receiver, gate) = sink();
        let stuck = gate.lock();
        let line = vec![b'x'; 64 * 1024];
        for _ in 0..3 * LOG_BUFFER_BYTES_MAX / line.len() {
            sink.line(&line);
        }
        let dropped = sink.dropped();
        assert!(dropped > 0);
        drop(stuck);
        sink.close();
        let text: Vec<u8> = receiver.try_iter().flatten().collect();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(&format!("log: {dropped} lines dropped")));
    }

    #[test]
    fn a_closed_sink_takes_no_more_lines() {
        let (sink, _, _) = sink();
        sink.close();
        sink.line(b"late\n");
        assert_eq!(sink.dropped(), 1);
    }
}
