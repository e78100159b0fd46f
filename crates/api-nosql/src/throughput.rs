//! Throughput in requests: the headers of a creation and the content of an offer.

use orrery_engine::throughput::{BUCKET_UNLIMITED, BUCKETS_MAX};
use orrery_engine::{Level, Throughput};
use serde_json::Value;

use crate::errors::{ApiError, Plane, Result};
use crate::headers::{AUTOPILOT, OFFER_THROUGHPUT, OFFER_TYPE};
use crate::service::Context;

/// What the creation of a database or container asks for; `None` leaves it to the owner.
pub fn of_creation(context: &Context<'_>) -> Result<Option<Throughput>> {
    let manual = context.text(OFFER_THROUGHPUT);
    let autoscale = context.text(AUTOPILOT);
    let level = context.text(OFFER_TYPE).map(level).transpose()?.flatten();
    if let Some(level) = level {
        if manual.is_some() || autoscale.is_some() {
            return Err(ApiError::refused(
                "The offer type and throughput cannot be set together: send either x-ms-offer-type or x-ms-offer-throughput.",
            ));
        }
        return Ok(Some(Throughput::Level(level)));
    }
    match (manual, autoscale) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(ApiError::refused(
            "Manual and autoscale throughput cannot be set together: send either x-ms-offer-throughput or x-ms-cosmos-offer-autopilot-settings.",
        )),
        (Some(text), None) => {
            let value = text.trim().parse::<i64>().map_err(|_| {
                ApiError::refused(format!(
                    "The value '{text}' specified for the header 'x-ms-offer-throughput' is invalid. It must be a whole number."
                ))
            })?;
            engine(Throughput::manual(value)).map(Some)
        }
        (None, Some(text)) => {
            let settings: Value = serde_json::from_str(text).map_err(|_| {
                ApiError::refused(
                    "The value specified for the header 'x-ms-cosmos-offer-autopilot-settings' is invalid. It must be a JSON object.",
                )
            })?;
            autoscale_of(&settings).map(Some)
        }
    }
}

/// A performance level by its name; `None` when the offer says that it is none.
fn level(name: &str) -> Result<Option<Level>> {
    match Level::by_name(name.trim()) {
        None if !name.trim().eq_ignore_ascii_case("Invalid") => Err(ApiError::refused(format!(
            "The offer type '{name}' is invalid. It must be S1, S2, S3 or Invalid."
        ))),
        level => Ok(level),
    }
}

/// The performance level that the replacement of an offer asks for, if it does. A client that knows none puts the type
/// back as it was and changes the number, so a number that is not the one in force outweighs it.
pub fn level_of_offer(body: &Value, in_force: u32) -> Result<Option<Throughput>> {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let number = body.pointer("/content/offerThroughput").and_then(Value::as_u64);
    if text("offerVersion") != Some("V1") || number.is_some_and(|number| number != u64::from(in_force)) {
        return Ok(None);
    }
    Ok(level(text("offerType").unwrap_or("Invalid"))?.map(Throughput::Level))
}

/// What the replacement of an offer asks for. Settings for autoscale outweigh the number beside them, which is then
/// only what was in force when the client read the offer.
pub fn of_offer(content: &Value) -> Result<Throughput> {
    if let Some(settings) = content.get("offerAutopilotSettings").filter(|settings| settings.is_object()) {
        return autoscale_of(settings);
    }
    match content.get("offerThroughput").and_then(Value::as_i64) {
        Some(value) => engine(Throughput::manual(value)),
        None => Err(ApiError::bad_request(
            "The offer holds no throughput: content.offerThroughput must be a whole number.",
        )),
    }
}

/// The throughput buckets of an offer: `[{"id":1,"maxThroughputPercentage":30}]`, those that are not named unlimited.
/// Without the member they stay as they are.
pub fn buckets_of(content: &Value) -> Result<Option<[u8; BUCKETS_MAX]>> {
    let Some(list) = content.get("throughputBuckets").filter(|list| !list.is_null()) else { return Ok(None) };
    let wrong = || {
        ApiError::bad_request(format!(
            "The throughput buckets of the offer are invalid: each needs an id from 1 to {BUCKETS_MAX} and a maxThroughputPercentage from 1 to 100."
        ))
    };
    let mut buckets = [BUCKET_UNLIMITED; BUCKETS_MAX];
    for bucket in list.as_array().ok_or_else(wrong)? {
        let number = |name: &str| bucket.get(name).and_then(Value::as_u64).ok_or_else(wrong);
        let (id, percent) = (number("id")? as usize, number("maxThroughputPercentage")?);
        let place = id.checked_sub(1).and_then(|index| buckets.get_mut(index)).ok_or_else(wrong)?;
        *place = u8::try_from(percent)
            .ok()
            .filter(|percent| (1..=BUCKET_UNLIMITED).contains(percent))
            .ok_or_else(wrong)?;
    }
    Ok(Some(buckets))
}

fn autoscale_of(settings: &Value) -> Result<Throughput> {
    let max = settings
        .get("maxThroughput")
        .or_else(|| settings.get("maximumTierThroughput"))
        .and_then(Value::as_i64)
        .ok_or_else(|| ApiError::bad_request("The autoscale settings hold no maxThroughput."))?;
    let increment =
        settings.pointer("/autoUpgradePolicy/throughputPolicy/incrementPercent").and_then(Value::as_i64);
    engine(Throughput::autoscale(max, increment))
}

fn engine(parsed: orrery_engine::Result<Throughput>) -> Result<Throughput> {
    parsed.map_err(|error| ApiError::from_engine(error, Plane::Resources))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn throughput_buckets_are_numbered_percentages() {
        assert_eq!(buckets_of(&json!({})).unwrap(), None);
        let some = json!({"throughputBuckets": [{"id": 2, "maxThroughputPercentage": 30}]});
        assert_eq!(buckets_of(&some).unwrap(), Some([100, 30, 100, 100, 100]));
        for (id, percent) in [(0, 30), (6, 30), (1, 0), (1, 101)] {
            let bad = json!({"throughputBuckets": [{"id": id, "maxThroughputPercentage": percent}]});
            assert_eq!(buckets_of(&bad).unwrap_err().status.as_u16(), 400, "{bad}");
        }
    }

    #[test]
    fn a_level_is_asked_for_by_an_offer_of_the_first_version() {
        let asked = |offer: Value| level_of_offer(&offer, 250);
        let s2 = Some(Throughput::Level(Level::S2));
        assert_eq!(asked(json!({"offerVersion": "V1", "offerType": "S2"})).unwrap(), s2);
        let content =
            |ru: u32| json!({"offerVersion": "V1", "offerType": "S2", "content": {"offerThroughput": ru}});
        assert_eq!(asked(content(250)).unwrap(), s2);
        assert_eq!(asked(content(500)).unwrap(), None);
        assert_eq!(asked(json!({"offerVersion": "V2", "offerType": "S2"})).unwrap(), None);
        assert_eq!(asked(json!({"offerVersion": "V1", "offerType": "S9"})).unwrap_err().status.as_u16(), 400);
    }

    #[test]
    fn the_content_of_an_offer_is_manual_or_autoscale() {
        assert_eq!(of_offer(&json!({"offerThroughput": 500})).unwrap(), Throughput::Manual(500));
        let autoscale = json!({"offerThroughput": 400, "offerAutopilotSettings": {
            "maxThroughput": 5000, "autoUpgradePolicy": {"throughputPolicy": {"incrementPercent": 2}}}});
        assert_eq!(
            of_offer(&autoscale).unwrap(),
            Throughput::Autoscale { max: 5000, increment_percent: Some(2) }
        );
        for bad in [json!({}), json!({"offerThroughput": "x"}), json!({"offerAutopilotSettings": {}})] {
            assert_eq!(of_offer(&bad).unwrap_err().status.as_u16(), 400, "{bad}");
        }
    }
}
