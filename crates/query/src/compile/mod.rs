//! The compiler: syntax tree to a block of nested loops.
//!
//! Aliases become slots, parameters and constant expressions become values, function names become
//! table entries, and everything the service refuses for its meaning is refused here with its code.
//!
//! `FROM c JOIN t IN c.tags WHERE t = 'x' AND c.n > 1` becomes two loops, `c` over the item and `t` over
//! its tags, each with the conjuncts of the filter that can be decided there: `c.n > 1` before the tags
//! are walked at all.

pub(crate) mod expression;
mod group;
mod order;
mod scope;
mod validate;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use orrery_model::Value;
use orrery_sql::{
    Collection, Condition, Count, Expr, ExprKind, Literal, LogicalOp, Name, Projection, Query, Source, Span,
    SqlError,
};

use crate::aggregate::AggregateKind;
use crate::context::Context;
use crate::env::QueryEnv;
use crate::limits::JOINS_MAX;
use crate::meter::Meter;
use crate::node::{BlockSource, Grouping, Node, SelectBlock, SourceKind};
use crate::rank::Rank;

pub(crate) use group::GroupScope;
pub(crate) use order::{OrderKey, check_composite};
use scope::Scope;
pub(crate) use scope::{Origin, document_path};

pub(crate) type Compiled<T> = Result<T, SqlError>;

/// A whole query, compiled.
#[derive(Clone)]
pub(crate) struct CompiledQuery {
    pub block: SelectBlock,
    pub slot_count: usize,
    pub order: Vec<OrderKey>,
    pub rank: Option<Rank>,
    pub top: Option<u64>,
    pub offset: Option<u64>,
    pub limit: Option<u64>,
    /// Where the value of each slot comes from in the item.
    pub origins: Vec<Origin>,
    pub aggregates: Vec<AggregateKind>,
    /// Set when an aggregate stands inside another expression, which SDKs cannot merge.
    pub composed_aggregates: bool,
    /// Set when a select list holds aggregates without VALUE.
    pub listed_aggregates: bool,
    /// Set when it asks the clock, the dice or a script: its meaning is then that of one moment.
    pub changes: bool,
    /// Of a partial form: groups are handed out as they are, rows with what tells them apart, or with more values.
    pub groups_apart: bool,
    pub marked: bool,
    pub carried: Vec<Node>,
}

pub(crate) struct Compiler<'e> {
    env: &'e QueryEnv,
    context: Context,
    /// What the constants of the query take.
    pub meter: Rc<Meter>,
    parameters: HashMap<&'e str, &'e Value>,
    scope: Scope,
    origins: Vec<Origin>,
    udf_calls: usize,
    changes: bool,
    /// Set while a computed property is compiled, so that properties do not expand into each other.
    inside_computed: bool,
    composed_aggregates: bool,
}

/// Slot 0 holds the item.
pub(crate) const ITEM_SLOT: usize = 0;

impl<'e> Compiler<'e> {
    pub fn new(parameters: &'e [(String, Value)], env: &'e QueryEnv) -> Compiled<Compiler<'e>> {
        Ok(Compiler {
            env,
            context: Context::new(env),
            meter: Rc::new(env.budget.as_ref().map_or_else(Meter::default, Meter::new)),
            parameters: check_parameters(parameters)?,
            scope: Scope::default(),
            origins: vec![Origin::Path(Vec::new())],
            udf_calls: 0,
            changes: false,
            inside_computed: false,
            composed_aggregates: false,
        })
    }

    pub fn compile(mut self, query: &Query) -> Compiled<CompiledQuery> {
        validate::check(query)?;
        let (block, group) = self.query(query)?;
        let (order, rank) = self.order_by(query, group)?;
        let top = query.select.top.as_ref().map(|count| self.count(count, CountClause::Top)).transpose()?;
        let (mut offset, mut limit) = (None, None);
        if let Some(clause) = &query.offset_limit {
            offset = Some(self.count(&clause.offset, CountClause::Offset)?);
            limit = Some(self.count(&clause.limit, CountClause::Limit)?);
        }
        let aggregates = match &block.grouping {
            Some(grouping) => grouping.aggregates.iter().map(|(kind, ..)| *kind).collect(),
            None => Vec::new(),
        };
        Ok(CompiledQuery {
            listed_aggregates: !aggregates.is_empty() && !block.value,
            block,
            slot_count: self.origins.len(),
            order,
            rank,
            top,
            offset,
            limit,
            origins: self.origins,
            aggregates,
            // Without FROM there is nothing to merge, and the service computes such queries.
            composed_aggregates: self.composed_aggregates && !query.from.is_empty(),
            changes: self.changes || self.udf_calls > 0,
            groups_apart: false,
            marked: false,
            carried: Vec::new(),
        })
    }

    pub fn compile_condition(mut self, condition: &Condition) -> Compiled<CompiledQuery> {
        let alias = condition.alias.as_ref().map_or("c", |alias| alias.text.as_str());
        let slot = self.new_slot(Origin::Path(Vec::new()));
        self.scope.bind(alias, slot);
        let filter = self.expression(&condition.filter, &mut None)?;
        let source =
            BlockSource { slot, kind: SourceKind::Value(Node::Slot(ITEM_SLOT)), filters: vec![filter] };
        let block = SelectBlock {
            sources: vec![source],
            guards: Vec::new(),
            distinct: false,
            grouping: None,
            projection: Node::Constant(Value::Bool(true)),
            value: true,
        };
        Ok(CompiledQuery {
            block,
            slot_count: self.origins.len(),
            order: Vec::new(),
            rank: None,
            top: None,
            offset: None,
            limit: None,
            origins: self.origins,
            aggregates: Vec::new(),
            composed_aggregates: false,
            listed_aggregates: false,
            changes: true,
            groups_apart: false,
            marked: false,
            carried: Vec::new(),
        })
    }

    fn new_slot(&mut self, origin: Origin) -> usize {
        self.origins.push(origin);
        self.origins.len() - 1
    }

    /// Compiles one query or subquery. The aliases it binds stay in scope for ORDER BY; the caller of a
    /// subquery takes them out again.
    fn query(&mut self, query: &Query) -> Compiled<(SelectBlock, Option<GroupScope>)> {
        let mut sources = self.sources(&query.from)?;
        let mut guards = Vec::new();
        if let Some(filter) = &query.filter {
            let filter = self.expression(filter, &mut None)?;
            place_conjuncts(filter, &mut sources, &mut guards);
            sources.iter_mut().for_each(|source| cheapest_first(&mut source.filters));
        }
        let mut group = self.group_scope(query)?;
        let star = sources.first().map(|source| source.slot);
        let (projection, value) = self.projection(query, star, &mut group)?;
        let grouping = group.as_ref().map(|group| Grouping {
            keys: group.keys.iter().map(|key| (key.node.clone(), key.slot)).collect(),
            aggregates: group.aggregates.clone(),
        });
        let block =
            SelectBlock { sources, guards, distinct: query.select.distinct, grouping, projection, value };
        Ok((block, group))
    }

    fn subquery(&mut self, query: &Query) -> Compiled<SelectBlock> {
        let mark = self.scope.mark();
        let composed = self.composed_aggregates;
        let block = self.query(query).map(|(block, _)| block);
        self.scope.release(mark);
        // Inside a subquery aggregates compose freely.
        self.composed_aggregates = composed;
        block
    }

    fn sources(&mut self, from: &[Source]) -> Compiled<Vec<BlockSource>> {
        if from.len() > JOINS_MAX + 1 {
            let message = format!("More than {JOINS_MAX} JOIN operators in a query are not supported.");
            return Err(SqlError::at("SC2033", message, from[JOINS_MAX + 1].span));
        }
        let mark = self.scope.mark();
        let mut sources = Vec::with_capacity(from.len());
        for source in from {
            sources.push(self.source(source, mark)?);
        }
        Ok(sources)
    }

    fn source(&mut self, source: &Source, mark: usize) -> Compiled<BlockSource> {
        let (kind, origin) = match &source.collection {
            Collection::Subquery(query) => {
                let block = Box::new(self.subquery(query)?);
                if source.iterate {
                    (SourceKind::RowElements(block), Origin::Elements)
                } else {
                    let origin = match block.grouping {
                        None => Origin::Projection(Box::new(block.projection.clone())),
                        Some(_) => Origin::Computed,
                    };
                    (SourceKind::Rows(block), origin)
                }
            }
            Collection::Path(expr) => {
                let node = self.source_path(expr)?;
                if source.iterate {
                    (SourceKind::Elements(node), Origin::Elements)
                } else {
                    let origin = Origin::Projection(Box::new(node.clone()));
                    (SourceKind::Value(node), origin)
                }
            }
            Collection::Computed(expr) => {
                let node = self.expression(expr, &mut None)?;
                if source.iterate {
                    (SourceKind::Elements(node), Origin::Elements)
                } else {
                    (SourceKind::Value(node), Origin::Computed)
                }
            }
        };
        let slot = self.new_slot(origin);
        if let Some((alias, span)) = source_alias(source) {
            if self.scope.bound_since(mark, alias) {
                let message =
                    format!("The input alias '{alias}' is specified more than once in the FROM clause.");
                return Err(SqlError::at("SC2011", message, span));
            }
            self.scope.bind(alias, slot);
        }
        Ok(BlockSource { slot, kind, filters: Vec::new() })
    }

    /// The path of a source. Its first name is an alias, or else the container itself, whatever it is
    /// called, as long as no alias is bound yet.
    fn source_path(&mut self, expr: &Expr) -> Compiled<Node> {
        if let ExprKind::Identifier(name) = &expr.kind {
            return match self.scope.find(name) {
                Some(slot) => Ok(Node::Slot(slot)),
                None if self.scope.is_empty() || name.eq_ignore_ascii_case("ROOT") => {
                    Ok(Node::Slot(ITEM_SLOT))
                }
                None => Err(unresolved(name, expr.span)),
            };
        }
        match &expr.kind {
            ExprKind::Member(object, name) => {
                let object = self.source_path(object)?;
                self.member(object, name)
            }
            ExprKind::Index(object, index) => {
                let object = self.source_path(object)?;
                let index = self.expression(index, &mut None)?;
                self.indexed(object, index, expr.span)
            }
            _ => self.expression(expr, &mut None),
        }
    }

    fn projection(
        &mut self,
        query: &Query,
        star: Option<usize>,
        group: &mut Option<GroupScope>,
    ) -> Compiled<(Node, bool)> {
        match &query.select.projection {
            Projection::Star(span) => {
                let Some(slot) = star else {
                    return Err(SqlError::whole("", "'SELECT *' is not valid if FROM clause is omitted."));
                };
                if query.from.len() > 1 {
                    return Err(SqlError::whole("", "'SELECT *' is only valid with a single input set."));
                }
                if !query.group_by.is_empty() {
                    let message = "'SELECT *' is not allowed with GROUP BY.";
                    return Err(SqlError::at("SC2041", message, *span));
                }
                Ok((Node::Slot(slot), true))
            }
            Projection::Value(expr, _) => Ok((self.selected(expr, group)?, true)),
            Projection::List(items) => {
                let mut members: Vec<(String, Node)> = Vec::with_capacity(items.len());
                let mut names = HashSet::with_capacity(items.len());
                let mut unnamed = 0;
                for item in items {
                    let (name, span) = match item_name(&item.expr, item.alias.as_ref()) {
                        Some(name) => name,
                        None => {
                            unnamed += 1;
                            (format!("${unnamed}"), item.expr.span)
                        }
                    };
                    if !names.insert(name.clone()) {
                        return Err(duplicate_name(&name, span));
                    }
                    let node = self.selected(&item.expr, group)?;
                    members.push((name, node));
                }
                Ok((Node::Object(members), false))
            }
        }
    }

    fn count(&self, count: &Count, clause: CountClause) -> Compiled<u64> {
        let value = match count {
            Count::Literal(value, _) => *value,
            Count::Parameter(name) => match self.parameters.get(name.text.as_str()) {
                Some(Value::Number(number)) => number.as_i64().and_then(|value| u64::try_from(value).ok()),
                _ => None,
            },
        };
        value.filter(|value| *value < 1 << 32).ok_or_else(|| clause.error(count.span()))
    }
}

#[derive(Clone, Copy)]
enum CountClause {
    Top,
    Offset,
    Limit,
}

impl CountClause {
    fn error(self, span: Span) -> SqlError {
        let (code, message) = match self {
            CountClause::Top => ("SC2060", "The count value provided for a TOP clause must be an integer."),
            CountClause::Offset => ("SC2062", "The OFFSET count value exceeds the maximum allowed value."),
            CountClause::Limit => ("SC2061", "The LIMIT count value exceeds the maximum allowed value."),
        };
        SqlError::at(code, message, span)
    }
}

pub(crate) fn unresolved(name: &str, span: Span) -> SqlError {
    SqlError::at("SC2001", format!("Identifier '{name}' could not be resolved."), span)
}

pub(crate) fn duplicate_name(name: &str, span: Span) -> SqlError {
    let message = format!("Object creation error, property name '{name}' specified more than once.");
    SqlError::at("SC2022", message, span)
}

fn check_parameters(parameters: &[(String, Value)]) -> Compiled<HashMap<&str, &Value>> {
    let mut checked = HashMap::with_capacity(parameters.len());
    for (name, value) in parameters {
        let valid = name.strip_prefix('@').is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        });
        if !valid {
            let message = format!(
                "Invalid query. Specified parameter name '{name}' is invalid. Parameter names should be in \
                 the format of symbol '@' followed by a valid identifier. E.g. @param1"
            );
            return Err(SqlError::whole("", message));
        }
        if checked.insert(name.as_str(), value).is_some() {
            let message = format!("Invalid query. Specified duplicate parameter name '{name}'.");
            return Err(SqlError::whole("", message));
        }
    }
    Ok(checked)
}

/// The name a source is known by: its alias, or the last name of its path.
pub(crate) fn source_alias(source: &Source) -> Option<(&str, Span)> {
    if let Some(alias) = &source.alias {
        return Some((&alias.text, alias.span));
    }
    match &source.collection {
        Collection::Path(expr) => last_name(expr).map(|name| (name, expr.span)),
        _ => None,
    }
}

fn last_name(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Identifier(name) | ExprKind::Member(_, name) => Some(name),
        ExprKind::Index(_, index) => match &index.kind {
            ExprKind::Literal(Literal::String(name)) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// The name of a select item, unless it gets a number.
pub(crate) fn item_name(expr: &Expr, alias: Option<&Name>) -> Option<(String, Span)> {
    match alias {
        Some(alias) => Some((alias.text.clone(), alias.span)),
        None => last_name(expr).map(|name| (name.to_string(), expr.span)),
    }
}

/// Puts conjuncts that call functions, which may read whole strings, behind those that only compare. All of them must
/// be true, in whatever order; those that can fail (scripts, subqueries) keep the order they were written in.
fn cheapest_first(conjuncts: &mut [Node]) {
    let calls = |node: &Node| {
        let mut calls = false;
        node.for_each_node(&mut |node| calls |= matches!(node, Node::Call(..) | Node::Like { .. }));
        calls
    };
    let can_fail = |conjunct: &Node| {
        let mut can_fail = false;
        conjunct.for_each_node(&mut |node| can_fail |= matches!(node, Node::Udf(..) | Node::Subquery(..)));
        can_fail
    };
    if conjuncts.len() > 1 && !conjuncts.iter().any(can_fail) {
        conjuncts.sort_by_key(calls);
    }
}

/// Puts each conjunct of a filter at the first loop where all it reads is known.
fn place_conjuncts(filter: Node, sources: &mut [BlockSource], guards: &mut Vec<Node>) {
    if let Node::Logical(LogicalOp::And, operands) = filter {
        operands.into_iter().for_each(|operand| place_conjuncts(operand, sources, guards));
        return;
    }
    // Clients that merge sorted partitions send `(the filter) AND (true)` for the first page.
    if matches!(filter, Node::Constant(Value::Bool(true))) {
        return;
    }
    let mut level = None;
    filter.for_each_slot(&mut |slot| {
        let found = sources.iter().position(|source| source.slot == slot);
        level = level.max(found);
    });
    match level {
        Some(level) => sources[level].filters.push(filter),
        None => guards.push(filter),
    }
}
