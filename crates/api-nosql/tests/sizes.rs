//! What is measured of a write is the text that was sent, however small the item that it is about.

mod support;

use serde_json::json;
use support::{Client, Reply};

const LIMIT: usize = 2 * 1024 * 1024;

/// An item of so many bytes of JSON text; with escapes the item itself is a sixth of that.
fn item(bytes: usize, escaped: bool) -> Vec<u8> {
    let (start, end) = (r#"{"id":"1","pk":"a","text":""#, r#""}"#);
    let room = bytes - start.len() - end.len();
    let text = if escaped { r"\u0041".repeat(room / 6) + &"x".repeat(room % 6) } else { "x".repeat(room) };
    format!("{start}{text}{end}").into_bytes()
}

fn client() -> Client {
    let client = Client::new(&json!({}));
    let send = |path: &str, body: serde_json::Value| {
        client.send("POST", path, &[], body.to_string().into_bytes(), "primary").status
    };
    assert_eq!(send("/dbs", json!({"id": "d"})), 201);
    let container = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    assert_eq!(send("/dbs/d/colls", container), 201);
    client
}

fn send(client: &Client, method: &str, name: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Reply {
    let mut all = vec![("x-ms-documentdb-partitionkey".to_owned(), r#"["a"]"#.to_owned())];
    all.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    client.send(method, &format!("/dbs/d/colls/c/docs{name}"), &all, body, "primary")
}

#[test]
fn a_body_over_the_limit_is_refused_even_if_the_item_is_small() {
    let client = client();
    let upsert = [("x-ms-documentdb-is-upsert", "true")];
    for escaped in [false, true] {
        for headers in [&[][..], &upsert[..]] {
            let refused = send(&client, "POST", "", headers, item(LIMIT + 1, escaped));
            assert_eq!(refused.status, 413, "{refused}");
            assert!(refused.text().contains("Request size is too large"), "{refused}");
            assert_eq!(refused.header("x-ms-request-charge"), None, "nothing was read that could be charged");
        }
    }
    assert_eq!(send(&client, "GET", "/1", &[], Vec::new()).status, 404, "nothing was written");
    assert_eq!(send(&client, "POST", "", &[], item(LIMIT, true)).status, 201);
    assert_eq!(send(&client, "POST", "", &upsert, item(LIMIT, true)).status, 200);
    assert_eq!(send(&client, "PUT", "/1", &[], item(LIMIT, true)).status, 200);
    assert_eq!(send(&client, "PUT", "/1", &[], item(LIMIT + 1, true)).status, 413);
}

#[test]
fn a_patch_is_measured_by_its_body_and_by_what_it_makes() {
    let client = client();
    assert_eq!(send(&client, "POST", "", &[], item(LIMIT - 100, false)).status, 201);
    let patch = |bytes: usize, escaped: bool| {
        let item = String::from_utf8(item(bytes, escaped)).unwrap();
        format!(r#"{{"operations":[{{"op":"set","path":"/more","value":{item}}}]}}"#).into_bytes()
    };
    assert_eq!(
        send(&client, "PATCH", "/1", &[], patch(1_000, false)).status,
        413,
        "the item would be too large"
    );
    assert_eq!(send(&client, "PUT", "/1", &[], item(100, false)).status, 200);
    assert_eq!(send(&client, "PATCH", "/1", &[], patch(LIMIT, true)).status, 413, "the body is too large");
    assert_eq!(send(&client, "PATCH", "/1", &[], patch(LIMIT / 2, true)).status, 200);
}

#[test]
fn a_batch_is_measured_by_its_body() {
    let client = client();
    let headers = [("x-ms-cosmos-is-batch-request", "true"), ("x-ms-cosmos-batch-atomic", "true")];
    let batch = |bytes: usize| {
        let item = String::from_utf8(item(bytes, true)).unwrap();
        format!(r#"[{{"operationType":"Create","resourceBody":{item}}}]"#).into_bytes()
    };
    assert_eq!(send(&client, "POST", "", &headers, batch(LIMIT)).status, 413);
    assert_eq!(send(&client, "POST", "", &headers, batch(LIMIT - 100)).status, 200);
}
