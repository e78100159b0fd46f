//! Writes items to a container: bulks by physical partition where the server takes them, one by one where it must.
//!
//! What is refused for a reason that passes (429, 449, 410, 503, a broken connection) is sent again; what is refused
//! for what it is, is rejected with the server's words. A bulk that is refused as a whole is sent item by item, so
//! that one bad item costs nothing but itself.

use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use http::Method;
use serde_json::Value;
use std::sync::atomic::Ordering::Relaxed;

use super::item::{Item, SYSTEM_PROPERTIES};
use super::pace::Pace;
use super::progress::Meter;
use super::raw_json;
use crate::account::{Account, ContainerInfo, Failure, Place, ascii_json};
use crate::workload::client::Answer;
use crate::workload::{Call, Client, Target};

/// The protocol's limit for operations of one bulk.
const BULK_OPERATIONS_MAX: usize = 100;
/// Bodies stay below the protocol's limit of 2 MiB; a larger item goes alone.
const BULK_BYTES_MAX: usize = 1_500_000;
/// Connections may break for about a minute.
const BROKEN_ATTEMPTS_MAX: u32 = 20;
const BROKEN_PAUSE_MAX: Duration = Duration::from_secs(5);
/// A request that is throttled more often than this waits for something that does not come.
const WAITS_MAX: u32 = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    Replace,
    Skip,
    Reject,
}

/// What became of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Written,
    Skipped,
    Rejected(String),
}

/// What all connections share.
pub struct Destination {
    pub target: Arc<Target>,
    pub place: Place,
    pub map: RwLock<Arc<ContainerInfo>>,
    pub on_conflict: OnConflict,
    pub pace: Pace,
    pub meter: Meter,
    pub bulk: bool,
}

pub struct Sender {
    client: Client,
    to: Arc<Destination>,
}

/// What one operation was answered with.
enum Said {
    Done(Outcome),
    Again(Duration),
    Exists,
}

impl Sender {
    pub fn new(to: Arc<Destination>) -> Sender {
        Sender { client: Client::new(to.target.clone()), to }
    }

    /// Writes all of them; the outcomes are in the order of the items.
    pub async fn send(&mut self, items: &[Item]) -> Result<Vec<Outcome>> {
        let mut outcomes: Vec<Option<Outcome>> = vec![None; items.len()];
        let (mut broken, mut waits) = (0, 0);
        loop {
            let open: Vec<usize> = (0..items.len()).filter(|n| outcomes[*n].is_none()).collect();
            if open.is_empty() {
                return Ok(outcomes.into_iter().flatten().collect());
            }
            let mut pause = Duration::ZERO;
            for batch in self.batches(items, &open) {
                match self.send_batch(items, &batch, &mut outcomes).await {
                    Ok(Some(wait)) => {
                        pause = pause.max(wait);
                        waits += 1;
                    }
                    Ok(None) => broken = 0,
                    Err(Trouble::Fatal(error)) => return Err(error),
                    Err(Trouble::Broken(error)) => {
                        broken += 1;
                        if broken > BROKEN_ATTEMPTS_MAX {
                            return Err(error
                                .context("the server does not answer; run the same command again to go on"));
                        }
                        pause = pause.max(
                            (Duration::from_millis(50) * 2u32.pow(broken.min(10))).min(BROKEN_PAUSE_MAX),
                        );
                    }
                }
            }
            if waits > WAITS_MAX {
                bail!("the server keeps refusing; run the same command again to go on");
            }
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// Groups of one physical partition that fit into one request.
    fn batches(&self, items: &[Item], open: &[usize]) -> Vec<(usize, Vec<usize>)> {
        if !self.to.bulk {
            return open.iter().map(|n| (0, vec![*n])).collect();
        }
        let map = self.map();
        let mut groups: Vec<Vec<usize>> = vec![Vec::new(); map.ranges.len().max(1)];
        for n in open {
            groups[map.range_of(&items[*n].key)].push(*n);
        }
        let mut batches = Vec::new();
        for (range, group) in groups.into_iter().enumerate() {
            let (mut batch, mut size) = (Vec::new(), 0);
            for n in group {
                if batch.len() == BULK_OPERATIONS_MAX
                    || (size + items[n].body.len() > BULK_BYTES_MAX && !batch.is_empty())
                {
                    batches.push((range, std::mem::take(&mut batch)));
                    size = 0;
                }
                size += items[n].body.len() + 128;
                batch.push(n);
            }
            if !batch.is_empty() {
                batches.push((range, batch));
            }
        }
        batches
    }

    fn map(&self) -> Arc<ContainerInfo> {
        self.to.map.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Sends one request; how long to wait if something of it has to be sent again.
    async fn send_batch(
        &mut self,
        items: &[Item],
        (range, batch): &(usize, Vec<usize>),
        outcomes: &mut [Option<Outcome>],
    ) -> Result<Option<Duration>, Trouble> {
        if batch.len() == 1 {
            let said = self.send_one(&items[batch[0]]).await?;
            return self.take(said, items, batch[0], outcomes).await;
        }
        let map = self.map();
        let Some(id) = map.ranges.get(*range).map(|range| range.id.clone()) else {
            return Err(Trouble::Fatal(anyhow::anyhow!("the container has no ranges")));
        };
        let call = self.bulk_call(items, batch, id);
        let answer = self.client.send(&call).await.map_err(Trouble::Broken)?;
        self.count(&answer);
        match answer.status {
            200 | 207 => {
                let results: Vec<Value> = serde_json::from_slice(&answer.body)
                    .map_err(|_| Trouble::Fatal(anyhow::anyhow!("the answer to a bulk is no list")))?;
                if answer.status == 200 {
                    self.to.pace.succeeded();
                }
                let mut wait = None;
                for (n, result) in batch.iter().zip(&results) {
                    let said = said_in_bulk(result, self.to.on_conflict);
                    let again = self.take(said, items, *n, outcomes).await?;
                    wait = wait.max(again);
                }
                Ok(wait)
            }
            410 => self.refresh().await,
            429 | 449 | 503 | 408 => Ok(Some(self.give_way(&answer))),
            400 | 413 => {
                let mut wait = None;
                for n in batch {
                    let said = self.send_one(&items[*n]).await?;
                    wait = wait.max(self.take(said, items, *n, outcomes).await?);
                }
                Ok(wait)
            }
            _ => Err(Trouble::Fatal(Failure::of_answer(&answer).into())),
        }
    }

    async fn take(
        &mut self,
        said: Said,
        items: &[Item],
        n: usize,
        outcomes: &mut [Option<Outcome>],
    ) -> Result<Option<Duration>, Trouble> {
        outcomes[n] = Some(match said {
            Said::Done(outcome) => outcome,
            Said::Again(wait) => return Ok(Some(wait)),
            Said::Exists => self.existing(&items[n]).await?,
        });
        Ok(None)
    }

    async fn send_one(&mut self, item: &Item) -> Result<Said, Trouble> {
        let mut call = self.to.place.feed(Method::POST, "docs");
        call.headers = vec![key_header(item), ("content-type", "application/json".into()), minimal()];
        if self.to.on_conflict == OnConflict::Replace {
            call.headers.push(("x-ms-documentdb-is-upsert", "True".into()));
        }
        call.body = item.body.clone().into();
        let answer = self.client.send(&call).await.map_err(Trouble::Broken)?;
        self.count(&answer);
        Ok(match answer.status {
            200 | 201 | 204 => {
                self.to.pace.succeeded();
                Said::Done(Outcome::Written)
            }
            409 => Said::Exists,
            429 | 449 | 503 | 408 | 410 => Said::Again(self.give_way(&answer)),
            400 | 413 => Said::Done(Outcome::Rejected(Failure::of_answer(&answer).message)),
            _ => return Err(Trouble::Fatal(Failure::of_answer(&answer).into())),
        })
    }

    /// An item that is there already. One with the same content was written by an earlier run, or by a request whose
    /// answer was lost.
    async fn existing(&mut self, item: &Item) -> Result<Outcome, Trouble> {
        let mut call = self.to.place.item(&item.id).call(Method::GET);
        call.headers.push(key_header(item));
        let answer = self.client.send(&call).await.map_err(Trouble::Broken)?;
        self.count(&answer);
        let same = answer.status == 200 && same_content(&answer.body, &item.body);
        Ok(match self.to.on_conflict {
            _ if same => Outcome::Written,
            OnConflict::Skip => Outcome::Skipped,
            _ => Outcome::Rejected(
                "409 an item with this id, or with the same unique key, exists already".into(),
            ),
        })
    }

    fn bulk_call(&self, items: &[Item], batch: &[usize], range: String) -> Call {
        let operation = if self.to.on_conflict == OnConflict::Replace { "Upsert" } else { "Create" };
        let size: usize = batch.iter().map(|n| items[*n].body.len() + 128).sum();
        let mut body = String::with_capacity(size);
        for n in batch {
            body.push(if body.is_empty() { '[' } else { ',' });
            body.push_str("{\"operationType\":\"");
            body.push_str(operation);
            body.push_str("\",\"partitionKey\":");
            body.push_str(&raw_json::quoted(&key_text(&items[*n])));
            body.push_str(",\"resourceBody\":");
            body.push_str(&items[*n].body);
            body.push('}');
        }
        body.push(']');
        let mut call = self.to.place.feed(Method::POST, "docs");
        call.headers = vec![
            ("content-type", "application/json".to_owned()),
            ("x-ms-cosmos-is-batch-request", "True".to_owned()),
            ("x-ms-cosmos-batch-atomic", "False".to_owned()),
            ("x-ms-cosmos-batch-continue-on-error", "True".to_owned()),
            ("x-ms-documentdb-partitionkeyrangeid", range),
            minimal(),
        ];
        call.body = body.into();
        call
    }

    fn count(&self, answer: &Answer) {
        self.to.meter.requests.fetch_add(1, Relaxed);
        self.to.meter.charge(answer.charge_ru());
    }

    fn give_way(&self, answer: &Answer) -> Duration {
        if answer.status == 429 {
            self.to.meter.throttled.fetch_add(1, Relaxed);
            self.to.pace.throttled(Instant::now());
        }
        answer.retry_after()
    }

    /// The container was split or merged: its map is read again.
    async fn refresh(&mut self) -> Result<Option<Duration>, Trouble> {
        let mut account = Account::new(self.to.target.clone());
        let map = ContainerInfo::read(&mut account, &self.to.place).await.map_err(Trouble::Broken)?;
        *self.to.map.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::new(map);
        Ok(Some(Duration::from_millis(100)))
    }
}

enum Trouble {
    /// Nobody answers: try again.
    Broken(anyhow::Error),
    Fatal(anyhow::Error),
}

fn minimal() -> (&'static str, String) {
    ("prefer", "return=minimal".into())
}

fn key_text(item: &Item) -> String {
    let mut out = Vec::new();
    item.key.write_json(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn key_header(item: &Item) -> (&'static str, String) {
    ("x-ms-documentdb-partitionkey", ascii_json(&key_text(item)))
}

fn said_in_bulk(result: &Value, on_conflict: OnConflict) -> Said {
    let status = result["statusCode"].as_u64().unwrap_or(0);
    match status {
        200 | 201 | 204 => Said::Done(Outcome::Written),
        409 if on_conflict == OnConflict::Replace => {
            Said::Done(Outcome::Rejected("409 another item has the same unique key".into()))
        }
        409 => Said::Exists,
        408 | 410 | 424 | 429 | 449 | 503 => Said::Again(Duration::from_millis(
            result["retryAfterMilliseconds"].as_u64().unwrap_or(10).clamp(1, 30_000),
        )),
        _ => {
            let message = result["message"].as_str().unwrap_or(match status {
                413 => "the item is too large",
                403 => "the logical partition is full",
                _ => "refused",
            });
            Said::Done(Outcome::Rejected(format!("{status} {message}")))
        }
    }
}

fn same_content(there: &[u8], here: &str) -> bool {
    let strip = |value: Result<Value, serde_json::Error>| {
        let mut value = value.ok()?;
        let object = value.as_object_mut()?;
        for name in SYSTEM_PROPERTIES {
            object.remove(name);
        }
        Some(value)
    };
    let there = strip(serde_json::from_slice(there));
    there.is_some() && there == strip(serde_json::from_str(here))
}

/// The container that items go to, with its map.
pub async fn destination(
    target: Arc<Target>,
    place: Place,
    on_conflict: OnConflict,
    connections: usize,
    bulk: bool,
) -> Result<Destination> {
    let mut account = Account::new(target.clone());
    let map = ContainerInfo::read(&mut account, &place).await.context("cannot read the container")?;
    Ok(Destination {
        target,
        place,
        map: RwLock::new(Arc::new(map)),
        on_conflict,
        pace: Pace::new(connections),
        meter: Meter::default(),
        bulk,
    })
}
