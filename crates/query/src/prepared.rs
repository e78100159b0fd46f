//! A query made ready to run: compiled, its parameters in place, its shape known.

use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::OnceLock;

use orrery_budget::Held;
use orrery_model::{NumberStyle, Value, murmur3_x64_128};
use orrery_sql::{Condition, Query, SqlError};

use crate::aggregate::AggregateKind;
use crate::columns::ColumnSort;
use crate::compile::{CompiledQuery, Compiler, ITEM_SLOT, check_composite};
use crate::context::Context;
use crate::env::QueryEnv;
use crate::eval::Frame;
use crate::exec::{SortPosition, compare_keys};
use crate::meter::Meter;
use crate::node::{Grouping, Node, SourceKind};
use crate::partial::Form;
use crate::pushdown::Filter;
use crate::row::RowView;
use crate::value::Eval;

/// A compiled query. It borrows nothing and can be run any number of times.
pub struct Prepared {
    pub(crate) compiled: CompiledQuery,
    pub(crate) context: Context,
    pub(crate) shape: QueryShape,
    pub(crate) fingerprint: u128,
    /// Which form of its statement it is (see `partial`).
    pub(crate) form: Form,
    /// What `filter` found out.
    pub(crate) found: OnceLock<Filter>,
    /// What `column_sort` found out.
    pub(crate) sort: OnceLock<Option<ColumnSort>>,
    constant_bytes: usize,
    /// They are charged while the query lives.
    _constants: Option<Held>,
}

/// Constants of most queries are a few numbers and words.
const CONSTANTS_FREE_BYTES: usize = 64 * 1024;

impl std::fmt::Debug for Prepared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Prepared").field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// What a query needs beyond filtering and projecting item by item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryShape {
    /// Has a FROM clause; without it the query yields one row from no item.
    pub from: bool,
    pub select_value: bool,
    pub distinct: bool,
    pub aggregates: Vec<AggregateKind>,
    pub group_by: bool,
    pub order_by: bool,
    /// ORDER BY RANK.
    pub rank: bool,
    pub top: Option<u64>,
    pub offset: Option<u64>,
    pub limit: Option<u64>,
    /// More than one source, or one that yields several rows for an item.
    pub joins: bool,
}

/// What the rows of a query are made of, as far as it matters for what they cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    /// The item as it is.
    Whole,
    /// So many members or elements.
    Parts(usize),
    /// The value of one path.
    Path,
    /// One computed value.
    Computed,
    /// Groups or aggregates.
    Groups,
}

impl QueryShape {
    /// Whether rows can be emitted while items are still coming.
    pub fn is_streaming(&self) -> bool {
        self.aggregates.is_empty() && !self.group_by && !self.order_by && !self.rank
    }

    /// Whether a page can begin in the middle of the items. Sorting, grouping and DISTINCT need to see all
    /// items again.
    pub fn is_resumable(&self) -> bool {
        self.is_streaming() && !self.distinct
    }

    /// Whether the rows of several partitions can simply be put one after the other.
    pub fn is_concatenable(&self) -> bool {
        self.is_streaming()
            && !self.distinct
            && self.top.is_none()
            && self.offset.is_none()
            && self.limit.is_none()
    }
}

impl Prepared {
    /// Compiles a query. Parameter names include their `@`.
    pub fn new(query: &Query, parameters: &[(String, Value)], env: &QueryEnv) -> Result<Prepared, SqlError> {
        let compiler = Compiler::new(parameters, env)?;
        let meter = Rc::clone(&compiler.meter);
        let compiled = compiler.compile(query)?;
        let constant_bytes = meter.used_bytes();
        let constants = match &env.budget {
            Some(budget) if constant_bytes > CONSTANTS_FREE_BYTES => Some(budget.hold(constant_bytes)?),
            _ => None,
        };
        let block = &compiled.block;
        let shape = QueryShape {
            from: !query.from.is_empty(),
            select_value: block.value && !matches!(query.select.projection, orrery_sql::Projection::Star(_)),
            distinct: block.distinct,
            aggregates: compiled.aggregates.clone(),
            group_by: !query.group_by.is_empty(),
            order_by: !compiled.order.is_empty(),
            rank: compiled.rank.is_some(),
            top: compiled.top,
            offset: compiled.offset,
            limit: compiled.limit,
            joins: block.sources.len() > 1
                || block.sources.iter().any(|source| !matches!(source.kind, SourceKind::Value(_))),
        };
        // Other queries know where to go on, or have one row.
        let counted = shape.distinct || shape.group_by || shape.rank;
        let fingerprint = if counted { fingerprint(query, parameters) } else { 0 };
        let mut context = Context::new(env);
        if !compiled.changes {
            // A query that is kept should not keep the scripts of its container.
            context.udfs = None;
        }
        Ok(Prepared {
            compiled,
            context,
            shape,
            fingerprint,
            form: Form::Whole,
            found: OnceLock::new(),
            sort: OnceLock::new(),
            constant_bytes,
            _constants: constants,
        })
    }

    /// What its constants take, which may be much more than its text.
    pub fn constant_bytes(&self) -> usize {
        self.constant_bytes
    }

    /// Tells this query and its parameters from others, of those whose pages are counted; else 0.
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// Tells which items a sorted query shows, and in which order, from what other queries do. Made when it is asked
    /// for.
    pub fn order_fingerprint(&self) -> u128 {
        let block = &self.compiled.block;
        let filters: Vec<_> = block.sources.iter().map(|source| &source.filters).collect();
        let order: Vec<_> =
            self.compiled.order.iter().map(|key| (&key.path, &key.node, key.descending)).collect();
        hash(format!("{:?}{filters:?}{order:?}", block.guards).as_bytes())
    }

    /// Compiles the condition of a patch.
    pub fn condition(condition: &Condition, env: &QueryEnv) -> Result<Prepared, SqlError> {
        let compiled = Compiler::new(&[], env)?.compile_condition(condition)?;
        let shape = QueryShape { from: true, select_value: true, ..QueryShape::default() };
        Ok(Prepared {
            compiled,
            context: Context::new(env),
            shape,
            fingerprint: 0,
            form: Form::Whole,
            found: OnceLock::new(),
            sort: OnceLock::new(),
            constant_bytes: 0,
            _constants: None,
        })
    }

    /// The same query with other expressions.
    pub(crate) fn with(&self, compiled: CompiledQuery) -> Prepared {
        let (context, shape) = (self.context.again(), self.shape.clone());
        Prepared {
            compiled,
            context,
            shape,
            fingerprint: self.fingerprint,
            form: self.form.clone(),
            found: OnceLock::new(),
            sort: OnceLock::new(),
            constant_bytes: self.constant_bytes,
            _constants: None,
        }
    }

    /// Whether it means the same whenever it is run: it asks neither the clock nor the dice nor a script.
    pub fn is_lasting(&self) -> bool {
        !self.compiled.changes
    }

    pub fn needs(&self) -> &QueryShape {
        &self.shape
    }

    /// Whether every item takes about the same little time: no loops over its arrays, no subqueries, no scripts.
    pub fn is_steady(&self) -> bool {
        let mut steady = !self.shape.joins && !self.shape.rank;
        self.compiled.block.for_each_node(&mut |node| {
            steady &= !matches!(node, Node::Subquery(..) | Node::Udf(..));
        });
        steady
    }

    /// Whether an item passes FROM and WHERE.
    pub fn matches(&self, row: RowView<'_>, meter: &Rc<Meter>) -> Result<bool, SqlError> {
        let mut frame = Frame::new(self.compiled.slot_count, &self.context, meter);
        frame.slots[ITEM_SLOT] = Eval::Item(row);
        let mut matched = false;
        let _ = frame.bindings(&self.compiled.block, &mut |_| {
            matched = true;
            Ok(std::ops::ControlFlow::Break(()))
        })?;
        frame.release_all();
        Ok(matched)
    }

    /// Why a sort by several paths cannot be served, if no composite index of these has its order.
    pub fn composite_refusal(&self, env: &QueryEnv) -> Option<SqlError> {
        (self.compiled.block.grouping.is_none())
            .then(|| check_composite(&self.compiled.order, env.composite_indexes.as_deref()).err())
            .flatten()
    }

    /// Why clients could not merge this query over several partitions, if they could not.
    pub fn merge_refusal(&self) -> Option<SqlError> {
        self.compiled
            .composed_aggregates
            .then(|| SqlError::whole("", "Compositions of aggregates and other expressions are not allowed."))
    }

    /// Whether a select list holds aggregates without VALUE, or rows are grouped: what the gateway of
    /// the service refuses to merge.
    pub fn lists_aggregates(&self) -> bool {
        self.compiled.listed_aggregates || self.shape.group_by
    }

    /// The item paths ORDER BY sorts by, with `true` for descending; empty if it does not sort by paths.
    pub fn order_paths(&self) -> Vec<(Vec<String>, bool)> {
        self.compiled.order.iter().filter_map(|key| Some((key.path.clone()?, key.descending))).collect()
    }

    pub fn selected(&self) -> Selected {
        let block = &self.compiled.block;
        if block.grouping.is_some() {
            return Selected::Groups;
        }
        match &block.projection {
            Node::Object(members) => Selected::Parts(members.len()),
            Node::Array(elements) => Selected::Parts(elements.len()),
            Node::Slot(_) => Selected::Whole,
            Node::Member(..) | Node::Element(..) => Selected::Path,
            Node::Constant(_) => Selected::Parts(1),
            _ => Selected::Computed,
        }
    }

    /// Sources after the first.
    pub fn join_count(&self) -> usize {
        self.compiled.block.sources.len().saturating_sub(1)
    }

    /// Whether the result depends on nothing but how many items pass the filter.
    pub fn counts_items(&self) -> bool {
        let block = &self.compiled.block;
        let whole = matches!(block.sources.as_slice(), [source]
            if matches!(&source.kind, SourceKind::Value(Node::Slot(ITEM_SLOT))));
        let counts = |grouping: &Grouping| {
            grouping.keys.is_empty()
                && grouping.aggregates.iter().all(|(kind, argument, _)| {
                    *kind == AggregateKind::Count
                        && argument.as_constant().is_some_and(|value| !value.is_undefined())
                })
        };
        whole && !block.distinct && block.grouping.as_ref().is_some_and(counts)
    }

    /// Which of two places comes first in the order of this query.
    pub fn compare_places(&self, left: &SortPosition, right: &SortPosition) -> Ordering {
        let by_keys = compare_keys(&left.keys, &right.keys, &self.compiled.order);
        by_keys.then(left.number.cmp(&right.number)).then(left.rows.cmp(&right.rows))
    }

    /// How many keys ORDER BY sorts by.
    pub fn order_count(&self) -> usize {
        self.compiled.order.len()
    }

    /// Whether the query has a filter that may be evaluated more than once for an item: the answer is always the same,
    /// and no script runs.
    pub fn filters_purely(&self) -> bool {
        let block = &self.compiled.block;
        let mut filters = block.guards.iter().chain(block.sources.iter().flat_map(|source| &source.filters));
        let any = !block.guards.is_empty() || block.sources.iter().any(|source| !source.filters.is_empty());
        any && filters.all(Node::is_pure)
    }

    /// Whether the query takes all items as they come: none is filtered out, and rows are neither sorted, counted nor
    /// joined.
    pub fn is_plain_scan(&self) -> bool {
        self.shape.is_concatenable() && self.takes_every_item()
    }

    /// Whether every item that passes the filter is exactly one row.
    pub fn gives_a_row_per_item(&self) -> bool {
        let block = &self.compiled.block;
        let whole = matches!(block.sources.as_slice(), [source]
            if matches!(&source.kind, SourceKind::Value(Node::Slot(ITEM_SLOT))));
        whole
            && !block.distinct
            && block.grouping.is_none()
            && self.compiled.rank.is_none()
            && (!block.value || self.is_whole_item())
    }

    /// Whether the row is the item itself, as in `SELECT *` without joins: it can be copied out whole.
    pub fn is_whole_item(&self) -> bool {
        let block = &self.compiled.block;
        let [source] = block.sources.as_slice() else { return false };
        matches!(&source.kind, SourceKind::Value(Node::Slot(ITEM_SLOT)))
            && matches!(&block.projection, Node::Slot(slot) if *slot == source.slot)
    }
}

fn fingerprint(query: &Query, parameters: &[(String, Value)]) -> u128 {
    let mut text = query.to_string().into_bytes();
    for (name, value) in parameters {
        text.push(0);
        text.extend_from_slice(name.as_bytes());
        text.push(u8::from(!value.is_undefined()));
        value.write_json(&mut text, NumberStyle::Query);
    }
    hash(&text)
}

pub(crate) fn hash(bytes: &[u8]) -> u128 {
    let (high, low) = murmur3_x64_128(bytes);
    u128::from(high) << 64 | u128::from(low)
}
