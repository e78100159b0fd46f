//! SQL over feeds: queries of items and of resources, conditions of patches, and plans for clients that merge
//! themselves.
//!
//! The language and its evaluation live in their own crates; what is here is the wire around them: the body of a query
//! (`request`), what it may know about its container (`surroundings`), where it runs and how its pages go on (`items`,
//! `position`), and which queries the gateway leaves to the client.

pub mod condition;
pub mod items;
pub mod plan;
mod position;
mod request;
pub mod resources;
mod surroundings;
