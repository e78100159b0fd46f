//! Conversions: `$convert`, `$toBool` and its like, `$type`, `$isNumber`, `$toHashedIndexKey`.

mod binary;
pub(crate) mod hashed;
mod number;

use super::arguments::check_names;
use super::date::{self, read};
use super::parse::Parser;
use super::table::{Operator, lazy, own, values};
use super::text::coerce;
use super::value::{is_nullish, show, type_name};
use super::{Call, LazyCall, Node};
use crate::error::{Error, Result, code};
use crate::value::{Bson, Document, Kind};

pub(crate) static OPERATORS: &[Operator] = &[
    own(
        "$convert",
        parse,
        "{$convert: {input, to, format, onError, onNull}}",
        "A value as another type, or what onError and onNull say.",
    ),
    lazy(
        "$isNumber",
        (1, 1),
        is_number,
        "{$isNumber: value}",
        "Whether it is an int, long, double or decimal.",
    ),
    values(
        "$toBool",
        (1, 1),
        to,
        "{$toBool: value}",
        "As a boolean: numbers are true unless zero, all else is true.",
    ),
    values(
        "$toDate",
        (1, 1),
        to,
        "{$toDate: value}",
        "As a date: milliseconds since 1970, a text, an object id, a timestamp.",
    ),
    values("$toDecimal", (1, 1), to, "{$toDecimal: value}", "As a decimal."),
    values("$toDouble", (1, 1), to, "{$toDouble: value}", "As a double."),
    values("$toInt", (1, 1), to, "{$toInt: value}", "As an int, cut off toward zero."),
    values("$toLong", (1, 1), to, "{$toLong: value}", "As a long, cut off toward zero."),
    values("$toObjectId", (1, 1), to, "{$toObjectId: text}", "As an object id, of 24 hexadecimal digits."),
    values("$toString", (1, 1), to, "{$toString: value}", "As a text."),
    values("$toUUID", (1, 1), to, "{$toUUID: text}", "As a UUID."),
    lazy("$type", (1, 1), type_of, "{$type: value}", "The name of the type, or `missing`."),
];

/// What a value is to become.
#[derive(Clone, Debug)]
struct Target {
    kind: Kind,
    subtype: u8,
    format: Option<String>,
}

const ARGUMENTS: [&str; 6] = ["input", "to", "onError", "onNull", "format", "byteOrder"];

fn parse(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let Some(members) = argument.as_document() else {
        let text =
            format!("$convert expects an object of named arguments but found: {}", type_name(Some(argument)));
        return Err(Error::failed_to_parse(text));
    };
    check_names(name, members, &ARGUMENTS, code::FAILED_TO_PARSE)?;
    for member in ["input", "to"] {
        if !members.contains(member) {
            return Err(Error::failed_to_parse(format!("Missing '{member}' parameter to $convert")));
        }
    }
    Ok(Node::Lazy {
        name,
        run: convert,
        arguments: parser.named(members, &ARGUMENTS)?,
        variables: Vec::new(),
    })
}

fn convert(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let evaluated = |at: usize| call.arguments[at].evaluate_in(call.scope);
    let input = evaluated(0)?;
    let to = evaluated(1)?;
    let format = evaluated(4)?;
    let target = match &to {
        to if is_nullish(to.as_ref()) => None,
        to => Some(target(to.as_ref(), format.as_ref())?),
    };
    if is_nullish(input.as_ref()) {
        return if call.arguments[3].is_absent() { Ok(Some(Bson::Null)) } else { evaluated(3) };
    }
    let (Some(input), Some(target)) = (input, target) else { return Ok(Some(Bson::Null)) };
    match convert_to(&input, &target) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.code == code::CONVERSION_FAILURE && !call.arguments[2].is_absent() => {
            evaluated(2)
        }
        Err(error) => Err(error),
    }
}

fn target(to: Option<&Bson>, format: Option<&Bson>) -> Result<Target> {
    let format = match format {
        format if is_nullish(format) => None,
        Some(Bson::String(format)) => match &**format {
            "base64" | "base64url" | "utf8" | "hex" | "uuid" | "auto" => Some(format.to_string()),
            other => {
                return Err(Error::new(
                    4_341_125,
                    format!("Invalid 'format' argument for $convert: {other}"),
                ));
            }
        },
        other => {
            let text = format!("$convert requires that 'format' be a string, found: {}", type_name(other));
            return Err(Error::new(4_341_114, text));
        }
    };
    if let Some(Bson::Document(members)) = to {
        return target_document(members, format);
    }
    Ok(Target { kind: target_kind(to)?, subtype: 0, format })
}

fn target_document(members: &Document, format: Option<String>) -> Result<Target> {
    check_names("$convert's 'to'", members, &["type", "subtype"], code::FAILED_TO_PARSE)?;
    let kind = members
        .get("type")
        .ok_or_else(|| Error::failed_to_parse("$convert's 'to' argument must have a 'type' field"))?;
    let kind = target_kind(Some(kind))?;
    let subtype = match members.get("subtype") {
        None => 0,
        Some(value) => {
            let number = super::number::of(value).and_then(super::number::NumberRef::to_i64);
            match number {
                Some(subtype @ (0..=8 | 128..=255)) => subtype as u8,
                _ => {
                    let text = format!(
                        "In $convert, numeric 'subtype' argument is not valid: {}",
                        show(Some(value))
                    );
                    return Err(Error::new(4_341_107, text));
                }
            }
        }
    };
    Ok(Target { kind, subtype, format })
}

fn target_kind(to: Option<&Bson>) -> Result<Kind> {
    match to {
        Some(Bson::String(name)) => Kind::ALL
            .into_iter()
            .find(|kind| kind.name() == &**name)
            .ok_or_else(|| Error::bad_value(format!("Unknown type name: {name}"))),
        Some(value) if value.is_number() => {
            let Some(number) = super::number::of(value).and_then(super::number::NumberRef::to_i64) else {
                let text =
                    format!("In $convert, numeric 'to' argument is not an integer: {}", show(Some(value)));
                return Err(Error::failed_to_parse(text));
            };
            Kind::ALL.into_iter().find(|kind| i64::from(kind.number()) == number).ok_or_else(|| {
                let text = format!(
                    "In $convert, numeric value for 'to' does not correspond to a BSON type: {number}"
                );
                Error::failed_to_parse(text)
            })
        }
        other => {
            let text =
                format!("$convert's 'to' argument must be a string or number, but is {}", type_name(other));
            Err(Error::failed_to_parse(text))
        }
    }
}

fn to(call: &Call<'_>) -> Result<Option<Bson>> {
    let kind = match call.name {
        "$toBool" => Kind::Bool,
        "$toDate" => Kind::Date,
        "$toDecimal" => Kind::Decimal,
        "$toDouble" => Kind::Double,
        "$toInt" => Kind::Int32,
        "$toLong" => Kind::Int64,
        "$toObjectId" => Kind::ObjectId,
        "$toUUID" => Kind::Binary,
        _ => Kind::String,
    };
    let uuid = call.name == "$toUUID";
    let target = Target { kind, subtype: if uuid { 4 } else { 0 }, format: uuid.then(|| "uuid".into()) };
    match &call.arguments[0] {
        value if is_nullish(value.as_ref()) => Ok(Some(Bson::Null)),
        Some(value) => convert_to(value, &target).map(Some),
        None => Ok(Some(Bson::Null)),
    }
}

/// A failure that `onError` is for.
fn failure(text: String) -> Error {
    Error::new(code::CONVERSION_FAILURE, text)
}

fn convert_to(value: &Bson, target: &Target) -> Result<Bson> {
    let unsupported = || {
        failure(format!(
            "Unsupported conversion from {} to {} in $convert with no onError value",
            value.kind().name(),
            target.kind.name()
        ))
    };
    match target.kind {
        Kind::Bool => Ok(Bson::Bool(super::boolean::is_true(Some(value.into())))),
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal => {
            number::convert(value, target.kind).unwrap_or_else(|| Err(unsupported()))
        }
        Kind::String => match value {
            Bson::String(_) => Ok(value.clone()),
            Bson::Bool(value) => Ok(if *value { "true".into() } else { "false".into() }),
            Bson::ObjectId(id) => Ok(super::value::hex(id).into()),
            Bson::Binary { subtype, bytes } => binary::to_text(*subtype, bytes, target.format.as_deref()),
            Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) | Bson::Decimal(_) | Bson::Date(_) => {
                Ok(coerce::text(Some(value))?.into_owned().into())
            }
            _ => Err(unsupported()),
        },
        Kind::ObjectId => match value {
            Bson::ObjectId(_) => Ok(value.clone()),
            Bson::String(text) => object_id(text),
            _ => Err(unsupported()),
        },
        Kind::Date => match value {
            Bson::Date(_) => Ok(value.clone()),
            Bson::String(text) => read::read(text, None).map(Bson::Date),
            Bson::Timestamp { .. } | Bson::ObjectId(_) => {
                Ok(date::milliseconds(Some(value), 16006)?.map_or(Bson::Null, Bson::Date))
            }
            Bson::Int64(ms) => Ok(Bson::Date(*ms)),
            Bson::Double(_) | Bson::Decimal(_) => match number::convert(value, Kind::Int64) {
                Some(Ok(Bson::Int64(ms))) => Ok(Bson::Date(ms)),
                Some(Err(error)) => Err(error),
                _ => Err(unsupported()),
            },
            _ => Err(unsupported()),
        },
        Kind::Binary => match value {
            Bson::String(text) => binary::of_text(text, target.subtype, target.format.as_deref()),
            Bson::Binary { bytes, .. } => Ok(Bson::Binary { subtype: target.subtype, bytes: bytes.clone() }),
            _ => Err(unsupported()),
        },
        kind if kind == value.kind() && kind == Kind::Null => Ok(value.clone()),
        _ => Err(unsupported()),
    }
}

fn object_id(text: &str) -> Result<Bson> {
    let wrong = |why: String| {
        failure(format!("Failed to parse objectId '{text}' in $convert with no onError value: {why}"))
    };
    if text.len() != 24 {
        let why = format!("Invalid string length for parsing to OID, expected 24 but found {}", text.len());
        return Err(wrong(why));
    }
    let mut id = [0; 12];
    for (byte, digits) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digit = |at: usize| char::from(digits[at]).to_digit(16);
        match (digit(0), digit(1)) {
            (Some(high), Some(low)) => *byte = (high * 16 + low) as u8,
            _ => return Err(wrong("Invalid character found in hex string".into())),
        }
    }
    Ok(Bson::ObjectId(id))
}

fn is_number(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let value = call.arguments[0].value_in(call.scope)?;
    Ok(Some(Bson::Bool(value.get().is_some_and(|value| value.kind().is_number()))))
}

fn type_of(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let value = call.arguments[0].value_in(call.scope)?;
    Ok(Some(value.get().map_or("missing", |value| value.kind().name()).into()))
}
