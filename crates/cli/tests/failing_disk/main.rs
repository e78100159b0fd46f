//! A disk that is full, one whose sync fails, and a system without descriptors, under the real binary and over the
//! wire: what cannot be written is refused with a clear error, reads go on, what can be repaired by waiting is, and
//! after a restart on a healthy disk everything that was acknowledged is there.
//!
//! The failures are made by a small library that is loaded before the C library (`disk.c`). Where there is no C
//! compiler or no such way, the test says so and passes.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

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

/// A server on this disk with a container.
fn start(disk: &Disk) -> (TestServer, Client) {
    let server = TestServer::start(&disk.program, &[]).unwrap();
    let mut client = Client::new(server.address());
    client.post("dbs", "", "dbs", &[], r#"{"id":"d"}"#).unwrap().expect_status(201).unwrap();
    for id in ["c", "large"] {
        let container = format!(r#"{{"id":"{id}","partitionKey":{{"paths":["/pk"],"kind":"Hash"}}}}"#);
        client.post("dbs/d/colls", "dbs/d", "colls", &[], &container).unwrap().expect_status(201).unwrap();
    }
    (server, client)
}

/// An upsert of so many bytes that cannot be compressed; its status, and its message when it was refused.
fn fill(client: &mut Client, container: &str, number: u64, size_bytes: usize) -> (u16, String) {
    let mut state = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut text = String::with_capacity(size_bytes);
    while text.len() < size_bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(&format!("{state:016x}"));
    }
    let path = format!("dbs/d/colls/{container}");
    let headers = [("x-ms-documentdb-partitionkey", "[\"a\"]"), ("x-ms-documentdb-is-upsert", "true")];
    let body = format!(r#"{{"id":"{number}","pk":"a","revision":{number},"text":"{text}"}}"#);
    let reply = client.post(&format!("{path}/docs"), &path, "docs", &headers, &body).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    (reply.status, body["message"].as_str().unwrap_or_default().to_owned())
}

fn delete(client: &mut Client, path: &str, kind: &str) -> u16 {
    client.delete(path, kind, &[("x-ms-documentdb-partitionkey", "[\"a\"]")]).unwrap().status
}

fn figure(client: &mut Client, name: &str) -> u64 {
    let metrics = client.get("metrics", "", "", &[]).unwrap();
    let text = String::from_utf8_lossy(&metrics.body).into_owned();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).expect("a figure");
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Upserts until the disk is full; the ids that were acknowledged.
fn fill_up(client: &mut Client, from: u64) -> Vec<u64> {
    let mut acknowledged = Vec::new();
    for number in from..from + 2000 {
        match fill(client, "c", number, 20_000) {
            (200 | 201, _) => acknowledged.push(number),
            (507, message) => {
                assert!(message.contains("the disk is full"), "{message}");
                return acknowledged;
            }
            (status, message) => panic!("{status}: {message}"),
        }
    }
    panic!("the disk never became full");
}

/// Waits until an upsert succeeds.
fn accepted_again(client: &mut Client) {
    let began = Instant::now();
    loop {
        match fill(client, "c", 1_000_000, 1000) {
            (200 | 201, _) => return,
            (status, message) => assert!(
                matches!(status, 503 | 507) && began.elapsed() < Duration::from_secs(30),
                "{status}: {message}"
            ),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_full_disk_takes_deletes_and_everything_again_when_there_is_room() {
    let Some(disk) = Disk::new() else { return };
    let (mut server, mut client) = start(&disk);
    for number in 0..100 {
        assert_eq!(fill(&mut client, "c", number, 20_000).0, 201);
    }
    disk.fail("room");
    let mut acknowledged = fill_up(&mut client, 100);
    acknowledged.extend(0..100);
    assert_eq!(figure(&mut client, "orrery_store_disk_full"), 1);
    assert_eq!(client.get("health/ready", "", "", &[]).unwrap().status, 200, "reads and deletes are served");
    // Replacing is refused too, in one request or in a batch; what is there can be read and deleted.
    assert_eq!(fill(&mut client, "c", 0, 20_000).0, 507);
    assert_eq!(revision(&mut client, "0"), Some(0));
    let deleted: Vec<u64> = (0..90).collect();
    for number in &deleted {
        let status = delete(&mut client, &format!("{ITEMS}/{number}"), "docs");
        assert_eq!(status, 204, "{number}: {}", server.log());
    }
    assert_eq!(delete(&mut client, "dbs/d/colls/large", "colls"), 204);
    assert_eq!(figure(&mut client, "orrery_store_writes_stopped"), 0);

    disk.heal();
    accepted_again(&mut client);
    assert_eq!(figure(&mut client, "orrery_store_disk_full"), 0);
    assert!(server.stop().unwrap().success());
    server.restart().unwrap();
    let mut client = Client::new(server.address());
    for number in acknowledged {
        let expected = (!deleted.contains(&number)).then_some(number);
        assert_eq!(revision(&mut client, &number.to_string()), expected);
    }
}

#[test]
fn a_container_that_is_deleted_on_a_full_disk_makes_room() {
    let Some(disk) = Disk::new() else { return };
    let (_server, mut client) = start(&disk);
    for number in 0..120 {
        assert_eq!(fill(&mut client, "large", number, 200_000).0, 201);
    }
    disk.fail("room");
    fill_up(&mut client, 0);
    assert_eq!(delete(&mut client, "dbs/d/colls/large", "colls"), 204);
    // The disk stays as large as it is.
    accepted_again(&mut client);
    assert_eq!(figure(&mut client, "orrery_store_writes_stopped"), 0);
}

#[test]
fn a_lack_of_descriptors_passes() {
    let Some(disk) = Disk::new() else { return };
    let (mut server, mut client) = start(&disk);
    disk.fail("files");
    // More than a log segment and more than a memtable.
    for number in 0..60 {
        let (status, message) = fill(&mut client, "c", number, 200_000);
        assert!(matches!(status, 200 | 201), "{status}: {message}");
    }
    let began = Instant::now();
    while !server.log().contains("it is tried again") {
        assert!(began.elapsed() < Duration::from_secs(20), "{}", server.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(figure(&mut client, "orrery_store_flushes_total"), 0);
    disk.heal();
    let began = Instant::now();
    while figure(&mut client, "orrery_store_flushes_total") == 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "{}", server.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    accepted_again(&mut client);
    assert_eq!(figure(&mut client, "orrery_store_writes_stopped"), 0);
    assert!(server.stop().unwrap().success());
    server.restart().unwrap();
    let mut client = Client::new(server.address());
    for number in 0..60u64 {
        assert_eq!(revision(&mut client, &number.to_string()), Some(number));
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
        let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        // Between the first write without room and the last of the reserve, the disk is just full.
        if reply.status == 507 && call == "full" {
            assert!(body["message"].as_str().unwrap().contains("the disk is full"), "{text}");
            continue;
        }
        assert_eq!(reply.status, 503, "{text}");
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
