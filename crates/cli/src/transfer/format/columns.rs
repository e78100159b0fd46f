//! Which columns a set of items has, and of which type each is.

use std::collections::HashMap;

use anyhow::{Result, bail};

use super::super::raw_json;

/// Columns of a table. Items with a property name for each value are no table.
const COLUMNS_MAX: usize = 10_000;

/// What values of a column have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    Whole,
    Double,
    Boolean,
    Text,
    /// Several types, or arrays and objects.
    Json,
}

#[derive(Debug, Default)]
pub struct Columns {
    pub names: Vec<String>,
    /// `None` while all values were null.
    types: Vec<Option<ColumnType>>,
    places: HashMap<String, usize>,
}

impl Columns {
    pub fn learn(&mut self, item: &str) -> Result<()> {
        let Some(members) = raw_json::members(item) else { bail!("an item that is no object") };
        for member in members {
            let place = match self.places.get(&*member.name) {
                Some(place) => *place,
                None => {
                    if self.names.len() >= COLUMNS_MAX {
                        bail!(
                            "the items have more than {COLUMNS_MAX} different properties, which is no table; use jsonl"
                        );
                    }
                    let name = member.name.into_owned();
                    self.places.insert(name.clone(), self.names.len());
                    self.names.push(name);
                    self.types.push(None);
                    self.names.len() - 1
                }
            };
            if let Some(new) = type_of(member.value) {
                self.types[place] = Some(self.types[place].map_or(new, |old| common(old, new)));
            }
        }
        Ok(())
    }

    pub fn column_type(&self, place: usize) -> ColumnType {
        self.types.get(place).copied().flatten().unwrap_or(ColumnType::Json)
    }

    /// The values of an item by column.
    pub fn row<'t>(&self, item: &'t str) -> Vec<Option<&'t str>> {
        let mut row = vec![None; self.names.len()];
        for member in raw_json::members(item).unwrap_or_default() {
            if let Some(place) = self.places.get(&*member.name) {
                row[*place] = Some(member.value);
            }
        }
        row
    }
}

fn type_of(value: &str) -> Option<ColumnType> {
    Some(match value.as_bytes().first()? {
        b'n' => return None,
        b't' | b'f' => ColumnType::Boolean,
        b'"' => ColumnType::Text,
        b'{' | b'[' => ColumnType::Json,
        _ if value.parse::<i64>().is_ok() && value != "-0" => ColumnType::Whole,
        _ => ColumnType::Double,
    })
}

fn common(a: ColumnType, b: ColumnType) -> ColumnType {
    use ColumnType::{Double, Json, Whole};
    match (a, b) {
        (a, b) if a == b => a,
        (Whole, Double) | (Double, Whole) => Double,
        _ => Json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_type_that_all_values_share() {
        let mut columns = Columns::default();
        for item in
            [r#"{"a":1,"b":1,"c":"x","d":true,"e":null}"#, r#"{"a":2,"b":0.5,"c":5,"d":null,"f":[1]}"#]
        {
            columns.learn(item).unwrap();
        }
        let types: Vec<_> = (0..columns.names.len()).map(|n| columns.column_type(n)).collect();
        use ColumnType::*;
        assert_eq!(types, [Whole, Double, Json, Boolean, Json, Json]);
        assert_eq!(columns.row(r#"{"c":"y"}"#), [None, None, Some("\"y\""), None, None, None]);
    }
}
