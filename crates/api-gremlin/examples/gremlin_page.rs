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
edge lies in the partition of the vertex that it leaves, and `E().has('pk', x)` finds it there. Edges into a vertex are found by the index on `_sink`. Ids that nobody gave are
UUIDs that grow.

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

Of the 2,061 scenarios of TinkerPop 3.8.1, run as scripts over a partitioned graph, at least 1,975 pass in GraphSON 2 and 3, and 1,971 in GraphBinary, where gremlinpython cannot read
the graph that `subgraph()` gives. What does not:

| how many | what | why |
|---|---|---|
| 33 | `pageRank()`, `peerPressure()`, `connectedComponent()`, `shortestPath()` | need a graph computer; refused |
| 20 | `call()` | TinkerGraph's own services; refused |
| 12 | `io()` | reads and writes files of the server; refused |
| 7 | null as the value of a property, or a number as an id | the service refuses both |
| 5 | marked by TinkerPop itself as not to be run | |
| 3 | a seed or the order of walks decides what is found | another order of walks, or of chances, than TinkerGraph's |
| 1 | vertex properties by ids that are numbers | ids are texts |
| 1 | drops the partition key | it stays |
| 1 | shortest paths gathered by group() while repeat() goes on | level by level here, so longer ways are there too |

## Cost

CPU of the server for one request in microseconds, user and system together, scripts with bindings in GraphBinary over two connections; the data of Orrery and JanusGraph on disk, Orrery with
`--durability strict`, four physical partitions and `--cache-size 2GB`. TinkerGraph 3.8.1 keeps everything in the heap; JanusGraph 1.1.0 on BerkeleyDB, both behind a Gremlin Server
that was warm. Two cores that were busy with other work (load 15 to 25), so figures swing by half; each row is one run.

| 100,000 vertices, 1,000,000 edges | Orrery | TinkerGraph | JanusGraph (first 540,000 edges) |
|---|--:|--:|--:|
| a vertex by id | 58 | 325 | 967 |
| `out('knows').has('age',gt(40)).values('name')` | 93 | 333 | 2,200 |
| two hops, `has`, `dedup().count()` | 280 | 680 | 3,000 |
| three hops, `has`, `count()`, in memory | 1,000 | 833 | |
| the same, vertices from disk | 2,600 to 8,250 | 2,600 to 1,750 | 4,600 to 4,250 |
| `outE('knows').has('w',gt(0.5)).inV().values('name')` | 380 | 620 | 1,040 |
| `inE('knows').has('w',gt(0.5)).count()` | 253 | 333 | 1,187 |
| `in('knows').values('name')` | 240 | 480 | 920 |
| `out().out().groupCount().by('city')` | 733 | 733 | 2,400 |
| shortest path of three hops, `repeat(out().simplePath()).until(hasId(y)).limit(1)` | 1,111 | 722,000 | |
| `V().hasLabel('person').groupCount().by('city')` | 110,000 | 90,000 | beyond 120 s |
| `V().has('city','c7').has('age',gt(80)).count()` | 5,000 | 55,000 | beyond 120 s |
| `addV` with four properties | 200 | 450 | 4,350 |
| `addE` between two partitions | 250 | 400 | 4,250 |

| Grateful Dead | Orrery | TinkerGraph | JanusGraph |
|---|--:|--:|--:|
| a vertex by id | 67 | 213 | 573 |
| one hop with a filter | 107 | 267 | 933 |
| two hops | 333 | 467 | 3,733 |
| three hops | 1,200 | 800 | 8,600 |
| edges in, with a filter | 425 | 175 | 1,150 |
| shortest path of three hops | 21,000 | 27,000 | 71,500 |
| `V().hasLabel('song').groupCount().by('songType')` | 1,500 | 750 | 57,250 |
| `V().repeat(out()).times(3).count()` | 15,000 | 27,500 | 105,000 |

A traversal pays for what it visits: two hops of ten edges each took 140 to 230 µs in a graph of 10,000 edges and 210 µs in that of 1,000,000 (1,090 while nothing was in memory).
Counts of all edges or vertices without a label read the index: `V().count()` took 300,000 here, and nothing in TinkerGraph.

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
