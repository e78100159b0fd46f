//! What a query sees besides its text: the clock, the container's policies, and the system properties of each item.

use orrery_engine::Item;
use orrery_model::Value;
use orrery_query::{ComputedProperty, DistanceFunction, QueryEnv, RowView};
use orrery_sql::Direction;

use crate::item_json::write_self;
use crate::rid::{ContainerRid, ascii};
use crate::service::{Context, Target};

/// 100-nanosecond steps in a millisecond.
const TICKS_PER_MS: u64 = 10_000;

/// The clock and the dice; enough for queries over resources.
pub fn bare(context: &Context<'_>) -> QueryEnv {
    let env = context.account().env();
    let now_ticks = i64::try_from(env.now_ms().saturating_mul(TICKS_PER_MS)).unwrap_or(i64::MAX);
    QueryEnv { now_ticks, random_seed: env.random_u64(), ..QueryEnv::default() }
}

/// The same with the policies of a container.
pub fn of_container(context: &Context<'_>, target: &Target) -> QueryEnv {
    let definition = target.container.definition();
    let computed = definition.computed_properties.iter().filter_map(|property| {
        // Checked when the container was created; one that no longer parses is as if it were not there.
        let query = orrery_sql::parse_query(&property.query).ok()?;
        Some(ComputedProperty { name: property.name.clone(), query })
    });
    let vectors = definition.vector_embeddings.iter().map(|embedding| {
        let function = DistanceFunction::parse(embedding.distance_function).unwrap_or_default();
        (embedding.path.clone(), function)
    });
    let composite = definition.indexing.composite.iter().map(|index| {
        let paths = index.iter().map(|part| {
            let direction = if part.descending { Direction::Descending } else { Direction::Ascending };
            (part.path.clone(), direction)
        });
        paths.collect()
    });
    QueryEnv {
        computed_properties: computed.collect(),
        vectors: vectors.collect(),
        geometry: definition.json["geospatialConfig"]["type"] == "Geometry",
        composite_indexes: Some(composite.collect()),
        ..bare(context)
    }
}

/// Calls `use_row` with an item and its system properties, in the order in which they are printed.
pub fn with_row<T>(rid: &ContainerRid, item: &Item, use_row: impl FnOnce(RowView<'_>) -> T) -> T {
    let mut self_link = Vec::with_capacity(80);
    write_self(&mut self_link, rid, item.number);
    let system = [
        ("_rid", Value::String(ascii(&rid.item(item.number)).to_owned())),
        ("_self", Value::String(ascii(&self_link).to_owned())),
        ("_etag", Value::String(item.etag.to_string())),
        ("_attachments", Value::String("attachments/".to_owned())),
        ("_ts", Value::Number(orrery_model::Number::Int(i64::from(item.ts)))),
    ];
    use_row(RowView { document: item.body(), system: &system, appended: usize::from(item.late_members) })
}
