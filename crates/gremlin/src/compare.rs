//! Equality with promotion of numbers, comparability within a type, and the total order of everything.
//!
//! `1` equals `1.0`; a number and a text are not equal and neither is less; NaN is equal to nothing, yet has its
//! place in the order, after infinity. Types in the order: null, booleans, numbers, dates, texts, UUIDs, vertices,
//! edges, vertex properties, properties, paths, sets, lists, maps, anything else.

use std::cmp::Ordering;
use std::sync::Arc;

use num_bigint::BigInt;

use crate::decimal::Decimal;
use crate::value::{Set, Value, Vertex, VertexProperty};

/// `P.eq`.
pub fn equal(a: &Value, b: &Value) -> bool {
    compare(a, b) == Some(Ordering::Equal)
}

/// `P.lt` and its relatives: none when the two cannot be compared.
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    if rank(a) != rank(b) {
        return None;
    }
    if a.is_number() {
        return compare_numbers(a, b);
    }
    within_type(a, b, &|a, b| compare(a, b))
}

/// `order()`.
pub fn order(a: &Value, b: &Value) -> Ordering {
    // Tokens stand among the texts, by their names.
    if let (Value::T(_), Value::T(_) | Value::String(_)) | (Value::String(_), Value::T(_)) = (a, b) {
        return crate::text::text_of(a).cmp(&crate::text::text_of(b));
    }
    match rank(a).cmp(&rank(b)) {
        Ordering::Equal => {}
        unequal => return unequal,
    }
    if a.is_number() {
        return compare_numbers(a, b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)));
    }
    within_type(a, b, &|a, b| Some(order(a, b))).unwrap_or(Ordering::Equal)
}

fn is_nan(value: &Value) -> bool {
    match value {
        Value::Double(n) => n.is_nan(),
        Value::Float(n) => n.is_nan(),
        _ => false,
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        _ if value.is_number() => 2,
        Value::Date(_) => 3,
        Value::String(_) | Value::Char(_) => 4,
        Value::Uuid(_) => 5,
        Value::Vertex(_) => 6,
        Value::Edge(_) => 7,
        Value::VertexProperty(..) => 8,
        Value::Property(..) => 9,
        Value::Path(_) => 10,
        Value::Set(_) => 11,
        Value::List(_) | Value::BulkSet(_) => 12,
        Value::Map(_) => 13,
        Value::Entry(_) => 14,
        Value::Duration(_) => 15,
        Value::T(_) => 16,
        Value::Direction(_) => 17,
        Value::Tree(_) => 18,
        _ => 19,
    }
}

type Inner<'a> = &'a dyn Fn(&Value, &Value) -> Option<Ordering>;

fn within_type(a: &Value, b: &Value, inner: Inner<'_>) -> Option<Ordering> {
    Some(match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.instant().cmp(&b.instant()),
        (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Char(_) | Value::String(_), Value::Char(_) | Value::String(_)) => {
            let text = |v: &Value| match v {
                Value::Char(c) => c.to_string(),
                other => other.as_str().unwrap_or_default().to_owned(),
            };
            text(a).cmp(&text(b))
        }
        (Value::Uuid(a), Value::Uuid(b)) => a.cmp(b),
        (Value::T(a), Value::T(b)) => a.cmp(b),
        (Value::Direction(a), Value::Direction(b)) => a.cmp(b),
        (Value::Vertex(a), Value::Vertex(b)) => {
            inner(&a.id, &b.id)?.then(inner(&a.partition, &b.partition).unwrap_or(Ordering::Equal))
        }
        (Value::Edge(a), Value::Edge(b)) => inner(&a.id, &b.id)?
            .then(inner(&a.out_v.partition, &b.out_v.partition).unwrap_or(Ordering::Equal)),
        (Value::VertexProperty(a, _), Value::VertexProperty(b, _)) if a.id == b.id => Ordering::Equal,
        // Ids order those of one vertex. One that is made of the vertex's id, the partition key's, is first.
        (Value::VertexProperty(a, Some(of_a)), Value::VertexProperty(b, Some(of_b))) => {
            let made = |property: &VertexProperty, of: &Vertex| match (property.id.as_str(), of.id.as_str()) {
                (Some(id), Some(of)) => id.strip_prefix(of).is_some_and(|rest| rest.starts_with('|')),
                _ => false,
            };
            let owners = inner(&of_a.id, &of_b.id)?;
            owners.then(made(b, of_b).cmp(&made(a, of_a))).then(inner(&a.id, &b.id)?)
        }
        (Value::VertexProperty(a, _), Value::VertexProperty(b, _)) => inner(&a.id, &b.id)?,
        (Value::Property(a, _), Value::Property(b, _)) => match a.key.cmp(&b.key) {
            Ordering::Equal => inner(&a.value, &b.value)?,
            unequal => unequal,
        },
        (Value::Entry(a), Value::Entry(b)) => match inner(&a.0, &b.0)? {
            Ordering::Equal => inner(&a.1, &b.1)?,
            unequal => unequal,
        },
        (Value::Path(a), Value::Path(b)) => sequences(&a.objects, &b.objects, inner)?,
        (Value::List(a), Value::List(b)) => sequences(a, b, inner)?,
        (Value::List(_) | Value::BulkSet(_), Value::List(_) | Value::BulkSet(_)) => {
            sequences(&items(a), &items(b), inner)?
        }
        (Value::Set(a), Value::Set(b)) => sequences(&sorted(a), &sorted(b), inner)?,
        (Value::Map(a), Value::Map(b)) => {
            let entries = |map: &crate::value::Map| {
                let mut entries: Vec<Value> =
                    map.iter().map(|(k, v)| Value::Entry(Arc::new((k.clone(), v.clone())))).collect();
                entries.sort_by(order);
                entries
            };
            sequences(&entries(a), &entries(b), inner)?
        }
        (a, b) if a == b => Ordering::Equal,
        (a, b) => format!("{a:?}").cmp(&format!("{b:?}")),
    })
}

fn sorted(set: &Set) -> Vec<Value> {
    let mut members: Vec<Value> = set.iter().cloned().collect();
    members.sort_by(order);
    members
}

fn sequences(a: &[Value], b: &[Value], inner: Inner<'_>) -> Option<Ordering> {
    for (a, b) in a.iter().zip(b) {
        match inner(a, b)? {
            Ordering::Equal => {}
            unequal => return Some(unequal),
        }
    }
    Some(a.len().cmp(&b.len()))
}

/// The members of a collection, none of anything else.
pub(crate) fn items(value: &Value) -> Vec<Value> {
    match value {
        Value::List(items) => items.to_vec(),
        Value::Set(items) => items.iter().cloned().collect(),
        Value::BulkSet(items) => items
            .iter()
            .flat_map(|(item, count)| std::iter::repeat_n(item.clone(), *count as usize))
            .collect(),
        Value::Path(path) => path.objects.clone(),
        _ => Vec::new(),
    }
}

fn compare_numbers(a: &Value, b: &Value) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return Some(a.cmp(&b));
    }
    let floating = |v: &Value| matches!(v, Value::Float(_) | Value::Double(_));
    if let (Some(x), Some(y)) = (a.as_f64(), b.as_f64())
        && (floating(a) && !x.is_finite() || floating(b) && !y.is_finite())
    {
        return x.partial_cmp(&y);
    }
    if matches!(a, Value::BigDecimal(_) | Value::BigInt(_))
        || matches!(b, Value::BigDecimal(_) | Value::BigInt(_))
    {
        return Some(decimal(a)?.cmp(&decimal(b)?));
    }
    match (a, b) {
        (Value::Float(x), Value::Int(_) | Value::Short(_) | Value::Byte(_) | Value::Float(_)) => {
            x.partial_cmp(&(b.as_f64()? as f32))
        }
        (Value::Int(_) | Value::Short(_) | Value::Byte(_), Value::Float(y)) => {
            (a.as_f64()? as f32).partial_cmp(y)
        }
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// Any finite number exactly.
pub(crate) fn decimal(value: &Value) -> Option<Decimal> {
    match value {
        Value::BigDecimal(n) => Some(Decimal::clone(n)),
        Value::BigInt(n) => Some(Decimal::new(BigInt::clone(n), 0)),
        Value::Float(n) => n.is_finite().then(|| Decimal::parse(&format!("{n:?}"))).flatten(),
        Value::Double(n) => Decimal::from_f64(*n),
        other => other.as_i64().map(|n| Decimal::new(BigInt::from(n), 0)),
    }
}
