//! Values to GraphSON 2 and 3, where every value says what it is.
//!
//! | | 2 | 3 |
//! |---|---|---|
//! | list, set | bare array | `g:List`, `g:Set` |
//! | map | object, keys as text | `g:Map`, keys of any kind |
//! | bulk set | array, with repetitions | `g:BulkSet` |

use orrery_gremlin::Value;
use orrery_gremlin::value::{Edge, Property, Tree, Vertex, VertexProperty};

use super::{double_text, key_text, push, push_string, separated, token_name};

/// How to write.
#[derive(Debug, Clone, Copy)]
pub struct Typed {
    /// GraphSON 3; else 2.
    pub third: bool,
}

impl Typed {
    pub fn write(self, value: &Value, out: &mut Vec<u8>) {
        match value {
            Value::Null => push(out, "null"),
            Value::Bool(value) => push(out, if *value { "true" } else { "false" }),
            Value::String(text) => push_string(out, text),
            Value::Byte(n) => plain(out, "gx:Byte", &n.to_string()),
            Value::Short(n) => plain(out, "gx:Int16", &n.to_string()),
            Value::Int(n) => plain(out, "g:Int32", &n.to_string()),
            Value::Long(n) => plain(out, "g:Int64", &n.to_string()),
            Value::BigInt(n) => plain(out, "gx:BigInteger", &n.to_string()),
            Value::Float(n) => double(out, "g:Float", f64::from(*n), &format!("{n:?}")),
            Value::Double(n) => double(out, "g:Double", *n, &double_text(*n)),
            Value::BigDecimal(n) => plain(out, "gx:BigDecimal", &n.to_string()),
            Value::Char(c) => quoted(out, "gx:Char", c.encode_utf8(&mut [0; 4])),
            Value::Uuid(id) => quoted(out, "g:UUID", &uuid::Uuid::from_u128(*id).hyphenated().to_string()),
            Value::Date(date) if date.offset_seconds() == 0 && date.nanos() % 1_000_000 == 0 => {
                plain(out, "g:Date", &date.epoch_millis().to_string());
            }
            Value::Date(date) => quoted(out, "gx:OffsetDateTime", &date.to_string()),
            Value::Duration(nanoseconds) => quoted(out, "gx:Duration", &duration_text(*nanoseconds)),
            Value::Binary(bytes) => {
                use base64::Engine as _;
                quoted(out, "gx:ByteBuffer", &base64::engine::general_purpose::STANDARD.encode(bytes));
            }
            Value::List(items) => self.sequence(out, "g:List", items.iter()),
            Value::Set(items) => self.sequence(out, "g:Set", items.iter()),
            Value::Map(map) => self.map(out, map.iter()),
            Value::Entry(pair) => self.map(out, [(&pair.0, &pair.1)].into_iter()),
            Value::BulkSet(items) if self.third => typed(out, "g:BulkSet", |out| {
                out.push(b'[');
                separated(out, items.iter(), |out, (item, count)| {
                    self.write(item, out);
                    out.push(b',');
                    plain(out, "g:Int64", &count.to_string());
                });
                out.push(b']');
            }),
            Value::BulkSet(items) => {
                let repeated = items.iter().flat_map(|(item, count)| (0..*count).map(move |_| item));
                self.sequence(out, "g:List", repeated);
            }
            Value::Vertex(vertex) => self.vertex(vertex, out),
            Value::Edge(edge) => self.edge(edge, out),
            Value::VertexProperty(property, _) => self.vertex_property(property, out),
            Value::Property(property, _) => self.property(property, out),
            Value::Path(path) => typed(out, "g:Path", |out| {
                push(out, "{\"labels\":");
                self.open(out, "g:List");
                separated(out, &path.labels, |out, labels| {
                    self.open(out, "g:Set");
                    separated(out, labels, |out, label| push_string(out, label));
                    self.close(out);
                });
                self.close(out);
                push(out, ",\"objects\":");
                self.sequence(out, "g:List", path.objects.iter());
                out.push(b'}');
            }),
            Value::Tree(tree) => self.tree(tree, out),
            Value::Graph(graph) => typed(out, "tinker:graph", |out| {
                push(out, "{\"vertices\":[");
                separated(out, &graph.vertices, |out, vertex| self.write(vertex, out));
                push(out, "],\"edges\":[");
                separated(out, &graph.edges, |out, edge| self.write(edge, out));
                push(out, "]}");
            }),
            Value::Traverser(traverser) => typed(out, "g:Traverser", |out| {
                push(out, "{\"bulk\":");
                plain(out, "g:Int64", &traverser.1.to_string());
                push(out, ",\"value\":");
                self.write(&traverser.0, out);
                out.push(b'}');
            }),
            Value::CardinalityValue(_, value) => self.write(value, out),
            Value::P(_) | Value::Traversal(_) | Value::Strategy(_) => push_string(out, &key_text(value)),
            token => {
                let name = match token {
                    Value::T(_) => "g:T",
                    Value::Direction(_) => "g:Direction",
                    Value::Order(_) => "g:Order",
                    Value::Scope(_) => "g:Scope",
                    Value::Pop(_) => "g:Pop",
                    Value::Column(_) => "g:Column",
                    Value::Cardinality(_) => "g:Cardinality",
                    Value::Operator(_) => "g:Operator",
                    Value::Merge(_) => "g:Merge",
                    Value::Pick(_) => "g:Pick",
                    Value::GType(_) => "g:GType",
                    Value::DateUnit(_) => "g:DT",
                    _ => "g:Barrier",
                };
                quoted(out, name, token_name(token).unwrap_or_default());
            }
        }
    }

    fn open(self, out: &mut Vec<u8>, name: &str) {
        if self.third {
            push(out, "{\"@type\":\"");
            push(out, name);
            push(out, "\",\"@value\":");
        }
        out.push(b'[');
    }

    fn close(self, out: &mut Vec<u8>) {
        out.push(b']');
        if self.third {
            out.push(b'}');
        }
    }

    fn sequence<'v>(self, out: &mut Vec<u8>, name: &str, items: impl Iterator<Item = &'v Value>) {
        self.open(out, name);
        separated(out, items, |out, item| self.write(item, out));
        self.close(out);
    }

    fn map<'v>(self, out: &mut Vec<u8>, entries: impl Iterator<Item = (&'v Value, &'v Value)>) {
        if self.third {
            return typed(out, "g:Map", |out| {
                out.push(b'[');
                separated(out, entries, |out, (key, value)| {
                    self.write(key, out);
                    out.push(b',');
                    self.write(value, out);
                });
                out.push(b']');
            });
        }
        out.push(b'{');
        separated(out, entries, |out, (key, value)| {
            push_string(out, &key_text(key));
            out.push(b':');
            self.write(value, out);
        });
        out.push(b'}');
    }

    fn vertex(self, vertex: &Vertex, out: &mut Vec<u8>) {
        typed(out, "g:Vertex", |out| {
            push(out, "{\"id\":");
            self.write(&vertex.id, out);
            push(out, ",\"label\":");
            push_string(out, &vertex.label);
            if let Some(properties) = vertex.properties().filter(|properties| !properties.is_empty()) {
                push(out, ",\"properties\":{");
                separated(out, super::untyped::by_key(properties), |out, (key, values)| {
                    push_string(out, key);
                    push(out, ":[");
                    separated(out, values, |out, property| self.vertex_property(property, out));
                    out.push(b']');
                });
                out.push(b'}');
            }
            out.push(b'}');
        });
    }

    fn vertex_property(self, property: &VertexProperty, out: &mut Vec<u8>) {
        typed(out, "g:VertexProperty", |out| {
            push(out, "{\"id\":");
            self.write(&property.id, out);
            push(out, ",\"value\":");
            self.write(&property.value, out);
            push(out, ",\"label\":");
            push_string(out, &property.key);
            if !property.meta.is_empty() {
                push(out, ",\"properties\":{");
                separated(out, &property.meta, |out, meta| {
                    push_string(out, &meta.key);
                    out.push(b':');
                    self.write(&meta.value, out);
                });
                out.push(b'}');
            }
            out.push(b'}');
        });
    }

    fn edge(self, edge: &Edge, out: &mut Vec<u8>) {
        typed(out, "g:Edge", |out| {
            push(out, "{\"id\":");
            self.write(&edge.id, out);
            push(out, ",\"label\":");
            push_string(out, &edge.label);
            for (id, label, end) in [("inV", "inVLabel", &edge.in_v), ("outV", "outVLabel", &edge.out_v)] {
                push(out, &format!(",\"{label}\":"));
                push_string(out, &end.label);
                push(out, &format!(",\"{id}\":"));
                self.write(&end.id, out);
            }
            if let Some(properties) = edge.properties().filter(|properties| !properties.is_empty()) {
                push(out, ",\"properties\":{");
                separated(out, properties.iter(), |out, property| {
                    push_string(out, &property.key);
                    out.push(b':');
                    self.property(property, out);
                });
                out.push(b'}');
            }
            out.push(b'}');
        });
    }

    fn property(self, property: &Property, out: &mut Vec<u8>) {
        typed(out, "g:Property", |out| {
            push(out, "{\"key\":");
            push_string(out, &property.key);
            push(out, ",\"value\":");
            self.write(&property.value, out);
            out.push(b'}');
        });
    }

    fn tree(self, tree: &Tree, out: &mut Vec<u8>) {
        typed(out, "g:Tree", |out| {
            out.push(b'[');
            separated(out, &tree.0, |out, (key, below)| {
                push(out, "{\"key\":");
                self.write(key, out);
                push(out, ",\"value\":");
                self.tree(below, out);
                out.push(b'}');
            });
            out.push(b']');
        });
    }
}

fn typed(out: &mut Vec<u8>, name: &str, held: impl FnOnce(&mut Vec<u8>)) {
    push(out, "{\"@type\":\"");
    push(out, name);
    push(out, "\",\"@value\":");
    held(out);
    out.push(b'}');
}

fn plain(out: &mut Vec<u8>, name: &str, held: &str) {
    typed(out, name, |out| push(out, held));
}

fn quoted(out: &mut Vec<u8>, name: &str, held: &str) {
    typed(out, name, |out| push_string(out, held));
}

fn double(out: &mut Vec<u8>, name: &str, number: f64, text: &str) {
    match number.is_finite() {
        true => plain(out, name, text),
        false => quoted(out, name, &double_text(number)),
    }
}

/// As Java writes it: `PT1H30M2.5S`.
pub fn duration_text(nanoseconds: i128) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    let (hours, minutes, rest) =
        (seconds / 3600, seconds / 60 % 60, nanoseconds - seconds / 60 * 60_000_000_000);
    let mut text = "PT".to_owned();
    if hours != 0 {
        text.push_str(&format!("{hours}H"));
    }
    if minutes != 0 {
        text.push_str(&format!("{minutes}M"));
    }
    if rest != 0 || text.len() == 2 {
        let sign = if rest < 0 { "-" } else { "" };
        let fraction = format!("{:09}", rest.unsigned_abs() % 1_000_000_000);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        text.push_str(&format!("{sign}{}{point}{fraction}S", rest.unsigned_abs() / 1_000_000_000));
    }
    text
}
