//! GraphBinary to values. Lengths are believed only as far as there are bytes; nesting is bounded.

use std::sync::Arc;

use num_bigint::BigInt;
use orrery_gremlin::Value;
use orrery_gremlin::value::{
    Bytecode, Cardinality, Column, DateTime, DateUnit, Decimal, Edge, GType, Instruction, Merge, Operator,
    Path, Pick, Pop, Property, Scope, Strategy, T, Vertex, VertexProperty,
};

use super::code;
use crate::graphson::{DEPTH_MAX, ReadError};
use crate::graphson::{DIGITS_MAX, direction, order, predicate, strategy_name, traversal};

type Result<T> = std::result::Result<T, ReadError>;

fn wrong<T>(text: impl Into<String>) -> Result<T> {
    Err(ReadError(text.into()))
}

/// What is left of a message.
pub struct Reader<'b> {
    rest: &'b [u8],
    depth: usize,
}

impl<'b> Reader<'b> {
    pub fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader { rest: bytes, depth: 0 }
    }

    fn take(&mut self, count: usize) -> Result<&'b [u8]> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => wrong("The message ends in the middle of a value."),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    fn int(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn long(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// A count of things, each of which takes at least a byte.
    fn count(&mut self) -> Result<usize> {
        let count = usize::try_from(self.int()?).ok();
        match count.filter(|count| *count <= self.rest.len()) {
            Some(count) => Ok(count),
            None => wrong("A length is larger than the message."),
        }
    }

    /// A string without type and flag.
    pub fn text(&mut self) -> Result<&'b str> {
        let length = self.count()?;
        match std::str::from_utf8(self.take(length)?) {
            Ok(text) => Ok(text),
            Err(_) => wrong("A string is no UTF-8."),
        }
    }

    pub fn uuid(&mut self) -> Result<u128> {
        Ok(u128::from_be_bytes(self.array()?))
    }

    /// A map without type and flag.
    pub fn entries(&mut self) -> Result<Vec<(Value, Value)>> {
        let count = self.count()?;
        (0..count).map(|_| Ok((self.value()?, self.value()?))).collect()
    }

    fn items(&mut self) -> Result<Vec<Value>> {
        let count = self.count()?;
        (0..count).map(|_| self.value()).collect()
    }

    /// A fully qualified value.
    pub fn value(&mut self) -> Result<Value> {
        if self.depth == DEPTH_MAX {
            return wrong("Values are nested too deeply.");
        }
        self.depth += 1;
        let value = self.qualified();
        self.depth -= 1;
        value
    }

    fn qualified(&mut self) -> Result<Value> {
        let kind = self.byte()?;
        if kind == 0 {
            return wrong("Custom types are not known here.");
        }
        match self.byte()? {
            1 => Ok(Value::Null),
            // The second flag says that the order of entries matters, which it does here anyway.
            0 | 2 => self.of_kind(kind),
            flag => wrong(format!("A value has the flag {flag:#04x}, which is not known.")),
        }
    }

    /// A text behind its own type and flag, as members of enumerations are written.
    fn token(&mut self) -> Result<String> {
        match self.value()? {
            Value::String(text) => Ok(text.to_string()),
            _ => wrong("A member of an enumeration is no string."),
        }
    }

    fn token_of<V>(&mut self, kind: &str, parse: impl Fn(&str) -> Option<V>) -> Result<V> {
        let text = self.token()?;
        parse(&text).map_or_else(|| wrong(format!("{kind} has no member {text}.")), Ok)
    }

    fn of_kind(&mut self, kind: u8) -> Result<Value> {
        let bad = || ReadError(format!("A value of the type {kind:#04x} cannot be read."));
        Ok(match kind {
            code::INT => Value::Int(self.int()?),
            code::LONG => Value::Long(self.long()?),
            code::STRING | code::CLASS => Value::string(self.text()?),
            code::DATE | code::TIMESTAMP => {
                Value::Date(DateTime::from_epoch_millis(self.long()?).ok_or_else(bad)?)
            }
            code::DOUBLE => Value::Double(f64::from_be_bytes(self.array()?)),
            code::FLOAT => Value::Float(f32::from_be_bytes(self.array()?)),
            code::LIST => Value::list(self.items()?),
            code::SET => Value::set(self.items()?),
            code::MAP => Value::map(self.entries()?),
            code::UUID => Value::Uuid(self.uuid()?),
            code::BYTE => Value::Byte(i8::from_be_bytes(self.array()?)),
            code::SHORT => Value::Short(i16::from_be_bytes(self.array()?)),
            code::BOOLEAN => Value::Bool(self.byte()? != 0),
            code::BYTE_BUFFER => {
                let length = self.count()?;
                Value::Binary(self.take(length)?.into())
            }
            code::BIG_INTEGER => Value::BigInt(Arc::new(self.big_integer()?)),
            code::BIG_DECIMAL => {
                let scale = self.int()?;
                let unscaled = self.big_integer()?;
                if scale.unsigned_abs() as usize > DIGITS_MAX {
                    return Err(bad());
                }
                Value::BigDecimal(Arc::new(Decimal::new(unscaled, scale)))
            }
            code::CHAR => Value::Char(self.character()?),
            code::DURATION => {
                let (seconds, nanos) = (self.long()?, self.int()?);
                Value::Duration(i128::from(seconds) * 1_000_000_000 + i128::from(nanos))
            }
            code::INSTANT => {
                let (seconds, nanos) = (self.long()?, self.int()?);
                let nanos = u32::try_from(nanos).map_err(|_| bad())?;
                Value::Date(DateTime::new(seconds, nanos, 0).ok_or_else(bad)?)
            }
            code::OFFSET_DATE_TIME => self.offset_date_time()?,
            code::BULK_SET => {
                let mut counted = indexmap::IndexMap::new();
                for _ in 0..self.count()? {
                    let item = self.value()?;
                    let count = u64::try_from(self.long()?).map_err(|_| bad())?;
                    *counted.entry(item).or_insert(0u64) += count;
                }
                Value::BulkSet(Arc::new(counted))
            }
            code::VERTEX => Value::Vertex(Arc::new(self.vertex()?)),
            code::EDGE => {
                let id = self.value()?;
                let label = self.text()?;
                let in_v = self.end()?;
                let out_v = self.end()?;
                self.value()?;
                self.value()?;
                Value::Edge(Arc::new(Edge::reference(id, label, out_v, in_v)))
            }
            code::VERTEX_PROPERTY => {
                let id = self.value()?;
                let key = self.text()?.into();
                let value = self.value()?;
                self.value()?;
                self.value()?;
                Value::VertexProperty(Arc::new(VertexProperty { id, key, value, meta: Vec::new() }), None)
            }
            code::PROPERTY => {
                let key = self.text()?.into();
                let value = self.value()?;
                self.value()?;
                Value::Property(Arc::new(Property { key, value }), Default::default())
            }
            code::PATH => {
                self.value()?;
                let Value::List(objects) = self.value()? else { return Err(bad()) };
                let labels = vec![Vec::new(); objects.len()];
                Value::Path(Arc::new(Path { objects: objects.to_vec(), labels }))
            }
            code::BYTECODE => traversal(self.bytecode()?),
            code::BINDING => {
                self.text()?;
                self.value()?
            }
            code::P | code::TEXT_P => {
                let name = self.text()?;
                let mut items = self.items()?;
                // `within(1, 2)` has several arguments, `eq(1)` and `within([1, 2])` have one.
                let argument = match items.len() {
                    1 => items.remove(0),
                    _ => Value::list(items),
                };
                Value::P(Arc::new(predicate(name, argument).ok_or_else(bad)?))
            }
            code::STRATEGY => {
                let class = self.text()?;
                let name = strategy_name(class).ok_or_else(bad)?;
                let mut settings = Vec::new();
                for (key, value) in self.entries()? {
                    settings.push((Arc::from(key.as_str().ok_or_else(bad)?), value));
                }
                Value::Strategy(Arc::new(Strategy { name: name.into(), settings }))
            }
            code::TRAVERSER => {
                let bulk = u64::try_from(self.long()?).map_err(|_| bad())?;
                Value::Traverser(Arc::new((self.value()?, bulk)))
            }
            code::LAMBDA => {
                self.text()?;
                let script: String = self.text()?.chars().take(128).collect();
                self.int()?;
                return wrong(format!("Unsupported groovy language rule: 'closure' text: '{script}'"));
            }
            code::T => Value::T(self.token_of("T", T::parse)?),
            code::DIRECTION => Value::Direction(self.token_of("Direction", direction)?),
            code::ORDER => Value::Order(self.token_of("Order", order)?),
            code::SCOPE => Value::Scope(self.token_of("Scope", Scope::parse)?),
            code::POP => Value::Pop(self.token_of("Pop", Pop::parse)?),
            code::COLUMN => Value::Column(self.token_of("Column", Column::parse)?),
            code::CARDINALITY => self.cardinality()?,
            code::OPERATOR => Value::Operator(self.token_of("Operator", Operator::parse)?),
            code::MERGE => Value::Merge(self.token_of("Merge", Merge::parse)?),
            code::PICK => Value::Pick(self.token_of("Pick", Pick::parse)?),
            code::DT => Value::DateUnit(self.token_of("DT", DateUnit::parse)?),
            code::GTYPE => Value::GType(self.token_of("GType", GType::parse)?),
            code::BARRIER => {
                self.token()?;
                Value::NormSack
            }
            code::NULL => Value::Null,
            _ => return Err(bad()),
        })
    }

    fn cardinality(&mut self) -> Result<Value> {
        Ok(Value::Cardinality(self.token_of("Cardinality", Cardinality::parse)?))
    }

    fn vertex(&mut self) -> Result<Vertex> {
        let id = self.value()?;
        let label = self.text()?;
        self.value()?;
        Ok(Vertex::reference(id, label, Value::Null))
    }

    fn end(&mut self) -> Result<Arc<Vertex>> {
        let id = self.value()?;
        let label = self.text()?;
        Ok(Arc::new(Vertex::reference(id, label, Value::Null)))
    }

    fn big_integer(&mut self) -> Result<BigInt> {
        let length = self.count()?;
        if length > DIGITS_MAX {
            return wrong("A number has too many digits.");
        }
        Ok(BigInt::from_signed_bytes_be(self.take(length)?))
    }

    fn character(&mut self) -> Result<char> {
        let first = self.rest.first().copied().unwrap_or(0);
        let length = match first {
            0..=0x7f => 1,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            _ => 4,
        };
        let text = std::str::from_utf8(self.take(length)?).ok();
        text.and_then(|text| text.chars().next()).map_or_else(|| wrong("A character is no UTF-8."), Ok)
    }

    fn offset_date_time(&mut self) -> Result<Value> {
        let (year, month, day) = (self.int()?, self.byte()?, self.byte()?);
        let (nanos, offset) = (self.long()?, self.int()?);
        let date = (|| {
            let date = jiff::civil::Date::new(
                i16::try_from(year).ok()?,
                i8::try_from(month).ok()?,
                i8::try_from(day).ok()?,
            );
            let midnight = date.ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
            let seconds = midnight.checked_add(nanos.div_euclid(1_000_000_000))?;
            let nanos = u32::try_from(nanos.rem_euclid(1_000_000_000)).ok()?;
            DateTime::new(seconds.checked_sub(i64::from(offset))?, nanos, offset)
        })();
        date.map_or_else(|| wrong("A date lies beyond the calendar."), |date| Ok(Value::Date(date)))
    }

    fn bytecode(&mut self) -> Result<Bytecode> {
        let steps = self.instructions()?;
        let source = self.instructions()?;
        Ok(Bytecode { source, steps })
    }

    fn instructions(&mut self) -> Result<Vec<Instruction>> {
        let count = self.count()?;
        (0..count)
            .map(|_| {
                let name = self.text()?;
                Ok(Instruction::new(name, self.items()?))
            })
            .collect()
    }
}
