//! What a container is: its definition, parsed, validated and filled with defaults.
//!
//! [`ContainerDefinition::parse`] takes what a client sent and answers with the service's messages where it is wrong.
//! The result carries two forms: the parsed policies that the engine works with, and `json`, the canonical object that
//! is stored and echoed, in the service's order of members. Unknown members are dropped, as the service does.
//!
//! ```
//! use orrery_engine::{ContainerDefinition, KeyKinds};
//! let sent = serde_json::json!({ "partitionKey": { "paths": ["/pk"] }, "id": "c", "colour": "red" });
//! let definition = ContainerDefinition::parse(&sent, KeyKinds::All).unwrap();
//! assert_eq!(definition.json["indexingPolicy"]["includedPaths"][0]["path"], "/*");
//! assert_eq!(definition.json["partitionKey"]["kind"], "Hash");
//! assert!(definition.json.get("colour").is_none());
//! ```

mod computed;
mod full_text;
mod index_path;
mod indexing;
mod json;
pub(crate) mod names;
mod partition_key;
mod policies;
mod query_env;
mod replace;
mod rules;
mod vector;

use orrery_model::{PartitionKeyDefinition, PropertyPath};
use serde_json::{Map, Value};

pub use computed::{COMPUTED_PROPERTIES_MAX, ComputedProperty};
pub use full_text::{FullTextIndex, FullTextPath, FullTextPolicy};
pub use index_path::{IndexPath, PathEnd, PathStep, PolicyCursor};
pub(crate) use indexing::TEXT_ANALYSER;
pub use indexing::{
    COMPOSITE_INDEXES_MAX, COMPOSITE_PATHS_MAX, CompositePath, INDEX_PATHS_MAX, IndexingMode, IndexingPolicy,
    SPATIAL_INDEXES_MAX, SpatialIndex,
};
pub use names::NAME_CHARACTERS_MAX;
pub use partition_key::{KeyKinds, PARTITION_KEY_PATHS_MAX};
pub use policies::{UNIQUE_KEY_PATHS_MAX, UNIQUE_KEYS_MAX};
pub use rules::{ITEM_RULES_MAX, ItemRule, ItemRules, LARGE_ITEM_BYTES_MAX};
pub use vector::{FLAT_DIMENSIONS_MAX, VECTOR_DIMENSIONS_MAX, VectorEmbedding, VectorIndex};

use crate::error::{Error, Result};

/// The member of a definition that holds the rules of apis.
pub(crate) const RULES: &str = "itemRules";

/// A container's definition, valid and complete.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerDefinition {
    pub id: String,
    pub partition_key: PartitionKeyDefinition,
    /// Seconds; -1: on, without a default; `None`: items do not expire.
    pub default_ttl: Option<i32>,
    pub unique_keys: Vec<Vec<PropertyPath>>,
    pub indexing: IndexingPolicy,
    pub computed_properties: Vec<ComputedProperty>,
    pub vector_embeddings: Vec<VectorEmbedding>,
    pub full_text: Option<FullTextPolicy>,
    /// What apis want of the items; `None` leaves what is there.
    pub rules: Option<ItemRules>,
    /// The canonical object, as it is stored and echoed.
    pub json: Value,
}

impl ContainerDefinition {
    /// Reads what a client sent that knows these kinds of keys.
    pub fn parse(json: &Value, kinds: KeyKinds) -> Result<ContainerDefinition> {
        let definition = ContainerDefinition::read(json, kinds)?;
        partition_key::check_signs(&definition.json["partitionKey"])?;
        definition.indexing.check_bounds()?;
        let encryption = definition.json.get("clientEncryptionPolicy");
        policies::check_client_encryption(encryption, &definition.partition_key)?;
        Ok(definition)
    }

    /// By the rules that definitions have always had to keep.
    fn read(json: &Value, kinds: KeyKinds) -> Result<ContainerDefinition> {
        let from = json::object(json)?;
        let id = match json::member(from, "id") {
            Some(id) => id.as_str().ok_or_else(json::invalid_input)?,
            None => {
                return Err(Error::bad_request(
                    "The input content is invalid because the required properties - 'id; ' - are missing",
                ));
            }
        };
        names::check(id)?;
        let (partition_key, partition_key_json) =
            partition_key::parse(json::object_member(from, "partitionKey")?, kinds)?;
        let (vector_embeddings, embeddings_json) =
            vector::parse_embeddings(json::object_member(from, "vectorEmbeddingPolicy")?)?;
        let (full_text, full_text_json) =
            full_text::parse(json::object_member(from, "fullTextPolicy")?)?.unzip();
        let geospatial = policies::geospatial(from)?;
        let (indexing, indexing_json) = indexing::parse(
            json::object_member(from, "indexingPolicy")?,
            &vector_embeddings,
            full_text.as_ref(),
            indexing::is_planar(&geospatial),
        )?;
        let default_ttl = policies::default_ttl(from)?;
        let (unique_keys, unique_json) = policies::unique_keys(from)?;
        let rules = rules::parse(from)?;
        let computed = json::member(from, "computedProperties").map(computed::array).transpose()?;
        let (computed_properties, computed_json) = computed::parse(computed)?;

        // The service's order of members; what is absent has no member.
        let members = [
            ("id", Some(id.into())),
            ("indexingPolicy", Some(indexing_json)),
            ("partitionKey", Some(partition_key_json)),
            ("defaultTtl", default_ttl.map(Value::from)),
            ("uniqueKeyPolicy", unique_json),
            ("conflictResolutionPolicy", Some(policies::conflict_resolution(from)?)),
            ("geospatialConfig", Some(geospatial)),
            ("analyticalStorageTtl", policies::analytical_ttl(from)?.map(Value::from)),
            ("computedProperties", computed_json),
            ("vectorEmbeddingPolicy", embeddings_json),
            ("fullTextPolicy", full_text_json),
            ("changeFeedPolicy", policies::change_feed(from)?),
            ("clientEncryptionPolicy", policies::client_encryption(from)?),
            ("materializedViewDefinition", policies::opaque(from, "materializedViewDefinition")?),
            ("globalSecondaryIndexDefinition", policies::opaque(from, "globalSecondaryIndexDefinition")?),
            ("dataMaskingPolicy", policies::opaque(from, "dataMaskingPolicy")?),
            (RULES, rules.as_ref().map(ItemRules::to_json)),
        ];
        let canonical: Map<String, Value> =
            members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        Ok(ContainerDefinition {
            id: id.to_owned(),
            partition_key,
            default_ttl,
            unique_keys,
            indexing,
            computed_properties,
            vector_embeddings,
            full_text,
            rules,
            json: Value::Object(canonical),
        })
    }

    /// Reads a definition back from the catalog. It was valid when it was written, so rules that came later
    /// are for `parse` alone, or accounts that hold the old form could not be opened.
    pub(crate) fn parse_stored(text: &str) -> Result<ContainerDefinition> {
        let json: Value = serde_json::from_str(text)
            .map_err(|error| Error::internal("A stored definition is no JSON.").caused_by(error))?;
        ContainerDefinition::read(&json, KeyKinds::All)
    }
}
