//! `orrery script run`: a stored procedure from a file, run once against an endpoint.
//!
//! The file is stored under a name of its own, executed with logging, and removed again; `--keep` leaves it there
//! under the file's name. The console goes to stderr, the answer to stdout, and a failure says line, column and stack
//! in terms of the file: a loop of "edit, run" without a client program.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};

use crate::workload::client::{Answer, Call, Client, Target};
use crate::workload::{options, trust};

pub fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
    };
    let run = Command::new("run")
        .about("Run a stored procedure from a file; console on stderr, answer on stdout")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .value_parser(clap::value_parser!(PathBuf))
                .help("JavaScript: one function"),
        )
        .arg(text("endpoint", "URL", "Where the account is").default_value("http://127.0.0.1:8081"))
        .arg(text(
            "key",
            "BASE64",
            "Master key [env: ORRERY_KEY] [default: the emulator's, for loopback endpoints]",
        ))
        .arg(text("db", "NAME", "Database").required(true))
        .arg(text("container", "NAME", "Container").required(true))
        .arg(
            text("pk", "VALUE", "Partition key: JSON, or plain text; a JSON array for a hierarchical key")
                .required(true),
        )
        .arg(
            text(
                "param",
                "JSON",
                "A parameter of the procedure; may be repeated; plain text if it is not JSON",
            )
            .action(ArgAction::Append),
        )
        .arg(switch("keep", "Leave the procedure in the container, under the file's name"))
        .arg(
            text("ca", "FILE", "Trust the certificates in this PEM file, besides the system's")
                .value_parser(clap::value_parser!(PathBuf)),
        )
        .arg(switch("insecure", "Do not verify the server's certificate"));
    Command::new("script")
        .about("Run server-side JavaScript")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(run)
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let Some(("run", matches)) = matches.subcommand() else { bail!("there is only `orrery script run`") };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(run_file(matches))
}

async fn run_file(matches: &ArgMatches) -> Result<()> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let file = matches.get_one::<PathBuf>("file").context("FILE is missing")?;
    let source = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let endpoint = options::endpoint_of(text("endpoint"))?;
    let key = options::key_of(matches.get_one::<String>("key").map(String::as_str), &endpoint)?;
    let tls = match endpoint.scheme_str() {
        Some("https") => {
            let authority = matches.get_one::<PathBuf>("ca").map(PathBuf::as_path);
            Some(trust::client_config(authority, matches.get_flag("insecure"))?)
        }
        _ => None,
    };
    let keep = matches.get_flag("keep");
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let id = if keep { stem.clone() } else { temporary(&stem)? };
    let parameters: Vec<Value> =
        matches.get_many::<String>("param").into_iter().flatten().map(|text| value(text)).collect();
    let partition_key = match value(text("pk")) {
        Value::Array(values) => Value::Array(values),
        value => json!([value]),
    };
    let procedures = Procedures {
        client: Client::new(Arc::new(Target::new(endpoint, &key, tls)?)),
        container: ["dbs".into(), text("db").to_owned(), "colls".into(), text("container").to_owned()],
    };
    procedures.run(file, &id, &source, keep, &partition_key, &parameters).await
}

struct Procedures {
    client: Client,
    container: [String; 4],
}

impl Procedures {
    async fn run(
        mut self,
        file: &Path,
        id: &str,
        source: &str,
        keep: bool,
        partition_key: &Value,
        parameters: &[Value],
    ) -> Result<()> {
        let body = json!({ "id": id, "body": source });
        let upsert = ("x-ms-documentdb-is-upsert", "True".to_owned());
        let stored = self.send(Method::POST, None, vec![upsert], body.to_string()).await?;
        if stored.status >= 300 {
            bail!("{}", told(&stored, id, file));
        }
        let headers = vec![
            // Header values are ASCII; JSON can be written that way.
            ("x-ms-documentdb-partitionkey", ascii_json(partition_key)),
            ("x-ms-documentdb-script-enable-logging", "True".to_owned()),
        ];
        let arguments = serde_json::to_string(parameters)?;
        let answer = self.send(Method::POST, Some(id), headers, arguments).await;
        let removed = if keep {
            Ok(())
        } else {
            self.send(Method::DELETE, Some(id), Vec::new(), String::new()).await.map(drop)
        };
        let answer = answer?;
        if let Some(log) =
            answer.headers.get("x-ms-documentdb-script-log-results").and_then(|log| log.to_str().ok())
        {
            eprintln!("{}", percent_decode_str(log).decode_utf8_lossy());
        }
        if answer.status >= 300 {
            bail!("{}", told(&answer, id, file));
        }
        eprintln!("charge: {} RU", answer.charge_ru());
        match serde_json::from_slice::<Value>(&answer.body) {
            Ok(body) => println!("{}", serde_json::to_string_pretty(&body)?),
            Err(_) => println!("{}", String::from_utf8_lossy(&answer.body)),
        }
        removed.context("the procedure could not be removed again")
    }

    async fn send(
        &mut self,
        method: Method,
        id: Option<&str>,
        mut headers: Vec<(&'static str, String)>,
        body: String,
    ) -> Result<Answer> {
        headers.push(("content-type", "application/json".to_owned()));
        let mut segments: Vec<&str> = self.container.iter().map(String::as_str).collect();
        segments.push("sprocs");
        segments.extend(id);
        let path: Vec<String> =
            segments.iter().map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string()).collect();
        // The link of a feed is its parent's.
        let link = segments[..segments.len() - usize::from(id.is_none())].join("/");
        let call =
            Call { method, path: path.join("/"), link, kind: "sprocs", headers, body: Bytes::from(body) };
        self.client.send(&call).await
    }
}

/// A name that nobody else uses.
fn temporary(stem: &str) -> Result<String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random)
        .map_err(|error| anyhow::anyhow!("the system gives no random bytes: {error}"))?;
    let safe: String =
        stem.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).take(100).collect();
    Ok(format!("{safe}-{:016x}", u64::from_le_bytes(random)))
}

/// JSON, or the text itself.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn ascii_json(value: &Value) -> String {
    let mut out = String::new();
    for character in value.to_string().chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// What an answer says went wrong, about the file instead of the name it was stored under.
fn told(answer: &Answer, id: &str, file: &Path) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let message = body["message"].as_str().unwrap_or_default();
    let inner = message.strip_prefix("Message: ").and_then(|rest| rest.split("\r\nActivityId").next());
    let errors: Option<Value> = inner.and_then(|text| serde_json::from_str(text).ok());
    let said = errors.as_ref().and_then(|errors| errors["Errors"][0].as_str()).unwrap_or(message);
    let shown = file.display().to_string();
    let said = said.replace("\r\n", "\n").replace(&format!("{id}.js"), &shown);
    let substatus = answer.headers.get("x-ms-substatus").and_then(|text| text.to_str().ok());
    let substatus = substatus.map(|text| format!("/{text}")).unwrap_or_default();
    format!("{}{substatus}: {said}", answer.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json_or_text() {
        assert_eq!(value("1"), json!(1));
        assert_eq!(value("[\"a\",2]"), json!(["a", 2]));
        assert_eq!(value("plain"), json!("plain"));
    }

    #[test]
    fn keys_travel_as_ascii() {
        assert_eq!(ascii_json(&json!(["ü💡"])), "[\"\\u00fc\\ud83d\\udca1\"]");
    }

    #[test]
    fn a_failure_speaks_of_the_file() {
        let message = "Message: {\"Errors\":[\"Encountered exception while executing function. Exception = Error: no\\r\\nStack trace: Error: no\\n   at f (f-01.js:2:3)\"]}\r\nActivityId: x";
        let body = Bytes::from(json!({ "code": "BadRequest", "message": message }).to_string());
        let mut headers = http::HeaderMap::new();
        headers.insert("x-ms-substatus", http::HeaderValue::from_static("409"));
        let text = told(&Answer { status: 400, headers, body }, "f-01", Path::new("dir/f.js"));
        assert_eq!(
            text,
            "400/409: Encountered exception while executing function. Exception = Error: no\nStack trace: Error: no\n   at f (dir/f.js:2:3)"
        );
    }
}
