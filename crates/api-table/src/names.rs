//! Rules for the names of tables and properties, and for keys, by dialect.

use crate::dialect::Dialect;
use crate::errors::{Code, Result, TableError};

/// Characters of a table's name that Cosmos DB refuses; keys may not hold them in either dialect.
const FORBIDDEN: [char; 4] = ['/', '\\', '#', '?'];

/// Longest name of a table in Cosmos DB, in characters.
const COSMOS_NAME_CHARS_MAX: usize = 254;
/// Longest partition key, in bytes.
const PARTITION_KEY_BYTES_MAX: usize = 2048;
/// Longest row key of Cosmos DB, which makes it the id of the item.
const COSMOS_ROW_KEY_BYTES_MAX: usize = 255;
/// Longest key of storage: 1 KiB of UTF-16.
const STORAGE_KEY_UNITS_MAX: usize = 512;
const PROPERTY_NAME_CHARS_MAX: usize = 255;

/// The container that holds what is not data: stored policies, service properties. No table can be called so.
pub const SERVICE_CONTAINER: &str = "$service";

/// Refuses a name that no new table may have.
pub fn check_new_table(name: &str, dialect: Dialect) -> Result<()> {
    match dialect {
        Dialect::Cosmos if name.is_empty() || name.chars().count() > COSMOS_NAME_CHARS_MAX => {
            Err(Code::BadRequest.into())
        }
        Dialect::Cosmos if name.ends_with(' ') => {
            Err(TableError::new(Code::InternalServerError, "The resource name can't end with space."))
        }
        Dialect::Cosmos if name.contains(FORBIDDEN) || name == SERVICE_CONTAINER => {
            Err(Code::InternalServerError.into())
        }
        Dialect::Cosmos => Ok(()),
        Dialect::Storage => check_table(name, dialect),
    }
}

/// Refuses a name that no table can have, where an existing one is named.
pub fn check_table(name: &str, dialect: Dialect) -> Result<()> {
    match dialect {
        Dialect::Cosmos if name.contains(FORBIDDEN) => {
            Err(TableError::new(Code::InvalidInput, "The table name contains an invalid character."))
        }
        Dialect::Cosmos if name.ends_with(' ') => {
            Err(TableError::new(Code::InvalidInput, "Table name cannot end with a space."))
        }
        Dialect::Cosmos => Ok(()),
        Dialect::Storage if !(3..=63).contains(&name.chars().count()) => Err(TableError::new(
            Code::OutOfRangeInput,
            "The specified resource name length is not within the permissible limits.",
        )),
        Dialect::Storage => {
            let begins = name.starts_with(|first: char| first.is_ascii_alphabetic());
            let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if begins && plain && !name.eq_ignore_ascii_case("tables") {
                Ok(())
            } else {
                Err(Code::InvalidResourceName.into())
            }
        }
    }
}

/// Whether two names mean the same table.
pub fn same_table(left: &str, right: &str, dialect: Dialect) -> bool {
    match dialect {
        Dialect::Cosmos => left == right,
        Dialect::Storage => left.eq_ignore_ascii_case(right),
    }
}

/// Whether a key is made of signs of ASCII that every key may have.
fn is_plain(key: &str) -> bool {
    key.bytes().fold(true, |plain, byte| {
        let forbidden = matches!(byte, b'/' | b'\\' | b'#' | b'?');
        plain & (b' '..0x7f).contains(&byte) & !forbidden
    })
}

/// Refuses keys that no entity may have.
pub fn check_keys(partition_key: &str, row_key: &str, dialect: Dialect) -> Result<()> {
    for key in [partition_key, row_key] {
        if is_plain(key) {
            continue;
        }
        let forbidden = |char: char| FORBIDDEN.contains(&char) || char.is_control();
        if key.contains(forbidden) {
            return Err(match dialect {
                Dialect::Storage => TableError::new(
                    Code::OutOfRangeInput,
                    "The 'PartitionKey' or 'RowKey' parameter of the request contains a character that keys may not have.",
                ),
                Dialect::Cosmos => TableError::new(
                    Code::InvalidInput,
                    "One of the input values is invalid: a key holds a character that keys may not have.",
                ),
            });
        }
    }
    let too_large = match dialect {
        Dialect::Cosmos if partition_key.is_empty() || row_key.is_empty() => {
            return Err(TableError::new(Code::InvalidInput, "PartitionKey/RowKey cannot be empty."));
        }
        Dialect::Cosmos => row_key.len() > COSMOS_ROW_KEY_BYTES_MAX,
        Dialect::Storage => {
            // There are no more units than bytes.
            let long = |key: &str| {
                key.len() > STORAGE_KEY_UNITS_MAX && key.encode_utf16().count() > STORAGE_KEY_UNITS_MAX
            };
            long(partition_key) || long(row_key) || row_key.len() > orrery_engine::ID_BYTES_MAX
        }
    };
    match too_large || partition_key.len() > PARTITION_KEY_BYTES_MAX {
        true => Err(Code::KeyValueTooLarge.into()),
        false => Ok(()),
    }
}

/// Refuses the name of a property.
pub fn check_property(name: &str) -> Result<()> {
    if name.len() > PROPERTY_NAME_CHARS_MAX && name.chars().count() > PROPERTY_NAME_CHARS_MAX {
        return Err(Code::PropertyNameTooLong.into());
    }
    let mut chars = name.chars();
    let begins = chars.next().is_some_and(|first| first.is_alphabetic() || first == '_');
    match begins && chars.all(|char| char.is_alphanumeric() || char == '_') {
        true => Ok(()),
        false => Err(Code::PropertyNameInvalid.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(result: Result<()>) -> &'static str {
        result.map_or_else(|error| error.code.name(), |()| "ok")
    }

    #[test]
    fn names_of_tables_follow_the_dialect() {
        let long = "a".repeat(64);
        let longest = "a".repeat(255);
        for (name, cosmos_new, cosmos, storage) in [
            ("people", "ok", "ok", "ok"),
            ("a", "ok", "ok", "OutOfRangeInput"),
            ("my_table", "ok", "ok", "InvalidResourceName"),
            ("täbelle", "ok", "ok", "InvalidResourceName"),
            ("1table", "ok", "ok", "InvalidResourceName"),
            ("Tables", "ok", "ok", "InvalidResourceName"),
            ("a/b", "InternalServerError", "InvalidInput", "InvalidResourceName"),
            ("abc ", "InternalServerError", "InvalidInput", "InvalidResourceName"),
            (&long, "ok", "ok", "OutOfRangeInput"),
            (&longest, "BadRequest", "ok", "OutOfRangeInput"),
            ("", "BadRequest", "ok", "OutOfRangeInput"),
            (SERVICE_CONTAINER, "InternalServerError", "ok", "InvalidResourceName"),
        ] {
            assert_eq!(code(check_new_table(name, Dialect::Cosmos)), cosmos_new, "{name}");
            assert_eq!(code(check_table(name, Dialect::Cosmos)), cosmos, "{name}");
            assert_eq!(code(check_table(name, Dialect::Storage)), storage, "{name}");
        }
    }

    #[test]
    fn keys_follow_the_dialect() {
        let long = "k".repeat(256);
        let longer = "k".repeat(513);
        for (partition_key, row_key, cosmos, storage) in [
            ("p", "r", "ok", "ok"),
            ("O'Brien & söhne", "a b%c", "ok", "ok"),
            ("", "r", "InvalidInput", "ok"),
            ("p", "", "InvalidInput", "ok"),
            ("a/b", "r", "InvalidInput", "OutOfRangeInput"),
            ("p", "a\\b", "InvalidInput", "OutOfRangeInput"),
            ("p", "tab\t", "InvalidInput", "OutOfRangeInput"),
            ("p", "\u{85}", "InvalidInput", "OutOfRangeInput"),
            ("p", &long, "KeyValueTooLarge", "ok"),
            (&longer, "r", "ok", "KeyValueTooLarge"),
        ] {
            assert_eq!(code(check_keys(partition_key, row_key, Dialect::Cosmos)), cosmos);
            assert_eq!(code(check_keys(partition_key, row_key, Dialect::Storage)), storage);
        }
    }

    #[test]
    fn names_of_properties_are_identifiers() {
        for (name, expected) in [
            ("Age", "ok"),
            ("_x1", "ok"),
            ("größe", "ok"),
            ("", "PropertyNameInvalid"),
            ("1a", "PropertyNameInvalid"),
            ("a b", "PropertyNameInvalid"),
            ("a-b", "PropertyNameInvalid"),
            ("$id", "PropertyNameInvalid"),
        ] {
            assert_eq!(code(check_property(name)), expected, "{name}");
        }
        assert_eq!(code(check_property(&"a".repeat(256))), "PropertyNameTooLong");
    }
}
