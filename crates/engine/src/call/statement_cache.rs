//! Statements of other nodes that are compiled already, found by the bytes they came as.
//!
//! Pages of one query come one after the other, and the same queries come again, so a statement is kept when it is
//! first seen. One that asks the clock, the dice or a script is compiled for every page; so is one with large
//! constants.

use std::sync::Arc;

use bytes::Bytes;
use orrery_budget::Budget;
use orrery_model::murmur3_x64_128;
use orrery_query::{Prepared, QueryEnv};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::query_page::{PageCall, unreadable};
use super::wire::Wire;
use crate::container::ContainerCore;
use crate::definition::ContainerDefinition;
use crate::error::Error;
use crate::query::{QueryFailure, Statement};
use crate::query_host::QueryHost;

/// What all kept statements may take, about.
const BYTES_MAX: u64 = 8 * 1024 * 1024;
/// A longer statement is not kept.
const STATEMENT_BYTES_MAX: usize = 16 * 1024;
/// A byte of a statement becomes about this much when it is compiled.
const COMPILED_BYTES_PER_BYTE: u64 = 32;
const ENTRY_BYTES: u64 = 1024;
/// A short text can spell large constants, which are not kept.
const CONSTANT_BYTES_MAX: usize = 32 * 1024;
/// For the size of the cache's own table.
const STATEMENTS_EXPECTED: usize = 500;

pub(crate) struct StatementCache(Cache<u64, Arc<Kept>, Weights>);

/// A statement of one container under one of its definitions.
struct Kept {
    host: String,
    bytes: Bytes,
    definition: Arc<ContainerDefinition>,
    prepared: Arc<Prepared>,
}

#[derive(Clone)]
struct Weights;

impl Weighter<u64, Arc<Kept>> for Weights {
    fn weight(&self, _: &u64, kept: &Arc<Kept>) -> u64 {
        ENTRY_BYTES + COMPILED_BYTES_PER_BYTE * kept.bytes.len() as u64
    }
}

impl Default for StatementCache {
    fn default() -> StatementCache {
        StatementCache(Cache::with_weighter(STATEMENTS_EXPECTED, BYTES_MAX, Weights))
    }
}

impl StatementCache {
    /// The statement of a call, compiled now if it is not known.
    pub(super) fn prepared(
        &self,
        call: &PageCall,
        host: &dyn QueryHost,
        container: &Arc<ContainerCore>,
        budget: &Budget,
    ) -> Result<Arc<Prepared>, QueryFailure> {
        let definition = container.definition();
        let hash = murmur3_x64_128(&call.statement).0;
        // The bytes are compared; the hash only has to find them. A definition belongs to one container.
        if let Some(kept) = self.0.get(&hash)
            && kept.bytes == call.statement
            && kept.host == call.host
            && Arc::ptr_eq(&kept.definition, &definition)
        {
            return Ok(kept.prepared.clone());
        }
        let mut bytes = call.statement.clone();
        let statement = Statement::take(&mut bytes).filter(|_| bytes.is_empty()).ok_or_else(unreadable)?;
        let env = QueryEnv {
            now_ticks: call.now_ticks,
            random_seed: call.random_seed,
            // Which of them a sort needs was a question for whoever sent it.
            composite_indexes: None,
            budget: Some(budget.clone()),
            ..host.env(container, budget)
        };
        let prepared = orrery_sql::parse_query(&statement.text)
            .and_then(|query| Prepared::in_form(&query, &statement.parameters, &env, &statement.form))
            .map_err(|error| match error.exceeded {
                Some(exceeded) => QueryFailure::Exceeded(exceeded),
                // It was compiled where it came from: the container is not the same any more.
                None => Error::bad_request(error.message).into(),
            })?;
        let prepared = Arc::new(prepared);
        let is_small =
            call.statement.len() <= STATEMENT_BYTES_MAX && prepared.constant_bytes() <= CONSTANT_BYTES_MAX;
        if is_small && prepared.is_lasting() {
            // The statement is a piece of the frame that it came in.
            let bytes = Bytes::copy_from_slice(&call.statement);
            let kept = Kept { host: call.host.clone(), bytes, definition, prepared: prepared.clone() };
            self.0.insert(hash, Arc::new(kept));
        }
        Ok(prepared)
    }
}
