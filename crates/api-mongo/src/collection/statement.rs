//! What is asked of a container, as a syntax tree of SQL without a text in between: every item, those with given ids,
//! or those that may match a filter (`lowering`).

use orrery_query::merge::MergePlan;
use orrery_query::{Prepared, QueryEnv};
use orrery_sql::{
    BinaryOp, Collection, Expr, ExprKind, Literal, LogicalOp, Name, Projection, Query, Select, Source, Span,
    SqlError,
};

const ITEM: &str = "c";

/// A query, ready to run over one partition or several.
pub struct Statement {
    pub query: Query,
    pub plan: MergePlan,
}

/// What statements are compiled with.
pub fn query_env() -> QueryEnv {
    QueryEnv::default()
}

/// All items that fulfil the condition.
pub fn select(condition: Option<Expr>) -> Result<Statement, SqlError> {
    let span = Span::default();
    let from = Source { collection: Collection::Path(identifier(ITEM)), iterate: false, alias: None, span };
    let query = Query {
        select: Select { distinct: false, top: None, projection: Projection::Star(span), top_span: span },
        from: vec![from],
        filter: condition,
        group_by: Vec::new(),
        order_by: None,
        offset_limit: None,
        span,
    };
    let env = query_env();
    let prepared = Prepared::new(&query, &[], &env)?;
    let plan = MergePlan::new(&query, &prepared, &[], &env)?;
    Ok(Statement { query, plan })
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
