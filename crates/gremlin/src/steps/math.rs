//! `math()`: arithmetic over numbers that by() and labels supply.
//!
//! Operators `+ - * / % ^`, parentheses, and the usual functions of one argument. `_` is the value at hand.

use std::sync::Arc;

use super::*;
use crate::value::Pop;

/// Parentheses inside parentheses.
const NESTING_MAX: usize = 64;

enum Expression {
    Number(f64),
    Variable(usize),
    Call(fn(f64) -> f64, Box<Expression>),
    Operation(char, Box<Expression>, Box<Expression>),
}

pub(crate) fn build(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let text = call.string(0)?;
    let mut parser = Parser { rest: &text, variables: Vec::new(), depth: 0 };
    let expression = parser.sum().filter(|_| parser.rest.trim().is_empty());
    let Some(expression) = expression else {
        return Err(Error::runtime(format!("'{text}' is not an expression that math() can compute.")));
    };
    let variables = parser.variables;
    let parts = Parts::bys(call.bys(builder)?);
    Ok(Each::map(parts, move |cx, parts, traverser| {
        let mut numbers = Vec::with_capacity(variables.len());
        for (index, variable) in variables.iter().enumerate() {
            let value = if &**variable == "_" {
                Some(traverser.value.clone())
            } else {
                cx.scoped(traverser, variable, Pop::Last)
            };
            let count = parts.bys.len();
            let value = match (value, parts.bys.get_mut(index % count.max(1))) {
                (Some(value), Some(by)) => by.apply_to(cx, traverser, &value)?,
                (value, _) => value,
            };
            let Some(value) = value else { return Ok(None) };
            let Some(number) = value.as_f64() else {
                let text = format!("The variable {variable} of math() does not resolve to a number");
                return Err(Error::runtime(format!(
                    "{text}: it is of type {}",
                    crate::text::type_name(&value)
                )));
            };
            numbers.push(number);
        }
        Ok(Some(Value::Double(expression.compute(&numbers))))
    }))
}

impl Expression {
    fn compute(&self, numbers: &[f64]) -> f64 {
        match self {
            Expression::Number(n) => *n,
            Expression::Variable(index) => numbers[*index],
            Expression::Call(function, inner) => function(inner.compute(numbers)),
            Expression::Operation(operator, a, b) => {
                let (a, b) = (a.compute(numbers), b.compute(numbers));
                match operator {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    '/' => a / b,
                    '%' => a % b,
                    _ => a.powf(b),
                }
            }
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
    variables: Vec<Arc<str>>,
    depth: usize,
}

impl Parser<'_> {
    fn mark(&mut self, marks: &[char]) -> Option<char> {
        self.rest = self.rest.trim_start();
        let c = self.rest.chars().next().filter(|c| marks.contains(c))?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn sum(&mut self) -> Option<Expression> {
        let mut left = self.product()?;
        while let Some(operator) = self.mark(&['+', '-']) {
            left = Expression::Operation(operator, Box::new(left), Box::new(self.product()?));
        }
        Some(left)
    }

    fn product(&mut self) -> Option<Expression> {
        let mut left = self.signed()?;
        while let Some(operator) = self.mark(&['*', '/', '%']) {
            left = Expression::Operation(operator, Box::new(left), Box::new(self.signed()?));
        }
        Some(left)
    }

    fn signed(&mut self) -> Option<Expression> {
        match self.mark(&['-', '+']) {
            Some('-') => {
                let inner = self.signed_nested()?;
                Some(Expression::Operation('-', Box::new(Expression::Number(0.0)), Box::new(inner)))
            }
            Some(_) => self.signed_nested(),
            None => self.power(),
        }
    }

    fn signed_nested(&mut self) -> Option<Expression> {
        self.nested(Parser::signed)
    }

    fn power(&mut self) -> Option<Expression> {
        let base = self.atom()?;
        match self.mark(&['^']) {
            Some(_) => {
                let exponent = self.signed_nested()?;
                Some(Expression::Operation('^', Box::new(base), Box::new(exponent)))
            }
            None => Some(base),
        }
    }

    fn nested(&mut self, inner: fn(&mut Self) -> Option<Expression>) -> Option<Expression> {
        if self.depth >= NESTING_MAX {
            return None;
        }
        self.depth += 1;
        let found = inner(self);
        self.depth -= 1;
        found
    }

    fn atom(&mut self) -> Option<Expression> {
        if self.mark(&['(']).is_some() {
            let inner = self.nested(Parser::sum)?;
            self.mark(&[')'])?;
            return Some(inner);
        }
        self.rest = self.rest.trim_start();
        let first = self.rest.chars().next()?;
        if first.is_ascii_digit() || first == '.' {
            let mut end =
                self.rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(self.rest.len());
            let exponent = &self.rest[end..];
            if exponent.starts_with(['e', 'E']) {
                let sign = usize::from(exponent[1..].starts_with(['+', '-']));
                let digits = exponent[1 + sign..].bytes().take_while(u8::is_ascii_digit).count();
                end += if digits > 0 { 1 + sign + digits } else { 0 };
            }
            let number = self.rest[..end].parse().ok()?;
            self.rest = &self.rest[end..];
            return Some(Expression::Number(number));
        }
        if !(first.is_alphabetic() || first == '_') {
            return None;
        }
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let name = &self.rest[..end];
        self.rest = &self.rest[end..];
        match (name, function(name)) {
            ("pi" | "\u{3c0}", _) => Some(Expression::Number(std::f64::consts::PI)),
            ("e", _) => Some(Expression::Number(std::f64::consts::E)),
            (_, Some(function)) => {
                let inner = self.nested(Parser::atom)?;
                Some(Expression::Call(function, Box::new(inner)))
            }
            (name, None) => {
                let index = self.variables.iter().position(|known| **known == *name).unwrap_or_else(|| {
                    self.variables.push(Arc::from(name));
                    self.variables.len() - 1
                });
                Some(Expression::Variable(index))
            }
        }
    }
}

fn function(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "abs" => f64::abs,
        "acos" => f64::acos,
        "asin" => f64::asin,
        "atan" => f64::atan,
        "cbrt" => f64::cbrt,
        "ceil" => f64::ceil,
        "cos" => f64::cos,
        "cosh" => f64::cosh,
        "exp" => f64::exp,
        "expm1" => f64::exp_m1,
        "floor" => f64::floor,
        "log" => f64::ln,
        "log10" => f64::log10,
        "log1p" => f64::ln_1p,
        "log2" => f64::log2,
        "signum" => |x| if x == 0.0 { 0.0 } else { x.signum() },
        "sin" => f64::sin,
        "sinh" => f64::sinh,
        "sqrt" => f64::sqrt,
        "tan" => f64::tan,
        "tanh" => f64::tanh,
        _ => return None,
    })
}
