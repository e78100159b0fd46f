//! Writers of the same entities at the same time: no merge is lost, no batch is torn.

mod support;

use serde_json::{Value, json};
use support::{Client, Signer};

const WRITERS: usize = 4;
const ROUNDS: usize = 40;

fn send(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> support::Reply {
    let headers: Vec<_> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    client.send(method, path, &headers, body, "localhost:8902", Signer::Key("primary"))
}

fn with_table() -> Client {
    let client = Client::new(&Value::Null);
    let made = send(&client, "POST", "/orrery/Tables", &[], json!({"TableName": "t"}).to_string().into());
    assert_eq!(made.status, 201, "{made}");
    client
}

#[test]
fn merges_of_one_entity_keep_what_others_merged() {
    let client = with_table();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let client = &client;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let body = json!({ format!("w{writer}r{round}"): round }).to_string();
                    let path = "/orrery/t(PartitionKey='p',RowKey='r')";
                    let merged = send(client, "MERGE", path, &[], body.into());
                    assert_eq!(merged.status, 204, "{merged}");
                }
            });
        }
    });
    let read = send(&client, "GET", "/orrery/t(PartitionKey='p',RowKey='r')", &[], Vec::new()).json();
    for writer in 0..WRITERS {
        for round in 0..ROUNDS {
            assert_eq!(read[format!("w{writer}r{round}")], round, "writer {writer}, round {round}");
        }
    }
}

#[test]
fn a_version_is_changed_once() {
    let client = with_table();
    let path = "/orrery/t(PartitionKey='p',RowKey='r')";
    assert_eq!(send(&client, "PUT", path, &[], json!({"N": 0}).to_string().into()).status, 204);
    // Each adds one to what it read, and tries again when it was overtaken.
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            let client = &client;
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    loop {
                        let read = send(client, "GET", path, &[], Vec::new());
                        let next = json!({"N": read.json()["N"].as_i64().unwrap() + 1}).to_string();
                        let etag = read.header("etag").unwrap().to_owned();
                        let written = send(client, "PUT", path, &[("if-match", &etag)], next.into());
                        match written.status {
                            204 => break,
                            412 => {}
                            other => panic!("{other}: {written}"),
                        }
                    }
                }
            });
        }
    });
    let read = send(&client, "GET", path, &[], Vec::new()).json();
    assert_eq!(read["N"], WRITERS * ROUNDS);
}

#[test]
fn readers_see_whole_batches() {
    let client = with_table();
    let batch = |number: usize| {
        let mut text = String::from("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n");
        for row in 0..5 {
            text.push_str(&format!(
                "--c\r\nContent-Type: application/http\r\n\r\nPUT /orrery/t(PartitionKey='p',RowKey='{row}') HTTP/1.1\r\n\r\n{{\"N\":{number}}}\r\n"
            ));
        }
        text.push_str("--c--\r\n--b--\r\n");
        text.into_bytes()
    };
    let kind = [("content-type", "multipart/mixed; boundary=b")];
    assert_eq!(send(&client, "POST", "/orrery/$batch", &kind, batch(0)).status, 202);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (client, batch) = (&client, &batch);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let reply = send(client, "POST", "/orrery/$batch", &kind, batch(writer * ROUNDS + round));
                    assert!(reply.status == 202 && reply.text().contains("204 No Content"), "{reply}");
                }
            });
        }
        for _ in 0..ROUNDS {
            let path = "/orrery/t()?$filter=PartitionKey%20eq%20'p'";
            let page = send(&client, "GET", path, &[], Vec::new()).json();
            let rows = page["value"].as_array().unwrap();
            assert!(rows.len() == 5 && rows.iter().all(|row| row["N"] == rows[0]["N"]), "{rows:?}");
        }
    });
}
