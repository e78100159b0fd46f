//! An account as its commands see it: where it is, signed calls that wait out throttling, and failures that scripts
//! can tell apart.
//!
//! Everything here is the public REST protocol, so the commands work with any account that speaks it, this server's
//! or the service's. What is this server's own goes through [`crate::admin`].

mod connection;
mod container;
mod failure;
mod place;

pub use connection::{target, target_of, with_account_flags};
pub use container::{ContainerInfo, ascii_json, key_of as key_definition, read_all, throughput_headers};
pub use failure::{EXIT_CODES_HELP, ExitCodes, Failure};
pub use place::Place;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::Method;
use serde_json::Value;

use crate::workload::client::Answer;
use crate::workload::{Call, Client, Target};

/// Attempts of a request that is throttled, or that the server is not ready for.
const ATTEMPTS_MAX: u32 = 100;
/// Attempts when connections break.
const CONNECTION_ATTEMPTS_MAX: u32 = 3;
const CONNECTION_PAUSE: Duration = Duration::from_millis(100);

/// One connection to an account.
pub struct Account {
    client: Client,
}

impl Account {
    pub fn new(target: Arc<Target>) -> Account {
        Account { client: Client::new(target) }
    }

    /// Sends, waits when told to, and turns refusals into failures with an exit code of their own.
    pub async fn send(&mut self, call: &Call) -> Result<Answer> {
        let answer = self.ask(call).await?;
        match answer.status {
            304 => Ok(answer),
            status if status < 300 => Ok(answer),
            _ => Err(Failure::of_answer(&answer).into()),
        }
    }

    /// The same; whatever the answer is, it is returned.
    pub async fn ask(&mut self, call: &Call) -> Result<Answer> {
        let mut broken = 0;
        for attempt in 1.. {
            match self.client.send(call).await {
                Ok(answer) if [429, 449, 503].contains(&answer.status) && attempt < ATTEMPTS_MAX => {
                    tokio::time::sleep(answer.retry_after()).await;
                }
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    broken += 1;
                    // A write that was sent may have been done: only what can be repeated is.
                    let again = call.method == Method::GET || format!("{error:#}").contains("cannot connect");
                    if !again || broken >= CONNECTION_ATTEMPTS_MAX {
                        return Err(error);
                    }
                    tokio::time::sleep(CONNECTION_PAUSE).await;
                }
            }
        }
        unreachable!("the loop only ends by returning")
    }

    pub async fn get(&mut self, call: Call) -> Result<Value> {
        let answer = self.send(&call).await?;
        Ok(serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    /// Whether this is a server of ours, which can do more than the protocol says.
    pub async fn is_orrery(&mut self) -> Result<bool> {
        Ok(self.ask(&own_route("whoami")).await?.status == 200)
    }

    /// The databases that are forks; another server has none.
    pub async fn forks(&mut self) -> Result<Vec<String>> {
        let answer = self.ask(&own_route("forks")).await?;
        let listed: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let forks = listed["forks"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(forks.iter().filter_map(|fork| fork["id"].as_str()).map(str::to_owned).collect())
    }
}

/// A route that only servers of ours have.
fn own_route(name: &str) -> Call {
    let path = format!("_orrery/{name}");
    Call {
        method: Method::GET,
        link: path.clone(),
        path,
        kind: "_orrery",
        headers: Vec::new(),
        body: Bytes::new(),
    }
}
