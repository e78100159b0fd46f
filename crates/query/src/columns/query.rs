//! From paths to columns.

use orrery_model::Value;

use super::sort::ColumnSort;
use super::source::ColumnSource;
use crate::compile::{CompiledQuery, ITEM_SLOT, document_path};
use crate::node::{Node, SourceKind};
use crate::prepared::Prepared;
use crate::pushdown::Check;

/// Columns of one query; with more of them it reads items.
const SOURCES_MAX: usize = 8;

/// Groups, aggregates or a filter over columns.
#[derive(Debug)]
pub struct ColumnQuery {
    sources: Vec<ColumnSource>,
    /// The slot of the first column; the others follow.
    pub(super) first_slot: usize,
    pub(super) filters: Vec<Node>,
    pub(super) keys: Vec<Node>,
    pub(super) inputs: Vec<Node>,
    pub(super) lookup: Option<(usize, Node)>,
}

impl Prepared {
    /// The query over columns, if it groups or adds up items one by one and reads nothing but a few paths of them.
    pub fn column_query(&self) -> Option<ColumnQuery> {
        let grouping = self.compiled.block.grouping.as_ref()?;
        let keys = grouping.keys.iter().map(|(node, _)| node);
        self.over_columns(keys, grouping.aggregates.iter().map(|(_, node, _)| node))
    }

    /// The filter of the query over columns, to find the items that pass it.
    pub fn column_filter(&self) -> Option<ColumnQuery> {
        self.over_columns([].into_iter(), [].into_iter())
    }

    /// The filter and the order over columns, if the query sorts items by paths.
    pub fn column_sort(&self) -> Option<&ColumnSort> {
        self.sort.get_or_init(|| self.find_column_sort()).as_ref()
    }

    fn find_column_sort(&self) -> Option<ColumnSort> {
        let order = &self.compiled.order;
        let by_paths = !order.is_empty() && order.iter().all(|key| key.path.is_some());
        if !by_paths || self.compiled.block.grouping.is_some() {
            return None;
        }
        self.over_columns(order.iter().map(|key| &key.node), [].into_iter()).map(ColumnSort::new)
    }

    fn over_columns<'n>(
        &self,
        keys: impl Iterator<Item = &'n Node>,
        inputs: impl Iterator<Item = &'n Node>,
    ) -> Option<ColumnQuery> {
        let compiled = &self.compiled;
        let block = &compiled.block;
        let [source] = block.sources.as_slice() else { return None };
        let whole = matches!(&source.kind, SourceKind::Value(Node::Slot(ITEM_SLOT)));
        if !whole || compiled.rank.is_some() {
            return None;
        }
        let mut rewriter = Rewriter { compiled, sources: Vec::new() };
        let filters = block.guards.iter().chain(&source.filters);
        let filters = filters.map(|node| rewriter.rewritten(node)).collect::<Option<_>>()?;
        let keys = keys.map(|node| rewriter.rewritten(node)).collect::<Option<_>>()?;
        let inputs = inputs.map(|node| rewriter.rewritten(node)).collect::<Option<_>>()?;
        let sources = rewriter.sources;
        (!sources.is_empty()).then_some(ColumnQuery {
            sources,
            first_slot: compiled.slot_count,
            filters,
            keys,
            inputs,
            lookup: None,
        })
    }
}

impl ColumnQuery {
    pub fn sources(&self) -> &[ColumnSource] {
        &self.sources
    }

    /// Has runs count which rows a lookup would have led to: those whose value in a column is defined and passes a
    /// check that is part of the filter.
    pub fn look_up(&mut self, column: usize, check: &Check) {
        let slot = self.first_slot + column;
        self.lookup = Some((column, in_slot(&check.node, slot)));
    }

    /// Which column an expression is, if it is one.
    pub(super) fn column(&self, node: &Node) -> Option<usize> {
        if let Node::Slot(slot) = node { slot.checked_sub(self.first_slot) } else { None }
    }

    /// The columns that an expression reads.
    pub(super) fn columns_of(&self, node: &Node) -> Vec<usize> {
        let mut columns = Vec::new();
        node.for_each_slot(&mut |slot| {
            let column = slot - self.first_slot;
            if !columns.contains(&column) {
                columns.push(column);
            }
        });
        columns
    }
}

/// An expression of the item's slot, of another one.
fn in_slot(node: &Node, slot: usize) -> Node {
    if let Node::Slot(ITEM_SLOT) = node {
        return Node::Slot(slot);
    }
    let mut copy = node.clone();
    copy.for_each_child_mut(&mut |child| *child = in_slot(child, slot));
    copy
}

struct Rewriter<'c> {
    compiled: &'c CompiledQuery,
    sources: Vec<ColumnSource>,
}

impl Rewriter<'_> {
    /// The expression with slots of columns in the place of paths; `None` if it reads anything else.
    fn rewritten(&mut self, node: &Node) -> Option<Node> {
        match node {
            Node::Call(function, arguments) if ColumnSource::summarizes(function) => {
                if let [argument] = arguments.as_slice()
                    && let Some(path) = self.path(argument)
                {
                    return self.slot(ColumnSource::new(path, Some(function)));
                }
            }
            Node::Slot(_) | Node::Member(..) => {
                if let Some(path) = self.path(node) {
                    return self.slot(ColumnSource::new(path, None));
                }
            }
            _ => {}
        }
        match node {
            Node::Slot(_) | Node::Udf(..) | Node::Subquery(..) => return None,
            Node::Call(function, _) if !function.deterministic => return None,
            _ => {}
        }
        let mut complete = true;
        let mut copy = node.clone();
        copy.for_each_child_mut(&mut |child| {
            if !complete {
                return;
            }
            match self.rewritten(child) {
                Some(rewritten) => *child = rewritten,
                None => {
                    *child = Node::Constant(Value::Undefined);
                    complete = false;
                }
            }
        });
        complete.then_some(copy)
    }

    /// A path of names into the document. Members that begin with an underscore may be kept beside it.
    fn path(&self, node: &Node) -> Option<Vec<String>> {
        let path = document_path(node, &self.compiled.origins)?;
        path.first().is_some_and(|name| !name.starts_with('_')).then_some(path)
    }

    /// `None` where the query reads too many.
    fn slot(&mut self, source: ColumnSource) -> Option<Node> {
        let known = self.sources.iter().position(|known| *known == source);
        if known.is_none() && self.sources.len() == SOURCES_MAX {
            return None;
        }
        let at = known.unwrap_or_else(|| {
            self.sources.push(source);
            self.sources.len() - 1
        });
        Some(Node::Slot(self.compiled.slot_count + at))
    }
}
