//! `serve --record`, `orrery advise` and `orrery budget check` against the real server.

use std::path::Path;
use std::process::{Command, Stdio};

use orrery_testkit::TestServer;
use serde_json::{Value, json};

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

#[track_caller]
fn run(server: &TestServer, arguments: &[&str], code: i32) -> String {
    let mut command = Command::new(binary());
    command
        .args(arguments)
        .args(["--endpoint", &format!("http://{}", server.address())])
        .stdin(Stdio::null());
    let output = command.env_remove("ORRERY_KEY").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}\n{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

#[test]
fn a_recording_leads_to_a_key_and_a_copy_proves_it() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("requests.jsonl");
    let record = record.to_str().unwrap();
    // Several physical partitions, so that a query without the key costs more than one with it.
    let server = TestServer::start(
        binary(),
        &["--ephemeral", "--partition-throughput-limit", "1000", "--record", record],
    )
    .unwrap();
    let lines: String = (0..2_000)
        .map(|n| format!("{}\n", json!({"id": format!("i{n}"), "status": n % 3, "customer": format!("c{}", n * 7919 % 200), "n": n})))
        .collect();
    let file = directory.path().join("items.jsonl");
    std::fs::write(&file, lines).unwrap();
    let import = [
        "import",
        file.to_str().unwrap(),
        "--db",
        "shop",
        "--container",
        "orders",
        "--partition-key",
        "/status",
        "--throughput",
        "5000",
    ];
    run(&server, &import, 0);
    for n in 0..20 {
        run(
            &server,
            &["query", "shop/orders", "SELECT * FROM c WHERE c.customer = @c", "--param", &format!("c=c{n}")],
            0,
        );
    }
    let text = std::fs::read_to_string(record).unwrap();
    let queries = text.lines().filter(|line| line.contains("\"query_items\"")).count();
    assert!(queries >= 20, "{queries}");
    let advice: Value = serde_json::from_str(&run(
        &server,
        &["advise", "shop/orders", "--requests", record, "--prove", "--json"],
        0,
    ))
    .unwrap();
    assert_eq!(advice["recommended"]["partitionKey"], "/customer", "{}", advice["reasons"]);
    let (before, after) =
        (advice["proof"]["beforeRu"].as_f64().unwrap(), advice["proof"]["afterRu"].as_f64().unwrap());
    assert!(after < before, "{before} RU before, {after} RU after");
    let text = run(&server, &["advise", "shop/orders", "--requests", record], 0);
    assert!(
        text.contains("Recommended: /customer")
            && text.contains("orrery import --from-container shop/orders"),
        "{text}"
    );
    // The printed command does what it says.
    run(
        &server,
        &[
            "import",
            "--from-container",
            "shop/orders",
            "--db",
            "shop",
            "--container",
            "orders-2",
            "--partition-key",
            "/customer",
            "--state",
            directory.path().join("s").to_str().unwrap(),
        ],
        0,
    );
    assert_eq!(run(&server, &["query", "shop/orders-2", "SELECT VALUE COUNT(1) FROM c"], 0), "2000\n");

    let budgets = directory.path().join("budgets.toml");
    let write = |most: f64| {
        let budget = format!(
            "[[budgets]]\nname = \"one customer\"\ncontainer = \"shop/orders-2\"\nquery = \"SELECT * FROM c WHERE c.customer = @c\"\nparameters = {{ c = \"c7\" }}\npartitionKey = \"c7\"\nmaxRu = {most:.1}\nmaxPages = 1\n"
        );
        std::fs::write(&budgets, budget).unwrap();
    };
    write(50.0);
    assert!(run(&server, &["budget", "check", budgets.to_str().unwrap()], 0).contains("one customer"));
    write(0.5);
    run(&server, &["budget", "check", budgets.to_str().unwrap()], 5);
}
