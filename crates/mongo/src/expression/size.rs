//! `$bsonSize`, `$binarySize`; and what one value may take of memory.

use super::Call;
use super::table::{Operator, values};
use super::value::{is_nullish, type_name};
use crate::context::Context;
use crate::error::{Error, Result, code};
use crate::value::Bson;
use crate::value_ref::ValueRef;

pub(crate) static OPERATORS: &[Operator] = &[
    values("$binarySize", (1, 1), binary_size, "{$binarySize: value}", "Bytes of a text or of binary data."),
    values("$bsonSize", (1, 1), bson_size, "{$bsonSize: document}", "Bytes of a document as BSON."),
];

/// What one value that an expression makes may take, as the server limits it.
pub(crate) const VALUE_BYTES_MAX: usize = 104_857_600;

/// Asks the budget whether a value of that size may be made.
pub(crate) fn charge(context: &Context, bytes: usize) -> Result<()> {
    if bytes > VALUE_BYTES_MAX {
        let text = format!("a value would take {bytes} bytes; the limit is {VALUE_BYTES_MAX} bytes");
        return Err(Error::new(code::EXCEEDED_MEMORY_LIMIT, text));
    }
    // Small ones are bounded by the steps that make them.
    if bytes > 4096 {
        context.budget.hold(bytes)?;
    }
    Ok(())
}

fn binary_size(call: &Call<'_>) -> Result<Option<Bson>> {
    let value = call.arguments[0].as_ref();
    Ok(Some(match value {
        _ if is_nullish(value) => Bson::Null,
        Some(Bson::String(text)) => super::number::int_or_long(text.len() as i64),
        Some(Bson::Binary { bytes, .. }) => super::number::int_or_long(bytes.len() as i64),
        _ => {
            let text =
                format!("$binarySize requires a string or BinData argument, found: {}", type_name(value));
            return Err(Error::new(51276, text));
        }
    }))
}

fn bson_size(call: &Call<'_>) -> Result<Option<Bson>> {
    let value = call.arguments[0].as_ref();
    match value {
        _ if is_nullish(value) => Ok(Some(Bson::Null)),
        Some(Bson::Document(document)) => {
            let mut bytes = Vec::new();
            crate::codec::write_document(ValueRef::OwnedDocument(document), &mut bytes);
            Ok(Some(super::number::int_or_long(bytes.len() as i64)))
        }
        _ => Err(Error::new(
            31393,
            format!("$bsonSize requires a document input, found: {}", type_name(value)),
        )),
    }
}

/// Bytes that a value holds, by and large.
pub(crate) fn held_bytes(value: &Bson) -> usize {
    size_of::<Bson>()
        + match value {
            Bson::String(text) | Bson::Symbol(text) | Bson::Code(text) => text.len() + 16,
            Bson::Binary { bytes, .. } => bytes.len() + 16,
            Bson::Array(elements) => 32 + elements.iter().map(held_bytes).sum::<usize>(),
            Bson::Document(document) => {
                32 + document.iter().map(|(name, value)| name.len() + 32 + held_bytes(value)).sum::<usize>()
            }
            Bson::Regex(regex) => regex.pattern.len() + 64,
            _ => 0,
        }
}
