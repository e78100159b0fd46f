//! Who a connection speaks for, and what of a graph that opens.
//!
//! A password is a key of the account, compared in constant time, a signature that a key has made, or a resource
//! token that the NoSQL API has handed out. A token is looked at with every request: its time may be over, and what
//! it grants may be gone.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orrery_engine::access::{
    Demand, KeySlot, Limits, Part, Principal, Reach, Resource, ResourceName, ResourceToken, ResourceTokens,
    Subject, permit,
};
use orrery_engine::{Account, AccountKeys, Container, Error, Ref};
use percent_encoding::percent_decode_str;
use subtle::ConstantTimeEq as _;

use crate::errors::Failure;
use crate::sasl::Credentials;
use crate::signed_password::{SigningKeys, is_signature};

/// Whom a connection speaks for, and of which graph.
#[derive(Clone)]
pub struct Identity {
    pub database: Arc<str>,
    pub container: Arc<str>,
    proof: Proof,
}

#[derive(Clone)]
enum Proof {
    Key(KeySlot),
    Token(Arc<ResourceToken>),
}

/// A graph, and what the caller may do there.
pub struct Permitted {
    pub container: Arc<Container>,
    pub limits: Limits,
    pub writes: bool,
}

pub struct Authorizer {
    keys: AccountKeys,
    signing: SigningKeys,
    tokens: ResourceTokens,
}

impl Authorizer {
    pub fn new(keys: AccountKeys, account: u32, skew_s: u64) -> Authorizer {
        let tokens = ResourceTokens::new(&keys, account, skew_s);
        let signing = SigningKeys::new(&keys, skew_s);
        Authorizer { keys, signing, tokens }
    }

    /// Who says so; an error when that is not true.
    pub fn recognise(&self, credentials: &Credentials, now_ms: u64) -> Result<Identity, Failure> {
        let proof = match is_signature(&credentials.password) {
            true => self.signing.signer(credentials, now_ms).map(Proof::Key),
            false => self.proof(&credentials.password, now_ms),
        };
        let proof = proof.ok_or_else(Failure::unauthorized)?;
        Ok(Identity {
            database: credentials.database.as_str().into(),
            container: credentials.container.as_str().into(),
            proof,
        })
    }

    fn proof(&self, password: &str, now_ms: u64) -> Option<Proof> {
        if password.contains("type=resource") || password.contains("type%3Dresource") {
            let token = read_token(password)?;
            self.tokens.verify(&token, now_ms).ok()?;
            return Some(Proof::Token(Arc::new(token)));
        }
        let given = STANDARD.decode(password.trim()).ok()?;
        // Every key is compared, whichever it is.
        let matching =
            self.keys.present().filter(|(_, key)| bool::from(key.ct_eq(&given))).map(|(slot, _)| slot);
        matching.last().map(Proof::Key)
    }

    /// The graph of a connection, as it is now.
    pub async fn permit(&self, account: &Account, identity: &Identity) -> Result<Permitted, Failure> {
        let principal = match &identity.proof {
            Proof::Key(slot) => Principal::Key(*slot),
            Proof::Token(token) => match self.tokens.verify(token, account.env().now_ms()) {
                Ok(grant) => Principal::Granted(Box::new(grant)),
                Err(_) => return Err(Failure::unauthorized()),
            },
        };
        let name = |name: &str| ResourceName { name: Cow::Owned(name.to_owned()), id: None };
        let subject = || Subject {
            resource: Resource {
                database: name(&identity.database),
                container: name(&identity.container),
                part: Part::Whole,
            },
            key: None,
            item_at: None,
            has_scope: true,
        };
        let reads = Demand { reach: Reach::Feed, reads: true };
        let limits = permit(account, &principal, reads, subject)
            .await
            .map_err(|denied| Failure::from(Error::from(denied)))?;
        let writes = Demand { reach: Reach::Batch, reads: false };
        let writes = permit(account, &principal, writes, subject).await.is_ok();
        let found = account
            .database(Ref::Name(&identity.database))
            .and_then(|database| database.container(Ref::Name(&identity.container)));
        let container = found.map_err(|_| Failure::from(Error::owner_not_found()))?;
        Ok(Permitted { container, limits, writes })
    }
}

/// `type=resource&ver=1&sig=<signature>;<payload>;`, as the NoSQL API writes it, perhaps percent-encoded.
fn read_token(text: &str) -> Option<ResourceToken> {
    let decoded = percent_decode_str(text.trim()).decode_utf8().ok()?;
    let (_, signed) = decoded.split_once("sig=")?;
    let (signature, payload) = signed.strip_suffix(';').unwrap_or(signed).split_once(';')?;
    Some(ResourceToken {
        signature: STANDARD.decode(signature).ok()?,
        payload: STANDARD.decode(payload).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_opens_and_anything_else_does_not() {
        let keys = AccountKeys {
            primary: b"first".to_vec(),
            primary_readonly: b"read".to_vec(),
            ..AccountKeys::default()
        };
        let authorizer = Authorizer::new(keys, 1, 900);
        let slot = |password: &str| match authorizer.proof(password, 0) {
            Some(Proof::Key(slot)) => Some(slot),
            _ => None,
        };
        assert_eq!(slot(&STANDARD.encode("first")), Some(KeySlot::Primary));
        assert_eq!(slot(&STANDARD.encode("read")), Some(KeySlot::PrimaryReadonly));
        for wrong in ["", "first", "type=resource&ver=1&sig=AAAA;AAAA;", &STANDARD.encode("firs")] {
            assert_eq!(slot(wrong), None, "{wrong}");
        }
    }
}
