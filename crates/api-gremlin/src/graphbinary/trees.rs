//! Trees for drivers that have none: maps of maps, in which every key leads to what is below it.

use std::borrow::Cow;
use std::sync::Arc;

use orrery_gremlin::Value;
use orrery_gremlin::value::Tree;

/// A result with its trees as maps; what has none is left alone.
pub fn trees_as_maps(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Tree(tree) => Cow::Owned(map(tree)),
        Value::List(items) if items.iter().any(holds_tree) => {
            Cow::Owned(Value::list(items.iter().map(|item| trees_as_maps(item).into_owned()).collect()))
        }
        Value::Map(entries) if entries.values().any(holds_tree) => {
            let entry = |(key, held): (&Value, &Value)| (key.clone(), trees_as_maps(held).into_owned());
            Cow::Owned(Value::map(entries.iter().map(entry)))
        }
        Value::Traverser(traverser) if holds_tree(&traverser.0) => {
            Cow::Owned(Value::Traverser(Arc::new((trees_as_maps(&traverser.0).into_owned(), traverser.1))))
        }
        other => Cow::Borrowed(other),
    }
}

fn holds_tree(value: &Value) -> bool {
    match value {
        Value::Tree(_) => true,
        Value::List(items) => items.iter().any(holds_tree),
        Value::Map(entries) => entries.values().any(holds_tree),
        _ => false,
    }
}

fn map(tree: &Tree) -> Value {
    Value::map(tree.0.iter().map(|(key, below)| (key.clone(), map(below))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_a_map_of_maps_and_anything_else_itself() {
        let mut tree = Tree::default();
        tree.0.entry(Value::Int(1)).or_default().0.insert(Value::Int(2), Tree::default());
        let below = Value::map([(Value::Int(2), Value::map([]))]);
        let expected = Value::map([(Value::Int(1), below)]);
        let tree = Value::Tree(Arc::new(tree));
        assert_eq!(*trees_as_maps(&tree), expected);
        let held = Value::list(vec![Value::Int(7), tree]);
        assert_eq!(*trees_as_maps(&held), Value::list(vec![Value::Int(7), expected]));
        assert!(matches!(trees_as_maps(&Value::Int(7)), Cow::Borrowed(_)));
    }
}
