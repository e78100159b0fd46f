//! Rules that an api keeps for the items of a container, which the engine enforces without knowing what they mean.
//!
//! A rule is a number and a specification in the container's definition ([`ItemRule`](crate::ItemRule)). The api that
//! made it compiles it, and the compiled rule says of every item which keys it claims, of which no other item of its
//! logical partition may have one, and when it is over. Claims are rows beside those of unique keys, written in the
//! commit of their item, so a rule holds whichever api writes.

use std::sync::Arc;

use orrery_model::Raw;

use crate::error::Result;

/// Reads the rules of one api.
pub trait RuleHost: Send + Sync {
    /// `None`: it is no rule of this api.
    fn compile(&self, specification: &serde_json::Value) -> Option<Arc<dyn CompiledRule>>;
}

/// A rule that can be asked about items.
pub trait CompiledRule: Send + Sync {
    /// The keys that an item claims, in order and each once. Fails where the item can have none.
    fn claims(&self, item: Raw<'_>) -> Result<Vec<Vec<u8>>>;

    /// The millisecond since 1970 from which on an item is to be removed.
    fn over_from_ms(&self, item: Raw<'_>) -> Option<i64>;
}
