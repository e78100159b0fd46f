//! Merging: the answers of several partitions become the answer of the query.
//!
//! Every partition in question runs the partial form of the compiled query (`crate::partial`) and answers with typed
//! rows and groups; what comes back is put together here, for clients that have no query engine of their own.
//! Partitions are read through [`Shares`], so nothing in this module knows where items are or how pages travel, and
//! rows are bytes in whatever format the caller speaks.
//!
//! | query | how | what a continuation remembers |
//! |---|---|---|
//! | filter, projection, JOIN, TOP, OFFSET LIMIT | one share after the other (`chain`) | share, its position, rows |
//! | ORDER BY, also with DISTINCT of the same value | merge of sorted shares (`sorted`) | the last row's place, share |
//! | aggregates, GROUP BY, DISTINCT, vectors, ranks | all shares first (`materialized`, `ranks`) | rows delivered |
//!
//! Rows come in the order in which one partition after the other would give them: shares that tie are taken in the
//! order of the hash space, groups and distinct rows appear where they appeared first. What must be held is held
//! within the budget of the request; a sorted merge holds one page of each share.

mod cached_rows;
mod chain;
mod codec;
mod materialized;
mod ranks;
mod share_rows;
mod sorted;

use std::sync::Arc;

use orrery_budget::{Budget, Held};
use orrery_model::Value;
use orrery_sql::{Query, SqlError};

use crate::env::QueryEnv;
use crate::exec::SortPosition;
use crate::output::{JsonText, RowFormat, Rows};
use crate::plan::{Feature, Features, distinct_count, sorts_by_distance, sorts_what_it_selects};
use crate::prepared::Prepared;

pub use cached_rows::CachedRows;
use chain::Window;
use materialized::{DistinctCount, DistinctRows, Groups, Output, SortedAtOnce};
use ranks::Ranks;
pub(crate) use ranks::{component_rows, word_counts};
pub use share_rows::ShareRows;
use sorted::Sorted;
pub use sorted::SortedPosition;

/// Rows that a share is asked for first when everything may be needed; what is left is then asked for at once.
const DRAIN_ROWS: usize = 10_000;
/// Asks for all rows that there are, however long they take.
pub const EVERY_ROW: usize = u32::MAX as usize;

/// The partitions that a query runs on, in the order of the hash space.
pub trait Shares {
    type Error: From<SqlError>;

    fn count(&self) -> usize;

    /// How many requests it is worth making at once, when all of them are needed.
    fn degree(&self) -> usize;

    /// How many shares to ask at once when the later ones may not be needed.
    fn read_ahead(&self) -> usize;

    /// What the request may use.
    fn budget(&self) -> &Budget;

    /// No rows yet, behind what an answer begins with.
    fn no_rows(&self) -> Rows {
        Rows::default()
    }

    /// Carries out all requests, at once if it can, and answers in their order.
    fn pages(&mut self, asks: &[Ask<'_>]) -> Result<Vec<SharePage>, Self::Error>;

    /// Whether the request may come back later: then a page that has rows is answered first.
    fn may_wait(_error: &Self::Error) -> bool {
        false
    }

    /// Told once for each page whose rows were used: what was only read ahead is not charged for.
    fn used(&mut self, share: usize, page: &SharePage);

    /// Keeps rows of later pages under a number; 0 where nothing is kept.
    fn keep(&mut self, _rows: CachedRows) -> u64 {
        0
    }

    /// Rows that an earlier page has kept, if they are still there and the row after `delivered` is among them. They
    /// are all that the page is made of.
    fn kept(&mut self, _number: u64, _delivered: u64) -> Result<Option<Arc<CachedRows>>, Self::Error> {
        Ok(None)
    }
}

/// One request for one share.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub share: usize,
    pub query: &'a Arc<Prepared>,
    /// Where an earlier page of the same share said to go on.
    pub from: Option<&'a [u8]>,
    /// Else the row behind which to begin, of a sorted query, and how many rows of all shares came before.
    pub after: Option<(&'a SortPosition, u64)>,
    /// Most rows wanted; fewer may come although there are more. [`EVERY_ROW`]: all of them.
    pub rows: usize,
}

/// What a share answers.
#[derive(Debug, Default)]
pub struct SharePage {
    pub rows: ShareRows,
    /// `None`: this was the last page.
    pub next: Option<Vec<u8>>,
    pub figures: Figures,
    /// What the rows are charged with, while they are here.
    pub held: Option<Held>,
}

/// What a page of a share cost and took.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub charge_ru: f64,
    pub loaded_items: u64,
    pub loaded_bytes: u64,
}

/// How much one page of the merged answer may hold.
#[derive(Clone, Copy, Debug)]
pub struct PageSize {
    pub rows: usize,
    /// The page ends with the row that crosses this.
    pub bytes: usize,
}

impl PageSize {
    fn is_reached(&self, rows: &Rows) -> bool {
        rows.len() >= self.rows || rows.size_bytes() >= self.bytes
    }
}

/// Where the next page of a merged answer begins.
#[derive(Clone, Debug, PartialEq)]
pub enum MergePosition {
    /// In a share, at its own position; `passed` rows counted against OFFSET, LIMIT and TOP before.
    Chain {
        share: usize,
        inner: Option<Vec<u8>>,
        passed: u64,
    },
    Sorted(SortedPosition),
    /// After this many rows, which are kept under a number unless it is 0.
    Materialized {
        delivered: u64,
        cached: u64,
    },
}

/// A page could not be made.
#[derive(Debug)]
pub enum MergeError<E> {
    /// The position belongs to another kind of query.
    Foreign,
    Share(E),
}

impl<E> From<E> for MergeError<E> {
    fn from(error: E) -> MergeError<E> {
        MergeError::Share(error)
    }
}

pub type PageResult<E> = Result<(Rows, Option<MergePosition>), MergeError<E>>;

/// What the merge here can do, in the words of plans.
pub fn features() -> Features {
    Features::all().without(Features::of(Feature::HybridSearchSkipOrderByRewrite))
}

/// How the shares of a query are merged, compiled once for all its pages.
#[derive(Debug)]
pub struct MergePlan(Kind);

#[derive(Debug)]
enum Kind {
    Chain { query: Arc<Prepared>, window: Window },
    Sorted(Sorted),
    Groups(Groups),
    DistinctRows(DistinctRows),
    DistinctCount(DistinctCount),
    SortedAtOnce(SortedAtOnce),
    Ranks(Ranks),
}

impl MergePlan {
    /// The plan of a query. `prepared` is the same query, made ready to run in one partition.
    pub fn new(
        query: &Query,
        prepared: &Prepared,
        parameters: &[(String, Value)],
        env: &QueryEnv,
    ) -> Result<MergePlan, SqlError> {
        if let Some(refusal) = prepared.merge_refusal() {
            return Err(refusal);
        }
        if let Some((alias, counted)) = distinct_count(query) {
            let query = Arc::new(Prepared::new(counted, parameters, env)?.counted_rows());
            return Ok(MergePlan(Kind::DistinctCount(DistinctCount { query, alias })));
        }
        if let Some(ranks) = Ranks::of(prepared) {
            return Ok(MergePlan(Kind::Ranks(ranks)));
        }
        let shape = prepared.needs();
        let (window, distinct) = (Window::of(shape), shape.distinct);
        // Without FROM there is one row, wherever it is computed.
        Ok(MergePlan(if shape.from && (shape.group_by || !shape.aggregates.is_empty()) {
            let query = prepared.with(prepared.compiled.clone());
            Kind::Groups(Groups { query, parts: Arc::new(prepared.group_parts()) })
        } else if shape.order_by {
            let streams = (!distinct || sorts_what_it_selects(query)) && !sorts_by_distance(query);
            let query = Arc::new(match distinct {
                true => prepared.all_sorted_rows(!streams),
                false => prepared.first_rows(),
            });
            match streams {
                true => Kind::Sorted(Sorted { query, window, distinct }),
                false => Kind::SortedAtOnce(SortedAtOnce { query, window, distinct }),
            }
        } else if distinct {
            Kind::DistinctRows(DistinctRows { query: Arc::new(prepared.marked_rows()), window })
        } else {
            Kind::Chain { query: Arc::new(prepared.first_rows()), window }
        }))
    }
}

/// A query over its shares.
#[derive(Clone, Copy)]
pub struct Merged<'q> {
    way: Way<'q>,
    one_by_one: bool,
    format: &'q dyn RowFormat,
}

#[derive(Clone, Copy)]
enum Way<'q> {
    Plan(&'q Kind),
    /// The only share computes everything.
    Single(&'q Arc<Prepared>),
}

impl<'q> Merged<'q> {
    /// The query as `plan` takes it apart.
    pub fn new(plan: &'q MergePlan) -> Merged<'q> {
        Merged { way: Way::Plan(&plan.0), one_by_one: false, format: &JsonText }
    }

    /// The query for a single share, which needs no merging.
    pub fn single(prepared: &'q Arc<Prepared>) -> Merged<'q> {
        Merged { way: Way::Single(prepared), one_by_one: false, format: &JsonText }
    }

    /// The same query, with pages that end where a share ends. Only for rows that are put one after the other and not
    /// counted; everything else is merged as before.
    pub fn one_by_one(self) -> Merged<'q> {
        Merged { one_by_one: true, ..self }
    }

    /// Writes rows that are made here in this format, as shares write theirs; JSON text, unless told.
    pub fn written_as(self, format: &'q dyn RowFormat) -> Merged<'q> {
        Merged { format, ..self }
    }

    /// Whether shares are merged row by row, by their sort keys.
    pub fn is_sorted(&self) -> bool {
        matches!(self.way, Way::Plan(Kind::Sorted(_)))
    }

    /// The same position in few bytes, whatever was sorted by; going on there means starting over and skipping.
    pub fn shortened(&self, position: &MergePosition) -> Option<MergePosition> {
        match (&self.way, position) {
            (Way::Plan(Kind::Sorted(sorted)), MergePosition::Sorted(at)) => {
                let delivered = at.passed.saturating_sub(sorted.window.offset);
                Some(MergePosition::Materialized { delivered, cached: 0 })
            }
            _ => None,
        }
    }

    /// The next page.
    pub fn page<S: Shares>(
        &self,
        shares: &mut S,
        start: Option<MergePosition>,
        size: PageSize,
    ) -> PageResult<S::Error> {
        let (rows, next) = self.rows(shares, start, size)?;
        Ok((if rows.is_blank() { shares.no_rows() } else { rows }, next))
    }

    fn rows<S: Shares>(
        &self,
        shares: &mut S,
        start: Option<MergePosition>,
        size: PageSize,
    ) -> PageResult<S::Error> {
        let kind = match self.way {
            Way::Single(query) => return chain::page(query, Window::default(), shares, start, size),
            Way::Plan(Kind::Chain { query, window }) => {
                return chain::page(query, window.one_by_one(self.one_by_one), shares, start, size);
            }
            Way::Plan(Kind::Sorted(sorted)) => return sorted.page(shares, start, size),
            Way::Plan(kind) => kind,
        };
        let (delivered, cached) = match start {
            None => (0, 0),
            Some(MergePosition::Materialized { delivered, cached }) => (delivered, cached),
            Some(_) => return Err(MergeError::Foreign),
        };
        if cached != 0
            && let Some(kept) = shares.kept(cached, delivered)?
            && let Some(page) = materialized::hand_out(&kept, cached, delivered, shares.no_rows(), size)
        {
            return Ok(page);
        }
        let mut page = Output::new(delivered, shares.no_rows(), size);
        match kind {
            Kind::Groups(groups) => groups.rows(shares, &mut page, self.format)?,
            Kind::DistinctRows(rows) => rows.rows(shares, &mut page)?,
            Kind::DistinctCount(count) => count.rows(shares, &mut page, self.format)?,
            Kind::SortedAtOnce(sorted) => sorted.rows(shares, &mut page)?,
            Kind::Ranks(ranks) => ranks.rows(shares, &mut page)?,
            // They have returned above.
            Kind::Chain { .. } | Kind::Sorted(_) => {}
        }
        Ok(page.finish(shares))
    }
}

/// Takes a page of a share; answers whether it wants another.
type Visit<'v> = dyn FnMut(usize, ShareRows) -> Result<bool, SqlError> + 'v;

/// Hands every page of every share to `visit`, in order, until it wants no more. The first pages, of so many rows, of
/// as many shares as may run at once are asked for together.
fn drain<S: Shares>(
    query: &Arc<Prepared>,
    first_rows: usize,
    shares: &mut S,
    visit: &mut Visit<'_>,
) -> Result<(), S::Error> {
    let count = shares.count();
    let degree = shares.degree().max(1);
    let mut first = 0;
    while first < count {
        let window = first..count.min(first + degree);
        let ask = |share| Ask { share, query, from: None, after: None, rows: first_rows };
        let asks: Vec<Ask<'_>> = window.clone().map(ask).collect();
        let pages = shares.pages(&asks)?;
        for (share, page) in window.zip(pages) {
            let mut page = page;
            loop {
                shares.used(share, &page);
                // The rows are charged as long as they are looked at.
                let SharePage { rows, next, held: _held, .. } = page;
                if !visit(share, rows)? {
                    return Ok(());
                }
                let Some(next) = next else { break };
                let ask = Ask { share, query, from: Some(&next), after: None, rows: EVERY_ROW };
                page = shares.pages(&[ask])?.pop().unwrap_or_default();
            }
        }
        first += degree;
    }
    Ok(())
}
