//! Queries over the partitions of a container: which are asked, how many at once, what each is charged, and where the
//! next page goes on.
//!
//! [`orrery_query::merge`] puts the answers of shares together; a [`DistributedQuery`] is where it gets them from.
//! One page:
//!
//! 1. The shares: `Container::shares_of` a scope, or `shares_of_ranges` that a filter leaves (`shares`).
//! 2. The position of the page before, if there was one, is found again in today's shares (`resume`).
//! 3. Every share that is turned to for the first time admits the request; each page is made on the caller's thread
//!    while that is short, else workers help (`share_page`, `workers`). Those whose rows are used are charged to
//!    their partitions.
//! 4. What is left over is named so that it can be found again after splits and merges.
//!
//! A partition that goes away meanwhile ends the page with `RangeGone`; `Container::routed` runs it again by the new
//! map.

mod insight;
mod resume;
mod share_page;
mod shares;
mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use orrery_budget::{Budget, Exceeded};
use orrery_query::merge::{
    Ask, CachedRows, Figures, MergeError, MergePosition, Merged, PageSize, SharePage, Shares,
};
use orrery_query::{RowFormat, Rows};
use orrery_sql::SqlError;

use super::{
    QueryFailure, QueryMetrics, ResultCache, ResultCachePlace, StatementSource, SystemProperties,
    cached_page_charge,
};
use crate::call::SentPage;
use crate::container::Container;
use crate::error::{Error, Kind};
use crate::feed::Scope;
use crate::item::Position;
use crate::throughput::RequestClass;

pub use insight::{EXPLAINED_MAX, QueryInsight, SHARES_MAX, ShareInsight};
use resume::SharesAt;
pub use resume::{DistributedPosition, Part, Resuming};
use share_page::{Answered, PageTerms, ShareQuery, no_rows};
pub use shares::Share;
pub use workers::cores;

/// Runs what may take long where it holds up nobody.
pub type Lengthy = fn(&mut (dyn FnMut() + Send));

/// Rows of pages that may well be made in no time; where more are wanted, workers help from the start.
const SHORT_PAGE_ROWS: usize = 1_000;
/// A page that took longer than this was not short, and neither are the others.
const SHORT_PAGE_TIME: Duration = Duration::from_micros(200);

/// Steps that all pages of shares together take on the thread of a request, about a millisecond; what takes more is run
/// again, handed over.
const STEPS_IN_PLACE: u64 = 4_000;

/// Steps of an answer that is known already.
const FEW_STEPS: u64 = 64;

/// What a page may take where nobody says otherwise.
const PAGE_TIME: Duration = Duration::from_secs(5);
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How a query over several partitions is run.
pub struct QueryOptions<'a> {
    pub session: &'a [(u32, u64)],
    /// How the request is weighed against the budgets of its partitions.
    pub class: RequestClass,
    /// Shares to ask at once.
    pub degree: usize,
    /// Whether to ask ahead where later shares may not be needed.
    pub read_ahead: bool,
    /// How long one page of a share may take, and how large it may be.
    pub page_time: Duration,
    pub page_bytes: usize,
    /// What the request may use.
    pub budget: &'a Budget,
    /// Where rows of later pages are kept, and under which name those of a merged answer are.
    pub result_cache: Option<&'a Arc<ResultCache>>,
    pub result_place: Option<ResultCachePlace>,
    pub system: &'a dyn SystemProperties,
    /// What the query was compiled from, for partitions that are elsewhere.
    pub statement: StatementSource<'a>,
    /// How rows are written, and what goes before them.
    pub format: &'static dyn RowFormat,
    pub begins_with: &'a [u8],
    /// Whether to take times, and to tell how pages were made.
    pub timed: bool,
    pub explained: bool,
    /// How to run what takes long, unless the whole request is run that way.
    pub lengthy: Option<Lengthy>,
    /// Whether the query gives up instead, for the whole request to be run that way.
    pub gives_up: bool,
}

impl<'a> QueryOptions<'a> {
    /// For a request that asks for nothing special.
    pub fn new(
        budget: &'a Budget,
        system: &'a dyn SystemProperties,
        format: &'static dyn RowFormat,
        statement: StatementSource<'a>,
    ) -> QueryOptions<'a> {
        QueryOptions {
            session: &[],
            class: RequestClass::default(),
            degree: cores(),
            read_ahead: false,
            page_time: PAGE_TIME,
            page_bytes: PAGE_BYTES_MAX,
            budget,
            result_cache: None,
            result_place: None,
            system,
            statement,
            format,
            begins_with: &[],
            timed: false,
            explained: false,
            lengthy: None,
            gives_up: false,
        }
    }
}

/// Why there is no page.
#[derive(Debug)]
pub enum DistributedFailure {
    /// A share has failed.
    Page(QueryFailure),
    /// A partition has no throughput left.
    Refused(Error),
    /// What the shares answered could not be put together.
    Merge(Box<SqlError>),
    /// The position belongs to another query, or what it counts is not known any more.
    Continuation,
}

impl From<QueryFailure> for DistributedFailure {
    fn from(failure: QueryFailure) -> DistributedFailure {
        DistributedFailure::Page(failure)
    }
}

impl From<SqlError> for DistributedFailure {
    fn from(error: SqlError) -> DistributedFailure {
        match error.exceeded {
            Some(exceeded) => exceeded.into(),
            None => DistributedFailure::Merge(Box::new(error)),
        }
    }
}

impl From<Exceeded> for DistributedFailure {
    fn from(exceeded: Exceeded) -> DistributedFailure {
        DistributedFailure::Page(QueryFailure::Exceeded(exceeded))
    }
}

impl From<Error> for DistributedFailure {
    fn from(error: Error) -> DistributedFailure {
        DistributedFailure::Page(QueryFailure::Engine(error))
    }
}

impl DistributedFailure {
    /// Whether a partition went away, so that the request is to be run again by the new map.
    pub fn is_range_gone(&self) -> bool {
        matches!(self, DistributedFailure::Page(QueryFailure::Engine(error)) if error.kind == Kind::RangeGone)
    }

    /// What the share has to be charged that failed.
    fn charge_ru(&self) -> f64 {
        match self {
            DistributedFailure::Page(QueryFailure::Query { charge_ru, .. }) => *charge_ru,
            DistributedFailure::Page(QueryFailure::Engine(error)) => error.charge_ru,
            _ => 0.0,
        }
    }
}

/// About the steps that pages took which did these things.
fn steps_of(metrics: &QueryMetrics) -> u64 {
    let items = metrics.loaded_items.saturating_mul(4).saturating_add(metrics.sifted_items);
    let bytes = metrics.loaded_bytes / 512 + metrics.output_bytes / 128;
    items.saturating_add(metrics.index_entries).saturating_add(bytes)
}

/// The shares of one request, and what using them has cost so far.
pub struct DistributedQuery<'a> {
    container: &'a Arc<Container>,
    pub options: QueryOptions<'a>,
    at_shares: SharesAt,
    gave_up: AtomicBool,
    /// The partitions that have let the request in; each is asked once, however many pages it gives.
    admitted: Vec<u32>,
    at: Option<Position>,
    /// What each of the present pages may take in place.
    steps: u64,
    /// What the shares have to pay for the page. It is charged when there is no way back.
    charges: Vec<(usize, f64)>,
    charge_ru: f64,
    insight: QueryInsight,
}

impl<'a> DistributedQuery<'a> {
    pub fn new(
        container: &'a Arc<Container>,
        shares: Vec<Share>,
        options: QueryOptions<'a>,
    ) -> DistributedQuery<'a> {
        DistributedQuery {
            container,
            options,
            at_shares: SharesAt { shares, inherited: Vec::new() },
            gave_up: AtomicBool::new(false),
            admitted: Vec::new(),
            at: None,
            steps: STEPS_IN_PLACE,
            charges: Vec::new(),
            charge_ru: 0.0,
            insight: QueryInsight::default(),
        }
    }

    /// Where the shares begin that a position speaks of.
    pub fn go_on(
        &mut self,
        start: DistributedPosition,
        query: Resuming,
    ) -> Result<MergePosition, DistributedFailure> {
        self.at_shares.go_on(start, query).ok_or(DistributedFailure::Continuation)
    }

    /// The next page, and where to go on.
    pub fn page(
        &mut self,
        merged: &Merged<'_>,
        start: Option<MergePosition>,
        size: PageSize,
    ) -> Result<(Rows, Option<MergePosition>), DistributedFailure> {
        let merged = merged.written_as(self.options.format);
        let page = merged.page(self, start, size).map_err(|error| match error {
            MergeError::Foreign => DistributedFailure::Continuation,
            MergeError::Share(error) => error,
        });
        let charges = std::mem::take(&mut self.charges);
        if self.options.gives_up && self.gave_up() {
            (self.at, self.charge_ru, self.insight) = (None, 0.0, QueryInsight::default());
        } else {
            charges.into_iter().for_each(|(share, charge_ru)| self.charge(share, charge_ru));
        }
        page
    }

    /// A position with its shares named by their parts of the hash space.
    pub fn distributed_position(&self, position: &MergePosition) -> DistributedPosition {
        self.at_shares.distributed_position(position)
    }

    /// Whether every share begins with its first row, so that rows can be counted from there.
    pub fn begin_at_once(&self) -> bool {
        self.at_shares.begin_at_once()
    }

    pub fn share_count(&self) -> usize {
        self.at_shares.shares.len()
    }

    /// Where the first share that was read stood.
    pub fn at(&self) -> Position {
        self.at.unwrap_or_default()
    }

    /// What the pages that were used have cost.
    pub fn charge_ru(&self) -> f64 {
        self.charge_ru
    }

    /// What was done for the page, for whoever wants to know.
    pub fn insight(&self) -> &QueryInsight {
        &self.insight
    }

    /// Whether the page took too long to be made in place. Nothing was counted or charged for it then.
    pub fn gave_up(&self) -> bool {
        self.gave_up.load(Ordering::Relaxed)
    }

    fn query<'s>(&'s self, ask: &Ask<'s>) -> Result<ShareQuery<'s>, DistributedFailure> {
        let Some(share) = self.at_shares.shares.get(ask.share) else {
            return Err(Error::internal("A query asked for a partition that it does not have.").into());
        };
        let options = &self.options;
        Ok(ShareQuery {
            container: self.container,
            scope: &share.scope,
            session: options.session,
            prepared: ask.query,
            from: ask.from.or_else(|| self.at_shares.inherited.get(ask.share)?.as_deref()),
            after: ask.after,
            terms: PageTerms {
                rows: ask.rows,
                bytes: options.page_bytes,
                deadline: Instant::now() + options.page_time,
                format: options.format,
                timed: options.timed,
                explained: options.explained,
            },
            result_cache: options.result_cache,
            budget: options.budget,
            system: options.system,
            statement: Some(options.statement),
            begins_with: options.begins_with,
            lengthy: options.lengthy,
            steps: self.steps,
            // A single share that has given a page goes on from there instead.
            gave_up: (options.gives_up && (self.at.is_none() || self.share_count() > 1))
                .then_some(&self.gave_up),
        })
    }

    fn ask(&self, ask: &Ask<'_>) -> Answered {
        self.query(ask)?.page()
    }

    /// Gives up where a partition may be elsewhere and the thread must not wait: the request is run again where it may.
    fn give_up_early(&self) -> Result<(), DistributedFailure> {
        if self.options.gives_up && self.container.reaches_out() {
            self.gave_up.store(true, Ordering::Relaxed);
            return Err(QueryFailure::Lengthy.into());
        }
        Ok(())
    }

    /// Lets the request in at a partition that it turns to for the first time.
    fn admit(&mut self, share: usize) -> Result<(), DistributedFailure> {
        let Some(share) = self.at_shares.shares.get(share) else { return Ok(()) };
        if !self.admitted.contains(&share.range) {
            self.container
                .admit_page(share.range, self.options.class)
                .map_err(DistributedFailure::Refused)?;
            self.admitted.push(share.range);
        }
        Ok(())
    }

    fn charge(&self, share: usize, charge_ru: f64) {
        let Some(share) = self.at_shares.shares.get(share) else { return };
        let key = match &share.scope {
            Scope::Key(key) => Some(key),
            _ => None,
        };
        self.container.charge_page(share.range, self.options.class, charge_ru, key);
    }

    /// What each of these pages may take in place. Where everything is wanted of many items, only what is known
    /// without looking at them is: to give up halfway would be to do it twice.
    fn steps_for(&self, asks: &[Ask<'_>]) -> u64 {
        let left = STEPS_IN_PLACE.saturating_sub(steps_of(&self.insight.metrics));
        if !self.options.gives_up || asks.iter().all(|ask| ask.rows <= SHORT_PAGE_ROWS) {
            return left / asks.len().max(1) as u64;
        }
        let shares = &self.at_shares.shares;
        let items: u64 = shares.iter().map(|share| self.container.usage_of_range(share.range).items).sum();
        if items > STEPS_IN_PLACE / 4 { FEW_STEPS } else { left / shares.len().max(1) as u64 }
    }

    /// Makes several pages. Those of partitions that are elsewhere are all asked for before the first is waited for.
    fn ask_all(&self, asks: &[Ask<'_>]) -> Vec<Answered> {
        if !self.container.reaches_out() {
            return self.ask_all_here(asks);
        }
        let sent: Vec<_> = asks.iter().map(|ask| self.query(ask)?.send()).collect();
        let receive = |(ask, sent): (&Ask<'_>, Result<Option<SentPage>, _>)| match sent? {
            Some(sent) => self.query(ask)?.receive(sent),
            None => self.ask(ask),
        };
        asks.iter().zip(sent).map(receive).collect()
    }

    /// Makes several pages: on this thread as long as that is short, and then with the help of workers.
    fn ask_all_here(&self, asks: &[Ask<'_>]) -> Vec<Answered> {
        let mut answers = Vec::with_capacity(asks.len());
        let mut rest = asks;
        let alone = self.options.degree <= 1 || self.options.gives_up;
        let mut short = asks.iter().all(|ask| ask.rows <= SHORT_PAGE_ROWS);
        while let [ask, others @ ..] = rest
            && (alone || short || others.is_empty())
        {
            let began = Instant::now();
            answers.push(self.ask(ask));
            short &= began.elapsed() <= SHORT_PAGE_TIME;
            rest = others;
            if answers.last().is_some_and(Result::is_err) {
                return answers;
            }
        }
        let jobs: Result<Vec<_>, _> =
            rest.iter().map(|ask| self.query(ask).map(ShareQuery::to_job)).collect();
        match jobs {
            Err(failure) => answers.push(Err(failure)),
            Ok(jobs) if jobs.is_empty() => {}
            Ok(jobs) => {
                let helpers = jobs.len().min(self.options.degree).saturating_sub(1);
                let missing = || Err(Error::internal("A partition gave no answer.").into());
                let pages = workers::spread(jobs.len(), helpers, move |at| jobs[at].page());
                answers.extend(pages.into_iter().map(|page| page.unwrap_or_else(missing)));
            }
        }
        answers
    }
}

impl Shares for DistributedQuery<'_> {
    type Error = DistributedFailure;

    fn count(&self) -> usize {
        self.at_shares.shares.len()
    }

    fn degree(&self) -> usize {
        self.options.degree
    }

    fn read_ahead(&self) -> usize {
        if self.options.read_ahead { self.options.degree } else { 1 }
    }

    fn budget(&self) -> &Budget {
        self.options.budget
    }

    fn no_rows(&self) -> Rows {
        no_rows(self.options.begins_with)
    }

    fn pages(&mut self, asks: &[Ask<'_>]) -> Result<Vec<SharePage>, DistributedFailure> {
        self.options.budget.check()?;
        self.give_up_early()?;
        for ask in asks {
            self.admit(ask.share)?;
        }
        self.steps = self.steps_for(asks);
        let answers = match asks {
            [ask] => vec![self.ask(ask)],
            asks => self.ask_all(asks),
        };
        let mut pages = Vec::with_capacity(answers.len());
        for (answer, ask) in answers.into_iter().zip(asks) {
            let (page, at, insight) =
                answer.inspect_err(|failure| self.charges.push((ask.share, failure.charge_ru())))?;
            self.at = self.at.or(Some(at));
            self.insight.add(insight);
            pages.push(page);
        }
        Ok(pages)
    }

    fn may_wait(failure: &DistributedFailure) -> bool {
        let error = match failure {
            DistributedFailure::Refused(error) => error,
            DistributedFailure::Page(QueryFailure::Engine(error)) => error,
            _ => return false,
        };
        matches!(error.kind, Kind::Throttled { .. })
    }

    fn used(&mut self, share: usize, page: &SharePage) {
        let Figures { charge_ru, .. } = page.figures;
        let charge_ru = self.options.class.read_charge(charge_ru);
        self.charges.push((share, charge_ru));
        self.charge_ru += charge_ru;
    }

    fn keep(&mut self, rows: CachedRows) -> u64 {
        match (self.options.result_cache, &self.options.result_place) {
            (Some(cache), Some(place)) => cache.keep(place.clone(), rows),
            _ => 0,
        }
    }

    fn kept(&mut self, number: u64, delivered: u64) -> Result<Option<Arc<CachedRows>>, DistributedFailure> {
        let (Some(cache), Some(place)) = (self.options.result_cache, &self.options.result_place) else {
            return Ok(None);
        };
        let Some(rows) = cache.find(place, number, delivered) else { return Ok(None) };
        // Nobody reads a partition, but the page is still a request to one, which must have seen what the client has.
        let Some(range) = self.at_shares.shares.first().map(|first| first.range) else { return Ok(None) };
        self.give_up_early()?;
        self.admit(0)?;
        self.at = Some(self.container.position_for(range, self.options.session)?);
        let charge_ru = self.options.class.read_charge(cached_page_charge());
        self.charges.push((0, charge_ru));
        self.charge_ru += charge_ru;
        Ok(Some(rows))
    }
}
