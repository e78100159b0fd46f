//! Shared access signatures: what the query string of a request grants, and to whom.
//!
//! | kind | signed text |
//! |---|---|
//! | account (`ss`, `srt`) | `account sp ss srt st se sip spr sv`, from 2020-12-06 `ses`; a line each, the last too |
//! | table (`tn`) | `sp st se /table/account/table si sip spr sv spk srk epk erk`; a line each |
//!
//! A signature that names a stored policy (`si`) takes from it what it does not say itself.

use std::cmp::Ordering;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::date_time;
use crate::errors::{Code, Result, TableError};
use crate::params::Params;
use crate::policies::AccessPolicy;
use crate::shared_key::SigningKey;

/// What may be done, one letter each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Permissions(u16);

/// Letters of `sp`.
const LETTERS: &[u8] = b"raudwlcp";

impl Permissions {
    pub fn parse(letters: &str) -> Permissions {
        let bit = |letter: u8| LETTERS.iter().position(|known| *known == letter).map_or(0, |at| 1 << at);
        Permissions(letters.bytes().map(bit).fold(0, |all, bit| all | bit))
    }

    /// Whether all these letters are granted.
    pub fn has(self, letters: &str) -> bool {
        let wanted = Permissions::parse(letters);
        self.0 & wanted.0 == wanted.0
    }

    /// Whether one of these letters is.
    pub fn has_any(self, letters: &str) -> bool {
        self.0 & Permissions::parse(letters).0 != 0
    }
}

/// A part of a table, by keys. Both ends belong to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRange {
    pub start: Option<(String, Option<String>)>,
    pub end: Option<(String, Option<String>)>,
}

impl KeyRange {
    pub fn is_everything(&self) -> bool {
        self.start.is_none() && self.end.is_none()
    }

    pub fn holds(&self, partition_key: &str, row_key: &str) -> bool {
        // By code units, as filters compare them.
        let compare = |left: &str, right: &str| left.encode_utf16().cmp(right.encode_utf16());
        let place = |(partition, row): &(String, Option<String>)| {
            let by_row = |row: &String| compare(row_key, row);
            compare(partition_key, partition).then_with(|| row.as_ref().map_or(Ordering::Equal, by_row))
        };
        self.start.as_ref().is_none_or(|start| place(start).is_ge())
            && self.end.as_ref().is_none_or(|end| place(end).is_le())
    }
}

/// What a signature grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    Account {
        permissions: Permissions,
        service: bool,
        container: bool,
        object: bool,
    },
    /// The table in lower case: the signature knows no other.
    Table {
        table: String,
        permissions: Permissions,
        range: KeyRange,
    },
}

/// A signature as it was sent.
pub struct Token<'p> {
    params: &'p Params<'p>,
    signature: Vec<u8>,
}

/// The circumstances of a request.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances {
    pub now_ticks: u64,
    pub tls: bool,
    pub peer: IpAddr,
}

/// The first version of account signatures that sign an encryption scope.
const SCOPE_VERSION: &str = "2020-12-06";
/// Older versions sign other texts and are long gone.
const VERSION_MIN: &str = "2015-04-05";

impl<'p> Token<'p> {
    /// `None` where the query string holds no signature.
    pub fn parse(params: &'p Params<'p>) -> Option<Result<Token<'p>>> {
        // A plus that was not encoded has become a space.
        let signature = params.get("sig")?.replace(' ', "+");
        Some(match STANDARD.decode(signature) {
            Ok(signature) => Ok(Token { params, signature }),
            Err(_) => Err(Code::AuthenticationFailed.into()),
        })
    }

    fn get(&self, name: &str) -> &str {
        self.params.get(name).unwrap_or("")
    }

    /// Whether one of the keys made the signature for this account.
    pub fn is_by<'k>(&self, mut keys: impl Iterator<Item = &'k SigningKey>, account: &str) -> bool {
        let text = self.text(account);
        self.get("sv") >= VERSION_MIN && keys.any(|key| key.has_signed(&[&text], &self.signature))
    }

    fn text(&self, account: &str) -> String {
        let get = |name: &&str| self.get(name).to_owned();
        match self.params.get("tn") {
            Some(table) => {
                let mut lines: Vec<String> = ["sp", "st", "se"].iter().map(get).collect();
                lines.push(format!("/table/{account}/{}", table.to_lowercase()));
                lines.extend(["si", "sip", "spr", "sv", "spk", "srk", "epk", "erk"].iter().map(get));
                lines.join("\n")
            }
            None => {
                let mut lines = vec![account.to_owned()];
                lines.extend(["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"].iter().map(get));
                if self.get("sv") >= SCOPE_VERSION {
                    lines.push(self.get("ses").to_owned());
                }
                lines.push(String::new());
                lines.join("\n")
            }
        }
    }

    /// The table and the stored policy that the signature refers to.
    pub fn policy(&self) -> Option<(&str, &str)> {
        let table = self.params.get("tn")?;
        Some((table, self.params.filled("si")?))
    }

    /// What is granted here and now. `policy` is the stored policy, if the signature names one.
    pub fn grant(&self, circumstances: &Circumstances, policy: Option<&AccessPolicy>) -> Result<Grant> {
        let own = |name: &str| self.params.filled(name);
        let start = own("st").or(policy.and_then(|policy| policy.start.as_deref()));
        let expiry = own("se").or(policy.and_then(|policy| policy.expiry.as_deref()));
        let letters = own("sp").or(policy.and_then(|policy| policy.permissions.as_deref())).unwrap_or("");
        let time =
            |text: &str| date_time::parse(text).ok_or_else(|| TableError::from(Code::AuthenticationFailed));
        if start.map(time).transpose()?.is_some_and(|start| circumstances.now_ticks < start) {
            return Err(outside("Signature not valid yet."));
        }
        // Without an end a signature would be good for ever.
        let Some(expiry) = expiry.map(time).transpose()? else {
            return Err(Code::AuthenticationFailed.into());
        };
        if circumstances.now_ticks >= expiry {
            return Err(outside("Signature has expired."));
        }
        if own("spr")
            .is_some_and(|protocols| !protocols.split(',').any(|one| one == protocol(circumstances.tls)))
        {
            return Err(Code::AuthorizationProtocolMismatch.into());
        }
        if own("sip").is_some_and(|range| !address_in(range, circumstances.peer)) {
            return Err(Code::AuthorizationSourceIPMismatch.into());
        }
        let permissions = Permissions::parse(letters);
        match self.params.get("tn") {
            Some(table) => Ok(Grant::Table { table: table.to_lowercase(), permissions, range: self.range() }),
            None if !self.get("ss").contains('t') => Err(Code::AuthorizationServiceMismatch.into()),
            None => {
                let kinds = self.get("srt");
                Ok(Grant::Account {
                    permissions,
                    service: kinds.contains('s'),
                    container: kinds.contains('c'),
                    object: kinds.contains('o'),
                })
            }
        }
    }

    fn range(&self) -> KeyRange {
        let end = |partition: &str, row: &str| {
            let partition = self.params.get(partition)?.to_owned();
            Some((partition, self.params.get(row).map(str::to_owned)))
        };
        KeyRange { start: end("spk", "srk"), end: end("epk", "erk") }
    }
}

fn protocol(tls: bool) -> &'static str {
    if tls { "https" } else { "http" }
}

fn outside(why: &'static str) -> TableError {
    TableError::new(
        Code::AuthenticationFailed,
        format!(
            "Server failed to authenticate the request. Make sure the value of the Authorization header is formed correctly including the signature. {why}"
        ),
    )
}

/// `1.2.3.4` or `1.2.3.4-1.2.3.9`.
fn address_in(range: &str, peer: IpAddr) -> bool {
    let peer = match peer {
        IpAddr::V6(address) => address.to_ipv4_mapped().map_or(peer, IpAddr::V4),
        address => address,
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    match (first.trim().parse::<IpAddr>(), last.trim().parse::<IpAddr>()) {
        (Ok(first), Ok(last)) => first.is_ipv4() == peer.is_ipv4() && (first..=last).contains(&peer),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hmac::Mac as _;

    const NOW: &str = "2021-06-01T12:00:00Z";

    fn here() -> Circumstances {
        let now_ticks = date_time::parse(NOW).unwrap();
        Circumstances { now_ticks, tls: false, peer: "127.0.0.1".parse().unwrap() }
    }

    fn granted(query: &str, policy: Option<&AccessPolicy>) -> Result<Grant, &'static str> {
        let query = format!("{query}&sig=AAAA");
        let params = Params::parse(&query);
        let token = Token::parse(&params).unwrap().ok().unwrap();
        token.grant(&here(), policy).map_err(|error| error.code.name())
    }

    #[test]
    fn a_signature_is_made_from_what_it_says() {
        for (query, text) in [
            (
                "sv=2019-02-02&ss=t&srt=sco&sp=rwdlacu&se=2030-01-01",
                "acc\nrwdlacu\nt\nsco\n\n2030-01-01\n\n\n2019-02-02\n",
            ),
            (
                "sv=2020-12-06&ss=t&srt=o&sp=r&se=2030-01-01&spr=https",
                "acc\nr\nt\no\n\n2030-01-01\n\nhttps\n2020-12-06\n\n",
            ),
            (
                "sv=2019-02-02&tn=People&sp=r&se=2030-01-01&spk=a&srk=1&epk=b&erk=2&si=pol",
                "r\n\n2030-01-01\n/table/acc/people\npol\n\n\n2019-02-02\na\n1\nb\n2",
            ),
        ] {
            let (key, other) = (SigningKey::new(b"key").unwrap(), SigningKey::new(b"other").unwrap());
            let signature = STANDARD.encode(key.sign(&[text]).finalize().into_bytes());
            let query = format!("{query}&sig={}", signature.replace('+', "%2B"));
            let params = Params::parse(&query);
            let token = Token::parse(&params).unwrap().ok().unwrap();
            assert!(token.is_by([&other, &key].into_iter(), "acc"), "{query}");
            assert!(!token.is_by([&key].into_iter(), "else"), "{query}");
            assert!(!token.is_by([&other].into_iter(), "acc"), "{query}");
        }
        assert!(Token::parse(&Params::parse("sv=1")).is_none());
        assert!(Token::parse(&Params::parse("sig=%%")).unwrap().is_err());
    }

    #[test]
    fn a_grant_has_its_time_place_and_kind() {
        let account = "ss=t&srt=so&sp=ra&se=2030-01-01T00:00:00Z";
        for (query, expected) in [
            (account.to_owned(), "ok"),
            (format!("{account}&st=2021-06-01T11:59:00Z"), "ok"),
            (format!("{account}&st=2021-06-01T12:01:00Z"), "AuthenticationFailed"),
            ("ss=t&srt=o&sp=r&se=2021-06-01T11:59:00Z".into(), "AuthenticationFailed"),
            ("ss=t&srt=o&sp=r".into(), "AuthenticationFailed"),
            ("ss=t&srt=o&sp=r&se=never".into(), "AuthenticationFailed"),
            (format!("{account}&spr=https"), "AuthorizationProtocolMismatch"),
            (format!("{account}&spr=https,http"), "ok"),
            (format!("{account}&sip=127.0.0.1"), "ok"),
            (format!("{account}&sip=127.0.0.0-127.0.0.9"), "ok"),
            (format!("{account}&sip=10.0.0.1"), "AuthorizationSourceIPMismatch"),
            (format!("{account}&sip=x"), "AuthorizationSourceIPMismatch"),
            ("ss=b&srt=o&sp=r&se=2030-01-01".into(), "AuthorizationServiceMismatch"),
        ] {
            assert_eq!(granted(&query, None).map_or_else(|code| code, |_| "ok"), expected, "{query}");
        }
    }

    #[test]
    fn a_stored_policy_says_what_the_signature_does_not() {
        let policy = AccessPolicy {
            id: "p".into(),
            start: None,
            expiry: Some("2030-01-01".into()),
            permissions: Some("r".into()),
        };
        let Ok(Grant::Table { permissions, .. }) = granted("tn=t&si=p", Some(&policy)) else { panic!() };
        assert!(permissions.has("r") && !permissions.has("ra") && permissions.has_any("ra"));
        assert!(granted("tn=t&si=p", None).is_err());
    }

    #[test]
    fn ranges_hold_both_their_ends() {
        let Ok(Grant::Table { range, table, .. }) =
            granted("tn=People&sp=r&se=2030-01-01&spk=b&srk=5&epk=d&erk=7", None)
        else {
            panic!()
        };
        assert_eq!(table, "people");
        for (partition_key, row_key, inside) in [
            ("a", "9", false),
            ("b", "4", false),
            ("b", "5", true),
            ("c", "", true),
            ("d", "7", true),
            ("d", "8", false),
            ("e", "0", false),
        ] {
            assert_eq!(range.holds(partition_key, row_key), inside, "{partition_key} {row_key}");
        }
        assert!(KeyRange::default().holds("", "") && KeyRange::default().is_everything());
    }
}
