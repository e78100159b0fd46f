//! Queries that the entries of one place answer, without any item.
//!
//! `SELECT VALUE SUM(c.n) FROM c WHERE c.n > 5` reads nothing but `/n`, so the values of its entries are enough. The
//! query is rewritten to read the value from the slot of the item, and the entries' values are pushed instead of
//! items. Items in which the place is undefined have no entry; only queries to which such items add nothing are
//! covered.

use std::rc::Rc;

use orrery_sql::SqlError;

use super::Place;
use super::place::Places;
use crate::aggregate::AggregateKind;
use crate::compile::{CompiledQuery, ITEM_SLOT};
use crate::eval::Frame;
use crate::node::{Node, SourceKind};
use crate::prepared::Prepared;
use crate::value::Eval;

/// A query over the values of one place.
pub struct Cover {
    pub place: Place,
    pub prepared: Prepared,
}

impl Cover {
    /// Whether the query asks for nothing but the lowest and the highest value.
    pub fn is_extreme(&self) -> bool {
        let extreme = |(kind, argument, _): &(AggregateKind, Node, usize)| {
            matches!(kind, AggregateKind::Min | AggregateKind::Max)
                && matches!(argument, Node::Slot(ITEM_SLOT))
        };
        self.prepared.compiled.block.grouping.as_ref().is_some_and(|grouping| {
            grouping.keys.is_empty()
                && !grouping.aggregates.is_empty()
                && grouping.aggregates.iter().all(extreme)
        })
    }
}

impl Prepared {
    /// The query over the values of the one place that it reads, if it reads just one and rows without it do not count.
    pub fn cover(&self) -> Option<Cover> {
        let compiled = &self.compiled;
        let [source] = compiled.block.sources.as_slice() else { return None };
        let whole = matches!(&source.kind, SourceKind::Value(Node::Slot(ITEM_SLOT)));
        if !whole || compiled.rank.is_some() {
            return None;
        }
        let places = Places::of(&compiled.block);
        let mut found = None;
        let alike = nodes(compiled).all(|node| places.collect(node, &mut found));
        let place = found.filter(|place| alike && place.is_single())?;
        if !self.ignores_undefined().ok()? {
            return None;
        }
        let mut rewritten = compiled.clone();
        let replace = |node: &mut Node| *node = places.replaced(node, &place);
        let block = &mut rewritten.block;
        block.guards.iter_mut().for_each(replace);
        block.sources.iter_mut().flat_map(|source| &mut source.filters).for_each(replace);
        match &mut block.grouping {
            Some(grouping) => {
                grouping.keys.iter_mut().for_each(|(node, _)| replace(node));
                grouping.aggregates.iter_mut().for_each(|(_, node, _)| replace(node));
            }
            None => {
                replace(&mut block.projection);
                rewritten.order.iter_mut().for_each(|key| replace(&mut key.node));
            }
        }
        Some(Cover { place, prepared: self.with(rewritten) })
    }

    /// Whether an item that has nothing adds nothing to the result.
    fn ignores_undefined(&self) -> Result<bool, Box<SqlError>> {
        let block = &self.compiled.block;
        let mut frame = Frame::new(self.compiled.slot_count, &self.context, &Rc::default());
        for slot in [ITEM_SLOT].into_iter().chain(block.sources.iter().map(|source| source.slot)) {
            frame.slots[slot] = Eval::object(Vec::new());
        }
        for filter in block.guards.iter().chain(block.sources.iter().flat_map(|source| &source.filters)) {
            if !frame.eval(filter)?.is_true() {
                return Ok(true);
            }
        }
        match &block.grouping {
            Some(grouping) => {
                for (_, argument, _) in &grouping.aggregates {
                    if !frame.eval(argument)?.is_undefined() {
                        return Ok(false);
                    }
                }
                Ok(grouping.keys.is_empty())
            }
            None => Ok(block.value && frame.eval(&block.projection)?.is_undefined()),
        }
    }
}

/// Every expression that is evaluated for a row.
fn nodes(compiled: &CompiledQuery) -> impl Iterator<Item = &Node> {
    let block = &compiled.block;
    let filters = block.guards.iter().chain(block.sources.iter().flat_map(|source| &source.filters));
    let keys = block.grouping.iter().flat_map(|grouping| grouping.keys.iter().map(|(node, _)| node));
    let arguments =
        block.grouping.iter().flat_map(|grouping| grouping.aggregates.iter().map(|(_, node, _)| node));
    // Of a grouped query, projection and order read the groups.
    let grouped = block.grouping.is_some();
    let projected = (!grouped).then_some(&block.projection);
    let sorted = compiled.order.iter().map(|key| &key.node).filter(move |_| !grouped);
    filters.chain(keys).chain(arguments).chain(projected).chain(sorted)
}
