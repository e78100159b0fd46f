//! What was measured: one line and one picture per phase, or one JSON object.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// Three digits are kept of every latency, up to this one.
const LATENCY_US_MAX: u64 = 120_000_000;
/// Different error texts kept per phase.
const ERRORS_MAX: usize = 5;
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

pub struct Report {
    pub endpoint: String,
    pub connections: usize,
    pub phases: Vec<Phase>,
}

pub struct Phase {
    pub name: String,
    pub latencies_us: Histogram<u64>,
    pub charge_ru: f64,
    pub throttled: u64,
    pub errors: u64,
    /// The first few texts, with how often each came.
    pub error_texts: BTreeMap<String, u64>,
    pub elapsed: Duration,
}

impl Phase {
    pub fn new(name: &str) -> Phase {
        Phase {
            name: name.to_owned(),
            latencies_us: Histogram::new_with_bounds(1, LATENCY_US_MAX, 3)
                .expect("constant bounds that are allowed"),
            charge_ru: 0.0,
            throttled: 0,
            errors: 0,
            error_texts: BTreeMap::new(),
            elapsed: Duration::ZERO,
        }
    }

    pub fn answered(&mut self, latency: Duration, charge_ru: f64) {
        self.latencies_us.saturating_record((latency.as_micros() as u64).max(1));
        self.charge_ru += charge_ru;
    }

    pub fn failed(&mut self, text: &str) {
        self.errors += 1;
        self.count_error(text, 1);
    }

    pub fn add(&mut self, other: &Phase) {
        let _ = self.latencies_us.add(&other.latencies_us);
        self.charge_ru += other.charge_ru;
        self.throttled += other.throttled;
        self.errors += other.errors;
        for (text, count) in &other.error_texts {
            self.count_error(text, *count);
        }
    }

    fn count_error(&mut self, text: &str, count: u64) {
        // Activity ids differ in every answer; what comes before them is the error.
        let text = text.split("ActivityId").next().unwrap_or(text);
        let text = text
            .split("RequestStartTime")
            .next()
            .unwrap_or(text)
            .trim_end_matches(['\\', 'r', 'n', ' ', ',']);
        if let Some(known) = self.error_texts.get_mut(text) {
            *known += count;
        } else if self.error_texts.len() < ERRORS_MAX {
            self.error_texts.insert(text.to_owned(), count);
        }
    }

    fn per_second(&self, amount: f64) -> f64 {
        amount / self.elapsed.as_secs_f64().max(1e-9)
    }

    fn json(&self) -> Value {
        let latencies = &self.latencies_us;
        let mut quantiles: serde_json::Map<String, Value> = QUANTILES
            .iter()
            .map(|(name, q)| ((*name).to_owned(), json!(latencies.value_at_quantile(*q))))
            .collect();
        quantiles.insert("max".into(), json!(latencies.max()));
        quantiles.insert("mean".into(), json!(latencies.mean()));
        json!({
            "operation": self.name,
            "seconds": self.elapsed.as_secs_f64(),
            "operations": latencies.len(),
            "operations_per_second": self.per_second(latencies.len() as f64),
            "charge_ru": self.charge_ru,
            "charge_ru_per_second": self.per_second(self.charge_ru),
            "throttled": self.throttled,
            "errors": self.errors,
            "error_texts": self.error_texts,
            "latency_us": quantiles,
        })
    }
}

impl Report {
    pub fn json(&self) -> Value {
        json!({
            "endpoint": self.endpoint,
            "connections": self.connections,
            "phases": self.phases.iter().map(Phase::json).collect::<Vec<_>>(),
        })
    }

    pub fn text(&self) -> String {
        let mut text = format!("{}, {} connections\n\n", self.endpoint, self.connections);
        let _ = writeln!(
            text,
            "{:<8} {:>10} {:>9} {:>10} {:>8} {:>8}  {:>8} {:>8} {:>8} {:>8} {:>8}",
            "", "operations", "ops/s", "RU/s", "429", "errors", "p50", "p90", "p99", "p99.9", "max"
        );
        for phase in &self.phases {
            let latencies = &phase.latencies_us;
            let _ = write!(
                text,
                "{:<8} {:>10} {:>9.0} {:>10.0} {:>8} {:>8} ",
                phase.name,
                latencies.len(),
                phase.per_second(latencies.len() as f64),
                phase.per_second(phase.charge_ru),
                phase.throttled,
                phase.errors
            );
            for (_, quantile) in QUANTILES {
                let _ = write!(text, " {:>8}", time(latencies.value_at_quantile(quantile)));
            }
            let _ = writeln!(text, " {:>8}", time(latencies.max()));
        }
        for phase in &self.phases {
            for (error, count) in &phase.error_texts {
                let _ = writeln!(text, "\n{}: {count} × {error}", phase.name);
            }
        }
        for phase in self.phases.iter().filter(|phase| !phase.latencies_us.is_empty()) {
            let _ = write!(text, "\n{}\n{}", phase.name, picture(&phase.latencies_us));
        }
        text
    }
}

/// Bars over ranges that double: the shape of the distribution at a glance.
fn picture(latencies: &Histogram<u64>) -> String {
    const WIDTH: usize = 50;
    let mut rows = Vec::new();
    let mut low = 1u64 << latencies.min().max(1).ilog2();
    while low <= latencies.max() {
        rows.push((low, latencies.count_between(low, 2 * low - 1)));
        low *= 2;
    }
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    let mut text = String::new();
    for (low, count) in rows {
        let eighths = (count as usize * WIDTH * 8).div_ceil(most as usize);
        let bar: String = "█".repeat(eighths / 8) + ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        let share = 100.0 * count as f64 / latencies.len() as f64;
        let _ = writeln!(text, "  {:>8} ─ {:>8} {share:>6.2} % {bar}", time(low), time(2 * low));
    }
    text
}

fn time(us: u64) -> String {
    match us {
        ..1000 => format!("{us} µs"),
        1000..100_000 => format!("{:.1} ms", us as f64 / 1e3),
        100_000..10_000_000 => format!("{} ms", us / 1000),
        _ => format!("{} s", us / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase() -> Phase {
        let mut phase = Phase::new("read");
        for us in 1..=1000 {
            phase.answered(Duration::from_micros(us), 1.0);
        }
        phase.elapsed = Duration::from_secs(2);
        phase
    }

    #[test]
    fn figures_and_picture_come_from_the_same_histogram() {
        let mut phase = phase();
        phase.failed("404 {\"message\":\"x, \\r\\nRequestStartTime: now\\r\\nActivityId: 1\"}");
        phase.failed("404 {\"message\":\"x, \\r\\nRequestStartTime: later\\r\\nActivityId: 2\"}");
        let value = phase.json();
        assert_eq!(
            (value["operations"].as_u64(), value["operations_per_second"].as_f64()),
            (Some(1000), Some(500.0))
        );
        assert_eq!(value["latency_us"]["p99"], 990);
        assert_eq!(
            value["error_texts"].as_object().unwrap().len(),
            1,
            "ids in errors do not make them different"
        );
        let report = Report { endpoint: "http://x".into(), connections: 8, phases: vec![phase] };
        let text = report.text();
        assert!(text.contains("512 µs ─   1.0 ms  48.90 %"), "{text}");
        assert!(text.contains("read: 2 × 404"), "{text}");
    }

    #[test]
    fn an_empty_phase_has_a_report_too() {
        let report = Report { endpoint: "http://x".into(), connections: 1, phases: vec![Phase::new("read")] };
        assert!(report.text().contains("read"));
        assert!(report.json()["phases"][0]["latency_us"]["max"].is_number());
    }
}
