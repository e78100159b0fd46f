//! The operations a workload can run, and which item each is about. What is sent for them is the API's:
//! `nosql_requests`, `table_requests`, `mongo_requests`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::client::Call;
use super::items::{Chooser, Random, Shape};
use super::{mongo_requests, nosql_requests, table_requests};

/// Operations of one atomic batch.
pub const BATCH_OPERATIONS: u64 = 10;

/// Names and what they do, for the help.
pub const NAMES: [(&str, &str); 13] = [
    ("read", "read an item by id and partition key"),
    ("upsert", "write an item that exists, whole"),
    ("create", "write an item that does not exist"),
    ("replace", "replace an item that exists"),
    ("patch", "set one member, increment another; of tables, merge two properties"),
    ("batch", "ten upserts in one transaction; of MongoDB, in one command"),
    ("feed", "read a page of ten items of one logical partition"),
    ("query", "a query by a number, within one logical partition"),
    ("lookup", "a query by a number, over all logical partitions"),
    ("top", "the first ten items of a city in one logical partition, by number; of tables by key"),
    ("count", "how many items of a city one logical partition has; not of tables"),
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
    Lookup,
    Top,
    Count,
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
            "lookup" => Kind::Lookup,
            "top" => Kind::Top,
            "count" => Kind::Count,
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

    /// Whether the Table API has it.
    pub fn of_tables(self) -> bool {
        self != Kind::Count
    }

    pub fn name(self) -> String {
        match self {
            Kind::Mix { read_percent } => format!("mix{read_percent}"),
            other => format!("{other:?}").to_lowercase(),
        }
    }
}

/// Which protocol is spoken, and where the items are.
#[derive(Debug, Clone)]
pub enum Api {
    /// `dbs/d/colls/c`
    NoSql {
        container: String,
    },
    /// `account/table`, or the table alone
    Table {
        path: String,
    },
    Mongo {
        database: String,
        collection: &'static str,
    },
}

/// One operation on one item. Writes bring the number of the version that they write.
#[derive(Debug, Clone, Copy)]
pub enum Operation {
    Read(u64),
    Create(u64),
    Upsert(u64, u64),
    Replace(u64, u64),
    Patch(u64, u64),
    /// Upserts in the partition of an item, with this version and the ones after it.
    Batch(u64, u64),
    Feed(u64),
    Query(u64),
    Lookup(u64),
    Top(u64),
    Count(u64),
}

/// Makes the calls of a run.
pub struct Maker {
    pub api: Api,
    pub shape: Shape,
    pub chooser: Chooser,
    /// Numbers beyond the loaded items, for `create`.
    pub next_new: AtomicU64,
    pub revision: AtomicU64,
}

impl Maker {
    pub fn call(&self, kind: Kind, random: &mut Random) -> Call {
        let mut choose = || self.chooser.next(random);
        let operation = match kind {
            Kind::Mix { read_percent } => {
                let read = random.next_u64() % 100 < u64::from(read_percent);
                return self.call(if read { Kind::Read } else { Kind::Upsert }, random);
            }
            Kind::Create => Operation::Create(self.next_new.fetch_add(1, Relaxed)),
            Kind::Upsert => return self.upsert(choose()),
            Kind::Read => Operation::Read(choose()),
            Kind::Replace => Operation::Replace(choose(), self.revisions(1)),
            Kind::Patch => Operation::Patch(choose(), self.revisions(1)),
            Kind::Batch => Operation::Batch(choose(), self.revisions(BATCH_OPERATIONS)),
            Kind::Feed => Operation::Feed(choose()),
            Kind::Query => Operation::Query(choose()),
            Kind::Lookup => Operation::Lookup(choose()),
            Kind::Top => Operation::Top(choose()),
            Kind::Count => Operation::Count(choose()),
        };
        self.request(operation)
    }

    /// Writes a loaded item, new or not.
    pub fn upsert(&self, number: u64) -> Call {
        self.request(Operation::Upsert(number, self.revisions(1)))
    }

    fn request(&self, operation: Operation) -> Call {
        match &self.api {
            Api::NoSql { container } => nosql_requests::request(container, &self.shape, operation),
            Api::Table { path } => table_requests::request(path, &self.shape, operation),
            Api::Mongo { database, collection } => {
                mongo_requests::request(database, collection, &self.shape, operation)
            }
        }
    }

    /// The first of so many new versions.
    fn revisions(&self, count: u64) -> u64 {
        self.revision.fetch_add(count, Relaxed)
    }
}

/// The numbers of a batch: items that share the partition of `number`, in steps of the number of partitions.
pub fn batch_numbers(shape: &Shape, number: u64) -> impl Iterator<Item = u64> + use<'_> {
    (0..BATCH_OPERATIONS).map(move |step| number % shape.partitions + step * shape.partitions)
}

pub fn batch_id(number: u64) -> String {
    format!("batch-{number:09}")
}

pub fn new_id(number: u64) -> String {
    format!("new-{number:09}")
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
}
