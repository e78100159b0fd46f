//! Throughput of a database or a container: found by its owner, changed as a whole.

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

use crate::Usage;
use crate::account::{Account, ExitCodes, Failure, Place, read_all};

/// The offer of the resource with this `_self`; `None` if it has none of its own.
pub async fn find(account: &mut Account, owner: &Value) -> Result<Option<Value>> {
    let probe = account.ask(&Place::account().feed(Method::GET, "offers")).await?;
    // A serverless account has no offers.
    if probe.status == 400 {
        return Ok(None);
    }
    let offers = read_all(account, &Place::account(), "offers", "Offers").await?;
    Ok(offers.into_iter().find(|offer| offer["resource"] == owner["_self"]))
}

/// As people write it: `400`, or `autoscale:4000`.
pub fn text(offer: &Value) -> String {
    let content = &offer["content"];
    match content["offerAutopilotSettings"]["maxThroughput"].as_u64() {
        Some(maximum) => format!("autoscale:{maximum}"),
        None => content["offerThroughput"].to_string(),
    }
}

pub async fn change(account: &mut Account, owner: &Value, wanted: &str) -> Result<Value> {
    let Some(mut offer) = find(account, owner).await? else {
        let message =
            "it has no throughput of its own: it shares its database's, or the account is serverless";
        return Err(Failure::new(ExitCodes::NotFound, message).into());
    };
    let wrong =
        || Usage(format!("`{wanted}` is not allowed; allowed: a number of RU/s, or autoscale:NUMBER"));
    let was_autoscale = !offer["content"]["offerAutopilotSettings"].is_null();
    let autoscale = wanted.strip_prefix("autoscale:");
    if was_autoscale != autoscale.is_some() {
        // The kind is changed first, by a header; then the number.
        let header = match autoscale {
            Some(_) => "x-ms-cosmos-migrate-offer-to-autopilot",
            None => "x-ms-cosmos-migrate-offer-to-manual-throughput",
        };
        offer = put(account, &offer, Some(header)).await?;
    }
    let content = offer["content"].as_object_mut().context("an offer without content")?;
    match autoscale {
        Some(maximum) => {
            let maximum: u32 = maximum.parse().map_err(|_| wrong())?;
            content.insert("offerAutopilotSettings".into(), json!({"maxThroughput": maximum}));
            content.remove("offerThroughput");
        }
        None => {
            let manual: u32 = wanted.parse().map_err(|_| wrong())?;
            content.insert("offerThroughput".into(), manual.into());
        }
    }
    put(account, &offer, None).await
}

async fn put(account: &mut Account, offer: &Value, header: Option<&'static str>) -> Result<Value> {
    let rid = offer["_rid"].as_str().context("an offer without a rid")?;
    let mut call = Place::account().child("offers", rid).call(Method::PUT);
    // Offers are addressed by their rid, and signed by it in lower case.
    call.link = rid.to_ascii_lowercase();
    call.headers.push(("content-type", "application/json".into()));
    call.headers.extend(header.map(|header| (header, "true".to_owned())));
    call.body = offer.to_string().into();
    let answer = account.send(&call).await?;
    Ok(serde_json::from_slice(&answer.body)?)
}
