//! `$dateToString`, and dates as texts.

use std::fmt::Write;

use super::calendar::Civil;
use super::{Zone, milliseconds};
use crate::error::{Error, Result, code};
use crate::expression::arguments::{check_names, document, required};
use crate::expression::parse::Parser;
use crate::expression::table::{Operator, own};
use crate::expression::value::{is_nullish, type_name};
use crate::expression::{LazyCall, Node};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[own(
    "$dateToString",
    parse,
    "{$dateToString: {date, format, timezone, onNull}}",
    "A date as a text: %Y %m %d %H %M %S %L %j %w %U %u %V %G %z %Z %b %B %%.",
)];

pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The year that services of DocumentDB reach to.
const TIMESTAMP_YEAR_MAX: i64 = 294_276;

/// `2020-01-31T12:00:00.000Z`.
pub fn iso(ms: i64) -> Result<String> {
    let mut out = String::with_capacity(24);
    write(ms, &Zone::UTC, "%Y-%m-%dT%H:%M:%S.%LZ", &mut out)?;
    Ok(out)
}

/// `Jan 31 12:00:00`, as timestamps are shown in texts.
pub(crate) fn timestamp(seconds: u32) -> Result<String> {
    let mut out = String::new();
    write(i64::from(seconds) * 1000, &Zone::UTC, "%b %d %H:%M:%S", &mut out)?;
    Ok(out)
}

const ARGUMENTS: [&str; 4] = ["date", "format", "timezone", "onNull"];

fn parse(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members =
        document(argument, 18629, || "$dateToString only supports an object as its argument".into())?;
    check_names(name, members, &ARGUMENTS, 18534)?;
    required(name, members, "date", 18628)?;
    if let Some(Bson::String(format)) = members.get("format")
        && !format.starts_with('$')
    {
        check_format(format)?;
    }
    Ok(Node::Lazy {
        name,
        run: to_string,
        arguments: parser.named(members, &ARGUMENTS)?,
        variables: Vec::new(),
    })
}

fn to_string(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let evaluated = |at: usize| call.arguments[at].evaluate_in(call.scope);
    let date = evaluated(0)?;
    let format = evaluated(1)?;
    let zone = call.zone(2, 40517)?;
    let on_null = || if call.arguments[3].is_absent() { Ok(Some(Bson::Null)) } else { evaluated(3) };
    let Some(ms) = milliseconds(date.as_ref(), 16006)? else { return on_null() };
    let Some(zone) = zone else { return Ok(Some(Bson::Null)) };
    let default = if zone.is_utc() { "%Y-%m-%dT%H:%M:%S.%LZ" } else { "%Y-%m-%dT%H:%M:%S.%L" };
    let format = match &format {
        _ if call.arguments[1].is_absent() => default,
        value if is_nullish(value.as_ref()) => return Ok(Some(Bson::Null)),
        Some(Bson::String(format)) => format,
        other => {
            let text = format!(
                "$dateToString requires that 'format' be a string, found: {}",
                type_name(other.as_ref())
            );
            return Err(Error::new(18533, text));
        }
    };
    check_format(format)?;
    let mut out = String::with_capacity(format.len() + 16);
    write(ms, &zone, format, &mut out)?;
    Ok(Some(out.into()))
}

fn check_format(format: &str) -> Result<()> {
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            continue;
        }
        match letters.next() {
            None => return Err(Error::new(18535, "Unmatched '%' at end of format string")),
            Some(known) if "dGHjLmMSwuUVYzZbB%".contains(known) => {}
            Some(unknown) => {
                return Err(Error::new(
                    18536,
                    format!("Invalid format character '%{unknown}' in format string"),
                ));
            }
        }
    }
    Ok(())
}

fn write(ms: i64, zone: &Zone, format: &str, out: &mut String) -> Result<()> {
    let offset = zone.offset_at(ms);
    let civil = Civil::of(ms.saturating_add(offset * 1000));
    if civil.year > TIMESTAMP_YEAR_MAX {
        let text = format!("value {ms} (milliseconds) is out of range for timestamps.");
        return Err(Error::new(code::OVERFLOW, text));
    }
    if !(0..=9999).contains(&civil.year) {
        let text = format!("$dateToString is only defined on year 0-9999, tried to use year {}", civil.year);
        return Err(Error::new(18537, text));
    }
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let month = MONTHS[(civil.month - 1) as usize];
        let _ = match letters.next() {
            Some('Y') => write!(out, "{:04}", civil.year),
            Some('m') => write!(out, "{:02}", civil.month),
            Some('d') => write!(out, "{:02}", civil.day),
            Some('H') => write!(out, "{:02}", civil.hour),
            Some('M') => write!(out, "{:02}", civil.minute),
            Some('S') => write!(out, "{:02}", civil.second),
            Some('L') => write!(out, "{:03}", civil.ms),
            Some('j') => write!(out, "{:03}", civil.day_of_year()),
            Some('w') => write!(out, "{}", civil.weekday() + 1),
            Some('u') => write!(out, "{}", civil.iso_weekday()),
            Some('U') => write!(out, "{:02}", civil.week()),
            Some('V') => write!(out, "{:02}", civil.iso_week().1),
            Some('G') => write!(out, "{:04}", civil.iso_week().0),
            Some('b') => write!(out, "{}", &month[..3]),
            Some('B') => write!(out, "{month}"),
            Some('z') => {
                let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
                write!(out, "{sign}{:02}{:02}", minutes / 60, minutes % 60)
            }
            Some('Z') => write!(out, "{}", offset / 60),
            Some(other) => write!(out, "{other}"),
            None => Ok(()),
        };
    }
    Ok(())
}
