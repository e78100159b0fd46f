//! Dates and times: ISO 8601 strings, 100-nanosecond ticks since 1970, and the parts between.
//!
//! Strings are read as `YYYY-MM-DD`, optionally with `T` or a blank, `hh:mm:ss`, up to seven digits of a
//! fraction, and `Z`. They are always written with all seven digits. Years are 1 to 9999.

pub(crate) const TICKS_PER_SECOND: i64 = 10_000_000;
pub(crate) const TICKS_PER_DAY: i64 = 86_400 * TICKS_PER_SECOND;

/// A moment taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    /// 100-nanosecond steps of the second.
    pub fraction: i64,
}

impl Moment {
    pub fn ticks(&self) -> Option<i64> {
        let valid = (1..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second)
            && (0..TICKS_PER_SECOND).contains(&self.fraction);
        if !valid {
            return None;
        }
        let days = days_from_civil(self.year, self.month, self.day);
        let seconds = self.hour * 3600 + self.minute * 60 + self.second;
        Some(days * TICKS_PER_DAY + seconds * TICKS_PER_SECOND + self.fraction)
    }

    /// The moment of ticks since 1970; `None` outside the years 1 to 9999.
    pub fn from_ticks(ticks: i64) -> Option<Moment> {
        let (year, month, day) = civil_from_days(ticks.div_euclid(TICKS_PER_DAY));
        let rest = ticks.rem_euclid(TICKS_PER_DAY);
        let seconds = rest / TICKS_PER_SECOND;
        let moment = Moment {
            year,
            month,
            day,
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            fraction: rest % TICKS_PER_SECOND,
        };
        (1..=9999).contains(&year).then_some(moment)
    }

    pub fn parse(text: &str) -> Option<Moment> {
        let bytes = text.as_bytes();
        let bytes = bytes.strip_suffix(b"Z").unwrap_or(bytes);
        let mut moment = Moment {
            year: digits(bytes, 0, 4)?,
            month: digits(bytes, 5, 2)?,
            day: digits(bytes, 8, 2)?,
            hour: 0,
            minute: 0,
            second: 0,
            fraction: 0,
        };
        if bytes.get(4) != Some(&b'-') || bytes.get(7) != Some(&b'-') {
            return None;
        }
        if bytes.len() > 10 {
            if !matches!(bytes[10], b'T' | b' ')
                || bytes.get(13) != Some(&b':')
                || bytes.get(16) != Some(&b':')
            {
                return None;
            }
            moment.hour = digits(bytes, 11, 2)?;
            moment.minute = digits(bytes, 14, 2)?;
            moment.second = digits(bytes, 17, 2)?;
        }
        if bytes.len() > 19 {
            let count = bytes.len() - 20;
            if bytes[19] != b'.' || !(1..=7).contains(&count) {
                return None;
            }
            moment.fraction = digits(bytes, 20, count)? * 10i64.pow(7 - count as u32);
        }
        // Rejects the thirtieth of February and the like.
        moment.ticks()?;
        Some(moment)
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Moment { year, month, day, hour, minute, second, fraction } = self;
        write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z")
    }
}

fn digits(bytes: &[u8], start: usize, count: usize) -> Option<i64> {
    let part = bytes.get(start..start + count)?;
    part.iter()
        .try_fold(0i64, |value, byte| byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0')))
}

pub(crate) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970 of a date of the Gregorian calendar. Years are counted from March, so that the leap
/// day is the last of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// A part of a date, by any of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

const PART_NAMES: &[(&[&str], Part)] = &[
    (&["year", "yyyy", "yy"], Part::Year),
    (&["month", "mm", "m"], Part::Month),
    (&["day", "dd", "d"], Part::Day),
    (&["hour", "hh"], Part::Hour),
    (&["minute", "mi", "n"], Part::Minute),
    (&["second", "ss", "s"], Part::Second),
    (&["millisecond", "ms"], Part::Millisecond),
    (&["microsecond", "mcs"], Part::Microsecond),
    (&["nanosecond", "ns"], Part::Nanosecond),
];

impl Part {
    pub fn parse(name: &str) -> Option<Part> {
        let named = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        PART_NAMES.iter().find(|(names, _)| named(names)).map(|(_, part)| *part)
    }

    /// Ticks of parts that always last the same; nanoseconds are given for a hundred.
    pub fn ticks(self) -> Option<i64> {
        Some(match self {
            Part::Year | Part::Month => return None,
            Part::Day => TICKS_PER_DAY,
            Part::Hour => 3600 * TICKS_PER_SECOND,
            Part::Minute => 60 * TICKS_PER_SECOND,
            Part::Second => TICKS_PER_SECOND,
            Part::Millisecond => TICKS_PER_SECOND / 1000,
            Part::Microsecond => 10,
            Part::Nanosecond => 1,
        })
    }
}

/// A moment with `count` parts added. The day of the month is cut where the month is shorter.
pub(crate) fn add(part: Part, count: i64, ticks: i64) -> Option<i64> {
    let months = match part {
        Part::Year => count.checked_mul(12)?,
        Part::Month => count,
        // A tick is a hundred nanoseconds.
        Part::Nanosecond => return checked(ticks.checked_add(count / 100)?),
        _ => return checked(ticks.checked_add(count.checked_mul(part.ticks()?)?)?),
    };
    let moment = Moment::from_ticks(ticks)?;
    let total = (moment.year * 12 + moment.month - 1).checked_add(months)?;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    Moment { year, month, day: moment.day.min(days_in_month(year, month)), ..moment }.ticks()
}

fn checked(ticks: i64) -> Option<i64> {
    Moment::from_ticks(ticks).map(|_| ticks)
}

/// How many boundaries of a part lie between two moments.
pub(crate) fn difference(part: Part, start: i64, end: i64) -> Option<i64> {
    let (from, to) = (Moment::from_ticks(start)?, Moment::from_ticks(end)?);
    Some(match part {
        Part::Year => to.year - from.year,
        Part::Month => (to.year - from.year) * 12 + to.month - from.month,
        Part::Nanosecond => end.checked_sub(start)?.checked_mul(100)?,
        _ => {
            let size = part.ticks()?;
            end.div_euclid(size) - start.div_euclid(size)
        }
    })
}

/// The start of the bin of `size` parts that a moment falls into, counted from `origin`.
pub(crate) fn bin(ticks: i64, part: Part, size: i64, origin: i64) -> Option<i64> {
    if size <= 0 {
        return None;
    }
    let months = match part {
        Part::Year => size.checked_mul(12)?,
        Part::Month => size,
        Part::Nanosecond => return bin_ticks(ticks, (size / 100).max(1), origin),
        _ => return bin_ticks(ticks, size.checked_mul(part.ticks()?)?, origin),
    };
    let (start, moment) = (Moment::from_ticks(origin)?, Moment::from_ticks(ticks)?);
    let passed = (moment.year - start.year) * 12 + moment.month - start.month;
    let mut bins = passed.div_euclid(months);
    let mut result = add(Part::Month, bins.checked_mul(months)?, origin)?;
    if result > ticks {
        bins -= 1;
        result = add(Part::Month, bins.checked_mul(months)?, origin)?;
    }
    Some(result)
}

fn bin_ticks(ticks: i64, size: i64, origin: i64) -> Option<i64> {
    let passed = ticks.checked_sub(origin)?;
    checked(origin.checked_add(passed.div_euclid(size).checked_mul(size)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_moments_are_inverse() {
        for text in ["0001-01-01", "1600-02-29", "1969-12-31", "1970-01-01", "2024-02-29", "9999-12-31"] {
            let moment = Moment::parse(text).unwrap();
            assert_eq!(Moment::from_ticks(moment.ticks().unwrap()), Some(moment), "{text}");
        }
        assert_eq!(Moment::parse("1970-01-02").unwrap().ticks(), Some(TICKS_PER_DAY));
    }

    #[test]
    fn dates_that_do_not_exist_are_refused() {
        for text in
            ["2023-02-29", "2023-13-01", "2023-1-1", "2023-01-01T24:00:00", "2023-01-01T00:00:00.", ""]
        {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }
}
