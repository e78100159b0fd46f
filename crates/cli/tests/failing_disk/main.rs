//! A disk that is full, and one whose sync fails, under the real binary and over the wire: writes are refused with a clear
//! error, reads go on, and after a restart on a healthy disk everything that was acknowledged is there.
//!
//! The failures are made by a small library that is loaded before the C library (`disk.c`). Where there is no C compiler or
//! no such way, the test says so and passes.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use orrery_testkit::{Client, TestServer};

const ITEMS: &str = "dbs/d/colls/c/docs";
const CONTAINER: &str = "dbs/d/colls/c";

/// A program that runs the server with the library, and the file that switches failures on.
struct Disk {
    program: PathBuf,
    switch: PathBuf,
    _directory: tempfile::TempDir,
}

impl Disk {
    fn new() -> Option<Disk> {
        let directory = tempfile::tempdir().unwrap();
        let (library, program, switch) = (
            directory.path().join("disk.so"),
            directory.path().join("orrery"),
            directory.path().join("fails"),
        );
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/failing_disk/disk.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source)
            .arg("-ldl")
            .status();
        if !compiled.is_ok_and(|status| status.success()) {
            println!("skipped: no C compiler, so no failing disk");
            return None;
        }
        let script = format!(
            "#!/bin/sh\nFAILING_DISK='{}' LD_PRELOAD='{}' exec '{}' \"$@\"\n",
            switch.display(),
            library.display(),
            env!("CARGO_BIN_EXE_orrery")
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Some(Disk { program, switch, _directory: directory })
    }

    fn fail(&self, call: &str) {
        // Renamed into place, so that the server never reads half a word.
        let text = self.switch.with_extension("new");
        std::fs::write(&text, call).unwrap();
        std::fs::rename(text, &self.switch).unwrap();
    }

    fn heal(&self) {
        std::fs::remove_file(&self.switch).unwrap();
    }
}

fn upsert(client: &mut Client, id: &str, revision: u32) -> orrery_testkit::Reply {
    let headers = [("x-ms-documentdb-partitionkey", "[\"a\"]"), ("x-ms-documentdb-is-upsert", "true")];
    let body = format!(r#"{{"id":"{id}","pk":"a","revision":{revision}}}"#);
    client.post(ITEMS, CONTAINER, "docs", &headers, &body).unwrap()
}

fn revision(client: &mut Client, id: &str) -> Option<u64> {
    let path = format!("{ITEMS}/{id}");
    let reply = client.get(&path, &path, "docs", &[("x-ms-documentdb-partitionkey", "[\"a\"]")]).unwrap();
    match reply.status {
        200 => serde_json::from_slice::<serde_json::Value>(&reply.body).unwrap()["revision"].as_u64(),
        404 => None,
        status => panic!("{status} for a read"),
    }
}

fn stops_cleanly(call: &str, said: &str) {
    let Some(disk) = Disk::new() else { return };
    let mut server = TestServer::start(&disk.program, &[]).unwrap();
    let mut client = Client::new(server.address());
    client.post("dbs", "", "dbs", &[], r#"{"id":"d"}"#).unwrap().expect_status(201).unwrap();
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"}}"#;
    client.post("dbs/d/colls", "dbs/d", "colls", &[], container).unwrap().expect_status(201).unwrap();
    let mut acknowledged = BTreeMap::new();
    for number in 0..60u32 {
        let id = format!("item-{}", number % 25);
        let reply = upsert(&mut client, &id, number);
        assert!(matches!(reply.status, 200 | 201), "{}", reply.status);
        acknowledged.insert(id, u64::from(number));
    }

    disk.fail(call);
    // Several clients at once: those who share a group with the failure must hear of it too.
    let address = server.address();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            std::thread::spawn(move || {
                let mut client = Client::new(address);
                let replies = (0..5).map(|number| upsert(&mut client, &format!("late-{writer}-{number}"), 1));
                replies.collect::<Vec<_>>()
            })
        })
        .collect();
    for reply in writers.into_iter().flat_map(|writer| writer.join().unwrap()) {
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        assert_eq!(reply.status, 503, "{text}");
        let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(body["code"], "ServiceUnavailable");
        assert!(body["message"].as_str().unwrap().contains("stopped accepting writes"), "{text}");
    }
    let reply = client.post("dbs", "", "dbs", &[], r#"{"id":"e"}"#).unwrap();
    assert_eq!(reply.status, 503, "the catalog is on the same disk");
    for (id, expected) in &acknowledged {
        assert_eq!(revision(&mut client, id), Some(*expected), "reads go on");
    }
    for writer in 0..4 {
        assert_eq!(revision(&mut client, &format!("late-{writer}-0")), None, "nobody sees what was refused");
    }
    assert_eq!(client.get("health/ready", "", "", &[]).unwrap().status, 503);
    assert_eq!(client.get("health/live", "", "", &[]).unwrap().status, 200);
    let metrics = client.get("metrics", "", "", &[]).unwrap();
    assert!(String::from_utf8_lossy(&metrics.body).contains("\norrery_store_writes_stopped 1"));

    // A disk that is well again changes nothing for this process: what it remembers may not be what the disk holds.
    disk.heal();
    assert_eq!(upsert(&mut client, "later", 1).status, 503);
    let _ = server.stop().unwrap();
    assert!(server.log().contains(said), "the log says why: {}", server.log());

    server.restart().unwrap();
    let mut client = Client::new(server.address());
    for (id, expected) in &acknowledged {
        assert_eq!(revision(&mut client, id), Some(*expected), "{id} after a restart");
    }
    assert_eq!(client.get("health/ready", "", "", &[]).unwrap().status, 200);
    assert_eq!(upsert(&mut client, "later", 2).status, 201);
}

#[test]
fn a_full_disk_stops_writes_and_loses_nothing() {
    stops_cleanly("full", "No space left on device");
}

#[test]
fn a_failed_sync_stops_writes_and_loses_nothing() {
    stops_cleanly("sync", "Input/output error");
}
