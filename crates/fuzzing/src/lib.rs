//! For tests only: what is done with inputs that nobody would send.
//!
//! Each target takes any bytes and does with them what the server would do. It must come back, soon, without a panic,
//! and what it asserts must hold. `cargo fuzz` looks for inputs that reach new code (`fuzz/`, `cargo xtask fuzz`); the
//! tests of this crate try the kept inputs and a bounded number of changes to them, on every machine.
//!
//! | target | bytes are taken for |
//! |---|---|
//! | `sql` | a query: parsed, printed, planned, compiled, run over a few items |
//! | `json` | the body of an item: stored, written, compared with another implementation |
//! | `binary_json` | the same in the binary form that some clients send |
//! | `continuation` | where a feed, a query or a change feed goes on; session tokens, etags, resource ids |
//! | `headers` | a whole request: method, path, headers, body |
//! | `frames` | what comes on a connection of the direct protocol: context requests, requests, their tokens |
//! | `batch_rows` | a batch in rows, as .NET sends them |
//! | `scripts` | what a stored procedure says to its host |
//! | `table_filter` | a filter of the Table API: parsed, turned into a query, compiled |
//! | `table_batch` | a batch of the Table API: a line with its content type, its body |
//! | `table_address` | a path, and a query string with a shared access signature and continuation tokens |
//! | `graphson` | a value in GraphSON of any version, read, written, read again |
//! | `graphbinary` | a value in GraphBinary, read, written, read again |
//! | `gremlin_script` | a script of the Gremlin API: parsed, run over a small graph, its results written |
//! | `gremlin_message` | a whole message to the Gremlin API: MIME type, request, credentials |
//! | `mongo_messages` | what comes on a connection of the MongoDB API: messages of every kind, packed ones too |
//! | `bson` | a document in BSON: read, stored, printed, compared |
//! | `mongo_operation` | documents with a filter, projection, update or pipeline in Extended JSON, run in memory |
//! | `table_request` | a whole request to the Table API, signed; its body as an entity and as XML too |

mod batch_rows;
mod binary_json;
mod client;
mod continuation;
mod frames;
mod gremlin;
mod headers;
mod json;
mod mongo;
mod mutate;
mod scripts;
mod sql;
mod table;

pub use mutate::Mutations;

/// One way to use bytes.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

pub const TARGETS: &[Target] = &[
    Target { name: "sql", run: sql::run },
    Target { name: "json", run: json::run },
    Target { name: "frames", run: frames::run },
    Target { name: "binary_json", run: binary_json::run },
    Target { name: "batch_rows", run: batch_rows::run },
    Target { name: "continuation", run: continuation::run },
    Target { name: "headers", run: headers::run },
    Target { name: "scripts", run: scripts::run },
    Target { name: "graphson", run: gremlin::graphson },
    Target { name: "graphbinary", run: gremlin::graphbinary },
    Target { name: "gremlin_script", run: gremlin::script },
    Target { name: "gremlin_message", run: gremlin::message },
    Target { name: "mongo_messages", run: mongo::messages },
    Target { name: "bson", run: mongo::bson },
    Target { name: "mongo_operation", run: mongo::operation },
    Target { name: "table_filter", run: table::filter },
    Target { name: "table_batch", run: table::batch },
    Target { name: "table_address", run: table::address },
    Target { name: "table_request", run: table::request },
];

/// The target of this name, for the programs of `cargo fuzz`.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a name of the table");
    (target.run)(input);
}
