//! Every route of the service and what this server does about it. The compatibility page is generated from this table.

/// How far a route is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupportLevel {
    Supported,
    Partial,
}

impl SupportLevel {
    pub fn name(self) -> &'static str {
        match self {
            SupportLevel::Supported => "supported",
            SupportLevel::Partial => "partial",
        }
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Support {
    pub route: &'static str,
    pub verb: &'static str,
    pub what: &'static str,
    pub state: SupportLevel,
    pub note: &'static str,
}

const fn line(
    route: &'static str,
    verb: &'static str,
    what: &'static str,
    state: SupportLevel,
    note: &'static str,
) -> Support {
    Support { route, verb, what, state, note }
}

use SupportLevel::Supported;

#[rustfmt::skip]
pub const SUPPORT: &[Support] = &[
    line("/", "GET", "account document", Supported, "the endpoint is the address that the client used"),
    line("/dbs", "GET", "list databases", Supported, ""),
    line("/dbs", "POST", "create a database, query databases", Supported, ""),
    line("/dbs/{db}", "GET", "read a database", Supported, ""),
    line("/dbs/{db}", "DELETE", "delete a database", Supported, ""),
    line("/dbs/{db}/colls", "GET", "list containers", Supported, ""),
    line("/dbs/{db}/colls", "POST", "create a container, query containers", Supported, ""),
    line("/dbs/{db}/colls/{coll}", "GET", "read a container", Supported, "statistics count items and bytes, not distinct keys"),
    line("/dbs/{db}/colls/{coll}", "PUT", "replace a container's properties", Supported, ""),
    line("/dbs/{db}/colls/{coll}", "DELETE", "delete a container", Supported, ""),
    line("/dbs/{db}/colls/{coll}/docs", "GET", "read the items", Supported, ""),
    line("/dbs/{db}/colls/{coll}/docs", "GET", "change feed (A-IM: Incremental Feed)", Supported, "latest version of each item"),
    line("/dbs/{db}/colls/{coll}/docs", "GET", "change feed (A-IM: Full-Fidelity Feed)", Supported, "all versions and deletes, where the container's changeFeedPolicy keeps them; its member previousImages (boolean, this server's own) asks for replaced versions too"),
    line("/dbs/{db}/colls/{coll}/docs", "POST", "create or upsert an item", Supported, ""),
    line("/dbs/{db}/colls/{coll}/docs", "POST", "batch and bulk", Supported, "as JSON, or as rows (HybridRow), which is what .NET sends"),
    line("/dbs/{db}/colls/{coll}/docs", "POST", "query", Supported, "from the index; the README of this folder names the searches that read items"),
    line("/dbs/{db}/colls/{coll}/docs", "POST", "query plan", Supported, ""),
    line("/dbs/{db}/colls/{coll}/docs/{item}", "GET", "read an item", Supported, ""),
    line("/dbs/{db}/colls/{coll}/docs/{item}", "PUT", "replace an item", Supported, ""),
    line("/dbs/{db}/colls/{coll}/docs/{item}", "PATCH", "patch an item", Supported, ""),
    line("/dbs/{db}/colls/{coll}/docs/{item}", "DELETE", "delete an item", Supported, ""),
    line("/dbs/{db}/colls/{coll}/docs/{item}/attachments", "GET", "list attachments", Supported, "retired by the service, for clients of 2015 to 2019"),
    line("/dbs/{db}/colls/{coll}/docs/{item}/attachments", "POST", "create or upsert an attachment, query attachments", Supported, "a link, or the media themselves with Slug and Content-Type: 2 MB each, 100 and 4 MB for an item"),
    line("/dbs/{db}/colls/{coll}/docs/{item}/attachments/{id}", "GET, PUT, DELETE", "read, replace, delete an attachment", Supported, ""),
    line("/media/{id}", "GET, PUT", "read and replace the media of an attachment", Supported, ""),
    line("/dbs/{db}/colls/{coll}/operations/partitionkeydelete", "POST", "delete all items of a key", Supported, ""),
    line("/dbs/{db}/colls/{coll}/pkranges", "GET", "read the partition key ranges", Supported, ""),
    line("/dbs/{db}/colls/{coll}/pkranges", "POST", "query the partition key ranges", Supported, ""),
    line("/dbs/{db}/colls/{coll}/conflicts", "GET", "list conflicts", Supported, "one region has none"),
    line("/dbs/{db}/colls/{coll}/conflicts", "POST", "query conflicts", Supported, "one region has none"),
    line("/dbs/{db}/colls/{coll}/conflicts/{id}", "GET, DELETE", "one conflict", Supported, "always 404"),
    line("/dbs/{db}/users", "GET", "list users", Supported, ""),
    line("/dbs/{db}/users", "POST", "create or upsert a user, query users", Supported, ""),
    line("/dbs/{db}/users/{user}", "GET, PUT, DELETE", "read, replace, delete a user", Supported, "its permissions go with it"),
    line("/dbs/{db}/users/{user}/permissions", "GET", "list permissions", Supported, "every answer about a permission holds a new resource token"),
    line("/dbs/{db}/users/{user}/permissions", "POST", "create or upsert a permission, query permissions", Supported, ""),
    line("/dbs/{db}/users/{user}/permissions/{id}", "GET, PUT, DELETE", "read, replace, delete a permission", Supported, "tokens handed out stay good until they expire"),
    line("/dbs/{db}/colls/{coll}/sprocs[/{id}]", "all", "stored procedures", Supported, "without attachments; a promise that fails unseen fails the script"),
    line("/dbs/{db}/colls/{coll}/sprocs/{id}", "POST", "execute a stored procedure", Supported, ""),
    line("/dbs/{db}/colls/{coll}/triggers[/{id}]", "all", "triggers", Supported, ""),
    line("/dbs/{db}/colls/{coll}/udfs[/{id}]", "all", "user-defined functions", Supported, ""),
    line("/dbs/{db}/clientencryptionkeys", "GET", "list client encryption keys", Supported, "kept for clients that encrypt; the server cannot unwrap them"),
    line("/dbs/{db}/clientencryptionkeys", "POST", "create a client encryption key, query them", Supported, ""),
    line("/dbs/{db}/clientencryptionkeys/{id}", "GET, PUT", "read, replace a client encryption key", Supported, "goes with its database, as on the service"),
    line("/offers", "GET", "list offers", Supported, ""),
    line("/offers", "POST", "query offers", Supported, ""),
    line("/offers/{rid}", "GET", "read an offer", Supported, ""),
    line("/offers/{rid}", "PUT", "replace an offer", Supported, "manual, autoscale, and the headers that switch between them"),
    line("/_orrery/partitions", "GET", "what physical partitions hold and spend, their hottest and largest keys", Supported, "this server's own; see `orrery partitions`"),
    line("/_orrery/whoami", "GET", "who asks, and the limits of the account", Supported, "this server's own"),
    line("/_orrery/check", "POST", "what is wrong with the text of a query, and where, without running it", Supported, "this server's own"),
    line("/_orrery/faults", "GET, PUT, DELETE", "fault rules for tests", Supported, "this server's own; see `orrery faults`"),
    line("/_orrery/throttling", "GET, PUT", "whether what exceeds the throughput is refused, switched while the server runs", Supported, "this server's own; begins as `--throttling` says"),
    line("/_orrery/clock", "GET, POST", "the clock of the server, which tests may move forward", Supported, "this server's own; needs `--test-controls on`"),
    line("/_orrery/reset", "POST", "delete all databases", Supported, "this server's own; needs `--test-controls on`"),
    line("/_orrery/advise", "POST", "which partition key a container should have, by its items and by requests", Supported, "this server's own; see `orrery advise`"),
    line("/_orrery/forks", "GET, POST, DELETE", "databases that begin with what another holds now, and end with the server", Supported, "this server's own; see `orrery fork`"),
    line("/dbs", "HEAD", "how far the catalog is", Supported, "what clients in direct mode ask"),
    line("/dbs/{db}/colls/{coll}", "HEAD", "how far a partition is", Supported, "what clients in direct mode ask"),
    line("/addresses", "GET", "replica addresses", Supported, "for direct mode, see rntbd.md; off with --direct-mode off"),
];

/// The table as Markdown.
pub fn support_table() -> String {
    let mut text = String::from("| route | verb | what | state | note |\n|---|---|---|---|---|\n");
    for Support { route, verb, what, state, note } in SUPPORT {
        text.push_str(&format!("| `{route}` | {verb} | {what} | {} | {note} |\n", state.name()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::Path;

    /// A route in the table is one that the router knows.
    #[test]
    fn the_table_and_the_router_agree() {
        for line in SUPPORT {
            let path = line.route.replace(['[', ']'], "").replace(['{', '}'], "");
            // Media have no names.
            let path = path.replace("media/id", "media/AAAAAYAAAALoAwAAAAAAAAEAAAAB");
            // Addresses are of something.
            let path = path.replace("/addresses", "/addresses?$resolveFor=dbs");
            let uri = path.parse().unwrap();
            assert!(Path::of_uri(&uri).is_ok(), "{} is no route", line.route);
        }
    }

    #[test]
    fn the_page_has_a_line_for_every_route() {
        assert_eq!(support_table().lines().count(), SUPPORT.len() + 2);
    }
}
