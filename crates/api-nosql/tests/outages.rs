//! What a client is told while the store is away: to come back, and of a write in flight that nobody knows. When the
//! store is back so is the service, without a restart.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_storage::MemoryStore;
use orrery_storage::doubles::{Fault, Flaky, Line};
use serde_json::{Value, json};
use support::{Client, Reply};

const DOCS: &str = "/dbs/d/colls/c/docs";

fn client() -> (Client, Line) {
    let store = Flaky::new(MemoryStore::new(), 7);
    let line = store.line();
    // Three partitions, so that some have lost their store and others not.
    let client = Client::over(Arc::new(store), &json!({"partition_throughput_limit": 1000}));
    assert_eq!(post(&client, "/dbs", json!({"id": "d"}), &[]).status, 201);
    let container = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    assert_eq!(post(&client, "/dbs/d/colls", container, &[("x-ms-offer-throughput", "3000")]).status, 201);
    (client, line)
}

fn post(client: &Client, path: &str, body: Value, headers: &[(&str, &str)]) -> Reply {
    let headers: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    client.send("POST", path, &headers, body.to_string().into_bytes(), "primary")
}

fn create(client: &Client, id: &str, pk: &str) -> Reply {
    let key = format!("[\"{pk}\"]");
    post(client, DOCS, json!({"id": id, "pk": pk}), &[("x-ms-documentdb-partitionkey", &key)])
}

fn get(client: &Client, path: &str, headers: &[(&str, &str)]) -> Reply {
    let headers: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    client.send("GET", path, &headers, Vec::new(), "primary")
}

fn read(client: &Client, id: &str, pk: &str) -> Reply {
    get(client, &format!("{DOCS}/{id}"), &[("x-ms-documentdb-partitionkey", &format!("[\"{pk}\"]"))])
}

fn query(client: &Client, pk: &str) -> Reply {
    let key = format!("[\"{pk}\"]");
    let headers = [
        ("x-ms-documentdb-isquery", "true"),
        ("content-type", "application/query+json"),
        ("x-ms-documentdb-partitionkey", &key),
    ];
    post(client, DOCS, json!({"query": "SELECT VALUE c.id FROM c"}), &headers)
}

/// Sends until the answer is another than "come back".
fn eventually(mut send: impl FnMut() -> Reply) -> Reply {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let reply = send();
        if reply.status != 503 {
            return reply;
        }
        assert!(Instant::now() < deadline, "the store is back and the service is not: {reply}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn during_an_outage_every_answer_can_be_retried_and_afterwards_everything_is_served() {
    let (client, line) = client();
    assert_eq!(create(&client, "1", "a").status, 201);
    line.cut();
    let unknown = create(&client, "2", "a");
    assert_eq!((unknown.status, unknown.json()["code"].as_str()), (408, Some("RequestTimeout")), "{unknown}");
    assert!(unknown.text().contains("may have been carried out or not"), "{unknown}");
    let feed = [("a-im", "Incremental feed"), ("x-ms-documentdb-partitionkey", "[\"a\"]")];
    for refused in [
        create(&client, "3", "a"),
        read(&client, "1", "a"),
        query(&client, "a"),
        get(&client, DOCS, &feed),
        get(&client, DOCS, &[]),
    ] {
        let code = refused.json()["code"].as_str().map(str::to_owned);
        assert_eq!((refused.status, code.as_deref()), (503, Some("ServiceUnavailable")), "{refused}");
        assert!(refused.text().contains("currently unavailable"), "{refused}");
        assert!(!refused.text().contains("line"), "what the store said is for the log: {refused}");
    }
    // The catalog: a change in flight is unknown, the next ones are refused.
    assert_eq!(post(&client, "/dbs", json!({"id": "e"}), &[]).status, 408);
    assert_eq!(post(&client, "/dbs", json!({"id": "e"}), &[]).status, 503);
    assert_eq!(get(&client, "/dbs/d/colls/c", &[]).status, 200, "what is known is told");
    line.mend();
    assert_eq!(eventually(|| read(&client, "1", "a")).status, 200);
    assert_eq!(read(&client, "2", "a").status, 404);
    assert_eq!(create(&client, "2", "a").status, 201);
    assert_eq!(query(&client, "a").json()["_count"], 2);
    assert_eq!(eventually(|| post(&client, "/dbs", json!({"id": "e"}), &[])).status, 201);
}

#[test]
fn a_write_of_unknown_outcome_is_found_by_whoever_looks_for_it() {
    let (client, line) = client();
    line.fail_next(Fault::LoseAnswer);
    assert_eq!(create(&client, "1", "a").status, 408);
    // As SDKs tell their users to: look, or write again and take the conflict for an answer.
    assert_eq!(eventually(|| create(&client, "1", "a")).status, 409);
    let found = read(&client, "1", "a");
    assert_eq!((found.status, found.json()["id"].as_str()), (200, Some("1")));
    line.fail_next(Fault::LoseRequest);
    assert_eq!(create(&client, "2", "a").status, 408);
    assert_eq!(eventually(|| create(&client, "2", "a")).status, 201);
    line.fail_next(Fault::Refuse);
    assert_eq!(create(&client, "3", "a").status, 503);
    assert_eq!(eventually(|| create(&client, "3", "a")).status, 201);
}

#[test]
fn partitions_that_have_their_store_go_on() {
    let (client, line) = client();
    let keys: Vec<String> = (0..12).map(|n| format!("k{n}")).collect();
    for key in &keys {
        assert_eq!(create(&client, "1", key).status, 201);
    }
    line.fail_next(Fault::Refuse);
    assert_eq!(create(&client, "2", "k0").status, 503);
    // One of them is opened again by the first that asks for it; the others have not noticed anything.
    for key in &keys {
        assert_eq!(read(&client, "1", key).status, 200);
    }
}
