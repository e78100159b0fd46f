//! A database in memory, for tests of the language: what commands mean, without a server around them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::context::Context;
use crate::error::{Error, Result, code};
use crate::filter::Filter;
use crate::order::{equal, identity};
use crate::pipeline::{
    BoxedRows, Collections, Env, ListRows, Merge, Pipeline, Row, Scan, WhenMatched, WhenNotMatched, merged,
};
use crate::projection::Projection;
use crate::sort::Sort;
use crate::update::Update;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

/// Collections by name. Documents lie in the order in which they came.
#[derive(Default)]
pub struct Memory(Mutex<BTreeMap<String, Vec<Document>>>);

fn document<'a>(arguments: &'a Document, name: &str) -> Option<&'a Document> {
    arguments.get(name).and_then(Bson::as_document)
}

impl Memory {
    fn all(&self, collection: &str) -> Vec<Document> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(collection).cloned().unwrap_or_default()
    }

    fn put(&self, collection: &str, documents: Vec<Document>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(collection.to_owned(), documents);
    }

    /// Fills a collection; documents without `_id` get one.
    pub fn fill(&self, collection: &str, documents: Vec<Document>) {
        let with_id = |(number, mut document): (usize, Document)| {
            match document.remove("_id") {
                Some(id) => document.push_front("_id", id),
                None => {
                    let mut id = [0xEE; 12];
                    id[8..].copy_from_slice(&(number as u32).to_be_bytes());
                    document.push_front("_id", Bson::ObjectId(id));
                }
            }
            document
        };
        self.put(collection, documents.into_iter().enumerate().map(with_id).collect());
    }

    /// What is stored.
    pub fn stored(&self, collection: &str) -> Vec<Document> {
        self.all(collection)
    }

    pub fn find(&self, collection: &str, arguments: &Document, context: &Context) -> Result<Vec<Document>> {
        let nothing = Document::new();
        let filter = Filter::parse(document(arguments, "filter").unwrap_or(&nothing), context)?;
        let projection = document(arguments, "projection").filter(|projection| !projection.is_empty());
        let projection =
            projection.map(|given| Projection::parse(given, Some(&filter), context)).transpose()?;
        let mut found = self.matching(collection, &filter, context)?;
        if let Some(sort) = document(arguments, "sort").filter(|sort| !sort.is_empty()) {
            sort_documents(&mut found, &Sort::parse(sort)?, context);
        }
        let number = |name: &str| arguments.get(name).and_then(Bson::as_i64).unwrap_or(0);
        let limit = match number("limit") {
            0 => usize::MAX,
            limit => limit.unsigned_abs() as usize,
        };
        let found = found.into_iter().skip(number("skip").max(0) as usize).take(limit);
        match projection {
            None => Ok(found.collect()),
            Some(projection) => {
                found.map(|one| projection.apply(ValueRef::OwnedDocument(&one), context)).collect()
            }
        }
    }

    fn matching(&self, collection: &str, filter: &Filter, context: &Context) -> Result<Vec<Document>> {
        let mut found = Vec::new();
        for one in self.all(collection) {
            if filter.matches(ValueRef::OwnedDocument(&one), context)? {
                found.push(one);
            }
        }
        Ok(found)
    }

    /// An update of one document or of all that match; answers how many matched and how many changed.
    pub fn update(
        &self,
        collection: &str,
        arguments: &Document,
        multi: bool,
        context: &Context,
    ) -> Result<(usize, usize)> {
        let missing = || Error::new(40_414, "BSON field 'update.updates.u' is missing but a required field");
        let filter = Filter::parse(document(arguments, "filter").unwrap_or(&Document::new()), context)?;
        let array_filters = arguments.get("arrayFilters").and_then(Bson::as_array);
        let update = Update::parse(arguments.get("update").ok_or_else(missing)?, array_filters, context)?;
        if multi && update.is_replacement() {
            return Err(Error::failed_to_parse("multi update is not supported for replacement-style update"));
        }
        let mut documents = self.all(collection);
        let (mut matched, mut modified) = (0, 0);
        for one in &mut documents {
            let Some(at) = filter.find(ValueRef::OwnedDocument(one), context)? else { continue };
            matched += 1;
            let updated = update.apply(ValueRef::OwnedDocument(one), &at, context)?;
            modified += usize::from(updated.modified);
            *one = updated.document;
            if !multi {
                break;
            }
        }
        if matched == 0 && arguments.get("upsert").is_some_and(Bson::is_truthy) {
            let mut inserted = update.upsert(&filter, context)?;
            if !inserted.contains("_id") {
                inserted.push_front("_id", Bson::ObjectId([0xAA; 12]));
            }
            documents.push(inserted);
            matched = 1;
        }
        self.put(collection, documents);
        Ok((matched, modified))
    }

    pub fn delete(
        &self,
        collection: &str,
        arguments: &Document,
        multi: bool,
        context: &Context,
    ) -> Result<usize> {
        let filter = Filter::parse(document(arguments, "filter").unwrap_or(&Document::new()), context)?;
        let (mut kept, mut deleted) = (Vec::new(), 0);
        for one in self.all(collection) {
            if (multi || deleted == 0) && filter.matches(ValueRef::OwnedDocument(&one), context)? {
                deleted += 1;
            } else {
                kept.push(one);
            }
        }
        self.put(collection, kept);
        Ok(deleted)
    }

    /// Runs a pipeline; without a collection over the database.
    pub fn aggregate(
        self: &Arc<Self>,
        collection: Option<&str>,
        stages: &[Bson],
        context: &Context,
    ) -> Result<Vec<Document>> {
        let pipeline = Pipeline::parse(stages, context)?;
        if let (None, Some(first), false) = (collection, pipeline.names().next(), pipeline.has_own_source()) {
            return Err(crate::pipeline::needs_collection(first));
        }
        let env = Env {
            database: "test".into(),
            collection: collection.unwrap_or_default().into(),
            collections: self.clone(),
            context: context.clone(),
        };
        let mut rows = pipeline.run_over_collection(&env)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(row.into_document()?);
        }
        Ok(found)
    }
}

fn sort_documents(documents: &mut [Document], sort: &Sort, context: &Context) {
    if sort.reversed {
        documents.reverse();
    }
    let key = |one: &Document| sort.key_of(ValueRef::OwnedDocument(one), context);
    documents.sort_by(|a, b| sort.compare_keys(&key(a), &key(b), context));
}

impl Collections for Memory {
    fn scan(&self, _: &str, collection: &str, _: &Scan) -> Result<BoxedRows> {
        Ok(ListRows::boxed(self.all(collection).into_iter().map(Row::Built)))
    }

    fn replace(&self, _: &str, collection: &str, mut rows: BoxedRows) -> Result<()> {
        let mut documents = Vec::new();
        while let Some(row) = rows.next()? {
            documents.push(row.into_document()?);
        }
        self.fill(collection, documents);
        Ok(())
    }

    fn merge(&self, _: &str, collection: &str, merge: &Merge, document: Document) -> Result<()> {
        let mut documents = self.all(collection);
        let value = |one: &Document, path: &str| {
            path.split('.')
                .try_fold(ValueRef::OwnedDocument(one), |value, name| value.get(name))
                .map(ValueRef::to_bson)
        };
        let same = |one: &Document| {
            merge.on.iter().all(|path| match (value(one, path), value(&document, path)) {
                (Some(a), Some(b)) => equal(ValueRef::Owned(&a), ValueRef::Owned(&b), None),
                _ => false,
            })
        };
        match (documents.iter().position(same), &merge.when_matched, merge.when_not_matched) {
            (Some(at), WhenMatched::Replace, _) => documents[at] = document,
            (Some(at), WhenMatched::Merge, _) => documents[at] = merged(&documents[at], &document),
            (Some(_), WhenMatched::KeepExisting, _) => {}
            (Some(_), WhenMatched::Fail, _) => {
                return Err(Error::new(code::DUPLICATE_KEY, "$merge found a document that is there already"));
            }
            (Some(at), WhenMatched::Pipeline(stages), _) => {
                let mut context = Context::for_tests();
                context.variables = merge.variables.clone();
                let memory = Arc::new(Memory::default());
                memory.put("one", vec![documents[at].clone()]);
                documents[at] = memory.aggregate(Some("one"), stages, &context)?.pop().unwrap_or_default();
            }
            (None, _, WhenNotMatched::Insert) => documents.push(document),
            (None, _, WhenNotMatched::Discard) => {}
            (None, _, WhenNotMatched::Fail) => {
                return Err(Error::new(
                    13_113,
                    "$merge could not find a matching document in the target collection",
                ));
            }
        }
        self.put(collection, documents);
        Ok(())
    }

    fn describe(&self, _: &str, _: &str, stage: &str, _: &Bson) -> Result<BoxedRows> {
        Err(Error::new(code::COMMAND_NOT_SUPPORTED, format!("{stage} needs a server")))
    }
}

impl Memory {
    pub fn distinct(&self, collection: &str, arguments: &Document, context: &Context) -> Result<Vec<Bson>> {
        let nothing = Document::new();
        let filter = Filter::parse(document(arguments, "query").unwrap_or(&nothing), context)?;
        let path = arguments.get("key").and_then(Bson::as_str).unwrap_or_default();
        let (mut found, mut seen) = (Vec::new(), std::collections::HashSet::new());
        for one in self.matching(collection, &filter, context)? {
            for value in crate::pipeline::values_of(ValueRef::OwnedDocument(&one), path) {
                let mut key = Vec::new();
                identity(ValueRef::Owned(&value), context.collation.as_deref(), &mut key);
                if seen.insert(key) {
                    found.push(value);
                }
            }
        }
        Ok(found)
    }
}
