//! How a query is taken apart, so that each partition computes its share and the client puts the shares together.
//!
//! | query | what a partition is asked | what the client does |
//! |---|---|---|
//! | `ORDER BY c.a` | rows as `{_rid, orderByItems, payload}`, sorted | merges by `orderByItems` |
//! | `VALUE AVG(c.a)` | `[{"item": {"sum", "count"}}]` | adds up sums and counts |
//! | `GROUP BY c.a` | `{groupByItems, payload}`, aggregates as above | merges equal groups |
//! | `DISTINCT` | the same query | drops duplicates |
//! | `OFFSET 2 LIMIT 3` | `OFFSET 0 LIMIT 5` | skips two |
//! | `COUNT(1) FROM (SELECT DISTINCT …)` | the distinct rows | drops duplicates, counts |
//!
//! A count that applies after duplicates are dropped or groups are merged must not reach the partitions, so TOP and
//! OFFSET LIMIT leave the text of such queries.

use orrery_sql::{
    Collection, Count, Direction, Expr, ExprKind, Literal, LogicalOp, OffsetLimit, Projection, Query, Select,
    SelectItem, Source, Span,
};

use super::text::{self, array, call, expr, name, object, selected, verbatim};
use crate::aggregate::AggregateKind;
use crate::compile::item_name;
use crate::prepared::Prepared;

/// Stands in rewritten text where the client puts the condition that resumes a sorted query, or `true`.
pub(super) const FILTER_PLACEHOLDER: &str = "({documentdb-formattableorderbyquery-filter})";
/// The alias under which the item itself is added to FROM when no source of the query is the item. Further
/// underscores are put in front if the query uses it already.
const ITEM_ALIAS: &str = "_item";
/// The alias of a first source that has none.
const SOURCE_ALIAS: &str = "_source";

/// How the client drops duplicates: next to each other, or anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distinct {
    #[default]
    None,
    Ordered,
    Unordered,
}

/// What a client needs to know to merge the answers of the partitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryInfo {
    pub distinct: Distinct,
    pub top: Option<u64>,
    pub offset: Option<u64>,
    pub limit: Option<u64>,
    pub order_by: Vec<Direction>,
    pub order_by_expressions: Vec<String>,
    pub group_by_expressions: Vec<String>,
    /// The aggregate of `SELECT VALUE`.
    pub aggregates: Vec<AggregateKind>,
    /// Names of a select list with the aggregate each of them is.
    pub aliases: Vec<(String, Option<AggregateKind>)>,
    /// What to send instead of the query; empty if it is sent as it is.
    pub rewritten: String,
    pub select_value: bool,
    /// The name of a count of distinct rows; empty for `SELECT VALUE`.
    pub distinct_count: Option<String>,
    /// The partitions may hand out rows in another order than they rank them.
    pub non_streaming_order_by: bool,
}

impl QueryInfo {
    /// Whether the rows of the partitions only have to be put one after the other.
    pub fn is_trivial(&self) -> bool {
        let QueryInfo { distinct, top, offset, limit, rewritten, distinct_count, .. } = self;
        *distinct == Distinct::None
            && (top.is_none() || *top == Some(0))
            && offset.is_none()
            && limit.is_none()
            && rewritten.is_empty()
            && distinct_count.is_none()
    }
}

/// The plan of a query without a rank clause. `pinned`: its filter leaves it one partition key at most.
pub(super) fn query_info(query: &Query, prepared: &Prepared, pinned: bool) -> QueryInfo {
    let shape = prepared.needs();
    let mut info = QueryInfo {
        top: shape.top,
        offset: shape.offset,
        limit: shape.limit,
        select_value: shape.select_value,
        ..QueryInfo::default()
    };
    if let Some((alias, inner)) = distinct_count(query) {
        info.distinct = Distinct::Unordered;
        info.distinct_count = Some(alias);
        info.rewritten = text::print(inner);
        return info;
    }
    if shape.distinct {
        info.distinct = if sorts_what_it_selects(query) { Distinct::Ordered } else { Distinct::Unordered };
    }
    // Without FROM there is one row, wherever it is computed.
    let merged = !query.from.is_empty() && (shape.group_by || !shape.aggregates.is_empty());
    if merged {
        info.rewritten = text::print(&merged_rows(query, &mut info));
    } else if shape.order_by {
        info.rewritten = text::print(&sorted_rows(query, prepared, &mut info));
    } else if info.distinct != Distinct::None {
        if info.top.is_some() || info.limit.is_some() {
            let select = Select { top: None, ..query.select.clone() };
            info.rewritten = text::print(&Query { select, offset_limit: None, ..query.clone() });
        }
    } else if info.limit.is_some() {
        if pinned {
            (info.offset, info.limit) = (None, None);
        } else {
            let offset_limit = first_rows(&info);
            info.rewritten = text::print(&Query { offset_limit, ..query.clone() });
        }
    }
    info
}

/// `OFFSET 0 LIMIT o+l`: which of these rows are the first `o` only the client can know.
fn first_rows(info: &QueryInfo) -> Option<OffsetLimit> {
    let (offset, limit) = (info.offset?, info.limit?);
    Some(OffsetLimit {
        offset: literal_count(0),
        limit: literal_count(offset.saturating_add(limit)),
        span: Span::default(),
    })
}

pub(super) fn literal_count(value: u64) -> Count {
    Count::Literal(Some(value), Span::default())
}

// ---- DISTINCT

/// `DISTINCT VALUE c.a … ORDER BY c.a`: duplicates come one after the other.
pub(crate) fn sorts_what_it_selects(query: &Query) -> bool {
    let (Projection::Value(value, _), Some(order_by)) = (&query.select.projection, &query.order_by) else {
        return false;
    };
    matches!(order_by.items.as_slice(), [item] if item.expr == *value) && !order_by.rank
}

/// `SELECT COUNT(1) FROM (SELECT DISTINCT …)`: the name of the count and the query that is counted.
pub(crate) fn distinct_count(query: &Query) -> Option<(String, &Query)> {
    let select = &query.select;
    let [Source { collection: Collection::Subquery(inner), iterate: false, .. }] = query.from.as_slice()
    else {
        return None;
    };
    let plain = !select.distinct
        && select.top.is_none()
        && query.filter.is_none()
        && query.group_by.is_empty()
        && query.order_by.is_none()
        && query.offset_limit.is_none();
    let counted = inner.select.distinct && inner.group_by.is_empty() && !inner.from.is_empty();
    if !plain || !counted {
        return None;
    }
    let (value, alias) = match &select.projection {
        Projection::Value(value, _) => (value, String::new()),
        Projection::List(items) => match items.as_slice() {
            [item] => (&item.expr, item.alias.as_ref().map_or("$1".to_string(), |alias| alias.text.clone())),
            _ => return None,
        },
        Projection::Star(_) => return None,
    };
    let aggregate = Aggregate::of(value)?;
    let every_row =
        matches!(&aggregate.argument.kind, ExprKind::Literal(literal) if *literal != Literal::Undefined);
    (aggregate.kind == AggregateKind::Count && every_row).then_some((alias, &**inner))
}

// ---- aggregates and GROUP BY

/// An aggregate that stands alone.
struct Aggregate<'q> {
    kind: AggregateKind,
    call: &'q Expr,
    argument: &'q Expr,
}

impl<'q> Aggregate<'q> {
    fn of(call: &'q Expr) -> Option<Aggregate<'q>> {
        let ExprKind::Call { name, udf: false, arguments } = &call.kind else { return None };
        let [argument] = arguments.as_slice() else { return None };
        Some(Aggregate { kind: AggregateKind::of(&name.text)?, call, argument })
    }

    /// What a partition answers, so that answers can be added up. An average needs its parts; the count next to a
    /// minimum or maximum tells clients which partitions had no value at all.
    fn partial(&self) -> Expr {
        let count = || call("COUNT", vec![self.argument.clone()]);
        let whole = self.call.clone();
        match self.kind {
            AggregateKind::Average => {
                let sum = call("SUM", vec![self.argument.clone()]);
                object([("item", object([("sum", sum), ("count", count())]))])
            }
            AggregateKind::Min => {
                object([("item", whole.clone()), ("item2", object([("min", whole), ("count", count())]))])
            }
            AggregateKind::Max => {
                object([("item", whole.clone()), ("item2", object([("max", whole), ("count", count())]))])
            }
            _ => object([("item", whole)]),
        }
    }
}

/// The query that answers parts of aggregates, by group if there are groups. ORDER BY stays in the text, where it
/// does no harm: clients do not keep the order of groups.
fn merged_rows(query: &Query, info: &mut QueryInfo) -> Query {
    info.group_by_expressions = query.group_by.iter().map(text::print_expr).collect();
    let payload = match &query.select.projection {
        Projection::Star(_) => verbatim(first_alias(query)),
        Projection::Value(value, _) => match Aggregate::of(value) {
            Some(aggregate) => {
                info.aggregates.push(aggregate.kind);
                array(vec![aggregate.partial()])
            }
            None => value.clone(),
        },
        Projection::List(items) => {
            let mut members = Vec::with_capacity(items.len());
            for (alias, value) in named(items) {
                let aggregate = Aggregate::of(value);
                let part = aggregate.as_ref().map_or_else(|| value.clone(), Aggregate::partial);
                members.push((name(&alias), part));
                info.aliases.push((alias, aggregate.map(|aggregate| aggregate.kind)));
            }
            expr(ExprKind::Object(members))
        }
    };
    let projection = if !query.group_by.is_empty() {
        let keys = query.group_by.iter().map(|key| object([("item", key.clone())])).collect();
        Projection::List(vec![selected(array(keys), "groupByItems"), selected(payload, "payload")])
    } else if info.select_value {
        Projection::Value(payload, None)
    } else {
        Projection::List(vec![selected(payload, "payload")])
    };
    let select = Select { distinct: false, top: None, projection, top_span: Span::default() };
    Query { select, offset_limit: None, ..query.clone() }
}

/// The items of a select list with their names; those without one are numbered.
fn named(items: &[SelectItem]) -> impl Iterator<Item = (String, &Expr)> {
    let mut unnamed = 0;
    items.iter().map(move |item| {
        let alias = match item_name(&item.expr, item.alias.as_ref()) {
            Some((alias, _)) => alias,
            None => {
                unnamed += 1;
                format!("${unnamed}")
            }
        };
        (alias, &item.expr)
    })
}

// ---- ORDER BY

fn sorted_rows(query: &Query, prepared: &Prepared, info: &mut QueryInfo) -> Query {
    let items = query.order_by.as_ref().map_or(&[][..], |order_by| &order_by.items);
    for (item, key) in items.iter().zip(&prepared.compiled.order) {
        info.order_by.push(if key.descending { Direction::Descending } else { Direction::Ascending });
        info.order_by_expressions.push(text::print_expr(&item.expr));
        info.non_streaming_order_by |= is_vector_distance(&item.expr);
    }
    let keys = items.iter().map(|item| object([("item", item.expr.clone())])).collect();
    // The first rows of a partition are not its first distinct rows.
    let counted = info.distinct == Distinct::None;
    let top = info.top.filter(|_| counted).map(literal_count);
    let offset_limit = if counted { first_rows(info) } else { None };
    let base = Query { offset_limit, ..query.clone() };
    with_payload(base, top, keys, |payload| payload)
}

/// `SELECT c._rid, [keys] AS orderByItems, payload AS payload … WHERE … AND placeholder`. Rows whose value is
/// undefined are left out here, because inside an object the client could not tell.
pub(super) fn with_payload(
    query: Query,
    top: Option<Count>,
    keys: Vec<Expr>,
    wrap: impl FnOnce(Expr) -> Expr,
) -> Query {
    let filter = query.filter.clone().into_iter().chain([verbatim(FILTER_PLACEHOLDER)]);
    let defined = match &query.select.projection {
        Projection::Value(value, _) => Some(call("IS_DEFINED", vec![value.clone()])),
        _ => None,
    };
    let filter = conjunction(filter.chain(defined).collect());
    let (from, item) = with_item(&query);
    let payload = wrap(payload(&query));
    let projection = Projection::List(vec![
        SelectItem { expr: rid_of(&item), alias: None },
        selected(array(keys), "orderByItems"),
        selected(payload, "payload"),
    ]);
    let select = Select { distinct: false, top, projection, top_span: Span::default() };
    Query { select, from, filter, ..query }
}

pub(super) fn rid_of(item: &str) -> Expr {
    expr(ExprKind::Member(Box::new(verbatim(item)), "_rid".to_string()))
}

pub(super) fn conjunction(mut operands: Vec<Expr>) -> Option<Expr> {
    match operands.len() {
        0 | 1 => operands.pop(),
        _ => Some(expr(ExprKind::Logical(LogicalOp::And, operands))),
    }
}

/// The row as one value: the item, an object of the select list, or what stands behind VALUE.
pub(super) fn payload(query: &Query) -> Expr {
    match &query.select.projection {
        Projection::Star(_) => verbatim(first_alias(query)),
        Projection::Value(value, _) => value.clone(),
        Projection::List(items) => {
            let members = named(items).map(|(alias, value)| (name(&alias), value.clone())).collect();
            expr(ExprKind::Object(members))
        }
    }
}

/// Whether a key of ORDER BY is a distance, by which partitions may hand out rows in another order than they rank them.
pub(crate) fn sorts_by_distance(query: &Query) -> bool {
    let items = query.order_by.as_ref().map_or(&[][..], |order_by| &order_by.items);
    items.iter().any(|item| is_vector_distance(&item.expr))
}

fn is_vector_distance(value: &Expr) -> bool {
    matches!(&value.kind, ExprKind::Call { name, udf: false, .. } if name.text.eq_ignore_ascii_case("VECTORDISTANCE"))
}

// ---- FROM

/// The name the first source is known by.
pub(super) fn first_alias(query: &Query) -> String {
    query.from.first().and_then(alias_of).unwrap_or_else(|| SOURCE_ALIAS.to_string())
}

fn alias_of(source: &Source) -> Option<String> {
    match (&source.alias, &source.collection) {
        (Some(alias), _) => Some(alias.text.clone()),
        (None, Collection::Path(path)) => item_name(path, None).map(|(name, _)| name),
        _ => None,
    }
}

/// FROM, and the alias in it that is the item. A sorted row must tell its `_rid`; where the first source is only a
/// part of the item, or made from it, the item joins in front, and what was the container is spelled ROOT.
pub(super) fn with_item(query: &Query) -> (Vec<Source>, String) {
    match query.from.first() {
        Some(source @ Source { collection: Collection::Path(path), iterate: false, .. })
            if matches!(path.kind, ExprKind::Identifier(_)) =>
        {
            (query.from.clone(), alias_of(source).unwrap_or_default())
        }
        _ => {
            let mut alias = ITEM_ALIAS.to_string();
            while query.from.iter().any(|source| alias_of(source).as_ref() == Some(&alias)) {
                alias.insert(0, '_');
            }
            let item = Source {
                collection: Collection::Path(verbatim("ROOT")),
                iterate: false,
                alias: Some(name(&alias)),
                span: Span::default(),
            };
            let mut from = vec![item];
            from.extend(rooted(&query.from));
            if let Some(first) = from.get_mut(1)
                && alias_of(first).is_none()
            {
                first.alias = Some(name(SOURCE_ALIAS));
            }
            (from, alias)
        }
    }
}

/// Sources whose first one names the container, with ROOT in its place.
fn rooted(from: &[Source]) -> Vec<Source> {
    let mut from = from.to_vec();
    let Some(first) = from.first_mut() else { return from };
    let alias = alias_of(first);
    match &mut first.collection {
        Collection::Path(path) => *path = rooted_path(path),
        Collection::Subquery(query) => query.from = rooted(&query.from),
        Collection::Computed(_) => return from,
    }
    if first.alias.is_none() {
        first.alias = alias.as_deref().map(name);
    }
    from
}

fn rooted_path(path: &Expr) -> Expr {
    match &path.kind {
        ExprKind::Member(object, name) => expr(ExprKind::Member(Box::new(rooted_path(object)), name.clone())),
        ExprKind::Index(object, index) => expr(ExprKind::Index(Box::new(rooted_path(object)), index.clone())),
        _ => verbatim("ROOT"),
    }
}
