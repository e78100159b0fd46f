//! The evaluator: computes expressions and runs the loops of a plan for one item.
//!
//! A [`Frame`] holds the slots while a row is evaluated. Everything is borrowed from the item and the
//! compiled query; errors are rare (a scalar subquery with two rows, a failing script, a limit), so
//! most functions only pass them through.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::rc::Rc;

use orrery_model::Value;
use orrery_sql::{LogicalOp, SqlError, SubqueryKind};
use smallvec::{SmallVec, smallvec};

use crate::aggregate::Accumulator;
use crate::compare::{canonical, canonical_key};
use crate::context::{Caller, Context};
use crate::direct::{Direct, Input};
use crate::like::{LOOK_EVERY, LikePattern};
use crate::limits::{ITEM_STEPS_MAX, ROW_OVERHEAD_BYTES};
use crate::meter::Meter;
use crate::node::{BlockSource, Grouping, Node, Pattern, SelectBlock, SourceKind, text_of};
use crate::operators::{between, binary, equality, unary};
use crate::row::RowView;
use crate::value::{Eval, value_bytes};

/// Most queries have the item, one source and a few keys and aggregates; those need no allocation per item.
pub(crate) type Slots<'a> = SmallVec<[Eval<'a>; 8]>;

pub(crate) struct Frame<'a> {
    pub slots: Slots<'a>,
    pub context: &'a Context,
    pub meter: Rc<Meter>,
    /// What the values of the current combination of sources take.
    transient: usize,
    steps: u64,
}

/// Whether whoever takes rows wants another one.
pub(crate) type Step = Evaluated<ControlFlow<()>>;

/// Errors are boxed while evaluating, to keep what is returned for every operand small.
pub(crate) type Evaluated<T> = Result<T, Box<SqlError>>;

/// Comparisons of constants, and bytes that are read, that are worth a step of a loop.
const CHEAP_PER_STEP: u64 = 8;
const CHEAP_BYTES_PER_STEP: usize = 512;

/// Arguments of a call that are not worth counting.
const ARGUMENTS_FEW: usize = 8;

const GO_ON: Step = Ok(ControlFlow::Continue(()));

impl<'a> Frame<'a> {
    pub fn new(slots: usize, context: &'a Context, meter: &Rc<Meter>) -> Frame<'a> {
        let meter = Rc::clone(meter);
        Frame { slots: smallvec![Eval::Undefined; slots], context, meter, transient: 0, steps: 0 }
    }

    fn step(&mut self) -> Evaluated<()> {
        self.steps += 1;
        if self.steps > ITEM_STEPS_MAX {
            let message = format!("The query takes more than {ITEM_STEPS_MAX} steps for a single item.");
            return Err(Box::new(SqlError::whole("", message)));
        }
        self.count(1)
    }

    /// Counts work that is no step of a loop over sources.
    #[inline]
    fn count(&self, steps: u64) -> Evaluated<()> {
        Ok(self.meter.step(steps).map_err(SqlError::from)?)
    }

    /// Charges a value until the current combination of sources is done with.
    #[inline]
    fn charge(&mut self, bytes: usize) -> Evaluated<()> {
        self.meter.take(bytes).map_err(SqlError::from)?;
        self.transient += bytes;
        Ok(())
    }

    /// Gives back what was charged since `transient` was this.
    #[inline]
    fn release(&mut self, mark: usize) {
        self.meter.give_back(self.transient.saturating_sub(mark));
        self.transient = mark;
    }

    /// Gives back everything: the values of an item are gone.
    pub fn release_all(&mut self) {
        self.release(0);
    }

    pub fn eval(&mut self, node: &'a Node) -> Evaluated<Eval<'a>> {
        Ok(match node {
            Node::Constant(value) => Eval::from_constant(value),
            Node::Slot(slot) => self.slots[*slot].clone(),
            Node::Member(object, name) => match &**object {
                // The common case, without cloning what the slot holds.
                Node::Slot(slot) => self.slots[*slot].member(name),
                object => self.eval(object)?.member(name),
            },
            Node::Element(array, index) => self.eval(array)?.element(*index),
            Node::Unary(op, operand) => unary(*op, &self.eval(operand)?),
            Node::Binary(op, left, right) => {
                let left = self.eval(left)?;
                let right = self.eval(right)?;
                let value = binary(*op, &left, &right);
                if let Eval::String(Cow::Owned(text)) = &value {
                    self.charge(text.len())?;
                }
                value
            }
            Node::Logical(op, operands) => Eval::truth(self.logical(*op, operands)?),
            Node::In { needle, list, negated, sorted } => {
                let found =
                    if *sorted { self.sorted_in(needle, list)? } else { self.contained(needle, list)? };
                Eval::truth(found.map(|found| found != *negated))
            }
            Node::Like { text, pattern, negated } => {
                let text = self.eval(text)?;
                let matched = self.like(&text, pattern)?;
                Eval::truth(matched.map(|matched| matched != *negated))
            }
            Node::Between { value, low, high, negated } => {
                let value = self.eval(value)?;
                let low = self.eval(low)?;
                let high = self.eval(high)?;
                Eval::truth(between(&value, &low, &high).map(|inside| inside != *negated))
            }
            Node::Conditional(condition, yes, no) => {
                let chosen = if self.eval(condition)?.is_true() { yes } else { no };
                self.eval(chosen)?
            }
            Node::Coalesce(left, right) => match self.eval(left)? {
                Eval::Undefined => self.eval(right)?,
                defined => defined,
            },
            Node::Array(nodes) => {
                let mut elements = Vec::with_capacity(nodes.len());
                for node in nodes {
                    let element = self.eval(node)?;
                    if !element.is_undefined() {
                        self.charge(size_of::<Eval<'_>>() + element.own_bytes())?;
                        elements.push(element);
                    }
                }
                self.count(nodes.len() as u64 / CHEAP_PER_STEP)?;
                Eval::array(elements)
            }
            Node::Object(nodes) => {
                let mut members = Vec::with_capacity(nodes.len());
                for (name, node) in nodes {
                    let value = self.eval(node)?;
                    if !value.is_undefined() {
                        self.charge(size_of::<(Cow<'_, str>, Eval<'_>)>() + value.own_bytes())?;
                        members.push((Cow::Borrowed(name.as_str()), value));
                    }
                }
                self.count(nodes.len() as u64 / CHEAP_PER_STEP)?;
                Eval::object(members)
            }
            Node::Call(function, arguments) => {
                let mut values: SmallVec<[Eval<'a>; 3]> = SmallVec::with_capacity(arguments.len());
                for argument in arguments {
                    let value = self.eval(argument)?;
                    if value.is_undefined() && !function.takes_undefined {
                        return Ok(Eval::Undefined);
                    }
                    let own = value.own_bytes();
                    if own > 0 {
                        self.charge(own)?;
                    }
                    values.push(value);
                }
                // Reading a long string or array is work too.
                let read: usize = values.iter().map(Eval::extent).sum();
                self.count((read / CHEAP_BYTES_PER_STEP) as u64)?;
                if values.len() > ARGUMENTS_FEW {
                    // Each of many values may be looked for in the whole of the first.
                    let looked_at =
                        (values.len() as u64).saturating_mul(values[0].len() as u64) / CHEAP_PER_STEP;
                    self.steps = self.steps.saturating_add(looked_at);
                    self.step()?;
                }
                let value = (function.call)(&Caller::new(self.context, &self.meter), &values);
                self.meter.refused()?;
                let built = value.built_bytes();
                if built > 0 {
                    self.charge(built)?;
                }
                value
            }
            Node::Udf(name, arguments) => self.udf(name, arguments)?,
            Node::Subquery(kind, block) => self.subquery(*kind, block)?,
        })
    }

    fn logical(&mut self, op: LogicalOp, operands: &'a [Node]) -> Evaluated<Option<bool>> {
        // False decides an AND, true an OR; anything that is no boolean leaves it undefined.
        let deciding = op == LogicalOp::Or;
        let mut known = true;
        if operands.len() as u64 > CHEAP_PER_STEP {
            self.count(operands.len() as u64 / CHEAP_PER_STEP)?;
        }
        for operand in operands {
            match self.eval(operand)?.as_bool() {
                Some(value) if value == deciding => return Ok(Some(deciding)),
                Some(_) => {}
                None => known = false,
            }
        }
        Ok(known.then_some(!deciding))
    }

    fn contained(&mut self, needle: &'a Node, list: &'a [Node]) -> Evaluated<Option<bool>> {
        let needle = self.eval(needle)?;
        if needle.is_undefined() {
            return Ok(None);
        }
        if list.len() as u64 > CHEAP_PER_STEP {
            self.count(list.len() as u64 / CHEAP_PER_STEP)?;
        }
        for candidate in list {
            let candidate = self.eval(candidate)?;
            if equality(&needle, &candidate) == Some(true) {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// The same in a list of constant strings that is in order.
    fn sorted_in(&mut self, needle: &'a Node, list: &'a [Node]) -> Evaluated<Option<bool>> {
        let needle = self.eval(needle)?;
        Ok(match needle.as_str() {
            Some(text) => Some(list.binary_search_by(|node| text_of(node).cmp(&Some(text))).is_ok()),
            None if needle.is_undefined() => None,
            None => Some(false),
        })
    }

    fn like(&mut self, text: &Eval<'a>, pattern: &'a Pattern) -> Evaluated<Option<bool>> {
        let Some(text) = text.as_str() else { return Ok(None) };
        self.count((text.len() / CHEAP_BYTES_PER_STEP) as u64)?;
        let computed;
        let pattern = match pattern {
            Pattern::Ready(pattern) => pattern,
            Pattern::Computed(node, escape) => {
                let Some(pattern) = self.eval(node)?.as_str().map(|text| LikePattern::new(text, *escape))
                else {
                    return Ok(None);
                };
                computed = pattern;
                &computed
            }
        };
        let mut exceeded = None;
        let steps = LOOK_EVERY / CHEAP_BYTES_PER_STEP as u64;
        let matched = pattern.matches_while(text, &mut || {
            exceeded = self.meter.step(steps).err();
            exceeded.is_none()
        });
        match exceeded {
            Some(exceeded) => Err(Box::new(SqlError::from(exceeded))),
            None => Ok(matched),
        }
    }

    fn udf(&mut self, name: &str, arguments: &'a [Node]) -> Evaluated<Eval<'a>> {
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.eval(argument)?.to_value());
        }
        match &self.context.udfs {
            Some(udfs) => {
                let value = udfs.call(name, &values)?;
                self.charge(value_bytes(&value))?;
                Ok(Eval::from_owned(value))
            }
            None => Ok(Eval::Undefined),
        }
    }

    fn subquery(&mut self, kind: SubqueryKind, block: &'a SelectBlock) -> Evaluated<Eval<'a>> {
        let mut rows: Vec<Eval<'a>> = Vec::new();
        let mut all_true = true;
        // Rows outlive the combination of sources that they come from.
        let mut kept = 0;
        let _ = self.rows(block, &mut |frame, row| {
            frame.step()?;
            match kind {
                SubqueryKind::Last => {
                    rows.clear();
                    frame.meter.give_back(std::mem::take(&mut kept));
                }
                SubqueryKind::All => all_true &= row.is_true(),
                SubqueryKind::Scalar if !rows.is_empty() => {
                    let message =
                        "The cardinality of a scalar subquery result set cannot be greater than one.";
                    return Err(Box::new(SqlError::whole("", message)));
                }
                _ => {}
            }
            if !matches!(kind, SubqueryKind::Exists | SubqueryKind::All) {
                let bytes = frame.size_of_row(&row)?;
                frame.meter.take(bytes).map_err(SqlError::from)?;
                kept += bytes;
                rows.push(row);
            } else if rows.is_empty() {
                rows.push(Eval::Null);
            }
            let enough = matches!(kind, SubqueryKind::Exists | SubqueryKind::First) || !all_true;
            Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        self.transient += kept;
        Ok(match kind {
            SubqueryKind::Exists => Eval::Bool(!rows.is_empty()),
            SubqueryKind::All => Eval::Bool(all_true),
            SubqueryKind::Array => Eval::array(rows),
            SubqueryKind::Scalar | SubqueryKind::First | SubqueryKind::Last => {
                rows.pop().unwrap_or(Eval::Undefined)
            }
        })
    }

    /// What a row takes that is kept, with everything it holds.
    fn size_of_row(&self, row: &Eval<'a>) -> Evaluated<usize> {
        let mut parts = 0;
        let bytes = row.held_bytes(&mut parts);
        self.count(parts / CHEAP_PER_STEP)?;
        Ok(size_of::<Eval<'_>>() + bytes)
    }

    // ---- plans

    /// Runs a block to its rows: projection, grouping and DISTINCT included.
    pub fn rows(
        &mut self,
        block: &'a SelectBlock,
        take: &mut dyn FnMut(&mut Frame<'a>, Eval<'a>) -> Step,
    ) -> Step {
        let mut seen = HashSet::new();
        let mut held = 0;
        let mut emit = |frame: &mut Frame<'a>| {
            let row = frame.eval(&block.projection)?;
            if block.value && row.is_undefined() {
                return GO_ON;
            }
            if block.distinct {
                let bytes = frame.size_of_row(&row)?;
                frame.meter.take(bytes + ROW_OVERHEAD_BYTES).map_err(SqlError::from)?;
                if seen.insert(canonical_key(&row)) {
                    held += bytes + ROW_OVERHEAD_BYTES;
                } else {
                    frame.meter.give_back(bytes + ROW_OVERHEAD_BYTES);
                    return GO_ON;
                }
            }
            take(frame, row)
        };
        let Some(grouping) = &block.grouping else {
            let step = self.bindings(block, &mut emit);
            self.meter.give_back(held);
            return step;
        };
        let mut groups = Groups::new(grouping);
        let mut number = 0;
        let _ = self.bindings(block, &mut |frame| {
            number += 1;
            groups.add(grouping, number, frame)?;
            GO_ON
        })?;
        let of_groups = groups.held;
        let mut step = GO_ON;
        for (_, keys, results) in groups.into_results() {
            bind_group(grouping, self, keys, results);
            if emit(self)?.is_break() {
                step = Ok(ControlFlow::Break(()));
                break;
            }
        }
        self.meter.give_back(of_groups + held);
        step
    }

    /// Calls `each` once for every combination of source values that passes the filter.
    pub fn bindings(&mut self, block: &'a SelectBlock, each: &mut dyn FnMut(&mut Frame<'a>) -> Step) -> Step {
        if !self.all_true(&block.guards)? {
            return GO_ON;
        }
        self.bind(&block.sources, each)
    }

    fn all_true(&mut self, filters: &'a [Node]) -> Evaluated<bool> {
        for filter in filters {
            if !self.eval(filter)?.is_true() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn bind(&mut self, sources: &'a [BlockSource], each: &mut dyn FnMut(&mut Frame<'a>) -> Step) -> Step {
        let Some((source, rest)) = sources.split_first() else { return each(self) };
        match &source.kind {
            SourceKind::Value(node) => {
                let value = self.eval(node)?;
                if value.is_undefined() { GO_ON } else { self.bind_one(source, value, rest, each) }
            }
            SourceKind::Elements(node) => {
                let value = self.eval(node)?;
                self.bind_elements(source, &value, rest, each)
            }
            SourceKind::Rows(block) => {
                self.rows(block, &mut |frame, row| frame.bind_one(source, row, rest, each))
            }
            SourceKind::RowElements(block) => {
                self.rows(block, &mut |frame, row| frame.bind_elements(source, &row, rest, each))
            }
        }
    }

    fn bind_elements(
        &mut self,
        source: &'a BlockSource,
        value: &Eval<'a>,
        rest: &'a [BlockSource],
        each: &mut dyn FnMut(&mut Frame<'a>) -> Step,
    ) -> Step {
        for element in value.elements().into_iter().flatten() {
            if self.bind_one(source, element, rest, each)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        GO_ON
    }

    fn bind_one(
        &mut self,
        source: &'a BlockSource,
        value: Eval<'a>,
        rest: &'a [BlockSource],
        each: &mut dyn FnMut(&mut Frame<'a>) -> Step,
    ) -> Step {
        self.step()?;
        let mark = self.transient;
        self.slots[source.slot] = value;
        let step = if self.all_true(&source.filters)? { self.bind(rest, each) } else { GO_ON };
        self.release(mark);
        step
    }
}

/// Groups under construction.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    index: HashMap<Vec<u8>, usize>,
    groups: Vec<Group>,
    scratch: Vec<u8>,
    /// What all of it was charged with.
    held: usize,
}

#[derive(Debug)]
struct Group {
    /// The lowest number of a row in it: groups come out in the order in which they would have appeared.
    first: u64,
    keys: Vec<Value>,
    accumulators: Vec<Accumulator>,
}

impl Groups {
    pub fn new(grouping: &Grouping) -> Groups {
        let mut groups = Groups::default();
        if grouping.keys.is_empty() {
            // Aggregates without GROUP BY have one group, even of no rows.
            groups.groups.push(Group { first: 0, keys: Vec::new(), accumulators: fresh(grouping) });
        }
        groups
    }

    /// Adds the row that the frame holds; `number` says when it would have come.
    pub fn add<'a>(&mut self, grouping: &'a Grouping, number: u64, frame: &mut Frame<'a>) -> Evaluated<()> {
        let at = self.find(grouping, number, frame)?;
        let group = &mut self.groups[at];
        group.first = group.first.min(number);
        for ((_, node, _), accumulator) in grouping.aggregates.iter().zip(&mut group.accumulators) {
            let value = frame.eval(node)?;
            self.held += accumulator.add(&value, &frame.meter)?;
        }
        Ok(())
    }

    /// Adds an item by the values of its paths alone.
    pub fn add_direct(
        &mut self,
        grouping: &Grouping,
        direct: &Direct,
        number: u64,
        row: &RowView<'_>,
        meter: &Meter,
    ) -> Evaluated<()> {
        let found = direct.read(row);
        let at = if direct.keys.is_empty() {
            0
        } else {
            self.scratch.clear();
            direct.keys.iter().for_each(|path| canonical(&found[*path], &mut self.scratch));
            match self.index.get(&self.scratch) {
                Some(at) => *at,
                None => {
                    let keys = direct.keys.iter().map(|path| found[*path].to_value()).collect();
                    self.begin(grouping, number, keys, meter)?
                }
            }
        };
        let group = &mut self.groups[at];
        group.first = group.first.min(number);
        for (input, accumulator) in direct.inputs.iter().zip(&mut group.accumulators) {
            match input {
                Input::Path(path) => self.held += accumulator.add(&found[*path], meter)?,
                Input::Constant(value) => {
                    self.held += accumulator.add(&Eval::from_constant(value), meter)?;
                }
            }
        }
        Ok(())
    }

    /// The group of a row by the values of its keys, which there are.
    pub fn group_of(
        &mut self,
        grouping: &Grouping,
        number: u64,
        keys: &[Eval<'_>],
        meter: &Meter,
    ) -> Evaluated<usize> {
        self.scratch.clear();
        keys.iter().for_each(|key| canonical(key, &mut self.scratch));
        match self.index.get(&self.scratch) {
            Some(at) => Ok(*at),
            None => self.begin(grouping, number, keys.iter().map(Eval::to_value).collect(), meter),
        }
    }

    /// Takes note of the number of a row in a group.
    #[inline]
    pub fn saw(&mut self, group: usize, number: u64) {
        let group = &mut self.groups[group];
        group.first = group.first.min(number);
    }

    #[inline]
    pub fn accumulator(&mut self, group: usize, at: usize) -> &mut Accumulator {
        &mut self.groups[group].accumulators[at]
    }

    /// A new group, under the key in `scratch`.
    fn begin(
        &mut self,
        grouping: &Grouping,
        number: u64,
        keys: Vec<Value>,
        meter: &Meter,
    ) -> Evaluated<usize> {
        let bytes = 2 * self.scratch.len() + 64 * grouping.aggregates.len() + ROW_OVERHEAD_BYTES;
        meter.take(bytes).map_err(SqlError::from)?;
        self.held += bytes;
        self.groups.push(Group { first: number, keys, accumulators: fresh(grouping) });
        self.index.insert(self.scratch.clone(), self.groups.len() - 1);
        Ok(self.groups.len() - 1)
    }

    /// Counts rows that nobody looked at in the one group of a query that only counts.
    pub fn count(&mut self, rows: u64) {
        for accumulator in self.groups.iter_mut().flat_map(|group| &mut group.accumulators) {
            accumulator.count(rows);
        }
    }

    /// Sets the counts and sums of the one group.
    pub fn set_totals(&mut self, totals: &[u64]) {
        let accumulators = self.groups.iter_mut().flat_map(|group| &mut group.accumulators);
        for (accumulator, total) in accumulators.zip(totals) {
            accumulator.set_total(*total);
        }
    }

    fn find<'a>(&mut self, grouping: &'a Grouping, number: u64, frame: &mut Frame<'a>) -> Evaluated<usize> {
        // Without keys there is the one group, and nothing to look up.
        if grouping.keys.is_empty() {
            return Ok(0);
        }
        self.scratch.clear();
        for (node, _) in &grouping.keys {
            canonical(&frame.eval(node)?, &mut self.scratch);
        }
        if let Some(at) = self.index.get(&self.scratch) {
            return Ok(*at);
        }
        let mut keys = Vec::with_capacity(grouping.keys.len());
        for (node, _) in &grouping.keys {
            keys.push(frame.eval(node)?.to_value());
        }
        self.begin(grouping, number, keys, &frame.meter)
    }

    /// The groups as they are, in the order of the first row in each.
    pub fn into_parts(self) -> Vec<GroupPart> {
        let Groups { index, groups, .. } = self;
        let part =
            |Group { first, keys, accumulators }| (first, GroupPart { key: Vec::new(), keys, accumulators });
        let mut parts: Vec<(u64, GroupPart)> = groups.into_iter().map(part).collect();
        for (key, at) in index {
            parts[at].1.key = key;
        }
        parts.sort_by_key(|(first, _)| *first);
        parts.into_iter().map(|(_, part)| part).collect()
    }

    /// Adds a part of a group. Groups come out in the order in which they were first added.
    pub fn absorb(&mut self, part: GroupPart, meter: &Meter) -> Result<(), SqlError> {
        let GroupPart { key, keys, accumulators } = part;
        let known = if keys.is_empty() { Some(0) } else { self.index.get(&key).copied() };
        if let Some(group) = known.and_then(|at| self.groups.get_mut(at)) {
            for (into, from) in group.accumulators.iter_mut().zip(accumulators) {
                self.held += into.absorb(from, meter)?;
            }
            return Ok(());
        }
        let bytes = part_bytes(&key, &keys, &accumulators);
        meter.take(bytes)?;
        self.held += bytes;
        let first = self.groups.len();
        self.index.insert(key, first);
        self.groups.push(Group { first: first as u64, keys, accumulators });
        Ok(())
    }

    /// First number, keys and aggregate results of each group, in the order of the first.
    pub fn into_results(mut self) -> impl Iterator<Item = (u64, Vec<Value>, Vec<Value>)> {
        self.groups.sort_by_key(|group| group.first);
        self.groups.into_iter().map(|group| {
            let results = group.accumulators.into_iter().map(Accumulator::result).collect();
            (group.first, group.keys, results)
        })
    }
}

/// What one share of a query has found out about one group: its keys, and how far its aggregates have come.
#[derive(Debug)]
pub struct GroupPart {
    /// Equal for equal groups.
    pub(crate) key: Vec<u8>,
    pub(crate) keys: Vec<Value>,
    pub(crate) accumulators: Vec<Accumulator>,
}

impl GroupPart {
    /// The memory that it takes.
    pub fn size_bytes(&self) -> usize {
        part_bytes(&self.key, &self.keys, &self.accumulators)
    }
}

fn part_bytes(key: &[u8], keys: &[Value], accumulators: &[Accumulator]) -> usize {
    let keys: usize = keys.iter().map(|key| size_of::<Value>() + value_bytes(key)).sum();
    let states: usize = accumulators.iter().map(Accumulator::size_bytes).sum();
    key.len() + keys + states + ROW_OVERHEAD_BYTES
}

fn fresh(grouping: &Grouping) -> Vec<Accumulator> {
    grouping.aggregates.iter().map(|(kind, ..)| Accumulator::new(*kind)).collect()
}

/// Puts a finished group where the projection looks for it.
pub(crate) fn bind_group(grouping: &Grouping, frame: &mut Frame<'_>, keys: Vec<Value>, results: Vec<Value>) {
    for ((_, slot), value) in grouping.keys.iter().zip(keys) {
        frame.slots[*slot] = Eval::from_owned(value);
    }
    for ((.., slot), value) in grouping.aggregates.iter().zip(results) {
        frame.slots[*slot] = Eval::from_owned(value);
    }
}
