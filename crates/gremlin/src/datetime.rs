//! Dates: an instant and the offset it was written with.

use std::fmt;

use jiff::{SignedDuration, Timestamp, tz::Offset, tz::TimeZone};

/// An instant with an offset from UTC. Two with the same instant are the same date.
#[derive(Clone, Copy, Debug)]
pub struct DateTime {
    instant: Timestamp,
    offset_seconds: i32,
}

impl DateTime {
    /// None when it lies beyond the calendar (years -9999 to 9999) or the offset beyond a day.
    pub fn new(epoch_seconds: i64, nanos: u32, offset_seconds: i32) -> Option<DateTime> {
        Offset::from_seconds(offset_seconds).ok()?;
        let instant = Timestamp::new(epoch_seconds, i32::try_from(nanos).ok()?).ok()?;
        Some(DateTime { instant, offset_seconds })
    }

    pub fn from_epoch_millis(millis: i64) -> Option<DateTime> {
        Some(DateTime { instant: Timestamp::from_millisecond(millis).ok()?, offset_seconds: 0 })
    }

    pub fn now() -> DateTime {
        DateTime { instant: Timestamp::now(), offset_seconds: 0 }
    }

    /// ISO 8601: a date, with or without a time, a fraction and an offset; UTC when none is given.
    pub fn parse(text: &str) -> Option<DateTime> {
        let text = text.trim();
        let (date, time) = match text.find(['T', 't', ' ']) {
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (text, "00:00"),
        };
        let (clock, offset) = match time.find(['Z', 'z', '+', '-']) {
            Some(at) => (&time[..at], &time[at..]),
            None => (time, "Z"),
        };
        let clock = if clock.len() == 2 { format!("{clock}:00") } else { clock.to_owned() };
        let civil: jiff::civil::DateTime = format!("{date}T{clock}").parse().ok()?;
        let offset_seconds = parse_offset(offset)?;
        let zone = TimeZone::fixed(Offset::from_seconds(offset_seconds).ok()?);
        let instant = civil.to_zoned(zone).ok()?.timestamp();
        Some(DateTime { instant, offset_seconds })
    }

    pub fn instant(&self) -> Timestamp {
        self.instant
    }

    pub fn epoch_seconds(&self) -> i64 {
        self.instant.as_nanosecond().div_euclid(1_000_000_000) as i64
    }

    pub fn nanos(&self) -> u32 {
        self.instant.as_nanosecond().rem_euclid(1_000_000_000) as u32
    }

    pub fn epoch_millis(&self) -> i64 {
        self.instant.as_nanosecond().div_euclid(1_000_000) as i64
    }

    pub fn offset_seconds(&self) -> i32 {
        self.offset_seconds
    }

    /// None when it would leave the calendar.
    pub fn plus_seconds(&self, seconds: i64) -> Option<DateTime> {
        let instant = self.instant.checked_add(SignedDuration::from_secs(seconds)).ok()?;
        Some(DateTime { instant, ..*self })
    }

    pub fn civil(&self) -> jiff::civil::DateTime {
        let offset = Offset::from_seconds(self.offset_seconds).unwrap_or(Offset::UTC);
        offset.to_datetime(self.instant)
    }
}

fn parse_offset(text: &str) -> Option<i32> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    if !digits.bytes().all(|b| b.is_ascii_digit()) || !matches!(digits.len(), 2 | 4 | 6) {
        return None;
    }
    let part = |at: usize| digits.get(at..at + 2).map_or(Some(0), |part| part.parse::<i32>().ok());
    Some(sign * (part(0)? * 3600 + part(2)? * 60 + part(4)?))
}

impl fmt::Display for DateTime {
    /// As the JVM writes an OffsetDateTime: seconds and fractions only where they are not zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let civil = self.civil();
        write!(f, "{}T{:02}:{:02}", civil.date(), civil.hour(), civil.minute())?;
        let nanos = civil.subsec_nanosecond();
        if civil.second() != 0 || nanos != 0 {
            write!(f, ":{:02}", civil.second())?;
        }
        if nanos != 0 {
            let digits = format!("{nanos:09}");
            let kept = match nanos {
                n if n % 1_000_000 == 0 => 3,
                n if n % 1_000 == 0 => 6,
                _ => 9,
            };
            write!(f, ".{}", &digits[..kept])?;
        }
        match self.offset_seconds {
            0 => f.write_str("Z"),
            offset => {
                let sign = if offset < 0 { '-' } else { '+' };
                let offset = offset.abs();
                write!(f, "{sign}{:02}:{:02}", offset / 3600, offset / 60 % 60)
            }
        }
    }
}
