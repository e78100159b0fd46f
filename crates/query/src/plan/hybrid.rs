//! ORDER BY RANK: several rankings of the same items, fused by the client.
//!
//! A full-text score depends on all texts of the container, so the client first sends the statistics query to every
//! partition and adds up the answers, writes the sums into the placeholders of the component queries, asks every
//! partition for the best of each component, and fuses the rankings: the sum of weight / (60 + rank).
//!
//! `RRF(FullTextScore(c.text, 'swim'), VectorDistance(c.v, [1, 2]))` has two components:
//! `_FullTextScore(c.text, ["swim"], {documents}, {words-0}, {hits-0})` and `_VectorScore(c.v, [1, 2])`.

use orrery_model::Value;
use orrery_sql::{
    Count, Direction, Expr, ExprKind, Literal, OffsetLimit, OrderBy, OrderItem, Projection, Query, Select,
    SelectItem, Span,
};

use super::rewrite::{self, QueryInfo, literal_count};
use super::text::{self, array, call, expr, object, selected, verbatim};
use crate::prepared::Prepared;
use crate::rank::{Component as Ranked, Rank};

/// Rows that each component hands to the fusion, at least; twice what the client wants, if that is more.
const COMPONENT_ROWS_MIN: u64 = 120;
const DOCUMENT_COUNT: &str = "{documentdb-formattablehybridsearchquery-totaldocumentcount}";
const WORD_COUNT: &str = "{documentdb-formattablehybridsearchquery-totalwordcount-";
const HIT_COUNTS: &str = "{documentdb-formattablehybridsearchquery-hitcountsarray-";
/// Worse than any score of a vector; turned round, than any distance.
const WORST_SCORE: &str = "-1.79769e+308";
const WORST_DISTANCE: &str = "1.79769e+308";
/// Worse than any full-text score.
const WORST_TEXT_SCORE: &str = "-1";

/// What a client needs to know to rank the items of all partitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HybridInfo {
    pub statistics_query: String,
    pub components: Vec<QueryInfo>,
    /// Empty if all weigh the same.
    pub weights: Vec<f64>,
    pub skip: Option<u64>,
    pub take: Option<u64>,
    pub requires_statistics: bool,
}

/// One score function of the rank clause.
struct Component {
    score: Expr,
    direction: Direction,
    /// As the text spells it: scores of vectors sort by themselves unless they are turned round.
    written: Option<Direction>,
    missing: &'static str,
}

/// The plan of a query with a rank clause. `skip_rewrite`: the client takes rows as they are, not as sorted rows.
pub(super) fn hybrid_info(
    query: &Query,
    parameters: &[(String, Value)],
    prepared: &Prepared,
    rank: &Rank,
    skip_rewrite: bool,
) -> HybridInfo {
    let shape = prepared.needs();
    let (skip, take) = (shape.offset, shape.top.or(shape.limit));
    let mut statistics = Vec::new();
    let calls = score_calls(query);
    let weighted = calls.len() > rank.components.len();
    let mut components = Vec::with_capacity(rank.components.len());
    for ((call, ranked), weight) in calls.iter().zip(&rank.components).zip(&rank.weights) {
        components.push(component(call, parameters, ranked, *weight < 0.0, &mut statistics));
    }
    let single = components.len() == 1;
    let scores: Vec<Expr> = match skip_rewrite && single {
        true => Vec::new(),
        false => components.iter().map(|component| component.padded(skip_rewrite)).collect(),
    };
    let rows = Rows::of(query, skip, take);
    let requires_statistics = !statistics.is_empty();
    HybridInfo {
        statistics_query: text::print(&statistics_query(query, statistics)),
        components: components
            .iter()
            .map(|component| match skip_rewrite && !single {
                true => scored_rows(query, component, &scores, &rows),
                false => sorted_rows(query, component, &scores, &rows),
            })
            .collect(),
        weights: if weighted { rank.weights.iter().map(|weight| weight.abs()).collect() } else { Vec::new() },
        skip,
        take,
        requires_statistics,
    }
}

/// The score functions of the clause, followed by the weights if there are any.
fn score_calls(query: &Query) -> Vec<&Expr> {
    let items = query.order_by.as_ref().map_or(&[][..], |order_by| &order_by.items);
    match items {
        [item] => match &item.expr.kind {
            ExprKind::Call { name, arguments, .. } if name.text.eq_ignore_ascii_case("RRF") => {
                arguments.iter().collect()
            }
            _ => vec![&item.expr],
        },
        _ => Vec::new(),
    }
}

fn component(
    score: &Expr,
    parameters: &[(String, Value)],
    ranked: &Ranked,
    turned: bool,
    statistics: &mut Vec<Expr>,
) -> Component {
    let arguments = match &score.kind {
        ExprKind::Call { arguments, .. } => arguments.as_slice(),
        _ => &[],
    };
    match (ranked, arguments) {
        (Ranked::FullText { .. }, [path, terms @ ..]) => {
            let terms: Vec<Expr> = terms.iter().flat_map(|term| spelled_out(term, parameters)).collect();
            let number = statistics.len();
            let hits = terms.iter().map(|term| {
                call("COUNTIF", vec![call("FullTextContains", vec![path.clone(), term.clone()])])
            });
            statistics.push(object([
                ("totalWordCount", call("SUM", vec![call("_FullTextWordCount", vec![path.clone()])])),
                ("hitCounts", array(hits.collect())),
            ]));
            let score = call(
                "_FullTextScore",
                vec![
                    path.clone(),
                    array(terms),
                    verbatim(DOCUMENT_COUNT),
                    verbatim(format!("{WORD_COUNT}{number}}}")),
                    verbatim(format!("{HIT_COUNTS}{number}}}")),
                ],
            );
            let direction = if turned { Direction::Ascending } else { Direction::Descending };
            let missing = if turned { WORST_DISTANCE } else { WORST_TEXT_SCORE };
            Component { score, direction, written: Some(direction), missing }
        }
        (ranked, arguments) => {
            let rising = matches!(ranked, Ranked::Vector { ascending: true, .. }) != turned;
            let direction = if rising { Direction::Ascending } else { Direction::Descending };
            Component {
                score: call("_VectorScore", arguments.to_vec()),
                direction,
                written: turned.then_some(direction),
                missing: if rising { WORST_DISTANCE } else { WORST_SCORE },
            }
        }
    }
}

/// A term as one or more: older queries give all of them in one array.
fn spelled_out(term: &Expr, parameters: &[(String, Value)]) -> Vec<Expr> {
    match &term.kind {
        ExprKind::Array(terms) => terms.clone(),
        ExprKind::Parameter(name) => {
            match parameters.iter().find(|(given, _)| given == name).map(|(_, value)| value) {
                Some(Value::Array(terms)) => terms
                    .iter()
                    .filter_map(Value::as_str)
                    .map(|term| expr(ExprKind::Literal(Literal::String(term.to_string()))))
                    .collect(),
                _ => vec![term.clone()],
            }
        }
        _ => vec![term.clone()],
    }
}

impl Component {
    /// The score, or the worst there is for items that have none. Clients that do not sort themselves take the
    /// highest score as the best, so a rising one is turned round for them.
    fn padded(&self, falling: bool) -> Expr {
        let missing = verbatim(self.missing);
        let padded = expr(ExprKind::Coalesce(Box::new(self.score.clone()), Box::new(missing)));
        if !falling || self.direction == Direction::Descending {
            return padded;
        }
        verbatim(format!("(-1 * {padded})"))
    }

    fn order_by(&self) -> OrderBy {
        let item = OrderItem { expr: self.score.clone(), direction: self.written };
        OrderBy { rank: false, items: vec![item], span: Span::default() }
    }
}

/// How many rows a component is asked for, in the text and in the plan.
struct Rows {
    top: Option<Count>,
    offset_limit: Option<OffsetLimit>,
    info: QueryInfo,
}

impl Rows {
    fn of(query: &Query, skip: Option<u64>, take: Option<u64>) -> Rows {
        let mut rows = Rows { top: None, offset_limit: None, info: QueryInfo::default() };
        let Some(take) = take else { return rows };
        let wanted = skip.unwrap_or(0).saturating_add(take).saturating_mul(2).max(COMPONENT_ROWS_MIN);
        // The service counts in 32 bits here, except in the text of TOP. Such counts are far above what any client
        // is willing to hold.
        let wrapped = wanted & u64::from(u32::MAX);
        if query.offset_limit.is_some() {
            (rows.info.offset, rows.info.limit) = (Some(0), Some(wrapped));
            rows.offset_limit = Some(OffsetLimit {
                offset: literal_count(0),
                limit: literal_count(wrapped),
                span: Span::default(),
            });
        } else {
            rows.info.top = Some(wrapped);
            rows.top = Some(literal_count(wanted));
        }
        rows
    }
}

/// A component as sorted rows: `{_rid, orderByItems, payload: {payload, componentScores}}`.
fn sorted_rows(query: &Query, component: &Component, scores: &[Expr], rows: &Rows) -> QueryInfo {
    let base = Query {
        order_by: Some(component.order_by()),
        offset_limit: rows.offset_limit.clone(),
        ..query.clone()
    };
    let keys = vec![object([("item", component.score.clone())])];
    let rewritten = rewrite::with_payload(base, rows.top.clone(), keys, |payload| {
        object([("payload", payload), ("componentScores", array(scores.to_vec()))])
    });
    QueryInfo {
        order_by: vec![component.direction],
        order_by_expressions: vec![text::print_expr(&component.score)],
        rewritten: text::print(&rewritten),
        non_streaming_order_by: true,
        ..rows.info.clone()
    }
}

/// A component as rows with their scores: `{_rid, payload, componentScores}`. The plan says nothing of their order.
fn scored_rows(query: &Query, component: &Component, scores: &[Expr], rows: &Rows) -> QueryInfo {
    let (from, item) = rewrite::with_item(query);
    let projection = Projection::List(vec![
        SelectItem { expr: rewrite::rid_of(&item), alias: None },
        selected(rewrite::payload(query), "payload"),
        selected(array(scores.to_vec()), "componentScores"),
    ]);
    let select = Select { distinct: false, top: rows.top.clone(), projection, top_span: Span::default() };
    let rewritten = Query {
        select,
        from,
        order_by: Some(component.order_by()),
        offset_limit: rows.offset_limit.clone(),
        ..query.clone()
    };
    QueryInfo { rewritten: text::print(&rewritten), ..QueryInfo::default() }
}

/// Counts documents, words and matching documents over all items, whatever the filter: a word is as rare as it is in
/// the container.
fn statistics_query(query: &Query, statistics: Vec<Expr>) -> Query {
    let count = call("COUNT", vec![expr(ExprKind::Literal(Literal::Integer(1)))]);
    let projection = Projection::List(vec![
        selected(count, "documentCount"),
        selected(array(statistics), "fullTextStatistics"),
    ]);
    Query {
        select: Select { distinct: false, top: None, projection, top_span: Span::default() },
        from: query.from.clone(),
        filter: None,
        group_by: Vec::new(),
        order_by: None,
        offset_limit: None,
        span: Span::default(),
    }
}
