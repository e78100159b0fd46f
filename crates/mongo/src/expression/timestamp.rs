//! `$tsSecond`, `$tsIncrement`.

use super::Call;
use super::table::{Operator, values};
use super::value::{is_nullish, type_name};
use crate::error::{Error, Result};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    values("$tsIncrement", (1, 1), increment, "{$tsIncrement: timestamp}", "The counter of a timestamp."),
    values("$tsSecond", (1, 1), second, "{$tsSecond: timestamp}", "The seconds of a timestamp since 1970."),
];

fn part(call: &Call<'_>, code: i32, of: fn(u32, u32) -> u32) -> Result<Option<Bson>> {
    let value = call.arguments[0].as_ref();
    match value {
        _ if is_nullish(value) => Ok(Some(Bson::Null)),
        Some(Bson::Timestamp { seconds, increment }) => {
            Ok(Some(Bson::Int64(of(*seconds, *increment).into())))
        }
        _ => {
            let text = format!("Argument to {} must be a timestamp, but is {}", call.name, type_name(value));
            Err(Error::new(code, text))
        }
    }
}

fn second(call: &Call<'_>) -> Result<Option<Bson>> {
    part(call, 5_687_301, |seconds, _| seconds)
}

fn increment(call: &Call<'_>) -> Result<Option<Bson>> {
    part(call, 5_687_302, |_, increment| increment)
}
