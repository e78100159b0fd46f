//! Parts of dates: `$year` and its like, `$dateToParts`, `$dateFromParts`.

use super::calendar::{Civil, DAY_MS, iso_year_start};
use super::{Zone, milliseconds};
use crate::error::{Error, Result};
use crate::expression::arguments::{check_names, document, required};
use crate::expression::parse::Parser;
use crate::expression::table::{Operator, own};
use crate::expression::value::{is_nullish, show, show_document, type_name};
use crate::expression::{LazyCall, Node, number};
use crate::value::{Bson, Document};

pub(crate) static OPERATORS: &[Operator] = &[
    own(
        "$dateFromParts",
        parse_from_parts,
        "{$dateFromParts: {year, month, day, hour, minute, second, millisecond, timezone}} or with isoWeekYear, …",
        "A date of its parts, which carry over where they are beyond their range.",
    ),
    own(
        "$dateToParts",
        parse_to_parts,
        "{$dateToParts: {date, timezone, iso8601}}",
        "The parts of a date as a document.",
    ),
    own("$dayOfMonth", parse_part, "{$dayOfMonth: {date, timezone}}", "The day of the month."),
    own("$dayOfWeek", parse_part, "{$dayOfWeek: {date, timezone}}", "1 for Sunday to 7 for Saturday."),
    own("$dayOfYear", parse_part, "{$dayOfYear: {date, timezone}}", "The day of the year from 1 on."),
    own("$hour", parse_part, "{$hour: {date, timezone}}", "The hour."),
    own("$isoDayOfWeek", parse_part, "{$isoDayOfWeek: {date, timezone}}", "1 for Monday to 7 for Sunday."),
    own("$isoWeek", parse_part, "{$isoWeek: {date, timezone}}", "The week of ISO 8601, 1 to 53."),
    own("$isoWeekYear", parse_part, "{$isoWeekYear: {date, timezone}}", "The year of ISO 8601's weeks."),
    own("$millisecond", parse_part, "{$millisecond: {date, timezone}}", "The milliseconds."),
    own("$minute", parse_part, "{$minute: {date, timezone}}", "The minute."),
    own("$month", parse_part, "{$month: {date, timezone}}", "The month, 1 to 12."),
    own("$second", parse_part, "{$second: {date, timezone}}", "The second."),
    own("$week", parse_part, "{$week: {date, timezone}}", "The week, from Sunday to Saturday, 0 to 53."),
    own("$year", parse_part, "{$year: {date, timezone}}", "The year."),
];

fn parse_part(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let arguments = match argument {
        Bson::Document(members) if !members.first().is_some_and(|(first, _)| first.starts_with('$')) => {
            if let Some((unknown, _)) = members.iter().find(|(n, _)| !["date", "timezone"].contains(&&***n)) {
                return Err(Error::new(40535, format!("unrecognized option to {name}: \"{unknown}\"")));
            }
            if !members.contains("date") {
                let text = format!(
                    "missing 'date' argument to {name}, provided: {name}: {}",
                    show_document(members)
                );
                return Err(Error::new(40539, text));
            }
            parser.named(members, &["date", "timezone"])?
        }
        Bson::Array(elements) => {
            let [date] = elements.as_slice() else {
                let text = format!(
                    "{name} accepts exactly one argument if given an array, but was given {}",
                    elements.len()
                );
                return Err(Error::new(40536, text));
            };
            vec![parser.expression(date)?, parser.optional(None)?]
        }
        _ => vec![parser.expression(argument)?, parser.optional(None)?],
    };
    Ok(Node::Lazy { name, run: part, arguments, variables: Vec::new() })
}

impl LazyCall<'_> {
    /// The zone of an argument; UTC where it was not given, `None` where it is null.
    pub(super) fn zone(&self, at: usize, code: i32) -> Result<Option<Zone>> {
        if self.arguments[at].is_absent() {
            return Ok(Some(Zone::UTC));
        }
        Zone::of_value(self.arguments[at].evaluate_in(self.scope)?.as_ref(), code)
    }
}

fn part(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let date = call.arguments[0].evaluate_in(call.scope)?;
    let zone = call.zone(1, 40533)?;
    let (Some(ms), Some(zone)) = (milliseconds(date.as_ref(), 16006)?, zone) else {
        return Ok(Some(Bson::Null));
    };
    let civil = Civil::of(zone.to_local(ms));
    let value = match call.name {
        "$year" => civil.year,
        "$month" => civil.month,
        "$dayOfMonth" => civil.day,
        "$hour" => civil.hour,
        "$minute" => civil.minute,
        "$second" => civil.second,
        "$millisecond" => civil.ms,
        "$dayOfYear" => civil.day_of_year(),
        "$dayOfWeek" => civil.weekday() + 1,
        "$isoDayOfWeek" => civil.iso_weekday(),
        "$week" => civil.week(),
        "$isoWeek" => civil.iso_week().1,
        _ => return Ok(Some(Bson::Int64(civil.iso_week().0))),
    };
    Ok(Some(number::int_or_long(value)))
}

fn parse_to_parts(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members =
        document(argument, 40524, || "$dateToParts only supports an object as its argument".into())?;
    check_names(name, members, &["date", "timezone", "iso8601"], 40520)?;
    required(name, members, "date", 40522)?;
    let arguments = parser.named(members, &["date", "timezone", "iso8601"])?;
    Ok(Node::Lazy { name, run: to_parts, arguments, variables: Vec::new() })
}

fn to_parts(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let zone = call.zone(1, 40517)?;
    let iso = if call.arguments[2].is_absent() {
        Some(false)
    } else {
        match call.arguments[2].evaluate_in(call.scope)? {
            value if is_nullish(value.as_ref()) => None,
            Some(Bson::Bool(iso)) => Some(iso),
            other => {
                let text = format!("iso8601 must evaluate to a bool, found {}", type_name(other.as_ref()));
                return Err(Error::new(40521, text));
            }
        }
    };
    let date = call.arguments[0].evaluate_in(call.scope)?;
    let date = milliseconds(date.as_ref(), 16006)?;
    let (Some(ms), Some(zone), Some(iso)) = (date, zone, iso) else { return Ok(Some(Bson::Null)) };
    let civil = Civil::of(zone.to_local(ms));
    let mut parts = Document::new();
    let days = if iso {
        let (year, week) = civil.iso_week();
        [("isoWeekYear", year), ("isoWeek", week), ("isoDayOfWeek", civil.iso_weekday())]
    } else {
        [("year", civil.year), ("month", civil.month), ("day", civil.day)]
    };
    let time =
        [("hour", civil.hour), ("minute", civil.minute), ("second", civil.second), ("millisecond", civil.ms)];
    for (name, value) in days.into_iter().chain(time) {
        parts.push(name, number::int_or_long(value));
    }
    Ok(Some(parts.into()))
}

const PARTS: [&str; 11] = [
    "year",
    "month",
    "day",
    "isoWeekYear",
    "isoWeek",
    "isoDayOfWeek",
    "hour",
    "minute",
    "second",
    "millisecond",
    "timezone",
];

fn parse_from_parts(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members =
        document(argument, 40519, || "$dateFromParts only supports an object as its argument".into())?;
    check_names(name, members, &PARTS, 40518)?;
    let has = |names: &[&str]| names.iter().any(|name| members.contains(name));
    let iso = has(&["isoWeekYear", "isoWeek", "isoDayOfWeek"]);
    if has(&["year"]) && iso {
        return Err(Error::new(40489, "$dateFromParts does not allow mixing natural dates with ISO dates"));
    }
    if iso && has(&["month", "day"]) {
        return Err(Error::new(40525, "$dateFromParts does not allow mixing ISO dates with natural dates"));
    }
    if !has(&["year", "isoWeekYear"]) {
        return Err(Error::new(
            40516,
            "$dateFromParts requires either 'year' or 'isoWeekYear' to be present",
        ));
    }
    let arguments = parser.named(members, &PARTS)?;
    Ok(Node::Lazy { name, run: from_parts, arguments, variables: Vec::new() })
}

fn from_parts(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let mut values = [0, 1, 1, 0, 1, 1, 0, 0, 0, 0];
    let mut null = false;
    for (at, value) in values.iter_mut().enumerate() {
        if call.arguments[at].is_absent() {
            continue;
        }
        let given = call.arguments[at].evaluate_in(call.scope)?;
        if is_nullish(given.as_ref()) {
            null = true;
            continue;
        }
        let Some(whole) = given.as_ref().and_then(number::of).and_then(number::NumberRef::to_i64) else {
            let text = format!(
                "'{}' must evaluate to an integer, found {} with value :{}",
                PARTS[at],
                type_name(given.as_ref()),
                show(given.as_ref())
            );
            return Err(Error::new(40515, text));
        };
        *value = whole;
    }
    let zone = call.zone(10, 40517)?;
    let Some(zone) = zone.filter(|_| !null) else { return Ok(Some(Bson::Null)) };
    let iso = !call.arguments[3].is_absent();
    let [year, month, day, iso_year, iso_week, iso_day, hour, minute, second, ms] = values;
    let (shown, checked, code) = if iso { ("isoWeekYear", iso_year, 31095) } else { ("year", year, 40523) };
    if !(1..=9999).contains(&checked) {
        let text = format!("'{shown}' must evaluate to an integer in the range 1 to 9999, found {checked}");
        return Err(Error::new(code, text));
    }
    for (at, value) in values.iter().enumerate().filter(|(at, _)| [1, 2, 4, 5, 6, 7].contains(at)) {
        if !(-32_768..=32_767).contains(value) {
            let text = format!(
                "'{}' must evaluate to a value in the range [-32768, 32767]; value {value} is not in range",
                PARTS[at]
            );
            return Err(Error::new(31034, text));
        }
    }
    let civil = if iso {
        let days = iso_year_start(iso_year) + (iso_week - 1) * 7 + iso_day - 1;
        Civil { hour, minute, second, ms, ..Civil::of(days * DAY_MS) }
    } else {
        Civil { year, month, day, hour, minute, second, ms }
    };
    // In a zone the days and the time carry over on the clock of that zone.
    match civil.to_ms() {
        Some(local) => Ok(Some(Bson::Date(zone.of_local(local)))),
        None => {
            Err(Error::new(crate::error::code::DURATION_OVERFLOW, "the parts lead beyond the range of dates"))
        }
    }
}
