//! Groups and aggregates over paths of the item, added up without the evaluator.
//!
//! `SELECT c.city, COUNT(1), AVG(c.n) FROM c GROUP BY c.city` reads two members of each item and nothing else. Such a
//! query needs no frame, no loops over sources and no tree of expressions for every item; each path is looked up
//! once, however many aggregates read it.

use orrery_model::Value;
use smallvec::SmallVec;

use crate::compile::{CompiledQuery, ITEM_SLOT, document_path};
use crate::node::{Node, SourceKind};
use crate::row::RowView;
use crate::value::Eval;

/// Paths of one query that are read this way; others go through the evaluator.
const PATHS_MAX: usize = 8;

/// What a query reads of an item.
#[derive(Debug)]
pub(crate) struct Direct {
    paths: Vec<Vec<String>>,
    /// Which of the paths the group keys are.
    pub keys: Vec<usize>,
    pub inputs: Vec<Input>,
}

/// What an aggregate adds up.
#[derive(Debug)]
pub(crate) enum Input {
    Path(usize),
    Constant(Value),
}

/// The values of the paths in one item.
pub(crate) type Found<'a> = SmallVec<[Eval<'a>; PATHS_MAX]>;

impl Direct {
    /// `None` for queries that do more than that.
    pub fn of(compiled: &CompiledQuery) -> Option<Direct> {
        let block = &compiled.block;
        let grouping = block.grouping.as_ref()?;
        let [source] = block.sources.as_slice() else { return None };
        let whole = matches!(&source.kind, SourceKind::Value(Node::Slot(ITEM_SLOT)));
        if !whole || !block.guards.is_empty() || !source.filters.is_empty() || compiled.rank.is_some() {
            return None;
        }
        let mut paths: Vec<Vec<String>> = Vec::new();
        let mut path = |node: &Node| {
            let names = document_path(node, &compiled.origins)?;
            // Members that the engine keeps beside the document.
            if names.first().is_none_or(|name| name.starts_with('_')) {
                return None;
            }
            let known = paths.iter().position(|known| *known == names);
            if known.is_none() && paths.len() == PATHS_MAX {
                return None;
            }
            Some(known.unwrap_or_else(|| {
                paths.push(names);
                paths.len() - 1
            }))
        };
        let keys = grouping.keys.iter().map(|(node, _)| path(node)).collect::<Option<Vec<usize>>>()?;
        let inputs = grouping.aggregates.iter().map(|(_, node, _)| match node.as_constant() {
            Some(value) => Some(Input::Constant(value.clone())),
            None => path(node).map(Input::Path),
        });
        let inputs = inputs.collect::<Option<Vec<Input>>>()?;
        Some(Direct { paths, keys, inputs })
    }

    pub fn read<'a>(&self, row: &RowView<'a>) -> Found<'a> {
        let value = |path: &Vec<String>| {
            let found = path.iter().try_fold(row.document, |value, name| value.get(name));
            found.map_or(Eval::Undefined, Eval::from_raw)
        };
        self.paths.iter().map(value).collect()
    }
}
