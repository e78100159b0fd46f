//! How queries of this api see items, and what it does on the node that has a partition for those that came from
//! another.

use std::sync::Arc;

use orrery_budget::MemoryPool;
use orrery_engine::{PlainHost, VersionMembers};

use super::item_form::ItemForm;
use super::statement::query_env;

/// Under which this api is known to other nodes.
pub const HOST: &str = "gremlin";

/// What queries see of an item besides its members.
pub const SYSTEM: VersionMembers = VersionMembers(HOST);

/// `memory_bytes` is the most that one traversal may hold.
pub fn host(memory: Arc<MemoryPool>, memory_bytes: usize) -> PlainHost {
    PlainHost { env: query_env, system: Arc::new(SYSTEM), format: Some(&ItemForm), memory, memory_bytes }
}
