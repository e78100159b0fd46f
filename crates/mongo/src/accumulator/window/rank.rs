//! `$rank`, `$denseRank`.

use crate::context::Context;
use crate::expression::number::int_or_long;
use crate::sort::Sort;
use crate::value::Bson;
use crate::value_ref::ValueRef;

pub(super) fn ranks(
    partition: &[ValueRef<'_>],
    sort: Option<&Sort>,
    dense: bool,
    context: &Context,
) -> Vec<Option<Bson>> {
    let Some(sort) = sort else { return vec![Some(Bson::Int32(1)); partition.len()] };
    let keys: Vec<Vec<Bson>> = partition.iter().map(|document| sort.key_of(*document, context)).collect();
    let mut rank = 0;
    (0..keys.len())
        .map(|at| {
            let equal = at > 0 && sort.compare_keys(&keys[at - 1], &keys[at], context).is_eq();
            if !equal {
                rank = if dense { rank + 1 } else { at as i64 + 1 };
            }
            Some(int_or_long(rank))
        })
        .collect()
}
