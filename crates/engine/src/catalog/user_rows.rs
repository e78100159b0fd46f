//! The catalog's rows of users and permissions. Their keys are with all others in `rows`.
//!
//! | row | key | value (after a version byte) |
//! |---|---|---|
//! | user | `10`, database, number | LSN, ts, next permission number, name |
//! | permission | `11`, database, user, number | LSN, ts, mode, name, resource, key if any, `01` if percent-encoded |

use bytes::Bytes;
use orrery_model::PartitionKey;

use super::rows::{Reader, put_bytes, put_u32, put_u64, start};
use crate::access::{PermissionDefinition, PermissionMode, key_bytes};
use crate::error::Result;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserRow {
    pub(crate) lsn: u64,
    pub(crate) ts: u32,
    pub(crate) next_permission: u32,
    pub(crate) name: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PermissionRow {
    pub(crate) lsn: u64,
    pub(crate) ts: u32,
    pub(crate) definition: PermissionDefinition,
}

impl UserRow {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = start();
        put_u64(&mut out, self.lsn);
        put_u32(&mut out, self.ts);
        put_u32(&mut out, self.next_permission);
        put_bytes(&mut out, self.name.as_bytes());
        out.into()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<UserRow> {
        Reader::read("user", value, |r| {
            Some(UserRow { lsn: r.u64()?, ts: r.u32()?, next_permission: r.u32()?, name: r.text()? })
        })
    }
}

impl PermissionRow {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = start();
        put_u64(&mut out, self.lsn);
        put_u32(&mut out, self.ts);
        put_bytes(&mut out, self.definition.mode_name.as_bytes());
        put_bytes(&mut out, self.definition.name.as_bytes());
        put_bytes(&mut out, self.definition.resource.as_bytes());
        // `[]` is a key, and its bytes are none: only the mark tells it from no key.
        out.push(u8::from(self.definition.partition_key.is_some()));
        if let Some(key) = &self.definition.partition_key {
            put_bytes(&mut out, &key_bytes(key));
        }
        if self.definition.escaped {
            out.push(1);
        }
        out.into()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<PermissionRow> {
        Reader::read("permission", value, |r| {
            let (lsn, ts) = (r.u64()?, r.u32()?);
            let mode_name = r.text()?;
            let mode = PermissionMode::parse(&mode_name)?;
            let (name, resource) = (r.text()?, r.text()?);
            let partition_key = match r.u8()? {
                0 => None,
                1 => Some(PartitionKey::decode(r.bytes()?)?),
                _ => return None,
            };
            // Rows of links that are names, the usual ones, end here.
            let escaped = match r.is_at_end() {
                true => false,
                false if r.u8()? == 1 => true,
                false => return None,
            };
            Some(PermissionRow {
                lsn,
                ts,
                definition: PermissionDefinition { name, mode, mode_name, resource, escaped, partition_key },
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permission(key: Option<&str>) -> PermissionRow {
        PermissionRow {
            lsn: 3,
            ts: 4,
            definition: PermissionDefinition {
                name: "grün".into(),
                mode: PermissionMode::All,
                mode_name: "aLL".into(),
                resource: "dbs/d/colls/c".into(),
                escaped: false,
                partition_key: key.map(|text| PartitionKey::parse_header(text).unwrap()),
            },
        }
    }

    #[test]
    fn every_row_decodes_to_what_was_encoded() {
        let user = UserRow { lsn: 1, ts: 2, next_permission: 3, name: "u".into() };
        assert_eq!(UserRow::decode(&user.encode()).unwrap(), user);
        for key in [None, Some("[]"), Some("[{}]"), Some(r#"["a\u0000b",1.5,null]"#)] {
            assert_eq!(PermissionRow::decode(&permission(key).encode()).unwrap(), permission(key));
            let mut escaped = permission(key);
            escaped.definition.escaped = true;
            assert_eq!(PermissionRow::decode(&escaped.encode()).unwrap(), escaped);
        }
    }

    #[test]
    fn a_cut_or_lengthened_row_is_damaged_and_never_a_panic() {
        let whole = permission(Some(r#"["a"]"#)).encode();
        for length in 0..whole.len() {
            assert!(PermissionRow::decode(&whole[..length]).is_err());
        }
        assert!(PermissionRow::decode(&[&whole[..], &[0]].concat()).is_err());
    }
}
