//! The paths of a partition's index, numbered: two bytes in each row instead of the names.
//!
//! A tree: every place in an item (`address`, `address.city`, `tags`, `tags.[]`) is a node, known by the node above
//! it and a step. A node gets its number and its row in the commit that first has an entry for it, and keeps both.
//! What a transaction adds stays its own until it is submitted: if it is given up, nobody has seen the numbers.
//!
//! There is room for `PATHS_MAX` paths, and a name may have `NAME_BYTES_MAX` bytes. Places beyond that have no rows,
//! and a reader learns that a path may be one of them: it then does without the index.

use std::collections::HashMap;

use bytes::{BufMut, Bytes, BytesMut};
use orrery_model::key_hash;
use orrery_storage::{Commit, Direction, Snapshot, Table, keys};

use super::super::rows::damaged;
use crate::definition::PathStep;
use crate::error::Result;

/// Most paths of a partition.
pub(super) const PATHS_MAX: u32 = 60_000;
/// Longest name in an indexed path.
pub(super) const NAME_BYTES_MAX: usize = 255;
/// Children that are looked through one by one.
const FEW_CHILDREN: usize = 16;

/// The item itself, which has no row.
pub(super) const ROOT: u32 = 0;

const STEP_ELEMENT: u8 = 0;
const STEP_NAME: u8 = 1;

#[derive(Default)]
struct Node {
    parent: u32,
    /// `None`: an element of an array.
    name: Option<Box<str>>,
    element: Option<u32>,
    /// By the first look at their names.
    few: Vec<(u8, u32)>,
    many: HashMap<Box<str>, u32>,
}

/// All paths that are in submitted commits.
pub(super) struct Dictionary {
    nodes: Vec<Node>,
}

/// Whether a path has rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Path(u16),
    /// No item has it.
    Absent,
    /// Items may have it without rows.
    Unknown,
}

/// No paths.
impl Default for Dictionary {
    fn default() -> Dictionary {
        Dictionary { nodes: vec![Node::default()] }
    }
}

impl Dictionary {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn open(snapshot: &dyn Snapshot) -> Result<Dictionary> {
        let mut dictionary = Dictionary::default();
        let mut rows = snapshot.scan(Table::Index, keys::index::paths(), Direction::Forward);
        while let Some(row) = rows.next_row().transpose()? {
            let number = keys::index::path_number(&row.key).ok_or_else(|| damaged("path"))?;
            let (parent, name) = decode(&row.value).ok_or_else(|| damaged("path"))?;
            if usize::from(number) != dictionary.nodes.len() || parent >= u32::from(number) {
                return Err(damaged("path"));
            }
            dictionary.add(parent, name.map(Box::from));
        }
        Ok(dictionary)
    }

    fn add(&mut self, parent: u32, name: Option<Box<str>>) {
        let number = self.nodes.len() as u32;
        let Some(above) = self.nodes.get(parent as usize) else { return };
        match &name {
            None => self.nodes[parent as usize].element = Some(number),
            Some(name) if above.few.len() < FEW_CHILDREN => {
                let hash = key_hash(name.as_bytes());
                self.nodes[parent as usize].few.push((hash, number));
            }
            Some(name) => drop(self.nodes[parent as usize].many.insert(name.clone(), number)),
        }
        self.nodes.push(Node { parent, name, ..Node::default() });
    }

    fn child(&self, parent: u32, step: PathStep<'_>) -> Option<u32> {
        let node = self.nodes.get(parent as usize)?;
        let PathStep::Name(name) = step else { return node.element };
        let hash = key_hash(name.as_bytes());
        let is_named = |number: u32| self.nodes[number as usize].name.as_deref() == Some(name);
        let few = node.few.iter().find(|(found, number)| *found == hash && is_named(*number));
        match few {
            Some((_, number)) => Some(*number),
            None if node.many.is_empty() => None,
            None => node.many.get(name).copied(),
        }
    }

    /// The number of a path.
    pub(super) fn find<'s>(&self, steps: impl IntoIterator<Item = PathStep<'s>>) -> Found {
        let mut node = ROOT;
        for step in steps {
            if matches!(step, PathStep::Name(name) if name.len() > NAME_BYTES_MAX) {
                return Found::Unknown;
            }
            node = match self.child(node, step) {
                Some(child) => child,
                None if self.nodes.len() as u32 >= PATHS_MAX => return Found::Unknown,
                None => return Found::Absent,
            };
        }
        match u16::try_from(node) {
            Ok(path) if node != ROOT => Found::Path(path),
            _ => Found::Unknown,
        }
    }

    /// The steps that lead to a path, for people.
    pub(super) fn steps(&self, path: u16) -> Vec<PathStep<'_>> {
        let mut steps = Vec::new();
        let mut node = u32::from(path);
        while node != ROOT {
            let Some(found) = self.nodes.get(node as usize) else { break };
            steps.push(found.name.as_deref().map_or(PathStep::Element, PathStep::Name));
            node = found.parent;
        }
        steps.reverse();
        steps
    }

    /// Takes over what a transaction added.
    pub(super) fn extend(&mut self, new: NewPaths) {
        for (parent, name) in new.added {
            self.add(parent, name);
        }
    }
}

/// Paths that a transaction is the first to have.
#[derive(Default)]
pub(crate) struct NewPaths {
    added: Vec<(u32, Option<Box<str>>)>,
    numbers: HashMap<(u32, Option<Box<str>>), u32>,
    /// How many places got a number beyond those that are stored.
    unstored: u32,
}

impl NewPaths {
    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty()
    }

    /// Adds the rows of the new paths to a commit.
    pub(super) fn stage(&self, dictionary: &Dictionary, commit: &mut Commit) {
        for (at, (parent, name)) in self.added.iter().enumerate() {
            let number = (dictionary.nodes.len() + at) as u16;
            commit.put(Table::Index, keys::index::path(number), encode(*parent, name.as_deref()));
        }
    }
}

/// What a walk looks paths up in.
pub(super) struct Paths<'d> {
    pub(super) dictionary: &'d Dictionary,
    pub(super) new: &'d mut NewPaths,
}

impl Paths<'_> {
    /// The place one step below another. Numbers from `PATHS_MAX` on tell places apart but have no rows.
    pub(super) fn child(&mut self, parent: u32, step: PathStep<'_>) -> u32 {
        if let Some(found) = self.dictionary.child(parent, step) {
            return found;
        }
        let name: Option<Box<str>> = match step {
            PathStep::Name(name) => Some(name.into()),
            PathStep::Element => None,
        };
        let too_long = name.as_ref().is_some_and(|name| name.len() > NAME_BYTES_MAX);
        let place = (parent, name);
        if let Some(found) = self.new.numbers.get(&place) {
            return *found;
        }
        let next = (self.dictionary.nodes.len() + self.new.added.len()) as u32;
        let number = if too_long || parent >= PATHS_MAX || next >= PATHS_MAX {
            self.new.unstored += 1;
            PATHS_MAX + self.new.unstored
        } else {
            self.new.added.push(place.clone());
            next
        };
        self.new.numbers.insert(place, number);
        number
    }
}

/// The number as rows have it; `None` for a place that has no rows.
pub(super) fn stored(path: u32) -> Option<u16> {
    if path < PATHS_MAX { u16::try_from(path).ok() } else { None }
}

fn encode(parent: u32, name: Option<&str>) -> Bytes {
    let mut row = BytesMut::with_capacity(5 + name.map_or(0, str::len));
    row.put_u32_le(parent);
    match name {
        None => row.put_u8(STEP_ELEMENT),
        Some(name) => {
            row.put_u8(STEP_NAME);
            row.put_slice(name.as_bytes());
        }
    }
    row.freeze()
}

fn decode(row: &[u8]) -> Option<(u32, Option<&str>)> {
    let (parent, rest) = row.split_first_chunk()?;
    let name = match rest.split_first()? {
        (&STEP_ELEMENT, []) => None,
        (&STEP_NAME, name) => Some(std::str::from_utf8(name).ok()?),
        _ => return None,
    };
    Some((u32::from_le_bytes(*parent), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_its_number_once_it_is_submitted() {
        let mut dictionary = Dictionary::default();
        let mut new = NewPaths::default();
        let mut paths = Paths { dictionary: &dictionary, new: &mut new };
        let tags = paths.child(ROOT, PathStep::Name("tags"));
        let element = paths.child(tags, PathStep::Element);
        assert_eq!((tags, element), (1, 2));
        assert_eq!(paths.child(ROOT, PathStep::Name("tags")), 1);
        assert_eq!(dictionary.find([PathStep::Name("tags")]), Found::Absent);
        dictionary.extend(new);
        assert_eq!(dictionary.find([PathStep::Name("tags"), PathStep::Element]), Found::Path(2));
        assert_eq!(dictionary.steps(2), [PathStep::Name("tags"), PathStep::Element]);
        assert_eq!(dictionary.find([]), Found::Unknown);
    }

    #[test]
    fn many_siblings_are_told_apart() {
        let mut dictionary = Dictionary::default();
        let mut new = NewPaths::default();
        let mut paths = Paths { dictionary: &dictionary, new: &mut new };
        for n in 0..200 {
            assert_eq!(paths.child(ROOT, PathStep::Name(&format!("p{n}"))), n + 1);
        }
        dictionary.extend(new);
        for n in 0..200u16 {
            assert_eq!(dictionary.find([PathStep::Name(&format!("p{n}"))]), Found::Path(n + 1));
        }
    }

    #[test]
    fn beyond_the_limits_a_path_is_unknown_rather_than_absent() {
        let mut dictionary = Dictionary::default();
        let mut new = NewPaths::default();
        let mut paths = Paths { dictionary: &dictionary, new: &mut new };
        let long = "n".repeat(NAME_BYTES_MAX + 1);
        let place = paths.child(ROOT, PathStep::Name(&long));
        assert_eq!(stored(place), None);
        assert_eq!(stored(paths.child(place, PathStep::Name("below"))), None);
        for n in 0..PATHS_MAX {
            paths.child(ROOT, PathStep::Name(&n.to_string()));
        }
        assert_eq!(dictionary.find([PathStep::Name(&long)]), Found::Unknown);
        dictionary.extend(new);
        assert_eq!(dictionary.find([PathStep::Name("1")]), Found::Path(2));
        assert_eq!(dictionary.find([PathStep::Name(&PATHS_MAX.to_string())]), Found::Unknown);
    }

    #[test]
    fn rows_read_back_as_they_were_written() {
        for name in [None, Some(""), Some("name")] {
            assert_eq!(decode(&encode(7, name)), Some((7, name)));
        }
        assert_eq!(decode(&[1, 0, 0, 0, 2]), None);
        assert_eq!(decode(&[1, 0]), None);
    }
}
