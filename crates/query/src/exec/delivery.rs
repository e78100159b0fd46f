//! Rows that leave an execution: counted against OFFSET, TOP and LIMIT, and told apart from those that earlier pages
//! delivered.

use orrery_model::Value;
use orrery_sql::SqlError;

use super::{Flow, Progress, Sink, SortPosition};
use crate::compile::CompiledQuery;
use crate::meter::Meter;
use crate::output::{Content, Row};

#[derive(Default)]
pub(super) struct Delivery {
    offset: u64,
    /// How many rows, in order, the query looks at; `None` for all.
    wanted: Option<u64>,
    /// Rows that passed everything but OFFSET, LIMIT and TOP.
    pub passed: u64,
    /// Rows to swallow because they were delivered before.
    pub swallow: u64,
    pub delivered: u64,
    /// How things stood when the item pushed last came, and how many of its rows were delivered.
    item_passed: u64,
    item_rows: u64,
    item_open: bool,
    scratch: Vec<u8>,
    scratch_bytes: usize,
}

/// A row with what goes along beside it.
pub(super) struct Outgoing<'r> {
    pub content: Content<'r>,
    pub place: Option<&'r SortPosition>,
    pub mark: &'r [u8],
    pub carried: &'r [Value],
}

impl Delivery {
    pub fn new(compiled: &CompiledQuery) -> Delivery {
        let offset = compiled.offset.unwrap_or(0);
        let limit = match (compiled.top, compiled.limit) {
            (Some(top), Some(limit)) => Some(top.min(limit)),
            (count, None) | (None, count) => count,
        };
        Delivery { offset, wanted: limit.map(|limit| offset.saturating_add(limit)), ..Delivery::default() }
    }

    pub fn wanted(&self) -> Option<u64> {
        self.wanted
    }

    /// Whether all rows that the query looks at have passed.
    pub fn is_complete(&self) -> bool {
        self.wanted.is_some_and(|wanted| self.passed >= wanted)
    }

    pub fn begin_item(&mut self) {
        (self.item_passed, self.item_rows, self.item_open) = (self.passed, 0, true);
    }

    /// `Stop` where more rows of the item may come.
    pub fn end_item(&mut self, flow: Flow) {
        self.item_open = flow == Flow::Stop;
    }

    /// Where a query stands that goes on item by item.
    pub fn progress(&self) -> Progress {
        if self.item_open {
            return Progress { passed: self.item_passed, swallow: self.item_rows, repeat_item: true };
        }
        Progress { passed: self.passed, swallow: 0, repeat_item: false }
    }

    pub fn emit(&mut self, row: Outgoing<'_>, meter: &Meter, sink: &mut Sink<'_>) -> Result<Flow, SqlError> {
        if self.is_complete() {
            return Ok(Flow::Stop);
        }
        let Outgoing { content, place, mark, carried } = row;
        self.passed += 1;
        if self.passed <= self.offset {
            self.check(&content, meter)?;
            return Ok(Flow::More);
        }
        self.item_rows += 1;
        let mut flow = Flow::More;
        if self.swallow > 0 {
            self.check(&content, meter)?;
            self.swallow -= 1;
        } else {
            self.delivered += 1;
            flow = sink(Row { content, place, mark, carried })?;
        }
        // The last row that counts is known to be the last.
        Ok(if self.is_complete() { Flow::Stop } else { flow })
    }

    /// A row that cannot be written is an error of the query, also where nobody gets to see it.
    fn check(&mut self, content: &Content<'_>, meter: &Meter) -> Result<(), SqlError> {
        if let Content::Value(row, format) = content {
            self.scratch.clear();
            format.write(row, &mut self.scratch)?;
            if self.scratch.capacity() > self.scratch_bytes {
                meter.take(self.scratch.capacity() - self.scratch_bytes)?;
                self.scratch_bytes = self.scratch.capacity();
            }
        }
        Ok(())
    }
}
