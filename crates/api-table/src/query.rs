//! Queries over the entities of a table: pages in the order of their keys.
//!
//! A filter that fixes the partition leads to one physical partition, where the index over the keys has its rows in
//! order. Every other query asks all of them, each for the rows behind the last one that was delivered; the engine
//! merges what they answer. A page is remembered by nothing but the keys of its last entity (see `continuation`).

use std::sync::Arc;
use std::time::Instant;

use http::{HeaderName, StatusCode};
use orrery_budget::{Budget, MemoryPool};
use orrery_engine::{
    Container, DistributedFailure, DistributedQuery, Item, PlainHost, QueryOptions, QueryPosition, Scope,
    StatementSource, SystemProperties,
};
use orrery_model::{Number, Raw, Value};
use orrery_query::limits::HELD_BYTES_MAX;
use orrery_query::merge::{MergePlan, MergePosition, Merged, PageSize, SortedPosition};
use orrery_query::{Prepared, Rows, SortPosition, StoredForm};
use orrery_sql::Query;
use quick_cache::sync::Cache;

use crate::continuation::After;
use crate::dialect::Dialect;
use crate::edm::stored_ticks;
use crate::errors::{Code, Result, TableError};
use crate::filter::{self, Comparison, Compiled, Filter, Literal, Operator};
use crate::sas::KeyRange;
use crate::service::{Answer, Context};
use crate::service_store::key;
use crate::stored::{self, PARTITION_KEY, StoredEntity};
use crate::{tables, timestamp};

const NEXT_PARTITION_KEY: HeaderName = HeaderName::from_static("x-ms-continuation-nextpartitionkey");
const NEXT_ROW_KEY: HeaderName = HeaderName::from_static("x-ms-continuation-nextrowkey");

/// Under which this api is known to other nodes.
pub const HOST: &str = "table";

/// Most entities of a page.
const PAGE_ROWS_MAX: usize = 1_000;
/// A page ends with the entity that crosses this.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most names of a selection.
const SELECT_MAX: usize = 255;
/// Partitions that are merged on the thread of the request, if that is short.
const SHARES_IN_PLACE_MAX: usize = 8;
/// Filters that are kept ready to run, and the longest text among them.
const STATEMENTS_MAX: usize = 256;
const STATEMENT_BYTES_MAX: usize = 1024;

/// What the queries of this API see of an item besides its members: the second of its write, and its timestamp in
/// ticks where others see the etag.
pub struct TableSystem;

impl SystemProperties for TableSystem {
    fn to_shared(&self) -> Arc<dyn SystemProperties> {
        Arc::new(TableSystem)
    }

    fn host(&self) -> &'static str {
        HOST
    }

    fn count(&self) -> usize {
        2
    }

    fn name(&self, at: usize) -> &'static str {
        ["_etag", "_ts"][at.min(1)]
    }

    fn value(&self, item: &Item, at: usize) -> Value {
        match at {
            0 => Value::from(stored_ticks(timestamp::of_item(item)).as_str()),
            _ => Value::Number(Number::Int(i64::from(item.ts))),
        }
    }

    fn write_json(&self, item: &Item, at: usize, out: &mut Vec<u8>) {
        self.value(item, at).write_json(out, orrery_model::NumberStyle::Query);
    }
}

/// What this api does on the node that has a partition, for queries that came from another.
pub fn host(memory: Arc<MemoryPool>) -> PlainHost {
    let system = Arc::new(TableSystem);
    PlainHost { env: filter::query_env, system, format: None, memory, memory_bytes: HELD_BYTES_MAX }
}

/// Filters that are ready to run.
pub struct Statements(Cache<String, Arc<Statement>>);

/// A filter, ready to run.
pub struct Statement {
    query: Query,
    prepared: Arc<Prepared>,
    plan: MergePlan,
    partition_key: Option<String>,
}

impl Default for Statements {
    fn default() -> Statements {
        Statements(Cache::new(STATEMENTS_MAX))
    }
}

impl Statements {
    fn of(&self, text: Option<&str>, range: Option<&KeyRange>) -> Result<Arc<Statement>> {
        let text = text.unwrap_or("");
        let is_kept = range.is_none() && text.len() <= STATEMENT_BYTES_MAX;
        if is_kept && let Some(kept) = self.0.get(text) {
            return Ok(kept);
        }
        let filter = Some(text).filter(|text| !text.is_empty()).map(filter::parse).transpose()?;
        let filter = match range {
            Some(range) => Some(within(filter, range)),
            None => filter,
        };
        let partition_key = filter.as_ref().and_then(Filter::partition_key).map(str::to_owned);
        let Compiled { query, prepared, plan } = filter::compile(filter.as_ref())?;
        let statement = Arc::new(Statement { query, prepared: Arc::new(prepared), plan, partition_key });
        if is_kept {
            self.0.insert(text.to_owned(), statement.clone());
        }
        Ok(statement)
    }
}

/// A filter that lets through what lies in a range of keys, and nothing else.
fn within(filter: Option<Filter>, range: &KeyRange) -> Filter {
    let compare = |property: &str, operator, value: &str| {
        Filter::Compare(Comparison {
            property: property.to_owned(),
            operator,
            value: Literal::String(value.to_owned()),
        })
    };
    let bound = |end: &Option<(String, Option<String>)>, beyond: Operator, up_to: Operator| {
        let (partition, row) = end.as_ref()?;
        Some(match row {
            None => compare("PartitionKey", up_to, partition),
            Some(row) => Filter::Or(vec![
                compare("PartitionKey", beyond, partition),
                Filter::And(vec![
                    compare("PartitionKey", Operator::Equal, partition),
                    compare("RowKey", up_to, row),
                ]),
            ]),
        })
    };
    let start = bound(&range.start, Operator::Greater, Operator::GreaterOrEqual);
    let end = bound(&range.end, Operator::Less, Operator::LessOrEqual);
    Filter::And(filter.into_iter().chain(start).chain(end).collect())
}

/// The names that a request selects; `None` for all.
pub fn selection(context: &Context<'_>) -> Result<Option<Vec<String>>> {
    let Some(text) = context.params.filled("$select").filter(|text| text.trim() != "*") else {
        return Ok(None);
    };
    let mut names: Vec<String> = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if names.len() == SELECT_MAX {
            return Err(Code::InvalidInput.into());
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Ok(Some(names))
}

/// How many rows a page may have.
pub fn page_rows(context: &Context<'_>) -> Result<usize> {
    let Some(text) = context.params.filled("$top") else { return Ok(PAGE_ROWS_MAX) };
    let invalid = || {
        TableError::new(
            Code::InvalidInput,
            "One of the request inputs is not valid. $top is no number from 1 on.",
        )
    };
    let top: usize = text.trim().parse().ok().filter(|top| *top > 0).ok_or_else(invalid)?;
    match context.dialect {
        Dialect::Storage if top > PAGE_ROWS_MAX => Err(invalid()),
        _ => Ok(top.min(PAGE_ROWS_MAX)),
    }
}

pub fn execute(context: &Context<'_>, table: &str) -> Result<Answer> {
    let table = tables::find(context.account(), table, context.dialect)?;
    let rows = page_rows(context)?;
    let select = selection(context)?;
    let statement =
        context.service.statements.of(context.params.filled("$filter"), context.caller.range())?;
    let after = After::decode(
        table.name(),
        context.params.get("NextPartitionKey"),
        context.params.get("NextRowKey"),
    )?;
    let budget = context.budget();
    let page = Page { context, table: &table, statement: &statement, rows, budget: &budget };
    let Found { pages, next, charge_ru } = page.read(after.as_ref())?;
    let size: usize = pages.iter().map(Rows::size_bytes).sum();
    let held = budget.hold(2 * size)?;
    let mut body = Vec::with_capacity(2 * size + 256);
    let rendering = context.rendering();
    rendering.list(table.name(), &mut body, |out| {
        for (n, (entity, ticks)) in pages.iter().flat_map(entities).enumerate() {
            if n > 0 {
                out.push(b',');
            }
            rendering.entity(table.name(), entity, ticks, select.as_deref(), false, out);
        }
    });
    let mut answer = context.json(StatusCode::OK, body).charge(charge_ru);
    if let Some(next) = next {
        let (partition, row) = next.encode(table.name());
        answer = answer.set(NEXT_PARTITION_KEY, partition).set(NEXT_ROW_KEY, row);
    }
    // From here on the server holds the body until it is sent.
    drop(held);
    answer.budget = Some(budget);
    Ok(answer)
}

/// The entities among the rows of a page, with their timestamps. A container may hold other items too.
fn entities(rows: &Rows) -> impl DoubleEndedIterator<Item = (StoredEntity<'_>, u64)> {
    let entity = |at| {
        let document = Raw::document(rows.get(at)?).ok()?;
        let ticks = document.get("_etag").and_then(Raw::as_str)?.parse().ok()?;
        Some((StoredEntity::of(document)?, ticks))
    };
    (0..rows.len()).filter_map(entity)
}

/// One page of a query.
struct Page<'a> {
    context: &'a Context<'a>,
    table: &'a Arc<Container>,
    statement: &'a Statement,
    rows: usize,
    budget: &'a Budget,
}

/// Entities, where the next page begins, and the charge.
#[derive(Default)]
struct Found {
    pages: Vec<Rows>,
    next: Option<After>,
    charge_ru: f64,
}

impl Page<'_> {
    /// The page, on the thread of the request if that is short.
    fn read(&self, after: Option<&After>) -> Result<Found> {
        let scope = match &self.statement.partition_key {
            Some(partition_key) => Scope::Key(key(partition_key)),
            None => Scope::All,
        };
        let run = |in_place| {
            let run = || self.run(&scope, after, in_place);
            self.table.routed(&scope, DistributedFailure::is_range_gone, run)
        };
        let found = match run(true) {
            // From the beginning: what was done so far is little.
            Ok(None) => self.context.lengthy(|| run(false)),
            found => found,
        };
        found?.ok_or_else(|| Code::ServerBusy.into())
    }

    /// `None` when it takes too long to be done in place.
    fn run(
        &self,
        scope: &Scope,
        after: Option<&After>,
        in_place: bool,
    ) -> Result<Option<Found>, DistributedFailure> {
        let mut shares = self.table.shares_of(scope)?;
        if matches!(scope, Scope::Key(_)) && self.has_key_index() {
            // The index leads to the entities of the partition; without it only they are looked at.
            shares.iter_mut().for_each(|share| share.scope = Scope::Range(share.range));
        }
        let last = shares.len().saturating_sub(1);
        let statement = StatementSource::of_tree(&self.statement.query);
        let mut options = QueryOptions::new(self.budget, &TableSystem, &StoredForm, statement);
        options.page_time = self.context.service.config.query_page_time;
        options.page_bytes = PAGE_BYTES_MAX;
        if in_place && shares.len() <= SHARES_IN_PLACE_MAX {
            (options.lengthy, options.gives_up) = (Some(self.context.service.lengthy()), true);
        } else if in_place {
            return Ok(None);
        }
        let deadline = Instant::now() + options.page_time;
        let mut query = DistributedQuery::new(self.table, shares, options);
        let merged = match self.statement.partition_key {
            Some(_) => Merged::single(&self.statement.prepared),
            None => Merged::new(&self.statement.plan),
        };
        let mut start = after.map(|after| self.behind(after, last));
        let mut found = Found::default();
        let mut room = PageSize { rows: self.rows, bytes: PAGE_BYTES_MAX };
        loop {
            let read = query.page(&merged, start, room);
            if query.gave_up() {
                return Ok(None);
            }
            let (rows, next) = read?;
            let entity = entities(&rows).next_back().map(|(entity, _)| After {
                partition_key: entity.partition_key().to_owned(),
                row_key: entity.row_key().to_owned(),
            });
            found.next = entity.or(found.next);
            room.rows -= entities(&rows).count().min(room.rows);
            room.bytes = room.bytes.saturating_sub(rows.size_bytes());
            found.pages.push(rows);
            found.charge_ru = query.charge_ru();
            start = next;
            let full = room.rows == 0 || room.bytes == 0 || Instant::now() >= deadline;
            if start.is_none() {
                found.next = None;
                return Ok(Some(found));
            }
            // A page of items that are no entities has no end that a client could name.
            if full && found.next.is_some() {
                return Ok(Some(found));
            }
            room.bytes = room.bytes.max(1);
        }
    }

    /// The position behind an entity, in every share up to the `last`.
    fn behind(&self, after: &After, last: usize) -> MergePosition {
        let row = Value::from(stored::id(&after.row_key));
        let keys = match self.statement.partition_key {
            Some(_) => vec![row],
            None => vec![Value::from(after.partition_key.as_str()), row],
        };
        // Behind every item with these keys: there is one.
        let after = SortPosition { keys, number: u64::MAX, rows: 0 };
        match self.statement.partition_key {
            Some(_) => {
                let inner = QueryPosition::Sorted { after, passed: 0, window: None }.encode();
                MergePosition::Chain { share: 0, inner: Some(inner), passed: 0 }
            }
            None => MergePosition::Sorted(SortedPosition { share: 0, last, after, passed: 0 }),
        }
    }

    fn has_key_index(&self) -> bool {
        let definition = self.table.definition();
        definition.indexing.composite.iter().any(|index| {
            matches!(index.as_slice(), [first, second, ..]
                if first.path.segments() == [PARTITION_KEY] && second.path.segments() == ["id"])
        })
    }
}
