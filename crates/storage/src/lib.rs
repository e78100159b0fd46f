//! Ordered, durable rows for the engine: the `Store` seam, the key space, and its implementations.

mod byte_reader;
pub mod doubles;
pub mod embedded;
pub mod keys;
mod layers;
pub mod memory;
mod queue;
pub mod store;
pub mod suite;

pub use byte_reader::ByteReader;
pub use embedded::{EmbeddedOptions, EmbeddedStore, FileDamage, HeldStore, Salvaged, Verified};
pub use memory::MemoryStore;
pub use queue::{Gather, Queue};
pub use store::*;
