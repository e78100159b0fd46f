//! Queries that must see everything before their first row: groups, aggregates, DISTINCT, ranks.
//!
//! The rows that the first page has no room for are known by then and kept (`result_cache`), so that later pages only
//! hand them out. DISTINCT is the exception: it can stop when its page is full, and does, since many clients read one
//! page only; its second page runs to the end and keeps what is left. Without kept rows a page runs the query again
//! and leaves out what was delivered, in the order in which the first page took the items.

use orrery_query::merge::CachedRows;
use orrery_query::{AggregateKind, Execution, Flow, Prepared};

use super::push_all;
use crate::error::Error;
use crate::query::access_path::ItemReader;
use crate::query::output::Output;
use crate::query::page::{CONTINUATION_INVALID, Ran};
use crate::query::position::Order;
use crate::query::result_cache::ResultCachePlace;
use crate::query::{PartitionQuery, QueryPosition};

/// A page of a query that sees everything before its first row.
pub(in crate::query) struct Materialized<'p, 'q> {
    pub reader: &'p mut ItemReader<'q>,
    pub output: &'p mut Output<'q>,
    /// Rows that earlier pages have sent.
    pub delivered: u64,
}

impl Materialized<'_, '_> {
    pub fn begin(&mut self) -> Ran<Option<QueryPosition>> {
        self.spill_behind();
        if let Some(done) = self.by_value()? {
            return Ok(done);
        }
        let created = order_matters(self.reader.query.prepared) && self.reader.is_small()?;
        self.whole(if created { Order::Created } else { Order::Stored })
    }

    pub fn go_on(&mut self, order: Order, cached: u64) -> Ran<Option<QueryPosition>> {
        if let Some(done) = self.hand_out(order, cached)? {
            return Ok(done);
        }
        self.spill_behind();
        match order {
            Order::Value => match self.by_value()? {
                Some(done) => Ok(done),
                None => Err(Error::bad_request(CONTINUATION_INVALID).into()),
            },
            order => self.whole(order),
        }
    }

    fn whole(&mut self, order: Order) -> Ran<Option<QueryPosition>> {
        if let Some(mut ranked) = self.ranked()? {
            self.output.finish(&mut ranked)?;
            return Ok(self.rest(order, ranked.is_done()));
        }
        let mut execution =
            self.reader.bounded(Execution::resume(self.reader.query.prepared, 0, self.delivered));
        let created = order == Order::Created;
        let pushed = if created { None } else { self.reader.push_checked(self.output, &mut execution)? };
        let flow = match pushed {
            Some(flow) => flow,
            None => {
                // How rare a word is depends on all items, whatever the filter says.
                let candidates =
                    if self.reader.query.prepared.needs().rank { None } else { self.reader.candidates()? };
                push_all(self.reader, self.output, &mut execution, candidates, created)?
            }
        };
        if flow == Flow::More {
            self.output.finish(&mut execution)?;
        }
        Ok(self.rest(order, execution.is_done()))
    }

    /// Collects the rows behind the page from now on, where that costs nothing or the client has shown that it wants
    /// them.
    fn spill_behind(&mut self) {
        let prepared = self.reader.query.prepared;
        let known = self.reader.query.result_cache.is_some() && prepared.fingerprint() != 0;
        if known && (self.delivered > 0 || !prepared.needs().is_streaming()) {
            self.output.spill();
        }
    }

    /// Where the next page begins, after the rows of this one and those delivered before. `done`: no row comes after
    /// what was emitted.
    pub(super) fn rest(&mut self, order: Order, done: bool) -> Option<QueryPosition> {
        let rows = self.delivered + self.output.rows() as u64;
        let spill = self.output.take_spilled();
        if done && spill.is_none() {
            return None;
        }
        let cached = match (self.reader.query.result_cache, spill) {
            (Some(cache), Some(spill)) => {
                cache.keep(self.place(), CachedRows { first: rows, ends: done, ..spill })
            }
            _ => 0,
        };
        Some(QueryPosition::Delivered { rows, order, cached })
    }

    /// A page of kept rows; `None` where there are none.
    fn hand_out(&mut self, order: Order, number: u64) -> Ran<Option<Option<QueryPosition>>> {
        let Some(cache) = self.reader.query.result_cache.filter(|_| number != 0) else { return Ok(None) };
        let place = self.place();
        let Some(kept) = cache.find(&place, number, self.delivered) else { return Ok(None) };
        let mut rest = kept.after(self.delivered).peekable();
        if rest.peek().is_none() {
            return Ok(None);
        }
        self.reader.report.cached();
        for row in rest.by_ref() {
            if self.output.push_written(row)? == Flow::Stop {
                break;
            }
        }
        if rest.peek().is_none() {
            cache.forget(&place, number);
            if kept.ends {
                return Ok(Some(None));
            }
        }
        let rows = self.delivered + self.output.rows() as u64;
        Ok(Some(Some(QueryPosition::Delivered { rows, order, cached: number })))
    }

    fn place(&self) -> ResultCachePlace {
        let PartitionQuery { span, prepared, .. } = *self.reader.query;
        ResultCachePlace::of_span(self.reader.view.identity(), span, prepared.fingerprint())
    }
}

/// Whether the result depends on the order in which items come.
pub(super) fn order_matters(prepared: &Prepared) -> bool {
    let needs = prepared.needs();
    let lists = |kind: &AggregateKind| matches!(kind, AggregateKind::MakeList | AggregateKind::MakeSet);
    needs.distinct || needs.aggregates.iter().any(lists)
}
