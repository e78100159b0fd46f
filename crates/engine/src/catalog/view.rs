//! What readers of the catalog see: persistent maps, shared with the views before and after.

use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::{HashMap, OrdMap};

use crate::account::{Database, Ref};
use crate::container::Container;
use crate::offer::{Offer, OfferOwner};

/// The databases and offers at one moment.
#[derive(Clone, Default)]
pub(crate) struct View {
    pub(crate) lsn: u64,
    pub(crate) databases_by_number: OrdMap<u32, Arc<Database>>,
    pub(crate) databases_by_name: HashMap<String, Arc<Database>>,
    pub(crate) offers: OrdMap<u32, Arc<Offer>>,
    pub(crate) offers_by_owner: HashMap<OfferOwner, u32>,
}

/// The containers of one database at one moment.
#[derive(Clone, Default)]
pub(crate) struct Containers {
    pub(crate) by_number: OrdMap<u32, Arc<Container>>,
    pub(crate) by_name: HashMap<String, Arc<Container>>,
}

impl View {
    pub(crate) fn database(&self, by: Ref<'_>) -> Option<&Arc<Database>> {
        match by {
            Ref::Name(name) => self.databases_by_name.get(name),
            Ref::Number(number) => self.databases_by_number.get(&number),
        }
    }

    pub(crate) fn offer_of(&self, owner: OfferOwner) -> Option<&Arc<Offer>> {
        self.offers.get(self.offers_by_owner.get(&owner)?)
    }

    pub(crate) fn insert_database(&mut self, database: Arc<Database>) {
        self.databases_by_name.insert(database.name.clone(), database.clone());
        self.databases_by_number.insert(database.number, database);
    }

    pub(crate) fn remove_database(&mut self, database: &Database) {
        self.databases_by_name.remove(&database.name);
        self.databases_by_number.remove(&database.number);
    }

    /// Leaves databases out, and the offers of all they hold.
    pub(crate) fn forget_databases(&mut self, numbers: &BTreeSet<u32>) {
        for number in numbers {
            if let Some(database) = self.databases_by_number.get(number).cloned() {
                self.remove_database(&database);
            }
        }
        let theirs = |owner: &OfferOwner| numbers.contains(&owner.database());
        let owners: Vec<OfferOwner> = self.offers_by_owner.keys().copied().filter(theirs).collect();
        owners.into_iter().for_each(|owner| self.remove_offer_of(owner));
    }

    pub(crate) fn insert_offer(&mut self, offer: Arc<Offer>) {
        self.offers_by_owner.insert(offer.owner, offer.number);
        self.offers.insert(offer.number, offer);
    }

    pub(crate) fn remove_offer_of(&mut self, owner: OfferOwner) {
        if let Some(number) = self.offers_by_owner.remove(&owner) {
            self.offers.remove(&number);
        }
    }
}

impl Containers {
    pub(crate) fn insert(&mut self, container: Arc<Container>) {
        self.by_name.insert(container.name().to_owned(), container.clone());
        self.by_number.insert(container.number(), container);
    }

    pub(crate) fn remove(&mut self, container: &Container) {
        self.by_name.remove(container.name());
        self.by_number.remove(&container.number());
    }
}
