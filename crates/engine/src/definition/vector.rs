//! Vectors: which paths hold embeddings, and how they are indexed.
//!
//! The embedding policy says what a vector is (type, dimensions, distance); a vector index must name one of its
//! paths. On a replace both may grow, but what exists stays: stored vectors were written against it.

use orrery_model::PropertyPath;
use serde_json::{Map, Value};

use super::json::{
    array_member, integer_member, invalid_input, member, object, object_member, one_of, required_text,
    text_member,
};
use crate::error::{Error, Result};

/// Most dimensions of a vector.
pub const VECTOR_DIMENSIONS_MAX: i64 = 4_096;
/// Most dimensions of a vector under a flat index.
pub const FLAT_DIMENSIONS_MAX: i64 = 505;
/// Largest quantized form of a vector.
const QUANTIZATION_BYTES_MAX: i64 = 512;
const SEARCH_LIST_SIZES: std::ops::RangeInclusive<i64> = 25..=500;
const SHARD_PATHS_MAX: usize = 1;

#[derive(Debug, Clone, PartialEq)]
pub struct VectorEmbedding {
    pub path: PropertyPath,
    pub data_type: &'static str,
    pub dimensions: u32,
    pub distance_function: &'static str,
    json: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct VectorIndex {
    pub path: PropertyPath,
    pub kind: &'static str,
    pub data_type: &'static str,
    pub dimensions: u32,
    /// `quantizationByteSize`, where the policy names it.
    pub code_bytes: Option<u32>,
    pub distance_function: &'static str,
    /// `indexingSearchListSize`, where the policy names it.
    pub build_list: Option<u32>,
    json: Value,
}

/// Reads `vectorEmbeddingPolicy`; what it holds is echoed as it came.
pub(super) fn parse_embeddings(
    from: Option<&Map<String, Value>>,
) -> Result<(Vec<VectorEmbedding>, Option<Value>)> {
    let Some(from) = from else { return Ok((Vec::new(), None)) };
    let mut embeddings: Vec<VectorEmbedding> = Vec::new();
    let mut canonical = Vec::new();
    for entry in array_member(from, "vectorEmbeddings")?.unwrap_or(&Vec::new()) {
        let embedding = embedding(object(entry)?)?;
        if embeddings.iter().any(|other| other.path == embedding.path) {
            let path = &embedding.path;
            return Err(Error::bad_request(format!(
                "The Vector Embedding Policy has a duplicate Path:{path}."
            )));
        }
        canonical.push(embedding.json.clone());
        embeddings.push(embedding);
    }
    Ok((embeddings, Some(serde_json::json!({ "vectorEmbeddings": canonical }))))
}

fn embedding(from: &Map<String, Value>) -> Result<VectorEmbedding> {
    let text = required_text(from, "path")?;
    let path = PropertyPath::parse(text).map_err(|_| {
        Error::bad_request(format!("The Vector Embedding Policy has an invalid Path:{text}."))
    })?;
    let name = required_text(from, "dataType")?;
    let data_type = one_of(name, &["float32", "float16", "int8", "uint8"]).ok_or_else(|| {
        Error::bad_request(format!("The Vector Embedding Policy has an invalid DataType:{name}."))
    })?;
    let dimensions = integer_member(from, "dimensions")?.ok_or_else(invalid_input)?;
    if dimensions > VECTOR_DIMENSIONS_MAX {
        return Err(Error::bad_request(format!(
            "The Vector Embedding Policy has Dimensions:{dimensions} which is more than the maximum supported value: \
             {VECTOR_DIMENSIONS_MAX}."
        )));
    }
    let too_few = || {
        Error::bad_request(format!(
            "The Vector Embedding Policy has Dimensions:{dimensions} which is less than the minimum supported value: 1."
        ))
    };
    let dimensions = u32::try_from(dimensions).ok().filter(|count| *count > 0).ok_or_else(too_few)?;
    let name = required_text(from, "distanceFunction")?;
    let distance_function = one_of(name, &["euclidean", "cosine", "dotproduct"]).ok_or_else(|| {
        Error::bad_request(format!("The Vector Embedding Policy has an invalid DistanceFunction:{name}."))
    })?;
    if let Some(source) = object_member(from, "embeddingSource")? {
        check_source(source)?;
    }
    let members = ["path", "dataType", "dimensions", "distanceFunction", "embeddingSource"];
    Ok(VectorEmbedding { path, data_type, dimensions, distance_function, json: keep(from, &members) })
}

/// Where embeddings come from when the service makes them itself; kept and echoed.
fn check_source(from: &Map<String, Value>) -> Result<()> {
    let paths =
        array_member(from, "sourcePaths")?.filter(|paths| !paths.is_empty()).ok_or_else(invalid_input)?;
    if !paths.iter().all(|path| path.as_str().is_some_and(|path| path.starts_with('/'))) {
        return Err(invalid_input());
    }
    required_text(from, "endpoint")?;
    required_text(from, "deploymentName")?;
    match text_member(from, "authType")? {
        None | Some("ApiKey" | "Entra") => Ok(()),
        Some(_) => Err(Error::bad_request(
            "The auth type provided in the embedding source of vector policy is invalid.",
        )),
    }
}

/// Reads `vectorIndexes` of the indexing policy.
pub(super) fn parse_indexes(
    from: Option<&Vec<Value>>,
    embeddings: &[VectorEmbedding],
    json: &mut Map<String, Value>,
) -> Result<Vec<VectorIndex>> {
    let Some(from) = from else { return Ok(Vec::new()) };
    let mut indexes: Vec<VectorIndex> = Vec::with_capacity(from.len());
    for entry in from {
        let index = index(object(entry)?, embeddings)?;
        if indexes.iter().any(|other| other.path == index.path) {
            let path = &index.path;
            return Err(Error::bad_request(format!(
                "The Vector Indexing Policy has a duplicate path::{path}."
            )));
        }
        indexes.push(index);
    }
    let canonical: Vec<Value> = indexes.iter().map(|index| index.json.clone()).collect();
    json.insert("vectorIndexes".into(), canonical.into());
    Ok(indexes)
}

fn index(from: &Map<String, Value>, embeddings: &[VectorEmbedding]) -> Result<VectorIndex> {
    let text = required_text(from, "path")?;
    let unmatched = || {
        Error::bad_request(format!(
            "The Vector Indexing Policy's path::{text} not matching in Embedding's path."
        ))
    };
    let path = PropertyPath::parse(text).map_err(|_| unmatched())?;
    let embedding = embeddings.iter().find(|embedding| embedding.path == path).ok_or_else(unmatched)?;
    let dimensions = i64::from(embedding.dimensions);
    let name = required_text(from, "type")?;
    let kind = one_of(name, &["flat", "quantizedFlat", "diskANN"]).ok_or_else(|| {
        Error::bad_request(format!("The Vector Indexing Policy's Index Type::{name} is invalid."))
    })?;
    if kind == "flat" && dimensions > FLAT_DIMENSIONS_MAX {
        return Err(Error::bad_request(format!(
            "The Vector Embedding Policy has Dimensions:{dimensions} which is more than the maximum supported value for \
             Index Type::flat: {FLAT_DIMENSIONS_MAX}."
        )));
    }
    if let Some(name) = text_member(from, "quantizerType")? {
        one_of(name, &["product", "spherical"]).ok_or_else(invalid_input)?;
    }
    in_range(
        from,
        "quantizationByteSize",
        "QuantizationByteSize",
        1..=dimensions.min(QUANTIZATION_BYTES_MAX),
    )?;
    in_range(from, "indexingSearchListSize", "IndexingSearchListSize", SEARCH_LIST_SIZES)?;
    if let Some(shards) = array_member(from, "vectorIndexShardKey")? {
        check_shards(shards)?;
    }
    let members = [
        "path",
        "type",
        "quantizerType",
        "quantizationByteSize",
        "vectorIndexShardKey",
        "indexingSearchListSize",
    ];
    let code_bytes =
        integer_member(from, "quantizationByteSize")?.and_then(|bytes| u32::try_from(bytes).ok());
    let build_list =
        integer_member(from, "indexingSearchListSize")?.and_then(|list| u32::try_from(list).ok());
    Ok(VectorIndex {
        path,
        kind,
        data_type: embedding.data_type,
        dimensions: embedding.dimensions,
        code_bytes,
        distance_function: embedding.distance_function,
        build_list,
        json: keep(from, &members),
    })
}

fn in_range(
    from: &Map<String, Value>,
    member: &str,
    name: &str,
    range: std::ops::RangeInclusive<i64>,
) -> Result<()> {
    match integer_member(from, member)? {
        Some(value) if !range.contains(&value) => Err(Error::bad_request(format!(
            "The Vector Indexing Policy parameter {name} value :: {value} is out of range. The allowed range is between {} and {}.",
            range.start(),
            range.end()
        ))),
        _ => Ok(()),
    }
}

fn check_shards(shards: &[Value]) -> Result<()> {
    if shards.len() > SHARD_PATHS_MAX {
        return Err(Error::bad_request(format!(
            "The number of shard paths defined in the Vector Indexing Policy: {} exceeds the maximum: {SHARD_PATHS_MAX}.",
            shards.len()
        )));
    }
    for shard in shards {
        let path = shard.as_str().ok_or_else(invalid_input)?;
        PropertyPath::parse(path).map_err(|_| {
            Error::bad_request(format!("The Vector Indexing Policy has an invalid Shard Path: {path}."))
        })?;
    }
    Ok(())
}

/// The named members, in the order in which they came.
fn keep(from: &Map<String, Value>, members: &[&str]) -> Value {
    let known = |name: &str| members.contains(&name) && member(from, name).is_some();
    Value::Object(from.iter().filter(|(name, _)| known(name)).map(|(n, v)| (n.clone(), v.clone())).collect())
}

/// What a replace must leave as it is.
pub(super) fn check_replace(
    old: (&[VectorEmbedding], &[VectorIndex]),
    new: (&[VectorEmbedding], &[VectorIndex]),
) -> Result<()> {
    if !old.0.iter().all(|embedding| new.0.contains(embedding)) {
        return Err(Error::bad_request(
            "The Vector Embedding Policy cannot be changed: Paths in existing embedding policy cannot be modified in \
             Collection Replace.",
        ));
    }
    if !old.1.iter().all(|index| new.1.contains(index)) {
        return Err(Error::bad_request(
            "The Vector Indexing Policy cannot be changed: Paths in existing vector indexing policy cannot be modified in \
             Collection Replace.",
        ));
    }
    Ok(())
}
