//! Client encryption keys: the wrapped keys that clients encrypt items with, before they send them.
//!
//! A key belongs to a database. What the server holds of it is useless without the key that wraps it, which clients
//! keep elsewhere; `keyWrapMetadata` tells them where. So there is nothing to do with a key but to keep it: the
//! definition is read once to refuse what no client could use, and its canonical text is what is stored and echoed.

use std::sync::Arc;

use imbl::{HashMap, OrdMap};
use serde_json::{Map, Value};

use crate::account::Ref;
use crate::definition::names;
use crate::error::{Error, Result};
use crate::etag::Etag;

/// Most client encryption keys of a database, as on the service.
pub const ENCRYPTION_KEYS_MAX: usize = 20;
/// Longest definition, as JSON text: a wrapped key is a few hundred bytes, and metadata is a name and an address.
pub const ENCRYPTION_KEY_BYTES_MAX: usize = 64 * 1024;

/// What the metadata must say; `algorithm` may be missing, with keys that were wrapped by older clients.
const METADATA_REQUIRED: [&str; 3] = ["type", "name", "value"];

/// What a client says about a key, valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptionKeyDefinition {
    pub name: String,
    /// The canonical object: `id`, `encryptionAlgorithm`, `wrappedDataEncryptionKey`, `keyWrapMetadata`.
    pub(crate) text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct EncryptionKey {
    /// Shares its counter with the containers and users of the database.
    pub number: u32,
    pub definition: EncryptionKeyDefinition,
    pub etag: Etag,
    pub ts: u32,
}

/// The keys of one database at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct EncryptionKeys {
    by_number: OrdMap<u32, Arc<EncryptionKey>>,
    by_name: HashMap<String, u32>,
}

impl EncryptionKeyDefinition {
    pub fn parse(from: &Value) -> Result<EncryptionKeyDefinition> {
        let from = from.as_object().ok_or_else(invalid)?;
        let text = |name: &str| match from.get(name) {
            None | Some(Value::Null) => Err(missing(name)),
            Some(Value::String(text)) if !text.is_empty() => Ok(text.as_str()),
            Some(_) => Err(invalid()),
        };
        let (name, algorithm) = (text("id")?, text("encryptionAlgorithm")?);
        names::check(name)?;
        let wrapped = text("wrappedDataEncryptionKey")?;
        if !is_base64(wrapped) {
            return Err(invalid());
        }
        let metadata = metadata(from.get("keyWrapMetadata"))?;
        let mut canonical = Map::new();
        canonical.insert("id".into(), name.into());
        canonical.insert("encryptionAlgorithm".into(), algorithm.into());
        canonical.insert("wrappedDataEncryptionKey".into(), wrapped.into());
        canonical.insert("keyWrapMetadata".into(), metadata);
        let text = Value::Object(canonical).to_string();
        if text.len() > ENCRYPTION_KEY_BYTES_MAX {
            return Err(invalid());
        }
        Ok(EncryptionKeyDefinition { name: name.to_owned(), text })
    }

    /// The canonical object as JSON text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

fn metadata(from: Option<&Value>) -> Result<Value> {
    let metadata = match from {
        None | Some(Value::Null) => return Err(missing("keyWrapMetadata")),
        Some(value) => value.as_object().ok_or_else(invalid)?,
    };
    let is_text =
        |name: &str| metadata.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let all_text = metadata.values().all(|value| value.is_string() || value.is_null());
    if !all_text || !METADATA_REQUIRED.into_iter().all(is_text) {
        return Err(invalid());
    }
    Ok(Value::Object(metadata.clone()))
}

/// Bytes as JSON carries them; nobody here needs to know them.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let of_alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len().is_multiple_of(4) && text.len() - digits.len() <= 2 && digits.bytes().all(of_alphabet)
}

fn missing(name: &str) -> Error {
    Error::bad_request(format!(
        "The input content is invalid because the required properties - '{name}; ' - are missing"
    ))
}

fn invalid() -> Error {
    Error::bad_request("One of the specified inputs is invalid")
}

impl EncryptionKeys {
    /// In creation order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<EncryptionKey>> {
        self.by_number.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(crate) fn get(&self, by: Ref<'_>) -> Result<Arc<EncryptionKey>> {
        let number = match by {
            Ref::Name(name) => self.by_name.get(name).copied(),
            Ref::Number(number) => Some(number),
        };
        number.and_then(|number| self.by_number.get(&number)).cloned().ok_or_else(Error::not_found)
    }

    /// A key keeps its name, so a new version replaces the old one under both.
    pub(crate) fn insert(&mut self, key: Arc<EncryptionKey>) {
        self.by_name.insert(key.definition.name.clone(), key.number);
        self.by_number.insert(key.number, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key() -> Value {
        json!({
            "id": "k", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": "AAEC",
            "keyWrapMetadata": { "type": "local", "name": "master", "value": "here", "algorithm": "RSA-OAEP" },
            "_ts": 7,
        })
    }

    #[test]
    fn the_canonical_text_holds_what_clients_need_and_no_more() {
        let definition = EncryptionKeyDefinition::parse(&key()).unwrap();
        let mut expected = key();
        expected.as_object_mut().unwrap().remove("_ts");
        assert_eq!(serde_json::from_str::<Value>(definition.text()).unwrap(), expected);
    }

    #[test]
    fn what_no_client_could_use_is_refused() {
        let refused = |change: &dyn Fn(&mut Value)| {
            let mut key = key();
            change(&mut key);
            EncryptionKeyDefinition::parse(&key).expect_err("must be refused").message
        };
        for name in ["id", "encryptionAlgorithm", "wrappedDataEncryptionKey", "keyWrapMetadata"] {
            assert!(refused(&|key| key[name] = Value::Null).contains(name));
            assert!(refused(&|key| key[name] = json!(7)).contains("invalid"));
        }
        assert!(refused(&|key| key["id"] = json!("a/b")).contains("invalid character"));
        assert!(refused(&|key| key["wrappedDataEncryptionKey"] = json!("no base64!")).contains("invalid"));
        for name in METADATA_REQUIRED {
            assert!(refused(&|key| key["keyWrapMetadata"][name] = json!("")).contains("invalid"));
        }
        assert!(refused(&|key| key["keyWrapMetadata"]["more"] = json!({})).contains("invalid"));
        let long = "AAAA".repeat(ENCRYPTION_KEY_BYTES_MAX / 4);
        assert!(refused(&|key| key["wrappedDataEncryptionKey"] = json!(long)).contains("invalid"));
    }
}
