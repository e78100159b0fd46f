//! How many there are, all together or of each kind, without showing any: what SQL counts and groups.
//!
//! Only where SQL says exactly what the language would (`statement`); otherwise the answer is `None`, and whoever asks
//! looks at the elements.

use std::sync::Arc;

use orrery_gremlin::graph::{FilterKey, Lookup};
use orrery_gremlin::{Result, Value};
use orrery_model::{Kind, Raw};
use orrery_query::StoredForm;

use super::document::{DEFAULT_EDGE_LABEL, DEFAULT_LABEL, LABEL, TTL, is_reserved, value};
use super::reads::{PAGE_ROWS_MAX, of_labels};
use super::statement::{COUNT, Conditions, GROUP, Statement};
use super::{ContainerGraph, failed};
use crate::errors::Failure;

/// Groups that are worth it: with more of them showing the elements costs no more.
const GROUPS_MAX: usize = 10_000;

impl ContainerGraph {
    /// How many elements a lookup without ids finds.
    pub(super) fn count_elements(&mut self, edges: bool, lookup: &Lookup) -> Result<Option<u64>> {
        let Some(conditions) = self.exactly(edges, lookup) else { return Ok(None) };
        let statement = compiled(conditions.compile_count())?;
        let mut count = 0;
        self.each_counted(lookup, &statement, |row| {
            count += whole(row);
            true
        })?;
        Ok(Some(count))
    }

    /// How many of them have each value under a key; those without the key are in none.
    pub(super) fn count_groups(
        &mut self,
        edges: bool,
        lookup: &Lookup,
        key: &FilterKey,
    ) -> Result<Option<Vec<(Value, u64)>>> {
        let flat = match key {
            FilterKey::Id => return Ok(None),
            FilterKey::Label => true,
            FilterKey::Property(name) => {
                let is_key = self.partition_key.as_deref() == Some(&**name);
                // The partition key is no property of an edge, and a number only where it is `ttl`.
                if is_reserved(name) || name.starts_with('_') || **name == *TTL || edges && is_key {
                    return Ok(None);
                }
                edges || is_key
            }
        };
        let path: &str = match key {
            FilterKey::Property(name) => name,
            _ => LABEL,
        };
        let Some(conditions) = self.exactly(edges, lookup) else { return Ok(None) };
        let statement = compiled(conditions.compile_groups(path, flat))?;
        let of_label = *key == FilterKey::Label;
        let default_label = if edges { DEFAULT_EDGE_LABEL } else { DEFAULT_LABEL };
        let mut groups: Vec<(Value, u64)> = Vec::new();
        let mut tells = true;
        self.each_counted(lookup, &statement, |row| {
            let key = match row.get(GROUP) {
                Some(text) if text.kind() == Kind::String => value(text),
                // Of some other form, or none: a label is the default one, a property is not there.
                other if of_label => {
                    tells &= other.is_none();
                    Value::string(default_label)
                }
                None => return true,
                Some(truth) if truth.kind() == Kind::Bool => value(truth),
                // Numbers of different widths are one group of SQL's; lists and objects have rules of their own.
                Some(_) => {
                    tells = false;
                    return false;
                }
            };
            let count = row.get(COUNT).map_or(0, whole);
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => *known += count,
                None => groups.push((key, count)),
            }
            tells &= groups.len() <= GROUPS_MAX;
            tells
        })?;
        Ok(tells.then_some(groups))
    }

    fn exactly(&self, edges: bool, lookup: &Lookup) -> Option<Conditions> {
        let plain = lookup.ids.is_none() && self.system_properties.is_empty();
        let base = if edges { Conditions::edges() } else { Conditions::vertices() };
        let conditions = of_labels(base, lookup);
        plain.then(|| conditions.exactly(&lookup.filters, !edges, self.partition_key.as_deref())).flatten()
    }

    /// Calls `each` with the rows of a statement until it wants no more.
    fn each_counted(
        &mut self,
        lookup: &Lookup,
        statement: &Statement,
        mut each: impl FnMut(Raw<'_>) -> bool,
    ) -> Result<()> {
        for scope in self.scopes(lookup.partitions.as_deref()) {
            let Some(scope) = self.permitted(&scope) else { continue };
            let mut position = None;
            loop {
                self.budget.check()?;
                let (rows, next) =
                    self.page(&scope, statement, &StoredForm, position, PAGE_ROWS_MAX).map_err(failed)?;
                for row in rows.iter() {
                    if let Ok(row) = Raw::document(row)
                        && !each(row)
                    {
                        return Ok(());
                    }
                }
                match next {
                    Some(next) => position = Some(next),
                    None => break,
                }
            }
        }
        Ok(())
    }
}

fn compiled(statement: std::result::Result<Statement, orrery_sql::SqlError>) -> Result<Arc<Statement>> {
    statement.map(Arc::new).map_err(|error| failed(Failure::runtime(error.to_string())))
}

fn whole(raw: Raw<'_>) -> u64 {
    raw.as_number().and_then(|n| n.as_i64()).and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
}
