//! Resource tokens: grants that travel, signed, for whoever has no key.
//!
//! A token is a payload and a signature; how they are written down is a matter of the API that hands them out. The
//! payload says everything that a request has to be judged by: which account and database, which resource, how, under
//! which partition key, from when until when. The signature is an HMAC of it under a key derived from a key of the
//! account, so the server keeps no list of tokens: a token is good until its time is over or the account's key it was
//! made under is changed. Deleting or changing the permission does not take back tokens that were handed out; that is
//! the service's rule, and brokers which renew a permission for every session rely on it.
//!
//! A payload holds no secret; whoever has the token has the resource. It carries the permission's numbers for the log,
//! and a random number so that no two tokens are alike.
//!
//! ```text
//! payload: version, random, account, database, user, permission, start, expiry, mode,
//!          database's name, container's name, part (and its name), components of the key + 1, key
//! name:    length, UTF-8, kind of id or 0, its numbers
//! ```

use std::borrow::Cow;
use std::ops::RangeInclusive;

use hmac::{Hmac, Mac};
use orrery_model::PartitionKey;
use orrery_storage::ByteReader;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::grant::Grant;
use super::keys::{AccountKeys, KeySlot};
use super::permit::Principal;
use super::resource::{Part, Resource, ResourceId, ResourceName};
use super::users::PermissionMode;
use crate::script::ScriptKind;

/// How long a token may be good for, in seconds.
pub const TOKEN_LIFETIME_S: RangeInclusive<u32> = 600..=18_000;
/// How long it is unless its maker says otherwise.
pub const TOKEN_LIFETIME_S_DEFAULT: u32 = 3_600;

/// Keeps signatures of tokens apart from signatures of requests, which are made under the account's key itself.
const DERIVATION: &[u8] = b"orrery resource token 1";
/// Version 1 held the resource as a link of one API.
const VERSION: u8 = 2;
const MODE_READ: u8 = 0;
const MODE_ALL: u8 = 1;
const PART_WHOLE: u8 = 0;
const PART_ITEM: u8 = 1;
const PART_SCRIPT: u8 = 2;
const ID_NONE: u8 = 0;
const ID_DATABASE: u8 = 1;
const ID_CONTAINER: u8 = 2;
const ID_ITEM: u8 = 3;
const ID_SCRIPT: u8 = 4;

/// A token in its two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceToken {
    pub signature: Vec<u8>,
    pub payload: Vec<u8>,
}

/// Why a token is no good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRefused {
    /// No key of this account has signed it, or not for this account.
    NotGenuine,
    /// Its time has not begun, or is over.
    NotNow { start_s: u32, expiry_s: u32 },
}

/// Makes and checks the tokens of one account.
pub struct ResourceTokens {
    /// Part of every payload, so that tokens of another account with the same key are no good.
    account: u32,
    /// Only keys that write make tokens.
    keys: Vec<(KeySlot, TokenKey)>,
    /// How far clocks may be apart.
    skew_ms: u64,
}

/// The key that signs tokens, made of a key of the account.
struct TokenKey(Hmac<Sha256>);

impl ResourceTokens {
    pub fn new(keys: &AccountKeys, account: u32, skew_s: u64) -> ResourceTokens {
        let keys = keys.present().filter(|(slot, _)| slot.writes());
        let keys = keys.map(|(slot, key)| (slot, TokenKey::derive(key))).collect();
        ResourceTokens { account, keys, skew_ms: skew_s.saturating_mul(1000) }
    }

    /// A token for what the grant says, made under the key of whoever asks for it: with that key it ends. `None` for
    /// principals that cannot make one.
    pub fn issue(&self, principal: &Principal, grant: &Grant, random: u32) -> Option<ResourceToken> {
        let (_, key) = match principal {
            Principal::Key(slot) => self.keys.iter().find(|(of, _)| of == slot)?,
            Principal::Directory => self.keys.first()?,
            Principal::Granted(_) => return None,
        };
        let payload = encode(self.account, grant, random);
        Some(ResourceToken { signature: key.sign(&payload).to_vec(), payload })
    }

    /// What a genuine token grants at this moment.
    pub fn verify(&self, token: &ResourceToken, now_ms: u64) -> Result<Grant, TokenRefused> {
        let genuine = self
            .keys
            .iter()
            .any(|(_, key)| bool::from(key.sign(&token.payload).as_slice().ct_eq(&token.signature)));
        // Only after that are the bytes looked at: they are ours, or nobody's.
        let (account, grant) =
            genuine.then(|| decode(&token.payload)).flatten().ok_or(TokenRefused::NotGenuine)?;
        if account != self.account {
            return Err(TokenRefused::NotGenuine);
        }
        let (start_ms, expiry_ms) = (u64::from(grant.start_s) * 1000, u64::from(grant.expiry_s) * 1000);
        // A clock that was set back does not make new tokens useless; the end has no grace.
        if now_ms.saturating_add(self.skew_ms) < start_ms || now_ms >= expiry_ms {
            return Err(TokenRefused::NotNow { start_s: grant.start_s, expiry_s: grant.expiry_s });
        }
        Ok(grant)
    }
}

impl TokenKey {
    fn derive(account_key: &[u8]) -> TokenKey {
        let mut mac = Hmac::<Sha256>::new_from_slice(account_key).expect("HMAC takes keys of any length");
        mac.update(DERIVATION);
        let derived = mac.finalize().into_bytes();
        TokenKey(Hmac::new_from_slice(&derived).expect("HMAC takes keys of any length"))
    }

    fn sign(&self, payload: &[u8]) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(payload);
        mac.finalize().into_bytes().into()
    }
}

fn encode(account: u32, grant: &Grant, random: u32) -> Vec<u8> {
    let mut out = vec![VERSION];
    let numbers =
        [random, account, grant.database, grant.user, grant.permission, grant.start_s, grant.expiry_s];
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    out.push(match grant.mode {
        PermissionMode::Read => MODE_READ,
        PermissionMode::All => MODE_ALL,
    });
    put_name(&mut out, &grant.resource.database);
    put_name(&mut out, &grant.resource.container);
    match &grant.resource.part {
        Part::Whole => out.push(PART_WHOLE),
        Part::Item(name) => {
            out.push(PART_ITEM);
            put_name(&mut out, name);
        }
        Part::Script(kind, name) => {
            out.extend_from_slice(&[PART_SCRIPT, *kind as u8]);
            put_name(&mut out, name);
        }
    }
    // How many components the key has, and one more: 0 is no key, 1 is `[]`.
    let components = grant.partition_key.as_ref().map_or(0, |key| key.0.len() + 1);
    out.push(u8::try_from(components).unwrap_or(u8::MAX));
    if let Some(key) = &grant.partition_key {
        key.encode(&mut out);
    }
    out
}

fn put_name(out: &mut Vec<u8>, name: &ResourceName<'_>) {
    out.extend_from_slice(&(name.name.len() as u32).to_le_bytes());
    out.extend_from_slice(name.name.as_bytes());
    let mut id = |tag: u8, owners: &[u32], number: Option<u64>| {
        out.push(tag);
        owners.iter().for_each(|owner| out.extend_from_slice(&owner.to_le_bytes()));
        out.extend_from_slice(number.map(u64::to_le_bytes).as_ref().map_or(&[][..], |number| number));
    };
    match name.id {
        None => id(ID_NONE, &[], None),
        Some(ResourceId::Database(database)) => id(ID_DATABASE, &[database], None),
        Some(ResourceId::Container { database, container }) => id(ID_CONTAINER, &[database, container], None),
        Some(ResourceId::Item { database, container, number }) => {
            id(ID_ITEM, &[database, container], Some(number));
        }
        Some(ResourceId::Script { database, container, kind, number }) => {
            id(ID_SCRIPT, &[database, container], Some(number));
            out.push(kind as u8);
        }
    }
}

/// The account and the grant.
fn decode(bytes: &[u8]) -> Option<(u32, Grant)> {
    let mut payload = Payload(ByteReader(bytes));
    if payload.0.u8()? != VERSION {
        return None;
    }
    let _random = payload.0.u32()?;
    let account = payload.0.u32()?;
    let (database, user, permission) = (payload.0.u32()?, payload.0.u32()?, payload.0.u32()?);
    let (start_s, expiry_s) = (payload.0.u32()?, payload.0.u32()?);
    let mode = match payload.0.u8()? {
        MODE_READ => PermissionMode::Read,
        MODE_ALL => PermissionMode::All,
        _ => return None,
    };
    let resource = Resource {
        database: payload.name()?,
        container: payload.name()?,
        part: match payload.0.u8()? {
            PART_WHOLE => Part::Whole,
            PART_ITEM => Part::Item(payload.name()?),
            PART_SCRIPT => Part::Script(payload.script_kind()?, payload.name()?),
            _ => return None,
        },
    };
    let partition_key = match (usize::from(payload.0.u8()?), payload.0.0) {
        (0, []) => None,
        (0, _) => return None,
        (more, key) => Some(PartitionKey::decode(key).filter(|key| key.0.len() + 1 == more)?),
    };
    let grant = Grant { database, user, permission, mode, start_s, expiry_s, resource, partition_key };
    Some((account, grant))
}

/// What is left of a payload.
struct Payload<'b>(ByteReader<'b>);

impl Payload<'_> {
    fn script_kind(&mut self) -> Option<ScriptKind> {
        ScriptKind::from_u8(self.0.u8()?)
    }

    fn name(&mut self) -> Option<ResourceName<'static>> {
        let length = self.0.u32()? as usize;
        let name = Cow::Owned(std::str::from_utf8(self.0.bytes(length)?).ok()?.to_owned());
        let id = match self.0.u8()? {
            ID_NONE => None,
            ID_DATABASE => Some(ResourceId::Database(self.0.u32()?)),
            ID_CONTAINER => Some(ResourceId::Container { database: self.0.u32()?, container: self.0.u32()? }),
            ID_ITEM => Some(ResourceId::Item {
                database: self.0.u32()?,
                container: self.0.u32()?,
                number: self.0.u64()?,
            }),
            ID_SCRIPT => {
                let (database, container, number) = (self.0.u32()?, self.0.u32()?, self.0.u64()?);
                Some(ResourceId::Script { database, container, number, kind: self.script_kind()? })
            }
            _ => return None,
        };
        Some(ResourceName { name, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_S: u32 = 1_000;
    const NOW_MS: u64 = 1_000_000;

    fn keys(primary: &[u8], secondary: &[u8]) -> AccountKeys {
        AccountKeys {
            primary: primary.to_vec(),
            secondary: secondary.to_vec(),
            primary_readonly: b"reader".to_vec(),
            ..AccountKeys::default()
        }
    }

    fn tokens(primary: &[u8], secondary: &[u8]) -> ResourceTokens {
        ResourceTokens::new(&keys(primary, secondary), 1, 900)
    }

    fn grant(part: Part<'static>, key: Option<&str>) -> Grant {
        Grant {
            database: 2,
            user: 3,
            permission: 4,
            mode: PermissionMode::All,
            start_s: START_S,
            expiry_s: START_S + 600,
            resource: Resource {
                database: ResourceName { name: "AAAAAg==".into(), id: Some(ResourceId::Database(2)) },
                container: ResourceName {
                    name: "grün".into(),
                    id: Some(ResourceId::Container { database: 2, container: 7 }),
                },
                part,
            },
            partition_key: key.map(|text| PartitionKey::parse_header(text).unwrap()),
        }
    }

    fn parts() -> [Part<'static>; 5] {
        let item = ResourceId::Item { database: 2, container: 7, number: u64::MAX };
        let kind = ScriptKind::Trigger;
        let script = ResourceId::Script { database: 2, container: 7, kind, number: 5 };
        [
            Part::Whole,
            Part::Item(ResourceName::plain("a/b%20c")),
            Part::Item(ResourceName { name: "i".into(), id: Some(item) }),
            Part::Script(ScriptKind::Procedure, ResourceName::plain("p")),
            Part::Script(kind, ResourceName { name: "t".into(), id: Some(script) }),
        ]
    }

    const PRIMARY: Principal = Principal::Key(KeySlot::Primary);
    const SECONDARY: Principal = Principal::Key(KeySlot::Secondary);

    #[test]
    fn a_token_says_what_was_granted_to_whoever_knows_the_key() {
        let both = tokens(b"one", b"two");
        for part in parts() {
            for key in [None, Some("[]"), Some(r#"["a",null]"#), Some("[{}]")] {
                let grant = grant(part.clone(), key);
                let token = both.issue(&SECONDARY, &grant, 7).unwrap();
                assert_eq!(both.verify(&token, NOW_MS), Ok(grant.clone()));
                let changed = tokens(b"one", b"three");
                assert_eq!(changed.verify(&token, NOW_MS), Err(TokenRefused::NotGenuine));
                // The same bytes as a key that only reads sign nothing.
                let reader = AccountKeys { secondary_readonly: b"two".to_vec(), ..keys(b"one", b"") };
                let reader = ResourceTokens::new(&reader, 1, 900);
                assert_eq!(reader.verify(&token, NOW_MS), Err(TokenRefused::NotGenuine));
                assert_ne!(both.issue(&SECONDARY, &grant, 8).unwrap(), token);
            }
        }
    }

    #[test]
    fn no_byte_of_a_token_can_be_changed() {
        let tokens = tokens(b"one", b"");
        let token = tokens.issue(&PRIMARY, &grant(Part::Whole, Some(r#"["a"]"#)), 7).unwrap();
        for at in 0..token.signature.len() + token.payload.len() {
            for bit in 0..8 {
                let mut forged = token.clone();
                match at.checked_sub(forged.signature.len()) {
                    None => forged.signature[at] ^= 1 << bit,
                    Some(at) => forged.payload[at] ^= 1 << bit,
                }
                let refused = Err(TokenRefused::NotGenuine);
                assert_eq!(tokens.verify(&forged, NOW_MS), refused, "byte {at} bit {bit}");
            }
        }
        for signature in [&token.signature[..31], &[]] {
            let short = ResourceToken { signature: signature.to_vec(), payload: token.payload.clone() };
            assert_eq!(tokens.verify(&short, NOW_MS), Err(TokenRefused::NotGenuine));
        }
    }

    #[test]
    fn a_token_is_good_for_its_account_and_its_time_alone() {
        let grant = grant(Part::Whole, None);
        let tokens = tokens(b"one", b"");
        let token = tokens.issue(&PRIMARY, &grant, 7).unwrap();
        let other = ResourceTokens::new(&keys(b"one", b""), 2, 900);
        assert_eq!(other.verify(&token, NOW_MS), Err(TokenRefused::NotGenuine));
        let not_now = TokenRefused::NotNow { start_s: START_S, expiry_s: START_S + 600 };
        for (later_ms, good) in
            [(-900_000_i64, true), (-900_001, false), (0, true), (599_999, true), (600_000, false)]
        {
            let want = if good { Ok(grant.clone()) } else { Err(not_now) };
            assert_eq!(tokens.verify(&token, NOW_MS.saturating_add_signed(later_ms)), want, "{later_ms}");
        }
    }

    #[test]
    fn only_keys_that_write_make_tokens() {
        let (tokens, grant) = (tokens(b"one", b""), grant(Part::Whole, None));
        let makes = |principal: &Principal| tokens.issue(principal, &grant, 7).is_some();
        assert!(makes(&PRIMARY) && makes(&Principal::Directory));
        assert!(!makes(&SECONDARY), "it is not there");
        assert!(!makes(&Principal::Key(KeySlot::PrimaryReadonly)));
        assert!(!makes(&Principal::Granted(Box::new(grant.clone()))));
    }

    #[test]
    fn a_signed_payload_of_another_form_is_refused_and_never_a_panic() {
        for part in parts() {
            let whole = encode(1, &grant(part, Some("[1]")), 7);
            assert!(decode(&whole).is_some());
            for length in 0..whole.len() {
                assert_eq!(decode(&whole[..length]), None, "{length}");
            }
            for at in 0..whole.len() {
                for byte in [0, 1, 0x7F, 0xFF] {
                    let mut changed = whole.clone();
                    changed[at] = byte;
                    let _ = decode(&changed);
                }
            }
            let other_version = [&[VERSION - 1], &whole[1..]].concat();
            assert_eq!(decode(&other_version), None);
        }
    }
}
