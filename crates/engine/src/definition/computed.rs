//! Computed properties: values that queries see as members of an item, made by a query over the item alone.

use serde_json::{Value, json};

use super::json::{invalid_input, object, required_text};
use crate::error::{Error, Result};
use crate::item::is_system_property;

/// Most computed properties of a container.
pub const COMPUTED_PROPERTIES_MAX: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedProperty {
    pub name: String,
    /// `SELECT VALUE … FROM c`, as it was given.
    pub query: String,
}

pub(super) fn parse(from: Option<&Vec<Value>>) -> Result<(Vec<ComputedProperty>, Option<Value>)> {
    let Some(from) = from else { return Ok((Vec::new(), None)) };
    if from.len() > COMPUTED_PROPERTIES_MAX {
        return Err(Error::bad_request(format!(
            "The container has {} computed properties; a maximum of {COMPUTED_PROPERTIES_MAX} is allowed.",
            from.len()
        )));
    }
    let mut properties: Vec<ComputedProperty> = Vec::with_capacity(from.len());
    for entry in from {
        let entry = object(entry)?;
        let name = required_text(entry, "name")?;
        let query = required_text(entry, "query")?;
        if name.is_empty() || name == "id" || is_system_property(name) {
            return Err(Error::bad_request(format!("The name '{name}' cannot be a computed property.")));
        }
        if properties.iter().any(|other| other.name == name) {
            return Err(Error::bad_request(format!(
                "The computed property '{name}' is specified more than once."
            )));
        }
        check_query(name, query)?;
        properties.push(ComputedProperty { name: name.to_owned(), query: query.to_owned() });
    }
    let canonical: Vec<Value> =
        properties.iter().map(|property| json!({ "name": property.name, "query": property.query })).collect();
    Ok((properties, Some(canonical.into())))
}

/// The query may compute one value from one item and nothing else: no other rows, no order, no filter.
fn check_query(name: &str, text: &str) -> Result<()> {
    let refused = |why: String| {
        Error::bad_request(format!("The query of the computed property '{name}' is invalid: {why}"))
    };
    let query = orrery_sql::parse_query(text).map_err(|error| refused(error.to_string()))?;
    if !matches!(query.select.projection, orrery_sql::Projection::Value(..)) {
        return Err(refused("it must select a VALUE.".to_owned()));
    }
    let plain_source = match &query.from[..] {
        [source] => !source.iterate && matches!(source.collection, orrery_sql::Collection::Path(_)),
        _ => false,
    };
    let extra = query.select.distinct
        || query.select.top.is_some()
        || query.filter.is_some()
        || !query.group_by.is_empty()
        || query.order_by.is_some()
        || query.offset_limit.is_some();
    match plain_source && !extra {
        true => Ok(()),
        false => {
            Err(refused("it must be of the form SELECT VALUE … FROM c, without further clauses.".to_owned()))
        }
    }
}

/// Whether the value is the array that the member must be; anything else gets the service's one text.
pub(super) fn array(value: &Value) -> Result<&Vec<Value>> {
    value.as_array().ok_or_else(invalid_input)
}
