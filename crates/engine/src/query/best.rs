//! The best few of many candidates: their sort keys are read first, and only those that can be on the page are shown to the
//! query, which would else write out rows that it drops later.

use orrery_query::SortPosition;

use super::SystemOf;
use super::lookup::Candidate;
use super::run::{Ran, Run};
use super::sieve::{Sieve, as_queries_see_them};
use super::walk::keys_of;
use crate::item::Item;

/// Pages of more rows are not worth it.
const WANTED_MAX: u64 = 1_000;

pub(super) struct Best {
    pub items: Vec<Item>,
    /// Candidates that are known to pass the filter.
    pub matched: u64,
}

impl Run<'_> {
    /// The candidates among which the next rows are, in no order; `None` where sort keys or rows are not that simple.
    pub fn best(
        &mut self,
        candidates: &[Candidate],
        after: Option<&SortPosition>,
        passed: u64,
    ) -> Ran<Option<Best>> {
        let prepared = self.query.prepared;
        // One more than the page takes, so that it is known whether there is another.
        let wanted = self.wanted(passed).saturating_add(1);
        let paths = prepared.order_paths();
        if wanted > WANTED_MAX || candidates.len() as u64 <= wanted || !self.sorts_plainly(&paths) {
            return Ok(None);
        }
        let mut sieve = Sieve::new(&paths, after, wanted as usize, wanted as usize);
        let mut matched = 0;
        for candidate in candidates {
            self.check_cancelled()?;
            let key = self.view.item_key(&candidate.reference)?;
            let Some(item) = self.load(&key)? else { continue };
            let sure = !candidate.uncertain && self.exact;
            matched += u64::from(sure);
            let keys = as_queries_see_them(keys_of(&item, &paths));
            if !sieve.admits(&keys, item.number) {
                continue;
            }
            let system = SystemOf { item: &item, system: self.query.system };
            if !sure && !prepared.matches(system.row())? {
                continue;
            }
            matched += u64::from(!sure);
            sieve.keep(keys, item.number, item);
        }
        let (sifted, _) = sieve.finish();
        Ok(Some(Best { items: sifted.into_iter().map(|sifted| sifted.thing).collect(), matched }))
    }
}
