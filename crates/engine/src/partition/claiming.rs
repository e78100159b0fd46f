//! Giving items that were there before a rule the keys that they claim for it.
//!
//! From the moment that a definition has a rule every write claims keys for it. Items that have been there are visited
//! in the order of their keys, a bounded number per commit under the partition's lock, and claim theirs; two of them
//! that want the same key are found here, and it is for whoever made the rule to say so and to take it back. A mark
//! says which rules all items have claimed for, and for which some may have: rows of the latter are removed when the
//! rule is gone.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use orrery_storage::{Direction, KeyRange, Table, keys};

use super::Partition;
use super::item_key::ItemKey;
use super::rows::damaged;
use super::rules::{Rules, rule_of};
use super::transaction::Transaction;
use super::upkeep::durable;
use crate::error::Result;

/// Items visited in one commit: the partition's writers wait that long.
const ITEMS_PER_COMMIT: usize = 64;
/// Rows removed in one commit.
const REMOVALS_PER_COMMIT: usize = 1000;
/// Commits of one visit.
const COMMITS_PER_VISIT: usize = 64;

pub(super) const CLAIMED: &str = "claimed-rules";

/// How far the items of a partition have claimed their keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimsState {
    pub complete: bool,
    /// A rule for which two items want the same key, and the id of one of them.
    pub duplicate: Option<(u16, String)>,
}

/// Where a visit has got to.
#[derive(Default)]
pub(super) struct Visit {
    /// The rules that it is for.
    rules: Option<Arc<Rules>>,
    after: Option<Bytes>,
}

impl Partition {
    /// Lets some of the items claim what they have not claimed yet.
    pub(crate) fn build_claims(&self) -> Result<ClaimsState> {
        let mut visit = self.shared.claiming.lock();
        for _ in 0..COMMITS_PER_VISIT {
            let rules = self.settings().rules.clone();
            let mark = self.snapshot()?.get(Table::Feed, &keys::meta(CLAIMED))?;
            let constraints = rules.unclaimed(mark.as_ref());
            if constraints.is_empty() && !rules.has_gone(mark.as_ref()) {
                *visit = Visit::default();
                return Ok(ClaimsState { complete: true, duplicate: None });
            }
            if !visit.rules.as_ref().is_some_and(|known| Arc::ptr_eq(known, &rules)) {
                if !self.begin_claims(&rules, mark.as_ref())? {
                    continue;
                }
                *visit = Visit { rules: Some(rules.clone()), after: None };
            }
            if !constraints.is_empty() {
                let (some, duplicate) = self.claim_some(&mut visit, &rules, &constraints)?;
                if duplicate.is_some() {
                    *visit = Visit::default();
                    return Ok(ClaimsState { complete: false, duplicate });
                }
                if some {
                    continue;
                }
            }
            if !self.remove_claims(&rules)? {
                self.settle_claims(&rules)?;
            }
        }
        Ok(ClaimsState::default())
    }

    /// Writes down that there may be claims, and waits until everything that was written without them can be seen.
    fn begin_claims(&self, rules: &Arc<Rules>, mark: Option<&Bytes>) -> Result<bool> {
        let settings = self.settings();
        let mut transaction = Transaction::begin(self, &settings)?;
        if !Arc::ptr_eq(&transaction.rules, rules) {
            return Ok(false);
        }
        transaction.stage(Table::Feed, keys::meta(CLAIMED), Some(rules.begun_mark(mark)));
        durable(transaction.finish_marks()?)?;
        Ok(true)
    }

    /// Visits the next items. Returns whether there were any, and a rule for which one of them wants what another has.
    #[allow(clippy::type_complexity)]
    fn claim_some(
        &self,
        visit: &mut Visit,
        rules: &Arc<Rules>,
        constraints: &[u16],
    ) -> Result<(bool, Option<(u16, String)>)> {
        let mut range = KeyRange::all();
        if let Some(after) = &visit.after {
            range.start = Bound::Excluded(after.clone());
        }
        let snapshot = self.snapshot()?;
        let mut rows = snapshot.scan(Table::Items, range, Direction::Forward);
        let mut found = Vec::with_capacity(ITEMS_PER_COMMIT);
        while found.len() < ITEMS_PER_COMMIT
            && let Some(row) = rows.next_row().transpose()?
        {
            found.push(row.key);
        }
        drop(rows);
        drop(snapshot);
        let Some(last) = found.last().cloned() else { return Ok((false, None)) };
        let settings = self.settings();
        let mut transaction = Transaction::begin(self, &settings)?;
        if !Arc::ptr_eq(&transaction.rules, rules) {
            return Ok((true, None));
        }
        for key in &found {
            let target = ItemKey::from_key(key.clone()).ok_or_else(|| damaged("item"))?;
            // It may have been written again, or deleted, since it was found.
            let Some(item) = transaction.stored(key)? else { continue };
            if !transaction.is_live(target.logical_partition(), &item) {
                continue;
            }
            if let Some(constraint) = transaction.claim_anew(&target, &item, constraints)? {
                let id = String::from_utf8_lossy(target.id()).into_owned();
                return Ok((true, rule_of(constraint).map(|number| (number, id))));
            }
        }
        if let Some((ticket, lsn)) = transaction.finish_claims()? {
            durable(Some(ticket))?;
            self.shared.overlay.lock().forget_claims(lsn);
        }
        visit.after = Some(last);
        Ok((true, None))
    }

    /// Removes rows of rules that are gone. Returns whether there were any.
    fn remove_claims(&self, rules: &Arc<Rules>) -> Result<bool> {
        let snapshot = self.snapshot()?;
        let range = keys::unique_in_epk_range(self.min.as_bytes(), self.max.as_bytes());
        let mut rows = snapshot.scan(Table::Feed, range, Direction::Forward);
        let mut gone = Vec::new();
        while gone.len() < REMOVALS_PER_COMMIT
            && let Some(row) = rows.next_row().transpose()?
        {
            let Some(keys::FeedTableKey::Unique { constraint, .. }) = keys::FeedTableKey::decode(&row.key)
            else {
                return Err(damaged("unique"));
            };
            if rules.is_gone(constraint) {
                gone.push(row.key);
            }
        }
        drop(rows);
        drop(snapshot);
        if gone.is_empty() {
            return Ok(false);
        }
        let settings = self.settings();
        let mut transaction = Transaction::begin(self, &settings)?;
        for key in gone {
            transaction.stage(Table::Feed, key, None);
        }
        durable(transaction.finish_marks()?)?;
        Ok(true)
    }

    /// Every item has claimed its keys: says so.
    fn settle_claims(&self, rules: &Arc<Rules>) -> Result<()> {
        let settings = self.settings();
        let mut transaction = Transaction::begin(self, &settings)?;
        if !Arc::ptr_eq(&transaction.rules, rules) {
            return Ok(());
        }
        transaction.stage(Table::Feed, keys::meta(CLAIMED), rules.claimed_mark());
        durable(transaction.finish_marks()?)
    }

    /// The same in the background, where nobody waits for it. Returns whether all is done.
    pub(super) fn claim_in_background(&self) -> Result<bool> {
        let state = self.build_claims()?;
        if let Some((rule, _)) = &state.duplicate {
            tracing::warn!(
                range = self.range_id,
                rule,
                "items have values twice that a rule wants to be unique; it holds for what is written from now on"
            );
        }
        Ok(state.complete || state.duplicate.is_some())
    }
}
