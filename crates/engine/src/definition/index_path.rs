//! Paths of an indexing policy, and the tree that decides for each place in an item whether it is indexed.
//!
//! `/a/b/?` is the scalar at `a.b`, `/a/*` everything at and under `a`, `/list/[]/x/?` the scalar `x` in every element
//! of `list`. Names with other than letters, digits and underscores may stand in quotes. Of two paths that cover a
//! place the more precise one decides: the longer one, and `?` before `*`.
//!
//! The tree is walked together with the item: [`PolicyCursor`] starts at the root, goes down by name or into an array,
//! and says at a scalar whether it is indexed and at an object or array whether anything below can be.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

/// Most segments of a path; deeper than any stored document nests.
const SEGMENTS_MAX: usize = 128;

/// One step from a value to a value inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStep<'n> {
    Name(&'n str),
    /// Any element of an array.
    Element,
}

/// A parsed path of an indexing policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexPath {
    segments: Vec<Segment>,
    end: PathEnd,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Name(String),
    Element,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathEnd {
    /// `?`: the scalar at this place.
    Scalar,
    /// `*`: everything at and under this place.
    Subtree,
}

impl IndexPath {
    /// Reads a path that ends in `/?` or `/*`. `/` alone is the old spelling of `/*`.
    pub fn parse(text: &str) -> Result<IndexPath> {
        if text == "/" {
            return Ok(IndexPath { segments: Vec::new(), end: PathEnd::Subtree });
        }
        let mut segments = Vec::new();
        let mut rest = text;
        loop {
            let at = text.len() - rest.len();
            let after = rest.strip_prefix('/').ok_or_else(|| refused(text, at))?;
            match after {
                "?" => return Ok(IndexPath { segments, end: PathEnd::Scalar }),
                "*" => return Ok(IndexPath { segments, end: PathEnd::Subtree }),
                _ if segments.len() == SEGMENTS_MAX => return Err(refused(text, at)),
                _ => {}
            }
            let (segment, tail) = segment(after).ok_or_else(|| refused(text, at + 1))?;
            segments.push(segment);
            rest = tail;
        }
    }

    pub fn is_root_subtree(&self) -> bool {
        self.segments.is_empty() && self.end == PathEnd::Subtree
    }

    pub fn end(&self) -> PathEnd {
        self.end
    }

    /// The steps down to the place that the path names.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = PathStep<'_>> + Clone {
        self.segments.iter().map(|segment| match segment {
            Segment::Name(name) => PathStep::Name(name),
            Segment::Element => PathStep::Element,
        })
    }

    /// Whether a place belongs to the path.
    pub fn covers<'s>(&self, mut place: impl Iterator<Item = PathStep<'s>>) -> bool {
        self.steps().all(|step| place.next() == Some(step))
            && (self.end == PathEnd::Subtree || place.next().is_none())
    }

    /// Whether this is the path to one top-level scalar.
    pub(super) fn is_top_level_scalar(&self, name: &str) -> bool {
        self.end == PathEnd::Scalar && matches!(&self.segments[..], [Segment::Name(only)] if only == name)
    }
}

pub(super) fn refused(path: &str, position: usize) -> Error {
    Error::bad_request(format!(
        "The indexing path '{path}' could not be accepted, failed near position '{position}'. Please ensure that the path is \
         a valid path. Common errors include invalid characters or absence of quotes around labels."
    ))
}

/// Splits off one segment, which is followed by a slash or by nothing.
fn segment(text: &str) -> Option<(Segment, &str)> {
    if let Some(tail) = text.strip_prefix("[]") {
        return Some((Segment::Element, tail));
    }
    if let Some(quote @ ('"' | '\'')) = text.chars().next() {
        let mut name = String::new();
        let mut escaped = false;
        for (at, character) in text.char_indices().skip(1) {
            match character {
                _ if escaped => {
                    if character != quote {
                        name.push('\\');
                    }
                    name.push(character);
                    escaped = false;
                }
                '\\' => escaped = true,
                _ if character == quote => return Some((Segment::Name(name), &text[at + 1..])),
                _ => name.push(character),
            }
        }
        return None;
    }
    let end = text.find('/').unwrap_or(text.len());
    let (name, tail) = text.split_at(end);
    let plain = !name.is_empty() && !name.contains(['*', '?', '"', '\'', '[', ']']);
    plain.then(|| (Segment::Name(name.to_owned()), tail))
}

/// The decisions of a policy, as a tree over the segments of its paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PolicyTree {
    root: Node,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    scalar: Option<bool>,
    subtree: Option<bool>,
    names: BTreeMap<String, Node>,
    element: Option<Box<Node>>,
    /// Whether some path below says "include"; set when the tree is complete.
    includes_below: bool,
}

impl PolicyTree {
    /// Records a decision; false when the same path was decided before.
    pub(super) fn decide(&mut self, path: &IndexPath, include: bool) -> bool {
        let mut node = &mut self.root;
        node.includes_below |= include;
        for segment in &path.segments {
            node = match segment {
                Segment::Name(name) => node.names.entry(name.clone()).or_default(),
                Segment::Element => node.element.get_or_insert_default(),
            };
            node.includes_below |= include;
        }
        let decision = match path.end {
            PathEnd::Scalar => &mut node.scalar,
            PathEnd::Subtree => &mut node.subtree,
        };
        decision.replace(include).is_none()
    }

    pub(super) fn cursor(&self) -> PolicyCursor<'_> {
        PolicyCursor { node: Some(&self.root), inherited: self.root.subtree.unwrap_or(false) }
    }
}

/// A place in an item, as an indexing policy sees it.
#[derive(Debug, Clone, Copy)]
pub struct PolicyCursor<'p> {
    /// `None` below everything that the policy names.
    node: Option<&'p Node>,
    /// The decision of the nearest `*` above or at this place.
    inherited: bool,
}

impl<'p> PolicyCursor<'p> {
    /// A policy that indexes nothing.
    pub(super) fn nothing() -> PolicyCursor<'static> {
        PolicyCursor { node: None, inherited: false }
    }

    pub fn step(self, step: PathStep<'_>) -> PolicyCursor<'p> {
        let node = self.node.and_then(|node| match step {
            PathStep::Name(name) => node.names.get(name),
            PathStep::Element => node.element.as_deref(),
        });
        PolicyCursor { node, inherited: node.and_then(|node| node.subtree).unwrap_or(self.inherited) }
    }

    pub fn name(self, name: &str) -> PolicyCursor<'p> {
        self.step(PathStep::Name(name))
    }

    pub fn element(self) -> PolicyCursor<'p> {
        self.step(PathStep::Element)
    }

    /// Whether a scalar at this place is indexed.
    pub fn indexes_scalar(self) -> bool {
        self.node.and_then(|node| node.scalar).unwrap_or(self.inherited)
    }

    /// Whether anything inside an object or array at this place can be indexed; when not, it need not be walked.
    pub fn indexes_inside(self) -> bool {
        self.inherited || self.node.is_some_and(|node| node.includes_below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(included: &[&str], excluded: &[&str]) -> PolicyTree {
        let mut tree = PolicyTree::default();
        for (paths, include) in [(included, true), (excluded, false)] {
            for path in paths {
                assert!(tree.decide(&IndexPath::parse(path).unwrap(), include), "{path} twice");
            }
        }
        tree
    }

    fn indexed(tree: &PolicyTree, place: &str) -> bool {
        let steps = place.split('.').filter(|step| !step.is_empty());
        let cursor = steps.fold(tree.cursor(), |cursor, step| match step {
            "[]" => cursor.element(),
            name => cursor.name(name),
        });
        cursor.indexes_scalar()
    }

    #[test]
    fn the_more_precise_path_decides() {
        let tree = tree(&["/*", "/food/ingredients/nutrition/*"], &["/food/ingredients/*", "/x/?"]);
        assert!(indexed(&tree, "a"));
        assert!(indexed(&tree, "food.name"));
        assert!(!indexed(&tree, "food.ingredients.salt"));
        assert!(indexed(&tree, "food.ingredients.nutrition.fat"));
        assert!(!indexed(&tree, "x"));
        assert!(indexed(&tree, "x.y"), "a question mark covers the scalar alone");
    }

    #[test]
    fn arrays_are_a_step_of_their_own() {
        let tree = tree(&["/list/[]/x/?"], &["/*"]);
        assert!(indexed(&tree, "list.[].x"));
        assert!(!indexed(&tree, "list.x"));
        assert!(!indexed(&tree, "list.[].y"));
    }

    #[test]
    fn what_cannot_hold_an_indexed_place_is_not_walked() {
        let tree = tree(&["/a/b/?"], &["/*"]);
        assert!(tree.cursor().indexes_inside());
        assert!(tree.cursor().name("a").indexes_inside());
        assert!(!tree.cursor().name("c").indexes_inside());
        assert!(!PolicyCursor::nothing().name("a").indexes_scalar());
    }

    #[test]
    fn quoted_names_may_hold_anything() {
        let tree = tree(&[r#"/"a/b"/'c"d'/?"#], &["/*", r#"/"_etag"/?"#]);
        assert!(indexed(&tree, r#"a/b.c"d"#));
        assert!(!indexed(&tree, "_etag"));
    }

    #[test]
    fn a_path_that_does_not_end_is_refused_at_its_end() {
        for (path, position) in
            [("/expiration", 11), ("a/?", 0), ("/a//?", 3), ("/*/a/?", 1), ("/\"a/?", 1), ("", 0), ("/a?", 1)]
        {
            let error = IndexPath::parse(path).expect_err(path);
            let place = format!("failed near position '{position}'");
            assert!(error.message.contains(&place), "{path}: {error}");
        }
        assert!(IndexPath::parse(&format!("{}/?", "/a".repeat(SEGMENTS_MAX))).is_ok());
        assert!(IndexPath::parse(&format!("{}/?", "/a".repeat(SEGMENTS_MAX + 1))).is_err());
        assert!(IndexPath::parse("/").unwrap().is_root_subtree());
    }
}
