//! `$concatArrays`.

use crate::error::{Error, Result};
use crate::expression::Call;
use crate::expression::size::charge;
use crate::expression::table::{MANY, Operator, values};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[values(
    "$concatArrays",
    (0, MANY),
    concat,
    "{$concatArrays: [a, b, …]}",
    "Arrays one after the other.",
)];

fn concat(call: &Call<'_>) -> Result<Option<Bson>> {
    let mut joined = Vec::new();
    let mut null = false;
    for argument in call.arguments {
        match argument {
            None | Some(Bson::Null | Bson::Undefined) => null = true,
            Some(Bson::Array(elements)) if !null => {
                charge(call.context, (joined.len() + elements.len()) * size_of::<Bson>())?;
                joined.extend(elements.iter().cloned());
            }
            Some(Bson::Array(_)) => {}
            Some(_) if null => {}
            Some(other) => {
                let text = format!("$concatArrays only supports arrays, not {}", other.kind().name());
                return Err(Error::new(28664, text));
            }
        }
    }
    Ok(Some(if null { Bson::Null } else { Bson::array(joined) }))
}
