//! Which partition key fits a container: computed from a sample of its items and, where there are some, from recorded
//! requests.
//!
//! ```text
//! items ─> Sample (paths and their values) ─┐
//!                                           ├─> candidates ─> measures ─> one recommended, with reasons
//! recorded requests ─> what each one knows ─┘
//! ```
//!
//! A key is good when its values are many, even and not all written at the same time, and when most requests know its
//! value, so that they ask one partition. [`advise`] weighs the one against the other; [`Measures`] has all the
//! numbers, so that nobody has to believe it. Pure: no clock, no randomness, the same input gives the same advice.

mod candidate;
mod choose;
mod measure;
mod picture;
mod report;
mod request;
mod sample;

pub use candidate::{Candidate, Shape};
pub use choose::{Advice, Judged, Options, advise};
pub use measure::Measures;
pub use picture::bars;
pub use request::{Known, Request};
pub use sample::{ITEMS_MAX, Sample};
