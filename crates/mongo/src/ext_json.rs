//! Extended JSON, version 2: values as JSON text, canonical (every number says its width) and relaxed, and the way
//! back.
//!
//! Reading takes both, and what older tools write: `{"$date": 5}`, `{"$binary": "…", "$type": "00"}`, `{"$uuid":
//! "…"}`. A plain number is an int32 where it fits, else an int64; with a point or an exponent it is a double.

use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orrery_model::Decimal128;
use serde_json::{Map, Value as Json};

use crate::error::{Error, Result};
use crate::value::{Bson, Document, Kind, Regex};
use crate::value_ref::{NumberRef, ValueRef};

/// How numbers and dates are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `{"$numberInt":"1"}`: everything comes back as it was.
    Canonical,
    /// `1`: as people write it.
    Relaxed,
}

/// What `{"$regex": …, "$options": …}` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The old spelling of a regular expression: in data.
    Data,
    /// The operator of a query.
    Query,
}

const DAY_MS: i64 = 86_400_000;
/// The first moment of the year 10000, from which on dates are written as numbers.
const YEAR_10000_MS: i64 = 253_402_300_800_000;

/// Reads a text as a value.
pub fn parse(text: &str, reading: Reading) -> Result<Bson> {
    let json: Json =
        serde_json::from_str(text).map_err(|error| Error::failed_to_parse(format!("not JSON: {error}")))?;
    from_json(&json, reading)
}

/// Reads a text as a document.
pub fn parse_document(text: &str, reading: Reading) -> Result<Document> {
    match parse(text, reading)? {
        Bson::Document(document) => Ok(document),
        _ => Err(Error::failed_to_parse("not a document")),
    }
}

/// The value that parsed JSON stands for.
pub fn from_json(json: &Json, reading: Reading) -> Result<Bson> {
    Ok(match json {
        Json::Null => Bson::Null,
        Json::Bool(value) => Bson::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => i32::try_from(value).map_or(Bson::Int64(value), Bson::Int32),
            None => Bson::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Bson::from(text.as_str()),
        Json::Array(elements) => {
            Bson::array(elements.iter().map(|e| from_json(e, reading)).collect::<Result<_>>()?)
        }
        Json::Object(members) => match wrapped(members, reading)? {
            Some(value) => value,
            None => {
                let members =
                    members.iter().map(|(name, value)| Ok((Arc::from(&**name), from_json(value, reading)?)));
                Bson::Document(members.collect::<Result<_>>()?)
            }
        },
    })
}

/// An object that stands for a value of another type; `None` for any other.
fn wrapped(members: &Map<String, Json>, reading: Reading) -> Result<Option<Bson>> {
    let Some((name, content)) = members.iter().next() else { return Ok(None) };
    if !name.starts_with('$') && !members.contains_key("$type") {
        return Ok(None);
    }
    let bad = || Error::failed_to_parse(format!("{name} is not what Extended JSON says"));
    let text = || content.as_str().ok_or_else(bad);
    if members.len() == 2 {
        return match (name.as_str(), members.iter().nth(1)) {
            ("$code", Some((second, scope))) if second == "$scope" => {
                let Bson::Document(scope) = from_json(scope, reading)? else { return Err(bad()) };
                Ok(Some(Bson::CodeWithScope(Arc::new((text()?.into(), scope)))))
            }
            ("$regex", Some((second, options)))
                if second == "$options" && reading == Reading::Data && content.is_string() =>
            {
                Ok(Some(regex(text()?, options.as_str().ok_or_else(bad)?)))
            }
            ("$binary", Some((second, subtype))) if second == "$type" && content.is_string() => {
                let subtype = match subtype {
                    Json::String(hex) => u8::from_str_radix(hex, 16).map_err(|_| bad())?,
                    other => other.as_u64().and_then(|n| u8::try_from(n).ok()).ok_or_else(bad)?,
                };
                let bytes = STANDARD.decode(text()?).map_err(|_| bad())?;
                Ok(Some(Bson::Binary { subtype, bytes: bytes.into() }))
            }
            _ => Ok(None),
        };
    }
    if members.len() != 1 {
        return Ok(None);
    }
    let of_text = |content: &Json| match content {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    };
    Ok(Some(match name.as_str() {
        "$numberInt" => Bson::Int32(of_text(content).and_then(|t| t.parse().ok()).ok_or_else(bad)?),
        "$numberLong" => Bson::Int64(of_text(content).and_then(|t| t.parse().ok()).ok_or_else(bad)?),
        "$numberDouble" => Bson::Double(match of_text(content).ok_or_else(bad)?.as_str() {
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            "NaN" => f64::NAN,
            text => text.parse().map_err(|_| bad())?,
        }),
        "$numberDecimal" => {
            Bson::Decimal(of_text(content).and_then(|t| Decimal128::parse(&t)).ok_or_else(bad)?)
        }
        "$oid" => Bson::ObjectId(object_id(text()?).ok_or_else(bad)?),
        "$date" if !content.is_boolean() => Bson::Date(date(content).ok_or_else(bad)?),
        "$timestamp" if content.is_object() => {
            let part =
                |name| content.get(name).and_then(Json::as_u64).and_then(|part| u32::try_from(part).ok());
            Bson::Timestamp { seconds: part("t").ok_or_else(bad)?, increment: part("i").ok_or_else(bad)? }
        }
        "$binary" => {
            let (bytes, subtype) = match content {
                Json::String(text) => (text.as_str(), 0),
                Json::Object(parts) => {
                    let part = |name| parts.get(name).and_then(Json::as_str).ok_or_else(bad);
                    (part("base64")?, u8::from_str_radix(part("subType")?, 16).map_err(|_| bad())?)
                }
                _ => return Err(bad()),
            };
            Bson::Binary { subtype, bytes: STANDARD.decode(bytes).map_err(|_| bad())?.into() }
        }
        "$uuid" => Bson::Binary { subtype: 4, bytes: uuid(text()?).ok_or_else(bad)?.into() },
        "$regularExpression" => {
            let part = |name| content.get(name).and_then(Json::as_str).ok_or_else(bad);
            regex(part("pattern")?, part("options")?)
        }
        "$dbPointer" => {
            let part = |name| content.get(name).ok_or_else(bad);
            let Bson::ObjectId(id) = from_json(part("$id")?, reading)? else { return Err(bad()) };
            Bson::DbPointer(Arc::new((part("$ref")?.as_str().ok_or_else(bad)?.into(), id)))
        }
        "$code" => Bson::Code(text()?.into()),
        "$symbol" => Bson::Symbol(text()?.into()),
        "$undefined" => Bson::Undefined,
        "$minKey" => Bson::MinKey,
        "$maxKey" => Bson::MaxKey,
        _ => return Ok(None),
    }))
}

fn regex(pattern: &str, options: &str) -> Bson {
    let mut letters: Vec<char> = options.chars().collect();
    letters.sort_unstable();
    let options: String = letters.into_iter().collect();
    Bson::Regex(Arc::new(Regex { pattern: pattern.into(), options: options.into() }))
}

/// The twelve bytes of twenty-four digits.
pub fn object_id(text: &str) -> Option<[u8; 12]> {
    let bytes = hex(text)?;
    bytes.try_into().ok()
}

fn uuid(text: &str) -> Option<Vec<u8>> {
    hex(&text.replace('-', "")).filter(|bytes| bytes.len() == 16)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits?;
    (digits.len() % 2 == 0).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn date(content: &Json) -> Option<i64> {
    match content {
        Json::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|value| value as i64)),
        Json::Object(_) => match from_json(content, Reading::Data).ok()? {
            Bson::Int64(value) => Some(value),
            _ => None,
        },
        Json::String(text) => parse_date(text),
        _ => None,
    }
}

/// Reads `2024-01-01T00:00:00.500Z`, with parts of the time left out or an offset.
pub fn parse_date(text: &str) -> Option<i64> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (day, time) = match unsigned.split_once(['T', ' ']) {
        Some((day, time)) => (day, time),
        None => (unsigned, ""),
    };
    let mut parts = day.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) || year > 500_000 {
        return None;
    }
    let year = if negative { -year } else { year };
    let (time, offset) = match time.find(['Z', '+', '-']) {
        Some(at) if &time[at..] == "Z" => (&time[..at], 0),
        Some(at) => {
            let digits: String = time[at + 1..].chars().filter(char::is_ascii_digit).collect();
            let (hours, minutes) = digits.split_at_checked(2)?;
            let minutes = if minutes.is_empty() { 0 } else { minutes.parse::<i64>().ok()? };
            let size = hours.parse::<i64>().ok()? * 60 + minutes;
            (&time[..at], if time[at..].starts_with('-') { -size } else { size })
        }
        None => (time, 0),
    };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts =
        clock.split(':').map(|part| if part.is_empty() { Some(0) } else { part.parse::<i64>().ok() });
    let hour = parts.next().unwrap_or(Some(0))?;
    let minute = parts.next().unwrap_or(Some(0))?;
    let second = parts.next().unwrap_or(Some(0))?;
    let milli: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let minutes = (days_of(year, month, day) * 24 + hour) * 60 + minute - offset;
    Some((minutes * 60 + second) * 1000 + milli)
}

/// Days since 1970 of a day in the civil calendar.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let shifted = year - i64::from(month <= 2);
    let era = shifted.div_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let year_of_era = shifted.rem_euclid(400);
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a day since 1970.
fn civil_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A value as text.
pub fn to_text(value: ValueRef<'_>, style: Style) -> String {
    let mut out = String::new();
    write(value, style, &mut out);
    out
}

/// Appends a value as text.
pub fn write(value: ValueRef<'_>, style: Style, out: &mut String) {
    match value.kind() {
        Kind::Null => out.push_str("null"),
        Kind::Undefined => out.push_str("{\"$undefined\":true}"),
        Kind::Bool => out.push_str(if value.as_bool() == Some(true) { "true" } else { "false" }),
        Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Decimal => {
            if let Some(number) = value.as_number() {
                write_number(number, style, out);
            }
        }
        Kind::String => write_string(value.as_str().unwrap_or_default(), out),
        Kind::Symbol => {
            out.push_str("{\"$symbol\":");
            write_string(value.as_str().unwrap_or_default(), out);
            out.push('}');
        }
        Kind::Document => {
            out.push('{');
            for (at, (name, member)) in value.members().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_string(name, out);
                out.push(':');
                write(member, style, out);
            }
            out.push('}');
        }
        Kind::Array => {
            out.push('[');
            for (at, element) in value.elements().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(element, style, out);
            }
            out.push(']');
        }
        _ => write_other(&value.to_bson(), style, out),
    }
}

fn write_other(value: &Bson, style: Style, out: &mut String) {
    let done = match value {
        Bson::ObjectId(id) => {
            out.push_str("{\"$oid\":\"");
            id.iter().try_for_each(|byte| write!(out, "{byte:02x}")).and_then(|()| out.write_str("\"}"))
        }
        Bson::Date(date @ 0..YEAR_10000_MS) if style == Style::Relaxed => {
            let (year, month, day) = civil_of(date.div_euclid(DAY_MS));
            let time = date.rem_euclid(DAY_MS);
            let (hour, minute, second) = (time / 3_600_000, time / 60_000 % 60, time / 1000 % 60);
            let fraction = match time % 1000 {
                0 => String::new(),
                milli => format!(".{milli:03}"),
            };
            write!(
                out,
                "{{\"$date\":\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z\"}}"
            )
        }
        Bson::Date(date) => write!(out, "{{\"$date\":{{\"$numberLong\":\"{date}\"}}}}"),
        Bson::Timestamp { seconds, increment } => {
            write!(out, "{{\"$timestamp\":{{\"t\":{seconds},\"i\":{increment}}}}}")
        }
        Bson::Binary { subtype, bytes } => {
            let text = STANDARD.encode(bytes);
            write!(out, "{{\"$binary\":{{\"base64\":\"{text}\",\"subType\":\"{subtype:02x}\"}}}}")
        }
        Bson::Regex(regex) => {
            out.push_str("{\"$regularExpression\":{\"pattern\":");
            write_string(&regex.pattern, out);
            out.push_str(",\"options\":");
            write_string(&regex.options, out);
            out.write_str("}}")
        }
        Bson::DbPointer(pointer) => {
            out.push_str("{\"$dbPointer\":{\"$ref\":");
            write_string(&pointer.0, out);
            out.push_str(",\"$id\":");
            write_other(&Bson::ObjectId(pointer.1), style, out);
            out.write_str("}}")
        }
        Bson::Code(text) => {
            out.push_str("{\"$code\":");
            write_string(text, out);
            out.write_str("}")
        }
        Bson::CodeWithScope(code) => {
            out.push_str("{\"$code\":");
            write_string(&code.0, out);
            out.push_str(",\"$scope\":");
            write((&code.1).into(), style, out);
            out.write_str("}")
        }
        Bson::MinKey => out.write_str("{\"$minKey\":1}"),
        Bson::MaxKey => out.write_str("{\"$maxKey\":1}"),
        _ => out.write_str("null"),
    };
    done.expect("a text takes everything");
}

fn write_number(number: NumberRef, style: Style, out: &mut String) {
    let done = match number {
        NumberRef::Decimal(value) => write!(out, "{{\"$numberDecimal\":\"{value}\"}}"),
        NumberRef::Double(value) if value.is_nan() => out.write_str("{\"$numberDouble\":\"NaN\"}"),
        NumberRef::Double(value) if value.is_infinite() => {
            let sign = if value < 0.0 { "-" } else { "" };
            write!(out, "{{\"$numberDouble\":\"{sign}Infinity\"}}")
        }
        NumberRef::Double(value) if style == Style::Relaxed => write!(out, "{}", double_text(value)),
        NumberRef::Double(value) => write!(out, "{{\"$numberDouble\":\"{}\"}}", double_text(value)),
        NumberRef::Int32(value) if style == Style::Relaxed => write!(out, "{value}"),
        NumberRef::Int64(value) if style == Style::Relaxed => write!(out, "{value}"),
        NumberRef::Int32(value) => write!(out, "{{\"$numberInt\":\"{value}\"}}"),
        NumberRef::Int64(value) => write!(out, "{{\"$numberLong\":\"{value}\"}}"),
    };
    done.expect("a text takes everything");
}

/// The shortest digits that read back as the double, with a point or an exponent.
fn double_text(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) { format!("{value:e}") } else { format!("{value:?}") }
}

fn write_string(text: &str, out: &mut String) {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    orrery_model::write_json_string(&mut bytes, text);
    out.push_str(&String::from_utf8(bytes).expect("a text that is quoted is a text"));
}
