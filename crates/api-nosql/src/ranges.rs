//! Partition key ranges: the map from the hash space to physical partitions that clients route by.
//!
//! Clients read it as a change feed: page after page with the etag of the last one, until 304. There is no other end,
//! so the etag must come back as "nothing new" exactly when the map has not changed. It is made of the container's
//! number and the highest range id: ids only grow, every split or merge adds some, and a container that was created
//! again under the same name has another number. A client that asks with an older etag gets the whole present map, in
//! which `parents` names the ranges that are gone.

use http::header::IF_NONE_MATCH;
use http::{HeaderValue, StatusCode};
use orrery_engine::RangeInfo;
use orrery_model::{Number, NumberStyle, write_json_number};

use crate::errors::Result;
use crate::headers::{self, Answer, At};
use crate::resource_feed::{Entry, Feed, close_envelope, open_envelope};
use crate::service::{Context, Target};
use crate::write::{push_json_string, push_u64};

pub fn list(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let ranges = target.container.ranges();
    let etag = etag(&target, &ranges);
    // A position of the catalog, not of an item: naming a range here would be a session token for it.
    let at = At::catalog(context.catalog_at().lsn);
    let known = context.text(IF_NONE_MATCH) == Some(etag.as_str());
    let status = if known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    let answer = context.answer(status).at(at).etag(&etag).owner(target.alt_path(), target.rid.as_str());
    if known {
        return Ok(answer.set(headers::ITEM_COUNT, HeaderValue::from_static("0")));
    }
    let mut out = Vec::with_capacity(64 + ranges.len() * 420);
    open_envelope(&mut out, "PartitionKeyRanges", target.rid.as_str());
    for (n, range) in ranges.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        write(&mut out, &target, range);
    }
    close_envelope(&mut out, ranges.len());
    Ok(answer.count(ranges.len()).body(out))
}

pub fn query(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let entry = |range: &RangeInfo| {
        let mut json = Vec::with_capacity(420);
        write(&mut json, &target, range);
        Entry { number: range.id, json }
    };
    let entries = target.container.ranges().iter().map(entry).collect();
    Feed { key: "PartitionKeyRanges", rid: target.rid.as_str(), entries }.query(context)
}

fn etag(target: &Target, ranges: &[RangeInfo]) -> String {
    let highest = ranges.iter().map(|range| range.id).max().unwrap_or(0);
    format!("\"{}-{highest}\"", target.container.number())
}

/// The service's member order.
fn write(out: &mut Vec<u8>, target: &Target, range: &RangeInfo) {
    let rid = target.rid.range(range.id);
    out.extend_from_slice(b"{\"_rid\":\"");
    out.extend_from_slice(&rid);
    out.extend_from_slice(b"\",\"id\":\"");
    push_u64(out, u64::from(range.id));
    out.extend_from_slice(b"\",\"_etag\":");
    push_json_string(out, &range.etag.to_string());
    out.extend_from_slice(b",\"minInclusive\":\"");
    out.extend_from_slice(range.min.to_hex().as_bytes());
    out.extend_from_slice(b"\",\"maxExclusive\":\"");
    out.extend_from_slice(range.max.to_hex().as_bytes());
    out.extend_from_slice(b"\",\"ridPrefix\":");
    push_u64(out, u64::from(range.id));
    out.extend_from_slice(b",\"_self\":\"");
    target.rid.write_self(out);
    out.extend_from_slice(b"pkranges/");
    out.extend_from_slice(&rid);
    out.extend_from_slice(b"/\",\"throughputFraction\":");
    write_json_number(out, Number::Double(range.throughput_fraction), NumberStyle::Item);
    out.extend_from_slice(b",\"status\":\"online\",\"parents\":[");
    for (n, parent) in range.parents.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        out.push(b'"');
        push_u64(out, u64::from(*parent));
        out.push(b'"');
    }
    out.extend_from_slice(b"],\"ownedArchivalPKRangeIds\":[],\"_ts\":");
    push_u64(out, u64::from(range.ts));
    out.extend_from_slice(b",\"lsn\":");
    push_u64(out, range.lsn);
    out.push(b'}');
}
