//! Entities as storage tools write them: `PartitionKey,RowKey,Timestamp,Name,Name@type,…`, one entity in a row.
//!
//! They become items in the form in which Cosmos DB keeps entities, so they are entities for the Table API. A
//! property without a type is a string; an empty cell of any type is left out. The timestamp is the server's and is
//! not taken over.

use anyhow::{Result, bail};

use super::super::raw_json;
use super::csv_file::fields;

pub const PARTITION_KEY: &str = "PartitionKey";
pub const ROW_KEY: &str = "RowKey";
pub const TIMESTAMP: &str = "Timestamp";
pub const TYPE_SUFFIX: &str = "@type";
/// Stands for the empty row key, which no id can be.
const EMPTY_ROW_KEY: &str = "\u{1}";
/// Ticks of 100 ns between the year 1 and 1970.
const EPOCH_TICKS: i128 = 621_355_968_000_000_000;

/// Types by their names, and their tags in the stored form.
pub const TYPES: [(&str, u8); 8] = [
    ("Edm.Guid", 0),
    ("Edm.Double", 1),
    ("Edm.String", 2),
    ("Edm.Binary", 5),
    ("Edm.Boolean", 8),
    ("Edm.DateTime", 9),
    ("Edm.Int32", 16),
    ("Edm.Int64", 18),
];

pub fn check_header(header: &[String]) -> Result<()> {
    for needed in [PARTITION_KEY, ROW_KEY] {
        if !header.iter().any(|name| name == needed) {
            bail!("the header has no {needed}");
        }
    }
    Ok(())
}

pub fn item(header: &[String], row: &csv::ByteRecord) -> Result<String, String> {
    let fields = fields(header, row)?;
    let field = |name: &str| header.iter().position(|has| has == name).map(|place| fields[place]);
    let partition = raw_json::quoted(field(PARTITION_KEY).unwrap_or_default());
    let row_key = field(ROW_KEY).unwrap_or_default();
    let id = raw_json::quoted(if row_key.is_empty() { EMPTY_ROW_KEY } else { row_key });
    let mut out = format!("{{\"id\":{id},\"$id\":{},\"$pk\":{partition}", raw_json::quoted(row_key));
    for (name, cell) in header.iter().zip(&fields) {
        if [PARTITION_KEY, ROW_KEY, TIMESTAMP].contains(&name.as_str()) || name.ends_with(TYPE_SUFFIX) {
            continue;
        }
        let kind = field(&format!("{name}{TYPE_SUFFIX}")).unwrap_or_default();
        if cell.is_empty() && kind.is_empty() {
            continue;
        }
        if let Some((tag, value)) = typed(name, cell, kind)? {
            out.push_str(&format!(",{}:{{\"$t\":{tag},\"$v\":{value}}}", raw_json::quoted(&member(name))));
        }
    }
    out.push('}');
    Ok(out)
}

/// The member of the item that keeps a property.
fn member(property: &str) -> String {
    match property {
        "id" => "$$id".into(),
        "ttl" | "_rid" | "_self" | "_etag" | "_attachments" | "_ts" => format!("${property}"),
        _ => property.into(),
    }
}

/// The property that a member keeps; `None` for the keys.
pub fn property(member: &str) -> Option<&str> {
    match member {
        "id" | "$id" | "$pk" => None,
        "$$id" => Some("id"),
        _ => Some(member.strip_prefix('$').unwrap_or(member)),
    }
}

fn typed(name: &str, cell: &str, kind: &str) -> Result<Option<(u8, String)>, String> {
    let kind = if kind.is_empty() { "Edm.String" } else { kind };
    let Some((kind, tag)) = TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(kind)) else {
        return Err(format!("{name}: the type {kind} is unknown"));
    };
    let wrong = || format!("{name}: `{cell}` is no {kind}");
    if cell.is_empty() && *kind != "Edm.String" {
        return Ok(None);
    }
    let value = match *kind {
        "Edm.Double" => match cell.parse::<f64>() {
            Ok(number) if number.is_finite() => number.to_string(),
            Ok(_) => raw_json::quoted(cell),
            Err(_) => return Err(wrong()),
        },
        "Edm.Boolean" => match cell.to_ascii_lowercase().as_str() {
            word @ ("true" | "false") => word.to_owned(),
            _ => return Err(wrong()),
        },
        "Edm.Int32" => cell.parse::<i32>().map_err(|_| wrong())?.to_string(),
        "Edm.Int64" => {
            let number = cell.parse::<i64>().map_err(|_| wrong())?;
            raw_json::quoted(&format!("{number:020}"))
        }
        "Edm.DateTime" => raw_json::quoted(&format!("{:020}", ticks(cell).ok_or_else(wrong)?)),
        _ => raw_json::quoted(cell),
    };
    Ok(Some((*tag, value)))
}

fn ticks(text: &str) -> Option<i128> {
    let time = text.parse::<jiff::Timestamp>().ok()?;
    let ticks = time.as_nanosecond() / 100 + EPOCH_TICKS;
    (ticks >= 0).then_some(ticks)
}

/// A stored value as cell and type.
pub fn cell(value: &str) -> Option<(String, &'static str)> {
    let tag: u8 = raw_json::member(value, "$t")?.parse().ok()?;
    let (kind, _) = TYPES.iter().find(|(_, known)| *known == tag)?;
    let stored = raw_json::member(value, "$v")?;
    let text = raw_json::unquoted(stored).map_or_else(|| stored.to_owned(), Into::into);
    let shown = match *kind {
        "Edm.Int64" => text.parse::<i64>().ok()?.to_string(),
        "Edm.DateTime" => {
            let ticks: i128 = text.parse().ok()?;
            jiff::Timestamp::from_nanosecond((ticks - EPOCH_TICKS) * 100).ok()?.to_string()
        }
        _ => text,
    };
    Some((shown, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(header: &str, row: &str) -> Result<String, String> {
        let header: Vec<String> = header.split(',').map(str::to_owned).collect();
        item(&header, &csv::ByteRecord::from(row.split(',').collect::<Vec<_>>()))
    }

    #[test]
    fn entities_are_kept_as_the_table_api_keeps_them() {
        let header = "PartitionKey,RowKey,Timestamp,Age,Age@type,Big,Big@type,At,At@type,Name";
        let found =
            entity(header, "p,r,x,23,Edm.Int32,5,Edm.Int64,2021-01-04T22:25:57Z,Edm.DateTime,Ann").unwrap();
        assert_eq!(
            found,
            r#"{"id":"r","$id":"r","$pk":"p","Age":{"$t":16,"$v":23},"Big":{"$t":18,"$v":"00000000000000000005"},"At":{"$t":9,"$v":"00637453959570000000"},"Name":{"$t":2,"$v":"Ann"}}"#
        );
        for (member, shown) in [("Age", "23"), ("Big", "5"), ("At", "2021-01-04T22:25:57Z"), ("Name", "Ann")]
        {
            assert_eq!(cell(raw_json::member(&found, member).unwrap()).unwrap().0, shown);
        }
        assert!(
            entity("PartitionKey,RowKey,A,A@type", "p,r,x,Edm.Int32")
                .unwrap_err()
                .contains("`x` is no Edm.Int32")
        );
        assert!(entity("PartitionKey,RowKey,A,A@type", "p,r,x,Edm.X").unwrap_err().contains("unknown"));
    }
}
