//! The memory of all sets together: when it is used up, the set that was not asked for longest goes.

use std::sync::Weak;

use parking_lot::Mutex;

use super::state::Columns;

#[derive(Debug)]
pub(crate) struct ColumnBudget {
    bytes_max: u64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    sets: Vec<KeptSet>,
    uses: u64,
}

#[derive(Debug)]
struct KeptSet {
    owner: Weak<Columns>,
    bytes: u64,
    used: u64,
}

impl ColumnBudget {
    pub fn new(bytes_max: u64) -> ColumnBudget {
        ColumnBudget { bytes_max, kept: Mutex::default() }
    }

    /// Whether a set of this size could be kept at all.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        bytes as u64 <= self.bytes_max
    }

    /// Memory that sets take.
    pub fn size_bytes(&self) -> u64 {
        self.kept.lock().sets.iter().map(|set| set.bytes).sum()
    }

    pub(super) fn used(&self, owner: &Weak<Columns>) {
        let mut kept = self.kept.lock();
        kept.uses += 1;
        let used = kept.uses;
        if let Some(set) = kept.sets.iter_mut().find(|set| set.owner.ptr_eq(owner)) {
            set.used = used;
        }
    }

    /// Takes note of the size of an owner's set, 0 if it has none. Returns the owners whose sets have to go for it.
    pub(super) fn set_size(&self, owner: &Weak<Columns>, bytes: usize) -> Vec<Weak<Columns>> {
        let mut kept = self.kept.lock();
        kept.uses += 1;
        let used = kept.uses;
        kept.sets.retain(|set| !set.owner.ptr_eq(owner) && set.owner.strong_count() > 0);
        if bytes > 0 {
            kept.sets.push(KeptSet { owner: owner.clone(), bytes: bytes as u64, used });
        }
        let mut gone = Vec::new();
        while kept.sets.iter().map(|set| set.bytes).sum::<u64>() > self.bytes_max {
            let oldest = (0..kept.sets.len()).min_by_key(|at| kept.sets[*at].used);
            let Some(oldest) = oldest else { break };
            gone.push(kept.sets.swap_remove(oldest).owner);
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_set_that_was_not_asked_for_longest_makes_room() {
        let budget = Arc::new(ColumnBudget::new(100));
        let owners = [(); 3].map(|()| Columns::new(budget.clone()));
        let [first, second, third] = owners.each_ref().map(Arc::downgrade);
        assert!(budget.set_size(&first, 60).is_empty() && budget.set_size(&second, 30).is_empty());
        budget.used(&first);
        let gone = budget.set_size(&third, 40);
        assert!(matches!(gone.as_slice(), [gone] if gone.ptr_eq(&second)));
        assert_eq!(budget.size_bytes(), 100);
        // A new size replaces the old one, and those who are gone do not count.
        assert!(budget.set_size(&third, 10).is_empty());
        drop(owners);
        assert!(budget.set_size(&third, 0).is_empty());
        assert_eq!(budget.size_bytes(), 0);
    }
}
