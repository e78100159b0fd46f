//! The partial form of a query: what one share of a container computes when several are merged.
//!
//! It is the compiled query itself with a few things changed, so a statement is compiled once however often its
//! shares are asked. Counts that only whoever sees all rows can apply are taken out, and rows come with what a merge
//! puts them together by:
//!
//! | query | its partial form |
//! |---|---|
//! | `OFFSET 2 LIMIT 3` | the first 5 rows |
//! | `ORDER BY` | the same; rows tell where they stand |
//! | aggregates, `GROUP BY` | groups as they are, not projected, sorted or counted |
//! | `DISTINCT` | rows with the bytes by which equal ones are found |

use orrery_model::Value;
use orrery_sql::{Query, SqlError};

use crate::compile::CompiledQuery;
use crate::env::QueryEnv;
use crate::merge::{component_rows, word_counts};
use crate::plan::distinct_count;
use crate::prepared::Prepared;

/// Which form of its statement a compiled query is, as data: whoever has the statement can compile the same again, on
/// whichever node.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Form {
    /// The query itself.
    #[default]
    Whole,
    /// The first rows, as many as can matter to the whole result.
    FirstRows,
    /// All sorted rows; `marked` with what tells equal ones apart.
    SortedRows { marked: bool },
    /// Distinct rows with their marks.
    MarkedRows,
    /// The same of the rows that the query counts.
    CountedRows,
    /// Groups as they are.
    GroupParts,
    /// What the scores of texts depend on.
    WordCounts,
    /// The best rows by one component of a rank.
    RankedRows(Box<RankedRows>),
}

/// The best rows by one component of a rank, and what its scores depend on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankedRows {
    pub component: usize,
    /// How many are wanted.
    pub rows: Option<u64>,
    /// Counts over all items: of them, and for each component of its words and of the items in which each term stands.
    pub items: Value,
    pub texts: Vec<(Value, Value)>,
}

impl Prepared {
    /// Compiles a form of a query.
    pub fn in_form(
        query: &Query,
        parameters: &[(String, Value)],
        env: &QueryEnv,
        form: &Form,
    ) -> Result<Prepared, SqlError> {
        let other = || SqlError::whole("", "The query has no such form.");
        let query = match form {
            Form::CountedRows => distinct_count(query).ok_or_else(other)?.1,
            _ => query,
        };
        let prepared = Prepared::new(query, parameters, env)?;
        Ok(match form {
            Form::Whole => prepared,
            Form::FirstRows => prepared.first_rows(),
            Form::SortedRows { marked } => prepared.all_sorted_rows(*marked),
            Form::MarkedRows => prepared.marked_rows(),
            Form::CountedRows => prepared.counted_rows(),
            Form::GroupParts => prepared.group_parts(),
            Form::WordCounts => word_counts(&prepared).ok_or_else(other)?,
            Form::RankedRows(rows) => component_rows(&prepared, rows)?,
        })
    }

    /// Which form of its statement this is.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// The clock of the query, and a seed of its own for whoever runs it elsewhere: the next of its random numbers.
    pub fn now_and_seed(&self) -> (i64, u64) {
        (self.context.now_ticks, self.context.next_random())
    }

    /// Whether this is a partial form: its rows are for a merge and not for a client.
    pub fn is_partial(&self) -> bool {
        !matches!(self.form, Form::Whole)
    }

    /// A form of the query, with some things changed. Nothing that is kept of its results belongs to the whole query.
    pub(crate) fn partial(&self, form: Form, change: impl FnOnce(&mut CompiledQuery)) -> Prepared {
        let mut compiled = self.compiled.clone();
        change(&mut compiled);
        let mut partial = self.with(compiled);
        let compiled = &partial.compiled;
        partial.shape.distinct = compiled.block.distinct;
        (partial.shape.top, partial.shape.offset, partial.shape.limit) =
            (compiled.top, compiled.offset, compiled.limit);
        partial.shape.order_by = !compiled.order.is_empty();
        partial.shape.rank = compiled.rank.is_some();
        partial.shape.aggregates.clone_from(&compiled.aggregates);
        partial.fingerprint = 0;
        partial.form = form;
        partial
    }

    /// The first rows, as many as can matter to the whole result.
    pub(crate) fn first_rows(&self) -> Prepared {
        self.partial(Form::FirstRows, |compiled| {
            if let (Some(offset), Some(limit)) = (compiled.offset, compiled.limit) {
                (compiled.offset, compiled.limit) = (None, Some(offset.saturating_add(limit)));
            }
        })
    }

    /// All sorted rows, equal ones among them; `marked` with what tells those apart.
    pub(crate) fn all_sorted_rows(&self, marked: bool) -> Prepared {
        self.partial(Form::SortedRows { marked }, |compiled| {
            compiled.block.distinct = false;
            compiled.marked = marked;
            (compiled.top, compiled.offset, compiled.limit) = (None, None, None);
        })
    }

    /// The distinct rows of a share, however many are wanted of all.
    pub(crate) fn marked_rows(&self) -> Prepared {
        self.partial(Form::MarkedRows, mark_all)
    }

    /// The same, of the rows that another query counts.
    pub(crate) fn counted_rows(&self) -> Prepared {
        self.partial(Form::CountedRows, mark_all)
    }

    /// Groups as they are.
    pub(crate) fn group_parts(&self) -> Prepared {
        self.partial(Form::GroupParts, |compiled| {
            compiled.groups_apart = true;
            compiled.block.distinct = false;
            compiled.order.clear();
            (compiled.top, compiled.offset, compiled.limit) = (None, None, None);
        })
    }
}

fn mark_all(compiled: &mut CompiledQuery) {
    compiled.marked = true;
    (compiled.top, compiled.offset, compiled.limit) = (None, None, None);
}
