//! Figures for Prometheus, kept in plain atomics.
//!
//! A request costs five relaxed additions. Labels are closed sets: the api, the operation (names are literals of the
//! api crates, at most [`OPERATIONS_MAX`]), the status class; never anything a client chose.

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use orrery_api::Summary;
use orrery_storage::StoreStats;
use parking_lot::Mutex;

use crate::limits::OPERATIONS_MAX;

/// Upper bounds of the latency buckets.
const BUCKETS_US: [u64; 17] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];

const CLASSES: [&str; 5] = ["2xx", "3xx", "4xx", "429", "5xx"];

/// Figures of the store, taken when somebody asks for the metrics.
#[derive(Debug, Clone, Default)]
pub struct StoreFigures {
    pub store: StoreStats,
    /// What the process may take, and of it what its requests share.
    pub memory_limit_bytes: u64,
    pub request_memory_limit_bytes: u64,
    pub request_memory_bytes: u64,
    pub request_memory_peak_bytes: u64,
    pub request_memory_refusals: u64,
}

pub struct Metrics {
    operations: [OnceLock<Operation>; OPERATIONS_MAX],
    /// Held while a new operation takes its slot.
    registering: Mutex<()>,
    pub requests_in_flight: AtomicI64,
    pub connections_plain: AtomicI64,
    pub connections_tls: AtomicI64,
    pub connections_accepted: AtomicU64,
    pub connections_refused: AtomicU64,
    pub connections_timed_out: AtomicU64,
    pub tls_failures: AtomicU64,
    pub bodies_refused: AtomicU64,
    pub answers_refused: AtomicU64,
    pub panics: AtomicU64,
}

struct Operation {
    api: &'static str,
    name: &'static str,
    by_class: [AtomicU64; CLASSES.len()],
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
    duration_us: AtomicU64,
    charge_milli_ru: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            operations: [const { OnceLock::new() }; OPERATIONS_MAX],
            registering: Mutex::default(),
            requests_in_flight: AtomicI64::default(),
            connections_plain: AtomicI64::default(),
            connections_tls: AtomicI64::default(),
            connections_accepted: AtomicU64::default(),
            connections_refused: AtomicU64::default(),
            connections_timed_out: AtomicU64::default(),
            tls_failures: AtomicU64::default(),
            bodies_refused: AtomicU64::default(),
            answers_refused: AtomicU64::default(),
            panics: AtomicU64::default(),
        }
    }
}

impl Metrics {
    /// Counts an answer of an api.
    pub fn request(&self, api: &'static str, summary: &Summary, status: u16, duration_us: u64) {
        let class = match status {
            429 => 3,
            ..300 => 0,
            300..400 => 1,
            400..500 => 2,
            _ => 4,
        };
        let cells = self.operation(api, summary.operation);
        cells.by_class[class].fetch_add(1, Relaxed);
        let bucket = BUCKETS_US.iter().position(|bound| duration_us <= *bound).unwrap_or(BUCKETS_US.len());
        cells.buckets[bucket].fetch_add(1, Relaxed);
        cells.duration_us.fetch_add(duration_us, Relaxed);
        cells.charge_milli_ru.fetch_add((summary.charge_ru * 1000.0) as u64, Relaxed);
    }

    /// A handful of names in order of first use: comparing addresses down the list is faster than any hash.
    fn operation(&self, api: &'static str, name: &'static str) -> &Operation {
        let equal = |one: &'static str, other: &'static str| std::ptr::eq(one, other) || one == other;
        let same = |cells: &&Operation| equal(cells.name, name) && equal(cells.api, api);
        if let Some(cells) = self.operations.iter().map_while(OnceLock::get).find(same) {
            return cells;
        }
        let _alone = self.registering.lock();
        if let Some(cells) = self.operations.iter().map_while(OnceLock::get).find(same) {
            return cells;
        }
        let taken = self.operations.iter().map_while(OnceLock::get).count().min(OPERATIONS_MAX - 1);
        let name = if taken == OPERATIONS_MAX - 1 { "other" } else { name };
        self.operations[taken].get_or_init(|| Operation::new(api, name))
    }

    /// The text format of Prometheus.
    pub fn render(&self, store: Option<&StoreFigures>, log_lines_dropped: u64) -> String {
        let mut text = String::with_capacity(16 * 1024);
        // Writing into a String cannot fail.
        let _ = self.render_requests(&mut text);
        let mut one = |name: &str, kind: &str, help: &str, value: i128| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        };
        let signed = |cell: &AtomicI64| i128::from(cell.load(Relaxed));
        let unsigned = |cell: &AtomicU64| i128::from(cell.load(Relaxed));
        one(
            "orrery_requests_in_flight",
            "gauge",
            "Requests being answered.",
            signed(&self.requests_in_flight),
        );
        one(
            "orrery_connections_plain",
            "gauge",
            "Open connections without TLS.",
            signed(&self.connections_plain),
        );
        one("orrery_connections_tls", "gauge", "Open connections with TLS.", signed(&self.connections_tls));
        one(
            "orrery_connections_accepted_total",
            "counter",
            "Connections accepted.",
            unsigned(&self.connections_accepted),
        );
        one(
            "orrery_connections_refused_total",
            "counter",
            "Connections above the limit.",
            unsigned(&self.connections_refused),
        );
        one(
            "orrery_connections_timed_out_total",
            "counter",
            "Connections closed as idle or slow.",
            unsigned(&self.connections_timed_out),
        );
        one("orrery_tls_failures_total", "counter", "Failed TLS handshakes.", unsigned(&self.tls_failures));
        one(
            "orrery_bodies_refused_total",
            "counter",
            "Request bodies above a limit.",
            unsigned(&self.bodies_refused),
        );
        one(
            "orrery_answers_refused_total",
            "counter",
            "Answers dropped because too many were not read.",
            unsigned(&self.answers_refused),
        );
        one(
            "orrery_panics_total",
            "counter",
            "Requests that ended in a defect of the server.",
            unsigned(&self.panics),
        );
        one("orrery_log_lines_dropped_total", "counter", "Log lines dropped.", i128::from(log_lines_dropped));
        if let Some(store) = store {
            let StoreFigures {
                store:
                    StoreStats {
                        disk_bytes,
                        log_bytes,
                        commits,
                        groups,
                        syncs,
                        flushes,
                        compactions,
                        snapshots_open,
                        fork_bytes,
                        item_cache_hits,
                        item_cache_misses,
                        item_cache_bytes,
                        damaged_tables,
                        writes_stopped,
                        disk_full,
                    },
                memory_limit_bytes,
                request_memory_limit_bytes,
                request_memory_bytes,
                request_memory_peak_bytes,
                request_memory_refusals,
            } = *store;
            one("orrery_store_disk_bytes", "gauge", "Bytes of table files.", disk_bytes.into());
            one("orrery_store_log_bytes", "gauge", "Bytes of the write-ahead log.", log_bytes.into());
            one("orrery_store_commits_total", "counter", "Commits.", commits.into());
            one("orrery_store_groups_total", "counter", "Groups of commits written together.", groups.into());
            one("orrery_store_syncs_total", "counter", "Waits for the disk.", syncs.into());
            one("orrery_store_flushes_total", "counter", "Memory tables written to disk.", flushes.into());
            one("orrery_store_compactions_total", "counter", "Compactions.", compactions.into());
            one("orrery_store_snapshots_open", "gauge", "Open snapshots.", snapshots_open.into());
            one("orrery_store_fork_bytes", "gauge", "Bytes written to forks, in memory.", fork_bytes.into());
            let name = "orrery_store_item_cache_hits_total";
            one(name, "counter", "Items read from the cache.", item_cache_hits.into());
            let name = "orrery_store_item_cache_misses_total";
            one(name, "counter", "Items looked for in tables.", item_cache_misses.into());
            one("orrery_store_item_cache_bytes", "gauge", "Bytes of cached items.", item_cache_bytes.into());
            let name = "orrery_store_damaged_tables";
            one(name, "gauge", "Tables known to be damaged: see `orrery check`.", damaged_tables.into());
            one(
                "orrery_store_writes_stopped",
                "gauge",
                "1 after a failed write: reads only.",
                writes_stopped.into(),
            );
            one("orrery_store_disk_full", "gauge", "1 while only deletes are accepted.", disk_full.into());
            one("orrery_memory_limit_bytes", "gauge", "What --memory-limit says.", memory_limit_bytes.into());
            let name = "orrery_request_memory_limit_bytes";
            one(name, "gauge", "What all requests may hold together.", request_memory_limit_bytes.into());
            let name = "orrery_request_memory_bytes";
            one(name, "gauge", "What requests and unsent answers hold.", request_memory_bytes.into());
            let name = "orrery_request_memory_peak_bytes";
            one(name, "gauge", "The most they held since the start.", request_memory_peak_bytes.into());
            let name = "orrery_request_memory_refusals_total";
            one(name, "counter", "Times that memory was refused to one.", request_memory_refusals.into());
        }
        if let Some((resident_bytes, cpu_ms)) = process_figures() {
            one("process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes.into());
            let name = "process_cpu_seconds_total";
            let _ = writeln!(
                text,
                "# HELP {name} CPU time.\n# TYPE {name} counter\n{name} {}",
                cpu_ms as f64 / 1000.0
            );
        }
        let version = env!("CARGO_PKG_VERSION");
        let _ = writeln!(
            text,
            "# HELP orrery_build_info The running version.\n# TYPE orrery_build_info gauge\norrery_build_info{{version=\"{version}\"}} 1"
        );
        text
    }

    fn render_requests(&self, text: &mut String) -> std::fmt::Result {
        let operations = || self.operations.iter().map_while(OnceLock::get);
        writeln!(
            text,
            "# HELP orrery_requests_total Requests answered.\n# TYPE orrery_requests_total counter"
        )?;
        for operation in operations() {
            for (class, count) in CLASSES.iter().zip(&operation.by_class) {
                let (api, name, count) = (operation.api, operation.name, count.load(Relaxed));
                if count > 0 {
                    writeln!(
                        text,
                        "orrery_requests_total{{api=\"{api}\",operation=\"{name}\",status=\"{class}\"}} {count}"
                    )?;
                }
            }
        }
        let family = "orrery_request_charge_ru_total";
        writeln!(text, "# HELP {family} Request units charged.\n# TYPE {family} counter")?;
        for operation in operations() {
            let ru = operation.charge_milli_ru.load(Relaxed) as f64 / 1000.0;
            let (api, name) = (operation.api, operation.name);
            writeln!(text, "{family}{{api=\"{api}\",operation=\"{name}\"}} {ru}")?;
        }
        let family = "orrery_request_duration_seconds";
        writeln!(
            text,
            "# HELP {family} Time from the end of the headers to the answer.\n# TYPE {family} histogram"
        )?;
        for operation in operations() {
            let labels = format!("api=\"{}\",operation=\"{}\"", operation.api, operation.name);
            let mut total = 0;
            for (index, count) in operation.buckets.iter().enumerate() {
                total += count.load(Relaxed);
                let bound = BUCKETS_US.get(index).map_or("+Inf".into(), |us| (*us as f64 / 1e6).to_string());
                writeln!(text, "{family}_bucket{{{labels},le=\"{bound}\"}} {total}")?;
            }
            let seconds = operation.duration_us.load(Relaxed) as f64 / 1e6;
            writeln!(text, "{family}_sum{{{labels}}} {seconds}\n{family}_count{{{labels}}} {total}")?;
        }
        Ok(())
    }
}

impl Operation {
    fn new(api: &'static str, name: &'static str) -> Operation {
        Operation {
            api,
            name,
            by_class: [const { AtomicU64::new(0) }; CLASSES.len()],
            buckets: [const { AtomicU64::new(0) }; BUCKETS_US.len() + 1],
            duration_us: AtomicU64::new(0),
            charge_milli_ru: AtomicU64::new(0),
        }
    }
}

/// Resident bytes and CPU milliseconds of this process, where the system tells (Linux).
pub fn process_figures() -> Option<(u64, u64)> {
    const PAGE_BYTES: u64 = 4096;
    const TICK_MS: u64 = 10;
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in brackets and may contain anything; count after it.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some((pages * PAGE_BYTES, ticks * TICK_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_by_operation_class_and_bucket() {
        let metrics = Metrics::default();
        let summary = |operation, charge_ru| Summary { operation, charge_ru, ..Summary::default() };
        metrics.request("nosql", &summary("read_item", 1.0), 200, 40);
        metrics.request("nosql", &summary("read_item", 1.0), 404, 700);
        metrics.request("nosql", &summary("create_item", 0.38), 429, 20_000_000);
        metrics.request("table", &summary("read_item", 1.0), 200, 40);
        let text = metrics.render(
            Some(&StoreFigures {
                store: StoreStats { syncs: 7, ..StoreStats::default() },
                ..StoreFigures::default()
            }),
            3,
        );
        for line in [
            r#"orrery_requests_total{api="nosql",operation="read_item",status="2xx"} 1"#,
            r#"orrery_requests_total{api="nosql",operation="read_item",status="4xx"} 1"#,
            r#"orrery_requests_total{api="nosql",operation="create_item",status="429"} 1"#,
            r#"orrery_requests_total{api="table",operation="read_item",status="2xx"} 1"#,
            r#"orrery_request_charge_ru_total{api="nosql",operation="create_item"} 0.38"#,
            r#"orrery_request_duration_seconds_bucket{api="nosql",operation="read_item",le="0.00005"} 1"#,
            r#"orrery_request_duration_seconds_bucket{api="nosql",operation="read_item",le="0.001"} 2"#,
            r#"orrery_request_duration_seconds_bucket{api="nosql",operation="create_item",le="10"} 0"#,
            r#"orrery_request_duration_seconds_bucket{api="nosql",operation="create_item",le="+Inf"} 1"#,
            r#"orrery_request_duration_seconds_count{api="nosql",operation="read_item"} 2"#,
            "orrery_store_syncs_total 7",
            "orrery_log_lines_dropped_total 3",
        ] {
            assert!(text.lines().any(|has| has == line), "{line}\n---\n{text}");
        }
    }

    #[test]
    fn names_beyond_the_limit_count_as_other() {
        let metrics = Metrics::default();
        for n in 0..2 * OPERATIONS_MAX {
            let name = Box::leak(format!("operation_{n}").into_boxed_str());
            metrics.request("nosql", &Summary::of(name), 200, 1);
        }
        let text = metrics.render(None, 0);
        assert_eq!(text.matches("orrery_requests_total{").count(), OPERATIONS_MAX);
        assert!(text.contains("operation=\"other\",status=\"2xx\"} 257"), "{text}");
    }
}
