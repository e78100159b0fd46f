//! Writes the page about the Gremlin API from the table of steps: `gremlin_page FILE` (see `cargo xtask docs`).

use std::process::ExitCode;

const INTRODUCTION: &str = "\
# The Gremlin API

Graphs are served over WebSocket on a port of their own, `--gremlin-listen`, 8901 by default, and on the shared port too, on any path, plain and
with TLS. A graph is a container; the user name says which, the password is a key of the account, a resource token, or a signature of a key
(`type=master&ver=1.0&date=DATE&sig=…` of `gremlin\\ncolls\\ndbs/D/colls/C\\ndate\\n\\n`, as the portal's):

    url ws://localhost:8901/    user name /dbs/DATABASE/colls/CONTAINER    password KEY

Containers are made through the NoSQL API, with one partition key such as `/pk`, and not `/id` or `/label`. One script without a driver:

    curl -u '/dbs/DATABASE/colls/CONTAINER:KEY' http://localhost:8901/ -d '{\"gremlin\":\"g.V().count()\"}'

This page is made from the table of steps in `crates/gremlin` by `cargo xtask docs`; change it there.

## Clients

| what | how |
|---|---|
| serializers | GraphSON 1, 2 and 3, GraphBinary 1, by the MIME type of each request; Gryo is refused |
| GraphSON 2 and `application/json` | plain JSON, as Cosmos DB sends it; with `--gremlin-results typed` GraphSON 2 has its types |
| scripts | `eval` with bindings; several statements; no closures |
| bytecode | every language's own traversal API; Cosmos DB takes scripts only |
| trees in GraphBinary | maps of maps for TinkerPop's drivers for Python, JavaScript, Go and .NET, which cannot read trees; trees for all others |
| sessions, transactions | requests of a session run like others; `tx()` is refused: every write is durable by itself |
| answers | frames of 64 results (`batchSize`), code 206 and at last 200; `x-ms-status-code`, charges and times in each |

## Vertices and edges as items

    {\"id\":\"ann\",\"label\":\"person\",\"pk\":\"a\",\"name\":[{\"_value\":\"Ann\",\"id\":\"...\"}],\"ttl\":60}
    {\"id\":\"e1\",\"label\":\"knows\",\"_isEdge\":true,\"pk\":\"a\",\"_vertexId\":\"ann\",\"_vertexLabel\":\"person\",
     \"_sink\":\"bob\",\"_sinkLabel\":\"person\",\"_sinkPartition\":\"b\",\"since\":2001}

SQL, the change feed, TTL, throughput, splits and fault rules work on them, and an item of this form written through SQL is a vertex or an edge. An
edge lies in the partition of the vertex that it leaves. Edges into a vertex are found by the index on `_sink`.

Where Orrery differs from Cosmos DB on purpose:

| what | why |
|---|---|
| bytecode, GraphSON 3 and GraphBinary are taken | every driver works as it comes |
| steps of TinkerPop beyond Cosmos DB's | see below |
| dates, UUIDs, binaries, lists and sets are values of properties | SQL shows them as `{\"$date\":...}`, `{\"$binary\":...}`, arrays and `{\"$set\":[...]}` |
| a list of two that is bound, or comes in bytecode, is `[partition key, id]`; if nothing is there, it is two ids | TinkerPop's drivers send lists of ids; in a script `V(['a','ann'])` is the pair alone |
| int, long and double come back as what they were written as; what SQL has written is an int where it fits | drivers with types tell them apart |

Limits, each with its error: scripts 64 KB (498), messages 4 MB, 64 requests at a time on a connection, 1,000 bindings (499), 400 steps in a row and 10,000 loops of a
repeat() (500 with 429 inside; the service has 32 loops), items of 2 MB (413), `--gremlin-memory` for one traversal (256 MB, 1003), and `--request-timeout`, which
`evaluationTimeout` of a request can shorten (598 with 1009). With `--throttling on` what is beyond the throughput is 500 with 429 inside and `x-ms-retry-after-ms`.

Tried in every test run, unmodified: gremlinpython, gremlin-javascript, gremlin-driver for Java and gremlin-go of TinkerPop 3.8, and the 3.4.13 of the
first three, which Cosmos DB's documentation pins. graph-notebook 5.3 connects, with GraphSON 2, GraphSON 3 and GraphBinary.

## TinkerPop's own scenarios

Of the 2,061 scenarios of TinkerPop 3.8.1, run as scripts over a partitioned graph, 1,976 pass in GraphSON 2 and 3, and 1,972 in GraphBinary, where gremlinpython cannot read the
graph that `subgraph()` gives. What does not:

| how many | what | why |
|---|---|---|
| 33 | `pageRank()`, `peerPressure()`, `connectedComponent()`, `shortestPath()` | need a graph computer; refused |
| 20 | `call()` | TinkerGraph's own services; refused |
| 12 | `io()` | reads and writes files of the server; refused |
| 7 | null as the value of a property, or a number as an id | the service refuses both |
| 5 | marked by TinkerPop itself as not to be run | |
| 3 | a seed or the order of walks decides what is found | another order of walks, or of chances, than TinkerGraph's |
| 2 | vertex properties in the order of their ids | ids are not numbers that count up |
| 1 | drops the partition key | it stays |
| 1 | `match()` with and() inside of or() that binds what another pattern binds too | finds fewer: a gap |
| 1 | shortest paths gathered by group() while repeat() goes on | level by level here, so longer ways are there too |

";

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: gremlin_page FILE");
        return ExitCode::FAILURE;
    };
    match std::fs::write(&file, format!("{INTRODUCTION}{}", orrery_api_gremlin::compat_page())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write {file}: {error}");
            ExitCode::FAILURE
        }
    }
}
