//! A process that may open few files: connections leave the store what it needs.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use orrery_testkit::{Client, TestServer};

const FILES: usize = 300;
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["p"]"#);

#[test]
fn connections_that_take_every_file_do_not_stop_writes() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("orrery-with-few-files");
    let binary = Path::new(env!("CARGO_BIN_EXE_orrery")).display();
    std::fs::write(&program, format!("#!/bin/sh\nulimit -n {FILES}\nexec {binary} \"$@\"\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = TestServer::start(&program, &[]).unwrap();
    assert!(server.log().contains("at most 150 connections instead of 10000"), "{}", server.log());
    let mut client = Client::new(server.address());
    client.post("dbs", "", "dbs", &[], r#"{"id":"d"}"#).unwrap().expect_status(201).unwrap();
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"}}"#;
    client.post("dbs/d/colls", "dbs/d", "colls", &[], container).unwrap().expect_status(201).unwrap();
    let silent: Vec<TcpStream> =
        (0..2 * FILES).filter_map(|_| TcpStream::connect(server.address()).ok()).collect();
    // More than a segment of the log, so that new files are needed.
    let text = "x".repeat(1_500_000);
    let deadline = Instant::now() + Duration::from_secs(60);
    for n in 0..10 {
        let item = format!(r#"{{"id":"{n}","pk":"p","text":"{text}"}}"#);
        loop {
            match client.post("dbs/d/colls/c/docs", "dbs/d/colls/c", "docs", &[KEY], &item) {
                Ok(reply) if reply.status == 201 => break,
                // The flood may have taken this client's place too; it finds another one soon.
                outcome => {
                    assert!(Instant::now() < deadline, "{:?}\n{}", outcome.map(|r| r.status), server.log())
                }
            }
            std::thread::sleep(Duration::from_millis(200));
            client = Client::new(server.address());
        }
    }
    assert!(!server.log().contains("Too many open files"), "{}", server.log());
    drop(silent);
}
