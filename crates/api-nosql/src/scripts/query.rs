//! Queries of a script: the query engine over its logical partition, with its own changes in it.
//!
//! This is the one place where a script's query meets its items: today every item of the logical partition is read.

use std::rc::Rc;

use orrery_budget::Budget;
use orrery_engine::{Draft, Error, Item};
use orrery_query::{Execution, Flow, Meter, Prepared, QueryEnv, Row};
use orrery_script::{Done, OperationError, Options};
use orrery_sql::SqlError;

use super::collection::{PAGE_ITEMS, refused};
use crate::errors::{ApiError, CONTINUATION_INVALID, errors_json};
use crate::paging::PAGE_BYTES_MAX;
use crate::query::query_env::with_row;
use crate::query::request::{self, parse_body};
use crate::rid::ContainerRid;

/// Where a query goes on.
#[derive(Debug, PartialEq, Eq)]
enum Position {
    /// After the item with this number, when `passed` rows have counted against limits; of the next item this many rows
    /// were given already.
    Stream { after: Option<u64>, passed: u64, swallow: u64 },
    /// Run again, leaving out the rows that were given.
    Whole { given: u64 },
}

impl Position {
    fn token(&self) -> String {
        match self {
            Position::Stream { after, passed, swallow } => {
                format!("s.{}.{passed}.{swallow}", after.map_or_else(String::new, |after| after.to_string()))
            }
            Position::Whole { given } => format!("w.{given}"),
        }
    }

    fn parse(token: &str) -> Option<Position> {
        match token.split('.').collect::<Vec<_>>().as_slice() {
            ["s", after, passed, swallow] => Some(Position::Stream {
                after: if after.is_empty() { None } else { Some(after.parse().ok()?) },
                passed: passed.parse().ok()?,
                swallow: swallow.parse().ok()?,
            }),
            ["w", given] => Some(Position::Whole { given: given.parse().ok()? }),
            _ => None,
        }
    }
}

/// The rows of a page.
struct Page {
    out: Vec<u8>,
    count: usize,
    most: usize,
    /// What was read for it.
    items: usize,
    item_bytes: usize,
}

impl Page {
    fn push(&mut self, row: &Row<'_>) -> Result<(), SqlError> {
        if self.count > 0 {
            self.out.push(b',');
        }
        row.write(&mut self.out)?;
        self.count += 1;
        Ok(())
    }

    fn read(&mut self, item: &Item) {
        self.items += 1;
        self.item_bytes += item.document.len();
    }

    fn is_full(&self) -> bool {
        self.count >= self.most || self.out.len() >= PAGE_BYTES_MAX
    }
}

pub fn page(
    draft: &mut Draft<'_>,
    rid: &ContainerRid,
    env: &QueryEnv,
    budget: &Budget,
    query: &str,
    options: &Options,
) -> Result<Done, OperationError> {
    let query = parse_body(query.as_bytes()).map_err(|error| answered(&error))?;
    let parsed = orrery_sql::parse_query(&query.text).map_err(|error| wrong(&error))?;
    let prepared = Prepared::new(&parsed, &query.parameters, env).map_err(|error| wrong(&error))?;
    let start = match options.continuation.as_deref() {
        None => None,
        Some(token) => Some(Position::parse(token).ok_or_else(invalid_continuation)?),
    };
    let mut page = Page {
        out: vec![b'['],
        count: 0,
        most: options.page_size.unwrap_or(PAGE_ITEMS),
        items: 0,
        item_bytes: 0,
    };
    let meter = Rc::new(Meter::new(budget));
    let streams = prepared.needs().is_streaming() && !prepared.needs().distinct;
    let next = match (streams, start) {
        (true, None) => stream(draft, rid, &prepared, &meter, &mut page, None, 0, 0),
        (true, Some(Position::Stream { after, passed, swallow })) => {
            stream(draft, rid, &prepared, &meter, &mut page, after, passed, swallow)
        }
        (false, None) => whole(draft, rid, &prepared, &meter, &mut page, 0),
        (false, Some(Position::Whole { given })) => whole(draft, rid, &prepared, &meter, &mut page, given),
        // The continuation belongs to a query of another kind.
        _ => return Err(invalid_continuation()),
    }?;
    draft.charge_query(page.count, page.items, page.item_bytes);
    page.out.push(b']');
    Ok(Done {
        resource: String::from_utf8(page.out).ok(),
        continuation: next.map(|position| position.token()),
        not_modified: false,
    })
}

/// Emits rows while items come, and stops when the page is full.
#[allow(clippy::too_many_arguments)]
fn stream(
    draft: &Draft<'_>,
    rid: &ContainerRid,
    prepared: &Prepared,
    meter: &Rc<Meter>,
    page: &mut Page,
    after: Option<u64>,
    passed: u64,
    swallow: u64,
) -> Result<Option<Position>, OperationError> {
    let mut execution = Execution::resume(prepared, passed, swallow).within(meter);
    let (mut last, mut swallowed) = (after, swallow);
    let (mut next, mut ended, mut problem) = (None, false, None);
    if prepared.needs().from {
        let scanned = draft.scan(after, &mut |item: &Item| {
            if page.is_full() {
                next = Some(Position::Stream { after: last, passed: execution.passed(), swallow: 0 });
                return Ok(false);
            }
            page.read(item);
            let (before, given) = (execution.passed(), page.count);
            let pushed = with_row(rid, item, |row| {
                execution.push(row, &mut |row| {
                    page.push(&row)?;
                    Ok(if page.is_full() { Flow::Stop } else { Flow::More })
                })
            });
            match pushed {
                Err(error) => {
                    problem = Some(error);
                    return Ok(false);
                }
                Ok(Flow::Stop) if !page.is_full() => {
                    // The query has all the rows it wanted.
                    ended = true;
                    return Ok(false);
                }
                Ok(Flow::Stop) if prepared.needs().joins => {
                    // The item may have more rows: begin with it again and leave out those that were given.
                    let rows = (page.count - given) as u64 + swallowed;
                    next = Some(Position::Stream { after: last, passed: before, swallow: rows });
                    return Ok(false);
                }
                Ok(_) => {}
            }
            swallowed = 0;
            last = Some(item.number);
            Ok(true)
        });
        scanned.map_err(|error: Error| refused(&error))?;
    }
    if let Some(error) = problem {
        return Err(wrong(&error));
    }
    if next.is_none() && !ended {
        let finished = execution.finish(&mut |row| {
            page.push(&row)?;
            Ok(Flow::More)
        });
        finished.map_err(|error| wrong(&error))?;
    }
    Ok(next)
}

/// Runs the whole query and keeps the rows of this page.
fn whole(
    draft: &Draft<'_>,
    rid: &ContainerRid,
    prepared: &Prepared,
    meter: &Rc<Meter>,
    page: &mut Page,
    given: u64,
) -> Result<Option<Position>, OperationError> {
    let mut execution = Execution::resume(prepared, 0, given).within(meter);
    let (mut overflow, mut problem) = (false, None);
    let mut take = |page: &mut Page, row: &Row<'_>| {
        if page.count > 0 && page.is_full() {
            overflow = true;
            return Ok(Flow::Stop);
        }
        page.push(row)?;
        Ok(Flow::More)
    };
    let scanned = draft.scan(None, &mut |item: &Item| {
        page.read(item);
        let pushed = with_row(rid, item, |row| execution.push(row, &mut |row| take(page, &row)));
        match pushed {
            Ok(flow) => Ok(flow == Flow::More),
            Err(error) => {
                problem = Some(error);
                Ok(false)
            }
        }
    });
    scanned.map_err(|error| refused(&error))?;
    if let Some(error) = problem {
        return Err(wrong(&error));
    }
    execution.finish(&mut |row| take(page, &row)).map_err(|error| wrong(&error))?;
    let given = given + page.count as u64;
    Ok(overflow.then_some(Position::Whole { given }))
}

pub fn invalid_continuation() -> OperationError {
    OperationError { status: 400, message: errors_json(CONTINUATION_INVALID) }
}

fn wrong(error: &SqlError) -> OperationError {
    answered(&request::failed(error, false))
}

fn answered(error: &ApiError) -> OperationError {
    OperationError { status: error.status.as_u16(), message: error.message.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_read_back_and_others_are_refused() {
        for position in [
            Position::Stream { after: None, passed: 3, swallow: 1 },
            Position::Stream { after: Some(u64::MAX), passed: 0, swallow: 0 },
            Position::Whole { given: 70 },
        ] {
            assert_eq!(Position::parse(&position.token()), Some(position));
        }
        for token in ["", "s", "w.", "w.x", "s.1.2", "x.1", "s.1.2.3.4"] {
            assert_eq!(Position::parse(token), None, "{token}");
        }
    }
}
