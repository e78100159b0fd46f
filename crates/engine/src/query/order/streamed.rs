//! Streams: rows in order of creation where the span is small or few items were found, else in storage order.
//!
//! They begin anywhere and end when the page is full or out of time.

use bytes::Bytes;
use orrery_query::{Execution, Flow};

use crate::partition::Span;
use crate::query::access_path::{ItemReader, List, Listed, STEP_BYTES};
use crate::query::output::Output;
use crate::query::page::Ran;
use crate::query::{Progress, QueryPosition};

/// A page whose rows come as their items do.
pub(in crate::query) struct Streamed<'p, 'q> {
    pub reader: &'p mut ItemReader<'q>,
    pub output: &'p mut Output<'q>,
}

impl Streamed<'_, '_> {
    pub fn begin(&mut self) -> Ran<Option<QueryPosition>> {
        match self.reader.candidates()? {
            Some(candidates)
                if candidates.len() <= self.reader.query.costs.created_found_max
                    || self.reader.is_small()? =>
            {
                let list = self.reader.by_creation(candidates, 0)?;
                self.stream(list, Progress::default())
            }
            Some(candidates) => {
                let list = self.reader.by_key(&candidates, None)?;
                self.stream(list, Progress::default())
            }
            None if self.reader.is_small()? => {
                let list = self.reader.list_created(0)?;
                self.stream(list, Progress::default())
            }
            None => self.stored(None, Progress::default()),
        }
    }

    pub fn go_on_created(&mut self, from: u64, progress: Progress) -> Ran<Option<QueryPosition>> {
        let list = match self.reader.candidates()? {
            Some(candidates) => self.reader.by_creation(candidates, from)?,
            None => self.reader.list_created(from)?,
        };
        let begins_there = list.items.first().is_some_and(|first| first.number == from);
        self.stream(list, if begins_there { progress } else { Progress { swallow: 0, ..progress } })
    }

    pub fn go_on_stored(&mut self, from: &Bytes, progress: Progress) -> Ran<Option<QueryPosition>> {
        match self.reader.candidates()? {
            Some(candidates) => {
                let list = self.reader.by_key(&candidates, Some(from))?;
                let begins_there = list.items.first().is_some_and(|first| first.key == *from);
                self.stream(list, if begins_there { progress } else { Progress { swallow: 0, ..progress } })
            }
            None => self.stored(Some(from), progress),
        }
    }

    /// Goes through a list of items.
    fn stream(&mut self, mut list: List, progress: Progress) -> Ran<Option<QueryPosition>> {
        let mut execution = self.reader.bounded(Execution::resume(
            self.reader.query.prepared,
            progress.passed,
            progress.swallow,
        ));
        let last = list.items.len().saturating_sub(1);
        for at in 0..list.items.len() {
            if self.reader.allowance.is_out_of_time()? {
                return Ok(Some(list.position(&list.items[at], counted(&execution))));
            }
            let item = match list.items[at].item.take() {
                Some(item) => item,
                None => match self.reader.load(&list.items[at].key)? {
                    Some(item) => item,
                    None => continue,
                },
            };
            if self.output.push(&mut execution, &item, &mut self.reader.allowance)? == Flow::More {
                continue;
            }
            if execution.is_done() {
                return Ok(None);
            }
            if let Some(progress) = self.open_item(&execution) {
                return Ok(Some(list.position(&list.items[at], progress)));
            }
            return Ok(match list.items.get(at + 1) {
                Some(next) => Some(list.position(next, counted(&execution))),
                None if at == last && list.cut_off || self.leaves_end_open() => {
                    Some(behind(&list.items[at], &execution))
                }
                None => None,
            });
        }
        Ok(match list.items.last() {
            Some(last) if list.cut_off => Some(behind(last, &execution)),
            _ => None,
        })
    }

    /// Goes through the whole span in storage order.
    fn stored(&mut self, from: Option<&Bytes>, progress: Progress) -> Ran<Option<QueryPosition>> {
        self.reader.report.scan();
        let view = self.reader.view;
        let mut items = match from {
            Some(from) => view.items_from(self.reader.query.span, from),
            None => view.items(self.reader.query.span, None),
        };
        let mut next = items.next_item()?;
        let begins_there = next.as_ref().map(|(key, _)| key) == from;
        let swallow = if begins_there { progress.swallow } else { 0 };
        let mut execution =
            self.reader.bounded(Execution::resume(self.reader.query.prepared, progress.passed, swallow));
        while let Some((key, item)) = next {
            if self.reader.allowance.is_out_of_time()? {
                return Ok(Some(QueryPosition::Stored { from: key, progress: counted(&execution) }));
            }
            self.reader.count_loaded(item.document.len());
            self.reader.allowance.spend(item.document.len() as u64 / STEP_BYTES)?;
            let flow = self.output.push(&mut execution, &item, &mut self.reader.allowance)?;
            if flow == Flow::Stop && execution.is_done() {
                return Ok(None);
            }
            if flow == Flow::Stop
                && let Some(progress) = self.open_item(&execution)
            {
                return Ok(Some(QueryPosition::Stored { from: key, progress }));
            }
            next = items.next_item()?;
            if flow == Flow::Stop {
                let from = match next {
                    Some((next, _)) => Some(next),
                    None => self.leaves_end_open().then(|| after(&key)),
                };
                let progress = counted(&execution);
                return Ok(from.map(|from| QueryPosition::Stored { from, progress }));
            }
        }
        Ok(None)
    }

    /// Whether a page that is full goes on although nothing is left. As on the service, a plain scan of a partition
    /// does not look beyond its page, and the next one is empty; what is filtered, sorted or in one logical partition
    /// knows its end.
    fn leaves_end_open(&self) -> bool {
        let full = self.output.rows() >= self.reader.query.limits.rows;
        full && matches!(self.reader.query.span, Span::All) && self.reader.query.prepared.is_plain_scan()
    }

    /// How to begin with the same item again, if more of its rows may come.
    fn open_item(&self, execution: &Execution<'_>) -> Option<Progress> {
        let progress = execution.progress();
        let open = self.reader.query.prepared.needs().joins && progress.repeat_item;
        open.then_some(Progress { passed: progress.passed, swallow: progress.swallow })
    }
}

fn counted(execution: &Execution<'_>) -> Progress {
    Progress { passed: execution.passed(), swallow: 0 }
}

/// The least key after this one.
fn after(key: &[u8]) -> Bytes {
    [key, &[0]].concat().into()
}

fn behind(last: &Listed, execution: &Execution<'_>) -> QueryPosition {
    QueryPosition::Created { from: last.number + 1, progress: counted(execution) }
}
