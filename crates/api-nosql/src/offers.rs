//! Offers: the throughput of a database or container as a resource of its own, addressed by rid.
//!
//! Clients look one up by a query for `resource` (the owner's `_self`) or `offerResourceId` (its rid), change the
//! number inside and put the whole object back. Two headers switch between manual and autoscale.

use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::{HeaderValue, StatusCode};
use orrery_engine::charge::catalog::{READ_RU, REPLACE_OFFER_RU};
use orrery_engine::offer::OfferChange;
use orrery_engine::throughput::BUCKET_UNLIMITED;
use orrery_engine::{Offer, OfferOwner, Throughput};
use std::sync::Arc;

use crate::errors::{ApiError, Plane, Result};
use crate::headers::{self, Answer, At};
use crate::resource_feed::{Entry, Feed};
use crate::rid::{ContainerRid, Rid, database_rid, offer_rid};
use crate::service::Context;
use crate::write::{push_json_string, push_u64};
use crate::{body, throughput};

const PENDING: HeaderValue = HeaderValue::from_static("true");
const NOT_PENDING: HeaderValue = HeaderValue::from_static("false");

const SERVERLESS: &str = "Reading or replacing offers is not supported for serverless accounts.";

pub fn list(context: &Context<'_>) -> Result<Answer> {
    check_provisioned(context)?;
    feed(context).list(context)
}

pub fn query(context: &Context<'_>) -> Result<Answer> {
    check_provisioned(context)?;
    feed(context).query(context)
}

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let offer = find(context)?;
    if context.text(IF_NONE_MATCH).is_some_and(|etag| offer.etag.matches(etag)) {
        let answer = context.answer(StatusCode::NOT_MODIFIED).at(context.catalog_at()).charge(READ_RU);
        return Ok(answer.etag(&offer.etag.to_string()));
    }
    Ok(one(context, &offer).charge(READ_RU))
}

pub async fn replace(context: &Context<'_>) -> Result<Answer> {
    let offer = find(context)?;
    let body = body::object(context)?;
    let wanted: OfferChange = if context.flag(headers::MIGRATE_TO_AUTOSCALE) {
        offer.throughput.to_autoscale().into()
    } else if context.flag(headers::MIGRATE_TO_MANUAL) {
        offer.throughput.to_manual().into()
    } else if let Some(level) = throughput::level_of_offer(&body, offer.throughput.ceiling())? {
        level.into()
    } else {
        let content = body.get("content").ok_or_else(|| {
            ApiError::bad_request(
                "The input content is invalid because the required properties - 'content; ' - are missing",
            )
        })?;
        OfferChange { throughput: throughput::of_offer(content)?, buckets: throughput::buckets_of(content)? }
    };
    let replaced = context.account().replace_offer(offer.number, wanted, context.text(IF_MATCH)).await;
    let offer = replaced.map_err(|error| ApiError::from_engine(error, Plane::Resources))?;
    Ok(one(context, &offer).charge(REPLACE_OFFER_RU))
}

/// A serverless account has no offers to speak of.
fn check_provisioned(context: &Context<'_>) -> Result<()> {
    if context.account().config().serverless { Err(ApiError::bad_request(SERVERLESS)) } else { Ok(()) }
}

fn find(context: &Context<'_>) -> Result<Arc<Offer>> {
    check_provisioned(context)?;
    let number = match Rid::parse(context.path.id(0)) {
        Some(Rid::Offer(number)) => number,
        _ => return Err(ApiError::from_engine(orrery_engine::Error::not_found(), Plane::Resources)),
    };
    context.account().offer(number).map_err(|error| ApiError::from_engine(error, Plane::Resources))
}

fn feed<'a>(context: &Context<'_>) -> Feed<'a> {
    let offers = context.account().offers();
    let entries =
        offers.iter().map(|offer| Entry { number: offer.number, json: json(context, offer) }).collect();
    Feed { key: "Offers", rid: "", entries }
}

fn one(context: &Context<'_>, offer: &Offer) -> Answer {
    let lsn = context.catalog_at().lsn;
    let pending = context.account().offer_is_pending(offer);
    context
        .answer(StatusCode::OK)
        .at(At { item_lsn: Some(lsn), ..At::catalog(lsn) })
        .etag(&offer.etag.to_string())
        .set(headers::MIN_THROUGHPUT, headers::number(u64::from(context.account().offer_minimum(offer))))
        .set(headers::REPLACE_PENDING, if pending { PENDING } else { NOT_PENDING })
        .body(json(context, offer))
}

/// The service's member order.
fn json(context: &Context<'_>, offer: &Offer) -> Vec<u8> {
    let mut owner_self = Vec::with_capacity(40);
    let owner_rid = match offer.owner {
        OfferOwner::Database(database) => {
            let rid = database_rid(database);
            owner_self.extend_from_slice(b"dbs/");
            owner_self.extend_from_slice(rid.as_bytes());
            owner_self.push(b'/');
            rid
        }
        OfferOwner::Container(database, container) => {
            let rid = ContainerRid::new(database, container);
            rid.write_self(&mut owner_self);
            rid.as_str().to_owned()
        }
    };
    let rid = offer_rid(offer.number);
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"{\"resource\":\"");
    out.extend_from_slice(&owner_self);
    let (kind, version) = match offer.throughput {
        Throughput::Level(level) => (level.name(), "V1"),
        _ => ("Invalid", "V2"),
    };
    out.extend_from_slice(b"\",\"offerType\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"offerResourceId\":\"");
    out.extend_from_slice(owner_rid.as_bytes());
    out.extend_from_slice(b"\",\"offerVersion\":\"");
    out.extend_from_slice(version.as_bytes());
    out.extend_from_slice(b"\",\"content\":{\"offerThroughput\":");
    push_u64(&mut out, u64::from(context.account().throughput_in_force(offer)));
    out.extend_from_slice(b",\"offerIsRUPerMinuteThroughputEnabled\":false,\"offerMinimumThroughputParameters\":{\"maxThroughputEverProvisioned\":");
    push_u64(&mut out, u64::from(offer.throughput_max_ever));
    out.extend_from_slice(b",\"maxConsumedStorageEverInKB\":");
    push_u64(&mut out, offer.storage_max_ever_kb);
    out.push(b'}');
    if let Throughput::Autoscale { max, increment_percent } = offer.throughput {
        out.extend_from_slice(b",\"offerAutopilotSettings\":{\"maxThroughput\":");
        push_u64(&mut out, u64::from(max));
        if let Some(percent) = increment_percent {
            out.extend_from_slice(b",\"autoUpgradePolicy\":{\"throughputPolicy\":{\"incrementPercent\":");
            push_u64(&mut out, u64::from(percent));
            out.extend_from_slice(b"}}");
        }
        out.push(b'}');
    }
    push_buckets(&mut out, offer);
    if context.account().offer_is_pending(offer) {
        out.extend_from_slice(b",\"isOfferReplacePending\":true");
    }
    out.extend_from_slice(b"},\"id\":\"");
    out.extend_from_slice(rid.as_bytes());
    out.extend_from_slice(b"\",\"_rid\":\"");
    out.extend_from_slice(rid.as_bytes());
    out.extend_from_slice(b"\",\"_self\":\"offers/");
    out.extend_from_slice(rid.as_bytes());
    out.extend_from_slice(b"/\",\"_etag\":");
    push_json_string(&mut out, &offer.etag.to_string());
    out.extend_from_slice(b",\"_ts\":");
    push_u64(&mut out, u64::from(offer.ts));
    out.push(b'}');
    out
}

/// The throughput buckets that are limits.
fn push_buckets(out: &mut Vec<u8>, offer: &Offer) {
    let mut limits =
        offer.buckets.iter().enumerate().filter(|(_, percent)| **percent < BUCKET_UNLIMITED).peekable();
    if limits.peek().is_none() {
        return;
    }
    out.extend_from_slice(b",\"throughputBuckets\":[");
    for (n, (index, percent)) in limits.enumerate() {
        if n > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"id\":");
        push_u64(out, index as u64 + 1);
        out.extend_from_slice(b",\"maxThroughputPercentage\":");
        push_u64(out, u64::from(*percent));
        out.push(b'}');
    }
    out.push(b']');
}
