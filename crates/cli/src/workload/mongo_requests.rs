//! The commands that drivers of MongoDB send, each as the bytes of its document.

use bytes::Bytes;
use http::Method;
use orrery_mongo::ext_json::{Reading, parse_document};
use orrery_mongo::{Bson, Document, ValueRef, codec, doc};

use super::client::Call;
use super::items::Shape;
use super::operations::{Operation, batch_id, batch_numbers, new_id};

/// Documents of a page.
const PAGE: i32 = 10;

pub fn request(database: &str, collection: &str, shape: &Shape, operation: Operation) -> Call {
    let (id, partition) = (Shape::id, |number| shape.partition(number));
    let body = match operation {
        Operation::Read(number) => {
            doc! { "find" => collection, "filter" => doc! { "_id" => id(number) }, "limit" => 1, "singleBatch" => true }
        }
        Operation::Create(number) => {
            let document = document(shape, &new_id(number), number, 0);
            doc! { "insert" => collection, "documents" => vec![document.into()] }
        }
        Operation::Upsert(number, revision) => {
            updates(collection, vec![replacement(shape, &id(number), number, revision, true)])
        }
        Operation::Replace(number, revision) => {
            updates(collection, vec![replacement(shape, &id(number), number, revision, false)])
        }
        Operation::Patch(number, revision) => {
            let change = doc! {
                "$set" => doc! { "rev" => revision as i64 },
                "$inc" => doc! { "hits" => 1 },
            };
            updates(collection, vec![doc! { "q" => doc! { "_id" => id(number) }, "u" => change }.into()])
        }
        Operation::Batch(number, revision) => {
            let numbers = batch_numbers(shape, number).zip(revision..);
            let one = |(number, revision)| replacement(shape, &batch_id(number), number, revision, true);
            updates(collection, numbers.map(one).collect())
        }
        Operation::Feed(number) => find(collection, doc! { "pk" => partition(number) }),
        Operation::Query(number) => {
            find(collection, doc! { "pk" => partition(number), "n" => number as i64 })
        }
        Operation::Lookup(number) => find(collection, doc! { "n" => number as i64 }),
        Operation::Top(number) => {
            let mut find = find(collection, of_city(partition(number), number));
            find.push("sort", doc! { "n" => -1 });
            find
        }
        Operation::Count(number) => {
            let stages: Vec<Bson> = vec![
                doc! { "$match" => of_city(partition(number), number) }.into(),
                doc! { "$group" => doc! { "_id" => 1, "n" => doc! { "$sum" => 1 } } }.into(),
            ];
            doc! { "aggregate" => collection, "pipeline" => stages, "cursor" => Document::new() }
        }
    };
    command(database, body)
}

/// Makes the collection, with its throughput.
pub fn create_collection(database: &str, collection: &str, throughput: u32) -> Call {
    let body = doc! {
        "customAction" => "CreateCollection",
        "collection" => collection,
        "offerThroughput" => throughput as i32,
    };
    command(database, body)
}

/// Tells whether the database is there.
pub fn list_database(database: &str) -> Call {
    let body = doc! { "listDatabases" => 1, "nameOnly" => true, "filter" => doc! { "name" => database } };
    command("admin", body)
}

pub fn drop_database(database: &str) -> Call {
    command(database, doc! { "dropDatabase" => 1 })
}

fn of_city(partition: String, number: u64) -> Document {
    doc! { "pk" => partition, "city" => Shape::city(number) }
}

fn find(collection: &str, filter: Document) -> Document {
    doc! { "find" => collection, "filter" => filter, "limit" => PAGE, "singleBatch" => true }
}

fn updates(collection: &str, updates: Vec<Bson>) -> Document {
    doc! { "update" => collection, "updates" => updates }
}

fn replacement(shape: &Shape, id: &str, number: u64, revision: u64, upsert: bool) -> Bson {
    let document = document(shape, id, number, revision);
    doc! { "q" => doc! { "_id" => id }, "u" => document, "upsert" => upsert }.into()
}

/// The same members as an item of the other protocols has.
fn document(shape: &Shape, id: &str, number: u64, revision: u64) -> Document {
    let text = shape.document(id, number, revision);
    let mut document = parse_document(&text, Reading::Data).unwrap_or_default();
    if let Some(id) = document.remove("id") {
        document.push_front("_id", id);
    }
    document
}

pub fn command(database: &str, mut body: Document) -> Call {
    let path = body.first().map(|(name, _)| name.to_string()).unwrap_or_default();
    body.push("$db", database);
    let mut bytes = Vec::new();
    codec::write_document(ValueRef::OwnedDocument(&body), &mut bytes);
    Call {
        method: Method::POST,
        path,
        link: String::new(),
        kind: "",
        headers: Vec::new(),
        body: Bytes::from(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { size_bytes: 300, partitions: 7 };

    fn sent(operation: Operation) -> Document {
        codec::read_document(&request("d", "c", &SHAPE, operation).body).unwrap()
    }

    #[test]
    fn documents_have_their_id_in_front() {
        let sent = sent(Operation::Create(12));
        let documents = sent.get("documents").and_then(Bson::as_array).unwrap();
        let document = documents[0].as_document().unwrap();
        assert_eq!(document.first().unwrap().1.as_str(), Some("new-000000012"));
        assert!(!document.contains("id"));
        assert_eq!(document.get("n").and_then(Bson::as_i64), Some(12));
    }

    #[test]
    fn a_batch_is_one_command_of_ten_upserts() {
        let sent = sent(Operation::Batch(12, 1));
        assert_eq!(sent.first().map(|(name, _)| name.to_string()).as_deref(), Some("update"));
        assert_eq!(sent.get("updates").and_then(Bson::as_array).map(<[Bson]>::len), Some(10));
        assert_eq!(sent.get("$db").and_then(Bson::as_str), Some("d"));
    }
}
