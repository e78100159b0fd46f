//! GraphSON: JSON that says what its values are (2 and 3), or does not (1, and what Cosmos DB sends under the name of
//! 2).
//!
//! `read` takes every version, typed and bare values mixed; `typed` and `untyped` write.

mod read;
mod typed;
mod untyped;

pub use read::{DEPTH_MAX, ReadError, read};
pub(crate) use read::{DIGITS_MAX, direction, order, predicate, strategy_name, traversal};
pub use typed::Typed;
pub(crate) use untyped::by_key;
pub use untyped::write as write_untyped;

use orrery_gremlin::Value;
use orrery_model::write_json_string;

/// Values that are no element have keys of maps as text.
pub(crate) fn key_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => text.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Byte(n) => n.to_string(),
        Value::Short(n) => n.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Long(n) => n.to_string(),
        Value::BigInt(n) => n.to_string(),
        Value::Float(n) => double_text(f64::from(*n)),
        Value::Double(n) => double_text(*n),
        Value::BigDecimal(n) => n.to_string(),
        Value::Char(c) => c.to_string(),
        Value::Uuid(id) => uuid::Uuid::from_u128(*id).hyphenated().to_string(),
        Value::Date(date) => date.to_string(),
        Value::Vertex(vertex) => format!("v[{}]", key_text(&vertex.id)),
        Value::Edge(edge) => format!(
            "e[{}][{}-{}->{}]",
            key_text(&edge.id),
            key_text(&edge.out_v.id),
            edge.label,
            key_text(&edge.in_v.id)
        ),
        Value::VertexProperty(property, _) => format!("vp[{}->{}]", property.key, key_text(&property.value)),
        Value::Property(property, _) => format!("p[{}->{}]", property.key, key_text(&property.value)),
        Value::List(items) => format!("[{}]", texts(items.iter())),
        Value::Set(items) => format!("[{}]", texts(items.iter())),
        Value::Path(path) => format!("path[{}]", texts(path.objects.iter())),
        Value::Map(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{}={}", key_text(key), key_text(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Entry(pair) => format!("{}={}", key_text(&pair.0), key_text(&pair.1)),
        Value::T(t) => t.name().to_owned(),
        Value::Direction(direction) => direction.name().to_owned(),
        other => token_name(other).unwrap_or_default().to_owned(),
    }
}

fn texts<'v>(items: impl Iterator<Item = &'v Value>) -> String {
    items.map(key_text).collect::<Vec<_>>().join(", ")
}

/// A double as JavaScript and Java write it, whole numbers with a zero behind the point.
pub(crate) fn double_text(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else {
        format!("{number:?}")
    }
}

/// The spelling of a member of an enumeration.
pub(crate) fn token_name(value: &Value) -> Option<&'static str> {
    Some(match value {
        Value::T(token) => token.name(),
        Value::Direction(token) => token.name(),
        Value::Order(token) => token.name(),
        Value::Scope(token) => token.name(),
        Value::Pop(token) => token.name(),
        Value::Column(token) => token.name(),
        Value::Cardinality(token) => token.name(),
        Value::Operator(token) => token.name(),
        Value::Merge(token) => token.name(),
        Value::Pick(token) => token.name(),
        Value::GType(token) => token.name(),
        Value::DateUnit(token) => token.name(),
        Value::NormSack => "normSack",
        _ => return None,
    })
}

pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    write_json_string(out, text);
}

pub(crate) fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Writes items with commas between them.
pub(crate) fn separated<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut each: impl FnMut(&mut Vec<u8>, T),
) {
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        each(out, item);
    }
}
