//! What the definition of a container wants of every item: unique keys, and the rules of apis.
//!
//! Each of them claims keys within the logical partition of an item: a unique key one, a rule as many as its api says.
//! A claim is a row that names its holder, staged in the commit of the item. Rules also say when items are over: that
//! item is removed by upkeep at its second, and until then it is there for everybody.
//!
//! A rule whose api is not there (a tool looks at the files) cannot be kept: writes are refused, and its rows are left
//! as they are.

use std::sync::Arc;

use bytes::Bytes;
use orrery_model::{PropertyPath, Raw};
use sha2::{Digest, Sha256};
use smallvec::SmallVec;

use super::{expiry, unique};
use crate::definition::ContainerDefinition;
use crate::error::{Error, Kind, Result};
use crate::item::Item;
use crate::item_rules::CompiledRule;
use crate::query_host::Hosts;

/// Rows of rules are told from those of unique keys by their constraint.
const RULE_CONSTRAINTS: u16 = 0x4000;
/// Stands in a mark with the numbers of rules for which not all items have claimed.
const BEGUN: u16 = 0x8000;
/// Longest claim that is kept as it is.
const CLAIM_BYTES_MAX: usize = 96;
/// What a long claim's hash is marked with, and what stands in front of a short one.
const HASHED: u8 = 0xFF;
const PLAIN: u8 = 0;

/// A key that an item claims for a constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) constraint: u16,
    pub(super) values: SmallVec<[u8; 32]>,
}

/// The claims of an item, by constraint.
pub(super) type Claims = SmallVec<[Claim; 2]>;

pub(super) struct Rules {
    keys: Vec<Vec<PropertyPath>>,
    of_apis: Vec<Rule>,
}

struct Rule {
    number: u16,
    unique: bool,
    expires: bool,
    /// `None`: the api is not there.
    compiled: Option<Arc<dyn CompiledRule>>,
}

impl Rules {
    pub(super) fn new(definition: &ContainerDefinition, hosts: &Hosts) -> Rules {
        let rules = definition.rules.iter().flat_map(|rules| &rules.rules);
        let of_apis = rules.map(|rule| Rule {
            number: rule.number,
            unique: rule.unique,
            expires: rule.expires,
            compiled: hosts.rules(&rule.host).and_then(|host| host.compile(&rule.specification)),
        });
        Rules { keys: definition.unique_keys.clone(), of_apis: of_apis.collect() }
    }

    /// How many constraints an item claims keys for.
    pub(super) fn constraints(&self) -> usize {
        self.keys.len() + self.of_apis.iter().filter(|rule| rule.unique).count()
    }

    /// The claims of rules whose apis are there.
    pub(super) fn known_claims(&self, body: Raw<'_>) -> Result<Claims> {
        self.claims_with(body, false)
    }

    pub(super) fn claims(&self, body: Raw<'_>) -> Result<Claims> {
        self.claims_with(body, true)
    }

    fn claims_with(&self, body: Raw<'_>, all: bool) -> Result<Claims> {
        let mut claims = Claims::new();
        for (constraint, paths) in self.keys.iter().enumerate() {
            // A policy has at most a handful of constraints; the catalog refuses more.
            let constraint = u16::try_from(constraint).unwrap_or(u16::MAX);
            claims.push(Claim { constraint, values: unique::claim(paths, body) });
        }
        for rule in self.of_apis.iter().filter(|rule| rule.unique) {
            let Some(compiled) = &rule.compiled else {
                if all {
                    return Err(no_api());
                }
                continue;
            };
            for key in compiled.claims(body)? {
                claims.push(Claim { constraint: constraint_of(rule.number), values: bounded(&key) });
            }
        }
        Ok(claims)
    }

    /// Whether claims for a constraint are those of an api that is there, or of a unique key.
    pub(super) fn knows(&self, constraint: u16) -> bool {
        match constraint.checked_sub(RULE_CONSTRAINTS) {
            None => true,
            Some(number) => self.of_apis.iter().any(|rule| rule.number == number && rule.compiled.is_some()),
        }
    }

    /// Whether there are rules whose api is not there.
    pub(super) fn lacks_apis(&self) -> bool {
        self.of_apis.iter().any(|rule| rule.compiled.is_none())
    }

    /// The first second in which an item is to be removed, by its time to live or by a rule.
    pub(super) fn over_from(&self, default_ttl: Option<i32>, item: &Item) -> Option<u32> {
        let by_ttl = expiry::over_from(default_ttl, item.ts, item.ttl);
        if self.of_apis.is_empty() {
            return by_ttl;
        }
        by_ttl.into_iter().chain(self.by_rules(item)).min()
    }

    /// Whether an item is to be removed.
    pub(super) fn is_over(&self, default_ttl: Option<i32>, item: &Item, now_s: u32) -> bool {
        self.over_from(default_ttl, item).is_some_and(|second| second <= now_s)
    }

    fn by_rules(&self, item: &Item) -> Option<u32> {
        let rules = self.of_apis.iter().filter(|rule| rule.expires).filter_map(|rule| rule.compiled.as_ref());
        let first = rules.filter_map(|rule| rule.over_from_ms(item.body())).min()?;
        // Rounded up: nothing is removed early. What is over since before 1970 is over.
        let second = u64::try_from(first).unwrap_or(0).div_ceil(1000);
        u32::try_from(second).ok().filter(|second| *second < u32::MAX)
    }

    /// Whether there may be rows of rules that are gone.
    pub(super) fn has_gone(&self, marked: Option<&Bytes>) -> bool {
        entries(marked).any(|(number, _)| self.is_gone(constraint_of(number)))
    }

    /// Whether a constraint is that of a rule that is gone.
    pub(super) fn is_gone(&self, constraint: u16) -> bool {
        let number = rule_of(constraint);
        number.is_some_and(|number| !self.of_apis.iter().any(|rule| rule.unique && rule.number == number))
    }

    /// A mark, and with it the rules for which items begin to claim.
    pub(super) fn begun_mark(&self, marked: Option<&Bytes>) -> Bytes {
        let mut mark: Vec<u8> = marked.map(|mark| mark.to_vec()).unwrap_or_default();
        for rule in self.of_apis.iter().filter(|rule| rule.unique) {
            if !entries(marked).any(|(number, _)| number == rule.number) {
                mark.extend_from_slice(&(rule.number | BEGUN).to_le_bytes());
            }
        }
        mark.into()
    }

    /// Which rules the rows of claims are complete for; `None`: there are none.
    pub(super) fn claimed_mark(&self) -> Option<Bytes> {
        mark(self.of_apis.iter().filter(|rule| rule.unique))
    }

    /// Which default and rules expiry rows are complete for. It begins with the default.
    pub(super) fn planned_mark(&self, default_ttl: Option<i32>) -> Option<Bytes> {
        let rules = mark(self.of_apis.iter().filter(|rule| rule.expires));
        if default_ttl.is_none() && rules.is_none() {
            return None;
        }
        let ttl = default_ttl.unwrap_or(i32::MIN).to_le_bytes();
        Some([&ttl[..], rules.as_deref().unwrap_or_default()].concat().into())
    }

    /// The rules that a mark does not cover.
    pub(super) fn unclaimed(&self, marked: Option<&Bytes>) -> Vec<u16> {
        let covered = |number: u16| entries(marked).any(|(known, begun)| known == number && !begun);
        let unique = self.of_apis.iter().filter(|rule| rule.unique).map(|rule| rule.number);
        unique.filter(|number| !covered(*number)).map(constraint_of).collect()
    }
}

/// The numbers of a mark, and whether they have only begun.
fn entries(marked: Option<&Bytes>) -> impl Iterator<Item = (u16, bool)> + '_ {
    let numbers = marked.into_iter().flat_map(|mark| mark.chunks_exact(2));
    numbers.map(|number| u16::from_le_bytes([number[0], number[1]])).map(|it| (it & !BEGUN, it & BEGUN != 0))
}

fn mark<'r>(rules: impl Iterator<Item = &'r Rule>) -> Option<Bytes> {
    let numbers: Vec<u8> = rules.flat_map(|rule| rule.number.to_le_bytes()).collect();
    (!numbers.is_empty()).then(|| numbers.into())
}

fn constraint_of(number: u16) -> u16 {
    RULE_CONSTRAINTS + number
}

/// The number of the rule that a constraint belongs to.
pub(super) fn rule_of(constraint: u16) -> Option<u16> {
    constraint.checked_sub(RULE_CONSTRAINTS)
}

fn bounded(key: &[u8]) -> SmallVec<[u8; 32]> {
    let mut values = SmallVec::new();
    match key.len() < CLAIM_BYTES_MAX {
        true => {
            values.push(PLAIN);
            values.extend_from_slice(key);
        }
        false => {
            values.push(HASHED);
            values.extend_from_slice(&Sha256::digest(key));
        }
    }
    values
}

fn no_api() -> Error {
    Error::new(
        Kind::Unavailable,
        "A rule of another api holds for the items of this container, and that api is not there.",
    )
}
