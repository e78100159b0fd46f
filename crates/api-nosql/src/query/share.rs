//! One page of a query on one share: a physical partition, or the part of it that the query is about.
//!
//! There is no index yet: every item of the share is read and the query's own filter decides. Streaming queries stop
//! when their page is full and go on exactly there: the chunk of items in which the page filled is read again up to
//! that item, and the position behind it is the continuation. Queries that must see everything first are run again for
//! each page and skip what was delivered, within the limits of the query crate.

use orrery_engine::{FeedContinuation, PageRequest, Position, Scope};
use orrery_model::PartitionKey;
use orrery_query::merge::{Figures, Rows, SharePage};
use orrery_query::{Execution, Flow, Prepared};

use super::position::SharePosition;
use super::{request, surroundings};
use crate::errors::{ApiError, Plane, Result};
use crate::paging::PAGE_BYTES_MAX;
use crate::service::Target;
use crate::{continuation, items};

/// Items that are read at a time.
const CHUNK_ITEMS: usize = 1_000;
/// A streaming page ends after this many items even if nothing matched; the client comes back for the rest.
const SCANNED_ITEMS_MAX: usize = 100_000;

/// A page, and where the share stood when it was read.
pub type Answered = Result<(SharePage, Option<Position>)>;

/// What a page of a share is made from.
pub struct ShareQuery<'a> {
    pub target: &'a Target,
    pub scope: &'a Scope,
    pub session: &'a [(u32, u64)],
    pub prepared: &'a Prepared,
    /// Most rows of the page.
    pub rows: usize,
}

impl ShareQuery<'_> {
    /// The page that begins at `from`.
    pub fn page(&self, from: Option<&[u8]>) -> Answered {
        let start = match from {
            None => None,
            Some(bytes) => Some(SharePosition::decode(bytes).ok_or_else(continuation::invalid)?),
        };
        let mut run = Run { query: self, page: Rows::default(), at: None, figures: Figures::default() };
        let next = run.page(start)?;
        run.figures.charge_ru = page_charge(run.page.len());
        Ok((SharePage { rows: run.page, next: next.map(|next| next.encode()), figures: run.figures }, run.at))
    }
}

/// One page in the making.
struct Run<'a> {
    query: &'a ShareQuery<'a>,
    page: Rows,
    at: Option<Position>,
    figures: Figures,
}

fn is_full(page: &Rows, size: usize) -> bool {
    page.len() >= size || page.size_bytes() >= PAGE_BYTES_MAX
}

impl Run<'_> {
    fn page(&mut self, start: Option<SharePosition>) -> Result<Option<SharePosition>> {
        let streams = self.query.prepared.needs().is_resumable();
        match (streams, start) {
            (true, None) => self.stream(None, 0, 0),
            (true, Some(SharePosition::Stream { feed, passed, swallow })) => {
                self.stream(feed, passed, swallow)
            }
            (false, None) => self.whole(0),
            (false, Some(SharePosition::Whole { delivered })) => self.whole(delivered),
            // The continuation belongs to a query of another kind.
            _ => Err(continuation::invalid()),
        }
    }

    /// Emits rows while items come, and stops when the page is full.
    fn stream(
        &mut self,
        mut feed: Option<FeedContinuation>,
        passed: u64,
        swallow: u64,
    ) -> Result<Option<SharePosition>> {
        let prepared = self.query.prepared;
        let size = self.query.rows;
        let mut execution = Execution::resume(prepared, passed, swallow);
        // Rows that were swallowed belong to the first item of the page, and to no other.
        let mut swallowed = swallow;
        let mut scanned = 0;
        if !prepared.needs().from {
            self.read(&feed, 1)?;
            self.finish(&mut execution)?;
            return Ok(None);
        }
        loop {
            let chunk = self.read(&feed, CHUNK_ITEMS)?;
            scanned += chunk.items.len();
            for (n, item) in chunk.items.iter().enumerate() {
                let before = execution.passed();
                let delivered = self.page.len();
                let page = &mut self.page;
                let flow = surroundings::with_row(&self.query.target.rid, item, |row| {
                    execution.push(row, &mut |json| {
                        page.push(json);
                        if is_full(page, size) { Flow::Stop } else { Flow::More }
                    })
                });
                let flow = flow.map_err(|error| self.failed(&error))?;
                if flow == Flow::More {
                    swallowed = 0;
                    continue;
                }
                if !is_full(&self.page, size) {
                    // The query has all the rows it wanted.
                    return Ok(None);
                }
                if prepared.needs().joins {
                    // The item may have more rows: begin with it again and swallow those that were delivered.
                    let rows = (self.page.len() - delivered) as u64 + swallowed;
                    let feed = self.position_after(&feed, &chunk.items[..n])?;
                    return Ok(Some(SharePosition::Stream { feed, passed: before, swallow: rows }));
                }
                if n + 1 == chunk.items.len() && chunk.continuation.is_none() {
                    return Ok(None);
                }
                let feed = self.position_after(&feed, &chunk.items[..=n])?;
                return Ok(Some(SharePosition::Stream { feed, passed: execution.passed(), swallow: 0 }));
            }
            match chunk.continuation {
                None => {
                    self.finish(&mut execution)?;
                    return Ok(None);
                }
                next => feed = next,
            }
            if scanned >= SCANNED_ITEMS_MAX {
                return Ok(Some(SharePosition::Stream { feed, passed: execution.passed(), swallow: 0 }));
            }
        }
    }

    /// The position behind the last of `items`, which were read from `feed` on. Reading them again asks the feed for it;
    /// items that have come or gone in between move it by as much, never past an item that was not read.
    fn position_after(
        &mut self,
        feed: &Option<FeedContinuation>,
        items: &[orrery_engine::Item],
    ) -> Result<Option<FeedContinuation>> {
        let Some(last) = items.last() else { return Ok(feed.clone()) };
        let mut wanted = items.len();
        while wanted > 0 {
            let again = self.read_quietly(feed, wanted)?;
            match again.items.iter().position(|item| item.number == last.number) {
                Some(at) if at + 1 == again.items.len() => {
                    return Ok(again.continuation.or_else(|| feed.clone()));
                }
                Some(at) => wanted = at + 1,
                // Gone, or behind others that are new: end before it, so that nothing is passed over.
                None if again.items.len() < wanted => return Ok(again.continuation.or_else(|| feed.clone())),
                None => wanted -= 1,
            }
        }
        Ok(feed.clone())
    }

    /// Runs the whole query and keeps the rows of this page.
    fn whole(&mut self, delivered: u64) -> Result<Option<SharePosition>> {
        let size = self.query.rows;
        let mut execution = Execution::resume(self.query.prepared, 0, delivered);
        let mut feed = None;
        let mut overflow = false;
        loop {
            let chunk = self.read(&feed, CHUNK_ITEMS)?;
            let mut stopped = false;
            for item in &chunk.items {
                let page = &mut self.page;
                let flow = surroundings::with_row(&self.query.target.rid, item, |row| {
                    execution.push(row, &mut |json| take(page, size, &mut overflow, json))
                });
                if flow.map_err(|error| self.failed(&error))? == Flow::Stop {
                    stopped = true;
                    break;
                }
            }
            match chunk.continuation {
                Some(next) if !stopped => feed = Some(next),
                _ => break,
            }
        }
        let page = &mut self.page;
        let finished = execution.finish(&mut |json| take(page, size, &mut overflow, json));
        finished.map_err(|error| self.failed(&error))?;
        let delivered = delivered + self.page.len() as u64;
        Ok(overflow.then_some(SharePosition::Whole { delivered }))
    }

    fn finish(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let page = &mut self.page;
        let finished = execution.finish(&mut |json| {
            page.push(json);
            Flow::More
        });
        finished.map(|_| ()).map_err(|error| self.failed(&error))
    }

    fn read(&mut self, feed: &Option<FeedContinuation>, items: usize) -> Result<orrery_engine::FeedPage> {
        let page = self.read_quietly(feed, items)?;
        self.at.get_or_insert(page.at);
        self.figures.loaded_items += page.items.len() as u64;
        self.figures.loaded_bytes += page.items.iter().map(|item| item.document.len() as u64).sum::<u64>();
        Ok(page)
    }

    fn read_quietly(&self, feed: &Option<FeedContinuation>, items: usize) -> Result<orrery_engine::FeedPage> {
        let request = PageRequest {
            max_items: items,
            max_bytes: PAGE_BYTES_MAX,
            continuation: feed.clone(),
            session: self.query.session.to_vec(),
        };
        let target = self.query.target;
        target.container.read_feed(self.query.scope, &request).map_err(|error| {
            ApiError::from_engine(error, Plane::Items).at(items::place(target, &PartitionKey::default()))
        })
    }

    fn failed(&self, error: &orrery_sql::SqlError) -> ApiError {
        let at = items::at(self.at.unwrap_or_default());
        let mut failed = request::failed(error, true).charge(page_charge(self.page.len())).at(at);
        failed.headers = items::usage_headers(self.query.target, at).into();
        failed
    }
}

fn take(page: &mut Rows, size: usize, overflow: &mut bool, json: &[u8]) -> Flow {
    if is_full(page, size) {
        *overflow = true;
        return Flow::Stop;
    }
    page.push(json);
    Flow::More
}

/// Recorded charges of pages by their rows, with straight lines between them.
const PAGE_CHARGES: [(f64, f64); 4] = [(0.0, 2.2), (1.0, 2.26), (1_000.0, 17.16), (2_500.0, 34.72)];

fn page_charge(rows: usize) -> f64 {
    let rows = rows as f64;
    let above = PAGE_CHARGES.iter().position(|(at, _)| *at >= rows).unwrap_or(PAGE_CHARGES.len() - 1).max(1);
    let ((low, from), (high, to)) = (PAGE_CHARGES[above - 1], PAGE_CHARGES[above]);
    from + (to - from) * (rows - low) / (high - low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_costs_by_its_rows() {
        assert!((page_charge(0) - 2.2).abs() < 1e-9);
        assert!((page_charge(1_000) - 17.16).abs() < 1e-9);
        assert!(page_charge(5_000) > page_charge(2_500));
    }
}
