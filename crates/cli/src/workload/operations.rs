//! The operations a workload can run, each as the request that the SDKs send for it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use http::Method;

use super::client::Call;
use super::items::{Chooser, Random, Shape};

/// Operations of one atomic batch.
const BATCH_OPERATIONS: u64 = 10;

/// Names and what they do, for the help.
pub const NAMES: [(&str, &str); 10] = [
    ("read", "read an item by id and partition key"),
    ("upsert", "write an item that exists, whole"),
    ("create", "write an item that does not exist"),
    ("replace", "replace an item that exists"),
    ("patch", "set one member, increment another"),
    ("batch", "ten upserts in one transaction"),
    ("feed", "read a page of ten items of one logical partition"),
    ("query", "a query by a number, within one logical partition"),
    ("mix95", "95 % reads, 5 % upserts; any mixNN from mix1 to mix99"),
    ("mix50", "half reads, half upserts"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Upsert,
    Create,
    Replace,
    Patch,
    Batch,
    Feed,
    Query,
    Mix { read_percent: u8 },
}

impl Kind {
    pub fn parse(name: &str) -> Option<Kind> {
        Some(match name {
            "read" => Kind::Read,
            "upsert" => Kind::Upsert,
            "create" => Kind::Create,
            "replace" => Kind::Replace,
            "patch" => Kind::Patch,
            "batch" => Kind::Batch,
            "feed" => Kind::Feed,
            "query" => Kind::Query,
            "mix" => Kind::Mix { read_percent: 95 },
            _ => Kind::Mix {
                read_percent: name
                    .strip_prefix("mix")?
                    .parse()
                    .ok()
                    .filter(|percent| (1..=99).contains(percent))?,
            },
        })
    }

    pub fn name(self) -> String {
        match self {
            Kind::Mix { read_percent } => format!("mix{read_percent}"),
            other => format!("{other:?}").to_lowercase(),
        }
    }
}

/// Makes the calls of a run.
pub struct Maker {
    pub container: String,
    pub shape: Shape,
    pub chooser: Chooser,
    /// Numbers beyond the loaded items, for `create`.
    pub next_new: AtomicU64,
    pub revision: AtomicU64,
}

impl Maker {
    pub fn call(&self, kind: Kind, random: &mut Random) -> Call {
        match kind {
            Kind::Mix { read_percent } => {
                let read = random.next_u64() % 100 < u64::from(read_percent);
                self.call(if read { Kind::Read } else { Kind::Upsert }, random)
            }
            Kind::Create => {
                let number = self.next_new.fetch_add(1, Relaxed);
                self.write(&format!("new-{number:09}"), number, 0, false)
            }
            Kind::Upsert => self.upsert(self.chooser.next(random)),
            Kind::Read => self.item(Method::GET, self.chooser.next(random), Vec::new(), Bytes::new()),
            Kind::Replace => {
                let number = self.chooser.next(random);
                let document = self.shape.document(&Shape::id(number), number, self.next_revision());
                self.item(Method::PUT, number, Vec::new(), document.into())
            }
            Kind::Patch => {
                let body = format!(
                    r#"{{"operations":[{{"op":"set","path":"/rev","value":{}}},{{"op":"incr","path":"/hits","value":1}}]}}"#,
                    self.next_revision()
                );
                let headers = vec![("content-type", "application/json-patch+json".to_owned())];
                self.item(Method::PATCH, self.chooser.next(random), headers, body.into())
            }
            Kind::Batch => self.batch(self.chooser.next(random)),
            Kind::Feed => {
                let headers =
                    vec![self.partition_key(self.chooser.next(random)), ("x-ms-max-item-count", "10".into())];
                self.docs(Method::GET, headers, Bytes::new())
            }
            Kind::Query => {
                let number = self.chooser.next(random);
                let headers = vec![
                    self.partition_key(number),
                    ("content-type", "application/query+json".to_owned()),
                    ("x-ms-documentdb-isquery", "True".to_owned()),
                ];
                let query =
                    r#"{"query":"SELECT * FROM c WHERE c.n = @n","parameters":[{"name":"@n","value":"#;
                self.docs(Method::POST, headers, format!("{query}{number}}}]}}").into())
            }
        }
    }

    /// Writes a loaded item, new or not.
    pub fn upsert(&self, number: u64) -> Call {
        self.write(&Shape::id(number), number, self.next_revision(), true)
    }

    fn write(&self, id: &str, number: u64, revision: u64, upsert: bool) -> Call {
        let mut headers = vec![self.partition_key(number), ("content-type", "application/json".to_owned())];
        if upsert {
            headers.push(("x-ms-documentdb-is-upsert", "True".to_owned()));
        }
        self.docs(Method::POST, headers, self.shape.document(id, number, revision).into())
    }

    fn batch(&self, number: u64) -> Call {
        // Ids that share the partition of `number`: it and its neighbours in steps of the number of partitions.
        let operations: Vec<String> = (0..BATCH_OPERATIONS)
            .map(|step| {
                let number = number % self.shape.partitions + step * self.shape.partitions;
                let document =
                    self.shape.document(&format!("batch-{number:09}"), number, self.next_revision());
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

    fn item(
        &self,
        method: Method,
        number: u64,
        mut headers: Vec<(&'static str, String)>,
        body: Bytes,
    ) -> Call {
        let path = format!("{}/docs/{}", self.container, Shape::id(number));
        headers.push(self.partition_key(number));
        Call { method, link: path.clone(), path, kind: "docs", headers, body }
    }

    fn docs(&self, method: Method, headers: Vec<(&'static str, String)>, body: Bytes) -> Call {
        let path = format!("{}/docs", self.container);
        Call { method, path, link: self.container.clone(), kind: "docs", headers, body }
    }

    fn partition_key(&self, number: u64) -> (&'static str, String) {
        ("x-ms-documentdb-partitionkey", format!(r#"["{}"]"#, self.shape.partition(number)))
    }

    fn next_revision(&self) -> u64 {
        self.revision.fetch_add(1, Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_help_is_an_operation() {
        for (name, _) in NAMES {
            assert_eq!(Kind::parse(name).unwrap().name(), name);
        }
        for wrong in ["", "reads", "mix0", "mix100", "mixed"] {
            assert_eq!(Kind::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_batch_stays_in_one_partition() {
        let maker = Maker {
            container: "dbs/d/colls/c".into(),
            shape: Shape { size_bytes: 300, partitions: 7 },
            chooser: Chooser::new(100, false),
            next_new: AtomicU64::new(100),
            revision: AtomicU64::new(1),
        };
        let call = maker.batch(12);
        let key = &call.headers[0].1;
        let body: serde_json::Value = serde_json::from_slice(&call.body).unwrap();
        for operation in body.as_array().unwrap() {
            assert_eq!(*key, format!("[{}]", operation["resourceBody"]["pk"]));
        }
    }
}
