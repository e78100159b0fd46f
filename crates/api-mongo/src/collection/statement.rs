//! What is asked of a container, as a syntax tree of SQL without a text in between: every item, those with given ids,
//! or those that may match a filter (`lowering`), as they come, in the order of a path, or in groups.

use orrery_engine::StatementSource;
use orrery_model::Value;
use orrery_mongo::{Error, Result, error::code};
use orrery_query::merge::MergePlan;
use orrery_query::{Prepared, QueryEnv};
use orrery_sql::{
    BinaryOp, Collection, Direction, Expr, ExprKind, Literal, LogicalOp, Name, OrderBy, OrderItem,
    Projection, Query, Select, SelectItem, Source, Span,
};

use super::lowering::Lowered;

const ITEM: &str = "c";

/// A query, ready to run over one partition or several.
pub struct Statement {
    pub query: Query,
    pub plan: MergePlan,
    parameters: Vec<(String, Value)>,
}

impl Statement {
    /// What other nodes are sent.
    pub fn source(&self) -> StatementSource<'_> {
        StatementSource { parameters: &self.parameters, ..StatementSource::of_tree(&self.query) }
    }
}

/// What statements are compiled with.
pub fn query_env() -> QueryEnv {
    QueryEnv::default()
}

/// All items that fulfil the condition.
pub fn select(lowered: Lowered) -> Result<Statement> {
    compile(query(Projection::Star(Span::default()), lowered.condition), lowered.parameters)
}

/// The same in the order of a path.
pub fn select_in_order(lowered: Lowered, names: &[&str], descending: bool) -> Result<Statement> {
    let direction = Some(if descending { Direction::Descending } else { Direction::Ascending });
    let item = OrderItem { expr: path(names.iter().copied()), direction };
    let mut query = query(Projection::Star(Span::default()), lowered.condition);
    query.order_by = Some(OrderBy { rank: false, items: vec![item], span: Span::default() });
    compile(query, lowered.parameters)
}

/// Values for each group of the items that fulfil the condition, under these names.
pub fn select_groups(lowered: Lowered, by: Vec<Expr>, values: Vec<(String, Expr)>) -> Result<Statement> {
    let item = |(name, expr)| {
        let alias = Some(Name { text: name, span: Span::default() });
        SelectItem { expr, alias }
    };
    let mut query = query(Projection::List(values.into_iter().map(item).collect()), lowered.condition);
    query.group_by = by;
    compile(query, lowered.parameters)
}

fn query(projection: Projection, filter: Option<Expr>) -> Query {
    let span = Span::default();
    let from = Source { collection: Collection::Path(identifier(ITEM)), iterate: false, alias: None, span };
    Query {
        select: Select { distinct: false, top: None, projection, top_span: span },
        from: vec![from],
        filter,
        group_by: Vec::new(),
        order_by: None,
        offset_limit: None,
        span,
    }
}

fn compile(query: Query, parameters: Vec<(String, Value)>) -> Result<Statement> {
    let env = query_env();
    let failed = |error: orrery_sql::SqlError| Error::new(code::INTERNAL_ERROR, error.to_string());
    let prepared = Prepared::new(&query, &parameters, &env).map_err(failed)?;
    let plan = MergePlan::new(&query, &prepared, &parameters, &env).map_err(failed)?;
    Ok(Statement { query, plan, parameters })
}

pub fn expr(kind: ExprKind) -> Expr {
    Expr::new(kind, Span::default())
}

fn identifier(name: &str) -> Expr {
    expr(ExprKind::Identifier(name.to_owned()))
}

/// A path from the root of an item.
pub fn path<'n>(names: impl IntoIterator<Item = &'n str>) -> Expr {
    names
        .into_iter()
        .fold(identifier(ITEM), |object, name| expr(ExprKind::Member(Box::new(object), name.to_owned())))
}

pub fn literal(literal: Literal) -> Expr {
    expr(ExprKind::Literal(literal))
}

pub fn text(value: &str) -> Expr {
    literal(Literal::String(value.to_owned()))
}

pub fn binary(operator: BinaryOp, left: Expr, right: Expr) -> Expr {
    expr(ExprKind::Binary(operator, Box::new(left), Box::new(right)))
}

pub fn logical(operator: LogicalOp, mut parts: Vec<Expr>) -> Expr {
    match parts.len() {
        1 => parts.remove(0),
        _ => expr(ExprKind::Logical(operator, parts)),
    }
}

pub fn one_of(needle: Expr, list: Vec<Expr>) -> Expr {
    expr(ExprKind::In { needle: Box::new(needle), list, negated: false })
}

pub fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let name = Name { text: name.to_owned(), span: Span::default() };
    expr(ExprKind::Call { name, udf: false, arguments })
}
