//! `$sort`: all rows, or the first of them where a `$limit` follows.

use std::cmp::Ordering;

use super::memory::StageMemory;
use super::rows::{Blocking, Row, value_bytes};
use super::specification::{self, Parsing};
use super::{BoxedRows, Env, Hint, ListRows, Stage};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::sort::Sort;
use crate::value::Bson;

#[derive(Clone)]
pub struct SortStage {
    sort: Sort,
    /// Rows that are wanted.
    limit: Option<u64>,
}

pub fn parse_sort(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let specification =
        specification::document(argument, 15_973, "the $sort key specification must be an object")?;
    if specification.is_empty() {
        return Err(Error::new(15_976, "$sort stage must have at least one sort key"));
    }
    Ok(Box::new(SortStage { sort: Sort::parse(specification)?, limit: None }))
}

/// A row and what it sorts by. Rows of equal keys stay in the order in which they came.
struct Keyed {
    key: Vec<Bson>,
    number: u64,
    row: Row,
}

impl Keyed {
    fn size_bytes(&self) -> usize {
        self.row.size_bytes() + self.key.iter().map(value_bytes).sum::<usize>()
    }
}

fn in_order(sort: &Sort, a: &Keyed, b: &Keyed, context: &Context) -> Ordering {
    sort.compare_keys(&a.key, &b.key, context).then(a.number.cmp(&b.number))
}

/// Sorts rows. Of a limit only so many are kept: twice as many are gathered before the worse half goes.
pub fn sorted(
    mut input: BoxedRows,
    sort: &Sort,
    limit: Option<u64>,
    stage: &'static str,
    context: &Context,
) -> Result<Vec<Row>> {
    let mut memory = StageMemory::new(stage, &context.budget)?;
    let mut rows: Vec<Keyed> = Vec::new();
    let keep = limit.and_then(|limit| usize::try_from(limit).ok());
    let mut number = 0;
    while let Some(row) = input.next()? {
        context.budget.step(1)?;
        let key = sort.key_of(row.value()?, context);
        let keyed = Keyed { key, number, row };
        number += 1;
        memory.take(keyed.size_bytes())?;
        rows.push(keyed);
        if let Some(keep) = keep
            && rows.len() >= keep.saturating_mul(2).max(64)
        {
            rows.select_nth_unstable_by(keep, |a, b| in_order(sort, a, b, context));
            for dropped in rows.drain(keep..) {
                memory.give_back(dropped.size_bytes());
            }
        }
    }
    rows.sort_unstable_by(|a, b| in_order(sort, a, b, context));
    rows.truncate(keep.unwrap_or(usize::MAX));
    Ok(rows.into_iter().map(|keyed| keyed.row).collect())
}

impl Stage for SortStage {
    fn attach(&self, input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (stage, context) = (self.clone(), env.context.clone());
        Ok(Blocking::boxed(move || {
            Ok(ListRows::boxed(sorted(input, &stage.sort, stage.limit, "$sort", &context)?))
        }))
    }

    fn hint(&self) -> Hint<'_> {
        Hint::Sort(&self.sort)
    }

    fn limit_to(&mut self, rows: u64) {
        self.limit = Some(rows);
    }
}
