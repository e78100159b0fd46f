//! `orrery import` and `orrery export`: items between files, containers and accounts.
//!
//! ```text
//! file ─ format ─┐                              ┌─ sender (bulks by partition, pace) ─> container
//!                ├─> chunks ─> item (id, key) ──┤
//! container ─────┘                              └─ lines ─ format ─> file
//!                         checkpoint: how far, exactly how many, what was rejected
//! ```

mod checkpoint;
mod copy;
pub mod dump;
mod export;
mod export_command;
mod format;
mod import;
mod import_command;
mod item;
mod key_rule;
mod pace;
mod progress;
pub mod raw_json;
mod sender;
pub mod source;

pub use copy::copy;
pub use export_command::{command as export_command, run as export};
pub use import_command::{command as import_command, run as import};
pub use item::Preparation;
