//! How a page was made, for people and for index metrics.
//!
//! ```text
//! in order of /n descending, early stop
//!   /city = one value: 100 candidates
//! read 512 index entries, loaded 10 items (10,240 bytes), 10 passed, 10 rows
//! ```

use orrery_query::Prepared;
use orrery_query::pushdown::{Filter, Place, Scan, Search, Step};

use super::QueryMetrics;
use crate::partition::index::{IndexedPath, PartitionView};
use crate::query::access_path::is_searchable;
use crate::query::access_path::lookup::indexed;

/// What a page did, and which indexes it used or could have used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    way: Way,
    candidates: Option<u64>,
    gave_up: bool,
    counted_entries: u64,
    estimated: Option<Estimated>,
    ordered_by_columns: bool,
    answered: bool,
    conditions: Vec<Condition>,
    summary: String,
    pub indexes: IndexUse,
}

#[derive(Debug, Clone, Default, PartialEq)]
enum Way {
    #[default]
    Candidates,
    Scan,
    /// As `Scan`, from a copy of a few paths.
    Columns,
    Walk(String),
    /// The same, each entry tested by its key.
    WalkTested(String),
    /// The same over columns that were put in that order.
    WalkColumns(String),
    Counted(&'static str),
    Covered(String),
    Cached,
    /// On another node, in its words.
    Told(String),
}

#[derive(Debug, Clone, PartialEq)]
struct Condition {
    text: String,
    indexed: bool,
    search: bool,
}

/// What the ways of a sorted page were thought to cost, in entries read one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::query) struct Estimated {
    /// So many items pass the filter, of so many.
    pub matches: u64,
    pub items: u64,
    pub walk_cost: u64,
    pub collect_cost: u64,
    pub scan: u64,
    /// The walk was thought to be the best.
    pub walks: bool,
}

impl std::fmt::Display for Estimated {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Estimated { matches, items, walk_cost, collect_cost, scan, walks } = self;
        let best = match walks {
            true => "walk",
            false if collect_cost <= scan => "collect",
            false => "read all",
        };
        write!(
            out,
            "about {matches} of {items} pass: walk and test {walk_cost}, collect {collect_cost}, read all {scan}; {best}"
        )
    }
}

/// Indexes by their paths, as policies write them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IndexUse {
    pub used: Vec<String>,
    /// Paths that would have helped and are not indexed.
    pub missing: Vec<String>,
    /// Each path with its order, such as `/year DESC`.
    pub used_composites: Vec<Vec<String>>,
    /// Composite indexes that would serve the filter and the order together.
    pub missing_composites: Vec<Vec<String>>,
}

impl Report {
    /// What another node has said about a page that it made.
    pub(crate) fn told(text: String, indexes: IndexUse) -> Report {
        Report { way: Way::Told(text), indexes, ..Report::default() }
    }

    /// Whether the index knows something about the filter.
    pub(in crate::query) fn is_answered(&self) -> bool {
        self.answered
    }

    /// Entries that were counted and led to no item.
    pub(in crate::query) fn counted_entries(&self) -> u64 {
        self.counted_entries
    }

    pub(in crate::query) fn candidates(&mut self, count: u64) {
        self.candidates = Some(count);
    }

    pub(in crate::query) fn gave_up(&mut self) {
        self.gave_up = true;
    }

    pub(in crate::query) fn scan(&mut self) {
        self.way = Way::Scan;
    }

    pub(in crate::query) fn columns(&mut self) {
        self.way = Way::Columns;
    }

    /// The order of what was found is that of columns.
    pub(in crate::query) fn ordered_by_columns(&mut self) {
        self.ordered_by_columns = true;
    }

    pub(in crate::query) fn walk(&mut self, text: &str) {
        self.way = Way::Walk(text.to_owned());
    }

    pub(in crate::query) fn walk_tested(&mut self, text: &str) {
        self.way = Way::WalkTested(text.to_owned());
    }

    pub(in crate::query) fn walk_columns(&mut self, text: &str) {
        self.way = Way::WalkColumns(text.to_owned());
    }

    pub(in crate::query) fn estimated(&mut self, estimated: Estimated) {
        self.estimated = Some(estimated);
    }

    /// Sorted by what a search index knows about a place.
    pub(in crate::query) fn ranked(&mut self, what: &str, place: &Place) {
        self.way = Way::Walk(format!("{what} of {place}"));
        self.used(place);
    }

    /// The index of a place was of use.
    pub(in crate::query) fn used(&mut self, place: &Place) {
        note(&mut self.indexes.used, place);
    }

    pub(in crate::query) fn counted(&mut self, by: &'static str) {
        self.way = Way::Counted(by);
    }

    pub(in crate::query) fn covered(&mut self, place: &str) {
        self.way = Way::Covered(place.to_owned());
    }

    pub(in crate::query) fn cached(&mut self) {
        self.way = Way::Cached;
    }

    pub(in crate::query) fn finish(
        &mut self,
        prepared: &Prepared,
        filter: &Filter,
        view: &PartitionView,
        metrics: &QueryMetrics,
        explained: bool,
    ) {
        if matches!(self.way, Way::Counted(_) | Way::Covered(_)) {
            self.counted_entries = metrics.index_entries.max(metrics.matched_items);
        }
        filter.for_each_scan(&mut |scan: &Scan| {
            self.answered |= !matches!(indexed(view, &scan.place), IndexedPath::NotIndexed);
        });
        // What nobody asked for is not written.
        if !explained {
            return;
        }
        let mut points: Vec<Place> = Vec::new();
        let mut ranges: Vec<Place> = Vec::new();
        let mut searched_places: Vec<Place> = Vec::new();
        filter.for_each_search(&mut |search: &Search| {
            let known = is_searchable(view, search);
            self.conditions.push(Condition { text: search.to_string(), indexed: known, search: true });
            if known {
                note(&mut self.indexes.used, &search.place);
                searched_places.push(search.place.clone());
            }
        });
        filter.for_each_scan(&mut |scan: &Scan| {
            let known = !matches!(indexed(view, &scan.place), IndexedPath::NotIndexed);
            if searched_places.contains(&scan.place) && scan.check.is_some() {
                return;
            }
            self.conditions.push(Condition { text: scan.to_string(), indexed: known, search: false });
            note(if known { &mut self.indexes.used } else { &mut self.indexes.missing }, &scan.place);
            if scan.place.is_single() {
                let list =
                    if scan.ranges.iter().all(|range| range.is_point()) { &mut points } else { &mut ranges };
                if !list.contains(&scan.place) {
                    list.push(scan.place.clone());
                }
            }
        });
        let order: Vec<(Place, bool)> = prepared
            .order_paths()
            .into_iter()
            .map(|(path, descending)| (Place(path.into_iter().map(Step::Name).collect()), descending))
            .collect();
        for (place, _) in &order {
            let known = !matches!(indexed(view, place), IndexedPath::NotIndexed);
            note(if known { &mut self.indexes.used } else { &mut self.indexes.missing }, place);
        }
        self.composites(points, ranges, order, view);
        self.summary = format!(
            "read {} index entries, loaded {} items ({} bytes), {} passed, {} rows",
            metrics.index_entries,
            metrics.loaded_items,
            metrics.loaded_bytes,
            metrics.matched_items,
            metrics.output_rows
        );
        if metrics.sifted_items > 0 {
            self.summary.push_str(&format!(", {} put in order", metrics.sifted_items));
        }
    }

    /// Equal values first, then what is sorted by, or one range: the composite index that would serve them together.
    fn composites(
        &mut self,
        points: Vec<Place>,
        ranges: Vec<Place>,
        order: Vec<(Place, bool)>,
        view: &PartitionView,
    ) {
        let tail = match order.is_empty() {
            true => ranges.into_iter().take(1).map(|place| (place, false)).collect(),
            false => order,
        };
        let mut wanted: Vec<(String, bool)> = Vec::new();
        for (place, descending) in points.into_iter().map(|place| (place, false)).chain(tail) {
            let path = place.to_string();
            if wanted.iter().all(|(known, _)| *known != path) {
                wanted.push((path, descending));
            }
        }
        if wanted.len() < 2 {
            return;
        }
        let spec = |path: &str, descending| format!("{path} {}", if descending { "DESC" } else { "ASC" });
        let there = view.composites().into_iter().find(|index| {
            index
                .paths
                .iter()
                .map(|part| part.path.to_string())
                .eq(wanted.iter().map(|(path, _)| path.clone()))
        });
        match there {
            Some(index) => self
                .indexes
                .used_composites
                .push(index.paths.iter().map(|part| spec(&part.path.to_string(), part.descending)).collect()),
            None => self
                .indexes
                .missing_composites
                .push(wanted.iter().map(|(path, descending)| spec(path, *descending)).collect()),
        }
    }
}

fn note(list: &mut Vec<String>, place: &Place) {
    let text = format!("{place}/?");
    if !list.contains(&text) {
        list.push(text);
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.way {
            Way::Candidates if self.ordered_by_columns => {
                writeln!(out, "items found by index, put in order by columns")?;
            }
            Way::Candidates => writeln!(out, "items found by index")?,
            Way::Scan => writeln!(out, "all items of the span")?,
            Way::Columns => writeln!(out, "all items of the span, by columns")?,
            Way::Walk(text) => writeln!(out, "in order of {text}, until the page is full")?,
            Way::WalkTested(text) => {
                writeln!(out, "in order of {text}, each entry tested, until the page is full")?;
            }
            Way::WalkColumns(text) => {
                writeln!(out, "in order of {text}, by columns, until the page is full")?
            }
            Way::Counted(by) => writeln!(out, "counted by {by}, no items")?,
            Way::Covered(place) => writeln!(out, "values of the entries of {place}, no items")?,
            Way::Cached => writeln!(out, "rows that an earlier page has made")?,
            Way::Told(text) => return out.write_str(text),
        }
        for condition in &self.conditions {
            let by = match (condition.indexed, condition.search) {
                (true, _) => "",
                (false, false) => " (not indexed)",
                (false, true) => " (no such index)",
            };
            writeln!(out, "  {}{by}", condition.text)?;
        }
        if let Some(count) = self.candidates {
            writeln!(out, "  {count} candidates")?;
        } else if self.gave_up {
            writeln!(out, "  too many candidates")?;
        }
        if let Some(estimated) = &self.estimated {
            writeln!(out, "  {estimated}")?;
        }
        out.write_str(&self.summary)
    }
}
