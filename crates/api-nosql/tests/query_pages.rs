//! Pages of queries as clients carry them: whatever their size, through restarts, with damaged continuations, and
//! when the client has gone.

mod support;

use std::time::{Duration, Instant};

use orrery_api::Connection;
use serde_json::{Value, json};
use support::{Client, Reply};

const ITEMS: usize = 240;

/// A container of three partitions, and its items.
fn filled() -> Client {
    let client = Client::new(&json!({
        "partition_throughput_limit": 10_000, "cross_partition_queries": "server",
    }));
    let send = |path: &str, headers: &[(&str, &str)], body: Value| {
        let headers: Vec<(String, String)> =
            headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let reply = client.send("POST", path, &headers, body.to_string().into_bytes(), "primary");
        assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    };
    send("/dbs", &[], json!({"id": "d"}));
    send(
        "/dbs/d/colls",
        &[("x-ms-offer-throughput", "30000")],
        json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}),
    );
    for at in 0..ITEMS {
        let pk = format!("p{}", at % 24);
        let mut item = json!({"id": format!("i{at}"), "pk": pk, "g": at * 7 % 90, "n": at});
        if at % 3 != 0 {
            item["maybe"] = json!(at % 11);
        }
        item["list"] = json!((0..40).collect::<Vec<_>>());
        let key = json!([pk]).to_string();
        send("/dbs/d/colls/c/docs", &[("x-ms-documentdb-partitionkey", &key)], item);
    }
    client
}

fn page(client: &Client, query: &str, rows: usize, scope: &[(&str, &str)], from: Option<&str>) -> Reply {
    client.send("POST", "/dbs/d/colls/c/docs", &headers(rows, scope, from), body(query), "primary")
}

fn headers(rows: usize, scope: &[(&str, &str)], from: Option<&str>) -> Vec<(String, String)> {
    let mut headers = vec![
        ("content-type".to_owned(), "application/query+json".to_owned()),
        ("x-ms-max-item-count".to_owned(), rows.to_string()),
        ("x-ms-documentdb-query-enablecrosspartition".to_owned(), "true".to_owned()),
    ];
    headers.extend(scope.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    headers.extend(from.map(|from| ("x-ms-continuation".to_owned(), from.to_owned())));
    headers
}

fn body(query: &str) -> Vec<u8> {
    json!({ "query": query }).to_string().into_bytes()
}

fn rows(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    let body: Value = serde_json::from_slice(&reply.body).unwrap();
    body["Documents"].as_array().unwrap().clone()
}

fn continuation(reply: &Reply) -> Option<String> {
    reply.headers.get("x-ms-continuation").map(|value| value.to_str().unwrap().to_owned())
}

/// All rows and what the pages cost together. `restarts`: before every page.
fn all(
    client: &mut Client,
    query: &str,
    size: usize,
    scope: &[(&str, &str)],
    restarts: bool,
) -> (Vec<Value>, f64) {
    let (mut found, mut charge_ru) = (Vec::new(), 0.0);
    let mut from: Option<String> = None;
    loop {
        if restarts {
            client.restart();
        }
        let reply = page(client, query, size, scope, from.as_deref());
        found.extend(rows(&reply));
        charge_ru += reply.headers["x-ms-request-charge"].to_str().unwrap().parse::<f64>().unwrap();
        from = continuation(&reply);
        assert!(found.len() <= 10_000, "{query}: pages never end");
        if from.is_none() {
            return (found, charge_ru);
        }
    }
}

const QUERIES: &[&str] = &[
    "SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g",
    "SELECT c.g, SUM(c.n) AS s, MIN(c.maybe) AS m FROM c WHERE c.n > 5 GROUP BY c.g",
    "SELECT DISTINCT VALUE c.g FROM c",
    "SELECT DISTINCT c.g, c.maybe FROM c",
    "SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g DESC",
    "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.g FROM c)",
    "SELECT VALUE c.id FROM c ORDER BY c.maybe",
    "SELECT VALUE c.id FROM c ORDER BY c.maybe DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 11 LIMIT 30",
    "SELECT VALUE c.id FROM c WHERE c.n < 100",
    "SELECT TOP 37 c.id, t FROM c JOIN t IN c.list",
];

#[test]
fn page_sizes_and_restarts_change_no_row() {
    let mut client = filled();
    for scope in [
        &[][..],
        &[("x-ms-documentdb-partitionkeyrangeid", "1")],
        &[("x-ms-documentdb-partitionkey", "[\"p3\"]")],
    ] {
        for query in QUERIES {
            let (whole, _) = all(&mut client, query, 1_000, scope, false);
            assert!(!whole.is_empty() || !scope.is_empty(), "{query}");
            for (size, restarts) in [(7, false), (7, true), (64, true)] {
                let (found, _) = all(&mut client, query, size, scope, restarts);
                assert_eq!(found, whole, "{query} in pages of {size}, {scope:?}, restarts: {restarts}");
            }
        }
    }
}

#[test]
fn distinct_values_are_counted_over_the_scope_and_not_item_by_item() {
    let mut client = filled();
    for scope in [
        &[][..],
        &[("x-ms-documentdb-partitionkeyrangeid", "2")],
        &[("x-ms-documentdb-partitionkey", "[\"p3\"]")],
    ] {
        for (count, values) in [
            (
                "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.g FROM c)",
                "SELECT DISTINCT VALUE c.g FROM c",
            ),
            (
                "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.g, c.maybe FROM c WHERE c.n > 20)",
                "SELECT DISTINCT c.g, c.maybe FROM c WHERE c.n > 20",
            ),
        ] {
            let (values, _) = all(&mut client, values, 10, scope, false);
            let (count, _) = all(&mut client, count, 10, scope, false);
            assert_eq!(count, [json!(values.len())], "{scope:?}");
        }
    }
}

#[test]
fn later_pages_of_groups_cost_no_run_of_their_own() {
    let mut client = filled();
    for query in &QUERIES[..4] {
        let (_, kept) = all(&mut client, query, 5, &[], false);
        let (rows, again) = all(&mut client, query, 5, &[], true);
        let pages = rows.len().div_ceil(5) as f64;
        // 240 items and 18 pages or more: each run loads all items of three partitions.
        assert!(kept < again / 2.0, "{query}: {kept} RU instead of {again} for {pages} pages");
    }
}

#[test]
fn damaged_continuations_are_refused_or_mean_something() {
    let client = filled();
    let mut state = 0x1234_5678_9ABC_DEF1_u64;
    let mut random = move |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % end.max(1) as u64) as usize
    };
    let cases: usize = std::env::var("ORRERY_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(40);
    let mut tokens = Vec::new();
    for query in QUERIES {
        tokens.extend(continuation(&page(&client, query, 3, &[], None)));
    }
    assert!(tokens.len() >= 9);
    let mut refused = 0;
    for (at, token) in tokens.clone().iter().enumerate() {
        for case in 0..cases {
            let mut bytes = token.clone().into_bytes();
            for _ in 0..1 + random(3) {
                let place = random(bytes.len());
                match random(4) {
                    0 => bytes[place] = b"0aZ_-}\"{#~="[random(11)],
                    1 => drop(bytes.remove(place)),
                    2 => bytes.truncate(place.max(1)),
                    _ => bytes.insert(place, bytes[random(bytes.len())]),
                }
            }
            let damaged = match case % 8 {
                // A whole continuation of another query.
                0 => tokens[random(tokens.len())].clone(),
                _ => String::from_utf8_lossy(&bytes).into_owned(),
            };
            let query = QUERIES[at % QUERIES.len()];
            let reply = page(&client, query, 3, &[], Some(&damaged));
            assert!(matches!(reply.status, 200 | 400), "{} for {query} with {damaged}", reply.status);
            refused += usize::from(reply.status == 400);
        }
    }
    println!("{} continuations, {refused} refused", tokens.len() * cases);
    assert!(refused > tokens.len() * cases / 4);
}

#[test]
fn a_query_whose_client_has_gone_ends_soon() {
    let client = filled();
    // 64,000 rows for each of 240 items: minutes of work in this build.
    let query =
        "SELECT VALUE COUNT(1) FROM c JOIN a IN c.list JOIN b IN c.list JOIN d IN c.list WHERE a + b > d";
    let mut request =
        client.request("POST", "/dbs/d/colls/c/docs", &headers(10, &[], None), body(query), "primary");
    let left_after = Instant::now() + Duration::from_millis(100);
    let connection = request.extensions_mut().get_mut::<Connection>().expect("put there by the client");
    connection.client = orrery_api::Client::new(move || Instant::now() > left_after);
    let began = Instant::now();
    let response = client.answer(request);
    assert_eq!(response.status(), 408);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}
