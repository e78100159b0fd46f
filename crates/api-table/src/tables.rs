//! Tables: create, list, read, delete, and their stored access policies.
//!
//! A table is a container of the database `TablesDB` with the partition key `/'$pk'`, whoever made it. Those that are
//! made here have a composite index over their keys besides the usual ones, in whose order queries are answered.

use std::sync::Arc;

use http::header::LOCATION;
use http::{HeaderName, StatusCode};
use orrery_engine::{Account, Container, ContainerDefinition, Database, KeyKinds, Kind, Ref, Throughput};
use serde_json::{Value, json};

use crate::config::DATABASE;
use crate::continuation;
use crate::dialect::Dialect;
use crate::entities::{self, PREFERENCE_APPLIED, Preference};
use crate::errors::{Code, Result, TableError};
use crate::filter::{self, Comparison, Filter, Literal, Operator};
use crate::names::{self, SERVICE_CONTAINER};
use crate::policies::{self, AccessPolicy};
use crate::query::page_rows;
use crate::service::{Answer, Context, TableService};
use crate::service_store;
use crate::stored::PARTITION_KEY;

const NEXT_TABLE: HeaderName = HeaderName::from_static("x-ms-continuation-nexttablename");
const OFFER_THROUGHPUT: HeaderName = HeaderName::from_static("x-ms-offer-throughput");
const AUTOPILOT: HeaderName = HeaderName::from_static("x-ms-cosmos-offer-autopilot-settings");
const POLICIES: &str = "policies";

/// The charges of the service for its catalog.
const CREATE_RU: f64 = 1.0;
const READ_RU: f64 = 2.0;

/// The database of tables, made when the first of them is.
pub async fn database(service: &TableService) -> Result<Arc<Database>> {
    let account = &service.account;
    if let Ok(database) = account.database(Ref::Name(DATABASE)) {
        return Ok(database);
    }
    match account.create_database(DATABASE, None).await {
        Ok(database) => Ok(database),
        Err(error) if error.kind == Kind::AlreadyExists => {
            account.database(Ref::Name(DATABASE)).map_err(TableError::of_table)
        }
        Err(error) => Err(TableError::of_table(error)),
    }
}

/// Whether a container has the form of a table.
fn is_table(container: &Container) -> bool {
    let definition = container.definition();
    let paths = &definition.partition_key.paths;
    let keyed = matches!(paths.as_slice(), [path] if path.segments() == [PARTITION_KEY]);
    keyed && container.name() != SERVICE_CONTAINER
}

/// The table of a name.
pub fn find(account: &Account, name: &str, dialect: Dialect) -> Result<Arc<Container>> {
    names::check_table(name, dialect)?;
    let missing = || TableError::from(Code::TableNotFound);
    let database = account.database(Ref::Name(DATABASE)).map_err(|_| missing())?;
    let found = match database.container(Ref::Name(name)) {
        Ok(container) => Some(container),
        Err(_) if dialect == Dialect::Storage => {
            database.containers().into_iter().find(|table| names::same_table(table.name(), name, dialect))
        }
        Err(_) => None,
    };
    found.filter(|table| is_table(table)).ok_or_else(missing)
}

pub async fn create(context: &Context<'_>) -> Result<Answer> {
    let invalid = || TableError::from(Code::InvalidInput);
    let body: Value = serde_json::from_slice(context.body).map_err(|_| invalid())?;
    let name = match body.get("TableName") {
        Some(Value::String(name)) => name.as_str(),
        Some(_) => return Err(invalid()),
        None => return Err(Code::PropertiesNeedValue.into()),
    };
    names::check_new_table(name, context.dialect)?;
    let throughput = throughput(context)?;
    if context.dialect == Dialect::Storage && find(context.account(), name, context.dialect).is_ok() {
        return Err(Code::TableAlreadyExists.into());
    }
    let definition = definition(name);
    let definition = ContainerDefinition::parse(&definition, KeyKinds::All).map_err(TableError::of_table)?;
    let database = database(context.service).await?;
    let created = context.account().create_container(&database, definition, throughput).await;
    created.map_err(TableError::of_table)?;
    let address = format!("{}/Tables('{name}')", context.endpoint);
    let preference = Preference::of(context);
    let answer = match preference {
        Some(Preference::NoContent) => {
            Answer::new(StatusCode::NO_CONTENT).set(entities::DATA_SERVICE_ID, &address)
        }
        _ => {
            let mut body = Vec::with_capacity(256);
            context.rendering().table(name, true, &mut body);
            context.json(StatusCode::CREATED, body)
        }
    };
    let answer = match preference {
        Some(preference) => answer.set(PREFERENCE_APPLIED, preference.name()),
        None => answer,
    };
    Ok(answer.set(LOCATION, &address).charge(CREATE_RU))
}

fn definition(name: &str) -> Value {
    let path = format!("/\"{PARTITION_KEY}\"");
    json!({
        "id": name,
        "partitionKey": {"paths": [format!("/'{PARTITION_KEY}'")], "kind": "Hash", "version": 2},
        "indexingPolicy": {
            "indexingMode": "consistent",
            "automatic": true,
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": "/\"_etag\"/?"}],
            "compositeIndexes": [[{"path": path, "order": "ascending"}, {"path": "/id", "order": "ascending"}]],
        },
    })
}

/// The throughput that a creation asks for; `None` leaves it to the database, or to the least there is.
fn throughput(context: &Context<'_>) -> Result<Option<Throughput>> {
    let invalid = |header: &str| {
        TableError::new(Code::InvalidInput, format!("The value of the header '{header}' is invalid."))
    };
    match (context.header(OFFER_THROUGHPUT), context.header(AUTOPILOT)) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(TableError::new(
            Code::InvalidInput,
            "Manual and autoscale throughput cannot be set together.",
        )),
        (Some(manual), None) => {
            let manual = manual.trim().parse().map_err(|_| invalid(OFFER_THROUGHPUT.as_str()))?;
            Throughput::manual(manual).map(Some).map_err(TableError::of_table)
        }
        (None, Some(settings)) => {
            let settings: Value = serde_json::from_str(settings).map_err(|_| invalid(AUTOPILOT.as_str()))?;
            let max = settings.get("maxThroughput").and_then(Value::as_i64);
            let max = max.ok_or_else(|| invalid(AUTOPILOT.as_str()))?;
            Throughput::autoscale(max, None).map(Some).map_err(TableError::of_table)
        }
    }
}

/// By name, a page at a time.
pub fn list(context: &Context<'_>) -> Result<Answer> {
    let filter = context.params.filled("$filter").map(filter::parse).transpose()?;
    let rows = page_rows(context)?;
    let after = context.params.filled("NextTableName").map(continuation::decode_table).transpose()?;
    let database = context.account().database(Ref::Name(DATABASE)).ok();
    let mut tables: Vec<Arc<Container>> = database.map(|database| database.containers()).unwrap_or_default();
    tables.retain(|table| {
        is_table(table)
            && after.as_deref().is_none_or(|after| table.name() > after)
            && filter.as_ref().is_none_or(|filter| matches(filter, table.name()))
    });
    tables.sort_unstable_by(|left, right| left.name().cmp(right.name()));
    let more = tables.len() > rows;
    tables.truncate(rows);
    let mut body = Vec::with_capacity(64 * tables.len() + 128);
    let rendering = context.rendering();
    rendering.list("Tables", &mut body, |out| {
        for (n, table) in tables.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            rendering.table(table.name(), false, out);
        }
    });
    let answer = context.json(StatusCode::OK, body).charge(READ_RU);
    Ok(match tables.last().filter(|_| more) {
        Some(last) => answer.set(NEXT_TABLE, continuation::encode_table(last.name())),
        None => answer,
    })
}

/// Whether a filter over tables lets one through. Tables have no property but their name.
fn matches(filter: &Filter, name: &str) -> bool {
    match filter {
        Filter::Constant(value) => *value,
        Filter::And(parts) => parts.iter().all(|part| matches(part, name)),
        Filter::Or(parts) => parts.iter().any(|part| matches(part, name)),
        Filter::Not(inner) => !matches(inner, name),
        Filter::Compare(Comparison { property, operator, value: Literal::String(value) })
            if property == "TableName" =>
        {
            let order = name.cmp(value.as_str());
            match operator {
                Operator::Equal => order.is_eq(),
                Operator::NotEqual => order.is_ne(),
                Operator::Greater => order.is_gt(),
                Operator::GreaterOrEqual => order.is_ge(),
                Operator::Less => order.is_lt(),
                Operator::LessOrEqual => order.is_le(),
            }
        }
        Filter::Compare(_) => false,
    }
}

pub fn read(context: &Context<'_>, name: &str) -> Result<Answer> {
    let table = find(context.account(), name, context.dialect).map_err(missing_resource)?;
    let mut body = Vec::with_capacity(256);
    context.rendering().table(table.name(), true, &mut body);
    Ok(context.json(StatusCode::OK, body).charge(READ_RU))
}

pub async fn delete(context: &Context<'_>, name: &str) -> Result<Answer> {
    let table = find(context.account(), name, context.dialect).map_err(missing_resource)?;
    let deleted = context.account().delete_container(&table, None).await;
    deleted.map_err(TableError::of_table)?;
    service_store::remove(context.service, &table.number().to_string(), POLICIES).await;
    Ok(Answer::new(StatusCode::NO_CONTENT).charge(CREATE_RU))
}

/// A table is the resource here, not what holds it.
fn missing_resource(error: TableError) -> TableError {
    match error.code {
        Code::TableNotFound => Code::ResourceNotFound.into(),
        _ => error,
    }
}

/// The stored access policies of a table; none where there is no such table.
pub fn policies_of(service: &TableService, table: &str, dialect: Dialect) -> Result<Vec<AccessPolicy>> {
    let Ok(table) = find(&service.account, table, dialect) else { return Ok(Vec::new()) };
    match service_store::read(service, &table.number().to_string(), POLICIES)? {
        Some(text) => policies::parse(text.as_bytes()),
        None => Ok(Vec::new()),
    }
}

pub fn read_policies(context: &Context<'_>, name: &str) -> Result<Answer> {
    find(context.account(), name, context.dialect)?;
    let policies = policies_of(context.service, name, context.dialect)?;
    Ok(Answer::new(StatusCode::OK).xml(policies::write(&policies)).charge(READ_RU))
}

pub async fn set_policies(context: &Context<'_>, name: &str) -> Result<Answer> {
    let table = find(context.account(), name, context.dialect)?;
    if context.body.len() > service_store::TEXT_BYTES_MAX {
        return Err(Code::ContentLengthExceeded.into());
    }
    let text = policies::write(&policies::parse(context.body)?);
    service_store::set(context.service, &table.number().to_string(), POLICIES, &text).await?;
    Ok(Answer::new(StatusCode::NO_CONTENT).charge(CREATE_RU))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_filtered_by_name() {
        let found = |text: &str| {
            let filter = filter::parse(text).unwrap();
            ["alpha", "beta", "gamma"]
                .into_iter()
                .filter(|name| matches(&filter, name))
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (text, expected) in [
            ("TableName eq 'beta'", "beta"),
            ("TableName ge 'b' and TableName lt 'c'", "beta"),
            ("not (TableName eq 'beta')", "alpha gamma"),
            ("TableName ne 'beta' or TableName eq 'beta'", "alpha beta gamma"),
            ("Other eq 'beta'", ""),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn a_new_table_is_a_container_of_the_form_of_tables() {
        let definition = ContainerDefinition::parse(&definition("t"), KeyKinds::All).unwrap();
        assert_eq!(definition.partition_key.paths[0].segments(), [PARTITION_KEY]);
        assert_eq!(definition.indexing.composite[0][0].path.segments(), [PARTITION_KEY]);
    }
}
