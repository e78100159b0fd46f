//! Queries over databases, containers, offers and all other feeds but items: the same language, over the JSON of each
//! resource.

use std::rc::Rc;

use orrery_model::{ParseOptions, Raw, parse_json};
use orrery_query::{Meter, Prepared, RowView, run_within};

use super::query_env;
use super::request::{self, QueryRequest};
use crate::errors::{ApiError, INPUT_INVALID, Result};
use crate::resource_feed::Entry;
use crate::service::Context;

/// The rows that the query of a request selects.
pub fn select(context: &Context<'_>, entries: Vec<Entry>) -> Result<Vec<Vec<u8>>> {
    let query = QueryRequest::parse(context)?;
    let parsed = orrery_sql::parse_query(&query.text).map_err(|error| request::failed(&error, false))?;
    let prepared = Prepared::new(&parsed, &query.parameters, &query_env::bare(context))
        .map_err(|error| request::failed(&error, false))?;
    let documents: Vec<Vec<u8>> = entries
        .iter()
        .map(|entry| parse_json(&entry.json, &ParseOptions::default()))
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| ApiError::bad_request(INPUT_INVALID))?;
    let rows = documents.iter().filter_map(|document| Raw::document(document).ok()).map(RowView::plain);
    let meter = Rc::new(Meter::new(&context.budget));
    run_within(&prepared, rows, &meter).map_err(|error| request::failed(&error, true))
}
