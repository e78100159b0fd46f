//! Resource tokens: what a permission turns into, for whoever has no key.
//!
//! ```text
//! type=resource&ver=1&sig=<signature>;<payload>;          both in base64, the form that every client passes on whole
//! ```
//!
//! The payload says everything that a request has to be judged by: which account and database, which resource, how, under
//! which partition key, from when until when. The signature is an HMAC of it under a key derived from a master key of
//! the account, so the server keeps no list of tokens: a token is good until its time is over or the master key it was
//! made under is changed. Deleting or changing the permission does not take back tokens that were handed out; that is
//! the service's rule, and brokers which renew a permission for every session rely on it.
//!
//! A payload holds no secret; whoever has the token has the resource. It carries the permission's numbers for the
//! log, and a random number so that no two tokens are alike.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use orrery_engine::PermissionMode;
use orrery_model::PartitionKey;
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// Keeps signatures of tokens apart from signatures of requests, which are made under the master key itself.
const DERIVATION: &[u8] = b"orrery resource token 1";
const VERSION: u8 = 1;
const MODE_READ: u8 = 0;
const MODE_ALL: u8 = 1;

/// What a token grants.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The account that made the token; another one with the same key is another one.
    pub account: u32,
    /// The database, user and permission behind it. Nothing outside this database is ever granted.
    pub database: u32,
    pub user: u32,
    pub permission: u32,
    pub mode: PermissionMode,
    pub start_s: u32,
    pub expiry_s: u32,
    /// The link that the permission names, as its author wrote it.
    pub resource: String,
    pub partition_key: Option<PartitionKey>,
}

/// The key that signs tokens, made of a master key.
pub struct TokenKey(Hmac<Sha256>);

impl TokenKey {
    pub fn derive(master_key: &[u8]) -> TokenKey {
        let mut mac = Hmac::<Sha256>::new_from_slice(master_key).expect("HMAC takes keys of any length");
        mac.update(DERIVATION);
        let derived = mac.finalize().into_bytes();
        TokenKey(Hmac::new_from_slice(&derived).expect("HMAC takes keys of any length"))
    }

    /// The whole token, as it stands in a permission.
    pub fn issue(&self, grant: &Grant, random: u32) -> String {
        let payload = encode(grant, random);
        let signature = self.sign(&payload);
        format!("type=resource&ver=1&sig={};{};", STANDARD.encode(signature), STANDARD.encode(payload))
    }

    fn sign(&self, payload: &[u8]) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(payload);
        mac.finalize().into_bytes().into()
    }
}

/// A token that is well-formed; whether it is genuine is a question for the keys.
pub struct Presented {
    signature: Vec<u8>,
    payload: Vec<u8>,
}

impl Presented {
    /// Reads what follows `sig=`.
    pub fn parse(text: &str) -> Option<Presented> {
        // Some clients cut the last semicolon off.
        let (signature, payload) = text.strip_suffix(';').unwrap_or(text).split_once(';')?;
        let (signature, payload) = (STANDARD.decode(signature).ok()?, STANDARD.decode(payload).ok()?);
        Some(Presented { signature, payload })
    }

    /// What the token grants, if one of the keys has signed it.
    pub fn verify<'k>(&self, keys: impl IntoIterator<Item = &'k TokenKey>) -> Option<Grant> {
        let genuine =
            keys.into_iter().any(|key| bool::from(key.sign(&self.payload).as_slice().ct_eq(&self.signature)));
        // Only now are the bytes looked at: they are ours, or nobody's.
        if genuine { decode(&self.payload) } else { None }
    }
}

fn encode(grant: &Grant, random: u32) -> Vec<u8> {
    let mut out = vec![VERSION];
    let numbers = [
        random,
        grant.account,
        grant.database,
        grant.user,
        grant.permission,
        grant.start_s,
        grant.expiry_s,
        grant.resource.len() as u32,
    ];
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
    out.push(match grant.mode {
        PermissionMode::Read => MODE_READ,
        PermissionMode::All => MODE_ALL,
    });
    out.extend_from_slice(grant.resource.as_bytes());
    // How many components the key has, and one more: 0 is no key, 1 is `[]`.
    let components = grant.partition_key.as_ref().map_or(0, |key| key.0.len() + 1);
    out.push(u8::try_from(components).unwrap_or(u8::MAX));
    if let Some(key) = &grant.partition_key {
        key.encode(&mut out);
    }
    out
}

fn decode(bytes: &[u8]) -> Option<Grant> {
    let (version, rest) = bytes.split_first()?;
    if *version != VERSION {
        return None;
    }
    let (numbers, rest) = rest.split_first_chunk::<32>()?;
    let (chunks, _) = numbers.as_chunks::<4>();
    let number = |at: usize| u32::from_be_bytes(chunks[at]);
    let (mode, rest) = rest.split_first()?;
    let (resource, rest) = rest.split_at_checked(number(7) as usize)?;
    let (components, rest) = rest.split_first()?;
    Some(Grant {
        account: number(1),
        database: number(2),
        user: number(3),
        permission: number(4),
        start_s: number(5),
        expiry_s: number(6),
        mode: match *mode {
            MODE_READ => PermissionMode::Read,
            MODE_ALL => PermissionMode::All,
            _ => return None,
        },
        resource: std::str::from_utf8(resource).ok()?.to_owned(),
        partition_key: match usize::from(*components) {
            0 if rest.is_empty() => None,
            0 => return None,
            more => Some(PartitionKey::decode(rest).filter(|key| key.0.len() + 1 == more)?),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(key: Option<&str>) -> Grant {
        Grant {
            account: 1,
            database: 2,
            user: 3,
            permission: 4,
            mode: PermissionMode::All,
            start_s: 5,
            expiry_s: 6,
            resource: "dbs/d/colls/grün".to_owned(),
            partition_key: key.map(|text| PartitionKey::parse_header(text).unwrap()),
        }
    }

    fn verified(token: &str, keys: &[TokenKey]) -> Option<Grant> {
        Presented::parse(token.strip_prefix("type=resource&ver=1&sig=")?)?.verify(keys)
    }

    #[test]
    fn a_token_says_what_was_granted_to_whoever_knows_the_key() {
        let keys = [TokenKey::derive(b"one"), TokenKey::derive(b"two")];
        for key in [None, Some("[]"), Some(r#"["a",null]"#), Some("[{}]")] {
            let token = keys[1].issue(&grant(key), 7);
            assert_eq!(verified(&token, &keys), Some(grant(key)));
            assert_eq!(verified(token.trim_end_matches(';'), &keys), Some(grant(key)));
            assert_eq!(verified(&token, &keys[..1]), None, "the key was changed");
        }
        assert_ne!(keys[0].issue(&grant(None), 1), keys[0].issue(&grant(None), 2));
    }

    #[test]
    fn no_byte_of_a_token_can_be_changed() {
        let keys = [TokenKey::derive(b"one")];
        let token = keys[0].issue(&grant(Some(r#"["a"]"#)), 7);
        let (signature, payload) =
            token["type=resource&ver=1&sig=".len()..token.len() - 1].split_once(';').unwrap();
        let (signature, payload) = (STANDARD.decode(signature).unwrap(), STANDARD.decode(payload).unwrap());
        for at in 0..signature.len() + payload.len() {
            for bit in 0..8 {
                let (mut signature, mut payload) = (signature.clone(), payload.clone());
                match at.checked_sub(signature.len()) {
                    None => signature[at] ^= 1 << bit,
                    Some(at) => payload[at] ^= 1 << bit,
                }
                let forged = format!("{};{};", STANDARD.encode(signature), STANDARD.encode(payload));
                assert_eq!(Presented::parse(&forged).unwrap().verify(&keys), None, "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn an_empty_or_short_signature_proves_nothing() {
        let keys = [TokenKey::derive(b"one")];
        let payload = STANDARD.encode(encode(&grant(None), 7));
        for text in [format!(";{payload};"), format!("AAAA;{payload};"), ";;".to_owned()] {
            assert!(Presented::parse(&text).is_none_or(|token| token.verify(&keys).is_none()), "{text}");
        }
        assert!(Presented::parse("nothing").is_none());
        assert!(Presented::parse("!!;!!;").is_none());
    }

    #[test]
    fn a_signed_payload_of_another_form_is_refused_and_never_a_panic() {
        let keys = [TokenKey::derive(b"one")];
        let whole = encode(&grant(Some("[1]")), 7);
        for length in 0..whole.len() {
            assert_eq!(decode(&whole[..length]), None, "{length}");
        }
        let mut longest = whole.clone();
        longest[29..33].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(decode(&longest), None);
        let newer = [&[VERSION + 1], &whole[1..]].concat();
        let token = Presented { signature: keys[0].sign(&newer).to_vec(), payload: newer };
        assert_eq!(token.verify(&keys), None);
    }
}
