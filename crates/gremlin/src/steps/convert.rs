//! One type to another: asString(), asNumber(), asBool(), asDate(), and dates moved and measured.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::ToPrimitive as _;

use super::mutate::Source;
use super::*;
use crate::compare::{decimal, items};
use crate::datetime::DateTime;
use crate::text::{text_of, type_name};
use crate::value::{DateUnit, GType, Scope};

pub(crate) fn build_string(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let (scope, rest) = call.scoped();
    if !rest.is_empty() {
        return Err(call.wrong());
    }
    let text = |value: &Value| match value {
        Value::Null => Err(Error::runtime("Can't parse null as String.")),
        other => Ok(Value::string(text_of(other))),
    };
    Ok(Each::map(Parts::default(), move |_, _, traverser| match &traverser.value {
        value @ (Value::List(_) | Value::Set(_) | Value::BulkSet(_)) if scope == Scope::Local => {
            let texts: Result<Vec<Value>> = items(value).iter().map(text).collect();
            Ok(Some(match value {
                Value::Set(_) => Value::set(texts?),
                _ => Value::list(texts?),
            }))
        }
        other => text(other).map(Some),
    }))
}

pub(crate) fn build_number(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let kind = match call.args {
        [] => None,
        [Value::GType(kind)] => Some(*kind),
        _ => return Err(call.wrong()),
    };
    if let Some(kind) = kind
        && !matches!(
            kind,
            GType::Byte
                | GType::Short
                | GType::Int
                | GType::Long
                | GType::BigInt
                | GType::Float
                | GType::Double
                | GType::BigDecimal
                | GType::Number
        )
    {
        return Err(Error::runtime(format!("{} is not a number type", kind.name())));
    }
    Ok(Each::map(Parts::default(), move |_, _, traverser| {
        let wrong = || {
            Error::runtime(format!(
                "Can't parse type {} as number.",
                type_name(&traverser.value).rsplit('.').next().unwrap_or_default()
            ))
        };
        let number = match &traverser.value {
            Value::Null => return Ok(Some(Value::Null)),
            value if value.is_number() => value.clone(),
            Value::Date(date) => Value::Long(date.epoch_millis()),
            Value::String(text) => parse_number(text)
                .ok_or_else(|| Error::runtime(format!("Can't parse string '{text}' as number.")))?,
            _ => return Err(wrong()),
        };
        match kind {
            None | Some(GType::Number) => Ok(Some(number)),
            Some(kind) => to_kind(&number, kind).map(Some),
        }
    }))
}

fn parse_number(text: &str) -> Option<Value> {
    let text = text.trim();
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if unsigned.bytes().all(|b| b.is_ascii_digit()) {
        // Written in decimal, whatever it begins with.
        let whole = BigInt::parse_bytes(text.strip_prefix('+').unwrap_or(text).as_bytes(), 10)?;
        return Some(crate::parser::smallest(whole));
    }
    crate::parser::number(text)
}

fn to_kind(number: &Value, kind: GType) -> Result<Value> {
    let overflow = || {
        Error::runtime(format!(
            "Can't convert number of type {} to {} due to overflow.",
            type_name(number).rsplit('.').next().unwrap_or_default(),
            kind.name()
        ))
    };
    let finite = number.as_f64().is_some_and(f64::is_finite) || matches!(number, Value::BigInt(_));
    let whole = || -> Result<BigInt> {
        if !finite {
            return Err(overflow());
        }
        decimal(number).map(|d| d.truncate()).ok_or_else(overflow)
    };
    Ok(match kind {
        GType::Byte => Value::Byte(whole()?.to_i8().ok_or_else(overflow)?),
        GType::Short => Value::Short(whole()?.to_i16().ok_or_else(overflow)?),
        GType::Int => Value::Int(whole()?.to_i32().ok_or_else(overflow)?),
        GType::Long => Value::Long(whole()?.to_i64().ok_or_else(overflow)?),
        GType::BigInt => Value::BigInt(Arc::new(whole()?)),
        GType::Float => {
            let narrow = match number {
                Value::Float(n) => *n,
                other => other.as_f64().unwrap_or(f64::NAN) as f32,
            };
            if finite && narrow.is_infinite() {
                return Err(overflow());
            }
            Value::Float(narrow)
        }
        GType::Double => match number {
            // Through its text, so that 1.1f is 1.1 and not its neighbour.
            Value::Float(n) => Value::Double(text_of(&Value::Float(*n)).parse().unwrap_or(f64::from(*n))),
            other => Value::Double(other.as_f64().unwrap_or(f64::NAN)),
        },
        _ => Value::BigDecimal(Arc::new(decimal(number).ok_or_else(overflow)?)),
    })
}

pub(crate) fn build_bool(_: &mut Builder<'_>, _: &Call<'_>) -> Result<Box<dyn Op>> {
    Ok(Each::map(Parts::default(), |_, _, traverser| {
        let wrong = |value: &Value| {
            Err(Error::runtime(format!(
                "Can't parse {} as Boolean.",
                type_name(value).rsplit('.').next().unwrap_or_default()
            )))
        };
        Ok(Some(Value::Bool(match &traverser.value {
            Value::Bool(value) => *value,
            value if value.is_number() => {
                let number = value.as_f64().unwrap_or(0.0);
                number != 0.0 && !number.is_nan()
            }
            Value::String(text) if text.eq_ignore_ascii_case("true") => true,
            Value::String(text) if text.eq_ignore_ascii_case("false") => false,
            other => return wrong(other),
        })))
    }))
}

pub(crate) fn build_date(_: &mut Builder<'_>, _: &Call<'_>) -> Result<Box<dyn Op>> {
    Ok(Each::map(Parts::default(), |_, _, traverser| {
        let wrong = || Error::runtime(format!("Can't parse {} as Date.", text_of(&traverser.value)));
        Ok(Some(Value::Date(match &traverser.value {
            Value::Date(date) => *date,
            Value::String(text) => DateTime::parse(text).ok_or_else(wrong)?,
            value @ (Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_)) => {
                value.as_i64().and_then(DateTime::from_epoch_millis).ok_or_else(wrong)?
            }
            _ => return Err(wrong()),
        })))
    }))
}

fn date_of(step: &str, value: &Value) -> Result<DateTime> {
    match value {
        Value::Date(date) => Ok(*date),
        other => {
            Err(Error::runtime(format!("{step}() can only take a date, encountered {}", type_name(other))))
        }
    }
}

pub(crate) fn build_date_add(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let [Value::DateUnit(unit), count] = call.args else { return Err(call.wrong()) };
    let count = count.as_i64().ok_or_else(|| call.wrong())?;
    let seconds = match unit {
        DateUnit::Second => 1,
        DateUnit::Minute => 60,
        DateUnit::Hour => 3600,
        DateUnit::Day => 86_400,
    };
    let seconds = count.checked_mul(seconds).ok_or_else(|| call.wrong())?;
    Ok(Each::map(Parts::default(), move |_, _, traverser| {
        let date = date_of("dateAdd", &traverser.value)?;
        let moved =
            date.plus_seconds(seconds).ok_or_else(|| Error::runtime("The date leaves the calendar."))?;
        Ok(Some(Value::Date(moved)))
    }))
}

pub(crate) fn build_date_diff(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let [other] = call.args else { return Err(call.wrong()) };
    let mut source = Source::of(builder, other)?;
    Ok(Each::map(Parts::default(), move |cx, _, traverser| {
        let date = date_of("dateDiff", &traverser.value)?;
        let other = match source.get(cx, traverser)? {
            None | Some(Value::Null) => 0,
            Some(value) => date_of("dateDiff", &value)?.epoch_millis(),
        };
        Ok(Some(Value::Long(date.epoch_millis() - other)))
    }))
}
