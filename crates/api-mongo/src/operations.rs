//! Commands under way, for `currentOp` and `killOp`; how often and how long collections are used, for `top`; and what
//! the profiler writes down.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use orrery_mongo::{Bson, Document, doc};
use parking_lot::Mutex;

use crate::control::Control;

/// Collections that figures are kept for.
const COLLECTIONS_MAX: usize = 10_000;
/// What the profiler keeps of one database.
const PROFILED_MAX: usize = 1_000;
/// A command that is written down is cut off behind so many members of an array.
const SHOWN_MAX: usize = 20;

/// The collection in which the profiler is read.
pub const PROFILE: &str = "system.profile";

#[derive(Default)]
pub struct Operations {
    number: AtomicI32,
    running: Mutex<BTreeMap<i32, Running>>,
    used: Mutex<HashMap<String, Used>>,
    profiles: Mutex<HashMap<String, Profile>>,
}

struct Running {
    namespace: String,
    command: Document,
    kind: &'static str,
    client: String,
    connection: i32,
    app_name: Option<Arc<str>>,
    began: Instant,
    began_ms: i64,
    control: Arc<Control>,
}

#[derive(Clone, Copy, Default)]
struct Used {
    reads: (u64, u64),
    writes: (u64, u64),
}

struct Profile {
    level: i32,
    slow_ms: i64,
    entries: VecDeque<Document>,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile { level: 0, slow_ms: 100, entries: VecDeque::new() }
    }
}

/// Who runs a command.
pub struct Caller {
    pub client: String,
    pub connection: i32,
    pub app_name: Option<Arc<str>>,
}

/// A command that has ended.
pub struct Ended<'c> {
    pub name: &'static str,
    pub database: &'c str,
    pub body: &'c Document,
    pub writes: bool,
}

/// What kind of operation a command is, in the words of `currentOp`.
pub fn kind_of(command: &str) -> &'static str {
    match command {
        "find" => "query",
        "insert" => "insert",
        "update" => "update",
        "delete" => "remove",
        "getMore" => "getmore",
        _ => "command",
    }
}

/// A command as it is shown: without what belongs to the protocol, and not at full length.
fn shown(body: &Document) -> Document {
    let mut command = Document::new();
    for (name, value) in body.iter() {
        let value = match value {
            Bson::Array(elements) if elements.len() > SHOWN_MAX => {
                Bson::array(elements[..SHOWN_MAX].to_vec())
            }
            other => other.clone(),
        };
        match &**name {
            "$clusterTime" | "lsid" | "$readPreference" => {}
            _ => command.push(name.clone(), value),
        }
    }
    command
}

fn namespace_of(database: &str, body: &Document) -> String {
    match body.first() {
        Some((name, Bson::Int64(_))) if &**name == "getMore" => {
            format!("{database}.{}", body.get("collection").and_then(Bson::as_str).unwrap_or("$cmd"))
        }
        Some((_, Bson::String(name))) => format!("{database}.{name}"),
        _ => format!("{database}.$cmd"),
    }
}

impl Operations {
    /// A command begins; its number.
    pub fn begin(
        &self,
        name: &'static str,
        database: &str,
        body: &Document,
        caller: Caller,
        control: &Arc<Control>,
        now_ms: i64,
    ) -> i32 {
        let number = self.number.fetch_add(1, Relaxed).wrapping_add(1);
        let running = Running {
            namespace: namespace_of(database, body),
            command: shown(body),
            kind: kind_of(name),
            client: caller.client,
            connection: caller.connection,
            app_name: caller.app_name,
            began: Instant::now(),
            began_ms: now_ms,
            control: control.clone(),
        };
        self.running.lock().insert(number, running);
        number
    }

    pub fn end(&self, number: i32) {
        self.running.lock().remove(&number);
    }

    /// Ends a command before its time. `false`: there is none of this number.
    pub fn kill(&self, number: i32) -> bool {
        let running = self.running.lock();
        let found = running.get(&number);
        found.inspect(|running| running.control.kill()).is_some()
    }

    /// All commands under way.
    pub fn shown(&self, host: &str) -> Vec<Document> {
        let running = self.running.lock();
        running
            .iter()
            .map(|(number, running)| {
                let took = running.began.elapsed();
                let mut shown = doc! {
                    "type" => "op",
                    "host" => host,
                    "desc" => format!("conn{}", running.connection),
                    "connectionId" => running.connection,
                    "client" => running.client.as_str(),
                };
                if let Some(name) = &running.app_name {
                    shown.push("appName", name.to_string());
                }
                let rest = doc! {
                    "active" => true,
                    "currentOpTime" => Bson::Date(running.began_ms),
                    "opid" => *number,
                    "secs_running" => took.as_secs() as i64,
                    "microsecs_running" => took.as_micros() as i64,
                    "op" => running.kind,
                    "ns" => running.namespace.as_str(),
                    "command" => running.command.clone(),
                };
                rest.iter().for_each(|(name, value)| shown.push(name.clone(), value.clone()));
                shown
            })
            .collect()
    }

    /// A command has ended: counts it, and writes it down if the profiler is on.
    pub fn ended(&self, asked: Ended<'_>, took: Duration, caller: impl FnOnce() -> Caller, now_ms: i64) {
        let Ended { name, database, body, writes } = asked;
        let about_documents = matches!(
            name,
            "find"
                | "insert"
                | "update"
                | "delete"
                | "findAndModify"
                | "aggregate"
                | "count"
                | "distinct"
                | "getMore"
        );
        if about_documents {
            let namespace = namespace_of(database, body);
            let mut used = self.used.lock();
            if used.len() < COLLECTIONS_MAX || used.contains_key(&namespace) {
                let used = used.entry(namespace).or_default();
                let counted = if writes { &mut used.writes } else { &mut used.reads };
                counted.0 += took.as_micros() as u64;
                counted.1 += 1;
            }
        }
        let mut profiles = self.profiles.lock();
        let Some(profile) = profiles.get_mut(database) else { return };
        let slow = took.as_millis() as i64 >= profile.slow_ms;
        let own = body.first().is_some_and(|(_, value)| value.as_str() == Some(PROFILE));
        if own || !(profile.level == 2 || profile.level == 1 && slow) {
            return;
        }
        let caller = caller();
        let mut entry = doc! {
            "op" => kind_of(name),
            "ns" => namespace_of(database, body),
            "command" => shown(body),
            "millis" => took.as_millis() as i32,
            "ts" => Bson::Date(now_ms),
            "client" => caller.client,
        };
        if let Some(app_name) = caller.app_name {
            entry.push("appName", app_name.to_string());
        }
        if profile.entries.len() >= PROFILED_MAX {
            profile.entries.pop_front();
        }
        profile.entries.push_back(entry);
    }

    /// What the profiler has written down of a database.
    pub fn profiled(&self, database: &str) -> Vec<Document> {
        let profiles = self.profiles.lock();
        profiles.get(database).map(|profile| profile.entries.iter().cloned().collect()).unwrap_or_default()
    }

    /// Forgets what the profiler has written down.
    pub fn forget_profiled(&self, database: &str) {
        if let Some(profile) = self.profiles.lock().get_mut(database) {
            profile.entries.clear();
        }
    }

    /// How the profiler of a database was set; set anew where something is given.
    pub fn profile(&self, database: &str, level: Option<i32>, slow_ms: Option<i64>) -> (i32, i64) {
        /// Databases whose profiler is on, or was.
        const PROFILES_MAX: usize = 1_000;
        let mut profiles = self.profiles.lock();
        let known = profiles.get(database).map_or((0, 100), |profile| (profile.level, profile.slow_ms));
        if level.is_none() && slow_ms.is_none()
            || profiles.len() >= PROFILES_MAX && !profiles.contains_key(database)
        {
            return known;
        }
        let profile = profiles.entry(database.to_owned()).or_default();
        profile.level = level.unwrap_or(profile.level);
        profile.slow_ms = slow_ms.unwrap_or(profile.slow_ms);
        known
    }

    /// How often and how long collections were read and written.
    pub fn top(&self) -> Document {
        let used = self.used.lock();
        let mut all: Vec<(&String, &Used)> = used.iter().collect();
        all.sort_by(|a, b| a.0.cmp(b.0));
        let mut totals = doc! { "note" => "all times in microseconds" };
        for (namespace, used) in all {
            let of = |(time, count): (u64, u64)| doc! { "time" => time as i64, "count" => count as i64 };
            let total = (used.reads.0 + used.writes.0, used.reads.1 + used.writes.1);
            totals.push(
                namespace.as_str(),
                doc! { "total" => of(total), "readLock" => of(used.reads), "writeLock" => of(used.writes) },
            );
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller() -> Caller {
        Caller { client: "127.0.0.1:1".to_owned(), connection: 7, app_name: None }
    }

    #[test]
    fn a_command_is_listed_while_it_runs_and_can_be_ended() {
        let operations = Operations::default();
        let control = Control::new();
        let number = operations.begin("find", "db", &doc! { "find" => "c" }, caller(), &control, 0);
        let listed = operations.shown("here");
        assert_eq!(listed[0].get("ns").and_then(Bson::as_str), Some("db.c"));
        assert_eq!(listed[0].get("op").and_then(Bson::as_str), Some("query"));
        assert!(!operations.kill(number + 1));
        assert!(operations.kill(number));
        assert!(control.is_killed());
        operations.end(number);
        assert!(operations.shown("here").is_empty());
    }

    #[test]
    fn the_profiler_writes_down_what_its_level_asks_for() {
        let operations = Operations::default();
        let find = doc! { "find" => "c", "comment" => "x" };
        let run = |ms: u64| {
            let asked = Ended { name: "find", database: "db", body: &find, writes: false };
            operations.ended(asked, Duration::from_millis(ms), caller, 0);
        };
        run(500);
        assert_eq!(operations.profile("db", Some(1), Some(100)), (0, 100));
        run(99);
        run(100);
        assert_eq!(operations.profiled("db").len(), 1);
        assert_eq!(operations.profile("db", Some(2), None), (1, 100));
        run(0);
        assert_eq!(operations.profiled("db").len(), 2);
        assert_eq!(operations.profile("db", None, None), (2, 100));
        operations.forget_profiled("db");
        assert!(operations.profiled("db").is_empty());
        let top = operations.top();
        let total = top.get("db.c").and_then(Bson::as_document).and_then(|of| of.get("total"));
        assert_eq!(total.and_then(Bson::as_document).and_then(|of| of.get("count")), Some(&Bson::Int64(4)));
    }
}
