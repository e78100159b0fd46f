//! SQL over feeds: queries of items and of resources, conditions of patches, and plans for clients that merge
//! themselves.
//!
//! The language and its evaluation live in their own crates; what is here is the wire around them: the body of a query
//! (`request`), its syntax tree (`texts`), the same made ready to run (`statements`), what it may know about its container (`surroundings`), where it runs (`items`, `partitions`), how one
//! partition makes its pages (`share`), how they go on (`position`) and what they tell about themselves (`insight`), and which queries the gateway leaves to the
//! client (`plan`).

pub mod condition;
mod insight;
pub mod items;
mod partitions;
pub mod plan;
mod position;
pub mod request;
pub mod resources;
pub mod share;
mod statements;
pub mod surroundings;
mod texts;

pub use statements::Statements;
