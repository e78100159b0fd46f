//! The JSON form of values that JSON has no word for, and the way back.
//!
//! The forms are those of MongoDB Extended JSON, version 2, relaxed:
//!
//! ```text
//! {"$oid":"507f1f77bcf86cd799439011"}
//! {"$date":"2024-01-01T00:00:00.500Z"}       outside of 1970 to 9999 {"$date":{"$numberLong":"-1"}}
//! {"$numberDecimal":"1.50"}                  {"$timestamp":{"t":1704067200,"i":1}}
//! {"$binary":{"base64":"AQI=","subType":"00"}}
//! {"$regularExpression":{"pattern":"^a","options":"i"}}
//! {"$code":"function() {}"}                  {"$minKey":1}  {"$maxKey":1}
//! ```
//!
//! Printing is for everybody: it is what SQL shows. Reading back is for APIs that want it: to SQL, an object that a
//! client sends is an object, whatever its names. Numbers are printed as JSON prints them, so their widths do not
//! survive; readers also take `$numberInt`, `$numberLong` and `$numberDouble`. An object whose names are those of a
//! form must be one; any other is an object.

use super::parser::{JsonError, ParseOptions, parse_into};
use super::text::write_json_string;
use crate::decimal128::Decimal128;
use crate::document::raw::{Kind, Raw};
use crate::document::writer::DocWriter;
use crate::extended::Extended;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::Write as _;

const DAY_MS: i64 = 86_400_000;
/// The first moment of the year 10000, from which on dates are printed as numbers.
const YEAR_10000_MS: i64 = 253_402_300_800_000;

#[cold]
#[inline(never)]
pub(crate) fn write_extended(out: &mut Vec<u8>, value: Extended<'_>) {
    match value {
        Extended::ObjectId(id) => {
            out.extend_from_slice(b"{\"$oid\":\"");
            id.iter().for_each(|byte| put(out, format_args!("{byte:02x}")));
            out.extend_from_slice(b"\"}");
        }
        Extended::Date(date @ 0..YEAR_10000_MS) => {
            out.extend_from_slice(b"{\"$date\":\"");
            write_date(out, date);
            out.extend_from_slice(b"\"}");
        }
        Extended::Date(date) => put(out, format_args!("{{\"$date\":{{\"$numberLong\":\"{date}\"}}}}")),
        Extended::Timestamp { seconds, increment } => {
            put(out, format_args!("{{\"$timestamp\":{{\"t\":{seconds},\"i\":{increment}}}}}"));
        }
        Extended::Decimal(decimal) => put(out, format_args!("{{\"$numberDecimal\":\"{decimal}\"}}")),
        Extended::Binary { subtype, bytes } => {
            out.extend_from_slice(b"{\"$binary\":{\"base64\":\"");
            out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
            put(out, format_args!("\",\"subType\":\"{subtype:02x}\"}}}}"));
        }
        Extended::Regex { pattern, options } => {
            out.extend_from_slice(b"{\"$regularExpression\":{\"pattern\":");
            write_json_string(out, pattern);
            out.extend_from_slice(b",\"options\":");
            write_json_string(out, options);
            out.extend_from_slice(b"}}");
        }
        Extended::Code(text) => {
            out.extend_from_slice(b"{\"$code\":");
            write_json_string(out, text);
            out.push(b'}');
        }
        Extended::MinKey => out.extend_from_slice(b"{\"$minKey\":1}"),
        Extended::MaxKey => out.extend_from_slice(b"{\"$maxKey\":1}"),
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("memory takes every byte");
}

fn write_date(out: &mut Vec<u8>, date: i64) {
    let (year, month, day) = civil_of(date.div_euclid(DAY_MS));
    let time = date.rem_euclid(DAY_MS);
    let (seconds, ms) = (time / 1000, time % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    put(out, format_args!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"));
    if ms != 0 {
        put(out, format_args!(".{ms:03}"));
    }
    out.push(b'Z');
}

/// Year, month and day of a day counted from 1970-01-01. Years begin in March here, so that the day that comes and goes
/// is the last.
fn civil_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The day of a date, counted from 1970-01-01.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Reads JSON in which objects such as `{"$oid":"…"}` are the values that they stand for, and returns a stored document
/// that keeps integers and doubles apart.
pub fn parse_extended_json(text: &[u8], options: &ParseOptions<'_>) -> Result<Vec<u8>, JsonError> {
    let document = parse_into(DocWriter::keeping_widths(text.len()), text, options)?;
    let corrupt = JsonError { offset: 0, message: "the value cannot be read back" };
    let root = Raw::document(&document).map_err(|_| corrupt)?;
    let mut writer = DocWriter::keeping_widths(document.len());
    copy(root, &mut writer).map_err(|message| JsonError { offset: 0, message })?;
    Ok(writer.finish())
}

fn copy(value: Raw<'_>, writer: &mut DocWriter) -> Result<(), &'static str> {
    match value.kind() {
        Kind::Object => {
            if copy_form(value, writer)? {
                return Ok(());
            }
            writer.begin_object();
            for (key, member) in value.members() {
                writer.key(key);
                copy(member, writer)?;
            }
            writer.end_object();
        }
        Kind::Array => {
            writer.begin_array();
            value.elements().try_for_each(|element| copy(element, writer))?;
            writer.end_array();
        }
        _ => writer.raw(value),
    }
    Ok(())
}

/// Writes what an object stands for. False where it is an ordinary one.
fn copy_form(object: Raw<'_>, writer: &mut DocWriter) -> Result<bool, &'static str> {
    if object.len() != 1 {
        return Ok(false);
    }
    let Some((name, value)) = object.members().next() else { return Ok(false) };
    let text = || value.as_str().ok_or("a form of extended JSON expects a text here");
    match name {
        "$oid" => {
            writer.extended(Extended::ObjectId(hex(text()?).ok_or("an object id is 24 hexadecimal digits")?))
        }
        "$date" => {
            let date = match value.as_str() {
                Some(text) => parse_date(text),
                None => long_of(value),
            };
            writer.extended(Extended::Date(
                date.ok_or("a date is a text such as 2024-01-01T00:00:00Z or {\"$numberLong\":…}")?,
            ));
        }
        "$timestamp" => {
            let part =
                |name| value.get(name)?.as_number()?.as_i64().and_then(|part| u32::try_from(part).ok());
            let (Some(seconds), Some(increment), 2) = (part("t"), part("i"), value.len()) else {
                return Err("a timestamp has the numbers t and i of 32 bits");
            };
            writer.extended(Extended::Timestamp { seconds, increment });
        }
        "$numberDecimal" => {
            let decimal =
                Decimal128::parse(text()?).ok_or("a decimal has up to 34 digits and an exponent")?;
            writer.extended(Extended::Decimal(decimal));
        }
        "$binary" => {
            let part = |name| value.get(name).and_then(Raw::as_str);
            let bytes = part("base64").and_then(|text| STANDARD.decode(text).ok());
            let subtype = part("subType").and_then(|text| match text.len() {
                1 | 2 if text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                    u8::from_str_radix(text, 16).ok()
                }
                _ => None,
            });
            let (Some(bytes), Some(subtype), 2) = (bytes, subtype, value.len()) else {
                return Err("a binary has the texts base64 and subType");
            };
            writer.extended(Extended::Binary { subtype, bytes: &bytes });
        }
        "$regularExpression" => {
            let part = |name| value.get(name).and_then(Raw::as_str).filter(|text| !text.contains('\0'));
            let (Some(pattern), Some(options), 2) = (part("pattern"), part("options"), value.len()) else {
                return Err("a regular expression has the texts pattern and options, without NUL");
            };
            writer.extended(Extended::Regex { pattern, options });
        }
        "$code" => writer.extended(Extended::Code(text()?)),
        "$minKey" | "$maxKey" => {
            if value.as_number().and_then(|one| one.as_i64()) != Some(1) {
                return Err("the min key and the max key are written with a 1");
            }
            writer.extended(if name == "$minKey" { Extended::MinKey } else { Extended::MaxKey });
        }
        "$numberInt" => writer.int32(text()?.parse().map_err(|_| "the number is no integer of 32 bits")?),
        "$numberLong" => writer.int64(text()?.parse().map_err(|_| "the number is no integer of 64 bits")?),
        "$numberDouble" => writer.double(text()?.parse().map_err(|_| "the number is no double")?),
        _ => return Ok(false),
    }
    Ok(true)
}

fn long_of(value: Raw<'_>) -> Option<i64> {
    match (value.len(), value.get("$numberLong")) {
        (1, Some(text)) => text.as_str()?.parse().ok(),
        _ => value.as_number()?.as_i64(),
    }
}

fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let mut bytes = [0; N];
    if pairs.len() != N {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let digit = |digit: &u8| char::from(*digit).to_digit(16).map(|digit| digit as u8);
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(bytes)
}

/// Milliseconds of `YYYY-MM-DDTHH:MM:SS`, with or without a fraction, then `Z` or an offset. Digits below a millisecond
/// are dropped.
fn parse_date(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>| {
        let digits = bytes.get(range)?;
        digits.iter().try_fold(0i64, |sum, digit| {
            char::from(*digit).to_digit(10).map(|digit| sum * 10 + i64::from(digit))
        })
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|(at, mark)| bytes.get(*at) != Some(mark)) {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let days = days_of(year, month, day);
    if !(1..=12).contains(&month)
        || civil_of(days) != (year, month, day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    let (mut at, mut ms) = (19, 0);
    if bytes.get(at) == Some(&b'.') {
        let digits = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let kept = digits.min(3);
        ms = number(at + 1..at + 1 + kept)? * 10i64.pow(3 - kept as u32);
        at += 1 + digits;
    }
    let offset_minutes = match bytes.get(at..)? {
        b"Z" => 0,
        [sign @ (b'+' | b'-'), rest @ ..] => {
            let minutes_at = match rest.len() {
                5 if rest[2] == b':' => at + 4,
                4 => at + 3,
                _ => return None,
            };
            let (hours, minutes) = (number(at + 1..at + 3)?, number(minutes_at..minutes_at + 2)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 60 + minutes) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    Some(days * DAY_MS + (hour * 3600 + (minute - offset_minutes) * 60 + second) * 1000 + ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_one_to_one() {
        assert_eq!(
            (days_of(1970, 1, 1), days_of(2000, 2, 29), days_of(10_000, 1, 1)),
            (0, 11_016, 2_932_897)
        );
        assert_eq!(YEAR_10000_MS, days_of(10_000, 1, 1) * DAY_MS);
        for days in (-800_000..3_000_000).step_by(13) {
            let (year, month, day) = civil_of(days);
            assert_eq!(days_of(year, month, day), days);
        }
    }

    #[test]
    fn dates_are_read_with_fractions_and_offsets_and_checked() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2024-02-29T12:30:45.678Z", Some(1_709_209_845_678)),
            ("2024-02-29T12:30:45.6Z", Some(1_709_209_845_600)),
            ("2024-02-29T12:30:45.678999Z", Some(1_709_209_845_678)),
            ("2024-02-29T13:30:45.678+01:00", Some(1_709_209_845_678)),
            ("2024-02-29T07:00:45.678-0530", Some(1_709_209_845_678)),
            ("2023-02-29T12:30:45Z", None),
            ("2024-13-01T12:30:45Z", None),
            ("2024-00-01T12:30:45Z", None),
            ("2024-01-01T24:00:00Z", None),
            ("2024-01-01T00:00:00", None),
            ("2024-01-01T00:00:00.Z", None),
            ("2024-01-01T00:00:00+1:00", None),
            ("2024-01-01T00:00:00Zé", None),
            ("2024-01-01", None),
            ("", None),
            ("é024-01-01T00:00:00Z", None),
        ];
        for (text, date) in cases {
            assert_eq!(parse_date(text), date, "{text}");
        }
    }
}
