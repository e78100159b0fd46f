//! A container whose rows have been read again: the handle stays, and with it every partition whose range is still
//! there.

use std::sync::Arc;

use super::Container;
use crate::ranges::{RangeMap, Slot};

impl Container {
    /// Whether it is not known of some range whether it has gone to others.
    pub(crate) fn is_undecided(&self) -> bool {
        self.map().slots().iter().any(|slot| slot.is_undecided())
    }

    /// Becomes what the same container is by its rows. Only for the catalog's writer.
    pub(crate) fn adopt(&self, read: &Container) {
        let version = read.core.version();
        if self.core.version().lsn != version.lsn {
            self.core.version.store(version);
        }
        self.core.scripts.store(read.core.scripts());
        self.adopt_map(&read.map());
    }

    fn adopt_map(&self, read: &RangeMap) {
        let known = self.map.load_full();
        let kept = |slot: &Arc<Slot>| {
            let known = known.by_id(slot.id()).filter(|known| known.space == slot.space);
            known.unwrap_or(slot).clone()
        };
        let slots: Vec<Arc<Slot>> = read.slots().iter().map(kept).collect();
        let gone: Vec<&Arc<Slot>> =
            known.slots().iter().filter(|slot| !slots.iter().any(|kept| Arc::ptr_eq(kept, slot))).collect();
        if !gone.is_empty() || known.history.next_range != read.history.next_range {
            self.set_map(RangeMap::new(slots.clone(), read.history.clone()));
        }
        // Only after the map that says so is in place.
        gone.iter().for_each(|slot| slot.leave());
        slots.iter().for_each(|slot| slot.confirm());
    }
}
