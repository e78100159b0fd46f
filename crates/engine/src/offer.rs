//! Throughput: what a database or a container has been given, and what it may be given.
//!
//! An offer is either *manual* (a fixed number of RU/s) or *autoscale* (a maximum; between a tenth of it and all of
//! it is in force at any moment). The lowest value that an offer may be set to grows with the highest it ever had
//! and with the storage it ever held, as on the service: a hundredth of the highest manual value, a tenth of the
//! highest autoscale maximum, one RU/s (autoscale: ten) for each GB.

use crate::error::{Error, Result};
use crate::etag::Etag;
use crate::throughput::BUCKETS_MAX;

/// Lowest manual throughput.
pub const MANUAL_MIN: u32 = 400;
/// Lowest autoscale maximum.
pub const AUTOSCALE_MIN: u32 = 1_000;
/// Manual throughput comes in steps of this.
pub const MANUAL_STEP: u32 = 100;
/// Autoscale maxima come in steps of this.
pub const AUTOSCALE_STEP: u32 = 1_000;
/// Containers that may share a database's lowest throughput, and what each further one adds to it.
pub const SHARED_CONTAINERS_FREE: usize = 25;
pub const SHARED_CONTAINER_MANUAL: u32 = 100;
pub const SHARED_CONTAINER_AUTOSCALE: u32 = 1_000;
/// Highest throughput of one database or container.
pub const THROUGHPUT_MAX: u32 = 1_000_000;
/// Highest throughput of a container without a partition key.
pub const FIXED_THROUGHPUT_MAX: u32 = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throughput {
    Manual(u32),
    /// A performance level of a container without a key: what there was before throughput could be chosen freely.
    Level(Level),
    Autoscale {
        max: u32,
        /// By how much the maximum may be raised at a time; `None`: not said, which a client tells from 0.
        increment_percent: Option<u32>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    S1,
    S2,
    S3,
}

/// The performance levels, their names and their RU/s.
const LEVELS: [(Level, &str, u32); 3] =
    [(Level::S1, "S1", 250), (Level::S2, "S2", 1_000), (Level::S3, "S3", 2_500)];

impl Level {
    /// The level of this name; names are compared as clients write them, `S1` or `s1`.
    pub fn by_name(name: &str) -> Option<Level> {
        LEVELS.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name)).map(|(level, ..)| *level)
    }

    pub fn name(self) -> &'static str {
        LEVELS[self as usize].1
    }

    pub fn ru(self) -> u32 {
        LEVELS[self as usize].2
    }

    /// The level of this many RU/s.
    pub(crate) fn of_ru(ru: u32) -> Option<Level> {
        LEVELS.iter().find(|(.., known)| *known == ru).map(|(level, ..)| *level)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OfferOwner {
    Database(u32),
    /// Database and container.
    Container(u32, u32),
}

impl OfferOwner {
    pub(crate) fn database(self) -> u32 {
        match self {
            OfferOwner::Database(database) | OfferOwner::Container(database, _) => database,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// 24 bits.
    pub number: u32,
    pub owner: OfferOwner,
    pub throughput: Throughput,
    /// The lowest value this offer may be set to.
    pub minimum: u32,
    /// The highest throughput this offer ever had.
    pub throughput_max_ever: u32,
    /// The most storage its owner held when the offer was last set.
    pub storage_max_ever_kb: u64,
    /// The percentage of the throughput that each throughput bucket may use.
    pub buckets: [u8; BUCKETS_MAX],
    pub etag: Etag,
    pub ts: u32,
}

/// What the replacement of an offer asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfferChange {
    pub throughput: Throughput,
    /// `None` leaves the throughput buckets as they are.
    pub buckets: Option<[u8; BUCKETS_MAX]>,
}

impl From<Throughput> for OfferChange {
    fn from(throughput: Throughput) -> OfferChange {
        OfferChange { throughput, buckets: None }
    }
}

impl Throughput {
    /// Reads the value of a request for manual throughput.
    pub fn manual(ru: i64) -> Result<Throughput> {
        let ru = u32::try_from(ru).map_err(|_| out_of_range(MANUAL_MIN, THROUGHPUT_MAX))?;
        Ok(Throughput::Manual(ru))
    }

    /// Reads the values of a request for autoscale throughput.
    pub fn autoscale(max: i64, increment_percent: Option<i64>) -> Result<Throughput> {
        if max < i64::from(AUTOSCALE_MIN) {
            return Err(below_minimum(max, AUTOSCALE_MIN));
        }
        let max = u32::try_from(max).map_err(|_| out_of_steps(AUTOSCALE_MIN))?;
        let increment_percent = increment_percent.map(u32::try_from).transpose().map_err(|_| {
            Error::bad_request("The increment percent of an autoscale policy cannot be negative.")
        })?;
        Ok(Throughput::Autoscale { max, increment_percent })
    }

    /// The same highest RU/s, fixed.
    pub fn to_manual(self) -> Throughput {
        Throughput::Manual(self.ceiling())
    }

    /// The same highest RU/s, or the next above it that autoscale has, on demand.
    pub fn to_autoscale(self) -> Throughput {
        Throughput::Autoscale {
            max: self.ceiling().next_multiple_of(AUTOSCALE_STEP),
            increment_percent: None,
        }
    }

    /// The highest RU/s that this throughput allows.
    pub fn ceiling(self) -> u32 {
        match self {
            Throughput::Manual(ru) => ru,
            Throughput::Level(level) => level.ru(),
            Throughput::Autoscale { max, .. } => max,
        }
    }

    /// The lowest value for an offer of this mode with this history.
    pub fn minimum(self, throughput_max_ever: u32, storage_max_ever_kb: u64) -> u32 {
        let storage_gb = u32::try_from(storage_max_ever_kb.div_ceil(1024 * 1024)).unwrap_or(THROUGHPUT_MAX);
        match self {
            Throughput::Level(_) => Level::S1.ru(),
            Throughput::Manual(_) => {
                let lowest = MANUAL_MIN.max(throughput_max_ever / 100).max(storage_gb);
                lowest.next_multiple_of(MANUAL_STEP).min(THROUGHPUT_MAX)
            }
            Throughput::Autoscale { .. } => {
                let lowest = AUTOSCALE_MIN.max(throughput_max_ever / 10).max(storage_gb.saturating_mul(10));
                lowest.min(THROUGHPUT_MAX).next_multiple_of(AUTOSCALE_STEP)
            }
        }
    }

    /// The same for a database whose throughput so many containers share: those beyond the first 25 ask for more.
    pub fn minimum_of(self, throughput_max_ever: u32, storage_max_ever_kb: u64, containers: usize) -> u32 {
        let beyond = u32::try_from(containers.saturating_sub(SHARED_CONTAINERS_FREE)).unwrap_or(u32::MAX);
        let (first, each) = match self {
            Throughput::Manual(_) | Throughput::Level(_) => (MANUAL_MIN, SHARED_CONTAINER_MANUAL),
            Throughput::Autoscale { .. } => (AUTOSCALE_MIN, SHARED_CONTAINER_AUTOSCALE),
        };
        let shared = first.saturating_add(each.saturating_mul(beyond)).min(THROUGHPUT_MAX);
        self.minimum(throughput_max_ever, storage_max_ever_kb).max(shared)
    }

    pub(crate) fn check_new(self) -> Result<()> {
        self.check_levels(false)?;
        self.check_within(self.minimum(0, 0), THROUGHPUT_MAX)
    }

    pub(crate) fn check_new_fixed(self) -> Result<()> {
        self.check_within(self.minimum(0, 0), FIXED_THROUGHPUT_MAX)
    }

    pub(crate) fn check_replace(
        self,
        throughput_max_ever: u32,
        storage_max_ever_kb: u64,
        fixed: bool,
        containers: usize,
    ) -> Result<()> {
        self.check_levels(fixed)?;
        let max = if fixed { FIXED_THROUGHPUT_MAX } else { THROUGHPUT_MAX };
        self.check_within(self.minimum_of(throughput_max_ever, storage_max_ever_kb, containers), max)
    }

    /// What has a partition key chooses its throughput freely.
    fn check_levels(self, fixed: bool) -> Result<()> {
        match self {
            Throughput::Level(level) if !fixed => Err(Error::bad_request(format!(
                "The offer type '{}' is for collections without a partition key. Please specify the throughput instead.",
                level.name()
            ))),
            _ => Ok(()),
        }
    }

    fn check_within(self, min: u32, max: u32) -> Result<()> {
        match self {
            Throughput::Level(_) => Ok(()),
            Throughput::Manual(ru) => match (min..=max).contains(&ru) && ru.is_multiple_of(MANUAL_STEP) {
                true => Ok(()),
                false => Err(out_of_range(min, max)),
            },
            Throughput::Autoscale { max: asked, .. } if asked < min => Err(below_minimum(asked.into(), min)),
            Throughput::Autoscale { max: asked, .. } => {
                match asked <= max && asked.is_multiple_of(AUTOSCALE_STEP) {
                    true => Ok(()),
                    false => Err(out_of_steps(min)),
                }
            }
        }
    }
}

fn out_of_range(min: u32, max: u32) -> Error {
    Error::bad_request(format!(
        "The offer should have valid throughput values between {min} and {max} inclusive in increments of {MANUAL_STEP}."
    ))
}

fn out_of_steps(min: u32) -> Error {
    Error::bad_request(format!(
        "The offer should have valid maximum throughput values between {min} and {THROUGHPUT_MAX} inclusive in \
         increments of {AUTOSCALE_STEP}."
    ))
}

fn below_minimum(asked: i64, min: u32) -> Error {
    Error::bad_request(format!("Requested throughput {asked} is less than required minimum throughput {min}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_changes_its_mode_without_losing_any() {
        let autoscale = |max| Throughput::Autoscale { max, increment_percent: None };
        assert_eq!(Throughput::Manual(400).to_autoscale(), autoscale(1_000));
        assert_eq!(Throughput::Manual(4_000).to_autoscale(), autoscale(4_000));
        assert_eq!(Throughput::Manual(4_100).to_autoscale(), autoscale(5_000));
        assert_eq!(autoscale(5_000).to_manual(), Throughput::Manual(5_000));
        assert_eq!(Throughput::Level(Level::S2).to_manual(), Throughput::Manual(1_000));
    }

    fn refusal(result: Result<()>) -> String {
        result.expect_err("must be refused").message
    }

    #[test]
    fn performance_levels_are_for_containers_without_a_key() {
        for (level, name, ru) in LEVELS {
            assert_eq!(
                (Level::by_name(name), Level::of_ru(ru), level.name()),
                (Some(level), Some(level), name)
            );
            Throughput::Level(level).check_new_fixed().unwrap();
            assert!(refusal(Throughput::Level(level).check_new()).contains(name));
            assert!(Throughput::Level(level).check_replace(0, 0, false, 0).is_err());
        }
        assert_eq!(Level::by_name("S4"), None);
    }

    #[test]
    fn manual_throughput_comes_in_hundreds_from_four_hundred() {
        for ru in [400, 500, 10_100, 1_000_000] {
            Throughput::Manual(ru).check_new().unwrap();
        }
        for ru in [0, 100, 399, 450, 1_000_100] {
            let message = refusal(Throughput::Manual(ru).check_new());
            assert!(message.contains("between 400 and 1000000 inclusive in increments of 100"), "{message}");
        }
        assert!(Throughput::manual(-1).is_err());
    }

    #[test]
    fn autoscale_below_its_minimum_is_named_with_the_value() {
        let error = Throughput::autoscale(-200, None).unwrap_err();
        assert_eq!(error.message, "Requested throughput -200 is less than required minimum throughput 1000");
        let message = refusal(Throughput::Autoscale { max: 1_500, increment_percent: None }.check_new());
        assert!(message.contains("increments of 1000"), "{message}");
        Throughput::autoscale(7_000, None).unwrap().check_new().unwrap();
    }

    #[test]
    fn a_container_without_a_key_gets_ten_thousand_at_most() {
        Throughput::Manual(10_000).check_new_fixed().unwrap();
        assert!(Throughput::Manual(10_100).check_new_fixed().is_err());
    }

    #[test]
    fn the_minimum_grows_with_the_highest_throughput_and_storage_ever() {
        let manual = Throughput::Manual(400);
        assert_eq!(manual.minimum(400, 0), 400);
        assert_eq!(manual.minimum(100_000, 0), 1_000);
        assert_eq!(manual.minimum(100_050, 0), 1_000);
        assert_eq!(manual.minimum(400, 750 * 1024 * 1024), 800);
        let autoscale = Throughput::Autoscale { max: 1_000, increment_percent: None };
        assert_eq!(autoscale.minimum(1_000, 0), 1_000);
        assert_eq!(autoscale.minimum(50_000, 0), 5_000);
        assert_eq!(autoscale.minimum(1_000, 250 * 1024 * 1024), 3_000);
        assert!(manual.check_replace(100_000, 0, false, 0).is_err());
        assert_eq!(manual.minimum(0, u64::MAX), THROUGHPUT_MAX);
        assert_eq!((manual.minimum_of(0, 0, 25), manual.minimum_of(0, 0, 28)), (400, 700));
        assert_eq!(autoscale.minimum_of(0, 0, 27), 3_000);
    }
}
