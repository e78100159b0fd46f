//! `$dateDiff`: how many borders of a unit lie between two dates.

use super::calendar::{Civil, weekday};
use super::{Unit, Zone, milliseconds, unit};
use crate::error::{Error, Result};
use crate::expression::arguments::{check_names, document, required};
use crate::expression::parse::Parser;
use crate::expression::table::{Operator, own};
use crate::expression::value::{is_nullish, type_name};
use crate::expression::{LazyCall, Node};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[own(
    "$dateDiff",
    parse,
    "{$dateDiff: {startDate, endDate, unit, timezone, startOfWeek}}",
    "How many units lie between two dates.",
)];

const ARGUMENTS: [&str; 5] = ["startDate", "endDate", "unit", "timezone", "startOfWeek"];

fn parse(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members =
        document(argument, 5_166_301, || "$dateDiff only supports an object as its argument".into())?;
    check_names(name, members, &ARGUMENTS, 5_166_302)?;
    for (member, code) in [("startDate", 5_166_303), ("endDate", 5_166_304), ("unit", 5_166_305)] {
        required(name, members, member, code)?;
    }
    Ok(Node::Lazy {
        name,
        run: difference,
        arguments: parser.named(members, &ARGUMENTS)?,
        variables: Vec::new(),
    })
}

fn difference(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let evaluated = |at: usize| call.arguments[at].evaluate_in(call.scope);
    let (start, end, unit_value) = (evaluated(0)?, evaluated(1)?, evaluated(2)?);
    if [&start, &end, &unit_value].into_iter().any(|value| is_nullish(value.as_ref())) {
        return Ok(Some(Bson::Null));
    }
    let Some(unit) = unit::of_value(call.name, unit_value.as_ref())? else { return Ok(Some(Bson::Null)) };
    let first_day = if unit == Unit::Week && !call.arguments[4].is_absent() {
        unit::weekday(call.name, evaluated(4)?.as_ref())?
    } else {
        Some(0)
    };
    let zone = call.zone(3, 40517)?;
    let date = |value: &Option<Bson>, which: &str| {
        milliseconds(value.as_ref(), 5_166_307).map_err(|_| {
            let text =
                format!("$dateDiff requires '{which}' to be a date, but got {}", type_name(value.as_ref()));
            Error::new(5_166_307, text)
        })
    };
    let (start, end) = (date(&start, "startDate")?, date(&end, "endDate")?);
    let (Some(start), Some(end), Some(zone), Some(first_day)) = (start, end, zone, first_day) else {
        return Ok(Some(Bson::Null));
    };
    match between(start, end, unit, &zone, first_day) {
        Some(count) => Ok(Some(Bson::Int64(count))),
        None => Err(Error::new(5_166_308, "$dateDiff overflowed")),
    }
}

/// Borders of a unit between two dates, on the clock of a zone.
pub fn between(start: i64, end: i64, unit: Unit, zone: &Zone, first_day: i64) -> Option<i64> {
    let local = |ms: i64| zone.to_local(ms);
    let days = |ms: i64| local(ms).div_euclid(super::calendar::DAY_MS);
    let count = |of: &dyn Fn(i64) -> i64| of(end).checked_sub(of(start));
    match unit {
        Unit::Year => count(&|ms| Civil::of(local(ms)).year),
        Unit::Quarter => count(&|ms| {
            let civil = Civil::of(local(ms));
            civil.year * 4 + (civil.month - 1) / 3
        }),
        Unit::Month => count(&|ms| {
            let civil = Civil::of(local(ms));
            civil.year * 12 + civil.month
        }),
        Unit::Week => count(&|ms| {
            let days = days(ms);
            (days - (weekday(days) - first_day).rem_euclid(7)).div_euclid(7)
        }),
        Unit::Day => count(&days),
        // Zones whose offset is no whole hour have their own borders of hours.
        Unit::Hour | Unit::Minute => {
            let size = unit.ms()?;
            count(&|ms| (ms + (zone.offset_at(ms) * 1000).rem_euclid(size)).div_euclid(size))
        }
        Unit::Second => count(&|ms| ms.div_euclid(1000)),
        Unit::Millisecond => count(&|ms| ms),
    }
}
