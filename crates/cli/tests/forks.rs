//! `orrery fork` against a server with its data on disk, that is killed while forks are made, written and dropped.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use orrery_testkit::TestServer;
use serde_json::Value;

/// Of the database that is forked.
const ITEMS: usize = 20;

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

fn orrery(server: &TestServer, arguments: &[&str]) -> (Option<i32>, String, String) {
    let endpoint = format!("http://{}", server.address());
    let output = Command::new(binary())
        .args(arguments)
        .args(["--endpoint", &endpoint])
        .env_remove("ORRERY_KEY")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[track_caller]
fn run(server: &TestServer, arguments: &[&str], code: i32) -> String {
    let (status, out, said) = orrery(server, arguments);
    assert_eq!(status, Some(code), "{arguments:?}\n{out}{said}");
    out
}

fn prepare(server: &TestServer) {
    run(server, &["database", "create", "shop"], 0);
    run(
        server,
        &["container", "create", "shop/orders", "--partition-key", "/pk", "--throughput", "20000"],
        0,
    );
    for n in 0..ITEMS {
        run(server, &["item", "put", "shop/orders", &format!(r#"{{"id":"{n}","pk":"p{n}"}}"#)], 0);
    }
}

fn count(server: &TestServer, container: &str) -> String {
    run(server, &["query", container, "SELECT VALUE COUNT(1) FROM c"], 0)
}

#[test]
fn forks_are_made_listed_replaced_and_dropped() {
    let server = TestServer::start(binary(), &[]).unwrap();
    prepare(&server);
    run(&server, &["fork", "create", "shop", "test"], 0);
    run(&server, &["fork", "create", "shop", "test"], 4);
    run(&server, &["fork", "create", "none"], 3);
    run(&server, &["fork", "create", "test", "shop", "--replace"], 4);
    let made: Value = serde_json::from_str(&run(&server, &["fork", "create", "shop", "--json"], 0)).unwrap();
    assert_eq!(
        (&made["id"], &made["origin"], &made["partitions"]),
        (&"shop-fork-1".into(), &"shop".into(), &2.into())
    );
    run(&server, &["item", "delete", "test/orders", "7", "-k", "p7"], 0);
    assert_eq!(
        (count(&server, "test/orders"), count(&server, "shop/orders")),
        ("19\n".into(), "20\n".into())
    );
    run(&server, &["fork", "create", "shop", "test", "--replace"], 0);
    assert_eq!(count(&server, "test/orders"), "20\n");
    let listed = run(&server, &["fork", "list"], 0);
    assert!(listed.contains("shop-fork-1") && listed.contains("test"), "{listed}");
    let dump = tempfile::tempdir().unwrap();
    let to = dump.path().join("dump");
    run(&server, &["export", "--all", to.to_str().unwrap()], 0);
    let manifest = std::fs::read_to_string(to.join("orrery-dump.json")).unwrap();
    assert!(manifest.contains("orders") && !manifest.contains("shop-fork-1"), "forks are in no dump");
    run(&server, &["fork", "drop", "shop"], 1);
    run(&server, &["fork", "drop", "test"], 0);
    run(&server, &["fork", "drop", "test"], 3);
    run(&server, &["fork", "drop"], 2);
    run(&server, &["fork", "drop", "--all"], 0);
    assert_eq!(run(&server, &["fork", "list"], 0), "");
    assert_eq!(run(&server, &["database", "list"], 0), "shop\n");
}

#[test]
fn nothing_of_a_fork_is_left_by_a_server_that_was_killed_at_any_moment() {
    let mut server = TestServer::start(binary(), &[]).unwrap();
    prepare(&server);
    for round in 0..4 {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Until the server is gone: each ends with an error then.
            let forker = scope.spawn(|| {
                let mut made = 0;
                while !over.load(Ordering::Relaxed) {
                    let (status, ..) = orrery(&server, &["fork", "create", "shop", "test", "--replace"]);
                    if status != Some(0) {
                        break;
                    }
                    made += 1;
                    orrery(&server, &["item", "put", "test/orders", r#"{"id":"new","pk":"p1"}"#]);
                    orrery(&server, &["container", "create", "test/more", "--partition-key", "/pk"]);
                }
                made
            });
            // Something that waits for the disk, and takes along what lies before it.
            for n in 0..3 + round {
                let item = format!(r#"{{"id":"kept-{round}-{n}","pk":"p{n}"}}"#);
                run(&server, &["item", "put", "shop/orders", &item], 0);
            }
            let process = server.process_id().unwrap();
            assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
            over.store(true, Ordering::Relaxed);
            forker.join().unwrap();
        });
        server.kill().unwrap();
        server.restart().unwrap();
        assert_eq!(run(&server, &["database", "list"], 0), "shop\n");
        assert_eq!(run(&server, &["fork", "list"], 0), "");
    }
    assert_eq!(count(&server, "shop/orders"), format!("{}\n", ITEMS + 3 + 4 + 5 + 6));
    // Behind the removal of what was left: the names are free, and no rows are.
    run(&server, &["database", "create", "test"], 0);
    assert_eq!(run(&server, &["container", "list", "test"], 0), "");
    server.stop().unwrap();
    let checked = Command::new(binary()).arg("check").arg(server.data_dir()).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}
