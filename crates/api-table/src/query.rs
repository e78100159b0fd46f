//! Queries over the entities of a table: pages in the order of their keys.
//!
//! A filter that fixes the partition leads to one physical partition, where the index over the keys has its rows in order. Every other
//! query asks all of them, each for the rows behind the last one that was delivered, and merges what they answer. A page
//! is remembered by nothing but the keys of its last entity (see `continuation`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use http::{HeaderName, StatusCode};
use orrery_budget::Budget;
use orrery_engine::{
    Container, Costs, Item, Kind, PartitionQuery, QueryFailure, QueryLimits, QueryPosition, RequestClass,
    Scope, SystemProperties,
};
use orrery_model::{Number, Raw, Value};
use orrery_query::{Prepared, SortPosition, StoredForm};
use quick_cache::sync::Cache;

use crate::continuation::After;
use crate::dialect::Dialect;
use crate::edm::stored_ticks;
use crate::errors::{Code, Result, TableError};
use crate::filter::{self, Comparison, Filter, Literal, Operator};
use crate::sas::KeyRange;
use crate::service::{Answer, Context};
use crate::service_store::key;
use crate::stored::{self, PARTITION_KEY, StoredEntity};
use crate::{tables, timestamp};

const NEXT_PARTITION_KEY: HeaderName = HeaderName::from_static("x-ms-continuation-nextpartitionkey");
const NEXT_ROW_KEY: HeaderName = HeaderName::from_static("x-ms-continuation-nextrowkey");

/// Most entities of a page.
const PAGE_ROWS_MAX: usize = 1_000;
/// A page ends with the entity that crosses this.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most names of a selection.
const SELECT_MAX: usize = 255;
/// Steps of a page that are taken on the thread of its request.
const STEPS_IN_PLACE: u64 = 4_000;
/// Where items are larger than this on the average, a page is not begun on the thread of its request.
const ITEM_IN_PLACE_BYTES: u64 = 128 * 1024;
/// How often a page is begun anew because partitions were split or merged under it.
const ROUTES_MAX: usize = 16;
/// Rows that a partition is asked for at least, where several answer.
const SHARE_ROWS_MIN: usize = 16;
/// Filters that are kept ready to run, and the longest text among them.
const STATEMENTS_MAX: usize = 256;
const STATEMENT_BYTES_MAX: usize = 1024;

/// What the queries of this API see of an item besides its members: the second of its write, and its timestamp in ticks where
/// others see the etag.
pub struct TableSystem;

impl SystemProperties for TableSystem {
    fn to_shared(&self) -> Arc<dyn SystemProperties> {
        Arc::new(TableSystem)
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

/// Filters that are ready to run.
pub struct Statements(Cache<String, Arc<Statement>>);

/// A filter, ready to run.
pub struct Statement {
    prepared: Prepared,
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
        let statement = Arc::new(Statement { prepared: filter::compile(filter.as_ref())?, partition_key });
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
    let deadline = Instant::now() + context.service.config.query_page_time;
    let page = Page {
        table: &table,
        statement: &statement,
        rows,
        budget: &budget,
        deadline,
        steps: Some(STEPS_IN_PLACE),
    };
    let (found, next, charge_ru) = match page.read(after.as_ref()) {
        // From the beginning: what was done so far is little.
        Err(PageFailure::Lengthy) => context
            .lengthy(|| Page { steps: None, ..page }.read(after.as_ref()))
            .map_err(PageFailure::into_error)?,
        other => other.map_err(PageFailure::into_error)?,
    };
    let size: usize = found.iter().map(|row| row.document.len()).sum();
    let held = budget.hold(2 * size)?;
    let mut body = Vec::with_capacity(2 * size + 256);
    let rendering = context.rendering();
    rendering.list(table.name(), &mut body, |out| {
        for (n, row) in found.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            if let Some(entity) = row.entity() {
                rendering.entity(table.name(), entity, row.ticks, select.as_deref(), false, out);
            }
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

/// An entity of a page.
struct Row {
    /// In stored form, with what queries add.
    document: Vec<u8>,
    ticks: u64,
}

impl Row {
    /// `None` for items that are no entities.
    fn of(document: Vec<u8>) -> Option<Row> {
        let raw = Raw::document(&document).ok()?;
        StoredEntity::of(raw)?;
        let ticks = raw.get("_etag").and_then(Raw::as_str).and_then(|ticks| ticks.parse().ok())?;
        Some(Row { document, ticks })
    }

    fn entity(&self) -> Option<StoredEntity<'_>> {
        Raw::document(&self.document).ok().and_then(StoredEntity::of)
    }

    /// What rows are sorted by.
    fn keys(&self) -> (&str, &str) {
        self.entity().map_or(("", ""), |entity| (entity.partition_key(), entity.id()))
    }

    fn position(&self) -> After {
        let (partition_key, row_key) =
            self.entity().map_or(("", ""), |entity| (entity.partition_key(), entity.row_key()));
        After { partition_key: partition_key.to_owned(), row_key: row_key.to_owned() }
    }
}

enum PageFailure {
    /// It takes more steps than it was given.
    Lengthy,
    /// A partition was split or merged.
    Moved,
    Refused(TableError),
}

impl PageFailure {
    fn into_error(self) -> TableError {
        match self {
            PageFailure::Refused(error) => error,
            PageFailure::Lengthy | PageFailure::Moved => Code::ServerBusy.into(),
        }
    }
}

impl From<QueryFailure> for PageFailure {
    fn from(failure: QueryFailure) -> PageFailure {
        match failure {
            QueryFailure::Lengthy => PageFailure::Lengthy,
            QueryFailure::Engine(error) if error.kind == Kind::RangeGone => PageFailure::Moved,
            other => PageFailure::Refused(other.into()),
        }
    }
}

/// One page of a query.
#[derive(Clone, Copy)]
struct Page<'a> {
    table: &'a Arc<Container>,
    statement: &'a Statement,
    rows: usize,
    budget: &'a Budget,
    deadline: Instant,
    steps: Option<u64>,
}

/// Rows, where the next page begins, and the charge.
type Found = (Vec<Row>, Option<After>, f64);
/// The same with the charge of each partition.
type Merged = (Vec<Row>, Option<After>, Vec<(u32, f64)>);

impl Page<'_> {
    fn read(&self, after: Option<&After>) -> Result<Found, PageFailure> {
        for _ in 0..ROUTES_MAX {
            match self.merged(after) {
                Err(PageFailure::Moved) => {}
                Err(failure) => return Err(failure),
                Ok((rows, next, charges)) => return Ok((rows, next, self.charge(&charges))),
            }
        }
        Err(PageFailure::Moved)
    }

    /// Charges each partition for its part, once the page is there: what is begun anew is not paid twice.
    fn charge(&self, charges: &[(u32, f64)]) -> f64 {
        let partition = self.statement.partition_key.as_deref().map(key);
        for (range, charge_ru) in charges {
            self.table.charge_page(*range, RequestClass::default(), *charge_ru, partition.as_ref());
        }
        charges.iter().map(|(_, charge_ru)| charge_ru).sum()
    }

    /// The shares of the query: one where the partition is fixed, else all.
    fn shares(&self, after: Option<&After>) -> Result<Vec<Share>, PageFailure> {
        let refused = |error| PageFailure::from(QueryFailure::Engine(error));
        let keys = |after: &After| {
            let row = Value::from(stored::id(&after.row_key));
            match self.statement.partition_key {
                Some(_) => vec![row],
                None => vec![Value::from(after.partition_key.as_str()), row],
            }
        };
        let from = after.map(|after| QueryPosition::Sorted {
            // Behind every item with these keys: there is one.
            after: SortPosition { keys: keys(after), number: u64::MAX, rows: 0 },
            passed: 0,
            window: None,
        });
        let share =
            |scope: Scope, range| Share { scope, range, next: Next::At(from.clone()), rows: VecDeque::new() };
        let scope = match &self.statement.partition_key {
            Some(partition_key) => Scope::Key(key(partition_key)),
            None => Scope::All,
        };
        let parts = self.table.parts_of(&scope).map_err(refused)?;
        let parts = parts.into_iter().map(|(range, ..)| match &scope {
            // Without an index over the keys only the entities of the partition are looked at.
            Scope::Key(_) if !self.has_key_index() => share(scope.clone(), range),
            _ => share(Scope::Range(range), range),
        });
        Ok(parts.collect())
    }

    fn has_key_index(&self) -> bool {
        let definition = self.table.definition();
        definition.indexing.composite.iter().any(|index| {
            matches!(index.as_slice(), [first, second, ..]
                if first.path.segments() == [PARTITION_KEY] && second.path.segments() == ["id"])
        })
    }

    /// Rows of all shares, in the order of their keys. Each holds rows of its own; the smallest is taken.
    fn merged(&self, after: Option<&After>) -> Result<Merged, PageFailure> {
        let mut shares = self.shares(after)?;
        let several = shares.len() > 1;
        let ask = match several {
            true => (2 * self.rows / shares.len()).clamp(SHARE_ROWS_MIN, self.rows.max(SHARE_ROWS_MIN)),
            false => self.rows,
        };
        let (mut rows, mut charges, mut bytes) = (Vec::with_capacity(self.rows.min(64)), Vec::new(), 0);
        let mut held = Vec::new();
        loop {
            for share in &mut shares {
                while share.rows.is_empty() && share.next.is_some() {
                    charges.push((share.range, self.fill(share, ask, &mut held)?));
                }
            }
            let least = shares
                .iter_mut()
                .filter(|share| !share.rows.is_empty())
                .min_by(|left, right| left.first_keys().cmp(&right.first_keys()));
            let full = rows.len() == self.rows
                || bytes >= PAGE_BYTES_MAX
                || (!rows.is_empty() && Instant::now() >= self.deadline);
            match least {
                None => return Ok((rows, None, charges)),
                Some(_) if full => {
                    let next = rows.last().map(Row::position);
                    return Ok((rows, next, charges));
                }
                Some(share) => {
                    if let Some(row) = share.rows.pop_front() {
                        bytes += row.document.len();
                        rows.push(row);
                    }
                }
            }
        }
    }

    /// Asks a share for more rows.
    fn fill(
        &self,
        share: &mut Share,
        rows: usize,
        held: &mut Vec<orrery_budget::Held>,
    ) -> Result<f64, PageFailure> {
        let class = RequestClass::default();
        let refused = |error| PageFailure::from(QueryFailure::Engine(error));
        self.table.admit_page(share.range, class).map_err(refused)?;
        let span = self.table.span_of(&share.scope).map_err(refused)?;
        let from = match &share.next {
            Next::At(from) => from.clone(),
            Next::End => None,
        };
        let query = PartitionQuery {
            prepared: &self.statement.prepared,
            span: &span,
            from: from.as_ref(),
            limits: QueryLimits {
                rows,
                bytes: PAGE_BYTES_MAX,
                deadline: Some(self.deadline),
                steps: self.steps,
                item_bytes_max: ITEM_IN_PLACE_BYTES,
            },
            budget: self.budget,
            session: &[],
            held: None,
            system: &TableSystem,
            format: &StoredForm,
            timed: false,
            explained: false,
            tuning: Costs::default(),
        };
        let mut found = VecDeque::new();
        let mut bytes = 0;
        let page = self.table.query_page(&share.scope, &query, &mut |row| {
            let mut document = Vec::new();
            row.write(&mut document)?;
            let length = document.len();
            bytes += length;
            found.extend(Row::of(document));
            Ok(length)
        })?;
        held.push(self.budget.hold(2 * bytes).map_err(|exceeded| PageFailure::Refused(exceeded.into()))?);
        share.rows = found;
        share.next = page.next.map_or(Next::End, |next| Next::At(Some(next)));
        Ok(page.charge_ru)
    }
}

/// One partition's part of a query.
struct Share {
    scope: Scope,
    range: u32,
    next: Next,
    rows: VecDeque<Row>,
}

/// Where a share goes on.
enum Next {
    At(Option<QueryPosition>),
    End,
}

impl Next {
    fn is_some(&self) -> bool {
        matches!(self, Next::At(_))
    }
}

impl Share {
    fn first_keys(&self) -> (&str, &str) {
        self.rows.front().map_or(("", ""), Row::keys)
    }
}
