//! `$range`.

use crate::error::{Error, Result, code};
use crate::expression::Call;
use crate::expression::number;
use crate::expression::size::{VALUE_BYTES_MAX, charge};
use crate::expression::table::{Operator, values};
use crate::expression::value::{show, type_name};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[values(
    "$range",
    (2, 3),
    range,
    "{$range: [start, end, step]}",
    "Whole numbers from start to before end.",
)];

/// Bytes of one element: type, a name of some digits, the number.
const ELEMENT_BYTES: i64 = 15;

fn range(call: &Call<'_>) -> Result<Option<Bson>> {
    let integer = |at: usize, what: &str, kind_code: i32, whole_code: i32| {
        let value = call.arguments[at].as_ref();
        let Some(number) = value.and_then(number::of) else {
            let text =
                format!("$range requires a numeric {what} value, found value of type: {}", type_name(value));
            return Err(Error::new(kind_code, text));
        };
        number.to_i32().map(i64::from).ok_or_else(|| {
            let text = format!(
                "$range requires a {what} value that can be represented as a 32-bit integer, found value: {}",
                show(value)
            );
            Error::new(whole_code, text)
        })
    };
    let start = integer(0, "starting", 34443, 34444)?;
    let end = integer(1, "ending", 34445, 34446)?;
    let step = if call.arguments.len() == 3 { integer(2, "step", 34447, 34448)? } else { 1 };
    if step == 0 {
        return Err(Error::new(34449, "$range requires a non-zero step value"));
    }
    let count = if (end - start).signum() == step.signum() {
        (end - start).abs().div_euclid(step.abs()) + i64::from((end - start) % step != 0)
    } else {
        0
    };
    if count * ELEMENT_BYTES > VALUE_BYTES_MAX as i64 {
        let text = format!(
            "$range would use too much memory ({} bytes) and cannot spill to disk. Memory limit: {VALUE_BYTES_MAX} bytes",
            count * ELEMENT_BYTES
        );
        return Err(Error::new(code::EXCEEDED_MEMORY_LIMIT, text));
    }
    charge(call.context, count as usize * size_of::<Bson>())?;
    Ok(Some(Bson::array((0..count).map(|i| Bson::Int32((start + i * step) as i32)).collect())))
}
