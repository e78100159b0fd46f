//! The one gate between who asks and what is asked.
//!
//! An API says who asks ([`Principal`]) and what an operation does ([`Demand`]: how near it comes to what, and whether
//! it only reads). For those who hold the account's keys that is enough. For the holder of a grant it also says what
//! the operation is done to ([`Subject`]), which is compared with the grant by what both of them mean now, whichever
//! names they use. What the grant leaves open beyond the yes or no (a container, but one partition key of it) comes
//! back as [`Limits`].
//!
//! Nothing is answered about what was not granted: a request is denied before what it names is looked for, and only
//! what a grant covers can be found missing.
//!
//! | granted | mode | reaches |
//! |---|---|---|
//! | container | Read | its properties and ranges, items, feeds, queries, scripts: all that reads |
//! | container | All | the same and all that writes, the container itself included |
//! | container, key | either | its properties and ranges, plans; items, feeds, batches, procedures under the key |
//! | item | Read, All | the container's properties and ranges; the item, but no new ones and no other id |
//! | script | Read, All | the container's properties and ranges; the script; with All also running a procedure |

use std::borrow::Cow;
use std::sync::Arc;

use orrery_model::{Epk, PartitionKey};

use super::grant::Grant;
use super::keys::KeySlot;
use super::limits::{Denied, Limits};
use super::resource::{Part, Resource, ResourceName};
use super::users::PermissionMode;
use crate::account::Account;
use crate::container::Container;
use crate::script::ScriptKind;

/// Who asks.
#[derive(Clone, Debug, PartialEq)]
pub enum Principal {
    /// The holder of one of the account's keys.
    Key(KeySlot),
    /// An identity that the directory vouches for: as good as a key that writes.
    Directory,
    /// Whoever was handed a resource token.
    Granted(Box<Grant>),
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    pub reach: Reach,
    /// Whether nothing is different afterwards.
    pub reads: bool,
}

/// What an operation comes near, which says what kind of grant can be enough for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The account's own description, which every client reads first: any grant, to read.
    Account,
    /// The account, its databases, users and offers: only the keys of the account.
    Keys,
    /// Only keys that write, also for reading: an answer about a permission holds a token.
    Permissions,
    /// What clients must know about a container: any grant of it or of something in it, to read.
    Properties,
    /// The container as a whole, whatever its keys.
    Container,
    /// A query plan, for which no item is read.
    Plan,
    /// Items in pages, from where the request says.
    Feed,
    /// Several operations, each under a key of its own, which is compared with the limits one by one.
    Batch,
    /// Items under the key of the request, whatever their ids.
    UnderKey,
    /// The item that the request names.
    OneItem,
    /// A stored procedure, trigger or function as a resource.
    Script,
    /// Running the stored procedure that the request names, under the key of the request.
    Run,
}

impl Reach {
    pub const ALL: [Reach; 12] = [
        Reach::Account,
        Reach::Keys,
        Reach::Permissions,
        Reach::Properties,
        Reach::Container,
        Reach::Plan,
        Reach::Feed,
        Reach::Batch,
        Reach::UnderKey,
        Reach::OneItem,
        Reach::Script,
        Reach::Run,
    ];
}

/// What an operation is done to, as the request says it.
#[derive(Clone, Debug)]
pub struct Subject<'t> {
    pub resource: Resource<'t>,
    /// The key of the request; `None` when it cannot be read. A request without any is under `[]`.
    pub key: Option<PartitionKey>,
    /// Where an item lies that is asked for by its number, without its key. Its own key counts then.
    pub item_at: Option<(Cow<'t, Epk>, u64)>,
    /// Whether the request says where in the container it reads; that it is within the limits is a matter of its scope.
    pub has_scope: bool,
}

/// `Ok` when the principal may go on, within the limits. The subject is asked for only if it matters.
///
/// Whoever holds a key is answered at once. A grant may have to be compared with an item that is asked for by its
/// number, whose partition knows its key and id.
pub async fn permit<'t>(
    account: &Account,
    principal: &Principal,
    demand: Demand,
    subject: impl FnOnce() -> Subject<'t>,
) -> Result<Limits, Denied> {
    let grant = match principal {
        Principal::Directory => return Ok(Limits::default()),
        Principal::Key(slot) if slot.writes() => return Ok(Limits::default()),
        // Reading a permission makes a token, and a key that only reads must not make one that writes.
        Principal::Key(_) if !demand.reads || demand.reach == Reach::Permissions => {
            return Err(Denied::Insufficient);
        }
        Principal::Key(_) => return Ok(Limits::default()),
        Principal::Granted(grant) => grant,
    };
    match demand.reach {
        Reach::Account if demand.reads => Ok(Limits::default()),
        Reach::Account | Reach::Keys | Reach::Permissions => Err(Denied::Insufficient),
        // What they describe is changed under other reaches.
        Reach::Properties if !demand.reads => Err(Denied::Insufficient),
        _ if grant.mode == PermissionMode::Read && !demand.reads => Err(Denied::Insufficient),
        reach => covered(account, grant, reach, &subject()).await,
    }
}

/// The limits under which the grant covers the subject.
async fn covered(
    account: &Account,
    grant: &Grant,
    reach: Reach,
    subject: &Subject<'_>,
) -> Result<Limits, Denied> {
    let common = CommonContainer::of(account, grant, &subject.resource).ok_or(Denied::Insufficient)?;
    let limits = Limits::under(grant.partition_key.as_ref());
    let whole = limits.key().is_none();
    if needs_key(reach, &grant.resource.part) {
        limits.permits_key(&*common.key(subject).await?)?;
    }
    let covers = match (reach, &grant.resource.part) {
        // Clients read these before anything else, with whatever they were granted of the container.
        (Reach::Properties, _) => true,
        (Reach::Container | Reach::Script, Part::Whole) => whole,
        (Reach::Plan | Reach::Batch, Part::Whole) => true,
        (Reach::Feed, Part::Whole) => whole || subject.has_scope,
        (Reach::UnderKey | Reach::OneItem | Reach::Run, Part::Whole) => true,
        (Reach::OneItem, Part::Item(name)) => {
            if common.is_item(name, subject).await {
                return Ok(limits.with_one_item());
            }
            false
        }
        (Reach::Script, Part::Script(kind, name)) => {
            whole && common.is_script(*kind, name, &subject.resource.part)
        }
        (Reach::Run, Part::Script(kind, name)) => common.is_script(*kind, name, &subject.resource.part),
        _ => false,
    };
    if covers { Ok(limits) } else { Err(Denied::Insufficient) }
}

/// Whether what is reached lies under one key, which must be that of the grant.
fn needs_key(reach: Reach, granted: &Part<'_>) -> bool {
    matches!(
        (reach, granted),
        (Reach::UnderKey | Reach::OneItem | Reach::Run, Part::Whole)
            | (Reach::OneItem, Part::Item(_))
            | (Reach::Run, Part::Script(..))
    )
}

/// The container that both a grant and a request are about.
struct CommonContainer {
    /// `None`: it does not exist, and the request calls it exactly as the grant does.
    container: Option<Arc<Container>>,
    granted_by_name: bool,
}

impl CommonContainer {
    fn of(account: &Account, grant: &Grant, requested: &Resource<'_>) -> Option<CommonContainer> {
        let granted = &grant.resource;
        let Some(container) = requested.find_container(account) else {
            // What is missing may be called missing to those who were granted that very name.
            let named = granted.database.name == requested.database.name
                && granted.container.name == requested.container.name;
            let elsewhere =
                requested.find_database(account).is_some_and(|found| found.number != grant.database);
            return (named && !elsewhere)
                .then_some(CommonContainer { container: None, granted_by_name: true });
        };
        let found = granted.find_container(account)?;
        let same =
            found.database().number == container.database().number && found.number() == container.number();
        // A user's permissions end where its database does, whatever they name.
        let inside = container.database().number == grant.database;
        let granted_by_name = found.name() == granted.container.name;
        (same && inside).then_some(CommonContainer { container: Some(container), granted_by_name })
    }

    /// The key that the request is under.
    async fn key<'s>(&self, subject: &'s Subject<'_>) -> Result<Cow<'s, PartitionKey>, Denied> {
        match (&subject.item_at, &self.container) {
            (Some((epk, number)), Some(container)) => {
                let found = container.item_at(epk, *number).await;
                found.map(|(key, _)| Cow::Owned(key)).map_err(|_| Denied::Insufficient)
            }
            _ => subject.key.as_ref().map(Cow::Borrowed).ok_or(Denied::KeyUnreadable),
        }
    }

    /// Whether the request is about the granted item, whichever of its names either of them uses.
    async fn is_item(&self, granted: &ResourceName<'_>, subject: &Subject<'_>) -> bool {
        let Part::Item(requested) = &subject.resource.part else { return false };
        let Some(container) = &self.container else { return granted.name == requested.name };
        let Ok(key) = self.key(subject).await else { return false };
        let requested_by_name = subject.resource.container.name == container.name();
        let (number, id) = match (
            granted.item_number(container, self.granted_by_name),
            requested.item_number(container, requested_by_name),
        ) {
            (None, None) => return granted.name == requested.name,
            (Some(granted), Some(requested)) => return granted == requested,
            (None, Some(number)) => (number, &granted.name),
            (Some(number), None) => (number, &requested.name),
        };
        // Which id a number stands for is known under the key alone; without one there is no such item.
        container.item_id(&key, number).await.is_ok_and(|found| found == **id)
    }

    /// Whether the request is about the granted script, whichever of its names either of them uses.
    fn is_script(&self, kind: ScriptKind, granted: &ResourceName<'_>, requested: &Part<'_>) -> bool {
        let Part::Script(of, requested) = requested else { return false };
        if *of != kind {
            return false;
        }
        let found = |name: &ResourceName<'_>| {
            let container = self.container.as_ref()?;
            name.find_script(container, kind).map(|script| script.number)
        };
        match (found(granted), found(requested)) {
            (Some(granted), Some(requested)) => granted == requested,
            // What is missing may be called missing to those who were granted that very name.
            (None, None) => granted.name == requested.name,
            _ => false,
        }
    }
}
