//! What traversals have read of graphs, kept in memory: vertices with their properties, and where edges lead.
//!
//! Kept is what a query or a read gave, together with the [`Freshness`] of the logical partition that it lies in, which
//! was asked for *before* it was read. It is used while the freshness is still the same: nothing in that logical
//! partition was written since. Whatever cannot be told so is read: partitions on other nodes, containers whose items
//! expire, partitions that are being purged, edges into a vertex (which lie anywhere), edges with their properties.
//!
//! What is answered from here is admitted and charged as when it was read.

use std::sync::Arc;

use foldhash::fast::RandomState;
use orrery_engine::Freshness;
use orrery_gremlin::Value;
use orrery_gremlin::value::{Vertex, VertexProperty};
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

/// Neighbours of one vertex that are kept at most.
pub const NEIGHBOURS_MAX: usize = 10_000;
/// About what an entry takes beside what is in it.
const ENTRY_BYTES: usize = 160;
/// About how large entries are.
const ENTRY_BYTES_USUAL: usize = 1024;

/// A vertex: the partition that has it, its key and its id. For edges the labels besides.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Place {
    partition: u64,
    key: Value,
    id: Value,
    /// Of edges, joined; none for the vertex itself.
    labels: Option<Arc<str>>,
}

impl Place {
    pub fn of(fresh: Freshness, vertex: &Vertex, labels: Option<&Arc<str>>) -> Place {
        Place {
            partition: fresh.partition(),
            key: vertex.partition.clone(),
            id: vertex.id.clone(),
            labels: labels.cloned(),
        }
    }
}

/// The labels of a hop as part of a place. No label holds the separator in two ways: the lengths go before.
pub fn joined(labels: &[Arc<str>]) -> Arc<str> {
    let mut text = String::new();
    for label in labels {
        text.push_str(&label.len().to_string());
        text.push(':');
        text.push_str(label);
    }
    text.into()
}

/// Where an edge leads.
#[derive(Clone)]
pub struct Far {
    pub id: Value,
    pub label: Arc<str>,
    pub partition: Value,
}

impl Far {
    /// A vertex for one traversal: what that fills in, others must not see.
    pub fn into_vertex(self) -> Vertex {
        Vertex::reference(self.id, self.label, self.partition)
    }
}

pub enum What {
    Vertex { label: Arc<str>, properties: Arc<[Arc<VertexProperty>]> },
    Hop(Box<[Far]>),
}

pub struct Kept {
    pub fresh: Freshness,
    pub what: What,
    pub charge_ru: f64,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<Place, Arc<Kept>> for ByBytes {
    fn weight(&self, _: &Place, kept: &Arc<Kept>) -> u64 {
        let inside: usize = match &kept.what {
            What::Vertex { properties, .. } => properties
                .iter()
                .map(|property| {
                    let meta: usize = property.meta.iter().map(|meta| 64 + meta.value.size_bytes()).sum();
                    128 + property.id.size_bytes() + property.value.size_bytes() + meta
                })
                .sum(),
            What::Hop(far) => {
                far.iter().map(|far| 16 + far.id.size_bytes() + far.partition.size_bytes()).sum()
            }
        };
        (ENTRY_BYTES + inside) as u64
    }
}

/// Of all graphs of the process.
pub struct GraphCache(Option<Cache<Place, Arc<Kept>, ByBytes, RandomState>>);

impl GraphCache {
    /// Nothing is kept where there is no room.
    pub fn new(bytes_max: u64) -> GraphCache {
        let usual = usize::try_from(bytes_max).unwrap_or(usize::MAX) / ENTRY_BYTES_USUAL;
        GraphCache((bytes_max > 0).then(|| {
            Cache::with(
                usual.max(16),
                bytes_max,
                ByBytes,
                RandomState::default(),
                DefaultLifecycle::default(),
            )
        }))
    }

    pub fn get(&self, place: &Place, fresh: Freshness) -> Option<Arc<Kept>> {
        self.0.as_ref()?.get(place).filter(|kept| kept.fresh == fresh)
    }

    pub fn keep(&self, place: Place, kept: Kept) {
        if let Some(cache) = &self.0 {
            cache.insert(place, Arc::new(kept));
        }
    }
}

impl Default for GraphCache {
    fn default() -> GraphCache {
        GraphCache::new(16 * 1024 * 1024)
    }
}
