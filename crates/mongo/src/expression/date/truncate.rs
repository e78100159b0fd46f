//! `$dateTrunc`: the beginning of the bin that a date lies in. Bins are counted from 2000-01-01.

use super::calendar::{Civil, DAY_MS, days_of, weekday};
use super::{Unit, Zone, milliseconds, unit};
use crate::error::{Error, Result, code};
use crate::expression::arguments::{check_names, document, required};
use crate::expression::parse::Parser;
use crate::expression::table::{Operator, own};
use crate::expression::value::{is_nullish, show, type_name};
use crate::expression::{LazyCall, Node, number};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[own(
    "$dateTrunc",
    parse,
    "{$dateTrunc: {date, unit, binSize, timezone, startOfWeek}}",
    "The beginning of the unit, or of some of them, that a date lies in.",
)];

const ARGUMENTS: [&str; 5] = ["date", "unit", "binSize", "timezone", "startOfWeek"];

fn parse(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members =
        document(argument, 5_439_007, || "$dateTrunc only supports an object as its argument".into())?;
    check_names(name, members, &ARGUMENTS, 5_439_008)?;
    required(name, members, "date", 5_439_009)?;
    required(name, members, "unit", 5_439_010)?;
    Ok(Node::Lazy {
        name,
        run: truncate,
        arguments: parser.named(members, &ARGUMENTS)?,
        variables: Vec::new(),
    })
}

fn truncate(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let evaluated = |at: usize| call.arguments[at].evaluate_in(call.scope);
    let (date, unit_value) = (evaluated(0)?, evaluated(1)?);
    let Some(unit) = unit::of_value(call.name, unit_value.as_ref())? else { return Ok(Some(Bson::Null)) };
    let size = if call.arguments[2].is_absent() {
        Some(1)
    } else {
        match evaluated(2)? {
            value if is_nullish(value.as_ref()) => None,
            value => {
                let Some(size) = value.as_ref().and_then(number::of).and_then(number::NumberRef::to_i64)
                else {
                    let text = format!(
                        "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '{}' of type {}",
                        show(value.as_ref()),
                        type_name(value.as_ref())
                    );
                    return Err(Error::new(5_439_017, text));
                };
                if size <= 0 {
                    let text =
                        format!("$dateTrunc requires 'binSize' to be greater than 0, but got value {size}");
                    return Err(Error::new(5_439_018, text));
                }
                Some(size)
            }
        }
    };
    let first_day = if unit == Unit::Week && !call.arguments[4].is_absent() {
        unit::weekday(call.name, evaluated(4)?.as_ref())?
    } else {
        Some(0)
    };
    let zone = call.zone(3, 40517)?;
    let date = milliseconds(date.as_ref(), 5_439_012).map_err(|_| {
        let text = format!("$dateTrunc requires 'date' to be a date, but got {}", type_name(date.as_ref()));
        Error::new(5_439_012, text)
    })?;
    let (Some(ms), Some(size), Some(first_day), Some(zone)) = (date, size, first_day, zone) else {
        return Ok(Some(Bson::Null));
    };
    match bin(ms, unit, size, &zone, first_day) {
        Some(ms) => Ok(Some(Bson::Date(ms))),
        None => Err(Error::new(code::OVERFLOW, "$dateTrunc leads beyond the range of dates")),
    }
}

/// The beginning of the bin.
pub fn bin(ms: i64, unit: Unit, size: i64, zone: &Zone, first_day: i64) -> Option<i64> {
    let origin_day = days_of(2000, 1, 1);
    if let Some(months) = unit.months() {
        let civil = Civil::of(zone.to_local(ms));
        let step = size.checked_mul(months)?;
        let since = (civil.year - 2000) * 12 + civil.month - 1;
        let begin = since.div_euclid(step).checked_mul(step)?;
        let civil = Civil { year: 2000, month: begin + 1, day: 1, hour: 0, minute: 0, second: 0, ms: 0 };
        return civil.to_ms().map(|local| zone.of_local(local));
    }
    let (origin_day, step) = match unit {
        Unit::Week => {
            let ahead = (first_day - weekday(origin_day)).rem_euclid(7);
            (origin_day + ahead, size.checked_mul(7)?)
        }
        _ => (origin_day, size),
    };
    if matches!(unit, Unit::Week | Unit::Day) {
        let since = zone.to_local(ms).div_euclid(DAY_MS) - origin_day;
        let begin = origin_day.checked_add(since.div_euclid(step).checked_mul(step)?)?;
        return begin.checked_mul(DAY_MS).map(|local| zone.of_local(local));
    }
    let step = size.checked_mul(unit.ms()?)?;
    let origin = zone.of_local(origin_day * DAY_MS);
    origin.checked_add(ms.checked_sub(origin)?.div_euclid(step).checked_mul(step)?)
}
