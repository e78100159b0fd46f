//! ORDER BY and ORDER BY RANK.
//!
//! Sort keys must be paths of the item (or computed properties, or vector and full-text scores),
//! because the service answers them from its index.

use orrery_model::{PropertyPath, Value};
use orrery_sql::{Collection, Direction, Expr, ExprKind, OrderBy, Query, SqlError};

use super::scope::{document_path, is_correlated};
use super::{Compiled, Compiler, GroupScope};
use crate::env::DistanceFunction;
use crate::node::Node;
use crate::rank::{Component, Rank};

#[derive(Clone, Debug)]
pub(crate) struct OrderKey {
    pub node: Node,
    pub descending: bool,
    /// The path in the item, where the key is one.
    pub path: Option<Vec<String>>,
    /// What rows without it sort by, where that is not undefined, which comes before everything.
    pub missing: Option<f64>,
}

impl Compiler<'_> {
    pub(super) fn order_by(
        &mut self,
        query: &Query,
        mut group: Option<GroupScope>,
    ) -> Compiled<(Vec<OrderKey>, Option<Rank>)> {
        let Some(order_by) = &query.order_by else { return Ok((Vec::new(), None)) };
        if order_by.rank {
            return Ok((Vec::new(), Some(self.rank(query, order_by)?)));
        }
        if group.as_ref().is_some_and(|group| group.keys.is_empty()) {
            // One row of aggregates: the keys must resolve, but there is nothing to sort.
            for item in &order_by.items {
                self.expression(&item.expr, &mut None)?;
            }
            return Ok((Vec::new(), None));
        }
        let mut keys = Vec::with_capacity(order_by.items.len());
        let mut correlated = None;
        for item in &order_by.items {
            if let Some(scope) = &group {
                let known = scope.aggregates.len();
                let node = self.expression(&item.expr, &mut group)?;
                // Groups are sorted by what the select list computes; nothing is computed for sorting alone.
                if group.as_ref().is_some_and(|scope| scope.aggregates.len() > known) {
                    return Err(not_a_path());
                }
                let descending = descends(item.direction);
                keys.push(OrderKey { node, descending, path: None, missing: None });
                continue;
            }
            let node = self.expression(&item.expr, &mut None)?;
            match self.order_key(node, item.direction, &item.expr) {
                Ok(key) => keys.push(key),
                // A key that is no path at all is the graver error, so look at the others first.
                Err(error) if error.code.is_empty() => correlated = Some(error),
                Err(error) => return Err(error),
            }
        }
        if let Some(error) = correlated {
            return Err(error);
        }
        if group.is_none() {
            check_composite(&keys, self.env.composite_indexes.as_deref())?;
        }
        Ok((keys, None))
    }

    fn order_key(&self, node: Node, direction: Option<Direction>, expr: &Expr) -> Compiled<OrderKey> {
        let descending = descends(direction);
        if let Some(path) = document_path(&node, &self.origins) {
            return Ok(OrderKey { node, descending, path: Some(path), missing: None });
        }
        if let Node::Call(function, arguments) = &node {
            match function.name {
                "VECTORDISTANCE" if direction.is_some() => {
                    return Err(SqlError::whole(
                        "",
                        "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.",
                    ));
                }
                "VECTORDISTANCE" | "_VECTORSCORE" => {
                    let euclidean = arguments.get(2).and_then(Node::as_constant).and_then(Value::as_str)
                        == Some("Euclidean");
                    // The most similar first: similarities fall, distances rise. Rewritten queries say how to sort
                    // where the weight of a score turns it round.
                    let descending = direction.map_or(!euclidean, |_| descending);
                    // A component of a hybrid query gives the best rows there are, and those without a score are the
                    // worst.
                    let component = function.name == "_VECTORSCORE";
                    let missing = (component && !descending).then_some(f64::MAX);
                    return Ok(OrderKey { node, descending, path: None, missing });
                }
                "_FULLTEXTSCORE" => {
                    return Ok(OrderKey { node, descending, path: None, missing: None });
                }
                _ => {}
            }
        }
        if self.is_computed_property(expr) {
            return Ok(OrderKey { node, descending, path: None, missing: None });
        }
        if matches!(expr.kind, ExprKind::Member(..) | ExprKind::Index(..) | ExprKind::Identifier(_))
            && is_correlated(&node, &self.origins)
        {
            return Err(SqlError::whole("", "Order-by over correlated collections is not supported."));
        }
        Err(not_a_path())
    }

    fn is_computed_property(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Member(_, name) => {
                self.env.computed_properties.iter().any(|property| property.name == *name)
            }
            ExprKind::Index(_, index) => match &index.kind {
                ExprKind::Literal(orrery_sql::Literal::String(name)) => {
                    self.env.computed_properties.iter().any(|property| property.name == *name)
                }
                _ => false,
            },
            _ => false,
        }
    }

    // ---- ORDER BY RANK

    fn rank(&mut self, query: &Query, order_by: &OrderBy) -> Compiled<Rank> {
        check_rank_sources(query)?;
        if order_by.items.iter().any(|item| item.direction.is_some()) {
            return Err(SqlError::whole(
                "",
                "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed.",
            ));
        }
        let refused = || {
            let message = "The ORDER BY RANK clause must be followed by a VectorDistance and/or a \
                           FullTextScore function call.";
            SqlError::at("SC2221", message, order_by.span)
        };
        let [item] = order_by.items.as_slice() else { return Err(refused()) };
        let ExprKind::Call { name, arguments, udf: false } = &item.expr.kind else { return Err(refused()) };
        if !name.text.eq_ignore_ascii_case("RRF") {
            let component = self.component(&item.expr)?.ok_or_else(refused)?;
            return Ok(Rank { components: vec![component], weights: vec![1.0], fused: false });
        }
        let mut components = Vec::new();
        let mut weights = None;
        for (position, argument) in arguments.iter().enumerate() {
            match self.component(argument)? {
                Some(component) => components.push(component),
                None if position + 1 == arguments.len() => {
                    weights = Some((self.weights(argument).ok_or_else(refused)?, argument.span));
                }
                None => return Err(refused()),
            }
        }
        if components.len() < 2 {
            return Err(refused());
        }
        let weights = match weights {
            None => vec![1.0; components.len()],
            Some((weights, _)) if weights.len() == components.len() => weights,
            Some((_, span)) => {
                let message = "The number of weights specified in the RRF function must match the number \
                               of its component scores.";
                return Err(SqlError::at("SC2229", message, span));
            }
        };
        Ok(Rank { components, weights, fused: true })
    }

    fn weights(&mut self, expr: &Expr) -> Option<Vec<f64>> {
        let Ok(Node::Constant(Value::Array(weights))) = self.expression(expr, &mut None) else { return None };
        weights.iter().map(|weight| weight.as_number().map(|number| number.as_f64())).collect()
    }

    fn component(&mut self, expr: &Expr) -> Compiled<Option<Component>> {
        let ExprKind::Call { name, arguments, udf: false } = &expr.kind else { return Ok(None) };
        if name.text.eq_ignore_ascii_case("VECTORDISTANCE") {
            let Node::Call(_, nodes) = self.expression(expr, &mut None)? else { return Ok(None) };
            let euclidean = nodes.get(2).and_then(Node::as_constant).and_then(Value::as_str)
                == Some(&format!("{:?}", DistanceFunction::Euclidean));
            let node = self.expression(expr, &mut None)?;
            return Ok(Some(Component::Vector { node, ascending: euclidean }));
        }
        if !name.text.eq_ignore_ascii_case("FULLTEXTSCORE") {
            return Ok(None);
        }
        let Some((path, terms)) = arguments.split_first() else { return Ok(None) };
        if terms.is_empty() {
            let message = "The FULLTEXTSCORE function requires at least 2 argument(s).";
            return Err(SqlError::at("SC2050", message, expr.span));
        }
        let path = self.expression(path, &mut None)?;
        let mut given = Vec::new();
        for term in terms {
            match self.expression(term, &mut None)? {
                Node::Constant(Value::Array(many)) => given.extend(many),
                Node::Constant(term) => given.push(term),
                _ => {}
            }
        }
        let texts = given.iter().filter_map(|term| term.as_str().map(String::from)).collect();
        let language = self.text_language(&path);
        Ok(Some(Component::FullText { path, terms: texts, given, language }))
    }
}

/// Several keys need a composite index with the same paths in order, and the same directions or all
/// of them turned round.
pub(crate) fn check_composite(
    keys: &[OrderKey],
    indexes: Option<&[Vec<(PropertyPath, Direction)>]>,
) -> Compiled<()> {
    let Some(indexes) = indexes else { return Ok(()) };
    if keys.len() < 2 || keys.iter().any(|key| key.path.is_none()) {
        return Ok(());
    }
    let fits = |index: &Vec<(PropertyPath, Direction)>, turned: bool| {
        index.len() == keys.len()
            && index.iter().zip(keys).all(|((path, direction), key)| {
                let descending = (*direction == Direction::Descending) != turned;
                descending == key.descending
                    && key.path.as_ref().is_some_and(|wanted| path.segments().iter().eq(wanted.iter()))
            })
    };
    if indexes.iter().any(|index| fits(index, false) || fits(index, true)) {
        return Ok(());
    }
    Err(SqlError::whole(
        "",
        "The order by query does not have a corresponding composite index that it can be served from.",
    ))
}

fn not_a_path() -> SqlError {
    SqlError::whole(
        "2206",
        "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.",
    )
}

fn descends(direction: Option<Direction>) -> bool {
    direction == Some(Direction::Descending)
}

fn check_rank_sources(query: &Query) -> Compiled<()> {
    let mut errors = Vec::new();
    for (position, source) in query.from.iter().enumerate() {
        if position > 0 {
            let message = "The JOIN operator is not allowed with the ORDER BY RANK clause.";
            errors.push(SqlError::at("SC2224", message, source.span));
        }
        if source.iterate {
            let message =
                "The FROM clause with the IN operator is not allowed with the ORDER BY RANK clause.";
            errors.push(SqlError::at("SC2223", message, source.span));
        }
        if matches!(source.collection, Collection::Subquery(_)) {
            let message = "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause.";
            errors.push(SqlError::at("SC2225", message, source.span));
        }
    }
    let mut errors = errors.into_iter();
    match errors.next() {
        None => Ok(()),
        Some(mut first) => {
            first.others = errors.collect();
            Err(first)
        }
    }
}
