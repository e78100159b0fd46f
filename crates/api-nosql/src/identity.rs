//! `GET /_orrery/whoami`: who asks, what that allows, and the limits by which the account works.
//!
//! A client with a person in front of it says "read-only" before a button is pressed, and how many partitions a
//! throughput makes before it is set. Everybody whom the account knows may ask; nothing here is secret.

use http::StatusCode;
use orrery_engine::access::{KeySlot, Principal};
use serde_json::json;

use crate::errors::Result;
use crate::headers::Answer;
use crate::service::Context;

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let (principal, writes) = match context.principal {
        Principal::Key(slot) => (key_name(*slot), slot.writes()),
        Principal::Directory => ("directory", true),
        // What a token allows depends on the resource; it is asked for where it is used.
        Principal::Granted(_) => ("resourceToken", false),
    };
    let account = context.account();
    let config = account.config();
    let service = &context.service.config;
    let answer = json!({
        "principal": principal,
        "writes": writes,
        "account": service.account_name,
        "region": service.region,
        "version": service.version,
        "throttling": config.throttling.is_on(),
        "serverless": config.serverless,
        "partitionThroughputLimit": config.partition_throughput_limit,
        "partitionSizeLimitBytes": config.partition_size_limit,
        "logicalPartitionSizeLimitBytes": config.logical_partition_size_limit,
    });
    Ok(context.answer(StatusCode::OK).body(answer.to_string().into_bytes()))
}

fn key_name(slot: KeySlot) -> &'static str {
    match slot {
        KeySlot::Primary => "primary",
        KeySlot::Secondary => "secondary",
        KeySlot::PrimaryReadonly => "primaryReadonly",
        KeySlot::SecondaryReadonly => "secondaryReadonly",
    }
}
