//! Comparing a restarted server with the models of all writers.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use orrery_testkit::{Client, Random, Reply};
use serde_json::Value;

use crate::CONTAINER;
use crate::model::{IDS, Key, PARTITIONS, VALUES};
use crate::writer::{Writer, partition_name};

/// Pages of a feed before it must have ended.
const PAGES_MAX: usize = 10_000;
const UNIQUE_SAMPLES: usize = 20;

/// Every item by its id, then the whole container by its feed: all of the model, and nothing else.
pub fn items(client: &mut Client, writers: &[Writer]) -> Result<()> {
    for writer in writers {
        for partition in 0..PARTITIONS {
            for id in 0..IDS {
                let key = Key { partition, id };
                let expected =
                    writer.model.items.get(&key).map(|live| ((live.revision, live.value), live.etag.clone()));
                let found = writer.read(client, key)?;
                ensure!(
                    found == expected,
                    "writer {}: {key:?} must be {expected:?}, but is {found:?}",
                    writer.number
                );
            }
        }
    }
    let mut listed = BTreeSet::new();
    let mut continuation: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let mut headers = vec![("x-ms-max-item-count", "100")];
        headers.extend(continuation.as_deref().map(|token| ("x-ms-continuation", token)));
        let reply =
            client.get(&format!("{CONTAINER}/docs"), CONTAINER, "docs", &headers)?.expect_status(200)?;
        for document in documents(&reply)? {
            let (writer, key) = owner(writers, &document)?;
            ensure!(listed.insert((writer, key)), "listed twice: {document}");
            ensure!(writers[writer].model.items.contains_key(&key), "listed, but deleted: {document}");
        }
        continuation = reply.header("x-ms-continuation").map(str::to_owned);
        if continuation.is_none() {
            let living: usize = writers.iter().map(|writer| writer.model.items.len()).sum();
            ensure!(listed.len() == living, "{} items are listed of {living}", listed.len());
            return Ok(());
        }
    }
    bail!("the feed does not end")
}

/// The change feeds of all physical partitions, and how far they were read.
pub struct Feeds {
    positions: BTreeMap<String, Option<String>>,
}

impl Feeds {
    pub fn new(client: &mut Client) -> Result<Feeds> {
        let reply =
            client.get(&format!("{CONTAINER}/pkranges"), CONTAINER, "pkranges", &[])?.expect_status(200)?;
        let body = reply.json()?;
        let ranges = body["PartitionKeyRanges"].as_array().context("no ranges")?;
        ensure!(ranges.len() == 3, "three physical partitions, not {}", ranges.len());
        let ids = ranges.iter().filter_map(|range| range["id"].as_str());
        Ok(Feeds { positions: ids.map(|id| (id.to_owned(), None)).collect() })
    }

    pub fn check(&mut self, client: &mut Client, writers: &mut [Writer]) -> Result<()> {
        let mut whole = BTreeSet::new();
        let mut since = BTreeSet::new();
        for (range, position) in &mut self.positions {
            read_changes(client, range, None, writers, &mut whole)
                .with_context(|| format!("range {range} from its beginning"))?;
            let end = read_changes(client, range, position.as_deref(), writers, &mut since)
                .with_context(|| format!("range {range} from {position:?}"))?;
            *position = end;
        }
        for (number, writer) in writers.iter_mut().enumerate() {
            let living: BTreeSet<Key> = writer.model.items.keys().copied().collect();
            let shown = |seen: &BTreeSet<(usize, Key)>| {
                seen.iter().filter(|(w, _)| *w == number).map(|(_, key)| *key).collect::<BTreeSet<Key>>()
            };
            ensure!(
                shown(&whole) == living,
                "writer {number}: the feed from the beginning differs from the items"
            );
            let changed: BTreeSet<Key> = writer.model.changed.intersection(&living).copied().collect();
            let since = shown(&since);
            ensure!(
                since == changed,
                "writer {number}: the feed since the last round has {:?} too many and lacks {:?}",
                since.difference(&changed).collect::<Vec<_>>(),
                changed.difference(&since).collect::<Vec<_>>()
            );
            writer.model.changed.clear();
        }
        Ok(())
    }
}

/// Reads a change feed to its present end; every change must show the item as it is now, once, in order.
fn read_changes(
    client: &mut Client,
    range: &str,
    from: Option<&str>,
    writers: &[Writer],
    seen: &mut BTreeSet<(usize, Key)>,
) -> Result<Option<String>> {
    let mut position = from.map(str::to_owned);
    let mut last_lsn = 0;
    for _ in 0..PAGES_MAX {
        let mut headers = vec![
            ("a-im", "Incremental feed"),
            ("x-ms-max-item-count", "50"),
            ("x-ms-documentdb-partitionkeyrangeid", range),
        ];
        headers.extend(position.as_deref().map(|token| ("if-none-match", token)));
        let reply = client.get(&format!("{CONTAINER}/docs"), CONTAINER, "docs", &headers)?;
        let next = reply.header("etag").map(str::to_owned);
        if reply.status == 304 {
            return Ok(next.or(position));
        }
        let reply = reply.expect_status(200)?;
        for document in documents(&reply)? {
            let (writer, key) = owner(writers, &document)?;
            let lsn = document["_lsn"].as_u64().context("a change has an lsn")?;
            ensure!(lsn >= last_lsn, "the feed goes back from {last_lsn} to {lsn}");
            last_lsn = lsn;
            let expected = writers[writer].model.items.get(&key).map(|live| (live.revision, live.value));
            let content = writers[writer].content(&document)?;
            ensure!(
                expected == Some(content),
                "the feed shows {content:?} of {key:?}, which is {expected:?}"
            );
            ensure!(seen.insert((writer, key)), "twice in the feed: {key:?} of writer {writer}");
        }
        position = next;
    }
    bail!("the change feed does not end")
}

/// Values in use are refused, others are free.
pub fn unique_values(client: &mut Client, writers: &mut [Writer], random: &mut Random) -> Result<()> {
    for _ in 0..UNIQUE_SAMPLES {
        let count = writers.len() as u64;
        let writer = &mut writers[random.below(count) as usize];
        let partition = random.below(PARTITIONS);
        let Some(key) =
            (0..IDS).map(|id| Key { partition, id }).find(|key| !writer.model.items.contains_key(key))
        else {
            continue;
        };
        for value in 0..VALUES {
            let taken = writer
                .model
                .items
                .iter()
                .any(|(other, live)| other.partition == partition && live.value == value);
            let revision = writer.next_revision();
            let body = writer.document(key, revision, value);
            let partition_key = format!("[\"{}\"]", partition_name(partition));
            let headers = [("x-ms-documentdb-partitionkey", partition_key.as_str())];
            let reply = client.post(&format!("{CONTAINER}/docs"), CONTAINER, "docs", &headers, &body)?;
            ensure!(
                reply.status == if taken { 409 } else { 201 },
                "writer {}: value {value} in {partition} is {}, but a create got {}",
                writer.number,
                if taken { "taken" } else { "free" },
                reply.status
            );
            if !taken {
                writer.model.apply(key, Some((revision, value)), reply.header("etag"));
                break;
            }
        }
    }
    Ok(())
}

fn documents(reply: &Reply) -> Result<Vec<Value>> {
    let mut body = reply.json()?;
    match body["Documents"].take() {
        Value::Array(documents) => Ok(documents),
        _ => bail!("no documents: {}", reply.text()),
    }
}

fn owner(writers: &[Writer], document: &Value) -> Result<(usize, Key)> {
    let found = writers.iter().find_map(|writer| Some((writer.number, writer.key_of(document)?)));
    found.with_context(|| format!("nobody's item: {document}"))
}
