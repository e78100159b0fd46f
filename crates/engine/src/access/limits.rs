//! What of a request is still restricted after it was let in: a partition key, or one item.
//!
//! A grant may be narrower than what a request could reach under its name. Whoever reads keys, ids and scopes out of a
//! request applies the limits there, so that no handler can get at one without them.

use orrery_model::{Epk, PartitionKey};

use crate::container::Container;
use crate::error::{Error, Kind, Result};
use crate::feed::Scope;

/// Why a principal may not do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// What is asked for was not granted.
    Insufficient,
    /// What was granted has to be compared with the key of the request, and there is none that can be read.
    KeyUnreadable,
}

impl From<Denied> for Error {
    fn from(_: Denied) -> Error {
        Error::new(Kind::AccessDenied, "The credentials of the request do not permit it.")
    }
}

/// What a request that was let in must keep to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Only items under this key, which may be the beginning of a hierarchical one.
    key: Option<PartitionKey>,
    /// Only the item that the request names: it keeps its id.
    one_item: bool,
}

impl Limits {
    /// An empty key is the beginning of every key, and no limit.
    pub(super) fn under(key: Option<&PartitionKey>) -> Limits {
        Limits { key: key.filter(|key| !key.0.is_empty()).cloned(), one_item: false }
    }

    pub(super) fn with_one_item(self) -> Limits {
        Limits { one_item: true, ..self }
    }

    /// The key that everything must lie under.
    pub fn key(&self) -> Option<&PartitionKey> {
        self.key.as_ref()
    }

    pub fn permits_key(&self, key: &PartitionKey) -> Result<(), Denied> {
        match &self.key {
            Some(granted) if !key.0.starts_with(&granted.0) => Err(Denied::Insufficient),
            _ => Ok(()),
        }
    }

    /// Whether a write may give the item that the request names another id.
    pub fn permits_id(&self, named: &str, id: Option<&str>) -> Result<(), Denied> {
        match id {
            Some(id) if self.one_item && id != named => Err(Denied::Insufficient),
            _ => Ok(()),
        }
    }

    /// The scope, if all of it lies under the granted key. It may come back narrower, never wider.
    pub fn scope(&self, container: &Container, scope: Scope) -> Result<Scope> {
        let Some(granted) = &self.key else { return Ok(scope) };
        match scope {
            Scope::Key(key) if key.0.starts_with(&granted.0) => Ok(Scope::Key(key)),
            Scope::Epk { min, max, range } => {
                let (start, end) = container.span(granted)?;
                let inside = min >= start && (max <= end || min == start && max == after(&start));
                if !inside {
                    return Err(Denied::Insufficient.into());
                }
                if granted.0.len() < container.definition().partition_key.paths.len() {
                    return Ok(Scope::Epk { min, max: max.min(end), range });
                }
                // A client with an old map of ranges must still be told so.
                if let Some(range) = range {
                    container.check_range(range)?;
                }
                // Keys can share a hash; the key itself is what was granted.
                Ok(Scope::Key(granted.clone()))
            }
            _ => Err(Denied::Insufficient.into()),
        }
    }
}

/// The next effective key of the same length: some clients write the span of one key as `[key, key + 1)`.
fn after(epk: &Epk) -> Epk {
    let mut bytes = epk.0.clone();
    for byte in bytes.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            break;
        }
    }
    Epk(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> PartitionKey {
        PartitionKey::parse_header(text).unwrap()
    }

    #[test]
    fn a_key_is_under_itself_and_under_its_beginnings() {
        let limits = |text: &str| Limits::under(Some(&key(text)));
        assert!(limits(r#"["a"]"#).permits_key(&key(r#"["a"]"#)).is_ok());
        assert!(limits(r#"["a"]"#).permits_key(&key(r#"["a","b"]"#)).is_ok());
        for other in ["[]", r#"["b"]"#, "[null]", "[{}]", r#"["A"]"#] {
            assert!(limits(r#"["a"]"#).permits_key(&key(other)).is_err(), "{other}");
        }
        assert!(limits(r#"["a","b"]"#).permits_key(&key(r#"["a"]"#)).is_err());
        assert!(limits("[]").permits_key(&key(r#"["a"]"#)).is_ok());
        assert!(Limits::default().permits_key(&key("[]")).is_ok());
    }

    #[test]
    fn a_limit_with_one_item_holds_its_id() {
        let limits = Limits::default().with_one_item();
        assert!(limits.permits_id("i", Some("i")).is_ok() && limits.permits_id("i", None).is_ok());
        assert_eq!(limits.permits_id("i", Some("j")), Err(Denied::Insufficient));
        assert!(Limits::default().permits_id("i", Some("j")).is_ok());
    }

    #[test]
    fn the_next_effective_key_carries() {
        let epk = |hex: &str| Epk::from_hex(hex).unwrap();
        assert_eq!(after(&epk("0AFF")), epk("0B00"));
        assert_eq!(after(&epk("0A01")), epk("0A02"));
        assert_eq!(after(&Epk::MIN), Epk::MIN);
    }
}
