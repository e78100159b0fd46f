//! What one request may use: memory, steps and time.
//!
//! Every request has a [`Budget`]. Whoever takes memory that grows with data or with what a caller sent charges it
//! there *before* taking it, whoever loops counts steps there, and both end with [`Exceeded`] when it is used up,
//! when the time is over, or when the client has gone. Nothing needs to ask in two places.
//!
//! ```
//! use orrery_budget::{Budget, MemoryPool};
//!
//! let pool = MemoryPool::new(64 << 20);
//! let budget = Budget::new(pool.clone());
//! let rows = budget.hold(1 << 20).unwrap(); // given back when dropped
//! assert!(pool.taken_bytes() >= 1 << 20);
//! drop(rows);
//! assert!(budget.hold(1 << 40).is_err());
//! ```
//!
//! Memory of all requests comes from one [`MemoryPool`], whose size follows from `--memory-limit`. It is shared by a
//! rule that needs no list of requests (`pool`): nobody may hold more than is still free, so one request alone gets
//! half of the pool and many large ones settle at equal shares, while small ones find room.

mod pool;
mod request;

pub use pool::{MemoryPool, SMALL_BYTES};
pub use request::{Budget, Exceeded, Held, IsGone, Limits, Remaining};
