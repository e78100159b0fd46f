//! Bringing the catalog in memory to what its rows say, without taking anything from those who hold its handles.
//!
//! ```text
//! owned ── a commit fails ──► looked for at once ── found out ──► owned
//!                                   │ the store does not answer        ▲
//!                                   ▼                                  │ claim renewed, rows read
//!                                 lost ────────────────────────────────┤
//!                                   │ another owner has come           │ a change is asked for: claim taken, rows read
//!                                   ▼                                  │
//!                               followed: rows are read when their first one has changed
//! ```
//!
//! A catalog that another owner has taken is only read from then on, until somebody asks this one for a change: two
//! that took it from each other for background work would never end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use orrery_storage::{Claim, Failure, Space, SpaceId, StoreError};

use crate::account::{Database, Ref};
use crate::catalog::CATALOG_SPACE;
use crate::catalog::load::{self, Loaded};
use crate::catalog::rows::MetaRow;
use crate::catalog::view::{Containers, View};
use crate::catalog::writer::Writer;
use crate::container::{Container, Retry};
use crate::error::{Error, Result};

/// How often a store that is away is asked, when nobody wants anything changed.
const RENEW_INTERVAL: Duration = Duration::from_millis(100);
/// How often the first row is read while another owner has the catalog.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);

/// The writer has no handle that it could write with.
pub(crate) struct Lost {
    claim: Claim,
    retry: Retry,
}

impl Lost {
    /// How long the writer waits for changes before it looks at the store.
    pub(super) fn interval(&self) -> Duration {
        match self.claim {
            Claim::Renew(_) => RENEW_INTERVAL,
            Claim::Take(_) => FOLLOW_INTERVAL,
        }
    }
}

impl Writer {
    /// Whether changes cannot be made, nor is it known what became of the last one.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Takes note of a failed commit: no other can be made with this handle.
    pub(super) fn note_failure(&mut self, error: &StoreError) {
        let epoch = self.space.epoch();
        let claim = match error.failure() {
            Failure::Final => return,
            Failure::OwnershipLost => Claim::Take(epoch),
            Failure::Refused | Failure::OutcomeUnknown => Claim::Renew(epoch),
        };
        self.lost = Some(Lost { claim, retry: Retry::default() });
        self.shared.outages.catalog_lost(true);
    }

    /// There is a handle to write with, and it is known what the rows say.
    fn found(&mut self, space: Arc<dyn Space>) {
        self.space = space;
        self.lost = None;
        self.shared.outages.catalog_lost(false);
    }

    /// Finds out what became of a commit that has failed for now. `Ok` if it was made.
    pub(super) fn resolve(&mut self, meta: MetaRow, error: StoreError) -> Result<()> {
        self.note_failure(&error);
        tracing::warn!(%error, "a change of the catalog has failed");
        if error.failure() == Failure::OwnershipLost {
            return Err(Error::unavailable().caused_by(error));
        }
        let Ok(space) = self.reclaim() else { return Err(error.into()) };
        // The claim was renewed, so nobody else has written, and the number tells the change from all others.
        let Ok(stored) = load::stored_meta(space.as_ref()) else { return Err(error.into()) };
        self.found(space);
        if stored.lsn == meta.lsn {
            self.meta = meta;
            return Ok(());
        }
        Err(Error::unavailable().caused_by(error))
    }

    /// Before a change: everything is known, and there is a handle to write with.
    pub(crate) fn ready(&mut self) -> Result<()> {
        match &self.lost {
            None => Ok(()),
            Some(lost) if !lost.retry.is_due() => Err(Error::unavailable()),
            Some(_) => self.recover(),
        }
    }

    /// When nobody wants anything: finds out as much as is possible without taking the catalog from anyone.
    pub(super) fn follow_idly(&mut self) {
        let result = match &self.lost {
            Some(Lost { claim: Claim::Renew(_), .. }) => self.recover(),
            Some(Lost { claim: Claim::Take(_), .. }) => self.follow_owner(),
            None => Ok(()),
        };
        if let Err(error) = result {
            tracing::debug!(%error, cause = ?error.cause, "the catalog has not been read again yet");
        }
    }

    /// Claims the space and reads the rows.
    fn recover(&mut self) -> Result<()> {
        let space = self.reclaim()?;
        let loaded = load::load(&self.shared, space.as_ref(), &self.view.load())?;
        tracing::info!(lsn = loaded.meta.lsn, "the catalog has been read again");
        self.found(space);
        self.adopt(loaded);
        Ok(())
    }

    fn reclaim(&mut self) -> Result<Arc<dyn Space>> {
        let Some(lost) = &mut self.lost else { return Ok(self.space.clone()) };
        match self.shared.store.claim_space(SpaceId(CATALOG_SPACE), lost.claim) {
            Ok(space) => {
                // Should reading fail, this is the epoch to go on from.
                *lost = Lost { claim: Claim::Renew(space.epoch()), retry: Retry::default() };
                Ok(space)
            }
            Err(error) => {
                if let (StoreError::Fenced(_), Claim::Renew(epoch)) = (&error, lost.claim) {
                    lost.claim = Claim::Take(epoch);
                }
                lost.retry.failed();
                Err(Error::unavailable().caused_by(error))
            }
        }
    }

    /// Reads what another owner has written. Its claim has decided the fate of everything that was submitted here.
    fn follow_owner(&mut self) -> Result<()> {
        let undecided = || self.containers().any(|container| container.is_undecided());
        if load::stored_meta(self.space.as_ref())?.lsn == self.meta.lsn && !undecided() {
            return Ok(());
        }
        let loaded = load::load(&self.shared, self.space.as_ref(), &self.view.load())?;
        tracing::info!(lsn = loaded.meta.lsn, "the catalog of another owner has been read");
        self.adopt(loaded);
        Ok(())
    }

    fn containers(&self) -> impl Iterator<Item = Arc<Container>> {
        let databases: Vec<Arc<Database>> = self.view.load().databases_by_number.values().cloned().collect();
        databases.into_iter().flat_map(|database| database.containers())
    }

    /// Makes what was read the present state. Databases, containers and open partitions that are in both stay the same
    /// objects; those that have gone refuse what is still on its way to them.
    pub(super) fn adopt(&mut self, loaded: Loaded) {
        let Loaded {
            meta,
            view,
            databases,
            drops,
            stale_forks,
            mut containers,
            mut users,
            mut encryption_keys,
        } = loaded;
        let before = self.view.load_full();
        let mut ended: Vec<Arc<Container>> = Vec::new();
        for (number, database) in &view.databases_by_number {
            let (present, gone) = merge(database, containers.remove(number).unwrap_or_default());
            ended.extend(gone);
            database.containers.store(Arc::new(present));
            database.users.store(Arc::new(users.remove(number).unwrap_or_default()));
            database.encryption_keys.store(Arc::new(encryption_keys.remove(number).unwrap_or_default()));
        }
        for (number, database) in &before.databases_by_number {
            if view.database(Ref::Number(*number)).is_none() {
                ended.extend(database.containers());
                database.containers.store(Arc::default());
                database.users.store(Arc::default());
                database.encryption_keys.store(Arc::default());
            }
        }
        self.meta = meta;
        self.databases = databases;
        // A handover that was made has taken the drop rows of its spaces.
        self.building.retain(|space| drops.contains(space));
        self.drops = &drops - &self.building;
        self.stale_forks = stale_forks;
        let view = Arc::new(view);
        self.view.store(view.clone());
        for offer in changed_offers(&before, &view) {
            self.put_into_force(offer);
        }
        // Only when nobody can find them any more.
        ended.iter().for_each(|container| container.mark_deleted());
    }
}

fn changed_offers<'v>(before: &View, after: &'v View) -> Vec<&'v crate::offer::Offer> {
    let offers = after.offers.iter();
    let changed =
        offers.filter(|(number, offer)| before.offers.get(*number).is_none_or(|old| old.etag != offer.etag));
    changed.map(|(_, offer)| offer.as_ref()).collect()
}

/// The containers of a database as they were read, with the handles of those that are known already; and those of them
/// that have gone.
fn merge(database: &Database, loaded: Containers) -> (Containers, Vec<Arc<Container>>) {
    let known = database.containers.load();
    let mut present = Containers::default();
    for (number, container) in &loaded.by_number {
        match known.by_number.get(number) {
            Some(handle) => {
                handle.adopt(container);
                present.insert(handle.clone());
            }
            None => present.insert(container.clone()),
        }
    }
    let numbers: BTreeSet<u32> = loaded.by_number.keys().copied().collect();
    let gone = known.by_number.values().filter(|container| !numbers.contains(&container.number()));
    (present, gone.cloned().collect())
}
