//! Stages that tell about collections and the server, and cursors that follow capped collections.

use orrery_mongo::pipeline::{BoxedRows, ListRows, Row, Rows as _};
use orrery_mongo::{Bson, Context, Document, Error, Result, ValueRef, doc, error::code, order};

use super::collections::Store;
use super::find::Find;
use super::{Call, databases};
use crate::catalog::Index;
use crate::collection::{Collection, Scope};
use crate::cursors::Tail;

pub fn rows(store: &Store, database: &str, name: &str, stage: &str, argument: &Bson) -> Result<BoxedRows> {
    let documents = match stage {
        "$collStats" => vec![coll_stats(store, database, name, argument)?],
        "$indexStats" => {
            let collection = store.collection(database, name)?;
            let specs = std::iter::once(Index::of_ids());
            let meta = collection.map(|collection| collection.meta).unwrap_or_default();
            specs
                .chain(meta.indexes.iter().map(|index| index.spec.clone()))
                .map(|spec| {
                    doc! {
                        "name" => spec.get("name").cloned().unwrap_or(Bson::Null),
                        "key" => spec.get("key").cloned().unwrap_or(Bson::Null),
                        "host" => store.here.to_string(),
                        "accesses" => doc! { "ops" => 0i64, "since" => Bson::Date(store.core.now_ms()) },
                        "spec" => spec,
                    }
                })
                .collect()
        }
        "$currentOp" => store.core.operations.shown(&store.here.to_string()),
        "$listSessions" | "$listLocalSessions" => Vec::new(),
        "$planCacheStats" => Vec::new(),
        "$listCatalog" => {
            let listed = store.core.catalog.collections(&store.core, database)?;
            let shown = listed.into_iter().filter(|one| name.starts_with('$') || one.name == name);
            shown.map(|one| doc! { "db" => database, "name" => one.name.as_str(), "type" => if one.container.is_some() { "collection" } else { "view" } }).collect()
        }
        other => {
            return Err(Error::new(code::NOT_IMPLEMENTED, format!("{other} is not supported")));
        }
    };
    Ok(ListRows::boxed(documents.into_iter().map(Row::Built)))
}

fn coll_stats(store: &Store, database: &str, name: &str, argument: &Bson) -> Result<Document> {
    let missing = || {
        Error::new(
            code::NAMESPACE_NOT_FOUND,
            format!(
                "Unable to retrieve storageStats in $collStats stage :: caused by :: Collection [{database}.{name}] not found."
            ),
        )
    };
    let asked = argument.as_document().cloned().unwrap_or_default();
    let mut document = doc! {
        "ns" => format!("{database}.{name}"),
        "host" => store.here.to_string(),
        "localTime" => Bson::Date(store.core.now_ms()),
    };
    let collection = store.collection(database, name)?;
    if let Some(scale) = asked.get("storageStats") {
        let scale =
            scale.as_document().and_then(|scale| scale.get("scale")).and_then(Bson::as_i64).unwrap_or(1);
        let collection = collection.as_ref().ok_or_else(missing)?;
        document.push("storageStats", databases::storage_stats(collection, scale.max(1)));
    }
    if asked.contains("count") {
        let collection = collection.as_ref().ok_or_else(missing)?;
        let items = collection.container.usage().items;
        document.push("count", i32::try_from(items).map_or(Bson::Int64(items as i64), Bson::Int32));
    }
    if asked.contains("latencyStats") {
        let none = || doc! { "latency" => 0i64, "ops" => 0i64 };
        document.push("latencyStats", doc! { "reads" => none(), "writes" => none(), "commands" => none() });
    }
    Ok(document)
}

/// Follows a capped collection: documents that come later are given too.
struct Following {
    collection: Collection,
    scope: Scope,
    context: Context,
    asked: Find,
    /// The `_id` of the last document that was looked at.
    place: Option<Bson>,
    skipped: u64,
    /// Where the collection stood when it was looked at.
    seen: Vec<(u32, u64)>,
    over: bool,
    waiting: std::collections::VecDeque<Document>,
}

/// What a cursor stood on has been taken away.
const CAPPED_POSITION_LOST: i32 = 136;

pub fn tail(call: &Call<'_>, name: &str, asked: &Find, context: &Context) -> Result<Box<dyn Tail>> {
    let Some(collection) = call.collection(name)? else {
        return Ok(Box::new(Nothing));
    };
    if !collection.meta.is_capped() {
        return Err(Error::bad_value(
            "error processing query: tailable cursor requested on non capped collection",
        ));
    }
    Ok(Box::new(Following {
        collection,
        scope: call.scope(),
        context: context.clone(),
        asked: Find {
            filter: asked.filter.clone(),
            projection: asked.projection.clone(),
            sort: None,
            skip: asked.skip,
            limit: None,
        },
        place: None,
        skipped: 0,
        seen: Vec::new(),
        over: false,
        waiting: Default::default(),
    }))
}

struct Nothing;

impl Tail for Nothing {
    fn poll(&mut self) -> Result<Option<Document>> {
        Ok(None)
    }

    fn token(&self) -> Option<Document> {
        None
    }

    fn is_over(&self) -> bool {
        true
    }
}

impl Tail for Following {
    fn poll(&mut self) -> Result<Option<Document>> {
        if let Some(next) = self.waiting.pop_front() {
            return Ok(Some(next));
        }
        if self.collection.container.core().is_deleted() {
            self.over = true;
            return Err(Error::new(175, "collection dropped between getMore calls"));
        }
        let filter = orrery_mongo::filter::Filter::parse(&self.asked.filter, &self.context)?;
        let projection = match &self.asked.projection {
            Some(projection) => {
                Some(orrery_mongo::projection::Projection::parse(projection, Some(&filter), &self.context)?)
            }
            None => None,
        };
        let container = &self.collection.container;
        let stands = |range: u32| container.position_for(range, &[]).map_or(0, |position| position.lsn);
        let now: Vec<(u32, u64)> =
            container.ranges().iter().map(|range| (range.id, stands(range.id))).collect();
        if now == self.seen && self.place.is_some() {
            return Ok(None);
        }
        let mut found = self.collection.find(&self.scope, None, &self.context, None)?;
        // Documents of a capped collection keep their order, and the first ones go.
        let mut behind = self.place.is_none();
        let mut some = false;
        while let Some(row) = found.next()? {
            some = true;
            let id = row.value()?.get("_id").map_or(Bson::Null, ValueRef::to_bson);
            if !behind {
                let here = self.place.as_ref();
                behind = here.is_some_and(|place| order::equal(place.into(), (&id).into(), None));
                continue;
            }
            self.place = Some(id);
            if !filter.matches(row.value()?, &self.context)? {
                continue;
            }
            if self.skipped < self.asked.skip {
                self.skipped += 1;
                continue;
            }
            let document = match &projection {
                Some(projection) => projection.apply(row.value()?, &self.context)?,
                None => row.to_document()?,
            };
            self.waiting.push_back(document);
        }
        if !behind {
            self.over = true;
            return Err(Error::new(
                CAPPED_POSITION_LOST,
                "CollectionScan died due to position in capped collection being deleted.",
            ));
        }
        self.seen = now;
        // A cursor over nothing is dead from the start.
        self.over = !some;
        Ok(self.waiting.pop_front())
    }

    fn token(&self) -> Option<Document> {
        None
    }

    fn is_over(&self) -> bool {
        self.over
    }
}
