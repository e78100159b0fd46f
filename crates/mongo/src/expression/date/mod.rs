//! Dates: milliseconds since 1970, in the calendar of Gregory for all times, and in time zones.

pub mod calendar;
pub(crate) mod difference;
pub mod format;
pub(crate) mod parts;
pub mod read;
pub(crate) mod shift;
pub(crate) mod truncate;
pub mod unit;
pub mod zone;

pub use calendar::Civil;
pub use unit::Unit;
pub use zone::Zone;

use super::value::type_name;
use crate::error::{Error, Result};
use crate::value::Bson;

/// A date as texts of errors show it.
pub fn show(ms: i64) -> String {
    format::iso(ms).unwrap_or_else(|_| format!("Date({ms})"))
}

/// The milliseconds of a date, a timestamp or an object id; `None` where it is null.
pub(crate) fn milliseconds(value: Option<&Bson>, code: i32) -> Result<Option<i64>> {
    match value {
        None | Some(Bson::Null | Bson::Undefined) => Ok(None),
        Some(Bson::Date(ms)) => Ok(Some(*ms)),
        Some(Bson::Timestamp { seconds, .. }) => Ok(Some(i64::from(*seconds) * 1000)),
        Some(Bson::ObjectId([a, b, c, d, ..])) => {
            Ok(Some(i64::from(u32::from_be_bytes([*a, *b, *c, *d])) * 1000))
        }
        other => Err(Error::new(code, format!("can't convert from BSON type {} to Date", type_name(other)))),
    }
}
