//! Groups and aggregates over columns, some rows at a time.

use std::ops::Range;
use std::rc::Rc;

use orrery_sql::SqlError;

use super::column::{Column, Tag};
use super::query::ColumnQuery;
use super::test::{Expression, Test};
use crate::aggregate::Accumulator;
use crate::eval::{Evaluated, Frame, Groups};
use crate::exec::Execution;
use crate::meter::Meter;
use crate::node::{Grouping, Node};
use crate::prepared::Prepared;
use crate::value::Eval;

/// Rows that are filtered, grouped and added up before the next ones; what is known about them stays near.
const BLOCK_ROWS: usize = 1_024;
/// A string whose group is not known yet.
const UNKNOWN: u32 = u32::MAX;

/// One query over one set of columns. Rows go to an [`Execution`] of the same query, which may be given items between
/// them.
pub struct ColumnRun<'c> {
    query: &'c ColumnQuery,
    columns: Vec<&'c Column>,
    numbers: &'c [u64],
    sizes: &'c [u32],
    frame: Frame<'c>,
    lookup: Option<(&'c Column, Test<'c>)>,
    looked_up: LookedUp,
    tests: Vec<Test<'c>>,
    keys: Vec<Value<'c>>,
    inputs: Vec<Value<'c>>,
    /// The group of each string of the column that is the only key.
    groups_of_texts: Vec<u32>,
    rows: Vec<u32>,
    groups: Vec<u32>,
}

/// What looking rows up by an index would have come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookedUp {
    /// Rows in which the value is defined.
    pub entries: u64,
    /// Those that pass the check, and their sizes.
    pub candidates: u64,
    pub candidate_bytes: u64,
}

/// Where a value comes from.
enum Value<'c> {
    Column(&'c Column),
    Constant(Eval<'c>),
    Expression(Expression<'c>),
}

impl<'c> ColumnRun<'c> {
    /// `columns` are those of the query's sources, in their order; `numbers` and `sizes` those of the items.
    pub fn new(
        query: &'c ColumnQuery,
        prepared: &'c Prepared,
        columns: Vec<&'c Column>,
        numbers: &'c [u64],
        sizes: &'c [u32],
        meter: &Rc<Meter>,
    ) -> ColumnRun<'c> {
        let value = |node: &'c Node| match (query.column(node), node.as_constant()) {
            (Some(column), _) => Value::Column(columns[column]),
            (None, Some(constant)) => Value::Constant(Eval::from_constant(constant)),
            (None, None) => Value::Expression(Expression::new(node, query, &columns)),
        };
        let keys: Vec<Value<'c>> = query.keys.iter().map(value).collect();
        let groups_of_texts = match keys.as_slice() {
            [Value::Column(column)] => vec![UNKNOWN; column.text_count()],
            _ => Vec::new(),
        };
        let lookup = query.lookup.as_ref();
        ColumnRun {
            lookup: lookup.map(|(column, check)| (columns[*column], Test::new(check, query, &columns))),
            looked_up: LookedUp::default(),
            tests: query.filters.iter().map(|node| Test::new(node, query, &columns)).collect(),
            inputs: query.inputs.iter().map(value).collect(),
            frame: Frame::new(query.first_slot + columns.len(), &prepared.context, meter),
            query,
            columns,
            numbers,
            sizes,
            keys,
            groups_of_texts,
            rows: Vec::with_capacity(BLOCK_ROWS),
            groups: Vec::with_capacity(BLOCK_ROWS),
        }
    }

    /// Adds rows, none of which is deferred in any of the columns.
    pub fn push(&mut self, rows: Range<usize>, execution: &mut Execution<'_>) -> Result<(), SqlError> {
        let mut rest = rows;
        while !rest.is_empty() {
            let end = rest.end.min(rest.start + BLOCK_ROWS);
            self.block(rest.start..end, execution)?;
            rest.start = end;
        }
        Ok(())
    }

    /// The rows that pass the filter, behind those that are there already; none of them is deferred in any of the
    /// columns.
    pub fn select(&mut self, rows: Range<usize>, selected: &mut Vec<u32>) -> Result<(), SqlError> {
        let mut rest = rows;
        while !rest.is_empty() {
            let end = rest.end.min(rest.start + BLOCK_ROWS);
            self.filter(rest.start..end)?;
            selected.extend_from_slice(&self.rows);
            rest.start = end;
        }
        Ok(())
    }

    /// What the rows so far would have been looked up by; see [`ColumnQuery::look_up`].
    pub fn looked_up(&self) -> LookedUp {
        self.looked_up
    }

    /// Leaves the rows that pass.
    fn filter(&mut self, rows: Range<usize>) -> Evaluated<()> {
        self.rows.clear();
        self.rows.extend(rows.start as u32..rows.end as u32);
        if let Some((column, check)) = &mut self.lookup {
            self.rows.retain(|row| column.tag(*row as usize) != Tag::Undefined);
            self.looked_up.entries += self.rows.len() as u64;
            check.retain(&mut self.rows, self.query, &self.columns, &mut self.frame)?;
            self.looked_up.candidates += self.rows.len() as u64;
            self.looked_up.candidate_bytes +=
                self.rows.iter().map(|row| u64::from(self.sizes[*row as usize])).sum::<u64>();
        }
        for test in &mut self.tests {
            test.retain(&mut self.rows, self.query, &self.columns, &mut self.frame)?;
        }
        Ok(())
    }

    fn block(&mut self, rows: Range<usize>, execution: &mut Execution<'_>) -> Evaluated<()> {
        self.filter(rows)?;
        let passed = self.rows.len();
        execution.add_matched(passed as u64);
        let Some((grouping, groups, meter)) = execution.grouping() else { return Ok(()) };
        if passed == 0 {
            return Ok(());
        }
        self.groups.clear();
        for at in 0..passed {
            let row = self.rows[at] as usize;
            let group = self.group_of(row, grouping, groups, meter)?;
            groups.saw(group, self.numbers[row]);
            self.groups.push(group as u32);
        }
        for (at, input) in self.inputs.iter().enumerate() {
            for (row, group) in self.rows.iter().zip(&self.groups) {
                let (row, accumulator) = (*row as usize, groups.accumulator(*group as usize, at));
                match input {
                    Value::Column(column) => add(accumulator, column, row, meter)?,
                    Value::Constant(value) => drop(accumulator.add(value, meter)?),
                    Value::Expression(expression) => {
                        let value = expression.eval(row, self.query, &self.columns, &mut self.frame)?;
                        accumulator.add(&value, meter)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn group_of(
        &mut self,
        row: usize,
        grouping: &Grouping,
        groups: &mut Groups,
        meter: &Meter,
    ) -> Evaluated<usize> {
        let text = match self.keys.as_slice() {
            [] => return Ok(0),
            [Value::Column(column)] if column.tag(row) == Tag::Text => Some(column.code(row)),
            _ => None,
        };
        if let Some(code) = text
            && self.groups_of_texts[code] != UNKNOWN
        {
            return Ok(self.groups_of_texts[code] as usize);
        }
        let mut values = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            values.push(match key {
                Value::Column(column) => column.eval(row),
                Value::Constant(value) => value.clone(),
                Value::Expression(expression) => {
                    expression.eval(row, self.query, &self.columns, &mut self.frame)?
                }
            });
        }
        let group = groups.group_of(grouping, self.numbers[row], &values, meter)?;
        if let Some(code) = text {
            self.groups_of_texts[code] = group as u32;
        }
        Ok(group)
    }
}

#[inline]
fn add(accumulator: &mut Accumulator, column: &Column, row: usize, meter: &Meter) -> Evaluated<()> {
    match column.number(row) {
        Some(number) => accumulator.add_number(number, meter)?,
        None => drop(accumulator.add(&column.eval(row), meter)?),
    }
    Ok(())
}
