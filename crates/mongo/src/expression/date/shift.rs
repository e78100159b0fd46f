//! `$dateAdd`, `$dateSubtract`.

use super::calendar::{Civil, days_in_month};
use super::{Unit, Zone, milliseconds};
use crate::error::{Error, Result};
use crate::expression::arguments::{check_names, document, required};
use crate::expression::parse::Parser;
use crate::expression::table::{Operator, own};
use crate::expression::value::{is_nullish, show, type_name};
use crate::expression::{LazyCall, Node, number};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    own("$dateAdd", parse, "{$dateAdd: {startDate, unit, amount, timezone}}", "A date some units later."),
    own(
        "$dateSubtract",
        parse,
        "{$dateSubtract: {startDate, unit, amount, timezone}}",
        "A date some units earlier.",
    ),
];

fn parse(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members = document(argument, 5_166_400, || {
        format!("{name} expects an object as its argument, found: {}", type_name(Some(argument)))
    })?;
    check_names(name, members, &["startDate", "unit", "amount", "timezone"], 5_166_401)?;
    for member in ["startDate", "unit", "amount"] {
        required(name, members, member, 5_166_402)?;
    }
    let arguments = parser.named(members, &["startDate", "unit", "amount", "timezone"])?;
    Ok(Node::Lazy { name, run: shift, arguments, variables: Vec::new() })
}

/// Years that 2^64 milliseconds have.
const YEARS_MAX: i64 = 584_942_417;

fn amount_max(unit: Unit) -> i64 {
    match (unit.months(), unit.ms()) {
        // The server counts three quarters to the year here.
        (Some(3), _) => YEARS_MAX * 3,
        (Some(months), _) => YEARS_MAX * (12 / months),
        (_, Some(1)) => i64::MAX,
        (_, ms) => (u64::MAX / ms.unwrap_or(1) as u64) as i64,
    }
}

fn shift(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let start = call.arguments[0].evaluate_in(call.scope)?;
    let unit = call.arguments[1].evaluate_in(call.scope)?;
    let amount = call.arguments[2].evaluate_in(call.scope)?;
    let zone = call.zone(3, 40517);
    let nulls = [&start, &unit, &amount].into_iter().any(|value| is_nullish(value.as_ref()));
    if nulls || matches!(zone, Ok(None)) {
        return Ok(Some(Bson::Null));
    }
    let not_date =
        || Error::new(5_166_403, format!("{} requires startDate to be convertible to a date", call.name));
    let Some(ms) = milliseconds(start.as_ref(), 5_166_403).map_err(|_| not_date())? else {
        return Ok(Some(Bson::Null));
    };
    let Some(unit_text) = unit.as_ref().and_then(Bson::as_str) else {
        return Err(Error::new(5_166_404, format!("{} expects string defining the time unit", call.name)));
    };
    let Some(unit) = Unit::parse(unit_text) else {
        return Err(Error::failed_to_parse(format!("unknown time unit value: {unit_text}")));
    };
    let Some(count) = amount.as_ref().and_then(number::of).and_then(number::NumberRef::to_i64) else {
        return Err(Error::new(5_166_405, format!("{} expects integer amount of time units", call.name)));
    };
    let zone = zone?.unwrap_or(Zone::UTC);
    if count == i64::MIN || count.abs() > amount_max(unit) {
        let text =
            format!("invalid {} 'amount' parameter value: {} {unit_text}", call.name, show(amount.as_ref()));
        return Err(Error::new(5_976_500, text));
    }
    let count = if call.name == "$dateSubtract" { -count } else { count };
    match add(ms, unit, count, &zone) {
        Some(ms) => Ok(Some(Bson::Date(ms))),
        None => Err(Error::new(5_166_406, format!("{} overflowed", call.name))),
    }
}

/// A date some units later. A day that its new month has not becomes its last one.
pub fn add(ms: i64, unit: Unit, count: i64, zone: &Zone) -> Option<i64> {
    if let Some(months) = unit.months() {
        let civil = Civil::of(zone.to_local(ms));
        let total = civil
            .year
            .checked_mul(12)?
            .checked_add(civil.month - 1)?
            .checked_add(count.checked_mul(months)?)?;
        let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
        let day = civil.day.min(days_in_month(year, month));
        return Civil { year, month, day, ..civil }.to_ms().map(|local| zone.of_local(local));
    }
    let delta = i128::from(unit.ms()?) * i128::from(count);
    if matches!(unit, Unit::Day | Unit::Week) && !zone.is_utc() {
        // A day is a day on the clock of the zone, also where one has 23 hours.
        let local = i64::try_from(i128::from(zone.to_local(ms)) + delta).ok()?;
        return Some(zone.of_local(local));
    }
    i64::try_from(i128::from(ms) + delta).ok()
}
