//! A traverser: where a walk stands, how it came there, and how many walks it stands for.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::path::Path;
use crate::value::{Pop, Value};

/// How much of their way traversers remember, decided for a whole traversal by what its steps ask for. Less memory, and
/// more of them are alike and become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathMode {
    None,
    /// Only what `as()` named.
    Labelled,
    Full,
}

#[derive(Debug)]
pub(crate) struct PathNode {
    pub previous: Option<Arc<PathNode>>,
    pub value: Value,
    pub labels: SmallVec<[Arc<str>; 2]>,
    pub length: u32,
}

impl Drop for PathNode {
    /// A long path would otherwise be dropped by as many nested calls.
    fn drop(&mut self) {
        let mut next = self.previous.take();
        while let Some(node) = next {
            match Arc::try_unwrap(node) {
                Ok(mut node) => next = node.previous.take(),
                Err(_) => break,
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Loop {
    pub name: Option<Arc<str>>,
    pub count: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Traverser {
    pub value: Value,
    pub bulk: u64,
    pub path: Option<Arc<PathNode>>,
    /// Whether the last node of the path is the value itself.
    pub on_path: bool,
    pub loops: SmallVec<[Loop; 1]>,
    pub sack: Option<Value>,
}

impl Traverser {
    pub(crate) fn new(value: Value) -> Traverser {
        Traverser { value, bulk: 1, path: None, on_path: false, loops: SmallVec::new(), sack: None }
    }

    /// A step away: another value, the way extended by it.
    pub(crate) fn step(&self, value: Value, mode: PathMode) -> Traverser {
        let mut next = Traverser {
            value,
            bulk: self.bulk,
            path: self.path.clone(),
            on_path: false,
            loops: self.loops.clone(),
            sack: self.sack.clone(),
        };
        if mode == PathMode::Full {
            next.extend_path(SmallVec::new());
        }
        next
    }

    /// The same when this one is no longer needed.
    pub(crate) fn into_step(mut self, value: Value, mode: PathMode) -> Traverser {
        self.value = value;
        self.on_path = false;
        if mode == PathMode::Full {
            self.extend_path(SmallVec::new());
        }
        self
    }

    pub(crate) fn extend_path(&mut self, labels: SmallVec<[Arc<str>; 2]>) {
        let previous = self.path.take();
        let length = previous.as_ref().map_or(0, |node| node.length) + 1;
        self.path = Some(Arc::new(PathNode { previous, value: self.value.clone(), labels, length }));
        self.on_path = true;
    }

    pub(crate) fn label(&mut self, labels: &[Arc<str>], mode: PathMode) {
        if mode == PathMode::None {
            return;
        }
        match (&self.path, self.on_path) {
            (Some(node), true) => {
                let mut all = node.labels.clone();
                for label in labels {
                    if !all.contains(label) {
                        all.push(label.clone());
                    }
                }
                self.path = Some(Arc::new(PathNode {
                    previous: node.previous.clone(),
                    value: node.value.clone(),
                    labels: all,
                    length: node.length,
                }));
            }
            _ => self.extend_path(labels.iter().cloned().collect()),
        }
    }

    /// The path from its beginning.
    pub(crate) fn nodes(&self) -> Vec<&PathNode> {
        let mut nodes = Vec::new();
        let mut next = self.path.as_deref();
        while let Some(node) = next {
            nodes.push(node);
            next = node.previous.as_deref();
        }
        nodes.reverse();
        nodes
    }

    pub(crate) fn path_value(&self) -> Path {
        let nodes = self.nodes();
        Path {
            objects: nodes.iter().map(|node| node.value.clone()).collect(),
            labels: nodes.iter().map(|node| node.labels.to_vec()).collect(),
        }
    }

    /// What the path has under a label, if it has that label at all.
    pub(crate) fn labelled(&self, label: &str, pop: Pop) -> Option<Value> {
        let mut found = Vec::new();
        let mut next = self.path.as_deref();
        while let Some(node) = next {
            if node.labels.iter().any(|own| **own == *label) {
                if pop == Pop::Last {
                    return Some(node.value.clone());
                }
                found.push(node.value.clone());
            }
            next = node.previous.as_deref();
        }
        found.reverse();
        match pop {
            _ if found.is_empty() => None,
            Pop::First => found.into_iter().next(),
            Pop::Last => found.pop(),
            Pop::Mixed if found.len() == 1 => found.pop(),
            Pop::Mixed | Pop::All => Some(Value::list(found)),
        }
    }

    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<Traverser>() + self.value.size_bytes()
    }
}

/// What two traversers must share to become one.
pub(crate) struct MergeKey<'a>(pub &'a Traverser);

impl Hash for MergeKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.value.hash(state);
    }
}

impl PartialEq for MergeKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.0, other.0);
        let same_path = match (&a.path, &b.path) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        same_path && a.on_path == b.on_path && a.value == b.value && a.loops == b.loops && a.sack == b.sack
    }
}

impl Eq for MergeKey<'_> {}
