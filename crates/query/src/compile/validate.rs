//! What can be refused by looking at the tree alone: clauses that subqueries may not have.

use orrery_sql::{Collection, Expr, ExprKind, Query, SqlError};

/// Collects every such error; the service lists them all.
pub(crate) fn check(query: &Query) -> Result<(), SqlError> {
    let mut errors = Vec::new();
    check_query(query, false, &mut errors);
    let mut errors = errors.into_iter();
    match errors.next() {
        None => Ok(()),
        Some(mut first) => {
            first.others = errors.collect();
            Err(first)
        }
    }
}

fn check_query(query: &Query, subquery: bool, errors: &mut Vec<SqlError>) {
    for source in &query.from {
        if let Collection::Subquery(inner) = &source.collection {
            check_query(inner, true, errors);
        }
    }
    query.for_each_expr(&mut |expr| check_expr(expr, errors));
    if !subquery {
        return;
    }
    if let Some(order_by) = &query.order_by {
        let (code, message) = if order_by.rank {
            ("SC2228", "The 'ORDER BY RANK' clause is not supported in subqueries.")
        } else {
            ("SC2202", "'ORDER BY' is not supported in subqueries.")
        };
        errors.push(SqlError::at(code, message, order_by.span));
    }
    if query.select.top.is_some() {
        let message = "'TOP' is not supported in subqueries.";
        errors.push(SqlError::at("SC2203", message, query.select.top_span));
    }
    if let Some(offset_limit) = &query.offset_limit {
        let message = "'OFFSET LIMIT' clause is not supported in subqueries.";
        errors.push(SqlError::at("SC2204", message, offset_limit.span));
    }
}

fn check_expr(expr: &Expr, errors: &mut Vec<SqlError>) {
    if let ExprKind::Subquery(_, query) = &expr.kind {
        check_query(query, true, errors);
    }
    expr.kind.for_each_child(&mut |child| check_expr(child, errors));
}
