//! What people see while they wait, and what they are told at the end.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

/// Counts of a transfer. All of them are about this run; what an earlier run did is in the checkpoint.
#[derive(Default)]
pub struct Meter {
    pub items: AtomicU64,
    pub bytes: AtomicU64,
    pub requests: AtomicU64,
    pub throttled: AtomicU64,
    charge_ru: Mutex<f64>,
}

impl Meter {
    pub fn charge(&self, charge_ru: f64) {
        *self.charge_ru.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += charge_ru;
    }

    pub fn charged_ru(&self) -> f64 {
        *self.charge_ru.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A bar over bytes or items of the source.
pub fn bar(length: Option<u64>, shown: bool) -> ProgressBar {
    let target = if shown { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(length, target);
    let template = match length {
        Some(_) => "{wide_bar} {percent:>3} %  {msg}  {eta} left",
        None => "{spinner} {msg}  {elapsed}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

pub fn message(meter: &Meter, began: Instant, parallel: usize) -> String {
    let seconds = began.elapsed().as_secs_f64().max(0.001);
    let items = meter.items.load(Relaxed);
    let throttled = meter.throttled.load(Relaxed);
    let throttled = if throttled > 0 { format!("  {throttled} × 429") } else { String::new() };
    format!(
        "{} items  {}/s  {} RU/s  {parallel} at once{throttled}",
        HumanCount(items),
        HumanCount((items as f64 / seconds) as u64),
        HumanCount((meter.charged_ru() / seconds) as u64),
    )
}

/// The exact counts of a whole transfer, earlier runs of it included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records that were read from the source.
    pub read: u64,
    pub written: u64,
    /// Left alone because they are there already.
    pub skipped: u64,
    pub rejected: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.read += other.read;
        self.written += other.written;
        self.skipped += other.skipped;
        self.rejected += other.rejected;
    }

    pub fn to_json(self) -> Value {
        json!({"read": self.read, "written": self.written, "skipped": self.skipped, "rejected": self.rejected})
    }

    pub fn of_json(value: &Value) -> Counts {
        let number = |name: &str| value[name].as_u64().unwrap_or(0);
        Counts {
            read: number("read"),
            written: number("written"),
            skipped: number("skipped"),
            rejected: number("rejected"),
        }
    }
}

/// The end of a transfer, for people or for scripts.
pub fn summary(what: &str, counts: &Counts, meter: &Meter, elapsed: Duration, as_json: bool) -> String {
    let seconds = elapsed.as_secs_f64().max(0.001);
    let items = meter.items.load(Relaxed);
    let mut object = counts.to_json();
    object["bytes"] = meter.bytes.load(Relaxed).into();
    object["requests"] = meter.requests.load(Relaxed).into();
    object["throttled"] = meter.throttled.load(Relaxed).into();
    object["requestUnits"] = ((meter.charged_ru() * 100.0).round() / 100.0).into();
    object["seconds"] = ((seconds * 1000.0).round() / 1000.0).into();
    object["itemsPerSecond"] = ((items as f64 / seconds).round() as u64).into();
    if as_json {
        return object.to_string();
    }
    let mut text =
        format!("{what} {} items of {} records", HumanCount(counts.written), HumanCount(counts.read));
    for (count, word) in [(counts.skipped, "were there already"), (counts.rejected, "rejected")] {
        if count > 0 {
            text.push_str(&format!(", {} {word}", HumanCount(count)));
        }
    }
    text.push_str(&format!(
        "; {} in {} requests, {:.1} RU, {} ({} items/s)",
        HumanBytes(meter.bytes.load(Relaxed)),
        HumanCount(meter.requests.load(Relaxed)),
        meter.charged_ru(),
        if elapsed < Duration::from_secs(10) {
            format!("{seconds:.1} s")
        } else {
            HumanDuration(elapsed).to_string()
        },
        HumanCount((items as f64 / seconds) as u64),
    ));
    if meter.throttled.load(Relaxed) > 0 {
        text.push_str(&format!(", {} × 429", meter.throttled.load(Relaxed)));
    }
    text
}
