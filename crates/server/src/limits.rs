//! The limits of the transport that are no settings, in one place. The others (connections, times) are settings, and the
//! largest body belongs to the api that reads it.

use std::time::Duration;

/// Request line and headers together. Session and continuation tokens travel in headers, so this is generous.
pub const HEADER_BYTES_MAX: usize = 128 * 1024;
/// From the first byte of a request (or of a TLS handshake) to the end of its headers.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests answered at one time, over all connections; further ones get 503.
pub const REQUESTS_IN_FLIGHT_MAX: usize = 8192;
/// Bodies being received at one time, over all connections: what a flood of uploads may cost in memory.
pub const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// What is read, and thrown away, of a body that is refused for its size.
pub const DISCARDED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Concurrent streams of one HTTP/2 connection.
pub const STREAMS_PER_CONNECTION_MAX: u32 = 256;
/// Flow-control window of an HTTP/2 stream and connection: a whole body of 2 MB needs few round trips.
pub const HTTP2_STREAM_WINDOW_BYTES: u32 = 256 * 1024;
pub const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// Connections that wait in the kernel to be accepted.
pub const ACCEPT_BACKLOG: u32 = 1024;
/// Pause after a failed accept (no file descriptors left): trying at once would spin.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Operations that metrics tell apart; later names count as `other`.
pub const OPERATIONS_MAX: usize = 96;
/// Log lines waiting to be written; beyond it lines are dropped and counted.
pub const LOG_BUFFER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long the log's writer gathers lines after it wrote some: bounds its wake-ups under load.
pub const LOG_GATHER: Duration = Duration::from_millis(5);
/// How long a stop waits for the last log lines to be taken by whoever reads them.
pub const LOG_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// The part of a path that a log line shows.
pub const LOGGED_PATH_BYTES_MAX: usize = 512;
