//! Queries that want more than there is, sent to the real binary: each gets a clear refusal, other clients are served
//! meanwhile, and the process stays within its limit.

use std::path::Path;
use std::time::{Duration, Instant};

use orrery_testkit::{Client, Reply, TestServer};

const MEMORY_LIMIT_BYTES: u64 = 500_000_000;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);

/// A server with `db/c`: 200 items with arrays of 100 numbers, and one of a megabyte.
fn server() -> TestServer {
    let program = Path::new(env!("CARGO_BIN_EXE_orrery"));
    let arguments =
        ["--ephemeral", "--memory-limit", "500MB", "--cache-size", "30MB", "--request-timeout", "4s"];
    let server = TestServer::start(program, &arguments).unwrap();
    let mut client = Client::new(server.address());
    client.post("dbs", "", "dbs", &[], r#"{"id":"db"}"#).unwrap().expect_status(201).unwrap();
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
        "indexingPolicy":{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}}"#;
    client.post("dbs/db/colls", "dbs/db", "colls", &[], container).unwrap().expect_status(201).unwrap();
    let numbers: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    for id in 0..200 {
        let text = if id == 0 { "x".repeat(1_000_000) } else { "y".repeat(100) };
        let item =
            format!(r#"{{"id":"{id}","pk":"a","n":{id},"text":"{text}","arr":[{}]}}"#, numbers.join(","));
        let key = [("x-ms-documentdb-partitionkey", r#"["a"]"#)];
        let created = client.post("dbs/db/colls/c/docs", "dbs/db/colls/c", "docs", &key, &item).unwrap();
        created.expect_status(201).unwrap();
    }
    server
}

fn query(client: &mut Client, text: &str) -> Reply {
    let headers = [
        ("x-ms-documentdb-isquery", "true"),
        ("content-type", "application/query+json"),
        ("x-ms-documentdb-partitionkey", r#"["a"]"#),
    ];
    let body = serde_json::json!({ "query": text, "parameters": [] }).to_string();
    client.post("dbs/db/colls/c/docs", "dbs/db/colls/c", "docs", &headers, &body).unwrap()
}

fn read(client: &mut Client) -> Reply {
    let key = [("x-ms-documentdb-partitionkey", r#"["a"]"#)];
    client.get("dbs/db/colls/c/docs/1", "dbs/db/colls/c/docs/1", "docs", &key).unwrap()
}

/// The most memory that the process has had.
fn peak_bytes(server: &TestServer) -> u64 {
    let status = format!("/proc/{}/status", server.process_id().expect("it runs"));
    let status = std::fs::read_to_string(status).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn columns() -> String {
    let columns: Vec<String> = (0..2_000).map(|at| format!("c AS c{at}")).collect();
    format!("SELECT {} FROM c", columns.join(", "))
}

#[test]
fn a_query_that_wants_too_much_is_refused_and_the_server_lives() {
    let server = server();
    let mut client = Client::new(server.address()).with_timeout(Duration::from_secs(60));
    let three = "a IN c.arr JOIN b IN c.arr JOIN d IN c.arr";
    let growing = format!("CONCAT(REPLICATE('x', 9999), ToString(a+b+d)) FROM {three}");
    let bombs = [
        (format!("SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE {growing})) FROM c"), 413, "memory"),
        ("SELECT VALUE ARRAY(SELECT VALUE c FROM a IN c.arr) FROM c".into(), 413, "Response size too large"),
        (columns(), 413, "Response size too large"),
        (format!("SELECT c.text, a, b FROM c JOIN {three} ORDER BY c.n"), 413, "memory"),
        (
            format!("SELECT VALUE MAKELIST({}) FROM c JOIN {three}", "CONCAT(c.text, ToString(a))"),
            413,
            "memory",
        ),
    ];
    for (text, status, says) in &bombs {
        let reply = query(&mut client, text);
        assert_eq!(reply.status, *status, "{} for {}", reply.text(), &text[..text.len().min(80)]);
        assert!(reply.text().contains(says), "{}", reply.text());
        read(&mut client).expect_status(200).unwrap();
    }
    // Many at once, while somebody else reads.
    let began = Instant::now();
    std::thread::scope(|scope| {
        for at in 0..12 {
            let (server, bombs) = (&server, &bombs);
            scope.spawn(move || {
                let mut client = Client::new(server.address()).with_timeout(Duration::from_secs(120));
                let reply = query(&mut client, &bombs[at % bombs.len()].0);
                assert!([408, 413, 503].contains(&reply.status), "{} {}", reply.status, reply.text());
                assert_eq!(reply.status == 503, reply.header("x-ms-retry-after-ms").is_some());
            });
        }
        for _ in 0..20 {
            let asked = Instant::now();
            assert_eq!(read(&mut client).status, 200);
            assert!(asked.elapsed() < Duration::from_secs(10), "a read took {:?}", asked.elapsed());
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    println!("twelve bombs took {:?}, peak {} MB", began.elapsed(), peak_bytes(&server) / 1_000_000);
    assert!(peak_bytes(&server) < MEMORY_LIMIT_BYTES, "{} bytes", peak_bytes(&server));
    let count = query(&mut client, "SELECT VALUE COUNT(1) FROM c").expect_status(200).unwrap();
    assert!(count.text().contains("[200]"), "{}", count.text());
}

#[test]
fn what_must_see_everything_first_ends_with_the_time_of_its_request() {
    let server = server();
    let mut client = Client::new(server.address()).with_timeout(Duration::from_secs(60));
    let three = "a IN c.arr JOIN b IN c.arr JOIN d IN c.arr";
    let slow = [
        format!("SELECT VALUE COUNT(1) FROM c JOIN {three}"),
        format!("SELECT a, COUNT(1) AS n FROM c JOIN {three} GROUP BY a"),
        format!("SELECT TOP 1 VALUE a FROM c JOIN {three} WHERE d > 1000 ORDER BY c.n"),
    ];
    for text in &slow {
        let began = Instant::now();
        let reply = query(&mut client, text);
        assert_eq!(reply.status, 408, "{text}: {}", reply.text());
        assert!(reply.text().contains("The request took longer than it may."), "{}", reply.text());
        assert!(began.elapsed() < 3 * REQUEST_TIMEOUT, "{text} took {:?}", began.elapsed());
    }
    // What streams hands out what it has in time.
    let began = Instant::now();
    let page =
        query(&mut client, &format!("SELECT VALUE a FROM c JOIN {three} WHERE a = 0 AND b = 0 AND d = 0"));
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(began.elapsed() < 3 * REQUEST_TIMEOUT, "{:?}", began.elapsed());
}
