//! `$concat`.

use crate::error::{Error, Result};
use crate::expression::Call;
use crate::expression::size::charge;
use crate::expression::table::{MANY, Operator, values};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] =
    &[values("$concat", (0, MANY), concat, "{$concat: [a, b, …]}", "Texts one after the other.")];

fn concat(call: &Call<'_>) -> Result<Option<Bson>> {
    let mut joined = String::new();
    for argument in call.arguments {
        match argument {
            None | Some(Bson::Null | Bson::Undefined) => return Ok(Some(Bson::Null)),
            Some(Bson::String(text) | Bson::Symbol(text)) => {
                charge(call.context, joined.len() + text.len())?;
                joined.push_str(text);
            }
            Some(other) => {
                let text = format!("$concat only supports strings, not {}", other.kind().name());
                return Err(Error::new(16702, text));
            }
        }
    }
    Ok(Some(joined.into()))
}
