//! `itemRules`: what apis want of the items of a container (see `item_rules`).
//!
//! Numbers are never used again: rows of a rule that is gone may still be there when the next one comes. A definition
//! that says nothing of rules leaves them as they are, because most clients have never heard of them.

use serde_json::{Map, Value, json};

use super::json::{
    array_member, bool_member, integer_member, invalid_input, object, object_member, required_text,
};
use crate::error::{Error, Result};

/// Rules of one container.
pub const ITEM_RULES_MAX: usize = 64;
/// The largest item that an api may allow: 16 MB, and room for what the stored form has beside a document.
pub const LARGE_ITEM_BYTES_MAX: usize = 16 * 1024 * 1024 + 64 * 1024;
/// Rules that a container may ever have.
const NUMBERS_MAX: u16 = 0x3FFF;

#[derive(Debug, Clone, PartialEq)]
pub struct ItemRule {
    pub number: u16,
    /// The api that reads it.
    pub host: String,
    /// It claims keys.
    pub unique: bool,
    /// It says when items are over.
    pub expires: bool,
    pub specification: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ItemRules {
    /// The number of the next rule.
    pub next: u16,
    pub rules: Vec<ItemRule>,
    /// How large an item may be as it is stored, where that is more than usual.
    pub item_bytes_max: Option<usize>,
}

impl Default for ItemRules {
    fn default() -> ItemRules {
        ItemRules { next: 1, rules: Vec::new(), item_bytes_max: None }
    }
}

impl ItemRules {
    /// Adds a rule under a number of its own.
    pub fn add(&mut self, host: &str, unique: bool, expires: bool, specification: Value) -> Result<u16> {
        let number = self.next;
        if self.rules.len() >= ITEM_RULES_MAX || number >= NUMBERS_MAX {
            return Err(Error::bad_request(format!(
                "A container has at most {ITEM_RULES_MAX} rules for its items, and {NUMBERS_MAX} in its life."
            )));
        }
        self.next += 1;
        self.rules.push(ItemRule { number, host: host.to_owned(), unique, expires, specification });
        Ok(number)
    }

    /// As the definition of a container holds them.
    pub fn to_json(&self) -> Value {
        let rules: Vec<Value> = (self.rules.iter())
            .map(|rule| {
                json!({
                    "number": rule.number, "host": rule.host, "unique": rule.unique, "expires": rule.expires,
                    "specification": rule.specification,
                })
            })
            .collect();
        let mut json = json!({ "next": self.next, "rules": rules });
        if let Some(bytes) = self.item_bytes_max {
            json["itemBytesMax"] = bytes.into();
        }
        json
    }
}

pub(super) fn parse(from: &Map<String, Value>) -> Result<Option<ItemRules>> {
    let Some(policy) = object_member(from, "itemRules")? else { return Ok(None) };
    let number = |from: &Map<String, Value>, name: &str| {
        let number = integer_member(from, name)?.and_then(|number| u16::try_from(number).ok());
        number.filter(|number| (1..=NUMBERS_MAX).contains(number)).ok_or_else(invalid_input)
    };
    let item_bytes_max = match integer_member(policy, "itemBytesMax")? {
        None => None,
        Some(bytes) => {
            let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= LARGE_ITEM_BYTES_MAX);
            Some(bytes.ok_or_else(invalid_input)?)
        }
    };
    let mut rules = ItemRules { next: number(policy, "next")?, rules: Vec::new(), item_bytes_max };
    for entry in array_member(policy, "rules")?.into_iter().flatten() {
        let entry = object(entry)?;
        let rule = ItemRule {
            number: number(entry, "number")?,
            host: required_text(entry, "host")?.to_owned(),
            unique: bool_member(entry, "unique")?.unwrap_or(false),
            expires: bool_member(entry, "expires")?.unwrap_or(false),
            specification: entry.get("specification").cloned().unwrap_or_default(),
        };
        let known = rules.rules.iter().any(|known| known.number == rule.number);
        if known || rule.number >= rules.next || rules.rules.len() >= ITEM_RULES_MAX {
            return Err(invalid_input());
        }
        rules.rules.push(rule);
    }
    Ok(Some(rules))
}
