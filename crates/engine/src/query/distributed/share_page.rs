//! One page of a query on one share: a physical partition, or the part of it that the query is about.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use orrery_budget::Budget;
use orrery_query::merge::{EVERY_ROW, Figures, SharePage, ShareRows};
use orrery_query::{Prepared, RowFormat, Rows, SortPosition};

use super::{DistributedFailure, Lengthy, QueryInsight};
use crate::call::SentPage;
use crate::container::Container;
use crate::feed::{Scope, Span};
use crate::item::Position;
use crate::query::{
    Costs, PartitionQuery, QueryFailure, QueryLimits, QueryPage, QueryPosition, ResultCache, StatementSource,
    SystemProperties,
};

/// Where items are larger than this on the average, one that has to be read from a file takes about as long by itself.
const ITEM_IN_PLACE_BYTES: u64 = 128 * 1024;

/// About what an item takes as text. Longer pages grow.
const FEW_ROWS_BYTES: usize = 1_024;

/// A page, where the share stood when it was read, and how it was made.
pub(super) type Answered = Result<(SharePage, Position, QueryInsight), DistributedFailure>;

/// How large a page of a share may be, how it is written, and what is told about it.
#[derive(Clone, Copy)]
pub(super) struct PageTerms {
    /// Most rows of the page.
    pub rows: usize,
    pub bytes: usize,
    /// A page that streams ends then with what it has; the client comes back for the rest.
    pub deadline: Instant,
    pub format: &'static dyn RowFormat,
    /// Whether to take times, and to tell how the page was made.
    pub timed: bool,
    pub explained: bool,
}

/// What a page of a share is made from.
#[derive(Clone, Copy)]
pub(super) struct ShareQuery<'a> {
    pub container: &'a Arc<Container>,
    pub scope: &'a Scope,
    pub session: &'a [(u32, u64)],
    pub prepared: &'a Arc<Prepared>,
    /// Where the share goes on by itself, and the row of the merged result behind which it does so.
    pub from: Option<&'a [u8]>,
    pub after: Option<(&'a SortPosition, u64)>,
    pub terms: PageTerms,
    pub result_cache: Option<&'a Arc<ResultCache>>,
    pub budget: &'a Budget,
    pub system: &'a dyn SystemProperties,
    /// What the query was compiled from, where the share may be elsewhere.
    pub statement: Option<StatementSource<'a>>,
    /// What an answer begins with.
    pub begins_with: &'a [u8],
    /// How to run a page that turns out to take long, and how many steps are not. `None`: the caller has seen to that.
    pub lengthy: Option<Lengthy>,
    pub steps: u64,
    /// Told instead, when the caller wants to run more than the page that way.
    pub gave_up: Option<&'a AtomicBool>,
}

/// No rows yet, with room for a few, behind what an answer begins with.
pub(super) fn no_rows(begins_with: &[u8]) -> Rows {
    let mut bytes = Vec::with_capacity(begins_with.len() + FEW_ROWS_BYTES);
    bytes.extend_from_slice(begins_with);
    Rows::behind(bytes)
}

impl ShareQuery<'_> {
    pub fn page(&self) -> Answered {
        let from = self.position()?;
        let span = self.container.span_of(self.scope).map_err(QueryFailure::from)?;
        let steps = self.lengthy.filter(|_| self.prepared.is_steady()).map(|_| self.steps);
        let mut query = self.query(&span, from.as_ref(), steps);
        let mut rows = self.no_rows();
        let mut page = Err(QueryFailure::Lengthy);
        if steps.is_some() || self.lengthy.is_none() {
            page = self.container.query_page(self.scope, &query, &mut |row| rows.take(row));
        }
        if let (Err(QueryFailure::Lengthy), Some(gave_up)) = (&page, self.gave_up) {
            gave_up.store(true, Relaxed);
        } else if let (Err(QueryFailure::Lengthy), Some(lengthy)) = (&page, self.lengthy) {
            // From the beginning: what was done so far is little.
            query.limits.steps = None;
            lengthy(&mut || {
                rows = self.no_rows();
                page = self.container.query_page(self.scope, &query, &mut |row| rows.take(row));
            });
        }
        self.answered(page?, rows)
    }

    /// Asks for the page if its share is elsewhere; `None` where it is here.
    pub fn send(&self) -> Result<Option<SentPage>, DistributedFailure> {
        let from = self.position()?;
        let span = self.container.span_of(self.scope).map_err(QueryFailure::from)?;
        let query = self.query(&span, from.as_ref(), None);
        Ok(self.container.send_query_page(self.scope, &query)?)
    }

    /// Waits for a page that was asked for.
    pub fn receive(&self, sent: SentPage) -> Answered {
        let mut rows = self.no_rows();
        let page = sent.receive(self.budget, &mut |row| rows.take(row))?;
        self.answered(page, rows)
    }

    fn no_rows(&self) -> ShareRows {
        ShareRows::of(self.prepared, no_rows(self.begins_with))
    }

    fn query<'q>(
        &'q self,
        span: &'q Span,
        from: Option<&'q QueryPosition>,
        steps: Option<u64>,
    ) -> PartitionQuery<'q> {
        let PageTerms { rows, bytes, deadline, format, timed, explained } = self.terms;
        let everything = rows == EVERY_ROW;
        PartitionQuery {
            prepared: self.prepared,
            statement: self.statement,
            span,
            from,
            limits: QueryLimits {
                rows,
                bytes: if everything { usize::MAX } else { bytes },
                deadline: Some(deadline).filter(|_| !everything),
                steps,
                item_bytes_max: ITEM_IN_PLACE_BYTES,
            },
            budget: self.budget,
            session: self.session,
            result_cache: self.result_cache.map(|cache| &**cache),
            system: self.system,
            format,
            timed,
            explained,
            costs: Costs::default(),
        }
    }

    fn answered(&self, page: QueryPage, rows: ShareRows) -> Answered {
        let figures = Figures {
            charge_ru: page.charge_ru,
            loaded_items: page.metrics.loaded_items,
            loaded_bytes: page.metrics.loaded_bytes,
        };
        let insight = QueryInsight::of_page(&page, self.terms.explained);
        let next = page.next.map(|next| next.encode());
        Ok((SharePage { rows, next, figures, held: page.held }, page.at, insight))
    }

    /// Where the page begins: at its own position, or behind the row if that comes later.
    fn position(&self) -> Result<Option<QueryPosition>, DistributedFailure> {
        let own = match self.from {
            None => None,
            Some(bytes) => Some(QueryPosition::decode(bytes).ok_or(DistributedFailure::Continuation)?),
        };
        let Some((after, passed)) = self.after else { return Ok(own) };
        match own {
            Some(QueryPosition::Sorted { after: begun, passed, window })
                if self.prepared.compare_places(&begun, after).is_ge() =>
            {
                Ok(Some(QueryPosition::Sorted { after: begun, passed, window }))
            }
            _ => Ok(Some(QueryPosition::Sorted { after: after.clone(), passed, window: None })),
        }
    }

    /// The same, for another thread, where nobody is held up.
    pub fn to_job(self) -> ShareJob {
        ShareJob {
            container: self.container.clone(),
            scope: self.scope.clone(),
            session: self.session.to_vec(),
            prepared: self.prepared.clone(),
            from: self.from.map(<[u8]>::to_vec),
            after: self.after.map(|(after, passed)| (after.clone(), passed)),
            terms: self.terms,
            result_cache: self.result_cache.cloned(),
            budget: self.budget.clone(),
            system: self.system.to_shared(),
            begins_with: self.begins_with.to_vec(),
        }
    }
}

/// A page of a share that owns what it is made from.
pub(super) struct ShareJob {
    container: Arc<Container>,
    scope: Scope,
    session: Vec<(u32, u64)>,
    prepared: Arc<Prepared>,
    from: Option<Vec<u8>>,
    after: Option<(SortPosition, u64)>,
    terms: PageTerms,
    result_cache: Option<Arc<ResultCache>>,
    budget: Budget,
    system: Arc<dyn SystemProperties>,
    begins_with: Vec<u8>,
}

impl ShareJob {
    pub fn page(&self) -> Answered {
        let query = ShareQuery {
            container: &self.container,
            scope: &self.scope,
            session: &self.session,
            prepared: &self.prepared,
            from: self.from.as_deref(),
            after: self.after.as_ref().map(|(after, passed)| (after, *passed)),
            terms: self.terms,
            result_cache: self.result_cache.as_ref(),
            budget: &self.budget,
            system: &*self.system,
            // Where its partition has gone elsewhere since, it has gone.
            statement: None,
            begins_with: &self.begins_with,
            lengthy: None,
            steps: 0,
            gave_up: None,
        };
        query.page()
    }
}
