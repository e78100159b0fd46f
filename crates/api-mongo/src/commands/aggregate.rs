//! `aggregate`.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use orrery_mongo::pipeline::{BoxedRows, Env, ListRows, Pipeline, Row};
use orrery_mongo::{Bson, Context, Document, Error, Result, doc, error::code};

use super::collections::Store;
use super::cursor::{self, Opening};
use super::{Call, change_stream, indexes, options};
use crate::collection::grouping::Grouping;
use crate::cursors::Source;
use crate::reply::Reply;

const FIELDS: &[&str] = &[
    "pipeline",
    "cursor",
    "explain",
    "allowDiskUse",
    "let",
    "hint",
    "collation",
    "bypassDocumentValidation",
    "needsMerge",
    "fromMongos",
    "exchange",
    "collectionUUID",
    "isMapReduceCommand",
    "encryptionInformation",
    "batchSize",
];

pub fn aggregate(call: &mut Call<'_>) -> Result<Reply> {
    call.core.counts.queries.fetch_add(1, Relaxed);
    let body = call.body;
    let name = match call.argument() {
        Bson::String(name) if !name.is_empty() => name.to_string(),
        Bson::String(_) => {
            return Err(Error::new(
                code::INVALID_NAMESPACE,
                format!("Invalid namespace specified '{}.'", call.database),
            ));
        }
        value if value.as_i64() == Some(1) => "$cmd.aggregate".to_owned(),
        Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) => {
            return Err(Error::failed_to_parse(
                "Invalid command format: the 'aggregate' field must specify a collection name or 1",
            ));
        }
        other => {
            return Err(Error::type_mismatch(format!(
                "collection name has invalid type {}",
                other.kind().name()
            )));
        }
    };
    options::check_known(body, FIELDS)?;
    let stages = match options::required(body, "pipeline")? {
        Bson::Array(stages) => stages.clone(),
        other => {
            return Err(Error::type_mismatch(format!(
                "BSON field 'aggregate.pipeline' is the wrong type '{}', expected type 'array'",
                other.kind().name()
            )));
        }
    };
    let cursor = options::document(body, "cursor")?;
    let explains = options::flag(body, "explain", false)?;
    if cursor.is_none() && !explains {
        return Err(Error::failed_to_parse(
            "The 'cursor' option is required, except for aggregate with the explain argument",
        ));
    }
    let batch = cursor.map(|cursor| options::count(cursor, "batchSize")).transpose()?.flatten();
    indexes::check_hint(call, &name, body.get("hint"))?;
    let context = call.context(None)?;
    if explains {
        return super::explain::of_pipeline(call, &name, &stages, &context);
    }
    if let Some(argument) = change_stream::asked(&stages) {
        let argument = argument.clone();
        return change_stream::open(call, &name, &argument, &stages[1..], batch, &context);
    }
    let (rows, writes) = rows(call, &name, &stages, &context)?;
    let rows = match writes {
        // What writes is done before anything is answered.
        true => {
            let mut rows = rows;
            while rows.next()?.is_some() {}
            ListRows::empty()
        }
        false => rows,
    };
    let opening = Opening { namespace: format!("{}.{name}", call.database), batch, ..Opening::default() };
    cursor::open(call, Source::Rows(rows), opening)
}

/// The rows of a pipeline over a collection or view, and whether it writes.
pub fn rows(call: &Call<'_>, name: &str, stages: &[Bson], context: &Context) -> Result<(BoxedRows, bool)> {
    let store = Store::new(call, context);
    let (on, stages) = match store.view(call.database, name, 0)? {
        Some((on, mut inner)) => {
            inner.extend(stages.iter().cloned());
            (on, inner)
        }
        None => (name.to_owned(), stages.to_vec()),
    };
    let pipeline = Pipeline::parse(&stages, context)?;
    let writes = pipeline.writes();
    if name == "$cmd.aggregate" && !pipeline.has_own_source() && !stages.is_empty() {
        let first = pipeline.names().next().unwrap_or("an empty pipeline");
        return Err(Error::new(
            code::INVALID_NAMESPACE,
            format!("{{aggregate: 1}} is not valid for '{first}'; a collection is required."),
        ));
    }
    if writes && call.transaction.is_some() {
        return Err(Error::new(
            code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
            "$out and $merge cannot be used in a transaction",
        ));
    }
    if writes && call.core.config.auth == crate::config::AuthMode::Required {
        crate::auth::check(
            call.client.identity.as_ref(),
            crate::auth::Access::Write,
            "aggregate",
            call.database,
        )?;
    }
    let env = Env {
        database: call.database.into(),
        collection: on.as_str().into(),
        collections: Arc::new(store),
        context: context.clone(),
    };
    if let Some(made) = grouped(call, &on, &stages, &pipeline, context)? {
        let behind = Pipeline::parse(&stages[made.stages..], context)?;
        let rows = ListRows::boxed(made.documents.into_iter().map(Row::Built));
        return Ok((behind.run(rows, &env)?, writes));
    }
    Ok((pipeline.run_over_collection(&env)?, writes))
}

/// What the engine has made of the first stages.
struct Made {
    documents: Vec<Document>,
    stages: usize,
}

/// `$match` stages with a `$group` or a `$count` behind them, where the engine can do all of that.
fn grouped(
    call: &Call<'_>,
    name: &str,
    stages: &[Bson],
    pipeline: &Pipeline,
    context: &Context,
) -> Result<Option<Made>> {
    let at = pipeline.names().take_while(|name| *name == "$match").count();
    let Some((stage, argument)) = stages.get(at).and_then(Bson::as_document).and_then(Document::first) else {
        return Ok(None);
    };
    if !matches!(&**stage, "$group" | "$count") {
        return Ok(None);
    }
    let Some(collection) = call.collection(name)? else { return Ok(None) };
    let (scope, filter) = (call.scope(), pipeline.leading().filter);
    let documents = match (&**stage, argument) {
        ("$count", Bson::String(field)) => {
            let counted = collection.count(&scope, filter.as_ref(), context)?;
            counted.map(|n| {
                let n = i32::try_from(n).map_or(Bson::Int64(n as i64), Bson::Int32);
                // Nothing is not counted.
                let some = !matches!(n, Bson::Int32(0));
                some.then(|| doc! { field.clone() => n }).into_iter().collect()
            })
        }
        ("$group", argument) => match Grouping::of(argument) {
            Some(grouping) => collection.group(&scope, filter.as_ref(), &grouping, context)?,
            None => None,
        },
        _ => None,
    };
    Ok(documents.map(|documents| Made { documents, stages: at + 1 }))
}

/// What `mapReduce` is answered with: scripts of clients are not run.
pub fn map_reduce(_: &mut Call<'_>) -> Result<Reply> {
    Err(Error::new(
        code::COMMAND_NOT_SUPPORTED,
        "mapReduce is not supported: server-side JavaScript is not run. Use an aggregation pipeline.",
    ))
}

/// What a pipeline reads of its collection, for `explain`; and how many rows it wants in the order of its `$sort`.
pub fn leading(
    call: &Call<'_>,
    name: &str,
    stages: &[Bson],
    context: &Context,
) -> Result<(Document, Option<u64>)> {
    let pipeline = Pipeline::parse(stages, context)?;
    let leading = pipeline.leading();
    let shown = doc! {
        "stages" => leading.stages as i32,
        "filter" => leading.filter.is_some(),
        "sort" => leading.sort.is_some(),
        "limit" => leading.limit.map_or(Bson::Null, |limit| Bson::Int64(limit as i64)),
        "group" => grouped(call, name, stages, &pipeline, context)?.is_some(),
    };
    Ok((shown, leading.limit.filter(|_| leading.sort.is_some())))
}
