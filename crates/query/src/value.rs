//! Values during evaluation: borrowed from the item or the query where they can be, computed otherwise.
//!
//! Reading `c.address.city` yields a pointer into the stored bytes; nothing is decoded until an operator
//! asks for a number or a string. Arrays and objects that an expression builds share their parts.

use std::borrow::Cow;
use std::rc::Rc;

pub use orrery_model::Type;
use orrery_model::{Kind, Number, Raw, Value};

use crate::row::RowView;

#[derive(Clone, Debug)]
pub enum Eval<'a> {
    Undefined,
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'a, str>),
    /// A whole item, with its virtual members.
    Item(RowView<'a>),
    /// An array, an object, or a value that JSON has no word for, inside a stored document.
    Raw(RawNode<'a>),
    /// An array or object that is part of the query: a literal or parameter. Or a value that JSON has no word for.
    Constant(&'a Value),
    /// A value that JSON has no word for, kept for later: the key of a group, for one.
    Extended(Rc<Value>),
    Array(Rc<Vec<Eval<'a>>>),
    Object(Rc<ObjectParts<'a>>),
}

/// The members of a computed object, in order.
pub type ObjectParts<'a> = Vec<(Cow<'a, str>, Eval<'a>)>;

/// A raw array, object or extended value; the wrapper gives it a short debug form.
#[derive(Clone, Copy)]
pub struct RawNode<'a>(pub Raw<'a>);

impl std::fmt::Debug for RawNode<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?}", self.0.to_value())
    }
}

impl<'a> Eval<'a> {
    pub fn from_raw(raw: Raw<'a>) -> Eval<'a> {
        match raw.kind() {
            Kind::Null => Eval::Null,
            Kind::Bool => raw.as_bool().map_or(Eval::Undefined, Eval::Bool),
            Kind::Number => raw.as_number().map_or(Eval::Undefined, Eval::number),
            Kind::String => raw.as_str().map_or(Eval::Undefined, |text| Eval::String(Cow::Borrowed(text))),
            _ => Eval::Raw(RawNode(raw)),
        }
    }

    pub fn from_constant(value: &'a Value) -> Eval<'a> {
        match value {
            Value::Undefined => Eval::Undefined,
            Value::Null => Eval::Null,
            Value::Bool(value) => Eval::Bool(*value),
            Value::Number(value) => Eval::number(*value),
            Value::String(text) => Eval::String(Cow::Borrowed(text)),
            Value::Array(_) | Value::Object(_) | Value::Extended(_) => Eval::Constant(value),
        }
    }

    /// Takes a value apart that belongs to nobody else.
    pub fn from_owned(value: Value) -> Eval<'a> {
        match value {
            Value::Undefined => Eval::Undefined,
            Value::Null => Eval::Null,
            Value::Bool(value) => Eval::Bool(value),
            Value::Number(value) => Eval::number(value),
            Value::String(text) => Eval::String(Cow::Owned(text)),
            Value::Extended(_) => Eval::Extended(Rc::new(value)),
            Value::Array(elements) => Eval::array(elements.into_iter().map(Eval::from_owned).collect()),
            Value::Object(members) => Eval::object(
                members
                    .into_iter()
                    .map(|(name, value)| (Cow::Owned(name), Eval::from_owned(value)))
                    .collect(),
            ),
        }
    }

    /// Integers beyond 64 bits with sign are doubles once a query touches them, as on the service.
    pub fn number(number: Number) -> Eval<'a> {
        match number {
            Number::UInt(value) => Eval::Number(Number::Double(value as f64)),
            other => Eval::Number(other),
        }
    }

    pub fn double(value: f64) -> Eval<'a> {
        Eval::Number(Number::Double(value))
    }

    pub fn integer(value: i64) -> Eval<'a> {
        Eval::Number(Number::Int(value))
    }

    pub fn text(text: impl Into<Cow<'a, str>>) -> Eval<'a> {
        Eval::String(text.into())
    }

    pub fn array(elements: Vec<Eval<'a>>) -> Eval<'a> {
        Eval::Array(Rc::new(elements))
    }

    pub fn object(members: ObjectParts<'a>) -> Eval<'a> {
        Eval::Object(Rc::new(members))
    }

    /// A truth value, or undefined.
    pub fn truth(value: Option<bool>) -> Eval<'a> {
        value.map_or(Eval::Undefined, Eval::Bool)
    }

    pub fn kind(&self) -> Type {
        match self {
            Eval::Undefined => Type::Undefined,
            Eval::Null => Type::Null,
            Eval::Bool(_) => Type::Bool,
            Eval::Number(_) => Type::Number,
            Eval::String(_) => Type::String,
            Eval::Array(_) => Type::Array,
            Eval::Item(_) | Eval::Object(_) => Type::Object,
            Eval::Raw(node) => Type::of(node.0.kind()),
            Eval::Constant(value) => value.kind().map_or(Type::Undefined, Type::of),
            Eval::Extended(value) => value.kind().map_or(Type::Undefined, Type::of),
        }
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Eval::Undefined)
    }

    pub fn is_true(&self) -> bool {
        matches!(self, Eval::Bool(true))
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let Eval::Bool(value) = self { Some(*value) } else { None }
    }

    pub fn as_number(&self) -> Option<Number> {
        if let Eval::Number(value) = self { Some(*value) } else { None }
    }

    pub fn as_f64(&self) -> Option<f64> {
        self.as_number().map(Number::as_f64)
    }

    /// The value as a 64-bit integer, if it is a number without a fraction in that range.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number().and_then(Number::as_i64)
    }

    pub fn as_str(&self) -> Option<&str> {
        if let Eval::String(text) = self { Some(text) } else { None }
    }

    /// `value.name`, undefined for anything but an object that has it.
    pub fn member(&self, name: &str) -> Eval<'a> {
        match self {
            Eval::Item(row) => row.member(name),
            Eval::Raw(node) => node.0.get(name).map_or(Eval::Undefined, Eval::from_raw),
            Eval::Constant(value) => value.get(name).map_or(Eval::Undefined, Eval::from_constant),
            Eval::Object(members) => members
                .iter()
                .find(|(member, _)| member == name)
                .map_or(Eval::Undefined, |(_, value)| value.clone()),
            _ => Eval::Undefined,
        }
    }

    /// `value[index]`, undefined for anything but an array that long.
    pub fn element(&self, index: usize) -> Eval<'a> {
        match self {
            Eval::Raw(node) => node.0.at(index).map_or(Eval::Undefined, Eval::from_raw),
            Eval::Constant(value) => value.at(index).map_or(Eval::Undefined, Eval::from_constant),
            Eval::Array(elements) => elements.get(index).cloned().unwrap_or(Eval::Undefined),
            _ => Eval::Undefined,
        }
    }

    /// Elements of an array, members of an object, nothing for others.
    pub fn len(&self) -> usize {
        match self {
            Eval::Item(row) => row.len(),
            Eval::Raw(node) => node.0.len(),
            Eval::Constant(Value::Array(elements)) => elements.len(),
            Eval::Constant(Value::Object(members)) => members.len(),
            Eval::Array(elements) => elements.len(),
            Eval::Object(members) => members.len(),
            _ => 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements of an array; `None` for other types.
    pub fn elements(&self) -> Option<ElementIter<'a>> {
        match self {
            Eval::Raw(node) if node.0.kind() == Kind::Array => Some(ElementIter::Raw(node.0.elements())),
            Eval::Constant(Value::Array(elements)) => Some(ElementIter::Constant(elements.iter())),
            Eval::Array(elements) => Some(ElementIter::Shared(Rc::clone(elements), 0)),
            _ => None,
        }
    }

    /// The members of an object in order; `None` for other types.
    pub fn members(&self) -> Option<ObjectParts<'a>> {
        match self {
            Eval::Item(row) => Some(row.members()),
            Eval::Raw(node) if node.0.kind() == Kind::Object => Some(
                node.0.members().map(|(name, value)| (Cow::Borrowed(name), Eval::from_raw(value))).collect(),
            ),
            Eval::Constant(Value::Object(members)) => Some(
                members
                    .iter()
                    .map(|(name, value)| (Cow::Borrowed(name.as_str()), Eval::from_constant(value)))
                    .collect(),
            ),
            Eval::Object(members) => Some((**members).clone()),
            _ => None,
        }
    }

    /// What this value alone has allocated, without what its parts share with others.
    #[inline]
    pub(crate) fn own_bytes(&self) -> usize {
        match self {
            Eval::String(Cow::Owned(text)) => text.len(),
            _ => 0,
        }
    }

    /// What was allocated to build this value. Parts that somebody else has too were there before.
    #[inline]
    pub(crate) fn built_bytes(&self) -> usize {
        match self {
            Eval::String(Cow::Owned(text)) => text.len(),
            Eval::Array(elements) if Rc::strong_count(elements) == 1 => {
                let own: usize = elements.iter().map(Eval::built_bytes).sum();
                elements.len() * size_of::<Eval<'_>>() + own
            }
            Eval::Object(members) if Rc::strong_count(members) == 1 => {
                let name = |name: &Cow<'_, str>| if let Cow::Owned(name) = name { name.len() } else { 0 };
                let own: usize = members.iter().map(|(text, value)| name(text) + value.built_bytes()).sum();
                members.len() * size_of::<(Cow<'_, str>, Eval<'_>)>() + own
            }
            _ => 0,
        }
    }

    /// What this value keeps alive, and how many parts were looked at to know.
    pub(crate) fn held_bytes(&self, parts: &mut u64) -> usize {
        match self {
            Eval::String(Cow::Owned(text)) => text.len(),
            Eval::Extended(value) => value_bytes(value),
            Eval::Array(elements) => {
                *parts += elements.len() as u64;
                let inner: usize = elements.iter().map(|element| element.held_bytes(parts)).sum();
                elements.len() * size_of::<Eval<'_>>() + inner
            }
            Eval::Object(members) => {
                *parts += members.len() as u64;
                let inner: usize = members.iter().map(|(_, value)| value.held_bytes(parts)).sum();
                members.len() * size_of::<(Cow<'_, str>, Eval<'_>)>() + inner
            }
            _ => 0,
        }
    }

    /// How much there is to read: bytes of a string, about as many as the elements of an array are.
    #[inline]
    pub(crate) fn extent(&self) -> usize {
        match self {
            Eval::String(text) => text.len(),
            Eval::Array(_) | Eval::Constant(_) | Eval::Raw(_) | Eval::Object(_) => self.len() * 16,
            _ => 0,
        }
    }

    /// An owned copy, for what must outlive the item: sort keys, groups, aggregates.
    pub fn to_value(&self) -> Value {
        match self {
            Eval::Undefined => Value::Undefined,
            Eval::Null => Value::Null,
            Eval::Bool(value) => Value::Bool(*value),
            Eval::Number(value) => Value::Number(*value),
            Eval::String(text) => Value::String(text.to_string()),
            Eval::Raw(node) => node.0.to_value(),
            Eval::Constant(value) => (*value).clone(),
            Eval::Extended(value) => (**value).clone(),
            Eval::Array(elements) => Value::Array(elements.iter().map(Eval::to_value).collect()),
            Eval::Item(_) | Eval::Object(_) => Value::Object(
                self.members()
                    .unwrap_or_default()
                    .into_iter()
                    .map(|(name, value)| (name.into_owned(), value.to_value()))
                    .collect(),
            ),
        }
    }
}

/// What a value has allocated.
pub(crate) fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Extended(value) => value.size_bytes(),
        Value::Array(elements) => {
            elements.iter().map(|element| size_of::<Value>() + value_bytes(element)).sum()
        }
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| size_of::<(String, Value)>() + name.len() + value_bytes(value))
            .sum(),
        _ => 0,
    }
}

/// Walks an array wherever it lives.
pub enum ElementIter<'a> {
    Raw(orrery_model::Elements<'a>),
    Constant(std::slice::Iter<'a, Value>),
    Shared(Rc<Vec<Eval<'a>>>, usize),
}

impl<'a> Iterator for ElementIter<'a> {
    type Item = Eval<'a>;

    fn next(&mut self) -> Option<Eval<'a>> {
        match self {
            ElementIter::Raw(elements) => elements.next().map(Eval::from_raw),
            ElementIter::Constant(elements) => elements.next().map(Eval::from_constant),
            ElementIter::Shared(elements, next) => {
                *next += 1;
                elements.get(*next - 1).cloned()
            }
        }
    }
}
