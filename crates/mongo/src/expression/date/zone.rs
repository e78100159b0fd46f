//! Time zones: offsets like `+04:30`, and names of the Olson database, which is compiled in.

use std::sync::OnceLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::error::{Error, Result};
use crate::expression::value::{show, type_name};
use crate::value::Bson;

#[derive(Clone, Debug)]
pub enum Zone {
    /// Seconds east of Greenwich.
    Fixed(i64),
    Named(TimeZone),
}

/// The last instant that the database knows of: beyond, and before the opposite, offsets stay what they are there.
const KNOWN_SECONDS: i64 = 253_000_000_000;

impl Zone {
    pub const UTC: Zone = Zone::Fixed(0);

    pub fn parse(text: &str) -> Result<Zone> {
        let unknown = || Error::new(40485, format!("unrecognized time zone identifier: \"{text}\""));
        if matches!(text, "UTC" | "GMT" | "Z") {
            return Ok(Zone::UTC);
        }
        if text.starts_with(['+', '-']) {
            return offset(text).map(Zone::Fixed).ok_or_else(unknown);
        }
        static DATABASE: OnceLock<TimeZoneDatabase> = OnceLock::new();
        let database = DATABASE.get_or_init(TimeZoneDatabase::bundled);
        database.get(text).map(Zone::Named).map_err(|_| unknown())
    }

    /// The zone that an expression gave; `None` where it is null. `code` is that of a value that is no text.
    pub(crate) fn of_value(value: Option<&Bson>, code: i32) -> Result<Option<Zone>> {
        match value {
            None | Some(Bson::Null | Bson::Undefined) => Ok(None),
            Some(Bson::String(text)) => Zone::parse(text).map(Some),
            other => {
                let text = format!(
                    "timezone must evaluate to a string, found {} ({})",
                    type_name(other),
                    show(other)
                );
                Err(Error::new(code, text))
            }
        }
    }

    /// Seconds east of Greenwich at an instant.
    pub fn offset_at(&self, ms: i64) -> i64 {
        match self {
            Zone::Fixed(seconds) => *seconds,
            Zone::Named(zone) => {
                let seconds = ms.div_euclid(1000).clamp(-KNOWN_SECONDS, KNOWN_SECONDS);
                jiff::Timestamp::from_second(seconds).map_or(0, |at| zone.to_offset(at).seconds().into())
            }
        }
    }

    /// Milliseconds of the clock on the wall.
    pub fn to_local(&self, ms: i64) -> i64 {
        ms.saturating_add(self.offset_at(ms) * 1000)
    }

    /// The instant of a clock on the wall. Of an hour that comes twice the first, one that is left out an hour later.
    pub fn of_local(&self, local: i64) -> i64 {
        let Zone::Named(_) = self else { return local.saturating_sub(self.offset_at(local) * 1000) };
        let day = super::calendar::DAY_MS;
        let before = self.offset_at(local.saturating_sub(day)) * 1000;
        let after = self.offset_at(local.saturating_add(day)) * 1000;
        for offset in [before, after] {
            let instant = local.saturating_sub(offset);
            if self.offset_at(instant) * 1000 == offset {
                return instant;
            }
        }
        local.saturating_sub(before)
    }

    pub fn is_utc(&self) -> bool {
        matches!(self, Zone::Fixed(0))
    }
}

/// `+hh`, `+hhmm` or `+hh:mm`, in seconds.
pub(super) fn offset(text: &str) -> Option<i64> {
    let negative = text.starts_with('-');
    let digits = text.strip_prefix(['+', '-'])?;
    let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse::<i64>().ok(),
        false => None,
    };
    let (hours, minutes) = match digits.len() {
        2 => (number(digits)?, 0),
        4 => (number(digits.get(..2)?)?, number(digits.get(2..)?)?),
        5 if digits.as_bytes()[2] == b':' => (number(digits.get(..2)?)?, number(digits.get(3..)?)?),
        _ => return None,
    };
    let seconds = hours * 3600 + minutes * 60;
    Some(if negative { -seconds } else { seconds })
}
