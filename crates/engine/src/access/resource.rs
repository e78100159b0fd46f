//! What a grant or a request is about: a container, or an item or a script in one.
//!
//! Both come from clients, who call things by name, or by an id that an API has made of their numbers. A text may be
//! both, because names are free; so a [`ResourceName`] carries both readings, and the name goes first. Nothing is
//! looked up before a grant is compared with a request, and what either of them names need not exist.

use std::borrow::Cow;
use std::sync::Arc;

use orrery_model::PartitionKey;

use crate::account::{Account, Database, Ref};
use crate::container::Container;
use crate::error::Result;
use crate::item::ReadOptions;
use crate::script::{Script, ScriptKind};

/// A container, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource<'t> {
    pub database: ResourceName<'t>,
    pub container: ResourceName<'t>,
    pub part: Part<'t>,
}

/// How much of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'t> {
    Whole,
    Item(ResourceName<'t>),
    Script(ScriptKind, ResourceName<'t>),
}

/// What a client calls something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceName<'t> {
    pub name: Cow<'t, str>,
    /// What the same text means where nothing has it for a name.
    pub id: Option<ResourceId>,
}

/// Something by its number and the numbers of what it is in. They are never used again after a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceId {
    Database(u32),
    Container { database: u32, container: u32 },
    Item { database: u32, container: u32, number: u64 },
    Script { database: u32, container: u32, kind: ScriptKind, number: u64 },
}

impl<'t> ResourceName<'t> {
    /// A name that is nothing else.
    pub fn plain(name: impl Into<Cow<'t, str>>) -> ResourceName<'t> {
        ResourceName { name: name.into(), id: None }
    }
}

impl Resource<'_> {
    pub(super) fn find_database(&self, account: &Account) -> Option<Arc<Database>> {
        self.database.find_database(account).ok()
    }

    pub(super) fn find_container(&self, account: &Account) -> Option<Arc<Container>> {
        self.container.find_container(&*self.find_database(account)?).ok()
    }

    /// Whether there is such a thing; of an item only under a key.
    pub async fn exists(&self, account: &Account, key: Option<&PartitionKey>) -> bool {
        let Some(container) = self.find_container(account) else { return false };
        match &self.part {
            Part::Whole => true,
            Part::Script(kind, name) => name.find_script(&container, *kind).is_some(),
            Part::Item(name) => {
                let Some(key) = key else { return false };
                container.read_item(key, &name.name, &ReadOptions::default()).await.is_ok()
            }
        }
    }
}

impl ResourceName<'_> {
    /// The database that is called this.
    pub fn find_database(&self, account: &Account) -> Result<Arc<Database>> {
        match (account.database(Ref::Name(&self.name)), self.id) {
            (Err(_), Some(ResourceId::Database(number))) => account.database(Ref::Number(number)),
            (named, _) => named,
        }
    }

    /// The container of the database that is called this.
    pub fn find_container(&self, database: &Database) -> Result<Arc<Container>> {
        match (database.container(Ref::Name(&self.name)), self.id) {
            (Err(_), Some(ResourceId::Container { database: owner, container }))
                if owner == database.number =>
            {
                database.container(Ref::Number(container))
            }
            (named, _) => named,
        }
    }

    pub(super) fn find_script(&self, container: &Container, kind: ScriptKind) -> Option<Arc<Script>> {
        let scripts = container.scripts();
        let named = scripts.by_id(kind, &self.name).cloned();
        named.or_else(|| match self.id {
            Some(ResourceId::Script { database, container: owner, kind: of, number })
                if of == kind && database == container.database().number && owner == container.number() =>
            {
                scripts.by_number(kind, number).cloned()
            }
            _ => None,
        })
    }

    /// The number of an item of this container that the text stands for, if its owner is not called by name: items of
    /// containers that are have ids, whatever these look like.
    pub(super) fn item_number(&self, container: &Container, container_by_name: bool) -> Option<u64> {
        match self.id {
            Some(ResourceId::Item { database, container: owner, number })
                if !container_by_name
                    && database == container.database().number
                    && owner == container.number() =>
            {
                Some(number)
            }
            _ => None,
        }
    }
}
