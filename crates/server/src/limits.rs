//! The limits of the transport that are no settings, in one place. The others (connections, times) are settings, and
//! the largest body belongs to the api that reads it.

use std::time::Duration;

/// Request line and headers together. Session and continuation tokens travel in headers, so this is generous.
pub const HEADER_BYTES_MAX: usize = 128 * 1024;
/// From the first byte of a request (or of a TLS handshake) to the end of its headers.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests answered at one time, over all connections; further ones get 503.
pub const REQUESTS_IN_FLIGHT_MAX: usize = 8192;
/// A connection that has never sent a request is closed after this. One that has may be idle for longer.
pub const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// Connections that were told to close in favour of newcomers and have not done so yet.
pub const CONNECTIONS_GIVEN_UP_MAX: usize = 64;
/// Requests that may take long, over all connections; further ones wait, and get 503 if it takes too long. Each may
/// keep a thread of the runtime, which has 512 for such work.
pub const LONG_REQUESTS_MAX: usize = 128;
pub const LONG_REQUESTS_WAIT: Duration = Duration::from_secs(20);
/// The same for the streams of one HTTP/2 connection, which wait longer before anybody works for them.
pub const LONG_REQUESTS_PER_CONNECTION_MAX: usize = 8;
/// A body of which nothing arrives for this long is given up.
pub const UPLOAD_STALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The first room that is taken for a body that comes in pieces.
pub const UPLOAD_ROOM_BYTES: usize = 64 * 1024;
/// What is read, and thrown away, of a body that is refused: for its size, or because its sender has no business here.
pub const DISCARDED_BYTES_MAX: usize = 64 * 1024 * 1024;
pub const DISCARDED_UNKNOWN_BYTES_MAX: usize = 4 * 1024 * 1024;
pub const DISCARDED_TIME_MAX: Duration = Duration::from_secs(5);
/// Answers are handed to the network in pieces of this size; larger ones are charged to the memory of requests.
pub const ANSWER_PIECE_BYTES: usize = 64 * 1024;
/// Bytes of answers that a connection has not taken. Beyond it its further requests wait.
pub const CONNECTION_UNSENT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// An answer of which nothing is taken for this long ends its connection.
pub const ANSWER_STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Concurrent streams of one HTTP/2 connection.
pub const STREAMS_PER_CONNECTION_MAX: u32 = 256;
/// Flow-control window of an HTTP/2 stream and connection: a whole body of 2 MB needs few round trips.
pub const HTTP2_STREAM_WINDOW_BYTES: u32 = 256 * 1024;
pub const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// HTTP/2 streams that a client opened and reset before the server looked at them, and that the server reset for an
/// error of the client; one more ends the connection.
pub const HTTP2_PENDING_RESETS_MAX: usize = 20;
pub const HTTP2_ERROR_RESETS_MAX: usize = 128;
/// What hyper buffers of an answer for each HTTP/2 stream.
pub const HTTP2_SEND_BUFFER_BYTES_MAX: usize = 128 * 1024;
/// Bytes that count as one operation more of a connection, of which the runtime allows 128 before others have the
/// thread: heads of streams are small and much work, answers are copied. Either is about half a millisecond.
pub const READ_STEP_BYTES: usize = 32;
pub const WRITE_STEP_BYTES: usize = 4096;
/// As much as is read without counting where requests come one after the other: a usual one.
pub const READ_IN_PLACE_BYTES: usize = 4096;
/// Polls of tasks after which a thread looks for what has arrived. Each may take half a millisecond.
pub const POLLS_BETWEEN_EVENTS: u32 = 16;
/// First bytes of a connection: enough for the head of a usual request, so a second read is rarely needed.
pub const FIRST_READ_BYTES: usize = 2048;
/// What is read of a connection before it is decided what it speaks.
pub const FIRST_BYTES_MAX: usize = 16 * 1024;
/// Connections that wait in the kernel to be accepted.
pub const ACCEPT_BACKLOG: u32 = 1024;
/// Connections that are accepted before others have the thread: a flood of newcomers waits in the kernel, not in the
/// queue that requests of others are in.
pub const ACCEPTED_AT_ONCE: usize = 8;
/// Pause after a failed accept (no file descriptors left): trying at once would spin.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Operations that metrics tell apart; later names count as `other`.
pub const OPERATIONS_MAX: usize = 256;
/// Log lines waiting to be written; beyond it lines are dropped and counted.
pub const LOG_BUFFER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long the log's writer gathers lines after it wrote some: bounds its wake-ups under load.
pub const LOG_GATHER: Duration = Duration::from_millis(5);
/// How long a stop waits for the last log lines to be taken by whoever reads them.
pub const LOG_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// The part of a path that a log line shows.
pub const LOGGED_PATH_BYTES_MAX: usize = 512;
