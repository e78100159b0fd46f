//! Tokens: what the lexer hands to the parser.

use crate::ast::{Literal, Span};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// A name, its text being the token's.
    Word,
    Keyword(Keyword),
    /// `@name`, with the `@`.
    Parameter,
    Literal(Literal),
    /// An operator or a bracket.
    Symbol(Symbol),
    End,
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    /// Where the token stands in the text's bytes.
    pub start: usize,
    pub end: usize,
    /// The same place as errors report it.
    pub span: Span,
}

/// Words that cannot serve as names. Those of the second group are recognised in lower case only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Select,
    Value,
    Distinct,
    Top,
    As,
    From,
    In,
    Join,
    Where,
    And,
    Or,
    Not,
    Between,
    Like,
    Escape,
    Exists,
    Array,
    Order,
    Group,
    By,
    Asc,
    Desc,
    Offset,
    Limit,
    Left,
    Right,
    Udf,
    True,
    False,
    Null,
    Undefined,
}

const KEYWORDS: &[(&str, Keyword)] = &[
    ("SELECT", Keyword::Select),
    ("VALUE", Keyword::Value),
    ("DISTINCT", Keyword::Distinct),
    ("TOP", Keyword::Top),
    ("AS", Keyword::As),
    ("FROM", Keyword::From),
    ("IN", Keyword::In),
    ("JOIN", Keyword::Join),
    ("WHERE", Keyword::Where),
    ("AND", Keyword::And),
    ("OR", Keyword::Or),
    ("NOT", Keyword::Not),
    ("BETWEEN", Keyword::Between),
    ("LIKE", Keyword::Like),
    ("ESCAPE", Keyword::Escape),
    ("EXISTS", Keyword::Exists),
    ("ARRAY", Keyword::Array),
    ("ORDER", Keyword::Order),
    ("GROUP", Keyword::Group),
    ("BY", Keyword::By),
    ("ASC", Keyword::Asc),
    ("DESC", Keyword::Desc),
    ("OFFSET", Keyword::Offset),
    ("LIMIT", Keyword::Limit),
    ("LEFT", Keyword::Left),
    ("RIGHT", Keyword::Right),
];

const KEYWORDS_EXACT: &[(&str, Keyword)] = &[
    ("udf", Keyword::Udf),
    ("true", Keyword::True),
    ("false", Keyword::False),
    ("null", Keyword::Null),
    ("undefined", Keyword::Undefined),
];

impl Keyword {
    pub(crate) fn of(word: &str) -> Option<Keyword> {
        let upper = KEYWORDS.iter().find(|(text, _)| text.eq_ignore_ascii_case(word));
        let exact = || KEYWORDS_EXACT.iter().find(|(text, _)| *text == word);
        upper.or_else(exact).map(|(_, keyword)| *keyword)
    }
}

/// Whether a word is reserved, so that it can be neither an alias nor a name after a dot.
pub fn is_reserved(word: &str) -> bool {
    Keyword::of(word).is_some()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    Comma,
    Dot,
    Colon,
    Question,
    Coalesce,
    Star,
    Slash,
    Percent,
    Plus,
    Minus,
    Tilde,
    ShiftLeft,
    ShiftRight,
    ShiftRightZero,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    Ampersand,
    Caret,
    Pipe,
    Concat,
}

/// Longest first, so that the first match is the token.
pub(crate) const SYMBOLS: &[(&str, Symbol)] = &[
    (">>>", Symbol::ShiftRightZero),
    ("??", Symbol::Coalesce),
    ("<<", Symbol::ShiftLeft),
    (">>", Symbol::ShiftRight),
    ("<=", Symbol::LessEqual),
    (">=", Symbol::GreaterEqual),
    ("!=", Symbol::NotEqual),
    ("<>", Symbol::NotEqual),
    ("||", Symbol::Concat),
    ("(", Symbol::OpenParen),
    (")", Symbol::CloseParen),
    ("[", Symbol::OpenBracket),
    ("]", Symbol::CloseBracket),
    ("{", Symbol::OpenBrace),
    ("}", Symbol::CloseBrace),
    (",", Symbol::Comma),
    (".", Symbol::Dot),
    (":", Symbol::Colon),
    ("?", Symbol::Question),
    ("*", Symbol::Star),
    ("/", Symbol::Slash),
    ("%", Symbol::Percent),
    ("+", Symbol::Plus),
    ("-", Symbol::Minus),
    ("~", Symbol::Tilde),
    ("<", Symbol::Less),
    (">", Symbol::Greater),
    ("=", Symbol::Equal),
    ("&", Symbol::Ampersand),
    ("^", Symbol::Caret),
    ("|", Symbol::Pipe),
];
