//! Items, batches and feeds that are as large, as deep or as many as they may be, and more.

use anyhow::Result;
use orrery_testkit::Client;
use serde_json::{Value, json};

use super::attacker::{Attack, Attacker, Beside, Request};
use super::queries::list;
use super::{container, item};

pub const ATTACKS: &[Attack] = &[
    entry("item-deep", "100,000 brackets, and 120 levels of objects", |attacker| {
        store(
            attacker,
            &format!(r#"{{"id":"x","pk":"p","a":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000)),
        )?;
        store(
            attacker,
            &format!(r#"{{"id":"x","pk":"p","a":{}1{}}}"#, r#"{"a":"#.repeat(120), "}".repeat(120)),
        )
    })
    .lasting(2, 15),
    entry("item-numbers", "250,000 numbers in an item, indexed", |attacker| {
        let first = attacker.random.below(1000);
        store(attacker, &format!(r#"{{"id":"x","pk":"p","a":[{}]}}"#, list(250_000, |n| n as u64 + first)))
    }),
    entry("item-properties", "60,000 properties of an item", |attacker| {
        let first = attacker.random.below(1000);
        let members = list(60_000, |n| format!(r#""{first}-{n}":{n}"#));
        store(attacker, &format!(r#"{{"id":"x","pk":"p",{members}}}"#))
    }),
    entry("item-long-keys", "names of a megabyte, and of 4 KB by the hundred", |attacker| {
        store(attacker, &format!(r#"{{"id":"x","pk":"p","{}":1}}"#, "k".repeat(1_500_000)))?;
        let members = list(400, |n| format!(r#""{n}{}":1"#, "k".repeat(4000)));
        store(attacker, &format!(r#"{{"id":"x","pk":"p",{members}}}"#))
    }),
    entry("item-escapes", "a text of a million escapes", |attacker| {
        store(attacker, &format!(r#"{{"id":"x","pk":"p","a":"{}"}}"#, "\\u0001".repeat(300_000)))?;
        store(attacker, &format!(r#"{{"id":"x","pk":"p","a":"{}"}}"#, "\\ud83d\\ude00".repeat(150_000)))
    }),
    entry("item-long-numbers", "numbers of a million digits", |attacker| {
        store(attacker, &format!(r#"{{"id":"x","pk":"p","a":{}}}"#, "9".repeat(1_500_000)))?;
        store(
            attacker,
            &format!(r#"{{"id":"x","pk":"p","a":0.{}e-{}}}"#, "0".repeat(700_000), "9".repeat(700_000)),
        )
    }),
    entry("item-binary", "binary JSON that repeats itself", |attacker| {
        let body = binary_bomb();
        attacker.ask(&Request::upsert("dbs/attack/colls/bodies"), &body).map(drop)
    }),
    entry("item-replaced", "one item of 2 MB, replaced again and again", |attacker| {
        store(attacker, &format!(r#"{{"id":"same","pk":"p","a":"{}"}}"#, "s".repeat(2_000_000)))
    }),
    entry("batch-large-reads", "100 reads of an item of 2 MB in a batch", |attacker| {
        let operations = vec![json!({"operationType": "Read", "id": "large"}); 100];
        batch(attacker, &operations)
    })
    .lasting(3, 20),
    entry("batch-large-writes", "100 writes of 20 KB in a batch", |attacker| {
        let operation = |number: usize| {
            let body = json!({"id": format!("b{number}"), "pk": "p", "a": "b".repeat(20_000)});
            json!({"operationType": "Upsert", "resourceBody": body})
        };
        batch(attacker, &(0..100).map(operation).collect::<Vec<_>>())
    }),
    entry("batch-patches", "100 patches of ten steps of an item of 2 MB", |attacker| {
        let step = |number: usize| json!({"op": "set", "path": format!("/p{number}"), "value": number});
        let steps: Vec<Value> = (0..10).map(step).collect();
        let patch = json!({"operationType": "Patch", "id": "large", "resourceBody": {"operations": steps}});
        batch(attacker, &vec![patch; 100])
    }),
    entry("patch-deep", "patches that insert in front of 20,000 numbers", |attacker| {
        let step = json!({"op": "add", "path": "/numbers/0", "value": 1});
        let body = json!({"operations": vec![step; 10]}).to_string();
        let path = "dbs/attack/colls/bodies/docs/numbers".to_owned();
        let headers = vec![
            ("x-ms-documentdb-partitionkey", "[\"p\"]"),
            ("content-type", "application/json-patch+json"),
        ];
        let request = Request { method: "PATCH", link: path.clone(), path, kind: "docs", headers };
        attacker.ask(&request, body.as_bytes()).map(drop)
    }),
    entry("feed-large-pages", "feeds and change feeds of items of 2 MB", |attacker| {
        let feed = |extra: &[(&'static str, &'static str)]| Request {
            method: "GET",
            path: "dbs/attack/colls/bodies/docs".to_owned(),
            link: "dbs/attack/colls/bodies".to_owned(),
            kind: "docs",
            headers: [&[("x-ms-max-item-count", "-1")], extra].concat(),
        };
        attacker.ask(&feed(&[]), b"")?;
        attacker.ask(&feed(&[("a-im", "Incremental feed")]), b"").map(drop)
    }),
    entry("continuations", "continuations that nobody gave out", |attacker| {
        let token = match attacker.random.below(4) {
            0 => "[".repeat(60_000),
            1 => format!("{{\"a\":{}", "{\"b\":".repeat(5_000)),
            2 => format!("+RID:~{}#RT:1#TRC:99999999999#ISV:2", "A".repeat(10_000)),
            _ => (0..200).map(|_| char::from(b' ' + attacker.random.below(94) as u8)).collect(),
        };
        let request = Request::query("dbs/attack/colls/items");
        let body = json!({"query": "SELECT * FROM c ORDER BY c.n", "parameters": []}).to_string();
        let mut headers = request.headers.clone();
        headers.push(("x-ms-continuation", &token));
        let head = attacker.signer().head("POST", &request.path, &request.link, "docs", &headers, body.len());
        let mut wire = attacker.connect()?;
        wire.send((head + &body).as_bytes())?;
        let status = wire.answer()?;
        attacker.tally.count(status.to_string());
        Ok(())
    }),
];

const fn entry(name: &'static str, purpose: &'static str, strike: fn(&mut Attacker) -> Result<()>) -> Attack {
    Attack::beside(name, purpose, Beside::new(4, strike).prepared(prepare)).lasting(0, 15)
}

fn store(attacker: &mut Attacker, body: &str) -> Result<()> {
    attacker.ask(&Request::upsert("dbs/attack/colls/bodies"), body.as_bytes()).map(drop)
}

fn batch(attacker: &mut Attacker, operations: &[Value]) -> Result<()> {
    let request = Request {
        headers: vec![
            ("x-ms-documentdb-partitionkey", "[\"p\"]"),
            ("x-ms-cosmos-is-batch-request", "true"),
            ("x-ms-cosmos-batch-atomic", "true"),
        ],
        ..Request::upsert("dbs/attack/colls/bodies")
    };
    attacker.ask(&request, serde_json::to_string(operations)?.as_bytes()).map(drop)
}

/// An array of 200,000 references to one string of 4,000 letters.
fn binary_bomb() -> Vec<u8> {
    let mut body = vec![0x80, 0xe4, 0, 0, 0, 0];
    // A string with a length of two bytes, and where it lies counted from the beginning.
    let text_at = body.len() as u16;
    body.extend([0xc1, 0xa0, 0x0f]);
    body.extend([b'b'; 4000]);
    for _ in 0..200_000 {
        body.push(0xc4);
        body.extend(text_at.to_le_bytes());
    }
    let length = (body.len() - 6) as u32;
    body[2..6].copy_from_slice(&length.to_le_bytes());
    body
}

pub fn prepare(client: &mut Client) -> Result<()> {
    super::queries::prepare(client)?;
    container(client, r#"{"id":"bodies","partitionKey":{"paths":["/pk"],"kind":"Hash"}}"#)?;
    item(client, "bodies", &format!(r#"{{"id":"large","pk":"p","a":"{}"}}"#, "l".repeat(2_000_000)))?;
    item(client, "bodies", &format!(r#"{{"id":"numbers","pk":"p","numbers":[{}]}}"#, list(20_000, |n| n)))
}
