//! Change streams: the engine's feed of all versions as events, with tokens to go on from.
//!
//! A token names a position in every partition of every collection that is watched, so that it holds after splits,
//! and how many changes of the last commit were told already. The first stream on a collection makes it keep its
//! versions; those made before are not told.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use orrery_engine::{
    ChangeFeedFailure, ChangeKind, ChangeMode, ChangePositions, ChangeStart, ChangesFrom, Container,
    ContainerDefinition, FeedChange, ItemVersion, KeyKinds, PageRequest, RangeInfo, Scope as Reach, block_on,
};
use orrery_mongo::pipeline::{Env, ListRows, Pipeline, Row};
use orrery_mongo::{Bson, Context, Document, Error, Result, ValueRef, codec, doc, error::code, order};

use super::collections::Store;
use super::cursor::{self, Opening};
use super::databases::uuid_of;
use super::difference::difference;
use super::lineage;
use super::resume_token::Positions;
use super::{Call, options};
use crate::catalog::{collection_name, watched_policy};
use crate::cursors::{Source, Tail};
use crate::errors::of_engine;
use crate::recent::{CollectionChange, Written};
use crate::reply::Reply;
use crate::service::Core;

/// Changes that are read at a time.
const PAGE_CHANGES: usize = 200;
/// How often it is looked for changes.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The argument of a `$changeStream` at the beginning of a pipeline.
pub fn asked(stages: &[Bson]) -> Option<&Bson> {
    stages.first()?.as_document()?.get("$changeStream")
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Watched {
    Collection(String, String),
    Database(String),
    Cluster,
}

impl Watched {
    fn covers(&self, database: &str, collection: &str) -> bool {
        match self {
            Watched::Collection(known, name) => known == database && name == collection,
            Watched::Database(known) => known == database,
            Watched::Cluster => !matches!(database, "admin" | "config" | "local"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FullDocument {
    Default,
    UpdateLookup,
    WhenAvailable,
    Required,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BeforeChange {
    Off,
    WhenAvailable,
    Required,
}

struct Stream {
    core: Arc<Core>,
    watched: Watched,
    positions: Positions,
    /// Changes of collections are told too, up to this one.
    expanded: bool,
    changes: u64,
    /// Where changes of collections stood when it was opened.
    opened: u64,
    moments: usize,
    /// What was there when the stream was last looked at.
    known: HashMap<(u32, u32), (String, String, Arc<Container>)>,
    from_start: bool,
    since_s: Option<u32>,
    full: FullDocument,
    before: BeforeChange,
    stages: Vec<Bson>,
    env: Env,
    waiting: VecDeque<(Document, Document)>,
    token: Document,
    invalidated: bool,
    looked: Option<Instant>,
}

pub fn open(
    call: &mut Call<'_>,
    name: &str,
    argument: &Bson,
    stages: &[Bson],
    batch: Option<u64>,
    context: &Context,
) -> Result<Reply> {
    let argument = argument
        .as_document()
        .ok_or_else(|| Error::type_mismatch("the $changeStream stage takes an object"))?;
    for (option, _) in argument.iter() {
        const KNOWN: [&str; 8] = [
            "fullDocument",
            "fullDocumentBeforeChange",
            "resumeAfter",
            "startAfter",
            "startAtOperationTime",
            "allChangesForCluster",
            "showExpandedEvents",
            "showMigrationEvents",
        ];
        if !KNOWN.contains(&&**option) {
            return Err(Error::new(
                40415,
                format!("BSON field '$changeStream.{option}' is an unknown field."),
            ));
        }
    }
    let cluster = options::flag(argument, "allChangesForCluster", false)?;
    let watched = match name {
        "$cmd.aggregate" if cluster => Watched::Cluster,
        "$cmd.aggregate" => Watched::Database(call.database.to_owned()),
        name => Watched::Collection(call.database.to_owned(), name.to_owned()),
    };
    let full = match options::text(argument, "fullDocument")?.unwrap_or("default") {
        "default" => FullDocument::Default,
        "updateLookup" => FullDocument::UpdateLookup,
        "whenAvailable" => FullDocument::WhenAvailable,
        "required" => FullDocument::Required,
        other => {
            return Err(Error::bad_value(format!(
                "Enumeration value '{other}' for field '$changeStream.fullDocument' is not a valid value."
            )));
        }
    };
    let before = match options::text(argument, "fullDocumentBeforeChange")?.unwrap_or("off") {
        "off" => BeforeChange::Off,
        "whenAvailable" => BeforeChange::WhenAvailable,
        "required" => BeforeChange::Required,
        other => {
            return Err(Error::bad_value(format!(
                "Enumeration value '{other}' for field '$changeStream.fullDocumentBeforeChange' is not a valid value."
            )));
        }
    };
    let token =
        match (options::document(argument, "resumeAfter")?, options::document(argument, "startAfter")?) {
            (Some(_), Some(_)) => {
                return Err(Error::new(
                    50674,
                    "Only one type of resume option is allowed, but multiple were found.",
                ));
            }
            (Some(token), None) | (None, Some(token)) => Some(token),
            (None, None) => None,
        };
    let since = match argument.get("startAtOperationTime") {
        Some(Bson::Timestamp { seconds, .. }) => Some(*seconds),
        Some(_) => return Err(Error::type_mismatch("startAtOperationTime is a timestamp")),
        None => None,
    };
    if token.is_some() && since.is_some() {
        return Err(Error::new(40674, "Only one type of resume option is allowed, but multiple were found."));
    }
    Pipeline::parse(stages, context)?;
    let positions = match token {
        Some(token) => Some(Positions::of_token(token).ok_or_else(|| {
            Error::new(code::INVALID_RESUME_TOKEN, "Bad resume token: it is none of this server's.")
        })?),
        None => None,
    };
    if positions.as_ref().is_some_and(|positions| positions.1) && argument.contains("resumeAfter") {
        return Err(Error::new(
            code::INVALID_RESUME_TOKEN,
            "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.",
        ));
    }
    let expanded = options::flag(argument, "showExpandedEvents", false)?;
    let core = call.core.clone();
    core.watched.store(true, Relaxed);
    let changes = core.recent.now();
    let collection = match &watched {
        Watched::Collection(_, name) => name.clone(),
        _ => "$cmd.aggregate".to_owned(),
    };
    let env = Env {
        database: call.database.into(),
        collection: collection.as_str().into(),
        collections: Arc::new(Store::new(call, context)),
        context: context.clone(),
    };
    let resumes = positions.is_some();
    let mut stream = Stream {
        core,
        watched,
        positions: Positions(positions.map(|positions| positions.0).unwrap_or_default(), false),
        expanded,
        changes,
        opened: changes,
        moments: 0,
        known: HashMap::new(),
        from_start: false,
        since_s: since,
        full,
        before,
        stages: stages.to_vec(),
        env,
        waiting: VecDeque::new(),
        token: Document::new(),
        invalidated: false,
        looked: None,
    };
    stream.begin(resumes || since.is_some())?;
    stream.from_start = true;
    stream.token = stream.positions.token();
    let opening = Opening {
        namespace: format!("{}.{collection}", call.database),
        batch,
        awaits: true,
        ..Opening::default()
    };
    cursor::open(call, Source::Tail(Box::new(stream)), opening)
}

impl Stream {
    fn containers(&self) -> Vec<(String, String, Arc<Container>)> {
        let mut all = Vec::new();
        for database in self.core.account.databases() {
            for container in database.containers() {
                let name = collection_name(container.name());
                if !name.starts_with('$') && self.watched.covers(&database.name, &name) {
                    all.push((database.name.clone(), name, container));
                }
            }
        }
        all
    }

    /// Finds out where every container stands.
    fn begin(&mut self, resumes: bool) -> Result<()> {
        for (database, name, container) in self.containers() {
            self.keep_versions(&container)?;
            let key = (container.database().number, container.number());
            if !self.positions.0.contains_key(&key) {
                let ranges: BTreeMap<u32, (u64, u32)> = match resumes && self.since_s.is_none() {
                    // Made after the token was.
                    true => container.ranges().iter().map(|range| (range.id, (0, 0))).collect(),
                    false if self.since_s.is_some() => {
                        container.ranges().iter().map(|range| (range.id, (0, 0))).collect()
                    }
                    false => lineage::now(&container),
                };
                self.positions.0.insert(key, ranges);
            }
            self.known.insert(key, (database, name, container));
        }
        Ok(())
    }

    fn keep_versions(&self, container: &Arc<Container>) -> Result<()> {
        if container.keeps_versions() {
            return Ok(());
        }
        let mut json = container.definition().json.clone();
        json["changeFeedPolicy"] = watched_policy();
        let new = ContainerDefinition::parse(&json, KeyKinds::All).map_err(of_engine)?;
        block_on(self.core.account.replace_container(container, new, None)).map(drop).map_err(of_engine)
    }

    fn look(&mut self) -> Result<()> {
        /// Milliseconds that writers are given to say what they did.
        const MOMENTS_MAX: usize = 20;
        self.moments = MOMENTS_MAX;
        for (database, name, container) in self.containers() {
            let key = (container.database().number, container.number());
            if !self.known.contains_key(&key) {
                self.keep_versions(&container)?;
                let ranges = container.ranges().iter().map(|range| (range.id, (0, 0))).collect();
                self.positions.0.insert(key, ranges);
                self.known.insert(key, (database, name, container));
            }
        }
        let mut keys: Vec<(u32, u32)> = self.known.keys().copied().collect();
        keys.sort_unstable();
        let mut found: Vec<Told> = Vec::new();
        let mut gone = Vec::new();
        for key in keys {
            let Some((database, name, container)) = self.known.get(&key).cloned() else { continue };
            if container.core().is_deleted() {
                self.known.remove(&key);
                self.positions.0.remove(&key);
                gone.push((database, name));
                continue;
            }
            for range in container.ranges() {
                let mut read = self.read(key, &range, &container, &database, &name)?;
                // Changes of a range are told in the order of its commits, whatever is known of their writes.
                let mut least = (0, 0);
                for change in &mut read {
                    change.written = self.written(&range, change);
                    let order = change.written.map_or(0, |written| written.order);
                    change.place = least.max((change.version.ts, order));
                    least = change.place;
                }
                found.extend(read.into_iter().map(|change| Told::Version(Box::new(change))));
            }
        }
        if self.expanded {
            let changes = self.core.recent.changes_after(self.changes);
            self.changes = changes.last().map_or(self.changes, |last| last.order);
            let ours = |change: &CollectionChange| {
                change.kind != "rename" && self.watched.covers(&change.database, &change.collection)
            };
            found.extend(changes.into_iter().filter(ours).map(Told::Collection));
        }
        // By their time; within one second in the order in which they were made, as far as that is known.
        found.sort_by_key(Told::place);
        for told in found {
            match told {
                Told::Version(change) => self.tell(*change)?,
                Told::Collection(change) => self.tell_collection(change)?,
            }
        }
        for (key, (_, _, container)) in &self.known {
            if let Some(places) = self.positions.0.get_mut(key) {
                lineage::forget_what_is_behind(container, places);
            }
        }
        for (database, name) in gone {
            self.dropped(&database, &name)?;
        }
        Ok(())
    }

    /// The next changes of a range that were not told yet.
    fn read(
        &mut self,
        key: (u32, u32),
        range: &RangeInfo,
        container: &Arc<Container>,
        database: &str,
        name: &str,
    ) -> Result<Vec<Change>> {
        let places = self.positions.0.entry(key).or_default();
        let (after, told) = lineage::begins(places, range);
        let start = ChangeStart {
            positions: ChangePositions::Each(vec![(range.id, after)]),
            otherwise: ChangesFrom::Now,
        };
        let page = PageRequest::new(PAGE_CHANGES);
        let read = block_on(container.read_change_feed(
            &Reach::Range(range.id),
            &start,
            ChangeMode::AllVersions,
            &page,
        ));
        let read = match read {
            Ok(read) => read,
            Err(ChangeFeedFailure::Refused(_)) => return Ok(Vec::new()),
            Err(ChangeFeedFailure::Engine(error)) if error.kind == orrery_engine::Kind::RangeGone => {
                return Ok(Vec::new());
            }
            Err(ChangeFeedFailure::Engine(error)) => {
                return Err(Error::new(
                    code::CHANGE_STREAM_HISTORY_LOST,
                    format!(
                        "Resume of change stream was not possible, as the resume point may no longer be there: {error}"
                    ),
                ));
            }
            Err(ChangeFeedFailure::NoPosition) => {
                return Err(Error::new(
                    code::CHANGE_STREAM_HISTORY_LOST,
                    "the resume point is not known any more",
                ));
            }
        };
        let versions = read.changes.into_iter().filter_map(|change| match change {
            FeedChange::Version(version) => Some(version),
            FeedChange::Latest(_) => None,
        });
        let mut versions = versions.peekable();
        let mut changes = Vec::new();
        let mut in_commit: (u64, u32) = (0, 0);
        while let Some(version) = versions.next() {
            let lsn = version.lsn;
            in_commit = if in_commit.0 == lsn { (lsn, in_commit.1 + 1) } else { (lsn, 1) };
            // Of the commit after the position some may have been told.
            if lsn == after + 1 && in_commit.1 <= told
                || lineage::was_told(container, places, range, &version)
            {
                continue;
            }
            let goes_on = versions.peek().is_some_and(|next| next.lsn == lsn);
            changes.push(Change {
                key,
                range: range.id,
                database: database.to_owned(),
                name: name.to_owned(),
                container: container.clone(),
                at: if goes_on { (lsn.saturating_sub(1), in_commit.1) } else { (lsn, 0) },
                written: None,
                place: (0, 0),
                version,
            });
        }
        // What is told moves the position on by itself, event by event: a token knows of no change that comes later.
        if changes.is_empty()
            && let Some((_, lsn)) = read.positions.first()
            && (*lsn > after || !places.contains_key(&range.id))
        {
            places.insert(range.id, (*lsn.max(&after), 0));
        }
        Ok(changes)
    }

    /// What is known of a write. Whoever has just made it is given a moment to say so.
    fn written(&mut self, range: &RangeInfo, change: &Change) -> Option<Written> {
        let (database, container) = change.key;
        let lsn = change.version.lsn;
        let origins = lineage::origins(&change.container, range, &change.version);
        loop {
            let places = origins.iter().map(|origin| (database, container, *origin, lsn));
            match self.core.recent.written(places) {
                (None, true) if self.moments > 0 => {
                    self.moments -= 1;
                    std::thread::sleep(Duration::from_millis(1));
                }
                (known, _) => return known,
            }
        }
    }

    fn tell_collection(&mut self, change: CollectionChange) -> Result<()> {
        let token = self.positions.token();
        let event = doc! {
            "_id" => token.clone(),
            "operationType" => change.kind,
            "clusterTime" => Bson::Timestamp { seconds: change.seconds, increment: (change.order & 0x7FFF_FFFF) as u32 },
            "wallTime" => Bson::Date(i64::from(change.seconds) * 1000),
            "ns" => doc! { "db" => change.database, "coll" => change.collection },
            "operationDescription" => change.description,
        };
        self.through_stages(event, token)
    }

    fn tell(&mut self, change: Change) -> Result<()> {
        self.positions.0.entry(change.key).or_default().insert(change.range, change.at);
        if self.since_s.is_some_and(|since| change.version.ts < since) {
            return Ok(());
        }
        let Some(mut event) = self.event(change)? else { return Ok(()) };
        let token = self.positions.token();
        event.push_front("_id", token.clone());
        self.through_stages(event, token)
    }

    fn through_stages(&mut self, event: Document, token: Document) -> Result<()> {
        if self.stages.is_empty() {
            self.waiting.push_back((event, token));
            return Ok(());
        }
        let pipeline = Pipeline::parse(&self.stages, &self.env.context)?;
        let mut rows = pipeline.run(ListRows::boxed([Row::Built(event)]), &self.env)?;
        let mut some = false;
        while let Some(row) = rows.next()? {
            some = true;
            let document = row.into_document()?;
            let kept = document
                .get("_id")
                .is_some_and(|id| order::equal(id.into(), ValueRef::OwnedDocument(&token), None));
            if !kept {
                return Err(Error::new(
                    code::CHANGE_STREAM_FATAL_ERROR,
                    "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. \
                     Modifying the _id field of an event makes it impossible to resume the stream from that point. Only \
                     transformations that retain the unmodified _id field are allowed.",
                ));
            }
            self.waiting.push_back((document, token.clone()));
        }
        if !some {
            self.token = token;
        }
        Ok(())
    }

    fn event(&self, change: Change) -> Result<Option<Document>> {
        let Change { version, database, name, container, written, .. } = change;
        let shown = |item: &orrery_engine::Item| codec::item(&item.document).map(ValueRef::to_document);
        let current = version.current.as_ref().map(shown).transpose()?;
        let previous = version.previous.as_ref().map(shown).transpose()?;
        let Some(any) = current.as_ref().or(previous.as_ref()) else { return Ok(None) };
        let mut document_key = Document::new();
        if let Some(path) = crate::collection::shard_key(&container)
            && path != "_id"
            && let Some(value) =
                path.split('.').try_fold(ValueRef::OwnedDocument(any), |value, name| value.get(name))
        {
            document_key.push(path.as_str(), value.to_bson());
        }
        document_key.push("_id", any.get("_id").cloned().unwrap_or(Bson::Null));
        let kind = match version.kind {
            ChangeKind::Create => "insert",
            ChangeKind::Delete | ChangeKind::Expire => "delete",
            _ if current.is_none() => "delete",
            _ if version.previous_lsn == 0 => "insert",
            _ if written.is_some_and(|written| written.whole) => "replace",
            _ => "update",
        };
        let seconds = version.ts;
        let mut event = doc! {
            "operationType" => kind,
            "clusterTime" => Bson::Timestamp { seconds, increment: (version.lsn & 0x7FFF_FFFF) as u32 },
            "wallTime" => Bson::Date(i64::from(seconds) * 1000),
        };
        let looked_up = match (kind, self.full) {
            ("insert" | "replace", _) => current.clone(),
            ("update", FullDocument::UpdateLookup) => {
                let raw = version.current.as_ref();
                let key = raw.map(|item| container.definition().partition_key.extract(item.body()));
                let found = raw.zip(key).and_then(|(item, key)| {
                    block_on(container.read_item(&key, item.id(), &orrery_engine::ReadOptions::default()))
                        .ok()
                });
                match found {
                    Some(reply) => Some(shown(&reply.item)?),
                    None => None,
                }
            }
            ("update", FullDocument::WhenAvailable | FullDocument::Required) => current.clone(),
            _ => None,
        };
        let wants_full =
            matches!(kind, "insert" | "replace") || kind == "update" && self.full != FullDocument::Default;
        if wants_full {
            event.push("fullDocument", looked_up.map_or(Bson::Null, Bson::Document));
        }
        event.push("ns", doc! { "db" => database, "coll" => name });
        if self.expanded {
            event.push("collectionUUID", uuid_of(&container));
        }
        event.push("documentKey", document_key);
        if kind == "update" {
            let nothing = Document::new();
            let (before, after) =
                (previous.as_ref().unwrap_or(&nothing), current.as_ref().unwrap_or(&nothing));
            event.push("updateDescription", difference(before, after, self.expanded));
        }
        if self.before != BeforeChange::Off && kind != "insert" {
            match previous {
                Some(previous) => event.push("fullDocumentBeforeChange", previous),
                None if self.before == BeforeChange::Required => {
                    return Err(Error::new(47, "the document before the change is required and not there"));
                }
                None => event.push("fullDocumentBeforeChange", Bson::Null),
            }
        }
        Ok(Some(event))
    }

    /// A collection has gone.
    fn dropped(&mut self, database: &str, name: &str) -> Result<()> {
        let (seconds, increment) = self.core.cluster_time();
        let time = Bson::Timestamp { seconds, increment };
        let token = self.positions.token();
        let changes = self.core.recent.changes_after(0);
        let renamed = changes.into_iter().rev().find(|change| {
            change.kind == "rename"
                && change.database == database
                && change.collection == name
                && change.order > self.opened
        });
        let mut event = doc! {
            "_id" => token.clone(),
            "operationType" => if renamed.is_some() { "rename" } else { "drop" },
            "clusterTime" => time.clone(),
            "wallTime" => Bson::Date(self.core.now_ms()),
            "ns" => doc! { "db" => database, "coll" => name },
        };
        if let Some(renamed) = renamed {
            event.push("to", renamed.description.get("to").cloned().unwrap_or(Bson::Null));
            if self.expanded {
                event.push("operationDescription", renamed.description);
            }
        }
        self.through_stages(event, token.clone())?;
        let gone = match &self.watched {
            Watched::Collection(..) => true,
            Watched::Database(database) => {
                self.core.account.database(orrery_engine::Ref::Name(database)).is_err()
                    && self.known.is_empty()
            }
            Watched::Cluster => false,
        };
        if gone {
            if let Watched::Database(database) = &self.watched {
                let event = doc! { "_id" => token.clone(), "operationType" => "dropDatabase", "clusterTime" => time.clone(), "wallTime" => Bson::Date(self.core.now_ms()), "ns" => doc! { "db" => database.as_str() } };
                self.through_stages(event, token.clone())?;
            }
            let token = Positions(self.positions.0.clone(), true).token();
            let event = doc! { "_id" => token.clone(), "operationType" => "invalidate", "clusterTime" => time, "wallTime" => Bson::Date(self.core.now_ms()) };
            self.through_stages(event, token)?;
            self.invalidated = true;
        }
        Ok(())
    }
}

/// What is told: a version of an item, or a change of a collection.
enum Told {
    Version(Box<Change>),
    Collection(CollectionChange),
}

impl Told {
    fn place(&self) -> (u32, u64) {
        match self {
            Told::Version(change) => change.place,
            Told::Collection(change) => (change.seconds, change.order),
        }
    }
}

/// A change on its way to an event.
struct Change {
    key: (u32, u32),
    range: u32,
    database: String,
    name: String,
    container: Arc<Container>,
    /// The position behind it: the commit before its own, and how many of its own are told.
    at: (u64, u32),
    written: Option<Written>,
    /// Second, and order within it.
    place: (u32, u64),
    version: ItemVersion,
}

impl Tail for Stream {
    fn poll(&mut self) -> Result<Option<Document>> {
        if self.waiting.is_empty()
            && !self.invalidated
            && self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY)
        {
            self.look()?;
            self.looked = Some(Instant::now());
            if self.waiting.is_empty() {
                self.token = self.positions.token();
            }
        }
        let next = self.waiting.pop_front();
        Ok(next.map(|(event, token)| {
            self.token = token;
            event
        }))
    }

    fn token(&self) -> Option<Document> {
        Some(self.token.clone())
    }

    fn is_over(&self) -> bool {
        self.invalidated && self.waiting.is_empty()
    }
}

/// `GetChangeStreamTokens`: a token for each physical partition.
pub fn tokens(call: &Call<'_>) -> Result<Document> {
    let name = options::text(call.body, "collection")?
        .ok_or_else(|| Error::bad_value("The field 'collection' is missing."))?;
    let missing = || {
        Error::new(code::NAMESPACE_NOT_FOUND, format!("There is no collection '{}.{name}'.", call.database))
    };
    let collection = call.collection(name)?.ok_or_else(missing)?;
    let container = &collection.container;
    let now = lineage::now(container);
    let tokens = now.iter().map(|(range, place)| {
        let mut positions = Positions::default();
        positions
            .0
            .entry((container.database().number, container.number()))
            .or_default()
            .insert(*range, *place);
        Bson::from(positions.token())
    });
    Ok(doc! { "resumeAfterTokens" => Bson::array(tokens.collect()) })
}
