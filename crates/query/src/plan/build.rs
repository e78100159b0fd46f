//! Pieces of syntax trees that rewritten queries are made of.

use orrery_sql::{Expr, ExprKind, Literal, LogicalOp, Name, SelectItem, Span};

use crate::aggregate::AggregateKind;

/// Where a client puts its filter when it continues a sorted query.
pub(super) const FILTER: &str = "({documentdb-formattableorderbyquery-filter})";

fn expr(kind: ExprKind) -> Expr {
    Expr::new(kind, Span::default())
}

fn name(text: &str) -> Name {
    Name { text: text.to_string(), span: Span::default() }
}

/// A name, or a placeholder that is printed as it is.
pub(super) fn identifier(text: &str) -> Expr {
    expr(ExprKind::Identifier(text.to_string()))
}

pub(super) fn string(text: &str) -> Expr {
    expr(ExprKind::Literal(Literal::String(text.to_string())))
}

pub(super) fn integer(value: i64) -> Expr {
    expr(ExprKind::Literal(Literal::Integer(value)))
}

pub(super) fn member(object: Expr, text: &str) -> Expr {
    expr(ExprKind::Member(Box::new(object), text.to_string()))
}

pub(super) fn array(elements: Vec<Expr>) -> Expr {
    expr(ExprKind::Array(elements))
}

pub(super) fn object(members: Vec<(String, Expr)>) -> Expr {
    expr(ExprKind::Object(members.into_iter().map(|(text, value)| (name(&text), value)).collect()))
}

pub(super) fn call(function: &str, arguments: Vec<Expr>) -> Expr {
    expr(ExprKind::Call { name: name(function), udf: false, arguments })
}

pub(super) fn coalesce(left: Expr, right: Expr) -> Expr {
    expr(ExprKind::Coalesce(Box::new(left), Box::new(right)))
}

pub(super) fn product(left: Expr, right: Expr) -> Expr {
    expr(ExprKind::Binary(orrery_sql::BinaryOp::Multiply, Box::new(left), Box::new(right)))
}

/// All conditions; one alone stands without AND.
pub(super) fn and(mut conditions: Vec<Expr>) -> Expr {
    if conditions.len() == 1 {
        conditions.remove(0)
    } else {
        expr(ExprKind::Logical(LogicalOp::And, conditions))
    }
}

/// `expression AS alias`.
pub(super) fn list(expr: Expr, alias: &str) -> SelectItem {
    SelectItem { expr, alias: Some(name(alias)) }
}

/// What a partition answers for an aggregate, so that the answers of all can be merged.
pub(super) fn partial(kind: AggregateKind, aggregate: &Expr) -> Expr {
    let argument = match &aggregate.kind {
        ExprKind::Call { arguments, .. } => arguments.clone(),
        _ => Vec::new(),
    };
    let count = || call("COUNT", argument.clone());
    match kind {
        AggregateKind::Average => {
            let sum = call("SUM", argument.clone());
            object(vec![("item".into(), object(vec![("sum".into(), sum), ("count".into(), count())]))])
        }
        AggregateKind::Min | AggregateKind::Max => {
            let field = if kind == AggregateKind::Min { "min" } else { "max" };
            let both = object(vec![(field.into(), aggregate.clone()), ("count".into(), count())]);
            object(vec![("item".into(), aggregate.clone()), ("item2".into(), both)])
        }
        _ => object(vec![("item".into(), aggregate.clone())]),
    }
}
