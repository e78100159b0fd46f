//! Common kinds of script as data (`tests/scripts`), each also with an error thrown after all it does; several at once
//! on one key; and scripts that mean harm.

mod support;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use support::{Client, Reply};

struct World(Client);

impl World {
    fn new() -> World {
        World::with(&json!({}))
    }

    fn with(config: &Value) -> World {
        let world = World(Client::new(config));
        assert_eq!(world.post("/dbs", json!({"id": "d"}), &[]).status, 201);
        let key = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
        assert_eq!(world.post("/dbs/d/colls", json!({"id": "c", "partitionKey": key}), &[]).status, 201);
        world
    }

    fn send(&self, verb: &str, path: &str, body: Vec<u8>, headers: &[(&str, &str)]) -> Reply {
        let mut all = vec![("x-ms-documentdb-partitionkey".to_owned(), "[\"a\"]".to_owned())];
        all.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self.0.send(verb, path, &all, body, "primary")
    }

    fn post(&self, path: &str, body: Value, headers: &[(&str, &str)]) -> Reply {
        self.send("POST", path, body.to_string().into_bytes(), headers)
    }

    fn procedure(&self, id: &str, source: &str) {
        let reply = self.post("/dbs/d/colls/c/sprocs", json!({"id": id, "body": source}), &[]);
        assert_eq!(reply.status, 201, "{reply}");
    }

    fn execute(&self, id: &str, arguments: Value) -> Reply {
        let logging = [("x-ms-documentdb-script-enable-logging", "True")];
        self.post(&format!("/dbs/d/colls/c/sprocs/{id}"), arguments, &logging)
    }

    fn create(&self, item: &Value, headers: &[(&str, &str)]) -> Reply {
        self.post("/dbs/d/colls/c/docs", item.clone(), headers)
    }

    fn items(&self) -> Map<String, Value> {
        let list =
            self.send("GET", "/dbs/d/colls/c/docs", Vec::new(), &[("x-ms-max-item-count", "-1")]).json();
        let items = list["Documents"].as_array().cloned().unwrap_or_default();
        items.into_iter().map(|item| (item["id"].as_str().unwrap_or_default().to_owned(), item)).collect()
    }
}

/// Whether everything in `wanted` is in `found`.
fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| found.get(name).is_some_and(|found| contains(found, value)))
        }
        _ => found == wanted,
    }
}

fn check(name: &str, run: &Value, reply: &Reply, usual: u16) {
    let status = run["status"].as_u64().map_or(usual, |status| status as u16);
    assert_eq!(reply.status, status, "{name}: {run}\n{reply}");
    let substatus = reply.header("x-ms-substatus").map(|text| text.parse::<u64>().unwrap());
    assert_eq!(substatus, run["substatus"].as_u64(), "{name}: {run}\n{reply}");
    if let Some(message) = run["message"].as_str() {
        assert!(reply.text().contains(message), "{name}: {run}\n{reply}");
    }
    if !run["body"].is_null() {
        assert!(contains(&reply.json(), &run["body"]), "{name}: {run}\n{reply}");
    }
}

/// The script, and after all its callbacks an error.
fn with_error(source: &str) -> String {
    format!(
        "function () {{
            const script = {};
            script.apply(undefined, arguments);
            const link = __.getSelfLink();
            const undo = () => {{ throw new Error('undone'); }};
            const later = (turns) => __.readDocuments(link, {{ pageSize: 1 }}, () => {{
                if (turns > 0) later(turns - 1); else undo();
            }}) || undo();
            later(600);
        }}",
        source.trim_end().trim_end_matches(';')
    )
}

fn run_file(name: &str, source: &str, case: &Value) {
    let fill = |world: &World| {
        for item in case["items"].as_array().unwrap() {
            assert_eq!(world.create(item, &[]).status, 201);
        }
    };
    let world = World::new();
    fill(&world);
    let kind = case["kind"].as_str().unwrap();
    let header = format!("x-ms-documentdb-{kind}-trigger-include");
    let trigger = |id: &str, body: &str| {
        let time = if kind == "pre" { "Pre" } else { "Post" };
        json!({"id": id, "body": body, "triggerType": time, "triggerOperation": "All"})
    };
    match kind {
        "procedure" => world.procedure(name, source),
        "function" => {
            let body = json!({"id": name, "body": source});
            assert_eq!(world.post("/dbs/d/colls/c/udfs", body, &[]).status, 201);
        }
        _ => assert_eq!(world.post("/dbs/d/colls/c/triggers", trigger(name, source), &[]).status, 201),
    }
    for run in case["runs"].as_array().unwrap() {
        match kind {
            "procedure" => check(name, run, &world.execute(name, run["arguments"].clone()), 200),
            "function" => {
                let query = [("content-type", "application/query+json")];
                let reply = world.post("/dbs/d/colls/c/docs", json!({"query": run["query"]}), &query);
                check(name, run, &reply, 200);
                if !run["rows"].is_null() {
                    assert_eq!(reply.json()["Documents"], run["rows"], "{name}: {run}");
                }
            }
            _ => check(name, run, &world.create(&run["item"], &[(&header, name)]), 201),
        }
    }
    let items = world.items();
    for (id, wanted) in case["after"].as_object().unwrap() {
        match items.get(id) {
            None => assert!(wanted.is_null(), "{name}: {id} is missing"),
            Some(found) => assert!(contains(found, wanted), "{name}: {found} is not {wanted}"),
        }
    }

    let first = &case["runs"][0];
    let world = World::new();
    fill(&world);
    let before = world.items();
    let reply = match kind {
        "function" => return,
        "procedure" => {
            world.procedure("undone", &with_error(source));
            world.execute("undone", first["arguments"].clone())
        }
        _ => {
            let body = trigger("undone", &with_error(source));
            assert_eq!(world.post("/dbs/d/colls/c/triggers", body, &[]).status, 201);
            world.create(&first["item"], &[(&header, "undone")])
        }
    };
    assert_eq!(reply.status, 400, "{name}: {reply}");
    assert!(reply.text().contains("Exception = Error: undone"), "{name}: {reply}");
    assert_eq!(world.items(), before, "{name} left something behind");
}

#[test]
fn common_scripts_do_what_they_say_and_nothing_when_they_fail() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/scripts");
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "js") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let source = std::fs::read_to_string(&path).unwrap();
        let case = std::fs::read_to_string(path.with_extension("json")).unwrap();
        run_file(&name, &source, &serde_json::from_str(&case).unwrap_or_else(|why| panic!("{name}: {why}")));
        count += 1;
    }
    assert!(count >= 12, "only {count} scripts were found");
}

#[test]
fn procedures_on_one_key_lose_no_step_of_each_other() {
    let world = World::new();
    world.create(&json!({"id": "n", "pk": "a", "n": 0}), &[]);
    let raise = "function () {
        __.readDocument(__.getAltLink() + '/docs/n', function (err, item) {
            if (err) throw err;
            item.n++;
            __.replaceDocument(item._self, item, function (err, stored) {
                if (err) throw err;
                __.response.setBody(stored);
            });
        });
    }";
    world.procedure("raise", raise);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..10 {
                    loop {
                        let reply = world.execute("raise", json!([]));
                        match reply.status {
                            200 => break,
                            // Twenty attempts were not enough: the client is told to come back.
                            status => assert_eq!(status, 449, "{reply}"),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(world.items()["n"]["n"], 30);
}

#[test]
fn what_a_procedure_answers_names_the_versions_that_were_stored() {
    let world = World::new();
    let create = "function (n) {
        __.createDocument(__.getSelfLink(), { id: String(n), pk: 'a' }, function (err, item) {
            if (err) throw err;
            var until = Date.now() + 30;
            while (Date.now() < until);
            console.log(item._rid);
            __.response.setBody(item);
        });
    }";
    world.procedure("create", create);
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            for n in 0..100 {
                let item = json!({"id": n.to_string(), "pk": "b"});
                let headers = [("x-ms-documentdb-partitionkey", "[\"b\"]")];
                assert_eq!(world.create(&item, &headers).status, 201);
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        for n in 0..8 {
            let reply = world.execute("create", json!([n]));
            assert_eq!(reply.status, 200, "{reply}");
            let stored = world.send("GET", &format!("/dbs/d/colls/c/docs/{n}"), Vec::new(), &[]);
            assert_eq!(reply.json(), stored.json());
            let logged = reply.header("x-ms-documentdb-script-log-results").unwrap();
            let logged = percent_encoding::percent_decode_str(logged).decode_utf8().unwrap();
            assert_eq!(json!(logged), stored.json()["_rid"]);
        }
        busy.join().unwrap();
    });
}

#[test]
fn scripts_that_mean_harm_end_in_time_and_change_nothing() {
    let world = World::new();
    world.create(&json!({"id": "x", "pk": "a"}), &[]);
    let before = world.items();
    let write = "__.createDocument(__.getSelfLink(), { id: 'harm', pk: 'a' });";
    for (name, body, status) in [
        ("loop", "for (;;);", 408),
        ("memory", "var a = []; for (;;) a.push('x'.repeat(1e6) + a.length);", 400),
        ("recursion", "(function f() { f(); })();", 400),
        ("pollution", "Object.prototype.id = 'y'; Array.prototype.push = null; throw 1;", 400),
        ("strings", "__.response.setBody('x'.repeat(2e7));", 413),
        ("regex", "/(a+)+b/.test('a'.repeat(40000));", 408),
        (
            "queries",
            "(function q(n) { if (n < 1e9) __.queryDocuments(__.getSelfLink(), 'SELECT * FROM c', function () { q(n + 1); }) || q(n); })(0);",
            0,
        ),
    ] {
        world.procedure(name, &format!("function () {{ {write} {body} }}"));
        let started = Instant::now();
        let reply = world.execute(name, json!([]));
        let took = started.elapsed();
        assert!(took < Duration::from_secs(20), "{name} took {took:?}");
        if status == 0 {
            assert!(matches!(reply.status, 400 | 408), "{name}: {reply}");
        } else {
            assert_eq!(reply.status, status, "{name}: {reply}");
        }
        assert_eq!(world.items(), before, "{name} changed something");
    }
}

#[test]
fn a_script_whose_client_has_gone_stops_and_changes_nothing() {
    let world = World::new();
    let slow = "function (id, ms) {
        __.createDocument(__.getSelfLink(), { id: id, pk: 'a' }, function (err) {
            if (err) throw err;
            var until = Date.now() + ms;
            while (Date.now() < until);
        });
    }";
    world.procedure("slow", slow);
    let key = [("x-ms-documentdb-partitionkey".to_owned(), "[\"a\"]".to_owned())];
    // More of them than there are threads for scripts.
    for n in 0..20 {
        let body = json!([format!("left{n}"), 4000]).to_string().into_bytes();
        let request = world.0.request("POST", "/dbs/d/colls/c/sprocs/slow", &key, body, "primary");
        world.0.leave(request, Duration::from_millis(20));
    }
    let began = Instant::now();
    assert_eq!(world.execute("slow", json!(["stayed", 100])).status, 200);
    assert!(began.elapsed() < Duration::from_secs(4), "others still run: {:?}", began.elapsed());
    assert_eq!(world.items().keys().collect::<Vec<_>>(), ["stayed"]);
}

#[test]
fn eight_attackers_hold_up_no_other_script() {
    let world = World::new();
    world.create(&json!({"id": "x", "pk": "a"}), &[]);
    world.procedure("fair", "function (n) { __.response.setBody(n + 1); }");
    // What each of these does before it is stopped was once enough to keep a thread for minutes, and four to stop all
    // scripts.
    let bombs = [
        "'a'.repeat(1e6).replaceAll('a', 'b'.repeat(1e6))",
        "'\\ufdfa'.repeat(2e6).normalize('NFKD')",
        "for (;;) 'ä'.repeat(2e7).toLowerCase().normalize()",
        "new Set([1]).union({ size: 4e9, has: () => true, keys: () => new Array(4294967295).values() })",
        "var a = 'x'.repeat(1.5e7), b = 'x'.repeat(1.5e7); for (;;) a === b",
        "var u = new Uint8Array(3e7); for (;;) u.reverse()",
        "/(a+)+b/.test('a'.repeat(40000))",
        "for (;;);",
    ];
    for (place, bomb) in bombs.iter().enumerate() {
        world.procedure(&format!("bomb{place}"), &format!("function () {{ {bomb} }}"));
    }
    let client = &world;
    std::thread::scope(|scope| {
        let attackers: Vec<_> = (0..bombs.len())
            .map(|place| {
                scope.spawn(move || {
                    for _ in 0..2 {
                        let began = Instant::now();
                        let reply = client.execute(&format!("bomb{place}"), json!([]));
                        assert!(matches!(reply.status, 400 | 408), "{place}: {reply}");
                        assert!(began.elapsed() < Duration::from_secs(15), "{place}: {:?}", began.elapsed());
                    }
                })
            })
            .collect();
        let mut rounds = 0;
        while attackers.iter().any(|attacker| !attacker.is_finished()) {
            let reply = client.execute("fair", json!([rounds]));
            assert_eq!((reply.status, reply.json()), (200, json!(rounds + 1)), "{reply}");
            rounds += 1;
        }
        assert!(rounds > 20, "{rounds} fair scripts while the attack lasted");
    });
}

#[test]
fn functions_end_with_their_query() {
    let world = World::new();
    for n in 0..20 {
        world.create(&json!({"id": n.to_string(), "pk": "a"}), &[]);
    }
    for (id, body) in [
        ("spin", "function () { for (;;); }"),
        ("texts", "function () { for (;;) 'a'.repeat(1e6).replaceAll('a', 'b'.repeat(1e6)); }"),
        ("memory", "var kept = []; function memory(x) { for (;;) kept.push('x'.repeat(1e6) + x); }"),
    ] {
        let created = world.post("/dbs/d/colls/c/udfs", json!({"id": id, "body": body}), &[]);
        assert_eq!(created.status, 201, "{created}");
        let query = json!({"query": format!("SELECT VALUE udf.{id}(c.id) FROM c")});
        let began = Instant::now();
        let reply = world.post("/dbs/d/colls/c/docs", query, &[("content-type", "application/query+json")]);
        assert!(matches!(reply.status, 400 | 408), "{id}: {reply}");
        assert!(began.elapsed() < Duration::from_secs(15), "{id} took {:?}", began.elapsed());
    }
}

/// Texts that are stored though no engine could run them.
const NO_SCRIPTS: [&str; 4] = [
    "function () {\n  var = 1;\n}",
    "line \u{2028} paragraph \u{2029} next line \u{85} underline \u{332}",
    "serverScript() { getContext().getResponse().setBody(1); }",
    "",
];

#[test]
fn any_text_is_stored_and_what_is_no_script_fails_when_it_is_run() {
    let world = World::new();
    for (place, body) in NO_SCRIPTS.iter().enumerate() {
        let id = format!("s{place}");
        let trigger = json!({"id": id, "body": body, "triggerType": "Pre", "triggerOperation": "All"});
        for (kind, script) in [("sprocs", json!({"id": id, "body": body})), ("triggers", trigger)] {
            let created = world.post(&format!("/dbs/d/colls/c/{kind}"), script.clone(), &[]);
            assert_eq!((created.status, &created.json()["body"]), (201, &json!(body)), "{created}");
            let path = format!("/dbs/d/colls/c/{kind}/{id}");
            let replaced = world.send("PUT", &path, script.to_string().into_bytes(), &[]);
            assert_eq!((replaced.status, &replaced.json()["body"]), (200, &json!(body)), "{replaced}");
        }
        let function = json!({"id": id, "body": body});
        assert_eq!(world.post("/dbs/d/colls/c/udfs", function, &[]).status, 201);
        let item = json!({"id": "i", "pk": "a"});
        let triggered = [("x-ms-documentdb-pre-trigger-include", id.as_str())];
        for reply in
            [world.execute(&id, json!([])), world.execute(&id, json!([])), world.create(&item, &triggered)]
        {
            assert_eq!(
                (reply.status, reply.header("x-ms-substatus")),
                (400, Some("65535")),
                "{body}: {reply}"
            );
            assert!(
                reply.text().contains("compiling Javascript. Exception = SyntaxError"),
                "{body}: {reply}"
            );
            assert!(place > 0 || reply.text().contains("s0.js:2:"), "{reply}");
        }
        let query = json!({"query": format!("SELECT VALUE udf.{id}(c.id) FROM c")});
        world.create(&json!({"id": "j", "pk": "a"}), &[]);
        let reply = world.post("/dbs/d/colls/c/docs", query, &[("content-type", "application/query+json")]);
        assert!(reply.status == 400 && reply.text().contains("SyntaxError"), "{body}: {reply}");
        assert_eq!(world.items().keys().collect::<Vec<_>>(), ["j"]);
    }
    // What was mended runs.
    let mended = json!({"id": "s0", "body": "function () { __.response.setBody(7); }"});
    assert_eq!(
        world.send("PUT", "/dbs/d/colls/c/sprocs/s0", mended.to_string().into_bytes(), &[]).status,
        200
    );
    assert_eq!(world.execute("s0", json!([])).json(), json!(7));
}

#[test]
fn more_than_a_commit_holds_is_refused_while_it_is_staged() {
    // Near the end of its time a script is refused everything, and a busy machine takes long to stage so much.
    let world = World::with(&json!({ "script_timeout_s": 60 }));
    // Errors are not looked at, are caught, or end the script: the answer is the same, and comes before the memory is
    // gone.
    for (name, callback) in [
        ("unseen", ""),
        ("swallowed", ", function (e) { staged += e ? 0 : 1; next(); }"),
        ("thrown", ", function (e) { if (e) throw e; staged++; next(); }"),
    ] {
        world.procedure(
            name,
            &format!(
                "function () {{ var text = 'x'.repeat(1.9e6), n = 0, staged = 0; function next() {{
                     if (n < 200) __.createDocument(__.getSelfLink(), {{ id: 'i' + n++, pk: 'a', text: text }}{callback});
                     console.log(staged);
                 }} next(); if (!{}) while (n < 30) next(); }}",
                !callback.is_empty()
            ),
        );
        let reply = world.execute(name, json!([]));
        assert_eq!(reply.status, 413, "{name}: {reply}");
        assert!(reply.text().contains("Request size is too large"), "{name}: {reply}");
        let log = reply.header("x-ms-documentdb-script-log-results").unwrap_or_default();
        assert!(!log.contains("27"), "{name} staged more than 48 MB: {log}");
        assert!(world.items().is_empty(), "{name}");
    }
}
