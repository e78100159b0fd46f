//! The partial form of a query: what one share of a container computes when several are merged.
//!
//! It is the compiled query itself with a few things changed, so a statement is compiled once however often its shares are
//! asked. Counts that only whoever sees all rows can apply are taken out, and rows come with what a merge puts them
//! together by:
//!
//! | query | its partial form |
//! |---|---|
//! | `OFFSET 2 LIMIT 3` | the first 5 rows |
//! | `ORDER BY` | the same; rows tell where they stand |
//! | aggregates, `GROUP BY` | groups as they are, not projected, sorted or counted |
//! | `DISTINCT` | rows with the bytes by which equal ones are found |

use crate::compile::CompiledQuery;
use crate::prepared::Prepared;

impl Prepared {
    /// Whether this is a partial form: its rows are for a merge and not for a client.
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// The form of the query with some things changed. Nothing that is kept of its results belongs to the whole query.
    pub(crate) fn partial(&self, change: impl FnOnce(&mut CompiledQuery)) -> Prepared {
        let mut compiled = self.compiled.clone();
        change(&mut compiled);
        let mut partial = self.with(compiled);
        let compiled = &partial.compiled;
        partial.shape.distinct = compiled.block.distinct;
        (partial.shape.top, partial.shape.offset, partial.shape.limit) =
            (compiled.top, compiled.offset, compiled.limit);
        partial.shape.order_by = !compiled.order.is_empty();
        partial.shape.rank = compiled.rank.is_some();
        partial.shape.aggregates.clone_from(&compiled.aggregates);
        partial.fingerprint = 0;
        partial.partial = true;
        partial
    }

    /// The first rows, as many as can matter to the whole result.
    pub(crate) fn first_rows(&self) -> Prepared {
        self.partial(|compiled| {
            if let (Some(offset), Some(limit)) = (compiled.offset, compiled.limit) {
                (compiled.offset, compiled.limit) = (None, Some(offset.saturating_add(limit)));
            }
        })
    }

    /// All sorted rows, equal ones among them; `marked` with what tells those apart.
    pub(crate) fn all_sorted_rows(&self, marked: bool) -> Prepared {
        self.partial(|compiled| {
            compiled.block.distinct = false;
            compiled.marked = marked;
            (compiled.top, compiled.offset, compiled.limit) = (None, None, None);
        })
    }

    /// The distinct rows of a share, however many are wanted of all.
    pub(crate) fn marked_rows(&self) -> Prepared {
        self.partial(|compiled| {
            compiled.marked = true;
            (compiled.top, compiled.offset, compiled.limit) = (None, None, None);
        })
    }

    /// Groups as they are.
    pub(crate) fn group_parts(&self) -> Prepared {
        self.partial(|compiled| {
            compiled.groups_apart = true;
            compiled.block.distinct = false;
            compiled.order.clear();
            (compiled.top, compiled.offset, compiled.limit) = (None, None, None);
        })
    }
}
