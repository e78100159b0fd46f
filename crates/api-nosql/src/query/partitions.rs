//! The partitions that a query runs on: which they are, and asking several of them at once.
//!
//! Headers may name a range, a span or a key; otherwise the filter says which part of the hash space can hold rows, and
//! partitions outside of it are left alone. Each partition is asked for its part only. Requests to several partitions
//! run on threads of their own, as many as the query wants and the process has left to give; with none left they run
//! one after the other, which changes the time it takes and nothing else.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use http::StatusCode;
use orrery_api::Lengthy;
use orrery_budget::Budget;
use orrery_engine::{Container, Position, QueryPosition, RequestClass, ResultCache, ResultCachePlace, Scope};
use orrery_model::Epk;
use orrery_query::Rows;
use orrery_query::merge::{Ask, Figures, HeldRows, MergePosition, SharePage, Shares, SortedPosition};
use orrery_query::plan::QueryRange;

use super::position::{Part, Start};
use super::query_metrics::Insight;
use super::share::{Answered, ShareQuery, no_rows};
use crate::errors::{ApiError, Plane, Result};
use crate::request_class;
use crate::service::{Context, Target};

/// Threads that all queries together may use beyond those that answer requests.
const THREADS_MAX: usize = 64;
static THREADS_IN_USE: AtomicUsize = AtomicUsize::new(0);

/// One partition's part of a query.
#[derive(Clone, Debug)]
pub struct Share {
    pub scope: Scope,
    /// The partition and its part of the hash space, by which continuations know it.
    pub range: u32,
    pub min: Epk,
    pub max: Epk,
}

/// The shares of a request whose headers name its scope.
pub fn named(container: &Container, scope: &Scope) -> Result<Vec<Share>> {
    let refused = |error| ApiError::from_engine(error, Plane::Items);
    let parts = container.parts_of(scope).map_err(refused)?;
    let span = match scope {
        Scope::Key(key) if key.0.len() < container.definition().partition_key.paths.len() => {
            Some(container.span(key).map_err(refused)?)
        }
        Scope::Epk { min, max, .. } => Some((min.clone(), max.clone())),
        _ => None,
    };
    let share = |(range, min, max)| {
        let scope = match &span {
            Some((min, max)) => Scope::Epk { min: min.clone(), max: max.clone(), range: Some(range) },
            None => scope.clone(),
        };
        Share { scope, range, min, max }
    };
    Ok(parts.into_iter().map(share).collect())
}

/// The shares of a query whose filter leaves it these ranges. There is always one: also a query that reads nothing
/// answers, and it does so anywhere.
pub fn filtered(container: &Container, ranges: &[QueryRange]) -> Vec<Share> {
    let all = container.ranges();
    let mut shares: Vec<Share> = Vec::new();
    for partition in &all {
        let mut hull: Option<(Epk, Epk)> = None;
        for range in ranges {
            let (min, max) = half_open(range);
            let (min, max) = (min.max(partition.min.clone()), max.min(partition.max.clone()));
            if min >= max {
                continue;
            }
            hull = Some(match hull {
                None => (min, max),
                Some((low, high)) => (low.min(min), high.max(max)),
            });
        }
        let Some((min, max)) = hull else { continue };
        let scope = if min == partition.min && max == partition.max {
            Scope::Range(partition.id)
        } else {
            Scope::Epk { min, max, range: Some(partition.id) }
        };
        let (min, max) = (partition.min.clone(), partition.max.clone());
        shares.push(Share { scope, range: partition.id, min, max });
    }
    if let (true, Some(first)) = (shares.is_empty(), all.first()) {
        let (min, max) = (first.min.clone(), first.max.clone());
        shares.push(Share { scope: Scope::Range(first.id), range: first.id, min, max });
    }
    shares
}

/// A range as `[min, max)`. Keys that hold more bytes after these are longer, so the next key is this and a zero.
fn half_open(range: &QueryRange) -> (Epk, Epk) {
    let after = |key: &Epk| {
        let mut key = key.clone();
        key.0.push(0);
        key
    };
    let min = if range.min_inclusive { range.min.clone() } else { after(&range.min) };
    let max = if range.max_inclusive { after(&range.max) } else { range.max.clone() };
    (min, max)
}

/// The shares of one request, and what using them has cost so far.
pub struct Partitions<'a> {
    pub target: &'a Target,
    pub session: &'a [(u32, u64)],
    pub shares: Vec<Share>,
    /// Where shares begin that took over a part which had been read partly.
    inherited: Vec<Option<Vec<u8>>>,
    /// Shares to ask at once.
    pub degree: usize,
    /// Whether to ask ahead where later shares may not be needed.
    pub read_ahead: bool,
    /// How the request is weighed against the budgets of its partitions.
    pub class: RequestClass,
    /// Whether to take times.
    pub timed: bool,
    /// Where rows of later pages are kept.
    pub held: Option<&'a ResultCache>,
    /// Under which name those of a merged answer are.
    pub held_place: Option<ResultCachePlace>,
    /// How long one page may take.
    pub page_time: Duration,
    budget: Budget,
    /// Whether to tell how pages were made.
    pub explained: bool,
    /// How to run what takes long, unless the whole request is run that way.
    pub lengthy: Option<Lengthy>,
    /// Whether the first page gives up instead, for the whole request to be run that way.
    pub gives_up: bool,
    gave_up: AtomicBool,
    /// The partitions that have let the request in; each is asked once, however many pages it gives.
    admitted: Vec<u32>,
    at: Option<Position>,
    figures: Figures,
    insight: Insight,
}

impl<'a> Partitions<'a> {
    pub fn new(
        context: &Context<'a>,
        target: &'a Target,
        session: &'a [(u32, u64)],
        shares: Vec<Share>,
    ) -> Partitions<'a> {
        let figures = Figures::default();
        let inherited = Vec::new();
        Partitions {
            target,
            session,
            shares,
            inherited,
            admitted: Vec::new(),
            degree: 1,
            read_ahead: false,
            class: RequestClass::default(),
            timed: false,
            held: None,
            held_place: None,
            page_time: context.service.config.query_page_time,
            budget: (*context.budget).clone(),
            explained: false,
            lengthy: None,
            gives_up: false,
            gave_up: AtomicBool::new(false),
            at: None,
            figures,
            insight: Insight::default(),
        }
    }

    /// Where the shares begin that a continuation speaks of. `None` when it cannot be told.
    ///
    /// Partitions may have been split or merged since. A part that several shares have taken over goes on in each of them
    /// at the same position: positions name items, which keep their keys and numbers. A share that spans more than a
    /// part is cut, so that what was read and what was not are apart.
    ///
    /// `skips` says that the query has an OFFSET: how much of it the rows before have used up is known to the partition that
    /// was, and to nobody else. `sorts` says that the shares are merged by their sort keys.
    pub fn go_on(&mut self, start: Start, skips: bool, sorts: bool) -> Option<MergePosition> {
        let (parts, passed) = match start {
            Start::Whole { delivered, held } => return Some(MergePosition::Whole { delivered, held }),
            Start::Sorted { parts, min, max, at } => {
                self.inherit(&parts, &[&min, &max]);
                // The share of the last row, or those that it has become; in what it has become a part of it was cut out.
                let share = self.shares.iter().position(|share| share.max > min)?;
                let last = self.shares.iter().rposition(|share| share.min < max)?.max(share);
                return Some(MergePosition::Sorted(SortedPosition { share, last, ..at }));
            }
            Start::Chain { parts, passed } => (parts, passed),
        };
        // All of a logical partition is always in one place, and its position in that place.
        if let ([Share { scope: Scope::Key(_), .. }], [part, ..]) = (&self.shares[..], &parts[..]) {
            return Some(MergePosition::Chain { share: 0, inner: part.inner.clone(), passed });
        }
        self.inherit(&parts, &[]);
        let part_of = |share: &Share| part_of(&parts, share);
        let first = self.shares.iter().position(|share| share.min >= parts[0].min)?;
        let taken_over = self.shares.iter().filter(|share| part_of(share).is_some());
        let whole =
            |share: &Share| part_of(share).is_some_and(|part| part.min == share.min && part.max == share.max);
        let (count, changed) =
            taken_over.fold((0, false), |(count, changed), share| (count + 1, changed || !whole(share)));
        let alone = self.shares.len() == 1;
        let carries = |inner: &Vec<u8>| {
            QueryPosition::decode(inner).is_some_and(|at| at.holds_in_parts(alone || sorts))
        };
        let lost = changed && (skips && !alone || !self.inherited.iter().flatten().all(carries));
        if count == 0 || lost {
            return None;
        }
        let inner = self.inherited[first].clone();
        Some(MergePosition::Chain { share: first, inner, passed })
    }

    /// Lets every share begin at the position of the part that it has taken over or is in. Shares are cut where parts end, and
    /// at these keys besides.
    fn inherit(&mut self, parts: &[Part], cuts: &[&Epk]) {
        let ends = parts.iter().flat_map(|part| [&part.min, &part.max]);
        ends.chain(cuts.iter().copied()).for_each(|at| self.cut(at));
        self.inherited = self.shares.iter().map(|share| part_of(parts, share)?.inner.clone()).collect();
    }

    /// Makes two shares of one that `at` lies inside of.
    fn cut(&mut self, at: &Epk) {
        let Some(index) = self.shares.iter().position(|share| share.min < *at && *at < share.max) else {
            return;
        };
        let share = self.shares[index].clone();
        // A share of one logical partition lies on one side, whichever.
        let (low, high) = match &share.scope {
            Scope::Epk { min, max, .. } => (min.clone(), max.clone()),
            Scope::Range(_) => (share.min.clone(), share.max.clone()),
            Scope::All | Scope::Key(_) => return,
        };
        let side = |min: Epk, max: Epk| Scope::Epk { min, max, range: Some(share.range) };
        let left = side(low.clone(), high.clone().min(at.clone()));
        let right = side(low.max(at.clone()), high);
        let halves = [
            Share { scope: left, max: at.clone(), ..share.clone() },
            Share { scope: right, min: at.clone(), ..share.clone() },
        ];
        self.shares.splice(index..=index, halves);
    }

    /// A position with its shares named by their parts of the hash space.
    pub fn named(&self, position: &MergePosition) -> Start {
        match position {
            MergePosition::Whole { delivered, held } => Start::Whole { delivered: *delivered, held: *held },
            MergePosition::Sorted(at) => {
                let min = self.shares.get(at.share).map(|share| share.min.clone()).unwrap_or_default();
                let max = self.shares.get(at.last).map_or_else(Epk::max, |share| share.max.clone());
                let begun = self.shares.iter().zip(&self.inherited).filter(|(_, inner)| inner.is_some());
                let mut parts: Vec<Part> = Vec::new();
                for (share, inner) in begun {
                    match parts.last_mut().filter(|last| last.max == share.min && last.inner == *inner) {
                        Some(last) => last.max = share.max.clone(),
                        None => {
                            let (min, max) = (share.min.clone(), share.max.clone());
                            parts.push(Part { min, max, inner: inner.clone() });
                        }
                    }
                }
                Start::Sorted { parts, min, max, at: at.clone() }
            }
            MergePosition::Chain { share, inner, passed } => {
                let inherited = |at: usize| self.inherited.get(at).cloned().flatten();
                let mut parts: Vec<Part> = Vec::new();
                for (at, part) in self.shares.iter().enumerate().skip(*share) {
                    let inner =
                        if at == *share { inner.clone().or_else(|| inherited(at)) } else { inherited(at) };
                    if at > *share && inner.is_none() {
                        break;
                    }
                    match parts.last_mut().filter(|last| at > share + 1 && last.inner == inner) {
                        Some(last) => last.max = part.max.clone(),
                        None => parts.push(Part { min: part.min.clone(), max: part.max.clone(), inner }),
                    }
                }
                Start::Chain { parts, passed: *passed }
            }
        }
    }

    /// Whether every share begins with its first row, so that rows can be counted from there.
    pub fn begin_at_once(&self) -> bool {
        self.inherited.iter().all(Option::is_none)
    }

    /// Where the first share that was read stood.
    pub fn at(&self) -> Position {
        self.at.unwrap_or_default()
    }

    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// What was done for the page, for whoever wants to know.
    pub fn insight(&self) -> &Insight {
        &self.insight
    }

    /// Whether the first page took too long to be read in place. Nothing was counted or charged for it then.
    pub fn gave_up(&self) -> bool {
        self.gave_up.load(Ordering::Relaxed)
    }

    fn ask(&self, ask: &Ask<'_>) -> Answered {
        let Some(share) = self.shares.get(ask.share) else {
            return Err(defect("A query asked for a partition that it does not have."));
        };
        let query = ShareQuery {
            target: self.target,
            scope: &share.scope,
            session: self.session,
            prepared: ask.query,
            rows: ask.rows,
            timed: self.timed,
            held: self.held,
            deadline: Instant::now() + self.page_time,
            budget: &self.budget,
            explained: self.explained,
            lengthy: self.lengthy,
            gave_up: (self.gives_up && self.at.is_none()).then_some(&self.gave_up),
        };
        query.page(ask.from.or_else(|| self.inherited.get(ask.share)?.as_deref()), ask.after)
    }

    /// Lets the request in at the partitions that it now turns to for the first time.
    fn admit(&mut self, asks: &[Ask<'_>]) -> Result<()> {
        for ask in asks {
            let Some(share) = self.shares.get(ask.share) else { continue };
            if !self.admitted.contains(&share.range) {
                request_class::admit_range(self.target, share.range, self.class)?;
                self.admitted.push(share.range);
            }
        }
        Ok(())
    }

    fn charge(&self, share: usize, charge_ru: f64) {
        if let Some(share) = self.shares.get(share) {
            request_class::charge(self.target, &share.scope, self.class, Some(share.range), charge_ru);
        }
    }

    /// Runs the requests on this thread and as many others as can be had.
    fn ask_all(&self, asks: &[Ask<'_>]) -> Vec<Answered> {
        let helpers = Helpers::take(asks.len().min(self.degree).saturating_sub(1));
        if helpers.0 == 0 {
            return asks.iter().map(|ask| self.ask(ask)).collect();
        }
        let next = AtomicUsize::new(0);
        let answers: Vec<OnceLock<Answered>> = asks.iter().map(|_| OnceLock::new()).collect();
        let work = || {
            while let Some((ask, answer)) = {
                let at = next.fetch_add(1, Ordering::Relaxed);
                asks.get(at).zip(answers.get(at))
            } {
                // Each number is given out once, so this is the only answer.
                let _ = answer.set(self.ask(ask));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..helpers.0 {
                // A thread that the system does not give is one helper less.
                let _ = std::thread::Builder::new().name("query".to_owned()).spawn_scoped(scope, work);
            }
            work();
        });
        let missing = || Err(defect("A partition gave no answer."));
        answers.into_iter().map(|answer| answer.into_inner().unwrap_or_else(missing)).collect()
    }
}

fn part_of<'p>(parts: &'p [Part], share: &Share) -> Option<&'p Part> {
    parts.iter().find(|part| part.min <= share.min && share.max <= part.max)
}

fn defect(message: &str) -> ApiError {
    ApiError::from_engine(orrery_engine::Error::internal(message), Plane::Items)
}

impl Shares for Partitions<'_> {
    type Error = ApiError;

    fn count(&self) -> usize {
        self.shares.len()
    }

    fn degree(&self) -> usize {
        self.degree
    }

    fn read_ahead(&self) -> usize {
        if self.read_ahead { self.degree } else { 1 }
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }

    fn no_rows(&self) -> Rows {
        no_rows(self.target)
    }

    fn pages(&mut self, asks: &[Ask<'_>]) -> Result<Vec<SharePage>> {
        self.budget.check()?;
        self.admit(asks)?;
        let answers = match asks {
            [ask] => vec![self.ask(ask)],
            asks => self.ask_all(asks),
        };
        let mut pages = Vec::with_capacity(answers.len());
        for (answer, ask) in answers.into_iter().zip(asks) {
            let (page, at, insight) =
                answer.inspect_err(|error| self.charge(ask.share, error.charge_ru.unwrap_or(0.0)))?;
            self.at = self.at.or(Some(at));
            self.insight.add(insight);
            pages.push(page);
        }
        Ok(pages)
    }

    fn may_wait(error: &ApiError) -> bool {
        error.status == StatusCode::TOO_MANY_REQUESTS
    }

    fn used(&mut self, share: usize, page: &SharePage) {
        let charge_ru = self.class.read_charge(page.figures.charge_ru);
        self.charge(share, charge_ru);
        self.figures.charge_ru += charge_ru;
        self.figures.loaded_items += page.figures.loaded_items;
        self.figures.loaded_bytes += page.figures.loaded_bytes;
    }

    fn keep(&mut self, rows: HeldRows) -> u64 {
        match (self.held, &self.held_place) {
            (Some(held), Some(place)) => held.keep(place.clone(), rows),
            _ => 0,
        }
    }

    fn kept(&mut self, number: u64, delivered: u64) -> Result<Option<Arc<HeldRows>>> {
        let (Some(held), Some(place)) = (self.held, &self.held_place) else { return Ok(None) };
        let Some(rows) = held.find(place, number, delivered) else { return Ok(None) };
        // Nobody reads a partition, but the page is still a request to one, which must have seen what the client has.
        let Some(first) = self.shares.first().cloned() else { return Ok(None) };
        if !self.admitted.contains(&first.range) {
            request_class::admit_range(self.target, first.range, self.class)?;
            self.admitted.push(first.range);
        }
        let refused = |error| ApiError::from_engine(error, Plane::Items);
        let at = self.target.container.position_for(first.range, self.session).map_err(refused)?;
        self.at = Some(at);
        let charge_ru = self.class.read_charge(orrery_engine::query::held_page_charge());
        self.charge(0, charge_ru);
        self.figures.charge_ru += charge_ru;
        Ok(Some(rows))
    }
}

/// Threads taken from those that all queries share; given back when dropped.
struct Helpers(usize);

impl Helpers {
    fn take(wanted: usize) -> Helpers {
        let mut taken = 0;
        let _ = THREADS_IN_USE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            taken = wanted.min(THREADS_MAX.saturating_sub(used));
            Some(used + taken)
        });
        Helpers(taken)
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        THREADS_IN_USE.fetch_sub(self.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_limited_and_given_back() {
        let first = Helpers::take(THREADS_MAX - 1);
        let second = Helpers::take(10);
        assert!(second.0 <= 1);
        drop((first, second));
        assert_eq!(Helpers::take(3).0, 3);
    }

    #[test]
    fn a_point_is_a_span_of_one_key() {
        let key = Epk::from_hex("05C1").unwrap();
        assert_eq!(half_open(&QueryRange::point(key.clone())), (key, Epk::from_hex("05C100").unwrap()));
        assert_eq!(half_open(&QueryRange::full()), (Epk::MIN, Epk::max()));
    }
}
