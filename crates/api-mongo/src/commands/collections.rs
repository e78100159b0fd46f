//! Collections and views to pipelines: what `$lookup`, `$unionWith`, `$out` and `$merge` ask for.

use std::sync::Arc;

use orrery_mongo::filter::Filter;
use orrery_mongo::pipeline::{
    BoxedRows, Collections, Env, ListRows, Merge, Pipeline, Row, Scan, WhenMatched, WhenNotMatched, merged,
};
use orrery_mongo::sort::Sort;
use orrery_mongo::update::Update;
use orrery_mongo::{Bson, Context, Document, Error, Result, ValueRef, doc, error::code};

use super::{Call, describe, insert, update};
use crate::collection::{Collection, Scope};
use crate::service::Core;

/// Views of views.
const VIEW_DEPTH_MAX: usize = 20;

/// The databases, as one command sees them.
pub struct Store {
    pub core: Arc<Core>,
    pub scope: Scope,
    pub context: Context,
    pub here: std::net::SocketAddr,
}

impl Store {
    pub fn new(call: &Call<'_>, context: &Context) -> Store {
        Store {
            core: call.core.clone(),
            scope: call.scope(),
            context: context.clone(),
            here: call.client.local,
        }
    }

    fn shared(&self) -> Arc<dyn Collections> {
        Arc::new(Store {
            core: self.core.clone(),
            scope: self.scope.clone(),
            context: self.context.clone(),
            here: self.here,
        })
    }

    pub fn collection(&self, database: &str, name: &str) -> Result<Option<Collection>> {
        self.core.catalog.collection(&self.core, database, name)
    }

    /// The documents of a collection or view that match a filter.
    pub fn matching(
        &self,
        database: &str,
        name: &str,
        filter: Option<&Filter>,
        wanted: Option<u64>,
    ) -> Result<BoxedRows> {
        self.matching_in(database, name, filter, wanted, None, &self.context)
    }

    /// The same; where an index gives them in the order, only the first `wanted` of it.
    pub fn matching_in_order(
        &self,
        database: &str,
        name: &str,
        filter: Option<&Filter>,
        wanted: Option<u64>,
        sort: Option<&Sort>,
    ) -> Result<BoxedRows> {
        self.matching_in(database, name, filter, wanted, sort, &self.context)
    }

    fn matching_in(
        &self,
        database: &str,
        name: &str,
        filter: Option<&Filter>,
        wanted: Option<u64>,
        sort: Option<&Sort>,
        context: &Context,
    ) -> Result<BoxedRows> {
        if let Some(collection) = self.collection(database, name)? {
            if let (Some(sort), Some(wanted)) = (sort, wanted)
                && let Some(rows) = collection.find_in_order(&self.scope, filter, sort, wanted, context)?
            {
                return Ok(Box::new(rows));
            }
            let wanted = wanted.filter(|_| sort.is_none());
            return Ok(Box::new(collection.find(&self.scope, filter, context, wanted)?));
        }
        if name == crate::operations::PROFILE {
            let rows = ListRows::boxed(self.core.operations.profiled(database).into_iter().map(Row::Built));
            let filter = filter.cloned();
            return Ok(match filter {
                Some(filter) => Box::new(Filtered { rows, filter, context: context.clone() }),
                None => rows,
            });
        }
        let Some((on, stages)) = self.view(database, name, 0)? else { return Ok(ListRows::empty()) };
        let pipeline = Pipeline::parse(&stages, &self.context)?;
        let env = Env {
            database: database.into(),
            collection: on.as_str().into(),
            collections: self.shared(),
            context: self.context.clone(),
        };
        let rows = pipeline.run_over_collection(&env)?;
        Ok(match filter {
            Some(filter) => Box::new(Filtered { rows, filter: filter.clone(), context: context.clone() }),
            None => rows,
        })
    }

    /// What a view is of in the end, and all stages on the way.
    pub fn view(&self, database: &str, name: &str, depth: usize) -> Result<Option<(String, Vec<Bson>)>> {
        if depth > VIEW_DEPTH_MAX {
            return Err(Error::new(
                code::VIEW_DEPTH_LIMIT_EXCEEDED,
                format!("View depth too deep or view cycle detected on {database}.{name}"),
            ));
        }
        let Some(meta) = self.core.catalog.meta(&self.core, database, name)? else { return Ok(None) };
        let Some((on, stages)) = meta.view() else { return Ok(None) };
        match self.view(database, &on, depth + 1)? {
            Some((base, mut inner)) => {
                inner.extend(stages);
                Ok(Some((base, inner)))
            }
            None => Ok(Some((on, stages))),
        }
    }
}

struct Filtered {
    rows: BoxedRows,
    filter: Filter,
    context: Context,
}

impl orrery_mongo::pipeline::Rows for Filtered {
    fn next(&mut self) -> Result<Option<Row>> {
        while let Some(row) = self.rows.next()? {
            if self.filter.matches(row.value()?, &self.context)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

impl Collections for Store {
    fn scan(&self, database: &str, collection: &str, request: &Scan) -> Result<BoxedRows> {
        let wanted = request.limit.filter(|_| request.filter.is_none() || request.sort.is_some());
        // A pipeline within another has variables of its own.
        let context = Context { variables: request.variables.clone(), ..self.context.clone() };
        let (filter, sort) = (request.filter.as_ref(), request.sort.as_ref());
        self.matching_in(database, collection, filter, wanted, sort, &context)
    }

    fn replace(&self, database: &str, collection: &str, mut rows: BoxedRows) -> Result<()> {
        if self.core.catalog.meta(&self.core, database, collection)?.is_some_and(|meta| meta.view().is_some())
        {
            return Err(Error::new(code::COMMAND_NOT_SUPPORTED_ON_VIEW, "a view cannot be written to"));
        }
        // All of them before anything changes: the pipeline may read what it replaces.
        let mut documents = Vec::new();
        while let Some(row) = rows.next()? {
            self.context.budget.take(row.size_bytes())?;
            documents.push(crate::collection::prepared(&self.core, &row.into_document()?));
        }
        let target = self.core.catalog.ensure(&self.core, database, collection)?;
        super::delete::delete_all(&self.scope, &target, &self.context)?;
        for outcome in insert::insert_documents(&self.scope, &target, &documents, true, &self.context)? {
            outcome?;
        }
        Ok(())
    }

    fn merge(&self, database: &str, collection: &str, merge: &Merge, document: Document) -> Result<()> {
        let target = self.core.catalog.ensure(&self.core, database, collection)?;
        let mut document = document;
        if merge.on.iter().any(|path| path == "_id") && !document.contains("_id") {
            document.push_front("_id", Bson::ObjectId(self.core.new_object_id()));
        }
        let mut wanted = Document::new();
        for path in &merge.on {
            let value =
                path.split('.').try_fold(ValueRef::OwnedDocument(&document), |value, name| value.get(name));
            match value.map(ValueRef::to_bson) {
                Some(Bson::Null | Bson::Undefined | Bson::Array(_)) | None => {
                    return Err(Error::new(
                        51132,
                        format!(
                            "$merge write error: 'on' field '{path}' cannot be missing, null, undefined or an array"
                        ),
                    ));
                }
                Some(value) => wanted.push(path.as_str(), doc! { "$eq" => value }),
            }
        }
        let filter = Filter::parse(&wanted, &self.context)?;
        let mut found = target.find(&self.scope, Some(&filter), &self.context, None)?;
        let Some((present, matched)) = found.next_found()? else {
            return match merge.when_not_matched {
                WhenNotMatched::Discard => Ok(()),
                WhenNotMatched::Fail => Err(Error::new(
                    13113,
                    "$merge could not find a matching document in the target collection for at least one document in the \
                     source collection",
                )),
                WhenNotMatched::Insert => {
                    let document = crate::collection::prepared(&self.core, &document);
                    insert::insert_documents(&self.scope, &target, &[document], true, &self.context)?
                        .into_iter()
                        .collect()
                }
            };
        };
        drop(found);
        let old = orrery_mongo::codec::item(&present.document)?.to_document();
        let mut new = match &merge.when_matched {
            WhenMatched::KeepExisting => return Ok(()),
            WhenMatched::Fail => {
                let id = old.get("_id").cloned().unwrap_or(Bson::Null);
                return Err(target.duplicate(&id));
            }
            WhenMatched::Replace => document,
            WhenMatched::Merge => merged(&old, &document),
            WhenMatched::Pipeline(stages) => {
                let mut context = self.context.clone();
                for (name, value) in merge.variables.iter() {
                    context.variables.set(name, value.clone());
                }
                let update = Update::parse(&Bson::array(stages.clone()), None, &context)?;
                update.apply(ValueRef::OwnedDocument(&old), &matched, &context)?.document
            }
        };
        if let Some(id) = old.get("_id") {
            match new.get("_id") {
                None => new.push_front("_id", id.clone()),
                Some(other) if orrery_mongo::order::equal(other.into(), id.into(), None) => {}
                Some(_) => {
                    return Err(Error::new(
                        code::IMMUTABLE_FIELD,
                        "$merge failed to update the matching document, did you attempt to modify the _id or the shard key?",
                    ));
                }
            }
        }
        update::replace_found(&self.scope, &target, &present, &new, &self.context)
    }

    fn describe(&self, database: &str, collection: &str, stage: &str, argument: &Bson) -> Result<BoxedRows> {
        describe::rows(self, database, collection, stage, argument)
    }
}
