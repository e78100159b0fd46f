//! Queries made ready to run, kept for when they come again word by word, parameters included.
//!
//! Making a query ready costs about as much as finding an item by it. What comes out depends on the body of the
//! request and on the container's definition, unless the query asks the clock, the dice or a script; such queries are
//! not kept. A body is kept when it is seen for the second time, so that queries which never come again cost a hash
//! and no memory.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use orrery_engine::ContainerDefinition;
use orrery_model::murmur3_x64_128;
use orrery_query::merge::MergePlan;
use orrery_query::plan::{self as planning, QueryRange};
use orrery_query::{Prepared, QueryEnv};
use orrery_sql::{Query, SqlError};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::parse_cache::ParseCache;
use super::request::{self, QueryRequest};
use crate::errors::Result;
use crate::service::{Context, Target};

/// What all kept statements may take, about.
const BYTES_MAX: u64 = 8 * 1024 * 1024;
/// A longer body is not worth its hash.
const BODY_BYTES_MAX: usize = 4 * 1024;
/// A byte of a body becomes about this much of a statement, with its merge plan.
const STATEMENT_BYTES_PER_BYTE: u64 = 32;
const ENTRY_BYTES: u64 = 1024;
/// A short text can spell large constants, which are not kept.
const CONSTANT_BYTES_MAX: usize = 32 * 1024;
/// For the size of the cache's own table.
const STATEMENTS_EXPECTED: usize = 500;
/// Bodies that were seen once are remembered by their hashes, in so many places.
const SEEN_PLACES: usize = 1024;

/// A query of one container, made ready.
pub struct Statement {
    body: Bytes,
    definition: Arc<ContainerDefinition>,
    pub request: QueryRequest,
    pub query: Arc<Query>,
    /// Prepared whatever composite indexes there are: which of them a sort needs is a question for whoever runs it.
    pub prepared: Arc<Prepared>,
    /// What it reads if nothing but its filter says where.
    pub ranges: Vec<QueryRange>,
    /// How its shares are merged, once somebody has asked.
    merge_plan: OnceLock<std::result::Result<Box<MergePlan>, SqlError>>,
}

impl Statement {
    /// How the shares of this query are merged; compiled when it is first asked for, and only then is `env` looked at.
    pub fn merge_plan(
        &self,
        env: &dyn Deref<Target = QueryEnv>,
    ) -> std::result::Result<&MergePlan, &SqlError> {
        let made = self.merge_plan.get_or_init(|| {
            let env = QueryEnv { composite_indexes: None, ..(**env).clone() };
            MergePlan::new(&self.query, &self.prepared, &self.request.parameters, &env).map(Box::new)
        });
        made.as_ref().map(|plan| &**plan)
    }
}

/// The statements that are kept, and the texts they are made from.
pub struct Statements {
    texts: ParseCache,
    kept: Cache<u64, Arc<Statement>, Weights>,
    seen: Box<[AtomicU64]>,
}

#[derive(Clone)]
struct Weights;

impl Weighter<u64, Arc<Statement>> for Weights {
    fn weight(&self, _: &u64, statement: &Arc<Statement>) -> u64 {
        ENTRY_BYTES + STATEMENT_BYTES_PER_BYTE * statement.body.len() as u64
    }
}

impl Default for Statements {
    fn default() -> Statements {
        Statements {
            texts: ParseCache::default(),
            kept: Cache::with_weighter(STATEMENTS_EXPECTED, BYTES_MAX, Weights),
            seen: (0..SEEN_PLACES).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Statements {
    /// The statement of a request. `env` is asked for what the container adds, where that is needed.
    pub fn of_request(
        &self,
        context: &Context<'_>,
        target: &Target,
        env: impl FnOnce() -> QueryEnv,
    ) -> Result<Arc<Statement>> {
        let definition = target.container.definition();
        let hash = match request::is_bare_text(context) || context.body.len() > BODY_BYTES_MAX {
            true => 0,
            // Bodies are compared; the hash only has to find them.
            false => murmur3_x64_128(context.body).0,
        };
        if hash != 0
            && let Some(kept) = self.kept.get(&hash)
            && kept.body == *context.body
            && Arc::ptr_eq(&kept.definition, &definition)
        {
            return Ok(kept);
        }
        let request = QueryRequest::parse(context)?;
        let query = self.texts.parse(&request.text).map_err(|error| request::failed(&error, false))?;
        let env = QueryEnv { composite_indexes: None, ..env() };
        let prepared = Prepared::new(&query, &request.parameters, &env)
            .map_err(|error| request::failed(&error, false))?;
        let prepared = Arc::new(prepared);
        let ranges = planning::ranges(&prepared, &definition.partition_key);
        let small = prepared.constant_bytes() <= CONSTANT_BYTES_MAX;
        let comes_again = hash != 0 && small && prepared.is_lasting() && {
            let place = &self.seen[hash as usize % SEEN_PLACES];
            place.swap(hash, Relaxed) == hash
        };
        // The body may be a piece of all that came over the connection.
        let body = if comes_again { Bytes::copy_from_slice(context.body) } else { Bytes::new() };
        let merge_plan = OnceLock::new();
        let statement =
            Arc::new(Statement { body, definition, request, query, prepared, ranges, merge_plan });
        if comes_again {
            self.kept.insert(hash, statement.clone());
        }
        Ok(statement)
    }
}
