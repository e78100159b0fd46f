//! Throughput over the wire: 429 at a hot key's share, what `partitions` shows of it, and faults on purpose.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use orrery_testkit::{Client, EMULATOR_KEY, Reply, TestServer};

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

/// A server with `db/c`, four partitions of 100 RU/s each: so little that a busy machine serves it with ease.
fn server(arguments: &[&str]) -> TestServer {
    let mut all = vec!["--ephemeral", "--partition-throughput-limit", "100"];
    all.extend_from_slice(arguments);
    let server = TestServer::start(binary(), &all).unwrap();
    let mut client = Client::new(server.address());
    client.post("dbs", "", "dbs", &[], r#"{"id":"db"}"#).unwrap().expect_status(201).unwrap();
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    let throughput = [("x-ms-offer-throughput", "400")];
    client
        .post("dbs/db/colls", "dbs/db", "colls", &throughput, container)
        .unwrap()
        .expect_status(201)
        .unwrap();
    server
}

fn upsert(client: &mut Client, key: &str, id: u64) -> anyhow::Result<Reply> {
    let key_header = format!("[\"{key}\"]");
    let headers =
        [("x-ms-documentdb-partitionkey", key_header.as_str()), ("x-ms-documentdb-is-upsert", "true")];
    let body = format!(r#"{{"id":"{id}","pk":"{key}","n":{id}}}"#);
    client.post("dbs/db/colls/c/docs", "dbs/db/colls/c", "docs", &headers, &body)
}

fn charge(reply: &Reply) -> f64 {
    reply.header("x-ms-request-charge").and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

fn wait_of(reply: &Reply) -> u64 {
    reply.header("x-ms-retry-after-ms").and_then(|text| text.parse().ok()).expect("a time to wait")
}

/// RU/s that eight clients are served in six seconds, after one second that spends what was saved, and how often they
/// were refused. Each waits as it is told.
fn load(server: &TestServer, key: impl Fn(u64) -> String + Sync) -> (f64, u64) {
    let (served_milli, refused, next) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = Client::new(server.address());
                while began.elapsed() < Duration::from_secs(7) {
                    let n = next.fetch_add(1, Relaxed);
                    let reply = upsert(&mut client, &key(n), n % 20).unwrap();
                    match reply.status {
                        200 | 201 => {
                            if began.elapsed() > Duration::from_secs(1) {
                                served_milli.fetch_add((charge(&reply) * 1000.0) as u64, Relaxed);
                            }
                        }
                        429 => {
                            refused.fetch_add(1, Relaxed);
                            std::thread::sleep(Duration::from_millis(wait_of(&reply)));
                        }
                        status => panic!("{status}: {}", reply.text()),
                    }
                }
            });
        }
    });
    (served_milli.into_inner() as f64 / 6000.0, refused.into_inner())
}

#[test]
fn a_hot_key_is_refused_at_its_partitions_share_as_the_service_does() {
    let server = server(&["--throttling", "on"]);
    let (served, refused) = load(&server, |_| "hot".into());
    assert!((95.0..=105.0).contains(&served), "{served} RU/s of 100");
    assert!(refused > 5, "{refused}");

    let mut client = Client::new(server.address());
    let throttled = (0..10_000)
        .map(|n| upsert(&mut client, "hot", n % 20).unwrap())
        .find(|reply| reply.status == 429)
        .expect("a budget ends");
    assert_eq!(throttled.header("x-ms-substatus"), Some("3200"));
    assert_eq!(throttled.header("x-ms-request-charge"), Some("0.38"));
    assert!((1..=1_000).contains(&wait_of(&throttled)));
    assert_eq!(throttled.header("x-ms-session-token"), None);
    let body = throttled.json().unwrap();
    assert_eq!(body["code"], "TooManyRequests");
    assert!(
        body["message"]
            .as_str()
            .unwrap()
            .starts_with("Message: {\"Errors\":[\"Request rate is large. More Request Units may be needed")
    );

    let output = Command::new(binary())
        .args([
            "partitions",
            "--db",
            "db",
            "--container",
            "c",
            "--endpoint",
            &format!("http://{}", server.address()),
        ])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("db/c") && text.contains(r#"hot      ["hot"]"#) && text.contains("100 %"),
        "{text}"
    );
    // Names of databases are shown to those who have a key.
    let asked =
        format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {EMULATOR_KEY}\r\n\r\n");
    let metrics = client.exchange(asked.as_bytes()).unwrap().text();
    let refused = |line: &&str| line.starts_with("orrery_partition_throttled_total{database=\"db\"");
    assert!(metrics.lines().filter(refused).any(|line| !line.ends_with(" 0")), "{metrics}");
}

#[test]
fn an_even_workload_gets_the_whole_throughput() {
    let server = server(&["--throttling", "on"]);
    let (served, _) = load(&server, |n| format!("key-{}", n % 400));
    assert!((380.0..=420.0).contains(&served), "{served} RU/s of 400");
}

#[test]
fn without_throttling_nobody_is_refused() {
    let server = server(&[]);
    let mut client = Client::new(server.address());
    for n in 0..200 {
        assert!(upsert(&mut client, "hot", n % 20).unwrap().status < 300);
    }
}

#[test]
fn faults_happen_on_purpose_and_only_then() {
    let server = server(&[]);
    let endpoint = format!("http://{}", server.address());
    let rules = server.data_dir().with_extension("toml");
    std::fs::write(
        &rules,
        r#"
            seed = 3
            [[rules]]
            name = "busy"
            operations = ["upsert_item"]
            partitionKey = ["busy"]
            count = 2
            answer = 429
            retryAfterMs = 7
            [[rules]]
            name = "slow"
            operations = ["writes"]
            partitionKey = ["slow"]
            delayMs = 300
            [[rules]]
            name = "cut"
            partitionKey = ["cut"]
            operations = ["writes"]
            count = 1
            drop = "answer"
        "#,
    )
    .unwrap();
    let orrery = |arguments: &[&str]| {
        let output = Command::new(binary())
            .arg("faults")
            .args(arguments)
            .args(["--endpoint", &endpoint])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    };
    orrery(&["set", rules.to_str().unwrap()]);
    let mut client = Client::new(server.address());
    let busy: Vec<u16> = (0..3).map(|n| upsert(&mut client, "busy", n).unwrap().status).collect();
    assert_eq!(busy, [429, 429, 201]);
    let began = Instant::now();
    assert_eq!(upsert(&mut client, "slow", 1).unwrap().status, 201);
    assert!(began.elapsed() >= Duration::from_millis(300));
    upsert(&mut client, "cut", 1).expect_err("the connection is dropped");
    let mut client = Client::new(server.address());
    assert_eq!(
        upsert(&mut client, "cut", 1).unwrap().status,
        200,
        "the work was done, only the answer was lost"
    );
    assert_eq!(upsert(&mut client, "other", 1).unwrap().status, 201);

    let listed = orrery(&["list"]);
    assert!(listed.contains("busy") && listed.contains("429") && listed.contains("300 ms late"), "{listed}");
    let metrics = client.exchange(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap().text();
    for line in
        [r#"orrery_faults_injected_total{fault="429"} 2"#, r#"orrery_faults_injected_total{fault="drop"} 1"#]
    {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    assert!(server.log().contains(r#""fault":"cut""#), "{}", server.log());
    orrery(&["clear"]);
    assert_eq!(orrery(&["list"]), "no fault rules\n");
    assert_eq!(upsert(&mut client, "busy", 9).unwrap().status, 201);
    std::fs::write(&rules, "rules = [{ answer = 418 }]").unwrap();
    let refused = Command::new(binary())
        .args(["faults", "set"])
        .arg(&rules)
        .args(["--endpoint", &endpoint])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("rule 0: `answer` is 429, 449, 410 or 503"));
}
