//! Expressions, by precedence climbing.
//!
//! One function, [`Parser::climb`], reads a prefix and then every operator that binds at least as
//! tightly as asked, by the table in [`infix`]. It is one function on purpose: a function per level of
//! precedence would take many times the stack for each parenthesis. Nodes are passed boxed for the same
//! reason.
//!
//! NOT is looser than comparisons, so `NOT a = b` is `NOT (a = b)`, as its place in the documentation
//! says; a NOT that stands inside an operand binds as tightly as the other unary operators.

use super::*;

/// How tightly operators bind. Predicates (IN, LIKE, BETWEEN) do not chain.
mod power {
    pub const CONDITIONAL: u8 = 1;
    pub const COALESCE: u8 = 2;
    pub const OR: u8 = 3;
    pub const AND: u8 = 4;
    pub const NOT: u8 = 5;
    pub const PREDICATE: u8 = 6;
    pub const CONCAT: u8 = 7;
    pub const UNARY: u8 = 16;
}

#[derive(Clone, Copy)]
enum Infix {
    Conditional,
    Coalesce,
    Logical(LogicalOp),
    Predicate,
    Binary(BinaryOp),
}

impl<'t> Parser<'t> {
    pub(super) fn expression(&mut self) -> Parsed<Box<Expr>> {
        self.climb(0)
    }

    /// Reads an expression of operators that bind at least as tightly as `minimum`.
    fn climb(&mut self, minimum: u8) -> Parsed<Box<Expr>> {
        if self.depth >= DEPTH_MAX {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let start = self.span();
        let mut left = self.prefix(minimum)?;
        // After a predicate only looser operators may follow.
        let mut maximum = u8::MAX;
        while let Some((operator, power)) = self.infix()
            && power >= minimum
            && power <= maximum
        {
            left = match operator {
                Infix::Binary(op) => self.binary(op, power, left, start)?,
                Infix::Logical(op) => self.logical(op, power, left, start)?,
                Infix::Predicate => {
                    maximum = power::NOT;
                    self.predicate(left, start)?
                }
                Infix::Conditional | Infix::Coalesce => self.choice(operator, left, start)?,
            };
        }
        self.depth -= 1;
        Ok(left)
    }

    fn prefix(&mut self, minimum: u8) -> Parsed<Box<Expr>> {
        let op = match self.token().kind {
            TokenKind::Symbol(Symbol::Plus) => UnaryOp::Plus,
            TokenKind::Symbol(Symbol::Minus) => UnaryOp::Minus,
            TokenKind::Symbol(Symbol::Tilde) => UnaryOp::BitNot,
            TokenKind::Keyword(Keyword::Not) => UnaryOp::Not,
            _ => return self.postfix(),
        };
        let start = self.span();
        self.advance();
        let source: &'t str = &self.text[self.token().start..];
        let loose = op == UnaryOp::Not && minimum <= power::NOT;
        let operand = self.climb(if loose { power::NOT } else { power::UNARY })?;
        if op == UnaryOp::Minus
            && let ExprKind::Literal(literal) = &operand.kind
            && let Some(negative) = negate(literal, source)
        {
            return self.build(ExprKind::Literal(negative), start);
        }
        self.build(ExprKind::Unary(op, operand), start)
    }

    /// The operator at this place, if there is one, and how tightly it binds.
    fn infix(&self) -> Option<(Infix, u8)> {
        Some(match &self.token().kind {
            TokenKind::Symbol(Symbol::Question) => (Infix::Conditional, power::CONDITIONAL),
            TokenKind::Symbol(Symbol::Coalesce) => (Infix::Coalesce, power::COALESCE),
            TokenKind::Symbol(symbol) => {
                let (op, power) = binding(*symbol)?;
                (Infix::Binary(op), power)
            }
            TokenKind::Keyword(Keyword::Or) => (Infix::Logical(LogicalOp::Or), power::OR),
            TokenKind::Keyword(Keyword::And) => (Infix::Logical(LogicalOp::And), power::AND),
            TokenKind::Keyword(Keyword::In | Keyword::Like | Keyword::Between) => {
                (Infix::Predicate, power::PREDICATE)
            }
            TokenKind::Keyword(Keyword::Not) => match self.kind_ahead(1) {
                TokenKind::Keyword(Keyword::In | Keyword::Like | Keyword::Between) => {
                    (Infix::Predicate, power::PREDICATE)
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    fn binary(&mut self, op: BinaryOp, power: u8, left: Box<Expr>, start: Span) -> Parsed<Box<Expr>> {
        self.advance();
        let right = self.climb(power + 1)?;
        self.build(ExprKind::Binary(op, left, right), start)
    }

    fn logical(&mut self, op: LogicalOp, power: u8, mut left: Box<Expr>, start: Span) -> Parsed<Box<Expr>> {
        self.advance();
        let right = self.climb(power + 1)?;
        // `a OR b OR c` and `(a OR b) OR c` are one chain.
        if let ExprKind::Logical(inner, operands) = &mut left.kind
            && *inner == op
        {
            left.height = left.height.max(right.height.saturating_add(1));
            operands.push(*right);
            left.span = self.since(start);
            return if left.height() > NESTING_MAX { Err(self.too_deep()) } else { Ok(left) };
        }
        self.build(ExprKind::Logical(op, vec![*left, *right]), start)
    }

    fn choice(&mut self, operator: Infix, left: Box<Expr>, start: Span) -> Parsed<Box<Expr>> {
        self.advance();
        if let Infix::Coalesce = operator {
            let right = self.climb(power::COALESCE + 1)?;
            return self.build(ExprKind::Coalesce(left, right), start);
        }
        let yes = self.climb(0)?;
        self.symbol(Symbol::Colon)?;
        let no = self.climb(0)?;
        self.build(ExprKind::Conditional(left, yes, no), start)
    }

    fn predicate(&mut self, left: Box<Expr>, start: Span) -> Parsed<Box<Expr>> {
        let negated = self.take_keyword(Keyword::Not);
        let kind = if self.take_keyword(Keyword::In) {
            self.symbol(Symbol::OpenParen)?;
            let list = self.list(Symbol::CloseParen, 1)?;
            ExprKind::In { needle: left, list, negated }
        } else if self.take_keyword(Keyword::Like) {
            let pattern = self.climb(power::CONCAT)?;
            let escape = if self.take_keyword(Keyword::Escape) { Some(self.string()?) } else { None };
            ExprKind::Like { text: left, pattern, escape, negated }
        } else {
            self.keyword(Keyword::Between)?;
            let low = self.climb(power::CONCAT)?;
            self.keyword(Keyword::And)?;
            let high = self.climb(power::CONCAT)?;
            ExprKind::Between { value: left, low, high, negated }
        };
        self.build(kind, start)
    }

    pub(super) fn postfix(&mut self) -> Parsed<Box<Expr>> {
        let start = self.span();
        let mut expr = self.primary()?;
        loop {
            if self.take_symbol(Symbol::Dot) {
                // ARRAY is reserved only where a subquery may begin.
                let text = self.token_text().to_string();
                if !self.take_keyword(Keyword::Array) {
                    self.name()?;
                }
                expr = self.build(ExprKind::Member(expr, text), start)?;
            } else if self.take_symbol(Symbol::OpenBracket) {
                let index = self.expression()?;
                self.symbol(Symbol::CloseBracket)?;
                expr = self.build(ExprKind::Index(expr, index), start)?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn primary(&mut self) -> Parsed<Box<Expr>> {
        let start = self.span();
        let kind = match &self.token().kind {
            TokenKind::Literal(literal) => ExprKind::Literal(literal.clone()),
            TokenKind::Parameter => ExprKind::Parameter(self.token_text().to_string()),
            TokenKind::Keyword(keyword) => match keyword {
                Keyword::True => ExprKind::Literal(Literal::Bool(true)),
                Keyword::False => ExprKind::Literal(Literal::Bool(false)),
                Keyword::Null => ExprKind::Literal(Literal::Null),
                Keyword::Undefined => ExprKind::Literal(Literal::Undefined),
                Keyword::Exists => return self.subquery(SubqueryKind::Exists),
                Keyword::Array => return self.subquery(SubqueryKind::Array),
                Keyword::Left | Keyword::Right => return self.call(false),
                Keyword::Udf => {
                    self.advance();
                    self.symbol(Symbol::Dot)?;
                    return self.call(true);
                }
                _ => return self.unexpected(),
            },
            TokenKind::Word => {
                let call = *self.kind_ahead(1) == TokenKind::Symbol(Symbol::OpenParen);
                let select = *self.kind_ahead(2) == TokenKind::Keyword(Keyword::Select);
                match self.quantifier() {
                    Some(kind) if call && select => return self.subquery(kind),
                    _ if call => return self.call(false),
                    _ => ExprKind::Identifier(self.token_text().to_string()),
                }
            }
            TokenKind::Symbol(symbol) => match symbol {
                Symbol::OpenParen => return self.parenthesised(),
                Symbol::OpenBracket => {
                    self.advance();
                    let elements = self.list(Symbol::CloseBracket, 0)?;
                    return self.build(ExprKind::Array(elements), start);
                }
                Symbol::OpenBrace => return self.object(),
                _ => return self.unexpected(),
            },
            TokenKind::End => return self.unexpected(),
        };
        self.advance();
        self.build(kind, start)
    }

    fn parenthesised(&mut self) -> Parsed<Box<Expr>> {
        if *self.kind_ahead(1) == TokenKind::Keyword(Keyword::Select) {
            let start = self.span();
            self.advance();
            let query = self.nested(Self::query)?;
            self.symbol(Symbol::CloseParen)?;
            return self.build(ExprKind::Subquery(SubqueryKind::Scalar, query), start);
        }
        self.advance();
        let expr = self.expression()?;
        self.symbol(Symbol::CloseParen)?;
        Ok(expr)
    }

    fn quantifier(&self) -> Option<SubqueryKind> {
        [("ALL", SubqueryKind::All), ("FIRST", SubqueryKind::First), ("LAST", SubqueryKind::Last)]
            .into_iter()
            .find(|(word, _)| self.at_this_word(word))
            .map(|(_, kind)| kind)
    }

    fn subquery(&mut self, kind: SubqueryKind) -> Parsed<Box<Expr>> {
        let start = self.span();
        self.advance();
        self.symbol(Symbol::OpenParen)?;
        let query = self.nested(Self::query)?;
        self.symbol(Symbol::CloseParen)?;
        self.build(ExprKind::Subquery(kind, query), start)
    }

    fn call(&mut self, udf: bool) -> Parsed<Box<Expr>> {
        let start = self.span();
        // LEFT and RIGHT are reserved words and functions at once.
        let named = matches!(self.token().kind, TokenKind::Keyword(Keyword::Left | Keyword::Right));
        if !named && !self.at_word() {
            return self.unexpected();
        }
        let name = Name { text: self.token_text().to_string(), span: start };
        self.advance();
        self.symbol(Symbol::OpenParen)?;
        let arguments = self.list(Symbol::CloseParen, 0)?;
        self.build(ExprKind::Call { name, udf, arguments }, start)
    }

    /// Expressions with commas between them, up to and including `close`.
    fn list(&mut self, close: Symbol, minimum: usize) -> Parsed<Vec<Expr>> {
        let mut items = Vec::new();
        if minimum == 0 && self.take_symbol(close) {
            return Ok(items);
        }
        loop {
            items.push(*self.expression()?);
            if self.take_symbol(close) {
                return Ok(items);
            }
            self.symbol(Symbol::Comma)?;
        }
    }

    fn object(&mut self) -> Parsed<Box<Expr>> {
        let start = self.span();
        self.symbol(Symbol::OpenBrace)?;
        let mut members = Vec::new();
        if !self.take_symbol(Symbol::CloseBrace) {
            loop {
                let name = self.member_name()?;
                self.symbol(Symbol::Colon)?;
                members.push((name, *self.expression()?));
                if self.take_symbol(Symbol::CloseBrace) {
                    break;
                }
                self.symbol(Symbol::Comma)?;
            }
        }
        self.build(ExprKind::Object(members), start)
    }

    fn member_name(&mut self) -> Parsed<Name> {
        let span = self.span();
        let text = match &self.token().kind {
            TokenKind::Literal(Literal::String(text)) => text.clone(),
            TokenKind::Word | TokenKind::Keyword(_) => self.token_text().to_string(),
            _ => return self.unexpected(),
        };
        self.advance();
        Ok(Name { text, span })
    }

    fn string(&mut self) -> Parsed<String> {
        let TokenKind::Literal(Literal::String(text)) = &self.token().kind else { return self.unexpected() };
        let text = text.clone();
        self.advance();
        Ok(text)
    }

    fn build(&self, kind: ExprKind, start: Span) -> Parsed<Box<Expr>> {
        let expr = Box::new(Expr::new(kind, self.since(start)));
        if expr.height() > NESTING_MAX { Err(self.too_deep()) } else { Ok(expr) }
    }
}

/// The operator of a symbol and how tightly it binds.
fn binding(symbol: Symbol) -> Option<(BinaryOp, u8)> {
    Some(match symbol {
        Symbol::Concat => (BinaryOp::Concat, power::CONCAT),
        Symbol::Pipe => (BinaryOp::BitOr, 8),
        Symbol::Caret => (BinaryOp::BitXor, 9),
        Symbol::Ampersand => (BinaryOp::BitAnd, 10),
        Symbol::Equal => (BinaryOp::Equal, 11),
        Symbol::NotEqual => (BinaryOp::NotEqual, 11),
        Symbol::Less => (BinaryOp::Less, 12),
        Symbol::LessEqual => (BinaryOp::LessEqual, 12),
        Symbol::Greater => (BinaryOp::Greater, 12),
        Symbol::GreaterEqual => (BinaryOp::GreaterEqual, 12),
        Symbol::ShiftLeft => (BinaryOp::ShiftLeft, 13),
        Symbol::ShiftRight => (BinaryOp::ShiftRight, 13),
        Symbol::ShiftRightZero => (BinaryOp::ShiftRightZero, 13),
        Symbol::Plus => (BinaryOp::Add, 14),
        Symbol::Minus => (BinaryOp::Subtract, 14),
        Symbol::Star => (BinaryOp::Multiply, 15),
        Symbol::Slash => (BinaryOp::Divide, 15),
        Symbol::Percent => (BinaryOp::Modulo, 15),
        _ => return None,
    })
}

/// `-5` is one literal. The smallest 64-bit integer is only reachable this way: its digits alone are
/// one too many and were read as a double.
fn negate(literal: &Literal, source: &str) -> Option<Literal> {
    match literal {
        Literal::Integer(value) => Some(Literal::Integer(value.checked_neg()?)),
        Literal::Double(_) if is_smallest_integer(source) => Some(Literal::Integer(i64::MIN)),
        Literal::Double(value) => Some(Literal::Double(-value)),
        _ => None,
    }
}

fn is_smallest_integer(source: &str) -> bool {
    const DIGITS: &str = "9223372036854775808";
    source.strip_prefix(DIGITS).is_some_and(|rest| {
        !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '.' || next == '_')
    })
}
