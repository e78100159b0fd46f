//! `serve --test-controls on`: a clock that can be moved and an account that can be emptied, as tests use them.

use std::path::Path;
use std::process::{Command, Stdio};

use orrery_testkit::{Client, TestServer};
use serde_json::{Value, json};

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

#[track_caller]
fn run(server: &TestServer, arguments: &[&str], code: i32) -> String {
    let mut command = Command::new(binary());
    command
        .args(arguments)
        .args(["--endpoint", &format!("http://{}", server.address())])
        .stdin(Stdio::null());
    let output = command.env_remove("ORRERY_KEY").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}\n{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

#[test]
fn items_expire_and_budgets_fill_when_the_clock_is_moved() {
    let server =
        TestServer::start(binary(), &["--ephemeral", "--test-controls", "on", "--throttling", "on"]).unwrap();
    run(&server, &["database", "create", "d"], 0);
    run(&server, &["container", "create", "d/c", "--partition-key", "/pk", "--ttl", "3600"], 0);
    run(&server, &["item", "put", "d/c", r#"{"id":"a","pk":1}"#], 0);
    run(&server, &["item", "put", "d/c", r#"{"id":"b","pk":1,"ttl":-1}"#], 0);
    run(&server, &["clock", "advance", "59m"], 0);
    assert_eq!(run(&server, &["query", "d/c", "SELECT VALUE COUNT(1) FROM c"], 0), "2\n");
    // Signed with the machine's date, an hour and more away from the server's, and still accepted.
    let clock: Value = serde_json::from_str(&run(&server, &["clock", "advance", "2h", "--json"], 0)).unwrap();
    assert_eq!(clock["movedMs"], (59 + 120) * 60 * 1000);
    run(&server, &["item", "get", "d/c", "a", "-k", "1"], 3);
    run(&server, &["item", "get", "d/c", "b", "-k", "1"], 0);
    assert_eq!(run(&server, &["query", "d/c", "SELECT VALUE c.id FROM c"], 0), "\"b\"\n");
    run(&server, &["reset"], 2);
    run(&server, &["reset", "--yes"], 0);
    assert_eq!(run(&server, &["database", "list"], 0), "");
}

#[test]
fn throttling_is_switched_while_the_server_runs() {
    let server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    run(&server, &["database", "create", "d"], 0);
    run(&server, &["container", "create", "d/c", "--partition-key", "/pk", "--throughput", "400"], 0);
    // Each costs many seconds of the throughput.
    let item = json!({"id": "a", "pk": 1, "text": "x".repeat(1_500_000)}).to_string();
    let mut client = Client::new(server.address());
    let mut put = || {
        let headers = [("x-ms-documentdb-is-upsert", "true"), ("x-ms-documentdb-partitionkey", "[1]")];
        client.post("dbs/d/colls/c/docs", "dbs/d/colls/c", "docs", &headers, &item).unwrap().status
    };
    assert!(run(&server, &["throttling", "show"], 0).starts_with("off"));
    assert_eq!([put(), put(), put()], [201, 200, 200]);
    assert_eq!(run(&server, &["throttling", "on", "--json"], 0), "{\"enabled\":true}\n");
    let refused = [put(), put()];
    assert!(refused.contains(&429), "{refused:?}");
    assert!(run(&server, &["throttling", "show"], 0).starts_with("on"));
    run(&server, &["throttling", "off"], 0);
    assert_eq!([put(), put()], [200, 200]);
}

#[test]
fn a_server_that_was_not_told_to_has_no_such_controls() {
    let server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    run(&server, &["clock", "advance", "1h"], 1);
    run(&server, &["reset", "--yes"], 1);
}

/// `examples/testing` in the languages that are there; the others are named.
#[test]
fn the_examples_for_test_frameworks_pass() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/testing");
    for (program, arguments) in [
        ("python3", &["-B", "-m", "unittest", "discover", "python"][..]),
        ("node", &["--test", "javascript"]),
    ] {
        let ran =
            Command::new(program).args(arguments).current_dir(&examples).env("ORRERY", binary()).output();
        match ran {
            Ok(output) => assert!(
                output.status.success(),
                "{program}\n{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            ),
            Err(_) => eprintln!("skipped: the example for {program}, which is not installed"),
        }
    }
}
