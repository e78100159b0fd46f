//! GraphSON of any version to values.
//!
//! ```text
//! {"@type":"g:Int32","@value":1}   1   "a"   [1,2]   {"@type":"g:Map","@value":["k","v"]}   {"k":"v"}
//! ```
//!
//! A bare number is an int if it fits, a bare array a list, a bare object a map. The JSON parser bounds the depth.

use std::sync::Arc;

use num_bigint::BigInt;
use orrery_gremlin::Value;
use orrery_gremlin::predicate::{P, TextOp};
use orrery_gremlin::value::{
    Bytecode, Cardinality, Column, DateTime, DateUnit, Decimal, Direction, Edge, GType, Instruction, Merge,
    Operator, Order, Path, Pick, Pop, Property, Scope, Strategy, T, Vertex, VertexProperty,
};
use serde_json::Value as Json;
use uuid::Uuid;

/// Deepest nesting that the JSON parser takes.
pub const DEPTH_MAX: usize = 128;

/// Why something is no GraphSON, or none that is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError(pub String);

type Result<T> = std::result::Result<T, ReadError>;

pub(crate) fn wrong<T>(text: impl Into<String>) -> Result<T> {
    Err(ReadError(text.into()))
}

/// Reads a whole text.
pub fn read(text: &[u8]) -> Result<Value> {
    match serde_json::from_slice::<Json>(text) {
        Ok(json) => value(&json),
        Err(error) => wrong(format!("The message is no JSON: {error}.")),
    }
}

fn value(json: &Json) -> Result<Value> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => self::number(number),
        Json::String(text) => Value::string(text),
        Json::Array(items) => Value::list(list(items)?),
        Json::Object(members) => match (members.get("@type"), members.get("@value")) {
            (Some(Json::String(name)), held) => typed(name, held.unwrap_or(&Json::Null))?,
            _ => Value::map(
                members
                    .iter()
                    .map(|(key, held)| Ok((Value::string(key), value(held)?)))
                    .collect::<Result<Vec<_>>>()?,
            ),
        },
    })
}

fn number(number: &serde_json::Number) -> Value {
    if let Some(whole) = number.as_i64() {
        return i32::try_from(whole).map_or(Value::Long(whole), Value::Int);
    }
    if let Some(whole) = number.as_u64() {
        return Value::BigInt(Arc::new(BigInt::from(whole)));
    }
    Value::Double(number.as_f64().unwrap_or(f64::NAN))
}

fn list(items: &[Json]) -> Result<Vec<Value>> {
    items.iter().map(value).collect()
}

fn typed(name: &str, held: &Json) -> Result<Value> {
    let bad = || ReadError(format!("A value of type {name} cannot be read."));
    let whole = || held.as_i64().or_else(|| held.as_str()?.parse().ok()).ok_or_else(bad);
    let text = || held.as_str().ok_or_else(bad);
    let member = |key: &str| held.get(key).ok_or_else(bad);
    Ok(match name {
        "g:Int32" => Value::Int(i32::try_from(whole()?).map_err(|_| bad())?),
        "g:Int64" => Value::Long(whole()?),
        "gx:Byte" => Value::Byte(i8::try_from(whole()?).map_err(|_| bad())?),
        "gx:Int16" => Value::Short(i16::try_from(whole()?).map_err(|_| bad())?),
        "g:Double" => Value::Double(double(held).ok_or_else(bad)?),
        "g:Float" => Value::Float(double(held).ok_or_else(bad)? as f32),
        "gx:BigInteger" => {
            let digits = held.as_str().map_or_else(|| held.to_string(), str::to_owned);
            let number = (digits.len() <= DIGITS_MAX).then(|| digits.parse::<BigInt>().ok()).flatten();
            Value::BigInt(Arc::new(number.ok_or_else(bad)?))
        }
        "gx:BigDecimal" => {
            let digits = held.as_str().map_or_else(|| held.to_string(), str::to_owned);
            let number = (digits.len() <= DIGITS_MAX).then(|| Decimal::parse(&digits)).flatten();
            Value::BigDecimal(Arc::new(number.ok_or_else(bad)?))
        }
        "gx:Char" => Value::Char(text()?.chars().next().ok_or_else(bad)?),
        "g:UUID" => Value::Uuid(Uuid::parse_str(text()?).map_err(|_| bad())?.as_u128()),
        "g:Date" | "g:Timestamp" => Value::Date(DateTime::from_epoch_millis(whole()?).ok_or_else(bad)?),
        "gx:OffsetDateTime" | "gx:Instant" | "gx:ZonedDateTime" | "gx:LocalDateTime" | "gx:LocalDate" => {
            Value::Date(DateTime::parse(text()?).ok_or_else(bad)?)
        }
        "gx:Duration" => Value::Duration(duration(text()?).ok_or_else(bad)?),
        "gx:ByteBuffer" => {
            use base64::Engine as _;
            let bytes = base64::engine::general_purpose::STANDARD.decode(text()?).map_err(|_| bad())?;
            Value::Binary(bytes.into())
        }
        "g:Class" => Value::string(text()?),
        "g:List" => Value::list(list(held.as_array().ok_or_else(bad)?)?),
        "g:Set" => Value::set(list(held.as_array().ok_or_else(bad)?)?),
        "g:Map" => match held {
            Json::Array(flat) if flat.len() % 2 == 0 => Value::map(
                flat.chunks(2)
                    .map(|pair| Ok((value(&pair[0])?, value(&pair[1])?)))
                    .collect::<Result<Vec<_>>>()?,
            ),
            Json::Object(_) => value(held)?,
            _ => return Err(bad()),
        },
        "g:BulkSet" => {
            let flat = list(held.as_array().ok_or_else(bad)?)?;
            let mut counted = indexmap::IndexMap::new();
            for pair in flat.chunks(2) {
                let [item, count] = pair else { return Err(bad()) };
                let count = count.as_i64().and_then(|count| u64::try_from(count).ok()).ok_or_else(bad)?;
                *counted.entry(item.clone()).or_insert(0) += count;
            }
            Value::BulkSet(Arc::new(counted))
        }
        "g:Vertex" => Value::Vertex(vertex(held).ok_or_else(bad)??),
        "g:Edge" => {
            let end = |id: &str, label: &str| -> Result<Arc<Vertex>> {
                let id = held.get(id).map(value).transpose()?.unwrap_or_default();
                let label = held.get(label).and_then(Json::as_str).unwrap_or("vertex");
                Ok(Arc::new(Vertex::reference(id, label, Value::Null)))
            };
            let (out_v, in_v) = (end("outV", "outVLabel")?, end("inV", "inVLabel")?);
            let label = held.get("label").and_then(Json::as_str).unwrap_or("edge");
            Value::Edge(Arc::new(Edge::reference(value(member("id")?)?, label, out_v, in_v)))
        }
        "g:VertexProperty" => {
            let key = held.get("label").and_then(Json::as_str).unwrap_or("vertexProperty");
            let id = held.get("id").map(value).transpose()?.unwrap_or_default();
            let property =
                VertexProperty { id, key: key.into(), value: value(member("value")?)?, meta: Vec::new() };
            Value::VertexProperty(Arc::new(property), None)
        }
        "g:Property" => {
            let key = member("key")?.as_str().ok_or_else(bad)?;
            let property = Property { key: key.into(), value: value(member("value")?)? };
            Value::Property(Arc::new(property), Default::default())
        }
        "g:Path" => {
            let objects = value(member("objects")?)?;
            let Value::List(objects) = objects else { return Err(bad()) };
            let labels = vec![Vec::new(); objects.len()];
            Value::Path(Arc::new(Path { objects: objects.to_vec(), labels }))
        }
        "g:T" => Value::T(T::parse(text()?).ok_or_else(bad)?),
        "g:Direction" => Value::Direction(direction(text()?).ok_or_else(bad)?),
        "g:Order" => Value::Order(order(text()?).ok_or_else(bad)?),
        "g:Scope" => Value::Scope(Scope::parse(text()?).ok_or_else(bad)?),
        "g:Pop" => Value::Pop(Pop::parse(text()?).ok_or_else(bad)?),
        "g:Column" => Value::Column(Column::parse(text()?).ok_or_else(bad)?),
        "g:Cardinality" => Value::Cardinality(Cardinality::parse(text()?).ok_or_else(bad)?),
        "g:CardinalityValue" => {
            let cardinality = held.get("cardinality").or_else(|| held.get("key")).and_then(Json::as_str);
            let cardinality = cardinality.and_then(Cardinality::parse).ok_or_else(bad)?;
            Value::CardinalityValue(cardinality, Arc::new(value(member("value")?)?))
        }
        "g:Operator" => Value::Operator(Operator::parse(text()?).ok_or_else(bad)?),
        "g:Merge" => Value::Merge(Merge::parse(text()?).ok_or_else(bad)?),
        "g:Pick" => Value::Pick(Pick::parse(text()?).ok_or_else(bad)?),
        "g:DT" => Value::DateUnit(DateUnit::parse(text()?).ok_or_else(bad)?),
        "g:GType" => Value::GType(GType::parse(text()?).ok_or_else(bad)?),
        "g:Barrier" => Value::NormSack,
        "g:P" | "g:TextP" => {
            let name = member("predicate")?.as_str().ok_or_else(bad)?;
            let argument = held.get("value").map(value).transpose()?.unwrap_or_default();
            Value::P(Arc::new(predicate(name, argument).ok_or_else(bad)?))
        }
        "g:Bytecode" => traversal(bytecode(held)?),
        "g:Binding" => value(member("value")?)?,
        "g:Traverser" => {
            let bulk = held.get("bulk").map(value).transpose()?.and_then(|bulk| bulk.as_i64()).unwrap_or(1);
            Value::Traverser(Arc::new((value(member("value")?)?, bulk.max(0) as u64)))
        }
        "g:Lambda" => {
            let script = held.get("script").and_then(Json::as_str).unwrap_or_default();
            let shown: String = script.chars().take(128).collect();
            return wrong(format!("Unsupported groovy language rule: 'closure' text: '{shown}'"));
        }
        _ => match strategy_name(name) {
            Some(strategy) => Value::Strategy(Arc::new(Strategy {
                name: strategy.into(),
                settings: match held {
                    Json::Object(settings) => settings
                        .iter()
                        .map(|(key, setting)| Ok((Arc::from(key.as_str()), value(setting)?)))
                        .collect::<Result<Vec<_>>>()?,
                    _ => Vec::new(),
                },
            })),
            None => return wrong(format!("The type {name} is not known.")),
        },
    })
}

/// The longest number of arbitrary size.
pub(crate) const DIGITS_MAX: usize = 1_024;

pub(crate) fn strategy_name(name: &str) -> Option<&str> {
    let simple = name.rsplit(['.', ':']).next()?;
    simple.ends_with("Strategy").then_some(simple)
}

fn double(held: &Json) -> Option<f64> {
    match held {
        Json::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            text => text.parse().ok(),
        },
        held => held.as_f64(),
    }
}

/// `P2DT3H4M5.6S` in nanoseconds: the few forms that Java writes.
pub(crate) fn duration(text: &str) -> Option<i128> {
    const SECOND_NS: i128 = 1_000_000_000;
    let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let mut rest = rest.strip_prefix('P')?;
    let mut nanoseconds = 0i128;
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T') {
            rest = time;
            continue;
        }
        let unit = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let seconds: i32 = match rest.as_bytes()[unit] {
            b'D' => 86_400,
            b'H' => 3_600,
            b'M' => 60,
            b'S' => 1,
            _ => return None,
        };
        let part = match rest[..unit].parse::<i64>() {
            Ok(whole) => i128::from(whole) * i128::from(seconds) * SECOND_NS,
            Err(_) => {
                let amount: f64 = rest[..unit].parse().ok().filter(|amount: &f64| amount.is_finite())?;
                (amount * f64::from(seconds) * SECOND_NS as f64).round() as i128
            }
        };
        nanoseconds = nanoseconds.checked_add(part)?;
        rest = &rest[unit + 1..];
    }
    Some(if negative { -nanoseconds } else { nanoseconds })
}

fn vertex(held: &Json) -> Option<Result<Arc<Vertex>>> {
    let label = held.get("label").and_then(Json::as_str).unwrap_or("vertex");
    let id = held.get("id")?;
    Some(value(id).map(|id| Arc::new(Vertex::reference(id, label, Value::Null))))
}

pub(crate) fn direction(text: &str) -> Option<Direction> {
    match text {
        "from" => Some(Direction::Out),
        "to" => Some(Direction::In),
        text => Direction::parse(text),
    }
}

pub(crate) fn order(text: &str) -> Option<Order> {
    match text {
        "incr" => Some(Order::Asc),
        "decr" => Some(Order::Desc),
        text => Order::parse(text),
    }
}

/// A predicate by its name; several arguments are a list.
pub(crate) fn predicate(name: &str, argument: Value) -> Option<P> {
    let many = |argument: Value| match argument {
        Value::List(items) => items.to_vec(),
        Value::Set(items) => items.iter().cloned().collect(),
        one => vec![one],
    };
    let pair = |argument: Value| match many(argument).as_slice() {
        [low, high] => Some((low.clone(), high.clone())),
        _ => None,
    };
    let parts = |argument: Value| -> Option<Vec<P>> {
        let each = |part: Value| match part {
            Value::P(part) => Some((*part).clone()),
            _ => None,
        };
        many(argument).into_iter().map(each).collect()
    };
    let text = |operator, argument| Some(P::Text(operator, argument));
    match name {
        "eq" => Some(P::Eq(argument)),
        "neq" => Some(P::Neq(argument)),
        "lt" => Some(P::Lt(argument)),
        "lte" => Some(P::Lte(argument)),
        "gt" => Some(P::Gt(argument)),
        "gte" => Some(P::Gte(argument)),
        "inside" => pair(argument).map(|(low, high)| P::Inside(low, high)),
        "outside" => pair(argument).map(|(low, high)| P::Outside(low, high)),
        "between" => pair(argument).map(|(low, high)| P::Between(low, high)),
        "within" => Some(P::Within(many(argument))),
        "without" => Some(P::Without(many(argument))),
        "typeOf" => match argument {
            Value::GType(kind) => Some(P::TypeOf(kind)),
            Value::String(text) => GType::parse(&text.to_uppercase()).map(P::TypeOf),
            _ => None,
        },
        "and" => parts(argument).map(P::And),
        "or" => parts(argument).map(P::Or),
        "not" | "negate" => match parts(argument)?.as_slice() {
            [part] => Some(P::Not(Box::new(part.clone()))),
            _ => None,
        },
        "containing" => text(TextOp::Containing, argument),
        "notContaining" => text(TextOp::NotContaining, argument),
        "startingWith" => text(TextOp::StartingWith, argument),
        "notStartingWith" => text(TextOp::NotStartingWith, argument),
        "endingWith" => text(TextOp::EndingWith, argument),
        "notEndingWith" => text(TextOp::NotEndingWith, argument),
        "regex" => text(TextOp::Regex, argument),
        "notRegex" => text(TextOp::NotRegex, argument),
        _ => None,
    }
}

/// Bytecode as a value. Drivers write a value with a cardinality as a traversal of one instruction.
pub(crate) fn traversal(bytecode: Bytecode) -> Value {
    if let ([only], []) | ([], [only]) = (&bytecode.source[..], &bytecode.steps[..])
        && &*only.name == "CardinalityValueTraversal"
        && let [Value::Cardinality(cardinality), value] = &only.arguments[..]
    {
        return Value::CardinalityValue(*cardinality, Arc::new(value.clone()));
    }
    Value::Traversal(Arc::new(bytecode))
}

fn bytecode(held: &Json) -> Result<Bytecode> {
    let instructions = |key: &str| -> Result<Vec<Instruction>> {
        let Some(listed) = held.get(key).and_then(Json::as_array) else { return Ok(Vec::new()) };
        listed
            .iter()
            .map(|instruction| {
                let parts = instruction.as_array().map(Vec::as_slice);
                let Some([Json::String(name), arguments @ ..]) = parts else {
                    return wrong("An instruction of bytecode is no list that begins with a name.");
                };
                Ok(Instruction::new(name.as_str(), list(arguments)?))
            })
            .collect()
    };
    Ok(Bytecode { source: instructions("source")?, steps: instructions("step")? })
}
