//! The examples of `examples/`, run as a user would, against a server, with the SDKs that the suites have installed.
//! Each must print exactly what the `expected.txt` of its folder says.

use std::path::Path;

use anyhow::{Result, bail};

use crate::Context;
use crate::process::Task;
use crate::sdk::without_proxies;
use crate::server::{KEY, Server};

const SECONDS_MAX: u64 = 120;
const BUILD_SECONDS_MAX: u64 = 900;

/// One example, in several languages.
struct Example {
    directory: &'static str,
    /// What its program is called, without the ending of the language.
    program: &'static str,
    /// The class of the program in Java.
    class: &'static str,
}

const READINGS: Example =
    Example { directory: "examples/device-readings", program: "readings", class: "Readings" };
const PEOPLE: Example = Example { directory: "examples/people-table", program: "people", class: "People" };
const PEOPLE_GRAPH: Example =
    Example { directory: "examples/people-graph", program: "people", class: "People" };

const PATTERNS: [&str; 4] = ["time_series", "event_log", "multitenancy", "synthetic_keys"];

/// Runs the example of a suite, if there is one. `work` is where the suite has installed its SDK.
pub fn run(context: &Context, suite: &str, work: &Path, [server, merging]: [&Server; 2]) -> Result<bool> {
    let (example, language) = match suite.split_once('/') {
        Some(("tables", language)) => (&PEOPLE, language),
        Some(("gremlin", language)) => (&PEOPLE_GRAPH, language),
        _ => (&READINGS, suite),
    };
    let sources = context.root.join(example.directory);
    let Some(task) = program(context, example, language, work)? else { return Ok(false) };
    // The Go SDK of the NoSQL API has no query engine.
    let nosql = if suite == "go" { merging } else { server };
    let tables = server.endpoint("http").replace("127.0.0.1", "localhost");
    let connection = format!(
        "DefaultEndpointsProtocol=http;AccountName=orrery;AccountKey={KEY};TableEndpoint={}/orrery;",
        tables.trim_end_matches('/')
    );
    let task = task
        .env("COSMOS_ENDPOINT", nosql.endpoint("http"))
        .env("COSMOS_KEY", KEY)
        .env("TABLES_COSMOS_CONNECTION_STRING", connection)
        .env("GREMLIN_ENDPOINT", server.endpoint("http").replacen("http", "ws", 1))
        .limit_seconds(SECONDS_MAX);
    let log = without_proxies(task).run_logged(&format!("example-{}", suite.replace('/', "-")))?;
    let expected = std::fs::read_to_string(sources.join("expected.txt"))?;
    if log.trim() != expected.trim() {
        bail!("the {suite} example printed\n{}\ninstead of\n{}", log.trim(), expected.trim());
    }
    if suite == "python" {
        run_patterns(context, work, server)?;
    }
    Ok(true)
}

/// The programs of `examples/patterns`, which print where items are and what requests cost.
fn run_patterns(context: &Context, work: &Path, server: &Server) -> Result<()> {
    let sources = context.root.join("examples/patterns");
    for name in PATTERNS {
        let task = Task::new(context, work.join("venv/bin/python"))
            .arg(sources.join("python").join(format!("{name}.py")))
            .env("COSMOS_ENDPOINT", server.endpoint("http"))
            .env("COSMOS_KEY", KEY)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .limit_seconds(SECONDS_MAX);
        let log = without_proxies(task).run_logged(&format!("pattern-{name}"))?;
        let expected = std::fs::read_to_string(sources.join("expected").join(format!("{name}.txt")))?;
        if log.trim() != expected.trim() {
            bail!("the pattern {name} printed\n{}\ninstead of\n{}", log.trim(), expected.trim());
        }
    }
    Ok(())
}

/// The program of a language, ready to run; `None` where there is none.
fn program(context: &Context, example: &Example, language: &str, work: &Path) -> Result<Option<Task>> {
    let sources = context.root.join(example.directory);
    if !sources.join(language).is_dir() {
        return Ok(None);
    }
    let name = example.program;
    Ok(Some(match language {
        "python" => Task::new(context, work.join("venv/bin/python"))
            .arg(sources.join("python").join(format!("{name}.py"))),
        "javascript" => {
            // Node looks for modules beside and above the program.
            let program = work.join(format!("{name}.js"));
            std::fs::copy(sources.join("javascript").join(format!("{name}.js")), &program)?;
            Task::new(context, "node").arg(program)
        }
        "java" => {
            let built = work.with_file_name("java-example");
            Task::new(context, "mvn")
                .args(&["--quiet", "--batch-mode", "compile", "--file"])
                .arg(sources.join("java/pom.xml"))
                .arg(format!("-DbuildDirectory={}", built.display()))
                .limit_seconds(BUILD_SECONDS_MAX)
                .run_logged("java-example-build")?;
            let libraries = std::fs::read_to_string(built.join("classpath"))?;
            let path = format!("{}:{}", built.join("classes").display(), libraries.trim());
            Task::new(context, "java").args(&["-cp", &path, example.class])
        }
        "go" => {
            let program = work.join(name);
            Task::new(context, "go")
                .args(&["build", "-o"])
                .arg(&program)
                .arg(".")
                .directory(sources.join("go"))
                .limit_seconds(BUILD_SECONDS_MAX)
                .run_logged("go-example-build")?;
            Task::new(context, program)
        }
        _ => return Ok(None),
    }))
}
