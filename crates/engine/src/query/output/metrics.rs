//! What a page of a query did: the figures behind query metrics, index metrics and the charge.

use std::time::Duration;

/// Counts are exact; times are taken only when asked for, because taking them costs time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryMetrics {
    /// Index rows that were read.
    pub index_entries: u64,
    /// Items that were loaded and shown, and the bytes of their documents.
    pub loaded_items: u64,
    pub loaded_bytes: u64,
    /// Items whose sort keys were read to put the rows of this page and of later ones in order, but were not shown
    /// for that.
    pub sifted_items: u64,
    /// Items that passed the filter, or would have: those that gave at least one row.
    pub matched_items: u64,
    pub output_rows: u64,
    pub output_bytes: u64,
    pub total: Duration,
    pub planning: Duration,
    pub index_lookup: Duration,
    pub document_load: Duration,
}

impl QueryMetrics {
    /// How much of what was loaded was wanted: 1 where the index, or the query's scope, named exactly the right items.
    pub fn index_hit_ratio(&self) -> f64 {
        match self.loaded_items {
            0 => 1.0,
            loaded => (self.matched_items as f64 / loaded as f64).min(1.0),
        }
    }

    /// What is neither planning, nor the index, nor loading: evaluation and writing rows.
    pub fn evaluation(&self) -> Duration {
        self.total.saturating_sub(self.planning + self.index_lookup + self.document_load)
    }

    pub fn add(&mut self, other: &QueryMetrics) {
        self.index_entries += other.index_entries;
        self.loaded_items += other.loaded_items;
        self.loaded_bytes += other.loaded_bytes;
        self.sifted_items += other.sifted_items;
        self.matched_items += other.matched_items;
        self.output_rows += other.output_rows;
        self.output_bytes += other.output_bytes;
        self.total += other.total;
        self.planning += other.planning;
        self.index_lookup += other.index_lookup;
        self.document_load += other.document_load;
    }
}
