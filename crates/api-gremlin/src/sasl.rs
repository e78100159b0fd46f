//! The credentials of a connection: SASL PLAIN, whose user is a graph and whose password is a key or a resource token.
//!
//! ```text
//! base64( 0x00  /dbs/shop/colls/people  0x00  key | type=resource&ver=1&sig=… | type=master&ver=1.0&date=…&sig=… )
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Longest credentials: names of a database and a container, and a resource token.
pub const CREDENTIALS_BYTES_MAX: usize = 16 * 1024;

/// What a client says about itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub database: String,
    pub container: String,
    /// A key in base64, or a resource token.
    pub password: String,
}

impl Credentials {
    /// Base64 of the message, as nearly all drivers send it.
    pub fn of_text(text: &str) -> Option<Credentials> {
        let text = text.trim();
        if text.len() > CREDENTIALS_BYTES_MAX {
            return None;
        }
        Credentials::of_bytes(&STANDARD.decode(text).ok()?)
    }

    /// The message itself.
    pub fn of_bytes(bytes: &[u8]) -> Option<Credentials> {
        if bytes.len() > CREDENTIALS_BYTES_MAX {
            return None;
        }
        let mut parts = bytes.splitn(3, |byte| *byte == 0);
        // Who acts for somebody else names himself first; nobody does here.
        let _authorization = parts.next()?;
        let user = std::str::from_utf8(parts.next()?).ok()?;
        let password = std::str::from_utf8(parts.next()?).ok()?;
        Credentials::of_user(user, password)
    }

    /// The name of a graph as `/dbs/…/colls/…`, and a password.
    pub fn of_user(user: &str, password: &str) -> Option<Credentials> {
        let segments: Vec<&str> = user.trim_matches('/').split('/').collect();
        let ["dbs", database, "colls", container] = segments[..] else { return None };
        let named = !database.is_empty() && !container.is_empty();
        named.then(|| Credentials {
            database: database.to_owned(),
            container: container.to_owned(),
            password: password.to_owned(),
        })
    }
}

// A password that is printed by accident is a password that has leaked.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Credentials({}/{})", self.database, self.container)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_a_graph_and_the_password_may_hold_anything() {
        let given = Credentials::of_bytes(b"\0/dbs/shop/colls/people\0k=\0y").expect("understood");
        assert_eq!((&*given.database, &*given.container, &*given.password), ("shop", "people", "k=\0y"));
        let text = STANDARD.encode(b"\0/dbs/shop/colls/people/\0key");
        assert_eq!(Credentials::of_text(&text).expect("understood").password, "key");
        for wrong in
            [&b""[..], b"\0", b"\0shop\0key", b"\0/dbs//colls/people\0key", b"\0/dbs/a/colls/b/docs/c\0k"]
        {
            assert_eq!(Credentials::of_bytes(wrong), None, "{}", String::from_utf8_lossy(wrong));
        }
        assert_eq!(Credentials::of_text("no base64!"), None);
        assert_eq!(format!("{given:?}"), "Credentials(shop/people)");
    }
}
