//! Writes the page about the direct protocol from the table of tokens in the code: `rntbd_page FILE` (see `cargo
//! xtask docs`).

use std::process::ExitCode;

const INTRODUCTION: &str = "\
# Direct mode (RNTBD)

Clients in direct mode, the default of the Java and .NET SDKs, send everything about items in frames over TLS to the addresses that
`/addresses` gives them. Orrery serves the protocol on its main port; a connection is recognised by its first bytes. Nothing is to be
set in the client but its trust in the certificate, which is the same for HTTPS. `--direct-mode off` refuses addresses, and clients
must then be set to gateway mode; so does a server without TLS (`--tls off`), and clients that address it by an IPv6 literal.

| client | how it was tried |
|---|---|
| Java `azure-cosmos` 4.81.0 | run: the whole suite of `tests/sdk/java` in both modes, sync and async, over TLS, with accounts at Session and Strong |
| Spring Data, `azure-spring-data-cosmos` 7.3.0 | run: a program in its default configuration, in the same suite |
| .NET `Microsoft.Azure.Cosmos` 3 | **read, not run**: its sources agree with what is here about frames, tokens, addresses, retries, batches in rows and binary JSON |
| Rust `azure_data_cosmos` 1.0.0 | its reader of binary JSON was run over items and pages of queries of this server and came to what their text says; it has no direct mode |

What is as on the service: four replicas for each range and for the catalog (all of them this server), reads of two replicas at Strong and
Bounded Staleness with barriers, sessions, 410/1000 when a container was made again under its name, 410/1002 when a request names a
range that has gone (point operations are served by their key whatever address they came to), charges that clients add up,
fault rules (errors, delays, lost answers), throttling, resource tokens.

Two forms that .NET speaks are the same over HTTP. Batches and bulks come as rows (HybridRow) with checksums, and their results go back as
rows. Clients that list `CosmosBinary` among the formats they take get items and pages of queries in binary JSON; it has whole numbers
beyond 63 bits only for those that say `UInt64`, and none of the packed forms that are optional. Items may be sent in it by anybody. Both were
built from the published sources, with bytes written by hand for tests; heads, bits, columns and checksums of rows are those in the files of the
HybridRow library, and the 87 vectors of the Rust SDK are read as it reads them. Not taken: rows as results of queries, and string dictionaries.

Java 4.81.0 loses an answer that comes in one TLS record with the next: it moves the second frame over the first before it has read the
first one's values. The server therefore writes every frame as a record of its own.

| limit | value |
|---|---|
| a frame without its payload | 256 KB; the first of a connection 4 KB |
| a payload | 4 MB (413 beyond, and the connection goes on; 64 MB end it) |
| requests of one connection at one time | 256; further ones are not read until others are answered |
| answers that a connection has not taken | 8 MB; nothing more is read until it takes some; after 30 s without any it is closed |
| a payload above 64 KB | is waited for only if its sender may do what the frame asks, and is charged to the memory of requests |

A frame that is none ends the connection after what is in flight was answered. Tokens that are unknown are passed over, operations that are
unknown get 405.

This page is made from the tables in `crates/api-nosql/src/rntbd/tokens.rs` by `cargo xtask docs`; change it there.

";

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: rntbd_page FILE");
        return ExitCode::FAILURE;
    };
    let page = format!("{INTRODUCTION}{}", orrery_api_nosql::tokens_page());
    match std::fs::write(&file, format!("{}\n", page.trim_end())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write {file}: {error}");
            ExitCode::FAILURE
        }
    }
}
