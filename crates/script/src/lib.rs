//! Server-side JavaScript: procedures, triggers and user-defined functions in a sandbox.
//!
//! Pure: nothing here knows HTTP or storage. A script is compiled once ([`Program`]) and run any number of times, each
//! time in a runtime that is as new (`image`) and shares nothing with any other; what it may do to the world is the
//! [`Collection`] that it is given.
//!
//! ```text
//! Program (bytecode) ── run ──> runtime with guards.js, api.js ── take ──> operation ── Collection
//!                                        ^                                     |
//!                                        └───────────── done / fail ───────────┘
//! ```
//!
//! Operations are queued by the script and carried out between its turns, so callbacks never nest and no call into the
//! database happens while script code is on the stack. Time, memory, stack, operations, results and logs are limited
//! ([`Limits`]); the clock is asked in every loop, call and regular expression. [`Pool`] runs scripts on threads of
//! their own: what QuickJS cannot interrupt costs its own thread and nobody else's.
//!
//! Deliberately missing: timers, network, files, modules, attachments.

#[cfg(test)]
mod builtins;
mod bytecode;
mod collection;
mod failure;
mod functions;
mod heap;
mod image;
mod limits;
mod poll;
mod pool;
mod priority;
mod program;
mod run;
mod sandbox;
mod written;

pub use collection::{Collection, Done, Operation, OperationError, Options};
pub use failure::{Failure, FailureKind};
pub use functions::{Function, Functions};
pub use limits::{Limits, Until};
pub use pool::{Claim, Pool, PoolLimits, Refused};
pub use program::{Program, SOURCE_BYTES_MAX};
pub use run::{Call, Finished, Report, run};
