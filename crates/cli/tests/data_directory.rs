//! The real binary and its directory: somebody else's files stay, a store that is not whole is refused with what is
//! missing, nobody gets in beside a running server, and nobody else may read.

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use orrery_testkit::{Client, TestServer};

const ITEMS: &str = "dbs/d/colls/c/docs";
const CONTAINER: &str = "dbs/d/colls/c";

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

/// Starts a server that must refuse, and returns what it says.
fn refusal(data_dir: &Path) -> String {
    let output = Command::new(binary())
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data_dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    text
}

/// A server with some items, and their number.
fn filled() -> (TestServer, usize) {
    let server = TestServer::start(binary(), &[]).unwrap();
    let mut client = Client::new(server.address());
    client.post("dbs", "", "dbs", &[], r#"{"id":"d"}"#).unwrap().expect_status(201).unwrap();
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"}}"#;
    client.post("dbs/d/colls", "dbs/d", "colls", &[], container).unwrap().expect_status(201).unwrap();
    for number in 0..50 {
        let body = format!(r#"{{"id":"{number}","pk":"a"}}"#);
        let headers = [("x-ms-documentdb-partitionkey", "[\"a\"]")];
        client.post(ITEMS, CONTAINER, "docs", &headers, &body).unwrap().expect_status(201).unwrap();
    }
    (server, 50)
}

fn items(server: &TestServer) -> usize {
    let mut client = Client::new(server.address());
    let reply = client.get(ITEMS, CONTAINER, "docs", &[]).unwrap().expect_status(200).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    body["Documents"].as_array().unwrap().len()
}

#[test]
fn somebody_elses_directory_is_refused_and_left_alone() {
    for folder in ["items", "index", "feed", "log"] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join(folder)).unwrap();
        let precious = directory.path().join(folder).join("precious.txt");
        std::fs::write(&precious, "precious").unwrap();
        let said = refusal(directory.path());
        assert!(said.contains(folder) && said.contains("--data-dir"), "{said}");
        assert_eq!(std::fs::read(precious).unwrap(), b"precious");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing was added either");
    }
}

#[test]
fn a_stopped_store_that_misses_a_part_is_refused_and_opens_when_the_part_is_back() {
    let (mut server, expected) = filled();
    assert!(server.stop().unwrap().success());
    let data = server.data_dir();
    let away: PathBuf = data.with_extension("away");
    let mut parts = vec!["FORMAT".to_owned(), "log".to_owned()];
    for tree in ["items", "index", "feed"] {
        parts.extend([tree.to_owned(), format!("{tree}/current"), format!("{tree}/tables/0")]);
    }
    for part in parts {
        std::fs::rename(data.join(&part), &away).unwrap();
        let said = refusal(&data);
        assert!(said.contains(&part) && said.contains("orrery repair"), "{part}: {said}");
        assert!(!data.join(&part).exists(), "{part} was made anew");
        std::fs::rename(&away, data.join(&part)).unwrap();
    }
    server.restart().unwrap();
    assert_eq!(items(&server), expected);
}

#[test]
fn a_removed_lock_file_lets_no_second_server_in() {
    let (server, expected) = filled();
    std::fs::remove_file(server.data_dir().join("LOCK")).unwrap();
    for _ in 0..2 {
        let said = refusal(&server.data_dir());
        assert!(said.contains("in use by another process"), "{said}");
    }
    assert_eq!(items(&server), expected);
}

#[test]
fn nobody_else_may_read_the_data() {
    let (mut server, _) = filled();
    assert!(server.stop().unwrap().success());
    let mut places = vec![server.data_dir()];
    while let Some(place) = places.pop() {
        let metadata = std::fs::metadata(&place).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o077, 0, "{}", place.display());
        if metadata.is_dir() {
            places.extend(std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
}

#[test]
fn a_killed_server_misses_a_log_that_was_removed_or_cut() {
    for removed in [true, false] {
        let (mut server, expected) = filled();
        server.kill().unwrap();
        let mut segments: Vec<PathBuf> = std::fs::read_dir(server.data_dir().join("log"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        segments.sort();
        let newest = segments.pop().unwrap();
        let whole = std::fs::read(&newest).unwrap();
        match removed {
            true => std::fs::remove_file(&newest).unwrap(),
            false => std::fs::write(&newest, &whole[..1000]).unwrap(),
        }
        let said = refusal(&server.data_dir());
        assert!(said.contains("orrery repair") && said.contains("log"), "{said}");
        std::fs::write(&newest, &whole).unwrap();
        server.restart().unwrap();
        assert_eq!(items(&server), expected);
    }
}
