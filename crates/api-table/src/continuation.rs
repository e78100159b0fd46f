//! Where a list of entities or tables goes on: the keys behind which it does, and nothing else.
//!
//! ```text
//! x-ms-continuation-NextPartitionKey: 1.<base64 of the partition key>.<check>
//! x-ms-continuation-NextRowKey:       1.<base64 of the row key>.<check>
//! ```
//!
//! Keys mean the same after a restart and however the table was split since. The check is over both keys and the
//! table, so that a token that was damaged, or belongs to another table, is refused instead of leading somewhere
//! else.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use orrery_model::murmur3_x64_128;

use crate::errors::{Result, TableError};

const VERSION: &str = "1";
/// Longest token: keys of two kilobytes in base64.
const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// The last entity that was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct After {
    pub partition_key: String,
    pub row_key: String,
}

impl After {
    /// Both tokens.
    pub fn encode(&self, table: &str) -> (String, String) {
        let check = check(table, &[&self.partition_key, &self.row_key]);
        (token(&self.partition_key, check), token(&self.row_key, check))
    }

    /// `None` where the request begins at the beginning.
    pub fn decode(table: &str, partition: Option<&str>, row: Option<&str>) -> Result<Option<After>> {
        let (partition, row) =
            match (partition.filter(|token| !token.is_empty()), row.filter(|token| !token.is_empty())) {
                (None, None) => return Ok(None),
                (Some(partition), Some(row)) => (partition, row),
                _ => return Err(invalid()),
            };
        let (partition_key, partition_check) = read(partition).ok_or_else(invalid)?;
        let (row_key, row_check) = read(row).ok_or_else(invalid)?;
        let check = check(table, &[&partition_key, &row_key]);
        match partition_check == check && row_check == check {
            true => Ok(Some(After { partition_key, row_key })),
            false => Err(invalid()),
        }
    }
}

/// The token for the table behind which a list goes on.
pub fn encode_table(name: &str) -> String {
    token(name, check("", &[name]))
}

pub fn decode_table(text: &str) -> Result<String> {
    read(text).filter(|(name, sum)| check("", &[name]) == *sum).map(|(name, _)| name).ok_or_else(invalid)
}

fn invalid() -> TableError {
    TableError::new(
        crate::errors::Code::InvalidInput,
        "One of the request inputs is not valid. The continuation token is none.",
    )
}

fn check(table: &str, keys: &[&str]) -> u32 {
    let mut bytes = table.as_bytes().to_vec();
    for key in keys {
        bytes.extend_from_slice(&(key.len() as u64).to_be_bytes());
        bytes.extend_from_slice(key.as_bytes());
    }
    murmur3_x64_128(&bytes).0 as u32
}

fn token(key: &str, check: u32) -> String {
    format!("{VERSION}.{}.{check:08x}", URL_SAFE_NO_PAD.encode(key))
}

fn read(token: &str) -> Option<(String, u32)> {
    if token.len() > TOKEN_BYTES_MAX {
        return None;
    }
    let mut parts = token.split('.');
    let (version, key, check) = (parts.next()?, parts.next()?, parts.next()?);
    if version != VERSION || parts.next().is_some() || check.len() != 8 {
        return None;
    }
    let key = String::from_utf8(URL_SAFE_NO_PAD.decode(key).ok()?).ok()?;
    Some((key, u32::from_str_radix(check, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_read_back_and_nothing_else_does() {
        for (partition_key, row_key) in [("p", "r"), ("", ""), ("O'Brien/ü", "💡"), ("a.b", "1.2")] {
            let after = After { partition_key: partition_key.into(), row_key: row_key.into() };
            let (partition, row) = after.encode("t");
            assert_eq!(After::decode("t", Some(&partition), Some(&row)).unwrap(), Some(after));
            assert!(After::decode("other", Some(&partition), Some(&row)).is_err());
            assert!(After::decode("t", Some(&partition), None).is_err());
            assert!(After::decode("t", Some(&partition), Some(&format!("{row}0"))).is_err());
            if partition_key != row_key {
                assert!(After::decode("t", Some(&row), Some(&partition)).is_err());
            }
        }
        assert_eq!(After::decode("t", None, None).unwrap(), None);
        assert_eq!(decode_table(&encode_table("täble")).unwrap(), "täble");
        for bad in ["", "1", "1.x.y", "2.dA.00000000", "1.dA.00000000", "NA", "1.%.00000000"] {
            assert!(decode_table(bad).is_err(), "{bad}");
        }
    }
}
