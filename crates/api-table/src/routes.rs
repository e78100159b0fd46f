//! What a path names.
//!
//! ```text
//! /                                     the account: properties, statistics
//! /Tables   /Tables()                   all tables
//! /Tables('people')                     one table
//! /people   /people()                   the entities of a table
//! /people(PartitionKey='p',RowKey='r')  one entity; quotes in keys are doubled
//! /$batch                               several operations
//! ```
//!
//! In path style all of it stands under `/ACCOUNT`, or `/ACCOUNT-secondary`.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::errors::{Code, Result, TableError};

/// What the name of the account ends with at its secondary endpoint.
pub const SECONDARY: &str = "-secondary";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    Service,
    Tables,
    Table(String),
    Entities(String),
    Entity(EntityName),
    Batch,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityName {
    pub table: String,
    pub partition_key: String,
    pub row_key: String,
}

impl Resource {
    /// The table that is named, if one is.
    pub fn table(&self) -> Option<&str> {
        match self {
            Resource::Table(table) | Resource::Entities(table) => Some(table),
            Resource::Entity(name) => Some(&name.table),
            Resource::Service | Resource::Tables | Resource::Batch => None,
        }
    }
}

/// What follows the account in a path of path style, and whether the secondary endpoint is meant; `None` where the path
/// begins otherwise.
pub fn under_account<'p>(path: &'p str, account: &str) -> Option<(&'p str, bool)> {
    let first = below(path, account)?;
    // The official clients put the whole secondary endpoint in front of a path that has the account already. Nothing
    // else stands below the name of an account.
    match below(first.0, account) {
        Some((rest, again)) if rest.starts_with('/') => Some((rest, first.1 || again)),
        _ => Some(first),
    }
}

fn below<'p>(path: &'p str, account: &str) -> Option<(&'p str, bool)> {
    let rest = path.strip_prefix('/')?.strip_prefix(account)?;
    let (rest, secondary) = rest.strip_prefix(SECONDARY).map_or((rest, false), |rest| (rest, true));
    (rest.is_empty() || rest.starts_with('/')).then_some((rest, secondary))
}

/// What a path means, without the account.
pub fn parse(path: &str) -> Result<Resource> {
    let raw = path.strip_prefix('/').unwrap_or(path);
    if raw.is_empty() {
        return Ok(Resource::Service);
    }
    let text = percent_decode_str(raw).decode_utf8().map_err(|_| TableError::url())?;
    let (name, keys) = match text.find('(') {
        // Keys stand at the end, whatever characters they hold.
        Some(open) => match text[open + 1..].strip_suffix(')') {
            Some(keys) => (&text[..open], Some(keys)),
            None => (&*text, None),
        },
        None => (&*text, None),
    };
    // A slash that was sent as one separates segments, of which there is one.
    let raw_name = raw.split_once('(').map_or(raw, |(name, _)| name);
    if raw_name.contains('/') || name.is_empty() {
        return Err(TableError::url());
    }
    let is_tables = name.eq_ignore_ascii_case("tables");
    Ok(match keys.map(str::trim) {
        None if name == "$batch" => Resource::Batch,
        None | Some("") if is_tables => Resource::Tables,
        None | Some("") => Resource::Entities(name.to_owned()),
        Some(keys) if is_tables => {
            let (table, rest) = quoted(keys).ok_or_else(TableError::url)?;
            if !rest.is_empty() {
                return Err(TableError::url());
            }
            Resource::Table(table.into_owned())
        }
        Some(keys) => {
            let (partition_key, row_key) = entity_keys(keys)?;
            Resource::Entity(EntityName { table: name.to_owned(), partition_key, row_key })
        }
    })
}

/// The error for an entity that is not named by its two keys.
pub fn keys_missing() -> TableError {
    TableError::new(
        Code::InvalidInput,
        "The number of keys specified in the URI does not match number of key properties for the resource. Request url is invalid.",
    )
}

/// `PartitionKey='p',RowKey='r'`, in either order.
fn entity_keys(text: &str) -> Result<(String, String)> {
    let wrong = keys_missing;
    let (mut partition_key, mut row_key) = (None, None);
    let mut rest = text;
    while !rest.is_empty() {
        let (name, value) = rest.split_once('=').ok_or_else(wrong)?;
        let (value, behind) = quoted(value.trim_start()).ok_or_else(wrong)?;
        let place = match name.trim() {
            "PartitionKey" => &mut partition_key,
            "RowKey" => &mut row_key,
            _ => return Err(wrong()),
        };
        if place.replace(value.into_owned()).is_some() {
            return Err(wrong());
        }
        rest = match behind.trim_start() {
            "" => "",
            behind => behind.strip_prefix(',').filter(|more| !more.is_empty()).ok_or_else(wrong)?,
        };
    }
    partition_key.zip(row_key).ok_or_else(wrong)
}

/// A string in single quotes, doubled inside, and what follows it.
pub fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let inside = text.strip_prefix('\'')?;
    let mut from = 0;
    let mut doubled = false;
    loop {
        let end = from + inside[from..].find('\'')?;
        if inside[end + 1..].starts_with('\'') {
            doubled = true;
            from = end + 2;
            continue;
        }
        let value = &inside[..end];
        let value = if doubled { Cow::Owned(value.replace("''", "'")) } else { Cow::Borrowed(value) };
        return Some((value, &inside[end + 1..]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(table: &str, partition_key: &str, row_key: &str) -> Option<Resource> {
        let (table, partition_key, row_key) = (table.into(), partition_key.into(), row_key.into());
        Some(Resource::Entity(EntityName { table, partition_key, row_key }))
    }

    #[test]
    fn paths_name_what_the_protocol_says() {
        for (path, expected) in [
            ("", Some(Resource::Service)),
            ("/", Some(Resource::Service)),
            ("/Tables", Some(Resource::Tables)),
            ("/Tables()", Some(Resource::Tables)),
            ("/Tables('t')", Some(Resource::Table("t".into()))),
            ("/Tables(%27a%2Fb%27)", Some(Resource::Table("a/b".into()))),
            ("/Tables('t'x)", None),
            ("/Tables(t)", None),
            ("/people", Some(Resource::Entities("people".into()))),
            ("/people()", Some(Resource::Entities("people".into()))),
            ("/my%20table()", Some(Resource::Entities("my table".into()))),
            ("/people/more", None),
            ("/people(PartitionKey='p',RowKey='r')", entity("people", "p", "r")),
            ("/people(RowKey='r',PartitionKey='p')", entity("people", "p", "r")),
            ("/people(PartitionKey='O''Brien',RowKey='a,b=''c''')", entity("people", "O'Brien", "a,b='c'")),
            ("/people(PartitionKey=%27p%2Fq%27%2CRowKey=%27)(%27)", entity("people", "p/q", ")(")),
            ("/people(PartitionKey='',RowKey='')", entity("people", "", "")),
            ("/people(PartitionKey='p')", None),
            ("/people(PartitionKey='p',RowKey='r',)", None),
            ("/people(PartitionKey='p',PartitionKey='p')", None),
            ("/people(PartitionKey='p,RowKey='r')", None),
            ("/$batch", Some(Resource::Batch)),
            ("/people%ff", None),
            ("//", None),
        ] {
            assert_eq!(parse(path).ok(), expected, "{path}");
        }
    }

    #[test]
    fn the_account_is_the_whole_first_segment() {
        assert_eq!(under_account("/shop/Tables", "shop"), Some(("/Tables", false)));
        assert_eq!(under_account("/shop", "shop"), Some(("", false)));
        assert_eq!(under_account("/shop-secondary/t", "shop"), Some(("/t", true)));
        assert_eq!(under_account("/shop-secondary/shop/t", "shop"), Some(("/t", true)));
        assert_eq!(under_account("/shop/shop", "shop"), Some(("/shop", false)));
        assert_eq!(under_account("/shopping/Tables", "shop"), None);
        assert_eq!(under_account("/dbs/shop", "shop"), None);
    }
}
