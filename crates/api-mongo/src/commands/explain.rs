//! `explain`: what runs, in the form that tools know.

use std::time::Instant;

use orrery_engine::IndexUse;
use orrery_mongo::filter::Filter;
use orrery_mongo::sort::Sort;
use orrery_mongo::{Bson, Context, Document, Error, Result, doc, error::code};

use super::find::Find;
use super::{Call, aggregate, options};
use crate::catalog::Index;
use crate::collection::Collection;
use crate::collection::read::Way;
use crate::reply::Reply;

pub fn explain(call: &mut Call<'_>) -> Result<Reply> {
    let command = call.argument().as_document().cloned();
    let command = command.ok_or_else(|| Error::type_mismatch("explain takes a command"))?;
    let verbosity = options::text(call.body, "verbosity")?.unwrap_or("allPlansExecution");
    if !matches!(verbosity, "queryPlanner" | "executionStats" | "allPlansExecution") {
        return Err(Error::bad_value(format!(
            "verbosity string must be one of {{'queryPlanner', 'executionStats', 'allPlansExecution'}}, not '{verbosity}'"
        )));
    }
    let (name, argument) = command.first().ok_or_else(|| Error::bad_value("explain takes a command"))?;
    let collection = argument.as_str().unwrap_or_default().to_owned();
    let context = call.context(options::document(&command, "collation")?)?;
    if &**name == "aggregate" {
        let stages = options::array(&command, "pipeline")?.unwrap_or_default().to_vec();
        return of_pipeline(call, &collection, &stages, &context);
    }
    let filter = match &**name {
        "find" => options::document(&command, "filter")?,
        "count" | "distinct" | "findAndModify" | "findandmodify" => options::document(&command, "query")?,
        "update" => first_of(&command, "updates"),
        "delete" => first_of(&command, "deletes"),
        other => {
            return Err(Error::new(
                code::COMMAND_NOT_FOUND,
                format!("Explain failed due to unknown command: {other}"),
            ));
        }
    };
    let asked = Find {
        filter: filter.cloned().unwrap_or_default(),
        projection: None,
        sort: options::document(&command, "sort")?.filter(|sort| !sort.is_empty()).cloned(),
        skip: options::count(&command, "skip")?.unwrap_or(0),
        limit: options::count(&command, "limit")?.filter(|limit| *limit > 0),
    };
    super::indexes::check_hint(call, &collection, command.get("hint"))?;
    let wanted = asked.limit.map(|limit| limit.saturating_add(asked.skip));
    let mut reply = planner(call, &collection, &asked.filter, asked.sort.as_ref(), wanted, &context)?;
    if verbosity != "queryPlanner" {
        let began = Instant::now();
        let mut rows = asked.rows(call, &collection, &context)?;
        let mut returned = 0i32;
        while rows.next()?.is_some() {
            returned += 1;
        }
        reply.push("executionStats", stats(returned, began, &asked.filter));
    }
    finish(call, &mut reply, command.clone());
    Ok(reply.into())
}

fn first_of<'c>(command: &'c Document, name: &str) -> Option<&'c Document> {
    command.get(name)?.as_array()?.first()?.as_document()?.get("q")?.as_document()
}

/// How the documents of a filter are found: what was planned is what is run, so it is run as far as its first page.
fn planner(
    call: &Call<'_>,
    name: &str,
    filter: &Document,
    sort: Option<&Document>,
    wanted: Option<u64>,
    context: &Context,
) -> Result<Document> {
    let parsed = Filter::parse(filter, context)?;
    let mut sorted = false;
    let all = doc! { "stage" => "COLLSCAN", "filter" => filter.clone(), "direction" => "forward" };
    let (mut plan, mut way) = (doc! { "stage" => "EOF" }, None);
    if let Some(collection) = call.collection(name)? {
        let scope = call.scope();
        let in_order = match (sort, wanted) {
            (Some(sort), Some(wanted)) => {
                collection.find_in_order(&scope, Some(&parsed), &Sort::parse(sort)?, wanted, context)?
            }
            _ => None,
        };
        sorted = in_order.is_some();
        let found = match in_order {
            Some(mut found) => found.explain()?,
            None => collection.find(&scope, Some(&parsed), context, Some(1))?.explain()?,
        };
        match found {
            Way::ById => plan = doc! { "stage" => "IDHACK" },
            Way::Statement { text, explained } => {
                plan = match used(&collection, &explained.indexes) {
                    None => all,
                    Some(index) => {
                        doc! { "stage" => "FETCH", "filter" => filter.clone(), "inputStage" => index }
                    }
                };
                let partitions = explained
                    .partitions
                    .iter()
                    .map(|(range, plan)| doc! { "range" => *range as i32, "plan" => plan.as_str() }.into());
                way = Some(doc! { "statement" => text, "partitions" => Bson::array(partitions.collect()) });
            }
        }
    }
    if let Some(sort) = sort.filter(|_| !sorted) {
        plan = doc! { "stage" => "SORT", "sortPattern" => sort.clone(), "inputStage" => plan };
    }
    let mut planner = doc! {
        "namespace" => format!("{}.{name}", call.database),
        "parsedQuery" => filter.clone(),
        "indexFilterSet" => false,
        "winningPlan" => plan,
        "rejectedPlans" => Bson::array(Vec::new()),
    };
    if let Some(way) = way {
        planner.push("orrery", way);
    }
    Ok(doc! { "explainVersion" => "1", "queryPlanner" => planner })
}

/// The paths that were looked up in the index of the container, under the name of the index of the collection that
/// begins with one of them.
fn used(collection: &Collection, indexes: &IndexUse) -> Option<Document> {
    let path = |text: &String| {
        let inner = text.trim_start_matches('/').trim_end_matches("/?").trim_end_matches("/*");
        inner
            .split('/')
            .map(|name| name.trim_matches('"'))
            .filter(|name| *name != "[]")
            .collect::<Vec<_>>()
            .join(".")
    };
    let paths: Vec<String> = indexes.used.iter().map(path).collect();
    if paths.is_empty() && indexes.used_composites.is_empty() {
        return None;
    }
    let begins = |index: &&Index| {
        index.key.first().is_some_and(|(first, _)| paths.iter().any(|path| **path == **first))
    };
    let mut shown = doc! { "stage" => "IXSCAN" };
    match collection.meta.indexes.iter().find(begins) {
        Some(index) => {
            shown.push("keyPattern", index.key.clone());
            shown.push("indexName", index.name.as_str());
            shown.push("isUnique", index.unique);
            shown.push("isSparse", index.sparse);
            shown.push("isPartial", index.partial.is_some());
        }
        // Every path is indexed, whether the collection says so or not.
        None => shown.push(
            "keyPattern",
            paths.iter().map(|path| (path.as_str().into(), Bson::Int32(1))).collect::<Document>(),
        ),
    }
    shown.push("indexedPaths", Bson::array(paths.iter().map(|path| path.as_str().into()).collect()));
    shown.push("direction", "forward");
    Some(shown)
}

fn stats(returned: i32, began: Instant, filter: &Document) -> Document {
    doc! {
        "executionSuccess" => true,
        "nReturned" => returned,
        "executionTimeMillis" => began.elapsed().as_millis() as i32,
        "totalKeysExamined" => if filter.is_empty() { 0 } else { returned },
        "totalDocsExamined" => returned,
        "executionStages" => doc! { "stage" => "FETCH", "nReturned" => returned },
    }
}

fn finish(call: &Call<'_>, reply: &mut Document, command: Document) {
    reply.push("command", command);
    reply.push(
        "serverInfo",
        doc! {
            "host" => call.client.local.ip().to_string(),
            "port" => i32::from(call.client.local.port()),
            "version" => call.core.config.version.text(),
            "gitVersion" => "unknown",
        },
    );
    reply.push("serverParameters", Document::new());
}

pub fn of_pipeline(call: &mut Call<'_>, name: &str, stages: &[Bson], context: &Context) -> Result<Reply> {
    let (leading, wanted) = aggregate::leading(call, name, stages, context)?;
    let first = stages.first().and_then(Bson::as_document);
    let filter =
        first.and_then(|stage| stage.get("$match")).and_then(Bson::as_document).cloned().unwrap_or_default();
    let of_stage = |stage: &Bson| stage.as_document()?.get("$sort")?.as_document().cloned();
    let sort = stages.iter().find_map(of_stage).filter(|_| wanted.is_some());
    let plan = planner(call, name, &filter, sort.as_ref(), wanted, context)?;
    let began = Instant::now();
    let writes = matches!(stages.last().and_then(Bson::as_document).and_then(Document::first), Some((last, _)) if matches!(&**last, "$out" | "$merge"));
    let mut returned = 0i32;
    if !writes && super::change_stream::asked(stages).is_none() {
        let (mut rows, _) = aggregate::rows(call, name, stages, context)?;
        while rows.next()?.is_some() {
            returned += 1;
        }
    }
    let mut cursor = plan.clone();
    cursor.remove("explainVersion");
    cursor.push("executionStats", stats(returned, began, &filter));
    let mut shown: Vec<Bson> = vec![doc! { "$cursor" => cursor, "pushedDown" => leading }.into()];
    shown.extend(stages.iter().cloned());
    let mut reply = doc! { "explainVersion" => "1" };
    if let Some(planner) = plan.get("queryPlanner") {
        reply.push("queryPlanner", planner.clone());
    }
    reply.push("stages", Bson::array(shown));
    finish(call, &mut reply, doc! { "aggregate" => name, "pipeline" => Bson::array(stages.to_vec()) });
    Ok(reply.into())
}
