//! The enumerations of the language, each with its members' spellings.

macro_rules! tokens {
    ($($(#[$doc:meta])* $name:ident { $($member:ident = $text:literal),+ $(,)? })+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub enum $name { $($member),+ }

            impl $name {
                pub const ALL: &'static [$name] = &[$($name::$member),+];

                pub fn name(self) -> &'static str {
                    match self { $($name::$member => $text),+ }
                }

                /// The member of that spelling.
                pub fn parse(text: &str) -> Option<$name> {
                    $name::ALL.iter().copied().find(|member| member.name() == text)
                }
            }
        )+
    };
}

tokens! {
    /// Parts of an element that are not properties.
    T { Id = "id", Label = "label", Key = "key", Value = "value" }
    Direction { Out = "OUT", In = "IN", Both = "BOTH" }
    Order { Asc = "asc", Desc = "desc", Shuffle = "shuffle" }
    Scope { Local = "local", Global = "global" }
    Pop { First = "first", Last = "last", All = "all", Mixed = "mixed" }
    Column { Keys = "keys", Values = "values" }
    Cardinality { Single = "single", List = "list", Set = "set" }
    Operator {
        AddAll = "addAll", And = "and", Assign = "assign", Div = "div", Max = "max", Min = "min", Minus = "minus",
        Mult = "mult", Or = "or", Sum = "sum", SumLong = "sumLong",
    }
    Merge { OnCreate = "onCreate", OnMatch = "onMatch", OutV = "outV", InV = "inV" }
    Pick { Any = "any", None = "none", Unproductive = "unproductive" }
    DateUnit { Second = "second", Minute = "minute", Hour = "hour", Day = "day" }
    /// Types, as `typeOf()` and `asNumber()` name them.
    GType {
        BigDecimal = "BIGDECIMAL", BigInt = "BIGINT", Binary = "BINARY", Boolean = "BOOLEAN", Byte = "BYTE",
        Char = "CHAR", DateTime = "DATETIME", Double = "DOUBLE", Duration = "DURATION", Edge = "EDGE",
        Float = "FLOAT", Graph = "GRAPH", Int = "INT", List = "LIST", Long = "LONG", Map = "MAP", Null = "NULL",
        Number = "NUMBER", Path = "PATH", Property = "PROPERTY", Set = "SET", Short = "SHORT", String = "STRING",
        Tree = "TREE", Uuid = "UUID", Vertex = "VERTEX", VProperty = "VPROPERTY",
    }
}
