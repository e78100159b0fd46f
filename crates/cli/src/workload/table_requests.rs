//! The requests that SDKs of the Table API send.

use std::fmt::Write as _;

use bytes::Bytes;
use http::Method;

use super::client::Call;
use super::items::Shape;
use super::operations::{Operation, batch_id, batch_numbers, new_id};

type Headers = Vec<(&'static str, String)>;

const ACCEPT: &str = "application/json;odata=minimalmetadata";

/// `path` is that of the table.
pub fn request(path: &str, shape: &Shape, operation: Operation) -> Call {
    match operation {
        Operation::Read(number) => {
            call(Method::GET, entity(path, shape, &Shape::id(number), number), Vec::new(), "")
        }
        Operation::Create(number) => {
            let prefer = vec![("prefer", "return-no-content".to_owned())];
            call(Method::POST, path.to_owned(), prefer, shape.entity(&new_id(number), number, 0))
        }
        Operation::Upsert(number, revision) => write(path, shape, number, revision, false),
        Operation::Replace(number, revision) => write(path, shape, number, revision, true),
        Operation::Patch(number, revision) => {
            let address = entity(path, shape, &Shape::id(number), number);
            let body = format!(r#"{{"rev":{revision},"hits":{}}}"#, revision % 1000);
            call(Method::from_bytes(b"MERGE").expect("a token"), address, Vec::new(), body)
        }
        Operation::Batch(number, revision) => batch(path, shape, number, revision),
        Operation::Feed(number) => {
            let filter = format!("PartitionKey%20eq%20%27{}%27", shape.partition(number));
            query(path, &format!("$filter={filter}&$top=10"))
        }
        Operation::Query(number) => {
            let partition = shape.partition(number);
            query(path, &format!("$filter=PartitionKey%20eq%20%27{partition}%27%20and%20n%20eq%20{number}"))
        }
        Operation::Lookup(number) => query(path, &format!("$filter=n%20eq%20{number}")),
        Operation::Top(number) => {
            let (partition, city) = (shape.partition(number), Shape::city(number));
            let filter = format!("PartitionKey%20eq%20%27{partition}%27%20and%20city%20eq%20%27{city}%27");
            query(path, &format!("$filter={filter}&$top=10"))
        }
        Operation::Count(_) => unreachable!("refused with the options"),
    }
}

/// The request that makes a table. `prefix` leads from the endpoint to the account, if paths name it.
pub fn create_table(prefix: &str, table: &str, throughput: u32) -> Call {
    let headers = vec![("x-ms-offer-throughput", throughput.to_string())];
    call(Method::POST, format!("{prefix}Tables"), headers, format!(r#"{{"TableName":"{table}"}}"#))
}

pub fn delete_table(prefix: &str, table: &str) -> Call {
    call(Method::DELETE, format!("{prefix}Tables('{table}')"), Vec::new(), "")
}

fn write(path: &str, shape: &Shape, number: u64, revision: u64, replace: bool) -> Call {
    let id = Shape::id(number);
    let headers = if replace { vec![("if-match", "*".to_owned())] } else { Vec::new() };
    call(Method::PUT, entity(path, shape, &id, number), headers, shape.entity(&id, number, revision))
}

fn query(path: &str, query: &str) -> Call {
    let mut call = call(Method::GET, format!("{path}()"), Vec::new(), "");
    call.path = format!("{}?{query}", call.path);
    call
}

fn batch(path: &str, shape: &Shape, number: u64, revision: u64) -> Call {
    let prefix = path.rfind('/').map_or("", |at| &path[..=at]);
    let mut body = String::from("--batch_a\r\nContent-Type: multipart/mixed; boundary=changeset_a\r\n\r\n");
    for (number, revision) in batch_numbers(shape, number).zip(revision..) {
        let id = batch_id(number);
        let (address, entity) = (entity(path, shape, &id, number), shape.entity(&id, number, revision));
        let _ = write!(
            body,
            "--changeset_a\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             PUT http://localhost/{address} HTTP/1.1\r\nAccept: {ACCEPT}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{entity}\r\n",
            entity.len()
        );
    }
    body.push_str("--changeset_a--\r\n--batch_a--\r\n");
    let mut call = call(Method::POST, format!("{prefix}$batch"), Vec::new(), body);
    call.headers.retain(|(name, _)| *name != "content-type");
    call.headers.push(("content-type", "multipart/mixed; boundary=batch_a".to_owned()));
    call
}

fn entity(path: &str, shape: &Shape, id: &str, number: u64) -> String {
    format!("{path}(PartitionKey='{}',RowKey='{id}')", shape.partition(number))
}

fn call(method: Method, path: String, mut headers: Headers, body: impl Into<Bytes>) -> Call {
    let body = body.into();
    headers.push(("accept", ACCEPT.to_owned()));
    headers.push(("dataserviceversion", "3.0".to_owned()));
    if !body.is_empty() {
        headers.push(("content-type", "application/json".to_owned()));
    }
    Call { method, link: path.clone(), path, kind: "", headers, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { size_bytes: 300, partitions: 7 };

    #[test]
    fn entities_are_addressed_by_both_keys() {
        let call = request("orrery/t", &SHAPE, Operation::Upsert(12, 3));
        assert_eq!(call.path, "orrery/t(PartitionKey='partition-000005',RowKey='item-000000012')");
        let entity: serde_json::Value = serde_json::from_slice(&call.body).unwrap();
        assert_eq!(
            (entity["PartitionKey"].as_str(), entity["rev"].as_u64()),
            (Some("partition-000005"), Some(3))
        );
    }

    #[test]
    fn what_is_asked_is_not_signed() {
        let call = request("t", &SHAPE, Operation::Lookup(12));
        assert_eq!((call.path.as_str(), call.link.as_str()), ("t()?$filter=n%20eq%2012", "t()"));
    }

    #[test]
    fn a_batch_is_one_changeset_of_one_partition() {
        let call = request("orrery/t", &SHAPE, Operation::Batch(12, 1));
        let body = String::from_utf8(call.body.to_vec()).unwrap();
        assert_eq!(call.path, "orrery/$batch");
        assert_eq!(body.matches("orrery/t(PartitionKey='partition-000005'").count(), 10);
    }
}
