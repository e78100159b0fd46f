//! Who may do what: every operation by every kind of caller, as `tests/golden/access/matrix.txt` says.
//!
//! A line of the file is an operation, a request, and the status that each caller gets. Every operation of the server
//! must have a line, so a new one fails here until it has been decided who may do it. All requests that are refused
//! run against one account, which must be the same afterwards as before; each one that is let in has an account of
//! its own. `ORRERY_SNAPSHOTS=write` puts the statuses of a run into the file; read the difference before committing
//! it.

mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use orrery_api_nosql::{EMULATOR_KEY, OPERATIONS};
use serde_json::{Value, json};
use support::{Client, Reply};

/// The callers, in the order of the file's columns. Those from `container_all` on hold a resource token.
const CALLERS: &[&str] = &[
    "primary",
    "secondary",
    "primary_readonly",
    "secondary_readonly",
    "directory",
    "nobody",
    "expired",
    "forged",
    "foreign",
    "container_all",
    "container_read",
    "container_rid",
    "key_all",
    "key_read",
    "item_all",
    "item_read",
    "item_rid",
    "script_all",
    "script_read",
    "script_rid",
    "elsewhere",
    "other_database",
    "crossing",
];

/// Seconds that the expired token was good for.
const SHORT_S: u64 = 600;

struct Line {
    operation: String,
    request: String,
    statuses: Vec<u16>,
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/access/matrix.txt")
}

/// `operation | request | one status for each caller`
fn lines(text: &str) -> Vec<Line> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut parts = line.split('|').map(str::trim);
            let mut part = || parts.next().unwrap_or_else(|| panic!("{line} has too few parts")).to_owned();
            let (operation, request) = (part(), part());
            let statuses = part().split_whitespace().map(|status| status.parse().unwrap()).collect();
            Line { operation, request, statuses }
        })
        .collect()
}

#[test]
fn every_operation_by_every_caller_is_answered_as_decided() {
    let text = std::fs::read_to_string(file()).unwrap();
    let lines = lines(&text);
    let known: BTreeSet<&str> = lines.iter().map(|line| line.operation.as_str()).collect();
    let missing: Vec<&&str> = OPERATIONS.iter().filter(|name| !known.contains(**name)).collect();
    assert!(missing.is_empty(), "decide in {} who may do {missing:?}", file().display());
    if std::env::var_os("ORRERY_SNAPSHOTS").is_some_and(|mode| mode == "write") {
        std::fs::write(file(), written(&text, &lines)).unwrap();
        return;
    }
    let shared = World::new();
    let before = shared.everything();
    let mut failures = Vec::new();
    for line in &lines {
        assert_eq!(line.statuses.len(), CALLERS.len(), "{} {}", line.operation, line.request);
        for (caller, wanted) in CALLERS.iter().zip(&line.statuses) {
            let own;
            let world = if *wanted < 300 && !line.request.starts_with("GET") {
                own = World::new();
                &own
            } else {
                &shared
            };
            let reply = world.send(&line.request, caller);
            if let Err(why) = check(&reply, *wanted) {
                failures.push(format!("{} as {caller}: {why}\n    {reply}", line.request));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(shared.everything(), before, "a refused request has changed something");
}

/// Whatever a holder of key "a" asks for, in whatever words, and from wherever it claims to go on.
#[test]
fn a_key_grant_sees_nothing_of_other_keys() {
    let world = World::new();
    for n in 0..30 {
        for key in ["a", "b", "z"] {
            world.item("/dbs/d/colls/c/docs", json!({ "id": format!("x{n}"), "pk": key }), key);
        }
    }
    let whole = world.send("GET /dbs/d/colls/c/docs size=7", "primary");
    let ahead = whole.header("x-ms-continuation").unwrap().to_owned();
    let rid = world.read("/dbs/d/colls/c", None)["_rid"].as_str().unwrap().to_owned();
    // Made up: before everything, in the order of creation and in the order of keys.
    let mut made_up: Vec<Vec<u8>> = vec![vec![1, 0, 0, 0, 1, 0xFF, 1, 0, 0, 0, 0, 0, 0, 0, 0]];
    made_up.push(vec![1, 0, 0, 0, 1, 0xFF, 2, 0]);
    let made_up = made_up.iter().map(|position| {
        let position = URL_SAFE_NO_PAD.encode(position);
        json!({ "token": format!("+RID:~{rid}#RT:1#P:{position}"), "range": { "min": "", "max": "FF" } })
            .to_string()
    });
    let positions: Vec<String> = [String::new(), ahead].into_iter().chain(made_up).collect();
    let epk = "epk=3A5381E1114EB8D3FCC90795045B49B7-3A5381E1114EB8D3FCC90795045B49B8";
    let requests = [
        "GET /dbs/d/colls/c/docs key=a".to_owned(),
        format!("GET /dbs/d/colls/c/docs {epk}"),
        "GET /dbs/d/colls/c/docs changes key=a".to_owned(),
        format!("GET /dbs/d/colls/c/docs changes {epk} range=0"),
        "POST /dbs/d/colls/c/docs query key=a".to_owned(),
        format!("POST /dbs/d/colls/c/docs query {epk}"),
    ];
    for request in &requests {
        for position in &positions {
            let go_on = if position.is_empty() { String::new() } else { format!(" from={position}") };
            let reply = world.send(&format!("{request}{go_on}"), "key_read");
            let body = reply.json();
            let items = body["Documents"].as_array().map(Vec::as_slice).unwrap_or_default();
            assert!(items.iter().all(|item| item["pk"] == "a"), "{request}{go_on}: {reply}");
            if position.is_empty() {
                assert_eq!(items.len(), 32, "{request}: {reply}");
            }
        }
    }
}

/// A beginning of a hierarchical key opens what lies under it, and nothing beside it.
#[test]
fn a_grant_for_the_beginning_of_a_key_opens_what_lies_under_it() {
    let mut world = World::new();
    let key = json!({ "paths": ["/a", "/b"], "kind": "MultiHash", "version": 2 });
    world.make("/dbs/d/colls", json!({ "id": "h", "partitionKey": key }));
    let path = "/dbs/d/colls/h/docs";
    for (a, b) in [("x", "1"), ("x", "2"), ("y", "1")] {
        let body = json!({ "id": format!("{a}{b}"), "a": a, "b": b }).to_string();
        let header = ("x-ms-documentdb-partitionkey".to_owned(), json!([a, b]).to_string());
        assert_eq!(world.client.send("POST", path, &[header], body.into_bytes(), "primary").status, 201);
    }
    let token = world.grant("half", "d", "All", "dbs/d/colls/h", Some("x"), 18_000);
    world.tokens.push(("half", token));
    let keyed = |key: Value, verb: &str, path: &str, body: &str| {
        let headers = [
            ("x-ms-documentdb-partitionkey".to_owned(), key.to_string()),
            ("authorization".to_owned(), encoded(world.token("half"))),
        ];
        world.client.send(verb, path, &headers, body.as_bytes().to_vec(), "none")
    };
    assert_eq!(keyed(json!(["x", "1"]), "GET", "/dbs/d/colls/h/docs/x1", "").status, 200);
    assert_eq!(keyed(json!(["y", "1"]), "GET", "/dbs/d/colls/h/docs/y1", "").status, 403);
    assert_eq!(keyed(json!(["x", "3"]), "POST", path, r#"{"id":"n","a":"x","b":"3"}"#).status, 201);
    assert_eq!(keyed(json!(["y", "3"]), "POST", path, r#"{"id":"n","a":"y","b":"3"}"#).status, 403);
    assert_eq!(keyed(json!(["x"]), "GET", path, "").json()["_count"], 3);
    assert_eq!(keyed(json!(["x", "2"]), "GET", path, "").json()["_count"], 1);
    assert_eq!(keyed(json!(["y"]), "GET", path, "").status, 403);
    assert_eq!(keyed(json!([]), "GET", path, "").status, 403);
}

/// The status, and the words of a refusal: they tell nothing about what was asked for.
fn check(reply: &Reply, wanted: u16) -> Result<(), String> {
    if reply.status != wanted {
        return Err(format!("wanted {wanted}, got {}", reply.status));
    }
    let message = reply.json()["message"].as_str().unwrap_or_default().to_owned();
    let words = match wanted {
        403 => {
            ["Insufficient permissions provided in the", "The authorization token is not valid at"].as_slice()
        }
        401 => ["Required Header authorization is missing", "The input authorization token can't"].as_slice(),
        _ => return Ok(()),
    };
    match words.iter().any(|start| message.starts_with(start)) {
        true => Ok(()),
        false => Err("other words than those of the service".to_owned()),
    }
}

/// The file with the statuses of this run.
fn written(text: &str, lines: &[Line]) -> String {
    let mut out: String =
        text.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    let (name, request) = lines.iter().fold((0, 0), |(name, request), line| {
        (name.max(line.operation.len()), request.max(line.request.chars().count()))
    });
    for line in lines {
        let statuses: Vec<String> = CALLERS
            .iter()
            .map(|caller| World::new().send(&line.request, caller).status.to_string())
            .collect();
        out.push_str(&format!(
            "{:name$} | {:request$} | {}\n",
            line.operation,
            line.request,
            statuses.join(" ")
        ));
    }
    out
}

/// An account with something of everything, and a token of every kind.
struct World {
    client: Client,
    tokens: Vec<(&'static str, String)>,
}

impl World {
    fn new() -> World {
        let client = Client::new(&Value::Null);
        let mut world = World { client, tokens: Vec::new() };
        for database in ["d", "e"] {
            world.make("/dbs", json!({ "id": database }));
            for container in ["c", "other"] {
                let key = json!({ "paths": ["/pk"], "kind": "Hash", "version": 2 });
                world
                    .make(&format!("/dbs/{database}/colls"), json!({ "id": container, "partitionKey": key }));
                for (id, key) in [("i1", "a"), ("i2", "a"), ("i1", "b")] {
                    let body = json!({ "id": id, "pk": key });
                    world.item(&format!("/dbs/{database}/colls/{container}/docs"), body, key);
                }
            }
        }
        let wrap = json!({ "type": "t", "name": "n", "value": "v" });
        let key = json!({
            "id": "k", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": "AAEC",
            "keyWrapMetadata": wrap,
        });
        world.make("/dbs/d/clientencryptionkeys", key);
        for key in ["a", "b"] {
            let headers = [key_header(key), ("slug".to_owned(), "t".to_owned())];
            let path = "/dbs/d/colls/c/docs/i1/attachments";
            assert_eq!(world.client.send("POST", path, &headers, b"media".to_vec(), "primary").status, 201);
        }
        world.make("/dbs/d/colls/c/sprocs", json!({ "id": "s", "body": "function () {}" }));
        let container = world.read("/dbs/d/colls/c", None)["_self"].as_str().unwrap().to_owned();
        let item = world.read("/dbs/d/colls/c/docs/i1", Some("a"))["_self"].as_str().unwrap().to_owned();
        let script = world.read("/dbs/d/colls/c/sprocs/s", None)["_self"].as_str().unwrap().to_owned();
        let (c, i) = ("dbs/d/colls/c", "dbs/d/colls/c/docs/i1");
        let grants = [
            ("container_all", "d", "All", c, None),
            ("container_read", "d", "Read", c, None),
            ("container_rid", "d", "All", container.as_str(), None),
            ("key_all", "d", "All", c, Some("a")),
            ("key_read", "d", "Read", c, Some("a")),
            ("item_all", "d", "All", i, Some("a")),
            ("item_read", "d", "Read", i, Some("a")),
            ("item_rid", "d", "All", item.as_str(), Some("a")),
            ("script_all", "d", "All", "dbs/d/colls/c/sprocs/s", None),
            ("script_read", "d", "Read", "dbs/d/colls/c/sprocs/s", None),
            ("script_rid", "d", "All", script.as_str(), None),
            ("elsewhere", "d", "All", "dbs/d/colls/other", None),
            ("other_database", "e", "All", "dbs/e/colls/c", None),
            ("crossing", "e", "All", c, None),
        ];
        for (name, database, mode, resource, key) in grants {
            let token = world.grant(name, database, mode, resource, key, 18_000);
            world.tokens.push((name, token));
        }
        let expired = world.grant("expired", "d", "All", c, None, SHORT_S);
        world.tokens.push(("expired", expired));
        world.client.advance_ms(SHORT_S * 1000);
        let forged = forged(world.token("container_read"));
        world.tokens.push(("forged", forged));
        world.tokens.push(("foreign", foreign()));
        world
    }

    fn token(&self, name: &str) -> &str {
        &self.tokens.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no token {name}")).1
    }

    /// A user of its own for every grant: one may have only one for a resource.
    fn grant(
        &self,
        user: &str,
        database: &str,
        mode: &str,
        resource: &str,
        key: Option<&str>,
        lifetime_s: u64,
    ) -> String {
        self.make(&format!("/dbs/{database}/users"), json!({ "id": user }));
        let mut body = json!({ "id": "p", "permissionMode": mode, "resource": resource });
        if let Some(key) = key {
            body["resourcePartitionKey"] = json!([key]);
        }
        let headers = [("x-ms-documentdb-expiry-seconds".to_owned(), lifetime_s.to_string())];
        let path = format!("/dbs/{database}/users/{user}/permissions");
        let reply = self.client.send("POST", &path, &headers, body.to_string().into_bytes(), "primary");
        assert_eq!(reply.status, 201, "{reply}");
        reply.json()["_token"].as_str().unwrap().to_owned()
    }

    fn make(&self, path: &str, body: Value) {
        let reply = self.client.send("POST", path, &[], body.to_string().into_bytes(), "primary");
        assert_eq!(reply.status, 201, "{path}: {reply}");
    }

    fn item(&self, path: &str, body: Value, key: &str) {
        let reply =
            self.client.send("POST", path, &[key_header(key)], body.to_string().into_bytes(), "primary");
        assert_eq!(reply.status, 201, "{path}: {reply}");
    }

    fn read(&self, path: &str, key: Option<&str>) -> Value {
        let headers: Vec<(String, String)> = key.into_iter().map(key_header).collect();
        let reply = self.client.send("GET", path, &headers, Vec::new(), "primary");
        assert_eq!(reply.status, 200, "{path}: {reply}");
        reply.json()
    }

    /// All that a request could have changed.
    fn everything(&self) -> Vec<Value> {
        let mut paths = vec!["/dbs".to_owned(), "/offers".to_owned()];
        for database in ["d", "e"] {
            paths.push(format!("/dbs/{database}/colls"));
            paths.push(format!("/dbs/{database}/users"));
            paths.push(format!("/dbs/{database}/clientencryptionkeys"));
            for container in ["c", "other"] {
                paths.push(format!("/dbs/{database}/colls/{container}/docs"));
            }
        }
        let mut all: Vec<Value> = paths.iter().map(|path| self.read(path, None)).collect();
        for key in ["a", "b"] {
            all.push(self.read("/dbs/d/colls/c/docs/i1/attachments", Some(key)));
        }
        let mut permission = self.read("/dbs/d/users/container_all/permissions/p", None);
        permission["_token"] = Value::Null;
        all.push(permission);
        all
    }

    /// Sends a line's request: verb, path, and words that stand for headers and the body.
    fn send(&self, request: &str, caller: &str) -> Reply {
        let mut words = request.split_whitespace();
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let rid = |path: &str| self.read(path, None)["_rid"].as_str().unwrap().to_owned();
        let mut path = path.to_owned();
        for (mark, of) in [("{d}", "/dbs/d"), ("{c}", "/dbs/d/colls/c"), ("{s}", "/dbs/d/colls/c/sprocs/s")] {
            if path.contains(mark) {
                path = path.replace(mark, &rid(of));
            }
        }
        if let Some(key) = path.strip_prefix("{media:").and_then(|rest| rest.strip_suffix('}')) {
            let attachment = self.read("/dbs/d/colls/c/docs/i1/attachments/t", Some(key));
            path = attachment["media"].as_str().unwrap().to_owned();
        }
        if path.contains("{offer}") {
            let offers = self.read("/offers", None);
            path = path.replace("{offer}", offers["Offers"][0]["id"].as_str().unwrap());
        }
        let mut headers = Vec::new();
        let mut body = Vec::new();
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            match name {
                "key" => headers.push(key_header(value)),
                "range" => headers.push(header("x-ms-documentdb-partitionkeyrangeid", value)),
                "query" => {
                    headers.push(header("x-ms-documentdb-isquery", "true"));
                    headers.push(header("content-type", "application/query+json"));
                    headers.push(header("x-ms-documentdb-query-enablecrosspartition", "true"));
                    body = json!({ "query": "SELECT * FROM c" }).to_string().into_bytes();
                }
                "plan" => {
                    headers.push(header("x-ms-cosmos-is-query-plan-request", "true"));
                    headers.push(header("x-ms-cosmos-supported-query-features", "Aggregate, OrderBy"));
                    body = json!({ "query": "SELECT * FROM c" }).to_string().into_bytes();
                }
                "upsert" => headers.push(header("x-ms-documentdb-is-upsert", "true")),
                "changes" => headers.push(header("a-im", "Incremental Feed")),
                "batch" => {
                    headers.push(header("x-ms-cosmos-is-batch-request", "true"));
                    headers.push(header("x-ms-cosmos-batch-atomic", "true"));
                    body = operations(&[("b1", Some(value).filter(|key| !key.is_empty()))]);
                }
                "bulk" => {
                    headers.push(header("x-ms-cosmos-is-batch-request", "true"));
                    headers.push(header("x-ms-cosmos-batch-continue-on-error", "true"));
                    let keys: Vec<&str> = value.split(',').collect();
                    body = operations(&keys.iter().map(|key| ("b1", Some(*key))).collect::<Vec<_>>());
                }
                "epk" => {
                    let (min, max) = value.split_once('-').unwrap();
                    headers.push(header("x-ms-start-epk", min));
                    headers.push(header("x-ms-end-epk", max));
                    headers.push(header("x-ms-read-key-type", "EffectivePartitionKeyRange"));
                }
                "size" => headers.push(header("x-ms-max-item-count", value)),
                "from" => headers.push(header("x-ms-continuation", value)),
                "body" => body = value.as_bytes().to_vec(),
                other => panic!("{other} is no word of a request"),
            }
        }
        let signer = match caller {
            "primary" | "secondary" | "primary_readonly" | "secondary_readonly" => caller,
            "nobody" => "none",
            "directory" => {
                headers.push(("authorization".to_owned(), directory_token(self.client.now_s())));
                "none"
            }
            _ => {
                headers.push(("authorization".to_owned(), encoded(self.token(caller))));
                "none"
            }
        };
        self.client.send(method, &path, &headers, body, signer)
    }
}

fn key_header(key: &str) -> (String, String) {
    ("x-ms-documentdb-partitionkey".to_owned(), json!([key]).to_string())
}

/// Creations, each under the key of the header or under its own.
fn operations(items: &[(&str, Option<&str>)]) -> Vec<u8> {
    let list: Vec<Value> = items
        .iter()
        .map(|(id, key)| {
            let mut operation =
                json!({ "operationType": "Create", "resourceBody": { "id": id, "pk": key.unwrap_or("a") } });
            if let Some(key) = key {
                operation["partitionKey"] = json!(json!([key]).to_string());
            }
            operation
        })
        .collect();
    Value::Array(list).to_string().into_bytes()
}

fn encoded(token: &str) -> String {
    percent_encoding::utf8_percent_encode(token, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// The token with another mode in its payload and the old signature.
fn forged(token: &str) -> String {
    let (head, rest) = token.split_once(';').unwrap();
    let mut payload = STANDARD.decode(rest.trim_end_matches(';')).unwrap();
    // Behind the version and eight numbers.
    payload[33] ^= 1;
    format!("{head};{};", STANDARD.encode(payload))
}

/// The token of another account that has the same keys and the same names.
fn foreign() -> String {
    let client = Client::new(&json!({ "seed": 8 }));
    let send =
        |path: &str, body: Value| client.send("POST", path, &[], body.to_string().into_bytes(), "primary");
    assert_eq!(send("/dbs", json!({ "id": "d" })).status, 201);
    assert_eq!(send("/dbs/d/users", json!({ "id": "u" })).status, 201);
    let permission = json!({ "id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c" });
    let reply = send("/dbs/d/users/u/permissions", permission);
    reply.json()["_token"].as_str().unwrap().to_owned()
}

/// What official test suites send to an emulator in place of a directory's word.
fn directory_token(now_s: u64) -> String {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = json!({ "typ": "JWT", "alg": "RS256", "kid": "CosmosEmulatorPrimaryMaster" });
    let claims = json!({ "aud": "https://localhost.localhost", "nbf": now_s, "exp": now_s + 7200 });
    format!("type=aad&ver=1.0&sig={}.{}.{}", part(header), part(claims), URL_SAFE_NO_PAD.encode(EMULATOR_KEY))
}
