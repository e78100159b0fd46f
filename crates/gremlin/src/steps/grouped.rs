//! `V().groupCount().by(key)` and its relatives at the beginning of a traversal: the graph may know how many there are
//! of each value without showing any element.
//!
//! Where it does not, the same steps run as they stand.

use std::sync::Arc;

use super::*;
use crate::graph::{FilterKey, Lookup};
use crate::lowering;
use crate::steps::reduce::reduced;
use crate::value::{Map, T};

/// The operator for a source and the grouping after it, and how many instructions it has taken: `V`, its filters,
/// `groupCount` and its `by()`.
pub(crate) fn build(
    builder: &mut Builder<'_>,
    call: &Call<'_>,
    steps: &[Instruction],
    rest: &[Instruction],
) -> Result<Option<(Box<dyn Op>, usize)>> {
    let Some((key, taken)) = grouping(rest, builder.options.id_and_label_as_keys) else { return Ok(None) };
    if builder.productive_by.is_some() || !call.args.is_empty() {
        return Ok(None);
    }
    let before = steps.len() - rest.len();
    let lookup = lowering::lookup(None, &call.filters, builder.partition_key.as_deref(), None);
    if lookup.ids.is_some() {
        return Ok(None);
    }
    let otherwise = builder.plainly(&steps[..before + taken])?;
    let edges = call.name == "E";
    Ok(Some((Box::new(Grouped { edges, lookup, key, otherwise, done: false }), taken)))
}

/// Which key the next steps count by, and how many steps these are.
fn grouping(rest: &[Instruction], id_and_label_as_keys: bool) -> Option<(FilterKey, usize)> {
    let key_of = |by: &Instruction| match (&*by.name, by.arguments.as_slice()) {
        ("by", [Value::String(name)]) => Some(match &**name {
            "label" if id_and_label_as_keys => FilterKey::Label,
            "id" if id_and_label_as_keys => return None,
            _ => FilterKey::Property(name.clone()),
        }),
        ("by", [Value::T(T::Label)]) => Some(FilterKey::Label),
        _ => None,
    };
    let counts = |by: &Instruction| match (&*by.name, by.arguments.as_slice()) {
        ("by", [Value::Traversal(nested)]) => {
            matches!(nested.steps.as_slice(), [only] if &*only.name == "count" && only.arguments.is_empty())
        }
        _ => false,
    };
    let is = |step: &Instruction, name: &str| &*step.name == name && step.arguments.is_empty();
    let (key, taken) = match rest {
        [group, key, ..] if is(group, "groupCount") => (key_of(key)?, 2),
        [group, key, value, ..] if is(group, "group") && counts(value) => (key_of(key)?, 3),
        _ => return None,
    };
    // A by() too many is an error, which the step itself knows.
    let one_more = rest.get(taken).is_some_and(|step| &*step.name == "by");
    (!one_more).then_some((key, taken))
}

struct Grouped {
    edges: bool,
    lookup: Lookup,
    key: FilterKey,
    /// The same steps, one after another.
    otherwise: Child,
    done: bool,
}

impl Op for Grouped {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, _: usize) -> Result<Batch> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(Vec::new());
        }
        let mut starts = Vec::new();
        loop {
            let batch = up.next(cx, usize::MAX)?;
            if batch.is_empty() {
                break;
            }
            starts.extend(batch);
        }
        if starts.is_empty() {
            return Ok(starts);
        }
        let alone = matches!(starts.as_slice(), [start] if start.bulk == 1);
        if alone && let Some(groups) = cx.graph.group_counts(self.edges, &self.lookup, &self.key)? {
            let mut map = Map::new();
            for (key, count) in groups {
                map.insert(key, Value::Long(i64::try_from(count).unwrap_or(i64::MAX)));
            }
            return Ok(vec![reduced(cx, Value::Map(Arc::new(map)))]);
        }
        self.otherwise.run(cx, starts)
    }

    fn reset(&mut self) {
        self.done = false;
    }
}
