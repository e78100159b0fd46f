//! The figures by which ways are chosen, in one place.
//!
//! No result depends on them, except the order of rows that are not sorted. Tests set them to extremes to send small
//! data every way.

use crate::partition::ORDERED_SCAN_ITEMS_MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// A span of at most so many items is shown in order of creation.
    pub created_items_max: usize,
    /// Items found by index that are shown in order of creation, however large the partition is.
    pub created_found_max: usize,
    /// A logical partition of so few items is read whole rather than by index.
    pub few_items: usize,
    /// Candidates that are always collected, and the part of a larger partition up to which they are: beyond, reading
    /// all items in a row is faster than finding them one by one.
    pub candidates_min: usize,
    pub candidates_part: u64,
    /// Entries of equal value that are put in order by number for one page.
    pub run_entries_max: usize,
    /// Items without a path that is sorted by of which a list is kept.
    pub absent_items_max: usize,
    /// Rows that are put in order at a time where no index has them in order. More candidates than the second figure
    /// are put in order for more than one page.
    pub window_rows: usize,
    pub window_candidates_min: usize,
    /// What it costs to read an entry, to load an item, and to read one in a row.
    pub entry_cost: u64,
    pub load_cost: u64,
    pub scan_cost: u64,
    /// Partitions of at most so many items are thought to be in memory, where loading costs a third.
    pub remembered_items: u64,
    /// Columns are made of partitions from so many items on, when they are asked for so many times.
    pub column_items_min: u64,
    pub column_asks: u32,
    /// For sorts they have to be asked for so many times more.
    pub column_sort_asks: u32,
    /// Of partitions of more items they are made beside the pages that ask for them.
    pub column_items_at_once: u64,
    /// Graphs of fewer vectors are not walked: comparing all of them costs less.
    pub graph_nodes_min: u64,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            created_items_max: ORDERED_SCAN_ITEMS_MAX,
            created_found_max: 1_000,
            few_items: 48,
            candidates_min: 1_024,
            candidates_part: 8,
            run_entries_max: 4_096,
            absent_items_max: 1_024,
            window_rows: 32_768,
            window_candidates_min: 1_000,
            entry_cost: 1,
            load_cost: 8,
            scan_cost: 2,
            remembered_items: 20_000,
            column_items_min: 1_000,
            column_asks: 2,
            column_sort_asks: 16,
            column_items_at_once: 20_000,
            graph_nodes_min: 4_000,
        }
    }
}
