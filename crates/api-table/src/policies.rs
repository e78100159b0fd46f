//! Stored access policies of a table: `<SignedIdentifiers>`.

use crate::errors::{Code, Result, TableError};
use crate::xml::{self, Element};

/// Most policies of a table.
pub const POLICIES_MAX: usize = 5;
const ID_CHARS_MAX: usize = 64;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    pub id: String,
    pub start: Option<String>,
    pub expiry: Option<String>,
    pub permissions: Option<String>,
}

impl AccessPolicy {
    /// Whether it says nothing but its name.
    fn is_empty(&self) -> bool {
        self.start.is_none() && self.expiry.is_none() && self.permissions.is_none()
    }
}

/// Reads the policies that a request sets.
pub fn parse(body: &[u8]) -> Result<Vec<AccessPolicy>> {
    let invalid = || TableError::from(Code::InvalidXmlDocument);
    let text = std::str::from_utf8(body).map_err(|_| invalid())?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let root = Element::parse(text).filter(|root| root.name == "SignedIdentifiers").ok_or_else(invalid)?;
    if root.children.len() > POLICIES_MAX {
        return Err(invalid());
    }
    let mut policies: Vec<AccessPolicy> = Vec::new();
    for identifier in &root.children {
        let id = identifier.value("Id").filter(|id| !id.is_empty() && id.chars().count() <= ID_CHARS_MAX);
        let id = id.filter(|_| identifier.name == "SignedIdentifier").ok_or_else(invalid)?;
        if policies.iter().any(|known| known.id == id) {
            return Err(invalid());
        }
        let policy = identifier.child("AccessPolicy");
        let member = |name: &str| {
            let value = policy.and_then(|policy| policy.value(name)).filter(|value| !value.is_empty());
            value.map(str::to_owned)
        };
        policies.push(AccessPolicy {
            id: id.to_owned(),
            start: member("Start"),
            expiry: member("Expiry"),
            permissions: member("Permission"),
        });
    }
    Ok(policies)
}

/// The policies as an answer carries them, and as they are kept.
pub fn write(policies: &[AccessPolicy]) -> String {
    let mut out = format!("{}<SignedIdentifiers>", xml::DECLARATION);
    for policy in policies {
        out.push_str("<SignedIdentifier>");
        xml::push(&mut out, "Id", &policy.id);
        if policy.is_empty() {
            out.push_str("</SignedIdentifier>");
            continue;
        }
        out.push_str("<AccessPolicy>");
        for (name, value) in
            [("Start", &policy.start), ("Expiry", &policy.expiry), ("Permission", &policy.permissions)]
        {
            if let Some(value) = value {
                xml::push(&mut out, name, value);
            }
        }
        out.push_str("</AccessPolicy></SignedIdentifier>");
    }
    out.push_str("</SignedIdentifiers>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_come_back_as_they_were_set() {
        let policy = AccessPolicy {
            id: "a&b".into(),
            start: Some("2020-01-01T00:00:00Z".into()),
            expiry: None,
            permissions: Some("raud".into()),
        };
        let several = [policy, AccessPolicy { id: "none".into(), ..AccessPolicy::default() }];
        assert_eq!(parse(write(&several).as_bytes()).unwrap(), several);
        assert_eq!(parse(b"").unwrap(), []);
        assert_eq!(parse(b"<SignedIdentifiers />").unwrap(), []);
    }

    #[test]
    fn too_many_and_nonsense_are_refused() {
        let id = |n: usize| AccessPolicy { id: n.to_string(), ..AccessPolicy::default() };
        let six: Vec<_> = (0..6).map(id).collect();
        let twice = [id(1), id(1)];
        for text in
            [&write(&six), &write(&twice), "<Other/>", "<SignedIdentifiers><X/></SignedIdentifiers>", "x"]
        {
            assert_eq!(parse(text.as_bytes()).unwrap_err().code, Code::InvalidXmlDocument, "{text}");
        }
    }
}
