//! What the Gremlin API says at its limits, on the wire: frame codes, `x-ms-status-code`, when to come back.
//!
//! The frames are those of a WebSocket; a script that comes over HTTP is answered with one of them.

use std::path::Path;

use orrery_testkit::{Client, TestServer, graph_request};
use serde_json::{Value, json};

const GRAPH: &str = "dbs/graphs/colls/things";

struct Graph {
    server: TestServer,
    client: Client,
}

impl Graph {
    fn start(arguments: &[&str]) -> Graph {
        let server = TestServer::start(
            Path::new(env!("CARGO_BIN_EXE_orrery")),
            &[&["--ephemeral"], arguments].concat(),
        )
        .unwrap();
        let mut client = Client::new(server.address());
        client.post("dbs", "", "dbs", &[], r#"{"id":"graphs"}"#).unwrap().expect_status(201).unwrap();
        let definition = r#"{"id":"things","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
        let made = client.post("dbs/graphs/colls", "dbs/graphs", "colls", &[], definition).unwrap();
        made.expect_status(201).unwrap();
        let client = Client::new(server.gremlin_address().expect("a port for graphs"));
        Graph { server, client }
    }

    /// The frame that answers a request.
    fn ask(&mut self, request: Value) -> Value {
        self.ask_of(GRAPH, request)
    }

    fn ask_of(&mut self, graph: &str, request: Value) -> Value {
        graph_request(&mut self.client, graph, &request).unwrap().json().unwrap()
    }

    fn run(&mut self, script: &str) -> Value {
        self.ask(json!({ "gremlin": script }))
    }

    /// The frame's code, the status inside, and the message.
    fn refused(&mut self, request: Value) -> (u64, u64, String) {
        let answer = self.ask(request);
        let status = &answer["status"];
        let message = status["message"].as_str().unwrap_or_default().to_owned();
        let code = status["code"].as_u64().expect("a code");
        (code, status["attributes"]["x-ms-status-code"].as_u64().expect("a status"), message)
    }
}

#[test]
fn a_throttled_request_is_a_500_with_a_429_and_the_time_to_come_back() {
    let mut graph = Graph::start(&["--throttling", "on"]);
    // One write of a megabyte costs what the container has for many seconds.
    let large = "x".repeat(1_000_000);
    let script = "g.addV('thing').property('id','a').property('pk','p').property('text', text)";
    let written = graph.ask(json!({ "gremlin": script, "bindings": { "text": large } }));
    assert_eq!(written["status"]["code"], 200, "{written}");
    let refused = graph.run("g.V(['p','a']).count()");
    let status = &refused["status"];
    assert_eq!(
        (&status["code"], &status["attributes"]["x-ms-status-code"]),
        (&json!(500), &json!(429)),
        "{refused}"
    );
    assert_eq!(status["attributes"]["x-ms-substatus-code"], 3200);
    let after = status["attributes"]["x-ms-retry-after-ms"].as_str().expect("a span of time");
    assert!(after.starts_with("00:00:") && after.len() == "00:00:00.0000000".len(), "{after}");
    let message = status["message"].as_str().expect("a message");
    assert!(message.contains("RequestRateTooLargeException"), "{message}");
    assert!(status["attributes"]["x-ms-total-request-charge"].is_number());
}

#[test]
fn limits_of_a_traversal_are_documented_errors() {
    let mut graph = Graph::start(&["--gremlin-memory", "16MB"]);
    let (code, status, message) =
        graph.refused(json!({"gremlin": "g.inject(1).repeat(identity()).times(10001)"}));
    assert_eq!((code, status), (500, 429), "{message}");
    assert!(message.contains("10000 times"), "{message}");
    assert_eq!(graph.run("g.inject(1).repeat(identity()).times(10000)")["status"]["code"], 200);

    let steps = format!("g.inject(1){}", ".identity()".repeat(400));
    let (code, status, message) = graph.refused(json!({ "gremlin": steps }));
    assert_eq!((code, status), (500, 429), "{message}");
    assert!(message.contains("400 operators"), "{message}");

    let doubling = "g.inject(1).repeat(union(identity(),identity())).times(60).path()";
    let (code, status, message) = graph.refused(json!({ "gremlin": doubling }));
    assert_eq!((code, status), (500, 1003), "{message}");
    assert!(message.contains("Query exceeded memory limit. Bytes Consumed:"), "{message}");
}

#[test]
fn requests_that_are_too_large_are_refused_before_they_run() {
    let mut graph = Graph::start(&[]);
    let long = format!("g.inject('{}')", "x".repeat(64 * 1024));
    let (code, status, message) = graph.refused(json!({ "gremlin": long }));
    assert_eq!((code, status), (498, 1004), "{message}");
    assert!(message.contains("64 KB"), "{message}");

    let bindings: serde_json::Map<String, Value> = (0..1_001).map(|n| (format!("b{n}"), json!(n))).collect();
    let (code, status, message) = graph.refused(json!({ "gremlin": "g.inject(b1)", "bindings": bindings }));
    assert_eq!((code, status), (499, 1004), "{message}");

    let script = "g.addV('thing').property('id','a').property('pk','p').property('text', text)";
    let large = json!({ "gremlin": script, "bindings": { "text": "x".repeat(2_200_000) } });
    let (code, status, message) = graph.refused(large);
    assert_eq!((code, status), (500, 413), "{message}");
    assert_eq!(graph.run("g.V().count()")["result"]["data"], json!([0]));
}

#[test]
fn a_traversal_beyond_its_time_says_so() {
    let mut graph = Graph::start(&[]);
    let endless = "g.inject(1).repeat(union(identity(),identity())).times(60).path()";
    let (code, status, message) = graph.refused(json!({ "gremlin": endless, "evaluationTimeout": 1 }));
    assert_eq!((code, status), (598, 1009), "{message}");
    assert!(message.contains("GraphTimeoutException"), "{message}");
}

#[test]
fn what_the_store_refuses_has_the_services_codes() {
    let mut graph = Graph::start(&[]);
    let add = "g.addV('thing').property('id','a').property('pk','p')";
    assert_eq!(graph.run(add)["status"]["code"], 200);
    let (code, status, message) = graph.refused(json!({ "gremlin": add }));
    assert_eq!((code, status), (500, 409), "{message}");
    assert!(message.contains("Conflicting request to resource has been attempted."), "{message}");

    let (code, status, message) = graph.refused(json!({ "gremlin": "g.addV('thing').property('id','b')" }));
    assert_eq!((code, status), (500, 1000), "{message}");
    assert!(
        message.contains("Cannot add a vertex where the partition key property has value 'null'."),
        "{message}"
    );

    let (code, status, message) = graph.refused(json!({ "gremlin": "g.V().nothing()" }));
    assert_eq!((code, status), (597, 1000), "{message}");
    assert!(message.contains("line 1"), "{message}");

    let missing = graph.ask_of("dbs/graphs/colls/missing", json!({ "gremlin": "g.V()" }));
    assert_eq!(missing["status"]["attributes"]["x-ms-status-code"], 404, "{missing}");
    assert!(graph.server.process_id().is_some());
}
