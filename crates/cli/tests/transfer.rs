//! `orrery import` and `orrery export` against the real server: formats, keys that change on the way, rejects, and an
//! end by force.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use orrery_testkit::{Client, TestServer, table_request};
use serde_json::{Value, json};

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

fn command(server: &TestServer, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).args(["--endpoint", &format!("http://{}", server.address())]);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ORRERY_")) {
        command.env_remove(name);
    }
    command.env_remove("COSMOS_CONNECTION_STRING").stdin(Stdio::null());
    command
}

#[track_caller]
fn run(server: &TestServer, arguments: &[&str], code: i32) -> Output {
    let output = command(server, arguments).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

#[track_caller]
fn run_json(server: &TestServer, arguments: &[&str], code: i32) -> Value {
    let output = run(server, arguments, code);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stdout)))
}

fn count(server: &TestServer, container: &str) -> u64 {
    let link = container.replace("%20", " ").replace("%C3%B6", "ö");
    let mut client = Client::new(server.address());
    let headers = [
        ("content-type", "application/query+json"),
        ("x-ms-documentdb-isquery", "True"),
        ("x-ms-documentdb-query-enablecrosspartition", "True"),
        ("x-orrery-merge", "true"),
    ];
    let body = r#"{"query":"SELECT VALUE COUNT(1) FROM c"}"#;
    let mut reply = client.post(&format!("{container}/docs"), &link, "docs", &headers, body).unwrap();
    while reply.status == 429 {
        std::thread::sleep(Duration::from_millis(100));
        reply = client.post(&format!("{container}/docs"), &link, "docs", &headers, body).unwrap();
    }
    reply.expect_status(200).unwrap().json().unwrap()["Documents"][0].as_u64().unwrap()
}

/// The lines of a file by their ids.
fn by_id(path: &Path) -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let items = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    items.map(|item| (item["id"].as_str().unwrap().to_owned(), item)).collect()
}

fn lines(path: PathBuf, items: impl Iterator<Item = Value>) -> PathBuf {
    let text: String = items.map(|item| format!("{item}\n")).collect();
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn packed_files_are_unpacked_on_the_way() {
    let server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let packed = |name: &str, text: &str| {
        let path = directory.path().join(name);
        let mut encoder =
            flate2::write::GzEncoder::new(std::fs::File::create(&path).unwrap(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        encoder.finish().unwrap();
        path.display().to_string()
    };
    let items: String =
        (0..5000).map(|n| format!("{}\n", json!({"id": format!("{n}"), "pk": n % 7}))).collect();
    let files = [packed("a.jsonl.gz", &items), packed("b.csv.gz", "id,pk\nx,1\ny,2\n")];
    let report = run_json(
        &server,
        &[
            "import",
            &files[0],
            &files[1],
            "--db",
            "d",
            "--container",
            "c",
            "--partition-key",
            "/pk",
            "--json",
        ],
        0,
    );
    assert_eq!(report["written"], 5002, "{report}");
    assert_eq!(count(&server, "dbs/d/colls/c"), 5002);
    // MongoDB's tools pack arrays too.
    let array = packed("c.json.gz", r#"[{"_id": 1, "pk": 1}, {"_id": 2, "pk": 2}]"#);
    let options = ["--format", "mongo", "--db", "d", "--container", "m", "--partition-key", "/pk", "--json"];
    let report = run_json(&server, &[&["import", &*array], &options[..]].concat(), 0);
    assert_eq!(report["written"], 2, "{report}");
}

#[test]
fn what_goes_in_comes_out_in_every_format() {
    let server =
        TestServer::start(binary(), &["--ephemeral", "--partition-throughput-limit", "1000"]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let items = (0..730).map(|n| {
        json!({"id": format!("i{n}"), "pk": format!("p{}", n % 37), "n": n, "x": f64::from(n) + 0.25, "s": "007",
            "o": {"list": [n, null, "ü"]}})
    });
    let source = lines(at("items.jsonl"), items);
    let source_text = source.to_str().unwrap();
    // Several physical partitions, so that bulks have to be divided.
    let arguments = [
        "import",
        source_text,
        "--db",
        "d",
        "--container",
        "c",
        "--partition-key",
        "/pk",
        "--throughput",
        "3000",
        "--json",
    ];
    let told = run_json(&server, &arguments, 0);
    assert_eq!((told["read"].as_u64(), told["written"].as_u64()), (Some(730), Some(730)), "{told}");
    assert!(told["requests"].as_u64() < Some(100), "bulks: {told}");
    assert_eq!(count(&server, "dbs/d/colls/c"), 730);
    assert!(!at("items.jsonl.import-state").exists() && !at("items.jsonl.rejects.jsonl").exists());

    for (n, format) in ["jsonl", "json", "csv", "mongo", "parquet"].into_iter().enumerate() {
        let file = at(&format!("out.{n}"));
        let (file, copy) = (file.to_str().unwrap(), format!("copy{n}"));
        run(&server, &["export", file, "--db", "d", "--container", "c", "--format", format], 0);
        run(
            &server,
            &[
                "import",
                file,
                "--db",
                "d",
                "--container",
                &copy,
                "--format",
                format,
                "--partition-key",
                "/pk",
            ],
            0,
        );
        let back = at(&format!("back.{n}"));
        run(&server, &["export", back.to_str().unwrap(), "--db", "d", "--container", &copy], 0);
        assert_eq!(by_id(&back), by_id(&source), "{format}");
    }
    let system = run(&server, &["export", "-", "--db", "d", "--container", "c", "--system-properties"], 0);
    let first: Value =
        serde_json::from_slice(system.stdout.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
    assert!(first["_ts"].is_number() && first["_etag"].is_string(), "{first}");
}

#[test]
fn keys_are_made_on_the_way_from_container_to_container() {
    let server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let items =
        (0..300).map(|n| json!({"id": format!("i{n}"), "customer": format!("c{}", n % 5), "order": n}));
    let source = lines(directory.path().join("a.jsonl"), items);
    let source = source.to_str().unwrap();
    run(&server, &["import", source, "--db", "d", "--container", "one", "--partition-key", "/customer"], 0);
    for (n, (rule, keys)) in [
        ("/pk=concat(/customer,/order)", 300),
        ("/pk=random(/customer,4)", 20),
        ("/pk=calculated(/customer,/order,4)", 20),
    ]
    .into_iter()
    .enumerate()
    {
        let to = format!("to{n}");
        let state = directory.path().join("state");
        let arguments = [
            "import",
            "--db",
            "d",
            "--container",
            &to,
            "--from-container",
            "d/one",
            "--partition-key",
            rule,
            "--state",
            state.to_str().unwrap(),
        ];
        run(&server, &arguments, 0);
        let out = directory.path().join(&to);
        run(&server, &["export", out.to_str().unwrap(), "--db", "d", "--container", &to], 0);
        let items = by_id(&out);
        let found: std::collections::BTreeSet<&str> =
            items.values().map(|item| item["pk"].as_str().unwrap()).collect();
        assert_eq!((items.len(), found.len()), (300, keys), "{rule}");
    }
    let wrong = ["import", source, "--db", "d", "--container", "one", "--partition-key", "/other"];
    let output = run(&server, &wrong, 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("exists with the key"));
    run(&server, &["import", source, "--db", "d", "--container", "absent"], 3);
}

#[test]
fn bad_records_are_set_aside_with_the_reason() {
    let server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mixed.jsonl");
    let refused = "{\"id\":\"t\",\"pk\":1,\"ttl\":0}";
    std::fs::write(&file, format!("{{\"id\":\"a\",\"pk\":1}}\n{{broken\n{{\"id\":\"x/y\"}}\n\n[1]\n{{\"pk\":2}}\n{refused}\n{{\"id\":\"z\",\"pk\":3}}\n")).unwrap();
    let arguments = [
        "import",
        file.to_str().unwrap(),
        "--db",
        "d",
        "--container",
        "c",
        "--partition-key",
        "/pk",
        "--json",
    ];
    let told = run_json(&server, &arguments, 5);
    assert_eq!(
        (told["read"].as_u64(), told["written"].as_u64(), told["rejected"].as_u64()),
        (Some(7), Some(3), Some(4)),
        "{told}"
    );
    let rejects = std::fs::read_to_string(directory.path().join("mixed.jsonl.rejects.jsonl")).unwrap();
    let rejects: Vec<Value> = rejects.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<u64> = rejects.iter().map(|reject| reject["record"].as_u64().unwrap()).collect();
    assert_eq!(seen, [2, 3, 4, 6]);
    assert_eq!(rejects[0]["text"], "{broken");
    assert!(
        rejects[3]["reason"].as_str().unwrap().starts_with("400 "),
        "the server's words: {}",
        rejects[3]["reason"]
    );
    // What exists can be left alone or refused; the same item is no conflict.
    std::fs::write(&file, "{\"id\":\"a\",\"pk\":1}\n{\"id\":\"z\",\"pk\":3,\"new\":1}\n").unwrap();
    let skip = [
        "import",
        file.to_str().unwrap(),
        "--db",
        "d",
        "--container",
        "c",
        "--on-conflict",
        "skip",
        "--json",
    ];
    let told = run_json(&server, &skip, 0);
    assert_eq!((told["written"].as_u64(), told["skipped"].as_u64()), (Some(1), Some(1)), "{told}");
    let reject = [
        "import",
        file.to_str().unwrap(),
        "--db",
        "d",
        "--container",
        "c",
        "--on-conflict",
        "reject",
        "--json",
    ];
    assert_eq!(run_json(&server, &reject, 5)["rejected"], 1);
}

#[test]
fn entities_are_found_by_the_table_api_and_graphs_come_back() {
    let server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let table = "PartitionKey,RowKey,Timestamp,Age,Age@type,At,At@type,Name\np,r,x,23,Edm.Int32,2021-01-04T22:25:57Z,Edm.DateTime,Ann\n";
    std::fs::write(at("a.table.csv"), table).unwrap();
    run(&server, &["import", &at("a.table.csv"), "--db", "TablesDB", "--container", "People"], 0);
    let mut client = Client::new(server.address());
    let accept = [("accept", "application/json;odata=fullmetadata")];
    let path = "People(PartitionKey='p',RowKey='r')";
    let entity =
        table_request(&mut client, "GET", path, "", &accept, "").unwrap().expect_status(200).unwrap();
    let entity = entity.json().unwrap();
    assert_eq!((entity["Age"].as_u64(), entity["Name"].as_str()), (Some(23), Some("Ann")), "{entity}");
    assert_eq!(
        (entity["At@odata.type"].as_str(), entity["At"].as_str()),
        (Some("Edm.DateTime"), Some("2021-01-04T22:25:57.0000000Z"))
    );
    run(&server, &["export", &at("b.table.csv"), "--db", "TablesDB", "--container", "People"], 0);
    let text = std::fs::read_to_string(at("b.table.csv")).unwrap();
    assert!(text.contains("23,Edm.Int32") && text.contains("2021-01-04T22:25:57Z,Edm.DateTime"), "{text}");

    let graph = concat!(
        r#"{"id":1,"label":"person","outE":{"knows":[{"id":7,"inV":2,"properties":{"w":{"@type":"g:Double","@value":0.5}}}]},"properties":{"pk":[{"id":"x","value":"p1"}]}}"#,
        "\n",
        r#"{"id":2,"label":"person","properties":{"name":[{"id":2,"value":"vadas"}]}}"#,
        "\n"
    );
    std::fs::write(at("a.graphson"), graph).unwrap();
    let told = run_json(
        &server,
        &[
            "import",
            &at("a.graphson"),
            "--db",
            "g",
            "--container",
            "people",
            "--partition-key",
            "/pk",
            "--json",
        ],
        0,
    );
    assert_eq!((told["read"].as_u64(), told["written"].as_u64()), (Some(2), Some(3)), "{told}");
    run(&server, &["export", &at("b.graphson"), "--db", "g", "--container", "people"], 0);
    let back = std::fs::read_to_string(at("b.graphson")).unwrap();
    let one: Value = back
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|line| line["id"] == "1")
        .unwrap();
    assert_eq!(
        (one["outE"]["knows"][0]["inV"].as_str(), one["outE"]["knows"][0]["id"].as_str()),
        (Some("2"), Some("7")),
        "{one}"
    );
}

#[test]
fn an_import_that_was_killed_goes_on_to_exact_counts() {
    let server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    const ITEMS: u64 = 40_000;
    let filling = "x".repeat(300);
    let items = (0..ITEMS).map(|n| match n % 1_000 {
        // No id: one is made, and must be the same one when the import is run again.
        1 => json!({"pk": n % 100, "filling": filling}),
        2 => json!({"id": "a/b", "pk": n}),
        _ => json!({"id": format!("i{n}"), "pk": n % 100, "filling": filling}),
    });
    let file = lines(directory.path().join("many.jsonl"), items);
    let state = directory.path().join("many.jsonl.import-state");
    let arguments = [
        "import",
        file.to_str().unwrap(),
        "--db",
        "d",
        "--container",
        "c",
        "--partition-key",
        "/pk",
        "--connections",
        "4",
        "--json",
    ];
    let mut kills = 0;
    for _ in 0..3 {
        let mut child =
            command(&server, &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let before = std::fs::read(&state).unwrap_or_default();
        // Until it has noted how far it is, and a little further.
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if std::fs::read(&state).is_ok_and(|now| !now.is_empty() && now != before)
                || std::time::Instant::now() > deadline
            {
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        if ended.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    let told = if state.exists() || kills == 0 { Some(run_json(&server, &arguments, 5)) } else { None };
    let rejected = ITEMS / 1_000;
    if let Some(told) = told {
        let counts = (told["read"].as_u64(), told["written"].as_u64(), told["rejected"].as_u64());
        assert_eq!(
            counts,
            (Some(ITEMS), Some(ITEMS - rejected), Some(rejected)),
            "after {kills} kills: {told}"
        );
    }
    assert_eq!(count(&server, "dbs/d/colls/c"), ITEMS - rejected, "after {kills} kills");
    let rejects = std::fs::read_to_string(directory.path().join("many.jsonl.rejects.jsonl")).unwrap();
    assert_eq!(rejects.lines().count() as u64, rejected);
    assert!(!state.exists());
}

#[test]
fn throttling_slows_an_import_down_and_loses_nothing() {
    let server = TestServer::start(binary(), &["--ephemeral", "--throttling", "on"]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let items = (0..400).map(|n| json!({"id": format!("i{n}"), "pk": n % 10}));
    let file = lines(directory.path().join("a.jsonl"), items);
    let arguments = [
        "import",
        file.to_str().unwrap(),
        "--db",
        "d",
        "--container",
        "c",
        "--partition-key",
        "/pk",
        "--throughput",
        "1000",
        "--json",
    ];
    let told = run_json(&server, &arguments, 0);
    assert_eq!((told["written"].as_u64(), count(&server, "dbs/d/colls/c")), (Some(400), 400), "{told}");
}

#[test]
fn an_account_is_carried_from_one_server_to_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let dump = directory.path().join("dump");
    let dump = dump.to_str().unwrap();
    let arguments = ["--ephemeral", "--import", dump, "--export-on-exit", dump];
    let mut server = TestServer::start(binary(), &arguments).unwrap();
    let items = (0..150)
        .map(|n| json!({"id": format!("i{n}"), "a": n % 3, "b": n, "big": 9_007_199_254_740_993_u64}));
    let file = lines(directory.path().join("a.jsonl"), items);
    run(
        &server,
        &[
            "import",
            file.to_str().unwrap(),
            "--db",
            "my shop",
            "--container",
            "ö",
            "--partition-key",
            "/a,/b",
            "--throughput",
            "autoscale:2000",
        ],
        0,
    );
    let mut client = Client::new(server.address());
    let udf = r#"{"id":"twice","body":"function (x) { return 2 * x; }"}"#;
    client
        .post("dbs/my%20shop/colls/%C3%B6/udfs", "dbs/my shop/colls/ö", "udfs", &[], udf)
        .unwrap()
        .expect_status(201)
        .unwrap();
    assert!(server.stop().unwrap().success(), "{}", server.log());
    for round in 0..2 {
        server.restart().unwrap();
        assert_eq!(count(&server, "dbs/my%20shop/colls/%C3%B6"), 150, "{round}");
        server.stop().unwrap();
    }
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(Path::new(dump).join("orrery-dump.json")).unwrap()).unwrap();
    let container = &manifest["databases"][0]["containers"][0];
    assert_eq!(
        (container["throughput"].as_str(), container["items"].as_u64()),
        (Some("autoscale:2000"), Some(150))
    );
    assert_eq!(
        (container["udfs"][0]["id"].as_str(), container["definition"]["partitionKey"]["kind"].as_str()),
        (Some("twice"), Some("MultiHash"))
    );
    let lines = std::fs::read_to_string(Path::new(dump).join("my%20shop/%C3%B6.jsonl")).unwrap();
    assert!(lines.contains("9007199254740993") && !lines.contains("_ts"));
    // A directory with something else in it is nobody's dump.
    let other = directory.path().to_str().unwrap();
    let refused = Command::new(binary())
        .args(["serve", "--ephemeral", "--listen", "127.0.0.1:0", "--export-on-exit", other])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
}
