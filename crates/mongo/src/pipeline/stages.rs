//! The table of stages. Documentation is generated from it.

use super::Stage;
use super::specification::Parsing;
use super::{
    bucket, bucket_auto, densify, describe, documents, facet, fill, filtering, geo_near, graph_lookup, group,
    limits, lookup, output, redact, replace, shape, sorting, union_with, unwind, window,
};
use crate::error::Result;
use crate::value::Bson;

type Parse = fn(&Bson, &Parsing<'_>) -> Result<Box<dyn Stage>>;

pub struct StageEntry {
    pub name: &'static str,
    /// What it does, in a sentence.
    pub documentation: &'static str,
    pub(super) parse: Parse,
    /// Only as the first stage.
    pub first_only: bool,
    /// Only as the last stage.
    pub last_only: bool,
    /// Makes its own documents instead of reading a collection.
    pub own_source: bool,
}

const fn stage(name: &'static str, documentation: &'static str, parse: Parse) -> StageEntry {
    StageEntry { name, documentation, parse, first_only: false, last_only: false, own_source: false }
}

const fn source(name: &'static str, documentation: &'static str, parse: Parse) -> StageEntry {
    StageEntry { first_only: true, own_source: true, ..stage(name, documentation, parse) }
}

const fn first(name: &'static str, documentation: &'static str, parse: Parse) -> StageEntry {
    StageEntry { first_only: true, ..stage(name, documentation, parse) }
}

const fn last(name: &'static str, documentation: &'static str, parse: Parse) -> StageEntry {
    StageEntry { last_only: true, ..stage(name, documentation, parse) }
}

pub static STAGES: &[StageEntry] = &[
    stage("$addFields", "Adds or replaces fields by expressions.", shape::parse_add_fields),
    stage("$bucket", "Groups documents between given boundaries.", bucket::parse_bucket),
    stage(
        "$bucketAuto",
        "Groups documents into a number of buckets of about the same size.",
        bucket_auto::parse_bucket_auto,
    ),
    source(
        "$changeStream",
        "Follows the changes of a collection, a database or all of them.",
        describe::parse_change_stream,
    ),
    source("$collStats", "Tells about a collection.", describe::parse_coll_stats),
    stage("$count", "Counts documents.", limits::parse_count),
    source("$currentOp", "Lists what is running.", describe::parse_current_op),
    stage(
        "$densify",
        "Makes documents for what is missing in a series of numbers or dates.",
        densify::parse_densify,
    ),
    source("$documents", "Documents that the pipeline names itself.", documents::parse_documents),
    stage("$facet", "Several pipelines over the same documents.", facet::parse_facet),
    stage("$fill", "Fills what is null or missing.", fill::parse_fill),
    first("$geoNear", "Sorts by the distance from a point.", geo_near::parse_geo_near),
    stage("$graphLookup", "Follows references through a collection.", graph_lookup::parse_graph_lookup),
    stage("$group", "Groups documents and accumulates.", group::parse_group),
    source("$indexStats", "Lists the indexes of a collection.", describe::parse_index_stats),
    stage("$limit", "The first documents.", limits::parse_limit),
    source("$listLocalSessions", "Lists the sessions of this server.", describe::parse_list_local_sessions),
    source("$listSessions", "Lists sessions.", describe::parse_list_sessions),
    stage(
        "$lookup",
        "Joins documents of another collection, by fields, a pipeline or both.",
        lookup::parse_lookup,
    ),
    stage("$match", "Keeps the documents that a filter matches.", filtering::parse_match),
    last("$merge", "Writes documents into a collection, merging with those there.", output::parse_merge),
    last("$out", "Replaces a collection by the documents.", output::parse_out),
    source("$planCacheStats", "Lists kept plans.", describe::parse_plan_cache_stats),
    stage("$project", "Keeps, drops and computes fields.", shape::parse_project),
    stage("$redact", "Keeps, prunes or goes into each level of a document.", redact::parse_redact),
    stage(
        "$replaceRoot",
        "Replaces a document by what an expression makes of it.",
        replace::parse_replace_root,
    ),
    stage(
        "$replaceWith",
        "Replaces a document by what an expression makes of it.",
        replace::parse_replace_with,
    ),
    stage("$sample", "Some documents by chance.", limits::parse_sample),
    source("$search", "Text search.", describe::parse_search),
    stage("$set", "Adds or replaces fields by expressions.", shape::parse_add_fields),
    stage("$setWindowFields", "Computes fields over windows of documents.", window::parse_set_window_fields),
    stage("$skip", "Leaves out the first documents.", limits::parse_skip),
    stage("$sort", "Sorts documents.", sorting::parse_sort),
    stage("$sortByCount", "Groups by an expression, the most frequent first.", group::parse_sort_by_count),
    stage("$unionWith", "Adds the documents of another collection.", union_with::parse_union_with),
    stage("$unset", "Drops fields.", shape::parse_unset),
    stage("$unwind", "A document for each element of an array.", unwind::parse_unwind),
    source("$vectorSearch", "The nearest documents by a vector.", describe::parse_vector_search),
];

pub(super) fn find(name: &str) -> Option<&'static StageEntry> {
    STAGES.iter().find(|entry| entry.name == name)
}
