//! The text of rewritten queries: one clause a line, subqueries as indented blocks.
//!
//! Clients send this text back to every partition, and compare or patch it by its placeholders, so its form is
//! the service's:
//!
//! ```text
//! SELECT VALUE [{"item": COUNT(1)}]
//! FROM c
//! JOIN (
//!     SELECT VALUE t
//!     FROM t IN c.tags
//! ) AS t
//! WHERE (t.n > 1)
//! ```

use std::fmt::Write;

use orrery_sql::{
    Collection, Expr, ExprKind, Name, OrderBy, OrderItem, Projection, Query, Select, SelectItem, Source, Span,
};

/// How far a subquery is indented below the query around it.
const INDENT: &str = "    ";

/// The text of a query.
pub(super) fn print(query: &Query) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_query(&mut text, query);
    text
}

fn write_query(out: &mut String, query: &Query) -> std::fmt::Result {
    let select = &query.select;
    let projection = match &select.projection {
        Projection::Star(span) => Projection::Star(*span),
        Projection::Value(value, alias) => Projection::Value(inlined(value), alias.clone()),
        Projection::List(items) => Projection::List(
            items
                .iter()
                .map(|item| SelectItem { expr: inlined(&item.expr), alias: item.alias.clone() })
                .collect(),
        ),
    };
    write!(out, "{}", Select { projection, ..select.clone() })?;
    for (position, source) in query.from.iter().enumerate() {
        let collection = match &source.collection {
            Collection::Subquery(query) => Collection::Computed(verbatim(block("", query))),
            Collection::Path(path) => Collection::Path(inlined(path)),
            Collection::Computed(value) => Collection::Computed(inlined(value)),
        };
        let source = Source { collection, ..source.clone() };
        write!(out, "\n{} {source}", if position == 0 { "FROM" } else { "JOIN" })?;
    }
    if let Some(filter) = &query.filter {
        write!(out, "\nWHERE {}", inlined(filter))?;
    }
    for (position, key) in query.group_by.iter().enumerate() {
        write!(out, "{}{}", if position == 0 { "\nGROUP BY " } else { ", " }, inlined(key))?;
    }
    if let Some(order_by) = &query.order_by {
        let items = order_by.items.iter();
        let items =
            items.map(|item| OrderItem { expr: inlined(&item.expr), direction: item.direction }).collect();
        write!(out, "\n{}", OrderBy { items, ..order_by.clone() })?;
    }
    if let Some(clause) = &query.offset_limit {
        write!(out, "\nOFFSET {} LIMIT {}", clause.offset, clause.limit)?;
    }
    Ok(())
}

/// A subquery in parentheses. Strings never hold a line feed as such, so every line is one of the layout.
fn block(prefix: &str, query: &Query) -> String {
    let mut text = format!("{prefix}(\n");
    for line in print(query).lines() {
        text.push_str(INDENT);
        text.push_str(line);
        text.push('\n');
    }
    text.push(')');
    text
}

/// The text of one expression.
pub(super) fn print_expr(expr: &Expr) -> String {
    inlined(expr).to_string()
}

/// The expression with the text of its subqueries put in their place. Expressions nest at most
/// `orrery_sql::NESTING_MAX` levels, so the recursion here is bounded by the parser.
fn inlined(expr: &Expr) -> Expr {
    let one = |expr: &Expr| Box::new(inlined(expr));
    let all = |exprs: &[Expr]| exprs.iter().map(inlined).collect::<Vec<Expr>>();
    let kind = match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Identifier(_) | ExprKind::Parameter(_) => expr.kind.clone(),
        ExprKind::Member(object, name) => ExprKind::Member(one(object), name.clone()),
        ExprKind::Index(object, index) => ExprKind::Index(one(object), one(index)),
        ExprKind::Unary(op, operand) => ExprKind::Unary(*op, one(operand)),
        ExprKind::Binary(op, left, right) => ExprKind::Binary(*op, one(left), one(right)),
        ExprKind::Logical(op, operands) => ExprKind::Logical(*op, all(operands)),
        ExprKind::In { needle, list, negated } => {
            ExprKind::In { needle: one(needle), list: all(list), negated: *negated }
        }
        ExprKind::Like { text, pattern, escape, negated } => ExprKind::Like {
            text: one(text),
            pattern: one(pattern),
            escape: escape.clone(),
            negated: *negated,
        },
        ExprKind::Between { value, low, high, negated } => {
            ExprKind::Between { value: one(value), low: one(low), high: one(high), negated: *negated }
        }
        ExprKind::Conditional(condition, yes, no) => ExprKind::Conditional(one(condition), one(yes), one(no)),
        ExprKind::Coalesce(left, right) => ExprKind::Coalesce(one(left), one(right)),
        ExprKind::Array(elements) => ExprKind::Array(all(elements)),
        ExprKind::Object(members) => {
            ExprKind::Object(members.iter().map(|(name, value)| (name.clone(), inlined(value))).collect())
        }
        ExprKind::Call { name, udf, arguments } => {
            ExprKind::Call { name: name.clone(), udf: *udf, arguments: all(arguments) }
        }
        ExprKind::Subquery(kind, query) => {
            return verbatim(block(kind.keyword(), query));
        }
    };
    Expr::new(kind, expr.span)
}

// ---- pieces that rewritten queries are made of

pub(super) fn expr(kind: ExprKind) -> Expr {
    Expr::new(kind, Span::default())
}

/// Text that is printed as it is: placeholders, and subqueries that are printed already.
pub(super) fn verbatim(text: impl Into<String>) -> Expr {
    expr(ExprKind::Identifier(text.into()))
}

pub(super) fn name(text: &str) -> Name {
    Name { text: text.to_string(), span: Span::default() }
}

pub(super) fn call(function: &str, arguments: Vec<Expr>) -> Expr {
    expr(ExprKind::Call { name: name(function), udf: false, arguments })
}

/// `{"a": x, "b": y}`
pub(super) fn object<const N: usize>(members: [(&str, Expr); N]) -> Expr {
    expr(ExprKind::Object(members.into_iter().map(|(key, value)| (name(key), value)).collect()))
}

pub(super) fn array(elements: Vec<Expr>) -> Expr {
    expr(ExprKind::Array(elements))
}

/// `x AS alias`
pub(super) fn selected(value: Expr, alias: &str) -> SelectItem {
    SelectItem { expr: value, alias: Some(name(alias)) }
}
