//! The printer: syntax tree to SQL text in the service's normal form.
//!
//! Operators are parenthesised, strings stand in double quotes with JSON escapes, aliases get their AS, and clauses
//! are one blank apart, or with `{:#}` one line each as query plans show them. Names, function spellings and sort
//! directions stay as written, because clients find their own text again in the plans they receive.

use std::fmt::{self, Display, Formatter, Write};

use crate::ast::*;

/// Chains of AND and OR longer than this are printed flat instead of nested, so that what is printed
/// can be parsed again within `NESTING_MAX`.
const NESTED_CHAIN_MAX: usize = 16;

impl Display for Query {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let gap = if out.alternate() { '\n' } else { ' ' };
        write!(out, "{}", self.select)?;
        for (index, source) in self.from.iter().enumerate() {
            write!(out, "{gap}{} ", if index == 0 { "FROM" } else { "JOIN" })?;
            source.fmt(out)?;
        }
        if let Some(filter) = &self.filter {
            write!(out, "{gap}WHERE {filter}")?;
        }
        if !self.group_by.is_empty() {
            write!(out, "{gap}GROUP BY ")?;
            separated(out, &self.group_by)?;
        }
        if let Some(order_by) = &self.order_by {
            write!(out, "{gap}{order_by}")?;
        }
        if let Some(OffsetLimit { offset, limit, .. }) = &self.offset_limit {
            write!(out, "{gap}OFFSET {offset} LIMIT {limit}")?;
        }
        Ok(())
    }
}

impl Display for Select {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("SELECT ")?;
        if self.distinct {
            out.write_str("DISTINCT ")?;
        }
        if let Some(top) = &self.top {
            write!(out, "TOP {top} ")?;
        }
        match &self.projection {
            Projection::Star(_) => out.write_str("*"),
            Projection::Value(expr, alias) => {
                write!(out, "VALUE {expr}")?;
                print_alias(out, alias)
            }
            Projection::List(items) => separated(out, items),
        }
    }
}

impl Display for SelectItem {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.expr)?;
        print_alias(out, &self.alias)
    }
}

impl Display for Count {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Count::Literal(Some(value), _) => write!(out, "{value}"),
            // Too large to keep; any number that is as much too large means the same.
            Count::Literal(None, _) => write!(out, "{}", u64::MAX),
            Count::Parameter(name) => out.write_str(&name.text),
        }
    }
}

impl Display for Source {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if self.iterate
            && let Some(alias) = &self.alias
        {
            write!(out, "{} IN ", alias.text)?;
        }
        match &self.collection {
            Collection::Path(expr) | Collection::Computed(expr) => write!(out, "{expr}")?,
            Collection::Subquery(query) if out.alternate() => write!(out, "(\n{query:#}\n)")?,
            Collection::Subquery(query) => write!(out, "({query})")?,
        }
        if self.iterate { Ok(()) } else { print_alias(out, &self.alias) }
    }
}

impl Display for OrderBy {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(if self.rank { "ORDER BY RANK " } else { "ORDER BY " })?;
        separated(out, &self.items)
    }
}

impl Display for OrderItem {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.expr)?;
        match self.direction {
            None => Ok(()),
            Some(Direction::Ascending) => out.write_str(" ASC"),
            Some(Direction::Descending) => out.write_str(" DESC"),
        }
    }
}

impl Display for Expr {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExprKind::Literal(literal) => write!(out, "{literal}"),
            ExprKind::Identifier(name) | ExprKind::Parameter(name) => out.write_str(name),
            ExprKind::Member(object, name) => {
                print_object(out, object)?;
                match is_word(name) {
                    true => write!(out, ".{name}"),
                    // Of a tree that was not read from a text.
                    false => {
                        out.write_str("[")?;
                        print_string(out, name)?;
                        out.write_str("]")
                    }
                }
            }
            ExprKind::Index(object, index) => {
                print_object(out, object)?;
                write!(out, "[{index}]")
            }
            ExprKind::Unary(op, operand) => print_unary(out, *op, operand),
            ExprKind::Binary(op, left, right) => write!(out, "({left} {op} {right})"),
            ExprKind::Logical(op, operands) => print_chain(out, *op, operands),
            ExprKind::In { needle, list, negated } => {
                write!(out, "({needle} {}IN (", if *negated { "NOT " } else { "" })?;
                separated(out, list)?;
                out.write_str("))")
            }
            ExprKind::Like { text, pattern, escape, negated } => {
                write!(out, "({text} {}LIKE {pattern}", if *negated { "NOT " } else { "" })?;
                if let Some(escape) = escape {
                    out.write_str(" ESCAPE ")?;
                    print_string(out, escape)?;
                }
                out.write_str(")")
            }
            ExprKind::Between { value, low, high, negated } => {
                write!(out, "({value} {}BETWEEN {low} AND {high})", if *negated { "NOT " } else { "" })
            }
            ExprKind::Conditional(condition, yes, no) => write!(out, "({condition} ? {yes} : {no})"),
            ExprKind::Coalesce(left, right) => write!(out, "({left} ?? {right})"),
            ExprKind::Array(elements) => {
                out.write_str("[")?;
                separated(out, elements)?;
                out.write_str("]")
            }
            ExprKind::Object(members) => {
                out.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    out.write_str(if index == 0 { "" } else { ", " })?;
                    print_string(out, &name.text)?;
                    write!(out, ": {value}")?;
                }
                out.write_str("}")
            }
            ExprKind::Call { name, udf, arguments } => {
                write!(out, "{}{}(", if *udf { "udf." } else { "" }, name.text)?;
                separated(out, arguments)?;
                out.write_str(")")
            }
            ExprKind::Subquery(kind, query) => {
                write!(out, "{}({query})", kind.keyword())
            }
        }
    }
}

/// What stands before a dot or bracket. A number needs parentheses there: `1.a` is no number.
fn print_object(out: &mut Formatter<'_>, object: &Expr) -> fmt::Result {
    match &object.kind {
        ExprKind::Unary(..) | ExprKind::Literal(Literal::Integer(_) | Literal::Double(_)) => {
            write!(out, "({object})")
        }
        _ => write!(out, "{object}"),
    }
}

/// Whether a name can stand without quotes.
fn is_word(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn print_unary(out: &mut Formatter<'_>, op: UnaryOp, operand: &Expr) -> fmt::Result {
    match op {
        UnaryOp::Not => write!(out, "(NOT {operand})"),
        UnaryOp::Plus => write!(out, "(+{operand})"),
        // A negative literal after a minus would read as a comment, two minuses.
        UnaryOp::Minus if matches!(operand.kind, ExprKind::Literal(_)) => write!(out, "(-({operand}))"),
        UnaryOp::Minus => write!(out, "(-{operand})"),
        UnaryOp::BitNot => write!(out, "(~{operand})"),
    }
}

fn print_chain(out: &mut Formatter<'_>, op: LogicalOp, operands: &[Expr]) -> fmt::Result {
    let word = if op == LogicalOp::And { "AND" } else { "OR" };
    let nested = operands.len() <= NESTED_CHAIN_MAX;
    for _ in 1..if nested { operands.len() } else { 2 } {
        out.write_str("(")?;
    }
    for (index, operand) in operands.iter().enumerate() {
        match index {
            0 => write!(out, "{operand}")?,
            _ => write!(out, " {word} {operand}{}", if nested { ")" } else { "" })?,
        }
    }
    if nested { Ok(()) } else { out.write_str(")") }
}

impl Display for BinaryOp {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            BinaryOp::Multiply => "*",
            BinaryOp::Divide => "/",
            BinaryOp::Modulo => "%",
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::ShiftLeft => "<<",
            BinaryOp::ShiftRight => ">>",
            BinaryOp::ShiftRightZero => ">>>",
            BinaryOp::Less => "<",
            BinaryOp::LessEqual => "<=",
            BinaryOp::Greater => ">",
            BinaryOp::GreaterEqual => ">=",
            BinaryOp::Equal => "=",
            BinaryOp::NotEqual => "!=",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitXor => "^",
            BinaryOp::BitOr => "|",
            BinaryOp::Concat => "||",
        })
    }
}

impl Display for Literal {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Undefined => out.write_str("undefined"),
            Literal::Null => out.write_str("null"),
            Literal::Bool(value) => write!(out, "{value}"),
            Literal::Integer(value) => write!(out, "{value}"),
            Literal::Double(value) => print_double(out, *value),
            Literal::String(value) => print_string(out, value),
        }
    }
}

/// Seventeen significant digits, as plans of the service show them, where fewer would not do.
fn print_double(out: &mut Formatter<'_>, value: f64) -> fmt::Result {
    let short = format!("{value:e}");
    let digits = short.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    let scientific = if digits <= 15 { short } else { format!("{value:.16e}") };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-5..17).contains(&exponent) {
        return write!(out, "{mantissa}e{exponent:+03}");
    }
    let sign = if mantissa.starts_with('-') { "-" } else { "" };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    out.write_str(sign)?;
    if exponent < 0 {
        let zeros = "0".repeat((-exponent - 1) as usize);
        write!(out, "0.{zeros}{digits}")
    } else {
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            write!(out, "{digits}{}.0", "0".repeat(whole - digits.len()))
        } else {
            write!(out, "{}.{}", &digits[..whole], &digits[whole..])
        }
    }
}

fn print_string(out: &mut Formatter<'_>, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\u{8}' => out.write_str("\\b")?,
            '\u{c}' => out.write_str("\\f")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            control if control < ' ' => write!(out, "\\u{:04x}", control as u32)?,
            plain => out.write_char(plain)?,
        }
    }
    out.write_char('"')
}

fn print_alias(out: &mut Formatter<'_>, alias: &Option<Name>) -> fmt::Result {
    match alias {
        Some(alias) => write!(out, " AS {}", alias.text),
        None => Ok(()),
    }
}

fn separated<T: Display>(out: &mut Formatter<'_>, items: &[T]) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        write!(out, "{}{item}", if index == 0 { "" } else { ", " })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Expr, ExprKind, Span, parse_query};

    #[test]
    fn names_that_are_no_words_are_quoted() {
        let mut query = parse_query("SELECT VALUE c.x FROM c").unwrap();
        for (name, printed) in
            [("b_2", "c.b_2"), ("$pk", r#"c["$pk"]"#), ("2", r#"c["2"]"#), ("a\"b", r#"c["a\"b"]"#)]
        {
            let item = Box::new(Expr::new(ExprKind::Identifier("c".to_owned()), Span::default()));
            let member = Expr::new(ExprKind::Member(item, name.to_owned()), Span::default());
            assert_eq!(member.to_string(), printed);
            query.filter = Some(member);
            assert!(parse_query(&query.to_string()).is_ok(), "{query}");
        }
    }
}
