//! What the policies of a container mean to a statement: computed properties, vectors, languages, geometry, composite
//! indexes.

use orrery_query::{ComputedProperty, DistanceFunction, Language, QueryEnv};
use orrery_sql::Direction;

use super::ContainerDefinition;

impl ContainerDefinition {
    /// The policies, without clock, dice, functions and budget, which are the request's.
    pub fn query_env(&self) -> QueryEnv {
        let computed = self.computed_properties.iter().filter_map(|property| {
            // Checked when the container was created; one that no longer parses is as if it were not there.
            let query = orrery_sql::parse_query(&property.query).ok()?;
            Some(ComputedProperty { name: property.name.clone(), query })
        });
        let vectors = self.vector_embeddings.iter().map(|embedding| {
            let function = DistanceFunction::parse(embedding.distance_function).unwrap_or_default();
            (embedding.path.clone(), function)
        });
        let texts = self.full_text.as_ref();
        let languages =
            texts.iter().flat_map(|policy| &policy.paths).map(|text| (text.path.clone(), text.language));
        let composite = self.indexing.composite.iter().map(|index| {
            let paths = index.iter().map(|part| {
                let direction = if part.descending { Direction::Descending } else { Direction::Ascending };
                (part.path.clone(), direction)
            });
            paths.collect()
        });
        QueryEnv {
            computed_properties: computed.collect(),
            vectors: vectors.collect(),
            language: texts.map_or_else(Language::default, |policy| policy.default_language),
            languages: languages.collect(),
            geometry: self.json["geospatialConfig"]["type"] == "Geometry",
            composite_indexes: Some(composite.collect()),
            ..QueryEnv::default()
        }
    }
}
