//! The real binary: start, answer, stop, refuse; and what a start costs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use orrery_testkit::{Client, TestServer};

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

#[test]
fn what_was_written_is_there_after_a_stop_and_after_a_kill() {
    let mut server = TestServer::start(binary(), &[]).unwrap();
    let mut client = Client::new(server.address());
    client.post("dbs", "", "dbs", &[], r#"{"id":"one"}"#).unwrap().expect_status(201).unwrap();
    assert!(server.stop().unwrap().success());
    server.restart().unwrap();
    let mut client = Client::new(server.address());
    client.get("dbs/one", "dbs/one", "dbs", &[]).unwrap().expect_status(200).unwrap();
    client.post("dbs", "", "dbs", &[], r#"{"id":"two"}"#).unwrap().expect_status(201).unwrap();
    server.kill().unwrap();
    server.restart().unwrap();
    let mut client = Client::new(server.address());
    client.get("dbs/two", "dbs/two", "dbs", &[]).unwrap().expect_status(200).unwrap();
}

#[test]
fn an_ephemeral_server_writes_nothing_and_forgets() {
    let mut server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    let mut client = Client::new(server.address());
    client.post("dbs", "", "dbs", &[], r#"{"id":"one"}"#).unwrap().expect_status(201).unwrap();
    assert!(!server.data_dir().exists());
    assert!(server.stop().unwrap().success());
    server.restart().unwrap();
    Client::new(server.address()).get("dbs/one", "dbs/one", "dbs", &[]).unwrap().expect_status(404).unwrap();
}

#[test]
fn a_directory_in_use_is_refused_with_its_name() {
    let server = TestServer::start(binary(), &[]).unwrap();
    let output = Command::new(binary())
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(server.data_dir())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&server.data_dir().display().to_string()), "{text}");
}

#[test]
fn an_address_in_use_is_refused_with_advice() {
    let server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    let address = server.address().to_string();
    let output =
        Command::new(binary()).args(["serve", "--ephemeral", "--listen", &address]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&address) && text.contains("--listen"), "{text}");
}

#[test]
fn another_key_is_refused_and_the_log_line_says_so() {
    let mut server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    let mut stranger = Client::new(server.address()).with_key(&[7; 64]);
    stranger.get("dbs", "", "dbs", &[]).unwrap().expect_status(401).unwrap();
    server.stop().unwrap();
    let log = server.log();
    let line = log.lines().find(|line| line.contains("\"status\":401")).unwrap_or_else(|| panic!("{log}"));
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((line["method"].as_str(), line["path"].as_str()), (Some("GET"), Some("/dbs")));
    assert!(
        line["duration_us"].as_u64().is_some()
            && line["operation"].is_string()
            && line["activity"].is_string()
    );
}

#[test]
fn a_workload_measures_and_removes_what_it_made() {
    let server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    let tables = server.table_address().unwrap();
    for (api, endpoint) in [
        ("nosql", format!("http://{}", server.address())),
        ("table", format!("http://{tables}/orrery")),
        ("table", format!("http://{tables}")),
    ] {
        let arguments = [
            "--operations",
            "read,upsert,create,replace,patch,batch,feed,query,lookup,mix50",
            "--count",
            "40",
            "--items",
            "30",
            "--partitions",
            "5",
        ];
        let output = Command::new(binary())
            .args(["workload", "--api", api, "--endpoint", &endpoint, "--connections", "4", "--json"])
            .args(arguments)
            .env_remove("ORRERY_KEY")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        let phases = report["phases"].as_array().unwrap();
        assert_eq!(phases.len(), 11);
        for phase in phases {
            let wanted = if phase["operation"] == "load" { 30 } else { 40 };
            assert_eq!(
                (phase["operations"].as_u64(), phase["errors"].as_u64()),
                (Some(wanted), Some(0)),
                "{endpoint}: {phase}"
            );
        }
    }
    let mut client = Client::new(server.address());
    let reply = client.get("dbs", "", "dbs", &[]).unwrap().expect_status(200).unwrap();
    assert_eq!(reply.json().unwrap()["_count"], 1, "the database of tables");
    let link = "dbs/TablesDB";
    let reply = client.get("dbs/TablesDB/colls", link, "colls", &[]).unwrap().expect_status(200).unwrap();
    assert!(!reply.text().contains("orreryworkload"), "{}", reply.text());
}

#[test]
fn a_workload_over_tls_trusts_the_exported_certificate_only() {
    let server = TestServer::start(binary(), &[]).unwrap();
    let endpoint = format!("https://localhost:{}", server.address().port());
    let exported = server.data_dir().join("exported.pem");
    let cert = Command::new(binary())
        .args(["cert", "--data-dir"])
        .arg(server.data_dir())
        .arg("--out")
        .arg(&exported)
        .output()
        .unwrap();
    assert!(cert.status.success());
    let run = |further: &[&str]| {
        let arguments = [
            "workload",
            "--endpoint",
            &endpoint,
            "--operations",
            "read",
            "--count",
            "10",
            "--items",
            "5",
            "--json",
        ];
        Command::new(binary()).args(arguments).args(further).env_remove("ORRERY_KEY").output().unwrap()
    };
    let refused = run(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--ca"));
    for further in [&["--ca", exported.to_str().unwrap()][..], &["--insecure"]] {
        let output = run(further);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Figures, not a judgement: `cargo test --release -p orrery --test life start -- --nocapture` prints them for this
/// machine.
#[test]
fn start_and_idle_figures_are_printed() {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        let server = TestServer::start(binary(), &[]).unwrap();
        Client::new(server.address()).get("", "", "", &[]).unwrap().expect_status(200).unwrap();
        best = best.min(began.elapsed());
    }
    let server = TestServer::start(binary(), &[]).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let process = server.process_id().unwrap();
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let mut fields = stat.rsplit(')').next().unwrap_or("").split_ascii_whitespace().skip(11);
        fields.next().and_then(|t| t.parse::<u64>().ok()).unwrap_or(0)
            + fields.next().and_then(|t| t.parse::<u64>().ok()).unwrap_or(0)
    };
    let before = ticks();
    std::thread::sleep(Duration::from_secs(2));
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or("VmRSS: unknown");
    println!(
        "start: first answer {:.1} ms after spawning (best of 5); idle: {}, CPU {} ms in 2 s",
        best.as_secs_f64() * 1000.0,
        resident.split_ascii_whitespace().collect::<Vec<_>>().join(" "),
        (ticks() - before) * 10
    );
}
