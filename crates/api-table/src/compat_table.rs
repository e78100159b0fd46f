//! Every route of the protocol and what this server does about it. The compatibility page is made from this table and
//! from that of the error codes.

use std::fmt::Write as _;

use crate::errors::CODES;

/// A line: route, verb, what, state, note.
type Line = (&'static str, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const ROUTES: &[Line] = &[
    ("/Tables", "GET", "list tables", "supported", "`$filter` over TableName, `$top`, continuation"),
    ("/Tables", "POST", "create a table", "supported", "with `x-ms-offer-throughput` or `x-ms-cosmos-offer-autopilot-settings`, as for containers"),
    ("/Tables('t')", "GET", "read a table", "supported", ""),
    ("/Tables('t')", "DELETE", "delete a table", "supported", ""),
    ("/t", "POST", "insert an entity", "supported", "`Prefer: return-content`, `return-no-content`"),
    ("/t(PartitionKey='p',RowKey='r')", "GET", "read an entity", "supported", "`$select`"),
    ("/t(PartitionKey='p',RowKey='r')", "PUT", "replace (If-Match), insert or replace", "supported", ""),
    ("/t(PartitionKey='p',RowKey='r')", "PATCH, MERGE, POST with X-HTTP-Method: MERGE", "merge (If-Match), insert or merge", "supported", "atomic: bound to the version it was made from"),
    ("/t(PartitionKey='p',RowKey='r')", "DELETE", "delete an entity", "supported", "needs If-Match, which may be `*`"),
    ("/t(), /t", "GET", "query entities", "supported", "`$filter`, `$select`, `$top`; in the order of (PartitionKey, RowKey) in both dialects"),
    ("/$batch", "POST", "changeset", "supported", "100 operations, 2 MB (4 MB in storage's dialect), one partition, all or nothing"),
    ("/$batch", "POST", "single query", "supported", ""),
    ("/t?comp=acl", "GET, PUT", "stored access policies", "supported", "Cosmos DB has none; both dialects are served here"),
    ("/?comp=properties", "GET, PUT", "service properties", "partial", "kept and returned; logging and metrics change nothing, the rules of CORS are followed"),
    ("/?comp=stats", "GET", "service statistics", "supported", "one place, which is always live"),
    ("any", "OPTIONS", "CORS preflight", "supported", "by the rules among the service properties"),
    ("/ACCOUNT-secondary/…", "GET", "secondary endpoint", "supported", "the same data; in storage's dialect writes are refused"),
    ("any", "", "ATOM", "absent", "answers are JSON"),
    ("any", "", "Entra tokens", "absent", "keys, shared access signatures and resource tokens"),
];

/// The page as Markdown, without its head.
pub fn page() -> String {
    let mut page =
        String::from("## Routes\n\n| route | verb | what | state | note |\n|---|---|---|---|---|\n");
    for (route, verb, what, state, note) in ROUTES {
        let _ = writeln!(page, "| `{route}` | {verb} | {what} | {state} | {note} |");
    }
    page.push_str("\n## Errors\n\n| code | status | message |\n|---|---|---|\n");
    let mut codes: Vec<_> = CODES.iter().collect();
    codes.sort_by_key(|(_, name, ..)| *name);
    for (_, name, status, message) in codes {
        let _ = writeln!(page, "| {name} | {status} | {message} |");
    }
    page
}
