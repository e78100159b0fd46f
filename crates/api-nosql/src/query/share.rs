//! One page of a query on one share: a physical partition, or the part of it that the query is about.
//!
//! The engine runs the page; what is here tells it what the wire adds to items, how much fits on a page and how long it may
//! take, and puts its failures into words.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use orrery_api::Lengthy;
use orrery_budget::Budget;
use orrery_engine::{
    Costs, PartitionQuery, Position, QueryFailure, QueryLimits, QueryPosition, ResultCache, Scope,
};
use orrery_model::PartitionKey;
use orrery_query::merge::{EVERY_ROW, Figures, SharePage, ShareRows};
use orrery_query::{JsonText, Prepared, Rows, SortPosition};

use super::query_env::WireSystem;
use super::query_metrics::Insight;
use super::request;
use crate::errors::{ApiError, Plane, Result};
use crate::paging::PAGE_BYTES_MAX;
use crate::resource_feed::open_envelope;
use crate::service::Target;
use crate::{continuation, items};

/// Steps that a page takes on the thread of its request, about a millisecond; what takes more is run again, handed over.
const STEPS_IN_PLACE: u64 = 4_000;

/// Where items are larger than this on the average, one that has to be read from a file takes about as long by itself.
const ITEM_IN_PLACE_BYTES: u64 = 128 * 1024;

/// A page, where the share stood when it was read, and how it was made.
pub type Answered = Result<(SharePage, Position, Insight)>;

/// What a page of a share is made from.
pub struct ShareQuery<'a> {
    pub target: &'a Target,
    pub scope: &'a Scope,
    pub session: &'a [(u32, u64)],
    pub prepared: &'a Prepared,
    /// Most rows of the page.
    pub rows: usize,
    /// Whether to take times.
    pub timed: bool,
    pub held: Option<&'a ResultCache>,
    /// A page that streams ends then with what it has; the client comes back for the rest.
    pub deadline: Instant,
    pub budget: &'a Budget,
    /// Whether to tell how the page was made.
    pub explained: bool,
    /// How to run a page that turns out to take long. `None`: the caller has seen to that.
    pub lengthy: Option<Lengthy>,
    /// Told instead, when the caller wants to run more than the page that way.
    pub gave_up: Option<&'a AtomicBool>,
}

/// No rows yet, behind what the body of an answer begins with.
pub fn no_rows(target: &Target) -> Rows {
    let mut begin = Vec::with_capacity(128);
    open_envelope(&mut begin, "Documents", target.rid.as_str());
    Rows::behind(begin)
}

impl ShareQuery<'_> {
    /// The page that begins at `from`, or later, behind a row of the merged result.
    pub fn page(&self, from: Option<&[u8]>, after: Option<(&SortPosition, u64)>) -> Answered {
        let mut from = match from {
            None => None,
            Some(bytes) => Some(QueryPosition::decode(bytes).ok_or_else(continuation::invalid)?),
        };
        if let Some((after, passed)) = after {
            let begun = match &from {
                Some(QueryPosition::Sorted { after, .. }) => Some(after),
                _ => None,
            };
            if begun.is_none_or(|begun| self.prepared.compare_places(begun, after).is_lt()) {
                from = Some(QueryPosition::Sorted { after: after.clone(), passed, window: None });
            }
        }
        let container = &self.target.container;
        let span = container.span_of(self.scope).map_err(|error| self.refused(error))?;
        let steps = self.lengthy.filter(|_| self.prepared.is_steady()).map(|_| STEPS_IN_PLACE);
        let mut query = PartitionQuery {
            prepared: self.prepared,
            span: &span,
            from: from.as_ref(),
            limits: QueryLimits {
                rows: self.rows,
                bytes: if self.rows == EVERY_ROW { usize::MAX } else { PAGE_BYTES_MAX },
                deadline: Some(self.deadline).filter(|_| self.rows != EVERY_ROW),
                steps,
                item_bytes_max: ITEM_IN_PLACE_BYTES,
            },
            budget: self.budget,
            session: self.session,
            held: self.held,
            system: &WireSystem(self.target.rid),
            format: &JsonText,
            timed: self.timed,
            explained: self.explained,
            tuning: Costs::default(),
        };
        let fresh = || ShareRows::of(self.prepared, no_rows(self.target));
        let mut rows = fresh();
        let mut page = Err(QueryFailure::Lengthy);
        if steps.is_some() || self.lengthy.is_none() {
            page = container.query_page(self.scope, &query, &mut |row| rows.take(row));
        }
        if let (Err(QueryFailure::Lengthy), Some(gave_up)) = (&page, self.gave_up) {
            gave_up.store(true, Relaxed);
        } else if let (Err(QueryFailure::Lengthy), Some(lengthy)) = (&page, self.lengthy) {
            // From the beginning: what was done so far is little.
            query.limits.steps = None;
            lengthy(&mut || {
                rows = fresh();
                page = container.query_page(self.scope, &query, &mut |row| rows.take(row));
            });
        }
        let page = page.map_err(|failure| self.failed(failure))?;
        let figures = Figures {
            charge_ru: page.charge_ru,
            loaded_items: page.metrics.loaded_items,
            loaded_bytes: page.metrics.loaded_bytes,
        };
        let insight = Insight::of_page(&page, self.explained);
        let next = page.next.map(|next| next.encode());
        Ok((SharePage { rows, next, figures, held: page.held }, page.at, insight))
    }

    fn refused(&self, error: orrery_engine::Error) -> ApiError {
        ApiError::from_engine(error, Plane::Items).at(items::place(self.target, &PartitionKey::default()))
    }

    fn failed(&self, failure: QueryFailure) -> ApiError {
        match failure {
            QueryFailure::Exceeded(exceeded) => ApiError::exceeded(exceeded),
            QueryFailure::Engine(error) => self.refused(error),
            QueryFailure::Lengthy => {
                self.refused(orrery_engine::Error::internal("A query ran out of steps that nobody counted."))
            }
            QueryFailure::Query { error, charge_ru, at } => {
                let at = items::at(at);
                let mut failed = request::failed(&error, true).charge(charge_ru).at(at);
                failed.headers = items::usage_headers(self.target, at).into();
                failed
            }
        }
    }
}
