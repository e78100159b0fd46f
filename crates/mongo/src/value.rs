//! Owned values. Cloning any of them is cheap: texts, arrays and documents are shared and copied when one is changed.

use std::sync::Arc;

use orrery_model::Decimal128;

/// One value of BSON.
#[derive(Clone, Debug)]
pub enum Bson {
    Double(f64),
    String(Arc<str>),
    Document(Document),
    Array(Arc<Vec<Bson>>),
    Binary {
        subtype: u8,
        bytes: Arc<[u8]>,
    },
    Undefined,
    ObjectId([u8; 12]),
    Bool(bool),
    /// Milliseconds since 1970.
    Date(i64),
    Null,
    Regex(Arc<Regex>),
    DbPointer(Arc<(Arc<str>, [u8; 12])>),
    Code(Arc<str>),
    Symbol(Arc<str>),
    CodeWithScope(Arc<(Arc<str>, Document)>),
    Int32(i32),
    Timestamp {
        seconds: u32,
        increment: u32,
    },
    Int64(i64),
    Decimal(Decimal128),
    MinKey,
    MaxKey,
}

/// A regular expression as it is stored: not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regex {
    pub pattern: Arc<str>,
    /// Letters in alphabetical order.
    pub options: Arc<str>,
}

/// The types of BSON, by what `$type` calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Double,
    String,
    Document,
    Array,
    Binary,
    Undefined,
    ObjectId,
    Bool,
    Date,
    Null,
    Regex,
    DbPointer,
    Code,
    Symbol,
    CodeWithScope,
    Int32,
    Timestamp,
    Int64,
    Decimal,
    MinKey,
    MaxKey,
}

impl Kind {
    /// The number that stands for it in BSON, and in `$type`, where min key is -1.
    pub fn number(self) -> i32 {
        match self {
            Kind::Double => 1,
            Kind::String => 2,
            Kind::Document => 3,
            Kind::Array => 4,
            Kind::Binary => 5,
            Kind::Undefined => 6,
            Kind::ObjectId => 7,
            Kind::Bool => 8,
            Kind::Date => 9,
            Kind::Null => 10,
            Kind::Regex => 11,
            Kind::DbPointer => 12,
            Kind::Code => 13,
            Kind::Symbol => 14,
            Kind::CodeWithScope => 15,
            Kind::Int32 => 16,
            Kind::Timestamp => 17,
            Kind::Int64 => 18,
            Kind::Decimal => 19,
            Kind::MinKey => -1,
            Kind::MaxKey => 127,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Double => "double",
            Kind::String => "string",
            Kind::Document => "object",
            Kind::Array => "array",
            Kind::Binary => "binData",
            Kind::Undefined => "undefined",
            Kind::ObjectId => "objectId",
            Kind::Bool => "bool",
            Kind::Date => "date",
            Kind::Null => "null",
            Kind::Regex => "regex",
            Kind::DbPointer => "dbPointer",
            Kind::Code => "javascript",
            Kind::Symbol => "symbol",
            Kind::CodeWithScope => "javascriptWithScope",
            Kind::Int32 => "int",
            Kind::Timestamp => "timestamp",
            Kind::Int64 => "long",
            Kind::Decimal => "decimal",
            Kind::MinKey => "minKey",
            Kind::MaxKey => "maxKey",
        }
    }

    /// Every kind, in the order of their numbers.
    pub const ALL: [Kind; 21] = [
        Kind::MinKey,
        Kind::Double,
        Kind::String,
        Kind::Document,
        Kind::Array,
        Kind::Binary,
        Kind::Undefined,
        Kind::ObjectId,
        Kind::Bool,
        Kind::Date,
        Kind::Null,
        Kind::Regex,
        Kind::DbPointer,
        Kind::Code,
        Kind::Symbol,
        Kind::CodeWithScope,
        Kind::Int32,
        Kind::Timestamp,
        Kind::Int64,
        Kind::Decimal,
        Kind::MaxKey,
    ];

    pub fn is_number(self) -> bool {
        matches!(self, Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal)
    }
}

impl Bson {
    pub fn kind(&self) -> Kind {
        match self {
            Bson::Double(_) => Kind::Double,
            Bson::String(_) => Kind::String,
            Bson::Document(_) => Kind::Document,
            Bson::Array(_) => Kind::Array,
            Bson::Binary { .. } => Kind::Binary,
            Bson::Undefined => Kind::Undefined,
            Bson::ObjectId(_) => Kind::ObjectId,
            Bson::Bool(_) => Kind::Bool,
            Bson::Date(_) => Kind::Date,
            Bson::Null => Kind::Null,
            Bson::Regex(_) => Kind::Regex,
            Bson::DbPointer(_) => Kind::DbPointer,
            Bson::Code(_) => Kind::Code,
            Bson::Symbol(_) => Kind::Symbol,
            Bson::CodeWithScope(_) => Kind::CodeWithScope,
            Bson::Int32(_) => Kind::Int32,
            Bson::Timestamp { .. } => Kind::Timestamp,
            Bson::Int64(_) => Kind::Int64,
            Bson::Decimal(_) => Kind::Decimal,
            Bson::MinKey => Kind::MinKey,
            Bson::MaxKey => Kind::MaxKey,
        }
    }

    pub fn array(elements: Vec<Bson>) -> Bson {
        Bson::Array(Arc::new(elements))
    }

    pub fn as_document(&self) -> Option<&Document> {
        if let Bson::Document(document) = self { Some(document) } else { None }
    }

    pub fn as_array(&self) -> Option<&[Bson]> {
        if let Bson::Array(elements) = self { Some(elements) } else { None }
    }

    /// A string, or a symbol.
    pub fn as_str(&self) -> Option<&str> {
        if let Bson::String(text) | Bson::Symbol(text) = self { Some(text) } else { None }
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let Bson::Bool(value) = self { Some(*value) } else { None }
    }

    pub fn is_number(&self) -> bool {
        self.kind().is_number()
    }

    /// A number of any width that is whole and fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Bson::Int32(value) => Some(i64::from(*value)),
            Bson::Int64(value) => Some(*value),
            Bson::Double(value) => {
                // The bounds are exact as doubles; the upper one is the first that does not fit.
                let whole = value.trunc() == *value;
                let fits = *value >= -9_223_372_036_854_775_808.0 && *value < 9_223_372_036_854_775_808.0;
                (whole && fits).then_some(*value as i64)
            }
            Bson::Decimal(value) => {
                let text = value.to_string();
                text.parse::<i64>()
                    .ok()
                    .or_else(|| text.parse::<f64>().ok().and_then(|v| Bson::Double(v).as_i64()))
            }
            _ => None,
        }
    }

    /// Whether two values are the same to the byte: widths of numbers, signs of zeros and digits of decimals included.
    pub fn is_identical(&self, other: &Bson) -> bool {
        match (self, other) {
            (Bson::Double(a), Bson::Double(b)) => a.to_bits() == b.to_bits(),
            (Bson::Decimal(a), Bson::Decimal(b)) => a == b,
            (Bson::Document(a), Bson::Document(b)) => a.is_identical(b),
            (Bson::Array(a), Bson::Array(b)) => {
                Arc::ptr_eq(a, b)
                    || (a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.is_identical(b)))
            }
            (Bson::CodeWithScope(a), Bson::CodeWithScope(b)) => a.0 == b.0 && a.1.is_identical(&b.1),
            _ => self.kind() == other.kind() && self == other,
        }
    }

    /// What counts as true in expressions and in options of commands.
    pub fn is_truthy(&self) -> bool {
        match self {
            Bson::Bool(value) => *value,
            Bson::Int32(value) => *value != 0,
            Bson::Int64(value) => *value != 0,
            Bson::Double(value) => *value != 0.0,
            Bson::Decimal(value) => {
                !matches!(value.magnitude(), orrery_model::Magnitude::Zero) || value.is_nan()
            }
            Bson::Null | Bson::Undefined => false,
            _ => true,
        }
    }
}

impl From<&str> for Bson {
    fn from(text: &str) -> Bson {
        Bson::String(text.into())
    }
}

impl From<String> for Bson {
    fn from(text: String) -> Bson {
        Bson::String(text.into())
    }
}

impl From<bool> for Bson {
    fn from(value: bool) -> Bson {
        Bson::Bool(value)
    }
}

impl From<i32> for Bson {
    fn from(value: i32) -> Bson {
        Bson::Int32(value)
    }
}

impl From<i64> for Bson {
    fn from(value: i64) -> Bson {
        Bson::Int64(value)
    }
}

impl From<f64> for Bson {
    fn from(value: f64) -> Bson {
        Bson::Double(value)
    }
}

impl From<Document> for Bson {
    fn from(document: Document) -> Bson {
        Bson::Document(document)
    }
}

impl From<Vec<Bson>> for Bson {
    fn from(elements: Vec<Bson>) -> Bson {
        Bson::array(elements)
    }
}

/// Members in their order. A name may come twice only where a client sent it so; the first one counts.
#[derive(Clone, Debug, Default)]
pub struct Document(Arc<Vec<(Arc<str>, Bson)>>);

impl Document {
    pub fn new() -> Document {
        Document::default()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&Bson> {
        self.0.iter().find(|(has, _)| &**has == name).map(|(_, value)| value)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The first member, which names the command or the operator.
    pub fn first(&self) -> Option<(&Arc<str>, &Bson)> {
        self.0.first().map(|(name, value)| (name, value))
    }

    /// The members as they lie.
    pub fn as_slice(&self) -> &[(Arc<str>, Bson)] {
        &self.0
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Bson)> + Clone {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// Whether two documents are the same to the byte.
    pub fn is_identical(&self, other: &Document) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.len() == other.len()
                && self
                    .iter()
                    .zip(other.iter())
                    .all(|((a_name, a), (b_name, b))| a_name == b_name && a.is_identical(b)))
    }

    /// Whether documents and arrays lie in each other deeper than `levels`, this one counted.
    pub fn is_deeper_than(&self, levels: usize) -> bool {
        fn is_deeper(value: &Bson, levels: usize) -> bool {
            match value {
                Bson::Document(document) => document.is_deeper_than(levels),
                Bson::Array(elements) => {
                    levels == 0 || elements.iter().any(|element| is_deeper(element, levels - 1))
                }
                _ => false,
            }
        }
        levels == 0 || self.iter().any(|(_, member)| is_deeper(member, levels - 1))
    }

    /// Appends a member without looking for another of its name.
    pub fn push(&mut self, name: impl Into<Arc<str>>, value: impl Into<Bson>) {
        Arc::make_mut(&mut self.0).push((name.into(), value.into()));
    }

    /// Changes a member where it stands, or appends it.
    pub fn set(&mut self, name: &str, value: impl Into<Bson>) {
        let members = Arc::make_mut(&mut self.0);
        match members.iter_mut().find(|(has, _)| &**has == name) {
            Some((_, old)) => *old = value.into(),
            None => members.push((name.into(), value.into())),
        }
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Bson> {
        Arc::make_mut(&mut self.0).iter_mut().find(|(has, _)| &**has == name).map(|(_, value)| value)
    }

    pub fn remove(&mut self, name: &str) -> Option<Bson> {
        let at = self.0.iter().position(|(has, _)| &**has == name)?;
        Some(Arc::make_mut(&mut self.0).remove(at).1)
    }

    /// The members, to be changed in any way.
    pub fn members_mut(&mut self) -> &mut Vec<(Arc<str>, Bson)> {
        Arc::make_mut(&mut self.0)
    }

    /// Puts a member in front.
    pub fn push_front(&mut self, name: impl Into<Arc<str>>, value: impl Into<Bson>) {
        Arc::make_mut(&mut self.0).insert(0, (name.into(), value.into()));
    }
}

impl FromIterator<(Arc<str>, Bson)> for Document {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Bson)>>(members: I) -> Document {
        Document(Arc::new(members.into_iter().collect()))
    }
}

/// `doc! { "a": 1, "b": { … } }` in as few words as tests and replies need: names and values that turn into [`Bson`].
#[macro_export]
macro_rules! doc {
    ($($name:expr => $value:expr),* $(,)?) => {{
        #[allow(unused_mut)]
        let mut document = $crate::Document::new();
        $(document.push($name, $value);)*
        document
    }};
}
