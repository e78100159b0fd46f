//! Expressions: names to slots, functions to table entries, constants computed once.

use std::collections::HashSet;

use orrery_model::{Number, Value};
use orrery_sql::{Expr, ExprKind, Literal, Projection, Span, SqlError};

use super::{Compiled, Compiler, GroupScope, ITEM_SLOT, Origin, duplicate_name, unresolved};
use crate::aggregate::AggregateKind;
use crate::env::DistanceFunction;
use crate::eval::Frame;
use crate::functions::{self, Function, in_language};
use crate::language::Language;
use crate::like::LikePattern;
use crate::limits::UDF_CALLS_MAX;
use crate::node::{Node, Pattern, SORTED_LIST_MIN, text_of};
use crate::value::value_bytes;

/// What the third argument of VECTORDISTANCE is called among the options of the fourth.
pub(crate) const BRUTE_FORCE: &str = "bruteForce";

impl Compiler<'_> {
    /// Compiles an expression; with a group scope, as part of a grouped select list.
    pub(super) fn expression(&mut self, expr: &Expr, group: &mut Option<GroupScope>) -> Compiled<Node> {
        if let Some(scope) = group
            && let Some(node) = self.grouped(expr, scope)?
        {
            return Ok(node);
        }
        let node = match &expr.kind {
            ExprKind::Literal(literal) => Node::Constant(literal_value(literal)),
            ExprKind::Identifier(name) => self.identifier(name, expr.span)?,
            ExprKind::Parameter(name) => {
                let value = self.parameters.get(name.as_str()).copied();
                self.meter.take(value.map_or(0, value_bytes))?;
                Node::Constant(value.cloned().unwrap_or(Value::Undefined))
            }
            ExprKind::Member(object, name) => {
                let object = self.expression(object, group)?;
                self.member(object, name)?
            }
            ExprKind::Index(object, index) => {
                let object = self.expression(object, group)?;
                let index = self.expression(index, group)?;
                self.indexed(object, index, expr.span)?
            }
            ExprKind::Unary(op, operand) => Node::Unary(*op, self.boxed(operand, group)?),
            ExprKind::Binary(op, left, right) => {
                Node::Binary(*op, self.boxed(left, group)?, self.boxed(right, group)?)
            }
            ExprKind::Logical(op, operands) => Node::Logical(*op, self.list(operands, group)?),
            ExprKind::In { needle, list, negated } => {
                let mut list = self.list(list, group)?;
                let sorted = list.len() >= SORTED_LIST_MIN && list.iter().all(|node| text_of(node).is_some());
                if sorted {
                    list.sort_unstable_by(|left, right| text_of(left).cmp(&text_of(right)));
                }
                Node::In { needle: self.boxed(needle, group)?, list, negated: *negated, sorted }
            }
            ExprKind::Like { text, pattern, escape, negated } => Node::Like {
                text: self.boxed(text, group)?,
                pattern: self.pattern(pattern, escape.as_deref(), expr.span, group)?,
                negated: *negated,
            },
            ExprKind::Between { value, low, high, negated } => Node::Between {
                value: self.boxed(value, group)?,
                low: self.boxed(low, group)?,
                high: self.boxed(high, group)?,
                negated: *negated,
            },
            ExprKind::Conditional(condition, yes, no) => Node::Conditional(
                self.boxed(condition, group)?,
                self.boxed(yes, group)?,
                self.boxed(no, group)?,
            ),
            ExprKind::Coalesce(left, right) => {
                Node::Coalesce(self.boxed(left, group)?, self.boxed(right, group)?)
            }
            ExprKind::Array(elements) => Node::Array(self.list(elements, group)?),
            ExprKind::Object(members) => {
                let mut nodes: Vec<(String, Node)> = Vec::with_capacity(members.len());
                let mut names = HashSet::with_capacity(members.len());
                for (name, value) in members {
                    if !names.insert(name.text.as_str()) {
                        return Err(duplicate_name(&name.text, name.span));
                    }
                    nodes.push((name.text.clone(), self.expression(value, group)?));
                }
                Node::Object(nodes)
            }
            ExprKind::Call { name, udf: true, arguments } => {
                let arguments = self.list(arguments, group)?;
                self.udf(&name.text, name.span, arguments)?
            }
            ExprKind::Call { name, udf: false, arguments } => {
                // A bare function of the rank clause is refused before its arguments are looked at.
                let function = self.function(&name.text, name.span, expr.span, arguments.len())?;
                let mut nodes = self.list(arguments, group)?;
                if matches!(function.name, "VECTORDISTANCE" | "_VECTORSCORE") {
                    nodes = self.vector_arguments(nodes, arguments)?;
                }
                self.changes |= !function.deterministic;
                let language = nodes.first().map_or(self.env.language, |text| self.text_language(text));
                Node::Call(in_language(function, language), nodes)
            }
            ExprKind::Subquery(kind, query) => Node::Subquery(*kind, Box::new(self.subquery(query)?)),
        };
        self.fold(node)
    }

    fn boxed(&mut self, expr: &Expr, group: &mut Option<GroupScope>) -> Compiled<Box<Node>> {
        self.expression(expr, group).map(Box::new)
    }

    fn list(&mut self, exprs: &[Expr], group: &mut Option<GroupScope>) -> Compiled<Vec<Node>> {
        exprs.iter().map(|expr| self.expression(expr, group)).collect()
    }

    fn identifier(&mut self, name: &str, span: Span) -> Compiled<Node> {
        if let Some(slot) = self.scope.find(name) {
            return Ok(Node::Slot(slot));
        }
        match name {
            "NaN" => Ok(Node::Constant(Value::Number(Number::Double(f64::NAN)))),
            "Infinity" => Ok(Node::Constant(Value::Number(Number::Double(f64::INFINITY)))),
            _ => Err(unresolved(name, span)),
        }
    }

    /// `object.name`; a computed property of the container is replaced by its expression.
    pub(super) fn member(&mut self, object: Node, name: &str) -> Compiled<Node> {
        if !self.inside_computed
            && let Node::Slot(slot) = &object
            && self.is_item(*slot)
            && let Some(property) = self.env.computed_properties.iter().find(|property| property.name == name)
            && let Projection::Value(expr, _) = &property.query.select.projection
        {
            let alias = property.query.from.first().and_then(super::source_alias);
            let mark = self.scope.mark();
            self.scope.bind(alias.map_or("c", |(name, _)| name), *slot);
            self.inside_computed = true;
            let node = self.expression(expr, &mut None);
            self.inside_computed = false;
            self.scope.release(mark);
            return node;
        }
        Ok(Node::Member(Box::new(object), name.to_string()))
    }

    /// Whether a slot holds a whole item.
    fn is_item(&self, slot: usize) -> bool {
        match &self.origins[slot] {
            Origin::Path(path) => path.is_empty(),
            Origin::Projection(node) => matches!(&**node, Node::Slot(inner) if self.is_item(*inner)),
            _ => false,
        }
    }

    /// `object[index]`; the service takes constant indexes only.
    pub(super) fn indexed(&mut self, object: Node, index: Node, span: Span) -> Compiled<Node> {
        let Node::Constant(index) = index else {
            let message = "The specified query includes 'member indexer' which is currently not supported.";
            return Err(SqlError::at("SC2990", message, span));
        };
        match index {
            Value::String(name) => self.member(object, &name),
            Value::Number(number) => match number.as_i64().map(usize::try_from) {
                Some(Ok(position)) => Ok(Node::Element(Box::new(object), position)),
                _ => Ok(Node::Constant(Value::Undefined)),
            },
            _ => Ok(Node::Constant(Value::Undefined)),
        }
    }

    fn pattern(
        &mut self,
        pattern: &Expr,
        escape: Option<&str>,
        span: Span,
        group: &mut Option<GroupScope>,
    ) -> Compiled<Pattern> {
        let escape = match escape.map(|text| (text.chars().next(), text.chars().count())) {
            None => None,
            Some((character @ Some(_), 1)) => character,
            Some(_) => {
                let message = "The ESCAPE clause of LIKE requires a string of one character.";
                return Err(SqlError::at("SC2071", message, span));
            }
        };
        Ok(match self.expression(pattern, group)? {
            Node::Constant(Value::String(text)) => Pattern::Ready(LikePattern::new(&text, escape)),
            node => Pattern::Computed(Box::new(node), escape),
        })
    }

    fn udf(&mut self, name: &str, span: Span, arguments: Vec<Node>) -> Compiled<Node> {
        self.udf_calls += 1;
        if self.udf_calls > UDF_CALLS_MAX {
            let message =
                format!("More than {UDF_CALLS_MAX} user-defined functions in a query are not supported.");
            return Err(SqlError::at("SC2034", message, span));
        }
        if !self.env.udfs.as_ref().is_some_and(|udfs| udfs.exists(name)) {
            let message = format!("'{name}' is not a recognized user-defined function name.");
            return Err(SqlError::at("SC2006", message, span));
        }
        Ok(Node::Udf(name.to_string(), arguments))
    }

    fn function(&self, name: &str, name_span: Span, span: Span, count: usize) -> Compiled<&'static Function> {
        if name.eq_ignore_ascii_case("FULLTEXTSCORE") {
            let message = "The FullTextScore function is only allowed in the ORDER BY RANK clause.";
            return Err(SqlError::at("SC2240", message, span));
        }
        if AggregateKind::of(name).is_some() {
            let message = format!("The aggregate function '{name}' is not allowed in this context.");
            return Err(SqlError::at("SC2103", message, span));
        }
        let Some(function) = functions::find(name) else {
            let message = format!("'{name}' is not a recognized built-in function name.");
            return Err(SqlError::at("SC2005", message, name_span));
        };
        if count < function.least || function.most.is_some_and(|most| count > most) {
            let wanted = match function.most {
                Some(most) if most == function.least => format!("{most}"),
                Some(most) => format!("{} to {most}", function.least),
                None => format!("at least {}", function.least),
            };
            let message = format!("The {} function requires {wanted} argument(s).", name.to_uppercase());
            return Err(SqlError::at("SC2050", message, span));
        }
        Ok(function)
    }

    /// VECTORDISTANCE is evaluated with three arguments: two vectors and the name of the distance. What else was said
    /// is for whoever finds the vectors, and follows as one constant.
    pub(super) fn vector_arguments(&self, mut nodes: Vec<Node>, exprs: &[Expr]) -> Compiled<Vec<Node>> {
        let mut function =
            self.vector_policy(&nodes[0]).or(self.vector_policy(&nodes[1])).unwrap_or_default();
        if let Some(Node::Constant(options)) = nodes.get(3) {
            check_vector_options(options, exprs.get(3))?;
            if let Some(name) = options.get("distanceFunction").and_then(Value::as_str)
                && let Some(named) = DistanceFunction::parse(name)
            {
                function = named;
            }
        }
        let mut wishes = match nodes.get(3) {
            Some(Node::Constant(Value::Object(options))) => options.clone(),
            _ => Vec::new(),
        };
        if let Some(Node::Constant(Value::Bool(true))) = nodes.get(2) {
            wishes.push((BRUTE_FORCE.to_owned(), Value::Bool(true)));
        }
        nodes.truncate(2);
        nodes.push(Node::Constant(Value::String(format!("{function:?}"))));
        if !wishes.is_empty() {
            nodes.push(Node::Constant(Value::Object(wishes)));
        }
        Ok(nodes)
    }

    /// The distance function the container's policy gives the path of a vector.
    pub(super) fn vector_policy(&self, node: &Node) -> Option<DistanceFunction> {
        let path = super::scope::document_path(node, &self.origins)?;
        self.env
            .vectors
            .iter()
            .find(|(policy, _)| policy.segments().iter().eq(path.iter()))
            .map(|(_, function)| *function)
    }

    /// The language in which the container's policy reads the text at a path.
    pub(super) fn text_language(&self, node: &Node) -> Language {
        let path = match self.env.languages.is_empty() {
            true => None,
            false => super::scope::document_path(node, &self.origins),
        };
        let own = path.and_then(|path| {
            self.env.languages.iter().find(|(policy, _)| policy.segments().iter().eq(path.iter()))
        });
        own.map_or(self.env.language, |(_, language)| *language)
    }

    /// Computes what does not depend on any row.
    fn fold(&self, node: Node) -> Compiled<Node> {
        let constant = |node: &Node| matches!(node, Node::Constant(_));
        let foldable = match &node {
            Node::Member(object, _) | Node::Element(object, _) | Node::Unary(_, object) => constant(object),
            Node::Binary(_, left, right) | Node::Coalesce(left, right) => constant(left) && constant(right),
            Node::Logical(_, nodes) | Node::Array(nodes) => nodes.iter().all(constant),
            Node::In { needle, list, .. } => constant(needle) && list.iter().all(constant),
            Node::Like { text, pattern, .. } => constant(text) && matches!(pattern, Pattern::Ready(_)),
            Node::Between { value, low, high, .. } => constant(value) && constant(low) && constant(high),
            Node::Conditional(condition, yes, no) => constant(condition) && constant(yes) && constant(no),
            Node::Object(members) => members.iter().all(|(_, node)| constant(node)),
            Node::Call(function, arguments) => function.deterministic && arguments.iter().all(constant),
            _ => false,
        };
        if !foldable {
            return Ok(node);
        }
        let computed = {
            let mut frame = Frame::new(ITEM_SLOT + 1, &self.context, &self.meter);
            let value = frame.eval(&node).map(|value| value.to_value());
            frame.release_all();
            value
        };
        let value = match computed {
            Ok(value) => value,
            Err(error) if error.exceeded.is_some() => return Err(*error),
            Err(_) => return Ok(node),
        };
        self.meter.take(value_bytes(&value))?;
        // Objects and arrays are printed as they are, so what JSON cannot spell must stay an expression.
        if matches!(value, Value::Array(_) | Value::Object(_)) && !is_finite(&value) {
            return Ok(node);
        }
        Ok(Node::Constant(value))
    }
}

fn is_finite(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_finite(),
        Value::Array(elements) => elements.iter().all(is_finite),
        Value::Object(members) => members.iter().all(|(_, value)| is_finite(value)),
        _ => true,
    }
}

pub(crate) fn literal_value(literal: &Literal) -> Value {
    match literal {
        Literal::Undefined => Value::Undefined,
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Integer(value) => Value::Number(Number::Int(*value)),
        Literal::Double(value) => Value::Number(Number::Double(*value)),
        Literal::String(text) => Value::String(text.clone()),
    }
}

/// Options of VECTORDISTANCE that have a range.
fn check_vector_options(options: &Value, expr: Option<&Expr>) -> Compiled<()> {
    const NAME: &str = "searchListSizeMultiplier";
    let Some(value) = options.get(NAME).and_then(Value::as_number) else { return Ok(()) };
    if value.as_i64().is_some_and(|value| (1..=100).contains(&value)) {
        return Ok(());
    }
    let span = match expr.map(|expr| &expr.kind) {
        Some(ExprKind::Object(members)) => members
            .iter()
            .find(|(name, _)| name.text == NAME)
            .map_or(Span::default(), |(name, value)| name.span.to(value.span)),
        _ => Span::default(),
    };
    let shown = value.as_i64().map_or_else(|| value.as_f64().to_string(), |value| value.to_string());
    let message = format!(
        "The '{NAME}' value {shown} specified in the VectorDistance function is outside the supported range. \
         The value must be between 1 and 100."
    );
    Err(SqlError::at("SC2213", message, span))
}
