//! Runs the data-file scenarios of `tests/scenarios/table` in process, on a memory store, over the Table and the
//! NoSQL API.
//!
//! The format of a scenario is described in `tests/scenarios/table/README.md`.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use orrery_testkit::{contains, run_scenarios, substitute, text_of};
use serde_json::Value;
use support::{Client, Reply, Signer};

/// How long a step may be asked again whose answer comes about in the background.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn every_scenario_holds() {
    run_scenarios("table", run);
}

/// Runs one file; the error names the step.
fn run(file: &Path) -> Result<(), String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    let scenario: Value = serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
    let client = Client::new(&scenario["config"]);
    let mut variables = BTreeMap::new();
    for (n, step) in scenario["steps"].as_array().ok_or("no steps")?.iter().enumerate() {
        let step = substitute(step, &variables);
        run_step(&client, &step, &mut variables).map_err(|why| {
            let title = step["name"].as_str().or(step["request"].as_str()).unwrap_or("");
            format!("{name}, step {} ({title}): {why}", n + 1)
        })?;
    }
    Ok(())
}

fn run_step(client: &Client, step: &Value, variables: &mut BTreeMap<String, String>) -> Result<(), String> {
    if let Some(ms) = step["advance_ms"].as_u64() {
        client.advance_ms(ms);
    }
    let Some(request) = step["request"].as_str() else { return Ok(()) };
    let (method, path) = request.split_once(' ').ok_or("the request is 'VERB /path'")?;
    let path = path.replace(' ', "%20").replace('"', "%22");
    let mut headers: Vec<(String, String)> = step["headers"]
        .as_object()
        .map(|map| map.iter().map(|(name, value)| (name.clone(), text_of(value))).collect())
        .unwrap_or_default();
    let body = match (&step["body"], &step["text"], &step["batch"]) {
        (_, Value::String(text), _) => text.as_bytes().to_vec(),
        (_, _, Value::Array(operations)) => {
            headers.push(("content-type".into(), "multipart/mixed; boundary=batch_1".into()));
            batch(operations)
        }
        (Value::Null, ..) => Vec::new(),
        (body, ..) => serde_json::to_vec(body).map_err(|error| error.to_string())?,
    };
    let signer = match (step["sas"].as_str(), step["key"].as_str().unwrap_or("primary")) {
        (Some(sas), _) => Signer::Sas(sas),
        (None, "lite") => Signer::Lite,
        (None, key) => Signer::Key(key),
    };
    let host = if step["dialect"] == "storage" { "127.0.0.1:8902" } else { "localhost:8902" };
    let deadline = Instant::now() + PATIENCE;
    let reply = loop {
        let reply = client.send(method, &path, &headers, body.clone(), host, signer);
        match check(&step["expect"], &reply) {
            Ok(()) => break reply,
            Err(_) if step["patient"] == true && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(why) => return Err(format!("{why}\n  answer: {reply}")),
        }
    };
    for (name, from) in step["save"].as_object().into_iter().flatten() {
        let from = from.as_str().unwrap_or_default();
        let value = match from.split_once(':') {
            Some(("header", header)) => reply.header(header).map(str::to_owned),
            Some(("body", pointer)) => reply.json().pointer(pointer).map(text_of),
            _ => None,
        };
        let value = value.ok_or_else(|| format!("nothing to save from {from}\n  answer: {reply}"))?;
        variables.insert(name.clone(), value);
    }
    Ok(())
}

/// A changeset; each operation is `[request, headers, body]`.
fn batch(operations: &[Value]) -> Vec<u8> {
    let mut text = String::from("--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n");
    for operation in operations {
        let request = operation[0].as_str().unwrap_or_default();
        text.push_str(
            "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n",
        );
        text.push_str(&format!("{request} HTTP/1.1\r\nContent-Type: application/json\r\n"));
        for (name, value) in operation[1].as_object().into_iter().flatten() {
            text.push_str(&format!("{name}: {}\r\n", text_of(value)));
        }
        let body = if operation[2].is_null() { String::new() } else { operation[2].to_string() };
        text.push_str(&format!("\r\n{body}\r\n"));
    }
    text.push_str("--changeset_1--\r\n--batch_1--\r\n");
    text.into_bytes()
}

fn check(expect: &Value, reply: &Reply) -> Result<(), String> {
    if let Some(status) = expect["status"].as_u64()
        && status != u64::from(reply.status)
    {
        return Err(format!("wanted status {status}, got {}", reply.status));
    }
    for (name, want) in expect["headers"].as_object().into_iter().flatten() {
        match (want, reply.header(name)) {
            (Value::Null, None) => {}
            (Value::Null, Some(value)) => return Err(format!("header {name} was not expected, got {value}")),
            (_, None) => return Err(format!("header {name} is missing")),
            (want, Some(got)) if text_of(want) != "*" && text_of(want) != got => {
                return Err(format!("header {name}: wanted {want}, got {got}"));
            }
            _ => {}
        }
    }
    if let Some(code) = expect["code"].as_str() {
        let got = reply.json().pointer("/odata.error/code").map(text_of).unwrap_or_default();
        if got != code {
            return Err(format!("wanted the code {code}, got {got}"));
        }
    }
    for part in expect["contains"].as_array().into_iter().flatten() {
        let part = part.as_str().unwrap_or_default();
        if !reply.text().contains(part) {
            return Err(format!("the body does not contain {part:?}"));
        }
    }
    // The row keys of a list, in their order.
    if let Some(keys) = expect["rows"].as_str() {
        let got: Vec<String> = reply.json()["value"]
            .as_array()
            .map(|rows| rows.iter().map(|row| text_of(&row["RowKey"])).collect())
            .unwrap_or_default();
        if got.join(" ") != keys {
            return Err(format!("wanted the rows {keys}, got {}", got.join(" ")));
        }
    }
    match expect.get("body") {
        None => Ok(()),
        Some(want) => contains(want, &reply.json(), "$"),
    }
}
