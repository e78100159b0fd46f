//! Runs the data-file scenarios of `tests/scenarios/nosql` through `Service::handle`, in process, on a memory store.
//!
//! The format of a scenario is described in `tests/scenarios/nosql/README.md`. Every file gets an account of its own;
//! its steps run in order and share variables.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use orrery_testkit::{contains, run_scenarios, substitute, text_of};
use serde_json::Value;
use support::{Client, Reply};

/// How long a step may be asked again whose answer comes about in the background.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn every_scenario_holds() {
    run_scenarios("nosql", run);
}

/// Runs one file; the error names the step.
fn run(file: &Path) -> Result<usize, String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    let scenario: Value = serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
    let client = Client::new(scenario.get("config").unwrap_or(&Value::Null));
    let mut variables = BTreeMap::new();
    let steps = scenario["steps"].as_array().ok_or_else(|| format!("{name}: no steps"))?;
    for (n, step) in steps.iter().enumerate() {
        let step = substitute(step, &variables);
        run_step(&client, &step, &mut variables).map_err(|why| {
            let title = step["name"].as_str().or(step["request"].as_str()).unwrap_or("");
            format!("{name}, step {} ({title}): {why}", n + 1)
        })?;
    }
    Ok(steps.len())
}

fn run_step(client: &Client, step: &Value, variables: &mut BTreeMap<String, String>) -> Result<(), String> {
    if let Some(ms) = step["advance_ms"].as_u64() {
        client.advance_ms(ms);
    }
    let Some(request) = step["request"].as_str() else {
        return Ok(());
    };
    let (method, path) = request.split_once(' ').ok_or("the request is 'VERB /path'")?;
    let headers: Vec<(String, String)> = step["headers"]
        .as_object()
        .map(|map| map.iter().map(|(name, value)| (name.clone(), text_of(value))).collect())
        .unwrap_or_default();
    let body = match (&step["body"], step["text"].as_str()) {
        (_, Some(text)) => text.as_bytes().to_vec(),
        (Value::Null, None) => Vec::new(),
        (body, None) => serde_json::to_vec(body).map_err(|error| error.to_string())?,
    };
    let key = step["key"].as_str().unwrap_or("primary");
    let deadline = Instant::now() + PATIENCE;
    let reply = loop {
        let reply = client.send(method, path, &headers, body.clone(), key);
        match check(&step["expect"], &reply) {
            Ok(()) => break reply,
            Err(_) if step["patient"] == true && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(why) => return Err(format!("{why}\n  answer: {reply}")),
        }
    };
    if let Some(saves) = step["save"].as_object() {
        for (name, from) in saves {
            let from = from.as_str().unwrap_or_default();
            let value = match from.split_once(':') {
                Some(("header", header)) => reply.header(header).map(str::to_owned),
                Some(("body", pointer)) => reply.json().pointer(pointer).map(text_of),
                _ => None,
            };
            variables.insert(
                name.clone(),
                value.ok_or_else(|| format!("nothing to save from {from}\n  answer: {reply}"))?,
            );
        }
    }
    Ok(())
}

fn check(expect: &Value, reply: &Reply) -> Result<(), String> {
    if let Some(status) = expect["status"].as_u64()
        && status != u64::from(reply.status)
    {
        return Err(format!("wanted status {status}, got {}", reply.status));
    }
    let substatus = expect["substatus"].as_u64().unwrap_or(0);
    let got = reply.header("x-ms-substatus").and_then(|text| text.parse().ok()).unwrap_or(0);
    if substatus != got {
        return Err(format!("wanted substatus {substatus}, got {got}"));
    }
    for (name, want) in expect["headers"].as_object().into_iter().flatten() {
        let got = reply.header(name);
        match (want, got) {
            (Value::Null, None) => {}
            (Value::Null, Some(value)) => return Err(format!("header {name} was not expected, got {value}")),
            (_, None) => return Err(format!("header {name} is missing")),
            (want, Some(got)) if text_of(want) != "*" && text_of(want) != got => {
                return Err(format!("header {name}: wanted {want}, got {got}"));
            }
            _ => {}
        }
    }
    if let Some(part) = expect["message"].as_str() {
        let message = reply.json()["message"].as_str().unwrap_or_default().to_owned();
        if !message.contains(part) {
            return Err(format!("the message does not contain {part:?}"));
        }
    }
    if let Some(text) = expect["text"].as_str()
        && text != reply.text()
    {
        return Err(format!("wanted the body {text:?}"));
    }
    match expect.get("body") {
        None => Ok(()),
        Some(want) => contains(want, &reply.json(), "$"),
    }
}
