//! Partial updates of a stored document.
//!
//! Only the containers along the patched paths are opened; everything else is copied as bytes into the new document.
//! The operations apply in order, each to the result of the one before, and all of them or none. Messages are the
//! service's own, because applications match them. Whether a path may be patched at all (id, partition key, system
//! properties) is decided by the caller.

use crate::document::format::DEPTH_MAX;
use crate::document::raw::{Kind, Raw};
use crate::document::writer::DocWriter;
use crate::number::Number;
use crate::value::Value;

/// Longest pointer accepted.
const POINTER_BYTES_MAX: usize = 4096;

/// A JSON pointer with at least one segment: `/a/0/x~1y`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pointer {
    segments: Vec<String>,
}

impl Pointer {
    /// Reads a pointer; `~1` stands for a slash and `~0` for a tilde. `None` when the text is no pointer to a part.
    pub fn parse(text: &str) -> Option<Pointer> {
        let rest = text.strip_prefix('/').filter(|_| text.len() <= POINTER_BYTES_MAX)?;
        let segments: Vec<String> =
            rest.split('/').map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect();
        if segments.len() > DEPTH_MAX || segments[0].is_empty() && segments.len() == 1 {
            return None;
        }
        Some(Pointer { segments })
    }

    pub fn segments(&self) -> &[String] {
        &self.segments
    }
}

impl std::fmt::Display for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.segments.iter().try_for_each(|s| write!(f, "/{}", s.replace('~', "~0").replace('/', "~1")))
    }
}

/// One patch operation.
#[derive(Clone, Debug)]
pub enum PatchOp {
    /// Creates or overwrites a member, inserts into an array (`-` or the length appends).
    Add { path: Pointer, value: Value },
    /// Creates or overwrites a member, overwrites an array element.
    Set { path: Pointer, value: Value },
    /// Overwrites what exists.
    Replace { path: Pointer, value: Value },
    /// Removes what exists.
    Remove { path: Pointer },
    /// Adds to a number; creates a member that does not exist.
    Increment { path: Pointer, by: Number },
    /// Takes what exists at `from` away and adds it at `path`.
    Move { from: Pointer, path: Pointer },
}

/// The document after a patch.
#[derive(Clone, Debug)]
pub struct Patched {
    pub document: Vec<u8>,
    /// How many members at the end of the outermost object were appended by patches; the service prints them behind its
    /// system properties.
    pub appended: usize,
}

/// What went wrong, and in which operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PatchError {
    /// Place of the operation in the list, from 0.
    pub index: usize,
    pub kind: PatchErrorKind,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchErrorKind {
    /// The stored document could not be read.
    Corrupt,
    /// The target, or something on the way to it, does not exist.
    Absent,
    /// An array index lies outside, or is no index.
    Index,
    /// An increment of something that is no number, or beyond the doubles.
    NotANumber,
    /// A value would move into itself.
    IntoItself,
    /// The result would be nested too deeply.
    Depth,
}

/// Applies the operations to a document that was never patched before.
pub fn apply_patch(document: &[u8], ops: &[PatchOp]) -> Result<Patched, PatchError> {
    apply_patch_from(document, usize::MAX, ops)
}

/// Applies the operations to a document of which only the first `body_members` outermost members came with the item
/// itself; the others were appended by earlier patches and stay counted as such.
pub fn apply_patch_from(
    document: &[u8],
    body_members: usize,
    ops: &[PatchOp],
) -> Result<Patched, PatchError> {
    let root = Raw::document(document).map_err(|corrupt| PatchError {
        index: 0,
        kind: PatchErrorKind::Corrupt,
        message: corrupt.to_string(),
    })?;
    let mut tree = Node::open(root);
    if let Node::Object(members) = &mut tree {
        members.iter_mut().skip(body_members).for_each(|member| member.appended = true);
    }
    for (index, op) in ops.iter().enumerate() {
        let fail = |Failure { kind, message }: Failure| PatchError {
            index,
            kind,
            message: format!("For Operation({}): {message}", index + 1),
        };
        tree.apply(op).map_err(fail)?;
    }
    let mut writer = DocWriter::with_capacity(document.len() + 64);
    // Stored parts keep their depth unless something moved.
    let moved = ops.iter().any(|op| matches!(op, PatchOp::Move { .. }));
    tree.write(&mut writer, 0, moved).map_err(|Failure { kind, message }| PatchError {
        index: ops.len().saturating_sub(1),
        kind,
        message,
    })?;
    let appended = match &tree {
        Node::Object(members) => members.iter().filter(|member| member.appended).count(),
        _ => 0,
    };
    Ok(Patched { document: writer.finish(), appended })
}

struct Failure {
    kind: PatchErrorKind,
    message: String,
}

fn fail<T>(kind: PatchErrorKind, message: String) -> Result<T, Failure> {
    Err(Failure { kind, message })
}

/// A document being patched: opened where a path went through, bytes or a given value elsewhere.
enum Node<'a> {
    Stored(Raw<'a>),
    Given(&'a Value),
    Number(Number),
    Object(Vec<Member<'a>>),
    Array(Vec<Node<'a>>),
}

struct Member<'a> {
    key: &'a str,
    node: Node<'a>,
    appended: bool,
}

/// What the operation does at its target.
enum Action<'a> {
    Add(Node<'a>),
    Set(Node<'a>),
    Replace(Node<'a>),
    Increment(Number),
}

impl<'a> Node<'a> {
    /// Opens a container one level deep; scalars stay as they are.
    fn open(raw: Raw<'a>) -> Node<'a> {
        match raw.kind() {
            Kind::Object => Node::Object(
                raw.members()
                    .map(|(key, raw)| Member { key, node: Node::Stored(raw), appended: false })
                    .collect(),
            ),
            Kind::Array => Node::Array(raw.elements().map(Node::Stored).collect()),
            _ => Node::Stored(raw),
        }
    }

    fn open_given(value: &'a Value) -> Node<'a> {
        match value {
            Value::Object(members) => Node::Object(
                members
                    .iter()
                    .map(|(key, value)| Member { key, node: Node::Given(value), appended: false })
                    .collect(),
            ),
            Value::Array(elements) => Node::Array(elements.iter().map(Node::Given).collect()),
            value => Node::Given(value),
        }
    }

    /// Makes sure that a container is open.
    fn opened(&mut self) -> &mut Node<'a> {
        match self {
            Node::Stored(raw) => *self = Node::open(*raw),
            Node::Given(value) => *self = Node::open_given(value),
            _ => {}
        }
        self
    }

    fn number(&self) -> Option<Number> {
        match self {
            Node::Stored(raw) => raw.as_number(),
            Node::Given(value) => value.as_number(),
            Node::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn apply(&mut self, op: &'a PatchOp) -> Result<(), Failure> {
        match op {
            PatchOp::Add { path, value } => self.put(path, Action::Add(Node::Given(value)), "Add"),
            PatchOp::Set { path, value } => self.put(path, Action::Set(Node::Given(value)), "Set"),
            PatchOp::Replace { path, value } => {
                self.put(path, Action::Replace(Node::Given(value)), "Replace")
            }
            PatchOp::Increment { path, by } => self.put(path, Action::Increment(*by), "Increment"),
            PatchOp::Remove { path } => self.take(path, "Remove").map(|_| ()),
            PatchOp::Move { from, path } => {
                let (inner, outer) = (path.segments(), from.segments());
                if inner.len() > outer.len() && inner.starts_with(outer) {
                    let message = format!("Node({from}) cannot be moved into its own child ({path})");
                    return fail(PatchErrorKind::IntoItself, message);
                }
                let node = self.take(from, "Move")?;
                self.put(path, Action::Add(node), "Move")
            }
        }
    }

    /// The container that holds the target of a pointer.
    fn parent(&mut self, path: &'a Pointer, operation: &str) -> Result<(&mut Node<'a>, &'a str), Failure> {
        let (last, way) = path.segments().split_last().expect("a pointer has a segment");
        let mut node = self.opened();
        let mut beyond = "";
        for segment in way {
            let child = match node {
                Node::Object(members) => {
                    members.iter_mut().find(|member| member.key == segment).map(|member| &mut member.node)
                }
                Node::Array(elements) => index_of(segment).and_then(|index| elements.get_mut(index)),
                _ => None,
            };
            match child {
                Some(child) => node = child.opened(),
                None => return no_path(operation, segment),
            }
            beyond = segment;
        }
        match node {
            Node::Object(_) | Node::Array(_) => Ok((node, last)),
            _ => no_path(operation, if beyond.is_empty() { last } else { beyond }),
        }
    }

    fn put(&mut self, path: &'a Pointer, action: Action<'a>, operation: &str) -> Result<(), Failure> {
        let (parent, last) = self.parent(path, operation)?;
        match parent {
            Node::Object(members) => {
                let found = members.iter_mut().find(|member| member.key == last);
                match (found, action) {
                    (Some(member), action) => member.node.overwrite(action, path),
                    (None, Action::Replace(_)) => {
                        fail(PatchErrorKind::Absent, format!("Node({path}) to be replaced is absent."))
                    }
                    (None, Action::Add(node) | Action::Set(node)) => {
                        members.push(Member { key: last, node, appended: true });
                        Ok(())
                    }
                    (None, Action::Increment(by)) => {
                        members.push(Member { key: last, node: Node::Number(by), appended: true });
                        Ok(())
                    }
                }
            }
            Node::Array(elements) => {
                let length = elements.len();
                let index = if last == "-" { Some(length) } else { index_of(last) };
                match (index, action) {
                    (Some(index), Action::Add(node)) if index <= length => elements.insert(index, node),
                    (Some(index), Action::Set(node)) if index == length => elements.push(node),
                    (Some(index), action) if index < length => {
                        return elements[index].overwrite(action, path);
                    }
                    _ => return out_of_bounds(last),
                }
                Ok(())
            }
            _ => no_path(operation, last),
        }
    }

    /// Changes a node that exists.
    fn overwrite(&mut self, action: Action<'a>, path: &Pointer) -> Result<(), Failure> {
        match action {
            Action::Add(node) | Action::Set(node) | Action::Replace(node) => *self = node,
            Action::Increment(by) => {
                let not_a_number = || Failure {
                    kind: PatchErrorKind::NotANumber,
                    message: format!("Node({path}) is not a number."),
                };
                let sum = self.number().ok_or_else(not_a_number)?.plus(by);
                if !sum.as_f64().is_finite() {
                    return Err(not_a_number());
                }
                *self = Node::Number(sum);
            }
        }
        Ok(())
    }

    /// Removes a node that exists and returns it.
    fn take(&mut self, path: &'a Pointer, operation: &str) -> Result<Node<'a>, Failure> {
        let absent = || {
            let message = if operation == "Move" {
                format!(
                    "Node({path}) to be moved is absent. Note: it may also have been removed earlier in the transaction."
                )
            } else {
                format!(
                    "Node({path}) to be removed is absent. Note: it may also have been removed earlier in the transaction."
                )
            };
            Failure { kind: PatchErrorKind::Absent, message }
        };
        let (parent, last) = self.parent(path, operation).map_err(|_| absent())?;
        match parent {
            Node::Object(members) => {
                let place = members.iter().position(|member| member.key == last).ok_or_else(absent)?;
                Ok(members.remove(place).node)
            }
            Node::Array(elements) => match index_of(last) {
                Some(index) if index < elements.len() => Ok(elements.remove(index)),
                _ => out_of_bounds(last),
            },
            _ => Err(absent()),
        }
    }

    fn write(&self, writer: &mut DocWriter, depth: usize, moved: bool) -> Result<(), Failure> {
        match self {
            Node::Stored(raw) => {
                if moved {
                    check_depth(depth + raw_depth(*raw, 0))?;
                }
                writer.raw(*raw);
            }
            Node::Given(value) => {
                check_depth(depth + value_depth(value))?;
                writer.value(value);
            }
            Node::Number(number) => writer.number(*number),
            Node::Object(members) => {
                check_depth(depth + 1)?;
                writer.begin_object();
                for member in members {
                    writer.key(member.key);
                    member.node.write(writer, depth + 1, moved)?;
                }
                writer.end_object();
            }
            Node::Array(elements) => {
                check_depth(depth + 1)?;
                writer.begin_array();
                for element in elements {
                    element.write(writer, depth + 1, moved)?;
                }
                writer.end_array();
            }
        }
        Ok(())
    }
}

fn check_depth(depth: usize) -> Result<(), Failure> {
    if depth > DEPTH_MAX {
        return fail(PatchErrorKind::Depth, "the patched item is nested too deeply".to_owned());
    }
    Ok(())
}

fn raw_depth(value: Raw<'_>, within: usize) -> usize {
    if value.is_empty() || within > DEPTH_MAX {
        return usize::from(matches!(value.kind(), Kind::Array | Kind::Object));
    }
    let members = value.members().map(|(_, child)| child);
    1 + members.chain(value.elements()).map(|child| raw_depth(child, within + 1)).max().unwrap_or(0)
}

fn value_depth(value: &Value) -> usize {
    match value {
        Value::Array(elements) => 1 + elements.iter().map(value_depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.iter().map(|(_, value)| value_depth(value)).max().unwrap_or(0),
        _ => 0,
    }
}

/// Array indexes are decimal without signs or leading zeros.
fn index_of(segment: &str) -> Option<usize> {
    let plain = segment.bytes().all(|b| b.is_ascii_digit()) && (segment == "0" || !segment.starts_with('0'));
    if plain { segment.parse().ok() } else { None }
}

fn no_path<T>(operation: &str, beyond: &str) -> Result<T, Failure> {
    fail(
        PatchErrorKind::Absent,
        format!(
            "{operation} Operation can only create a child object of an existing node(array or object) and cannot \
             create path recursively, no path found beyond: '{beyond}'. Learn more: https://aka.ms/cosmosdbpatchdocs"
        ),
    )
}

fn out_of_bounds<T>(index: &str) -> Result<T, Failure> {
    fail(PatchErrorKind::Index, format!("Index({index}) to operate on is out of array bounds"))
}
