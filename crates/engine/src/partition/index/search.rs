//! Rows of search indexes: which an item has under a policy, and how two versions of it differ.
//!
//! A shape at a place that a spatial index names has a row for each cell it lies in (`orrery_query::spatial`). A
//! shape of a type that the index does not name is in the cell for everything else, which all queries look into, so
//! that they miss nothing.
//!
//! A text at the path of a full-text index has a row for each of its stems, with the places where it stands and the
//! length of the text, and one row for its length alone. A value that is no text has that row too, and nothing in it.
//!
//! A vector at the path of a vector index has one row: whole under a flat index, in few bits under the others, which
//! ask the item for the rest. Whatever is not as many numbers as the policy says has none, and no likeness either.
//!
//! These rows cost what they cost to write and are not charged: terms are what the walk over values counts.

use std::collections::BTreeMap;

use bytes::Bytes;
use orrery_index::{Cell, Element, Grid, Quantizer};
use orrery_model::{DEPTH_MAX, Kind, PropertyPath, Raw};
use orrery_query::fulltext::places_of;
use orrery_query::spatial;
use orrery_storage::keys;

use super::paths::{self, Paths, ROOT};
use crate::definition::{
    FullTextIndex, IndexingMode, IndexingPolicy, PathEnd, PathStep, SpatialIndex, VectorIndex,
};

/// Rows by key.
pub(super) type SearchRows = BTreeMap<Bytes, Bytes>;

/// What shapes at the places of a spatial index are divided by.
pub(super) fn grid_of(policy: &IndexingPolicy, index: &SpatialIndex) -> Grid {
    match index.bounds {
        _ if !policy.planar => Grid::Sphere,
        Some(bounds) => Grid::Plane(bounds),
        None => Grid::any_plane(),
    }
}

/// How a vector index keeps vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorForm {
    Whole(Element),
    Coded(Quantizer),
}

pub(super) fn form_of(index: &VectorIndex) -> VectorForm {
    match index.kind {
        "flat" => VectorForm::Whole(match index.data_type {
            "float16" => Element::Float16,
            "int8" => Element::Int8,
            "uint8" => Element::Uint8,
            _ => Element::Float32,
        }),
        _ => {
            let bytes = index.code_bytes.map(|bytes| bytes as usize);
            VectorForm::Coded(Quantizer::new(index.dimensions as usize, bytes))
        }
    }
}

/// All rows that a version has. Returns how many bytes they are.
pub(super) fn collect(
    policy: &IndexingPolicy,
    paths: Paths<'_>,
    reference: &[u8],
    body: Raw<'_>,
    to: &mut SearchRows,
) -> usize {
    let mut maker = Maker { policy, paths, reference, bytes: 0 };
    maker.differ(None, Some(body), &mut SearchRows::new(), to);
    maker.bytes
}

/// The rows by which two versions differ: those to take out, and those to put in.
pub(super) fn difference(
    policy: &IndexingPolicy,
    paths: Paths<'_>,
    reference: &[u8],
    old: Option<Raw<'_>>,
    new: Option<Raw<'_>>,
) -> (Vec<Bytes>, SearchRows) {
    let (mut before, mut after) = (SearchRows::new(), SearchRows::new());
    Maker { policy, paths, reference, bytes: 0 }.differ(old, new, &mut before, &mut after);
    let gone = before.keys().filter(|key| !after.contains_key(*key)).cloned().collect();
    after.retain(|key, value| before.get(key) != Some(value));
    (gone, after)
}

impl IndexingPolicy {
    /// Whether there are search indexes at all.
    pub(super) fn searches(&self) -> bool {
        self.mode != IndexingMode::None
            && !(self.spatial.is_empty() && self.full_text.is_empty() && self.vector.is_empty())
    }
}

struct Maker<'w, 'd> {
    policy: &'w IndexingPolicy,
    paths: Paths<'d>,
    reference: &'w [u8],
    bytes: usize,
}

impl Maker<'_, '_> {
    /// Collects what both versions have, except where they cannot differ.
    fn differ(
        &mut self,
        old: Option<Raw<'_>>,
        new: Option<Raw<'_>>,
        before: &mut SearchRows,
        after: &mut SearchRows,
    ) {
        if !self.policy.searches() {
            return;
        }
        for index in &self.policy.spatial {
            if same(anchor(old, index), anchor(new, index)) {
                continue;
            }
            for (version, to) in [(old, &mut *before), (new, &mut *after)] {
                if let Some(body) = version {
                    let steps: Vec<PathStep<'_>> = index.path.steps().collect();
                    self.shapes(index, body, &steps, &mut Vec::new(), to);
                }
            }
        }
        for index in &self.policy.full_text {
            let (was, is) =
                (old.and_then(|body| body.path(&index.path)), new.and_then(|body| body.path(&index.path)));
            if same(was, is) {
                continue;
            }
            for (value, to) in [(was, &mut *before), (is, &mut *after)] {
                if let Some(value) = value {
                    self.text(index, value, to);
                }
            }
        }
        for index in &self.policy.vector {
            let (was, is) =
                (old.and_then(|body| body.path(&index.path)), new.and_then(|body| body.path(&index.path)));
            if same(was, is) {
                continue;
            }
            for (value, to) in [(was, &mut *before), (is, &mut *after)] {
                if let Some(value) = value {
                    self.vector(index, value, to);
                }
            }
        }
    }

    /// Adds the row of a vector.
    fn vector(&mut self, index: &VectorIndex, value: Raw<'_>, to: &mut SearchRows) {
        if !is_vector(value, index.dimensions as usize) {
            return;
        }
        let parts: Option<Vec<f64>> = value.elements().map(|part| Some(part.as_number()?.as_f64())).collect();
        let (Some(parts), Some(number)) = (parts, self.number(&index.path)) else { return };
        let mut row = Vec::new();
        match form_of(index) {
            VectorForm::Whole(element) => {
                orrery_index::encode_vector(&mut row, &parts, element);
                self.row(to, row, |key| keys::index::push_vector_head(key, number));
            }
            VectorForm::Coded(quantizer) => {
                quantizer.encode(&mut row, &parts);
                self.row(to, row, |key| keys::index::push_code_head(key, number));
            }
        }
    }

    /// The number of a path of names, as rows have it.
    fn number(&mut self, path: &PropertyPath) -> Option<u16> {
        let steps = path.segments().iter().map(|name| PathStep::Name(name));
        paths::stored(steps.fold(ROOT, |node, step| self.paths.child(node, step)))
    }

    /// Adds the rows of a text.
    fn text(&mut self, index: &FullTextIndex, value: Raw<'_>, to: &mut SearchRows) {
        let Some(number) = self.number(&index.path) else { return };
        let mut whole = Vec::new();
        if let Some(text) = value.as_str() {
            let (stems, length) = places_of(text, index.language);
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            for (stem, places) in stems {
                let mut row = Vec::with_capacity(1 + 2 * places.len());
                orrery_index::encode_places(&mut row, length, &places);
                self.row(to, row, |key| {
                    keys::index::push_word_head(key, number);
                    orrery_index::encode_stem(key, &stem);
                });
            }
            orrery_index::encode_places(&mut whole, length, &[]);
        }
        self.row(to, whole, |key| keys::index::push_length_head(key, number));
    }

    fn row(&mut self, to: &mut SearchRows, value: Vec<u8>, head: impl FnOnce(&mut Vec<u8>)) {
        let mut key = Vec::with_capacity(keys::index::HEAD_BYTES + 16 + self.reference.len());
        head(&mut key);
        key.extend_from_slice(self.reference);
        self.bytes += key.len() + value.len();
        to.insert(key.into(), value.into());
    }

    /// Looks for shapes from a place on: `steps` are still to be gone, `place` has been.
    fn shapes<'s>(
        &mut self,
        index: &SpatialIndex,
        value: Raw<'s>,
        steps: &[PathStep<'s>],
        place: &mut Vec<PathStep<'s>>,
        to: &mut SearchRows,
    ) {
        if place.len() > DEPTH_MAX {
            return;
        }
        match steps {
            [step @ PathStep::Name(name), rest @ ..] => {
                if let Some(member) = value.get(name) {
                    place.push(*step);
                    self.shapes(index, member, rest, place, to);
                    place.pop();
                }
            }
            [step @ PathStep::Element, rest @ ..] => {
                place.push(*step);
                for element in value.elements() {
                    self.shapes(index, element, rest, place, to);
                }
                place.pop();
            }
            [] => {
                let shape = value.kind() == Kind::Object && self.shape(index, value, place, to);
                if shape || index.path.end() == PathEnd::Scalar {
                    return;
                }
                for (name, member) in value.members() {
                    place.push(PathStep::Name(name));
                    self.shapes(index, member, &[], place, to);
                    place.pop();
                }
                place.push(PathStep::Element);
                for element in value.elements() {
                    self.shapes(index, element, &[], place, to);
                }
                place.pop();
            }
        }
    }

    /// Adds the rows of a shape. Returns whether it is one.
    fn shape(
        &mut self,
        index: &SpatialIndex,
        value: Raw<'_>,
        place: &[PathStep<'_>],
        to: &mut SearchRows,
    ) -> bool {
        let Some((kind, mut cells)) = spatial::cells_of(value, &grid_of(self.policy, index)) else {
            return false;
        };
        // Of several indexes that name a place the first has its rows.
        let first = self.policy.spatial_at(place.iter().copied());
        if !first.is_some_and(|first| std::ptr::eq(first, index)) {
            return true;
        }
        if !index.types.contains(&kind) {
            cells = vec![Cell::ELSEWHERE];
        }
        let path = place.iter().fold(ROOT, |node, step| self.paths.child(node, *step));
        let Some(path) = paths::stored(path) else { return true };
        for cell in cells {
            self.row(to, Vec::new(), |key| {
                keys::index::push_cell_head(key, path);
                key.extend_from_slice(&cell.to_bytes());
            });
        }
        true
    }
}

/// Whether a value is one that a vector index has a row for.
pub(super) fn is_vector(value: Raw<'_>, dimensions: usize) -> bool {
    value.kind() == Kind::Array
        && value.len() == dimensions
        && value.elements().all(|part| part.as_number().is_some())
}

/// The value below which all shapes of an index lie.
fn anchor<'d>(body: Option<Raw<'d>>, index: &SpatialIndex) -> Option<Raw<'d>> {
    let mut value = body?;
    for step in index.path.steps() {
        match step {
            PathStep::Name(name) => value = value.get(name)?,
            PathStep::Element => break,
        }
    }
    Some(value)
}

fn same(old: Option<Raw<'_>>, new: Option<Raw<'_>>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => old.same_bytes(new),
        (None, None) => true,
        _ => false,
    }
}
