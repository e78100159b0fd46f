//! What is asked of a container, as syntax trees of SQL without a text in between.
//!
//! | asked for | condition |
//! |---|---|
//! | vertices | `NOT IS_DEFINED(c._isEdge)` |
//! | edges | `c._isEdge = true` |
//! | ids, labels | `c.id IN (…)`, `c.label IN (…)` |
//! | a property of a vertex | `EXISTS(SELECT VALUE p FROM p IN c.name WHERE p._value = "A")` |
//! | a property of an edge, the partition key | `c.w > 0.5` |
//! | edges out of a frontier | `c._vertexId IN (…)` |
//! | edges into a frontier | `c._sink IN (…)` |
//!
//! The evaluator checks again, so a condition that SQL would judge otherwise is left out.

use orrery_gremlin::Value;
use orrery_gremlin::graph::{Filter, FilterKey};
use orrery_gremlin::predicate::{P, TextOp};
use orrery_query::merge::MergePlan;
use orrery_query::{Prepared, QueryEnv};
use orrery_sql::{
    BinaryOp, Collection, Expr, ExprKind, Literal, LogicalOp, Name, Projection, Query, Select, SelectItem,
    Source, Span, SqlError, SubqueryKind, UnaryOp,
};

use super::document::{EDGE_ID, ID, IS_EDGE, LABEL, SINK, SOURCE, VALUE};

const ITEM: &str = "c";
const PROPERTY: &str = "p";
/// Members of the rows of groups.
pub const GROUP: &str = "k";
pub const COUNT: &str = "n";

/// A query, ready to run over one partition or several.
pub struct Statement {
    pub query: Query,
    pub plan: MergePlan,
}

/// What statements are compiled with.
pub fn query_env() -> QueryEnv {
    QueryEnv::default()
}

/// What kind of elements, and what they must be like.
#[derive(Default)]
pub struct Conditions {
    all: Vec<Expr>,
}

impl Conditions {
    pub fn vertices() -> Conditions {
        let defined = call("IS_DEFINED", vec![path(&[IS_EDGE])]);
        Conditions { all: vec![expr(ExprKind::Unary(UnaryOp::Not, Box::new(defined)))] }
    }

    pub fn edges() -> Conditions {
        Conditions { all: vec![binary(BinaryOp::Equal, path(&[IS_EDGE]), constant(true))] }
    }

    /// Edges out of these vertices. Nothing else has the member.
    pub fn out_of(ids: &[&str]) -> Conditions {
        Conditions { all: vec![one_of(path(&[SOURCE]), ids.iter().copied())] }
    }

    /// Edges into these vertices.
    pub fn into(ids: &[&str]) -> Conditions {
        Conditions { all: vec![one_of(path(&[SINK]), ids.iter().copied())] }
    }

    pub fn ids<'i>(mut self, ids: impl Iterator<Item = &'i str>) -> Conditions {
        self.all.push(one_of(path(&[ID]), ids));
        self
    }

    /// Edges with these ids, whichever their items have.
    pub fn edge_ids(mut self, ids: &[&str]) -> Conditions {
        let parts =
            vec![one_of(path(&[ID]), ids.iter().copied()), one_of(path(&[EDGE_ID]), ids.iter().copied())];
        self.all.push(expr(ExprKind::Logical(LogicalOp::Or, parts)));
        self
    }

    pub fn labels<'l>(mut self, labels: impl Iterator<Item = &'l str>) -> Conditions {
        self.all.push(one_of(path(&[LABEL]), labels));
        self
    }

    /// Filters, as far as SQL judges them in the same way.
    pub fn filters(
        mut self,
        filters: &[Filter],
        of_vertices: bool,
        partition_key: Option<&str>,
    ) -> Conditions {
        for Filter { key, predicate } in filters {
            let condition = match key {
                FilterKey::Id => predicate.as_ref().and_then(|p| compare(&|| path(&[ID]), p)),
                FilterKey::Label => predicate.as_ref().and_then(|p| compare(&|| path(&[LABEL]), p)),
                FilterKey::Property(name) if name.starts_with('_') => None,
                FilterKey::Property(name) => {
                    let flat = !of_vertices || partition_key == Some(name);
                    match predicate {
                        None if flat || **name != *super::document::TTL => {
                            Some(call("IS_DEFINED", vec![path(&[name])]))
                        }
                        None => None,
                        Some(predicate) if flat => compare(&|| path(&[name]), predicate),
                        Some(_) if **name == *super::document::TTL => None,
                        Some(predicate) => {
                            let held = || member(identifier(PROPERTY), VALUE);
                            compare(&held, predicate).map(|condition| exists(name, condition))
                        }
                    }
                }
            };
            self.all.extend(condition);
        }
        self
    }

    /// Filters, all of them as the language judges them; `None` where SQL would not.
    pub fn exactly(
        self,
        filters: &[Filter],
        of_vertices: bool,
        partition_key: Option<&str>,
    ) -> Option<Conditions> {
        let exact = |filter: &Filter| match (&filter.key, &filter.predicate) {
            (FilterKey::Property(name), Some(predicate)) => {
                let hidden = name.starts_with('_') || **name == *super::document::TTL;
                // An edge does not show it.
                let is_key = !of_vertices && partition_key == Some(&**name);
                !hidden && !is_key && is_exact(predicate)
            }
            (FilterKey::Property(_), None) => false,
            (FilterKey::Id, Some(predicate)) => of_vertices && is_exact(predicate),
            (FilterKey::Label, Some(predicate)) => is_exact(predicate),
            (_, None) => false,
        };
        filters.iter().all(exact).then(|| self.filters(filters, of_vertices, partition_key))
    }

    /// The items.
    pub fn compile(self) -> Result<Statement, SqlError> {
        self.compile_as(Projection::Star(Span::default()), Vec::new())
    }

    /// How many there are.
    pub fn compile_count(self) -> Result<Statement, SqlError> {
        let one = expr(ExprKind::Literal(Literal::Integer(1)));
        self.compile_as(Projection::Value(call("COUNT", vec![one]), None), Vec::new())
    }

    /// How many there are of each value under a name: the first of a list of properties, or what stands there.
    pub fn compile_groups(self, name: &str, flat: bool) -> Result<Statement, SqlError> {
        let key = || match flat {
            true => path(&[name]),
            false => {
                let first = expr(ExprKind::Literal(Literal::Integer(0)));
                member(expr(ExprKind::Index(Box::new(path(&[name])), Box::new(first))), VALUE)
            }
        };
        let named = |expr, name: &str| SelectItem {
            expr,
            alias: Some(Name { text: name.to_owned(), span: Span::default() }),
        };
        let count = call("COUNT", vec![expr(ExprKind::Literal(Literal::Integer(1)))]);
        let rows = Projection::List(vec![named(key(), GROUP), named(count, COUNT)]);
        self.compile_as(rows, vec![key()])
    }

    fn compile_as(self, projection: Projection, group_by: Vec<Expr>) -> Result<Statement, SqlError> {
        let filter = match self.all.len() {
            0 => None,
            _ => Some(all(self.all)),
        };
        let query = Query { group_by, ..select(projection, source(identifier(ITEM), false, None), filter) };
        let env = query_env();
        let prepared = Prepared::new(&query, &[], &env)?;
        let plan = MergePlan::new(&query, &prepared, &[], &env)?;
        Ok(Statement { query, plan })
    }
}

/// A predicate on a path; `None` where SQL would judge otherwise, or not at all.
fn compare(at: &dyn Fn() -> Expr, predicate: &P) -> Option<Expr> {
    let simple = |op, value: &Value| Some(binary(op, at(), literal(value)?));
    match predicate {
        P::Eq(value) => simple(BinaryOp::Equal, value),
        P::Lt(value) => simple(BinaryOp::Less, ordered(value)?),
        P::Lte(value) => simple(BinaryOp::LessEqual, ordered(value)?),
        P::Gt(value) => simple(BinaryOp::Greater, ordered(value)?),
        P::Gte(value) => simple(BinaryOp::GreaterEqual, ordered(value)?),
        P::Inside(low, high) => Some(all(vec![
            simple(BinaryOp::Greater, ordered(low)?)?,
            simple(BinaryOp::Less, ordered(high)?)?,
        ])),
        P::Between(low, high) => Some(all(vec![
            simple(BinaryOp::GreaterEqual, ordered(low)?)?,
            simple(BinaryOp::Less, ordered(high)?)?,
        ])),
        P::Within(values) if !values.is_empty() => {
            let list = values.iter().map(literal).collect::<Option<Vec<_>>>()?;
            Some(expr(ExprKind::In { needle: Box::new(at()), list, negated: false }))
        }
        P::Text(TextOp::StartingWith, Value::String(prefix)) => {
            Some(call("STARTSWITH", vec![at(), text(prefix)]))
        }
        // Each part that is understood narrows what all of them let through.
        P::And(parts) => {
            let parts: Vec<Expr> = parts.iter().filter_map(|part| compare(at, part)).collect();
            (!parts.is_empty()).then(|| all(parts))
        }
        P::Or(parts) => {
            let parts = parts.iter().map(|part| compare(at, part)).collect::<Option<Vec<_>>>()?;
            (!parts.is_empty()).then(|| expr(ExprKind::Logical(LogicalOp::Or, parts)))
        }
        _ => None,
    }
}

/// Whether a predicate's condition lets nothing through that the predicate would not.
fn is_exact(predicate: &P) -> bool {
    /// From here on doubles do not tell all whole numbers apart.
    const WHOLE_END: i64 = 1 << 53;
    let plain = |value: &Value| match value {
        Value::String(_) | Value::Bool(_) => true,
        Value::Int(_) | Value::Short(_) | Value::Byte(_) => true,
        Value::Long(whole) => whole.abs() < WHOLE_END,
        Value::Double(number) => number.is_finite() && number.abs() < WHOLE_END as f64,
        _ => false,
    };
    let sorts = |value: &Value| plain(value) && ordered(value).is_some();
    match predicate {
        P::Eq(value) => plain(value),
        P::Lt(value) | P::Lte(value) | P::Gt(value) | P::Gte(value) => sorts(value),
        P::Inside(low, high) | P::Between(low, high) => sorts(low) && sorts(high),
        P::Within(values) => !values.is_empty() && values.iter().all(plain),
        P::Text(TextOp::StartingWith, Value::String(_)) => true,
        P::And(parts) | P::Or(parts) => !parts.is_empty() && parts.iter().all(is_exact),
        _ => false,
    }
}

/// Values that SQL orders as the language does: numbers, and texts where code units and code points agree.
fn ordered(value: &Value) -> Option<&Value> {
    match value {
        Value::String(text) => text.is_ascii().then_some(value),
        value => value.is_number().then_some(value),
    }
}

fn literal(value: &Value) -> Option<Expr> {
    let literal = match value {
        Value::String(text) => Literal::String(text.to_string()),
        Value::Bool(value) => Literal::Bool(*value),
        Value::BigDecimal(_) | Value::BigInt(_) => return None,
        number => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Literal::Integer(whole),
            (None, Some(number)) if number.is_finite() => Literal::Double(number),
            _ => return None,
        },
    };
    Some(expr(ExprKind::Literal(literal)))
}

fn exists(name: &str, condition: Expr) -> Expr {
    let value = Projection::Value(constant(true), None);
    let from = Source {
        collection: Collection::Path(path(&[name])),
        iterate: true,
        alias: Some(Name { text: PROPERTY.to_owned(), span: Span::default() }),
        span: Span::default(),
    };
    expr(ExprKind::Subquery(SubqueryKind::Exists, Box::new(select(value, from, Some(condition)))))
}

fn select(projection: Projection, from: Source, filter: Option<Expr>) -> Query {
    let span = Span::default();
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

fn source(path: Expr, iterate: bool, alias: Option<Name>) -> Source {
    Source { collection: Collection::Path(path), iterate, alias, span: Span::default() }
}

fn one_of<'t>(needle: Expr, texts: impl Iterator<Item = &'t str>) -> Expr {
    let mut list: Vec<Expr> = texts.map(text).collect();
    match list.len() {
        0 => constant(false),
        1 => binary(BinaryOp::Equal, needle, list.remove(0)),
        _ => expr(ExprKind::In { needle: Box::new(needle), list, negated: false }),
    }
}

fn expr(kind: ExprKind) -> Expr {
    Expr::new(kind, Span::default())
}

fn identifier(name: &str) -> Expr {
    expr(ExprKind::Identifier(name.to_owned()))
}

fn member(object: Expr, name: &str) -> Expr {
    expr(ExprKind::Member(Box::new(object), name.to_owned()))
}

fn path(names: &[&str]) -> Expr {
    names.iter().fold(identifier(ITEM), |object, name| member(object, name))
}

fn text(value: impl AsRef<str>) -> Expr {
    expr(ExprKind::Literal(Literal::String(value.as_ref().to_owned())))
}

fn constant(value: bool) -> Expr {
    expr(ExprKind::Literal(Literal::Bool(value)))
}

fn binary(operator: BinaryOp, left: Expr, right: Expr) -> Expr {
    expr(ExprKind::Binary(operator, Box::new(left), Box::new(right)))
}

fn all(mut parts: Vec<Expr>) -> Expr {
    match parts.len() {
        1 => parts.remove(0),
        _ => expr(ExprKind::Logical(LogicalOp::And, parts)),
    }
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let name = Name { text: name.to_owned(), span: Span::default() };
    expr(ExprKind::Call { name, udf: false, arguments })
}
