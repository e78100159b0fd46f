//! Writes the page about the Table API from the tables in the code: `table_page FILE` (see `cargo xtask docs`).

use std::process::ExitCode;

const INTRODUCTION: &str = "\
# The Table API

Tables are served on a port of their own, `--table-listen`, 8902 by default, as `http://localhost:8902/` or `http://localhost:8902/ACCOUNT`, and in
path style on the shared port too: `http://localhost:8081/ACCOUNT`. ACCOUNT is `--account-name` (`orrery` by default). While the emulator's well-known
key is in force, `devstoreaccount1` with storage's well-known key opens the same account.

    DefaultEndpointsProtocol=http;AccountName=orrery;AccountKey=KEY;TableEndpoint=http://localhost:8902/orrery;

A table is a container of the database `TablesDB` with the partition key `/'$pk'`, an entity an item of it: `id` = `$id` = RowKey, `$pk` =
PartitionKey, each property `{\"$t\": type, \"$v\": value}`. SQL queries, the change feed, TTL, throughput, splits, fault rules and
scripts work on tables, and an item of this form written through SQL is an entity.

This page is made from the tables in `crates/api-table/src` by `cargo xtask docs`; change it there.

## Dialects

Clients speak to storage accounts and to Cosmos DB by one protocol and two sets of rules, and choose by the name of the host: `localhost` (on
any port but 10002) and `*.table.cosmos.azure.com` are Cosmos DB, addresses such as `127.0.0.1` are storage. The server answers in kind, unless
`--table-dialect` says which.

| | Cosmos DB | storage |
|---|---|---|
| names of tables | 1 to 254 characters, none of `/ \\ # ?`, no space at the end, case matters | 3 to 63 letters and digits, case does not matter |
| keys | not empty; RowKey at most 255 bytes, PartitionKey 2048 | may be empty; at most 512 UTF-16 units each |
| values | entities at most 2 MB | strings and binaries at most 64 KiB, entities 1 MiB |
| both | | 252 properties, names at most 255 characters, none of `/ \\ # ?` and no control characters in keys |
| a selected property that is missing | left out | null |
| Double 1 | `1` | `1.0` |
| a property called `Etag` | not kept | kept |

Where Orrery differs from both on purpose:

| what | why |
|---|---|
| entities come in the order of their keys from Cosmos DB's dialect too | it costs little and is what people expect |
| the digits behind the second in Timestamp and ETag count changes of the partition | every write gives another one, also one through another API, and nothing is stored for it |
| Int64 is kept as 20 characters, zeros behind the sign | ranges of long integers are ranges of the index |
| binary values are compared for equality only (501 otherwise) | they are kept in base64, which has another order |
| `not` of a comparison with a property that is missing is true | as in storage; three-valued logic would leave the entity out both ways |

## The official Python SDK's own tests

azure-data-tables 12.7.0, its tests that need a server: 234 of 235 in the Cosmos variant, 261 of 264 in storage's. What does not pass:

| test | reason |
|---|---|
| `test_failover_and_retry_on_secondary` (both variants) | the client puts `ACCOUNT-secondary` in front of the path at each try and never takes it away: path style is not foreseen there |
| `test_sas_signed_identifier` (storage, sync and async) | its stored policy expired in October 2025 |

The official JavaScript client: 116 of 116 checks.

## Access

| credential | what it opens |
|---|---|
| `Authorization: SharedKey`, `SharedKeyLite` | everything; with the account's read-only keys what reads |
| shared access signature of the account, of a table, by a stored policy | what its letters, resource types, ranges of keys and times say |
| `Authorization: type=resource&ver=1&sig=…`, as it stands in a permission of the NoSQL API or percent-encoded | a permission over a container of `TablesDB` opens the table, one with a partition key the entities under it, one over an item that entity; in mode Read to read, in mode All to change. An item is not made anew, and lists of tables, policies and service properties are for keys |

## Older clients

In the SDK tests, over HTTP and TLS, in both dialects, besides the current SDKs for Python, JavaScript, Java and Go:

| client | passed | what is its own |
|---|---|---|
| Python `azure-cosmosdb-table` 1.0.6 | all | asks again for a minute after a batch that failed, because the answer around it is a 202 (`service.retry = no_retry`) |
| npm `azure-storage` 2.10.7 | all | |
| Java `com.microsoft.azure:azure-storage` 8.6.6 | all | |

Python's `azure-storage` (0.3x) no longer builds with the setuptools of today, and Maven Central has no `com.microsoft.azure:azure-cosmosdb-table`.

";

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: table_page FILE");
        return ExitCode::FAILURE;
    };
    match std::fs::write(&file, format!("{INTRODUCTION}{}", orrery_api_table::compat_page())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write {file}: {error}");
            ExitCode::FAILURE
        }
    }
}
