//! Whatever arrives is answered: random requests, made of the parts of good ones, never panic and always get a
//! well-formed answer. The seed is printed on failure; set `ORRERY_SEED` to repeat it.

mod support;

use serde_json::Value;
use support::Client;

const REQUESTS: usize = 6_000;

const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
const SEGMENTS: &[&str] = &[
    "dbs",
    "d",
    "colls",
    "c",
    "docs",
    "1",
    "pkranges",
    "conflicts",
    "offers",
    "operations",
    "partitionkeydelete",
    "AAAAAQ==",
    "AAAAAYAAAAE=",
    "AAAA",
    "%20",
    "%E4%BD%A0",
    "%FF",
    "",
    "sprocs",
    "users",
    "a%2Fb",
    "AAAAAYAAAAEBAAAAAAAAAA==",
];
const PATHS: &[&str] = &[
    "/",
    "/dbs",
    "/dbs/d",
    "/dbs/d/colls",
    "/dbs/d/colls/c",
    "/dbs/d/colls/c/docs",
    "/dbs/d/colls/c/docs/1",
    "/dbs/d/colls/c/pkranges",
    "/offers",
    "/dbs/AAAAAQ==/colls/AAAAAYAAAAE=/docs",
];
const HEADERS: &[(&str, &[&str])] = &[
    (
        "x-ms-documentdb-partitionkey",
        &["[\"a\"]", "[]", "[{}]", "[null]", "[1e400]", "[\"a\",\"b\"]", "{", "[[[[", ""],
    ),
    ("x-ms-documentdb-partitionkeyrangeid", &["0", "1", "99999999999", "-1", "x,0", ""]),
    ("x-ms-max-item-count", &["1", "-1", "0", "abc", "99999999999999999999"]),
    (
        "x-ms-continuation",
        &["garbage", "+RID:~#N:1", "{\"token\":\"+RID:~AAAAAYAAAAE=#RT:1#P:AQ\"}", "[[[[[["],
    ),
    ("x-ms-session-token", &["0:-1#1", "0:-1#999999", "x", "0:"]),
    ("x-ms-consistency-level", &["Strong", "Eventual", "Whatever"]),
    ("if-match", &["*", "\"x\"", ""]),
    ("if-none-match", &["*", "\"1\"", "\"0:1,1:2\"", "\"", "\"x:y\""]),
    ("if-modified-since", &["Mon, 14 Nov 2033 21:00:00 GMT", "never"]),
    ("a-im", &["Incremental Feed", "Full-Fidelity Feed", ""]),
    ("prefer", &["return=minimal"]),
    ("content-type", &["application/json", "application/query+json", "application/sql"]),
    ("x-ms-documentdb-isquery", &["True"]),
    ("x-ms-documentdb-query-enablecrosspartition", &["True"]),
    ("x-ms-documentdb-is-upsert", &["true"]),
    ("x-ms-cosmos-is-batch-request", &["True"]),
    ("x-ms-cosmos-batch-atomic", &["True", "False"]),
    ("x-ms-cosmos-is-query-plan-request", &["True"]),
    ("x-ms-start-epk", &["", "1F", "XYZ", "ABC"]),
    ("x-ms-end-epk", &["FF", "", "0"]),
    ("x-ms-read-key-type", &["EffectivePartitionKeyRange", "EffectivePartitionKey"]),
    ("x-ms-offer-throughput", &["400", "-1", "x", "99999999999"]),
    ("x-ms-cosmos-offer-autopilot-settings", &["{\"maxThroughput\":4000}", "{", "{}"]),
    ("x-ms-version", &["2018-12-31", "", "9999"]),
    ("x-ms-cosmos-intended-collection-rid", &["AAAAAYAAAAE=", "nonsense"]),
    ("x-ms-documentdb-populatequotainfo", &["true"]),
    ("x-ms-documentdb-populatepartitionstatistics", &["true"]),
];
const BODIES: &[&str] = &[
    "",
    "{",
    "null",
    "[]",
    "7",
    "{}",
    r#"{"id":"1","pk":"a"}"#,
    r#"{"id":"2","pk":"a","ttl":-5}"#,
    r#"{"id":7}"#,
    r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#,
    r#"{"id":"x","partitionKey":7}"#,
    r#"{"query":"SELECT * FROM c"}"#,
    r#"{"query":"SELECT VALUE COUNT(1) FROM c"}"#,
    r#"{"query":"SELECT c.id FROM c ORDER BY c.id"}"#,
    r#"{"query":5}"#,
    r#"{"query":"SELECT @p","parameters":[{"name":"@p","value":[[]]}]}"#,
    r#"[{"operationType":"Create","resourceBody":{"id":"9","pk":"a"}},{"operationType":"Read","id":"9"}]"#,
    r#"[{"operationType":"Patch","id":"1","resourceBody":{"operations":[{"op":"incr","path":"/n","value":1}]}}]"#,
    r#"{"operations":[{"op":"add","path":"/x/-","value":1}],"condition":"from c where c.id = '1'"}"#,
    r#"{"operations":[{"op":"set","path":"/n","value":1}]}"#,
    r#"{"content":{"offerThroughput":500}}"#,
    "\u{0}\u{1}",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.roll(from.len())]
    }
}

#[test]
fn random_requests_are_answered_well() {
    let seed = std::env::var("ORRERY_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_116);
    println!("ORRERY_SEED={seed}");
    let mut dice = Dice(seed);
    let client = Client::new(&Value::Null);
    let mut statuses = std::collections::BTreeMap::new();
    for n in 0..REQUESTS {
        if n % 500 == 0 {
            // Random deletes leave little to talk to; put the usual things back.
            client.send("POST", "/dbs", &[], br#"{"id":"d"}"#.to_vec(), "primary");
            let container =
                br#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#.to_vec();
            client.send("POST", "/dbs/d/colls", &[], container, "primary");
        }
        let method = dice.pick(METHODS);
        let path = if dice.roll(4) > 0 {
            dice.pick(PATHS).to_owned()
        } else {
            let segments: Vec<&str> = (0..dice.roll(8)).map(|_| dice.pick(SEGMENTS)).collect();
            format!("/{}", segments.join("/"))
        };
        // Deleting the database over and over would leave nothing to test.
        if method == "DELETE" && dice.roll(20) > 0 && path.len() < 16 {
            continue;
        }
        let headers: Vec<(String, String)> = (0..dice.roll(6))
            .map(|_| {
                let (name, values) = HEADERS[dice.roll(HEADERS.len())];
                (name.to_owned(), dice.pick(values).to_owned())
            })
            .collect();
        let body = dice.pick(BODIES).as_bytes().to_vec();
        let key = dice.pick(&["primary", "primary", "primary", "primary_readonly", "none"]);
        let shown = format!("{method} {path} {headers:?} {:?} as {key}", String::from_utf8_lossy(&body));
        let reply = client.send(method, &path, &headers, body, key);
        *statuses.entry(reply.status).or_insert(0usize) += 1;
        assert!((200..600).contains(&reply.status) && reply.status < 500, "{shown}\n{reply}");
        if reply.status == 204 || reply.status == 304 {
            assert!(reply.body.is_empty(), "{shown}\n{reply}");
        }
        if reply.status >= 400 {
            let json = reply.json();
            assert!(json["code"].is_string(), "{shown}\n{reply}");
            assert!(json["message"].is_string() || method == "OPTIONS", "{shown}\n{reply}");
        }
    }
    assert!(statuses.len() > 6, "the requests are too alike: {statuses:?}");
}
