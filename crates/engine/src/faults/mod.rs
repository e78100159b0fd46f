//! Fault rules for users' tests: chosen requests are answered with an error, late, or not at all.
//!
//! ```json
//! {"seed": 7, "rules": [
//!   {"name": "busy",  "operations": ["writes"], "probability": 0.2, "answer": 429, "retryAfterMs": 50},
//!   {"name": "slow",  "operations": ["read_item"], "partitionKey": ["a"], "delayMs": 250},
//!   {"name": "cut",   "operations": ["create_item"], "after": 10, "count": 1, "drop": "answer"}]}
//! ```
//!
//! The first rule that matches a request and fires decides. Whether a rule fires depends on the seed, the rule and
//! how many requests matched it before, and on nothing else: the same requests in the same order meet the same
//! faults. Rules see requests after they have been authenticated; what administers the server is never touched, so
//! that rules can be taken away. The rules are the account's, whichever api a request comes through.
//!
//! What a fault means is said here ([`Effect`]); its words are the api's, and being late and hanging up is the work
//! of whoever sends the answer.

mod rule;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use orrery_model::PartitionKey;
use serde_json::{Value, json};

use rule::Rule;
pub use rule::{Effect, FaultAnswer, FaultStatus, LostHalf, RULES_MAX};

/// The rules in force.
#[derive(Default)]
pub struct Faults {
    set: ArcSwapOption<Set>,
    /// Faults by what they did, over all rules there ever were.
    counts: Counts,
}

/// Closed labels for metrics.
#[derive(Default)]
struct Counts([AtomicU64; KINDS.len()]);

/// The kinds of faults, as metrics name them.
pub const KINDS: [&str; 6] = ["429", "449", "410", "503", "delay", "drop"];

/// A parsed list of rules.
#[derive(Debug)]
pub struct Set {
    seed: u64,
    rules: Vec<Rule>,
}

/// A request, as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The name of the operation in its api.
    pub operation: &'static str,
    pub reads: bool,
    /// The names in the request, empty where there are none.
    pub database: &'a str,
    pub container: &'a str,
}

/// What a rule does to one request.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The name of the rule, for the log.
    pub rule: Arc<str>,
    pub delay: Duration,
    pub effect: Effect,
}

impl Set {
    /// Reads a list of rules over operations with these names; the message says which rule is wrong and why.
    pub fn parse(value: &Value, operations: &[&str]) -> Result<Set, String> {
        let object = value.as_object().ok_or("the faults are no object with `rules`")?;
        for name in object.keys() {
            if !["seed", "rules"].contains(&name.as_str()) {
                return Err(format!("`{name}` is unknown; allowed: seed, rules"));
            }
        }
        let seed = match object.get("seed") {
            None | Some(Value::Null) => 0,
            Some(seed) => seed.as_u64().ok_or("`seed` is no whole number")?,
        };
        let list = match object.get("rules") {
            None => &[][..],
            Some(list) => list.as_array().ok_or("`rules` is no list")?,
        };
        if list.len() > RULES_MAX {
            return Err(format!("{} rules are given; allowed: up to {RULES_MAX}", list.len()));
        }
        let rules = list
            .iter()
            .enumerate()
            .map(|(n, rule)| Rule::parse(n, rule, operations))
            .collect::<Result<_, _>>()?;
        Ok(Set { seed, rules })
    }
}

impl Faults {
    pub fn replace(&self, set: Set) {
        self.set.store((!set.rules.is_empty()).then(|| Arc::new(set)));
    }

    pub fn clear(&self) {
        self.set.store(None);
    }

    /// The rules with how often each has matched and fired.
    pub fn to_json(&self) -> Value {
        match &*self.set.load() {
            None => json!({ "seed": 0, "rules": [] }),
            Some(set) => {
                let rules: Vec<Value> = set.rules.iter().map(Rule::to_json).collect();
                json!({ "seed": set.seed, "rules": rules })
            }
        }
    }

    /// How many faults of each kind there were since the start.
    pub fn counts(&self) -> [(&'static str, u64); KINDS.len()] {
        std::array::from_fn(|n| (KINDS[n], self.counts.0[n].load(Relaxed)))
    }

    /// How many rules are in force.
    pub fn len(&self) -> usize {
        self.set.load().as_ref().map_or(0, |set| set.rules.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The fault that a request meets. Without rules this is one load. The key is found out only if a rule wants it.
    pub fn meet(&self, asked: Asked<'_>, key: impl Fn() -> Option<PartitionKey>) -> Option<Fault> {
        let set = self.set.load();
        let set = set.as_ref()?;
        let rule = set.rules.iter().find(|rule| rule.matches(asked, &key) && rule.fires(set.seed))?;
        let kind = rule.effect.kind();
        if let Some(cell) = KINDS.iter().position(|known| *known == kind).and_then(|n| self.counts.0.get(n)) {
            cell.fetch_add(1, Relaxed);
        }
        Some(Fault { rule: rule.name.clone(), delay: rule.delay, effect: rule.effect.clone() })
    }
}
