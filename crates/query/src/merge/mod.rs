//! Merging: the answers of several partitions become the answer of the query.
//!
//! Every partition in question runs the query that a plan makes for it, and what comes back is put together the way
//! clients with a query engine do it; here it is done for clients that have none. Partitions are read through
//! [`Shares`], so nothing in this module knows where items are or how pages travel.
//!
//! | query | how | what a continuation remembers |
//! |---|---|---|
//! | filter, projection, JOIN, TOP, OFFSET LIMIT | one share after the other (`chain`) | the share, its own position, rows passed |
//! | ORDER BY, also with DISTINCT of the same value | merge of sorted shares (`sorted`) | the last row's keys and share |
//! | aggregates, GROUP BY, DISTINCT, vectors, ranks | all shares first (`whole`, `totals`, `ranks`) | rows delivered, and where the others are kept |
//!
//! Rows come in the order in which one partition after the other would give them: shares that tie are taken in the
//! order of the hash space, groups and distinct rows appear where they appeared first. What must be held is held
//! within the budget of the request; a sorted merge holds one page of each share.

mod bound;
mod chain;
mod held;
mod ranks;
mod row;
mod sorted;
mod totals;
mod whole;

use std::sync::Arc;

use orrery_budget::{Budget, Held};
use orrery_model::Value;
use orrery_sql::{Query, SqlError, parse_query};

use crate::env::QueryEnv;
use crate::plan::{Distinct, Feature, Features, Merge, QueryInfo, QueryPlan};
use crate::prepared::Prepared;

pub use held::HeldRows;
pub use row::Rows;
pub use sorted::SortedPosition;

/// Rows that a share is asked for at a time when everything is needed.
const DRAIN_ROWS: usize = 10_000;

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

    /// Carries out all requests, at once if it can, and answers in their order.
    fn pages(&mut self, asks: &[Ask<'_>]) -> Result<Vec<SharePage>, Self::Error>;

    /// Whether the request may come back later: then a page that has rows is answered first.
    fn may_wait(_error: &Self::Error) -> bool {
        false
    }

    /// Told once for each page whose rows were used: what was only read ahead is not charged for.
    fn used(&mut self, share: usize, page: &SharePage);

    /// Keeps rows of later pages under a number; 0 where nothing is kept.
    fn keep(&mut self, _rows: HeldRows) -> u64 {
        0
    }

    /// Rows that an earlier page has kept, if they are still there and the row after `delivered` is among them. They
    /// are all that the page is made of.
    fn kept(&mut self, _number: u64, _delivered: u64) -> Result<Option<Arc<HeldRows>>, Self::Error> {
        Ok(None)
    }
}

/// One request for one share.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub share: usize,
    pub query: &'a Prepared,
    /// Where an earlier page of the same share said to go on.
    pub from: Option<&'a [u8]>,
    /// Most rows wanted; fewer may come although there are more.
    pub rows: usize,
}

/// What a share answers.
#[derive(Debug, Default)]
pub struct SharePage {
    pub rows: Rows,
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
    Whole {
        delivered: u64,
        held: u64,
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

/// What the merge here can do; plans for it are made with these.
pub fn features() -> Features {
    Features::all().without(Features::of(Feature::HybridSearchSkipOrderByRewrite))
}

/// A query made ready to run over several shares.
#[derive(Debug)]
pub struct Merged<'q> {
    kind: Kind<'q>,
    one_by_one: bool,
}

/// What share queries are made from.
#[derive(Clone, Copy, Debug)]
struct Source<'q> {
    query: &'q Query,
    parameters: &'q [(String, Value)],
    env: &'q QueryEnv,
}

#[derive(Debug)]
enum Kind<'q> {
    Chain(Source<'q>, &'q QueryInfo),
    Sorted(Source<'q>, &'q QueryInfo),
    Whole(Source<'q>, &'q Merge),
    /// The only share computes everything.
    Single(&'q Prepared),
}

impl<'q> Merged<'q> {
    /// The query as `plan` takes it apart.
    pub fn new(
        query: &'q Query,
        parameters: &'q [(String, Value)],
        env: &'q QueryEnv,
        plan: &'q QueryPlan,
    ) -> Merged<'q> {
        let source = Source { query, parameters, env };
        let kind = match &plan.merge {
            Merge::Ranks(_) => Kind::Whole(source, &plan.merge),
            Merge::Rows(info) => {
                let merged = !info.aggregates.is_empty()
                    || !info.aliases.is_empty()
                    || !info.group_by_expressions.is_empty();
                let sorted = !info.order_by.is_empty();
                if merged || info.distinct == Distinct::Unordered || info.non_streaming_order_by {
                    Kind::Whole(source, &plan.merge)
                } else if sorted {
                    Kind::Sorted(source, info)
                } else {
                    Kind::Chain(source, info)
                }
            }
        };
        Merged { kind, one_by_one: false }
    }

    /// The query for a single share, which needs no merging.
    pub fn single(prepared: &'q Prepared) -> Merged<'q> {
        Merged { kind: Kind::Single(prepared), one_by_one: false }
    }

    /// The same query, with pages that end where a share ends. Only for rows that are put one after the other and not
    /// counted; everything else is merged as before.
    pub fn one_by_one(self) -> Merged<'q> {
        Merged { one_by_one: true, ..self }
    }

    /// Whether shares are merged row by row, by their sort keys.
    pub fn is_sorted(&self) -> bool {
        matches!(self.kind, Kind::Sorted(..))
    }

    /// The same position in few bytes, whatever was sorted by; going on there means starting over and skipping.
    pub fn shortened(&self, position: &MergePosition) -> Option<MergePosition> {
        match (&self.kind, position) {
            (Kind::Sorted(_, info), MergePosition::Sorted(at)) => {
                let delivered = at.passed.saturating_sub(info.offset.unwrap_or(0));
                Some(MergePosition::Whole { delivered, held: 0 })
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
        match &self.kind {
            Kind::Single(query) => chain::page(query, chain::Window::default(), shares, start, size),
            Kind::Chain(source, info) => {
                let query = source.rewritten(&info.rewritten, "true").map_err(S::Error::from)?;
                let window = chain::Window::of(info).one_by_one(self.one_by_one);
                chain::page(&query, window, shares, start, size)
            }
            Kind::Sorted(source, info) => sorted::page(source, info, shares, start, size),
            Kind::Whole(source, merge) => {
                let (delivered, held) = match start {
                    None => (0, 0),
                    Some(MergePosition::Whole { delivered, held }) => (delivered, held),
                    Some(_) => return Err(MergeError::Foreign),
                };
                if held != 0
                    && let Some(kept) = shares.kept(held, delivered)?
                    && let Some(page) = whole::hand_out(&kept, held, delivered, size)
                {
                    return Ok(page);
                }
                let mut page = whole::Output::new(delivered, size);
                match merge {
                    Merge::Rows(info) => whole::rows(source, info, shares, &mut page)?,
                    Merge::Ranks(info) => ranks::rows(source, info, shares, &mut page)?,
                }
                Ok(page.finish(shares))
            }
        }
    }
}

/// Stands in rewritten text for the condition that resumes a sorted query.
const FILTER: &str = "{documentdb-formattableorderbyquery-filter}";

impl Source<'_> {
    fn original(&self) -> Result<Prepared, SqlError> {
        Prepared::new(self.query, self.parameters, self.env)
    }

    /// A rewritten query with its placeholder filled in; an empty one stands for the original.
    fn rewritten(&self, text: &str, filter: &str) -> Result<Prepared, SqlError> {
        if text.is_empty() {
            return self.original();
        }
        let query = parse_query(&text.replace(FILTER, filter))?;
        Prepared::new(&query, self.parameters, self.env)
    }
}

/// Takes one row; answers whether it wants another.
type Visit<'v> = dyn FnMut(&[u8]) -> Result<bool, SqlError> + 'v;

/// Hands every row of every share to `visit`, in order, until it wants no more. The first pages of as many shares as
/// may run at once are asked for together.
fn drain<S: Shares>(query: &Prepared, shares: &mut S, visit: &mut Visit<'_>) -> Result<(), S::Error> {
    let count = shares.count();
    let degree = shares.degree().max(1);
    let mut first = 0;
    while first < count {
        let window = first..count.min(first + degree);
        let asks: Vec<Ask<'_>> =
            window.clone().map(|share| Ask { share, query, from: None, rows: DRAIN_ROWS }).collect();
        let pages = shares.pages(&asks)?;
        for (share, page) in window.zip(pages) {
            let mut page = page;
            loop {
                shares.used(share, &page);
                for row in page.rows.iter() {
                    if !visit(row)? {
                        return Ok(());
                    }
                }
                let Some(next) = page.next.take() else { break };
                let ask = Ask { share, query, from: Some(&next), rows: DRAIN_ROWS };
                page = shares.pages(&[ask])?.pop().unwrap_or_default();
            }
        }
        first += degree;
    }
    Ok(())
}
