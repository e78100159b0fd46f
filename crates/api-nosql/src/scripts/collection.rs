//! What a script may do: items of its own logical partition, as the wire shows them.

use orrery_budget::{Budget, Exceeded, Held};
use orrery_engine::{ContainerCore, Draft, Env, Error, Item, Kind, Operation as ItemOperation, Write};
use orrery_query::QueryEnv;
use orrery_script::{Collection, Done, Failure, Operation, OperationError, Options};

use super::identity::Renames;
use super::query;
use crate::errors::{ALREADY_EXISTS, ApiError, NOT_FOUND, PRECONDITION_FAILED, errors_json, status_of};
use crate::item_json::{size_hint, write_item};
use crate::items;
use crate::paging::PAGE_BYTES_MAX;
use crate::rid::{ContainerRid, Rid, database_rid};

/// Items of a page when the script does not say.
pub const PAGE_ITEMS: usize = 1_000;

/// What the service says to a script that reaches for another logical partition.
const OTHER_KEY: &str = "Requests originating from scripts cannot reference partition keys other than the one for \
                         which client request was submitted.";

/// Names of the container that a script runs in.
#[derive(Clone)]
pub struct ScriptContainer {
    pub rid: ContainerRid,
    pub database: String,
    pub container: String,
    pub database_number: u32,
    pub container_number: u32,
    pub self_link: String,
}

impl ScriptContainer {
    pub fn of(container: &ContainerCore) -> ScriptContainer {
        let (database_number, container_number) = (container.database().number, container.number());
        let rid = ContainerRid::new(database_number, container_number);
        let mut self_link = Vec::new();
        rid.write_self(&mut self_link);
        ScriptContainer {
            self_link: String::from_utf8(self_link).unwrap_or_default(),
            rid,
            database: container.database().name.clone(),
            container: container.name().to_owned(),
            database_number,
            container_number,
        }
    }

    pub fn alt_link(&self) -> String {
        format!("dbs/{}/colls/{}", self.database, self.container)
    }
}

pub struct Items<'a, 'p> {
    pub draft: &'a mut Draft<'p>,
    pub place: &'a ScriptContainer,
    pub env: &'a QueryEnv,
    pub random: &'a dyn Env,
    /// Names of what was written so far, which are not final yet.
    pub written: &'a mut Renames,
    pub charges: &'a mut Charges,
}

/// What a script holds beside its own memory, charged to its request.
pub struct Charges {
    budget: Budget,
    staged: Held,
    /// The answer to the last operation, until the next.
    result: Option<Held>,
    exceeded: Option<Exceeded>,
}

impl Charges {
    pub fn new(budget: &Budget) -> Result<Charges, Failure> {
        let staged = budget.hold(0).map_err(Failure::exceeded)?;
        Ok(Charges { budget: budget.clone(), staged, result: None, exceeded: None })
    }

    /// The end of a script that wanted more than there is, whatever else it says.
    pub fn check(&self) -> Result<(), Failure> {
        self.exceeded.map_or(Ok(()), |exceeded| Err(Failure::exceeded(exceeded)))
    }

    fn set(&mut self, staged_bytes: usize, result_bytes: usize) -> Result<(), Exceeded> {
        self.result = None;
        let held = self.staged.resize(staged_bytes).and_then(|()| self.budget.hold(result_bytes));
        self.result = Some(held.inspect_err(|exceeded| self.exceeded = Some(*exceeded))?);
        Ok(())
    }
}

impl Collection for Items<'_, '_> {
    fn perform(&mut self, operation: Operation<'_>, options: &Options) -> Result<Done, OperationError> {
        let done = self.carry_out(operation, options)?;
        let result_bytes = done.resource.as_ref().map_or(0, String::len);
        self.charges.set(self.draft.staged_bytes(), result_bytes).map_err(|exceeded| OperationError {
            status: ApiError::exceeded(exceeded).status.as_u16(),
            message: errors_json(&exceeded.to_string()),
        })?;
        Ok(done)
    }

    fn is_over(&self) -> bool {
        self.charges.exceeded.is_some() || self.draft.check_room().is_err()
    }
}

impl Items<'_, '_> {
    fn carry_out(&mut self, operation: Operation<'_>, options: &Options) -> Result<Done, OperationError> {
        match operation {
            Operation::Create { collection, document } => {
                self.check_collection(collection)?;
                let (id, document) = self.document(document, options.fixed_id)?;
                self.write(ItemOperation::Create { id, document }, options)
            }
            Operation::Upsert { collection, document } => {
                self.check_collection(collection)?;
                let (id, document) = self.document(document, options.fixed_id)?;
                self.write(ItemOperation::Upsert { id, document }, options)
            }
            Operation::Replace { document_link, document } => {
                let id = self.item_id(document_link)?;
                let (_, document) = self.document(document, true)?;
                self.write(ItemOperation::Replace { id, document }, options)
            }
            Operation::Delete { document_link } => {
                let id = self.item_id(document_link)?;
                self.write(ItemOperation::Delete { id }, options)
            }
            Operation::Read { document_link } => {
                let id = self.item_id(document_link)?;
                match self.draft.read(&id, options.if_none_match.as_deref()) {
                    Ok(item) => Ok(Done { resource: Some(self.json(&item)), ..Done::default() }),
                    Err(error) if error.kind == Kind::NotModified => {
                        Ok(Done { not_modified: true, ..Done::default() })
                    }
                    Err(error) => Err(refused(&error)),
                }
            }
            Operation::List { collection } => {
                self.check_collection(collection)?;
                self.list(options)
            }
            Operation::Query { collection, query } => {
                self.check_collection(collection)?;
                query::page(self.draft, &self.place.rid, self.env, &self.charges.budget, query, options)
            }
        }
    }

    fn write(&mut self, operation: ItemOperation, options: &Options) -> Result<Done, OperationError> {
        if let ItemOperation::Create { document, .. }
        | ItemOperation::Upsert { document, .. }
        | ItemOperation::Replace { document, .. } = &operation
            && self.written.occur_in(document)
        {
            // The document repeats a name that is final only if nobody commits before the script does.
            self.draft.must_not_move();
        }
        let mut write = Write::new(operation);
        write.if_match = options.if_match.clone();
        write.if_none_match = options.if_none_match.clone();
        let (_, item) = self.draft.write(write).map_err(|error| refused(&error))?;
        if let Some(item) = &item {
            self.written.watch(item);
        }
        let resource = item.filter(|_| !options.unseen).map(|item| self.json(&item));
        Ok(Done { resource, ..Done::default() })
    }

    /// The stored form of a document and its id, which it is given when it has none.
    fn document(&self, text: &str, fixed_id: bool) -> Result<(String, bytes::Bytes), OperationError> {
        let invalid = |error: ApiError| OperationError {
            status: error.status.as_u16(),
            message: errors_json(&error.message),
        };
        let document = items::document(text.as_bytes()).map_err(invalid)?;
        let has_id = orrery_model::Raw::document(&document).is_ok_and(|root| root.get("id").is_some());
        if has_id || fixed_id {
            let id = items::id_of(&document).map_err(invalid)?;
            return Ok((id, document));
        }
        let mut random = [0u8; 16];
        random[..8].copy_from_slice(&self.random.random_u64().to_le_bytes());
        random[8..].copy_from_slice(&self.random.random_u64().to_le_bytes());
        let id = uuid::Builder::from_random_bytes(random).into_uuid().hyphenated().to_string();
        let rest = text.trim_start().strip_prefix('{').unwrap_or("}");
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        let document =
            items::document(format!("{{\"id\":\"{id}\"{comma}{rest}").as_bytes()).map_err(invalid)?;
        Ok((id, document))
    }

    fn json(&self, item: &Item) -> String {
        let mut out = Vec::with_capacity(size_hint(item));
        write_item(&mut out, &self.place.rid, item);
        String::from_utf8(out).unwrap_or_default()
    }

    fn list(&mut self, options: &Options) -> Result<Done, OperationError> {
        let after = match options.continuation.as_deref() {
            None => None,
            Some(token) => Some(token.parse::<u64>().map_err(|_| query::invalid_continuation())?),
        };
        let most = options.page_size.unwrap_or(PAGE_ITEMS);
        let (mut out, mut count, mut last, mut more) = (vec![b'['], 0, None, false);
        let mut sizes = Vec::new();
        let rid = self.place.rid;
        let scanned = self.draft.scan(after, &mut |item| {
            if count > 0 && (count >= most || out.len() >= PAGE_BYTES_MAX) {
                more = true;
                return Ok(false);
            }
            if count > 0 {
                out.push(b',');
            }
            write_item(&mut out, &rid, item);
            sizes.push(item.document.len());
            count += 1;
            last = Some(item.number);
            Ok(true)
        });
        scanned.map_err(|error| refused(&error))?;
        out.push(b']');
        self.draft.charge(orrery_engine::charge::page(sizes));
        let continuation = last.filter(|_| more).map(|number| number.to_string());
        Ok(Done { resource: String::from_utf8(out).ok(), continuation, not_modified: false })
    }

    fn check_collection(&self, link: &str) -> Result<(), OperationError> {
        // Nearly all scripts say what `getSelfLink` told them.
        if link == self.place.self_link {
            return Ok(());
        }
        let parts: Vec<&str> = link.trim_matches('/').split('/').collect();
        match parts.as_slice() {
            ["dbs", database, "colls", container] if self.is_here(database, container) => Ok(()),
            _ => Err(wrong_link(link)),
        }
    }

    fn is_here(&self, database: &str, container: &str) -> bool {
        let place = self.place;
        (database == place.database || database == database_rid(place.database_number))
            && (container == place.container || container == place.rid.as_str())
    }

    /// The id of the item that a link names, by id or by rid.
    fn item_id(&self, link: &str) -> Result<String, OperationError> {
        let parts: Vec<&str> = link.trim_matches('/').split('/').collect();
        let ["dbs", database, "colls", container, "docs", item] = parts.as_slice() else {
            return Err(wrong_link(link));
        };
        if !self.is_here(database, container) {
            return Err(wrong_link(link));
        }
        let place = self.place;
        match Rid::parse(item) {
            Some(Rid::Item { database, container: owner, number })
                if *container == place.rid.as_str()
                    && database == place.database_number
                    && owner == place.container_number =>
            {
                match self.draft.id_of(number) {
                    Ok(Some(id)) => Ok(id),
                    Ok(None) => Err(refused(&Error::not_found())),
                    Err(error) => Err(refused(&error)),
                }
            }
            _ => Ok((*item).to_owned()),
        }
    }
}

fn wrong_link(link: &str) -> OperationError {
    let shown: String = link.chars().take(200).collect();
    let message = format!("The link '{shown}' names nothing in the collection that the script runs in.");
    OperationError { status: 400, message: errors_json(&message) }
}

/// An engine's refusal in the words that scripts look for.
pub fn refused(error: &Error) -> OperationError {
    let message = match error.kind {
        Kind::NotFound => NOT_FOUND,
        Kind::AlreadyExists => ALREADY_EXISTS,
        Kind::UniqueKeyViolated => "Unique index constraint violation.",
        Kind::PreconditionFailed => PRECONDITION_FAILED,
        Kind::PartitionKeyMismatch => OTHER_KEY,
        _ => error.message.as_str(),
    };
    OperationError { status: status_of(error.kind).0.as_u16(), message: errors_json(message) }
}
