//! GROUP BY and aggregates: what a select list may hold, and where its parts are computed.
//!
//! A grouped query is computed in two steps: keys and aggregate arguments per row, then the select list
//! per group. So the select list is compiled in its own mode, in which a group key and an aggregate are
//! slots, and any other reference to a row is refused (SC2102).

use orrery_sql::{Expr, ExprKind, Literal, Query, SqlError};

use super::{Compiled, Compiler, Origin};
use crate::aggregate::AggregateKind;
use crate::limits::GROUP_KEYS_MAX;
use crate::node::Node;

pub(crate) struct GroupKey {
    /// The key as written, in the one spelling `plain` gives all paths.
    expr: Expr,
    pub node: Node,
    pub slot: usize,
}

/// The select list's view of a grouped query.
#[derive(Default)]
pub(crate) struct GroupScope {
    pub keys: Vec<GroupKey>,
    pub aggregates: Vec<(AggregateKind, Node, usize)>,
    /// How deep inside other expressions the compiler is; an aggregate at depth 0 stands alone.
    depth: usize,
}

impl Compiler<'_> {
    /// The scope of a query that groups or aggregates.
    pub(super) fn group_scope(&mut self, query: &Query) -> Compiled<Option<GroupScope>> {
        if query.group_by.is_empty() && !selects_aggregate(query) {
            return Ok(None);
        }
        if let Some(behind) = query.group_by.get(GROUP_KEYS_MAX) {
            let message =
                format!("More than {GROUP_KEYS_MAX} GROUP BY expressions in a query are not supported.");
            return Err(SqlError::at("", message, behind.span));
        }
        let mut scope = GroupScope::default();
        for key in &query.group_by {
            let node = self.expression(key, &mut None)?;
            let slot = self.new_slot(Origin::Projection(Box::new(node.clone())));
            scope.keys.push(GroupKey { expr: plain(key), node, slot });
        }
        Ok(Some(scope))
    }

    /// Compiles an expression of the select list.
    pub(super) fn selected(&mut self, expr: &Expr, group: &mut Option<GroupScope>) -> Compiled<Node> {
        if let Some(scope) = group {
            scope.depth = 0;
        }
        self.expression(expr, group)
    }

    /// In a grouped select list: what a group key, an aggregate or a stray reference becomes. `None`
    /// leaves the expression to be compiled by its parts.
    pub(super) fn grouped(&mut self, expr: &Expr, scope: &mut GroupScope) -> Compiled<Option<Node>> {
        let wanted = plain(expr);
        if let Some(key) = scope.keys.iter().find(|key| key.expr == wanted) {
            return Ok(Some(Node::Slot(key.slot)));
        }
        match &expr.kind {
            ExprKind::Call { name, udf: false, arguments } => {
                let Some(kind) = AggregateKind::of(&name.text) else {
                    scope.depth += 1;
                    return Ok(None);
                };
                if scope.depth > 0 {
                    self.composed_aggregates = true;
                }
                let [argument] = arguments.as_slice() else {
                    let message =
                        format!("The {} function requires 1 argument(s).", name.text.to_uppercase());
                    return Err(SqlError::at("SC2050", message, expr.span));
                };
                if contains_aggregate(argument) || contains_subquery(argument) {
                    let message = "Cannot perform an aggregate function on an expression containing an \
                                   aggregate or a subquery.";
                    return Err(SqlError::at("SC2101", message, expr.span));
                }
                let node = self.expression(argument, &mut None)?;
                let slot = self.new_slot(Origin::Computed);
                scope.aggregates.push((kind, node, slot));
                Ok(Some(Node::Slot(slot)))
            }
            ExprKind::Identifier(name) if self.scope.find(name).is_none() => Ok(None),
            ExprKind::Identifier(_) => Err(stray(expr)),
            ExprKind::Member(..) | ExprKind::Index(..) if self.is_stray_path(expr, scope) => Err(stray(expr)),
            _ => {
                scope.depth += 1;
                Ok(None)
            }
        }
    }

    /// Whether a path is rooted at an alias with no group key on the way.
    fn is_stray_path(&self, expr: &Expr, scope: &GroupScope) -> bool {
        let mut expr = expr;
        loop {
            let step = plain(expr);
            if scope.keys.iter().any(|key| key.expr == step) {
                return false;
            }
            match &expr.kind {
                ExprKind::Member(object, _) | ExprKind::Index(object, _) => expr = object,
                ExprKind::Identifier(name) => return self.scope.find(name).is_some(),
                _ => return false,
            }
        }
    }
}

fn stray(expr: &Expr) -> SqlError {
    let message = format!(
        "Property reference '{expr}' is invalid in the select list because it is not contained in either an \
         aggregate function or the GROUP BY clause."
    );
    SqlError::at("SC2102", message, expr.span)
}

fn selects_aggregate(query: &Query) -> bool {
    match &query.select.projection {
        orrery_sql::Projection::Star(_) => false,
        orrery_sql::Projection::Value(expr, _) => contains_aggregate(expr),
        orrery_sql::Projection::List(items) => items.iter().any(|item| contains_aggregate(&item.expr)),
    }
}

pub(super) fn contains_aggregate(expr: &Expr) -> bool {
    let mut found = matches!(&expr.kind, ExprKind::Call { name, udf: false, .. }
        if AggregateKind::of(&name.text).is_some());
    expr.kind.for_each_child(&mut |child| found |= contains_aggregate(child));
    found
}

fn contains_subquery(expr: &Expr) -> bool {
    let mut found = matches!(expr.kind, ExprKind::Subquery(..));
    expr.kind.for_each_child(&mut |child| found |= contains_subquery(child));
    found
}

/// The expression with `a["b"]` spelled `a.b`, so that both spellings of a path are equal.
fn plain(expr: &Expr) -> Expr {
    let kind = match &expr.kind {
        ExprKind::Index(object, index) => match &index.kind {
            ExprKind::Literal(Literal::String(name)) => {
                ExprKind::Member(Box::new(plain(object)), name.clone())
            }
            _ => ExprKind::Index(Box::new(plain(object)), index.clone()),
        },
        ExprKind::Member(object, name) => ExprKind::Member(Box::new(plain(object)), name.clone()),
        ExprKind::Call { name, udf, arguments } => {
            let mut name = name.clone();
            if !udf {
                name.text.make_ascii_uppercase();
            }
            ExprKind::Call { name, udf: *udf, arguments: arguments.iter().map(plain).collect() }
        }
        ExprKind::Object(members) => {
            ExprKind::Object(members.iter().map(|(name, value)| (name.clone(), plain(value))).collect())
        }
        ExprKind::Array(elements) => ExprKind::Array(elements.iter().map(plain).collect()),
        other => other.clone(),
    };
    Expr::new(kind, expr.span)
}
