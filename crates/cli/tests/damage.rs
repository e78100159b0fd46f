//! A flipped bit in the store of a running business: what it holds is an error, everything else goes on, `orrery
//! check` finds it and `orrery repair` keeps the rest.

use std::path::{Path, PathBuf};
use std::process::Command;

use orrery_testkit::{Client, Reply, TestServer};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_orrery");
const ITEMS: usize = 120;

fn container(client: &mut Client, id: &str) {
    let body =
        json!({ "id": id, "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 } }).to_string();
    client.post("dbs/d/colls", "dbs/d", "colls", &[], &body).unwrap().expect_status(201).unwrap();
}

fn write(client: &mut Client, container: &str, number: usize) -> Reply {
    let link = format!("dbs/d/colls/{container}");
    let body =
        json!({ "id": number.to_string(), "pk": "p", "n": number, "filling": "x".repeat(900) }).to_string();
    let headers = [("x-ms-documentdb-partitionkey", r#"["p"]"#), ("x-ms-documentdb-is-upsert", "true")];
    client.post(&format!("{link}/docs"), &link, "docs", &headers, &body).unwrap()
}

fn read(client: &mut Client, container: &str, number: usize) -> Reply {
    let link = format!("dbs/d/colls/{container}/docs/{number}");
    client.get(&link, &link, "docs", &[("x-ms-documentdb-partitionkey", r#"["p"]"#)]).unwrap()
}

/// The statuses of reading every item: how many are 200, and how many honest errors. Others end the test.
fn readable(client: &mut Client, container: &str) -> (usize, usize) {
    let mut counts = (0, 0);
    for number in 0..ITEMS {
        let reply = read(client, container, number);
        match reply.status {
            200 => counts.0 += 1,
            500 if reply.text().contains("orrery check") => counts.1 += 1,
            status => panic!("{container} {number}: {status} {}", reply.text()),
        }
    }
    counts
}

fn flip(directory: &Path) -> PathBuf {
    let tables = std::fs::read_dir(directory.join("items/tables")).unwrap();
    let table = tables.map(|entry| entry.unwrap().path()).min().unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    // The first half holds the rows of the container that was made first.
    let place = bytes.len() / 4;
    bytes[place] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    table
}

fn orrery(arguments: &[&str], directory: &Path) -> (i32, String) {
    let output = Command::new(PROGRAM).args(arguments).arg(directory).output().unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code().unwrap_or(-1), text)
}

fn filled() -> TestServer {
    let mut server = TestServer::start(Path::new(PROGRAM), &[]).unwrap();
    let mut client = Client::new(server.address());
    client.post("dbs", "", "dbs", &[], r#"{"id":"d"}"#).unwrap().expect_status(201).unwrap();
    for id in ["hurt", "other"] {
        container(&mut client, id);
        for number in 0..ITEMS {
            write(&mut client, id, number).expect_status(201).unwrap();
        }
    }
    server.stop().unwrap();
    server
}

#[test]
fn a_flipped_bit_is_contained_found_and_repaired() {
    let mut server = filled();
    let directory = server.data_dir();
    assert_eq!(orrery(&["check"], &directory).0, 0);
    flip(&directory);
    let before = std::fs::read(directory.join("items/current")).unwrap();
    let (code, text) = orrery(&["check"], &directory);
    assert!(code == 1 && text.contains("items/tables/") && text.contains("d/hurt"), "{code} {text}");
    let (code, text) = orrery(&["check", "--json"], &directory);
    let json: Value = serde_json::from_str(text.split("\norrery: ").next().unwrap()).unwrap();
    assert!(code == 1 && json["clean"] == false && json["damage"][0]["rows"] == true, "{json}");
    assert_eq!(std::fs::read(directory.join("items/current")).unwrap(), before, "nothing was changed");

    server.restart().unwrap();
    let mut client = Client::new(server.address());
    let (found, failed) = readable(&mut client, "hurt");
    assert!(failed > 0 && found > failed, "{found} items are read, {failed} are not");
    assert_eq!(readable(&mut client, "other"), (ITEMS, 0));
    for number in 0..ITEMS {
        write(&mut client, "other", number).expect_status(200).unwrap();
    }
    let refused = orrery(&["check"], &directory);
    assert!(refused.0 == 2 && refused.1.contains("in use"), "{refused:?}");
    server.stop().unwrap();

    let (code, text) = orrery(&["repair"], &directory);
    assert!(code == 2 && text.contains("--yes"), "{code} {text}");
    let (code, text) = orrery(&["repair", "--dry-run"], &directory);
    assert!(code == 0 && text.contains("nothing was changed"), "{code} {text}");
    let (code, text) = orrery(&["repair", "--yes"], &directory);
    assert!(code == 0 && text.contains("Lost or unknown") && text.contains("d/hurt"), "{code} {text}");
    let aside = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let aside = aside.into_iter().find(|path| path.to_string_lossy().contains("set-aside-")).unwrap();
    assert!(aside.join("items/tables").is_dir() && aside.join("report.json").is_file());
    assert_eq!(orrery(&["check"], &directory), (0, orrery(&["check"], &directory).1));

    server.restart().unwrap();
    let mut client = Client::new(server.address());
    let kept = (0..ITEMS).filter(|number| read(&mut client, "hurt", *number).status == 200).count();
    assert_eq!(kept, found, "what could be read is kept");
    assert_eq!(readable(&mut client, "other"), (ITEMS, 0));
    assert!((0..ITEMS).all(|number| matches!(write(&mut client, "hurt", number).status, 200 | 201)));
    assert_eq!(readable(&mut client, "hurt"), (ITEMS, 0));
}

#[test]
fn a_damaged_container_can_be_dropped() {
    let mut server = filled();
    flip(&server.data_dir());
    server.restart().unwrap();
    let mut client = Client::new(server.address());
    client.delete("dbs/d/colls/hurt", "colls", &[]).unwrap().expect_status(204).unwrap();
    container(&mut client, "hurt");
    assert_eq!(read(&mut client, "hurt", 1).status, 404);
    write(&mut client, "hurt", 1).expect_status(201).unwrap();
    assert_eq!(readable(&mut client, "other"), (ITEMS, 0));
}

#[test]
fn an_index_that_is_gone_is_made_anew_and_a_catalog_that_is_gone_is_not_invented() {
    let server = filled();
    let directory = server.data_dir();
    std::fs::remove_dir_all(directory.join("index")).unwrap();
    let (code, text) = orrery(&["repair", "--yes"], &directory);
    assert_eq!(code, 0, "{text}");
    assert_eq!(orrery(&["check"], &directory).0, 0);
    std::fs::remove_dir_all(directory.join("feed")).unwrap();
    let (code, text) = orrery(&["repair", "--yes"], &directory);
    assert!(
        code == 1 && text.contains("catalog is lost") && text.contains("nothing was changed"),
        "{code} {text}"
    );
    let foreign = directory.join("log");
    let (code, text) = orrery(&["repair", "--yes"], &foreign);
    assert!(code == 1 && text.contains("no store"), "{code} {text}");
}

/// The index follows from the items, whichever of its rows are hit: values, orders, the numbers of paths.
#[test]
fn a_flipped_bit_anywhere_in_the_index_is_repaired_without_loss() {
    let server = filled();
    let directory = server.data_dir();
    let tables = std::fs::read_dir(directory.join("index/tables")).unwrap();
    let table = tables.map(|entry| entry.unwrap().path()).min().unwrap();
    let whole = std::fs::read(&table).unwrap();
    let copy = tempfile::tempdir().unwrap();
    for part in 0..8 {
        let damaged = copy.path().join(part.to_string());
        copy_directory(&directory, &damaged);
        let mut bytes = whole.clone();
        bytes[whole.len() * (2 * part + 1) / 16] ^= 1;
        std::fs::write(damaged.join(table.strip_prefix(&directory).unwrap()), bytes).unwrap();
        let (code, text) = orrery(&["repair", "--yes"], &damaged);
        assert_eq!(code, 0, "part {part}: {text}");
        let (code, text) = orrery(&["check"], &damaged);
        assert!(code == 0 && text.contains(&format!("item {}", 2 * ITEMS)), "part {part}: {text}");
    }
}

fn copy_directory(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_directory(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), &target).unwrap()),
        }
    }
}
