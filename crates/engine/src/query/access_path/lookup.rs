//! Finding items by index: a filter bound to the paths of a partition, and the items it leads to.
//!
//! A conjunction is worked off in turns: each of its parts is read a little further, and the first that ends names
//! all candidates. So `city = 'x' AND n > 5` costs twice the smaller of the two and needs no statistics. Its
//! candidates are then checked on the items, unless the other parts end soon after and can be intersected. Parts that
//! lead to more than a scan would cost are given up.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use orrery_index::Cell;
use orrery_query::fulltext::Term;
use orrery_query::pushdown::{Filter, Place, Scan, Step};
use orrery_query::{Meter, Prepared};
use orrery_storage::Direction;

use super::ItemReader;
use super::allowance::tick;
use super::search::searched;
use super::terms::TermHits;
use crate::definition::PathStep;
use crate::partition::Span;
use crate::partition::index::{Entries, IndexedPath, PartitionView, PathNumber, SpatialPath, TextPath};
use crate::query::page::{Failed, Ran};
use crate::query::{Costs, PartitionQuery};

/// Entries that each part is read further in the first turn; twice as many in each later one. A part with one entry
/// costs the others no more than that.
const TURN_ENTRIES: usize = 8;
/// Entries up to which each part is read before anything is judged.
const LOOK_ENTRIES: usize = 64;
/// Entries of a turn at most: about as long as a query that nobody wants any more may go on.
const TURN_ENTRIES_MAX: usize = 65_536;
/// Most candidates that are collected, whatever the size of the partition.
const CANDIDATES_MAX: usize = 100_000;
/// What a candidate takes, with its reference.
const CANDIDATE_BYTES: usize = 96;
/// How much further the other parts of a conjunction are read when one has ended, as a multiple of its candidates:
/// loading an item costs as much as reading this many entries.
const INTERSECT_FACTOR: usize = 8;
/// How many entries are read for each candidate that is worth collecting in a logical partition.
const READ_FACTOR: u64 = 4;

/// Entries by which the number of those in a range is judged, and ranges of one condition that are.
const JUDGED_ENTRIES: usize = 32;
const JUDGED_RANGES_MAX: usize = 8;

/// What the index says about a place.
pub(in crate::query) fn indexed(view: &PartitionView, place: &Place) -> IndexedPath {
    view.path(&steps_of(place))
}

pub(super) fn steps_of(place: &Place) -> Vec<PathStep<'_>> {
    let steps = place.0.iter().map(|step| match step {
        Step::Name(name) => PathStep::Name(name),
        Step::Element => PathStep::Element,
    });
    steps.collect()
}

/// A filter whose places are known paths of the partition.
pub(super) enum Lookup<'f> {
    Nothing,
    Scan { path: PathNumber, scan: &'f Scan },
    Cells { path: SpatialPath, ranges: Vec<(Cell, Cell)> },
    Term { path: TextPath, term: &'f Term },
    All(Vec<Lookup<'f>>),
    Any(Vec<Lookup<'f>>),
}

/// A lookup, and whether it describes the filter's items exactly.
pub(super) struct Bound<'f> {
    pub lookup: Lookup<'f>,
    pub exact: bool,
}

/// Binds a filter; `None` where the index does not help. A check that lets much through helps only to count.
pub(super) fn bind<'f>(
    filter: &'f Filter,
    view: &PartitionView,
    span: &Span,
    counting: bool,
) -> Option<Bound<'f>> {
    match filter {
        Filter::Everything => None,
        Filter::Nothing => Some(Bound { lookup: Lookup::Nothing, exact: true }),
        Filter::Scan(scan) => {
            // Inside a logical partition only entries of one value lie together.
            if matches!(span, Span::Key { .. }) && !scan.ranges.iter().all(|range| range.is_point()) {
                return None;
            }
            if !counting && scan.check.as_ref().is_some_and(|check| !check.is_selective()) {
                return None;
            }
            match indexed(view, &scan.place) {
                IndexedPath::Entries(path) => {
                    Some(Bound { lookup: Lookup::Scan { path, scan }, exact: scan.exact })
                }
                IndexedPath::NoItem => Some(Bound { lookup: Lookup::Nothing, exact: scan.exact }),
                IndexedPath::NotIndexed => None,
            }
        }
        Filter::Search(search) => match searched(view, search) {
            Some(lookup) => Some(Bound { lookup, exact: search.exact }),
            None => bind(&search.otherwise, view, span, counting),
        },
        Filter::All(parts) => {
            let mut exact = true;
            let mut lookups = Vec::with_capacity(parts.len());
            for part in parts {
                match bind(part, view, span, counting) {
                    Some(bound) => {
                        exact &= bound.exact;
                        lookups.push(bound.lookup);
                    }
                    None => exact = false,
                }
            }
            if lookups.iter().any(|lookup| matches!(lookup, Lookup::Nothing)) {
                return Some(Bound { lookup: Lookup::Nothing, exact: true });
            }
            match lookups.len() {
                0 => None,
                1 => lookups.pop().map(|lookup| Bound { lookup, exact }),
                _ => Some(Bound { lookup: Lookup::All(lookups), exact }),
            }
        }
        Filter::Any(parts) => {
            let mut exact = true;
            let mut lookups = Vec::with_capacity(parts.len());
            for part in parts {
                let bound = bind(part, view, span, counting)?;
                exact &= bound.exact;
                if !matches!(bound.lookup, Lookup::Nothing) {
                    lookups.push(bound.lookup);
                }
            }
            let lookup = if lookups.is_empty() { Lookup::Nothing } else { Lookup::Any(lookups) };
            Some(Bound { lookup, exact })
        }
    }
}

/// A candidate: the reference of an item, and whether the item itself has to be asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::query) struct Candidate {
    pub reference: Bytes,
    pub uncertain: bool,
}

pub(super) enum Found {
    /// In the order of their references.
    Candidates(Vec<Candidate>),
    TooMany,
}

/// How many candidates are worth collecting.
pub(in crate::query) fn candidates_max(costs: &Costs, items: u64) -> usize {
    let part = usize::try_from(items / costs.candidates_part.max(1)).unwrap_or(CANDIDATES_MAX);
    part.clamp(costs.candidates_min, CANDIDATES_MAX)
}

impl ItemReader<'_> {
    /// About how many items pass the filter, judged from a few entries of each of its parts as if these had nothing
    /// to do with each other. `None` where nobody knows.
    pub fn estimated_matches(&mut self) -> Ran<Option<u64>> {
        let Some(bound) = bind(self.filter, self.view, self.query.span, false) else {
            return Ok(None);
        };
        let judged = judge(&bound.lookup, self.view, self.query.span)?;
        Ok(judged.map(|part| (part * self.view.item_count() as f64) as u64))
    }

    /// The items that the index leads to; `None` where reading the whole span is better.
    pub fn candidates(&mut self) -> Ran<Option<Vec<Candidate>>> {
        if let Some(named) = self.named() {
            return Ok(Some(named));
        }
        if matches!(self.query.span, Span::Key { .. }) && self.has_at_most(self.query.costs.few_items)? {
            return Ok(None);
        }
        self.candidates_up_to(candidates_max(&self.query.costs, self.view.item_count()))
    }

    /// The same however many there are, up to so many.
    pub fn candidates_up_to(&mut self, most: usize) -> Ran<Option<Vec<Candidate>>> {
        let Some(bound) = bind(self.filter, self.view, self.query.span, false) else {
            return Ok(None);
        };
        let started = self.query.timed.then(Instant::now);
        let found = collect(
            &bound.lookup,
            Reading::of(self.query, self.view, &self.allowance.meter),
            most,
            &mut self.metrics.index_entries,
            &mut tick(self.query, self.allowance.steps_left()),
        )?;
        self.metrics.index_lookup += started.map_or(Duration::ZERO, |started| started.elapsed());
        Ok(match found {
            Found::Candidates(candidates) => Some(self.known(candidates, bound.exact)),
            Found::TooMany => {
                self.report.gave_up();
                None
            }
        })
    }

    /// The items that the index leads to, where a short look at it tells all of them, and they are no more than `most`.
    /// `None` otherwise, and where it would take no look to judge how many there are.
    ///
    /// Judging reads the same entries, so whoever has few candidates has them for the price of the figure.
    pub fn few_candidates(&mut self, most: u64) -> Ran<Option<Vec<Candidate>>> {
        let Some(bound) = bind(self.filter, self.view, self.query.span, false) else {
            return Ok(None);
        };
        if is_judged(&bound.lookup, self.view, self.query.span) {
            return Ok(None);
        }
        let started = self.query.timed.then(Instant::now);
        let meter = Rc::clone(&self.allowance.meter);
        let mut cursor = Cursor::new(&bound.lookup, Reading::of(self.query, self.view, &meter));
        let mut turn = TURN_ENTRIES;
        let mut done = cursor.advance(turn)?;
        while !done && turn < LOOK_ENTRIES {
            done = cursor.advance(turn)?;
            turn *= 2;
        }
        let found = match done && cursor.found() as u64 <= most {
            true => Some(cursor.finish()?),
            false => None,
        };
        self.metrics.index_lookup += started.map_or(Duration::ZERO, |started| started.elapsed());
        let Some(candidates) = found else { return Ok(None) };
        self.metrics.index_entries += cursor.read();
        Ok(Some(self.known(candidates, bound.exact)))
    }

    /// Candidates that are all there are. `exact`: the index knows the whole filter, and not only a part of it.
    fn known(&mut self, mut candidates: Vec<Candidate>, exact: bool) -> Vec<Candidate> {
        if !exact {
            candidates.iter_mut().for_each(|candidate| candidate.uncertain = true);
        }
        self.report.candidates(candidates.len() as u64);
        candidates
    }
}

/// Whether it is known without a look how much a lookup leads to, or nobody can know.
fn is_judged(lookup: &Lookup<'_>, view: &PartitionView, span: &Span) -> bool {
    match lookup {
        Lookup::Scan { path, scan } if scan.check.is_none() && scan.ranges.len() <= JUDGED_RANGES_MAX => {
            let all = matches!(span, Span::All);
            all && scan.ranges.iter().all(|range| view.keeps_estimate(*path, range))
        }
        Lookup::All(parts) | Lookup::Any(parts) => parts.iter().all(|part| is_judged(part, view, span)),
        _ => true,
    }
}

/// The part of a partition's items that a lookup leads to, at most; `None` where one of its conditions is of another
/// kind than ranges of values. Of a conjunction those are passed over.
fn judge(lookup: &Lookup<'_>, view: &PartitionView, span: &Span) -> Ran<Option<f64>> {
    let items = view.item_count().max(1) as f64;
    Ok(match lookup {
        Lookup::Nothing => Some(0.0),
        Lookup::Scan { path, scan } if scan.check.is_none() && scan.ranges.len() <= JUDGED_RANGES_MAX => {
            let mut rows = 0;
            for range in &scan.ranges {
                rows += match span {
                    Span::All => view.kept_estimate(*path, range)?.rows,
                    span => view.estimate(*path, range, span, JUDGED_ENTRIES)?.rows,
                };
            }
            Some((rows as f64 / items).min(1.0))
        }
        Lookup::All(parts) => {
            let mut all = None;
            for part in parts {
                if let Some(part) = judge(part, view, span)? {
                    all = Some(all.unwrap_or(1.0) * part);
                }
            }
            all
        }
        Lookup::Any(parts) => {
            let mut any = 0.0;
            for part in parts {
                let Some(part) = judge(part, view, span)? else { return Ok(None) };
                any += part;
            }
            Some(f64::min(any, 1.0))
        }
        _ => None,
    })
}

/// Collects the items that a lookup leads to, and adds up the entries that were read. `tick` is told from time to
/// time how many, and may end it.
pub(super) fn collect(
    lookup: &Lookup<'_>,
    reading: Reading<'_>,
    candidates_max: usize,
    entries_read: &mut u64,
    tick: &mut dyn FnMut(u64) -> Ran<()>,
) -> Ran<Found> {
    let mut cursor = Cursor::new(lookup, reading);
    let mut turn = TURN_ENTRIES;
    // In a logical partition rows of others are read on the way; at some point its own items are fewer.
    let read_max = match reading.span {
        Span::Key { .. } => candidates_max as u64 * READ_FACTOR,
        _ => u64::MAX,
    };
    let mut charged = 0;
    let mut done = cursor.advance(turn)?;
    while !done && cursor.found() <= candidates_max && cursor.read() <= read_max {
        tick(cursor.read())?;
        let found = cursor.found();
        reading.meter.take(found.saturating_sub(charged) * CANDIDATE_BYTES)?;
        charged = charged.max(found);
        turn = (turn * 2).min(TURN_ENTRIES_MAX);
        done = cursor.advance(turn)?;
    }
    let candidates = if done { Some(cursor.finish()?) } else { None };
    *entries_read += cursor.read();
    Ok(match candidates {
        Some(candidates) if candidates.len() <= candidates_max => Found::Candidates(candidates),
        _ => Found::TooMany,
    })
}

/// What entries are read for.
#[derive(Clone, Copy)]
pub(super) struct Reading<'v> {
    pub view: &'v PartitionView,
    pub span: &'v Span,
    pub prepared: &'v Prepared,
    pub meter: &'v Rc<Meter>,
}

impl<'v> Reading<'v> {
    fn of(query: &PartitionQuery<'v>, view: &'v PartitionView, meter: &'v Rc<Meter>) -> Reading<'v> {
        Reading { view, span: query.span, prepared: query.prepared, meter }
    }
}

enum Cursor<'v> {
    Scan(Box<ScanCursor<'v>>),
    Cells(Box<CellCursor<'v>>),
    Term(Box<TermCursor<'v>>),
    All(Vec<Cursor<'v>>),
    /// Parts, and which of them is being read.
    Any(Vec<Cursor<'v>>, usize),
    Nothing,
}

impl<'v> Cursor<'v> {
    fn new(lookup: &'v Lookup<'v>, reading: Reading<'v>) -> Cursor<'v> {
        let many =
            |lookups: &'v [Lookup<'v>]| lookups.iter().map(|part| Cursor::new(part, reading)).collect();
        match lookup {
            Lookup::Nothing => Cursor::Nothing,
            Lookup::Scan { path, scan } => Cursor::Scan(Box::new(ScanCursor::new(*path, scan, reading))),
            Lookup::Cells { path, ranges } => Cursor::Cells(Box::new(CellCursor::new(path, ranges, reading))),
            Lookup::Term { path, term } => Cursor::Term(Box::new(TermCursor::new(path, term, reading))),
            Lookup::All(parts) => Cursor::All(many(parts)),
            Lookup::Any(parts) => Cursor::Any(many(parts), 0),
        }
    }

    /// Reads up to so many entries further; true when all candidates are known.
    fn advance(&mut self, entries: usize) -> Ran<bool> {
        match self {
            Cursor::Nothing => Ok(true),
            Cursor::Scan(scan) => scan.advance(entries),
            Cursor::Cells(cells) => cells.advance(entries),
            Cursor::Term(term) => term.advance(entries),
            Cursor::All(parts) => {
                let mut done = false;
                for part in parts {
                    done |= part.advance(entries)?;
                    if done {
                        break;
                    }
                }
                Ok(done)
            }
            Cursor::Any(parts, at) => {
                while let Some(part) = parts.get_mut(*at) {
                    if !part.advance(entries)? {
                        return Ok(false);
                    }
                    *at += 1;
                }
                Ok(true)
            }
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Cursor::Nothing => true,
            Cursor::Scan(scan) => scan.done,
            Cursor::Cells(cells) => cells.is_done(),
            Cursor::Term(term) => term.done,
            Cursor::All(parts) => parts.iter().any(Cursor::is_done),
            Cursor::Any(parts, at) => *at >= parts.len(),
        }
    }

    /// Candidates that are known so far to be no more than those of the part that ends first.
    fn found(&self) -> usize {
        match self {
            Cursor::Nothing => 0,
            Cursor::Scan(scan) => scan.found.len(),
            Cursor::Cells(cells) => cells.found.len(),
            Cursor::Term(term) => term.found.len(),
            Cursor::All(parts) => parts.iter().map(Cursor::found).min().unwrap_or(0),
            Cursor::Any(parts, _) => parts.iter().map(Cursor::found).sum(),
        }
    }

    fn read(&self) -> u64 {
        match self {
            Cursor::Nothing => 0,
            Cursor::Scan(scan) => scan.read,
            Cursor::Cells(cells) => cells.read,
            Cursor::Term(term) => term.read(),
            Cursor::All(parts) | Cursor::Any(parts, _) => parts.iter().map(Cursor::read).sum(),
        }
    }

    /// The candidates, sorted and each once. Only when done.
    fn finish(&mut self) -> Ran<Vec<Candidate>> {
        match self {
            Cursor::Nothing => Ok(Vec::new()),
            Cursor::Scan(scan) => Ok(sorted(std::mem::take(&mut scan.found))),
            Cursor::Cells(cells) => Ok(sorted(std::mem::take(&mut cells.found))),
            Cursor::Term(term) => Ok(std::mem::take(&mut term.found)),
            Cursor::Any(parts, _) => {
                let mut all = Vec::new();
                for part in parts {
                    all.append(&mut part.finish()?);
                }
                Ok(sorted(all))
            }
            Cursor::All(parts) => {
                let Some(first) = parts.iter().position(Cursor::is_done) else { return Ok(Vec::new()) };
                let mut candidates = parts[first].finish()?;
                let mut unknown = false;
                for (at, part) in parts.iter_mut().enumerate() {
                    if at == first || candidates.is_empty() {
                        continue;
                    }
                    let further = candidates.len() * INTERSECT_FACTOR;
                    if part.is_done() || part.advance(further)? {
                        candidates = intersected(candidates, &part.finish()?);
                    } else {
                        unknown = true;
                    }
                }
                if unknown {
                    candidates.iter_mut().for_each(|candidate| candidate.uncertain = true);
                }
                Ok(candidates)
            }
        }
    }
}

/// An item found twice is certain if it was certain once.
fn sorted(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.sort_unstable();
    candidates.dedup_by(|later, first| later.reference == first.reference);
    candidates
}

fn intersected(left: Vec<Candidate>, right: &[Candidate]) -> Vec<Candidate> {
    let mut right = right.iter().peekable();
    let mut both = Vec::with_capacity(left.len());
    for mut candidate in left {
        while right.next_if(|other| other.reference < candidate.reference).is_some() {}
        if let Some(other) = right.peek()
            && other.reference == candidate.reference
        {
            candidate.uncertain |= other.uncertain;
            both.push(candidate);
        }
    }
    both
}

struct ScanCursor<'v> {
    path: PathNumber,
    scan: &'v Scan,
    reading: Reading<'v>,
    range: usize,
    entries: Option<Entries<'v>>,
    found: Vec<Candidate>,
    read: u64,
    done: bool,
}

impl<'v> ScanCursor<'v> {
    fn new(path: PathNumber, scan: &'v Scan, reading: Reading<'v>) -> ScanCursor<'v> {
        ScanCursor { path, scan, reading, range: 0, entries: None, found: Vec::new(), read: 0, done: false }
    }

    fn advance(&mut self, entries: usize) -> Ran<bool> {
        let until = self.read + entries as u64;
        let Reading { view, span, prepared, meter } = self.reading;
        while !self.done && self.read < until {
            let Some(range) = self.scan.ranges.get(self.range) else {
                self.done = true;
                break;
            };
            let entries = self
                .entries
                .get_or_insert_with(|| view.entries(self.path, range, span, Direction::Forward, None));
            let (found, check) = (&mut self.found, &self.scan.check);
            let mut failed = None;
            let before = entries.rows_read();
            let ended = entries.visit(until - self.read, &mut |entry| {
                let uncertain = match check {
                    None => Ok(Some(!entry.is_exact())),
                    Some(check) => match entry.decode() {
                        None => Ok(Some(true)),
                        Some(value) => {
                            prepared.passes(check, &value, meter).map(|passes| passes.then_some(false))
                        }
                    },
                };
                match uncertain {
                    Ok(Some(uncertain)) => {
                        let reference = Bytes::copy_from_slice(entry.reference());
                        found.push(Candidate { reference, uncertain });
                    }
                    Ok(None) => {}
                    Err(error) => {
                        failed = Some(error);
                        return ControlFlow::Break(());
                    }
                }
                ControlFlow::Continue(())
            })?;
            if let Some(error) = failed {
                return Err(error.into());
            }
            self.read += entries.rows_read() - before;
            if ended {
                self.entries = None;
                self.range += 1;
            }
        }
        Ok(self.done)
    }
}

/// Shapes in ranges of cells. Only the items tell how they lie.
struct CellCursor<'v> {
    path: &'v SpatialPath,
    ranges: std::slice::Iter<'v, (Cell, Cell)>,
    reading: Reading<'v>,
    entries: Option<Entries<'v>>,
    found: Vec<Candidate>,
    read: u64,
}

impl<'v> CellCursor<'v> {
    fn new(path: &'v SpatialPath, ranges: &'v [(Cell, Cell)], reading: Reading<'v>) -> CellCursor<'v> {
        CellCursor { path, ranges: ranges.iter(), reading, entries: None, found: Vec::new(), read: 0 }
    }

    fn is_done(&self) -> bool {
        self.entries.is_none() && self.ranges.len() == 0
    }

    fn advance(&mut self, entries: usize) -> Ran<bool> {
        let until = self.read + entries as u64;
        while self.read < until {
            let Some(entries) = &mut self.entries else {
                let Some(range) = self.ranges.next() else { return Ok(true) };
                self.entries = Some(self.reading.view.cell_entries(self.path, *range, self.reading.span));
                continue;
            };
            let before = entries.rows_read();
            let entry = entries.next_entry()?;
            self.read += entries.rows_read() - before;
            match entry {
                Some(entry) => {
                    self.found.push(Candidate { reference: entry.reference_bytes(), uncertain: true });
                }
                None => self.entries = None,
            }
        }
        Ok(self.is_done())
    }
}

/// Texts with a term. The index knows all about them, unless the term has too many forms: then every text is asked.
struct TermCursor<'v> {
    path: &'v TextPath,
    term: &'v Term,
    reading: Reading<'v>,
    texts: Texts<'v>,
    found: Vec<Candidate>,
    done: bool,
}

enum Texts<'v> {
    Unopened,
    Hits(TermHits<'v>),
    All(Box<Entries<'v>>),
}

impl<'v> TermCursor<'v> {
    fn new(path: &'v TextPath, term: &'v Term, reading: Reading<'v>) -> TermCursor<'v> {
        TermCursor { path, term, reading, texts: Texts::Unopened, found: Vec::new(), done: false }
    }

    fn read(&self) -> u64 {
        match &self.texts {
            Texts::Unopened => 0,
            Texts::Hits(hits) => hits.read(),
            Texts::All(entries) => entries.rows_read(),
        }
    }

    fn advance(&mut self, entries: usize) -> Ran<bool> {
        let Reading { view, span, .. } = self.reading;
        if matches!(self.texts, Texts::Unopened) {
            self.texts = match TermHits::new(view, self.path, self.term, span)? {
                Some(hits) => Texts::Hits(hits),
                None => Texts::All(Box::new(view.length_entries(self.path, span))),
            };
        }
        let until = self.read() + entries as u64;
        while !self.done && self.read() < until {
            let next = match &mut self.texts {
                Texts::Unopened => None,
                Texts::Hits(hits) => hits.next_hit()?.map(|hit| (hit.reference, false)),
                Texts::All(entries) => entries.next_entry()?.map(|entry| (entry.reference_bytes(), true)),
            };
            match next {
                Some((reference, uncertain)) => self.found.push(Candidate { reference, uncertain }),
                None => self.done = true,
            }
        }
        Ok(self.done)
    }
}

/// How many items pass, where entries alone tell; items that must be asked are given to `ask`, which is called
/// without an item after each entry as well, so that it can end the count.
pub(super) fn count(
    path: PathNumber,
    scan: &Scan,
    reading: Reading<'_>,
    entries_read: &mut u64,
    ask: &mut dyn FnMut(Option<&[u8]>) -> Ran<bool>,
) -> Ran<u64> {
    let Reading { view, span, prepared, meter } = reading;
    let mut count = 0;
    for range in &scan.ranges {
        let mut entries = view.entries(path, range, span, Direction::Forward, None);
        let mut failed = None;
        entries.visit(u64::MAX, &mut |entry| {
            let passes = match &scan.check {
                None if entry.is_exact() => Ok(true),
                None => ask(Some(entry.reference())),
                Some(check) => match entry.decode() {
                    Some(value) => prepared.passes(check, &value, meter).map_err(Failed::from),
                    None => ask(Some(entry.reference())),
                },
            };
            match passes.and_then(|passes| ask(None).map(|_| passes)) {
                Ok(passes) => {
                    count += u64::from(passes);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        *entries_read += entries.rows_read();
    }
    Ok(count)
}
