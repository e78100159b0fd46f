//! The everyday commands against the real server, as scripts use them: what is printed, and the exit codes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use orrery_testkit::TestServer;
use serde_json::{Value, json};

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

fn command(server: &TestServer, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    // By a connection string in the environment, as `orrery connect` prints it.
    command
        .args(arguments)
        .env(
            "COSMOS_CONNECTION_STRING",
            format!(
                "AccountEndpoint=http://{}/;AccountKey={};",
                server.address(),
                orrery_testkit::EMULATOR_KEY
            ),
        )
        .env_remove("ORRERY_KEY")
        .stdin(Stdio::null());
    command
}

#[track_caller]
fn run(server: &TestServer, arguments: &[&str], code: i32) -> String {
    let output = command(server, arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}\n{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

#[track_caller]
fn run_json(server: &TestServer, arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    let text = run(server, &arguments, 0);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{arguments:?}: {text}"))
}

#[test]
fn databases_and_containers_live_and_die() {
    let server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    assert_eq!(run(&server, &["database", "create", "shop"], 0), "made shop\n");
    run(&server, &["database", "create", "shop"], 4);
    run(&server, &["database", "show", "none"], 3);
    run(&server, &["database", "create", "shared", "--throughput", "autoscale:4000"], 0);
    assert_eq!(run_json(&server, &["database", "show", "shared"])["throughput"], "autoscale:4000");
    run(&server, &["container", "create", "shop/a", "--partition-key", "/pk", "--ttl", "60"], 0);
    run(&server, &["container", "create", "shared/b", "--partition-key", "/x,/y"], 0);
    let all = run(&server, &["container", "list"], 0);
    assert!(
        all.contains("shop/a") && all.contains("60 s") && all.contains("shared/b") && all.contains("/x,/y"),
        "{all}"
    );
    assert!(!run(&server, &["container", "list", "shop"], 0).contains("shared"));
    assert_eq!(run_json(&server, &["container", "list"]).as_array().unwrap().len(), 2);
    run(&server, &["container", "delete", "shop/a", "--yes"], 0);
    run(&server, &["container", "delete", "shared/b", "--yes"], 0);
    assert_eq!(run(&server, &["database", "list"], 0).lines().count(), 2);

    run(
        &server,
        &[
            "container",
            "create",
            "shop/orders",
            "--partition-key",
            "/customer",
            "--throughput",
            "400",
            "--ttl",
            "-1",
        ],
        0,
    );
    run(&server, &["container", "create", "shop/visits", "--partition-key", "/tenant,/user"], 0);
    run(&server, &["container", "create", "shop"], 2);
    let shown = run_json(&server, &["container", "show", "shop/orders"]);
    assert_eq!((shown["throughput"].as_str(), shown["physicalPartitions"].as_u64()), (Some("400"), Some(1)));
    assert_eq!(
        run_json(&server, &["container", "show", "shop/visits"])["definition"]["partitionKey"]["kind"],
        "MultiHash"
    );
    assert!(run(&server, &["container", "list", "shop"], 0).contains("/tenant,/user"));
    for wanted in ["20000", "autoscale:30000", "25000"] {
        run(&server, &["container", "scale", "shop/orders", wanted], 0);
        assert_eq!(run_json(&server, &["container", "show", "shop/orders"])["throughput"], wanted);
    }
    run(&server, &["container", "delete", "shop/orders"], 2);
    run(&server, &["container", "delete", "shop/orders", "--yes"], 0);
    run(&server, &["container", "show", "shop/orders"], 3);
    run(&server, &["database", "delete", "shop", "--yes"], 0);
    assert_eq!(run_json(&server, &["database", "list"]).as_array().unwrap().len(), 1);
}

#[test]
fn items_are_put_got_patched_and_deleted() {
    let server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    run(&server, &["database", "create", "d"], 0);
    run(&server, &["container", "create", "d/c", "--partition-key", "/pk"], 0);
    run(&server, &["container", "create", "d/byid", "--partition-key", "/id"], 0);
    run(&server, &["item", "put", "d/c", r#"{"id":"a b","pk":5,"n":9007199254740993}"#], 0);
    run(&server, &["item", "put", "d/c", r#"{"id":"a b","pk":5}"#, "--create"], 4);
    assert!(run(&server, &["item", "get", "d/c", "a b", "-k", "5"], 0).contains("9007199254740993"));
    run(&server, &["item", "get", "d/c", "a b", "-k", "\"5\""], 3);
    run(&server, &["item", "get", "d/c", "a b"], 2);
    let patched = run_json(
        &server,
        &[
            "item",
            "patch",
            "d/c",
            "a b",
            "-k",
            "5",
            "--set",
            "/x={\"y\":1}",
            "--set",
            "/s=text",
            "--incr",
            "/x/y=2",
        ],
    );
    assert_eq!((&patched["item"]["x"], &patched["item"]["s"]), (&json!({"y": 3}), &json!("text")));
    let etag = patched["etag"].as_str().unwrap().to_owned();
    run(
        &server,
        &["item", "patch", "d/c", "a b", "-k", "5", "--remove", "/s", "--where", "FROM c WHERE c.x.y > 5"],
        4,
    );
    run(&server, &["item", "put", "d/c", r#"{"id":"a b","pk":5,"v":2}"#, "--if-match", &etag], 0);
    run(&server, &["item", "delete", "d/c", "a b", "-k", "5", "--if-match", &etag], 4);
    run(&server, &["item", "delete", "d/c", "a b", "-k", "5"], 0);
    run(&server, &["item", "put", "d/byid", r#"{"id":"x"}"#], 0);
    assert!(run(&server, &["item", "get", "d/byid", "x"], 0).contains("\"x\""));
    // A wrong key is not permitted.
    let refused = command(
        &server,
        &["database", "list", "--endpoint", &format!("http://{}", server.address()), "--key", "d3Jvbmc="],
    )
    .output()
    .unwrap();
    assert_eq!(refused.status.code(), Some(6), "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn queries_print_rows_tables_plans_and_charges() {
    let server =
        TestServer::start(binary(), &["--ephemeral", "--partition-throughput-limit", "1000"]).unwrap();
    run(&server, &["database", "create", "d"], 0);
    run(&server, &["container", "create", "d/c", "--partition-key", "/pk", "--throughput", "3000"], 0);
    for n in 0..30 {
        run(
            &server,
            &["item", "put", "d/c", &json!({"id": format!("i{n:02}"), "pk": n % 7, "n": n}).to_string()],
            0,
        );
    }
    let rows = run(
        &server,
        &["query", "d/c", "SELECT VALUE c.n FROM c WHERE c.n >= @n ORDER BY c.n DESC", "--param", "n=25"],
        0,
    );
    assert_eq!(rows, "29\n28\n27\n26\n25\n");
    let told = run_json(&server, &["query", "d/c", "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk"]);
    assert_eq!(
        (told["rows"].as_array().unwrap().len(), told["requestCharge"].as_f64() > Some(1.0)),
        (7, true)
    );
    let limited = run_json(&server, &["query", "d/c", "SELECT * FROM c", "--limit", "10"]);
    assert_eq!((limited["rows"].as_array().unwrap().len(), limited["more"].as_bool()), (10, Some(true)));
    let table = run(&server, &["query", "d/c", "SELECT c.id, c.n FROM c", "-k", "3", "--table"], 0);
    assert!(table.starts_with("id    n\n───  ──\ni03   3\n"), "{table}");
    let explained =
        command(&server, &["query", "d/c", "SELECT * FROM c WHERE c.n = 3", "--explain"]).output().unwrap();
    assert!(String::from_utf8_lossy(&explained.stderr).contains("RU"), "{explained:?}");
    run(&server, &["query", "d/c", "SELEC"], 1);
    let mut child =
        command(&server, &["query", "d/c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"SELECT VALUE COUNT(1) FROM c").unwrap();
    assert_eq!(String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout), "30\n");
}

#[test]
fn changes_are_followed_and_top_sees_the_load() {
    let server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    run(&server, &["database", "create", "d"], 0);
    run(&server, &["container", "create", "d/c", "--partition-key", "/pk"], 0);
    let put = |n: u32| {
        run(&server, &["item", "put", "d/c", &json!({"id": format!("i{n}"), "pk": n}).to_string()], 0)
    };
    put(1);
    assert_eq!(run(&server, &["feed", "d/c"], 0).lines().count(), 1);
    let mut child = command(&server, &["feed", "d/c", "--follow", "--from", "beginning", "--max", "3"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("\"i1\""));
    put(2);
    assert!(lines.next().unwrap().unwrap().contains("\"i2\""));
    put(3);
    assert!(lines.next().unwrap().unwrap().contains("\"i3\""));
    assert!(child.wait().unwrap().success());
    let rows = run_json(&server, &["top", "--interval", "100ms"]);
    assert_eq!((rows[0]["container"].as_str(), rows[0]["items"].as_u64()), (Some("d/c"), Some(3)));
    assert!(run(&server, &["top", "--once", "--interval", "100ms"], 0).contains("requests/s"));
}

#[test]
fn shells_and_man_know_every_command() {
    let bash = Command::new(binary()).args(["completions", "bash"]).output().unwrap();
    let bash = String::from_utf8(bash.stdout).unwrap();
    assert!(bash.contains("import") && bash.contains("--partition-key"));
    let directory = tempfile::tempdir().unwrap();
    let made = Command::new(binary()).arg("man").arg(directory.path()).output().unwrap();
    assert!(made.status.success());
    for page in ["orrery.1", "orrery-import.1", "orrery-item-patch.1"] {
        assert!(directory.path().join(page).exists(), "{page}");
    }
}
