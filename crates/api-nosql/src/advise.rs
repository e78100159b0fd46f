//! `POST /_orrery/advise`: which partition key a container should have, by a sample of its items and by requests.
//!
//! ```text
//! {"database": "shop", "container": "orders", "items": 10000, "growsToBytes": 50000000000,
//!  "requests": [{"operation": "query_items", "body": {"query": "…"}, "charge": 2.9, "partitionKey": null}]}
//! ```
//!
//! Requests are lines of a recording (`serve --record`); a page sends the queries that were run in it. The answer is
//! what `orrery advise --json` prints, without a proof, and with the rules that say what the sample was. Items are read
//! a page of each partition in turn, so a sample is even over them, and weighed against its throughput as any list is.

use std::collections::VecDeque;

use http::StatusCode;
use orrery_advise::{Options, Request, Sample, advise};
use orrery_engine::{FeedContinuation, PageRequest, Ref, Scope, block_on};
use serde_json::{Value, json};

use crate::body;
use crate::errors::{ApiError, Plane, Result};
use crate::headers::Answer;
use crate::item_json::write_item;
use crate::rid::ContainerRid;
use crate::service::Context;

const ITEMS_DEFAULT: u64 = 10_000;
const ITEMS_MAX: u64 = 50_000;
const REQUESTS_MAX: usize = 10_000;
const PAGE_ITEMS: usize = 500;
/// What an item leaves in a sample, at most, for each byte of its text: its values once, and a number for each.
const SAMPLED_BYTES: usize = 2;
/// How much a container is expected to grow, where nobody says.
const GROWTH: u64 = 10;

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let wanted = body::object(context)?;
    let text = |member: &str| {
        let text = wanted.get(member).and_then(Value::as_str);
        text.ok_or_else(|| {
            ApiError::refused(format!("The body is an object with the member '{member}', a text."))
        })
    };
    let of_engine = |error| ApiError::from_engine(error, Plane::Resources);
    let database = context.account().database(Ref::Name(text("database")?)).map_err(of_engine)?;
    let container = database.container(Ref::Name(text("container")?)).map_err(of_engine)?;
    let number = |member: &str| wanted.get(member).and_then(Value::as_u64);
    let items_max = number("items").unwrap_or(ITEMS_DEFAULT).clamp(10, ITEMS_MAX) as usize;

    let definition = container.definition();
    let paths = definition.partition_key.paths.iter();
    let current: Vec<String> = paths.map(|path| format!("/{}", path.segments().join("/"))).collect();
    let lines = wanted.get("requests").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let requests = lines.iter().take(REQUESTS_MAX);
    let requests: Vec<Request> = requests.filter_map(|line| Request::of_line(line, &current)).collect();

    let rid = ContainerRid::new(database.number, container.number());
    let ranges = container.ranges();
    let partitions = ranges.len() as u32;
    let mut open: VecDeque<(u32, Option<FeedContinuation>)> =
        ranges.iter().map(|range| (range.id, None)).collect();
    let mut sample = Sample::default();
    let mut held = context.budget.hold(0)?;
    while let Some((range, continuation)) = open.pop_front()
        && sample.len() < items_max
    {
        let page = PageRequest { continuation, ..PageRequest::new(PAGE_ITEMS) };
        let found = match block_on(container.read_feed(&Scope::Range(range), &page)) {
            Ok(found) => found,
            // It has been split since: what is read of the others is sample enough.
            Err(error) if error.kind == orrery_engine::Kind::RangeGone => continue,
            Err(error) => return Err(ApiError::from_engine(error, Plane::Items)),
        };
        let size: usize = found.items.iter().map(|item| item.document.len()).sum();
        held.resize(held.bytes() + SAMPLED_BYTES * size)?;
        context.budget.check()?;
        for item in found.items.iter().take(items_max - sample.len()) {
            let mut text = Vec::new();
            write_item(&mut text, &rid, item);
            let value: Value = serde_json::from_slice(&text)
                .map_err(|error| ApiError::refused(format!("An item cannot be read: {error}.")))?;
            sample.add(&value, item.document.len() as u64);
        }
        if found.continuation.is_some() {
            open.push_back((range, found.continuation));
        }
    }
    let size_bytes = container.usage().size_bytes.max(sample.size_bytes());
    let projected_bytes = number("growsToBytes").unwrap_or(size_bytes.saturating_mul(GROWTH));
    let options = Options { current, size_bytes, projected_bytes, physical_partitions: partitions };
    let mut told = advise(&sample, &requests, &options).to_json(&sample, requests.len());
    told["whole"] = open.is_empty().into();
    told["sizeBytes"] = size_bytes.into();
    told["expectedBytes"] = json!(projected_bytes);
    Ok(context.answer(StatusCode::OK).body(told.to_string().into_bytes()))
}
