//! From a record's JSON to what is written: an id, a partition key, a body.

use orrery_model::{KeyComponent, PartitionKey, PartitionKeyDefinition, PropertyPath};

use super::key_rule::KeyRule;
use super::raw_json::{self, Member};

/// The protocol's limit for an item.
const ITEM_BYTES_MAX: usize = 2 * 1024 * 1024;
const ID_BYTES_MAX: usize = 1023;
/// Members that belong to the server; what a source says of them is about the source.
pub use orrery_engine::SYSTEM_PROPERTIES;

#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub id: String,
    pub key: PartitionKey,
    pub body: String,
}

/// What is done with every record.
pub struct Preparation {
    pub rule: Option<KeyRule>,
    /// The property that becomes the id, instead of `id`.
    pub id_from: Option<PropertyPath>,
    pub key: PartitionKeyDefinition,
    /// Begins the ids of records that have none.
    pub id_prefix: String,
}

impl Preparation {
    /// `record` is the record's number in its source: ids that are made from it are the same when the import is run
    /// again.
    pub fn item(&self, text: String, record: u64) -> Result<Item, String> {
        raw_json::check(&text)?;
        let members = raw_json::members(&text).ok_or("not JSON")?;
        let find =
            |name: &str| members.iter().rev().find(|member| member.name == name).map(|member| member.value);
        let mut with: Vec<(String, String)> = Vec::new();
        let given = match &self.id_from {
            None => find("id"),
            Some(path) => at(&members, path),
        };
        let id = match given.map(|value| (value, value.as_bytes().first().copied())) {
            None if self.id_from.is_some() => return Err("the property of --id is missing".into()),
            None => format!("{}{record}", self.id_prefix),
            Some((value, Some(b'"'))) => raw_json::unquoted(value).ok_or("not JSON")?.into_owned(),
            Some((value, Some(b'-' | b'0'..=b'9'))) => value.to_owned(),
            Some(_) => return Err("the id is neither a string nor a number".into()),
        };
        check_id(&id)?;
        let as_it_is = self.id_from.is_none() && given.is_some_and(|value| value.starts_with('"'));
        if !as_it_is {
            with.push(("id".into(), raw_json::quoted(&id)));
        }
        if let Some(rule) = &self.rule {
            with.extend(rule.member(&members, &id)?);
        }
        let strange = members.iter().any(|member| SYSTEM_PROPERTIES.contains(&&*member.name));
        let key = self.key(&members, &with);
        let body = if with.is_empty() && !strange {
            drop(members);
            text
        } else {
            let with: Vec<(&str, String)> =
                with.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            raw_json::rewritten(&members, &SYSTEM_PROPERTIES, &with)
        };
        if body.len() > ITEM_BYTES_MAX {
            return Err(format!("{} bytes are more than an item may have ({ITEM_BYTES_MAX})", body.len()));
        }
        Ok(Item { id, key, body })
    }

    fn key(&self, members: &[Member<'_>], with: &[(String, String)]) -> PartitionKey {
        let component = |path: &PropertyPath| {
            let (first, rest) = path.segments().split_first()?;
            let new = with.iter().find(|(name, _)| name == first).map(|(_, value)| value.as_str());
            let old = || members.iter().rev().find(|member| member.name == *first).map(|member| member.value);
            raw_json::at_path(new.or_else(old)?, rest).and_then(scalar)
        };
        let components = self.key.paths.iter().map(|path| component(path).unwrap_or(KeyComponent::Undefined));
        let key = PartitionKey(components.collect());
        if self.key.system_key && key.is_undefined() { PartitionKey::default() } else { key }
    }
}

fn at<'t>(members: &[Member<'t>], path: &PropertyPath) -> Option<&'t str> {
    let (first, rest) = path.segments().split_first()?;
    let found = members.iter().rev().find(|member| member.name == *first)?;
    raw_json::at_path(found.value, rest)
}

/// A value as a component of a key; arrays and objects are none.
pub fn scalar(text: &str) -> Option<KeyComponent> {
    Some(match text.as_bytes().first()? {
        b'"' => KeyComponent::String(raw_json::unquoted(text)?.into_owned()),
        b'n' => KeyComponent::Null,
        b't' => KeyComponent::Bool(true),
        b'f' => KeyComponent::Bool(false),
        b'{' | b'[' => return None,
        _ => KeyComponent::Number(text.parse().ok()?),
    })
}

fn check_id(id: &str) -> Result<(), String> {
    match id.chars().find(|c| matches!(c, '/' | '\\' | '?' | '#')) {
        _ if id.is_empty() => Err("the id is empty".into()),
        _ if id.len() > ID_BYTES_MAX => Err(format!("the id has more than {ID_BYTES_MAX} bytes")),
        Some(wrong) => Err(format!("the id has a `{wrong}`, which no id may have (see --id)")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::key_definition;
    use serde_json::json;

    fn preparation(rule: &str) -> Preparation {
        let rule = KeyRule::parse(rule).unwrap();
        let key = key_definition(&rule.definition()).unwrap();
        Preparation { rule: Some(rule), id_from: None, key, id_prefix: "made-".into() }
    }

    fn key(item: &Item) -> String {
        let mut out = Vec::new();
        item.key.write_json(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_item_that_needs_nothing_is_sent_as_it_is() {
        let text = r#"{"id":"a", "pk":"x","n":9007199254740993}"#;
        let item = preparation("/pk").item(text.into(), 1).unwrap();
        assert_eq!((item.body.as_str(), item.id.as_str(), key(&item).as_str()), (text, "a", r#"["x"]"#));
    }

    #[test]
    fn ids_are_found_made_or_refused() {
        let preparation = preparation("/pk");
        let id = |text: &str| preparation.item(text.into(), 7).map(|item| item.id);
        assert_eq!(id("{}").unwrap(), "made-7");
        assert_eq!(id(r#"{"id":5}"#).unwrap(), "5");
        for (text, reason) in [
            (r#"{"id":null}"#, "neither a string"),
            (r#"{"id":""}"#, "empty"),
            (r#"{"id":"a/b"}"#, "`/`"),
            ("{", "not JSON"),
            ("[]", "not a JSON object"),
        ] {
            assert!(id(text).unwrap_err().contains(reason), "{text}");
        }
    }

    #[test]
    fn keys_are_taken_or_made_and_system_properties_left_behind() {
        let item = preparation("/pk=concat(/a,/b)")
            .item(json!({"id":"i","a":"x","b":2,"_ts":5}).to_string(), 1)
            .unwrap();
        assert_eq!(
            (item.body.as_str(), key(&item).as_str()),
            (r#"{"pk":"x-2","id":"i","a":"x","b":2}"#, r#"["x-2"]"#)
        );
        let item =
            preparation("/t,/u/v").item(json!({"id":"i","t":true,"u":{"v":null}}).to_string(), 1).unwrap();
        assert_eq!(key(&item), "[true,null]");
        let item = preparation("/t").item(json!({"id":"i","t":[1]}).to_string(), 1).unwrap();
        assert_eq!(key(&item), "[{}]");
    }
}
