//! A physical partition: the items of one range of a container's hash space, their feed, and the one place where they
//! are written.
//!
//! ```text
//! write   caller's thread: check ─ lock ─ read old, stage rows, take LSN, submit ─ unlock ─ wait for the ticket
//!         store's thread:  append, sync, apply, publish ─ published LSN advances, ticket ready
//! read    caller's thread: snapshot of what is published ─ get ─ answer
//! ```
//!
//! Writers take turns under a mutex that is held for microseconds; the next one builds on what the last one submitted,
//! kept in an overlay until the store has published it. Readers never see the overlay, so nobody sees what a crash
//! could undo, and a refusal that rests on it is told only when it has become durable. When a commit fails the store
//! fails every later one, and what is in the overlay is never shown. A failure that is final for the store ends all
//! writes, while reads go on. After any other the partition is *lost*: it refuses everything, and its container opens
//! another in its place, which finds out from the rows what is there.
//!
//! - `transaction`: one commit in the making. `write`: the calls. `overlay`: what is submitted and not published.
//!   `draft`: a transaction that takes seconds, for scripts.
//! - `rows`, `item_key`: what is stored under which key. `unique`, `expiry`, `sizes`, `patch`: rules.
//! - `index`: index rows, their policies, and reading them. `scan`, `changes`: lists. `upkeep`: what the sweeper does.
//! - `stamps`: which logical partitions were written since somebody read them.
//! - `copy`, `handover`, `gate`: how other partitions are made from this one and take over its range.
//! - `metering`, `largest_keys`: what clients spend and hold.

mod attach;
mod by_number;
mod changes;
mod check;
mod claiming;
mod columns;
mod commit_page;
mod content;
mod copy;
mod creation_order;
mod draft;
mod durability;
mod expiry;
mod gate;
mod handover;
mod held;
pub mod index;
mod item_key;
mod largest_keys;
mod metering;
mod overlay;
mod patch;
mod rows;
mod rules;
mod scan;
mod sizes;
mod stamps;
mod transaction;
mod unique;
mod upkeep;
mod versions;
mod write;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use futures_channel::oneshot;
use orrery_model::{Epk, PartitionKey};
use orrery_storage::{Claim, Commit, Direction, Failure, Snapshot, Space, StoreError, Table, keys};
use parking_lot::Mutex;

use crate::charge;
use crate::columns::Columns;
use crate::config::EngineConfig;
use crate::container::{ContainerCore, PartitionSetup, Usage};
use crate::definition::ContainerDefinition;
use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::item::{self, Item, ItemReply, Position, ReadOptions};
use crate::throughput::Meter;

pub use changes::PartitionChanges;
pub use claiming::ClaimsState;
pub(crate) use columns::rows_of;
pub(crate) use copy::{Successor, seal_all};
pub(crate) use creation_order::Earliest;
pub use draft::{Draft, Drafted, Rewritten};
pub(crate) use durability::{Submitted, settle};
pub(crate) use gate::{RANGE_GONE, gone};
pub(crate) use handover::{FeedHold, Pause};
pub use held::HeldContainer;
pub use rows::ChangeKind;
pub use scan::{ORDERED_SCAN_ITEMS_MAX, PageLimits, PartitionPage, ScanPosition, Span};
pub use stamps::Freshness;
pub use versions::{ItemVersion, PartitionVersions};

use durability::Ticket;
use gate::Gate;
use index::Index;
use item_key::ItemKey;
use largest_keys::LargestKeys;
use overlay::Overlay;
use rows::{Base, FeedRow, Totals, decode_item, decode_lsn};
use rules::Rules;
use upkeep::Agenda;

/// The identity of the partition that is opened next.
static IDENTITIES: AtomicU64 = AtomicU64::new(1);

/// Purges of logical partitions in effect, by the prefix of their items, with the LSN up to which items are gone.
type Purges = HashMap<Bytes, u64>;

pub struct Partition {
    range_id: u32,
    min: Epk,
    max: Epk,
    space: Arc<dyn Space>,
    owner: Arc<ContainerCore>,
    env: Arc<dyn Env>,
    config: Arc<EngineConfig>,
    settings: ArcSwap<Settings>,
    shared: Arc<PartitionCore>,
    meter: Meter,
    survey: LargestKeys,
}

/// What follows from the container's present definition.
pub(crate) struct Settings {
    pub(crate) definition: Arc<ContainerDefinition>,
    /// How long deletes stay in the feed.
    delete_retention_s: u32,
    /// Which versions are kept for readers of all of them.
    kept: versions::Kept,
    /// What every item must keep to.
    rules: Arc<Rules>,
}

impl Settings {
    pub(crate) fn of(owner: &ContainerCore) -> Settings {
        let definition = owner.definition();
        let (delete_retention_s, kept) =
            (upkeep::delete_retention_s(&definition), versions::Kept::of(&definition));
        let rules = Arc::new(Rules::new(&definition, owner.hosts()));
        Settings { delete_retention_s, kept, rules, definition }
    }

    /// How large an item may be as it is stored, where an api has said so.
    fn item_bytes_max(&self) -> Option<usize> {
        self.definition.rules.as_ref()?.item_bytes_max
    }
}

/// What the store's thread reaches as well.
struct PartitionCore {
    /// Tells this partition from all others that this process has or had open.
    identity: u64,
    overlay: Mutex<Overlay>,
    published: AtomicU64,
    items: AtomicU64,
    bytes: AtomicU64,
    purges: ArcSwap<Purges>,
    /// The first commit that failed for good. Writes after it are refused.
    stopped: OnceLock<StoreError>,
    /// The container is gone.
    closed: AtomicBool,
    gate: Gate,
    /// The size at which it was found that it cannot be split; 0: never.
    unsplittable_bytes: AtomicU64,
    agenda: Agenda,
    claiming: Mutex<claiming::Visit>,
    index: Index,
    columns: Arc<Columns>,
    stamps: stamps::Stamps,
}

impl PartitionCore {
    fn published_lsn(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }
}

/// What changes for readers when a commit is published.
enum AfterPublish {
    Nothing,
    PurgeStarted { logical_partition: Bytes, lsn: u64 },
    PurgeEnded { logical_partition: Bytes, lsn: u64 },
}

impl Partition {
    /// Takes over the rows of a space: the newest feed row tells where the partition stands.
    pub(crate) fn open(setup: PartitionSetup) -> Result<Partition> {
        let snapshot = setup.space.snapshot()?;
        let newest = newest(snapshot.as_ref())?;
        let base = snapshot.get(Table::Feed, &keys::meta(rows::BASE))?;
        let base = base.map(|row| Base::decode(&row)).transpose()?;
        // A partition made from others begins where they ended, which need not be at one of its own changes.
        let (lsn, totals) = match (newest, base) {
            (Some((lsn, totals)), Some(base)) if lsn > base.lsn => (lsn, totals),
            (_, Some(base)) => (base.lsn, base.totals),
            (Some(newest), None) => newest,
            (None, None) => (0, Totals::default()),
        };
        let mut purges = Purges::new();
        let mut rows = snapshot.scan(Table::Feed, keys::purges(), Direction::Forward);
        while let Some(row) = rows.next_row().transpose()? {
            match keys::FeedTableKey::decode(&row.key) {
                Some(keys::FeedTableKey::Purge { logical_partition }) => {
                    let prefix = Bytes::copy_from_slice(logical_partition);
                    purges.insert(prefix, decode_lsn(&row.value)?);
                }
                _ => return Err(rows::damaged("purge")),
            }
        }
        let settings = Settings::of(&setup.owner);
        let index = Index::open(snapshot.as_ref(), settings.definition.clone(), lsn == 0)?;
        let agenda = Agenda::open(snapshot.as_ref(), &settings, lsn, !purges.is_empty(), index.is_behind())?;
        Ok(Partition {
            range_id: setup.range_id,
            min: setup.min,
            max: setup.max,
            space: setup.space,
            owner: setup.owner,
            env: setup.env,
            config: setup.config,
            settings: ArcSwap::from_pointee(settings),
            meter: Meter::new(),
            survey: LargestKeys::default(),
            shared: Arc::new(PartitionCore {
                identity: IDENTITIES.fetch_add(1, Ordering::Relaxed),
                overlay: Mutex::new(Overlay::new(lsn + 1, totals, purges.clone())),
                published: AtomicU64::new(lsn),
                items: AtomicU64::new(totals.items),
                bytes: AtomicU64::new(totals.bytes),
                purges: ArcSwap::from_pointee(purges),
                stopped: OnceLock::new(),
                closed: AtomicBool::new(false),
                gate: Gate::default(),
                unsplittable_bytes: AtomicU64::new(0),
                agenda,
                claiming: Mutex::default(),
                index,
                columns: Columns::new(setup.columns),
                stamps: stamps::Stamps::default(),
            }),
        })
    }

    pub fn range_id(&self) -> u32 {
        self.range_id
    }

    /// The range of the hash space, `[min, max)`.
    pub fn bounds(&self) -> (&Epk, &Epk) {
        (&self.min, &self.max)
    }

    /// The last commit that everyone can see.
    pub fn lsn(&self) -> u64 {
        self.shared.published_lsn()
    }

    pub fn position(&self) -> Position {
        self.stands_at(self.lsn(), 0)
    }

    /// Where it stands for a session that must not be ahead of it.
    pub(crate) fn position_for(&self, session: &[(u32, u64)]) -> Result<Position> {
        let view = self.view(session)?;
        self.shared.gate.check_read()?;
        Ok(self.stands_at(view.lsn, 0))
    }

    /// The position of an answer about a commit and an item.
    fn stands_at(&self, lsn: u64, item_lsn: u64) -> Position {
        Position { range_id: self.range_id, lsn, item_lsn, usage: self.usage() }
    }

    /// Items and bytes as of the last published commit, with what has expired but is not yet swept.
    pub fn usage(&self) -> Usage {
        Usage {
            items: self.shared.items.load(Ordering::Relaxed),
            size_bytes: self.shared.bytes.load(Ordering::Relaxed),
        }
    }

    /// The bytes at which it is due to be split; a container without a key has a limit of its own.
    pub(crate) fn size_limit(&self) -> u64 {
        match self.settings().definition.partition_key.system_key {
            true => self.config.fixed_container_size_limit,
            false => self.config.partition_size_limit,
        }
    }

    /// Refuses everything from now on: the container has been deleted.
    pub fn close(&self) {
        self.shared.closed.store(true, Ordering::Release);
        // A writer that checked before the flag was set has submitted when this lock is free.
        drop(self.shared.overlay.lock());
    }

    /// Whether another partition has to be opened in place of this one, because its store was lost or another owner has
    /// come.
    pub(crate) fn is_lost(&self) -> bool {
        self.shared.gate.is_lost()
    }

    /// How its successor in the same space claims that: as the same owner, or, where another has come in between, anew.
    pub(crate) fn next_claim(&self) -> Claim {
        let epoch = self.space.epoch();
        if self.shared.gate.is_fenced() { Claim::Take(epoch) } else { Claim::Renew(epoch) }
    }

    /// Whether writes may begin: neither paused for a handover nor gone.
    pub fn takes_writes(&self) -> bool {
        self.shared.gate.is_open()
    }

    /// Ready when the pause of a handover is over; `None` outside of one.
    pub fn pause_end(&self) -> Option<oneshot::Receiver<()>> {
        self.shared.gate.pause_end()
    }

    /// The last published state. Every reader takes its snapshot here: the space of a range that has gone may have
    /// been dropped, and then reads as empty.
    pub(crate) fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        let snapshot = self.space.snapshot()?;
        self.shared.gate.check_read()?;
        Ok(snapshot)
    }

    /// Reads one item from the last published state: one snapshot, one look-up, no copy of the document.
    pub fn read_item(
        &self,
        key: &PartitionKey,
        epk: &Epk,
        id: &str,
        options: &ReadOptions,
    ) -> Result<ItemReply> {
        self.metered(options.class, Some(key), || ((), self.read(key, epk, id, options))).1
    }

    fn read(&self, key: &PartitionKey, epk: &Epk, id: &str, options: &ReadOptions) -> Result<ItemReply> {
        let view = self.view(&options.session)?;
        let target = ItemKey::new(epk, key, id);
        let found = self.snapshot()?.get(Table::Items, &target.key)?.map(decode_item).transpose()?;
        let Some(item) = found.filter(|item| view.shows(target.logical_partition(), item)) else {
            return Err(item::not_found().charged(options.class.read_charge(charge::LOOK_UP_RU)));
        };
        if options.if_none_match.as_deref().is_some_and(|condition| item.etag.matches(condition)) {
            let charge_ru = options.class.read_charge(charge::LOOK_UP_RU);
            return Err(Error::new(Kind::NotModified, "The item has not changed.").charged(charge_ru));
        }
        let at = self.stands_at(view.lsn.max(item.lsn), item.lsn);
        let charge_ru = options.class.read_charge(charge::read(item.document.len()));
        Ok(ItemReply { charge_ru, item, at })
    }

    /// How large the row of an item is; 0 without one.
    pub(crate) fn stored_bytes(&self, key: &PartitionKey, epk: &Epk, id: &str) -> Result<usize> {
        let row = self.snapshot()?.get(Table::Items, &ItemKey::new(epk, key, id).key)?;
        Ok(row.map_or(0, |row| row.len()))
    }

    /// What a reader must know before it takes its snapshot. In that order, a purge that ends in between cannot show
    /// its items again.
    fn view(&self, session: &[(u32, u64)]) -> Result<View> {
        if self.shared.closed.load(Ordering::Acquire) {
            return Err(Error::owner_not_found());
        }
        let lsn = self.lsn();
        if session.iter().any(|(range_id, seen)| *range_id == self.range_id && *seen > lsn) {
            return Err(Error::new(
                Kind::SessionAhead,
                "The read session is not available for the input session token.",
            ));
        }
        let default_ttl = self.settings().definition.default_ttl;
        Ok(View {
            lsn,
            // The clock is asked only where something can expire.
            now_s: if default_ttl.is_some() { self.env.now_s() } else { 0 },
            default_ttl,
            purges: self.shared.purges.load(),
        })
    }

    /// The settings of the container's present definition.
    fn settings(&self) -> Guard<Arc<Settings>> {
        let settings = self.settings.load();
        let definition = self.owner.definition();
        if Arc::ptr_eq(&settings.definition, &definition) {
            return settings;
        }
        let new = Settings::of(&self.owner);
        let (old_ttl, new_ttl) = (settings.definition.default_ttl, new.definition.default_ttl);
        if settings.rules.planned_mark(old_ttl) != new.rules.planned_mark(new_ttl) {
            self.shared.agenda.replan();
        }
        if settings.rules.claimed_mark() != new.rules.claimed_mark() {
            self.shared.agenda.claim();
        }
        if !settings.definition.indexing.makes_rows_of(&new.definition.indexing) {
            // The next transaction takes the policy over; this sees to it that there is one.
            self.shared.agenda.reindex();
        }
        // Another retention may make old what was not; what is kept from now on needs no visit.
        self.shared.agenda.look_for_versions();
        self.settings.store(Arc::new(new));
        self.settings.load()
    }

    /// Takes note of a changed definition. Every operation does so by itself, and the sweeper for partitions that are
    /// idle.
    pub fn definition_changed(&self) {
        drop(self.settings());
    }

    fn check_open(&self) -> Result<()> {
        if self.shared.closed.load(Ordering::Acquire) {
            return Err(Error::owner_not_found());
        }
        match self.shared.stopped.get() {
            Some(error) => Err(error.clone().into()),
            None => self.shared.gate.check_write(),
        }
    }

    /// Hands a commit to the store. The caller holds the state's lock, so commits arrive in the order of their LSNs.
    fn submit(&self, commit: Commit, change: Option<(u64, Totals)>, after: AfterPublish) -> Ticket {
        let (sender, ticket) = oneshot::channel();
        let shared = self.shared.clone();
        let done = Box::new(move |result: Result<(), StoreError>| {
            match &result {
                Ok(()) => shared.publish(change, after),
                Err(error) => shared.fail(error),
            }
            // The caller may have gone away; the commit stands.
            drop(sender.send(result));
        });
        self.space.submit(commit, self.config.durability, done);
        ticket
    }
}

impl PartitionCore {
    /// A commit has failed.
    fn fail(&self, error: &StoreError) {
        match error.failure() {
            Failure::Final => drop(self.stopped.set(error.clone())),
            failure => self.gate.lose(failure == Failure::OwnershipLost),
        }
    }

    /// On the store's thread, in the order of the commits. Never waits.
    fn publish(&self, change: Option<(u64, Totals)>, after: AfterPublish) {
        match after {
            AfterPublish::Nothing => {}
            AfterPublish::PurgeStarted { logical_partition, lsn } => {
                let mut purges = Purges::clone(&self.purges.load());
                purges.insert(logical_partition, lsn);
                self.purges.store(Arc::new(purges));
            }
            AfterPublish::PurgeEnded { logical_partition, lsn } => {
                let mut purges = Purges::clone(&self.purges.load());
                if purges.get(&logical_partition) == Some(&lsn) {
                    purges.remove(&logical_partition);
                }
                self.purges.store(Arc::new(purges));
            }
        }
        if let Some((lsn, totals)) = change {
            self.items.store(totals.items, Ordering::Relaxed);
            self.bytes.store(totals.bytes, Ordering::Relaxed);
            self.published.store(lsn, Ordering::Release);
            // Frees the overlay of an idle partition. A writer that holds the lock does it itself, later.
            if let Some(mut state) = self.overlay.try_lock() {
                state.settle_published(lsn);
            }
        }
    }
}

/// Where the newest commit left the partition. Rows about ids that items have left stand after the others of their
/// commit and do not tell its end.
fn newest(snapshot: &dyn Snapshot) -> Result<Option<(u64, Totals)>> {
    let mut rows = snapshot.scan(Table::Feed, keys::feed_after(0), Direction::Reverse);
    while let Some(row) = rows.next_row().transpose()? {
        match keys::FeedTableKey::decode(&row.key) {
            Some(keys::FeedTableKey::Feed { sub, .. }) if sub & rows::LEAVE_POSITION != 0 => {}
            Some(keys::FeedTableKey::Feed { lsn, .. }) => {
                return Ok(Some((lsn, FeedRow::decode(&row.value)?.totals)));
            }
            _ => return Err(rows::damaged("feed")),
        }
    }
    Ok(None)
}

/// What a reader sees.
struct View {
    lsn: u64,
    now_s: u32,
    default_ttl: Option<i32>,
    purges: Guard<Arc<Purges>>,
}

impl View {
    /// Whether a stored version counts: neither over nor purged.
    fn shows(&self, logical_partition: &[u8], item: &Item) -> bool {
        !expiry::is_over(self.default_ttl, item, self.now_s)
            && (self.purges.is_empty()
                || self.purges.get(logical_partition).is_none_or(|purged| item.lsn > *purged))
    }

    /// The same, for a row whose key has not been taken apart.
    fn shows_row(&self, key: &[u8], item: &Item) -> bool {
        if self.purges.is_empty() {
            return self.shows(&[], item);
        }
        let prefix_bytes = keys::ItemKey::decode(key).map_or(0, |parts| key.len() - parts.id.len());
        self.shows(&key[..prefix_bytes], item)
    }
}
