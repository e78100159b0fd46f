//! The parser's entry points and the clauses of a query. Expressions are in `parser/expression.rs`.
//!
//! A parser holds the tokens and a position; every `fn` consumes what it recognises or returns the
//! service's error for the token it could not use. Nesting is counted in [`Parser::nested`], so no text
//! can exhaust the stack.

mod expression;

use crate::ast::*;
use crate::error::SqlError;
use crate::lexer::tokenize;
use crate::token::{Keyword, Symbol, Token, TokenKind};
use crate::{NESTING_MAX, QUERY_TEXT_BYTES_MAX};

/// Parses one query.
pub fn parse_query(text: &str) -> Result<Query, SqlError> {
    let mut parser = Parser::new(text)?;
    let query = parser.query()?;
    parser.end()?;
    Ok(*query)
}

/// Parses the condition of a patch request: `[FROM alias] WHERE predicate`.
pub fn parse_condition(text: &str) -> Result<Condition, SqlError> {
    let mut parser = Parser::new(text)?;
    let mut alias = None;
    if parser.take_keyword(Keyword::From) {
        let container = parser.name()?;
        let renamed =
            if parser.take_keyword(Keyword::As) || parser.at_word() { Some(parser.name()?) } else { None };
        alias = Some(renamed.unwrap_or(container));
    }
    parser.keyword(Keyword::Where)?;
    let filter = parser.expression()?;
    parser.end()?;
    Ok(Condition { alias, filter: *filter })
}

/// Parses one expression, without any clause around it.
pub fn parse_expression(text: &str) -> Result<Expr, SqlError> {
    let mut parser = Parser::new(text)?;
    let expr = parser.expression()?;
    parser.end()?;
    Ok(*expr)
}

/// How often the parser may call itself: twice for a level of the tree, once for the parenthesis and
/// once for the operand.
const DEPTH_MAX: usize = 2 * NESTING_MAX + 8;

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

/// Errors are boxed while parsing, to keep the recursive functions' frames small.
type Parsed<T> = Result<T, Box<SqlError>>;

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Parsed<Parser<'t>> {
        if text.len() > QUERY_TEXT_BYTES_MAX {
            let message = format!(
                "The SQL query text exceeded the maximum limit of {QUERY_TEXT_BYTES_MAX} characters."
            );
            return Err(Box::new(SqlError::whole("", message)));
        }
        Ok(Parser { text, tokens: tokenize(text)?, at: 0, depth: 0 })
    }

    // ---- tokens

    fn token(&self) -> &Token {
        // The last token is always End, and nothing moves past it.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn kind_ahead(&self, ahead: usize) -> &TokenKind {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }

    fn span(&self) -> Span {
        self.token().span
    }

    /// The end of the token before this one, where a node that was just parsed ends.
    fn since(&self, start: Span) -> Span {
        let last = self.tokens[self.at.saturating_sub(1)].span;
        Span { start: start.start, end: last.end.max(start.start) }
    }

    fn token_text(&self) -> &'t str {
        let token = self.token();
        &self.text[token.start..token.end]
    }

    fn advance(&mut self) {
        self.at += 1;
    }

    fn unexpected<T>(&self) -> Parsed<T> {
        Err(Box::new(if self.token().kind == TokenKind::End {
            SqlError::at("SC1002", "Syntax error, unexpected end-of-file.", self.span())
        } else {
            let message = format!("Syntax error, incorrect syntax near '{}'.", self.token_text());
            SqlError::at("SC1001", message, self.span())
        }))
    }

    fn end(&self) -> Parsed<()> {
        if self.token().kind == TokenKind::End { Ok(()) } else { self.unexpected() }
    }

    fn at_keyword(&self, keyword: Keyword) -> bool {
        self.token().kind == TokenKind::Keyword(keyword)
    }

    fn take_keyword(&mut self, keyword: Keyword) -> bool {
        let found = self.at_keyword(keyword);
        self.at += usize::from(found);
        found
    }

    fn keyword(&mut self, keyword: Keyword) -> Parsed<()> {
        if self.take_keyword(keyword) { Ok(()) } else { self.unexpected() }
    }

    fn at_symbol(&self, symbol: Symbol) -> bool {
        self.token().kind == TokenKind::Symbol(symbol)
    }

    fn take_symbol(&mut self, symbol: Symbol) -> bool {
        let found = self.at_symbol(symbol);
        self.at += usize::from(found);
        found
    }

    fn symbol(&mut self, symbol: Symbol) -> Parsed<()> {
        if self.take_symbol(symbol) { Ok(()) } else { self.unexpected() }
    }

    fn at_word(&self) -> bool {
        self.token().kind == TokenKind::Word
    }

    fn at_this_word(&self, word: &str) -> bool {
        self.at_word() && self.token_text().eq_ignore_ascii_case(word)
    }

    fn name(&mut self) -> Parsed<Name> {
        if !self.at_word() {
            return self.unexpected();
        }
        let name = Name { text: self.token_text().to_string(), span: self.span() };
        self.advance();
        Ok(name)
    }

    fn alias(&mut self) -> Parsed<Option<Name>> {
        if self.take_keyword(Keyword::As) || self.at_word() { self.name().map(Some) } else { Ok(None) }
    }

    /// Runs `parse` one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_MAX {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn too_deep(&self) -> Box<SqlError> {
        let message = format!("The query nests deeper than the maximum of {NESTING_MAX} levels.");
        Box::new(SqlError::at("SC1001", message, self.span()))
    }

    // ---- clauses

    fn query(&mut self) -> Parsed<Box<Query>> {
        let start = self.span();
        let select = self.select()?;
        let from = if self.take_keyword(Keyword::From) { self.from()? } else { Vec::new() };
        let filter = if self.take_keyword(Keyword::Where) { Some(*self.expression()?) } else { None };
        let group_by = self.group_by()?;
        let order_by = self.order_by()?;
        let offset_limit = self.offset_limit()?;
        let span = self.since(start);
        Ok(Box::new(Query { select, from, filter, group_by, order_by, offset_limit, span }))
    }

    fn select(&mut self) -> Parsed<Select> {
        self.keyword(Keyword::Select)?;
        let distinct = self.take_keyword(Keyword::Distinct);
        let top_start = self.span();
        let top = if self.take_keyword(Keyword::Top) { Some(self.count()?) } else { None };
        let top_span = self.since(top_start);
        let star = self.span();
        let projection = if self.take_symbol(Symbol::Star) {
            Projection::Star(star)
        } else if self.take_keyword(Keyword::Value) {
            let expr = self.expression()?;
            Projection::Value(*expr, self.alias()?)
        } else {
            let mut items = vec![self.select_item()?];
            while self.take_symbol(Symbol::Comma) {
                items.push(self.select_item()?);
            }
            Projection::List(items)
        };
        Ok(Select { distinct, top, projection, top_span })
    }

    fn select_item(&mut self) -> Parsed<SelectItem> {
        let expr = self.expression()?;
        Ok(SelectItem { expr: *expr, alias: self.alias()? })
    }

    fn count(&mut self) -> Parsed<Count> {
        let span = self.span();
        let count = match &self.token().kind {
            TokenKind::Literal(Literal::Integer(value)) => Count::Literal(u64::try_from(*value).ok(), span),
            TokenKind::Literal(Literal::Double(value)) if value.fract() == 0.0 => {
                // Larger than any integer the clause accepts, or an integer written as 1e2.
                let exact = (*value >= 0.0 && *value < 9e18).then_some(*value as u64);
                Count::Literal(exact, span)
            }
            TokenKind::Parameter => Count::Parameter(Name { text: self.token_text().to_string(), span }),
            _ => return self.unexpected(),
        };
        self.advance();
        Ok(count)
    }

    fn from(&mut self) -> Parsed<Vec<Source>> {
        let mut sources = vec![self.source()?];
        while self.take_keyword(Keyword::Join) {
            sources.push(self.source()?);
        }
        Ok(sources)
    }

    fn source(&mut self) -> Parsed<Source> {
        let start = self.span();
        let iterate = self.at_word() && *self.kind_ahead(1) == TokenKind::Keyword(Keyword::In);
        let mut alias = None;
        if iterate {
            alias = Some(self.name()?);
            self.keyword(Keyword::In)?;
        }
        let collection = if self.at_symbol(Symbol::OpenParen)
            && *self.kind_ahead(1) == TokenKind::Keyword(Keyword::Select)
        {
            self.advance();
            let query = self.nested(Self::query)?;
            self.symbol(Symbol::CloseParen)?;
            Collection::Subquery(query)
        } else {
            let expr = self.nested(Self::postfix)?;
            if is_path(&expr) { Collection::Path(*expr) } else { Collection::Computed(*expr) }
        };
        if !iterate {
            alias = self.alias()?;
        }
        Ok(Source { collection, iterate, alias, span: self.since(start) })
    }

    fn group_by(&mut self) -> Parsed<Vec<Expr>> {
        let mut keys = Vec::new();
        if self.take_keyword(Keyword::Group) {
            self.keyword(Keyword::By)?;
            keys.push(*self.expression()?);
            while self.take_symbol(Symbol::Comma) {
                keys.push(*self.expression()?);
            }
        }
        Ok(keys)
    }

    fn order_by(&mut self) -> Parsed<Option<OrderBy>> {
        let start = self.span();
        if !self.take_keyword(Keyword::Order) {
            return Ok(None);
        }
        self.keyword(Keyword::By)?;
        // RANK is no reserved word: it is one only where a function name follows.
        let rank = self.at_this_word("RANK") && *self.kind_ahead(1) == TokenKind::Word;
        self.at += usize::from(rank);
        let mut items = Vec::new();
        loop {
            let expr = self.expression()?;
            if rank && !matches!(expr.kind, ExprKind::Call { .. }) {
                return self.unexpected();
            }
            let direction = if self.take_keyword(Keyword::Asc) {
                Some(Direction::Ascending)
            } else if self.take_keyword(Keyword::Desc) {
                Some(Direction::Descending)
            } else {
                None
            };
            items.push(OrderItem { expr: *expr, direction });
            if !self.take_symbol(Symbol::Comma) {
                break;
            }
        }
        Ok(Some(OrderBy { rank, items, span: self.since(start) }))
    }

    fn offset_limit(&mut self) -> Parsed<Option<OffsetLimit>> {
        let start = self.span();
        if !self.take_keyword(Keyword::Offset) {
            return Ok(None);
        }
        let offset = self.count()?;
        self.keyword(Keyword::Limit)?;
        let limit = self.count()?;
        Ok(Some(OffsetLimit { offset, limit, span: self.since(start) }))
    }
}

/// Whether an expression is an identifier with member and index steps below it.
fn is_path(expr: &Expr) -> bool {
    let mut expr = expr;
    loop {
        match &expr.kind {
            ExprKind::Identifier(_) => return true,
            ExprKind::Member(object, _) | ExprKind::Index(object, _) => expr = object,
            _ => return false,
        }
    }
}
