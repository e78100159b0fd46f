//! `find`, `count`, `distinct`.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use orrery_mongo::filter::Filter;
use orrery_mongo::order;
use orrery_mongo::pipeline::{BoxedRows, Env, ListRows, Pipeline};
use orrery_mongo::projection::Projection;
use orrery_mongo::sort::Sort;
use orrery_mongo::{Bson, Context, Document, Error, Result, ValueRef, codec, doc, error::code};

use super::collections::Store;
use super::cursor::{self, Opening};
use super::{Call, indexes, options};
use crate::collection::rows::Projected;
use crate::cursors::Source;
use crate::reply::Reply;

const FIELDS: &[&str] = &[
    "filter",
    "projection",
    "sort",
    "skip",
    "limit",
    "batchSize",
    "singleBatch",
    "hint",
    "min",
    "max",
    "returnKey",
    "showRecordId",
    "tailable",
    "awaitData",
    "noCursorTimeout",
    "allowPartialResults",
    "allowDiskUse",
    "collation",
    "let",
    "oplogReplay",
    "ntoreturn",
    "snapshot",
    "maxScan",
    "readOnce",
    "allowSpeculativeMajorityRead",
    "_use44SortKeys",
    "term",
    "includeQueryStatsMetrics",
    "querySettings",
];

/// What a `find` asks for.
pub struct Find {
    pub filter: Document,
    pub projection: Option<Document>,
    pub sort: Option<Document>,
    pub skip: u64,
    pub limit: Option<u64>,
}

impl Find {
    pub fn of(body: &Document) -> Result<Find> {
        Ok(Find {
            filter: options::document(body, "filter")?.cloned().unwrap_or_default(),
            projection: options::document(body, "projection")?.filter(|fields| !fields.is_empty()).cloned(),
            sort: options::document(body, "sort")?.filter(|sort| !sort.is_empty()).cloned(),
            skip: options::count(body, "skip")?.unwrap_or(0),
            limit: options::count(body, "limit")?.filter(|limit| *limit > 0),
        })
    }

    /// The stages behind the filter.
    fn stages(&self) -> Vec<Bson> {
        let mut stages: Vec<Bson> = Vec::new();
        if let Some(sort) = &self.sort
            && !sort.contains("$natural")
        {
            stages.push(doc! { "$sort" => sort.clone() }.into());
        }
        if self.skip > 0 {
            stages.push(doc! { "$skip" => self.skip as i64 }.into());
        }
        if let Some(limit) = self.limit {
            stages.push(doc! { "$limit" => limit as i64 }.into());
        }
        stages
    }

    /// The rows that it leaves.
    pub fn rows(&self, call: &Call<'_>, name: &str, context: &Context) -> Result<BoxedRows> {
        let filter = Filter::parse(&self.filter, context)?;
        let projection = match &self.projection {
            Some(projection) => Some(Projection::parse(projection, Some(&filter), context)?),
            None => None,
        };
        let stages = Pipeline::parse(&self.stages(), context)?;
        let store = Arc::new(Store::new(call, context));
        let env = Env {
            database: call.database.into(),
            collection: name.into(),
            collections: store.clone(),
            context: context.clone(),
        };
        let natural = self.sort.as_ref().filter(|sort| sort.contains("$natural"));
        let reverse = natural.map(Sort::parse).transpose()?.is_some_and(|sort| sort.reversed);
        let wanted = self.limit.map(|limit| limit.saturating_add(self.skip));
        let sort = match (&self.sort, natural) {
            (Some(sort), None) => Some(Sort::parse(sort)?),
            _ => None,
        };
        let wanted = wanted.filter(|_| self.sort.is_none() || sort.is_some());
        let mut rows = store.matching_in_order(call.database, name, Some(&filter), wanted, sort.as_ref())?;
        if reverse {
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                context.budget.take(row.size_bytes())?;
                all.push(row);
            }
            all.reverse();
            rows = ListRows::boxed(all);
        }
        let rows = stages.run(rows, &env)?;
        Ok(match projection {
            Some(projection) => Box::new(Projected { rows, projection, context: context.clone() }),
            None => rows,
        })
    }
}

pub fn find(call: &mut Call<'_>) -> Result<Reply> {
    call.core.counts.queries.fetch_add(1, Relaxed);
    let body = call.body;
    let name = call.collection_name()?.to_owned();
    options::check_known(body, FIELDS)?;
    let context = call.context(None)?;
    let asked = Find::of(body)?;
    indexes::check_hint(call, &name, body.get("hint"))?;
    let tailable = options::flag(body, "tailable", false)?;
    if options::flag(body, "awaitData", false)? && !tailable {
        return Err(Error::new(
            code::FAILED_TO_PARSE,
            "Cannot set 'awaitData' without also setting 'tailable'",
        ));
    }
    let source = match tailable {
        true => Source::Tail(super::describe::tail(call, &name, &asked, &context)?),
        false => {
            let bounds = (options::document(body, "min")?, options::document(body, "max")?);
            let mut asked = indexes::bounded(call, &name, asked, bounds, body.get("hint"))?;
            if asked.sort.is_none() && body.contains("hint") {
                asked.sort = indexes::hinted_order(call, &name, body.get("hint"))?;
            }
            Source::Rows(asked.rows(call, &name, &context)?)
        }
    };
    let limit = options::count(body, "limit")?.filter(|limit| *limit > 0);
    let opening = Opening {
        namespace: format!("{}.{name}", call.database),
        batch: options::count(body, "batchSize")?,
        single: options::flag(body, "singleBatch", false)?,
        limit,
        awaits: tailable && options::flag(body, "awaitData", false)?,
        no_timeout: options::flag(body, "noCursorTimeout", false)?,
    };
    cursor::open(call, source, opening)
}

pub fn count(call: &mut Call<'_>) -> Result<Reply> {
    call.core.counts.commands.fetch_add(1, Relaxed);
    let body = call.body;
    let name = call.collection_name()?.to_owned();
    let context = call.context(None)?;
    let query = options::document(body, "query")?.cloned().unwrap_or_default();
    indexes::check_hint(call, &name, body.get("hint"))?;
    let skip = options::count(body, "skip")?.unwrap_or(0);
    // A negative limit is the same.
    let limit = options::number(body, "limit")?.map(i64::unsigned_abs).filter(|limit| *limit > 0);
    let store = Store::new(call, &context);
    let n = match call.collection(&name)? {
        Some(collection)
            if query.is_empty()
                && call.transaction.is_none()
                && collection.container.definition().default_ttl.is_none() =>
        {
            collection.container.usage().items
        }
        _ => {
            let filter = Filter::parse(&query, &context)?;
            let told = match call.collection(&name)? {
                Some(collection) => collection.count(&call.scope(), Some(&filter), &context)?,
                None => None,
            };
            match told {
                Some(n) => n,
                None => {
                    let mut rows = store.matching(call.database, &name, Some(&filter), None)?;
                    let most = limit.map(|limit| limit.saturating_add(skip));
                    let mut n = 0u64;
                    while most.is_none_or(|most| n < most) && rows.next()?.is_some() {
                        n += 1;
                    }
                    n
                }
            }
        }
    };
    let n = n.saturating_sub(skip);
    let n = limit.map_or(n, |limit| n.min(limit));
    let n = i32::try_from(n).map_or(Bson::Int64(n as i64), Bson::Int32);
    Ok(doc! { "n" => n }.into())
}

pub fn distinct(call: &mut Call<'_>) -> Result<Reply> {
    call.core.counts.commands.fetch_add(1, Relaxed);
    let body = call.body;
    let name = call.collection_name()?.to_owned();
    let context = call.context(None)?;
    let key = match options::required(body, "key")? {
        Bson::String(key) => key.to_string(),
        other => {
            return Err(Error::type_mismatch(format!(
                "BSON field 'distinct.key' is the wrong type '{}', expected type 'string'",
                other.kind().name()
            )));
        }
    };
    if key.contains('\0') {
        return Err(Error::bad_value("Key field cannot contain an embedded null byte"));
    }
    indexes::check_hint(call, &name, body.get("hint"))?;
    let query = options::document(body, "query")?.cloned().unwrap_or_default();
    let filter = Filter::parse(&query, &context)?;
    let store = Store::new(call, &context);
    let mut rows = store.matching(call.database, &name, Some(&filter), None)?;
    let (mut seen, mut values) = (HashSet::new(), Vec::new());
    while let Some(row) = rows.next()? {
        collect(row.value()?, &key, &mut |value| {
            let mut identity = Vec::new();
            order::identity(value, context.collation.as_deref(), &mut identity);
            context.budget.take(identity.len() + 64)?;
            if seen.insert(identity) {
                values.push(value.to_bson());
            }
            Ok(())
        })?;
    }
    values.sort_by(|a, b| order::compare(a.into(), b.into(), context.collation.as_deref()));
    let mut reply = doc! { "values" => Bson::array(values) };
    if let Some(((seconds, increment), _)) = call.moment {
        reply.push("atClusterTime", Bson::Timestamp { seconds, increment });
    }
    let mut bytes = Vec::new();
    codec::write_document(ValueRef::OwnedDocument(&reply), &mut bytes);
    if bytes.len() > crate::wire::DOCUMENT_BYTES_MAX {
        return Err(Error::new(17217, "distinct too big, 16mb cap"));
    }
    Ok(reply.into())
}

/// The values that a path leads to, elements of arrays one by one.
fn collect(value: ValueRef<'_>, path: &str, each: &mut dyn FnMut(ValueRef<'_>) -> Result<()>) -> Result<()> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let inner = match value.kind() {
        orrery_mongo::Kind::Array => match name.parse::<usize>() {
            Ok(at) => value.at(at),
            Err(_) => None,
        },
        _ => value.get(name),
    };
    let Some(inner) = inner else {
        // A name on the way into an array means each of its elements.
        if value.kind() == orrery_mongo::Kind::Array {
            for element in value.elements() {
                if element.kind() == orrery_mongo::Kind::Document {
                    collect(element, path, each)?;
                }
            }
        }
        return Ok(());
    };
    match rest {
        Some(rest) => collect(inner, rest, each),
        None if inner.kind() == orrery_mongo::Kind::Array => inner.elements().try_for_each(each),
        None => each(inner),
    }
}
