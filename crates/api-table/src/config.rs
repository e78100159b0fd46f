//! What the service is told at its start.

use std::sync::Arc;
use std::time::Duration;

use orrery_budget::MemoryPool;

use crate::dialect::DialectChoice;

/// The account of storage's emulators, with the key that everybody knows.
pub const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The database that holds a container for each table.
pub const DATABASE: &str = "TablesDB";

/// How far the date of a request may be from the server's clock, in seconds.
pub const CLOCK_SKEW_S_DEFAULT: u64 = 900;

/// The keys of the account, raw. An empty key is an absent one: everybody could sign with it.
#[derive(Clone, Default)]
pub struct TableKeys {
    pub full: Vec<Vec<u8>>,
    pub read_only: Vec<Vec<u8>>,
}

// A key that is printed by accident is a key that has leaked.
impl std::fmt::Debug for TableKeys {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("TableKeys(…)")
    }
}

#[derive(Clone, Debug)]
pub struct TableConfig {
    pub account_name: String,
    pub keys: TableKeys,
    /// Whether `devstoreaccount1` with its well-known key opens the account as well. Only for servers that already let
    /// everybody in who knows the emulator's key.
    pub development: bool,
    pub dialect: DialectChoice,
    pub clock_skew_s: u64,
    /// How long one page of a query may take that could go on later.
    pub query_page_time: Duration,
    /// The longest that a request may take to be answered.
    pub request_time: Duration,
    /// The memory that all requests of the process share.
    pub memory: Arc<MemoryPool>,
}
