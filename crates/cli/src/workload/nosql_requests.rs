//! The requests that SDKs of the NoSQL API send.

use std::fmt::Display;

use bytes::Bytes;
use http::Method;

use super::client::Call;
use super::items::Shape;
use super::operations::{Operation, batch_id, batch_numbers, new_id};

const BY_NUMBER: &str = "SELECT * FROM c WHERE c.n = @p";
const TOP: &str = "SELECT TOP 10 * FROM c WHERE c.city = @p ORDER BY c.n";
const COUNT: &str = "SELECT VALUE COUNT(1) FROM c WHERE c.city = @p";

type Headers = Vec<(&'static str, String)>;

pub fn request(container: &str, shape: &Shape, operation: Operation) -> Call {
    let maker = Maker { container, shape };
    match operation {
        Operation::Read(number) => maker.item(Method::GET, number, Vec::new(), Bytes::new()),
        Operation::Create(number) => maker.write(&new_id(number), number, 0, false),
        Operation::Upsert(number, revision) => maker.write(&Shape::id(number), number, revision, true),
        Operation::Replace(number, revision) => {
            let document = shape.document(&Shape::id(number), number, revision);
            maker.item(Method::PUT, number, Vec::new(), document.into())
        }
        Operation::Patch(number, revision) => {
            let body = format!(
                r#"{{"operations":[{{"op":"set","path":"/rev","value":{revision}}},{{"op":"incr","path":"/hits","value":1}}]}}"#
            );
            let headers = vec![("content-type", "application/json-patch+json".to_owned())];
            maker.item(Method::PATCH, number, headers, body.into())
        }
        Operation::Batch(number, revision) => maker.batch(number, revision),
        Operation::Feed(number) => {
            let headers = vec![maker.partition_key(number), ("x-ms-max-item-count", "10".into())];
            maker.docs(Method::GET, headers, Bytes::new())
        }
        Operation::Query(number) => maker.query(BY_NUMBER, number, maker.partition_key(number)),
        Operation::Lookup(number) => {
            maker.query(BY_NUMBER, number, ("x-ms-documentdb-query-enablecrosspartition", "True".to_owned()))
        }
        Operation::Top(number) => maker.query(TOP, quoted_city(number), maker.partition_key(number)),
        Operation::Count(number) => maker.query(COUNT, quoted_city(number), maker.partition_key(number)),
    }
}

fn quoted_city(number: u64) -> String {
    format!("\"{}\"", Shape::city(number))
}

struct Maker<'a> {
    container: &'a str,
    shape: &'a Shape,
}

impl Maker<'_> {
    fn write(&self, id: &str, number: u64, revision: u64, upsert: bool) -> Call {
        let mut headers = vec![self.partition_key(number), ("content-type", "application/json".to_owned())];
        if upsert {
            headers.push(("x-ms-documentdb-is-upsert", "True".to_owned()));
        }
        self.docs(Method::POST, headers, self.shape.document(id, number, revision).into())
    }

    fn batch(&self, number: u64, revision: u64) -> Call {
        let operations: Vec<String> = batch_numbers(self.shape, number)
            .zip(revision..)
            .map(|(number, revision)| {
                let document = self.shape.document(&batch_id(number), number, revision);
                format!(r#"{{"operationType":"Upsert","resourceBody":{document}}}"#)
            })
            .collect();
        let headers = vec![
            self.partition_key(number),
            ("content-type", "application/json".to_owned()),
            ("x-ms-cosmos-is-batch-request", "True".to_owned()),
            ("x-ms-cosmos-batch-atomic", "True".to_owned()),
        ];
        self.docs(Method::POST, headers, format!("[{}]", operations.join(",")).into())
    }

    fn query(&self, text: &str, parameter: impl Display, scope: (&'static str, String)) -> Call {
        let headers = vec![
            scope,
            ("content-type", "application/query+json".to_owned()),
            ("x-ms-documentdb-isquery", "True".to_owned()),
        ];
        let body = format!(r#"{{"query":"{text}","parameters":[{{"name":"@p","value":{parameter}}}]}}"#);
        self.docs(Method::POST, headers, body.into())
    }

    fn item(&self, method: Method, number: u64, mut headers: Headers, body: Bytes) -> Call {
        let path = format!("{}/docs/{}", self.container, Shape::id(number));
        headers.push(self.partition_key(number));
        Call { method, link: path.clone(), path, kind: "docs", headers, body }
    }

    fn docs(&self, method: Method, headers: Headers, body: Bytes) -> Call {
        let path = format!("{}/docs", self.container);
        Call { method, path, link: self.container.to_owned(), kind: "docs", headers, body }
    }

    fn partition_key(&self, number: u64) -> (&'static str, String) {
        ("x-ms-documentdb-partitionkey", format!(r#"["{}"]"#, self.shape.partition(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_stays_in_one_partition() {
        let shape = Shape { size_bytes: 300, partitions: 7 };
        let call = request("dbs/d/colls/c", &shape, Operation::Batch(12, 1));
        let key = &call.headers[0].1;
        let body: serde_json::Value = serde_json::from_slice(&call.body).unwrap();
        for operation in body.as_array().unwrap() {
            assert_eq!(*key, format!("[{}]", operation["resourceBody"]["pk"]));
        }
    }
}
