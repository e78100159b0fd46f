//! The indexing policy: what of an item is indexed, and how.
//!
//! Defaults, as the service fills them in: mode consistent, automatic, `/*` included, `/"_etag"/?` excluded. The old
//! per-path `indexes` (hash and range kinds with precisions) are accepted and forgotten, as the service does. The root
//! must be decided, by including or by excluding it.

use serde_json::{Map, Value, json};

use super::full_text::{self, FullTextIndex, FullTextPolicy};
use super::index_path::{IndexPath, PathStep, PolicyCursor, PolicyTree, refused};
use super::json::{
    array_member, bool_member, invalid_input, member, object, object_member, one_of, required_text,
    text_member,
};
use super::policies;
use super::vector::{self, VectorEmbedding, VectorIndex};
use crate::error::{Error, Result};
use orrery_model::PropertyPath;

/// Most paths that may be included or excluded.
pub const INDEX_PATHS_MAX: usize = 1_500;
/// Most composite indexes of a container.
pub const COMPOSITE_INDEXES_MAX: usize = 100;
/// Most paths of one composite index.
pub const COMPOSITE_PATHS_MAX: usize = 8;
/// Most spatial indexes of a container.
pub const SPATIAL_INDEXES_MAX: usize = 100;

const ETAG_PATH: &str = "/\"_etag\"/?";
const SPATIAL_TYPES: [&str; 4] = ["Point", "LineString", "Polygon", "MultiPolygon"];

/// The member beside a stored policy that says how its texts were cut into words.
pub(crate) const TEXT_ANALYSER: &str = "textAnalyser";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexingMode {
    Consistent,
    /// Accepted for old clients; indexed like `Consistent`, which no client can tell from being quick.
    Lazy,
    None,
}

#[derive(Debug, Clone, PartialEq)]
pub struct IndexingPolicy {
    pub mode: IndexingMode,
    pub automatic: bool,
    pub composite: Vec<Vec<CompositePath>>,
    pub spatial: Vec<SpatialIndex>,
    /// Coordinates are planar (`Geometry`), not on the earth.
    pub planar: bool,
    pub vector: Vec<VectorIndex>,
    pub full_text: Vec<FullTextIndex>,
    tree: PolicyTree,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompositePath {
    pub path: PropertyPath,
    pub descending: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SpatialIndex {
    pub path: IndexPath,
    pub types: Vec<&'static str>,
    /// The part of the plane that shapes are expected in: left, bottom, right, top.
    pub bounds: Option<[f64; 4]>,
}

impl IndexingPolicy {
    /// The root of an item, from which its places are walked.
    pub fn cursor(&self) -> PolicyCursor<'_> {
        match self.mode {
            IndexingMode::None => PolicyCursor::nothing(),
            IndexingMode::Consistent | IndexingMode::Lazy => self.tree.cursor(),
        }
    }

    /// Reads a policy that stands together with the other policies that its indexes rest on.
    pub(crate) fn parse_rows(from: &Map<String, Value>) -> Result<IndexingPolicy> {
        let (embeddings, _) = vector::parse_embeddings(object_member(from, "vectorEmbeddingPolicy")?)?;
        let full_text = full_text::parse(object_member(from, "fullTextPolicy")?)?;
        // Rows from before there were languages have English stems, whatever the policy said.
        let languages = from.get(TEXT_ANALYSER).and_then(Value::as_u64).is_some_and(|version| version >= 2);
        let full_text = full_text.map(|(policy, _)| if languages { policy } else { policy.all_english() });
        let planar = is_planar(&policies::geospatial(from)?);
        Ok(parse(Some(from), &embeddings, full_text.as_ref(), planar)?.0)
    }

    /// A plane has no edges of its own, the globe needs no others: indexes of shapes must have bounds on the one and
    /// none on the other.
    pub(super) fn check_bounds(&self) -> Result<()> {
        if self.spatial.iter().all(|index| index.bounds.is_some() == self.planar) {
            return Ok(());
        }
        let (what, space) = if self.planar { ("lacks", "Geometry") } else { ("has", "Geography") };
        Err(Error::bad_request(format!(
            "A spatial index {what} a boundingBox, and the type of the geospatialConfig is {space}. Specify a \
             boundingBox for every spatial index of a container of type Geometry, and for none of a container of type \
             Geography."
        )))
    }

    /// Whether the index rows are the same under both policies.
    pub(crate) fn makes_rows_of(&self, other: &IndexingPolicy) -> bool {
        match (self.mode, other.mode) {
            (IndexingMode::None, IndexingMode::None) => true,
            (IndexingMode::None, _) | (_, IndexingMode::None) => false,
            _ => {
                self.tree == other.tree
                    && self.composite == other.composite
                    && self.spatial == other.spatial
                    && self.full_text == other.full_text
                    && self.vector == other.vector
                    && (self.spatial.is_empty() || self.planar == other.planar)
            }
        }
    }

    /// The spatial index that a place belongs to.
    pub fn spatial_at<'s>(&self, steps: impl Iterator<Item = PathStep<'s>> + Clone) -> Option<&SpatialIndex> {
        match self.mode {
            IndexingMode::None => None,
            _ => self.spatial.iter().find(|index| index.path.covers(steps.clone())),
        }
    }

    /// Whether the scalar at a path of names is indexed.
    pub fn indexes(&self, path: &PropertyPath) -> bool {
        path.segments().iter().fold(self.cursor(), |cursor, name| cursor.name(name)).indexes_scalar()
    }
}

/// Reads a policy and returns it with its canonical JSON.
pub(super) fn parse(
    from: Option<&Map<String, Value>>,
    embeddings: &[VectorEmbedding],
    full_text_policy: Option<&FullTextPolicy>,
    planar: bool,
) -> Result<(IndexingPolicy, Value)> {
    let nothing = Map::new();
    let from = from.unwrap_or(&nothing);
    let mode = mode(text_member(from, "indexingMode")?.unwrap_or("consistent"))?;
    let automatic = bool_member(from, "automatic")?.unwrap_or(mode != IndexingMode::None);
    let mut json = Map::new();
    json.insert("indexingMode".into(), mode_name(mode).into());
    json.insert("automatic".into(), automatic.into());

    let mut tree = PolicyTree::default();
    let (included, excluded) = match mode {
        // Nothing is indexed, so the service keeps no paths either.
        IndexingMode::None => (Vec::new(), Vec::new()),
        IndexingMode::Consistent | IndexingMode::Lazy => paths(from, &mut tree)?,
    };
    json.insert("includedPaths".into(), included.into());
    json.insert("excludedPaths".into(), excluded.into());

    let composite = composite(array_member(from, "compositeIndexes")?, &mut json)?;
    let spatial = spatial(array_member(from, "spatialIndexes")?, &mut json)?;
    let vector = vector::parse_indexes(array_member(from, "vectorIndexes")?, embeddings, &mut json)?;
    let full_text =
        full_text::parse_indexes(array_member(from, "fullTextIndexes")?, full_text_policy, &mut json)?;
    let policy = IndexingPolicy { mode, automatic, composite, spatial, planar, vector, full_text, tree };
    Ok((policy, Value::Object(json)))
}

/// Whether a canonical `geospatialConfig` is that of a plane.
pub(super) fn is_planar(config: &Value) -> bool {
    config["type"] == "Geometry"
}

fn mode(name: &str) -> Result<IndexingMode> {
    match one_of(name, &["consistent", "lazy", "none"]) {
        Some("consistent") => Ok(IndexingMode::Consistent),
        Some("lazy") => Ok(IndexingMode::Lazy),
        Some("none") => Ok(IndexingMode::None),
        _ => Err(invalid_input()),
    }
}

fn mode_name(mode: IndexingMode) -> &'static str {
    match mode {
        IndexingMode::Consistent => "consistent",
        IndexingMode::Lazy => "lazy",
        IndexingMode::None => "none",
    }
}

/// Reads included and excluded paths into the tree; returns their canonical JSON.
fn paths(from: &Map<String, Value>, tree: &mut PolicyTree) -> Result<(Vec<Value>, Vec<Value>)> {
    let mut root_decided = false;
    let mut etag_decided = false;
    let mut read = |name: &str, include: bool| -> Result<Option<Vec<Value>>> {
        let Some(entries) = array_member(from, name)? else { return Ok(None) };
        if entries.len() > INDEX_PATHS_MAX {
            return Err(Error::bad_request(format!(
                "The indexing policy has {} paths in '{name}'; a maximum of {INDEX_PATHS_MAX} is allowed.",
                entries.len()
            )));
        }
        let mut json = Vec::with_capacity(entries.len());
        for entry in entries {
            let text = required_text(object(entry)?, "path")?;
            let path = IndexPath::parse(text)?;
            if !tree.decide(&path, include) {
                return Err(Error::bad_request(format!(
                    "The indexing path '{text}' is specified more than once. Remove the duplicate path."
                )));
            }
            root_decided |= path.is_root_subtree();
            etag_decided |= path.is_top_level_scalar("_etag");
            json.push(json!({ "path": if path.is_root_subtree() { "/*" } else { text } }));
        }
        Ok(Some(json))
    };
    let included = read("includedPaths", true)?;
    let mut excluded = read("excludedPaths", false)?.unwrap_or_default();

    let included = match included {
        Some(included) if root_decided => included,
        None if root_decided => Vec::new(),
        None => {
            tree.decide(&IndexPath::parse("/*")?, true);
            vec![json!({ "path": "/*" })]
        }
        Some(included) if included.is_empty() && excluded.is_empty() => {
            tree.decide(&IndexPath::parse("/*")?, true);
            vec![json!({ "path": "/*" })]
        }
        Some(_) => {
            return Err(Error::bad_request(
                "The special mandatory indexing path \"/\" is not provided in any of the path type sets. Please provide such \
                 path in one of the sets.",
            ));
        }
    };
    if !etag_decided {
        tree.decide(&IndexPath::parse(ETAG_PATH)?, false);
        excluded.push(json!({ "path": ETAG_PATH }));
    }
    Ok((included, excluded))
}

fn composite(from: Option<&Vec<Value>>, json: &mut Map<String, Value>) -> Result<Vec<Vec<CompositePath>>> {
    let Some(from) = from else { return Ok(Vec::new()) };
    if from.len() > COMPOSITE_INDEXES_MAX {
        return Err(Error::bad_request(format!(
            "The indexing policy has {} composite indexes; a maximum of {COMPOSITE_INDEXES_MAX} is allowed.",
            from.len()
        )));
    }
    let mut indexes = Vec::with_capacity(from.len());
    let mut canonical = Vec::with_capacity(from.len());
    for entry in from {
        let entries = entry.as_array().ok_or_else(invalid_input)?;
        if !(2..=COMPOSITE_PATHS_MAX).contains(&entries.len()) {
            return Err(Error::bad_request(format!(
                "The indexing policy has a composite index with {} paths; it must have from 2 to {COMPOSITE_PATHS_MAX}.",
                entries.len()
            )));
        }
        let mut index: Vec<CompositePath> = Vec::with_capacity(entries.len());
        let mut index_json = Vec::with_capacity(entries.len());
        for entry in entries {
            let entry = object(entry)?;
            let text = required_text(entry, "path")?;
            let path = composite_path(text)?;
            let order = text_member(entry, "order")?.unwrap_or("ascending");
            let order = one_of(order, &["ascending", "descending"]).ok_or_else(invalid_input)?;
            if index.iter().any(|other| other.path == path) {
                return Err(Error::bad_request(format!(
                    "The path '{text}' is specified more than once in a composite index. Remove the duplicate path."
                )));
            }
            index.push(CompositePath { path, descending: order == "descending" });
            index_json.push(json!({ "path": text, "order": order }));
        }
        indexes.push(index);
        canonical.push(Value::Array(index_json));
    }
    json.insert("compositeIndexes".into(), canonical.into());
    Ok(indexes)
}

/// A composite path has no ending of its own; one that is written is taken away.
fn composite_path(text: &str) -> Result<PropertyPath> {
    let names = text.strip_suffix("/?").unwrap_or(text);
    let path = PropertyPath::parse(names).map_err(|error| refused(text, error.offset))?;
    match path.segments().iter().any(|segment| matches!(segment.as_str(), "*" | "[]")) {
        true => Err(refused(text, text.find(['*', '[']).unwrap_or_default())),
        false => Ok(path),
    }
}

fn spatial(from: Option<&Vec<Value>>, json: &mut Map<String, Value>) -> Result<Vec<SpatialIndex>> {
    let Some(from) = from else { return Ok(Vec::new()) };
    if from.len() > SPATIAL_INDEXES_MAX {
        return Err(Error::bad_request(format!(
            "The indexing policy has {} spatial indexes; a maximum of {SPATIAL_INDEXES_MAX} is allowed.",
            from.len()
        )));
    }
    let mut indexes = Vec::with_capacity(from.len());
    let mut canonical = Vec::with_capacity(from.len());
    for entry in from {
        let entry = object(entry)?;
        let text = required_text(entry, "path")?;
        let path = IndexPath::parse(text)?;
        let types: Vec<&'static str> = match array_member(entry, "types")? {
            Some(types) => types
                .iter()
                .map(|name| one_of(name.as_str()?, &SPATIAL_TYPES))
                .collect::<Option<_>>()
                .ok_or_else(invalid_input)?,
            None => SPATIAL_TYPES.to_vec(),
        };
        let mut index = json!({ "path": text, "types": types });
        let mut bounds = None;
        if let Some(from) = member(entry, "boundingBox") {
            let (sides, json) = bounding_box(from)?;
            index["boundingBox"] = json;
            bounds = Some(sides);
        }
        canonical.push(index);
        indexes.push(SpatialIndex { path, types, bounds });
    }
    json.insert("spatialIndexes".into(), canonical.into());
    Ok(indexes)
}

/// The part of the plane that a geometry index covers.
fn bounding_box(from: &Value) -> Result<([f64; 4], Value)> {
    let from = object(from)?;
    let side = |name: &str| member(from, name).and_then(Value::as_f64).ok_or_else(invalid_input);
    let (left, bottom, right, top) = (side("xmin")?, side("ymin")?, side("xmax")?, side("ymax")?);
    if left > right || bottom > top {
        return Err(Error::bad_request(
            "The bounding box of a spatial index must have its minima below its maxima.",
        ));
    }
    let keep = |name: &str| from.get(name).cloned().unwrap_or_default();
    let json =
        json!({ "xmin": keep("xmin"), "ymin": keep("ymin"), "xmax": keep("xmax"), "ymax": keep("ymax") });
    Ok(([left, bottom, right, top], json))
}
