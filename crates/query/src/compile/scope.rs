//! Names in scope, and where their values come from.

use crate::node::Node;

/// Where the value of a slot comes from, as far as sorting and routing need to know.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// The item, or what stands at a path of it.
    Path(Vec<String>),
    /// Whatever this expression of other slots is.
    Projection(Box<Node>),
    /// One of several elements of an array.
    Elements,
    Computed,
}

/// Aliases, innermost last.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    bindings: Vec<(String, usize)>,
}

impl Scope {
    pub fn bind(&mut self, name: &str, slot: usize) {
        self.bindings.push((name.to_string(), slot));
    }

    pub fn find(&self, name: &str) -> Option<usize> {
        self.bindings.iter().rev().find(|(bound, _)| bound == name).map(|(_, slot)| *slot)
    }

    pub fn is_empty(&self) -> bool {
        self.bindings.is_empty()
    }

    pub fn mark(&self) -> usize {
        self.bindings.len()
    }

    pub fn release(&mut self, mark: usize) {
        self.bindings.truncate(mark);
    }

    pub fn bound_since(&self, mark: usize, name: &str) -> bool {
        self.bindings[mark..].iter().any(|(bound, _)| bound == name)
    }
}

/// The path in the item that an expression reads, if it reads exactly one.
pub(crate) fn document_path(node: &Node, origins: &[Origin]) -> Option<Vec<String>> {
    match node {
        Node::Slot(slot) => match &origins[*slot] {
            Origin::Path(path) => Some(path.clone()),
            Origin::Projection(node) => document_path(node, origins),
            Origin::Elements | Origin::Computed => None,
        },
        Node::Member(object, name) => {
            // A member of an object literal is the member's own expression.
            if let Some(members) = object_members(object, origins) {
                let (_, node) = members.iter().find(|(member, _)| member == name)?;
                return document_path(node, origins);
            }
            let mut path = document_path(object, origins)?;
            path.push(name.clone());
            Some(path)
        }
        _ => None,
    }
}

fn object_members<'n>(node: &'n Node, origins: &'n [Origin]) -> Option<&'n [(String, Node)]> {
    match node {
        Node::Object(members) => Some(members),
        Node::Slot(slot) => match &origins[*slot] {
            Origin::Projection(node) => object_members(node, origins),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an expression depends on which element of an array is looked at.
pub(crate) fn is_correlated(node: &Node, origins: &[Origin]) -> bool {
    let mut correlated = false;
    node.for_each_slot(&mut |slot| correlated |= matches!(origins[slot], Origin::Elements));
    correlated
}
