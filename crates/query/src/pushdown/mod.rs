//! What of a query can be pushed down to an index: which entries it can be answered from. It reads none itself.
//!
//! [`Prepared::filter`] turns WHERE (and the conditions of joins) into a [`Filter`]: ranges of values at places in
//! the item, joined by AND and OR. It promises one thing: *every item that passes the query's own filter is among
//! those it describes*. Where it describes exactly those it says so, and then nothing needs to be loaded to count
//! them. What a filter cannot say (two paths compared with each other, scripts, conditions that hold where a path is
//! missing) is `Everything`, never a guess.
//!
//! `c.city = 'x' AND c.n >= 5 AND c.n < 7 AND LENGTH(c.text) > 9` becomes: the entry `'x'` of `/city`, and the
//! entries from 5 to below 7 of `/n`, and those entries of `/text` that a check lets through.
//!
//! Conditions that a spatial or full-text index knows about are a [`Search`], which also says what to do without that
//! index.
//!
//! Entries exist only where a path is defined. Undefined makes comparisons undefined, so most conditions cannot hold
//! there; those that can (`NOT IS_DEFINED(c.x)`, `(c.x ?? 1) = 1`) are tried on undefined once, while planning, and
//! are then left alone.

mod cover;
mod merge;
mod place;
mod predicate;
mod ranking;
mod search;

use std::rc::Rc;

use orrery_index::ValueRange;
use orrery_model::Value;
use orrery_sql::SqlError;

pub use cover::Cover;
pub use place::{Place, Step};
pub use ranking::{Nearest, Ranking, Statistic};
pub use search::{Search, SearchKind};

use crate::compile::ITEM_SLOT;
use crate::eval::Frame;
use crate::meter::Meter;
use crate::node::{Node, SourceKind};
use crate::prepared::Prepared;
use crate::value::Eval;
use place::Places;

/// How many ways into the index one filter may combine. Values of one place are one way, however many they are.
const FILTER_PARTS_MAX: usize = 256;

/// Items that may pass a query's filter.
#[derive(Clone, Debug)]
pub enum Filter {
    /// Any item may.
    Everything,
    /// No item can.
    Nothing,
    Scan(Scan),
    Search(Search),
    /// Items that are in all of these.
    All(Vec<Filter>),
    /// Items that are in any of these.
    Any(Vec<Filter>),
}

/// Entries of one place.
#[derive(Clone, Debug)]
pub struct Scan {
    pub place: Place,
    /// In order, without overlaps.
    pub ranges: Vec<ValueRange>,
    /// What an entry's value must pass besides. Entries that do not tell their value pass.
    pub check: Option<Check>,
    /// Whether exactly the items with such an entry pass the condition, apart from entries that are inexact.
    pub exact: bool,
    /// Whether it looks for strings that begin alike.
    pub prefix: bool,
}

impl Scan {
    /// Whether the entries of all items are read in which the place is defined.
    pub fn is_of_all(&self) -> bool {
        matches!(self.ranges.as_slice(), [range] if *range == ValueRange::defined())
    }
}

/// For people.
impl std::fmt::Display for Scan {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let points = self.ranges.iter().filter(|range| range.is_point()).count();
        match (points, self.ranges.len()) {
            (1, 1) => write!(out, "{}: one value", self.place)?,
            (points, all) if points == all => write!(out, "{}: {points} values", self.place)?,
            (_, 1) => write!(out, "{}: one range", self.place)?,
            (_, all) => write!(out, "{}: {all} ranges", self.place)?,
        }
        if self.check.is_some() { out.write_str(", checked") } else { Ok(()) }
    }
}

/// A condition on the value at one place.
#[derive(Clone, Debug)]
pub struct Check {
    pub(crate) node: Node,
    /// How many of a hundred entries are thought to pass, for choosing between plans.
    percent: u32,
}

impl Check {
    /// Whether it is likely to let so little through that finding items by it is better than reading them all.
    pub fn is_selective(&self) -> bool {
        self.percent <= predicate::SEARCH_PERCENT
    }
}

impl Filter {
    /// Whether the described items are exactly those that pass, apart from inexact entries.
    pub fn is_exact(&self) -> bool {
        match self {
            Filter::Everything => false,
            Filter::Nothing => true,
            Filter::Scan(scan) => scan.exact,
            Filter::Search(search) => search.exact,
            Filter::All(parts) | Filter::Any(parts) => parts.iter().all(Filter::is_exact),
        }
    }

    /// Calls `visit` with every scan, and with those that would be made where there is no index to search in.
    pub fn for_each_scan(&self, visit: &mut dyn FnMut(&Scan)) {
        match self {
            Filter::Everything | Filter::Nothing => {}
            Filter::Scan(scan) => visit(scan),
            Filter::Search(search) => search.otherwise.for_each_scan(visit),
            Filter::All(parts) | Filter::Any(parts) => {
                parts.iter().for_each(|part| part.for_each_scan(visit));
            }
        }
    }

    /// Calls `visit` with every search.
    pub fn for_each_search(&self, visit: &mut dyn FnMut(&Search)) {
        match self {
            Filter::Everything | Filter::Nothing | Filter::Scan(_) => {}
            Filter::Search(search) => visit(search),
            Filter::All(parts) | Filter::Any(parts) => {
                parts.iter().for_each(|part| part.for_each_search(visit));
            }
        }
    }

    /// Whether only items in which a place is defined are described.
    pub fn defines(&self, place: &Place) -> bool {
        match self {
            Filter::Everything => false,
            Filter::Nothing => true,
            Filter::Scan(scan) => scan.place == *place,
            Filter::Search(search) => search.place == *place,
            Filter::All(parts) => parts.iter().any(|part| part.defines(place)),
            Filter::Any(parts) => parts.iter().all(|part| part.defines(place)),
        }
    }

    fn and(parts: Vec<Filter>) -> Filter {
        let mut flat: Vec<Filter> = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Filter::Nothing => return Filter::Nothing,
                Filter::All(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        match merge_ranges(flat) {
            None => Filter::Nothing,
            Some(parts) if parts.is_empty() => Filter::Everything,
            Some(mut parts) if parts.len() == 1 => parts.remove(0),
            Some(parts) => Filter::All(parts),
        }
    }

    fn or(parts: Vec<Filter>) -> Filter {
        let mut flat: Vec<Filter> = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Filter::Nothing => {}
                Filter::Everything => return Filter::Everything,
                Filter::Any(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        let mut merged = merge::any(flat);
        match merged.len() {
            0 => Filter::Nothing,
            1 => merged.remove(0),
            // So many ways into the index cost more than reading the items.
            parts if parts > FILTER_PARTS_MAX => Filter::Everything,
            _ => Filter::Any(merged),
        }
    }
}

/// Puts scans of one place together; `None` when they exclude each other.
fn merge_ranges(parts: Vec<Filter>) -> Option<Vec<Filter>> {
    let mut merged = merge::all(parts)?;
    if merged.len() > FILTER_PARTS_MAX {
        // What is left out is asked of the items.
        merged.truncate(FILTER_PARTS_MAX);
        merged.push(Filter::Everything);
    }
    // Everything adds nothing but the need to look at the items.
    let restricting = merged.iter().any(|part| !matches!(part, Filter::Everything));
    if restricting && merged.iter().any(|part| matches!(part, Filter::Everything)) {
        merged.retain(|part| !matches!(part, Filter::Everything));
        merged.iter_mut().for_each(inexact);
    } else if !restricting {
        merged.truncate(1);
    }
    Some(merged)
}

fn inexact(filter: &mut Filter) {
    match filter {
        Filter::Everything | Filter::Nothing => {}
        Filter::Scan(scan) => scan.exact = false,
        Filter::Search(search) => {
            search.exact = false;
            inexact(&mut search.otherwise);
        }
        Filter::All(parts) | Filter::Any(parts) => parts.iter_mut().for_each(inexact),
    }
}

impl Prepared {
    /// The items that may pass the query's filter.
    pub fn filter(&self) -> &Filter {
        self.found.get_or_init(|| self.find_filter())
    }

    fn find_filter(&self) -> Filter {
        let block = &self.compiled.block;
        let places = Places::of(block);
        let mut parts = Vec::new();
        for node in block.guards.iter().chain(block.sources.iter().flat_map(|source| &source.filters)) {
            parts.push(predicate::Reader { places: &places, prepared: self }.filter(node, true));
        }
        // Sources of their own conditions: `FROM c.a` leaves out items without it. They are not scans worth making, but
        // they keep a filter from being exact.
        let plain = block.sources.len() <= 1
            && block
                .sources
                .iter()
                .all(|source| matches!(&source.kind, SourceKind::Value(Node::Slot(ITEM_SLOT))));
        if parts.is_empty() {
            return Filter::Everything;
        }
        let mut filter = Filter::and(parts);
        if !plain {
            inexact(&mut filter);
        }
        filter
    }

    /// Whether every item is a row: no filter, and no source but the item.
    pub fn takes_every_item(&self) -> bool {
        let block = &self.compiled.block;
        block.guards.is_empty()
            && block.sources.len() == 1
            && block.sources.iter().all(|source| {
                source.filters.is_empty() && matches!(&source.kind, SourceKind::Value(Node::Slot(ITEM_SLOT)))
            })
    }

    /// Whether a value passes a check.
    pub fn passes(&self, check: &Check, value: &Value, meter: &Rc<Meter>) -> Result<bool, SqlError> {
        let mut frame = Frame::new(ITEM_SLOT + 1, &self.context, meter);
        frame.slots[ITEM_SLOT] = Eval::from_constant(value);
        let passes = frame.eval(&check.node)?.is_true();
        frame.release_all();
        Ok(passes)
    }
}
