//! Places in an item, and which of them an expression reads.

use std::fmt;

use crate::compile::ITEM_SLOT;
use crate::node::{BlockSource, Node, SelectBlock, SourceKind};

/// One step from a value to a value inside it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Name(String),
    /// Some element of an array.
    Element,
}

/// A place in an item. With `Element` in it, several values may stand there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place(pub Vec<Step>);

impl Place {
    /// Whether at most one value can stand here.
    pub fn is_single(&self) -> bool {
        !self.0.contains(&Step::Element)
    }

    /// The names on the way, where there are only names.
    pub fn names(&self) -> Option<Vec<&str>> {
        let names = self.0.iter().map(|step| match step {
            Step::Name(name) => Some(name.as_str()),
            Step::Element => None,
        });
        names.collect()
    }

    pub(super) fn with(mut self, step: Step) -> Place {
        self.0.push(step);
        self
    }
}

/// As indexing policies write it.
impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            match step {
                Step::Element => out.write_str("/[]")?,
                Step::Name(name) => {
                    let plain = !name.is_empty()
                        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                    if plain { write!(out, "/{name}")? } else { write!(out, "/{name:?}")? }
                }
            }
        }
        Ok(())
    }
}

/// Where the values of slots stand in the item.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    slots: Vec<(usize, Place)>,
}

impl Places {
    pub fn of(block: &SelectBlock) -> Places {
        Places { slots: vec![(ITEM_SLOT, Place(Vec::new()))] }.inside(&block.sources)
    }

    /// With the sources of a query inside the one these places belong to.
    pub fn inside(&self, sources: &[BlockSource]) -> Places {
        let mut places = self.clone();
        for source in sources {
            let place = match &source.kind {
                SourceKind::Value(node) => places.place(node),
                SourceKind::Elements(node) => places.place(node).map(|place| place.with(Step::Element)),
                SourceKind::Rows(_) | SourceKind::RowElements(_) => None,
            };
            places.slots.extend(place.map(|place| (source.slot, place)));
        }
        places
    }

    /// The place an expression reads, if it is a path.
    pub fn place(&self, node: &Node) -> Option<Place> {
        match node {
            Node::Slot(slot) => {
                self.slots.iter().rev().find(|(known, _)| known == slot).map(|(_, place)| place.clone())
            }
            Node::Member(object, name) => Some(self.place(object)?.with(Step::Name(name.clone()))),
            // Which element it is, entries do not say.
            Node::Element(array, _) => Some(self.place(array)?.with(Step::Element)),
            _ => None,
        }
    }

    /// The place of a path below the item itself.
    pub fn inner(&self, node: &Node) -> Option<Place> {
        self.place(node).filter(|place| !place.0.is_empty())
    }

    /// The one place that an expression reads, wherever it stands in it; `None` if it reads several, or something else.
    pub fn only_place(&self, node: &Node) -> Option<Place> {
        let mut found = None;
        self.collect(node, &mut found).then_some(found).flatten()
    }

    /// Whether an expression reads nothing but `found`, which is whatever it reads if it is not known yet.
    pub fn collect(&self, node: &Node, found: &mut Option<Place>) -> bool {
        if let Node::Slot(_) | Node::Member(..) | Node::Element(..) = node
            && let Some(place) = self.inner(node)
        {
            return match found {
                None => {
                    *found = Some(place);
                    true
                }
                Some(known) => *known == place,
            };
        }
        match node {
            Node::Slot(_) | Node::Udf(..) | Node::Subquery(..) => false,
            Node::Call(function, _) if !function.deterministic => false,
            node => {
                let mut alike = true;
                node.for_each_child(&mut |child| alike = alike && self.collect(child, found));
                alike
            }
        }
    }

    /// The expression with the item's slot in place of each path that leads to `place`.
    pub fn replaced(&self, node: &Node, place: &Place) -> Node {
        if let Node::Slot(_) | Node::Member(..) | Node::Element(..) = node
            && self.place(node).as_ref() == Some(place)
        {
            return Node::Slot(ITEM_SLOT);
        }
        let mut copy = node.clone();
        copy.for_each_child_mut(&mut |child| *child = self.replaced(child, place));
        copy
    }
}
