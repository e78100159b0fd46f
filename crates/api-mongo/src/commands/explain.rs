//! `explain`: what runs, in the form that tools know.

use std::time::Instant;

use orrery_mongo::{Bson, Context, Document, Error, Result, doc, error::code};

use super::find::Find;
use super::{Call, aggregate, options};
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
    let mut reply = planner(call, &collection, &asked.filter, asked.sort.as_ref());
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

fn planner(call: &Call<'_>, collection: &str, filter: &Document, sort: Option<&Document>) -> Document {
    let mut plan = match filter.get("_id") {
        Some(id) if !matches!(id, Bson::Document(_)) => doc! { "stage" => "IDHACK" },
        _ if filter.is_empty() => doc! { "stage" => "COLLSCAN", "direction" => "forward" },
        _ => {
            let keys: Document = filter
                .iter()
                .filter(|(name, _)| !name.starts_with('$'))
                .map(|(name, _)| (name.clone(), Bson::Int32(1)))
                .collect();
            match keys.is_empty() {
                true => doc! { "stage" => "COLLSCAN", "filter" => filter.clone(), "direction" => "forward" },
                false => doc! {
                    "stage" => "FETCH",
                    "filter" => filter.clone(),
                    "inputStage" => doc! { "stage" => "IXSCAN", "keyPattern" => keys, "isMultiKey" => true, "direction" => "forward" },
                },
            }
        }
    };
    if let Some(sort) = sort {
        plan = doc! { "stage" => "SORT", "sortPattern" => sort.clone(), "inputStage" => plan };
    }
    doc! {
        "explainVersion" => "1",
        "queryPlanner" => doc! {
            "namespace" => format!("{}.{collection}", call.database),
            "parsedQuery" => filter.clone(),
            "indexFilterSet" => false,
            "winningPlan" => plan,
            "rejectedPlans" => Bson::array(Vec::new()),
        },
    }
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
    let leading = aggregate::leading(stages, context)?;
    let first = stages.first().and_then(Bson::as_document);
    let filter =
        first.and_then(|stage| stage.get("$match")).and_then(Bson::as_document).cloned().unwrap_or_default();
    let plan = planner(call, name, &filter, None);
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
