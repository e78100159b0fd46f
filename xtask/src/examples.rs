//! The examples of `examples/device-readings`, run as a user would, against a server, with the SDKs that the suites have
//! installed. Each must print exactly what `expected.txt` says.

use std::path::Path;

use anyhow::{Result, bail};

use crate::Context;
use crate::process::Task;
use crate::server::{KEY, Server};

const DIRECTORY: &str = "examples/device-readings";
const SECONDS_MAX: u64 = 120;
const BUILD_SECONDS_MAX: u64 = 900;

/// Runs the example of a language, if there is one. `work` is where the language's suite has installed its SDK.
pub fn run(context: &Context, language: &str, work: &Path, [server, merging]: [&Server; 2]) -> Result<bool> {
    let sources = context.root.join(DIRECTORY);
    let mut endpoint = server.endpoint("http");
    let task = match language {
        "python" => Task::new(context, work.join("venv/bin/python")).arg(sources.join("python/readings.py")),
        "javascript" => {
            // Node looks for modules beside and above the program.
            let program = work.join("readings.js");
            std::fs::copy(sources.join("javascript/readings.js"), &program)?;
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
            Task::new(context, "java").args(&["-cp", &path, "Readings"])
        }
        "go" => {
            let program = work.join("readings");
            Task::new(context, "go")
                .args(&["build", "-o"])
                .arg(&program)
                .arg(".")
                .directory(sources.join("go"))
                .limit_seconds(BUILD_SECONDS_MAX)
                .run_logged("go-example-build")?;
            // This SDK has no query engine.
            endpoint = merging.endpoint("http");
            Task::new(context, program)
        }
        _ => return Ok(false),
    };
    let log = task
        .env("COSMOS_ENDPOINT", endpoint)
        .env("COSMOS_KEY", KEY)
        .limit_seconds(SECONDS_MAX)
        .run_logged(&format!("example-{language}"))?;
    let expected = std::fs::read_to_string(sources.join("expected.txt"))?;
    if log.trim() != expected.trim() {
        bail!("the {language} example printed\n{}\ninstead of\n{}", log.trim(), expected.trim());
    }
    Ok(true)
}
