//! Queries that must see everything before their first row: groups, aggregates, DISTINCT, ranks.
//!
//! The rows that the first page has no room for are known by then and kept (`result_cache`), so that later pages only hand them
//! out. DISTINCT is the exception: it can stop when its page is full, and does, since many clients read one page only;
//! its second page runs to the end and keeps what is left. Without kept rows a page runs the query again and leaves
//! out what was delivered, in the order in which the first page took the items.

use orrery_query::merge::HeldRows;
use orrery_query::{AggregateKind, Execution, Flow, Prepared, Row};

use super::QueryPosition;
use super::page::{CONTINUATION_INVALID, Ran, Run};
use super::position::Order;
use super::result_cache::ResultCachePlace;
use crate::error::Error;
use crate::partition::Span;

impl Run<'_> {
    pub fn begin_whole(&mut self) -> Ran<Option<QueryPosition>> {
        self.spill_behind(0);
        if let Some(done) = self.covered(0)? {
            return Ok(done);
        }
        let created = order_matters(self.query.prepared) && self.is_small()?;
        self.whole(0, if created { Order::Created } else { Order::Stored })
    }

    pub fn go_on_whole(&mut self, delivered: u64, order: Order, held: u64) -> Ran<Option<QueryPosition>> {
        if let Some(done) = self.hand_out(delivered, order, held)? {
            return Ok(done);
        }
        self.spill_behind(delivered);
        match order {
            Order::Value => match self.covered(delivered)? {
                Some(done) => Ok(done),
                None => Err(Error::bad_request(CONTINUATION_INVALID).into()),
            },
            order => self.whole(delivered, order),
        }
    }

    fn whole(&mut self, delivered: u64, order: Order) -> Ran<Option<QueryPosition>> {
        if let Some(mut ranked) = self.ranked_whole(delivered)? {
            self.finish(&mut ranked)?;
            return Ok(self.rest(delivered, order, ranked.is_done()));
        }
        let mut execution = Execution::resume(self.query.prepared, 0, delivered)
            .within(&self.meter)
            .written_as(self.query.format);
        let created = order == Order::Created;
        let pushed = if created { None } else { self.push_checked(&mut execution)? };
        let flow = match pushed {
            Some(flow) => flow,
            None => {
                // How rare a word is depends on all items, whatever the filter says.
                let candidates = if self.query.prepared.needs().rank { None } else { self.candidates()? };
                self.push_all(&mut execution, candidates, created)?
            }
        };
        if flow == Flow::More {
            self.finish(&mut execution)?;
        }
        Ok(self.rest(delivered, order, execution.is_done()))
    }

    /// Collects the rows behind the page from now on, where that costs nothing or the client has shown that it wants them.
    fn spill_behind(&mut self, delivered: u64) {
        let prepared = self.query.prepared;
        let known = self.query.held.is_some() && prepared.fingerprint() != 0;
        if known && (delivered > 0 || !prepared.needs().is_streaming()) {
            self.out.spill = Some(HeldRows::default());
        }
    }

    /// Where the next page begins, after the rows of this one and those `delivered` before. `done`: no row comes after
    /// what was emitted.
    pub fn rest(&mut self, delivered: u64, order: Order, done: bool) -> Option<QueryPosition> {
        let rows = delivered + self.out.rows as u64;
        let spill = self.out.spill.take().filter(|spill| !spill.rows.is_empty());
        if done && spill.is_none() {
            return None;
        }
        let held = match (self.query.held, spill) {
            (Some(held), Some(spill)) => {
                held.keep(self.place(), HeldRows { first: rows, ends: done, ..spill })
            }
            _ => 0,
        };
        Some(QueryPosition::Delivered { rows, order, held })
    }

    /// A page of kept rows; `None` where there are none.
    fn hand_out(&mut self, delivered: u64, order: Order, number: u64) -> Ran<Option<Option<QueryPosition>>> {
        let Some(held) = self.query.held.filter(|_| number != 0) else { return Ok(None) };
        let place = self.place();
        let Some(kept) = held.find(&place, number, delivered) else { return Ok(None) };
        let mut rest = kept.after(delivered).peekable();
        if rest.peek().is_none() {
            return Ok(None);
        }
        self.report.held();
        for row in rest.by_ref() {
            if self.out.take(Row::written(row))? == Flow::Stop {
                break;
            }
        }
        if rest.peek().is_none() {
            held.forget(&place, number);
            if kept.ends {
                return Ok(Some(None));
            }
        }
        let rows = delivered + self.out.rows as u64;
        Ok(Some(Some(QueryPosition::Delivered { rows, order, held: number })))
    }

    pub(super) fn place(&self) -> ResultCachePlace {
        let mut owner = self.view.identity().to_be_bytes().to_vec();
        match self.query.span {
            Span::All => {}
            Span::Epk { min, max } => {
                owner.push(1);
                owner.extend_from_slice(&(min.as_bytes().len() as u64).to_be_bytes());
                owner.extend_from_slice(min.as_bytes());
                owner.extend_from_slice(max.as_bytes());
            }
            Span::Key { key, .. } => {
                owner.push(2);
                key.encode(&mut owner);
            }
        }
        ResultCachePlace { owner, query: self.query.prepared.fingerprint() }
    }
}

/// Whether the result depends on the order in which items come.
pub(super) fn order_matters(prepared: &Prepared) -> bool {
    let needs = prepared.needs();
    let lists = |kind: &AggregateKind| matches!(kind, AggregateKind::MakeList | AggregateKind::MakeSet);
    needs.distinct || needs.aggregates.iter().any(lists)
}
