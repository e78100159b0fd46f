//! One fault rule: which requests it is about, how often it fires, what it does. Read from JSON, shown as JSON.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use orrery_model::PartitionKey;
use serde_json::{Map, Value, json};

use super::Asked;

/// Rules that may be in force at one time.
pub const RULES_MAX: usize = 64;
const NAME_CHARS_MAX: usize = 64;
const OPERATIONS_MAX: usize = 64;
/// Longest that a rule may hold a request or tell a client to wait.
const MS_MAX: u64 = 60_000;

#[derive(Debug)]
pub struct Rule {
    pub name: Arc<str>,
    operations: Vec<Operations>,
    database: Option<String>,
    container: Option<String>,
    key: Option<PartitionKey>,
    probability: f64,
    /// Matching requests to let through first.
    after: u64,
    /// Most times to fire.
    count: Option<u64>,
    pub delay: Duration,
    pub effect: Effect,
    /// Tells the rules of one list apart when they draw.
    place: u64,
    matched: AtomicU64,
    fired: AtomicU64,
}

/// Which half of an exchange is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostHalf {
    /// The work is not done.
    Request,
    /// The work is done, and nobody learns of it.
    Answer,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Nothing but the delay.
    Late,
    /// An error instead of the work.
    Answer(FaultAnswer),
    Lost(LostHalf),
}

/// The error that a request is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultAnswer {
    pub status: FaultStatus,
    /// Instead of the usual one.
    pub substatus: Option<u32>,
    pub retry_after_ms: Option<u64>,
}

/// What an error says, as rules write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultStatus {
    /// 429
    Throttled,
    /// 449
    RetryWith,
    /// 410
    Gone,
    /// 503
    Unavailable,
}

impl FaultStatus {
    const ALL: [(FaultStatus, u64, &'static str); 4] = [
        (FaultStatus::Throttled, 429, "429"),
        (FaultStatus::RetryWith, 449, "449"),
        (FaultStatus::Gone, 410, "410"),
        (FaultStatus::Unavailable, 503, "503"),
    ];

    fn of(number: u64) -> Option<FaultStatus> {
        FaultStatus::ALL.iter().find(|(_, known, _)| *known == number).map(|(status, ..)| *status)
    }

    fn number(self) -> (u64, &'static str) {
        let found = FaultStatus::ALL.iter().find(|(status, ..)| *status == self);
        found.map_or((503, "503"), |(_, number, text)| (*number, text))
    }
}

impl Effect {
    /// The label of metrics.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Effect::Late => "delay",
            Effect::Lost(_) => "drop",
            Effect::Answer(answer) => answer.status.number().1,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Operations {
    All,
    Reads,
    Writes,
    Named(String),
}

const MEMBERS: &str = "name, operations, database, container, partitionKey, probability, after, count, answer, substatus, retryAfterMs, delayMs, drop";

impl Rule {
    pub fn parse(place: usize, value: &Value, operations: &[&str]) -> Result<Rule, String> {
        let fields =
            Fields { place, object: value.as_object().ok_or_else(|| format!("rule {place} is no object"))? };
        // `matched` and `fired` come back from a list that was read and changed.
        let known = |name: &str| MEMBERS.split(", ").chain(["matched", "fired"]).any(|member| member == name);
        if let Some(unknown) = fields.object.keys().find(|name| !known(name)) {
            return Err(fields.wrong(&format!("`{unknown}` is unknown; allowed: {MEMBERS}")));
        }
        let name = fields.text("name")?.unwrap_or_else(|| format!("rule-{place}"));
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(plain) {
            return Err(fields.wrong("`name` may hold letters, digits, `-`, `_`, `.`, at most 64"));
        }
        let key = match fields.object.get("partitionKey") {
            None | Some(Value::Null) => None,
            Some(key) => Some(
                PartitionKey::parse_header(&key.to_string()).map_err(|error| fields.wrong(&error.message))?,
            ),
        };
        let probability = match fields.object.get("probability") {
            None | Some(Value::Null) => 1.0,
            Some(value) => value
                .as_f64()
                .filter(|value| (0.0..=1.0).contains(value))
                .ok_or_else(|| fields.wrong("`probability` is a number from 0 to 1"))?,
        };
        let delay_ms = fields.ms("delayMs")?;
        Ok(Rule {
            operations: fields.operations(operations)?,
            database: fields.text("database")?,
            container: fields.text("container")?,
            key,
            probability,
            after: fields.number("after")?.unwrap_or(0),
            count: fields.number("count")?,
            delay: Duration::from_millis(delay_ms.unwrap_or(0)),
            effect: fields.effect(delay_ms.is_some())?,
            place: place as u64,
            matched: AtomicU64::new(0),
            fired: AtomicU64::new(0),
            name: name.into(),
        })
    }

    pub fn matches(&self, asked: Asked<'_>, key: &impl Fn() -> Option<PartitionKey>) -> bool {
        let operation = self.operations.iter().any(|operations| match operations {
            Operations::All => true,
            Operations::Reads => asked.reads,
            Operations::Writes => !asked.reads,
            Operations::Named(name) => name == asked.operation,
        });
        let named = |wanted: &Option<String>, name| wanted.as_deref().is_none_or(|wanted| wanted == name);
        operation
            && named(&self.database, asked.database)
            && named(&self.container, asked.container)
            && self.key.as_ref().is_none_or(|wanted| key().as_ref() == Some(wanted))
    }

    /// Counts a matching request and says whether it is hit.
    pub fn fires(&self, seed: u64) -> bool {
        let n = self.matched.fetch_add(1, Relaxed);
        if n < self.after {
            return false;
        }
        // 53 random bits, as many as a fraction has.
        let drawn = (random(seed, self.place, n) >> 11) as f64 / (1u64 << 53) as f64;
        if drawn >= self.probability {
            return false;
        }
        let room = |fired: u64| self.count.is_none_or(|count| fired < count).then_some(fired + 1);
        self.fired.fetch_update(Relaxed, Relaxed, room).is_ok()
    }

    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        out.insert("name".into(), json!(&*self.name));
        let operations: Vec<&str> = self
            .operations
            .iter()
            .map(|operations| match operations {
                Operations::All => "all",
                Operations::Reads => "reads",
                Operations::Writes => "writes",
                Operations::Named(name) => name,
            })
            .collect();
        out.insert("operations".into(), json!(operations));
        let mut put = |name: &str, value: Option<Value>| value.map(|value| out.insert(name.into(), value));
        put("database", self.database.as_ref().map(|name| json!(name)));
        put("container", self.container.as_ref().map(|name| json!(name)));
        put("partitionKey", self.key.as_ref().map(key_json));
        put("probability", Some(json!(self.probability)));
        put("after", (self.after > 0).then(|| json!(self.after)));
        put("count", self.count.map(|count| json!(count)));
        put("delayMs", (!self.delay.is_zero()).then(|| json!(self.delay.as_millis() as u64)));
        match &self.effect {
            Effect::Late => {}
            Effect::Lost(LostHalf::Request) => drop(put("drop", Some(json!("request")))),
            Effect::Lost(LostHalf::Answer) => drop(put("drop", Some(json!("answer")))),
            Effect::Answer(answer) => {
                put("answer", Some(json!(answer.status.number().0)));
                put("substatus", answer.substatus.map(|number| json!(number)));
                put("retryAfterMs", answer.retry_after_ms.map(|number| json!(number)));
            }
        }
        put("matched", Some(json!(self.matched.load(Relaxed))));
        put("fired", Some(json!(self.fired.load(Relaxed))));
        Value::Object(out)
    }
}

fn key_json(key: &PartitionKey) -> Value {
    let mut text = Vec::new();
    key.write_json(&mut text);
    serde_json::from_slice(&text).unwrap_or(Value::Null)
}

/// SplitMix64 over seed, rule and draw.
fn random(seed: u64, place: u64, n: u64) -> u64 {
    let mut z = seed
        .wrapping_add(place.wrapping_mul(0xD1B5_4A32_D192_ED03))
        .wrapping_add((n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

struct Fields<'a> {
    place: usize,
    object: &'a Map<String, Value>,
}

impl Fields<'_> {
    fn wrong(&self, what: &str) -> String {
        format!("rule {}: {what}", self.place)
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        match self.object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong(&format!("`{name}` is no text"))),
        }
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        match self.object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                value.as_u64().map(Some).ok_or_else(|| self.wrong(&format!("`{name}` is no whole number")))
            }
        }
    }

    fn ms(&self, name: &str) -> Result<Option<u64>, String> {
        match self.number(name)? {
            Some(ms) if ms > MS_MAX => Err(self.wrong(&format!("`{name}` is at most {MS_MAX}"))),
            ms => Ok(ms),
        }
    }

    fn operations(&self, names: &[&str]) -> Result<Vec<Operations>, String> {
        let list = match self.object.get("operations") {
            None | Some(Value::Null) => return Ok(vec![Operations::All]),
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(list)) if list.len() <= OPERATIONS_MAX => list
                .iter()
                .map(|name| name.as_str().ok_or_else(|| self.wrong("`operations` is a list of names")))
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(self.wrong("`operations` is a list of names")),
        };
        let known = |name: &str| match name {
            "all" => Ok(Operations::All),
            "reads" => Ok(Operations::Reads),
            "writes" => Ok(Operations::Writes),
            name if names.contains(&name) => Ok(Operations::Named(name.to_owned())),
            name => {
                let names = names.join(", ");
                Err(self.wrong(&format!("`{name}` is no operation; allowed: all, reads, writes, {names}")))
            }
        };
        list.into_iter().map(known).collect()
    }

    fn effect(&self, late: bool) -> Result<Effect, String> {
        let (substatus, retry_after_ms) = (self.number("substatus")?, self.ms("retryAfterMs")?);
        let answer = self.number("answer")?;
        if answer.is_none() && (substatus.is_some() || retry_after_ms.is_some()) {
            return Err(self.wrong("`substatus` and `retryAfterMs` belong to an `answer`"));
        }
        match (answer, self.text("drop")?.as_deref()) {
            (Some(status), None) => Ok(Effect::Answer(FaultAnswer {
                status: FaultStatus::of(status)
                    .ok_or_else(|| self.wrong("`answer` is 429, 449, 410 or 503"))?,
                substatus: substatus.map(|number| u32::try_from(number).unwrap_or(u32::MAX)),
                retry_after_ms,
            })),
            (None, Some("request")) => Ok(Effect::Lost(LostHalf::Request)),
            (None, Some("answer")) => Ok(Effect::Lost(LostHalf::Answer)),
            (None, Some(_)) => Err(self.wrong("`drop` is \"request\" or \"answer\"")),
            (Some(_), Some(_)) => Err(self.wrong("`answer` and `drop` exclude each other")),
            (None, None) if late => Ok(Effect::Late),
            (None, None) => Err(self.wrong("one of `answer`, `drop` and `delayMs` is needed")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATIONS: [&str; 5] = ["read_item", "list_items", "query_items", "create_item", "batch"];

    fn rule(value: Value) -> Rule {
        Rule::parse(0, &value, &OPERATIONS).unwrap()
    }

    #[test]
    fn a_rule_picks_its_requests_by_operation_place_and_key() {
        let picky = rule(
            json!({"operations": ["writes"], "database": "d", "container": "c", "partitionKey": ["a"], "answer": 429}),
        );
        let (a, b) = (
            PartitionKey::parse_header(r#"["a"]"#).unwrap(),
            PartitionKey::parse_header(r#"["b"]"#).unwrap(),
        );
        let write = Asked { operation: "create_item", reads: false, database: "d", container: "c" };
        let read = |operation| Asked { operation, reads: true, ..write };
        assert!(picky.matches(write, &|| Some(a.clone())));
        assert!(!picky.matches(write, &|| Some(b.clone())));
        assert!(!picky.matches(write, &|| None));
        assert!(!picky.matches(read("query_items"), &|| Some(a.clone())));
        assert!(!picky.matches(Asked { container: "other", ..write }, &|| Some(a.clone())));
        let named = rule(json!({"operations": "read_item", "delayMs": 5}));
        assert!(named.matches(read("read_item"), &|| None) && !named.matches(read("list_items"), &|| None));
    }

    #[test]
    fn the_same_seed_meets_the_same_faults() {
        let hits = |seed| {
            let rule = rule(json!({"probability": 0.3, "answer": 503}));
            (0..1000).map(|_| rule.fires(seed)).collect::<Vec<_>>()
        };
        let first = hits(7);
        assert_eq!(first, hits(7));
        assert_ne!(first, hits(8));
        let fired = first.iter().filter(|hit| **hit).count();
        assert!((250..350).contains(&fired), "{fired}");
    }

    #[test]
    fn a_rule_begins_late_and_ends() {
        let rule = rule(json!({"after": 3, "count": 2, "answer": 449}));
        let hits: Vec<bool> = (0..8).map(|_| rule.fires(0)).collect();
        assert_eq!(hits, [false, false, false, true, true, false, false, false]);
        assert_eq!(
            (rule.to_json()["matched"].as_u64(), rule.to_json()["fired"].as_u64()),
            (Some(8), Some(2))
        );
    }

    #[test]
    fn what_a_rule_says_reads_back() {
        let text = json!({"name": "n", "operations": ["reads", "batch"], "database": "d", "partitionKey": [1.5, null],
            "probability": 0.5, "after": 1, "count": 9, "delayMs": 3, "answer": 410, "substatus": 1007});
        let shown = rule(text).to_json();
        assert_eq!(rule(shown.clone()).to_json(), shown);
    }

    #[test]
    fn wrong_rules_say_what_is_wrong() {
        for (value, what) in [
            (json!({}), "one of `answer`, `drop` and `delayMs`"),
            (json!({"answer": 418}), "429, 449, 410 or 503"),
            (json!({"answer": 429, "drop": "answer"}), "exclude each other"),
            (json!({"delayMs": 60_001}), "at most 60000"),
            (json!({"probability": 1.5, "answer": 429}), "from 0 to 1"),
            (
                json!({"operations": ["reed"], "answer": 429}),
                "`reed` is no operation; allowed: all, reads, writes, read_item",
            ),
            (json!({"anser": 429}), "`anser` is unknown"),
            (json!({"partitionKey": "a", "answer": 429}), "JSON array"),
            (json!([]), "no object"),
        ] {
            let error = Rule::parse(4, &value, &OPERATIONS).unwrap_err();
            assert!(error.contains(what) && error.starts_with("rule 4"), "{error}");
        }
    }
}
