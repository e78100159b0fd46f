//! `$dateFromString`, and texts as dates.
//!
//! With a format, a text is read by it to the end. Without one, what people write is understood: `2018-03-20`,
//! `2018-03-20T11:00:06.123+0500`, `March 20, 2018 11:00 am`, `20 Mar 2018`, `03/20/2018`, `20180320`, with names of
//! zones.

use super::calendar::{Civil, DAY_MS, days_in_month, days_of, iso_year_start};
use super::format::MONTHS;
use super::{Zone, zone};
use crate::error::{Error, Result, code};
use crate::expression::arguments::{check_names, document, required};
use crate::expression::parse::Parser;
use crate::expression::table::{Operator, own};
use crate::expression::value::{is_nullish, show, type_name};
use crate::expression::{LazyCall, Node};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[own(
    "$dateFromString",
    parse,
    "{$dateFromString: {dateString, format, timezone, onError, onNull}}",
    "The date that a text says.",
)];

const ARGUMENTS: [&str; 5] = ["dateString", "format", "timezone", "onError", "onNull"];

fn parse(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members = document(argument, 40540, || {
        format!(
            "$dateFromString only supports an object as an argument, found: {}",
            type_name(Some(argument))
        )
    })?;
    check_names(name, members, &ARGUMENTS, 40541)?;
    required(name, members, "dateString", 40542)?;
    Ok(Node::Lazy {
        name,
        run: from_string,
        arguments: parser.named(members, &ARGUMENTS)?,
        variables: Vec::new(),
    })
}

fn from_string(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let evaluated = |at: usize| call.arguments[at].evaluate_in(call.scope);
    let text = evaluated(0)?;
    let failed = |error: Error| {
        if call.arguments[3].is_absent() || error.code != code::CONVERSION_FAILURE {
            Err(error)
        } else {
            evaluated(3)
        }
    };
    if is_nullish(text.as_ref()) {
        return if call.arguments[4].is_absent() { Ok(Some(Bson::Null)) } else { evaluated(4) };
    }
    let Some(text) = text.as_ref().and_then(Bson::as_str) else {
        let message = format!(
            "$dateFromString requires that 'dateString' be a string, found: {} with value {}",
            type_name(text.as_ref()),
            show(text.as_ref())
        );
        return failed(Error::new(code::CONVERSION_FAILURE, message));
    };
    let format = evaluated(1)?;
    let format = match &format {
        _ if call.arguments[1].is_absent() => None,
        value if is_nullish(value.as_ref()) => return Ok(Some(Bson::Null)),
        Some(Bson::String(format)) => Some(&**format),
        other => {
            let text = format!(
                "$dateFromString requires that 'format' be a string, found: {} with value {}",
                type_name(other.as_ref()),
                show(other.as_ref())
            );
            return Err(Error::new(40684, text));
        }
    };
    let zone = if call.arguments[2].is_absent() {
        None
    } else {
        match call.zone(2, 40517)? {
            None => return Ok(Some(Bson::Null)),
            zone => zone,
        }
    };
    let read = match format {
        Some(format) => read_by(text, format, zone),
        None => read(text, zone),
    };
    match read {
        Ok(ms) => Ok(Some(Bson::Date(ms))),
        Err(error) => failed(error),
    }
}

fn wrong(text: &str, why: &str) -> Error {
    Error::new(code::CONVERSION_FAILURE, format!("Error parsing date string '{text}'; {why}"))
}

/// What a text has said so far.
#[derive(Default)]
struct Read {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    ms: i64,
    has_time: bool,
    zone: Option<Zone>,
}

impl Read {
    fn finish(self, text: &str, given: Option<Zone>) -> Result<i64> {
        if given.is_some() && self.zone.is_some() {
            return Err(wrong(
                text,
                "you cannot pass in a date/time string with time zone information together with a timezone argument",
            ));
        }
        let incomplete =
            || wrong(text, "an incomplete date/time string has been found, with elements missing");
        let days = match (self.year, self.iso_year) {
            (Some(_), Some(_)) => {
                return Err(wrong(text, "Mixing of ISO dates with natural dates is not allowed"));
            }
            (Some(year), None) => {
                if self.iso_week.is_some() || self.iso_day.is_some() {
                    return Err(wrong(text, "Mixing of ISO dates with natural dates is not allowed"));
                }
                match (self.day_of_year, self.month, self.day) {
                    (Some(day), ..) => days_of(year, 1, 1) + day - 1,
                    (None, Some(month), Some(day)) => {
                        if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
                            return Err(wrong(text, "The parsed date was invalid"));
                        }
                        days_of(year, month, day)
                    }
                    _ => return Err(incomplete()),
                }
            }
            (None, Some(year)) => {
                iso_year_start(year) + (self.iso_week.unwrap_or(1) - 1) * 7 + self.iso_day.unwrap_or(1) - 1
            }
            (None, None) => return Err(incomplete()),
        };
        if self.hour > 24 || self.minute > 59 || self.second > 60 {
            return Err(wrong(text, "The parsed date was invalid"));
        }
        let civil = Civil {
            hour: self.hour,
            minute: self.minute,
            second: self.second,
            ms: self.ms,
            ..Civil::of(days.saturating_mul(DAY_MS))
        };
        let local = civil.to_ms().ok_or_else(|| wrong(text, "it lies beyond the range of dates"))?;
        Ok(self.zone.or(given).unwrap_or(Zone::UTC).of_local(local))
    }
}

/// A place in a text.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn eat(&mut self, letter: char) -> bool {
        match self.rest.strip_prefix(letter) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn take_while(&mut self, most: usize, test: fn(char) -> bool) -> &'a str {
        let end = self
            .rest
            .char_indices()
            .take(most)
            .take_while(|(_, c)| test(*c))
            .map(|(at, c)| at + c.len_utf8())
            .last();
        let (taken, rest) = self.rest.split_at(end.unwrap_or(0));
        self.rest = rest;
        taken
    }

    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let digits = self.take_while(most, |c| c.is_ascii_digit());
        if digits.len() < least { None } else { digits.parse().ok() }
    }

    fn word(&mut self) -> &'a str {
        self.take_while(40, |c| c.is_ascii_alphabetic() || c == '/' || c == '_')
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// `.123456`: milliseconds of a fraction.
    fn fraction(&mut self) -> Option<i64> {
        let digits = self.take_while(9, |c| c.is_ascii_digit());
        if digits.is_empty() {
            return None;
        }
        format!("{digits:0<3}").get(..3)?.parse().ok()
    }
}

fn month_of(word: &str) -> Option<i64> {
    if word.len() < 3 {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let at = MONTHS.iter().position(|month| {
        let month = month.to_ascii_lowercase();
        month == lower || month[..3] == lower || (lower == "sept" && month.starts_with("sept"))
    });
    at.map(|at| at as i64 + 1)
}

/// Reads a text by a format.
pub fn read_by(text: &str, format: &str, given: Option<Zone>) -> Result<i64> {
    let mut read = Read::default();
    let mut at = Cursor { rest: text };
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            if !at.eat(letter) {
                return Err(wrong(text, "Format literal not found"));
            }
            continue;
        }
        let what =
            letters.next().ok_or_else(|| Error::new(18535, "Unmatched '%' at end of format string"))?;
        let missing = || wrong(text, &format!("no value was found for '%{what}'"));
        match what {
            'Y' => read.year = Some(at.number(4, 4).ok_or_else(missing)?),
            'G' => read.iso_year = Some(at.number(4, 4).ok_or_else(missing)?),
            'm' => read.month = Some(at.number(1, 2).ok_or_else(missing)?),
            'd' => read.day = Some(at.number(1, 2).ok_or_else(missing)?),
            'j' => read.day_of_year = Some(at.number(1, 3).ok_or_else(missing)?),
            'V' => read.iso_week = Some(at.number(1, 2).ok_or_else(missing)?),
            'u' => read.iso_day = Some(at.number(1, 1).ok_or_else(missing)?),
            'H' => read.hour = at.number(1, 2).ok_or_else(missing)?,
            'M' => read.minute = at.number(1, 2).ok_or_else(missing)?,
            'S' => read.second = at.number(1, 2).ok_or_else(missing)?,
            'L' => read.ms = at.fraction().ok_or_else(missing)?,
            'b' | 'B' => {
                let word = at.take_while(9, |c| c.is_ascii_alphabetic());
                read.month = Some(month_of(word).ok_or_else(missing)?);
            }
            'z' => read.zone = Some(read_zone(&mut at).ok_or_else(missing)?),
            'Z' => {
                let negative = !at.eat('+') && at.eat('-');
                let minutes = at.number(1, 4).ok_or_else(missing)?;
                read.zone = Some(Zone::Fixed(if negative { -minutes } else { minutes } * 60));
            }
            '%' => {
                if !at.eat('%') {
                    return Err(missing());
                }
            }
            other => {
                return Err(Error::new(
                    18536,
                    format!("Invalid format character '%{other}' in format string"),
                ));
            }
        }
    }
    if !at.rest.is_empty() {
        return Err(wrong(text, &format!("Trailing data '{}'", at.rest)));
    }
    read.finish(text, given)
}

fn read_zone(at: &mut Cursor<'_>) -> Option<Zone> {
    if at.rest.starts_with(['+', '-']) {
        let digits =
            at.rest[1..].find(|c: char| !c.is_ascii_digit() && c != ':').map_or(at.rest.len(), |end| end + 1);
        let (text, rest) = at.rest.split_at(digits);
        let seconds = zone::offset(text)?;
        at.rest = rest;
        return Some(Zone::Fixed(seconds));
    }
    let word = at.word();
    // `GMT+02:00` is an offset with a name before it.
    if matches!(word, "GMT" | "UTC") && at.rest.starts_with(['+', '-']) {
        return None;
    }
    abbreviated(word).or_else(|| Zone::parse(word).ok())
}

fn abbreviated(word: &str) -> Option<Zone> {
    let hours = match word {
        "Z" | "z" | "UTC" | "GMT" | "utc" | "gmt" => 0,
        "EST" => -5,
        "EDT" => -4,
        "CST" => -6,
        "CDT" => -5,
        "MST" => -7,
        "MDT" => -6,
        "PST" => -8,
        "PDT" => -7,
        "CET" => 1,
        "CEST" => 2,
        "BST" => 1,
        "IST" => return Some(Zone::Fixed(19_800)),
        "JST" => 9,
        _ => return None,
    };
    Some(Zone::Fixed(hours * 3600))
}

/// Reads a text without a format.
pub fn read(text: &str, given: Option<Zone>) -> Result<i64> {
    let mut read = Read::default();
    let mut at = Cursor { rest: text.trim() };
    let invalid = || wrong(text, "it is not understood as a date");
    if at.rest.is_empty() {
        return Err(wrong(text, "it is empty"));
    }
    // Every round takes something away.
    while !at.rest.is_empty() {
        let before = at.rest.len();
        at.skip_blanks();
        at.eat(',');
        at.skip_blanks();
        let first = at.rest.chars().next();
        match first {
            Some(c) if c.is_ascii_digit() => read_digits(&mut at, &mut read).ok_or_else(invalid)?,
            Some('+' | '-') if read.has_time => read.zone = Some(read_zone(&mut at).ok_or_else(invalid)?),
            Some(c) if c.is_ascii_alphabetic() => read_word(&mut at, &mut read).ok_or_else(invalid)?,
            None => {}
            Some(_) => return Err(invalid()),
        }
        if at.rest.len() == before {
            return Err(invalid());
        }
    }
    if read.year.is_some() && read.day_of_year.is_none() {
        read.month = read.month.or(Some(1));
        read.day = read.day.or(Some(1));
    }
    read.finish(text, given)
}

fn read_word(at: &mut Cursor<'_>, read: &mut Read) -> Option<()> {
    let word = at.word();
    let lower = word.to_ascii_lowercase();
    const DAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    if lower == "t" && read.day.is_some() {
        return Some(());
    }
    if let Some(month) = month_of(word).filter(|_| read.month.is_none()) {
        read.month = Some(month);
        at.eat('.');
        return Some(());
    }
    if lower.len() >= 3 && DAYS.iter().any(|day| *day == lower || day[..3] == lower) {
        return Some(());
    }
    if matches!(&*lower, "am" | "pm") && read.has_time && read.hour <= 12 {
        read.hour = read.hour % 12 + if lower == "pm" { 12 } else { 0 };
        return Some(());
    }
    if matches!(&*lower, "noon" | "midnight") && !read.has_time {
        read.hour = if lower == "noon" { 12 } else { 0 };
        read.has_time = true;
        return Some(());
    }
    if matches!(&*lower, "st" | "nd" | "rd" | "th" | "of" | "at") {
        return Some(());
    }
    if read.zone.is_some() || !read.has_time {
        return None;
    }
    read.zone = Some(match abbreviated(word) {
        Some(zone) => zone,
        None => Zone::parse(word).ok()?,
    });
    Some(())
}

fn read_digits(at: &mut Cursor<'_>, read: &mut Read) -> Option<()> {
    let digits = at.take_while(20, |c| c.is_ascii_digit());
    let value: i64 = digits.parse().ok()?;
    if at.rest.starts_with(':') {
        return read_time(at, read, value, digits.len());
    }
    let has_date = read.year.is_some() && read.month.is_some() && read.day.is_some();
    match digits.len() {
        4 if at.rest.starts_with(['-', '/', '.']) && read.year.is_none() => {
            let separator = at.rest.chars().next()?;
            at.eat(separator);
            read.year = Some(value);
            if separator == '-' && at.rest.starts_with('W') {
                at.eat('W');
                read.iso_year = read.year.take();
                read.iso_week = Some(at.number(2, 2)?);
                if at.eat('-') {
                    read.iso_day = Some(at.number(1, 1)?);
                }
                return Some(());
            }
            if at.rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
                read.month = Some(month_of(at.take_while(9, |c| c.is_ascii_alphabetic()))?);
                if at.eat(separator) {
                    read.day = Some(at.number(1, 2)?);
                }
                return Some(());
            }
            let second = at.take_while(3, |c| c.is_ascii_digit());
            if second.len() == 3 {
                read.day_of_year = Some(second.parse().ok()?);
                return Some(());
            }
            read.month = Some(second.parse().ok()?);
            if at.eat(separator) {
                read.day = Some(at.number(1, 2)?);
            }
        }
        // Day or month first, as people in the United States, or elsewhere, write.
        1 | 2 if at.rest.starts_with(['/', '-', '.']) && read.year.is_none() && read.month.is_none() => {
            let separator = at.rest.chars().next()?;
            at.eat(separator);
            if at.rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
                read.day = Some(value);
                read.month = Some(month_of(at.take_while(9, |c| c.is_ascii_alphabetic()))?);
                if at.eat(separator) {
                    read.year = Some(at.number(4, 4)?);
                }
                return Some(());
            }
            let second = at.number(1, 2)?;
            let (month, day) = if separator == '/' { (value, second) } else { (second, value) };
            (read.month, read.day) = (Some(month), Some(day));
            if at.eat(separator) {
                read.year = Some(at.number(4, 4)?);
            }
        }
        8 if !has_date => {
            read.year = Some(value / 10_000);
            read.month = Some(value / 100 % 100);
            read.day = Some(value % 100);
        }
        14 if !has_date => {
            let date = value / 1_000_000;
            (read.year, read.month, read.day) =
                (Some(date / 10_000), Some(date / 100 % 100), Some(date % 100));
            (read.hour, read.minute, read.second) = (value / 10_000 % 100, value / 100 % 100, value % 100);
            read.has_time = true;
        }
        4 if has_date && !read.has_time => {
            (read.hour, read.minute) = (value / 100, value % 100);
            read.has_time = true;
        }
        6 if has_date && !read.has_time => {
            (read.hour, read.minute, read.second) = (value / 10_000, value / 100 % 100, value % 100);
            read.has_time = true;
            if at.eat('.') {
                read.ms = at.fraction()?;
            }
        }
        4 if read.year.is_none() => read.year = Some(value),
        1 | 2 if has_date && !read.has_time => {
            // An hour alone: `2 pm`, `T11Z`.
            read.hour = value;
            read.has_time = true;
        }
        1 | 2 if read.day.is_none() => read.day = Some(value),
        _ => return None,
    }
    Some(())
}

fn read_time(at: &mut Cursor<'_>, read: &mut Read, hour: i64, digits: usize) -> Option<()> {
    if read.has_time || digits > 2 {
        return None;
    }
    read.has_time = true;
    read.hour = hour;
    at.eat(':');
    read.minute = at.number(2, 2)?;
    if at.eat(':') {
        read.second = at.number(2, 2)?;
        if at.eat('.') || at.eat(',') {
            read.ms = at.fraction()?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_dates_in_many_ways() {
        let day = 1_499_126_400_000;
        let cases = [
            ("2017-07-04", 0),
            ("2017/07/04", 0),
            ("07/04/2017", 0),
            ("4-7-2017", 0),
            ("4.7.2017", 0),
            ("04-Jul-2017", 0),
            ("2017-Jul-04", 0),
            ("2017-185", 0),
            ("2017-W27-2", 0),
            ("20170704", 0),
            ("20170704T115602", 42_962_000),
            ("July 4th, 2017", 0),
            ("Tue, 4 Jul 2017 11:56:02 +0000", 42_962_000),
            ("2017-07-04T11:56:02Z", 42_962_000),
            ("2017-07-04T11:56:02.813Z", 42_962_813),
            ("2017-07-04 11:56:02,5", 42_962_500),
            ("2017-07-04T11:56:02+01:00", 39_362_000),
            ("2017-07-04 11:56 EST", 60_960_000),
            ("2017-07-04 11:56 America/New_York", 57_360_000),
            ("July 4, 2017 11am", 39_600_000),
            ("July 4, 2017 12:30 pm", 45_000_000),
            ("2017-Jul-04 noon", 43_200_000),
        ];
        for (text, ms) in cases {
            assert_eq!(read(text, None).map_err(|error| error.to_string()), Ok(day + ms), "{text}");
        }
        for text in [
            "",
            "x",
            "2017-13-01",
            "2017-02-30",
            "11:00",
            "2017-07-04T25:00",
            "2017-07-04 +",
            "2017-07-04 1 2 3",
            "\u{e9}",
        ] {
            assert!(read(text, None).is_err(), "{text}");
        }
        assert!(read("2017-07-04T11:00Z", Some(Zone::UTC)).is_err(), "two zones");
    }
}
