//! The syntax tree. Every node knows its place in the text; equality ignores places.

/// A stretch of the query text, counted in UTF-16 code units as errors report it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Span {
        // The text is at most QUERY_TEXT_BYTES_MAX long, so offsets always fit.
        Span { start: start as u32, end: end as u32 }
    }

    pub fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end }
    }
}

/// Two trees are equal when they mean the same text, wherever it stood: GROUP BY is matched against the
/// select list this way, and printing followed by parsing must give an equal tree.
impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub select: Select,
    /// The sources of FROM: the first one, then the joined ones. Empty: no FROM.
    pub from: Vec<Source>,
    pub filter: Option<Expr>,
    pub group_by: Vec<Expr>,
    pub order_by: Option<OrderBy>,
    pub offset_limit: Option<OffsetLimit>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub distinct: bool,
    pub top: Option<Count>,
    pub projection: Projection,
    /// Where `TOP n` stands, for the error that refuses it in subqueries.
    pub top_span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Projection {
    Star(Span),
    Value(Expr, Option<Name>),
    List(Vec<SelectItem>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    pub expr: Expr,
    pub alias: Option<Name>,
}

/// The number after TOP, OFFSET or LIMIT.
#[derive(Clone, Debug, PartialEq)]
pub enum Count {
    /// A non-negative integer; `None` where the literal is too large for 64 bits.
    Literal(Option<u64>, Span),
    Parameter(Name),
}

impl Count {
    pub fn span(&self) -> Span {
        match self {
            Count::Literal(_, span) => *span,
            Count::Parameter(name) => name.span,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub collection: Collection,
    /// `alias IN collection` walks an array; otherwise the value itself is bound.
    pub iterate: bool,
    pub alias: Option<Name>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Collection {
    /// A container or alias, with a path below it: an identifier, member or index expression.
    Path(Expr),
    Subquery(Box<Query>),
    /// Any other expression, accepted after IN, such as `OBJECTTOARRAY(c.x)`.
    Computed(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub struct OrderBy {
    /// `ORDER BY RANK`, whose items are score functions.
    pub rank: bool,
    pub items: Vec<OrderItem>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    pub expr: Expr,
    /// As written; absent means ascending, and plans print it as it was written.
    pub direction: Option<Direction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OffsetLimit {
    pub offset: Count,
    pub limit: Count,
    pub span: Span,
}

/// A predicate over one item, as patch requests carry it: `FROM c WHERE c.a = 1`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub alias: Option<Name>,
    pub filter: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
    /// Height of this subtree, kept so that the parser can bound it; see `NESTING_MAX`.
    pub(crate) height: u16,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Undefined,
    Null,
    Bool(bool),
    Integer(i64),
    Double(f64),
    String(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Literal(Literal),
    Identifier(String),
    /// With its `@`.
    Parameter(String),
    /// `object.name`
    Member(Box<Expr>, String),
    /// `object[index]`
    Index(Box<Expr>, Box<Expr>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// A chain of AND or OR, kept flat: clients send chains of a thousand.
    Logical(LogicalOp, Vec<Expr>),
    In {
        needle: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
    },
    Like {
        text: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<String>,
        negated: bool,
    },
    Between {
        value: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
    },
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    Coalesce(Box<Expr>, Box<Expr>),
    Array(Vec<Expr>),
    Object(Vec<(Name, Expr)>),
    Call {
        name: Name,
        udf: bool,
        arguments: Vec<Expr>,
    },
    Subquery(SubqueryKind, Box<Query>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubqueryKind {
    Scalar,
    Exists,
    Array,
    All,
    First,
    Last,
}

impl SubqueryKind {
    /// What stands before the brackets.
    pub fn keyword(self) -> &'static str {
        match self {
            SubqueryKind::Scalar => "",
            SubqueryKind::Exists => "EXISTS",
            SubqueryKind::Array => "ARRAY",
            SubqueryKind::All => "ALL",
            SubqueryKind::First => "FIRST",
            SubqueryKind::Last => "LAST",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Plus,
    Minus,
    BitNot,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogicalOp {
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    Multiply,
    Divide,
    Modulo,
    Add,
    Subtract,
    ShiftLeft,
    ShiftRight,
    ShiftRightZero,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    BitAnd,
    BitXor,
    BitOr,
    Concat,
}

impl ExprKind {
    /// Calls `visit` with every direct child expression; subqueries are not entered.
    pub fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            ExprKind::Literal(_)
            | ExprKind::Identifier(_)
            | ExprKind::Parameter(_)
            | ExprKind::Subquery(..) => {}
            ExprKind::Member(object, _) => visit(object),
            ExprKind::Unary(_, operand) => visit(operand),
            ExprKind::Index(left, right)
            | ExprKind::Binary(_, left, right)
            | ExprKind::Coalesce(left, right) => {
                visit(left);
                visit(right);
            }
            ExprKind::Logical(_, operands) | ExprKind::Array(operands) => operands.iter().for_each(visit),
            ExprKind::In { needle, list, .. } => {
                visit(needle);
                list.iter().for_each(visit);
            }
            ExprKind::Like { text, pattern, .. } => {
                visit(text);
                visit(pattern);
            }
            ExprKind::Between { value: first, low: second, high: third, .. }
            | ExprKind::Conditional(first, second, third) => {
                visit(first);
                visit(second);
                visit(third);
            }
            ExprKind::Object(members) => members.iter().for_each(|(_, value)| visit(value)),
            ExprKind::Call { arguments, .. } => arguments.iter().for_each(visit),
        }
    }
}

impl Expr {
    pub fn new(kind: ExprKind, span: Span) -> Expr {
        let mut height = 0;
        kind.for_each_child(&mut |child| height = height.max(child.height));
        if let ExprKind::Subquery(_, query) = &kind {
            height = height.max(query.height());
        }
        Expr { kind, span, height: height.saturating_add(1) }
    }

    /// How many levels this expression nests, itself included.
    pub fn height(&self) -> usize {
        usize::from(self.height)
    }
}

impl Query {
    fn height(&self) -> u16 {
        let mut height = 0;
        self.for_each_expr(&mut |expr| height = height.max(expr.height));
        for source in &self.from {
            if let Collection::Subquery(query) = &source.collection {
                height = height.max(query.height());
            }
        }
        height.saturating_add(1)
    }

    /// Calls `visit` with every top-level expression of the clauses, in the order they are written.
    pub fn for_each_expr<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match &self.select.projection {
            Projection::Star(_) => {}
            Projection::Value(expr, _) => visit(expr),
            Projection::List(items) => items.iter().for_each(|item| visit(&item.expr)),
        }
        for source in &self.from {
            match &source.collection {
                Collection::Path(expr) | Collection::Computed(expr) => visit(expr),
                Collection::Subquery(_) => {}
            }
        }
        self.filter.iter().for_each(&mut *visit);
        self.group_by.iter().for_each(&mut *visit);
        if let Some(order_by) = &self.order_by {
            order_by.items.iter().for_each(|item| visit(&item.expr));
        }
    }
}
