//! A Gremlin value: what traversers carry, what steps take as arguments and what a result is made of.
//!
//! `==` and `Hash` are Gremlin's *equivalence* (`dedup()`, `group()`, sets, keys of maps): type-sensitive, so that
//! the int 1 and the long 1 are two keys, and NaN is itself. Equality with promotion (`P.eq`), comparability and the
//! total order of `order()` are functions of [`crate::compare`].
//!
//! Large things are behind `Arc`: a value is copied whenever a traverser splits.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use num_bigint::BigInt;

pub use crate::bytecode::{Bytecode, Instruction, Strategy};
pub use crate::datetime::DateTime;
pub use crate::decimal::Decimal;
pub use crate::element::{Edge, Owner, Property, Vertex, VertexProperty};
pub use crate::path::Path;
pub use crate::predicate::P;
pub use crate::tokens::{
    Cardinality, Column, DateUnit, Direction, GType, Merge, Operator, Order, Pick, Pop, Scope, T,
};

/// Keeps the order of insertion. Keys may be anything, null included.
pub type Map = IndexMap<Value, Value>;
/// Keeps the order of insertion.
pub type Set = IndexSet<Value>;

/// One value of the language.
#[derive(Clone, Debug, Default)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    BigInt(Arc<BigInt>),
    Float(f32),
    Double(f64),
    BigDecimal(Arc<Decimal>),
    Char(char),
    String(Arc<str>),
    Uuid(u128),
    Date(DateTime),
    /// A length of time in nanoseconds.
    Duration(i128),
    Binary(Arc<[u8]>),
    List(Arc<Vec<Value>>),
    Set(Arc<Set>),
    Map(Arc<Map>),
    /// An entry of a map, as `unfold()` of one gives it.
    Entry(Arc<(Value, Value)>),
    /// A set whose members have counts, as `aggregate()` fills it.
    BulkSet(Arc<IndexMap<Value, u64>>),
    Vertex(Arc<Vertex>),
    Edge(Arc<Edge>),
    /// A property of a vertex, with the vertex that has it where that is known.
    VertexProperty(Arc<VertexProperty>, Option<Arc<Vertex>>),
    /// A property of an edge or of a vertex property.
    Property(Arc<Property>, Owner),
    Path(Arc<Path>),
    Tree(Arc<Tree>),
    /// What `subgraph()` gathers.
    Graph(Arc<Subgraph>),
    T(T),
    Direction(Direction),
    Order(Order),
    Scope(Scope),
    Pop(Pop),
    Column(Column),
    Cardinality(Cardinality),
    /// A value that says how it is to be written, as in `[name: list('a')]` for `mergeV()`.
    CardinalityValue(Cardinality, Arc<Value>),
    Operator(Operator),
    Merge(Merge),
    Pick(Pick),
    GType(GType),
    DateUnit(DateUnit),
    /// `normSack`, the only member of Barrier.
    NormSack,
    P(Arc<P>),
    /// A nested traversal, as an argument.
    Traversal(Arc<Bytecode>),
    Strategy(Arc<Strategy>),
    /// A result with its count, which is how bytecode is answered.
    Traverser(Arc<(Value, u64)>),
}

/// A tree of values, as `tree()` builds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree(pub IndexMap<Value, Tree>);

/// Vertices and edges of a part of a graph.
#[derive(Clone, Debug, Default)]
pub struct Subgraph {
    pub vertices: IndexSet<Value>,
    pub edges: IndexSet<Value>,
}

impl Value {
    pub fn string(text: impl AsRef<str>) -> Value {
        Value::String(Arc::from(text.as_ref()))
    }

    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Arc::new(items))
    }

    pub fn set(items: impl IntoIterator<Item = Value>) -> Value {
        Value::Set(Arc::new(items.into_iter().collect()))
    }

    pub fn map(entries: impl IntoIterator<Item = (Value, Value)>) -> Value {
        Value::Map(Arc::new(entries.into_iter().collect()))
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn is_number(&self) -> bool {
        matches!(
            self,
            Value::Byte(_)
                | Value::Short(_)
                | Value::Int(_)
                | Value::Long(_)
                | Value::BigInt(_)
                | Value::Float(_)
                | Value::Double(_)
                | Value::BigDecimal(_)
        )
    }

    /// Whole numbers that fit 64 bits.
    pub fn as_i64(&self) -> Option<i64> {
        use num_traits::ToPrimitive as _;
        match self {
            Value::Byte(n) => Some(i64::from(*n)),
            Value::Short(n) => Some(i64::from(*n)),
            Value::Int(n) => Some(i64::from(*n)),
            Value::Long(n) => Some(*n),
            Value::BigInt(n) => n.to_i64(),
            _ => None,
        }
    }

    /// Any number, as near as a double can be.
    pub fn as_f64(&self) -> Option<f64> {
        use num_traits::ToPrimitive as _;
        match self {
            Value::Float(n) => Some(f64::from(*n)),
            Value::Double(n) => Some(*n),
            Value::BigInt(n) => n.to_f64(),
            Value::BigDecimal(n) => Some(n.to_f64()),
            _ => self.as_i64().map(|n| n as f64),
        }
    }

    /// What a nested list, set or map of this value takes in memory, roughly; elements are shared and count as
    /// references.
    pub fn size_bytes(&self) -> usize {
        const OWN: usize = size_of::<Value>();
        OWN + match self {
            Value::String(text) => text.len() + 16,
            Value::Binary(bytes) => bytes.len() + 16,
            Value::BigInt(n) => n.bits() as usize / 8 + 32,
            Value::List(items) => items.iter().map(Value::size_bytes).sum::<usize>() + 40,
            Value::Set(items) => items.iter().map(|item| item.size_bytes() + 24).sum::<usize>() + 80,
            Value::Map(map) => {
                map.iter().map(|(k, v)| k.size_bytes() + v.size_bytes() + 24).sum::<usize>() + 80
            }
            Value::Entry(pair) => pair.0.size_bytes() + pair.1.size_bytes() + 16,
            Value::BulkSet(set) => set.keys().map(|item| item.size_bytes() + 32).sum::<usize>() + 80,
            Value::Path(path) => path.objects.len() * (OWN + 24) + 64,
            Value::Tree(_) | Value::Graph(_) => 256,
            _ => 0,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        use Value::*;
        match (self, other) {
            (Null, Null) | (NormSack, NormSack) => true,
            (Bool(a), Bool(b)) => a == b,
            (Byte(a), Byte(b)) => a == b,
            (Short(a), Short(b)) => a == b,
            (Int(a), Int(b)) => a == b,
            (Long(a), Long(b)) => a == b,
            (BigInt(a), BigInt(b)) => a == b,
            (Float(a), Float(b)) => a == b || (a.is_nan() && b.is_nan()),
            (Double(a), Double(b)) => a == b || (a.is_nan() && b.is_nan()),
            (BigDecimal(a), BigDecimal(b)) => a == b,
            (Char(a), Char(b)) => a == b,
            (String(a), String(b)) => a == b,
            (Uuid(a), Uuid(b)) => a == b,
            (Date(a), Date(b)) => a.instant() == b.instant(),
            (Duration(a), Duration(b)) => a == b,
            (Binary(a), Binary(b)) => a == b,
            (List(a), List(b)) => Arc::ptr_eq(a, b) || a == b,
            (Set(a), Set(b)) => a == b,
            (Map(a), Map(b)) => a == b,
            (Entry(a), Entry(b)) => a == b,
            (BulkSet(a), BulkSet(b)) => a == b,
            (Vertex(a), Vertex(b)) => a == b,
            (Edge(a), Edge(b)) => a == b,
            (VertexProperty(a, x), VertexProperty(b, y)) => {
                a == b && (!matches!((x, y), (Some(x), Some(y)) if x != y))
            }
            (Property(a, _), Property(b, _)) => a == b,
            (Path(a), Path(b)) => a.objects == b.objects,
            (Tree(a), Tree(b)) => a == b,
            (Graph(a), Graph(b)) => Arc::ptr_eq(a, b),
            (T(a), T(b)) => a == b,
            (Direction(a), Direction(b)) => a == b,
            (Order(a), Order(b)) => a == b,
            (Scope(a), Scope(b)) => a == b,
            (Pop(a), Pop(b)) => a == b,
            (Column(a), Column(b)) => a == b,
            (Cardinality(a), Cardinality(b)) => a == b,
            (CardinalityValue(a, x), CardinalityValue(b, y)) => a == b && x == y,
            (Operator(a), Operator(b)) => a == b,
            (Merge(a), Merge(b)) => a == b,
            (Pick(a), Pick(b)) => a == b,
            (GType(a), GType(b)) => a == b,
            (DateUnit(a), DateUnit(b)) => a == b,
            (P(a), P(b)) => Arc::ptr_eq(a, b) || a == b,
            (Traversal(a), Traversal(b)) => Arc::ptr_eq(a, b) || a == b,
            (Strategy(a), Strategy(b)) => a == b,
            (Traverser(a), Traverser(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Value::Bool(v) => v.hash(state),
            Value::Byte(v) => v.hash(state),
            Value::Short(v) => v.hash(state),
            Value::Int(v) => v.hash(state),
            Value::Long(v) => v.hash(state),
            Value::BigInt(v) => v.hash(state),
            Value::Float(v) => float_bits(f64::from(*v)).hash(state),
            Value::Double(v) => float_bits(*v).hash(state),
            Value::BigDecimal(v) => v.hash(state),
            Value::Char(v) => v.hash(state),
            Value::String(v) => v.hash(state),
            Value::Uuid(v) => v.hash(state),
            Value::Date(v) => v.instant().hash(state),
            Value::Duration(v) => v.hash(state),
            Value::Binary(v) => v.hash(state),
            Value::List(items) => items.hash(state),
            Value::Path(path) => path.objects.hash(state),
            // Members in any order give the same hash.
            Value::Set(items) => items.len().hash(state),
            Value::Map(map) => map.len().hash(state),
            Value::BulkSet(set) => set.len().hash(state),
            Value::Entry(pair) => pair.hash(state),
            Value::Vertex(v) => v.id.hash(state),
            Value::Edge(v) => v.id.hash(state),
            Value::VertexProperty(v, _) => v.key.hash(state),
            Value::Property(v, _) => v.key.hash(state),
            Value::T(v) => v.hash(state),
            Value::Direction(v) => v.hash(state),
            Value::Traverser(v) => v.hash(state),
            _ => {}
        }
    }
}

fn float_bits(number: f64) -> u64 {
    if number.is_nan() {
        f64::NAN.to_bits()
    } else if number == 0.0 {
        0
    } else {
        number.to_bits()
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::string(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::Int(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Long(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Double(value)
    }
}
