//! A container as a client has to know it: definition, partition key, and the map of its hash space.

use anyhow::{Context, Result};
use http::Method;
use orrery_model::{Epk, KeyKind, KeyVersion, PartitionKey, PartitionKeyDefinition, PropertyPath};
use serde_json::Value;

use super::{Account, Place};
use crate::Usage;

/// Pages of a feed of resources: more is no account.
const PAGES_MAX: usize = 100_000;

/// One physical partition: `[min, max)` of the hash space.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    pub id: String,
    pub min: Epk,
    pub max: Epk,
}

pub struct ContainerInfo {
    pub definition: Value,
    pub key: PartitionKeyDefinition,
    pub ranges: Vec<Range>,
}

impl ContainerInfo {
    pub async fn read(account: &mut Account, place: &Place) -> Result<ContainerInfo> {
        let definition = account.get(place.call(Method::GET)).await?;
        let key = key_of(&definition["partitionKey"])?;
        let ranges = ranges(account, place).await?;
        Ok(ContainerInfo { definition, key, ranges })
    }

    /// The place of a key's range in the list.
    pub fn range_of(&self, key: &PartitionKey) -> usize {
        let epk = self.key.effective(key);
        self.ranges.iter().rposition(|range| range.min <= epk).unwrap_or(0)
    }
}

async fn ranges(account: &mut Account, place: &Place) -> Result<Vec<Range>> {
    let mut ranges = Vec::new();
    for range in read_all(account, place, "pkranges", "PartitionKeyRanges").await? {
        let text = |name: &str| range[name].as_str().context("a range without bounds");
        ranges.push(Range {
            id: text("id")?.to_owned(),
            min: epk(text("minInclusive")?)?,
            max: epk(text("maxExclusive")?)?,
        });
    }
    ranges.sort_by(|a, b| a.min.cmp(&b.min));
    Ok(ranges)
}

fn epk(text: &str) -> Result<Epk> {
    Epk::from_hex(text).map_err(|_| anyhow::anyhow!("the bound of a range is not hexadecimal: {text}"))
}

/// The definition that a container's JSON names; without one, the system's own.
pub fn key_of(definition: &Value) -> Result<PartitionKeyDefinition> {
    let paths = definition["paths"].as_array().map(Vec::as_slice).unwrap_or_default();
    let paths = paths.iter().map(|path| {
        let text = path.as_str().unwrap_or_default();
        PropertyPath::parse(text).map_err(|error| anyhow::anyhow!("the partition key path {text}: {error}"))
    });
    Ok(PartitionKeyDefinition {
        paths: paths.collect::<Result<_>>()?,
        kind: match definition["kind"].as_str() {
            Some("MultiHash") => KeyKind::MultiHash,
            _ => KeyKind::Hash,
        },
        version: match definition["version"].as_u64() {
            Some(2) => KeyVersion::V2,
            _ if definition["kind"] == "MultiHash" => KeyVersion::V2,
            _ => KeyVersion::V1,
        },
        system_key: definition["systemKey"].as_bool().unwrap_or(false),
    })
}

/// All members of a feed of resources, page after page.
pub async fn read_all(
    account: &mut Account,
    parent: &Place,
    kind: &'static str,
    member: &str,
) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    let mut continuation: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let mut call = parent.feed(Method::GET, kind);
        if let Some(token) = &continuation {
            call.headers.push(("x-ms-continuation", token.clone()));
        }
        let answer = account.send(&call).await?;
        let mut page: Value = serde_json::from_slice(&answer.body).context("the answer is not JSON")?;
        if let Value::Array(found) = page[member].take() {
            all.extend(found);
        }
        continuation = answer.header("x-ms-continuation").map(str::to_owned);
        if continuation.is_none() {
            return Ok(all);
        }
    }
    anyhow::bail!("a feed of {kind} does not end")
}

/// The headers that give a new database or container its throughput: `400` or `autoscale:4000`.
pub fn throughput_headers(text: Option<&str>) -> Result<Vec<(&'static str, String)>, Usage> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let wrong = || {
        Usage(format!(
            "--throughput: `{text}` is not allowed; allowed: a number of RU/s, or autoscale:NUMBER"
        ))
    };
    match text.strip_prefix("autoscale:") {
        Some(maximum) => {
            let maximum: u32 = maximum.parse().map_err(|_| wrong())?;
            Ok(vec![("x-ms-cosmos-offer-autopilot-settings", format!("{{\"maxThroughput\":{maximum}}}"))])
        }
        None => {
            let manual: u32 = text.parse().map_err(|_| wrong())?;
            Ok(vec![("x-ms-offer-throughput", manual.to_string())])
        }
    }
}

/// JSON that may stand in a header: everything beyond ASCII escaped.
pub fn ascii_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0u16; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_headers_are_ascii() {
        assert_eq!(ascii_json(r#"["ü","😀"]"#), r#"["\u00fc","\ud83d\ude00"]"#);
    }

    #[test]
    fn throughput_is_a_number_or_a_maximum() {
        assert_eq!(throughput_headers(Some("400")).unwrap(), [("x-ms-offer-throughput", "400".to_owned())]);
        let autoscale = throughput_headers(Some("autoscale:4000")).unwrap();
        assert_eq!(autoscale[0].1, "{\"maxThroughput\":4000}");
        assert!(throughput_headers(Some("much")).is_err() && throughput_headers(None).unwrap().is_empty());
    }
}
