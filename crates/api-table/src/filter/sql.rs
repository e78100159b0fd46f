//! An expression to the syntax tree of SQL.
//!
//! | filter | SQL |
//! |---|---|
//! | `PartitionKey eq 'p'` | `c["$pk"] = "p"` |
//! | `RowKey ge 'a'` | `c.id >= "a"` |
//! | `Name eq 'x'` | `c.Name["$v"] = "x" AND NOT ((c.Name["$t"] ?? -1) != 2)` |
//! | `Age gt 3` | `c.Age["$v"] > 3 OR ($t = 1 AND $v = "Infinity") OR ($t = 18 AND $v > "00…3")` |
//! | `Timestamp gt datetime'…'` | `c._ts >= seconds AND c._etag > "ticks"` |
//! | `not (…)` | `NOT ((…) ?? false)` |
//!
//! A number is compared with properties of all numeric types. Long integers are kept as strings (see `edm`) that sort
//! by value among those that are not negative and backwards among the others, so a range of them is one or two ranges
//! of strings. `_etag` is what [`TableSystem`](crate::query::TableSystem) says it is: the ticks of the timestamp.

use orrery_query::merge::MergePlan;
use orrery_query::{Prepared, QueryEnv};
use orrery_sql::{
    BinaryOp, Collection, Expr, ExprKind, Literal as SqlLiteral, LogicalOp, OrderBy, OrderItem, Projection,
    Query, Select, Source, Span, UnaryOp,
};

use super::{Comparison, Filter, Literal, Operator};
use crate::date_time::{TICKS_PER_S, UNIX_EPOCH_TICKS};
use crate::edm::{EdmType, TYPE_MEMBER, VALUE_MEMBER, pad, stored_ticks, unusual};
use crate::errors::{Code, Result, TableError};
use crate::stored;

const ITEM: &str = "c";

/// No type has this tag.
const NO_TYPE: i64 = -1;

/// The query for entities that pass a filter, in the order of their keys. Where the filter fixes the partition, the
/// row key is order enough.
fn query(filter: Option<&Filter>) -> Result<Query> {
    let fixed = filter.is_some_and(|filter| filter.partition_key().is_some());
    let by = |path: Expr| OrderItem { expr: path, direction: None };
    let mut order = vec![by(path(&["id"]))];
    if !fixed {
        order.insert(0, by(path(&[stored::PARTITION_KEY])));
    }
    let span = Span::default();
    Ok(Query {
        select: Select { distinct: false, top: None, projection: Projection::Star(span), top_span: span },
        from: vec![Source { collection: Collection::Path(item()), iterate: false, alias: None, span }],
        filter: filter.map(|filter| condition(filter, false)).transpose()?,
        group_by: Vec::new(),
        order_by: Some(OrderBy { rank: false, items: order, span }),
        offset_limit: None,
        span,
    })
}

/// A query, ready to run in one partition, and how what several answer is put together.
#[derive(Debug)]
pub struct Compiled {
    pub query: Query,
    pub prepared: Prepared,
    pub plan: MergePlan,
}

/// What queries are compiled with.
pub fn query_env() -> QueryEnv {
    // Whichever indexes a table has, its entities can be sorted by their keys.
    QueryEnv { composite_indexes: None, ..QueryEnv::default() }
}

pub fn compile(filter: Option<&Filter>) -> Result<Compiled> {
    let env = query_env();
    let refused = |error| TableError::new(Code::InvalidInput, format!("The filter cannot be run: {error}"));
    let query = query(filter)?;
    let prepared = Prepared::new(&query, &[], &env).map_err(refused)?;
    let plan = MergePlan::new(&query, &prepared, &[], &env).map_err(refused)?;
    Ok(Compiled { query, prepared, plan })
}

fn item() -> Expr {
    expr(ExprKind::Identifier(ITEM.to_owned()))
}

fn expr(kind: ExprKind) -> Expr {
    Expr::new(kind, Span::default())
}

fn path(names: &[&str]) -> Expr {
    names.iter().fold(item(), |object, name| expr(ExprKind::Member(Box::new(object), (*name).to_owned())))
}

fn text(value: impl Into<String>) -> Expr {
    expr(ExprKind::Literal(SqlLiteral::String(value.into())))
}

fn integer(value: i64) -> Expr {
    expr(ExprKind::Literal(SqlLiteral::Integer(value)))
}

fn constant(value: bool) -> Expr {
    expr(ExprKind::Literal(SqlLiteral::Bool(value)))
}

fn binary(operator: BinaryOp, left: Expr, right: Expr) -> Expr {
    expr(ExprKind::Binary(operator, Box::new(left), Box::new(right)))
}

fn all(parts: Vec<Expr>) -> Expr {
    if parts.is_empty() {
        return constant(true);
    }
    expr(ExprKind::Logical(LogicalOp::And, parts))
}

fn any(parts: Vec<Expr>) -> Expr {
    if parts.is_empty() {
        return constant(false);
    }
    expr(ExprKind::Logical(LogicalOp::Or, parts))
}

fn operator(operator: Operator) -> BinaryOp {
    match operator {
        Operator::Equal => BinaryOp::Equal,
        Operator::NotEqual => BinaryOp::NotEqual,
        Operator::Greater => BinaryOp::Greater,
        Operator::GreaterOrEqual => BinaryOp::GreaterEqual,
        Operator::Less => BinaryOp::Less,
        Operator::LessOrEqual => BinaryOp::LessEqual,
    }
}

/// The condition, or its negation. Negations are moved down to the comparisons, so that the index can be asked.
fn condition(filter: &Filter, negated: bool) -> Result<Expr> {
    let each =
        |parts: &[Filter]| parts.iter().map(|part| condition(part, negated)).collect::<Result<Vec<_>>>();
    Ok(match filter {
        Filter::Constant(value) => constant(*value != negated),
        Filter::And(parts) if negated => any(each(parts)?),
        Filter::And(parts) => conjunction(parts)?,
        Filter::Or(parts) if negated => all(each(parts)?),
        Filter::Or(parts) => any(each(parts)?),
        Filter::Not(inner) => condition(inner, !negated)?,
        Filter::Compare(comparison) if negated => {
            let decided = expr(ExprKind::Coalesce(Box::new(compare(comparison)?), Box::new(constant(false))));
            expr(ExprKind::Unary(UnaryOp::Not, Box::new(decided)))
        }
        Filter::Compare(comparison) => compare(comparison)?,
    })
}

/// All of several conditions. Ranges of one property over numbers are put together, so that they are one range of the
/// index for each way in which numbers are kept.
fn conjunction(parts: &[Filter]) -> Result<Expr> {
    let mut flat = Vec::new();
    flatten(parts, &mut flat);
    let mut conditions = Vec::with_capacity(flat.len());
    let mut ranges: Vec<(&str, Vec<&Comparison>)> = Vec::new();
    for part in flat {
        match part {
            Filter::Compare(comparison) if is_numeric_range(comparison) => {
                let property = comparison.property.as_str();
                match ranges.iter_mut().find(|(known, _)| *known == property) {
                    Some((_, comparisons)) => comparisons.push(comparison),
                    None => ranges.push((property, vec![comparison])),
                }
            }
            other => conditions.push(condition(other, false)?),
        }
    }
    for (property, comparisons) in ranges {
        conditions.push(numbers(property, &comparisons));
    }
    Ok(all(conditions))
}

fn flatten<'f>(parts: &'f [Filter], out: &mut Vec<&'f Filter>) {
    for part in parts {
        match part {
            Filter::And(inner) => flatten(inner, out),
            other => out.push(other),
        }
    }
}

fn is_numeric_range(comparison: &Comparison) -> bool {
    !matches!(comparison.property.as_str(), "PartitionKey" | "RowKey" | "Timestamp")
        && !matches!(comparison.operator, Operator::Equal | Operator::NotEqual)
        && matches!(comparison.value, Literal::Integer(_) | Literal::Double(_))
}

/// All of several comparisons of one property with numbers: as a number, as an infinite one, as a long integer.
fn numbers(property: &str, comparisons: &[&Comparison]) -> Expr {
    let member = stored::member(property);
    let kind = || path(&[&member, TYPE_MEMBER]);
    let held = || path(&[&member, VALUE_MEMBER]);
    let is = |wanted: EdmType| binary(BinaryOp::Equal, kind(), integer(wanted.tag()));
    let mut short = Vec::with_capacity(comparisons.len());
    let mut longs = Some(vec![is(EdmType::Int64)]);
    for Comparison { operator: op, value, .. } in comparisons {
        let (number, as_long) = match value {
            Literal::Integer(value) => (integer(*value), Some((*op, *value))),
            Literal::Double(value) => {
                (expr(ExprKind::Literal(SqlLiteral::Double(*value))), whole(*op, *value))
            }
            _ => (constant(false), None),
        };
        short.push(binary(operator(*op), held(), number));
        // What no long integer can be leaves none.
        longs = longs.zip(as_long).map(|(mut longs, (op, value))| {
            longs.push(long(op, value, &held));
            longs
        });
    }
    let mut ways = vec![all(short)];
    let upwards = |op: Operator| matches!(op, Operator::Greater | Operator::GreaterOrEqual);
    for (infinity, up) in [(f64::INFINITY, true), (f64::NEG_INFINITY, false)] {
        if comparisons.iter().all(|comparison| upwards(comparison.operator) == up) {
            let is_infinite = binary(BinaryOp::Equal, held(), text(unusual(infinity).unwrap_or_default()));
            ways.push(all(vec![is(EdmType::Double), is_infinite]));
        }
    }
    ways.extend(longs.map(all));
    any(ways)
}

fn compare(comparison: &Comparison) -> Result<Expr> {
    let Comparison { property, operator: op, value } = comparison;
    let binary_op = operator(*op);
    match (property.as_str(), value) {
        ("PartitionKey", Literal::String(key)) => {
            return Ok(binary(binary_op, path(&[stored::PARTITION_KEY]), text(key)));
        }
        ("RowKey", Literal::String(key)) => {
            return Ok(binary(binary_op, path(&["id"]), text(stored::id(key))));
        }
        ("Timestamp", Literal::DateTime(ticks)) => return Ok(timestamp(*op, *ticks)),
        ("PartitionKey" | "RowKey" | "Timestamp", _) => return Ok(constant(false)),
        _ => {}
    }
    let member = stored::member(property);
    let kind = || path(&[&member, TYPE_MEMBER]);
    let held = || path(&[&member, VALUE_MEMBER]);
    let typed = |wanted: EdmType, test: Expr| match op {
        // Nearly everything is unequal: the type says more than the value.
        Operator::NotEqual => all(vec![binary(BinaryOp::Equal, kind(), integer(wanted.tag())), test]),
        _ => all(vec![test, is_of_type(kind(), wanted)]),
    };
    Ok(match value {
        Literal::String(value) => typed(EdmType::String, binary(binary_op, held(), text(value))),
        Literal::Guid(value) => typed(EdmType::Guid, binary(binary_op, held(), text(value))),
        Literal::DateTime(ticks) => {
            typed(EdmType::DateTime, binary(binary_op, held(), text(stored_ticks(*ticks))))
        }
        // Nothing else is true or false, but everything else is unequal to both.
        Literal::Boolean(value) if *op != Operator::NotEqual => binary(binary_op, held(), constant(*value)),
        Literal::Boolean(value) => typed(EdmType::Boolean, binary(binary_op, held(), constant(*value))),
        // Base64 does not sort as the bytes do.
        Literal::Binary(_) if !matches!(op, Operator::Equal | Operator::NotEqual) => {
            return Err(TableError::new(
                Code::NotImplemented,
                "Binary values can be compared for equality only.",
            ));
        }
        Literal::Binary(value) => typed(EdmType::Binary, binary(binary_op, held(), text(value))),
        Literal::Integer(_) | Literal::Double(_) if is_numeric_range(comparison) => {
            numbers(property, &[comparison])
        }
        Literal::Integer(value) => {
            let short = numeric(*op, kind(), binary(binary_op, held(), integer(*value)));
            any(vec![short, typed(EdmType::Int64, long(*op, *value, &held))])
        }
        Literal::Double(value) => {
            let double = expr(ExprKind::Literal(SqlLiteral::Double(*value)));
            let short = numeric(*op, kind(), binary(binary_op, held(), double));
            match whole(*op, *value) {
                Some((op, value)) => any(vec![short, typed(EdmType::Int64, long(op, value, &held))]),
                None if *op == Operator::NotEqual => {
                    any(vec![short, binary(BinaryOp::Equal, kind(), integer(EdmType::Int64.tag()))])
                }
                None => short,
            }
        }
    })
}

/// Whether a value that was found is of a type, which the item is asked and not the index: nearly all values of a
/// property have one type, so the index knows it of nearly all entities, and its list of them would be read for
/// nothing. Two negations say the same as `=` and are not looked up.
fn is_of_type(kind: Expr, wanted: EdmType) -> Expr {
    let kind = expr(ExprKind::Coalesce(Box::new(kind), Box::new(integer(NO_TYPE))));
    let other = binary(BinaryOp::NotEqual, kind, integer(wanted.tag()));
    expr(ExprKind::Unary(UnaryOp::Not, Box::new(other)))
}

/// Whether something equals a number. Only numbers do, so their type need not be asked for, except by what is unequal.
fn numeric(op: Operator, kind: Expr, test: Expr) -> Expr {
    match op {
        Operator::NotEqual => {
            let kinds = vec![integer(EdmType::Double.tag()), integer(EdmType::Int32.tag())];
            let of_kind = expr(ExprKind::In { needle: Box::new(kind), list: kinds, negated: false });
            all(vec![of_kind, test])
        }
        _ => test,
    }
}

/// What a comparison of an integer with a double means among integers.
fn whole(op: Operator, value: f64) -> Option<(Operator, i64)> {
    /// The first double beyond the long integers.
    const EDGE: f64 = 9_223_372_036_854_775_808.0;
    match op {
        Operator::Less | Operator::LessOrEqual if value >= EDGE => Some((Operator::LessOrEqual, i64::MAX)),
        Operator::Greater | Operator::GreaterOrEqual if value < -EDGE => {
            Some((Operator::GreaterOrEqual, i64::MIN))
        }
        _ if !(-EDGE..EDGE).contains(&value) => None,
        _ if value.fract() == 0.0 => Some((op, value as i64)),
        Operator::Equal | Operator::NotEqual => None,
        Operator::Greater | Operator::GreaterOrEqual => Some((Operator::GreaterOrEqual, value.ceil() as i64)),
        Operator::Less | Operator::LessOrEqual => Some((Operator::LessOrEqual, value.floor() as i64)),
    }
}

/// A comparison with a long integer as it is kept: `-…` below zero, of which the larger sorts first, digits from zero
/// on.
fn long(op: Operator, value: i64, held: &dyn Fn() -> Expr) -> Expr {
    /// The first string of what is not negative.
    const ZERO: &str = "0";
    let padded = || text(pad(value));
    let simple = binary(operator(op), held(), padded());
    if value >= 0 || matches!(op, Operator::Equal | Operator::NotEqual) {
        return simple;
    }
    let backwards = binary(operator(op.turned()), held(), padded());
    match op {
        Operator::Less | Operator::LessOrEqual => {
            all(vec![backwards, binary(BinaryOp::Less, held(), text(ZERO))])
        }
        _ => any(vec![backwards, binary(BinaryOp::GreaterEqual, held(), text(ZERO))]),
    }
}

/// The second narrows by the index, the ticks decide.
fn timestamp(op: Operator, ticks: u64) -> Expr {
    let exact = binary(operator(op), path(&["_etag"]), text(stored_ticks(ticks)));
    let second = |op: BinaryOp, second: u64| {
        binary(op, path(&["_ts"]), integer(i64::try_from(second).unwrap_or(i64::MAX)))
    };
    let Some(since_epoch) = ticks.checked_sub(UNIX_EPOCH_TICKS) else { return exact };
    let at = since_epoch / TICKS_PER_S;
    match op {
        Operator::Equal => all(vec![second(BinaryOp::Equal, at), exact]),
        Operator::NotEqual => exact,
        Operator::Greater | Operator::GreaterOrEqual => all(vec![second(BinaryOp::GreaterEqual, at), exact]),
        Operator::Less | Operator::LessOrEqual => all(vec![second(BinaryOp::LessEqual, at), exact]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::entity::Entity;
    use crate::filter::parse;
    use crate::stored;
    use orrery_model::{Raw, Value};
    use orrery_query::{RowView, run_all};

    /// The row keys of the entities that a filter lets through.
    fn found(filter: &str, entities: &[(&str, &str)]) -> String {
        let Compiled { prepared, .. } = compile(Some(&parse(filter).unwrap())).unwrap();
        let items: Vec<_> = entities
            .iter()
            .map(|(row_key, text)| {
                let entity = Entity::parse(text.as_bytes(), Dialect::Cosmos).unwrap();
                stored::write("p", row_key, &entity)
            })
            .collect();
        let ticks = stored_ticks(crate::date_time::parse("2020-01-01T00:00:00.5Z").unwrap());
        let system = vec![("_etag", Value::from(&*ticks)), ("_ts", Value::from(1_577_836_800))];
        let rows = items.iter().map(|item| RowView {
            document: Raw::document(item).unwrap(),
            system: &system,
            appended: 0,
        });
        let rows = run_all(&prepared, rows).unwrap();
        let keys = rows.iter().map(|row| {
            let row: serde_json::Value = serde_json::from_slice(row).unwrap();
            row["$id"].as_str().unwrap().to_owned()
        });
        keys.collect::<Vec<_>>().join(" ")
    }

    const ENTITIES: &[(&str, &str)] = &[
        ("a", r#"{"N":1,"S":"x","B":true}"#),
        ("b", r#"{"N":2.5,"S":"y","B":false}"#),
        ("c", r#"{"N":"-3","N@odata.type":"Edm.Int64"}"#),
        ("d", r#"{"N":"10","N@odata.type":"Edm.Int64"}"#),
        ("e", r#"{"N":"one"}"#),
        ("f", r#"{"N":"-20","N@odata.type":"Edm.Int64"}"#),
        ("g", r#"{"T":"2020-01-01T00:00:00Z","T@odata.type":"Edm.DateTime"}"#),
        (
            "h",
            r#"{"G":"c9da6455-213d-42c9-9a79-3e9149a57833","G@odata.type":"Edm.Guid","X":"AAE=","X@odata.type":"Edm.Binary"}"#,
        ),
    ];

    #[test]
    fn filters_find_what_the_protocol_says() {
        for (filter, expected) in [
            ("N eq 1", "a"),
            ("N gt 1", "b d"),
            ("N ge -3", "a b c d"),
            ("N gt -3", "a b d"),
            ("N lt -3", "f"),
            ("N le -3", "c f"),
            ("N lt 0", "c f"),
            ("N lt 2.6", "a b c f"),
            ("N gt -3.5", "a b c d"),
            ("N lt -3.5", "f"),
            ("N eq 10L", "d"),
            ("N eq 2.5", "b"),
            ("N ne 1", "b c d f"),
            ("N ne 2.25", "a b c d f"),
            ("N eq 'one'", "e"),
            ("N gt 1e300", ""),
            ("N lt 1e300", "a b c d f"),
            ("S ge 'x' and S lt 'y'", "a"),
            ("S ne 'x'", "b"),
            ("not (S eq 'x')", "b c d e f g h"),
            ("not (N lt 5)", "d e g h"),
            ("not (S eq 'x' or N eq 10)", "b c e f g h"),
            ("B", "a"),
            ("not B", "b c d e f g h"),
            ("B eq false", "b"),
            ("T eq datetime'2020-01-01T00:00:00Z'", "g"),
            ("T lt datetime'2019-01-01T00:00:00Z'", ""),
            ("G eq guid'C9DA6455-213D-42C9-9A79-3E9149A57833'", "h"),
            ("X eq X'0001'", "h"),
            ("G eq 'c9da6455-213d-42c9-9a79-3e9149a57833'", ""),
            ("PartitionKey eq 'p' and RowKey gt 'f'", "g h"),
            ("RowKey eq 5", ""),
            ("RowKey ge '' and RowKey lt 'b'", "a"),
            ("Timestamp gt datetime'2020-01-01T00:00:00.4Z' and RowKey eq 'a'", "a"),
            ("Timestamp gt datetime'2020-01-01T00:00:00.5Z'", ""),
            ("Timestamp le datetime'2020-01-01T00:00:00.5Z' and RowKey le 'b'", "a b"),
            ("Timestamp lt datetime'1960-01-01T00:00:00Z'", ""),
            ("true and RowKey eq 'a'", "a"),
            ("false or RowKey eq 'a'", "a"),
        ] {
            assert_eq!(found(filter, ENTITIES), expected, "{filter}");
        }
    }

    #[test]
    fn bytes_have_no_order_that_the_index_knows() {
        assert_eq!(compile(Some(&parse("X gt X'00'").unwrap())).unwrap_err().code, Code::NotImplemented);
    }

    #[test]
    fn the_tree_is_the_query_that_people_would_write() {
        let query = query(Some(&parse("PartitionKey eq 'p' and Age eq 3").unwrap())).unwrap();
        assert_eq!(
            query.to_string(),
            r#"SELECT * FROM c WHERE ((c["$pk"] = "p") AND ((c.Age["$v"] = 3) OR ((c.Age["$v"] = "00000000000000000003") AND (NOT ((c.Age["$t"] ?? -1) != 18))))) ORDER BY c.id"#
        );
    }
}
