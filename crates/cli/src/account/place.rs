//! Names of resources as paths that are sent (escaped) and as links that are signed (as they are).

use bytes::Bytes;
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::workload::Call;

/// What stays as it is in a segment of a path.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A resource, or the account itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    path: String,
    link: String,
    kind: &'static str,
}

impl Place {
    pub fn account() -> Place {
        Place { path: String::new(), link: String::new(), kind: "" }
    }

    pub fn database(name: &str) -> Place {
        Place::account().child("dbs", name)
    }

    pub fn container(database: &str, name: &str) -> Place {
        Place::database(database).child("colls", name)
    }

    pub fn item(&self, id: &str) -> Place {
        self.child("docs", id)
    }

    /// One member of a feed below this.
    pub fn child(&self, kind: &'static str, name: &str) -> Place {
        let join = |before: &str, name: &str| match before {
            "" => format!("{kind}/{name}"),
            before => format!("{before}/{kind}/{name}"),
        };
        let escaped = utf8_percent_encode(name, SEGMENT).to_string();
        Place { path: join(&self.path, &escaped), link: join(&self.link, name), kind }
    }

    /// A request about this.
    pub fn call(&self, method: Method) -> Call {
        Call {
            method,
            path: self.path.clone(),
            link: self.link.clone(),
            kind: self.kind,
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// A request about a feed below this.
    pub fn feed(&self, method: Method, kind: &'static str) -> Call {
        let path = if self.path.is_empty() { kind.to_owned() } else { format!("{}/{kind}", self.path) };
        Call { method, path, link: self.link.clone(), kind, headers: Vec::new(), body: Bytes::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_where_they_are_sent_and_not_where_they_are_signed() {
        let call = Place::container("my shop", "ö/x").item("a b").call(Method::GET);
        assert_eq!(call.path, "dbs/my%20shop/colls/%C3%B6%2Fx/docs/a%20b");
        assert_eq!((call.link.as_str(), call.kind), ("dbs/my shop/colls/ö/x/docs/a b", "docs"));
        let feed = Place::account().feed(Method::GET, "dbs");
        assert_eq!((feed.path.as_str(), feed.link.as_str()), ("dbs", ""));
    }
}
