//! Writes the page about the MongoDB API from the tables of commands, operators and stages: `mongo_page FILE` (see
//! `cargo xtask docs`).

use std::fmt::Write as _;
use std::process::ExitCode;

const INTRODUCTION: &str = "\
# The MongoDB API

Served on a port of its own, `--mongo-listen`, 10255 by default, and on the shared port, where it is known by its first bytes; plain and with TLS. The
user is the account's name, the password one of its keys, and read-only keys only read; `--mongo-auth off` lets everybody on this machine in. `orrery connect`
prints the connection string:

    mongosh 'mongodb://orrery:KEY@127.0.0.1:10255/?directConnection=true'

Clients that cannot open a socket, such as web pages, send a command as Extended JSON to `POST /_orrery/mongo` of the shared port and get the reply in its canonical form, with its
charge in `x-ms-request-charge`; it is signed as requests of the REST API are, with the type `_orrery` and the link `_orrery/mongo`. Cursors go on with `getMore`.

This page is made from the tables of commands, operators and stages by `cargo xtask docs`; change it there.

## How MongoDB's things are kept

| MongoDB | here |
|---|---|
| database | database of the account |
| collection | container without a partition key: one logical partition, 20 GB |
| sharded collection (`shardCollection`, `customAction: \"CreateCollection\"` with `shardKey`) | container with a hash key of version 2 |
| document | item, 16 MB, and 2 MB as JSON in a container that another API has made; `id` is a text made of `_id`, a field `id` is kept as `$id`, a `ttl` that is no time to live as `$ttl` ([ADR 35](../adr/0035-documents-of-mongodb.md)) |
| index | a description; every path is indexed. Several fields: a composite index. `2dsphere`: a spatial one. `expireAfterSeconds` on `_ts`: the container's TTL |
| unique index | a rule that the engine holds every item to, in the commit of its write: multikey, compound, sparse, partial, with a collation; built while writers go on, and for every API that writes |
| TTL index on a date | a rule too: documents are removed within seconds of their time, by rows in the order of their times and not by a scan |
| views, validators, capped collections, users | kept in a container `$mongo` of the database |

SQL, the change feed, TTL, throughput, splits and fault rules work on all of it.

## What the index serves

| what | how |
|---|---|
| `_id`, one or several | point reads |
| `$eq`, `$in`, `$gt` … `$lte`, `$exists`, `$and`, `$or` on texts, numbers, booleans, dates, object ids, timestamps | entries of the paths; arrays on the way are found by an entry of theirs, and every document is tested again |
| `sort` by one path with a `limit` up to 1,000, also `$sort` and `$limit` behind `$match` | the index in order, if every part of the filter is one of the above. Booleans, objects and arrays at the path, which SQL sorts elsewhere, are looked for first; beyond 512 of them, and in every other case, all matches are read and sorted |
| `count`, `countDocuments`, `$count` | entries alone, or columns |
| `$match` with `$group` by paths, and `$sum: 1`, `$sum`, `$avg`, `$min`, `$max`, `$count` | columns. Not where a collection holds decimals, or doubles are summed up, or an integer of 64 bits was stored and integers are summed up or grouped by |
| everything else | all documents that the filter leaves are read |

`explain` shows the statement that runs, per partition, and `pushedDown.group` whether the engine groups.

## Differences from MongoDB

| what | how it is here |
|---|---|
| transactions | write up to 100 documents of one collection (of a sharded one: one value of the shard key), 60 s; what goes beyond is refused when it is written (263). Reads of any collection of the database see one moment, the one at which it began, and the transaction's own writes. Collections and their indexes may be made, and are seen when it is committed |
| read concern `snapshot` | `find`, `aggregate`, `distinct`: one moment, which can be read for 5 minutes by its `atClusterTime`; 64 moments at a time |
| retryable writes | the reply of the last one of each session is kept in memory: behind a restart of the server a write that is sent again is a new one. An insert is then refused as a duplicate, an `$inc` counts twice |
| change streams | of a collection, a database or all; resumed for 24 hours, over splits and restarts; pre- and post-images of all of them; updates are told by what differs between two versions. What a restart forgets: which of the updates before it replaced a whole document, and the events of `showExpandedEvents`. Each change is told once, those of a document in their order, over splits, merges and restarts; whoever goes on from the middle of a transaction after its partition was split is told that transaction's changes again |
| `renameCollection`, `$out` | copy |
| TTL | by dates alone, as MongoDB does; a number is none, where Cosmos DB takes it for milliseconds |
| `system.profile`, `top`, `currentOp` | of this server, in memory: the last 1,000 commands that the profiler was set to write down for a database, figures since the start, commands that are long enough to be listed |
| `hint` | must name an index; without a sort documents come in its order where the collection has at most 10,000 |
| `$where`, `$function`, `$accumulator`, `mapReduce` | refused: scripts of clients are not run |
| write concerns | what is answered is durable; more than one node is refused as MongoDB does |
| fail points | `failCommand`, `failGetMoreAfterCursorCheckout`, `maxTimeAlwaysTimeOut` and `onPrimaryTransactionalWrite`, for tests of drivers, over loopback |

Limits: messages 48 MB, 100,000 writes in a command, 10,000 cursors (10 minutes idle), 100,000 sessions (30 minutes), 256 MB of memory for one command or cursor,
100 MB for one blocking stage (292 beyond), and `--request-timeout`.

";

/// A table of names and what they do.
fn section<'a>(page: &mut String, title: &str, rows: impl Iterator<Item = (&'a str, &'a str)>) {
    let rows: Vec<_> = rows.collect();
    let _ = writeln!(page, "\n## {title} ({})\n\n| name | what it does |\n|---|---|", rows.len());
    for (name, about) in rows {
        let _ = writeln!(page, "| `{name}` | {} |", about.replace('|', "\\|"));
    }
}

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: mongo_page FILE");
        return ExitCode::FAILURE;
    };
    let mut page = String::from(INTRODUCTION);
    let commands = orrery_api_mongo::COMMANDS;
    let _ = writeln!(page, "## Commands ({})\n\n| command | what it does |\n|---|---|", commands.len());
    for command in commands {
        let _ = writeln!(page, "| `{}` | {} |", command.name, command.about.replace('|', "\\|"));
    }
    use orrery_mongo::{accumulator, expression, filter, pipeline, update};
    let filters = filter::table::OPERATORS.iter().map(|one| (one.name, one.summary));
    section(&mut page, "Query operators", filters);
    let updates = update::table::OPERATORS.iter().map(|one| (one.name, one.summary));
    section(&mut page, "Update operators", updates);
    section(&mut page, "Stages", pipeline::STAGES.iter().map(|one| (one.name, one.documentation)));
    for (family, operators) in expression::table::OPERATORS {
        section(
            &mut page,
            &format!("Expressions: {family}"),
            operators.iter().map(|one| (one.name, one.about)),
        );
    }
    section(&mut page, "Accumulators", accumulator::ACCUMULATORS.iter().map(|one| (one.name, one.about)));
    let windows = accumulator::window::WINDOW_FUNCTIONS.iter().map(|one| (one.name, one.about));
    section(&mut page, "Functions of windows", windows);
    match std::fs::write(&file, page) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write {file}: {error}");
            ExitCode::FAILURE
        }
    }
}
