//! The cases, each named by the sentence it proves. This SDK has no bulk and no feed of items other than a query or
//! the change feed; what it has is here.

use std::time::Duration;

use azure_data_cosmos::models::{
    ContainerProperties, PartitionKeyDefinition, PatchInstructions, PatchOperation, ThroughputProperties,
    UniqueKey, UniqueKeyPolicy,
};
use azure_data_cosmos::options::{
    BatchOptions, BatchReplaceOptions, BinaryEncodingOptions, ContentResponseOnWrite, ItemReadOptions,
    ItemWriteOptions, OperationOptionsBuilder, PatchItemOptions, PatchStrategy, Precondition,
};
use azure_data_cosmos::{PartitionKey, ResourceId, TransactionalBatch};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Counts, Fixture, Problem, connect, refused, unique};

pub async fn run_all(counts: &mut Counts, fixture: &Fixture) {
    counts.run("a database is created, read by name and by rid, and deleted", databases(fixture)).await;
    counts.run("a container comes back with the policies the service fills in", defaults(fixture)).await;
    counts.run("a container is replaced and deleted", replaced(fixture)).await;
    counts.run("thirty thousand units make three partitions", wide(fixture)).await;
    counts.run("an item is created, read, replaced and deleted", life(fixture)).await;
    counts.run("upsert inserts with 201 and replaces with 200", upsert(fixture)).await;
    counts.run("the answer to a write is empty unless the client wants it", content(fixture)).await;
    counts.run("whole numbers are exact and properties keep their order", exact(fixture)).await;
    counts.run("null, missing and empty partition keys are three places", keys(fixture)).await;
    counts.run("a wrong item is refused", wrong_items(fixture)).await;
    counts.run("ids may hold blanks, percent signs and any script", ids(fixture)).await;
    counts.run("a hierarchical key has up to three levels", levels(fixture)).await;
    counts.run("every patch operation does what it says, on either side", patch(fixture)).await;
    counts.run("a stale etag is refused, and an unchanged item is not sent again", conditions(fixture)).await;
    counts.run("a batch does all of its operations", batch(fixture)).await;
    counts.run("a failed batch leaves no trace", rollback(fixture)).await;
    counts.run("items expire as their container and they themselves say", expiry(fixture)).await;
    counts.run("unique keys hold within a partition key", unique_keys(fixture)).await;
    counts.run("throughput is read and replaced", throughput(fixture)).await;
    counts.run("another client reads what a session token promises", session(fixture)).await;
    counts.run("a wrong key opens nothing", wrong_key(fixture)).await;
}

pub fn definition(id: &str, paths: &[&str]) -> ContainerProperties {
    let paths = paths.iter().map(|path| path.to_string().into()).collect();
    ContainerProperties::new(id.to_owned(), PartitionKeyDefinition::new(paths))
}

/// Numbers that a double cannot hold, beside one that it can.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Numbers {
    id: String,
    pk: String,
    large: i64,
    least: i64,
    half: f64,
}

/// Asks for the written item in the answer.
fn loud() -> Option<ItemWriteOptions> {
    let options = OperationOptionsBuilder::new()
        .with_content_response_on_write(ContentResponseOnWrite::Enabled)
        .build();
    Some(ItemWriteOptions::default().with_operation_options(options))
}

fn quiet() -> Option<ItemWriteOptions> {
    let options = OperationOptionsBuilder::new()
        .with_content_response_on_write(ContentResponseOnWrite::Disabled)
        .build();
    Some(ItemWriteOptions::default().with_operation_options(options))
}

fn if_match(etag: &str) -> Option<ItemWriteOptions> {
    Some(ItemWriteOptions::default().with_precondition(Precondition::if_match(etag.to_owned())))
}

/// The item without the properties that the server adds.
fn plain(mut item: Value) -> Value {
    if let Some(properties) = item.as_object_mut() {
        properties.retain(|name, _| !name.starts_with('_'));
    }
    item
}

async fn databases(f: &Fixture) -> Result<(), Problem> {
    let id = unique("rust-extra");
    let created = f.client.create_database(&id, None).await?.into_model()?;
    let database = f.client.database_client(&id);
    let read = database.read(None).await?.into_model()?;
    equal!(read.id, created.id);
    let rid = read.system_properties.resource_id.clone().ok_or("no _rid")?;
    let by_rid = f.client.database_client(ResourceId::from(rid)).read(None).await?.into_model()?;
    equal!(by_rid.id, Some(id.clone()));
    refused(409, f.client.create_database(&id, None).await)?;
    database.delete(None).await?;
    refused(404, database.read(None).await)
}

async fn defaults(f: &Fixture) -> Result<(), Problem> {
    let container = f.container(definition("defaults", &["/pk"]), None).await?;
    let properties = container.read(None).await?.into_model()?;
    equal!(properties.partition_key.paths(), ["/pk"]);
    let policy = properties.indexing_policy.ok_or("no indexing policy")?;
    equal!(policy.excluded_paths[0].path, "/\"_etag\"/?");
    refused(409, f.database.create_container(definition("defaults", &["/pk"]), None).await)
}

async fn replaced(f: &Fixture) -> Result<(), Problem> {
    let container = f.container(definition("replaced", &["/pk"]), None).await?;
    let properties = container.read(None).await?.into_model()?;
    let after = container.replace(properties.with_default_ttl(60), None).await?.into_model()?;
    equal!(after.default_ttl, 60.into());
    container.delete(None).await?;
    refused(404, container.read(None).await)
}

async fn wide(f: &Fixture) -> Result<(), Problem> {
    let container =
        f.container(definition("wide", &["/pk"]), Some(ThroughputProperties::manual(30_000))).await?;
    equal!(container.read_feed_ranges(None).await?.len(), 3);
    for n in 0..30 {
        let key = format!("k{n}");
        container.create_item(key.clone(), "i", json!({"id": "i", "pk": key}), None).await?;
    }
    for n in 0..30 {
        let key = format!("k{n}");
        let item: Value = container.read_item(key.clone(), "i", None).await?.into_model()?;
        equal!(item["pk"], json!(key));
    }
    Ok(())
}

async fn life(f: &Fixture) -> Result<(), Problem> {
    let created = f.items.create_item("p", "life", json!({"id": "life", "pk": "p", "n": 1}), loud()).await?;
    equal!(u16::from(created.status()), 201);
    let etag = created.headers().etag().ok_or("no etag")?.to_string();
    let created: Value = created.into_model()?;
    equal!(created["_etag"], json!(etag));
    let read: Value = f.items.read_item("p", "life", None).await?.into_model()?;
    equal!(read, created);
    let next = json!({"id": "life", "pk": "p", "n": 2});
    let replaced: Value = f.items.replace_item("p", "life", &next, loud()).await?.into_model()?;
    equal!(plain(replaced.clone()), next);
    equal!(replaced["_rid"], created["_rid"]);
    equal!(u16::from(f.items.delete_item("p", "life", None).await?.status()), 204);
    refused(404, f.items.read_item("p", "life", None).await)?;
    refused(404, f.items.delete_item("p", "life", None).await)?;
    refused(404, f.items.replace_item("p", "life", &next, None).await)
}

async fn upsert(f: &Fixture) -> Result<(), Problem> {
    let first = f.items.upsert_item("p", "up", json!({"id": "up", "pk": "p"}), None).await?;
    equal!(u16::from(first.status()), 201);
    let second = f.items.upsert_item("p", "up", json!({"id": "up", "pk": "p", "n": 2}), None).await?;
    equal!(u16::from(second.status()), 200);
    Ok(())
}

async fn content(f: &Fixture) -> Result<(), Problem> {
    let answer = f.items.create_item("p", "quiet", json!({"id": "quiet", "pk": "p"}), quiet()).await?;
    equal!(answer.headers().etag().is_some(), true);
    equal!(answer.into_body().is_empty(), true);
    let answer = f.items.upsert_item("p", "quiet", json!({"id": "quiet", "pk": "p"}), loud()).await?;
    equal!(answer.into_body().is_empty(), false);
    Ok(())
}

async fn exact(f: &Fixture) -> Result<(), Problem> {
    // This SDK speaks a binary form of JSON unless told not to; both forms must hold the same numbers.
    let numbers =
        Numbers { id: "binary".into(), pk: "p".into(), large: 9007199254740993, least: i64::MIN, half: 0.5 };
    f.items.create_item("p", "binary", &numbers, None).await?;
    equal!(f.items.read_item("p", "binary", None).await?.into_model::<Numbers>()?, numbers);

    let text = r#"{"id":"text","zulu":9007199254740993,"alpha":-9223372036854775808,"pk":"p","m":{"b":1.5,"a":[true,null,"ü€😀"]}"#;
    let item = serde_json::value::RawValue::from_string(format!("{text}}}"))?;
    let as_text = || {
        let encoding = BinaryEncodingOptions::new().with_enabled(false);
        OperationOptionsBuilder::new().with_binary_encoding(encoding).build()
    };
    let options = ItemWriteOptions::default().with_operation_options(as_text());
    f.items.create_item("p", "text", item, Some(options)).await?;
    let options = ItemReadOptions::default().with_operation_options(as_text());
    let body = f.items.read_item("p", "text", Some(options)).await?.into_body().single()?;
    let read = std::str::from_utf8(&body)?;
    equal!(read.strip_prefix(text).and_then(|rest| rest.chars().next()), Some(','));
    Ok(())
}

async fn keys(f: &Fixture) -> Result<(), Problem> {
    let places = [
        (PartitionKey::from(PartitionKey::NULL), json!({"id": "k", "pk": null, "kind": "null"})),
        (PartitionKey::from(PartitionKey::UNDEFINED), json!({"id": "k", "kind": "missing"})),
        (PartitionKey::from(""), json!({"id": "k", "pk": "", "kind": "empty"})),
        (PartitionKey::from(true), json!({"id": "k", "pk": true, "kind": "true"})),
        (PartitionKey::try_from(-1.5)?, json!({"id": "k", "pk": -1.5, "kind": "number"})),
    ];
    for (key, item) in &places {
        f.items.create_item(key.clone(), "k", item, None).await?;
    }
    for (key, item) in &places {
        let read: Value = f.items.read_item(key.clone(), "k", None).await?.into_model()?;
        equal!(read["kind"], item["kind"]);
    }
    Ok(())
}

async fn wrong_items(f: &Fixture) -> Result<(), Problem> {
    f.items.create_item("p", "twice", json!({"id": "twice", "pk": "p"}), None).await?;
    refused(409, f.items.create_item("p", "twice", json!({"id": "twice", "pk": "p"}), None).await)?;
    refused(400, f.items.create_item("q", "key", json!({"id": "key", "pk": "p"}), None).await)?;
    refused(400, f.items.create_item("p", "none", json!({"pk": "p"}), None).await)?;
    let huge = json!({"id": "huge", "pk": "p", "text": "x".repeat(2 * 1024 * 1024)});
    refused(413, f.items.create_item("p", "huge", huge, None).await)
}

async fn ids(f: &Fixture) -> Result<(), Problem> {
    let long = "x".repeat(255);
    for id in ["a b", "100%", "a%20b", "Ünïcødé", "日本", &long] {
        f.items.create_item("ids", id, json!({"id": id, "pk": "ids"}), None).await?;
        let read: Value = f.items.read_item("ids", id, None).await?.into_model()?;
        equal!(read["id"], json!(id));
        f.items.delete_item("ids", id, None).await?;
    }
    Ok(())
}

async fn levels(f: &Fixture) -> Result<(), Problem> {
    let container = f.container(definition("levels", &["/tenant", "/user", "/session"]), None).await?;
    let item = json!({"id": "x", "tenant": "a", "user": true, "session": "s"});
    container.create_item(("a", true, "s"), "x", &item, None).await?;
    let read: Value = container.read_item(("a", true, "s"), "x", None).await?.into_model()?;
    equal!(plain(read), item);
    refused(404, container.read_item(("a", false, "s"), "x", None).await)?;
    refused(400, f.database.create_container(definition("deep", &["/a", "/b", "/c", "/d"]), None).await)
}

async fn patch(f: &Fixture) -> Result<(), Problem> {
    for (id, strategy) in [("there", PatchStrategy::ServerSide), ("here", PatchStrategy::ClientSide)] {
        let start =
            json!({"id": id, "pk": "p", "n": 1, "gone": 1, "old": "v", "list": [1, 3], "keep": {"a": 1}});
        f.items.create_item("p", id, start, None).await?;
        let instructions = PatchInstructions::new()
            .with_operation(PatchOperation::add("/list/1", json!(2)))
            .with_operation(PatchOperation::add("/list/-", json!(4)))
            .with_operation(PatchOperation::set("/keep/b", Value::Null))
            .with_operation(PatchOperation::replace("/list/0", json!("one")))
            .with_operation(PatchOperation::remove("/gone"))
            .with_operation(PatchOperation::increment("/n", 41i64))
            .with_operation(PatchOperation::move_value("/old", "/keep/moved"));
        let options = || Some(PatchItemOptions::default().with_strategy(strategy));
        let answer = f.items.patch_item("p", id, instructions, options()).await?;
        let wanted = json!({
            "id": id, "pk": "p", "n": 42, "list": ["one", 2, 3, 4], "keep": {"a": 1, "b": null, "moved": "v"},
        });
        equal!(plain(answer.into_model()?), wanted);
        let absent = PatchInstructions::new().with_operation(PatchOperation::remove("/absent"));
        refused(400, f.items.patch_item("p", id, absent, options()).await)?;
        let read: Value = f.items.read_item("p", id, None).await?.into_model()?;
        equal!(plain(read), wanted);
    }
    Ok(())
}

async fn conditions(f: &Fixture) -> Result<(), Problem> {
    let item = |n: i32| json!({"id": "etag", "pk": "p", "n": n});
    let created = f.items.create_item("p", "etag", item(1), None).await?;
    let first = created.headers().etag().ok_or("no etag")?.to_string();
    let unless_changed =
        || Some(ItemReadOptions::default().with_precondition(Precondition::if_none_match(first.clone())));
    // Whether "not modified" is an answer or an error is this SDK's affair; the status is the service's.
    let status = match f.items.read_item("p", "etag", unless_changed()).await {
        Ok(answer) => u16::from(answer.status()),
        Err(error) => u16::from(error.status()),
    };
    equal!(status, 304);
    let upserted = f.items.upsert_item("p", "etag", item(2), None).await?;
    let second = upserted.headers().etag().ok_or("no etag")?.to_string();
    refused(412, f.items.replace_item("p", "etag", item(3), if_match(&first)).await)?;
    refused(412, f.items.upsert_item("p", "etag", item(3), if_match(&first)).await)?;
    refused(412, f.items.delete_item("p", "etag", if_match(&first)).await)?;
    equal!(u16::from(f.items.read_item("p", "etag", unless_changed()).await?.status()), 200);
    f.items.replace_item("p", "etag", item(3), if_match(&second)).await?;
    Ok(())
}

async fn batch(f: &Fixture) -> Result<(), Problem> {
    f.items.create_item("batch", "old", json!({"id": "old", "pk": "batch", "n": 1}), None).await?;
    f.items.create_item("batch", "gone", json!({"id": "gone", "pk": "batch"}), None).await?;
    let batch = TransactionalBatch::new("batch")
        .create_item(json!({"id": "new", "pk": "batch"}))?
        .upsert_item(json!({"id": "up", "pk": "batch"}), None)?
        .replace_item("old", json!({"id": "old", "pk": "batch", "n": 2}), None)?
        .read_item("old", None)
        .delete_item("gone", None);
    let loud = OperationOptionsBuilder::new()
        .with_content_response_on_write(ContentResponseOnWrite::Enabled)
        .build();
    let options = BatchOptions::default().with_operation_options(loud);
    let answer = f.items.execute_transactional_batch(batch, Some(options)).await?.into_model()?;
    let statuses: Vec<_> = answer.results().iter().map(|each| each.status_code()).collect();
    equal!(statuses, [201, 201, 200, 200, 204]);
    let read: Option<Value> = answer.results()[3].into_model()?;
    equal!(read.ok_or("the read brought nothing")?["n"], json!(2));
    refused(404, f.items.read_item("batch", "gone", None).await)
}

async fn rollback(f: &Fixture) -> Result<(), Problem> {
    f.items.create_item("rollback", "old", json!({"id": "old", "pk": "rollback"}), None).await?;
    let stale = BatchReplaceOptions::default()
        .with_precondition(Precondition::if_match("\"not-this-one\"".to_owned()));
    let batch = TransactionalBatch::new("rollback")
        .create_item(json!({"id": "new", "pk": "rollback"}))?
        .replace_item("old", json!({"id": "old", "pk": "rollback"}), Some(stale))?
        .delete_item("old", None);
    let answer = f.items.execute_transactional_batch(batch, None).await?.into_model()?;
    let statuses: Vec<_> = answer.results().iter().map(|each| each.status_code()).collect();
    equal!(statuses, [424, 412, 424]);
    refused(404, f.items.read_item("rollback", "new", None).await)?;
    f.items.read_item("rollback", "old", None).await?;
    Ok(())
}

async fn expiry(f: &Fixture) -> Result<(), Problem> {
    let container = f.container(definition("expiring", &["/pk"]).with_default_ttl(1), None).await?;
    container.create_item("p", "default", json!({"id": "default", "pk": "p"}), None).await?;
    container.create_item("p", "never", json!({"id": "never", "pk": "p", "ttl": -1}), None).await?;
    tokio::time::sleep(Duration::from_millis(2200)).await;
    refused(404, container.read_item("p", "default", None).await)?;
    container.read_item("p", "never", None).await?;
    refused(400, container.create_item("p", "wrong", json!({"id": "wrong", "pk": "p", "ttl": 0}), None).await)
}

async fn unique_keys(f: &Fixture) -> Result<(), Problem> {
    let policy = UniqueKeyPolicy::default().with_unique_key(UniqueKey::default().with_path("/email"));
    let properties = definition("unique", &["/pk"]).with_unique_key_policy(policy);
    let container = f.container(properties, None).await?;
    container.create_item("p", "1", json!({"id": "1", "pk": "p", "email": "a"}), None).await?;
    refused(409, container.create_item("p", "2", json!({"id": "2", "pk": "p", "email": "a"}), None).await)?;
    container.create_item("q", "2", json!({"id": "2", "pk": "q", "email": "a"}), None).await?;
    Ok(())
}

async fn throughput(f: &Fixture) -> Result<(), Problem> {
    let container =
        f.container(definition("offers", &["/pk"]), Some(ThroughputProperties::manual(500))).await?;
    let read = container.read_throughput(None).await?.ok_or("no offer")?;
    equal!(read.throughput(), Some(500));
    container.begin_replace_throughput(ThroughputProperties::manual(700), None).await?.await?;
    let read = container.read_throughput(None).await?.ok_or("no offer")?;
    equal!(read.throughput(), Some(700));
    equal!(f.database.read_throughput(None).await?.is_none(), true);
    let automatic = Some(ThroughputProperties::autoscale(4000, Some(1)));
    let container = f.container(definition("autoscale", &["/pk"]), automatic).await?;
    let read = container.read_throughput(None).await?.ok_or("no offer")?;
    equal!(read.autoscale_maximum(), Some(4000));
    Ok(())
}

async fn session(f: &Fixture) -> Result<(), Problem> {
    let item = json!({"id": "session", "pk": "p"});
    let written = f.items.create_item("p", "session", item, None).await?;
    let token = written.headers().session_token().ok_or("no session token")?.clone();
    let other = connect(&crate::variable("COSMOS_KEY")?).await?;
    let database = other.database_client(f.database.name().ok_or("a database addressed by name")?);
    let container = database.container_client("items", None).await?;
    container.read_item("p", "session", Some(ItemReadOptions::default().with_session_token(token))).await?;
    Ok(())
}

async fn wrong_key(f: &Fixture) -> Result<(), Problem> {
    let name = f.database.name().ok_or("a database addressed by name")?;
    // The client reads the account when it is built, so the refusal may come then or with the first request.
    let refusal = match connect("d3Jvbmc=").await {
        Ok(other) => other.database_client(name).read(None).await.err().map(|error| error.to_string()),
        Err(problem) => Some(problem.to_string()),
    };
    equal!(refusal.is_some_and(|text| text.contains("401")), true);
    Ok(())
}
