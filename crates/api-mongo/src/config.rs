//! What the service is told at its start.

use std::sync::Arc;
use std::time::Duration;

use orrery_budget::MemoryPool;
use orrery_engine::AccountKeys;

/// Whether clients must say who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthMode {
    #[default]
    Required,
    /// Everybody may do everything. On loopback only.
    Off,
}

/// The release of MongoDB that the server says it is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ServerVersion {
    V4_2,
    V5_0,
    V6_0,
    #[default]
    V7_0,
    V8_0,
}

impl ServerVersion {
    pub const ALL: [(&'static str, ServerVersion); 5] = [
        ("4.2", ServerVersion::V4_2),
        ("5.0", ServerVersion::V5_0),
        ("6.0", ServerVersion::V6_0),
        ("7.0", ServerVersion::V7_0),
        ("8.0", ServerVersion::V8_0),
    ];

    /// What drivers go by.
    pub fn wire(self) -> i32 {
        match self {
            ServerVersion::V4_2 => 8,
            ServerVersion::V5_0 => 13,
            ServerVersion::V6_0 => 17,
            ServerVersion::V7_0 => 21,
            ServerVersion::V8_0 => 25,
        }
    }

    pub fn numbers(self) -> [i32; 4] {
        match self {
            ServerVersion::V4_2 => [4, 2, 25, 0],
            ServerVersion::V5_0 => [5, 0, 31, 0],
            ServerVersion::V6_0 => [6, 0, 20, 0],
            ServerVersion::V7_0 => [7, 0, 16, 0],
            ServerVersion::V8_0 => [8, 0, 4, 0],
        }
    }

    pub fn text(self) -> String {
        let [major, minor, patch, _] = self.numbers();
        format!("{major}.{minor}.{patch}")
    }

    /// Major and minor number, as compatibility levels are named.
    pub fn feature(self) -> String {
        let [major, minor, ..] = self.numbers();
        format!("{major}.{minor}")
    }
}

#[derive(Clone)]
pub struct MongoConfig {
    pub account_name: String,
    pub keys: AccountKeys,
    pub auth: AuthMode,
    pub version: ServerVersion,
    /// The longest that a command may take.
    pub request_time: Duration,
    /// How far the date of a signature may be from the present, for commands over HTTP.
    pub clock_skew_s: u64,
    /// The most memory that one command, or one cursor, may hold.
    pub memory_bytes: usize,
    /// The memory that all requests of the process share.
    pub memory: Arc<MemoryPool>,
}
