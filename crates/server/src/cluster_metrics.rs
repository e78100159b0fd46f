//! Figures of a store over a log, in the text format of Prometheus.

use std::fmt::Write as _;

use orrery_cluster::ClusterStats;

pub fn render(text: &mut String, stats: &ClusterStats) {
    let ClusterStats { log, checkpoints, checkpoint_bytes, restores, replayed_entries } = *stats;
    let mut one = |name: &str, kind: &str, help: &str, value: u64| {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
    };
    let name = "orrery_log_connected";
    one(name, "gauge", "1 while the log of the store answers.", log.connected.into());
    one("orrery_log_appends_total", "counter", "Groups of commits appended to the log.", log.appends);
    one("orrery_log_append_bytes_total", "counter", "Bytes appended to the log.", log.append_bytes);
    one("orrery_log_connections_total", "counter", "Connections made to the log.", log.connections);
    let name = "orrery_log_unknown_outcomes_total";
    one(name, "counter", "Appends whose answer was lost.", log.unknown_outcomes);
    one("orrery_log_checkpoints_total", "counter", "Checkpoints written.", checkpoints);
    one("orrery_log_checkpoint_bytes_total", "counter", "Bytes of checkpoints written.", checkpoint_bytes);
    let name = "orrery_copy_restores_total";
    one(name, "counter", "Spaces whose copy was filled from a checkpoint.", restores);
    let name = "orrery_copy_replayed_entries_total";
    one(name, "counter", "Entries of the log that copies had missed.", replayed_entries);
}
