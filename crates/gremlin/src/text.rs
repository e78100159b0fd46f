//! Values as text, the way the JVM prints them: what asString(), concat() and format() show.

use crate::value::{Tree, Value};

/// The text of a value; null is `null`.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(v) => v.to_string(),
        Value::Byte(v) => v.to_string(),
        Value::Short(v) => v.to_string(),
        Value::Int(v) => v.to_string(),
        Value::Long(v) => v.to_string(),
        Value::BigInt(v) => v.to_string(),
        Value::Float(v) => float_text(f64::from(*v), &format!("{v:?}")),
        Value::Double(v) => float_text(*v, &format!("{v:?}")),
        Value::BigDecimal(v) => v.to_string(),
        Value::Char(v) => v.to_string(),
        Value::String(v) => v.to_string(),
        Value::Uuid(v) => uuid_text(*v),
        Value::Date(v) => v.to_string(),
        Value::Duration(v) => format!("PT{}S", *v as f64 / 1e9),
        Value::Binary(v) => format!("{v:?}"),
        Value::List(items) => list_text(items.iter()),
        Value::Set(items) => list_text(items.iter()),
        Value::BulkSet(_) => list_text(crate::compare::items(value).iter()),
        Value::Path(path) => list_text(path.objects.iter()),
        Value::Map(map) => {
            let entries: Vec<String> =
                map.iter().map(|(k, v)| format!("{}={}", text_of(k), text_of(v))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Entry(pair) => format!("{}={}", text_of(&pair.0), text_of(&pair.1)),
        Value::Vertex(v) => format!("v[{}]", text_of(&v.id)),
        Value::Edge(e) => {
            let (out, into) = (text_of(&e.out_v.id), text_of(&e.in_v.id));
            format!("e[{}][{out}-{}->{into}]", text_of(&e.id), e.label)
        }
        Value::VertexProperty(p, _) => format!("vp[{}->{}]", p.key, short(&text_of(&p.value))),
        Value::Property(p, _) => format!("p[{}->{}]", p.key, short(&text_of(&p.value))),
        Value::T(v) => v.name().to_owned(),
        Value::Direction(v) => v.name().to_owned(),
        Value::Order(v) => v.name().to_owned(),
        Value::Traverser(t) => text_of(&t.0),
        Value::Tree(tree) => tree_text(tree),
        Value::Graph(graph) => {
            format!("graph[vertices:{} edges:{}]", graph.vertices.len(), graph.edges.len())
        }
        other => format!("{other:?}"),
    }
}

fn tree_text(tree: &Tree) -> String {
    let branches: Vec<String> =
        tree.0.iter().map(|(key, branch)| format!("{}={}", text_of(key), tree_text(branch))).collect();
    format!("{{{}}}", branches.join(", "))
}

fn short(text: &str) -> String {
    text.chars().take(20).collect()
}

fn list_text<'a>(items: impl Iterator<Item = &'a Value>) -> String {
    let items: Vec<String> = items.map(text_of).collect();
    format!("[{}]", items.join(", "))
}

fn float_text(number: f64, plain: &str) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else {
        plain.replace('e', "E")
    }
}

pub fn uuid_text(uuid: u128) -> String {
    let hex = format!("{uuid:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// What messages call the type of a value.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "java.lang.Boolean",
        Value::Byte(_) => "java.lang.Byte",
        Value::Short(_) => "java.lang.Short",
        Value::Int(_) => "java.lang.Integer",
        Value::Long(_) => "java.lang.Long",
        Value::BigInt(_) => "java.math.BigInteger",
        Value::Float(_) => "java.lang.Float",
        Value::Double(_) => "java.lang.Double",
        Value::BigDecimal(_) => "java.math.BigDecimal",
        Value::String(_) => "java.lang.String",
        Value::Uuid(_) => "java.util.UUID",
        Value::Date(_) => "java.time.OffsetDateTime",
        Value::List(_) => "java.util.List",
        Value::Set(_) => "java.util.Set",
        Value::Map(_) => "java.util.Map",
        Value::Vertex(_) => "Vertex",
        Value::Edge(_) => "Edge",
        Value::VertexProperty(..) => "VertexProperty",
        Value::Property(..) => "Property",
        Value::Path(_) => "Path",
        _ => "Object",
    }
}
