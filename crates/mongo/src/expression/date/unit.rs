//! Units of time, and days that a week may begin with.

use crate::error::{Error, Result};
use crate::expression::value::type_name;
use crate::value::Bson;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

impl Unit {
    pub fn parse(text: &str) -> Option<Unit> {
        Some(match text {
            "year" => Unit::Year,
            "quarter" => Unit::Quarter,
            "month" => Unit::Month,
            "week" => Unit::Week,
            "day" => Unit::Day,
            "hour" => Unit::Hour,
            "minute" => Unit::Minute,
            "second" => Unit::Second,
            "millisecond" => Unit::Millisecond,
            _ => return None,
        })
    }

    /// Milliseconds of one; `None` where they differ from one to the next.
    pub fn ms(self) -> Option<i64> {
        Some(match self {
            Unit::Year | Unit::Quarter | Unit::Month => return None,
            Unit::Week => 604_800_000,
            Unit::Day => 86_400_000,
            Unit::Hour => 3_600_000,
            Unit::Minute => 60_000,
            Unit::Second => 1000,
            Unit::Millisecond => 1,
        })
    }

    /// Months of one, of the units that have them.
    pub fn months(self) -> Option<i64> {
        match self {
            Unit::Year => Some(12),
            Unit::Quarter => Some(3),
            Unit::Month => Some(1),
            _ => None,
        }
    }
}

/// The unit of `$dateDiff` and `$dateTrunc`; `None` where it is null.
pub(super) fn of_value(name: &str, value: Option<&Bson>) -> Result<Option<Unit>> {
    match value {
        None | Some(Bson::Null | Bson::Undefined) => Ok(None),
        Some(Bson::String(text)) => Unit::parse(text).map(Some).ok_or_else(|| {
            Error::new(
                5_439_014,
                format!("{name} parameter 'unit' value cannot be recognized as a time unit: {text}"),
            )
        }),
        other => {
            let text = format!("{name} requires 'unit' to be a string, but got {}", type_name(other));
            Err(Error::new(5_439_013, text))
        }
    }
}

/// The first day of weeks, 0 for Sunday; `None` where it is null.
pub(super) fn weekday(name: &str, value: Option<&Bson>) -> Result<Option<i64>> {
    let text = match value {
        None | Some(Bson::Null | Bson::Undefined) => return Ok(None),
        Some(Bson::String(text)) => text,
        other => {
            let text = format!("{name} requires 'startOfWeek' to be a string, but got {}", type_name(other));
            return Err(Error::new(5_439_015, text));
        }
    };
    let days = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    let lower = text.to_ascii_lowercase();
    let found = days.iter().position(|day| **day == lower || (lower.len() == 3 && day.starts_with(&lower)));
    found.map(|day| Some(day as i64)).ok_or_else(|| {
        let text =
            format!("{name} parameter 'startOfWeek' value cannot be recognized as a day of a week: {text}");
        Error::new(5_439_016, text)
    })
}
