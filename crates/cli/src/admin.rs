//! Talking to the admin routes of a running server: the flags that say which server, and one signed request.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::{ArgMatches, Command};
use http::Method;
use serde_json::Value;

use crate::account::{target, with_account_flags};
use crate::workload::{Call, Client};

/// The type that signatures of admin requests name.
pub const KIND: &str = "_orrery";

/// Adds the flags that say which server it is.
pub fn with_server_flags(command: Command) -> Command {
    with_account_flags(command)
}

/// The server that the flags name.
pub fn connect(matches: &ArgMatches) -> Result<Client> {
    Ok(Client::new(target(matches)?))
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
