//! What a page of a query costs, as a pure function of the query and of what the page did.
//!
//! Fitted to recorded pages of the service, all of them small items:
//!
//! ```text
//! 2.25                                             any page
//! + 0.5505                                         a filter that the index answers
//!   + 0.022    each further place of the filter    + 0.0045  each item that passed it
//!   + 0.1045   each list of values (IN)            + 0.0755  each prefix or search
//! + 0.063      each JOIN
//! + 0.185      SELECT VALUE of a path, which must be defined; 0.102 of a computed value
//! + 0.0144     each whole item that is a row, or 0.0111 and 0.0019 for each thing selected
//! + 0.000256   each index entry that is only counted, each item that is put in order for this page or later ones
//! + 0.0111     and 8.4 per MB: each item that was loaded and is no row
//! ```
//!
//! An item that lacks the path of a `SELECT VALUE` is found out by the index, where that answers the filter, and is
//! not loaded. A row that adds up others has no cost of its own.
//!
//! Worked example: `SELECT c.id FROM c WHERE c.id = 'x'` with one row: 2.25 + 0.5505 + 0.0045 + 0.0111 + 0.0019 =
//! 2.82 RU.

use orrery_query::pushdown::Filter;
use orrery_query::{Prepared, Selected};

use super::QueryMetrics;

const PAGE_RU: f64 = 2.25;
const INDEX_RU: f64 = 0.5505;
const PLACE_RU: f64 = 0.022;
const PASSED_RU: f64 = 0.0045;
const LIST_RU: f64 = 0.1045;
const SEARCH_RU: f64 = 0.0755;
const JOIN_RU: f64 = 0.063;
const VALUE_PATH_RU: f64 = 0.185;
const VALUE_COMPUTED_RU: f64 = 0.102;
const ROW_RU: f64 = 0.011_066;
const SELECTED_RU: f64 = 0.001_922;
const WHOLE_RU: f64 = 0.003_29;
const COUNTED_RU: f64 = 0.000_256;
const LOADED_BYTE_RU: f64 = 8.4 / 1_048_576.0;

/// What a page costs for which items were read one after the other, as a script's queries do.
pub(crate) fn scanned(rows: u64, items: u64, bytes: u64) -> f64 {
    let idle = items.saturating_sub(rows) as f64;
    let share = if items == 0 { 0.0 } else { idle / items as f64 };
    PAGE_RU + (ROW_RU + WHOLE_RU) * rows as f64 + ROW_RU * idle + LOADED_BYTE_RU * share * bytes as f64
}

/// What a page costs whose rows were made, and paid for, by an earlier one.
pub fn cached_page_charge() -> f64 {
    PAGE_RU
}

/// `answered`: the index answers the filter. `counted`: entries that were counted instead of loading their items.
pub(in crate::query) fn page(
    prepared: &Prepared,
    filter: &Filter,
    answered: bool,
    counted: u64,
    metrics: &QueryMetrics,
) -> f64 {
    let mut charge = PAGE_RU + COUNTED_RU * (counted + metrics.sifted_items) as f64;
    if answered {
        let (mut places, mut lists, mut searches) = (0u32, 0u32, 0u32);
        filter.for_each_scan(&mut |scan| {
            places += 1;
            lists += u32::from(scan.ranges.len() > 1 && scan.ranges.iter().all(|range| range.is_point()));
            searches += u32::from(scan.check.is_some() || scan.prefix);
        });
        charge += INDEX_RU
            + PLACE_RU * f64::from(places.saturating_sub(1))
            + LIST_RU * f64::from(lists)
            + SEARCH_RU * f64::from(searches);
        if counted == 0 {
            charge += PASSED_RU * metrics.matched_items as f64;
        }
    }
    if !prepared.needs().from {
        return charge;
    }
    charge += JOIN_RU * prepared.join_count() as f64;
    let row = match prepared.selected() {
        Selected::Whole => WHOLE_RU,
        Selected::Parts(parts) => SELECTED_RU * parts as f64,
        Selected::Path => {
            charge += VALUE_PATH_RU;
            SELECTED_RU
        }
        Selected::Computed => {
            charge += VALUE_COMPUTED_RU;
            SELECTED_RU
        }
        Selected::Groups => -ROW_RU,
    };
    charge += (ROW_RU + row) * metrics.output_rows as f64;
    let idle = match prepared.selected() {
        Selected::Path if answered => 0.0,
        _ => metrics.loaded_items.saturating_sub(metrics.output_rows) as f64,
    };
    let share = if metrics.loaded_items == 0 { 0.0 } else { idle / metrics.loaded_items as f64 };
    charge + ROW_RU * idle + LOADED_BYTE_RU * share * metrics.loaded_bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_query::QueryEnv;

    /// `tests/golden/charges/queries.txt`: what a page did, and what it costs.
    #[test]
    fn pages_cost_what_the_table_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/charges/queries.txt");
        let table = std::fs::read_to_string(path).unwrap();
        let mut lines = 0;
        for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (figures, text) = line.split_once(" > ").expect("a query after >");
            let (charge, did) = figures.split_once(" RU ").expect("a charge");
            let expected: f64 = charge.trim().parse().unwrap();
            let figure = |name: &str| -> u64 {
                let part = did.split(',').map(str::trim).find_map(|part| part.strip_suffix(name));
                part.unwrap_or_else(|| panic!("{name} is missing in {line}")).trim().parse().unwrap()
            };
            let sifted = did.contains("sifted").then(|| figure("sifted"));
            let query = orrery_sql::parse_query(text).unwrap();
            let prepared = Prepared::new(&query, &[], &QueryEnv::default()).unwrap();
            let metrics = QueryMetrics {
                matched_items: figure("passed"),
                loaded_items: figure("loaded"),
                loaded_bytes: figure("bytes"),
                output_rows: figure("rows"),
                sifted_items: sifted.unwrap_or(0),
                ..QueryMetrics::default()
            };
            let answered = !did.trim_start().starts_with("no index");
            let charge_ru = page(&prepared, prepared.filter(), answered, figure("counted"), &metrics);
            assert!((charge_ru - expected).abs() < 0.002, "{charge_ru} instead of {line}");
            // The same page costs the same again.
            assert_eq!(
                charge_ru.to_bits(),
                page(&prepared, prepared.filter(), answered, figure("counted"), &metrics).to_bits()
            );
            lines += 1;
        }
        assert!(lines >= 15);
    }
}
