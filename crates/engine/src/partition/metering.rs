//! The budget of a partition: every call that does work for a client is let in here first and charged here afterwards.

use std::sync::Arc;

use orrery_model::PartitionKey;

use super::Partition;
use crate::batch::BatchReply;
use crate::container::ContainerCore;
use crate::error::{Kind, Result};
use crate::item::{ItemReply, WriteAck, WriteReply};
use crate::throughput::{Figures, HotKey, MeteredRange, RequestClass};

/// An answer that says what it cost.
pub(super) trait Charged {
    fn charge_ru(&self) -> f64;
}

impl Charged for ItemReply {
    fn charge_ru(&self) -> f64 {
        self.charge_ru
    }
}

impl Charged for WriteReply {
    fn charge_ru(&self) -> f64 {
        self.charge_ru
    }
}

impl Charged for WriteAck {
    fn charge_ru(&self) -> f64 {
        self.charge_ru
    }
}

impl Charged for BatchReply {
    fn charge_ru(&self) -> f64 {
        self.charge_ru
    }
}

impl Partition {
    /// Lets a request in, or refuses it with the time to wait.
    pub fn admit(&self, class: RequestClass) -> Result<()> {
        self.meter.admit(&self.place(&self.settings()), class)
    }

    /// Takes what a request cost out of the budget. `key` is the logical partition that it was about, if it was one.
    pub fn charge(&self, class: RequestClass, charge_ru: f64, key: Option<&PartitionKey>) {
        self.meter.charge(&self.place(&self.settings()), class, charge_ru, key);
    }

    /// Admits, works, and charges for the outcome; refusals cost too.
    pub(super) fn metered<T: Charged, K: Default>(
        &self,
        class: RequestClass,
        key: Option<&PartitionKey>,
        work: impl FnOnce() -> (K, Result<T>),
    ) -> (K, Result<T>) {
        if let Err(error) = self.admit(class) {
            return (K::default(), Err(error));
        }
        let (kept, answer) = work();
        match &answer {
            Ok(answer) => self.charge(class, answer.charge_ru(), key),
            // The partition that has the range now is asked next, and charges.
            Err(error) if error.kind == Kind::RangeGone => {}
            Err(error) => self.charge(class, error.charge_ru, key),
        }
        (kept, answer)
    }

    fn place<'a>(&'a self, settings: &'a super::Settings) -> MeteredRange<'a> {
        MeteredRange {
            supply: self.owner.supply(),
            env: self.env.as_ref(),
            key: &settings.definition.partition_key,
            min: &self.min,
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        self.meter.figures(self.env.as_ref())
    }

    /// What this partition may spend per second.
    pub(crate) fn share_ru(&self) -> f64 {
        self.owner.supply().share_ru()
    }

    pub(crate) fn hot_keys(&self, count: usize) -> Vec<HotKey> {
        self.meter.hot_keys(count)
    }

    pub(crate) fn owner(&self) -> &Arc<ContainerCore> {
        &self.owner
    }
}
