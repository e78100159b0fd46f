//! Talking to the admin routes of a running server: the flags that say which server, and one signed request.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use serde_json::Value;

use crate::workload::{Call, Client, Target, client_config, endpoint_of, key_of};

/// The type that signatures of admin requests name.
const KIND: &str = "_orrery";

/// Adds the flags that say which server it is.
pub fn with_server_flags(command: Command) -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help).help_heading("Server").global(true)
    };
    command
        .arg(text("endpoint", "URL", "Where the server is").default_value("http://127.0.0.1:8081"))
        .arg(text(
            "key",
            "BASE64",
            "Master key [env: ORRERY_KEY] [default: the emulator's, for loopback endpoints]",
        ))
        .arg(
            text("ca", "FILE", "Trust the certificates in this PEM file, besides the system's")
                .value_parser(clap::value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("insecure")
                .long("insecure")
                .help("Do not verify the server's certificate")
                .help_heading("Server")
                .global(true)
                .action(ArgAction::SetTrue),
        )
}

/// The server that the flags name.
pub fn connect(matches: &ArgMatches) -> Result<Client> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let endpoint = endpoint_of(text("endpoint").unwrap_or_default())?;
    let key = key_of(text("key"), &endpoint)?;
    let tls = match endpoint.scheme_str() {
        Some("https") => {
            let authority = matches.get_one::<PathBuf>("ca").map(PathBuf::as_path);
            Some(client_config(authority, matches.get_flag("insecure"))?)
        }
        _ => None,
    };
    Ok(Client::new(Arc::new(Target::new(endpoint, &key, tls)?)))
}

/// One request to `_orrery/{name}`, with a query string if one is needed. An answer without a body is null.
pub async fn ask(
    client: &mut Client,
    method: Method,
    name: &str,
    query: &str,
    body: String,
) -> Result<Value> {
    let link = format!("{KIND}/{name}");
    let path = if query.is_empty() { link.clone() } else { format!("{link}?{query}") };
    let call = Call { method, path, link, kind: KIND, headers: Vec::new(), body: Bytes::from(body) };
    let answer = client.send(&call).await?;
    let parsed: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if answer.status >= 300 {
        match parsed["message"].as_str() {
            // The first line is for people; what follows identifies the request.
            Some(message) => bail!("{}", message.lines().next().unwrap_or(message)),
            None => bail!("{}", answer.message()),
        }
    }
    Ok(parsed)
}

/// Runs what a command does on this thread.
pub fn block_on<F: Future<Output = Result<()>>>(work: F) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(work)
}
