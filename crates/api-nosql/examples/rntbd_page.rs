//! Writes the page about the direct protocol from the table of tokens in the code: `rntbd_page FILE` (see `cargo xtask docs`).

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
| .NET `Microsoft.Azure.Cosmos` 3 | **read, not run**: its sources agree with what is here about frames, tokens, addresses and retries |

What is as on the service: four replicas for each range and for the catalog (all of them this server), reads of two replicas at Strong and
Bounded Staleness with barriers, sessions, 410/1000 when a container was made again under its name, 410/1002 when a request names a
range that has gone (point operations are served by their key whatever address they came to), charges that clients add up,
fault rules (errors, delays, lost answers), throttling, resource tokens.

What is not: batches in the binary form (HybridRow) that .NET sends, over HTTP neither; answers in Cosmos binary JSON, which no
client insists on.

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
