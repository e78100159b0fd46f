//! What physical partitions hold and spend, for Prometheus.
//!
//! Names of databases and containers are labels here, because nobody could use the figures without them; what keeps
//! the number of series in hand is a limit. The first [`PARTITIONS_MAX`] partitions have series of their own, which
//! stay theirs because partitions are listed in creation order; the rest are added up under empty labels. Somebody
//! without a key does not learn the names and gets the sums of all.

use std::fmt::Write as _;

use orrery_engine::PartitionInsight;
use orrery_engine::outages::OutageFigures;
use orrery_engine::split::SplitFigures;

/// Partitions with series of their own.
const PARTITIONS_MAX: usize = 250;

type Value = fn(&PartitionInsight) -> f64;

const FAMILIES: [(&str, &str, &str, Value); 8] = [
    ("orrery_partition_items", "gauge", "Items of a physical partition.", |p| p.items as f64),
    ("orrery_partition_size_bytes", "gauge", "Bytes of a physical partition.", |p| p.size_bytes as f64),
    ("orrery_partition_throughput_ru", "gauge", "RU/s that a physical partition may spend.", |p| p.share_ru),
    ("orrery_partition_consumed_ru_total", "counter", "Request units spent.", |p| p.consumed_ru),
    ("orrery_partition_requests_total", "counter", "Requests charged.", |p| p.requests as f64),
    ("orrery_partition_throttled_total", "counter", "Requests refused with 429.", |p| p.throttled as f64),
    ("orrery_partition_consumed_ru_rate", "gauge", "RU/s over the last ten seconds.", |p| p.rate_ru),
    (
        NORMALIZED,
        "gauge",
        "Busiest second of the last minute as a part of the throughput.",
        PartitionInsight::normalized,
    ),
];

const NORMALIZED: &str = "orrery_partition_normalized_ru";

pub fn render(text: &mut String, partitions: &[PartitionInsight], with_names: bool) {
    let own = if with_names { partitions.len().min(PARTITIONS_MAX) } else { 0 };
    let (own, rest) = partitions.split_at(own);
    let labels: Vec<String> = own
        .iter()
        .map(|partition| {
            let PartitionInsight { database, container, range_id, .. } = partition;
            let (database, container) = (escaped(database), escaped(container));
            format!("database=\"{database}\",container=\"{container}\",range=\"{range_id}\"")
        })
        .collect();
    // Writing into a String cannot fail.
    for (name, kind, help, value) in FAMILIES {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (partition, labels) in own.iter().zip(&labels) {
            let _ = writeln!(text, "{name}{{{labels}}} {}", value(partition));
        }
        if !rest.is_empty() {
            let values = rest.iter().map(value);
            let together = if name == NORMALIZED { values.fold(0.0, f64::max) } else { values.sum() };
            let _ = writeln!(text, "{name}{{database=\"\",container=\"\",range=\"\"}} {together}");
        }
    }
}

pub fn render_columns(text: &mut String, bytes: u64) {
    let name = "orrery_column_bytes";
    let help = "Memory of columns that scans read.";
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {bytes}");
}

pub fn render_faults(text: &mut String, counts: &[(&'static str, u64)]) {
    let name = "orrery_faults_injected_total";
    let _ = writeln!(text, "# HELP {name} Requests that met a fault rule.\n# TYPE {name} counter");
    for (kind, count) in counts {
        let _ = writeln!(text, "{name}{{fault=\"{kind}\"}} {count}");
    }
}

pub fn render_splits(text: &mut String, figures: &SplitFigures) {
    let families = [
        ("orrery_partition_splits_total", "counter", "Splits of physical partitions.", figures.splits as f64),
        ("orrery_partition_merges_total", "counter", "Merges of physical partitions.", figures.merges as f64),
        (
            "orrery_partition_split_failures_total",
            "counter",
            "Splits and merges undone.",
            figures.failures as f64,
        ),
        (
            "orrery_partition_split_paused_seconds_total",
            "counter",
            "Time that writers waited for handovers.",
            figures.paused_us as f64 / 1e6,
        ),
        (
            "orrery_partition_split_jobs",
            "gauge",
            "Splits and merges waiting or running.",
            figures.jobs as f64,
        ),
        ("orrery_partition_split_items", "gauge", "Items of the job that runs.", figures.items_total as f64),
        ("orrery_partition_split_items_copied", "gauge", "Items it has copied.", figures.items_copied as f64),
    ];
    for (name, kind, help, value) in families {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
    }
}

pub fn render_outages(text: &mut String, figures: &OutageFigures) {
    let families = [
        (
            "orrery_partitions_lost",
            "gauge",
            "Partitions that have lost their store and are not open again yet.",
            figures.partitions_lost,
        ),
        (
            "orrery_partitions_reopened_total",
            "counter",
            "Partitions opened again after they had lost their store.",
            figures.partitions_reopened,
        ),
        (
            "orrery_catalog_lost",
            "gauge",
            "1 while databases and containers cannot be changed because their store is away.",
            figures.catalog_lost.into(),
        ),
    ];
    for (name, kind, help, value) in families {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
    }
}

/// A label's value as the text format wants it.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(range_id: u32) -> PartitionInsight {
        PartitionInsight {
            database: "d\"1".into(),
            container: "c".into(),
            range_id,
            min: Default::default(),
            max: Default::default(),
            items: 2,
            size_bytes: 100,
            size_limit_bytes: 1_000,
            share_ru: 400.0,
            shared: false,
            consumed_ru: 12.5,
            requests: 3,
            throttled: 1,
            rate_ru: 1.25,
            peak_ru: 200.0,
            hot: Vec::new(),
            largest: Vec::new(),
            surveyed: 0.0,
        }
    }

    #[test]
    fn partitions_beyond_the_limit_are_added_up() {
        let mut text = String::new();
        let many: Vec<_> = (0..PARTITIONS_MAX as u32 + 10).map(partition).collect();
        render(&mut text, &many, true);
        for line in [
            r#"orrery_partition_consumed_ru_total{database="d\"1",container="c",range="0"} 12.5"#,
            r#"orrery_partition_items{database="",container="",range=""} 20"#,
            r#"orrery_partition_normalized_ru{database="",container="",range=""} 0.5"#,
        ] {
            assert!(text.lines().any(|has| has == line), "{line}");
        }
        assert_eq!(text.lines().count(), FAMILIES.len() * (PARTITIONS_MAX + 1 + 2));
        text.clear();
        render(&mut text, &many, false);
        assert_eq!(text.lines().count(), FAMILIES.len() * 3);
        assert!(text.contains(r#"orrery_partition_items{database="",container="",range=""} 520"#), "{text}");
    }
}
