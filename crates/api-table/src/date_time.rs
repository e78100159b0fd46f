//! Times as ticks: steps of 100 ns since the first of January of the year 1, as .NET counts them.
//!
//! `Edm.DateTime` values, timestamps, etags and the times of shared access signatures are all read and written here.

/// Steps of 100 ns in a second.
pub const TICKS_PER_S: u64 = 10_000_000;
/// 1970-01-01.
pub const UNIX_EPOCH_TICKS: u64 = 621_355_968_000_000_000;
/// 9999-12-31T23:59:59.9999999.
pub const TICKS_MAX: u64 = 3_155_378_975_999_999_999;

const SECONDS_PER_DAY: u64 = 86_400;
/// Days from 0001-01-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_162;

/// Ticks of a second since 1970.
pub fn of_unix_seconds(seconds: u64) -> u64 {
    (UNIX_EPOCH_TICKS + seconds.saturating_mul(TICKS_PER_S)).min(TICKS_MAX)
}

/// How long the text of a time is.
pub const TEXT_BYTES: usize = 28;

/// The text with its seven digits: `2021-01-04T22:25:57.4388744Z`.
pub fn bytes(ticks: u64) -> [u8; TEXT_BYTES] {
    let ticks = ticks.min(TICKS_MAX);
    let (seconds, fraction) = (ticks / TICKS_PER_S, ticks % TICKS_PER_S);
    let (days, second) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
    let (year, month, day) = civil(days as i64 - EPOCH_DAYS);
    let mut text = *b"0000-00-00T00:00:00.0000000Z";
    let mut digits = |from: usize, to: usize, mut number: u64| {
        for place in text[from..to].iter_mut().rev() {
            *place = b'0' + (number % 10) as u8;
            number /= 10;
        }
    };
    digits(0, 4, year);
    digits(5, 7, month);
    digits(8, 10, day);
    digits(11, 13, second / 3600);
    digits(14, 16, second / 60 % 60);
    digits(17, 19, second % 60);
    digits(20, 27, fraction);
    text
}

pub fn write(ticks: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&bytes(ticks));
}

pub fn text(ticks: u64) -> String {
    String::from_utf8_lossy(&bytes(ticks)).into_owned()
}

/// Year, month and day of a count of days since 1970.
fn civil(days: i64) -> (u64, u64, u64) {
    // Eras of 400 years that begin in March, so that the leap day comes last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year as u64, month as u64, day as u64)
}

/// Days since 1970 of a date.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Reads an ISO 8601 time: a date alone, with hours and minutes, with seconds, with a fraction; in UTC unless an offset
/// says otherwise. Digits of the fraction beyond the seventh are dropped.
pub fn parse(text: &str) -> Option<u64> {
    let mut from = Reader(text.trim().as_bytes());
    let year = from.number(4)?;
    from.expect(b'-')?;
    let month = from.number(2)?;
    from.expect(b'-')?;
    let day = from.number(2)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let in_month = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1 || !(1..=in_month).contains(&day) {
        return None;
    }
    let (mut second, mut fraction, mut offset) = (0, 0, 0);
    if from.take(b'T') || from.take(b't') || from.take(b' ') {
        let (hour, minute) = (from.number(2)?, from.expect(b':').and_then(|()| from.number(2))?);
        let seconds = if from.take(b':') { from.number(2)? } else { 0 };
        if hour > 23 || minute > 59 || seconds > 59 {
            return None;
        }
        second = hour * 3600 + minute * 60 + seconds;
        if from.take(b'.') {
            fraction = from.fraction()?;
        }
        offset = from.offset()?;
    }
    if !from.0.is_empty() {
        return None;
    }
    let since_epoch = days(year, month, day) * SECONDS_PER_DAY as i64 + second - offset;
    let ticks = UNIX_EPOCH_TICKS as i64 + since_epoch * TICKS_PER_S as i64 + fraction;
    u64::try_from(ticks).ok().filter(|ticks| *ticks <= TICKS_MAX)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self, wanted: u8) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if *first == wanted => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        self.take(wanted).then_some(())
    }

    fn number(&mut self, width: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(width)?;
        self.0 = rest;
        digits
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    /// The digits of a fraction, in ticks.
    fn fraction(&mut self) -> Option<i64> {
        let length = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        if digits.is_empty() {
            return None;
        }
        let digit = |place: usize| digits.get(place).map_or(0, |digit| i64::from(digit - b'0'));
        Some((0..7).fold(0, |number, place| number * 10 + digit(place)))
    }

    /// `Z`, nothing, or `±hh:mm`, in seconds.
    fn offset(&mut self) -> Option<i64> {
        if self.0.is_empty() || self.take(b'Z') || self.take(b'z') {
            return Some(0);
        }
        let sign = if self.take(b'+') { 1 } else { self.expect(b'-').map(|()| -1)? };
        let hours = self.number(2)?;
        self.take(b':');
        let minutes = self.number(2)?;
        (hours <= 14 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_all_their_forms_and_written_in_one() {
        for (given, expected) in [
            ("2021-01-04T22:25:57.4388744Z", "2021-01-04T22:25:57.4388744Z"),
            ("2021-01-04T22:25:57.4388744Z ", "2021-01-04T22:25:57.4388744Z"),
            ("2020-02-29T01:02:03Z", "2020-02-29T01:02:03.0000000Z"),
            ("2020-01-01", "2020-01-01T00:00:00.0000000Z"),
            ("2020-01-01T05:06Z", "2020-01-01T05:06:00.0000000Z"),
            ("2020-01-01T05:06:07", "2020-01-01T05:06:07.0000000Z"),
            ("2020-01-01T05:06:07.12345678901Z", "2020-01-01T05:06:07.1234567Z"),
            ("2020-01-01T00:30:00+01:00", "2019-12-31T23:30:00.0000000Z"),
            ("2020-12-31T23:30:00-0100", "2021-01-01T00:30:00.0000000Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.0000000Z"),
            ("1601-01-01T00:00:00.0000001Z", "1601-01-01T00:00:00.0000001Z"),
            ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
        ] {
            assert_eq!(parse(given).map(text).as_deref(), Some(expected), "{given}");
        }
        assert_eq!(parse("1970-01-01T00:00:00Z"), Some(UNIX_EPOCH_TICKS));
        assert_eq!(parse("9999-12-31T23:59:59.9999999Z"), Some(TICKS_MAX));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for given in [
            "",
            "2020",
            "2020-13-01",
            "2021-02-29",
            "2020-01-00",
            "0000-01-01",
            "2020-01-01T24:00:00Z",
            "2020-01-01T",
            "2020-01-01T01:02:03.Z",
            "2020-01-01T01:02:03Zx",
            "2020-01-01T01:02:03+1",
            "0001-01-01T00:00:00+01:00",
            "20é0-01-01",
            "9999-12-31T23:59:59-01:00",
        ] {
            assert_eq!(parse(given), None, "{given}");
        }
    }
}
